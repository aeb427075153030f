//! Page tables: every address maps to itself, with only the rights that its use needs.
//!
//! Invariants:
//! - No page is both writable and executable. Write protection also holds for this machine's own
//!   code (CR0.WP), and only the image's text is executable (EFER.NXE).
//! - The first MiB with page zero, the guard page under each stack, and addresses outside of the
//!   memory map are not mapped. The exceptions are devices and, read-only, the firmware's tables.
//! - Pages are added, and never removed or changed. So no core needs to be told to drop a stale
//!   translation.
//! - Each virtual address equals its physical address. So the address in a pointer is also the
//!   address that a device needs.

use super::PAGE_BYTES;
use super::map::Ranges;
use super::stacks::Stacks;
use crate::mmio::Mmio;
use core::arch::asm;
use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

unsafe extern "C" {
    static __text_start: u8;
    static __text_end: u8;
    static __rodata_end: u8;
    static __data_end: u8;
    static __image_end: u8;
}

/// The allowed accesses to a page. Executable pages are never writable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rights {
    Read,
    ReadWrite,
    ReadExecute,
    /// Registers of a device: read and written, never cached.
    Device,
}

const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const UNCACHED: u64 = 0b11 << 3;
const ACCESSED_DIRTY: u64 = 0b11 << 5;
const LARGE: u64 = 1 << 7;
const NO_EXECUTE: u64 = 1 << 63;
const ADDRESS: u64 = 0x000F_FFFF_FFFF_F000;

impl Rights {
    const fn bits(self) -> u64 {
        // With the accessed and dirty bits set in advance, the processor need not write them on
        // first use.
        PRESENT
            | ACCESSED_DIRTY
            | match self {
                Rights::Read => NO_EXECUTE,
                Rights::ReadWrite => WRITABLE | NO_EXECUTE,
                Rights::ReadExecute => 0,
                Rights::Device => WRITABLE | NO_EXECUTE | UNCACHED,
            }
    }

    const fn of_bits(bits: u64) -> Rights {
        match (bits & WRITABLE != 0, bits & NO_EXECUTE != 0, bits & UNCACHED != 0) {
            (true, _, true) => Rights::Device,
            (true, ..) => Rights::ReadWrite,
            (_, true, _) => Rights::Read,
            _ => Rights::ReadExecute,
        }
    }
}

/// One table of any level: 512 entries of 8 bytes, which fill a page.
#[repr(C, align(4096))]
pub(crate) struct Table([AtomicU64; 512]);

/// The machine's page tables.
pub(crate) struct Paging {
    /// The first table is the root.
    tables: &'static [Table],
    used: usize,
    gigabyte_pages: bool,
}

/// The range of the image in memory, including its guard pages.
pub(crate) fn image() -> Range<u64> {
    (&raw const __text_start) as u64..(&raw const __image_end) as u64
}

/// The number of bytes of page tables that map `memory_bytes` of memory, with spare tables for
/// devices.
pub(crate) fn table_bytes(memory_bytes: u64, gigabyte_pages: bool) -> u64 {
    const TABLES_FOR_EDGES_AND_DEVICES: u64 = 160;
    let gigabytes = (memory_bytes >> 30) + 1;
    (TABLES_FOR_EDGES_AND_DEVICES + if gigabyte_pages { 0 } else { gigabytes }) * PAGE_BYTES
}

impl Paging {
    /// Makes empty tables in `memory`.
    ///
    /// # Safety
    /// 1. `memory` is mapped now, and stays mapped and writable in the tables built here.
    /// 2. No other code ever uses `memory`.
    pub(crate) unsafe fn new(memory: Range<u64>, gigabyte_pages: bool) -> Paging {
        let count = ((memory.end - memory.start) / PAGE_BYTES) as usize;
        // SAFETY: 1. the caller gives whole pages, mapped and unused; 2. any bits are valid
        // atomics, and `next` clears each table before an entry points at it.
        let tables = unsafe { core::slice::from_raw_parts(memory.start as *const Table, count) };
        let mut paging = Paging { tables, used: 0, gigabyte_pages };
        paging.next();
        paging
    }

    /// Maps each part of the image with the rights that it needs, its stacks without their guard
    /// pages, and the page tables.
    pub(crate) fn map_image(&mut self) {
        let parts = [
            ((&raw const __text_start) as u64..(&raw const __text_end) as u64, Rights::ReadExecute),
            ((&raw const __text_end) as u64..(&raw const __rodata_end) as u64, Rights::Read),
            ((&raw const __rodata_end) as u64..(&raw const __data_end) as u64, Rights::ReadWrite),
        ];
        for (range, rights) in parts {
            self.map(range, rights);
        }
        self.map_stacks(&Stacks::of_image());
        let tables = self.tables.as_ptr_range();
        self.map(tables.start as u64..tables.end as u64, Rights::ReadWrite);
    }

    /// Maps a core's stacks without their guard pages.
    pub(crate) fn map_stacks(&mut self, stacks: &Stacks) {
        for (top, bytes) in stacks.parts() {
            self.map(top - bytes..top, Rights::ReadWrite);
        }
    }

