//! The local interrupt controller (APIC): receives the devices' messages, ends a sleep at a given
//! time, and interrupts other cores.
//!
//! A core accesses its controller through registers (x2APIC) if the processor has them, otherwise
//! through memory at FEE00000h. Each core has its own controller, at the same address.

use super::interrupts::{VECTOR_SPURIOUS, VECTOR_TIMER, VECTOR_WAKE};
use super::{Port, Processor, read_msr, time_stamp, write_msr};
use crate::clock;
use crate::memory::paging::Paging;
use crate::mmio::Mmio;
use core::arch::asm;
use machine::{Instant, Micros};

const BASE_ADDRESS: u64 = 0xFEE0_0000;

const MSR_BASE: u32 = 0x1B;
const MSR_X2APIC: u32 = 0x800;
const MSR_TSC_DEADLINE: u32 = 0x6E0;

const BASE_ENABLED: u64 = 1 << 11;
const BASE_X2APIC: u64 = 1 << 10;

const TASK_PRIORITY: u32 = 0x80;
const SPURIOUS: u32 = 0xF0;
const COMMAND: u32 = 0x300;
const COMMAND_TARGET: u32 = 0x310;
const LOCAL_TIMER: u32 = 0x320;
const LOCAL_LINT0: u32 = 0x350;
const LOCAL_LINT1: u32 = 0x360;
const LOCAL_ERROR: u32 = 0x370;
const TIMER_COUNT: u32 = 0x380;
const TIMER_LEFT: u32 = 0x390;
const TIMER_DIVISOR: u32 = 0x3E0;

/// The kinds of messages to other cores (Intel SDM volume 3, 11.6.1). Each has the level bit set,
/// as the manual requires.
const COMMAND_FIXED: u32 = 1 << 14;
const COMMAND_NMI: u32 = 0b100 << 8 | 1 << 14;
const COMMAND_INIT: u32 = 0b101 << 8 | 1 << 14;
const COMMAND_START: u32 = 0b110 << 8 | 1 << 14;
const COMMAND_PENDING: u32 = 1 << 12;

const SPURIOUS_ENABLE: u32 = 1 << 8;
const MASKED: u32 = 1 << 16;
const TIMER_TSC_DEADLINE: u32 = 1 << 18;
const DIVIDE_BY_16: u32 = 0b0011;

/// The local interrupt controller of the core that runs the code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalApic {
    registers: Registers,
    timer: Timer,
}

#[derive(Clone, Copy, Debug)]
enum Registers {
    Memory(Mmio),
    Model,
}

/// The interface of the timer.
#[derive(Clone, Copy, Debug)]
enum Timer {
    /// The timer takes the time stamp at which it fires.
    Deadline,
    /// The timer takes the number of its own ticks until it fires. `ticks_per_stamp` is in timer
    /// ticks per 2^32 time stamps.
    Countdown { ticks_per_stamp: u64 },
}

impl LocalApic {
    /// Enables the first core's controller, with all local interrupts except the timer's masked,
    /// and determines the timer's rate.
    pub(crate) fn start(processor: &Processor, paging: &mut Paging) -> LocalApic {
        mask_legacy_controllers();
        let registers = if processor.x2apic {
            Registers::Model
        } else {
            // SAFETY: the architecture puts the controller at this address.
            Registers::Memory(unsafe { paging.map_device(BASE_ADDRESS, 4096) })
        };
        let mut apic = LocalApic { registers, timer: Timer::Deadline };
        apic.enable();
        apic.write(TIMER_DIVISOR, DIVIDE_BY_16);
        if !processor.tsc_deadline {
            let hertz = if processor.apic_counts_nanoseconds {
                1_000_000_000 / 16
            } else {
                apic.measure_timer()
            };
            let ticks_per_stamp = (u128::from(hertz) << 32)
                .checked_div(u128::from(clock::ticks_per_second()))
                .unwrap_or(0);
            apic.timer = Timer::Countdown { ticks_per_stamp: ticks_per_stamp as u64 };
        }
        apic.start_timer();
        apic
    }

    /// Enables the controller of another core. That core calls this function.
    pub(crate) fn start_other(&self) {
        self.enable();
        self.write(TIMER_DIVISOR, DIVIDE_BY_16);
        self.start_timer();
    }

    fn enable(&self) {
        let mode = if matches!(self.registers, Registers::Model) {
            BASE_ENABLED | BASE_X2APIC
        } else {
            BASE_ENABLED
        };
        // SAFETY: 1. every x86-64 processor has the register, and x2APIC mode where CPUID says so;
        // 2. no code on this core uses the controller yet.
        unsafe { write_msr(MSR_BASE, read_msr(MSR_BASE) | mode) };
        self.write(TASK_PRIORITY, 0);
        for local in [LOCAL_LINT0, LOCAL_LINT1, LOCAL_ERROR] {
            self.write(local, MASKED);
        }
        self.write(SPURIOUS, SPURIOUS_ENABLE | u32::from(VECTOR_SPURIOUS));
    }

    /// Interrupts the core with this APIC id. The interrupt only ends the core's sleep.
    pub(crate) fn interrupt(&self, apic_id: u32) {
        self.command(apic_id, COMMAND_FIXED | u32::from(VECTOR_WAKE));
    }

