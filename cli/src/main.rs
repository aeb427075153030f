//! The program `barepost`. What it does is in the library beside it.
#![forbid(unsafe_code)]

fn main() {
    barepost::main::<barepost::run::NotHosted>();
}
