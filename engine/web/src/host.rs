//! The actions of an HTTP session, on the connection and the site.
//!
//! In plaintext, the bytes of a file are not copied: the connection's segments point into the
//! packed site. Over TLS the bytes are encrypted into buffers.

use alloc::boxed::Box;
use alloc::vec::Vec;

use budget::Charge;
use certificates::{CERTIFICATE_PATH, METHODS};
use connections::Channel;
use http::{
    DATE_BYTES, ExchangeSummary, HandlerRequest, HttpsPolicy, Method, Reply, ResponseCache, Site,
    Status,
};
use machine::{Micros, Piece};
use tls::SplitPlaintext;
use webmail::Request;

use super::context::HttpCall;
use super::pending::PendingRequest;
use super::shared::busy;

/// The number of bytes of a file that are queued as one piece.
const PIECE_BYTES: usize = 32 * 1024;

/// The number of bytes of a request target that are logged.
const LOGGED_BYTES_MAX: usize = 200;

/// The memory of a pending request, in bytes.
pub(super) fn kept_for(pending: Option<&PendingRequest>) -> usize {
    pending.map_or(0, |pending| size_of::<PendingRequest>() + pending.kept_bytes())
}

/// The host of an HTTP session. It implements the session's actions.
pub struct HttpHost<'a, 'c> {
    pub(super) call: &'a mut HttpCall<'c>,
    pub(super) pending: &'a mut Option<Box<PendingRequest>>,
    /// The client's charge before this action.
    pub(super) charge: &'a Charge,
    /// The maximum number of unread bytes when a response begins.
    pub(super) unread_bytes_max: usize,
    /// The bytes of replies that the handler knew at once. They count separately until the bytes
    /// that the session holds are counted again.
    pub(super) replied_bytes: usize,
}

impl HttpHost<'_, '_> {
    fn ask(&mut self, request: Request) {
        self.call.web.ask(self.call.caller.connection.0, request);
    }

    /// Keeps a request that is pending. Returns its reply if the reply is known.
    fn keep_pending(&mut self, begun: Result<Option<PendingRequest>, Reply>) -> Option<Reply> {
        let pending = match begun {
            Ok(pending) => pending,
            Err(reply) => return Some(self.count_reply(reply)),
        };
        *self.pending = pending.map(Box::new);
        None
    }

    /// Counts a reply that is known at once, or refuses it if there is not enough memory for it.
    fn count_reply(&mut self, reply: Reply) -> Reply {
        let reply = self.call.web.within_limit(reply);
        self.call.web.replies += reply.body_bytes();
        self.replied_bytes += reply.body_bytes();
        reply
    }
}

impl http::Outlet for HttpHost<'_, '_> {
    fn send_room(&self) -> usize {
        self.call.cx.connections.send_room_within(self.call.caller, self.unread_bytes_max)
    }

    fn send(&mut self, bytes: &[u8]) {
        self.call.cx.connections.say(self.call.cx.turn.now, self.call.caller, bytes);
    }

    fn send_before(&mut self, head: &[u8], bytes: &'static [u8]) -> usize {
        if self.call.caller.channel == Channel::Plain {
            self.send(head);
            return self.send_static(bytes);
        }
        self.call.cx.connections.encrypt(
            self.call.cx.turn.now,
            self.call.caller,
            SplitPlaintext { first: head, second: bytes },
        )
    }

    fn send_static(&mut self, bytes: &'static [u8]) -> usize {
        if self.call.caller.channel == Channel::Tls {
            return self.call.cx.connections.send(self.call.cx.turn.now, self.call.caller, bytes);
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
        self.call.caller.channel == Channel::Plain
    }

    fn send_shared(&mut self, piece: Piece) -> bool {
        self.call.cx.connections.send_piece(self.call.cx.turn.now, self.call.caller, piece).is_ok()
    }
}

impl http::Actions for HttpHost<'_, '_> {
    fn site(&self) -> &Site {
        &self.call.web.site
    }

    fn response_cache(&mut self) -> &mut ResponseCache {
        &mut self.call.web.pages
    }

