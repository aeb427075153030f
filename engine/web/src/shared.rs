//! The state that the HTTP sessions of a core share: the site, the settings, and queued requests.
//!
//! Invariants:
//! - Requests to other cores are forwarded in the order in which sessions make them.
//! - The bytes of a form count from its request until its answer.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use configuration::Configuration;
use http::{Reply, ResponseCache, Site, Status};
use machine::UnixTime;
use message::DateTimeNow;
use tasks::FrameId;
use webmail::Request;

/// The state that the sessions of a core share.
pub struct Web {
    pub(super) site: Site,
    pub(super) pages: ResponseCache,
    pub(super) hostname: String,
    pub(super) date_now: DateTimeNow,
    /// Whether pages are served over TLS only.
    pub(super) https_only: bool,
    pub(super) logs_requests: bool,
    /// The number of bytes of request bodies that sessions hold or may receive.
    pub(super) bodies: usize,
    /// The number of bytes of replies that clients have not taken yet.
    pub(super) replies: usize,
    /// The maximum of `bodies`, and of `replies`.
    pub(super) bodies_max: usize,
    /// Requests to the webmail, with the frames of their sessions.
    requests: VecDeque<(FrameId, Box<Request>)>,
    /// Uploaded certificates, chain and key in PEM, with the frames of their sessions.
    uploads: VecDeque<(FrameId, Vec<u8>)>,
}

/// The parameters of [`Web`] in addition to the configuration.
pub struct WebSeed {
    /// The files of the site.
    pub site: Site,
    /// The maximum bytes of request bodies, and of replies.
    pub bodies_max: usize,
}

impl Web {
    /// The shared state of a core without sessions. `wall`: the time of day.
    pub fn new(configuration: &Configuration, seed: WebSeed, wall: UnixTime) -> Web {
        let WebSeed { site, bodies_max } = seed;
        Web {
            site,
            pages: ResponseCache::empty(),
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
    pub(super) fn within_limit(&self, reply: Reply) -> Reply {
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

    /// Queues a request to the webmail. The answer arrives later.
    #[cold]
    #[inline(never)]
    pub(super) fn ask(&mut self, frame: FrameId, request: Request) {
        self.bodies += request.form_bytes();
        self.requests.push_back((frame, Box::new(request)));
    }

    /// Queues a certificate upload.
    pub(super) fn upload(&mut self, frame: FrameId, pem: Vec<u8>) {
        self.uploads.push_back((frame, pem));
    }

    /// Ends the count of a form, since its request was answered. `form_bytes`: the length of the
    /// form.
    pub fn answered(&mut self, form_bytes: usize) {
        self.bodies -= form_bytes;
    }

    /// Gives up the open reply or the upload with this number: its client has left, or the rest of
    /// the upload will not arrive.
    pub fn leave(&mut self, frame: FrameId, number: u64) {
        self.ask(frame, Request::Left(number));
    }

    /// Empties the response cache, since its responses are outdated.
    pub fn forget_pages(&mut self) {
        self.pages = ResponseCache::empty();
    }

    /// The number of bytes of forms and replies that sessions hold.
    pub fn held(&self) -> usize {
        self.bodies + self.replies
    }
}

/// The reply when there is not enough memory for a request or for its reply.
#[cold]
pub(super) fn busy() -> Reply {
    let text = "The server is busy. Go back, and try again in a moment.\n";
    Reply::text(Status::ServiceUnavailable, text.into())
}
