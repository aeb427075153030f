//! HTTP/2: many requests on one connection, each on a stream.
//!
//! Requests and responses have the same meaning as in HTTP/1.1. `request` turns the fields of a
//! request into the head that the rest of the crate reads. `response` compresses the head of an
//! answer into fields. This module handles the connection: frames, streams, windows, and the order
//! of sending.
//!
//! Invariants:
//! - A session owns no receive buffer. The caller offers incomplete frames and heads of requests
//!   again. The session takes bodies as they arrive, and keeps a body only if the handler has
//!   admitted it.
//! - A stream is kept only while it waits for something. At most 100 streams are kept.
//! - Frames that cost the server work and are of no use to the client are charged to a budget
//!   (`flood_budget`).
//! - Streams send in turn, one frame each, as far as their windows, the window of the connection
//!   and its buffer space allow.
//!
//! Push and priorities are absent on purpose. RFC 9113 has dropped priorities. The test tool h2spec
//! tests the older RFC 7540. Two of its 145 checks fail: both test the priority of a stream that
//! depends on itself.
//!
//! | file | what it has |
//! |---|---|
//! | `session` | one connection: its wait points, its deadlines, its end |
//! | `frames` | frames that do not carry heads of requests |
//! | `requests`, `request` | heads of requests and trailers, and their meaning |
//! | `response` | heads of responses |
//! | `stream`, `streams`, `sending` | what streams wait for, and how they send |
//! | `handler_stream` | a request for a handler, and its body |
//! | `streams::handler`, `streams::open` | streams with a handler, and their open replies |
//! | `flood_budget` | the flood budget |

mod flood_budget;
mod frames;
mod handler_stream;
mod request;
mod requests;
mod response;
mod sending;
mod session;
mod stream;
mod streams;

pub use session::Http2Session;
#[cfg(test)]
pub(crate) use streams::{UNSENT_BYTES_MAX, WAITING_BYTES_MAX};

/// The response to a client for which no session is available: empty settings, and a GOAWAY frame.
/// After these frames the connection is closed. The GOAWAY says that no request was processed, so
/// the client may retry (RFC 9113 section 6.8).
pub const BUSY: &[u8] =
    &[0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xb];
