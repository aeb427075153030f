//! Deliveries that wait for buffers, and the order in which they are woken.
//!
//! Invariant: deliveries that wait for different kinds of buffers do not block each other. An
//! available buffer is offered to a delivery that waits for its kind.

use crate::delivery::{Deliveries, Expect};
use crate::layout::PIECE_PAGES;
use crate::outcome::{Outcome, Wakes};
use crate::pool::Pool;
use alloc::collections::VecDeque;
use tasks::{Continuation, FrameId};

/// The resource that a delivery waits for: a buffer of some kind, or a segment. Each kind has a
/// queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AwaitedBuffer {
    /// A page for the first octets.
    Page,
    /// A run of pages for more octets.
    Run,
    /// A buffer for the copy of a chunk, for a further recipient.
    Copy,
    /// No buffer, but a segment. Another core may give one to this core.
    Segment,
}

/// Deliveries that wait for buffers, in the order of arrival.
#[derive(Debug, Default)]
pub(super) struct BufferWaiters {
    page: VecDeque<FrameId>,
    run: VecDeque<FrameId>,
    copy: VecDeque<FrameId>,
    segment: VecDeque<FrameId>,
}

impl BufferWaiters {
    pub(super) fn with_capacity(deliveries: usize) -> BufferWaiters {
        let queue = || VecDeque::with_capacity(deliveries);
        BufferWaiters { page: queue(), run: queue(), copy: queue(), segment: queue() }
    }

    /// Whether a delivery waits for a buffer. A delivery that waits for a segment does not count.
    fn await_buffers(&self) -> bool {
        !(self.page.is_empty() && self.run.is_empty() && self.copy.is_empty())
    }

    fn forget(&mut self, id: FrameId) {
        for queue in [&mut self.page, &mut self.run, &mut self.copy, &mut self.segment] {
            queue.retain(|waiting| *waiting != id);
        }
    }

    fn of(&mut self, awaited: AwaitedBuffer) -> &mut VecDeque<FrameId> {
        match awaited {
            AwaitedBuffer::Page => &mut self.page,
            AwaitedBuffer::Run => &mut self.run,
            AwaitedBuffer::Copy => &mut self.copy,
            AwaitedBuffer::Segment => &mut self.segment,
        }
    }
}

impl Deliveries {
    /// Wakes one delivery for each kind of buffer that is available. One delivery that waits for a
    /// copy is woken in any case, and tries again. Must be called after buffers were returned.
    pub(crate) fn offer_buffers(&mut self, pool: &Pool, wakes: &mut Wakes) {
        for awaited in [AwaitedBuffer::Page, AwaitedBuffer::Run, AwaitedBuffer::Copy] {
            let can_be_had = match awaited {
                AwaitedBuffer::Page => pool.has_sparing(1),
                AwaitedBuffer::Run => pool.has_sparing(PIECE_PAGES),
                AwaitedBuffer::Copy => true,
                AwaitedBuffer::Segment => false,
            };
            if can_be_had && let Some(delivery) = self.buffer_waiters.of(awaited).pop_front() {
                self.wake_waiter(delivery, wakes);
            }
        }
    }

    /// Wakes every delivery that waits for a segment, so that it tries again. Must be called when
    /// the disk owner has answered a request for segments.
    pub(crate) fn retry_for_segments(&mut self, wakes: &mut Wakes) {
        while let Some(delivery) = self.buffer_waiters.segment.pop_front() {
            self.wake_waiter(delivery, wakes);
        }
    }

    /// Wakes a delivery that waited for a buffer.
    fn wake_waiter(&mut self, id: FrameId, wakes: &mut Wakes) {
        let Some(delivery) = self.table.get_mut(id) else { return };
        if core::mem::take(&mut delivery.awaits_buffer)
            && delivery.expect == Expect::Octets
            && let Some(continuation) = delivery.continuation.take()
        {
            wakes.wake(continuation, Outcome::DeliveryReady);
        }
    }

    /// Takes a delivery out of the queues when it is given up or has found its buffer. If it stayed
    /// in a queue, it would be woken instead of a delivery that still waits.
    pub(super) fn stop_waiting_for_buffer(&mut self, id: FrameId) {
        if core::mem::take(&mut self.known(id).awaits_buffer) {
            self.buffer_waiters.forget(id);
        }
    }

    /// The number of single pages that copies may not take: one for each delivery and each read
    /// that may still begin.
    pub(crate) fn pages_to_leave(&self, reads_to_come: usize) -> usize {
        self.table.capacity() - self.table.len() + reads_to_come
    }

    /// Whether a delivery waits for a buffer.
    pub(crate) fn has_waiters(&self) -> bool {
        self.buffer_waiters.await_buffers()
    }

    pub(super) fn wait_for_buffer(
        &mut self,
        id: FrameId,
        awaited: AwaitedBuffer,
        continuation: Continuation,
    ) {
        let delivery = self.known(id);
        delivery.continuation = Some(continuation);
        if !core::mem::replace(&mut delivery.awaits_buffer, true) {
            self.buffer_waiters.of(awaited).push_back(id);
        }
    }
}
