//! In tests a core is a thread.

use core::cell::Cell;

thread_local! {
    /// Which core the thread is.
    pub(crate) static THIS: Cell<usize> = const { Cell::new(0) };
}
