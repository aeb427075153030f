//! The boot loader's handover: `hvm_start_info` of the PVH boot protocol (Xen,
//! `public/arch-x86/hvm/start_info.h`).

use core::ffi::CStr;
use core::ops::Range;

const MAGIC: u32 = 0x336E_C578;
const MEMORY_TYPE_FREE: u32 = 1;

/// The maximum number of map entries, more than any machine has. A longer map is truncated.
const ENTRIES_MAX: u32 = 1024;

/// The first version that has a memory map.
const VERSION_WITH_MAP: u32 = 1;

#[repr(C)]
struct StartInfo {
    magic: u32,
    version: u32,
    flags: u32,
    modules: u32,
    modules_address: u64,
    command_line_address: u64,
    rsdp_address: u64,
    map_address: u64,
    map_entries: u32,
    reserved: u32,
}

/// One range of the memory map.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct MapEntry {
    address: u64,
    bytes: u64,
    kind: u32,
    reserved: u32,
}

impl MapEntry {
    /// The address range, if this memory is free.
    pub(super) fn free(&self) -> Option<Range<u64>> {
        (self.kind == MEMORY_TYPE_FREE)
            .then(|| self.address..self.address.saturating_add(self.bytes))
    }
}

/// The boot loader's data, at its original address.
pub(super) struct Handover {
    pub(super) command_line: &'static [u8],
    pub(super) map: &'static [MapEntry],
    /// The address of ACPI's description, or zero.
    pub(super) rsdp_address: u64,
}

impl Handover {
    /// Reads the start info at `address`.
    ///
    /// Errors: a text that says what the start info lacks.
    ///
    /// # Safety
    /// 1. The boot loader passed `address`. The start info and all data that it refers to are in
    ///    the first GiB, which is mapped.
    /// 2. That memory is not written while the result is in use.
    pub(super) unsafe fn read(address: u64) -> Result<Handover, &'static str> {
        let info = address as *const StartInfo;
        if info.is_null() || !info.is_aligned() {
            return Err("the boot loader passed no start info");
        }
        // SAFETY: 1. and 2. by the caller's condition; the address is aligned, and any bits are a
        // valid `StartInfo`.
        let info = unsafe { &*info };
        if info.magic != MAGIC {
            return Err("the boot loader passed no start info");
        }
        if info.version < VERSION_WITH_MAP || info.map_address == 0 {
            return Err("the boot loader passed no memory map");
        }
        let entries = info.map_entries.min(ENTRIES_MAX) as usize;
        // SAFETY: as above; the protocol guarantees that `map_entries` aligned entries are at that
        // address.
        let map =
            unsafe { core::slice::from_raw_parts(info.map_address as *const MapEntry, entries) };
        let command_line = match info.command_line_address {
            0 => &[],
            // SAFETY: as above; the protocol guarantees that the text ends with a NUL.
            place => unsafe { CStr::from_ptr(place as *const _) }.to_bytes(),
        };
        Ok(Handover { command_line, map, rsdp_address: info.rsdp_address })
    }
}
