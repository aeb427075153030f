//! How much an account may have in its mailboxes. Half as much may wait in its outbox.
//!
//! The store refuses a message that has no room in a mailbox. The server bounds outboxes: it asks
//! before a message begins ([`Usage`], [`crate::AccountInfo::is_outbox_full`]), since a message that has
//! begun may be for many accounts.
//!
//! Invariants:
//! - What an account has is counted where the index changes, record by record: so it is the sum of its messages at any time, whatever life of the machine they are from.
//! - A message has its place from when all of it is there, before anything of it is gathered, until its delivery is over: so no account ever has more than it may, however many come
//!   at once. What is filed into another mailbox stays the account's, and asks for none.

use crate::outcome::Refusal;
use crate::types::{MailboxId, OUTBOX};

/// An outbox may hold as much as the quota divided by this.
pub const OUTBOX_PART: u64 = 2;

/// How much an account has, in octets of its messages.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Usage {
    /// In its mailboxes, with the messages whose delivery is under way.
    pub mailboxes: u64,
    /// In its outbox.
    pub outbox: u64,
}

/// What an account has, and may have, in octets of its messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Quota {
    /// What its messages have together.
    taken: u64,
    /// What the messages in its outbox have together.
    outbox: u64,
    /// What those have whose delivery is under way.
    coming: u64,
    /// The most octets of `taken` and `coming` together.
    allowed: u64,
}

impl Quota {
    pub(crate) const NONE: Quota = Quota { taken: 0, outbox: 0, coming: 0, allowed: u64::MAX };

    /// A message is in this mailbox from now on.
    pub(crate) fn add(&mut self, mailbox: u32, octets: u32) {
        *self.counter(mailbox) += u64::from(octets);
    }

    /// It is not there any more.
    pub(crate) fn remove(&mut self, mailbox: u32, octets: u32) {
        *self.counter(mailbox) -= u64::from(octets);
    }

    fn counter(&mut self, mailbox: u32) -> &mut u64 {
        if mailbox == OUTBOX.0 { &mut self.outbox } else { &mut self.taken }
    }

    /// Keeps space for a message that comes into this mailbox.
    ///
    /// Errors: `OverQuota`, `LargerThanQuota`.
    pub(crate) fn reserve(
        &mut self,
        MailboxId(mailbox): MailboxId,
        octets: u32,
    ) -> Result<(), Refusal> {
        let octets = counted(mailbox, octets);
        if octets > 0 {
            self.check(octets)?;
        }
        self.coming += octets;
        Ok(())
    }

    /// Its delivery is over.
    pub(crate) fn release(&mut self, MailboxId(mailbox): MailboxId, octets: u32) {
        self.coming -= counted(mailbox, octets);
    }

    /// The most octets of all messages from now on; `None`: as many as there is room for.
    pub(crate) fn set_allowed(&mut self, allowed: Option<u64>) {
        self.allowed = allowed.unwrap_or(u64::MAX);
    }

    /// See [`Quota::set_allowed`].
    pub(crate) fn allowed(&self) -> Option<u64> {
        Some(self.allowed).filter(|allowed| *allowed < u64::MAX)
    }

    /// Octets of the messages in mailboxes other than the outbox.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Whether the outbox holds as much as it may: half of the quota.
    pub(crate) fn is_outbox_full(&self) -> bool {
        self.allowed().is_some_and(|allowed| self.outbox >= allowed / OUTBOX_PART)
    }

    pub(crate) fn usage(&self) -> Usage {
        Usage { mailboxes: self.taken + self.coming, outbox: self.outbox }
    }

    /// Whether so much more may come.
    fn check(&self, octets: u64) -> Result<(), Refusal> {
        if octets > self.allowed {
            return Err(Refusal::LargerThanQuota);
        }
        let all = self.taken.saturating_add(self.coming).saturating_add(octets);
        if all > self.allowed { Err(Refusal::OverQuota) } else { Ok(()) }
    }
}

/// The octets that a message in this mailbox takes of the quota.
fn counted(mailbox: u32, octets: u32) -> u64 {
    if mailbox == OUTBOX.0 { 0 } else { u64::from(octets) }
}
