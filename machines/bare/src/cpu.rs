//! The processor and its cores: features, ports, model-specific registers, interrupts and sleep.

pub(crate) mod apic;
pub(crate) mod cores;
pub(crate) mod interrupts;
pub(crate) mod ioapic;
pub(crate) mod port;
pub(crate) mod processor;

use core::arch::asm;

pub(crate) use port::Port;
pub(crate) use processor::Processor;

/// The time-stamp counter. The reading is not ordered against memory accesses around it, so it may
/// be some ten nanoseconds early or late.
pub(crate) fn time_stamp() -> u64 {
    // SAFETY: every x86-64 processor has the counter, and CR4.TSD is clear.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The time-stamp counter, read after all earlier instructions and before all later ones.
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
/// 2. The new value removes no function that running code relies on.
pub(crate) unsafe fn write_msr(number: u32, value: u64) {
    // SAFETY: the caller's conditions 1 and 2.
    unsafe {
        asm!("wrmsr", in("ecx") number, in("eax") value as u32, in("edx") (value >> 32) as u32, options(nostack, preserves_flags));
    }
}

/// Sleeps until an interrupt arrives. Returns at once if one is pending already.
///
/// Interrupts are off everywhere else. `sti` takes effect after the following instruction. So no
/// interrupt can arrive between `sti` and `hlt`, which would let the sleep miss it.
pub(crate) fn sleep_until_interrupt() {
    // SAFETY: 1. the interrupt table is loaded before any core sleeps (`interrupts::install`); 2.
    // the device entries of the table run on a separate stack and change neither memory nor
    // registers.
    unsafe { asm!("sti", "hlt", "cli", options(nostack)) };
}

/// Stops the processor for good.
pub(crate) fn halt() -> ! {
    loop {
        // SAFETY: with interrupts off, no code runs on this core after this instruction.
        unsafe { asm!("cli", "hlt", options(nomem, nostack)) };
    }
}
