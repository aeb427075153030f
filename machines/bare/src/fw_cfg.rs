//! Files from QEMU (`-fw_cfg name=...,file=...`), read through its `fw_cfg` device by DMA.
//!
//! Interface: QEMU, `docs/specs/fw_cfg.rst`. Numbers on the wire are big endian.

use crate::cpu::Port;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ptr::NonNull;
use core::sync::atomic::{Ordering::SeqCst, fence};

// SAFETY: 1. selector and data access no memory. The address register makes the device access
// memory, and only `access` uses it; 2. no other code relies on these ports.
const SELECTOR: Port = unsafe { Port::new(0x510) };
const DATA: Port = SELECTOR.at(1);
const DMA_ADDRESS_HIGH: Port = SELECTOR.at(4);
const DMA_ADDRESS_LOW: Port = SELECTOR.at(8);

const KEY_SIGNATURE: u16 = 0;
const KEY_FEATURES: u16 = 1;
const KEY_DIRECTORY: u16 = 0x19;

const FEATURE_DMA: u8 = 1 << 1;

const CONTROL_ERROR: u32 = 1;
const CONTROL_READ: u32 = 1 << 1;
const CONTROL_SKIP: u32 = 1 << 2;
const CONTROL_SELECT: u32 = 1 << 3;

const ENTRY_BYTES: usize = 64;
/// The maximum number of directory entries that are read, more than QEMU makes.
const ENTRIES_MAX: usize = 1024;

/// The longest file that is read.
const FILE_BYTES_MAX: usize = 64 << 20;

/// The contents of the file with this `name`. `None` if the file is missing, or the machine is not
/// QEMU.
pub fn file(name: &str) -> Option<Vec<u8>> {
    if !has_device() {
        return None;
    }
    let count = read(KEY_DIRECTORY, 0, 4)?;
    let count = u32::from_be_bytes(*count.first_chunk()?) as usize;
    let directory = read(KEY_DIRECTORY, 4, count.min(ENTRIES_MAX) * ENTRY_BYTES)?;
    let (key, bytes) = directory.chunks_exact(ENTRY_BYTES).find_map(|entry| parse(entry, name))?;
    read(key, 0, bytes).map(Vec::from)
}

/// Key and size of the file, if the directory entry has this `name`.
fn parse(entry: &[u8], name: &str) -> Option<(u16, usize)> {
    let (bytes, rest) = entry.split_first_chunk()?;
    let (key, rest) = rest.split_first_chunk()?;
    let (_reserved, entry_name) = rest.split_first_chunk::<2>()?;
    let entry_name = entry_name.split(|&byte| byte == 0).next()?;
    let bytes = u32::from_be_bytes(*bytes) as usize;
    (entry_name == name.as_bytes() && bytes <= FILE_BYTES_MAX)
        .then_some((u16::from_be_bytes(*key), bytes))
}

fn has_device() -> bool {
    SELECTOR.write16(KEY_SIGNATURE);
    if [(); 4].map(|()| DATA.read8()) != *b"QEMU" {
        return false;
    }
    SELECTOR.write16(KEY_FEATURES);
    DATA.read8() & FEATURE_DMA != 0
}

/// The request that the device reads. The device writes the result into its field `control`.
#[repr(C)]
struct Access {
    control: u32,
    bytes: u32,
    address: u64,
}

/// Reads `bytes` bytes of the item `key`, after the first `skipped` bytes.
fn read(key: u16, skipped: u32, bytes: usize) -> Option<Box<[u8]>> {
    access(CONTROL_SELECT | CONTROL_SKIP | u32::from(key) << 16, skipped, NonNull::dangling())?;
    let mut buffer = vec![0; bytes].into_boxed_slice();
    let place = NonNull::from(&mut *buffer).cast();
    access(CONTROL_READ, u32::try_from(bytes).ok()?, place)?;
    Some(buffer)
}

/// Makes the device perform one access to `bytes` bytes. A read writes them to `place`, which has
/// that length.
fn access(control: u32, bytes: u32, place: NonNull<u8>) -> Option<()> {
    let mut access = Access {
        control: control.to_be(),
        bytes: bytes.to_be(),
        address: (place.as_ptr() as u64).to_be(),
    };
    let address = (&raw mut access) as u64;
    fence(SeqCst);
    DMA_ADDRESS_HIGH.write32(((address >> 32) as u32).to_be());
    DMA_ADDRESS_LOW.write32((address as u32).to_be());
    fence(SeqCst);
    // QEMU has finished when the write of the address returns. The read is volatile, because the
    // compiler does not know that the device wrote the result.
    // SAFETY: `access` lives here.
    let control = u32::from_be(unsafe { (&raw const access.control).read_volatile() });
    (control & CONTROL_ERROR == 0).then_some(())
}

#[cfg(test)]
mod tests;
