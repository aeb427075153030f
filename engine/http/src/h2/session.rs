//! One HTTP/2 connection: its wait points, and its output when there is space.
//!
//! `frames.rs` and `requests.rs` handle frames. `streams/handler.rs` handles the requests for
//! handlers.
//!
//! Implements: RFC 9113 sections 3.4, 5.4, 6.8 and 9.1.

use http2::{Decoder, ErrorCode, FrameHead, FrameType, PREFACE, Setting, TABLE_BYTES_MAX};
use machine::Micros;

use super::flood_budget::FloodBudget;
use super::sending::{SendStep, StreamOutput, send_frame};
use super::stream::{STREAMS_MAX, Stream};
use super::streams::StreamList;
use crate::actions::Actions;
use crate::head::HEAD_BYTES_MAX;
use crate::open_reply::ReplyEnd;
use crate::reply::Reply;
use crate::session::{HttpWaitsFor, IDLE_TIMEOUT, REQUEST_TIMEOUT, RESPONSE_TIMEOUT};
use crate::upload::BodyAdmission;

/// The number of received body bytes after which the window of the connection is opened again: half
/// of its initial size.
const RECEIVED_BYTES: u32 = 32 * 1024;

/// The number of bytes that the server usually keeps for the connection of a browser.
const KEPT_BYTES_USUAL: usize = 4 * TABLE_BYTES_MAX;

/// The connection of one client. Its functions are not inlined, to keep the code path of HTTP/1.1
/// short: most connections use HTTP/1.1.
#[derive(Debug)]
pub struct Http2Session {
    pub(super) expect: Expect,
    waits_for: HttpWaitsFor,
    patience: TimeLimit,
    /// Whether only a part of a request head has arrived.
    pub(super) is_within_head: bool,
    /// Whether one side has announced that no more streams may be opened.
    pub(super) is_ending: bool,
    pub(super) decoder: Decoder,
    pub(super) output: StreamOutput,
    pub(super) flood_budget: FloodBudget,
    pub(super) streams: StreamList,
    /// The last stream that the client has opened.
    pub(super) last_stream: u32,
    /// The number of body bytes received since the window of the connection was last opened.
    pub(super) received: u32,
}

/// The event that the session waits for. Each variant is a wait point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Expect {
    /// The connection preface of the client.
    Preface,
    /// The client's settings, which must come before any other frame.
    Settings,
    /// Any frame.
    Frame,
    /// The rest of a DATA frame: bytes of the body, then bytes of padding.
    Body { stream: u32, bytes: u32, padding: u32, is_last: bool },
    /// The rest of a frame that is skipped.
    Rest(u32),
    /// The session is over.
    Closed,
}

/// The reason for the client's deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TimeLimit {
    Idle,
    Request,
    Response,
    /// The client waits for the handler.
    Us,
    /// The client reads open replies, which may be silent for this long.
    Silence(Micros),
}

impl TimeLimit {
    fn timeout(self) -> Option<Micros> {
        match self {
            TimeLimit::Idle => Some(IDLE_TIMEOUT),
            TimeLimit::Request => Some(REQUEST_TIMEOUT),
            TimeLimit::Response => Some(RESPONSE_TIMEOUT),
            TimeLimit::Us => None,
            TimeLimit::Silence(silence) => Some(silence),
        }
    }
}

/// The result of a handler function: the number of bytes that it took, and the next step.
pub(super) enum H2Progress {
    /// The function took this many bytes, and the next handler function may have work.
    AndGoOn(usize),
    /// The function took no bytes, and waits for this event.
    AndWait(HttpWaitsFor),
}

