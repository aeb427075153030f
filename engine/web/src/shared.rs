//! The state that the HTTP sessions of a core share: the site, its settings, and queued requests.
//!
//! Invariants:
//! - Requests to others leave in the order in which sessions make them.
//! - The bytes of a form count from its request until its answer.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use configuration::Configuration;
use http::{Reply, ResponseCache, Site};
use machine::UnixTime;
use message::DateTimeNow;
use tasks::FrameId;
use webmail::Request;

use super::pending::busy;

/// The state that the sessions of a core share.
pub struct Web {
    pub(super) site: Site,
    pub(super) pages: ResponseCache,
    pub(super) hostname: String,
    pub(super) date_now: DateTimeNow,
    /// Whether pages are served over TLS only.
    pub(super) https_only: bool,
    pub(super) logs_requests: bool,
    /// Bytes of bodies that sessions hold or may receive.
    pub(super) bodies: usize,
    /// Bytes of replies that clients have not taken yet.
    pub(super) replies: usize,
    /// The limit of each of the two.
    pub(super) bodies_max: usize,
    /// Requests to the webmail, with the sessions that make them.
    requests: VecDeque<(FrameId, Box<Request>)>,
    /// Uploaded certificates, chain and key in PEM, with the sessions that sent them.
    uploads: VecDeque<(FrameId, Vec<u8>)>,
}

/// The parameters of [`Web`] beside the configuration.
pub struct WebSeed {
    /// The files of the site.
    pub site: Site,
    /// The limit of bodies, and of replies, in bytes.
    pub bodies_max: usize,
}

impl Web {
    /// `wall`: the time of day.
    pub fn new(configuration: &Configuration, seed: WebSeed, wall: UnixTime) -> Web {
        let WebSeed { site, bodies_max } = seed;
        Web {
            site,
            pages: ResponseCache::nothing(),
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

    /// The reply, or a refusal if there is not enough memory for its body.
    pub(super) fn limited(&self, reply: Reply) -> Reply {
        if self.replies + reply.body_bytes() <= self.bodies_max { reply } else { busy() }
    }

    /// Whether a request must be forwarded.
    #[inline]
    pub fn has_requests(&self) -> bool {
        !self.requests.is_empty() || !self.uploads.is_empty()
    }

    /// The next request to the webmail, with its session's frame.
    pub fn next_request(&mut self) -> Option<(FrameId, Box<Request>)> {
        self.requests.pop_front()
    }

    /// The next certificate upload, with its session's frame.
    pub fn next_upload(&mut self) -> Option<(FrameId, Vec<u8>)> {
        self.uploads.pop_front()
    }

    /// Queues a request to the webmail. The answer comes later.
    #[cold]
    #[inline(never)]
    pub(super) fn ask(&mut self, frame: FrameId, request: Request) {
        self.bodies += request.form_bytes();
        self.requests.push_back((frame, Box::new(request)));
    }

    /// A certificate was uploaded.
    pub(super) fn upload(&mut self, frame: FrameId, pem: Vec<u8>) {
        self.uploads.push_back((frame, pem));
    }

    /// A request was answered. `form_bytes`: the bytes of its form.
    pub fn answered(&mut self, form_bytes: usize) {
        self.bodies -= form_bytes;
    }

    /// The client of the reply with this number has left, or the rest of its message does not come.
    pub fn leave(&mut self, frame: FrameId, number: u64) {
        self.ask(frame, Request::Left(number));
    }

    /// Cached responses are outdated.
    pub fn forget_pages(&mut self) {
        self.pages = ResponseCache::nothing();
    }

    /// Bytes of forms and replies that sessions hold.
    pub fn held(&self) -> usize {
        self.bodies + self.replies
    }
}
