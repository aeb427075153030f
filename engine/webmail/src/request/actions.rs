//! The forms with actions on messages: they move, mark, delete and cancel messages.

use http::Reply;
use outbound::{QueueEntryId, Which};
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
            let notice = self
                .cx
                .sessions
                .push_flash(&self.session, FlashMessage::failure("Choose a folder first."));
            return Err(answer::redirect_with_flash(then.as_str(), notice));
        };
        let everything = |mailbox| {
            let uids = UidRange { first: Uid(1), last: Uid(u32::MAX) };
            Selection::These(alloc::vec![MessageRange { mailbox, uids }])
        };
        let selected = match form.text("do").unwrap_or_default() {
            "empty-trash" => everything(TRASH),
            "empty-junk" => everything(JUNK),
            _ => selection(form, form.texts("key").filter_map(|key| key.parse().ok())),
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
                    let which = Which::One(QueueEntryId { account: self.account, uid });
                    return Ok(Job::cancel(which, then.as_str().into()));
                }
                "Nothing was changed: this message is not waiting to be sent."
            }
            _ => "Select one message to cancel its sending.",
        };
        let notice = self.cx.sessions.push_flash(&self.session, FlashMessage::failure(why));
        Err(answer::redirect_with_flash(then.as_str(), notice))
    }
}

/// The messages that the keys of a form name.
fn selection(form: &Form<'_>, keys: impl Iterator<Item = MessageKey>) -> Selection {
    match form.text("whole") {
        Some("conversation") => Selection::Conversations(keys.collect()),
        _ => Selection::These(ranges_of(keys.collect())),
    }
}
