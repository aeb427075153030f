//! Reads and writes the little-endian fields of byte strings, which may be untrusted.
//!
//! Invariant: reading past the end returns `None`, and never panics.

use alloc::vec::Vec;

/// The largest counter that is accepted. No counter of a store reaches this number. So a larger
/// value is wrong, even if its hash is right.
pub(crate) const COUNT_MAX: u64 = 1 << 48;

/// Reads fields one after another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldReader<'a> {
    bytes: &'a [u8],
}

impl<'a> FieldReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> FieldReader<'a> {
        FieldReader { bytes }
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.bytes.split_at_checked(count)?;
        self.bytes = tail;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = tail;
        Some(*head)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A counter, at most [`COUNT_MAX`], so that adding one never overflows.
    pub(crate) fn count(&mut self) -> Option<u64> {
        self.u64().filter(|count| *count <= COUNT_MAX)
    }

    pub(crate) fn key(&mut self) -> Option<[u8; 16]> {
        self.array()
    }

    /// A text preceded by its length.
    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let length = self.u16()?;
        core::str::from_utf8(self.take(usize::from(length))?).ok()
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.bytes
    }
}

/// Writes fields one after another to the front of a fixed-size header. The writer is only a slice,
/// and is passed by value. For a header of known size the compiler reduces the calls to plain
/// stores.
pub(crate) struct HeaderWriter<'a> {
    rest: &'a mut [u8],
}

impl<'a> HeaderWriter<'a> {
    pub(crate) fn of(header: &'a mut [u8]) -> HeaderWriter<'a> {
        HeaderWriter { rest: header }
    }

    #[inline]
    pub(crate) fn put(self, field: &[u8]) -> HeaderWriter<'a> {
        assert!(field.len() <= self.rest.len(), "a header of more fields than bytes");
        let (place, rest) = self.rest.split_at_mut(field.len());
        place.copy_from_slice(field);
        HeaderWriter { rest }
    }

    /// Leaves `count` bytes as they are.
    #[inline]
    pub(crate) fn skip(self, count: usize) -> HeaderWriter<'a> {
        assert!(count <= self.rest.len(), "a header of more fields than bytes");
        HeaderWriter { rest: self.rest.split_at_mut(count).1 }
    }

    #[inline]
    pub(crate) fn u8(self, value: u8) -> HeaderWriter<'a> {
        self.put(&[value])
    }

    #[inline]
    pub(crate) fn u16(self, value: u16) -> HeaderWriter<'a> {
        self.put(&value.to_le_bytes())
    }

    #[inline]
    pub(crate) fn u32(self, value: u32) -> HeaderWriter<'a> {
        self.put(&value.to_le_bytes())
    }

    #[inline]
    pub(crate) fn u64(self, value: u64) -> HeaderWriter<'a> {
        self.put(&value.to_le_bytes())
    }
}

/// Appends a text preceded by its length. The text fits into a record, because the caller has
/// checked its length.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    let Ok(length) = u16::try_from(text.len()) else {
        unreachable!("a text that is larger than a record")
    };
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}
