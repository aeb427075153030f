//! A table of fixed size with entries that expire. Each entry is in one of a few queues. All
//! entries of a queue wait for the same length of time. So the entries of a queue are in the order
//! of their deadlines, and no sorting is needed.
//!
//! Half-open connections and TIME-WAIT connections are in such tables, because they are many and
//! small, and each has a deadline.
//!
//! Invariants:
//! - Every slot is either on the free list or in exactly one queue.
//! - Within a queue, deadlines never decrease from head to tail; `enqueue` asserts it.

use alloc::vec::Vec;

use machine::Instant;

const NONE: u32 = u32::MAX;

struct AgeingSlot<T> {
    value: Option<T>,
    deadline: Instant,
    previous: u32,
    next: u32,
    queue: u8,
}

#[derive(Clone, Copy)]
struct QueueEnds {
    head: u32,
    tail: u32,
}

/// The table, with `QUEUES` queues numbered from zero.
pub(super) struct Ageing<T, const QUEUES: usize> {
    slots: Vec<AgeingSlot<T>>,
    free: Vec<u32>,
    queues: [QueueEnds; QUEUES],
}

impl<T, const QUEUES: usize> Ageing<T, QUEUES> {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        assert!(capacity < NONE as usize, "an ageing table holds fewer than 2^32 entries");
        let empty = || AgeingSlot {
            value: None,
            deadline: Instant::START,
            previous: NONE,
            next: NONE,
            queue: 0,
        };
        Ageing {
            slots: (0..capacity).map(|_| empty()).collect(),
            free: (0..capacity as u32).rev().collect(),
            queues: [QueueEnds { head: NONE, tail: NONE }; QUEUES],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Adds `value` at the end of `queue`. `None` when the table is full.
    pub(super) fn insert(&mut self, value: T, queue: usize, deadline: Instant) -> Option<u32> {
        let index = self.free.pop()?;
        self.slot_mut(index).value = Some(value);
        self.enqueue(index, queue, deadline);
        Some(index)
    }

    pub(super) fn get(&self, index: u32) -> Option<&T> {
        self.slots.get(index as usize)?.value.as_ref()
    }

    pub(super) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.slots.get_mut(index as usize)?.value.as_mut()
    }

    pub(super) fn remove(&mut self, index: u32) -> Option<T> {
        let value = self.slots.get_mut(index as usize)?.value.take()?;
        self.unlink(index);
        self.free.push(index);
        Some(value)
    }

    /// Moves an entry to the end of `queue`.
    pub(super) fn move_to(&mut self, index: u32, queue: usize, deadline: Instant) {
        if self.get(index).is_some() {
            self.unlink(index);
            self.enqueue(index, queue, deadline);
        }
    }

    /// The entry of `queue` with the earliest deadline.
    pub(super) fn oldest(&self, queue: usize) -> Option<(u32, Instant)> {
        let head = self.queues.get(queue)?.head;
        self.slots.get(head as usize).map(|slot| (head, slot.deadline))
    }

    /// Whether the table has no entries. This is nearly always true.
    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// The earliest deadline of all entries.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        if self.is_empty() { None } else { self.earliest_deadline() }
    }

    fn earliest_deadline(&self) -> Option<Instant> {
        (0..QUEUES).filter_map(|queue| self.oldest(queue)).map(|(_, deadline)| deadline).min()
    }

    fn enqueue(&mut self, index: u32, queue: usize, deadline: Instant) {
        let Some(ends) = self.queues.get_mut(queue) else {
            unreachable!("a queue above the last one")
        };
        let before = ends.tail;
        ends.tail = index;
        if before == NONE {
            ends.head = index;
        }
        if let Some(slot) = self.slots.get_mut(before as usize) {
            assert!(slot.deadline <= deadline, "entries of one queue wait equally long");
            slot.next = index;
        }
        let slot = self.slot_mut(index);
        slot.previous = before;
        slot.next = NONE;
        slot.deadline = deadline;
        slot.queue = queue as u8;
    }

    /// The slot of an entry.
    fn slot_mut(&mut self, index: u32) -> &mut AgeingSlot<T> {
        match self.slots.get_mut(index as usize) {
            Some(slot) => slot,
            None => unreachable!("a slot above the last one"),
        }
    }

    fn unlink(&mut self, index: u32) {
        let slot = self.slot_mut(index);
        let (previous, next, queue) = (slot.previous, slot.next, slot.queue);
        if let Some(slot) = self.slots.get_mut(previous as usize) {
            slot.next = next;
        }
        if let Some(slot) = self.slots.get_mut(next as usize) {
            slot.previous = previous;
        }
        let Some(ends) = self.queues.get_mut(usize::from(queue)) else {
            unreachable!("a queue above the last one")
        };
        if ends.head == index {
            ends.head = next;
        }
        if ends.tail == index {
            ends.tail = previous;
        }
    }
}
