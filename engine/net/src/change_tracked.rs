//! A part of the network that has timers. It records whether it has changed since its deadline was
//! last read.
//!
//! Six parts of the network have timers, and they nearly always have nothing to do. So a turn does
//! not read the deadline of each part. The earliest deadline of all parts is cached
//! ([`crate::Net::next_deadline`]) until a part changes. To change a part, its user needs a mutable
//! borrow, and each mutable borrow counts as a change. So no deadline can be overlooked.

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

    /// Marks the deadline as read: it is valid until the next mutable borrow.
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
