//! How a core goes to sleep while other cores may want to wake it.
//!
//! After a core has put a message into a ring, it wakes the core at the other end. The machine
//! decides how one core ends another core's sleep: by an interrupt or a similar signal. This file
//! decides whether that is needed, so that waking an awake core costs nothing.
//!
//! Invariant: no wake-up is lost. The waking core sets `is_woken` and then reads `is_asleep`. The
//! sleeping core sets `is_asleep` and then reads `is_woken`. At least one of them sees the flag of
//! the other, whatever the order, since all four operations are sequentially consistent.

use core::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// The sleep of one core.
#[derive(Debug, Default)]
pub struct Sleep {
    is_asleep: AtomicBool,
    is_woken: AtomicBool,
}

impl Sleep {
    /// The state of a core that is awake, without a pending wake-up.
    pub const fn new() -> Sleep {
        Sleep { is_asleep: AtomicBool::new(false), is_woken: AtomicBool::new(false) }
    }

    /// Records a wake-up from another core. Returns whether the caller must end this core's sleep.
    /// A core that is awake sees the wake-up before it sleeps. A sleep that is being ended already
    /// need not be ended twice.
    #[must_use]
    pub fn wake(&self) -> bool {
        !self.is_woken.swap(true, SeqCst) && self.is_asleep.load(SeqCst)
    }

    /// Called before a sleep, when the machine is ready to end it. Returns whether no wake-up is
    /// pending.
    pub fn begin(&self) -> bool {
        self.is_asleep.store(true, SeqCst);
        !self.is_woken.load(SeqCst)
    }

    /// Called after a sleep, or in place of one. Clears the pending wake-up. Everything that was
    /// stored before that wake-up is visible after this call.
    pub fn end(&self) {
        self.is_asleep.store(false, SeqCst);
        self.is_woken.swap(false, SeqCst);
    }
}
