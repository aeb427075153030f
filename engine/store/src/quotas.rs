//! The quota of an account for its mailboxes. The limit of its outbox is half of the quota.
//!
//! The store refuses a message that exceeds the quota of an account. The limit of the outbox is
//! different: the server checks it before a message begins ([`Usage`],
//! [`crate::AccountInfo::is_outbox_full`]), because a message in progress may be for many accounts.
//!
//! Invariants:
//! - Usage is counted where the index changes, record by record. So it is always the size of all
//!   messages of the account, also after a restart.
//! - Space for a message is reserved when the message is complete, before any part of it is
//!   gathered. The reservation ends with the delivery. So an account never exceeds its quota,
//!   however many messages arrive at the same time. A message that is moved to another mailbox
//!   stays in the account, so it needs no reservation.

use crate::outcome::Refusal;
use crate::types::{MailboxId, OUTBOX};

/// An outbox may hold as much as the quota divided by this.
pub const OUTBOX_PART: u64 = 2;

/// The usage of an account, in octets of its messages.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Usage {
    /// Octets in the mailboxes, including deliveries in progress.
    pub mailboxes: u64,
    /// Octets in the outbox.
    pub outbox: u64,
}

/// The usage and the quota of an account, in octets of its messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AccountQuota {
    /// Octets of the messages in all mailboxes except the outbox.
    taken: u64,
    /// Octets of the messages in the outbox.
    outbox: u64,
    /// Octets of the messages that are being delivered.
    coming: u64,
    /// The most octets of `taken` and `coming` together.
    allowed: u64,
}

impl AccountQuota {
    pub(crate) const NONE: AccountQuota =
        AccountQuota { taken: 0, outbox: 0, coming: 0, allowed: u64::MAX };

    /// Counts a message that was inserted into this mailbox.
    pub(crate) fn add(&mut self, mailbox: u32, octets: u32) {
        *self.counter(mailbox) += u64::from(octets);
    }

    /// Subtracts a message that was removed from this mailbox.
    pub(crate) fn remove(&mut self, mailbox: u32, octets: u32) {
        *self.counter(mailbox) -= u64::from(octets);
    }

    fn counter(&mut self, mailbox: u32) -> &mut u64 {
        if mailbox == OUTBOX.0 { &mut self.outbox } else { &mut self.taken }
    }

    /// Reserves space for a message that will be inserted into this mailbox.
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

    /// Releases the reservation when the delivery is over.
    pub(crate) fn release(&mut self, MailboxId(mailbox): MailboxId, octets: u32) {
        self.coming -= counted(mailbox, octets);
    }

    /// Sets the quota in octets. `None`: limited only by the disk.
    pub(crate) fn set_allowed(&mut self, allowed: Option<u64>) {
        self.allowed = allowed.unwrap_or(u64::MAX);
    }

    /// The quota in octets: see [`AccountQuota::set_allowed`].
    pub(crate) fn allowed(&self) -> Option<u64> {
        Some(self.allowed).filter(|allowed| *allowed < u64::MAX)
    }

    /// Octets of the messages in mailboxes other than the outbox.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Whether the outbox has reached its limit, which is half of the quota.
    pub(crate) fn is_outbox_full(&self) -> bool {
        self.allowed().is_some_and(|allowed| self.outbox >= allowed / OUTBOX_PART)
    }

    pub(crate) fn usage(&self) -> Usage {
        Usage { mailboxes: self.taken + self.coming, outbox: self.outbox }
    }

    /// Checks that `octets` more octets fit the quota.
    fn check(&self, octets: u64) -> Result<(), Refusal> {
        if octets > self.allowed {
            return Err(Refusal::LargerThanQuota);
        }
        let all = self.taken.saturating_add(self.coming).saturating_add(octets);
        if all > self.allowed { Err(Refusal::OverQuota) } else { Ok(()) }
    }
}

/// The octets that a message in this mailbox takes from the quota.
fn counted(mailbox: u32, octets: u32) -> u64 {
    if mailbox == OUTBOX.0 { 0 } else { u64::from(octets) }
}
