//! Outgoing mail: a message for another server, from the queue to the host that accepts it.
//!
//! A [`SmtpClient`] is the outgoing end of one SMTP connection. The caller gives it the peer's
//! bytes, and sends its output. The client does not know TCP, name servers, the store or the clock,
//! so a test reads like a conversation. The queue uses the other parts:
//! - [`route`]: the hosts for a message;
//! - [`schedule`]: when a message is tried again;
//! - [`sts`], [`Fetch`] and [`policies`]: the policy of a domain about its hosts (MTA-STS), how it
//!   is fetched, and how it is remembered;
//! - [`destinations`]: whether a destination may be tried;
//! - [`tally`]: the TLS statistics;
//! - [`envelope`]: how a waiting message stores its envelope;
//! - [`report`]: reports to the sender;
//! - [`srs`]: the reverse path of a forwarded message;
//! - [`loops`]: whether a message was forwarded before;
//! - [`filter`]: the verdict of a filter on an arriving message. The question to a filter is an
//!   HTTP request, as the fetch of a policy is.
//!
//! The outcome for a recipient is one of three (RFC 5321 section 4.2.1). Delivered: the message got
//! a `2yz`. Never: a command on which the recipient depends got a `5yz`, and another try would not
//! help. Later: a command got a `4yz`, or the outcome is unknown, mostly because the connection was
//! lost.
//!
//! SMTP has one case in which a message is delivered twice (RFC 5321 section 4.5.3.2.6, RFC 1047).
//! A peer that has the whole message gets it again if its `250` does not reach us, or if the
//! machine stops before the result is durable. One side alone cannot avoid this. Without the
//! repetition, messages could be lost.
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
pub use message::report::Enhanced;
pub use outcome::{Cause, DeliveryFailure, DeliveryOutcome, Lost, Misbehaviour, Stage};
pub use outgoing_message::{ContentWidth, Envelope, OutgoingMessage, OutgoingRecipient, Script};
pub use queue_id::{QueueId, QueueIds};
pub use reply::Reply;
pub use smtp::{Notify, Return};
pub use speaker::Speaker;
