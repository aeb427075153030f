//! Checks webmail pages against the model: each listed message may exist, and each message that
//! certainly exists is listed.
//!
//! Other clients act between a request and its response. A page may show the state before or after
//! any such change.

use super::fixture::AT_WEBMAIL;
use super::message::{COPIES, CopyState, MessageCopy, MessageId, OWN};
use super::model::Model;
use super::uncertain::RequestedChange;

/// Archive is the last mailbox that a search covers by default. The mailboxes after it hold
/// discarded messages.
const SEARCHED_LAST: u32 = 4;

/// A row of a list.
#[derive(Clone, Debug)]
pub(super) struct ListRow {
    pub(super) mailbox: u32,
    pub(super) uid: u32,
    /// `None` if the page marks the message as unreadable.
    pub(super) message: Option<MessageId>,
    pub(super) is_starred: bool,
}

impl ListRow {
    /// The key of the row in forms and URLs.
    pub(super) fn key(&self) -> String {
        format!("{}.{}", self.mailbox, self.uid)
    }
}

/// The state of the model when a page was requested.
#[derive(Clone, Debug)]
pub(super) struct View {
    account: usize,
    /// The number of changes of each copy so far, by message.
    changes: Vec<[u64; COPIES]>,
}

/// The messages that a page must show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ListExtent {
    /// No message: the page may leave out any message.
    Some,
    /// All messages in this mailbox.
    Mailbox(u32),
    /// This message, if it is in a mailbox of this account that searches cover.
    Message(MessageId),
}

impl Model {
    /// The present view, for a page of `account` that a client requests now.
    pub(super) fn view(&self, account: usize) -> View {
        let changes = self
            .messages
            .iter()
            .map(|message| std::array::from_fn(|copy| message.copies[copy].changes));
        View { account, changes: changes.collect() }
    }

    /// Whether a copy is unchanged since the view.
    pub(super) fn is_unchanged(&self, view: &View, id: MessageId, copy: usize) -> bool {
        view.changes
            .get(id.0)
            .is_some_and(|changes| changes[copy] == self.messages[id.0].copies[copy].changes)
    }

    /// Whether any message of the view's account may have been moved or deleted since the view.
    pub(super) fn may_have_gone(&self, view: &View) -> bool {
        (0..self.messages.len()).map(MessageId).any(|id| {
            let copies = self.messages[id.0].recipients.iter();
            let mut own = copies.filter(|copy| {
                **copy == view.account || **copy == OWN && view.account == AT_WEBMAIL
            });
            own.any(|copy| {
                let MessageCopy { fate, place, .. } = &self.messages[id.0].copies[*copy];
                !self.is_unchanged(view, id, *copy)
                    || *fate == CopyState::PerhapsDeleted
                    || place.known().is_none()
            })
        })
    }

    /// Checks a page that has arrived with these rows.
    pub(super) fn listed(&self, view: &View, rows: &[ListRow], extent: ListExtent) {
        for row in rows {
            let Some(id) = row.message else { continue };
            let name = self.copy_in(id, view.account, row.mailbox);
            let copy = &self.messages[id.0].copies[name];
            if self.is_unchanged(view, id, name) {
                let is_there = matches!(
                    copy.fate,
                    CopyState::PerhapsDelivered | CopyState::Present | CopyState::PerhapsDeleted
                );
                assert!(
                    is_there,
                    "message {} is {:?} and is shown in {}",
                    id.0, copy.fate, row.mailbox
                );
                let place = &copy.place;
                assert!(
                    place.may_be(&row.mailbox),
                    "message {} is in {place:?} and is shown in {}",
                    id.0,
                    row.mailbox
                );
                let star = &copy.is_starred;
                assert!(
                    star.may_be(&row.is_starred),
                    "message {} has the star {star:?}, and is shown as {row:?}",
                    id.0
                );
            }
        }
        for (number, message) in
            self.messages.iter().enumerate().filter(|(_, message)| !message.is_harmed)
        {
            for (name, copy) in message
                .copies
                .iter()
                .enumerate()
                .filter(|(_, copy)| copy.fate == CopyState::Present)
            {
                let (id, Some(mailbox)) = (MessageId(number), copy.place.known()) else { continue };
                let is_meant = match extent {
                    ListExtent::Some => false,
                    ListExtent::Mailbox(all) => all == *mailbox,
                    ListExtent::Message(one) => one == id && *mailbox <= SEARCHED_LAST,
                };
                let is_wanted = is_meant && self.copy_in(id, view.account, *mailbox) == name;
                if is_wanted && self.is_unchanged(view, id, name) {
                    let mut shown = rows
                        .iter()
                        .filter(|row| row.mailbox == *mailbox)
                        .filter_map(|row| row.message);
                    let is_shown =
                        shown.any(|shown| shown == id || self.share_a_conversation(shown, id));
                    assert!(is_shown, "message {number} is in {mailbox} and is not shown there");
                }
            }
        }
    }

