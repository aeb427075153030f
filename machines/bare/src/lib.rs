//! The bare x86-64 machine: everything below the trait `machine::Machine` in the image.
//!
//! It covers the cores, network card, disk, clocks, console and memory, with no operating system
//! under them. Every core has its own `Machine`, a [`BareMachine`]. This crate contains `unsafe`
//! code: the comment at each block numbers the conditions under which the block is sound.
//! `README.md` says how the image is built. [`boot`] describes the steps from the first instruction
//! to a machine that serves.
//!
//! Invariants:
//! - No interrupt runs code of this crate: its only effect is to end a `hlt` in
//!   [`BareMachine::idle`]. So no code of this crate runs in the middle of other code on the same
//!   core.
//! - A core has its own parts for packets: its queues of the card, its memory, its timer. The path
//!   of a packet takes no lock. One lock protects the console's lines, and another protects
//!   allocations of whole runs (`shared`).
//! - Each virtual address equals its physical address. So a device gets the address in a pointer.
//! - A buffer belongs to a device or to Rust code, never to both (`virtio::lent`).
//! - A device is trusted only with the buffers that it was lent: counts, lengths and numbers that
//!   it writes are checked or masked.
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
