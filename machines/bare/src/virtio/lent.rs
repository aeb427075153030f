//! Buffers that a device may read or write.

use alloc::boxed::Box;
use core::ptr::NonNull;

/// A buffer that is lent to a device. No Rust code refers to the bytes until the buffer is taken
/// back. If a `Lent` is dropped instead, the memory of the buffer is leaked.
#[derive(Debug)]
pub(crate) struct Lent {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a `Lent` owns its buffer, and a buffer may move to another core.
unsafe impl Send for Lent {}

impl Lent {
    #[inline]
    pub(crate) fn new(buffer: Box<[u8]>) -> Lent {
        let bytes = buffer.len();
        // A box is never null, so the fallback is never used.
        let start = NonNull::new(Box::into_raw(buffer).cast()).unwrap_or(NonNull::dangling());
        Lent { start, bytes }
    }

    /// The address of the buffer for the device.
    #[inline]
    pub(crate) fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the buffer, with the bytes that the device wrote into it.
    ///
    /// # Safety
    /// The device has finished with the buffer, or has been reset.
    #[inline]
    pub(crate) unsafe fn take_back(self) -> Box<[u8]> {
        // SAFETY: 1. pointer and length are those of the box that `new` took apart; 2. by the
        // caller's condition the device does not use it.
        unsafe {
            Box::from_raw(core::ptr::slice_from_raw_parts_mut(self.start.as_ptr(), self.bytes))
        }
    }
}
