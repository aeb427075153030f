//! The program `barepost`. Its code is in the library beside it.
#![forbid(unsafe_code)]

fn main() {
    barepost::main::<barepost::run::NotHosted>();
}
