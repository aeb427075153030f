//! How mail leaves: a letter that is for somebody elsewhere, from the queue to the host that takes it.
//!
//! A [`Client`] is the outgoing end of one SMTP connection. It is told what the peer says and keeps what there is to say; it knows no TCB, no name server, no store and no
//! clock, so that a test is a conversation. Beside it stand plain functions of what a queue has to know: where a letter goes ([`route`]), when it is tried again ([`schedule`]),
//! what its domain says of the hosts there ([`sts`], fetched by a [`Fetch`] and known by
//! [`policies`]), whether a destination is worth trying ([`destinations`]), how often TLS was had
//! there and why not ([`tally`]), how a message that waits holds what was said of it ([`envelope`]),
//! what its sender is told ([`report`]), from which address a message is forwarded ([`srs`]), and
//! whether it was forwarded before ([`loops`]). The verdict of a filter on an arriving message is
//! here too ([`filter`]), since a filter is asked by the same means as a policy is fetched.
//!
//! What a recipient's letter comes to is one of three, as RFC 5321 section 4.2.1 has it: delivered, for a `2yz` to the message; never, for a `5yz` to anything that
//! concerns it; later, for a `4yz` and for all that nobody can know, above all a connection that is lost.
//!
//! One window remains, and SMTP has it (RFC 5321 section 4.5.3.2.6, RFC 1047): whoever has the whole message and whose `250` does not reach us, or reaches us and is lost before it
//! was written down, gets the message again. Nobody can close it from one side, and the other choice would lose letters.
//!
//! Answers to: RFC 5321; RFC 1870 (SIZE), RFC 2034 and 3463 (ENHANCEDSTATUSCODES), RFC 2920 (PIPELINING), RFC 3207 (STARTTLS), RFC 3461 (DSN), RFC 4954 (AUTH), RFC 6152
//! (8BITMIME), RFC 6531 (SMTPUTF8), RFC 8460 (TLSRPT), RFC 8461 (MTA-STS).
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
mod letter;
pub mod loops;
mod outcome;
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

pub use client::{Action, BODY_ROOM_BYTES, Client, Login, RECIPIENTS_MAX, Settings, Tls};
pub use fetch::Fetch;
pub use letter::{Content, Envelope, Letter, Recipient, Script};
pub use outcome::{Cause, Lost, Misbehaviour, Outcome, Reason, Stage};
pub use queue_id::{QueueId, QueueIds};
pub use reply::{Enhanced, Reply};
pub use smtp::{Notify, Return};
pub use speaker::Speaker;
