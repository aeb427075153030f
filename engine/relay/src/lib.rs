//! Outgoing mail: a message for another server, from the queue to the host that accepts it.
//!
//! A [`SmtpClient`] is the outgoing end of one SMTP connection. It is given the peer's bytes and
//! keeps the bytes to send. It knows no TCB, no name server, no store and no clock, so a test reads
//! like a conversation. Beside it are plain functions for the queue: where a message goes
//! ([`route`]), when it is tried again ([`schedule`]), what its domain says of the hosts there
//! ([`sts`], fetched by a [`Fetch`] and remembered by [`policies`]), whether a destination is worth
//! a try ([`destinations`]), the TLS statistics ([`tally`]), how a waiting message stores its
//! envelope ([`envelope`]), what its sender is told ([`report`]), the reverse path of a forwarded
//! message ([`srs`]), and whether a message was forwarded before ([`loops`]). The verdict of a
//! filter on an arriving message is here too ([`filter`]), since a filter is asked by the same
//! means as a policy is fetched.
//!
//! The outcome for a recipient is one of three (RFC 5321 section 4.2.1). Delivered: the message got
//! a `2yz`. Never: any command of the transaction got a `5yz`. Later: a command got a `4yz`, or the
//! outcome cannot be known, above all because the connection was lost.
//!
//! One window remains, and it is part of SMTP (RFC 5321 section 4.5.3.2.6, RFC 1047). A peer that
//! has the whole message gets it again if its `250` does not reach us, or is lost before it is
//! durable. One side alone cannot close this window, and the other choice would lose messages.
//!
//! Implements: RFC 5321; RFC 1870 (SIZE), RFC 2034 and 3463 (ENHANCEDSTATUSCODES), RFC 2920
//! (PIPELINING), RFC 3207 (STARTTLS), RFC 3461 (DSN), RFC 4954 (AUTH), RFC 6152 (8BITMIME), RFC
//! 6531 (SMTPUTF8), RFC 8460 (TLSRPT), RFC 8461 (MTA-STS).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod client;
pub mod destinations;
pub mod envelope;
mod extensions;
mod fetch;
pub mod filter;
pub mod loops;
mod outcome;
mod outgoing_message;
pub mod policies;
mod queue_id;
mod reach;
mod reply;
pub mod report;
mod response;
pub mod route;
pub mod schedule;
mod speaker;
pub mod srs;
pub mod sts;
pub mod tally;
#[cfg(test)]
mod tests;

pub use client::{
    Action, BODY_ROOM_BYTES, ClientLogin, RECIPIENTS_MAX, SmtpClient, SmtpClientSettings, TlsMode,
};
pub use fetch::Fetch;
pub use outcome::{Cause, DeliveryFailure, DeliveryOutcome, Lost, Misbehaviour, Stage};
pub use outgoing_message::{ContentWidth, Envelope, OutgoingMessage, OutgoingRecipient, Script};
pub use queue_id::{QueueId, QueueIds};
pub use reply::{Enhanced, Reply};
pub use smtp::{Notify, Return};
pub use speaker::Speaker;
