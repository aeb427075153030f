//! A bell wakes a core from other threads. It is a Linux eventfd, which the core polls while it
//! sleeps.
//!
//! A thread first stores its message, and then rings the bell. A woken core first silences the
//! bell, and then reads the messages. The bell rings again for a message that is stored later, so
//! the core never misses one.

use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io;

/// The bell of a core. Clones ring the same bell.
#[derive(Clone, Debug)]
pub(crate) struct Bell(Arc<OwnedFd>);

impl Bell {
    /// Makes the bell of a core. Errors: those of Linux, if the process may have no more open
    /// files.
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
        // An error means that the bell was not rung.
        let _ = io::read(&self.0, &mut [0_u8; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
