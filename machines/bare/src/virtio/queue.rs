//! Split virtqueues (virtio 1.2, section 2.7) with event index (2.7.10).
//!
//! A queue knows only the numbers of descriptors. The drivers own the memory that descriptors point
//! at. Chains are offered one by one. At the end of a turn they are published together, with at
//! most one ring of the doorbell.
//!
//! Invariants:
//! - The head of a used chain is the number of a descriptor of the queue. The driver checks that
//!   the chain was offered.
//! - The device interrupts only after [`Queue::wake_on_next`] or [`Queue::wake_after`]. It never
//!   interrupts while the machine is busy.
//! - The rings consist of atomics, because the device may change them at any time.

use alloc::boxed::Box;
use core::sync::atomic::{
    AtomicU16, AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, fence,
};

/// Flag of a descriptor: another descriptor follows in the chain.
pub(crate) const NEXT: u16 = 1;
/// Flag of a descriptor: the device writes into the buffer.
pub(crate) const WRITE: u16 = 2;

const NO_INTERRUPT: u16 = 1;
const NO_NOTIFY: u16 = 1;

/// One descriptor, as the device reads it.
#[repr(C)]
pub(crate) struct Descriptor {
    pub(crate) address: AtomicU64,
    pub(crate) bytes: AtomicU32,
    pub(crate) flags: AtomicU16,
    pub(crate) next: AtomicU16,
}

/// The ring that we write and the device reads.
#[repr(C, align(64))]
pub(crate) struct Available<const N: usize> {
    flags: AtomicU16,
    pub(crate) index: AtomicU16,
    pub(crate) ring: [AtomicU16; N],
    used_event: AtomicU16,
}

/// The ring that the device writes and we read.
#[repr(C, align(64))]
pub(crate) struct UsedRing<const N: usize> {
    flags: AtomicU16,
    pub(crate) index: AtomicU16,
    pub(crate) ring: [UsedElement; N],
    available_event: AtomicU16,
}

#[repr(C)]
pub(crate) struct UsedElement {
    pub(crate) head: AtomicU32,
    pub(crate) bytes: AtomicU32,
}

/// The memory of a queue, which is shared with the device.
#[repr(C, align(64))]
pub(crate) struct Rings<const N: usize> {
    pub(crate) descriptors: [Descriptor; N],
    pub(crate) available: Available<N>,
    pub(crate) used: UsedRing<N>,
}

/// The addresses of a queue's three parts: descriptors, available ring, used ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Addresses(pub(crate) [u64; 3]);

/// The form in which each side requests notifications: for a certain entry of a ring, or only by a
/// flag that switches them on and off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Events {
    ByIndex,
    ByFlag,
}

/// Our end of a queue of `N` entries, a power of two.
pub(crate) struct Queue<const N: usize> {
    rings: &'static Rings<N>,
    events: Events,
    /// The number of entries ever offered. `published` counts the published entries, and `taken`
    /// those taken back as used. The counters wrap.
    offered: u16,
    published: u16,
    taken: u16,
}

impl<const N: usize> Rings<N> {
    pub(crate) const fn new() -> Rings<N> {
        Rings {
            descriptors: [const {
                Descriptor {
                    address: AtomicU64::new(0),
                    bytes: AtomicU32::new(0),
                    flags: AtomicU16::new(0),
                    next: AtomicU16::new(0),
                }
            }; N],
            available: Available {
                flags: AtomicU16::new(NO_INTERRUPT),
                index: AtomicU16::new(0),
                ring: [const { AtomicU16::new(0) }; N],
                used_event: AtomicU16::new(0),
            },
            used: UsedRing {
                flags: AtomicU16::new(0),
                index: AtomicU16::new(0),
                ring: [const { UsedElement { head: AtomicU32::new(0), bytes: AtomicU32::new(0) } };
                    N],
                available_event: AtomicU16::new(0),
            },
        }
    }

    pub(crate) fn addresses(&'static self) -> Addresses {
        Addresses([
            (&raw const self.descriptors) as u64,
            (&raw const self.available) as u64,
            (&raw const self.used) as u64,
        ])
    }
}

impl<const N: usize> Queue<N> {
    /// A queue in newly allocated memory, which is never freed.
    pub(crate) fn new(events: Events) -> Queue<N> {
        Queue::over(Box::leak(Box::new(Rings::new())), events)
    }

    /// A queue over fresh rings.
    pub(crate) fn over(rings: &'static Rings<N>, events: Events) -> Queue<N> {
        const { assert!(N.is_power_of_two() && N <= 32_768) };
        // With the event index the flag must be zero (2.7.10.1). The event of entry 65,535 is far
        // away, so the device does not interrupt.
        if events == Events::ByIndex {
            rings.available.flags.store(0, Relaxed);
            rings.available.used_event.store(u16::MAX, Relaxed);
        }
        Queue { rings, events, offered: 0, published: 0, taken: 0 }
    }

