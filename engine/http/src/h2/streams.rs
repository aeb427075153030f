//! The waiting streams of a connection, and the order in which they send.
//!
//! `streams/handler.rs` passes requests to handlers, and `streams/open.rs` handles their open
//! replies.
//!
//! Invariant: the handler gets each admission and each open reply of a stream back exactly once.
//! This happens at the latest when the stream is removed.

mod handler;
mod open;

use alloc::vec::Vec;

use http2::ErrorCode;

use super::flood_budget::FloodBudget;
use super::sending::{SendStep, StreamOutput, widened};
use super::stream::{self, ClientHalf, Stream};
use crate::actions::Actions;

#[cfg(test)]
pub(crate) use handler::UNSENT_BYTES_MAX;
pub(crate) use handler::WAITING_BYTES_MAX;

/// The number of streams for which the list keeps memory when it becomes empty.
const STREAMS_KEPT: usize = 4;

/// The number of our last resets that the list records. Frames for these streams may still be in
/// flight.
const RESET_STREAMS: usize = 8;

/// The waiting streams.
#[derive(Debug)]
pub(super) struct StreamList {
    /// The oldest stream first.
    list: Vec<Stream>,
    /// The index of the stream that sends next.
    turn: usize,
    /// The numbers of the streams that we reset last.
    reset: [u32; RESET_STREAMS],
    /// The stream of the request that is with the handler. The stream may already have ended.
    asking: Option<u32>,
    /// Whether a request may wait for its turn.
    has_waiting_requests: bool,
    /// Whether enough bytes of an admitted body have arrived to give its sender the full time
    /// again.
    has_upload_progress: bool,
    /// Whether a window update of a stream may be due.
    has_unreported: bool,
}

impl StreamList {
    pub(super) fn new() -> StreamList {
        StreamList {
            list: Vec::new(),
            turn: 0,
            reset: [0; RESET_STREAMS],
            asking: None,
            has_waiting_requests: false,
            has_upload_progress: false,
            has_unreported: false,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.list.iter()
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Stream> {
        self.list.iter_mut().find(|stream| stream.id == id)
    }

    /// The client's half of a stream. `None` if the stream has no entry.
    pub(super) fn client_half(&self, id: u32) -> Option<ClientHalf> {
        self.list.iter().find(|stream| stream.id == id).map(Stream::client_half)
    }

    /// Adds a stream that waits.
    pub(super) fn push(&mut self, stream: Stream) {
        self.has_waiting_requests |= matches!(stream.expect, stream::Expect::Turn(_));
        self.list.push(stream);
    }

    /// The memory of the streams in bytes, without the bodies of replies and the admitted memory.
    pub(super) fn kept_bytes(&self) -> usize {
        let of_streams = self.list.iter().map(Stream::kept_bytes).sum::<usize>();
        self.list.capacity() * size_of::<Stream>() + of_streams
    }

    /// The number of bytes by which the list would grow for one more stream.
    pub(super) fn growth_bytes(&self) -> usize {
        let has_place = self.list.len() < self.list.capacity();
        if has_place { 0 } else { self.list.capacity().max(STREAMS_KEPT) * size_of::<Stream>() }
    }

    /// The memory of the requests without a reply, in bytes.
    pub(super) fn asked_bytes(&self) -> usize {
        self.list
            .iter()
            .filter_map(Stream::handler_stream)
            .map(|handler_stream| handler_stream.asked().bytes())
            .sum()
    }

    /// Whether a request may wait for its turn.
    pub(super) fn has_waiting_requests(&self) -> bool {
        self.has_waiting_requests
    }

    /// Whether a request is with the handler.
    pub(super) fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    /// Whether enough bytes of a body have arrived since the last call to give its sender the full
    /// time again.
    pub(super) fn has_upload_progress(&mut self) -> bool {
        core::mem::take(&mut self.has_upload_progress)
    }

    /// Changes the windows of all streams by `by` bytes, since the client has set another initial
    /// window.
    ///
    /// Errors: a window would exceed its maximum.
    pub(super) fn widen(&mut self, by: i64) -> Result<(), ErrorCode> {
        for stream in &mut self.list {
            stream.window = widened(stream.window, by).ok_or(ErrorCode::FlowControlError)?;
        }
        Ok(())
    }

    /// Lets the streams send in turn, one frame each.
    pub(super) fn send_on(
        &mut self,
        output: &mut StreamOutput,
        flood_budget: &mut FloodBudget,
        actions: &mut impl Actions,
    ) -> Result<SendStep, ErrorCode> {
        let mut in_vain = 0;
        while in_vain < self.list.len() {
            self.turn %= self.list.len();
            let Some(stream) = self.list.get_mut(self.turn) else { break };
            let step = output.send(stream, flood_budget, actions)?;
            match step {
                SendStep::Done => self.stream_done(self.turn, actions),
                SendStep::On => (in_vain, self.turn) = (0, self.turn + 1),
                SendStep::Waits => (in_vain, self.turn) = (in_vain + 1, self.turn + 1),
                SendStep::NoRoom => return Ok(SendStep::NoRoom),
            }
            if output.is_within_frame() {
                return Ok(SendStep::NoRoom);
            }
        }
        Ok(SendStep::Waits)
    }

    /// The whole response of the stream with this index is queued. Resets the stream if the client
    /// may still send a body on it. Otherwise removes it.
    fn stream_done(&mut self, place: usize, actions: &mut impl Actions) {
        let Some(stream) = self.list.get_mut(place) else { return };
        if core::mem::take(&mut stream.is_unread) {
            stream.expect = stream::Expect::Reset(ErrorCode::NoError);
            return;
        }
        if let stream::Expect::Reset(_) = stream.expect {
            let id = stream.id;
            self.remember_reset(id);
        }
        self.forget(place, actions);
    }

    /// Removes a stream that the client has reset.
    pub(super) fn remove(&mut self, id: u32, actions: &mut impl Actions) {
        if let Some(place) = self.list.iter().position(|stream| stream.id == id) {
            self.forget(place, actions);
        }
    }

    /// Removes a stream that we reset, and records the reset.
    pub(super) fn reset(&mut self, id: u32, actions: &mut impl Actions) {
        self.remove(id, actions);
        self.remember_reset(id);
    }

    /// Removes all streams, since the connection is over.
    pub(super) fn all_left(&mut self, actions: &mut impl Actions) {
        for stream in core::mem::take(&mut self.list) {
            left(&stream, actions);
        }
    }

    /// Removes the stream with this index.
    fn forget(&mut self, place: usize, actions: &mut impl Actions) {
        if place < self.list.len() {
            left(&self.list.remove(place), actions);
        }
        if self.turn > place {
            self.turn -= 1;
        }
        if self.list.is_empty() && self.list.capacity() > STREAMS_KEPT {
            self.list = Vec::with_capacity(STREAMS_KEPT);
        }
    }

    fn remember_reset(&mut self, stream: u32) {
        self.reset.rotate_right(1);
        self.reset[0] = stream;
    }

    /// Whether we reset this stream recently.
    pub(super) fn was_reset(&self, stream: u32) -> bool {
        self.reset.contains(&stream)
    }
}

/// Gives back the admission and the open reply of a stream.
fn left(stream: &Stream, actions: &mut impl Actions) {
    stream.admitted().into_iter().for_each(|admission| admission.give_up(actions));
    stream.number().into_iter().for_each(|number| actions.left(number));
}
