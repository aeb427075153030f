//! How a core goes to sleep while others may want it awake.
//!
//! Whoever has put something into a ring wakes the core at its other end. How one core's sleep is ended by another is the machine's: an
//! interrupt, a bell. Whether that is needed is decided here, so that a core that is awake costs nobody anything.
//!
//! Invariant: no wish to be woken is lost. The one who wakes sets `is_woken` and then looks at `is_asleep`, the one who goes to sleep sets
//! `is_asleep` and then looks at `is_woken`. At least one of them sees the other, whatever the order (both are sequentially consistent).

use core::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// One core's sleep.
#[derive(Debug, Default)]
pub struct Sleep {
    is_asleep: AtomicBool,
    is_woken: AtomicBool,
}

impl Sleep {
    /// Of a core that is awake, and that nobody wants awake.
    pub const fn new() -> Sleep {
        Sleep { is_asleep: AtomicBool::new(false), is_woken: AtomicBool::new(false) }
    }

    /// Another core wants this one awake: answers whether its sleep must be ended for that. One that is awake sees the wish before it
    /// sleeps, and a sleep that somebody ends already need not be ended twice.
    #[must_use]
    pub fn wake(&self) -> bool {
        !self.is_woken.swap(true, SeqCst) && self.is_asleep.load(SeqCst)
    }

    /// Before a sleep, when whatever ends it will: answers whether nobody wants this core awake.
    pub fn begin(&self) -> bool {
        self.is_asleep.store(true, SeqCst);
        !self.is_woken.load(SeqCst)
    }

    /// After a sleep, or in place of one. What was put anywhere before a wake that this call forgets can be seen after it.
    pub fn end(&self) {
        self.is_asleep.store(false, SeqCst);
        self.is_woken.swap(false, SeqCst);
    }
}
