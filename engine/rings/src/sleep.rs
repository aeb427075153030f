//! Lets a core sleep although other cores may want to wake it.
//!
//! After a core has put a message into a ring, it wakes the core at the other end. The machine
//! provides the means to end the sleep of a core: an interrupt or a similar signal. This file
//! decides whether the signal is needed. So waking a core that is awake costs nothing.
//!
//! Invariant: no wake-up is lost. The waking core sets `is_woken` and then reads `is_asleep`. The
//! sleeping core sets `is_asleep` and then reads `is_woken`. All four operations are sequentially
//! consistent. So in any order, at least one of the cores sees the flag that the other has set.

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

    /// Records a wake-up by another core. Returns whether the caller must end this core's sleep. It
    /// need not if this core is awake, because this core sees the wake-up before it sleeps. It also
    /// need not if another caller ends the sleep already.
    #[must_use]
    pub fn wake(&self) -> bool {
        !self.is_woken.swap(true, SeqCst) && self.is_asleep.load(SeqCst)
    }

    /// Called before a sleep, when the machine is ready to end the sleep. Returns whether the core
    /// may sleep: no wake-up is pending.
    pub fn begin(&self) -> bool {
        self.is_asleep.store(true, SeqCst);
        !self.is_woken.load(SeqCst)
    }

    /// Called after a sleep, or instead of a sleep. Clears the pending wake-up. After this call,
    /// everything is visible that the waking core stored before the wake-up.
    pub fn end(&self) {
        self.is_asleep.store(false, SeqCst);
        self.is_woken.swap(false, SeqCst);
    }
}