    /// Interrupts the core with this APIC id even if it has interrupts off. Call this only at the
    /// end of the machine's life.
    pub(crate) fn interrupt_unmaskably(&self, apic_id: u32) {
        self.command(apic_id, COMMAND_NMI);
    }

    /// Resets the core with this APIC id. The core then waits for [`LocalApic::start_core`].
    pub(crate) fn reset_core(&self, apic_id: u32) {
        self.command(apic_id, COMMAND_INIT);
    }

    /// Lets a reset core begin in real mode, at the start of the page at `address`.
    ///
    /// # Safety
    /// 1. `address` is the start of a page below 1 MiB with code for real mode.
    /// 2. Everything that the code relies on is set up.
    pub(crate) unsafe fn start_core(&self, apic_id: u32, address: u64) {
        self.command(apic_id, COMMAND_START | (address >> 12) as u32);
    }

    fn command(&self, apic_id: u32, command: u32) {
        match &self.registers {
            Registers::Memory(memory) => {
                memory.write32(COMMAND_TARGET as usize, apic_id << 24);
                memory.write32(COMMAND as usize, command);
                // The next command must wait until this one has been sent. Sending takes
                // microseconds on a real bus, and no time in a virtual machine.
                while memory.read32(COMMAND as usize) & COMMAND_PENDING != 0 {
                    core::hint::spin_loop();
                }
            }
            Registers::Model => {
                // Writes before the command must be visible to its receiver. The write to the
                // command register does not order earlier writes.
                // SAFETY: every x86-64 processor has the two instructions.
                unsafe { asm!("mfence", "lfence", options(nostack, preserves_flags)) };
                // SAFETY: 1. x2APIC mode is on; 2. by the conditions of the caller.
                unsafe {
                    write_msr(
                        MSR_X2APIC + (COMMAND >> 4),
                        u64::from(apic_id) << 32 | u64::from(command),
                    )
                };
            }
        }
    }

    /// Sets the timer of this core to `instant`, or to the latest time that the timer can count to
    /// if `instant` is later.
    ///
    /// Each call sets the timer again, even to the same instant: the timer may have fired a little
    /// early, and would not fire again.
    pub(crate) fn wake_at(&self, instant: Instant) {
        let stamp = clock::ticks_at(instant);
        match self.timer {
            // SAFETY: 1. CPUID says that the processor has the register; 2. the timer only ends a
            // sleep.
            Timer::Deadline => unsafe { write_msr(MSR_TSC_DEADLINE, stamp.max(1)) },
            Timer::Countdown { ticks_per_stamp } => {
                let ticks = (u128::from(stamp.saturating_sub(time_stamp()))
                    * u128::from(ticks_per_stamp))
                    >> 32;
                self.write(TIMER_COUNT, u32::try_from(ticks).unwrap_or(u32::MAX).max(1));
            }
        }
    }

    fn start_timer(&self) {
        match self.timer {
            Timer::Deadline => {
                self.write(LOCAL_TIMER, TIMER_TSC_DEADLINE | u32::from(VECTOR_TIMER));
                // The mode must be set before the deadline is (Intel SDM volume 3, 11.5.4.1).
                core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
            }
            Timer::Countdown { .. } => self.write(LOCAL_TIMER, u32::from(VECTOR_TIMER)),
        }
    }

    /// The timer's rate in hertz, measured for 1 ms.
    fn measure_timer(&self) -> u64 {
        self.write(LOCAL_TIMER, MASKED);
        self.write(TIMER_COUNT, u32::MAX);
        let before = (self.read(TIMER_LEFT), time_stamp());
        clock::wait_until(Micros(1_000), || false);
        let after = (self.read(TIMER_LEFT), time_stamp());
        self.write(TIMER_COUNT, 0);
        let ticks =
            u128::from(before.0.wrapping_sub(after.0)) * u128::from(clock::ticks_per_second());
        ticks.checked_div(u128::from(after.1 - before.1)).unwrap_or(0) as u64
    }

    fn read(&self, register: u32) -> u32 {
        match &self.registers {
            Registers::Memory(memory) => memory.read32(register as usize),
            // SAFETY: x2APIC mode is on, and the register is one of those above.
            Registers::Model => unsafe { read_msr(MSR_X2APIC + (register >> 4)) as u32 },
        }
    }

    fn write(&self, register: u32, value: u32) {
        match &self.registers {
            Registers::Memory(memory) => memory.write32(register as usize, value),
            // SAFETY: 1. x2APIC mode is on, and the register is one of those above; 2. interrupts
            // only end sleeps.
            Registers::Model => unsafe {
                write_msr(MSR_X2APIC + (register >> 4), u64::from(value))
            },
        }
    }
}

/// Masks both 8259 controllers, which the firmware may have left enabled.
fn mask_legacy_controllers() {
    // SAFETY: 1. the controllers access no memory; 2. no code relies on them.
    let masks = unsafe { [Port::new(0x21), Port::new(0xA1)] };
    masks.iter().for_each(|mask| mask.write8(0xFF));
}
