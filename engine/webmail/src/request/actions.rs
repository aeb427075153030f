//! The forms with actions on messages: they move, mark, delete and cancel messages.

use http::Reply;
use outbound::QueueEntryId;
use store::{ARCHIVE, EntrySource, Flags, INBOX, JUNK, MailboxId, OUTBOX, TRASH, Uid, UidRange};

use crate::flash::{FlashMessage, MessageRange};
use crate::form::Form;
use crate::jobs::{Change, Job, Selection, ranges_of};
use crate::{Destination, MessageKey, answer};

use super::AuthenticatedRequest;

impl AuthenticatedRequest<'_, '_> {
    /// The job for an action on messages. A star button names one message. All other actions apply
    /// to the selected messages.
    pub(super) fn act(&mut self, form: &Form<'_>, then: &Destination) -> Result<Job, Reply> {
        if let Some(key) = form.text("star").and_then(|key| key.parse().ok()) {
            return Ok(Job::change(
                Change::Star,
                selection(form, core::iter::once(key)),
                then.as_str().into(),
            ));
        }
        if form.text("do") == Some("cancel") {
            return self.cancel(form, then);
        }
        let to = || form.text("to").and_then(|to| to.parse().ok()).map(MailboxId);
        let change = match form.text("do").unwrap_or_default() {
            "archive" => Some(Change::File(ARCHIVE)),
            "trash" => Some(Change::File(TRASH)),
            "junk" => Some(Change::File(JUNK)),
            "inbox" => Some(Change::File(INBOX)),
            "move" => to().map(Change::File),
            "erase" | "empty-trash" | "empty-junk" => Some(Change::Erase),
            "read" => Some(Change::Flag(Flags::SEEN)),
            "unread" => Some(Change::Unflag(Flags::SEEN)),
            _ => None,
        };
        let Some(change) = change else {
            return Err(self.unchanged("Choose a folder first.", then));
        };
        let emptied = match form.text("do").unwrap_or_default() {
            "empty-trash" => Some(TRASH),
            "empty-junk" => Some(JUNK),
            _ => None,
        };
        let selected = match emptied {
            Some(mailbox) => match up_to_last(form, mailbox) {
                Some(everything) => everything,
                None => {
                    return Err(self.unchanged("Nothing was changed. Open the folder again.", then));
                }
            },
            None => selection(form, form.texts("key").filter_map(|key| key.parse().ok())),
        };
        Ok(Job::change(change, selected, then.as_str().into()))
    }

    /// The job that cancels the sending of a message of the user's outbox. A message that is to be
    /// forwarded is not the user's, and cannot be cancelled.
    fn cancel(&mut self, form: &Form<'_>, then: &Destination) -> Result<Job, Reply> {
        let mut keys = form.texts("key").filter_map(|key| key.parse().ok());
        let (chosen, others): (Option<MessageKey>, Option<MessageKey>) = (keys.next(), keys.next());
        let why = match chosen.map(MessageKey::in_store).filter(|_| others.is_none()) {
            Some((OUTBOX, uid)) => {
                let entry = self.cx.store().outbox_entry(self.account, uid);
                if entry.is_some_and(|entry| entry.source() == EntrySource::Submitted) {
                    let entry = QueueEntryId { account: self.account, uid };
                    return Ok(Job::cancel(entry, then.as_str().into()));
                }
                "Nothing was changed: this message is no longer waiting for these recipients. It may still wait for others."
            }
            _ => "Select one message to cancel its sending.",
        };
        Err(self.unchanged(why, then))
    }

    /// The reply to a form that changes nothing, with the reason.
    fn unchanged(&mut self, why: &str, then: &Destination) -> Reply {
        let notice = self.cx.sessions.push_flash(&self.session, FlashMessage::failure(why));
        answer::redirect_with_flash(then.as_str(), notice)
    }
}

/// All messages of a mailbox that were there when the page with the form was made. `None`: the form
/// does not name the last of them.
fn up_to_last(form: &Form<'_>, mailbox: MailboxId) -> Option<Selection> {
    let last = form.text("last")?.parse().ok().filter(|last| *last > 0)?;
    let uids = UidRange { first: Uid(1), last: Uid(last) };
    Some(Selection::These([MessageRange { mailbox, uids }].into()))
}

/// The messages that the keys of a form name.
fn selection(form: &Form<'_>, keys: impl Iterator<Item = MessageKey>) -> Selection {
    match form.text("whole") {
        Some("conversation") => Selection::Conversations(keys.collect()),
        _ => Selection::These(ranges_of(keys.collect())),
    }
}
