//! Takes the memory into use: reads the firmware's tables, makes page tables and stacks, and gives
//! the rest to the allocator.
//!
//! This file is about the order of these steps. While the boot tables are in use, the first MiB can
//! be read and written. This MiB contains the start of the processors' descriptions, and receives
//! the start code for other cores. The tables with the number of cores may be anywhere, so they are
//! read through the machine's own page tables. Only then are the size of the stacks and the amount
//! of remaining memory known.

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

/// Firmware keeps data below this address. So the memory below it is not used, except for the start
/// page of other cores.
const LOW_MEMORY: u64 = 1 << 20;

/// The memory that the boot tables of `entry.s` map.
const BOOT_MAPPED: u64 = 1 << 30;

/// The page tables after the setup of memory, and the values that the start of the other cores
/// needs.
pub(super) struct Ready<S> {
    pub(super) paging: Paging,
    /// The page in which other cores start. `None` if no page below 640 KiB is free: then no other
    /// core can start.
    pub(super) start_page: Option<StartPage>,
    pub(super) processors: Processors,
    /// The stacks of each other core.
    pub(super) stacks: S,
}

/// Takes the memory into use. Mapped memory keeps its addresses: virtual addresses equal physical
/// ones before and after.
///
/// # Safety
/// 1. The boot tables are in use, and map the first GiB.
/// 2. Only `handover` refers to the data of the boot loader, and nothing uses `handover` after this
///    call.
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
    // SAFETY: the boot tables map these addresses, and none of them is written while the result is
    // in use.
    let place = Place::find(handover.rsdp_address, |range| unsafe { bytes_at(&range) });
    let start_page =
        other_cores::start_page(handover.map.iter().filter_map(MapEntry::free)).map(|page| {
            // SAFETY: the boot loader calls the page free. No other code uses memory there, and the
            // boot loader has finished.
            unsafe { StartPage::fill(page) }
        });
    // SAFETY: 1. the boot tables map `tables`, and so does `map_image` below; 2. they were just
    // taken out of the free memory.
    let mut paging = unsafe { Paging::new(tables, processor.gigabyte_pages) };
    paging.map_image();
    // SAFETY: image, stacks and tables are mapped, and no other memory is in use.
    unsafe { paging.activate() };
    let processors = place.processors(|range| {
        paging.map(range.clone(), Rights::Read);
        free.remove(range.clone());
        // SAFETY: the range was just mapped, and is never written.
        unsafe { bytes_at(&range) }
    });
    let stacks = take_stacks(&mut free, &mut paging, processors.others(processor.apic_id).count());
    paging.map_memory(&free);
    paging.check_image();
    stacks.clone().for_each(|stacks| paging.check_stacks(&stacks));
    // SAFETY: the ranges were mapped writable just above. They are free: they contain no image, no
    // tables, no stacks, and no data of the boot loader that is still in use.
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

/// Takes and maps the stacks of `count` other cores, or of fewer if there is not enough memory.
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
/// The addresses are mapped, and not written while the result is in use.
unsafe fn bytes_at(range: &Range<u64>) -> &'static [u8] {
    let bytes = range.end.saturating_sub(range.start) as usize;
    // SAFETY: the caller's condition. A null address, which no firmware table has, gives an empty
    // slice.
    if range.start == 0 {
        &[]
    } else {
        unsafe { core::slice::from_raw_parts(range.start as *const u8, bytes) }
    }
}
