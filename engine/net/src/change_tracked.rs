//! A part of the network with timers, and whether it has changed since its deadline was last read.
//!
//! There are six such parts, and they are nearly always at rest. So a turn does not ask each of
//! them for its deadline. Their earliest deadline is cached ([`crate::Net::next_deadline`]) until
//! one of them changes. A change needs a mutable borrow of the part, and each mutable borrow counts
//! as a change: no deadline can be forgotten.

use core::ops::{Deref, DerefMut};

pub(crate) struct ChangeTracked<T> {
    part: T,
    has_changed: bool,
}

impl<T> ChangeTracked<T> {
    pub(crate) fn new(part: T) -> ChangeTracked<T> {
        ChangeTracked { part, has_changed: true }
    }

    /// Whether the deadline may have changed since the last call of
    /// [`ChangeTracked::clear_change`].
    #[inline]
    pub(crate) fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// The deadline has been read. It is valid until the next mutable borrow.
    #[inline]
    pub(crate) fn clear_change(&mut self) {
        self.has_changed = false;
    }
}

impl<T> Deref for ChangeTracked<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.part
    }
}

impl<T> DerefMut for ChangeTracked<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.has_changed = true;
        &mut self.part
    }
}
