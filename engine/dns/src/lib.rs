//! A stub resolver (RFC 1034 §5.3.1). It asks the name servers that the network or the
//! configuration names. Each of these is a recursive resolver. Answers are cached for as long as
//! they are valid.
//!
//! ```text
//!   ask ──▸ cache ── found ──▸ answer                   answer ──▸ cache, and all askers
//!             │ not found                                  ▴
//!             └──▸ the same question waits? ── no ──▸ datagram ── truncated, forged ──▸ stream
//!                                                     ▴    │ silence, refusal
//!                                                     └────┘ the next server
//! ```
//! Pure: datagrams and bytes of streams go in, and actions come out of [`Resolver::next_action`].
//!
//! A library reads and writes the wire format (`domain`). Only the requested records are passed on.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod cache;
mod knowledge;
mod message;
mod name;
mod open;
mod question;
mod resolver;
mod share;
#[cfg(test)]
mod tests;

pub use knowledge::{Knowledge, Missing};
pub use name::{Name, NotAName};
pub use question::{Answer, Question, Record, RecordKind, Unanswered};
pub use resolver::{
    Limits, QUESTION_SPAN_MAX, Resolver, ResolverAction, SERVER_PORT, SERVERS_MAX, StreamId,
};
pub use share::{LookupClient, OnBehalf};
