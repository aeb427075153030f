//! What wakes the machine from other threads: a counter of Linux's (eventfd) that its sleep watches.
//!
//! Whoever has news puts them where they are looked for, and rings. Whoever was woken silences the bell first and looks
//! for news then: what is put there later rings again. So no news are slept through.

use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io;

/// Clones ring the same bell.
#[derive(Clone, Debug)]
pub(crate) struct Bell(Arc<OwnedFd>);

impl Bell {
    /// Errors: as Linux has them, which is when the process may have no more files.
    pub(crate) fn new() -> io::Result<Bell> {
        Ok(Bell(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// Ends the sleep, or the next one.
    pub(crate) fn ring(&self) {
        // An error means that the counter is full, and a full one rings.
        let _ = io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Lets it be silent until it is rung again.
    pub(crate) fn silence(&self) {
        // An error means that it was silent.
        let _ = io::read(&self.0, &mut [0_u8; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
