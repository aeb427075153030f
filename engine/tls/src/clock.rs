//! The time of day as it was last set: for the ages and keys of tickets.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::time::Duration;

use machine::UnixTime;
use rustls::time_provider::TimeProvider;

/// A clock that is set from outside. The core that owns it sets it each turn from the clock of its
/// machine.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    seconds: Arc<AtomicU64>,
}

impl Clock {
    /// Sets the time to `now`.
    pub fn set(&self, now: UnixTime) {
        self.seconds.store(now.seconds(), Relaxed);
    }

    /// Seconds since 1970.
    pub(crate) fn seconds(&self) -> u64 {
        self.seconds.load(Relaxed)
    }
}

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<rustls::pki_types::UnixTime> {
        Some(rustls::pki_types::UnixTime::since_unix_epoch(Duration::from_secs(self.seconds())))
    }
}
