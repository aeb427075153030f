//! The root of the image: see `image.rs`. Without the image's compiler flags, as in builds of host
//! tools, the program is empty.
#![cfg_attr(panic = "abort", no_std, no_main)]

#[cfg(panic = "abort")]
extern crate alloc;

#[cfg(panic = "abort")]
mod image;

#[cfg(not(panic = "abort"))]
fn main() {}