    pub(crate) fn addresses(&self) -> Addresses {
        self.rings.addresses()
    }

    /// The queue's memory, for a test that acts as the device.
    #[cfg(test)]
    pub(crate) fn rings(&self) -> &'static Rings<N> {
        self.rings
    }

    /// Sets the memory of descriptor `index`.
    ///
    /// # Safety
    /// The following holds from the offer of a chain with this descriptor until the chain is taken
    /// as used or the device is reset: `bytes` bytes at `address` stay allocated. No Rust code
    /// writes them, and with [`WRITE`] no Rust code reads them.
    #[inline]
    pub(crate) unsafe fn describe(&self, index: u16, address: u64, bytes: u32, flags: u16) {
        let descriptor = at(&self.rings.descriptors, index);
        descriptor.address.store(address, Relaxed);
        descriptor.bytes.store(bytes, Relaxed);
        descriptor.flags.store(flags, Relaxed);
    }

    /// Sets the descriptor that follows `index` in its chain. It counts only if `index` has the
    /// flag [`NEXT`].
    #[inline]
    pub(crate) fn link(&self, index: u16, next: u16) {
        at(&self.rings.descriptors, index).next.store(next, Relaxed);
    }

    /// The descriptor that follows `index`, as set by [`Queue::link`].
    #[inline]
    pub(crate) fn next(&self, index: u16) -> u16 {
        at(&self.rings.descriptors, index).next.load(Relaxed)
    }

    /// Offers the chain that begins at `head`. The device sees it after [`Queue::publish`].
    #[inline]
    pub(crate) fn offer(&mut self, head: u16) {
        at(&self.rings.available.ring, self.offered).store(head, Relaxed);
        self.offered = self.offered.wrapping_add(1);
    }

    /// Publishes the offered chains. Returns whether the device wants a notification.
    #[inline]
    pub(crate) fn publish(&mut self) -> bool {
        let before = self.published;
        if self.offered == before {
            return false;
        }
        self.published = self.offered;
        self.rings.available.index.store(self.offered, Release);
        // The device's request for a notification is read only after the device can see the
        // entries. The device writes its request before it reads the index of the entries. So no
        // entry is missed.
        fence(core::sync::atomic::Ordering::SeqCst);
        match self.events {
            Events::ByIndex => {
                let wanted = self.rings.used.available_event.load(Relaxed);
                self.offered.wrapping_sub(wanted).wrapping_sub(1)
                    < self.offered.wrapping_sub(before)
            }
            Events::ByFlag => self.rings.used.flags.load(Relaxed) & NO_NOTIFY == 0,
        }
    }

    /// Whether the device has used an entry that was not taken yet.
    #[inline]
    pub(crate) fn has_used(&self) -> bool {
        self.rings.used.index.load(Acquire) != self.taken
    }

    /// Takes the next used chain. Returns its head, and the number of bytes that the device reports
    /// as written.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<(u16, u32)> {
        if !self.has_used() {
            return None;
        }
        let element = at(&self.rings.used.ring, self.taken);
        self.taken = self.taken.wrapping_add(1);
        Some((element.head.load(Relaxed) as u16 & (N as u16 - 1), element.bytes.load(Relaxed)))
    }

    /// The number of entries that were offered and have not been taken back yet.
    pub(crate) fn under_way(&self) -> u16 {
        self.offered.wrapping_sub(self.taken)
    }

    /// Requests an interrupt at the next entry that the device uses. Before it sleeps, the caller
    /// must check again for a used entry, because the device may have been faster.
    pub(crate) fn wake_on_next(&self) {
        self.wake_after(1);
    }

    /// Requests an interrupt at the `count`th entry that the device uses from now on. A device
    /// without event index interrupts at each entry instead.
    pub(crate) fn wake_after(&self, count: u16) {
        match self.events {
            Events::ByIndex => {
                self.rings
                    .available
                    .used_event
                    .store(self.taken.wrapping_add(count).wrapping_sub(1), Relaxed);
            }
            Events::ByFlag => self.rings.available.flags.store(0, Relaxed),
        }
        fence(core::sync::atomic::Ordering::SeqCst);
    }

    /// Turns interrupts off after a sleep. With the event index they are off already, since each
    /// request is for one entry.
    pub(crate) fn be_quiet(&self) {
        if self.events == Events::ByFlag {
            self.rings.available.flags.store(NO_INTERRUPT, Relaxed);
        }
    }
}

/// The entry of `ring` at `index`, which wraps at the length of the ring.
#[inline]
fn at<T, const N: usize>(ring: &[T; N], index: u16) -> &T {
    #[expect(
        clippy::indexing_slicing,
        reason = "masked by the length, a power of two, as `Queue::over` asserts"
    )]
    &ring[usize::from(index) & (N - 1)]
}

#[cfg(test)]
pub(crate) mod tests;
