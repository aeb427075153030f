//! The server side of an HTTP connection (RFC 9112 and RFC 9113): a grammar, a state machine and
//! the static site.
//!
//! The owner of a connection passes the received bytes to a [`Session`]. The session acts through
//! the trait [`Actions`], which the owner implements. It uses no TCB, no store and no clock. It
//! serves a [`Site`]: files packed into one piece of memory, with their compressed forms, types and
//! entity tags. So a response is a short head followed by bytes that are already in memory.
//!
//! Invariants:
//! - A session owns no receive buffer. The caller keeps the bytes that the session does not take,
//!   and offers them again. The session keeps a request body only if the handler has admitted it.
//! - The end of a request is never guessed. A request that two servers could read in different ways
//!   gets a 400 response, and the connection ends. So no request can be smuggled.
//! - Each request gets exactly one final response, in order. No response begins before the whole
//!   previous response is queued.
//! - The head of a response fits into [`RESPONSE_HEAD_BYTES_MAX`]. Sessions queue the bytes of a
//!   file without a copy. One exception: the response cache copies a short file into a shared
//!   block.
//! - Handlers answer the requests for their paths. The handler has one [`HandlerRequest`] of a
//!   connection at a time. The session takes the body of such a request only after the handler has
//!   admitted the body or has replied.
//!
//! | file | what it has |
//! |---|---|
//! | `session` | one connection of HTTP/1.1: its wait points and their handlers |
//! | `h2` | one connection of HTTP/2 |
//! | `head`, `authority` | the request line and the fields, strictly |
//! | `framing`, `chunked` | how long a request's body is, and where it ends |
//! | `answer`, `outgoing` | the response to a request, and its part that is not queued yet |
//! | `handler_request`, `upload`, `reply` | a request for a handler, its body, and the reply |
//! | `open_reply` | replies that stay open |
//! | `target` | parses a request target into a path |
//! | `coding`, `conditions`, `ranges` | content codings, conditional requests, byte ranges |
//! | `response_cache` | the cache for requests that repeat the same bytes |
//! | `date` | the dates that clients send |
//! | `types` | methods, statuses, and other types that all files use |
//! | `outlet` | the output side of a connection |
//! | `response` | heads of responses |
//! | `site` | the packed site |
//!
//! Implements: RFC 9110 (semantics), RFC 9111 (the part for origin servers), RFC 9112 (HTTP/1.1),
//! RFC 9113 (HTTP/2), RFC 6797 (HTTP Strict Transport Security), RFC 7617 (Basic).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod actions;
mod answer;
mod authority;
mod chunked;
mod coding;
mod conditions;
mod date;
mod framing;
pub mod h2;
mod handler_request;
mod head;
mod open_reply;
mod outgoing;
mod outlet;
mod ranges;
mod reply;
mod response;
mod response_cache;
mod session;
mod site;
mod target;
mod types;
mod upload;

pub use actions::{Actions, ExchangeSummary};
pub use coding::Coding;
pub use date::DATE_BYTES;
pub use handler_request::{HandlerRequest, credentials};
pub use head::HEAD_BYTES_MAX;
pub use open_reply::{OpenReply, ReplyEnd, ReplyPace};
pub use outlet::Outlet;
pub use reply::{REPLY_FIELDS_BYTES_MAX, Reply, ReplyField};
pub use response::{BUSY, RESPONSE_HEAD_BYTES_MAX};
pub use response_cache::ResponseCache;
pub use session::{HttpWaitsFor, Session};
pub use site::{Representation, Resource, Site, SiteError, SiteFile, pack};
pub use types::{Announced, HttpsPolicy, Method, Status};
pub use upload::{BodyAdmission, PIECE_BYTES_MAX};

#[cfg(test)]
mod tests;
