//! The memory is taken into use: what firmware says is read, page tables and stacks are made, the rest is the allocator's.
//!
//! Order matters, and is all that this file is about. While the boot tables are in use, the first MiB can be read and written: there the
//! descriptions of the processors begin, and there goes the code that other cores start in. How many cores there are stands in tables
//! that may lie anywhere, so that they are read through the machine's own page tables; only then it is known how much memory the stacks
//! take, and what is left.

use super::other_cores::{self, StartPage};
use super::processors::{Place, Processors};
use super::start_info::{Handover, MapEntry};
use crate::console::print;
use crate::cpu::Processor;
use crate::end;
use crate::memory::allocator::Allocator;
use crate::memory::map::Ranges;
use crate::memory::paging::{self, Paging, Rights};
use crate::memory::stacks::{self, Stacks};
use core::ops::Range;

/// Memory below is left alone, but for the page that other cores start in: firmware keeps things there.
const LOW_MEMORY: u64 = 1 << 20;

/// What the boot tables of `entry.s` map.
const BOOT_MAPPED: u64 = 1 << 30;

/// Memory in use, and what the other cores need of it.
pub(super) struct Ready<S> {
    pub(super) paging: Paging,
    /// `None` when there is no free page below 640 KiB: then no other core can start.
    pub(super) start_page: Option<StartPage>,
    pub(super) processors: Processors,
    /// Those of each other core.
    pub(super) stacks: S,
}

/// Takes the memory into use. Addresses in it are the same before and after.
///
/// # Safety
/// 1. The boot tables are in use, and map the first GiB.
/// 2. Nothing refers to what the boot loader left, but for `handover`, which is not used any more afterwards.
pub(super) unsafe fn set_up(
    handover: &Handover,
    processor: &Processor,
    allocator: &'static Allocator,
) -> Ready<impl Iterator<Item = Stacks>> {
    let mut free = free_memory(handover.map);
    let total = free.bytes();
    let Some(tables) = free.take(paging::table_bytes(total, processor.gigabyte_pages), BOOT_MAPPED)
    else {
        end::refuse(format_args!("no memory for the page tables: {} KiB are free", total >> 10))
    };
    // SAFETY: the boot tables map these addresses, and none of them is written while the answer is looked at.
    let place = Place::look(handover.rsdp_address, |range| unsafe { bytes_at(&range) });
    let start_page =
        other_cores::start_page(handover.map.iter().filter_map(MapEntry::free)).map(|page| {
            // SAFETY: the boot loader calls the page free, we use no other memory there, and it is done with what it left.
            unsafe { StartPage::fill(page) }
        });
    // SAFETY: 1. mapped by the boot tables, and by `map_image` below; 2. just taken out of the free memory.
    let mut paging = unsafe { Paging::new(tables, processor.gigabyte_pages) };
    paging.map_image();
    // SAFETY: image, stacks and tables are mapped: there is nothing else in use.
    unsafe { paging.activate() };
    let processors = place.processors(|range| {
        paging.map(range.clone(), Rights::Read);
        free.remove(range.clone());
        // SAFETY: just mapped, and nobody's to write.
        unsafe { bytes_at(&range) }
    });
    let stacks = take_stacks(&mut free, &mut paging, processors.others(processor.apic_id).count());
    paging.map_memory(&free);
    paging.check_image();
    stacks.clone().for_each(|stacks| paging.check_stacks(&stacks));
    // SAFETY: the ranges are mapped writable just above, and free: neither image, nor tables, nor stacks, nor the boot loader's.
    unsafe { allocator.add(&free) };
    let image = paging::image();
    print!(
        "memory: {} KiB free, image {} KiB at {:#x}, page tables {} KiB",
        total >> 10,
        (image.end - image.start) >> 10,
        image.start,
        paging::table_bytes(total, processor.gigabyte_pages) >> 10,
    );
    Ready { paging, start_page, processors, stacks }
}

fn free_memory(map: &[MapEntry]) -> Ranges {
    let mut free = Ranges::new();
    for range in map.iter().filter_map(MapEntry::free) {
        free.add(range.start.max(LOW_MEMORY)..range.end);
    }
    free.remove(paging::image());
    free
}

/// Takes and maps the stacks of `count` other cores; of fewer, when there is no memory for so many.
fn take_stacks(
    free: &mut Ranges,
    paging: &mut Paging,
    count: usize,
) -> impl Iterator<Item = Stacks> + Clone + use<> {
    let place = free.take(count as u64 * stacks::CORE_BYTES, u64::MAX).unwrap_or(0..0);
    let stacks = place.step_by(stacks::CORE_BYTES as usize).map(Stacks::at).take(count);
    stacks.clone().for_each(|stacks| paging.map_stacks(&stacks));
    stacks
}

/// # Safety
/// The addresses are mapped, and nobody writes there while the answer lives.
unsafe fn bytes_at(range: &Range<u64>) -> &'static [u8] {
    let bytes = range.end.saturating_sub(range.start) as usize;
    // SAFETY: the caller's condition; a null pointer, which no firmware's table lies at, is taken for none.
    if range.start == 0 {
        &[]
    } else {
        unsafe { core::slice::from_raw_parts(range.start as *const u8, bytes) }
    }
}
