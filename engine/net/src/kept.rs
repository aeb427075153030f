//! A part of the network with timers, and whether it has changed since its deadline was last read.
//!
//! There are six such parts, and they are nearly always at rest. So a turn does not ask each of
//! them for its deadline. Their earliest deadline is cached ([`crate::Net::next_deadline`]) until
//! one of them changes. A change needs a mutable borrow of the part, and each mutable borrow counts
//! as a change: no deadline can be forgotten.

use core::ops::{Deref, DerefMut};

pub(crate) struct Kept<T> {
    part: T,
    is_stirred: bool,
}

impl<T> Kept<T> {
    pub(crate) fn new(part: T) -> Kept<T> {
        Kept { part, is_stirred: true }
    }

    /// Whether the deadline may have changed since the last call of [`Kept::rest`].
    #[inline]
    pub(crate) fn is_stirred(&self) -> bool {
        self.is_stirred
    }

    /// The deadline has been read. It is valid until the next mutable borrow.
    #[inline]
    pub(crate) fn rest(&mut self) {
        self.is_stirred = false;
    }
}

impl<T> Deref for Kept<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.part
    }
}

impl<T> DerefMut for Kept<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.is_stirred = true;
        &mut self.part
    }
}
