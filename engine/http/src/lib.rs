//! The server side of an HTTP connection (RFC 9112 and RFC 9113): a grammar, a state machine and
//! the static site.
//!
//! A [`Session`] is told what arrived. It acts through the trait [`Actions`], which the owner of
//! the connection implements. It knows no TCB, no store and no clock. It serves a [`Site`]: files
//! packed into one piece of memory, with their compressed forms, types and entity tags. So a
//! response is a short head followed by bytes that are already in memory.
//!
//! Invariants:
//! - A session owns no receive buffer. Bytes that it does not take are offered again, so the caller
//!   keeps them. It keeps a request body only if the handler has admitted that body.
//! - The end of a request is never guessed. A request that two servers could read in two ways gets
//!   a 400 response, and the connection ends. So no request can be smuggled.
//! - Each request gets exactly one final response, in order. No response begins before the previous
//!   one is queued whole.
//! - The head of a response fits into [`RESPONSE_HEAD_BYTES_MAX`]. The bytes of a file are never
//!   copied.
//! - Handlers answer the requests for paths of their own. A handler gets one [`HandlerRequest`] at
//!   a time, and no byte of a body is taken before the handler has admitted its sender.
//!
//! | file | story |
//! |---|---|
//! | `session` | one connection of HTTP/1.1: its wait points and their handlers |
//! | `h2` | one connection of HTTP/2 |
//! | `head` | the request line and the fields, strictly |
//! | `framing`, `chunked` | how long a request's body is, and where it ends |
//! | `answer`, `outgoing` | the response to a request, and the part of it that is not queued yet |
//! | `handler_request`, `upload`, `reply` | a request for a handler, its body, and the reply |
//! | `open_reply` | replies that stay open |
//! | `target` | from a request target to a path |
//! | `coding`, `conditions`, `ranges` | which bytes of a file are sent |
//! | `response_cache` | the cache for requests that repeat the same bytes |
//! | `date` | the dates that clients write |
//! | `types` | methods, statuses, and other types that all files use |
//! | `outlet` | where responses are written |
//! | `response` | heads of responses |
//! | `site` | the packed site |
//!
//! Implements: RFC 9110 (semantics), RFC 9112 (messages), RFC 9113 (HTTP/2); of RFC 9111, what an
//! origin server says to caches; RFC 6797 (HTTP Strict Transport Security), RFC 7617 (Basic).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod actions;
mod answer;
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
