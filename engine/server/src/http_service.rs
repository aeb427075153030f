//! HTTP served, in either version: what a session wants done, done to the connection and the site.
//!
//! The bytes of a file are never copied: the connection's segments point into the packed site; unless they are sealed on their way.

mod asking;
mod passwords;
mod webmail;

use alloc::boxed::Box;
use alloc::vec::Vec;

use budget::Charge;
use channel::{Class, Ticket};
use connections::{Caller, Channel};
use http::{Admission, DATE_BYTES, End, Exchange, Method, Question, Remembered, Reply, Secrecy, Site, Status};
use machine::{Micros, Piece};
use tls::Text;

use crate::certificates::{CERTIFICATE_PATH, METHODS, Upload};
use crate::common::Common;
use crate::links::Message;
use crate::session::WaitsFor;
use crate::sizes::KEPT_BYTES_LEAST;

use asking::Errand;

/// Bytes of responses that a client may leave unread before its next request is looked at: so those who never read cannot
/// have all the memory.
const UNREAD_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a file that are queued as one piece.
const PIECE_BYTES: usize = 32 * 1024;

/// Bytes of a target that are logged.
const LOGGED_BYTES_MAX: usize = 200;

/// One HTTP connection.
pub(crate) struct Conversation {
    session: Session,
    /// What the question waits for that the session has asked, if it waits here.
    errand: Option<Box<Errand>>,
    /// Bytes of replies that the session held when somebody last looked, while it held some.
    held: usize,
    /// What it makes the server keep beside them.
    charge: Charge,
}

/// What is spoken on it, as both sides have agreed.
pub(crate) enum Session {
    /// HTTP/1.1.
    One(http::Session),
    /// HTTP/2. It remembers more.
    Two(Box<http::two::Http2Session>),
}

impl Session {
    pub(crate) fn bytes_arrived(&mut self, bytes: &[u8], hands: &mut Hands<'_>) -> usize {
        match self {
            Session::One(session) => session.bytes_arrived(bytes, hands),
            Session::Two(session) => session.bytes_arrived(bytes, hands),
        }
    }

    pub(crate) fn deadline_expired(&mut self, hands: &mut Hands<'_>) {
        match self {
            Session::One(session) => session.deadline_expired(hands),
            Session::Two(session) => session.deadline_expired(hands),
        }
    }

    fn replied(&mut self, reply: Reply, hands: &mut Hands<'_>) {
        match self {
            Session::One(session) => session.replied(reply, hands),
            Session::Two(session) => session.replied(reply, hands),
        }
    }

    fn admitted(&mut self, admission: Admission, hands: &mut Hands<'_>) {
        match self {
            Session::One(session) => session.admitted(admission, hands),
            Session::Two(session) => session.admitted(admission, hands),
        }
    }

    fn piece_taken(&mut self, number: u64, hands: &mut Hands<'_>) {
        match self {
            Session::One(session) => session.piece_taken(number, hands),
            Session::Two(session) => session.piece_taken(number, hands),
        }
    }

    fn fed(&mut self, number: u64, bytes: &[u8]) {
        match self {
            Session::One(session) => session.fed(number, bytes),
            Session::Two(session) => session.fed(number, bytes),
        }
    }

    fn fed_up(&mut self, number: u64, end: End, hands: &mut Hands<'_>) {
        match self {
            Session::One(session) => session.fed_up(number, end, hands),
            Session::Two(session) => session.fed_up(number, end, hands),
        }
    }

    /// Bytes of memory that it takes on the heap, but for the bodies of requests and replies.
    fn kept_bytes(&self) -> usize {
        match self {
            Session::One(session) => session.kept_bytes(),
            Session::Two(session) => session.kept_bytes(),
        }
    }

    fn overdrawn(&mut self, hands: &mut Hands<'_>) {
        match self {
            Session::One(session) => session.overdrawn(hands),
            Session::Two(session) => session.overdrawn(hands),
        }
    }

    fn held_bytes(&self) -> usize {
        match self {
            Session::One(session) => session.held_bytes(),
            Session::Two(session) => session.held_bytes(),
        }
    }

    pub(crate) fn stopping(&mut self, hands: &mut Hands<'_>) {
        match self {
            Session::One(session) => session.stopping(hands),
            Session::Two(session) => session.stopping(hands),
        }
    }

    pub(crate) fn peer_closed(&mut self, hands: &mut Hands<'_>) {
        match self {
            Session::One(session) => session.peer_closed(hands),
            Session::Two(session) => session.peer_closed(hands),
        }
    }
}

impl Conversation {
    /// A client has connected.
    pub(crate) fn begin(caller: Caller, common: &mut Common) -> Conversation {
        Conversation::with_session(UNREAD_BYTES_MAX, caller, common, |hands| {
            Session::One(http::Session::connected(hands))
        })
    }

    /// A client has connected that would rather speak HTTP/2.
    pub(crate) fn begin_two(caller: Caller, common: &mut Common) -> Conversation {
        Conversation::with_session(usize::MAX, caller, common, |hands| {
            Session::Two(Box::new(http::two::Http2Session::connected(hands)))
        })
    }

