//! The outcome of a message for one recipient.
//!
//! Implements: RFC 5321 sections 4.2.1 and 4.3.2; RFC 3463 section 3.

use alloc::string::{String, ToString};
use core::fmt;

use message::report::Enhanced;

use crate::reply::Reply;

/// The outcome of a message for one recipient.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeliveryOutcome {
    /// The peer has the message, and is responsible for it from now on (RFC 5321 section 6.1).
    Delivered(Reply),
    /// The message must be tried again.
    Later(DeliveryFailure),
    /// Another try would not help. The sender gets a report.
    Never(DeliveryFailure),
}

/// Why the message was not delivered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeliveryFailure {
    /// The stage of the conversation.
    pub stage: Stage,
    /// The cause of the failure.
    pub cause: Cause,
}

/// The stage of a conversation: the step that the peer has to answer next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stage {
    /// The connection, and the greeting on it.
    Greeting,
    /// EHLO or HELO.
    Hello,
    /// STARTTLS, and the handshake.
    Tls,
    /// AUTH.
    Login,
    /// Before MAIL, while the message is inspected.
    Inspection,
    /// MAIL.
    Sender,
    /// RCPT.
    Recipient,
    /// DATA.
    Data,
    /// The message, up to its last dot.
    Message,
    /// The answer to the whole message. Until it arrives, the peer may have the message or not.
    MessageEnd,
    /// Between two messages, or at the end.
    Rest,
}

/// The cause of a failure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The peer has refused a command or the message.
    Refused(Reply),
    /// The connection is gone.
    Lost(Lost),
    /// The peer broke the SMTP protocol.
    Misbehaved(Misbehaviour),
    /// TLS is required, and the peer does not offer it.
    NoTls,
    /// A login is required, and the peer offers no mechanism that we know.
    NoLogin,
    /// The message is larger than the peer accepts, in bytes.
    TooLarge(u64),
    /// The message has non-ASCII bytes, and the peer does not accept them (RFC 6152 section 3).
    EightBit,
    /// An address has non-ASCII characters, which the peer does not support (RFC 6531 section 3.2).
    Utf8Address,
    /// The header has non-ASCII characters, which the peer does not support.
    Utf8Header,
    /// The address of the sender, or of this recipient, is not valid.
    BadAddress,
}

/// The way in which a connection was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    /// No host accepted the connection.
    NotMade,
    /// The peer closed the connection.
    Closed,
    /// The peer did not answer within [`crate::SmtpClient::patience`].
    Silence,
    /// The TLS handshake failed, or TLS failed later.
    Tls,
    /// The peer did not show a certificate that its domain has published.
    Unproven,
    /// The peer showed no certificate of a trusted authority that is valid for its name.
    Unvouched,
    /// This machine gave the connection up, because it stops or cannot read the message.
    GivenUp,
}

/// A violation of SMTP by a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misbehaviour {
    /// A line that is not a reply.
    NoReply,
    /// A line that is too long.
    LineTooLong,
    /// A reply with too many lines.
    TooManyLines,
    /// A reply with two codes.
    TwoCodes,
    /// A reply before its command was sent.
    Early,
    /// The challenge for a proof of the password is not valid, or not safe to answer.
    NoChallenge,
    /// The peer has not proved that it knows the password.
    NoProof,
    /// A reply with a code that is not valid for its command.
    OutOfPlace(u16),
}

impl DeliveryFailure {
    /// The peer's reply, if it has refused.
    pub fn reply(&self) -> Option<&Reply> {
        match &self.cause {
            Cause::Refused(reply) => Some(reply),
            _ => None,
        }
    }

    /// The reason in words for people, without the peer's reply and without a full stop.
    pub fn words(&self) -> String {
        match &self.cause {
            Cause::Refused(_) => alloc::format!("the other server {}", self.stage.refusal()),
            _ => self.to_string(),
        }
    }

