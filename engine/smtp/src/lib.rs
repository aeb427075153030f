//! RFC 5321: the server's side of an SMTP conversation, as a grammar and a state machine.
//!
//! A [`Session`] is given the bytes that arrive and acts through [`Actions`], which the owner of
//! the connection implements. It knows no TCB, no store and no clock, so a test reads like a
//! conversation and a simulator can hold thousands of sessions.
//!
//! Invariants:
//! - A session owns no buffer. Bytes that it does not take are offered again: the caller keeps
//!   them.
//! - Only CRLF ends a line, and only CRLF.CRLF ends a message's data. Anything else that another
//!   server might take for a line end is refused. So a message can never be read as two (SMTP
//!   smuggling).
//! - Every command gets exactly one reply, in order; a reply fits into [`REPLY_BYTES_MAX`].
//! - A session ends exactly once what it began: a message by its end or its abort, a transaction by
//!   its end.
//! - Nothing that was said in the clear is known under TLS: after STARTTLS the client gets a new
//!   session, and the bytes that it sent after STARTTLS in the clear are thrown away.
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
    Domain, ForwardPath, LOCAL_PART_BYTES_MAX, PATH_BYTES_MAX, PathError, ReversePath, SmtpMailbox,
};
pub use reply::{BUSY, REPLY_BYTES_MAX, SPOKE_FIRST, TOO_MANY_CONNECTIONS};
pub use session::{Session, SmtpWaitsFor};

#[cfg(test)]
mod tests;
