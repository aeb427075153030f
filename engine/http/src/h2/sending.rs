//! The shared output of all streams: the window of the connection, its buffer space, and the frame
//! that is being sent.
//!
//! Invariants:
//! - A frame that was begun is completed before any other frame. The rest of the frame waits in
//!   [`StreamOutput::unsent`]. This rest is static bytes of a file, so it may stay there after its
//!   stream has ended.
//! - Bodies leave buffer space for the head of an answer. So a long body does not delay the heads
//!   of other answers.
//!
//! Implements: RFC 9113 sections 5.2, 6.1 and 6.9.

use http2::{ErrorCode, FRAME_BYTES_MAX, FRAME_HEAD_BYTES, FrameHead, FrameType, flags};

use super::flood_budget::{FloodBudget, FrameCost};
use super::response::{self, HEAD_FRAME_BYTES_MAX, ResponseStart};
use super::stream::{Expect, Stream};
use crate::actions::Actions;
use crate::outgoing::OutgoingBody;
use crate::outlet::Outlet;

/// The initial size of a window, in bytes.
const WINDOW_BYTES: i32 = 65_535;

/// The buffer space that bodies leave free, in bytes.
const RESERVED_BYTES: usize = HEAD_FRAME_BYTES_MAX + 128;

/// A body waits until there is space for this many bytes, so that it is not split into many short
/// frames.
const PART_BYTES_MIN: usize = 1024;

/// A DATA frame with fewer bytes is charged to the flood budget, unless it is the last one of the
/// body. Only a small window of the client makes a frame so short.
const DRIBBLE_BYTES: u32 = 256;

/// The output of the connection.
#[derive(Debug)]
pub(super) struct StreamOutput {
    /// The number of body bytes that the client accepts on all streams together.
    window: i32,
    /// The number of body bytes that the client accepts on a new stream.
    initial_window: i32,
    /// The part of the last frame that is not queued.
    unsent: &'static [u8],
    /// The number of body bytes sent since the last call of `has_moved`.
    moved: u32,
}

/// The result of letting a stream send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SendStep {
    /// The stream is over.
    Done,
    /// The stream has sent one frame.
    On,
    /// The stream has sent nothing, and waits for the client or the handler.
    Waits,
    /// The stream has sent nothing, since the connection has no buffer space.
    NoRoom,
}

impl StreamOutput {
    pub(super) fn new() -> StreamOutput {
        StreamOutput { window: WINDOW_BYTES, initial_window: WINDOW_BYTES, unsent: &[], moved: 0 }
    }

    pub(super) fn initial_window(&self) -> i32 {
        self.initial_window
    }

    /// Sets the initial window that the client asks for. Returns how much the window of every
    /// stream changes.
    pub(super) fn set_initial_window(&mut self, window: u32) -> i64 {
        let before = self.initial_window;
        self.initial_window = i32::try_from(window).unwrap_or(i32::MAX);
        i64::from(self.initial_window) - i64::from(before)
    }

    /// Opens the window of the connection by `bytes`. Errors: the window would exceed its maximum.
    pub(super) fn open_window(&mut self, bytes: u32) -> Result<(), ErrorCode> {
        self.window = widened(self.window, i64::from(bytes)).ok_or(ErrorCode::FlowControlError)?;
        Ok(())
    }

    /// Whether body bytes were sent since the last call.
    pub(super) fn has_moved(&mut self) -> bool {
        core::mem::take(&mut self.moved) > 0
    }

