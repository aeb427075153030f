//! The boot: from the first instruction to a machine that can serve.
//!
//! 1. The boot loader enters `pvh_start` (`entry.s`) in 32-bit mode, by the PVH protocol. The entry
//!    code checks the processor, maps the first GiB, and switches to long mode with SSE, NX and
//!    write protection on.
//! 2. [`start`] sets up the console, detects the processor's features, and determines the rate of
//!    its time-stamp counter.
//! 3. It loads the interrupt tables. From this step on, an exception prints a report.
//! 4. It reads the memory map and the firmware's list of processors. It takes the page tables and
//!    the other cores' stacks from the lowest free memory. It maps each part of the memory with the
//!    rights that its use needs, and gives the rest to the allocator (`memory`).
//! 5. It starts the other cores (`other_cores`), which then wait for work.
//! 6. It finds devices: on PCI, and at the addresses on the command line (`virtio_mmio.device=`).
//! 7. It starts the network card, the disk and the entropy source, and routes their interrupts. The
//!    only effect of an interrupt is to end a sleep.
//!
//! A machine that lacks an essential part prints one line about it, and does not start.

mod command_line;
mod devices;
mod memory;
mod other_cores;
mod processors;
mod start_info;

use crate::clock;
use crate::console::{self, print};
use crate::cpu::apic::LocalApic;
use crate::cpu::cores;
use crate::cpu::interrupts::{self, VECTOR_CONSOLE};
use crate::cpu::{Processor, ioapic};
use crate::end;
use crate::entropy::EntropyPool;
use crate::memory::allocator::Allocator;
use crate::world::BareMachine;
use ::machine::CoreId;
use alloc::boxed::Box;
use alloc::vec::Vec;
use start_info::Handover;

#[cfg(not(test))]
core::arch::global_asm!(include_str!("boot/entry.s"));

/// The cores of a machine that can serve.
pub struct Machine {
    /// The core that runs this code. It has the disk.
    pub first: BareMachine,
    /// The other cores, which wait for work.
    pub others: Vec<OtherCore>,
}

/// A core that waits for work.
pub struct OtherCore {
    machine: BareMachine,
    apic: LocalApic,
}

impl OtherCore {
    /// The number of the core.
    pub fn core(&self) -> CoreId {
        self.machine.core()
    }

    /// Runs `life` on the core. When `life` returns the core stops.
    pub fn live(self, life: impl FnOnce(BareMachine) + Send + 'static) {
        let OtherCore { machine, apic } = self;
        other_cores::give_life(machine.core().index(), &apic, Box::new(move || life(machine)));
    }
}

/// Makes a machine from the boot loader's handover.
///
/// # Safety
/// 1. Called once, by the entry code, on the main stack, with interrupts off.
/// 2. `start_info` is what the boot loader passed, and the boot tables map the first GiB.
pub unsafe fn start(start_info: u64, entry_stamp: u64, allocator: &'static Allocator) -> Machine {
    console::start();
    let processor = Processor::detect();
    match clock::hertz(&processor) {
        Some(hertz) => clock::start(entry_stamp, hertz),
        None => end::refuse(format_args!("the frequency of the time-stamp counter is unknown")),
    }
    clock::find_day();
    print!("barepost {}: {}", env!("CARGO_PKG_VERSION"), Summary(&processor));
    interrupts::install(processor.x2apic);
    // SAFETY: 1. by the caller; 2. the first new use of memory is in `memory::set_up`. After that
    // call, nothing reads the boot loader's data.
    let handover = match unsafe { Handover::read(start_info) } {
        Ok(handover) => handover,
        Err(reason) => end::refuse(format_args!("{reason}")),
    };
    let named = command_line::devices(handover.command_line);
    // SAFETY: 1. by the caller, the boot tables are in use; 2. nothing refers to the boot loader's
    // part after this.
    let memory::Ready { mut paging, start_page, processors, stacks } =
        unsafe { memory::set_up(&handover, &processor, allocator) };
    let apic = LocalApic::start(&processor, &mut paging);
    end::set_apic(apic);
    cores::seat(0).take(0, processor.apic_id);
    cores::seat(0).runs();
    let others = processors.others(processor.apic_id);
    let cores = start_page.map_or(1, |page| {
        // SAFETY: 1. `set_up` made and mapped both; 2. this is the first core, once.
        unsafe { other_cores::start(page, paging.root(), &apic, others, stacks) }
    });
    if cores > 1 {
        print!("{cores} cores");
    }
    let devices = devices::find(&mut paging, &processor, &named, cores);
    if ioapic::route(&mut paging, console::INTERRUPT_LINE, VECTOR_CONSOLE, processor.apic_id)
        .is_some()
    {
        console::enable_interrupt();
    }
    let (queues, disk, random) = devices.start(cores);
    end::set_disk(disk.transport());
    let Some(mut entropy) = EntropyPool::start(&processor, random) else {
        end::refuse(format_args!(
            "no source of randomness: neither the processor nor a virtio entropy device provides one"
        ))
    };
    for core in 0..cores {
        // SAFETY: 1. this is the first core, at its boot; 2. no other core has work yet.
        unsafe { crate::entropy::for_ring::give(core, entropy.for_other()) };
    }
    apic.wake_at(clock::now());
    let about_card = queues.card();
    let mut pairs = queues.into_pairs();
    let first_pair = pairs.next();
    let others = (1..cores as u8)
        .map(|number| {
            BareMachine::other(
                CoreId(number),
                about_card,
                pairs.next(),
                entropy.for_other(),
                apic,
                allocator,
            )
        })
        .map(|machine| OtherCore { machine, apic })
        .collect();
    Machine {
        first: BareMachine::first(about_card, first_pair, disk, entropy, apic, allocator),
        others,
    }
}

/// The processor's features, for the first line on the console.
struct Summary<'a>(&'a Processor);

impl core::fmt::Display for Summary<'_> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Processor { x2apic, tsc_deadline, rdrand, rdseed, invariant_tsc, vector_state, .. } =
            *self.0;
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
        features
            .iter()
            .filter(|(is_there, _)| *is_there)
            .try_for_each(|(_, name)| write!(out, ", {name}"))
    }
}
