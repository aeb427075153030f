//! One connection of HTTP/2: its waiting points, and what it sends when it may.
//!
//! What a frame does stands in `frames.rs` and `requests.rs` beside this, what a program is asked in `questions.rs`.
//!
//! Answers to: RFC 9113 sections 3.4, 5.4, 6.8 and 9.1.

use http2::{Decoder, ErrorCode, FrameHead, Kind, PREFACE, Setting, TABLE_BYTES_MAX};
use machine::Micros;

use super::calm::Calm;
use super::sending::{Line, Step, send_frame};
use super::stream::{STREAMS_MAX, Stream};
use super::streams::StreamList;
use crate::actions::Actions;
use crate::head::HEAD_BYTES_MAX;
use crate::open_reply::End;
use crate::reply::Reply;
use crate::session::{IDLE_TIMEOUT, REQUEST_TIMEOUT, RESPONSE_TIMEOUT, WaitsFor};
use crate::upload::Admission;

/// Bytes of bodies that came before the client is told that more may come: half of what it may send unasked.
const RECEIVED_BYTES: u32 = 32 * 1024;

/// What a connection keeps that is used as browsers do.
const KEPT_BYTES_USUAL: usize = 4 * TABLE_BYTES_MAX;

/// One client's connection. What happens to it is not inlined: most connections are of HTTP/1.1, and theirs is the shorter way.
#[derive(Debug)]
pub struct Http2Session {
    pub(super) expect: Expect,
    waits_for: WaitsFor,
    patience: TimeLimit,
    /// Whether a request's head has come in part.
    pub(super) is_within_head: bool,
    /// Whether no more streams are wanted, by either side.
    pub(super) is_ending: bool,
    pub(super) decoder: Decoder,
    pub(super) line: Line,
    pub(super) calm: Calm,
    pub(super) streams: StreamList,
    /// The last stream that the client has begun.
    pub(super) last_stream: u32,
    /// Bytes of bodies that came since the client was told that more may come.
    pub(super) received: u32,
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
enum TimeLimit {
    Idle,
    Request,
    Response,
    /// It waits for us.
    Us,
    /// It listens to replies that stay open: so long they may be silent.
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

/// What a handler has done with the bytes that it was given.
pub(super) enum Taken {
    /// So many bytes; there may be work for the next handler.
    AndGoOn(usize),
    /// None: it wants more of them, or room.
    AndWait(WaitsFor),
}

impl Http2Session {
    /// A client has connected, and is told what we take. It speaks next. Where memory is short, it
    /// is told that we keep nothing of its fields from one request to the next.
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
        let mut said = heapless::Vec::<u8, 32>::new();
        said.extend(FrameHead { length, kind: Kind::Settings, flags: 0, stream: 0 }.bytes());
        settings.for_each(|setting| said.extend(setting));
        actions.send(&said);
        actions.set_deadline(Some(IDLE_TIMEOUT));
        Http2Session {
            expect: Expect::Preface,
            waits_for: WaitsFor::Bytes,
            patience: TimeLimit::Idle,
            is_within_head: false,
            is_ending: false,
            decoder: Decoder::new(),
            line: Line::new(),
            calm: Calm::new(),
            streams: StreamList::new(),
            last_stream: 0,
            received: 0,
        }
    }

    /// Bytes of memory that the client makes us keep, the session itself counted in, but for the
    /// bodies of replies and what was admitted of the bodies of requests.
    pub fn kept_bytes(&self) -> usize {
        size_of::<Http2Session>() + self.decoder.memory_bytes() + self.streams.kept_bytes()
    }

