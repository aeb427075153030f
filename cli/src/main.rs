//! The program `barepost`. Its code is in the library of this package.
#![forbid(unsafe_code)]

fn main() {
    barepost::main::<barepost::run::NotHosted>();
}
