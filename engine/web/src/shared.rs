//! What the HTTP sessions of a core share: the site, how it is served, and what clients wait for.
//!
//! Invariants:
//! - What sessions want of others leaves as requests, in the order in which they want it.
//! - The bytes of a form count from its request until its answer.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use configuration::Configuration;
use http::{Remembered, Site};
use machine::UnixTime;
use message::DateTimeNow;
use store::AccountId;
use tasks::FrameId;
use webmail::{Piece, Visit};

/// What a session wants of another part of the machine.
pub enum WebRequest {
    /// The client of the session of this frame asks for something of an account's webmail.
    Visit(AccountId, FrameId, Box<Visit>),
    /// A piece of the message with this number has come.
    Piece(u64, Piece),
    /// The client wants more of the reply with this number.
    Wanted(u64),
    /// Nothing listens any more to the reply with this number, or its message does not come.
    Left(u64),
    /// The client of the session of this frame has sent a certificate: its chain and key, in PEM.
    Certificate(FrameId, Vec<u8>),
}

/// What the sessions of a core share.
pub struct Web {
    pub(super) site: Site,
    pub(super) pages: Remembered,
    pub(super) hostname: String,
    pub(super) date_now: DateTimeNow,
    /// Whether pages are given over TLS alone.
    pub(super) https_only: bool,
    pub(super) logs_requests: bool,
    /// Bytes of bodies that sessions may hold.
    pub(super) bodies: usize,
    /// Bytes of replies that they hold until clients have taken them.
    pub(super) replies: usize,
    /// How many either may be.
    pub(super) bodies_max: usize,
    requests: VecDeque<WebRequest>,
}

/// What [`Web`] is made from, beside the configuration.
pub struct WebSeed {
    /// The files that are served.
    pub site: Site,
    /// How many bytes of bodies, and of replies, sessions may hold.
    pub bodies_max: usize,
}

impl Web {
    /// `wall`: the time of day.
    pub fn new(configuration: &Configuration, seed: WebSeed, wall: UnixTime) -> Web {
        let WebSeed { site, bodies_max } = seed;
        Web {
            site,
            pages: Remembered::nothing(),
            hostname: configuration.hostname.as_str().into(),
            date_now: DateTimeNow::new(wall),
            https_only: configuration.web.https_only,
            logs_requests: configuration.web.access_log,
            bodies: 0,
            replies: 0,
            bodies_max,
            requests: VecDeque::new(),
        }
    }

    /// Whether something is to be taken to others.
    #[inline]
    pub fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// The next thing that is to be taken to others.
    pub fn next_request(&mut self) -> Option<WebRequest> {
        self.requests.pop_front()
    }

    /// Keeps a request until the engine takes it further.
    #[cold]
    #[inline(never)]
    pub(super) fn request(&mut self, request: WebRequest) {
        self.requests.push_back(request);
    }

    /// Asks for something of an account's webmail. The answer is told later.
    pub(super) fn visit(&mut self, account: AccountId, frame: FrameId, visit: Visit) {
        self.bodies += visit.form_bytes();
        self.request(WebRequest::Visit(account, frame, Box::new(visit)));
    }

    /// A visit was answered. `form_bytes`: of its form.
    pub fn answered(&mut self, form_bytes: usize) {
        self.bodies -= form_bytes;
    }

    /// Nothing listens any more to the reply with this number, or its message does not come.
    pub fn leave(&mut self, number: u64) {
        self.request(WebRequest::Left(number));
    }

    /// Responses that are kept say something that is not so any more.
    pub fn forget_pages(&mut self) {
        self.pages = Remembered::nothing();
    }

    /// Bytes of forms and replies that sessions hold.
    pub fn held(&self) -> usize {
        self.bodies + self.replies
    }
}
