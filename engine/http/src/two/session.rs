//! One connection of HTTP/2: its waiting points, and what it sends when it may.
//!
//! What a frame does stands in `frames.rs` and `requests.rs` beside this, what a program is asked in `questions.rs`.
//!
//! Answers to: RFC 9113 sections 3.4, 5.4, 6.8 and 9.1.

use alloc::vec::Vec;

use http2::{Decoder, ErrorCode, FrameHead, Kind, PREFACE, Setting, TABLE_BYTES_MAX};
use machine::Micros;

use super::calm::Calm;
use super::sending::{Line, Step, send_frame};
use super::stream::{self, STREAMS_MAX, Stream};
use crate::actions::Actions;
use crate::head::HEAD_BYTES_MAX;
use crate::session::{IDLE_TIMEOUT, REQUEST_TIMEOUT, RESPONSE_TIMEOUT, WaitsFor};

/// Bytes of bodies that came before the client is told that more may come: half of what it may send unasked.
const RECEIVED_BYTES: u32 = 32 * 1024;

/// Streams whose memory is kept for the next ones.
const STREAMS_KEPT: usize = 4;

/// What a connection keeps that is used as browsers do.
const KEPT_BYTES_USUAL: usize = 4 * TABLE_BYTES_MAX;

/// Streams that we ended, and on which something may be on its way.
const RESET_STREAMS: usize = 8;

/// One client's connection. What happens to it is not inlined: most connections are of HTTP/1.1, and theirs is the shorter way.
#[derive(Debug)]
pub struct Session {
    pub(super) expect: Expect,
    waits_for: WaitsFor,
    patience: Patience,
    /// Whether a request's head has come in part.
    pub(super) is_within_head: bool,
    /// Whether no more streams are wanted, by either side.
    pub(super) is_ending: bool,
    pub(super) decoder: Decoder,
    pub(super) line: Line,
    pub(super) calm: Calm,
    /// Those that wait, the oldest first.
    pub(super) streams: Vec<Stream>,
    /// Whose turn it is.
    turn: usize,
    /// The last stream that the client has begun.
    pub(super) last_stream: u32,
    /// The last ones that we ended before their time.
    reset: [u32; RESET_STREAMS],
    /// Bytes of bodies that came since the client was told that more may come.
    pub(super) received: u32,
    /// The stream whose question is with the program; it may be over since.
    pub(super) asking: Option<u32>,
    /// Whether a question may wait for its turn.
    pub(super) has_questions: bool,
    /// Whether enough of a body that is wanted has come for its sender to have all of the time again.
    pub(super) has_brought: bool,
    /// Whether somebody may be told to send more of one.
    pub(super) has_untold: bool,
}

/// What the session waits for. One variant a waiting point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Expect {
    /// What a client begins with.
    Preface,
    /// Its settings, which come before anything else.
    Settings,
    /// Any frame.
    Frame,
    /// The rest of a frame with a part of a body: bytes of it, and of padding behind them.
    Body { stream: u32, bytes: u32, padding: u32, is_last: bool },
    /// The rest of a frame that nobody looks at.
    Rest(u32),
    /// Nothing any more.
    Closed,
}

/// What the client has time for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Patience {
    Idle,
    Request,
    Response,
    /// It waits for us.
    Us,
    /// It listens to replies that stay open: so long they may be silent.
    Silence(Micros),
}

impl Patience {
    fn timeout(self) -> Option<Micros> {
        match self {
            Patience::Idle => Some(IDLE_TIMEOUT),
            Patience::Request => Some(REQUEST_TIMEOUT),
            Patience::Response => Some(RESPONSE_TIMEOUT),
            Patience::Us => None,
            Patience::Silence(silence) => Some(silence),
        }
    }
}

/// What a handler has done with the bytes that it was given.
pub(super) enum Taken {
    /// So many bytes; there may be work for the next handler.
    AndGoOn(usize),
    /// None: it wants more of them, or room.
    AndWait(WaitsFor),
}

