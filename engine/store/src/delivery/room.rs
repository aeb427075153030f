//! Deliveries that wait for buffers, and the order in which they are woken.
//!
//! Invariant: a delivery that waits for one kind of buffer does not block one that waits for
//! another kind. An available buffer is offered to a delivery that waits for its kind.

use crate::delivery::{Deliveries, Expect};
use crate::layout::PIECE_PAGES;
use crate::outcome::{Outcome, Wakes};
use crate::pool::Pool;
use alloc::collections::VecDeque;
use tasks::{Continuation, FrameId};

/// The kinds of buffers that deliveries wait for. Each kind has a queue of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wanted {
    /// A page for the first octets.
    Page,
    /// A run of pages for more octets.
    Run,
    /// A copy for a further recipient's chunk.
    Copy,
    /// No buffer, but a segment that another core may give to this one.
    Space,
}

/// Deliveries that wait for buffers, in the order of arrival.
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
    /// Buffers came back: wakes one delivery for each kind that is available.
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

    /// Another core has answered whether it gives up segments. Every delivery that waited for this
    /// tries again.
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

    /// Takes a delivery out of the queues when it is given up or has found its buffer. Otherwise it
    /// would be woken in place of another one.
    pub(super) fn stop_waiting_for_room(&mut self, id: FrameId) {
        if core::mem::take(&mut self.known(id).wants_room) {
            self.wants_room.forget(id);
        }
    }

    /// Single pages that copies must leave: one for each delivery and each read that may still
    /// begin.
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
