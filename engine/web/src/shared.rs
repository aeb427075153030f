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
use tasks::FrameId;
use webmail::Request;

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
    /// What is asked of the webmail, with the session that asks.
    requests: VecDeque<(FrameId, Box<Request>)>,
    /// Certificates that came, chain and key in PEM, with the session that has sent them.
    uploads: VecDeque<(FrameId, Vec<u8>)>,
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
            uploads: VecDeque::new(),
        }
    }

    /// Whether something is to be taken to others.
    #[inline]
    pub fn has_requests(&self) -> bool {
        !self.requests.is_empty() || !self.uploads.is_empty()
    }

    /// What is next asked of the webmail, by the session of this frame.
    pub fn next_request(&mut self) -> Option<(FrameId, Box<Request>)> {
        self.requests.pop_front()
    }

    /// The next certificate that came, by the session of this frame.
    pub fn next_upload(&mut self) -> Option<(FrameId, Vec<u8>)> {
        self.uploads.pop_front()
    }

    /// Asks the webmail. The answer is told later.
    #[cold]
    #[inline(never)]
    pub(super) fn ask(&mut self, frame: FrameId, request: Request) {
        self.bodies += request.form_bytes();
        self.requests.push_back((frame, Box::new(request)));
    }

    /// A certificate has come.
    pub(super) fn upload(&mut self, frame: FrameId, pem: Vec<u8>) {
        self.uploads.push_back((frame, pem));
    }

    /// A request was answered. `form_bytes`: of its form.
    pub fn answered(&mut self, form_bytes: usize) {
        self.bodies -= form_bytes;
    }

    /// Nothing listens any more to the reply with this number, or its message does not come.
    pub fn leave(&mut self, frame: FrameId, number: u64) {
        self.ask(frame, Request::Left(number));
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
