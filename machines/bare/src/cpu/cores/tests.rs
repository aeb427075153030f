//! In tests a core is a thread.

use core::cell::Cell;

thread_local! {
    /// The core number that the thread has chosen.
    pub(crate) static THIS: Cell<usize> = const { Cell::new(0) };
}
