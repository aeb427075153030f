//! The user's request, by a signal, that this process stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::failure::Failure;

/// How often SIGINT, SIGTERM or SIGHUP arrived. Clones share the count.
#[derive(Clone, Default)]
pub struct Stop {
    signals: Arc<AtomicUsize>,
}

impl Stop {
    /// From now on these signals no longer end the process; the running command polls this instead.
    pub fn watch_signals() -> Result<Stop, Failure> {
        let stop = Stop::default();
        let signals = Arc::clone(&stop.signals);
        ctrlc::set_handler(move || {
            signals.fetch_add(1, Ordering::Relaxed);
        })
        .map_err(|error| Failure::broke(format_args!("watching signals: {error}")))?;
        Ok(stop)
    }

    /// A request as after one signal, for tests.
    pub fn requested() -> Stop {
        let stop = Stop::default();
        stop.signals.fetch_add(1, Ordering::Relaxed);
        stop
    }

    /// Whether the user asked to stop.
    pub fn is_requested(&self) -> bool {
        self.signals.load(Ordering::Relaxed) > 0
    }

    /// Whether the user asked again, and does not want to wait.
    pub fn is_urgent(&self) -> bool {
        self.signals.load(Ordering::Relaxed) > 1
    }
}
