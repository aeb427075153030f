//! RFC 1939: the server side of POP3, as a grammar and a state machine.
//!
//! A [`Session`] receives events and acts through [`Actions`], which the owner of the connection
//! implements. A session does not know TCP, the store or the clock. It sees the maildrop as a
//! numbered list, in the state at the login.
//!
//! Invariants:
//! - A session owns no buffer. The caller offers again the bytes of commands and messages that the
//!   session did not take.
//! - Only QUIT after a login deletes messages, and the reply follows the deletion. A broken
//!   connection deletes nothing.
//! - A maildrop that a login opened is unlocked exactly once.
//! - No plaintext state survives STLS: a new session begins after the handshake, and bytes that the
//!   client sent after STLS are dropped.
//! - Every line ends in CRLF, and a client cannot take a line of a message or a list for the end of
//!   the response.
//!
//! APOP is not offered: the server would have to store every password in plain text. A message is
//! sent as it is stored, whether or not the client sent UTF8. All clients in use display UTF-8
//! headers better than the ASCII replacements (surrogates) of RFC 6857.
//!
//! Implements: RFC 1939; RFC 2449 (CAPA, RESP-CODES, PIPELINING, EXPIRE, IMPLEMENTATION), RFC 2595
//! (STLS), RFC 3206 (AUTH-RESP-CODE), RFC 5034 (AUTH, SASL), RFC 6856 (UTF8).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod actions;
mod command;
mod cut;
mod line;
mod number;
mod reply;
mod session;
mod stuffing;
mod unique_id;

pub use actions::{
    Actions, DeletionError, LoginRefusal, Maildrop, PlainLogin, Pop3Settings, Pop3Tls, ReadError,
};
pub use line::{LINE_BYTES_MAX, RESPONSE_LINE_BYTES_MAX};
pub use number::MessageNumber;
pub use reply::{BUSY, REPLY_BYTES_MAX};
pub use session::{Pop3WaitsFor, Session};
pub use unique_id::{UNIQUE_ID_BYTES_MAX, UniqueId};

#[cfg(test)]
mod tests;
