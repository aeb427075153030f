//! The processor and its cores: what it can do, its ports and model-specific registers, its interrupts and how it sleeps.

pub(crate) mod apic;
pub(crate) mod cores;
pub(crate) mod interrupts;
pub(crate) mod ioapic;
pub(crate) mod port;
pub(crate) mod processor;

use core::arch::asm;

pub(crate) use port::Port;
pub(crate) use processor::Processor;

/// The time-stamp counter. Not ordered against memory accesses around it: callers need no exactness of some ten nanoseconds.
pub(crate) fn time_stamp() -> u64 {
    // SAFETY: every x86-64 processor has the counter, and CR4.TSD is clear.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The same, not before what comes before it nor after what comes after it.
pub(crate) fn time_stamp_in_order() -> u64 {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { core::arch::x86_64::_mm_lfence() };
    let stamp = time_stamp();
    // SAFETY: as above.
    unsafe { core::arch::x86_64::_mm_lfence() };
    stamp
}

/// Reads a model-specific register.
///
/// # Safety
/// The processor has the register.
pub(crate) unsafe fn read_msr(number: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the caller's condition; reading has no effect on memory.
    unsafe {
        asm!("rdmsr", in("ecx") number, out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags));
    }
    u64::from(low) | u64::from(high) << 32
}

/// Writes a model-specific register.
///
/// # Safety
/// 1. The processor has the register and takes the value.
/// 2. The new value takes nothing away that running code relies on.
pub(crate) unsafe fn write_msr(number: u32, value: u64) {
    // SAFETY: the caller's conditions 1 and 2.
    unsafe {
        asm!("wrmsr", in("ecx") number, in("eax") value as u32, in("edx") (value >> 32) as u32, options(nostack, preserves_flags));
    }
}

/// Sleeps until an interrupt arrives; returns at once when one is pending already.
///
/// Interrupts are off everywhere else. `sti` takes effect after the instruction that follows it, so that no interrupt
/// can slip in between and be slept through.
pub(crate) fn sleep_until_interrupt() {
    // SAFETY: 1. the interrupt table is loaded before anybody sleeps (`interrupts::install`); 2. its device entries run on a stack
    // of their own and change neither memory nor registers.
    unsafe { asm!("sti", "hlt", "cli", options(nostack)) };
}

/// Stops the processor for good.
pub(crate) fn halt() -> ! {
    loop {
        // SAFETY: with interrupts off nothing is run any more.
        unsafe { asm!("cli", "hlt", options(nomem, nostack)) };
    }
}
