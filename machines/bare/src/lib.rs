//! The bare x86-64 machine: everything below the trait `machine::Machine` in the image.
//!
//! One core, its network card, its disk, its clocks, its console and its memory, with no operating system under them. This crate is
//! the home of `unsafe`: each block numbers the conditions under which it is sound. `README.md` says how the image is built;
//! [`boot`] tells the way from the first instruction to a machine that serves.
//!
//! Invariants:
//! - One core runs, and no interrupt ever runs code: an interrupt may only end a `hlt` in [`BareMachine::idle`]. So nothing here is ever
//!   interrupted half-way, and no lock is needed.
//! - Addresses map to themselves: a pointer is what a device is given.
//! - A buffer belongs to a device or to Rust code, never to both (`virtio::lent`).
//! - No device is trusted with more than the buffers that it was lent: counts, lengths and numbers that it tells are checked or masked.
#![cfg_attr(not(test), no_std)]
#![cfg_attr(test, allow(dead_code, reason = "the tests call parts; only the image calls all"))]

extern crate alloc;

pub mod boot;
mod clock;
mod console;
mod cpu;
pub mod crash;
pub mod end;
mod entropy;
pub mod fw_cfg;
mod memory;
mod mmio;
mod pci;
mod virtio;
mod world;

pub use memory::allocator::{Allocator, Memory};
pub use world::BareMachine;
