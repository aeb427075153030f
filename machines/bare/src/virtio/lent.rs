//! Buffers that a device may read or write.

use alloc::boxed::Box;
use core::ptr::NonNull;

/// A buffer that is lent to a device. No Rust code refers to its bytes until it is taken back. If
/// it is dropped instead, its memory is leaked.
#[derive(Debug)]
pub(crate) struct Lent {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it stands for the buffer, which may be carried to another core.
unsafe impl Send for Lent {}

impl Lent {
    #[inline]
    pub(crate) fn new(buffer: Box<[u8]>) -> Lent {
        let bytes = buffer.len();
        // A box is never null, so the fallback is never used.
        let start = NonNull::new(Box::into_raw(buffer).cast()).unwrap_or(NonNull::dangling());
        Lent { start, bytes }
    }

    /// The address for the device.
    #[inline]
    pub(crate) fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The buffer, with the bytes that the device left in it.
    ///
    /// # Safety
    /// The device is done with the buffer, or has been reset.
    #[inline]
    pub(crate) unsafe fn take_back(self) -> Box<[u8]> {
        // SAFETY: 1. pointer and length are those of the box that `new` took apart; 2. nothing else
        // uses it, by the caller's condition.
        unsafe {
            Box::from_raw(core::ptr::slice_from_raw_parts_mut(self.start.as_ptr(), self.bytes))
        }
    }
}
