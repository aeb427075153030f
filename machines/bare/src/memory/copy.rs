//! The memory functions that compiled code calls by their C names, in assembly (`copy.s`).
//!
//! Only the image defines the C names. Host tests call the functions by other names, because the C
//! library has the C names there.
//!
//! Invariants:
//! - No function touches a byte outside of the ranges that it is given.
//! - `memmove` reads every source byte before it overwrites it.

use core::arch::global_asm;

global_asm!(include_str!("copy.s"));

#[cfg(not(test))]
global_asm!(
    ".global memcpy, memmove, memset, memcmp, bcmp, strlen",
    ".set memcpy, barepost_memcpy",
    ".set memmove, barepost_memmove",
    ".set memset, barepost_memset",
    ".set memcmp, barepost_memcmp",
    ".set bcmp, barepost_memcmp",
    ".set strlen, barepost_strlen",
    // Symbols that the prebuilt `core` refers to for unwinding. The image aborts on a panic, so it
    // never calls them.
    ".global _Unwind_Resume, rust_eh_personality",
    "_Unwind_Resume:",
    "rust_eh_personality: ud2",
);

#[cfg(test)]
mod tests;