    fn https_policy(&self) -> HttpsPolicy {
        let (https_only, tls) = (self.call.web.https_only, self.call.cx.connections.tls());
        match self.call.caller.channel {
            Channel::Plain if https_only => HttpsPolicy::Redirect,
            Channel::Tls if https_only || tls.is_publicly_trusted() => HttpsPolicy::Enforced,
            Channel::Plain | Channel::Tls => HttpsPolicy::Optional,
        }
    }

    fn name_over_tls<'a>(&'a self, host: &'a str) -> &'a str {
        self.call.name_over_tls(host)
    }

    fn methods(&self, path: &[u8]) -> &'static [Method] {
        match path {
            _ if path == CERTIFICATE_PATH.as_bytes() => METHODS,
            _ if webmail::is_path(path) => webmail::METHODS,
            _ => &[],
        }
    }

    fn may_keep(&self, bytes: usize) -> bool {
        let bytes = bytes + kept_for(self.pending.as_deref());
        self.call.cx.memory.would_grant(self.charge, self.call.caller.address, bytes)
    }

    fn asked(&mut self, question: &HandlerRequest<'_>) -> Option<Reply> {
        let begun = PendingRequest::begin(question, self.call);
        self.keep_pending(begun)
    }

    fn body_arrived(&mut self, question: &HandlerRequest<'_>, body: Vec<u8>) -> Option<Reply> {
        if !webmail::is_path(question.path.as_bytes()) {
            self.call.web.upload(self.call.caller.connection.0, body);
            return None;
        }
        // A login keeps parts of its form until the login is decided, so they are charged to the
        // client.
        let may_keep = http::Actions::may_keep(
            self,
            self.charge.bytes() + size_of::<PendingRequest>() + body.len(),
        );
        let begun = match may_keep {
            true => PendingRequest::form(question, body, self.call),
            false => Err(busy()),
        };
        self.keep_pending(begun)
    }

    fn piece_arrived(&mut self, number: u64, bytes: Vec<u8>) {
        self.ask(Request::Piece(number, webmail::UploadPiece { bytes, is_last: false }));
    }

    fn pieces_ended(&mut self, number: u64, bytes: Vec<u8>) {
        *self.pending = None;
        self.ask(Request::Piece(number, webmail::UploadPiece { bytes, is_last: true }));
    }

    fn too_large(&mut self, question: &HandlerRequest<'_>, bytes: u64) -> Reply {
        let reply = if webmail::is_path(question.path.as_bytes()) {
            webmail::too_large(question, bytes)
        } else {
            Reply::refusal(Status::ContentTooLarge)
        };
        self.count_reply(reply)
    }

    fn released(&mut self, memory: usize) {
        self.call.web.bodies -= memory;
    }

    fn wanted(&mut self, number: u64) {
        self.ask(Request::Wanted(number));
    }

    fn left(&mut self, number: u64) {
        self.ask(Request::Left(number));
    }

    fn date(&mut self) -> [u8; DATE_BYTES] {
        let mut date = *b"Thu, 01 Jan 1970 00:00:00 GMT";
        let zone = b"GMT".len();
        let now = self.call.web.date_now.at(self.call.cx.turn.wall);
        // RFC 9110 section 5.6.7 and RFC 5322 have the same date format, except that the zone of
        // the former is `GMT`.
        for (place, byte) in date.iter_mut().take(DATE_BYTES - zone).zip(now) {
            *place = *byte;
        }
        date
    }

    fn answered<'a>(&mut self, exchange: impl FnOnce() -> ExchangeSummary<'a>) {
        if self.call.web.logs_requests {
            let ExchangeSummary { method, target, status, bytes } = exchange();
            let target = target.get(..LOGGED_BYTES_MAX).unwrap_or(target);
            self.call.cx.console.print(format_args!(
                "web: {} \"{method} {target}\" {status} {bytes}",
                self.call.caller.address
            ));
        }
    }

    fn set_deadline(&mut self, after: Option<Micros>) {
        // A connection has only one deadline, and a delayed login answer is using it. The session
        // sets its own deadline again when it gets that answer.
        if self.pending.as_ref().is_some_and(|pending| pending.is_held_back()) {
            return;
        }
        self.call.cx.connections.set_deadline(
            self.call.cx.turn.now,
            self.call.caller.connection,
            after,
        );
    }

    fn close(&mut self) {
        self.call.cx.connections.close(self.call.cx.turn.now, self.call.caller);
    }
}
