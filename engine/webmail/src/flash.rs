//! Flash messages: the next page shows the result of an action, and offers to undo the action.

use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use store::{MailboxId, Uid, UidRange};

use crate::address::number;
use crate::{MessageKey, NotFound};

/// A flash message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlashMessage {
    /// The text.
    pub text: String,
    /// Whether the action has failed.
    pub is_error: bool,
    /// The action that undoes the reported action, if it can be undone.
    pub undo: Option<UndoAction>,
    /// The number of seconds in which the action can be undone, if this time is limited.
    pub seconds: Option<u64>,
}

/// An action that undoes another action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UndoAction {
    /// Moves messages back to their earlier mailbox.
    Filing {
        /// The messages, in their current mailbox.
        messages: MessageRange,
        /// The earlier mailbox of the messages.
        to: MailboxId,
    },
    /// Takes back a held message, which becomes a draft again.
    Sending(MessageKey),
}

impl FlashMessage {
    /// The flash message after an action has failed.
    pub(crate) fn failure(text: &str) -> FlashMessage {
        FlashMessage { is_error: true, ..FlashMessage::success(text) }
    }

    /// The flash message after the success of an action that cannot be undone.
    pub(crate) fn success(text: &str) -> FlashMessage {
        FlashMessage { text: text.into(), is_error: false, undo: None, seconds: None }
    }
}

/// The format in forms: `{mailbox}.{first}-{last}.{to}`, or `sending.{key}`.
impl fmt::Display for UndoAction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UndoAction::Filing { messages: MessageRange { mailbox, uids }, to } => {
                write!(out, "{}.{}-{}.{}", mailbox.0, uids.first.0, uids.last.0, to.0)
            }
            UndoAction::Sending(key) => write!(out, "sending.{key}"),
        }
    }
}

impl FromStr for UndoAction {
    type Err = NotFound;

    fn from_str(text: &str) -> Result<UndoAction, NotFound> {
        if let Some(key) = text.strip_prefix("sending.") {
            return Ok(UndoAction::Sending(key.parse()?));
        }
        let (messages, to) = text.rsplit_once('.').ok_or(NotFound)?;
        let (first, last) = messages.split_once('-').ok_or(NotFound)?;
        let first: MessageKey = first.parse()?;
        let uids = UidRange { first: Uid(first.uid), last: Uid(number(last)?) };
        Ok(UndoAction::Filing {
            messages: MessageRange { mailbox: MailboxId(first.mailbox), uids },
            to: MailboxId(number(to)?),
        })
    }
}

/// Messages of one mailbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageRange {
    /// The mailbox.
    pub mailbox: MailboxId,
    /// The range. Messages in it may be missing.
    pub uids: UidRange,
}