    /// Whether a frame was begun and is incomplete.
    pub(super) fn is_within_frame(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Whether there is space for any frame that is not a DATA frame.
    pub(super) fn has_room(&self, actions: &impl Outlet) -> bool {
        self.unsent.is_empty() && actions.send_room() >= HEAD_FRAME_BYTES_MAX
    }

    /// Queues the rest of the last frame. Returns false if a part of it is still left.
    pub(super) fn end_frame(&mut self, actions: &mut impl Outlet) -> bool {
        if !self.unsent.is_empty() {
            let sent = actions.send_static(self.unsent);
            self.unsent = self.unsent.get(sent..).unwrap_or_default();
            self.moved = self.moved.saturating_add(sent as u32);
        }
        self.unsent.is_empty()
    }

    /// Sends one frame of a stream. At the start of a response, sends the head together with the
    /// first DATA frame.
    ///
    /// Errors: the client makes us send too many tiny frames.
    pub(super) fn send(
        &mut self,
        stream: &mut Stream,
        flood_budget: &mut FloodBudget,
        actions: &mut impl Actions,
    ) -> Result<SendStep, ErrorCode> {
        let mut beginning = ResponseStart::new();
        match &mut stream.expect {
            Expect::Body { .. } | Expect::Turn(_) | Expect::Us(_) | Expect::Upload(_) => {
                return Ok(SendStep::Waits);
            }
            Expect::Room(_) | Expect::Window(OutgoingBody::Nothing) | Expect::Reset(_)
                if !self.has_room(actions) =>
            {
                return Ok(SendStep::NoRoom);
            }
            Expect::Room(answer) => {
                let outgoing = response::begin(stream.id, answer, &mut beginning, actions);
                flood_budget.answered();
                if outgoing.is_nothing() {
                    actions.send(&beginning);
                    return Ok(SendStep::Done);
                }
                stream.expect = Expect::Window(outgoing);
            }
            Expect::Window(OutgoingBody::Nothing) => {
                self.data(stream.id, &mut beginning, &[], flags::END_STREAM, actions);
                return Ok(SendStep::Done);
            }
            Expect::Reset(code) => {
                send_frame(FrameType::ResetStream, 0, stream.id, &code.bytes(), actions);
                return Ok(SendStep::Done);
            }
            Expect::Window(_) => {}
        }
        let is_begun = !beginning.is_empty();
        let step = self.send_body(stream, &mut beginning, flood_budget, actions)?;
        if !beginning.is_empty() {
            actions.send(&beginning);
        }
        Ok(if is_begun && step != SendStep::Done { SendStep::On } else { step })
    }

    /// Sends a DATA frame, if the windows and the buffer allow one. Static bytes are sent together
    /// with `beginning` (the head of the response), which is then empty. For any other body
    /// `beginning` is unchanged, and the caller sends it before the body.
    pub(super) fn send_body(
        &mut self,
        stream: &mut Stream,
        beginning: &mut ResponseStart,
        flood_budget: &mut FloodBudget,
        actions: &mut impl Actions,
    ) -> Result<SendStep, ErrorCode> {
        let Expect::Window(outgoing) = &mut stream.expect else { return Ok(SendStep::Waits) };
        if outgoing.is_silent() {
            outgoing.ask().into_iter().for_each(|number| actions.wanted(number));
            return Ok(SendStep::Waits);
        }
        let open = outgoing.open_reply();
        let window = self.window.min(stream.window).max(0) as usize;
        if window == 0 {
            return Ok(SendStep::Waits);
        }
        if let OutgoingBody::Bytes(bytes) = outgoing {
            let room = self.body_room(actions).saturating_sub(beginning.len());
            let wanted = bytes.len().min(window).min(FRAME_BYTES_MAX);
            if room < wanted.min(PART_BYTES_MIN) {
                return Ok(SendStep::NoRoom);
            }
            let (now, rest) = bytes.split_at(wanted.min(room));
            *bytes = rest;
            let is_last = rest.is_empty();
            stream.window -= now.len() as i32;
            self.data(
                stream.id,
                beginning,
                now,
                if is_last { flags::END_STREAM } else { 0 },
                actions,
            );
            self.account(now.len() as u32, is_last, flood_budget)?;
            return Ok(if is_last { SendStep::Done } else { SendStep::On });
        }
        if !beginning.is_empty() {
            return Ok(SendStep::On);
        }
        if self.body_room(actions) < PART_BYTES_MIN {
            return Ok(SendStep::NoRoom);
        }
        let before = stream.window;
        let mut parts =
            DataFrames { output: self, window: &mut stream.window, stream: stream.id, actions };
        let is_over = outgoing.send_on(&mut parts);
        let count = before.saturating_sub(stream.window) as u32;
        if is_over {
            open.into_iter().for_each(|open| actions.left(open.number));
        }
        // If the handler sets the pace of an open reply, short frames are not the client's fault.
        let is_handler_paced = open.is_some_and(|open| !open.is_paced_by_client());
        self.account(count, is_over || is_handler_paced, flood_budget)?;
        Ok(if count > 0 || is_over { SendStep::On } else { SendStep::Waits })
    }

    /// The buffer space for the payload of a DATA frame, in bytes.
    fn body_room(&self, actions: &impl Outlet) -> usize {
        let room = if self.unsent.is_empty() { actions.send_room() } else { 0 };
        room.saturating_sub(RESERVED_BYTES + FRAME_HEAD_BYTES)
    }

    /// Counts sent body bytes, and charges a short frame to the flood budget.
    fn account(
        &mut self,
        bytes: u32,
        is_last: bool,
        flood_budget: &mut FloodBudget,
    ) -> Result<(), ErrorCode> {
        self.moved = self.moved.saturating_add(bytes);
        flood_budget.sent(bytes);
        if bytes < DRIBBLE_BYTES && !is_last {
            flood_budget.pay(FrameCost::Nothing)
        } else {
            Ok(())
        }
    }

    /// Queues `beginning` and a DATA frame. `beginning` is empty afterwards.
    fn data(
        &mut self,
        stream: u32,
        beginning: &mut ResponseStart,
        bytes: &'static [u8],
        flags: u8,
        actions: &mut impl Outlet,
    ) {
        let length = bytes.len() as u32;
        self.window -= length as i32;
        let fits = beginning
            .extend_from_slice(&FrameHead { length, kind: FrameType::Data, flags, stream }.bytes());
        debug_assert!(fits.is_ok(), "the head of a frame fits after the head of any answer");
        let sent = actions.send_before(beginning, bytes);
        beginning.clear();
        self.unsent = bytes.get(sent..).unwrap_or_default();
        self.moved = self.moved.saturating_add(sent as u32);
    }
}

/// The window after it has grown by `by` bytes. `None` if it would exceed its maximum.
pub(super) fn widened(window: i32, by: i64) -> Option<i32> {
    i32::try_from(i64::from(window) + by).ok()
}

/// Queues a short frame, for which there is space.
pub(super) fn send_frame(
    kind: FrameType,
    flags: u8,
    stream: u32,
    payload: &[u8],
    actions: &mut impl Outlet,
) {
    let mut frame = heapless::Vec::<u8, { FRAME_HEAD_BYTES + 8 }>::new();
    frame.extend(FrameHead { length: payload.len() as u32, kind, flags, stream }.bytes());
    let fits = frame.extend_from_slice(payload);
    debug_assert!(fits.is_ok(), "the payload of a short frame has at most 8 bytes");
    actions.send(&frame);
}

/// An outlet that writes each piece as a DATA frame. It is used for parts of a file with their
/// heads, and for bytes of a handler.
struct DataFrames<'a, A> {
    output: &'a mut StreamOutput,
    window: &'a mut i32,
    stream: u32,
    actions: &'a mut A,
}

impl<A: Actions> Outlet for DataFrames<'_, A> {
    fn send_room(&self) -> usize {
        let window = self.output.window.min(*self.window).max(0) as usize;
        self.output.body_room(self.actions).min(window).min(FRAME_BYTES_MAX)
    }

    fn send(&mut self, bytes: &[u8]) {
        let length = bytes.len() as u32;
        self.output.window -= length as i32;
        *self.window -= length as i32;
        self.actions.send(
            &FrameHead { length, kind: FrameType::Data, flags: 0, stream: self.stream }.bytes(),
        );
        self.actions.send(bytes);
    }

    fn send_static(&mut self, bytes: &'static [u8]) -> usize {
        let count = bytes.len().min(self.send_room());
        if count > 0 {
            *self.window -= count as i32;
            let now = bytes.get(..count).unwrap_or_default();
            self.output.data(self.stream, &mut ResponseStart::new(), now, 0, self.actions);
        }
        count
    }
}