    /// Whether one more stream may be remembered.
    pub(super) fn may_keep_stream(&self, actions: &impl Actions) -> bool {
        let growth = self.streams.growth_bytes();
        growth == 0 || actions.may_keep(self.kept_bytes() + growth)
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
        if self.streams.has_questions() {
            self.streams.ask_next(actions);
        }
        if self.streams.is_asking() && self.waits_for == WaitsFor::Bytes {
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
    fn take(
        &mut self,
        bytes: &[u8],
        actions: &mut impl Actions,
    ) -> (usize, Result<WaitsFor, ErrorCode>) {
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
        let step = self.streams.send_on(&mut self.line, &mut self.calm, actions)?;
        Ok(if is_told { step } else { Step::NoRoom })
    }

    /// Lets the client send more, whatever its bytes were for. False: there is no room to say so.
    fn tell_of_received(&mut self, actions: &mut impl Actions) -> bool {
        let is_due = self.received >= RECEIVED_BYTES;
        let has_room = !is_due || self.line.has_room(actions);
        if is_due && has_room {
            let increment = core::mem::take(&mut self.received).to_be_bytes();
            send_frame(Kind::WindowUpdate, 0, 0, &increment, actions);
        }
        let has_told_all = self.streams.open_windows(&self.line, actions);
        has_room && has_told_all
    }

    /// Ends a stream, and says why.
    ///
    /// Errors: there is no room to say so, or it happens too often.
    pub(super) fn reset(
        &mut self,
        stream: u32,
        code: ErrorCode,
        actions: &mut impl Actions,
    ) -> Result<(), ErrorCode> {
        if !self.line.has_room(actions) {
            return Err(ErrorCode::EnhanceYourCalm);
        }
        self.streams.reset(stream, actions);
        send_frame(Kind::ResetStream, 0, stream, &code.bytes(), actions);
        Ok(())
    }

    /// Bytes of replies that the session holds until the client has taken them.
    pub fn held_bytes(&self) -> usize {
        self.streams.held_bytes()
    }

    /// This is the answer to what was asked. It goes out when the session is offered bytes, or none. Who has asked may have taken his question back.
    #[cold]
    #[inline(never)]
    pub fn replied(&mut self, reply: Reply, actions: &mut impl Actions) {
        self.streams.replied(reply, actions);
        self.renew_patience(actions);
    }

    /// The body of what was asked is wanted, up to so many bytes of it; a longer one is answered by 413. It is handed over by [`Actions::body_arrived`] when it is there, and its turn
    /// has come; or as it comes, if the admission has a number, by [`Actions::piece_arrived`], and its end by [`Actions::pieces_ended`] in its turn.
    #[cold]
    #[inline(never)]
    pub fn admitted(&mut self, admission: Admission, actions: &mut impl Actions) {
        self.streams.admitted(admission, actions);
        self.renew_patience(actions);
    }

    /// The program has taken a piece of the body with this number: more may come.
    #[cold]
    #[inline(never)]
    pub fn piece_taken(&mut self, number: u64, actions: &mut impl Actions) {
        if self.streams.piece_taken(number, actions) {
            self.renew_patience(actions);
        }
    }

    /// The program says more on the open reply with this number. It goes out when the session is offered bytes, or none.
    #[cold]
    #[inline(never)]
    pub fn fed(&mut self, number: u64, bytes: &[u8]) {
        self.streams.fed(number, bytes);
    }

    /// The program says no more on it.
    #[cold]
    #[inline(never)]
    pub fn fed_up(&mut self, number: u64, end: End, actions: &mut impl Actions) {
        self.streams.fed_up(number, end, actions);
    }

    /// The time that was last set is up.
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
        self.streams.end_open_replies();
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
        self.streams.all_left(actions);
        actions.set_deadline(None);
        actions.close();
    }

    /// The client has all of its time again: it had to wait for us.
    fn renew_patience(&mut self, actions: &mut impl Actions) {
        if self.expect != Expect::Closed {
            self.patience = self.patience_due();
            actions.set_deadline(self.patience.timeout());
        }
    }

    /// The client has time for what it is to do next: what it trickles prolongs none but what takes an answer on, or brings much of a body that is wanted.
    fn set_patience(&mut self, has_asked: bool, actions: &mut impl Actions) {
        let has_moved = self.line.has_moved();
        let has_brought = self.streams.has_brought();
        let patience = self.patience_due();
        let goes_on = match patience {
            TimeLimit::Idle => has_asked,
            TimeLimit::Request => has_brought,
            TimeLimit::Response => has_moved || has_brought,
            TimeLimit::Us | TimeLimit::Silence(_) => false,
        };
        if goes_on || patience != self.patience {
            self.patience = patience;
            actions.set_deadline(patience.timeout());
        }
    }

    fn patience_due(&self) -> TimeLimit {
        match () {
            () if self.streams.iter().any(Stream::is_to_be_taken) => TimeLimit::Response,
            () if self.is_within_head => TimeLimit::Request,
            () if self.streams.iter().any(Stream::is_to_be_sent) => TimeLimit::Request,
            () if self.streams.iter().any(|stream| stream.silence().is_none()) => TimeLimit::Us,
            () => self.streams.silence().map_or(TimeLimit::Idle, TimeLimit::Silence),
        }
    }
}
