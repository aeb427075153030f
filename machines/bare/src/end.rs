//! How the machine's life ends: stopped, refused, or failed.
//!
//! A broken invariant prints itself, is written to the crash sector, and resets the machine, all within a second: the log makes that
//! safe. A failure while failing resets at once.

use crate::clock::{self, rtc};
use crate::console::{self, print};
use crate::cpu::{self, Port};
use crate::crash;
use crate::virtio::block::emergency;
use crate::virtio::transport::Transport;
use core::arch::asm;
use core::cell::UnsafeCell;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use machine::{Micros, Sector};

/// What QEMU's `isa-debug-exit` is told; its exit status is twice that and one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Status {
    /// The machine was asked to stop, and did: QEMU's exit status is 33.
    Stopped = 0x10,
    /// A self test failed: 35.
    TestFailed = 0x11,
    /// The machine lacks something without which it must not start: 37.
    Refused = 0x12,
}

/// How long the end waits for the console to take its last lines.
const CONSOLE_PATIENCE: Micros = Micros::from_millis(200);

/// The disk for the crash sector, once it is known.
static DISK: Disk = Disk(UnsafeCell::new(None));
struct Disk(UnsafeCell<Option<Transport>>);

// SAFETY: 1. one core runs this machine's code, and no interrupt runs any; 2. accesses are short and call nothing.
unsafe impl Sync for Disk {}

const NO_SECTOR: u64 = u64::MAX;
static CRASH_SECTOR: AtomicU64 = AtomicU64::new(NO_SECTOR);
static IS_FAILING: AtomicBool = AtomicBool::new(false);

/// Says where the disk is that holds the crash sector.
pub(crate) fn set_disk(transport: Transport) {
    // SAFETY: `Sync`'s conditions 1 and 2.
    unsafe { *DISK.0.get() = Some(transport) };
}

/// Says which sector of the disk a panic may overwrite. Before that, none is written.
pub fn set_crash_sector(sector: Sector) {
    CRASH_SECTOR.store(sector.0, Relaxed);
}

/// Ends the life of a machine that was asked to stop, or whose tests are done: leaves QEMU, or else halts.
pub fn stop(status: Status) -> ! {
    console::drain(CONSOLE_PATIENCE);
    // SAFETY: this never returns; without the device nothing is there.
    let debug_exit = unsafe { Port::new(0xF4) };
    debug_exit.write32(status as u32);
    cpu::halt()
}

/// Ends the life of a machine that lacks something: a reset would not mend it.
pub fn refuse(reason: fmt::Arguments<'_>) -> ! {
    print!("refusing to start: {reason}");
    stop(Status::Refused)
}

/// Ends a life in which an invariant broke.
pub fn fail(message: fmt::Arguments<'_>) -> ! {
    if IS_FAILING.swap(true, Relaxed) {
        reset();
    }
    print!("PANIC {message}");
    console::drain(CONSOLE_PATIENCE);
    // SAFETY: `Sync`'s conditions 1 and 2.
    let disk = unsafe { *DISK.0.get() };
    let sector = CRASH_SECTOR.load(Relaxed);
    if let Some(disk) = disk
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

/// Resets the machine: by the chipset, by the keyboard controller, or by an exception that nobody can take.
fn reset() -> ! {
    // SAFETY: this never returns.
    let (chipset, keyboard) = unsafe { (Port::new(0xCF9), Port::new(0x64)) };
    chipset.write8(0x02);
    chipset.write8(0x06);
    keyboard.write8(0xFE);
    clock::wait_until(Micros::from_millis(20), || false);
    let no_table = [0_u8; 10];
    // SAFETY: this never returns: without a table the exception becomes a triple fault, which resets the processor.
    unsafe { asm!("lidt [{}]", "ud2", in(reg) &raw const no_table, options(noreturn)) }
}
