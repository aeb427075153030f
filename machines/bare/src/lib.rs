//! The bare x86-64 machine: everything below the trait `machine::Machine` in the image.
//!
//! Its cores, network card, disk, clocks, console and memory, with no operating system under them. Every core is a machine of its own,
//! a [`BareMachine`]. This crate is the home of `unsafe`: each block numbers the conditions under which it is sound. `README.md` says
//! how the image is built; [`boot`] tells the way from the first instruction to a machine that serves.
//!
//! Invariants:
//! - No interrupt ever runs code: an interrupt may only end a `hlt` in [`BareMachine::idle`]. So nothing here is ever interrupted half-way.
//! - What a core needs for packets is its own: its queues of the card, its memory, its timer. There is no lock on the path of a packet;
//!   there is one around the console's lines, and one around allocations of whole runs (`shared`).
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
mod shared;
mod virtio;
mod world;

pub use memory::allocator::{Allocator, Memory};
pub use world::BareMachine;
