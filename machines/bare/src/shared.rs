//! Data that cores share, outside of the paths of packets: a lock for the console and for large
//! allocations, and values that are set once.
//!
//! A core that holds the lock never waits, and no interrupt runs code. So a core that spins for the
//! lock gets it in microseconds.

use core::cell::UnsafeCell;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// A value that one core at a time may use.
pub(crate) struct Lock<T> {
    is_taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `with` passes the value to one core at a time; `break_open` exists only for the type
// `()`.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Lock<T> {
        Lock { is_taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits until no other core uses the value, and passes it to `use_it`, which must not take the
    /// same lock.
    pub(crate) fn with<R>(&self, use_it: impl FnOnce(&mut T) -> R) -> R {
        while self.is_taken.swap(true, Acquire) {
            while self.is_taken.load(Relaxed) {
                spin_loop();
            }
        }
        // SAFETY: the lock was free and is taken now, so no other core refers to the value.
        let result = use_it(unsafe { &mut *self.value.get() });
        self.is_taken.store(false, Release);
        result
    }
}

impl Lock<()> {
    /// Frees the lock, whichever core holds it. Call this only at the end of the machine's life,
    /// when the holder has been stopped or is the calling core.
    pub(crate) fn break_open(&self) {
        self.is_taken.store(false, Release);
    }
}

/// A value that the first core sets once. After that, every core may read it.
pub(crate) struct SetOnce<T> {
    is_set: AtomicBool,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is written before `is_set` is, and only read after that.
unsafe impl<T: Send + Sync> Sync for SetOnce<T> {}

impl<T: Copy> SetOnce<T> {
    pub(crate) const fn new() -> SetOnce<T> {
        SetOnce { is_set: AtomicBool::new(false), value: UnsafeCell::new(None) }
    }

    /// Sets the value, or keeps the old value if it is set already.
    ///
    /// # Safety
    /// No other core calls this at the same time.
    pub(crate) unsafe fn set(&self, value: T) {
        if !self.is_set.load(Acquire) {
            // SAFETY: no core reads the value while `is_set` is false, and by the caller's
            // condition no other core writes it.
            unsafe { *self.value.get() = Some(value) };
            self.is_set.store(true, Release);
        }
    }

    pub(crate) fn get(&self) -> Option<T> {
        // SAFETY: once `is_set` is true, no core writes the value.
        if self.is_set.load(Acquire) { unsafe { *self.value.get() } } else { None }
    }
}

#[cfg(test)]
mod tests;
