//! RFC 9112 and RFC 9113: the server's side of an HTTP connection, as a grammar and a state machine, and the site that it serves.
//!
//! A [`Session`] is told what arrived and acts through [`Actions`], which whoever owns the connection implements. It
//! knows no TCB, no store and no clock. What it serves is a [`Site`]: files packed into one piece of memory, with their
//! compressed forms, their types and their tags beside them, so that a response is a short head and bytes that lie ready.
//!
//! Invariants:
//! - A session owns no buffer. Bytes that it does not take are offered again: the caller keeps them. Of bodies only those are kept that whoever answers has admitted.
//! - Where a request ends is never guessed. What two servers could read in two ways is answered by 400, and the connection
//!   ends: no request can be smuggled.
//! - Every request gets exactly one final response, in order; none is begun before the one before it is queued whole.
//! - A response's head fits into [`RESPONSE_HEAD_BYTES_MAX`]; the bytes of a file are never copied.
//! - What a program answers lies under paths of its own, and is asked for by a [`Question`] at a time: not a byte of a body is taken before it has admitted its sender.
//!
//! | file | story |
//! |---|---|
//! | `session` | one connection of HTTP/1.1: its waiting points and what happens at each |
//! | `two` | one connection of HTTP/2 |
//! | `head` | the request line and the fields, strictly |
//! | `framing`, `chunked` | how long a request's body is, and where it ends |
//! | `answer`, `outgoing` | what the answer to a request is, and what of it is still to be queued |
//! | `question`, `upload`, `reply` | what is asked that a program answers, what is sent with it, and what is said to it |
//! | `open_reply` | replies that stay open |
//! | `target` | from a request's target to a path |
//! | `coding`, `conditions`, `ranges` | which bytes of a file are the answer |
//! | `remembered` | requests that come again with the same bytes |
//! | `date` | what dates clients write |
//! | `types` | methods, statuses, and other words that all files use |
//! | `outlet` | where responses go |
//! | `response` | heads of responses |
//! | `site` | the packed site |
//!
//! Answers to: RFC 9110 (semantics), RFC 9112 (messages), RFC 9113 (HTTP/2); of RFC 9111, what an origin server says to caches; RFC 6797 (pages over TLS alone), RFC 7617 (Basic).
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
mod head;
mod open_reply;
mod outgoing;
mod outlet;
mod question;
mod ranges;
mod remembered;
mod reply;
mod response;
mod session;
mod site;
mod target;
pub mod two;
mod types;
mod upload;

pub use actions::{Actions, Exchange};
pub use coding::Coding;
pub use date::DATE_BYTES;
pub use head::HEAD_BYTES_MAX;
pub use open_reply::{End, Open, Pace};
pub use outlet::Outlet;
pub use question::{Question, credentials};
pub use remembered::Remembered;
pub use reply::{Field, REPLY_FIELDS_BYTES_MAX, Reply};
pub use response::{BUSY, RESPONSE_HEAD_BYTES_MAX};
pub use session::{Session, WaitsFor};
pub use site::{File, Representation, Resource, Site, SiteError, pack};
pub use types::{Announced, Method, Secrecy, Status};
pub use upload::{Admission, PIECE_BYTES_MAX};

#[cfg(test)]
mod tests;