    /// The status to report (RFC 3463). `class`: 4 if the message is tried again or was tried too
    /// long, 5 otherwise.
    pub fn status(&self, class: u8) -> Enhanced {
        let (subject, detail) = match &self.cause {
            Cause::Refused(Reply { enhanced: Some(enhanced), .. }) => {
                (enhanced.subject, enhanced.detail)
            }
            Cause::Refused(_) => match self.stage {
                Stage::Sender => (1, 8),
                Stage::Recipient => (1, 0),
                Stage::Data | Stage::Message | Stage::MessageEnd => (6, 0),
                _ => (3, 0),
            },
            Cause::Lost(Lost::NotMade) => (4, 1),
            Cause::Lost(Lost::Tls) | Cause::NoTls => (7, 10),
            Cause::Lost(Lost::Unproven | Lost::Unvouched) => (7, 5),
            Cause::Lost(_) => (4, 2),
            Cause::Misbehaved(_) => (5, 0),
            Cause::NoLogin => (7, 0),
            Cause::TooLarge(_) => (3, 4),
            Cause::EightBit => (6, 3),
            Cause::Utf8Address => (6, 7),
            Cause::Utf8Header => (6, 9),
            Cause::BadAddress if self.stage == Stage::Sender => (1, 7),
            Cause::BadAddress => (1, 3),
        };
        Enhanced { class, subject, detail }
    }
}

impl fmt::Display for DeliveryFailure {
    /// The reason in words for people, with the peer's reply, and without a full stop.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::Refused(reply) => {
                write!(out, "the other server {}: {reply}", self.stage.refusal())
            }
            Cause::Lost(lost @ Lost::NotMade) => write!(out, "{lost}"),
            Cause::Lost(lost) => write!(out, "{lost} {}", self.stage),
            Cause::Misbehaved(what) => {
                write!(out, "the other server broke the SMTP protocol ({what}) {}", self.stage)
            }
            Cause::NoTls => out.write_str("the other server does not offer TLS, which is required"),
            Cause::NoLogin => out.write_str("the other server offers no supported login method"),
            Cause::TooLarge(most) => {
                write!(out, "the other server accepts messages of at most {most} bytes")
            }
            Cause::EightBit => {
                out.write_str("the other server does not support 8BITMIME, which the message needs")
            }
            Cause::Utf8Address => out
                .write_str("the other server does not support addresses with non-ASCII characters"),
            Cause::Utf8Header => {
                out.write_str("the other server does not support headers with non-ASCII characters")
            }
            Cause::BadAddress => out.write_str("the address is not valid"),
        }
    }
}

impl Stage {
    fn refusal(self) -> &'static str {
        match self {
            Stage::Greeting | Stage::Hello | Stage::Inspection | Stage::Rest => {
                "refused the connection"
            }
            Stage::Tls => "refused TLS",
            Stage::Login => "refused our login",
            Stage::Sender => "refused the sender",
            Stage::Recipient => "refused the recipient",
            Stage::Data | Stage::Message | Stage::MessageEnd => "refused the message",
        }
    }
}

impl fmt::Display for Stage {
    /// The time of the event, in words.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Stage::Greeting => "before its greeting",
            Stage::Hello => "after EHLO",
            Stage::Tls => "after STARTTLS",
            Stage::Login => "during the login",
            Stage::Inspection => "before MAIL FROM",
            Stage::Sender => "after MAIL FROM",
            Stage::Recipient => "after RCPT TO",
            Stage::Data => "after DATA",
            Stage::Message => "during the message",
            Stage::MessageEnd => "after the end of the message, which it may have accepted",
            Stage::Rest => "between two messages",
        })
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Lost::NotMade => "the other server could not be reached",
            Lost::Closed => "the other server closed the connection",
            Lost::Silence => "the other server did not respond in time",
            Lost::Tls => "TLS with the other server failed",
            Lost::Unproven => {
                "the other server's certificate does not match the one that its domain has published (DANE)"
            }
            Lost::Unvouched => "the other server has no valid certificate for its name",
            Lost::GivenUp => "this server was shut down",
        })
    }
}

impl fmt::Display for Misbehaviour {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misbehaviour::NoReply => out.write_str("an invalid reply"),
            Misbehaviour::LineTooLong => out.write_str("a reply line that is too long"),
            Misbehaviour::TooManyLines => out.write_str("a reply with too many lines"),
            Misbehaviour::TwoCodes => out.write_str("a reply with two codes"),
            Misbehaviour::Early => out.write_str("a reply before the command"),
            Misbehaviour::NoChallenge => out.write_str("an invalid login challenge"),
            Misbehaviour::NoProof => out.write_str("an invalid login signature"),
            Misbehaviour::OutOfPlace(code) => write!(out, "an unexpected reply {code}"),
        }
    }
}