impl Session {
    /// A client has connected, and is told what we take. It speaks next. Where memory is short, it
    /// is told that we keep nothing of its fields from one request to the next.
    #[inline(never)]
    pub fn connected(actions: &mut impl Actions) -> Session {
        let own = [
            Setting::ConcurrentStreamsMax(STREAMS_MAX as u32),
            Setting::ListBytesMax(HEAD_BYTES_MAX as u32),
            if actions.may_keep(size_of::<Session>() + KEPT_BYTES_USUAL) {
                Setting::Other
            } else {
                Setting::TableBytes(0)
            },
        ];
        let settings = own.iter().filter_map(|setting| setting.bytes());
        let length = (settings.clone().count() * size_of::<[u8; 6]>()) as u32;
        let mut said = heapless::Vec::<u8, 32>::new();
        said.extend(FrameHead { length, kind: Kind::Settings, flags: 0, stream: 0 }.bytes());
        settings.for_each(|setting| said.extend(setting));
        actions.send(&said);
        actions.set_deadline(Some(IDLE_TIMEOUT));
        Session {
            expect: Expect::Preface,
            waits_for: WaitsFor::Bytes,
            patience: Patience::Idle,
            is_within_head: false,
            is_ending: false,
            decoder: Decoder::new(),
            line: Line::new(),
            calm: Calm::new(),
            streams: Vec::new(),
            turn: 0,
            last_stream: 0,
            reset: [0; RESET_STREAMS],
            received: 0,
            asking: None,
            has_questions: false,
            has_brought: false,
            has_untold: false,
        }
    }

    /// Bytes of memory that the client makes us keep, the session itself counted in, but for the
    /// bodies of replies and what was admitted of the bodies of requests.
    pub fn kept_bytes(&self) -> usize {
        let streams = self.streams.capacity() * size_of::<Stream>();
        let of_streams = self.streams.iter().map(Stream::kept_bytes).sum::<usize>();
        size_of::<Session>() + self.decoder.memory_bytes() + streams + of_streams
    }

    /// Whether one more stream may be remembered.
    pub(super) fn may_keep_stream(&self, actions: &impl Actions) -> bool {
        let growth = self.streams.capacity().max(STREAMS_KEPT) * size_of::<Stream>();
        self.streams.len() < self.streams.capacity() || actions.may_keep(self.kept_bytes() + growth)
    }

    /// The client makes us keep more than its share: the connection ends.
    #[cold]
    pub fn overdrawn(&mut self, actions: &mut impl Actions) {
        self.end(ErrorCode::EnhanceYourCalm, actions);
    }

    /// What must happen before bytes are worth offering.
    pub fn waits_for(&self) -> WaitsFor {
        self.waits_for
    }

    /// Whether no request is under way.
    pub fn is_between_requests(&self) -> bool {
        self.streams.is_empty()
    }

    /// Bytes have arrived, or there may be room now. Returns how many bytes were taken; the rest is to be offered again, with what follows it. The rest
    /// is never more than [`crate::HEAD_BYTES_MAX`] bytes, unless the session waits for room or for us.
    #[inline(never)]
    pub fn bytes_arrived(&mut self, bytes: &[u8], actions: &mut impl Actions) -> usize {
        if self.expect == Expect::Closed {
            // Unread bytes would make TCP answer by a reset, which could overtake what was said.
            return bytes.len();
        }
        let last_stream = self.last_stream;
        self.line.end_frame(actions);
        let (taken, result) = self.take(bytes, actions);
        match result.and_then(|waits_for| Ok((waits_for, self.send_on(actions)?))) {
            Ok((WaitsFor::SendRoom, _) | (_, Step::NoRoom)) => self.waits_for = WaitsFor::SendRoom,
            Ok((waits_for, _)) => self.waits_for = waits_for,
            Err(code) => {
                self.end(code, actions);
                return bytes.len();
            }
        }
        if self.has_questions {
            self.ask_next(actions);
        }
        if self.asking.is_some() && self.waits_for == WaitsFor::Bytes {
            self.waits_for = WaitsFor::Us;
        }
        if self.is_ending && self.streams.is_empty() && !self.line.is_within_frame() {
            self.close(actions);
            return bytes.len();
        }
        self.set_patience(self.last_stream != last_stream, actions);
        taken
    }

    /// Takes frames as long as there are whole ones.
    fn take(&mut self, bytes: &[u8], actions: &mut impl Actions) -> (usize, Result<WaitsFor, ErrorCode>) {
        let mut taken = 0;
        loop {
            match self.step(bytes.get(taken..).unwrap_or_default(), actions) {
                Ok(Taken::AndGoOn(count)) => taken += count,
                Ok(Taken::AndWait(waits_for)) => return (taken, Ok(waits_for)),
                Err(code) => return (taken, Err(code)),
            }
        }
    }