impl Http2Session {
    /// A client has connected. Sends our settings, and then waits for the client. If memory is
    /// short, the settings forbid the client a dynamic table.
    #[inline(never)]
    pub fn connected(actions: &mut impl Actions) -> Http2Session {
        let own = [
            Setting::ConcurrentStreamsMax(STREAMS_MAX as u32),
            Setting::ListBytesMax(HEAD_BYTES_MAX as u32),
            if actions.may_keep(size_of::<Http2Session>() + KEPT_BYTES_USUAL) {
                Setting::Other
            } else {
                Setting::TableBytes(0)
            },
        ];
        let settings = own.iter().filter_map(|setting| setting.bytes());
        let length = (settings.clone().count() * size_of::<[u8; 6]>()) as u32;
        let mut frame = heapless::Vec::<u8, 32>::new();
        frame.extend(FrameHead { length, kind: FrameType::Settings, flags: 0, stream: 0 }.bytes());
        settings.for_each(|setting| frame.extend(setting));
        actions.send(&frame);
        actions.set_deadline(Some(IDLE_TIMEOUT));
        Http2Session {
            expect: Expect::Preface,
            waits_for: HttpWaitsFor::Bytes,
            patience: TimeLimit::Idle,
            is_within_head: false,
            is_ending: false,
            decoder: Decoder::new(),
            output: StreamOutput::new(),
            flood_budget: FloodBudget::new(),
            streams: StreamList::new(),
            last_stream: 0,
            received: 0,
        }
    }

    /// The memory that the client makes the server keep, in bytes, including the session. Not
    /// included: the bodies of replies, and the memory that was admitted for request bodies.
    pub fn kept_bytes(&self) -> usize {
        size_of::<Http2Session>() + self.decoder.memory_bytes() + self.streams.kept_bytes()
    }

    /// Whether one more stream may be kept.
    pub(super) fn may_keep_stream(&self, actions: &impl Actions) -> bool {
        let growth = self.streams.growth_bytes();
        growth == 0 || actions.may_keep(self.kept_bytes() + growth)
    }

    /// Ends the connection, since the client makes the server keep more than its share of memory.
    #[cold]
    pub fn overdrawn(&mut self, actions: &mut impl Actions) {
        self.end(ErrorCode::EnhanceYourCalm, actions);
    }

    /// The event that must happen before it is useful to offer bytes.
    pub fn waits_for(&self) -> HttpWaitsFor {
        self.waits_for
    }

    /// Whether no request is in progress.
    pub fn is_between_requests(&self) -> bool {
        self.streams.is_empty()
    }

    /// Bytes have arrived, or there may be space now. Returns the number of bytes that the session
    /// took. Offer the rest again, with the bytes that follow it. The rest is at most
    /// [`crate::HEAD_BYTES_MAX`] bytes, unless the session waits for space or for the handler.
    #[inline(never)]
    pub fn bytes_arrived(&mut self, bytes: &[u8], actions: &mut impl Actions) -> usize {
        if self.expect == Expect::Closed {
            // All bytes are taken: unread bytes would make TCP send a reset, which could overtake
            // our last frames.
            return bytes.len();
        }
        let last_stream = self.last_stream;
        let mut taken = 0;
        loop {
            self.output.end_frame(actions);
            let rest = bytes.get(taken..).unwrap_or_default();
            let (count, result) = self.take(rest, actions);
            taken += count;
            match result.and_then(|waits_for| Ok((waits_for, self.send_on(actions)?))) {
                Ok((HttpWaitsFor::SendRoom, _) | (_, SendStep::NoRoom)) => {
                    self.waits_for = HttpWaitsFor::SendRoom
                }
                Ok((waits_for, _)) => self.waits_for = waits_for,
                Err(code) => {
                    self.end(code, actions);
                    return bytes.len();
                }
            }
            // A reply that the handler knows at once may be sent now, so the streams send again. If
            // no reply is known, the loop ends.
            if !(self.streams.has_waiting_requests() && self.streams.ask_next(actions)) {
                break;
            }
        }
        if self.streams.is_asking() && self.waits_for == HttpWaitsFor::Bytes {
            self.waits_for = HttpWaitsFor::Us;
        }
        if self.is_ending && self.streams.is_empty() && !self.output.is_within_frame() {
            self.close(actions);
            return bytes.len();
        }
        self.set_patience(self.last_stream != last_stream, actions);
        taken
    }

    /// Takes frames until the next frame is incomplete or must wait.
    fn take(
        &mut self,
        bytes: &[u8],
        actions: &mut impl Actions,
    ) -> (usize, Result<HttpWaitsFor, ErrorCode>) {
        let mut taken = 0;
        loop {
            match self.step(bytes.get(taken..).unwrap_or_default(), actions) {
                Ok(H2Progress::AndGoOn(count)) => taken += count,
                Ok(H2Progress::AndWait(waits_for)) => return (taken, Ok(waits_for)),
                Err(code) => return (taken, Err(code)),
            }
        }
    }

