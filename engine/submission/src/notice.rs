//! The notice that a message could not be sent.
//!
//! It goes to the writer's inbox. Its origin is that of the message. So it comes once, whenever the
//! power fails.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use message::date_time;
use message::header::Header;
use store::{AccountId, Flags, Guid, MessageInfo, Origin, Refusal};

use super::context::JobHost;

/// The bit above a message's number in the origin of its notice. No outbox entry has it.
const NOTICE: u128 = 1 << 14;

/// The bits of a message's GUID. The bits above them tell the places of one origin.
pub(super) const GUID_BITS: u32 = 48;

/// Characters of a subject that the notice says.
const SUBJECT_MAX: usize = 100;

/// Why a message could not be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hindrance {
    /// A part of it cannot be read.
    Unreadable,
    /// An account has no place for one more message that is on its way.
    NoPlace,
}

impl Hindrance {
    fn words(self) -> &'static str {
        match self {
            Hindrance::Unreadable => {
                "a part of it cannot be read from this server's disk any more.\r\n"
            }
            Hindrance::NoPlace => "too many messages are on their way at the moment.\r\n",
        }
    }
}

/// The origin of the notice.
pub(super) fn origin(account: AccountId, info: &MessageInfo) -> Origin {
    let Guid(guid) = info.guid;
    Origin::of(account, Guid(guid ^ NOTICE << GUID_BITS))
}

/// The notice, as a message. `beginning`: what could be read of the draft's header.
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
    let why = hindrance.words();
    let now = String::from_utf8_lossy(&date_time(host.cx.turn.wall)).into_owned();
    let subject = match subject_of(beginning) {
        Some(subject) => format!("Its subject is: {subject}\r\n"),
        None => String::new(),
    };
    let reached = if info.flags.contains(Flags::LEAVING) {
        "Some of its recipients may have received it.\r\n"
    } else {
        "None of its recipients has received it.\r\n"
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
         Your message could not be sent:\r\n\
         {why}\
         {subject}\
         {reached}\
         \r\n\
         It is in Drafts again. If it is important, write it again and send it.\r\n"
    );
    Ok(text.into_bytes())
}

/// The subject of the message, if that could be read.
fn subject_of(beginning: &[u8]) -> Option<String> {
    let subject = Header::new(beginning).field("Subject")?.text();
    let shown: String = subject.chars().filter(|one| !one.is_control()).take(SUBJECT_MAX).collect();
    (!shown.is_empty()).then_some(shown)
}
