//! The delay queue: frames that wait for a point in time, in a hierarchical timing wheel (Varghese
//! and Lauck, 1987).
//!
//! Setting, postponing or cancelling a deadline is O(1). A level has 64 buckets, and the levels
//! together cover all of time, so no list of far deadlines is needed. As its time comes near, a
//! deadline moves to lower levels, at most once for each level.
//!
//! Most deadlines never expire, because the next event postpones them. So a deadline that is
//! postponed or cancelled stays in its bucket at first. When the bucket is due, the queue moves or
//! drops the deadline.
//!
//! Invariants:
//! - No deadline is reported early. It is reported late by less than a tick plus the time since the
//!   last call.
//! - A slot has one deadline: setting it again replaces it.
//! - A deadline is stored at its own tick, or at an earlier one. The next invariant refers to this
//!   stored tick.
//! - A bucket at level `l` holds ticks that agree with `current` in all bits above the 6 bits of
//!   level `l`, and are greater in these 6 bits. So of all buckets, the first bucket of the lowest
//!   non-empty level is the earliest.

use alloc::vec;
use alloc::vec::Vec;
use machine::{Instant, Micros};

use crate::FrameId;
use crate::list::{List, ListLinks};

/// The resolution of the wheel.
const TICK: Micros = Micros(1_000);

const LEVEL_BITS: u32 = 6;
const BUCKETS_PER_LEVEL: usize = 1 << LEVEL_BITS;
const LEVELS: usize = 10;
const DUE: u16 = (LEVELS * BUCKETS_PER_LEVEL) as u16;

const _: () =
    assert!(u64::MAX / TICK.0 < 1 << (LEVEL_BITS * LEVELS as u32), "the levels cover all of time");

/// Marks a cancelled deadline in place of its tick. No instant is that late.
const NEVER: u64 = u64::MAX;

#[derive(Clone, Copy, Debug)]
struct Deadline {
    generation: u32,
    tick: u64,
    /// The tick that selected the bucket: `tick`, or an earlier deadline of the same frame.
    bucket_tick: u64,
    bucket: u16,
}

/// Frames that wait for a deadline, with one place for each slot of the frame table that it serves.
#[derive(Debug)]
pub struct DelayQueue {
    deadlines: Vec<Option<Deadline>>,
    links: ListLinks,
    buckets: Vec<List>,
    /// Bit `b` of `occupied[l]`: bucket `b` of level `l` holds a deadline.
    occupied: [u64; LEVELS],
    current: u64,
    /// No deadline is before this tick, so no search is needed before it. `u64::MAX`: the queue has
    /// no deadline.
    next_search: u64,
}

impl DelayQueue {
    /// Bytes of memory for each slot.
    pub const SLOT_BYTES: usize = size_of::<Option<Deadline>>() + ListLinks::SLOT_BYTES;

    /// A queue for the frames of a table of `capacity` slots, at the time `now`.
    pub fn with_capacity(capacity: usize, now: Instant) -> DelayQueue {
        DelayQueue {
            deadlines: vec![None; capacity],
            links: ListLinks::with_capacity(capacity),
            buckets: vec![List::EMPTY; LEVELS * BUCKETS_PER_LEVEL + 1],
            occupied: [0; LEVELS],
            current: now.0 / TICK.0,
            next_search: u64::MAX,
        }
    }

    /// Wakes `frame` at `deadline`. Replaces an earlier setting.
    #[inline]
    pub fn set(&mut self, frame: FrameId, deadline: Instant) {
        let tick = deadline.0.div_ceil(TICK.0);
        match self.deadlines.get_mut(frame.index()) {
            Some(Some(known)) if known.bucket_tick <= tick => {
                (known.generation, known.tick) = (frame.generation(), tick)
            }
            _ => self.set_anew(frame, tick),
        }
    }

    /// Removes the deadline of `frame`, if it has one.
    #[inline]
    pub fn cancel(&mut self, frame: FrameId) {
        if let Some(Some(known)) = self.deadlines.get_mut(frame.index())
            && known.generation == frame.generation()
        {
            known.tick = NEVER;
        }
    }

    /// Removes and returns a frame with its deadline at `now` or earlier, if one exists.
    #[inline]
    pub fn next_due(&mut self, now: Instant) -> Option<FrameId> {
        let tick = now.0 / TICK.0;
        if tick < self.next_search { None } else { self.search(tick) }
    }

    /// When to call [`DelayQueue::next_due`] again: never later than the earliest deadline. The
    /// time may be earlier than that, because of a deadline that was postponed or cancelled.
    #[inline]
    pub fn next_deadline(&self) -> Option<Instant> {
        (self.next_search != u64::MAX).then(|| Instant(self.next_search.saturating_mul(TICK.0)))
    }