    fn step(&mut self, bytes: &[u8], actions: &mut impl Actions) -> Result<Taken, ErrorCode> {
        match self.expect {
            _ if bytes.is_empty() => Ok(Taken::AndWait(WaitsFor::Bytes)),
            Expect::Preface => self.preface_arrived(bytes),
            Expect::Settings | Expect::Frame => self.frame_arrived(bytes, actions),
            Expect::Body { .. } => self.body_arrived(bytes, actions),
            Expect::Rest(left) => {
                let count = bytes.len().min(left as usize);
                let left = left - count as u32;
                self.expect = if left == 0 { Expect::Frame } else { Expect::Rest(left) };
                Ok(Taken::AndGoOn(count))
            }
            Expect::Closed => Ok(Taken::AndWait(WaitsFor::Nothing)),
        }
    }

    fn preface_arrived(&mut self, bytes: &[u8]) -> Result<Taken, ErrorCode> {
        let count = bytes.len().min(PREFACE.len());
        if bytes.get(..count) != PREFACE.get(..count) {
            return Err(ErrorCode::ProtocolError);
        }
        if count < PREFACE.len() {
            return Ok(Taken::AndWait(WaitsFor::Bytes));
        }
        self.expect = Expect::Settings;
        Ok(Taken::AndGoOn(count))
    }

    /// Sends what streams have, each a frame in its turn, as far as windows and room go.
    fn send_on(&mut self, actions: &mut impl Actions) -> Result<Step, ErrorCode> {
        if !self.line.end_frame(actions) {
            return Ok(Step::NoRoom);
        }
        let is_told = self.tell_of_received(actions);
        let mut in_vain = 0;
        while in_vain < self.streams.len() {
            self.turn %= self.streams.len();
            let Some(stream) = self.streams.get_mut(self.turn) else { break };
            let step = self.line.send(stream, &mut self.calm, actions)?;
            match step {
                Step::Done => self.stream_done(self.turn, actions),
                Step::On => (in_vain, self.turn) = (0, self.turn + 1),
                Step::Waits => (in_vain, self.turn) = (in_vain + 1, self.turn + 1),
                Step::NoRoom => return Ok(Step::NoRoom),
            }
            if self.line.is_within_frame() {
                return Ok(Step::NoRoom);
            }
        }
        Ok(if is_told { Step::Waits } else { Step::NoRoom })
    }

    /// Lets the client send more, whatever its bytes were for. False: there is no room to say so.
    fn tell_of_received(&mut self, actions: &mut impl Actions) -> bool {
        let is_due = self.received >= RECEIVED_BYTES;
        let has_room = !is_due || self.line.has_room(actions);
        if is_due && has_room {
            let increment = core::mem::take(&mut self.received).to_be_bytes();
            send_frame(Kind::WindowUpdate, 0, 0, &increment, actions);
        }
        if self.has_untold {
            self.open_windows(actions);
        }
        has_room && !self.has_untold
    }