    fn with_session(
        unread_bytes_max: usize,
        caller: Caller,
        common: &mut Common,
        begin: impl FnOnce(&mut Hands<'_>) -> Session,
    ) -> Conversation {
        let (mut errand, charge) = (None, Charge::new(KEPT_BYTES_LEAST));
        let session = begin(&mut Hands { common, caller, errand: &mut errand, charge: &charge, unread_bytes_max });
        let mut conversation = Conversation { session, errand, held: 0, charge };
        conversation.settle(caller, common);
        conversation
    }

    pub(crate) fn waits_for(&self) -> WaitsFor {
        let waits_for = match &self.session {
            Session::One(session) => session.waits_for(),
            Session::Two(session) => session.waits_for(),
        };
        match waits_for {
            http::WaitsFor::Bytes => WaitsFor::Bytes,
            http::WaitsFor::SendRoom => WaitsFor::SendRoom,
            http::WaitsFor::Us => WaitsFor::Us,
            http::WaitsFor::Nothing => WaitsFor::Nothing,
        }
    }

    /// Whether no request is under way.
    pub(crate) fn is_between_requests(&self) -> bool {
        match &self.session {
            Session::One(session) => session.is_between_requests(),
            Session::Two(session) => session.is_between_requests(),
        }
    }

    /// Lets the session act.
    pub(crate) fn with<R>(
        &mut self,
        caller: Caller,
        common: &mut Common,
        act: impl FnOnce(&mut Session, &mut Hands<'_>) -> R,
    ) -> R {
        let done = self.let_act(caller, common, act);
        self.settle(caller, common);
        if self.held > 0 {
            self.count_held(common);
        }
        done
    }

    fn let_act<R>(
        &mut self,
        caller: Caller,
        common: &mut Common,
        act: impl FnOnce(&mut Session, &mut Hands<'_>) -> R,
    ) -> R {
        // A stream that waits for room must not keep others from being answered: each takes its
        // part of all that there is.
        let unread_bytes_max = if let Session::One(_) = self.session { UNREAD_BYTES_MAX } else { usize::MAX };
        let Conversation { session, errand, charge, .. } = self;
        act(session, &mut Hands { common, caller, errand, charge, unread_bytes_max })
    }

    /// Charges what the client makes the server keep now. A client with more than its share is told
    /// so, and goes.
    #[inline]
    fn settle(&mut self, caller: Caller, common: &mut Common) {
        let kept = self.kept_bytes();
        if kept != self.charge.bytes() && common.memory.charge(&mut self.charge, caller.address, kept).is_err() {
            self.is_overdrawn(caller, common);
        }
    }

    #[cold]
    #[inline(never)]
    fn is_overdrawn(&mut self, caller: Caller, common: &mut Common) {
        self.let_act(caller, common, |session, hands| session.overdrawn(hands));
        let kept = self.kept_bytes();
        if common.memory.charge(&mut self.charge, caller.address, kept).is_err() {
            common.connections.reset(caller.connection);
        }
    }

    fn kept_bytes(&self) -> usize {
        self.session.kept_bytes() + kept_for(self.errand.as_deref())
    }

    /// Bytes that the client makes the server keep and that are not charged to it.
    pub(crate) fn uncharged(&self) -> usize {
        self.kept_bytes().saturating_sub(self.charge.bytes())
    }

    /// What the client makes the server keep.
    pub(crate) fn charge(&self) -> &Charge {
        &self.charge
    }
}

/// Bytes of memory of what a question waits for.
fn kept_for(errand: Option<&Errand>) -> usize {
    errand.map_or(0, |errand| size_of::<Errand>() + errand.kept_bytes())
}

/// The name under which who asks for `host` finds us over TLS: never a stranger's.
fn host_over_tls<'a>(host: &'a str, common: &'a Common) -> &'a str {
    if common.connections.tls().is_named(host) { host } else { &common.hostname }
}

/// A session's hands.
pub(crate) struct Hands<'a> {
    common: &'a mut Common,
    caller: Caller,
    errand: &'a mut Option<Box<Errand>>,
    /// What was charged for it before it acts.
    charge: &'a Charge,
    /// How many bytes may wait for the client when a response is begun.
    unread_bytes_max: usize,
}

impl http::Outlet for Hands<'_> {
    fn send_room(&self) -> usize {
        self.common.connections.send_room_within(self.caller, self.unread_bytes_max)
    }

    fn send(&mut self, bytes: &[u8]) {
        self.common.connections.say(self.common.turn.now, self.caller, bytes);
    }

    fn send_before(&mut self, head: &[u8], bytes: &'static [u8]) -> usize {
        if self.caller.channel == Channel::Plain {
            self.send(head);
            return self.send_static(bytes);
        }
        self.common.connections.seal(self.common.turn.now, self.caller, Text { first: head, second: bytes })
    }

    fn send_static(&mut self, bytes: &'static [u8]) -> usize {
        if self.caller.channel == Channel::Tls {
            return self.common.connections.send(self.common.turn.now, self.caller, bytes);
        }
        let mut queued = 0;
        for piece in bytes.chunks(PIECE_BYTES) {
            let piece_bytes = piece.len();
            if !self.send_shared(Piece::from_static(piece)) {
                break;
            }
            queued += piece_bytes;
        }
        queued
    }

    fn shares(&self) -> bool {
        self.caller.channel == Channel::Plain
    }

    fn send_shared(&mut self, piece: Piece) -> bool {
        self.common.connections.send_piece(self.common.turn.now, self.caller, piece).is_ok()
    }
}

impl http::Actions for Hands<'_> {
    fn site(&self) -> &Site {
        &self.common.site
    }

