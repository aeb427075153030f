//! The notice that a message could not be sent.
//!
//! The notice goes to the writer's inbox. Its origin is made from the message's GUID, so the notice
//! is delivered only once, even if the power fails.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use message::date_time;
use message::header::Header;
use store::{AccountId, Flags, Guid, MessageInfo, Refusal, SentId};

use super::context::JobHost;

/// The bit in an origin that marks the notice about a message. No outbox entry has this bit.
const NOTICE: u128 = 1 << 14;

/// The number of low bits of a GUID that an origin keeps unchanged. The bits above them tell the
/// deliveries of one message apart.
pub(super) const GUID_BITS: u32 = 48;

/// The most characters of a subject that the notice quotes.
const SUBJECT_MAX: usize = 100;

/// Why a message could not be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hindrance {
    /// A part of the message cannot be read.
    Unreadable,
    /// The header is longer than a part that can be read at a time.
    LongHeader,
    /// A recipient's address no longer exists on this server.
    NoRecipient,
    /// An account has no place for one more arriving message.
    NoPlace,
}

impl Hindrance {
    /// The reason.
    fn words(self) -> &'static str {
        match self {
            Hindrance::Unreadable => {
                "Part of the message cannot be read from this server's disk any more."
            }
            Hindrance::LongHeader => "The message has too many recipients or too long a header.",
            Hindrance::NoRecipient => "A recipient has no mailbox on this server any more.",
            Hindrance::NoPlace => "Too many messages were being delivered at the same time.",
        }
    }

    /// The advice to the writer.
    fn advice(self) -> &'static str {
        match self {
            Hindrance::Unreadable => {
                "The message is back in Drafts. To send it, write the damaged part again."
            }
            Hindrance::NoPlace => {
                "The message is back in Drafts. To try again, open it there and send it."
            }
            Hindrance::LongHeader => {
                "The message is back in Drafts. Remove some recipients there and send it."
            }
            Hindrance::NoRecipient => {
                "The message is back in Drafts. Correct the recipients there and send it."
            }
        }
    }
}

/// The origin of the notice.
pub(super) fn origin(account: AccountId, info: &MessageInfo) -> SentId {
    let Guid(guid) = info.guid;
    SentId::of(account, Guid(guid ^ NOTICE << GUID_BITS))
}

/// The notice, as a message. `beginning`: the part of the draft's header that could be read.
///
/// Errors: `NoSuchAccount`.
pub(super) fn text(
    hindrance: Hindrance,
    account: AccountId,
    info: &MessageInfo,
    beginning: &[u8],
    host: &JobHost<'_, '_>,
) -> Result<Vec<u8>, Refusal> {
    let known = host.store().account(account).ok_or(Refusal::NoSuchAccount)?;
    let (to, Guid(guid)) = (known.address(), info.guid);
    let domain = to.rsplit_once('@').map_or("", |(_, domain)| domain);
    let (why, advice) = (hindrance.words(), hindrance.advice());
    let now = String::from_utf8_lossy(&date_time(host.cx.turn.wall)).into_owned();
    let subject = match subject_of(beginning) {
        Some(subject) => format!("Subject: {subject}\r\n"),
        None => String::new(),
    };
    let reached = if info.flags.contains(Flags::LEAVING) {
        "Some recipients may have received it already."
    } else {
        "No recipient has received it."
    };
    let text = format!(
        "Return-Path: <>\r\n\
         Date: {now}\r\n\
         From: Mail delivery <postmaster@{domain}>\r\n\
         To: <{to}>\r\n\
         Subject: Your message could not be sent\r\n\
         Message-ID: <{guid:032x}.notice@{domain}>\r\n\
         Auto-Submitted: auto-generated\r\n\
         MIME-Version: 1.0\r\n\
         Content-Type: text/plain; charset=utf-8\r\n\
         Content-Transfer-Encoding: 8bit\r\n\
         \r\n\
         Your message could not be sent. {why}\r\n\
         {reached}\r\n\
         {subject}\
         \r\n\
         {advice}\r\n"
    );
    Ok(text.into_bytes())
}

/// The subject of the message, if that could be read.
fn subject_of(beginning: &[u8]) -> Option<String> {
    let subject = Header::new(beginning).field("Subject")?.text();
    let shown: String = subject.chars().filter(|one| !one.is_control()).take(SUBJECT_MAX).collect();
    (!shown.is_empty()).then_some(shown)
}
