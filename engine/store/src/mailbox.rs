//! A mailbox of an account in memory.
//!
//! Invariants:
//! - UIDNEXT and HIGHESTMODSEQ never fall.
//! - No UID and no MODSEQ is assigned twice, even if the first use was not durable.

use crate::messages::{MessageEntry, Messages};
use crate::types::{BUILT_IN, MailboxInfo, MarkChange, Modseq, Uid};
use alloc::boxed::Box;

/// The UIDVALIDITY of a mailbox of which only messages or the account are known. A record of the
/// mailbox may replace it later.
pub(crate) const UID_VALIDITY_LOST: u32 = 1;

/// From this UIDNEXT on, a mailbox accepts no new delivery. A delivery takes its UID only when its
/// message is complete. So each delivery in progress still finds a UID below `u32::MAX`.
const UID_NEXT_MAX: u32 = u32::MAX - RECIPIENTS_UNDER_WAY_MAX as u32;
/// The most recipients of all deliveries in progress.
pub(crate) const RECIPIENTS_UNDER_WAY_MAX: usize = 1 << 28;

/// A mailbox of an account.
#[derive(Debug)]
pub(crate) struct Mailbox {
    id: u32,
    name: Box<str>,
    uid_validity: u32,
    uid_next: u32,
    highest_modseq: u64,
    /// The next UID to assign, and the last assigned MODSEQ. Assigned numbers may not be durable.
    given_uid_next: u32,
    given_modseq: u64,
    messages: Messages,
}

impl Mailbox {
    pub(crate) fn new(id: u32) -> Mailbox {
        let built_in = BUILT_IN.iter().find(|(known, _)| known.0 == id);
        Mailbox {
            id,
            name: Box::from(built_in.map_or("", |(_, name)| name)),
            uid_validity: UID_VALIDITY_LOST,
            uid_next: 1,
            highest_modseq: 0,
            given_uid_next: 1,
            given_modseq: 0,
            messages: Messages::default(),
        }
    }

    /// The counters that callers get.
    pub(crate) fn info(&self) -> MailboxInfo {
        MailboxInfo {
            uid_validity: self.uid_validity,
            uid_next: Uid(self.uid_next),
            highest_modseq: Modseq(self.highest_modseq),
            messages: self.messages.len(),
            unseen: self.messages.unseen(),
            octets: self.messages.octets(),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn uid_validity(&self) -> u32 {
        self.uid_validity
    }

    /// UIDNEXT and HIGHESTMODSEQ in the form of a record.
    pub(crate) fn counts(&self) -> (u32, u64) {
        (self.uid_next, self.highest_modseq)
    }

    #[inline]
    pub(crate) fn messages(&self) -> &Messages {
        &self.messages
    }

    /// The messages, mutable. Only the account may call this, because it counts the contents of its
    /// mailboxes.
    pub(crate) fn messages_mut(&mut self) -> &mut Messages {
        &mut self.messages
    }

    /// The entry of a message, to be changed after a chunk of the message has moved.
    pub(crate) fn find_mut(&mut self, uid: u32) -> Option<&mut MessageEntry> {
        self.messages.find_mut(uid)
    }

    pub(crate) fn mark(&mut self, uid: u32, change: MarkChange, modseq: u64) {
        self.messages.mark(uid, change, modseq);
    }

    pub(crate) fn rename(&mut self, name: &str) {
        self.name = name.into();
    }

    /// Raises UIDVALIDITY to at least `uid_validity`.
    pub(crate) fn raise_uid_validity(&mut self, uid_validity: u32) {
        self.uid_validity = self.uid_validity.max(uid_validity);
    }

    /// Raises UIDNEXT to at least `uid_next`, and HIGHESTMODSEQ to at least `modseq`.
    pub(crate) fn raise_counters(&mut self, uid_next: u32, modseq: u64) {
        self.uid_next = self.uid_next.max(uid_next);
        self.highest_modseq = self.highest_modseq.max(modseq);
        self.given_uid_next = self.given_uid_next.max(self.uid_next);
        self.given_modseq = self.given_modseq.max(self.highest_modseq);
    }

    /// The number of messages that the mailbox can still accept.
    pub(crate) fn uids_left(&self) -> u32 {
        UID_NEXT_MAX.saturating_sub(self.given_uid_next)
    }

    /// The UID for a message. The caller has checked [`Mailbox::uids_left`] when the delivery
    /// began.
    pub(crate) fn next_uid(&mut self) -> u32 {
        let uid = self.given_uid_next;
        let Some(next) = uid.checked_add(1) else {
            unreachable!("more deliveries in progress than allowed")
        };
        self.given_uid_next = next;
        uid
    }

    pub(crate) fn next_modseq(&mut self) -> u64 {
        self.given_modseq += 1;
        self.given_modseq
    }

    /// The next UID, and the last assigned MODSEQ.
    pub(crate) fn assigned(&self) -> (u32, u64) {
        (self.given_uid_next, self.given_modseq)
    }

    /// Records that UIDs below `uid_next` and MODSEQs up to `modseq` are assigned.
    pub(crate) fn set_assigned(&mut self, uid_next: u32, modseq: u64) {
        assert!(
            uid_next >= self.given_uid_next && modseq >= self.given_modseq,
            "a UID assigned twice"
        );
        (self.given_uid_next, self.given_modseq) = (uid_next, modseq);
    }
}
