//! The image's root. See `image.rs`; built with other flags than the image's, as host tools do, there is nothing to run.
#![cfg_attr(panic = "abort", no_std, no_main)]

#[cfg(panic = "abort")]
extern crate alloc;

#[cfg(panic = "abort")]
mod image;

#[cfg(not(panic = "abort"))]
fn main() {}