    /// Asserts the module's invariants: each part of the image has exactly its rights, and the page
    /// under each stack is not mapped.
    pub(crate) fn check_image(&self) {
        let [text_end, rodata_end, data_end] =
            [&raw const __text_end, &raw const __rodata_end, &raw const __data_end]
                .map(|end| end as u64);
        let text = (&raw const __text_start) as u64;
        assert_eq!(self.rights(text), Some(Rights::ReadExecute));
        assert_eq!(self.rights(text_end - 1), Some(Rights::ReadExecute));
        assert_eq!(self.rights(text_end), Some(Rights::Read));
        assert_eq!(self.rights(rodata_end - 1), Some(Rights::Read));
        assert_eq!(self.rights(rodata_end), Some(Rights::ReadWrite));
        assert_eq!(self.rights(data_end - 1), Some(Rights::ReadWrite));
        self.check_stacks(&Stacks::of_image());
        assert_eq!(self.rights(0), None);
    }

    /// Asserts that a core's stacks are mapped, and their guard pages are not.
    pub(crate) fn check_stacks(&self, stacks: &Stacks) {
        for (top, bytes) in stacks.parts() {
            assert_eq!(self.rights(top - 1), Some(Rights::ReadWrite));
            assert_eq!(self.rights(top - bytes), Some(Rights::ReadWrite));
            assert_eq!(self.rights(top - bytes - 1), None);
        }
    }

    /// Maps free memory.
    pub(crate) fn map_memory(&mut self, memory: &Ranges) {
        for range in memory.iter() {
            self.map(range.clone(), Rights::ReadWrite);
        }
    }

    /// Maps every page that `range` touches to itself. Pages that are mapped already keep their
    /// rights.
    pub(crate) fn map(&mut self, range: Range<u64>, rights: Rights) {
        if range.is_empty() {
            return;
        }
        let end = range.end.next_multiple_of(PAGE_BYTES);
        let mut address = range.start / PAGE_BYTES * PAGE_BYTES;
        while address < end {
            address += self.map_largest(address, end, rights);
        }
    }

    /// Maps the registers of a device.
    ///
    /// # Safety
    /// The range `base..base + bytes` is not memory. Only the caller's device responds at these
    /// addresses.
    pub(crate) unsafe fn map_device(&mut self, base: u64, bytes: u64) -> Mmio {
        self.map(base..base + bytes, Rights::Device);
        let base = NonNull::new(base as *mut u8);
        assert!(base.is_some(), "no device may be at address zero");
        // SAFETY: 1. the range was mapped above, and no page is ever unmapped; 2. the caller's
        // condition.
        unsafe { Mmio::new(base.unwrap_or(NonNull::dangling()), bytes as usize) }
    }

    /// Activates the tables on this core.
    ///
    /// # Safety
    /// The image, the stack in use and all memory in use are mapped.
    pub(crate) unsafe fn activate(&self) {
        // SAFETY: the caller's condition.
        unsafe { asm!("mov cr3, {}", in(reg) self.root(), options(nostack, preserves_flags)) };
    }

    /// The address of the root table, which the other cores need at their start.
    pub(crate) fn root(&self) -> u64 {
        self.tables.as_ptr() as u64
    }

    /// The rights at `address`. `None` if the address is not mapped.
    pub(crate) fn rights(&self, address: u64) -> Option<Rights> {
        let mut table = self.tables.first()?;
        for level in (0..4).rev() {
            let entry = entry_of(table, address, level).load(Relaxed);
            if entry & PRESENT == 0 {
                return None;
            }
            if level == 0 || entry & LARGE != 0 {
                return Some(Rights::of_bits(entry));
            }
            table = self.at(entry)?;
        }
        None
    }

    /// Maps the largest page that begins at `address` and ends no later than `end`. Returns its
    /// size.
    fn map_largest(&mut self, address: u64, end: u64, rights: Rights) -> u64 {
        let mut table = self.tables.first();
        for level in (0..4).rev() {
            let page_bytes = PAGE_BYTES << (9 * level);
            let Some(entry) = table.map(|table| entry_of(table, address, level)) else { break };
            let old = entry.load(Relaxed);
            if old & PRESENT != 0 && (level == 0 || old & LARGE != 0) {
                return page_bytes - address % page_bytes;
            }
            let is_fit = address.is_multiple_of(page_bytes) && end - address >= page_bytes;
            let is_offered = level < 2 || level == 2 && self.gigabyte_pages;
            if old & PRESENT == 0 && is_fit && is_offered {
                entry.store(address | rights.bits() | if level > 0 { LARGE } else { 0 }, Relaxed);
                return page_bytes;
            }
            if old & PRESENT == 0 {
                entry.store(self.next() | PRESENT | WRITABLE, Relaxed);
            }
            table = self.at(entry.load(Relaxed));
        }
        unreachable!("at level 0 a page was mapped already or is mapped now")
    }

    /// The address of an unused table, filled with zeros.
    fn next(&mut self) -> u64 {
        let table = self.tables.get(self.used);
        assert!(table.is_some(), "out of page tables");
        self.used += 1;
        table.map_or(0, |table| {
            table.0.iter().for_each(|entry| entry.store(0, Relaxed));
            (&raw const *table) as u64
        })
    }

    /// The table that an entry of a higher level points at.
    fn at(&self, entry: u64) -> Option<&'static Table> {
        let first = self.tables.as_ptr() as u64;
        self.tables.get(((entry & ADDRESS).checked_sub(first)? / PAGE_BYTES) as usize)
    }
}

/// The entry for `address` in a table. `level`: 0 for the tables of 4 KiB pages, 3 for the root.
fn entry_of(table: &Table, address: u64, level: u32) -> &AtomicU64 {
    let index = (address >> (12 + 9 * level) & 511) as usize;
    #[expect(clippy::indexing_slicing, reason = "nine bits index 512 entries")]
    &table.0[index]
}
