//! RFC 5322 and MIME: what a mail server itself writes into messages and reads from them, over bytes that the caller lends.
//!
//! The date of a header, the trace fields that a server adds ([`Received`], [`Findings`], [`return_path`]) and what is changed in the
//! header that comes ([`Revision`], which also counts the trace fields that are there already); and what people are shown of a
//! message: its header fields ([`header`]), the parts that it is made of ([`structure`]), what they say ([`BodyDecoder`],
//! [`TextDecoder`]), what a list shows of it ([`Summary`]); the messages that they write ([`compose`]), and the file into which they take them along ([`MboxWriter`]).
//!
//! Invariants:
//! - Nothing on the way of a message through the server allocates, and nothing keeps what it was lent.
//! - What a peer said of itself never ends a header line or adds one: control characters do not pass.
//! - Whatever a message holds, reading it never fails, and takes work linear in its bytes.
//!
//! Answers to: RFC 5322 section 3.3 (dates), RFC 5321 section 4.4 (trace) and 6.3 (loops), RFC 6409 section 8, RFC 6531 section 4.3; the modules say what else.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod charset;
pub mod compose;
mod date;
pub mod header;
mod mbox;
mod revision;
pub mod structure;
mod summary;
mod text;
mod trace;
mod transfer;
mod writer;

pub use date::{DATE_TIME_BYTES, DateTimeNow, date_time};
pub use mbox::MboxWriter;
pub use revision::{Origin, Reviser, Revision};
pub use summary::{SUMMARY_BYTES, Summary, summarize};
pub use text::TextDecoder;
pub use trace::{
    Assurance, Findings, Protocol, RECEIVED_BYTES_MAX, RETURN_PATH_BYTES_MAX, Received,
    SenderDomain, names_a_login, return_path,
};
pub use transfer::BodyDecoder;

#[cfg(test)]
mod tests;
