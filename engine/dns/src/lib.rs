//! What names mean: a stub resolver (RFC 1034 §5.3.1). It asks the name servers that the network or the configuration names, each of which
//! looks for the answer wherever it is to be found, and remembers what it was told for as long as that is true.
//!
//! ```text
//!   ask ──> cache ──found──> answer                      answer ──> cache, and all who asked
//!             │ not there                                   ^
//!             └──> the same question waits already? ──no──> datagram ──cut short, or somebody interferes──> stream
//!                                                           ^    │ silence, refusal
//!                                                           └────┘ the next server
//! ```
//! Pure: datagrams and bytes of streams go in, what is to be done comes out of [`Resolver::next_action`].
//!
//! The wire format is the library's (`domain`); of what it reads, only what was asked for gets further.

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
    Action, Limits, QUESTION_SPAN_MAX, Resolver, SERVER_PORT, SERVERS_MAX, StreamId,
};
pub use share::{Client, OnBehalf};