    fn step(&mut self, bytes: &[u8], actions: &mut impl Actions) -> Result<H2Progress, ErrorCode> {
        match self.expect {
            _ if bytes.is_empty() => Ok(H2Progress::AndWait(HttpWaitsFor::Bytes)),
            Expect::Preface => self.preface_arrived(bytes),
            Expect::Settings | Expect::Frame => self.frame_arrived(bytes, actions),
            Expect::Body { .. } => self.body_arrived(bytes, actions),
            Expect::Rest(left) => {
                let count = bytes.len().min(left as usize);
                let left = left - count as u32;
                self.expect = if left == 0 { Expect::Frame } else { Expect::Rest(left) };
                Ok(H2Progress::AndGoOn(count))
            }
            Expect::Closed => Ok(H2Progress::AndWait(HttpWaitsFor::Nothing)),
        }
    }

    fn preface_arrived(&mut self, bytes: &[u8]) -> Result<H2Progress, ErrorCode> {
        let count = bytes.len().min(PREFACE.len());
        if bytes.get(..count) != PREFACE.get(..count) {
            return Err(ErrorCode::ProtocolError);
        }
        if count < PREFACE.len() {
            return Ok(H2Progress::AndWait(HttpWaitsFor::Bytes));
        }
        self.expect = Expect::Settings;
        Ok(H2Progress::AndGoOn(count))
    }

    /// Lets the streams send in turn, one frame each, as far as windows and buffer space allow.
    fn send_on(&mut self, actions: &mut impl Actions) -> Result<SendStep, ErrorCode> {
        if !self.output.end_frame(actions) {
            return Ok(SendStep::NoRoom);
        }
        let has_reported_all = self.report_received(actions);
        let step = self.streams.send_on(&mut self.output, &mut self.flood_budget, actions)?;
        Ok(if has_reported_all { step } else { SendStep::NoRoom })
    }

    /// Opens the windows again for received bytes. Returns false if there is too little buffer
    /// space for all window updates.
    fn report_received(&mut self, actions: &mut impl Actions) -> bool {
        let is_due = self.received >= RECEIVED_BYTES;
        let has_room = !is_due || self.output.has_room(actions);
        if is_due && has_room {
            let increment = core::mem::take(&mut self.received).to_be_bytes();
            send_frame(FrameType::WindowUpdate, 0, 0, &increment, actions);
        }
        let has_reported_all = self.streams.open_windows(&self.output, actions);
        has_room && has_reported_all
    }

    /// Resets a stream with the error `code`.
    ///
    /// Errors: there is no space for the frame. That happens only after too many resets.
    pub(super) fn reset(
        &mut self,
        stream: u32,
        code: ErrorCode,
        actions: &mut impl Actions,
    ) -> Result<(), ErrorCode> {
        if !self.output.has_room(actions) {
            return Err(ErrorCode::EnhanceYourCalm);
        }
        self.streams.reset(stream, actions);
        send_frame(FrameType::ResetStream, 0, stream, &code.bytes(), actions);
        Ok(())
    }

    /// The number of bytes of replies that the session holds until the client has taken them.
    pub fn held_bytes(&self) -> usize {
        self.streams.held_bytes()
    }

    /// Takes the handler's reply to the request that is with the handler. The caller must then call
    /// [`Http2Session::bytes_arrived`], at least with an empty slice, to send the reply. If the
    /// client has reset the stream, the reply is dropped.
    #[cold]
    #[inline(never)]
    pub fn replied(&mut self, reply: Reply, actions: &mut impl Actions) {
        self.streams.replied(reply, actions);
        self.renew_patience(actions);
    }

    /// The handler admits the body of the request, up to the limit of `admission`. A longer body
    /// gets a 413 response. If `admission` has no number, the handler gets the complete body in its
    /// turn, by [`Actions::body_arrived`]. If it has a number, the handler gets pieces by
    /// [`Actions::piece_arrived`], and the last piece in its turn by [`Actions::pieces_ended`].
    #[cold]
    #[inline(never)]
    pub fn admitted(&mut self, admission: BodyAdmission, actions: &mut impl Actions) {
        self.streams.admitted(admission, actions);
        self.renew_patience(actions);
    }

    /// The handler has taken a piece of the body `number`, so more bytes may arrive.
    #[cold]
    #[inline(never)]
    pub fn piece_taken(&mut self, number: u64, actions: &mut impl Actions) {
        if self.streams.piece_taken(number, actions) {
            self.renew_patience(actions);
        }
    }

