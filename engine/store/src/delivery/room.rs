//! Deliveries that wait for buffers, and who is woken when some come back.
//!
//! Invariant: who waits for one kind of buffer holds up nobody who waits for another, and a buffer that can be had is
//! offered to somebody who wants it.

use crate::delivery::{Deliveries, Expect};
use crate::layout::PIECE_PAGES;
use crate::outcome::{Outcome, Wakes};
use crate::pool::Pool;
use alloc::collections::VecDeque;
use tasks::{Continuation, FrameId};

/// The kinds of buffers that deliveries wait for. Who waits for one kind holds up nobody who waits for another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wanted {
    /// For the first octets.
    Page,
    /// For more octets.
    Run,
    /// For a further recipient's chunk.
    Copy,
    /// No buffer, but a segment that another core may have for us.
    Space,
}

/// Deliveries that wait for buffers, first come first served.
#[derive(Debug, Default)]
pub(super) struct WantsRoom {
    page: VecDeque<FrameId>,
    run: VecDeque<FrameId>,
    copy: VecDeque<FrameId>,
    space: VecDeque<FrameId>,
}

impl WantsRoom {
    pub(super) fn with_capacity(deliveries: usize) -> WantsRoom {
        let queue = || VecDeque::with_capacity(deliveries);
        WantsRoom { page: queue(), run: queue(), copy: queue(), space: queue() }
    }

    fn is_empty(&self) -> bool {
        self.page.is_empty() && self.run.is_empty() && self.copy.is_empty()
    }

    fn forget(&mut self, id: FrameId) {
        for queue in [&mut self.page, &mut self.run, &mut self.copy, &mut self.space] {
            queue.retain(|waiting| *waiting != id);
        }
    }

    fn of(&mut self, wanted: Wanted) -> &mut VecDeque<FrameId> {
        match wanted {
            Wanted::Page => &mut self.page,
            Wanted::Run => &mut self.run,
            Wanted::Copy => &mut self.copy,
            Wanted::Space => &mut self.space,
        }
    }
}

impl Deliveries {
    /// Buffers came back: wakes one delivery for each kind of them that can be had.
    pub(crate) fn offer_room(&mut self, pool: &Pool, wakes: &mut Wakes) {
        for wanted in [Wanted::Page, Wanted::Run, Wanted::Copy] {
            let can_be_had = match wanted {
                Wanted::Page => pool.has_sparing(1),
                Wanted::Run => pool.has_sparing(PIECE_PAGES),
                Wanted::Copy => true,
                Wanted::Space => false,
            };
            if can_be_had && let Some(delivery) = self.wants_room.of(wanted).pop_front() {
                self.wake_for_room(delivery, wakes);
            }
        }
    }

    /// Another core has said whether it has segments for us: whoever waited for that tries again.
    pub(crate) fn offer_space(&mut self, wakes: &mut Wakes) {
        while let Some(delivery) = self.wants_room.space.pop_front() {
            self.wake_for_room(delivery, wakes);
        }
    }

    /// Wakes a delivery that waited for a buffer.
    fn wake_for_room(&mut self, id: FrameId, wakes: &mut Wakes) {
        let Some(delivery) = self.table.get_mut(id) else { return };
        if core::mem::take(&mut delivery.wants_room)
            && delivery.expect == Expect::Octets
            && let Some(continuation) = delivery.continuation.take()
        {
            wakes.wake(continuation, Outcome::Room);
        }
    }

    /// A delivery that is given up, or has found what it waited for, waits for nothing: it must not be woken in place of another.
    pub(super) fn stop_waiting_for_room(&mut self, id: FrameId) {
        if core::mem::take(&mut self.known(id).wants_room) {
            self.wants_room.forget(id);
        }
    }

    /// Single pages that copies must leave: one for each delivery and each read that may still begin.
    pub(crate) fn pages_to_leave(&self, reads_to_come: usize) -> usize {
        self.table.capacity() - self.table.len() + reads_to_come
    }

    /// Whether a delivery waits for a buffer.
    pub(crate) fn wait(&self) -> bool {
        !self.wants_room.is_empty()
    }

    pub(super) fn wait_for_room(
        &mut self,
        id: FrameId,
        wanted: Wanted,
        continuation: Continuation,
    ) {
        let delivery = self.known(id);
        delivery.continuation = Some(continuation);
        if !core::mem::replace(&mut delivery.wants_room, true) {
            self.wants_room.of(wanted).push_back(id);
        }
    }
}
