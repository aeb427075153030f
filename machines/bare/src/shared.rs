//! What cores share, outside of the paths of packets: a lock for the console and for large allocations, and values that are set once.
//!
//! Nobody who holds the lock waits for anything, and no interrupt runs code, so that who spins for it gets it in microseconds.

use core::cell::UnsafeCell;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// A value that one core at a time may use.
pub(crate) struct Lock<T> {
    is_taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `with` hands the value to one core at a time; `break_open` is there only where the value is nothing.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Lock<T> {
        Lock { is_taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Uses the value, when nobody else does. `use_it` must not ask for the same lock.
    pub(crate) fn with<R>(&self, use_it: impl FnOnce(&mut T) -> R) -> R {
        while self.is_taken.swap(true, Acquire) {
            while self.is_taken.load(Relaxed) {
                spin_loop();
            }
        }
        // SAFETY: it was free and is taken now, so that nobody else refers to the value.
        let result = use_it(unsafe { &mut *self.value.get() });
        self.is_taken.store(false, Release);
        result
    }
}

impl Lock<()> {
    /// Takes the lock from whoever has it, for the end of the machine's life: that core has been stopped, or is this one.
    pub(crate) fn break_open(&self) {
        self.is_taken.store(false, Release);
    }
}

/// A value that is set once, by the first core, and then only read, by any.
pub(crate) struct SetOnce<T> {
    is_set: AtomicBool,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is written before `is_set` tells of it, and only read after that.
unsafe impl<T: Send + Sync> Sync for SetOnce<T> {}

impl<T: Copy> SetOnce<T> {
    pub(crate) const fn new() -> SetOnce<T> {
        SetOnce { is_set: AtomicBool::new(false), value: UnsafeCell::new(None) }
    }

    /// Sets the value. To be called by one core only; what is set already stays.
    ///
    /// # Safety
    /// No other core calls this at the same time.
    pub(crate) unsafe fn set(&self, value: T) {
        if !self.is_set.load(Acquire) {
            // SAFETY: nobody reads before `is_set`, and by the caller's condition nobody else writes.
            unsafe { *self.value.get() = Some(value) };
            self.is_set.store(true, Release);
        }
    }

    pub(crate) fn get(&self) -> Option<T> {
        // SAFETY: once it is set nobody writes any more.
        if self.is_set.load(Acquire) { unsafe { *self.value.get() } } else { None }
    }
}

#[cfg(test)]
mod tests;
