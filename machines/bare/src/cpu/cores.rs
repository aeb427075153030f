//! The cores: the number of the running core, and the state that other cores use to wake or stop a
//! core.
//!
//! Each core has a seat, one of [`CORES_MAX`]. The first core's seat has number 0. The GS base of a
//! core points at its seat, and the first word of the seat is its number. So one instruction reads
//! the number of the running core.
//!
//! Invariants:
//! - A seat's number never changes while its core runs, and no code moves from one core to another.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed, Ordering::SeqCst};
use rings::Sleep;

/// The maximum number of cores that a machine uses.
pub(crate) const CORES_MAX: usize = 16;

/// The shared state of one core.
#[repr(C, align(128))]
pub(crate) struct Seat {
    /// The number of the core, at the address in GS.
    number: AtomicU32,
    /// The core's number among the interrupt controllers (APIC id).
    apic_id: AtomicU32,
    /// Whether the core runs this machine's code.
    is_running: AtomicBool,
    /// Whether the core has stopped because the machine's life ends.
    is_stopped: AtomicBool,
    sleep: Sleep,
}

/// `entry.s` and `other_core.s` point GS at the seat of the core.
#[cfg_attr(not(test), unsafe(export_name = "core_seats"))]
static SEATS: [Seat; CORES_MAX] = [const {
    Seat {
        number: AtomicU32::new(0),
        apic_id: AtomicU32::new(0),
        is_running: AtomicBool::new(false),
        is_stopped: AtomicBool::new(false),
        sleep: Sleep::new(),
    }
}; CORES_MAX];

/// The number of the core that calls this function.
#[cfg(not(test))]
#[inline]
pub(crate) fn this() -> usize {
    let number: u32;
    // SAFETY: GS points at this core's seat before the first Rust code runs. The word never changes
    // while the core runs.
    unsafe {
        core::arch::asm!("mov {:e}, gs:[0]", out(reg) number, options(pure, nomem, nostack, preserves_flags))
    };
    number as usize % CORES_MAX
}

/// In tests a core is a thread that has set its number.
#[cfg(test)]
pub(crate) fn this() -> usize {
    tests::THIS.get()
}

/// The seat of core `number`. Every number below [`CORES_MAX`] has one.
pub(crate) fn seat(number: usize) -> &'static Seat {
    #[expect(clippy::indexing_slicing, reason = "within the seats, by the remainder")]
    &SEATS[number % CORES_MAX]
}

/// The seats of all running cores except the calling one.
pub(crate) fn others() -> impl Iterator<Item = &'static Seat> {
    let own = this();
    SEATS
        .iter()
        .enumerate()
        .filter(move |(number, seat)| *number != own && seat.is_running())
        .map(|(_, seat)| seat)
}

impl Seat {
    /// Assigns the seat to the core with this `apic_id`, before that core starts.
    pub(crate) fn take(&self, number: usize, apic_id: u32) {
        self.number.store(number as u32, Relaxed);
        self.apic_id.store(apic_id, Relaxed);
    }

    pub(crate) fn apic_id(&self) -> u32 {
        self.apic_id.load(Relaxed)
    }

    /// Marks the core as running. The core itself calls it, once it can be interrupted.
    pub(crate) fn runs(&self) {
        self.is_running.store(true, SeqCst);
    }

    pub(crate) fn is_running(&self) -> bool {
        self.is_running.load(SeqCst)
    }

    /// Marks the core as not running. The core itself calls it, when the machine does not use it.
    pub(crate) fn leaves(&self) {
        self.is_running.store(false, SeqCst);
    }

    /// Marks the core as stopped. The core itself calls it, as its last action.
    pub(crate) fn stops(&self) {
        self.is_stopped.store(true, SeqCst);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(SeqCst)
    }

    pub(crate) fn sleep(&self) -> &Sleep {
        &self.sleep
    }
}

#[cfg(test)]
pub(crate) mod tests;
