//! From the first instruction to a machine that can serve.
//!
//! 1. The boot loader enters `pvh_start` (`entry.s`) in 32-bit mode, by the PVH protocol. It checks the processor, maps the first GiB, and
//!    switches to long mode with SSE, NX and write protection on.
//! 2. [`start`] sets up the console, asks the processor what it can do, and learns how fast its time-stamp counter runs.
//! 3. It loads the interrupt tables: from here on an exception prints itself.
//! 4. It reads the memory map, takes the page tables from the lowest free memory, maps everything with the rights that it needs, and gives
//!    the rest to the allocator.
//! 5. It looks for devices: on PCI, and at the addresses that the command line names (`virtio_mmio.device=`).
//! 6. It starts the network card, the disk and the entropy source, and routes their interrupts, which may only end a sleep.
//!
//! A machine that lacks something without which it must not serve says so in one line, and does not start.

mod command_line;
mod devices;
mod start_info;

use crate::clock::{self, rtc};
use crate::console::{self, print};
use crate::cpu::apic::LocalApic;
use crate::cpu::interrupts::{self, VECTOR_CONSOLE};
use crate::cpu::{Processor, ioapic};
use crate::end;
use crate::entropy::Entropy;
use crate::memory::allocator::Allocator;
use crate::memory::map::Ranges;
use crate::memory::paging::{self, Paging};
use crate::world::BareMachine;
use start_info::{Handover, MapEntry};

#[cfg(not(test))]
core::arch::global_asm!(include_str!("boot/entry.s"));

/// Memory below is left alone: firmware keeps things there.
const LOW_MEMORY: u64 = 1 << 20;

/// What the boot tables of `entry.s` map.
const BOOT_MAPPED: u64 = 1 << 30;

/// Makes a machine of what the boot loader left.
///
/// # Safety
/// 1. Called once, by the entry code, on the main stack, with interrupts off.
/// 2. `start_info` is what the boot loader passed, and the boot tables map the first GiB.
pub unsafe fn start(start_info: u64, entry_stamp: u64, allocator: &'static Allocator) -> BareMachine {
    console::start();
    let processor = Processor::detect();
    match clock::hertz(&processor) {
        Some(hertz) => clock::start(entry_stamp, hertz),
        None => end::refuse(format_args!("nothing tells how fast the time-stamp counter runs")),
    }
    print!("barepost {}: {}", env!("CARGO_PKG_VERSION"), Summary(&processor));
    interrupts::install(processor.x2apic);
    // SAFETY: 1. by the caller; 2. memory is taken into use only in `set_up_memory`, which is given the map and ends the boot loader's
    // part.
    let handover = match unsafe { Handover::read(start_info) } {
        Ok(handover) => handover,
        Err(reason) => end::refuse(format_args!("{reason}")),
    };
    let named = command_line::devices(handover.command_line);
    let mut paging = set_up_memory(handover.map, &processor, allocator);
    let apic = LocalApic::start(&processor, &mut paging);
    let devices = devices::find(&mut paging, &processor, &named);
    if ioapic::route(&mut paging, console::INTERRUPT_LINE, VECTOR_CONSOLE, processor.apic_id).is_some() {
        console::enable_interrupt();
    }
    let (card, disk, random) = devices.start();
    end::set_disk(disk.transport());
    let Some(entropy) = Entropy::start(&processor, random) else {
        end::refuse(format_args!(
            "no source of randomness: the processor has none, nor is there a virtio entropy device"
        ))
    };
    apic.wake_at(clock::now());
    let wall_clock = rtc::read();
    BareMachine::new(card, disk, entropy, apic, wall_clock, allocator)
}

/// Takes the memory into use. Addresses in it are the same before and after.
fn set_up_memory(map: &[MapEntry], processor: &Processor, allocator: &'static Allocator) -> Paging {
    let mut free = Ranges::new();
    for range in map.iter().filter_map(MapEntry::free) {
        free.add(range.start.max(LOW_MEMORY)..range.end);
    }
    let image = paging::image();
    free.remove(image.clone());

    let total = free.bytes();
    let Some(tables) = free.take(paging::table_bytes(total, processor.gigabyte_pages), BOOT_MAPPED) else {
        end::refuse(format_args!("no memory for the page tables: {} KiB are free", total >> 10))
    };
    // SAFETY: 1. mapped by the boot tables, and by `map_memory` below; 2. just taken out of the free memory.
    let mut paging = unsafe { Paging::new(tables, processor.gigabyte_pages) };
    paging.map_image();
    paging.map_memory(&free);
    paging.check_image();
    // SAFETY: image, stacks, tables and free memory are mapped: there is nothing else in use.
    unsafe { paging.activate() };
    for range in free.iter() {
        // SAFETY: the range is mapped writable just above, and free: neither image, nor tables, nor the boot loader's.
        unsafe { allocator.add(range.clone()) };
    }
    print!(
        "memory: {} KiB free, image {} KiB at {:#x}, page tables {} KiB",
        total >> 10,
        (image.end - image.start) >> 10,
        image.start,
        paging::table_bytes(total, processor.gigabyte_pages) >> 10,
    );
    paging
}

/// The processor's features, for the first line on the console.
struct Summary<'a>(&'a Processor);

impl core::fmt::Display for Summary<'_> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Processor { x2apic, tsc_deadline, rdrand, rdseed, invariant_tsc, vector_state, .. } = *self.0;
        write!(out, "time-stamp counter at {} kHz", clock::ticks_per_second() / 1000)?;
        let features = [
            (invariant_tsc, "invariant"),
            (tsc_deadline, "deadline timer"),
            (x2apic, "x2APIC"),
            (rdrand, "RDRAND"),
            (rdseed, "RDSEED"),
            (vector_state & 0b100 != 0, "AVX"),
            (vector_state & 0b1110_0000 != 0, "AVX-512"),
        ];
        features.iter().filter(|(is_there, _)| *is_there).try_for_each(|(_, name)| write!(out, ", {name}"))
    }
}
