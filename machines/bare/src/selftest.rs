//! The root of the self-test image: see `image.rs`. It is a separate program, so that both images
//! can share a target folder.
#![cfg_attr(panic = "abort", no_std, no_main)]

#[cfg(panic = "abort")]
extern crate alloc;

#[cfg(panic = "abort")]
mod image;

#[cfg(not(panic = "abort"))]
fn main() {}
