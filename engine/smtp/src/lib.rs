//! RFC 5321: the server's side of an SMTP conversation, as a grammar and a state machine.
//!
//! A [`Session`] receives the bytes that arrive and acts through [`Actions`], which the owner of
//! the connection implements. The session does not know TCP, the store or the clock. So a test
//! reads like a conversation, and a simulator can hold thousands of sessions.
//!
//! Invariants:
//! - A session owns no buffer. The caller keeps the bytes that the session does not take, and
//!   offers them again.
//! - Only CRLF ends a command line, and only CRLF.CRLF ends a message's data. Other bytes that some
//!   servers take for a line end are refused, except that a bare LF in a chunk of BDAT becomes
//!   CRLF. So no server can read one message as two (SMTP smuggling).
//! - Every command gets exactly one reply, in order. A reply has at most [`REPLY_BYTES_MAX`] bytes.
//! - Each message that a session began ends exactly once, by its end or its abort. Each transaction
//!   ends exactly once too.
//! - No plaintext state survives STARTTLS: a new session begins after the handshake. Bytes that the
//!   client sent in the clear after STARTTLS are dropped.
//!
//! Implements: RFC 5321; RFC 1870 (SIZE), RFC 2034 and 3463 (ENHANCEDSTATUSCODES), RFC 2920
//! (PIPELINING), RFC 3030 (CHUNKING, without BINARYMIME), RFC 3461 (DSN), RFC 3207 (STARTTLS), RFC
//! 4865 (FUTURERELEASE), RFC 4954 (AUTH), RFC 6152 (8BITMIME), RFC 6531 (SMTPUTF8), RFC 9422
//! (LIMITS).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod actions;
mod command;
mod content;
mod dsn;
mod hold;
mod line;
mod name;
mod parameters;
mod path;
mod reply;
mod session;

pub use actions::{
    Actions, AuthRefusal, Extensions, Haste, LoginPolicy, MessageRefusal, MessageStart,
    RecipientRefusal, SenderRefusal, SmtpSettings, SmtpTls, TransmissionType,
};
pub use command::{BodyType, CharacterSet, Mail, RcptTo};
pub use dsn::{ENVELOPE_ID_BYTES_MAX, EnvelopeId, Notify, ORIGINAL_BYTES_MAX, Original, Return};
pub use hold::Holds;
pub use line::{LINE_BYTES_MAX, RESPONSE_LINE_BYTES_MAX};
pub use path::{
    Domain, LOCAL_PART_BYTES_MAX, PATH_BYTES_MAX, PathError, ReversePath, SmtpMailbox, SmtpPath,
    is_administrative,
};
pub use reply::{BUSY, REPLY_BYTES_MAX, SPOKE_FIRST, TOO_MANY_CONNECTIONS};
pub use session::{Session, SmtpWaitsFor};

#[cfg(test)]
mod tests;
