//! Wakes a core from other threads: a Linux eventfd that the core's sleep polls.
//!
//! A thread with news stores them first, and then rings. A woken core first silences the bell, and
//! then looks for news. News that are stored later ring again, so the core never sleeps through
//! any.

use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io;

/// Clones ring the same bell.
#[derive(Clone, Debug)]
pub(crate) struct Bell(Arc<OwnedFd>);

impl Bell {
    /// Errors: those of Linux, if the process may have no more open files.
    pub(crate) fn new() -> io::Result<Bell> {
        Ok(Bell(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// Ends the current sleep, or the next one.
    pub(crate) fn ring(&self) {
        // An error means that the counter is at its maximum, which also ends the sleep.
        let _ = io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Resets the bell until it is rung again.
    pub(crate) fn silence(&self) {
        // An error means that it was not rung.
        let _ = io::read(&self.0, &mut [0_u8; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
