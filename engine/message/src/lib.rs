//! RFC 5322 and MIME: the parts of messages that a mail server writes and reads itself, over bytes
//! that the caller lends.
//!
//! The crate writes the date of a header and the trace fields ([`Received`], [`AuthResultsWriter`],
//! [`return_path`]). It changes the header of an arriving message ([`Revision`], which also counts
//! the trace fields of earlier servers). It reads what users see: header fields ([`header`]), the
//! parts of a message ([`structure`]) and their places on a page ([`presentation`]), their content
//! ([`BodyDecoder`], [`TextDecoder`]), calendars ([`calendar`]), containers of Outlook ([`tnef`]),
//! reports on messages ([`report`]), and the line of a message list ([`Summary`]). It writes the
//! messages of users ([`compose`]), and the file in which users download their messages
//! ([`MboxWriter`]).
//!
//! Invariants:
//! - The code on the path of a message through the server does not allocate, and does not keep lent
//!   bytes.
//! - A name that a peer gives itself never ends or adds a header line: control characters are
//!   replaced.
//! - Reading never fails, whatever a message contains. Its work is linear in the bytes of the
//!   message.
//!
//! Implements: RFC 5322 section 3.3 (dates), RFC 5321 sections 4.4 (trace) and 6.3 (loops), RFC
//! 6409 section 8, RFC 6531 section 4.3; the modules name the rest.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod calendar;
mod charset;
pub mod compose;
mod date;
pub mod header;
mod html;
mod mbox;
pub mod presentation;
mod reencode;
pub mod report;
mod revision;
mod shown;
pub mod structure;
mod summary;
mod text;
pub mod tnef;
mod trace;
mod transfer;
mod writer;

pub use charset::decode_guessed;
pub use date::{DATE_TIME_BYTES, DateTimeNow, date_time};
pub use html::{is_blank, text_of_html};
pub use mbox::MboxWriter;
pub use reencode::{LongLines, Reencoder, RequiredForm};
pub use revision::{Origin, Reviser, Revision};
pub use summary::{SHORT_HEADER_BYTES_MAX, SUMMARY_BYTES, Summary, shorten_header, summarize};
pub use text::TextDecoder;
pub use trace::{
    Assurance, AuthResultsWriter, RECEIVED_BYTES_MAX, RETURN_PATH_BYTES_MAX, Received,
    SenderDomain, WithProtocol, names_a_login, return_path,
};
pub use transfer::BodyDecoder;

#[cfg(test)]
mod tests;
