//! Sequence numbers: modulo 2^32, compared by the shorter distance (RFC 9293 §3.4).
//!
//! `Ord` is deliberately not implemented: "before" on a circle is no total order, and a sorted
//! collection of sequence numbers would be a bug. Two numbers are compared only when they are known
//! to be less than 2^31 apart.

use core::ops::{Add, Sub};

/// The number of one byte (or SYN, or FIN) in one direction of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SequenceNumber(pub u32);

impl SequenceNumber {
    /// The distance from `earlier` to this number; wraps when `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: SequenceNumber) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Whether this number comes before `other`.
    #[inline]
    pub const fn is_before(self, other: SequenceNumber) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// Whether this number comes after `other`.
    #[inline]
    pub const fn is_after(self, other: SequenceNumber) -> bool {
        other.is_before(self)
    }

    /// The later of both.
    #[inline]
    pub const fn later(self, other: SequenceNumber) -> SequenceNumber {
        if self.is_before(other) { other } else { self }
    }

    /// The earlier of both.
    #[inline]
    pub const fn earlier(self, other: SequenceNumber) -> SequenceNumber {
        if other.is_before(self) { other } else { self }
    }
}

impl Add<u32> for SequenceNumber {
    type Output = SequenceNumber;

    #[inline]
    fn add(self, count: u32) -> SequenceNumber {
        SequenceNumber(self.0.wrapping_add(count))
    }
}

impl Sub<u32> for SequenceNumber {
    type Output = SequenceNumber;

    #[inline]
    fn sub(self, count: u32) -> SequenceNumber {
        SequenceNumber(self.0.wrapping_sub(count))
    }
}
