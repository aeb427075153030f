//! The clock for TLS: the time of day as it was last set. Tickets and the validity of certificates
//! depend on it.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::time::Duration;

use machine::UnixTime;
use rustls::time_provider::TimeProvider;

/// A clock that is set from outside. In each turn the core that owns the clock sets it to the time
/// of its machine.
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
