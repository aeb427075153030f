//! Rings between cores. One core sends and another core receives, and neither ever waits for the
//! other. [`Sleep`] wakes a receiver that sleeps.
//!
//! Cores share nothing except these rings. A message is moved, so one core owns it at a time. If a
//! message has a buffer, a message in the opposite ring returns the buffer.
//!
//! Invariants:
//! - Messages are received in the order in which they were sent, each once.
//! - After [`ring`] has returned, nothing is allocated, and nothing is ever locked. A full ring
//!   returns the message to the sender.
//! - Messages that are still in a ring when both ends are gone are dropped.
//!
//! How it works: the sender owns the slots from `tail` to `head` + capacity, and the receiver owns
//! the slots from `head` to `tail`. Both counters only grow. A counter modulo the capacity is the
//! number of a slot. Only the sender writes `tail`, after it has written the slot. Only the
//! receiver writes `head`, after it has moved the message out of the slot. Each end stores the
//! value of the other end's counter that it has read last. It reads the counter again only when the
//! stored value shows no free slot or no message. So the cache lines of the counters move between
//! the cores once for each batch of messages. `tests/loom.rs` tries all orders that the memory
//! model allows.
#![no_std]

extern crate alloc;

mod sleep;

pub use sleep::Sleep;

use alloc::boxed::Box;
use core::mem::MaybeUninit;

#[cfg(not(loom))]
use alloc::sync::Arc;
#[cfg(not(loom))]
use core::sync::atomic::{AtomicUsize, Ordering};
#[cfg(loom)]
use loom::sync::Arc;
#[cfg(loom)]
use loom::sync::atomic::{AtomicUsize, Ordering};

#[cfg(loom)]
use loom::cell::UnsafeCell;
#[cfg(not(loom))]
use plain::UnsafeCell;

/// Creates a ring for `capacity` messages, a power of two. Returns its two ends.
pub fn ring<T: Send>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    assert!(capacity.is_power_of_two(), "slots are found by a mask");
    let slots = (0..capacity).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect();
    let shared = Arc::new(Shared {
        head: Padded(AtomicUsize::new(0)),
        tail: Padded(AtomicUsize::new(0)),
        slots,
    });
    (
        Sender { shared: Arc::clone(&shared), tail: 0, head_seen: 0 },
        Receiver { shared, head: 0, tail_seen: 0 },
    )
}

/// The sending end of a ring.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
    tail: usize,
    head_seen: usize,
}

/// The receiving end of a ring.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    head: usize,
    tail_seen: usize,
}

impl<T> Sender<T> {
    /// Sends one message.
    ///
    /// Errors: the message itself if the ring is full.
    pub fn send(&mut self, message: T) -> Result<(), T> {
        if !self.has_room() {
            return Err(message);
        }
        let Some(slot) = self.shared.slot(self.tail) else { return Err(message) };
        // SAFETY: `has_room` saw that the receiver has moved the last message out of this slot. The
        // receiver touches the slot again only after `tail` says that there is a new message. No
        // other sender exists: an end is not cloned, and this call borrows it exclusively.
        slot.with_mut(|place| unsafe { (*place).write(message) });
        self.tail = self.tail.wrapping_add(1);
        self.shared.tail.0.store(self.tail, Ordering::Release);
        Ok(())
    }

    /// Whether the ring will accept the next message. Once this is true, it stays true until that
    /// message is sent.
    pub fn has_room(&mut self) -> bool {
        let capacity = self.shared.slots.len();
        if self.tail.wrapping_sub(self.head_seen) == capacity {
            self.head_seen = self.shared.head.0.load(Ordering::Acquire);
        }
        self.tail.wrapping_sub(self.head_seen) < capacity
    }
}

impl<T> Receiver<T> {
    /// The next message, if the ring has one.
    #[inline]
    pub fn receive(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let slot = self.shared.slot(self.head)?;
        // SAFETY: `is_empty` saw that the sender has written this slot. The sender touches the slot
        // again only after `head` says that the slot is free. No other receiver exists, so the
        // message is moved out once.
        let message = slot.with(|place| unsafe { (*place).assume_init_read() });
        self.head = self.head.wrapping_add(1);
        self.shared.head.0.store(self.head, Ordering::Release);
        Some(message)
    }

    /// Whether the ring has no message now.
    #[inline]
    pub fn is_empty(&mut self) -> bool {
        if self.head == self.tail_seen {
            self.tail_seen = self.shared.tail.0.load(Ordering::Acquire);
        }
        self.head == self.tail_seen
    }
}

/// The state that both ends share.
struct Shared<T> {
    /// The number of messages received so far.
    head: Padded<AtomicUsize>,
    /// The number of messages sent so far.
    tail: Padded<AtomicUsize>,
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
}

/// A value that shares its cache lines with no other value. It has two lines, because processors
/// fetch lines in pairs.
#[repr(align(128))]
struct Padded<T>(T);

// SAFETY: each slot is touched only by the end that owns it by `head` and `tail`. A slot changes
// its owner by a release store of a counter, which the other end reads with acquire. A message is
// moved from one thread to another, which `T: Send` allows. No reference to a message is ever
// shared.
unsafe impl<T: Send> Sync for Shared<T> {}
// SAFETY: as above. The thread that has the last end drops the remaining messages, which `T: Send`
// allows.
unsafe impl<T: Send> Send for Shared<T> {}

impl<T> Shared<T> {
    #[inline]
    fn slot(&self, count: usize) -> Option<&UnsafeCell<MaybeUninit<T>>> {
        self.slots.get(count & self.slots.len().wrapping_sub(1))
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let (mut head, tail) =
            (self.head.0.load(Ordering::Acquire), self.tail.0.load(Ordering::Acquire));
        while head != tail {
            if let Some(slot) = self.slot(head) {
                // SAFETY: both ends are gone, and the slots from `head` to `tail` hold messages
                // that were not moved out.
                slot.with_mut(|place| unsafe { (*place).assume_init_drop() });
            }
            head = head.wrapping_add(1);
        }
    }
}

/// The standard cell, with the interface of the cell of the crate loom.
#[cfg(not(loom))]
mod plain {
    pub(crate) struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) fn new(value: T) -> UnsafeCell<T> {
            UnsafeCell(core::cell::UnsafeCell::new(value))
        }

        #[inline]
        pub(crate) fn with<R>(&self, act: impl FnOnce(*const T) -> R) -> R {
            act(self.0.get())
        }

        #[inline]
        pub(crate) fn with_mut<R>(&self, act: impl FnOnce(*mut T) -> R) -> R {
            act(self.0.get())
        }
    }
}
