//! A part of the network that waits for time as well as for frames, and whether anybody has touched it since its deadline was
//! looked at.
//!
//! There are six of them and they are nearly always at rest, so a turn does not ask each of them when it wants to be looked
//! after: their earliest deadline is kept ([`crate::Net::next_deadline`]) until one of them is touched. Whoever changes a part
//! has to borrow it for that, and a mutable loan is what counts as a touch: a deadline cannot be forgotten.

use core::ops::{Deref, DerefMut};

pub(crate) struct Kept<T> {
    part: T,
    is_stirred: bool,
}

impl<T> Kept<T> {
    pub(crate) fn new(part: T) -> Kept<T> {
        Kept { part, is_stirred: true }
    }

    /// Whether it may have another deadline than when it was last at rest.
    #[inline]
    pub(crate) fn is_stirred(&self) -> bool {
        self.is_stirred
    }

    /// Its deadline is known, until it is touched again.
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
