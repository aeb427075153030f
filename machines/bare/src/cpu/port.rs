//! Ports of the processor's I/O space.

use core::arch::asm;

/// One I/O port that is safe to read and to write.
#[derive(Clone, Copy)]
pub(crate) struct Port(u16);

impl Port {
    /// The port with this number.
    ///
    /// # Safety
    /// 1. No access to the port may change memory that Rust code owns, except through a later,
    ///    `unsafe` step.
    /// 2. No access may remove a function that running code relies on (its page tables, its
    ///    interrupt routing), unless the caller never returns.
    pub(crate) const unsafe fn new(number: u16) -> Port {
        Port(number)
    }

    /// The port of the same device with a number that is higher by `offset`.
    pub(crate) const fn at(self, offset: u16) -> Port {
        Port(self.0.wrapping_add(offset))
    }

    pub(crate) fn read8(self) -> u8 {
        let value: u8;
        // SAFETY: `new`'s conditions 1 and 2.
        unsafe {
            asm!("in al, dx", in("dx") self.0, out("al") value, options(nomem, nostack, preserves_flags))
        };
        value
    }

    pub(crate) fn write8(self, value: u8) {
        // SAFETY: `new`'s conditions 1 and 2.
        unsafe {
            asm!("out dx, al", in("dx") self.0, in("al") value, options(nomem, nostack, preserves_flags))
        };
    }

    pub(crate) fn write16(self, value: u16) {
        // SAFETY: `new`'s conditions 1 and 2.
        unsafe {
            asm!("out dx, ax", in("dx") self.0, in("ax") value, options(nomem, nostack, preserves_flags))
        };
    }

    pub(crate) fn read32(self) -> u32 {
        let value: u32;
        // SAFETY: `new`'s conditions 1 and 2.
        unsafe {
            asm!("in eax, dx", in("dx") self.0, out("eax") value, options(nomem, nostack, preserves_flags))
        };
        value
    }

    pub(crate) fn write32(self, value: u32) {
        // SAFETY: `new`'s conditions 1 and 2. No `nomem`: this write may make a device read memory.
        unsafe {
            asm!("out dx, eax", in("dx") self.0, in("eax") value, options(nostack, preserves_flags))
        };
    }
}
