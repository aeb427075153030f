//! A stub resolver (RFC 1034 §5.3.1). It asks the name servers that the network or the
//! configuration names. Each name server is a recursive resolver. Answers are cached for as long as
//! they are valid.
//!
//! ```text
//!   ask ──▸ cache ── found ──▸ answer                   answer ──▸ cache, and all askers
//!             │ not found                                  ▴
//!             └──▸ the same question waits? ── no ──▸ datagram ── truncated, forged ──▸ stream
//!                                                     ▴    │ silence, refusal
//!                                                     └────┘ the next server
//! ```
//! The resolver does no I/O. The caller passes it datagrams and bytes of streams, and carries out
//! the actions of [`Resolver::next_action`].
//!
//! The crate `domain` reads and writes the wire format. An answer contains only the requested
//! records.

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
