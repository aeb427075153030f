//! Data that cores share, outside of the paths of packets: a lock for the console and for large
//! allocations, and values that are set once.
//!
//! A core that holds the lock waits for nothing, and no interrupt runs code. So a core that spins
//! for the lock gets it in microseconds.

use core::cell::UnsafeCell;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// A value that one core at a time may use.
pub(crate) struct Lock<T> {
    is_taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `with` hands the value to one core at a time; `break_open` exists only for the empty
// value.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Lock<T> {
        Lock { is_taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Uses the value, when no other core does. `use_it` must not ask for the same lock.
    pub(crate) fn with<R>(&self, use_it: impl FnOnce(&mut T) -> R) -> R {
        while self.is_taken.swap(true, Acquire) {
            while self.is_taken.load(Relaxed) {
                spin_loop();
            }
        }
        // SAFETY: it was free and is taken now, so that no other core refers to the value.
        let result = use_it(unsafe { &mut *self.value.get() });
        self.is_taken.store(false, Release);
        result
    }
}

impl Lock<()> {
    /// Takes the lock from any core, for the end of the machine's life: that core has been stopped,
    /// or is this one.
    pub(crate) fn break_open(&self) {
        self.is_taken.store(false, Release);
    }
}

/// A value that is set once, by the first core, and then only read, by any.
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

    /// Sets the value. To be called by one core only. A value that is set already stays.
    ///
    /// # Safety
    /// No other core calls this at the same time.
    pub(crate) unsafe fn set(&self, value: T) {
        if !self.is_set.load(Acquire) {
            // SAFETY: no core reads before `is_set`, and by the caller's condition no other core
            // writes.
            unsafe { *self.value.get() = Some(value) };
            self.is_set.store(true, Release);
        }
    }

    pub(crate) fn get(&self) -> Option<T> {
        // SAFETY: once it is set no core writes any more.
        if self.is_set.load(Acquire) { unsafe { *self.value.get() } } else { None }
    }
}

#[cfg(test)]
mod tests;
