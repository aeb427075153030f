//! What a page tells of what was done, and what takes that back.

use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use store::{MailboxId, Uid, UidRange};

use crate::address::number;
use crate::{Key, NotFound};

/// What a page is to tell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Said {
    /// In words.
    pub text: String,
    /// Whether something went wrong.
    pub is_error: bool,
    /// What takes it back.
    pub undo: Option<Undo>,
    /// For how many seconds from now on that can be, if it is known.
    pub seconds: Option<u64>,
}

/// What takes something back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Undo {
    /// Messages were filed: they go where they came from.
    Filing {
        /// Where they are now.
        messages: Messages,
        /// Where they were.
        to: MailboxId,
    },
    /// A letter is held: it becomes a draft again.
    Sending(Key),
}

impl Said {
    /// Something was not done.
    pub(crate) fn wrong(text: &str) -> Said {
        Said { is_error: true, ..Said::done(text) }
    }

    /// Something was done, and nothing takes it back.
    pub(crate) fn done(text: &str) -> Said {
        Said { text: text.into(), is_error: false, undo: None, seconds: None }
    }
}

/// As forms carry it: `{mailbox}.{first}-{last}.{to}`, or `sending.{key}`.
impl fmt::Display for Undo {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undo::Filing { messages: Messages { mailbox, uids }, to } => {
                write!(out, "{}.{}-{}.{}", mailbox.0, uids.first.0, uids.last.0, to.0)
            }
            Undo::Sending(key) => write!(out, "sending.{key}"),
        }
    }
}

impl FromStr for Undo {
    type Err = NotFound;

    fn from_str(text: &str) -> Result<Undo, NotFound> {
        if let Some(key) = text.strip_prefix("sending.") {
            return Ok(Undo::Sending(key.parse()?));
        }
        let (messages, to) = text.rsplit_once('.').ok_or(NotFound)?;
        let (first, last) = messages.split_once('-').ok_or(NotFound)?;
        let first: Key = first.parse()?;
        let uids = UidRange { first: Uid(first.uid), last: Uid(number(last)?) };
        Ok(Undo::Filing {
            messages: Messages { mailbox: MailboxId(first.mailbox), uids },
            to: MailboxId(number(to)?),
        })
    }
}

/// Messages of one mailbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Messages {
    /// Where they are.
    pub mailbox: MailboxId,
    /// Which, of those that are there.
    pub uids: UidRange,
}
