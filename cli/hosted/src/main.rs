//! The program `barepost-hosted`: `barepost` with the engine in it.
#![forbid(unsafe_code)]

fn main() {
    barepost::main::<barepost_hosted::Hosted>();
}
