//! Flash messages: the result of an action, shown by the next page, and how to undo the action.

use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use store::{MailboxId, Uid, UidRange};

use crate::address::number;
use crate::{MessageKey, NotFound};

/// A flash message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlashMessage {
    /// Its text.
    pub text: String,
    /// Whether the action has failed.
    pub is_error: bool,
    /// How to undo the action.
    pub undo: Option<UndoAction>,
    /// For how many seconds it can be undone, if there is a limit.
    pub seconds: Option<u64>,
}

/// How to undo an action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UndoAction {
    /// Messages were moved: move them back.
    Filing {
        /// The messages, where they are now.
        messages: MessageRange,
        /// Where they were.
        to: MailboxId,
    },
    /// A message is held: it becomes a draft again.
    Sending(MessageKey),
}

impl FlashMessage {
    /// An action has failed.
    pub(crate) fn failure(text: &str) -> FlashMessage {
        FlashMessage { is_error: true, ..FlashMessage::success(text) }
    }

    /// An action has succeeded and cannot be undone.
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
