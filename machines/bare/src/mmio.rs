//! Memory-mapped registers of devices.

use core::ptr::NonNull;

/// A range of device registers, mapped uncached. Offsets are in bytes. Each access asserts that its
/// offset is inside the range and aligned to the width of the access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mmio {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: 1. all cores have the same page tables, so the range is mapped on each; 2. each access is
// one read or write of a register, which the device orders; the drivers decide which core makes
// which access.
unsafe impl Send for Mmio {}
// SAFETY: as above.
unsafe impl Sync for Mmio {}

impl Mmio {
    /// The registers at `base`.
    ///
    /// # Safety
    /// 1. `bytes` bytes from `base` on are mapped as long as the machine runs.
    /// 2. Rust code does not own memory at these addresses.
    pub(crate) const unsafe fn new(base: NonNull<u8>, bytes: usize) -> Mmio {
        Mmio { base, bytes }
    }

    /// The part of the range from `offset` on, `bytes` long. `None` if that part is not inside the
    /// range.
    pub(crate) fn part(&self, offset: usize, bytes: usize) -> Option<Mmio> {
        let end = offset.checked_add(bytes)?;
        // SAFETY: 1. and 2. the part is inside a range that keeps both of `new`'s conditions.
        (end <= self.bytes).then(|| unsafe { Mmio::new(self.base.add(offset), bytes) })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn read8(&self, offset: usize) -> u8 {
        // SAFETY: `place`'s promise.
        unsafe { self.place::<u8>(offset).read_volatile() }
    }

    pub(crate) fn read16(&self, offset: usize) -> u16 {
        // SAFETY: `place`'s promise.
        unsafe { self.place::<u16>(offset).read_volatile() }
    }

    pub(crate) fn read32(&self, offset: usize) -> u32 {
        // SAFETY: `place`'s promise.
        unsafe { self.place::<u32>(offset).read_volatile() }
    }

    pub(crate) fn write8(&self, offset: usize, value: u8) {
        // SAFETY: `place`'s promise.
        unsafe { self.place::<u8>(offset).write_volatile(value) };
    }

    pub(crate) fn write16(&self, offset: usize, value: u16) {
        // SAFETY: `place`'s promise.
        unsafe { self.place::<u16>(offset).write_volatile(value) };
    }

    pub(crate) fn write32(&self, offset: usize, value: u32) {
        // SAFETY: `place`'s promise.
        unsafe { self.place::<u32>(offset).write_volatile(value) };
    }

    /// A pointer that is valid for one access of a `T`: inside of the range and aligned.
    fn place<T>(&self, offset: usize) -> *mut T {
        assert!(
            offset.checked_add(size_of::<T>()).is_some_and(|end| end <= self.bytes),
            "an access must be inside the range of registers"
        );
        // SAFETY: `offset` is inside of the range.
        let place = unsafe { self.base.as_ptr().add(offset) }.cast::<T>();
        assert!(place.is_aligned(), "an access must be aligned");
        place
    }
}