    /// All of the answer to the stream at this place is queued. If the client may still send on it, it is told that nobody listens.
    fn stream_done(&mut self, place: usize, actions: &mut impl Actions) {
        let Some(stream) = self.streams.get_mut(place) else { return };
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

    /// The stream at this place is over.
    pub(super) fn forget(&mut self, place: usize, actions: &mut impl Actions) {
        if place < self.streams.len() {
            Session::stream_left(&self.streams.remove(place), actions);
        }
        if self.turn > place {
            self.turn -= 1;
        }
        if self.streams.is_empty() && self.streams.capacity() > STREAMS_KEPT {
            self.streams = Vec::with_capacity(STREAMS_KEPT);
        }
    }

    /// What was held or open for a stream is not any more.
    fn stream_left(stream: &Stream, actions: &mut impl Actions) {
        stream.admitted().into_iter().for_each(|admission| admission.give_up(actions));
        stream.number().into_iter().for_each(|number| actions.left(number));
    }

    /// Ends a stream, and says why.
    ///
    /// Errors: there is no room to say so, or it happens too often.
    pub(super) fn reset(&mut self, stream: u32, code: ErrorCode, actions: &mut impl Actions) -> Result<(), ErrorCode> {
        if !self.line.has_room(actions) {
            return Err(ErrorCode::EnhanceYourCalm);
        }
        if let Some(place) = self.streams.iter().position(|waiting| waiting.id == stream) {
            self.forget(place, actions);
        }
        self.remember_reset(stream);
        send_frame(Kind::ResetStream, 0, stream, &code.bytes(), actions);
        Ok(())
    }

    fn remember_reset(&mut self, stream: u32) {
        self.reset.rotate_right(1);
        self.reset[0] = stream;
    }

    /// Whether we ended this stream not long ago.
    pub(super) fn was_reset(&self, stream: u32) -> bool {
        self.reset.contains(&stream)
    }

    /// The time that was last set is up.
    #[inline(never)]
    pub fn deadline_expired(&mut self, actions: &mut impl Actions) {
        match self.patience {
            Patience::Silence(_) => self.signs_of_life_are_due(actions),
            _ => self.end(ErrorCode::NoError, actions),
        }
    }

    /// The server is about to go away. What was asked for is still answered.
    #[inline(never)]
    pub fn stopping(&mut self, actions: &mut impl Actions) {
        if self.expect == Expect::Closed || self.is_ending {
            return;
        }
        if self.streams.is_empty() {
            return self.end(ErrorCode::NoError, actions);
        }
        self.is_ending = true;
        self.end_open_replies();
        if self.line.has_room(actions) {
            self.say_last(ErrorCode::NoError, actions);
        }
    }

    /// The client will send no more, or the connection is lost.
    #[inline(never)]
    pub fn peer_closed(&mut self, actions: &mut impl Actions) {
        if self.expect != Expect::Closed {
            self.close(actions);
        }
    }

    /// Ends the connection, and says why if that can be said.
    fn end(&mut self, code: ErrorCode, actions: &mut impl Actions) {
        if self.expect == Expect::Closed {
            return;
        }
        if self.line.has_room(actions) {
            self.say_last(code, actions);
        }
        self.close(actions);
    }

    fn say_last(&self, code: ErrorCode, actions: &mut impl Actions) {
        let [s0, s1, s2, s3] = self.last_stream.to_be_bytes();
        let [c0, c1, c2, c3] = code.bytes();
        send_frame(Kind::GoAway, 0, 0, &[s0, s1, s2, s3, c0, c1, c2, c3], actions);
    }

    fn close(&mut self, actions: &mut impl Actions) {
        self.expect = Expect::Closed;
        self.waits_for = WaitsFor::Nothing;
        self.decoder = Decoder::new();
        for stream in core::mem::take(&mut self.streams) {
            Session::stream_left(&stream, actions);
        }
        actions.set_deadline(None);
        actions.close();
    }

    /// The client has all of its time again: it had to wait for us.
    pub(super) fn renew_patience(&mut self, actions: &mut impl Actions) {
        if self.expect != Expect::Closed {
            self.patience = self.patience_due();
            actions.set_deadline(self.patience.timeout());
        }
    }

    /// The client has time for what it is to do next: what it trickles prolongs none but what takes an answer on, or brings much of a body that is wanted.
    fn set_patience(&mut self, has_asked: bool, actions: &mut impl Actions) {
        let has_moved = self.line.has_moved();
        let has_brought = core::mem::take(&mut self.has_brought);
        let patience = self.patience_due();
        let goes_on = match patience {
            Patience::Idle => has_asked,
            Patience::Request => has_brought,
            Patience::Response => has_moved || has_brought,
            Patience::Us | Patience::Silence(_) => false,
        };
        if goes_on || patience != self.patience {
            self.patience = patience;
            actions.set_deadline(patience.timeout());
        }
    }

    fn patience_due(&self) -> Patience {
        match () {
            () if self.streams.iter().any(Stream::is_to_be_taken) => Patience::Response,
            () if self.is_within_head => Patience::Request,
            () if self.streams.iter().any(Stream::is_to_be_sent) => Patience::Request,
            () if self.streams.iter().any(|stream| stream.silence().is_none()) => Patience::Us,
            () => self.silence().map_or(Patience::Idle, Patience::Silence),
        }
    }
}