    /// Notes that a page showed these rows. Rows show only durable messages, so none of them may be
    /// lost from now on.
    pub(super) fn seen(&mut self, view: &View, rows: &[ListRow]) {
        for row in rows {
            if let Some(id) = row.message {
                let copy = self.copy_in(id, view.account, row.mailbox);
                self.messages[id.0].copies[copy].mark_present();
            }
        }
    }

    /// The message with this subject in a list. `None` for a subject that is no number: the row of
    /// a report, or of an unreadable message.
    pub(super) fn named(&self, subject: &str) -> Option<MessageId> {
        let number: usize = subject.parse().ok()?;
        assert!(number < self.messages.len(), "not a message of this room: {subject}");
        Some(MessageId(number))
    }

    /// Whether each account has at most one copy of the message. If so, a row identifies exactly
    /// one copy.
    pub(super) fn has_one_copy_each(&self, id: MessageId) -> bool {
        let copies = &self.messages[id.0].recipients;
        !(copies.contains(&AT_WEBMAIL) && copies.contains(&OWN))
    }

    /// Whether a copy is certainly in this mailbox. Another client may have moved it since a row
    /// was shown.
    pub(super) fn is_surely_in(&self, id: MessageId, copy: usize, mailbox: u32) -> bool {
        let copy = &self.messages[id.0].copies[copy];
        copy.fate == CopyState::Present && copy.place.known() == Some(&mailbox)
    }

    /// Notes that a client requests a move of a copy to another mailbox.
    pub(super) fn move_requested(
        &mut self,
        id: MessageId,
        copy: usize,
        to: u32,
    ) -> RequestedChange<u32> {
        self.touch(id, copy).place.requested(to)
    }

    /// Notes the server's response to the move: the copy was moved or not.
    pub(super) fn moved(
        &mut self,
        id: MessageId,
        copy: usize,
        requested: &RequestedChange<u32>,
        is_moved: bool,
    ) {
        self.touched.push(id);
        let copy = self.touch(id, copy);
        if is_moved {
            copy.place.done(requested);
            copy.mark_present();
        } else {
            copy.place.not_done(requested);
        }
    }

    /// Notes that a client requests to set or clear the star of a copy.
    pub(super) fn star_requested(
        &mut self,
        id: MessageId,
        copy: usize,
        is_starred: bool,
    ) -> RequestedChange<bool> {
        self.touch(id, copy).is_starred.requested(is_starred)
    }

    /// Notes that the server has confirmed the star.
    pub(super) fn starred(
        &mut self,
        id: MessageId,
        copy: usize,
        requested: &RequestedChange<bool>,
    ) {
        let copy = self.touch(id, copy);
        copy.is_starred.done(requested);
        copy.mark_present();
    }

    /// Whether a copy has a star, if that is certain.
    pub(super) fn star(&self, id: MessageId, copy: usize) -> Option<bool> {
        self.messages[id.0].copies[copy].is_starred.known().copied()
    }

    fn touch(&mut self, id: MessageId, copy: usize) -> &mut MessageCopy {
        let copy = &mut self.messages[id.0].copies[copy];
        copy.changes += 1;
        copy
    }
}
