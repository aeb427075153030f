//! The operations that a session needs from its owner: the trait [`Actions`].

use alloc::vec::Vec;

use machine::Micros;

use crate::date::DATE_BYTES;
use crate::handler_request::HandlerRequest;
use crate::outlet::Outlet;
use crate::reply::Reply;
use crate::response_cache::ResponseCache;
use crate::site::Site;
use crate::types::{HttpsPolicy, Method};

/// The operations that a session needs from the owner of its connection. Each call carries out or
/// queues its operation at once, and never waits.
pub trait Actions: Outlet {
    /// The site that the connection serves.
    fn site(&self) -> &Site;

    /// The response cache that this connection shares with others that serve the same site.
    fn response_cache(&mut self) -> &mut ResponseCache;

    /// The HTTPS policy of this connection.
    fn https_policy(&self) -> HttpsPolicy;

    /// The host name to which a plaintext request for `host` is redirected over TLS. It is always a
    /// name of this server. `host`: without its port, at most 255 bytes.
    fn name_over_tls<'a>(&'a self, host: &'a str) -> &'a str;

    /// The methods that a handler supports for `path`, which is decoded and has no segments `.` and
    /// `..`. If the slice is empty, the path belongs to the site.
    fn methods(&self, path: &[u8]) -> &'static [Method];

    /// Whether the session may make the server keep `bytes` bytes in all. They include the bytes
    /// that the session keeps already: see [`crate::Session::kept_bytes`].
    fn may_keep(&self, bytes: usize) -> bool;

    /// A request for a handler has arrived. The handler returns its reply if it knows the reply at
    /// once. Otherwise it calls [`crate::Session::replied`] later. If it wants the body first, it
    /// calls [`crate::Session::admitted`] later. It makes neither of these calls within this call.
    /// Until one of these calls, the session passes no other request to the handler.
    fn asked(&mut self, question: &HandlerRequest<'_>) -> Option<Reply>;

    /// The body of an admitted request is complete. `question` is the same request again. The
    /// handler returns its reply, or replies later with [`crate::Session::replied`].
    fn body_arrived(&mut self, question: &HandlerRequest<'_>, body: Vec<u8>) -> Option<Reply>;

    /// A piece of the body that was admitted under `number` has arrived. The next piece follows
    /// after [`crate::Session::piece_taken`], which must be called later.
    fn piece_arrived(&mut self, number: u64, bytes: Vec<u8>);

    /// The last piece of the body that was admitted under `number` has arrived. The piece may be
    /// empty. The handler must answer the request later with [`crate::Session::replied`].
    fn pieces_ended(&mut self, number: u64, bytes: Vec<u8>);

    /// The body of the request is larger than the admitted `bytes`. Returns the reply, which has
    /// status 413.
    fn too_large(&mut self, question: &HandlerRequest<'_>, bytes: u64) -> Reply;

    /// The session no longer holds the body of an admission of `memory` bytes. The body was passed
    /// to the handler, or will not arrive. Called once for each admission.
    fn released(&mut self, memory: usize);

    /// The client sets the pace of the open reply `number`, and has taken all its bytes, so more
    /// can be sent. Later, the handler must continue the reply with
    /// [`crate::Session::continue_reply`] or end it, but never within this call. Called once each
    /// time that the handler must continue.
    fn wanted(&mut self, number: u64);

    /// The open reply `number` has ended, or the body that was admitted under `number` will not
    /// arrive. Called once for each open reply, no matter which side ended it.
    fn left(&mut self, number: u64);

    /// The current date and time, as an `IMF-fixdate` (RFC 9110 section 5.6.7).
    fn date(&mut self) -> [u8; DATE_BYTES];

    /// Reports the response to a request, for an access log. If the request has a body, the
    /// response is sent after the body has arrived. If the body is malformed or incomplete, a
    /// second report without a method follows, and the response of the second report is sent
    /// instead.
    fn answered<'a>(&mut self, exchange: impl FnOnce() -> ExchangeSummary<'a>);

    /// Sets the time after which [`crate::Session::deadline_expired`] is called. It replaces any
    /// deadline set before. `None` means no deadline.
    fn set_deadline(&mut self, after: Option<Micros>);

    /// Closes the connection after all queued bytes are sent. The session is over.
    fn close(&mut self);
}

/// A summary of a request and its response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExchangeSummary<'a> {
    /// The method, as the client wrote it. Empty if the request could not be read.
    pub method: &'a str,
    /// The target, as the client wrote it: visible ASCII. Empty if the request could not be read.
    pub target: &'a str,
    /// The response's status.
    pub status: u16,
    /// Length of the response body in bytes.
    pub bytes: u64,
}