    /// Adds bytes from the handler to the open reply `number`. The caller must then call
    /// [`Http2Session::bytes_arrived`], at least with an empty slice, to send them.
    #[cold]
    #[inline(never)]
    pub fn continue_reply(&mut self, number: u64, bytes: &[u8]) {
        self.streams.continue_reply(number, bytes);
    }

    /// The handler ends the open reply `number`.
    #[cold]
    #[inline(never)]
    pub fn end_reply(&mut self, number: u64, end: ReplyEnd, actions: &mut impl Actions) {
        self.streams.end_reply(number, end, actions);
    }

    /// The deadline that was set last has expired.
    #[inline(never)]
    pub fn deadline_expired(&mut self, actions: &mut impl Actions) {
        match self.patience {
            TimeLimit::Silence(_) => {
                self.streams.signs_of_life_are_due();
                self.renew_patience(actions);
            }
            _ => self.end(ErrorCode::NoError, actions),
        }
    }

    /// The server is about to stop. Requests that have arrived are still answered.
    #[inline(never)]
    pub fn stopping(&mut self, actions: &mut impl Actions) {
        if self.expect == Expect::Closed || self.is_ending {
            return;
        }
        if self.streams.is_empty() {
            return self.end(ErrorCode::NoError, actions);
        }
        self.is_ending = true;
        self.streams.end_open_replies();
        if self.output.has_room(actions) {
            self.say_last(ErrorCode::NoError, actions);
        }
    }

    /// The client sends no more bytes, or the connection is lost.
    #[inline(never)]
    pub fn peer_closed(&mut self, actions: &mut impl Actions) {
        if self.expect != Expect::Closed {
            self.close(actions);
        }
    }

    /// Ends the connection, with a GOAWAY frame if there is space for one.
    fn end(&mut self, code: ErrorCode, actions: &mut impl Actions) {
        if self.expect == Expect::Closed {
            return;
        }
        if self.output.has_room(actions) {
            self.say_last(code, actions);
        }
        self.close(actions);
    }

    /// Sends GOAWAY.
    fn say_last(&self, code: ErrorCode, actions: &mut impl Actions) {
        let [s0, s1, s2, s3] = self.last_stream.to_be_bytes();
        let [c0, c1, c2, c3] = code.bytes();
        send_frame(FrameType::GoAway, 0, 0, &[s0, s1, s2, s3, c0, c1, c2, c3], actions);
    }

    fn close(&mut self, actions: &mut impl Actions) {
        self.expect = Expect::Closed;
        self.waits_for = HttpWaitsFor::Nothing;
        self.decoder = Decoder::new();
        self.streams.all_left(actions);
        actions.set_deadline(None);
        actions.close();
    }

    /// Gives the client the full time again, since the client had to wait for the handler.
    fn renew_patience(&mut self, actions: &mut impl Actions) {
        if self.expect != Expect::Closed {
            self.patience = self.patience_due();
            actions.set_deadline(self.patience.timeout());
        }
    }

    /// Sets the deadline for the client's next step. Single bytes do not extend it. Only progress
    /// does: the client takes a part of a response, or sends enough bytes of an admitted body.
    fn set_patience(&mut self, has_asked: bool, actions: &mut impl Actions) {
        let has_moved = self.output.has_moved();
        let has_upload_progress = self.streams.has_upload_progress();
        let patience = self.patience_due();
        let goes_on = match patience {
            TimeLimit::Idle => has_asked,
            TimeLimit::Request => has_upload_progress,
            TimeLimit::Response => has_moved || has_upload_progress,
            TimeLimit::Us | TimeLimit::Silence(_) => false,
        };
        if goes_on || patience != self.patience {
            self.patience = patience;
            actions.set_deadline(patience.timeout());
        }
    }

    fn patience_due(&self) -> TimeLimit {
        match () {
            () if self.streams.iter().any(Stream::waits_for_reader) => TimeLimit::Response,
            () if self.is_within_head => TimeLimit::Request,
            () if self.streams.iter().any(Stream::waits_for_body) => TimeLimit::Request,
            () if self.streams.iter().any(|stream| stream.silence().is_none()) => TimeLimit::Us,
            () => self.streams.silence().map_or(TimeLimit::Idle, TimeLimit::Silence),
        }
    }
}
