//! RFC 1939: the server's side of a POP3 conversation, as a grammar and a state machine.
//!
//! A [`Session`] is told what arrived and acts through [`Actions`], which whoever owns the connection implements. It
//! knows no TCB, no store and no clock; the maildrop is a numbered list behind the trait, as it was at login.
//!
//! Invariants:
//! - A session owns no buffer. Bytes that it does not take are offered again, of a client's commands as of a message.
//! - Nothing is deleted but by QUIT after a login, and before its answer; a connection that dies deletes nothing.
//! - What a login opened is left exactly once.
//! - Nothing that was said in the clear is known once TLS is spoken: whoever asks for TLS gets another session, and what he said behind that is thrown away.
//! - Every line ends in CRLF, and no line of a message or a list can be taken for the end of its response.
//!
//! APOP is not offered: the server would have to keep every password in plain text. A message is sent as it is stored,
//! whether or not the client said UTF8: every client in use reads such headers better than the surrogates of RFC 6857.
//!
//! Answers to: RFC 1939; RFC 2449 (CAPA, RESP-CODES, PIPELINING, EXPIRE, IMPLEMENTATION), RFC 2595 (STLS), RFC 3206
//! (AUTH-RESP-CODE), RFC 5034 (AUTH, SASL), RFC 6856 (UTF8).
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
    Actions, DeletionError, LoginRefusal, Maildrop, PlainLogin, ReadError, Settings, Tls,
};
pub use line::{LINE_BYTES_MAX, RESPONSE_LINE_BYTES_MAX};
pub use number::MessageNumber;
pub use reply::{BUSY, REPLY_BYTES_MAX};
pub use session::{Session, WaitsFor};
pub use unique_id::{UNIQUE_ID_BYTES_MAX, UniqueId};

#[cfg(test)]
mod tests;