    fn set_anew(&mut self, frame: FrameId, tick: u64) {
        if let Some(known) = self.deadlines.get_mut(frame.index()).and_then(Option::take) {
            self.leave(known.bucket, frame.index() as u32);
        }
        self.next_search = self.next_search.min(tick);
        self.place(
            frame.index() as u32,
            Deadline { generation: frame.generation(), tick, bucket_tick: tick, bucket: DUE },
        );
    }

    /// Advances the wheel to `tick`. Returns the first frame that is due, and removes its deadline.
    fn search(&mut self, tick: u64) -> Option<FrameId> {
        self.advance(tick);
        while let Some((index, deadline)) = self.take_first(DUE) {
            if deadline.tick <= self.current {
                return Some(FrameId::new(index, deadline.generation));
            }
            self.place(index, deadline);
        }
        self.next_search = self.earliest_bucket().map_or(u64::MAX, |(_, start)| start);
        None
    }

    /// Advances `current` to `target`, and moves all deadlines that become due to the due bucket.
    fn advance(&mut self, target: u64) {
        while let Some((bucket, start)) =
            self.earliest_bucket().filter(|(_, start)| *start <= target)
        {
            self.current = start;
            self.spread(bucket);
        }
        self.current = self.current.max(target);
    }

    /// Moves every deadline of `bucket` to the bucket that fits now that `current` has advanced.
    fn spread(&mut self, bucket: u16) {
        while let Some((index, deadline)) = self.take_first(bucket) {
            self.place(index, deadline);
        }
    }

    /// Takes the first deadline out of `bucket`.
    fn take_first(&mut self, bucket: u16) -> Option<(u32, Deadline)> {
        let index = self.buckets.get(usize::from(bucket))?.first()?;
        self.leave(bucket, index);
        let deadline = self.deadlines.get_mut(index as usize)?.take()?;
        Some((index, deadline))
    }

    /// Puts a deadline that is in no bucket into the bucket of its tick. Drops a cancelled
    /// deadline.
    fn place(&mut self, index: u32, deadline: Deadline) {
        if deadline.tick == NEVER {
            return;
        }
        let bucket = self.bucket_of(deadline.tick);
        if let Some(place) = self.deadlines.get_mut(index as usize) {
            *place = Some(Deadline { bucket_tick: deadline.tick, bucket, ..deadline });
            self.enter(bucket, index);
        }
    }

    /// The bucket that becomes due first, and the first tick that it may hold.
    fn earliest_bucket(&self) -> Option<(u16, u64)> {
        let (level, occupied) =
            self.occupied.iter().enumerate().find(|(_, occupied)| **occupied != 0)?;
        let slot = u64::from(occupied.trailing_zeros());
        let shift = LEVEL_BITS * level as u32;
        let above = self.current >> shift >> LEVEL_BITS << LEVEL_BITS;
        Some(((level * BUCKETS_PER_LEVEL) as u16 + slot as u16, (above | slot) << shift))
    }

    fn bucket_of(&self, tick: u64) -> u16 {
        if tick <= self.current {
            return DUE;
        }
        let level = (tick ^ self.current).ilog2() / LEVEL_BITS;
        let slot = tick >> (LEVEL_BITS * level) & (BUCKETS_PER_LEVEL as u64 - 1);
        level as u16 * BUCKETS_PER_LEVEL as u16 + slot as u16
    }

    fn enter(&mut self, bucket: u16, index: u32) {
        if let Some(list) = self.buckets.get_mut(usize::from(bucket)) {
            self.links.push_back(list, index);
        }
        if let Some((occupied, bit)) = self.occupancy(bucket) {
            *occupied |= bit;
        }
    }

    fn leave(&mut self, bucket: u16, index: u32) {
        let Some(list) = self.buckets.get_mut(usize::from(bucket)) else { return };
        self.links.remove(list, index);
        let emptied = list.is_empty();
        if let Some((occupied, bit)) = self.occupancy(bucket).filter(|_| emptied) {
            *occupied &= !bit;
        }
    }

    /// The word of `occupied` for `bucket`, and the bit in it. The due bucket has no bit.
    fn occupancy(&mut self, bucket: u16) -> Option<(&mut u64, u64)> {
        let bucket = usize::from(bucket);
        let occupied = self.occupied.get_mut(bucket / BUCKETS_PER_LEVEL)?;
        Some((occupied, 1 << (bucket % BUCKETS_PER_LEVEL)))
    }
}
