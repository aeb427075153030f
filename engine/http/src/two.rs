//! HTTP/2: many requests on one connection, each a stream.
//!
//! What is asked is the same as in HTTP/1.1, and so is the answer: a request's fields become the head that the crate asks its questions with (`request`), and the head of an answer
//! becomes compressed fields (`response`). What is here is the connection: frames, streams, windows, and whose turn it is.
//!
//! Invariants:
//! - A session owns no buffer. Frames that are not whole, and heads of requests, are offered again by the caller; bodies are taken as they come, and only those are kept that whoever answers has admitted.
//! - A stream is remembered as long as it waits for something, and there are never more than 100 of them.
//! - Whatever brings its sender nothing has a price (`calm`).
//! - Streams send in turn, a frame each, as far as their windows, the connection's window and its room go.
//!
//! Absent on purpose: push, and priorities, which RFC 9113 has given up: of the 145 checks of h2spec, which knows RFC 7540, the two that fail are of streams that depend on
//! themselves.
//!
//! | file | story |
//! |---|---|
//! | `session` | one connection: its waiting points, its time, its end |
//! | `frames` | what frames do that are not of requests |
//! | `requests`, `request` | heads of requests and trailers; what they ask |
//! | `response` | heads of answers |
//! | `stream`, `streams`, `sending` | what streams wait for, and how they are sent on |
//! | `inquiry` | a question, and the body that comes with it |
//! | `streams::questions`, `streams::open` | streams that a program answers, and goes on to |
//! | `calm` | what floods cost |

mod calm;
mod frames;
mod inquiry;
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

/// What to tell a client for whom there is no session, before the connection is closed: no settings, and that it may come again, since nothing was done (RFC 9113 section 6.8).
pub const BUSY: &[u8] =
    &[0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xb];
