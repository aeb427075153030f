//! The end of the machine's life: stopped, refused, or failed.
//!
//! After a broken invariant the machine prints a report, writes it to the crash sector, and resets
//! itself, all within a second. The log of the store makes the reset safe. A second failure during
//! this end resets the machine at once. The core that reaches an end before all others carries it
//! out. It stops the other cores before it prints or writes anything. So no other core acknowledges
//! anything after the failure.

use crate::clock::{self, rtc};
use crate::console::{self, print};
use crate::cpu::apic::LocalApic;
use crate::cpu::cores::{self, Seat};
use crate::cpu::{self, Port};
use crate::crash;
use crate::shared::SetOnce;
use crate::virtio::block::emergency;
use crate::virtio::transport::Transport;
use core::arch::asm;
use core::fmt;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use machine::{Micros, Sector};

/// The status for QEMU's `isa-debug-exit`. QEMU's exit status is twice this value plus one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Status {
    /// The machine was asked to stop, and stopped: QEMU's exit status is 33.
    Stopped = 0x10,
    /// A self test failed: QEMU's exit status is 35.
    TestFailed = 0x11,
    /// The machine lacks an essential part and does not start: QEMU's exit status is 37.
    Refused = 0x12,
}

/// The longest time for which the end waits for the console to take its last lines.
const CONSOLE_PATIENCE: Micros = Micros::from_millis(200);

/// The longest time for which the end waits for the other cores to stop. They need microseconds.
/// Only the reset stops a core that is stuck.
const CORES_PATIENCE: Micros = Micros::from_millis(50);

/// The disk for the crash sector, once it is known.
static DISK: SetOnce<Transport> = SetOnce::new();

/// The controller for interrupting other cores, once it is known.
static APIC: SetOnce<LocalApic> = SetOnce::new();

const NO_SECTOR: u64 = u64::MAX;
static CRASH_SECTOR: AtomicU64 = AtomicU64::new(NO_SECTOR);

/// The number of the core that ends the machine's life: the core that reached an end before all
/// others.
static ENDING: AtomicUsize = AtomicUsize::new(NO_CORE);
const NO_CORE: usize = usize::MAX;

/// Sets the disk with the crash sector.
pub(crate) fn set_disk(transport: Transport) {
    // SAFETY: the first core calls this, at boot.
    unsafe { DISK.set(transport) };
}

/// Sets the controller for interrupting other cores.
pub(crate) fn set_apic(apic: LocalApic) {
    // SAFETY: the first core calls this, at boot, before it starts any other.
    unsafe { APIC.set(apic) };
}

/// Sets the sector of the disk that a panic may overwrite. Until this call, a panic writes no
/// sector.
pub fn set_crash_sector(sector: Sector) {
    CRASH_SECTOR.store(sector.0, Relaxed);
}

/// Ends the life of a machine that was asked to stop, or has finished its tests. QEMU exits. A
/// machine without QEMU's debug exit halts.
pub fn stop(status: Status) -> ! {
    claim();
    console::drain(CONSOLE_PATIENCE);
    // SAFETY: this never returns. On a machine without the device, the port has no effect.
    let debug_exit = unsafe { Port::new(0xF4) };
    debug_exit.write32(status as u32);
    cpu::halt()
}

/// Ends the life of a machine that lacks an essential part: a reset would not help.
pub fn refuse(reason: fmt::Arguments<'_>) -> ! {
    print!("refusing to start: {reason}");
    stop(Status::Refused)
}

/// Ends the life after a broken invariant, on any core.
pub fn fail(message: fmt::Arguments<'_>) -> ! {
    claim();
    match cores::this() {
        0 => print!("PANIC {message}"),
        core => print!("PANIC on core {core}: {message}"),
    }
    console::drain(CONSOLE_PATIENCE);
    let sector = CRASH_SECTOR.load(Relaxed);
    if let Some(disk) = DISK.get()
        && sector != NO_SECTOR
    {
        let bytes = crash::encode(clock::now(), rtc::read(), message);
        let is_written = emergency::write(&disk, Sector(sector), &bytes);
        print!("crash sector {}", if is_written { "written" } else { "could not be written" });
    }
    print!("resetting");
    console::drain(CONSOLE_PATIENCE);
    reset()
}

/// Makes the calling core the one that ends the machine's life. Stops all other cores, and takes
/// the console lock. If a second core calls this function, that core stops here. If the same core
/// calls it again, after a failure during the end, it resets the machine at once.
fn claim() {
    match ENDING.compare_exchange(NO_CORE, cores::this(), SeqCst, SeqCst) {
        Ok(_) => {}
        Err(core) if core == cores::this() => reset(),
        Err(_) => {
            cores::seat(cores::this()).stops();
            cpu::halt();
        }
    }
    // The interrupt is handled like an exception, so each of the other cores calls this function.
    if let Some(apic) = APIC.get() {
        cores::others().for_each(|core| apic.interrupt_unmaskably(core.apic_id()));
        clock::wait_until(CORES_PATIENCE, || cores::others().all(Seat::is_stopped));
    }
    console::seize();
}

/// Resets the machine: by the chipset, by the keyboard controller, or by an exception without a
/// handler.
fn reset() -> ! {
    // SAFETY: this never returns.
    let (chipset, keyboard) = unsafe { (Port::new(0xCF9), Port::new(0x64)) };
    chipset.write8(0x02);
    chipset.write8(0x06);
    keyboard.write8(0xFE);
    clock::wait_until(Micros::from_millis(20), || false);
    let no_table = [0_u8; 10];
    // SAFETY: this never returns: without a table the exception becomes a triple fault, which
    // resets the processor.
    unsafe { asm!("lidt [{}]", "ud2", in(reg) &raw const no_table, options(noreturn)) }
}