    fn remembered(&mut self) -> &mut Remembered {
        &mut self.common.pages
    }

    fn secrecy(&self) -> Secrecy {
        let Common { https_only, connections, .. } = &*self.common;
        match self.caller.channel {
            Channel::Plain if *https_only => Secrecy::Elsewhere,
            Channel::Tls if *https_only || connections.tls().is_publicly_trusted() => Secrecy::Here,
            Channel::Plain | Channel::Tls => Secrecy::Optional,
        }
    }

    fn name_over_tls<'a>(&'a self, host: &'a str) -> &'a str {
        host_over_tls(host, self.common)
    }

    fn methods(&self, path: &[u8]) -> &'static [Method] {
        match path {
            _ if path == CERTIFICATE_PATH.as_bytes() => METHODS,
            _ if ::webmail::is_path(path) => ::webmail::METHODS,
            _ => &[],
        }
    }

    fn may_keep(&self, bytes: usize) -> bool {
        let bytes = bytes + kept_for(self.errand.as_deref());
        self.common.memory.would_grant(self.charge, self.caller.address, bytes)
    }

    fn asked(&mut self, question: &Question<'_>) {
        *self.errand = Errand::begin(question, self.caller, self.common).map(Box::new);
    }

    fn body_arrived(&mut self, question: &Question<'_>, body: Vec<u8>) {
        if ::webmail::is_path(question.path.as_bytes()) {
            // A login keeps parts of its form until it is decided.
            let may_keep = http::Actions::may_keep(self, self.charge.bytes() + size_of::<Errand>() + body.len());
            let errand = match may_keep {
                true => Errand::form(question, body, self.caller, self.common),
                false => Some(Errand::busy(self.caller, self.common)),
            };
            *self.errand = errand.map(Box::new);
            return;
        }
        let own = self.common.links.own();
        let ticket = Ticket { core: own, frame: self.caller.connection.0 };
        let upload = Message::Upload(Box::new(Upload { ticket, pem: body }));
        self.common.links.tell(own, Class::Answer, upload);
    }

    fn piece_arrived(&mut self, number: u64, bytes: Vec<u8>) {
        self.common.piece_arrived(number, ::webmail::Piece { bytes, is_last: false });
    }

    fn pieces_ended(&mut self, number: u64, bytes: Vec<u8>) {
        *self.errand = None;
        self.common.piece_arrived(number, ::webmail::Piece { bytes, is_last: true });
    }

    fn too_large(&mut self, question: &Question<'_>, bytes: u64) -> Reply {
        if ::webmail::is_path(question.path.as_bytes()) {
            ::webmail::too_large(question, bytes)
        } else {
            Reply::refusal(Status::ContentTooLarge)
        }
    }

    fn released(&mut self, memory: usize) {
        self.common.bodies -= memory;
    }

    fn wanted(&mut self, number: u64) {
        self.common.reply_wanted(number);
    }

    fn left(&mut self, number: u64) {
        self.common.reply_left(number);
    }

    fn date(&mut self) -> [u8; DATE_BYTES] {
        let mut date = *b"Thu, 01 Jan 1970 00:00:00 GMT";
        let zone = b"GMT".len();
        let now = self.common.date_now.at(self.common.turn.wall);
        // RFC 9110 section 5.6.7 is RFC 5322's form with another name for the zone.
        for (place, byte) in date.iter_mut().take(DATE_BYTES - zone).zip(now) {
            *place = *byte;
        }
        date
    }

    fn answered<'a>(&mut self, exchange: impl FnOnce() -> Exchange<'a>) {
        if self.common.logs_requests {
            let Exchange { method, target, status, bytes } = exchange();
            let target = target.get(..LOGGED_BYTES_MAX).unwrap_or(target);
            self.common
                .console
                .print(format_args!("web: {} \"{method} {target}\" {status} {bytes}", self.caller.address));
        }
    }

    fn set_deadline(&mut self, after: Option<Micros>) {
        // The answer that is held back has the only one that there is; the session sets its own again with it.
        if self.errand.as_ref().is_some_and(|errand| errand.is_held_back()) {
            return;
        }
        self.common.connections.set_deadline(self.common.turn.now, self.caller.connection, after);
    }

    fn close(&mut self) {
        self.common.connections.close(self.common.turn.now, self.caller);
    }
}
