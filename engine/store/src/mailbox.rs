//! A mailbox of an account in memory.
//!
//! Invariants:
//! - UIDNEXT and HIGHESTMODSEQ never fall.
//! - No UID and no MODSEQ is given out twice, durable or not.

use crate::messages::{Entry, Messages};
use crate::types::{BUILT_IN, MailboxInfo, MarkChange, Modseq, Uid};
use alloc::boxed::Box;

/// The UIDVALIDITY of a mailbox that is known by its messages or its account alone, for the moment
/// or for good.
pub(crate) const UID_VALIDITY_LOST: u32 = 1;

/// No UID from here on is given out. There is no further one above `u32::MAX`, and the deliveries
/// that have begun take theirs only when all of the message is there: they find one below.
const UID_NEXT_MAX: u32 = u32::MAX - RECIPIENTS_UNDER_WAY_MAX as u32;
/// The most recipients of all deliveries under way.
pub(crate) const RECIPIENTS_UNDER_WAY_MAX: usize = 1 << 28;

/// A mailbox of an account.
#[derive(Debug)]
pub(crate) struct Mailbox {
    id: u32,
    name: Box<str>,
    uid_validity: u32,
    uid_next: u32,
    highest_modseq: u64,
    /// The next UID and the last MODSEQ that were given out, durable or not.
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

    /// What users of the store are told of it.
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

    /// UIDNEXT and HIGHESTMODSEQ, as a record says them.
    pub(crate) fn counts(&self) -> (u32, u64) {
        (self.uid_next, self.highest_modseq)
    }

    #[inline]
    pub(crate) fn messages(&self) -> &Messages {
        &self.messages
    }

    /// For the account alone, which counts what is in its mailboxes.
    pub(crate) fn messages_mut(&mut self) -> &mut Messages {
        &mut self.messages
    }

    /// A chunk of a message may have moved.
    pub(crate) fn find_mut(&mut self, uid: u32) -> Option<&mut Entry> {
        self.messages.find_mut(uid)
    }

    pub(crate) fn mark(&mut self, uid: u32, change: MarkChange, modseq: u64) {
        self.messages.mark(uid, change, modseq);
    }

    pub(crate) fn rename(&mut self, name: &str) {
        self.name = name.into();
    }

    /// Its UIDVALIDITY is this at least.
    pub(crate) fn is_valid_from(&mut self, uid_validity: u32) {
        self.uid_validity = self.uid_validity.max(uid_validity);
    }

    /// UIDNEXT and HIGHESTMODSEQ are these at least.
    pub(crate) fn saw(&mut self, uid_next: u32, modseq: u64) {
        self.uid_next = self.uid_next.max(uid_next);
        self.highest_modseq = self.highest_modseq.max(modseq);
        self.given_uid_next = self.given_uid_next.max(self.uid_next);
        self.given_modseq = self.given_modseq.max(self.highest_modseq);
    }

    /// How many more messages it takes.
    pub(crate) fn uids_left(&self) -> u32 {
        UID_NEXT_MAX.saturating_sub(self.given_uid_next)
    }

    /// The UID of a message for which [`Mailbox::uids_left`] was asked when it began to come.
    pub(crate) fn next_uid(&mut self) -> u32 {
        let uid = self.given_uid_next;
        let Some(next) = uid.checked_add(1) else {
            unreachable!("more messages come than may be under way")
        };
        self.given_uid_next = next;
        uid
    }

    pub(crate) fn next_modseq(&mut self) -> u64 {
        self.given_modseq += 1;
        self.given_modseq
    }

    /// The UID that is given out next, and the MODSEQ that was last.
    pub(crate) fn given(&self) -> (u32, u64) {
        (self.given_uid_next, self.given_modseq)
    }

    /// UIDs below `uid_next` are given out, and MODSEQs up to `modseq`.
    pub(crate) fn gives(&mut self, uid_next: u32, modseq: u64) {
        assert!(
            uid_next >= self.given_uid_next && modseq >= self.given_modseq,
            "a UID given out twice"
        );
        (self.given_uid_next, self.given_modseq) = (uid_next, modseq);
    }
}
