//! An HTTP session, in HTTP/1.1 or HTTP/2.

use alloc::boxed::Box;

use http::{BodyAdmission, Reply, ReplyEnd};

use super::host::HttpHost;

/// An HTTP session in the version that the connection uses.
pub enum HttpSession {
    /// HTTP/1.1.
    One(http::Session),
    /// HTTP/2. The state is larger, so it is boxed.
    Two(Box<http::h2::Http2Session>),
}

impl HttpSession {
    pub fn bytes_arrived(&mut self, bytes: &[u8], host: &mut HttpHost<'_, '_>) -> usize {
        match self {
            HttpSession::One(session) => session.bytes_arrived(bytes, host),
            HttpSession::Two(session) => session.bytes_arrived(bytes, host),
        }
    }

    pub(super) fn deadline_expired(&mut self, host: &mut HttpHost<'_, '_>) {
        match self {
            HttpSession::One(session) => session.deadline_expired(host),
            HttpSession::Two(session) => session.deadline_expired(host),
        }
    }

    pub(super) fn replied(&mut self, reply: Reply, host: &mut HttpHost<'_, '_>) {
        match self {
            HttpSession::One(session) => session.replied(reply, host),
            HttpSession::Two(session) => session.replied(reply, host),
        }
    }

    pub(super) fn admitted(&mut self, admission: BodyAdmission, host: &mut HttpHost<'_, '_>) {
        match self {
            HttpSession::One(session) => session.admitted(admission, host),
            HttpSession::Two(session) => session.admitted(admission, host),
        }
    }

    pub(super) fn piece_taken(&mut self, number: u64, host: &mut HttpHost<'_, '_>) {
        match self {
            HttpSession::One(session) => session.piece_taken(number, host),
            HttpSession::Two(session) => session.piece_taken(number, host),
        }
    }

    pub(super) fn continue_reply(&mut self, number: u64, bytes: &[u8]) {
        match self {
            HttpSession::One(session) => session.continue_reply(number, bytes),
            HttpSession::Two(session) => session.continue_reply(number, bytes),
        }
    }

    pub(super) fn end_reply(&mut self, number: u64, end: ReplyEnd, host: &mut HttpHost<'_, '_>) {
        match self {
            HttpSession::One(session) => session.end_reply(number, end, host),
            HttpSession::Two(session) => session.end_reply(number, end, host),
        }
    }

    /// The memory that the client makes the server keep, in bytes, without the bodies of requests
    /// and replies.
    pub(super) fn kept_bytes(&self) -> usize {
        match self {
            HttpSession::One(session) => session.kept_bytes(),
            HttpSession::Two(session) => session.kept_bytes(),
        }
    }

    pub(super) fn overdrawn(&mut self, host: &mut HttpHost<'_, '_>) {
        match self {
            HttpSession::One(session) => session.overdrawn(host),
            HttpSession::Two(session) => session.overdrawn(host),
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        match self {
            HttpSession::One(session) => session.held_bytes(),
            HttpSession::Two(session) => session.held_bytes(),
        }
    }

    pub fn stopping(&mut self, host: &mut HttpHost<'_, '_>) {
        match self {
            HttpSession::One(session) => session.stopping(host),
            HttpSession::Two(session) => session.stopping(host),
        }
    }

    pub fn peer_closed(&mut self, host: &mut HttpHost<'_, '_>) {
        match self {
            HttpSession::One(session) => session.peer_closed(host),
            HttpSession::Two(session) => session.peer_closed(host),
        }
    }
}
