//! Damage found on a disk, and the text about it for the administrator.

use crate::types::{AccountId, MailboxId, Uid};
use alloc::vec::Vec;
use core::fmt;
use machine::Sector;

/// A part of the disk that differs from what was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The place of the damage.
    pub sector: Sector,
    /// The damage and its meaning.
    pub damage: Damage,
}

impl Finding {
    /// Whether the finding is a fault. A power cut may interrupt an operation before its
    /// acknowledgement. The remains of such an operation are no fault.
    pub fn is_wrong(&self) -> bool {
        !matches!(self.damage, Damage::Torn(..) | Damage::LastJournalCopy)
    }
}

/// The findings: at most [`FINDINGS_MAX`]. Further damage is repaired or skipped, but not listed.
#[derive(Debug, Default)]
pub(crate) struct Findings(Vec<Finding>);

/// The most findings that are kept.
const FINDINGS_MAX: usize = 1000;

impl Findings {
    pub(crate) fn note(&mut self, sector: Sector, damage: Damage) {
        if self.0.len() < FINDINGS_MAX {
            self.0.push(Finding { sector, damage });
        }
    }

    pub(crate) fn into_all(self) -> Vec<Finding> {
        self.0
    }

    pub(crate) fn all(&self) -> &[Finding] {
        &self.0
    }
}

/// The kinds of damage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Damage {
    /// A slot of the superblock is not what was written.
    Superblock,
    /// One of the two copies of a journal block is not what was written.
    JournalCopy,
    /// One of the two copies of a block in a journal's last group is not what should have been
    /// written. A power cut may have occurred between the two writes.
    LastJournalCopy,
    /// Both copies of a journal block are lost.
    JournalBlock,
    /// The beginning of a journal is lost.
    JournalStart,
    /// A record of this kind cannot be read.
    Record(u8),
    /// Only a part of a message is on the disk. The message was never acknowledged.
    Torn(AccountId, Uid),
    /// The index names an impossible place for a message.
    Misplaced(AccountId, Uid),
    /// An account has mail, but no account record is left.
    Nameless(AccountId),
    /// A shard was rebuilt from the bodies that were found. The value is the number of restored
    /// messages.
    Rebuilt(u32),
    /// The number of messages that were found but not restored, because the disk has no space.
    LeftOut(u32),
    /// The number of messages that were found but not restored, because their mailboxes have no UID
    /// left.
    NoUid(u32),
    /// A part of a message is not what was written. Two reads have shown it.
    Body(AccountId, MailboxId, Uid),
    /// The disk reported an error when it read a part of a message. The next read may succeed.
    Unreadable(AccountId, MailboxId, Uid),
}

/// The names of accounts and mailboxes.
pub trait Names {
    /// The address of an account. `None`: no record of the account is left.
    fn address(&self, account: AccountId) -> Option<&str>;

    /// The name of a mailbox, if the account has it.
    fn mailbox(&self, account: AccountId, mailbox: MailboxId) -> Option<&str>;
}

/// A finding, with the names that an administrator knows.
#[derive(Clone, Copy)]
pub struct NamedFinding<'a> {
    finding: &'a Finding,
    names: &'a dyn Names,
}

impl Finding {
    /// The text of the finding for an administrator.
    pub fn named<'a>(&'a self, names: &'a dyn Names) -> NamedFinding<'a> {
        NamedFinding { finding: self, names }
    }
}

/// Writes the address of an account, or its number if the address is unknown.
struct NamedAccount<'a>(AccountId, &'a dyn Names);

impl fmt::Display for NamedAccount<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1.address(self.0) {
            Some(address) => out.write_str(address),
            None => write!(out, "account {:016x}", self.0.0),
        }
    }
}

impl fmt::Display for NamedFinding<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |account: &AccountId| NamedAccount(*account, self.names);
        let mailbox = |account: &AccountId, mailbox: &MailboxId| {
            self.names.mailbox(*account, *mailbox).unwrap_or("an unknown mailbox")
        };
        write!(out, "sector {}: ", self.finding.sector.0)?;
        match &self.finding.damage {
            Damage::Superblock => {
                write!(
                    out,
                    "a copy of the superblock is damaged; the others are used, nothing is lost"
                )
            }
            Damage::JournalCopy => {
                write!(out, "one of two copies of a journal block is damaged; nothing is lost")
            }
            Damage::LastJournalCopy => {
                write!(
                    out,
                    "one of two copies of a journal's last block is missing; nothing is lost"
                )
            }
            Damage::JournalBlock => {
                write!(out, "a journal block is lost; its shard is rebuilt from the messages found")
            }
            Damage::JournalStart => {
                write!(out, "a journal is lost; its shard is rebuilt from the messages found")
            }
            Damage::Record(kind) => {
                write!(out, "a record of kind {kind} cannot be read; it is kept as it is")
            }
            Damage::Torn(account, Uid(uid)) => {
                write!(
                    out,
                    "the delivery of message {uid} of {} was interrupted before it was acknowledged",
                    named(account)
                )
            }
            Damage::Misplaced(account, Uid(uid)) => {
                write!(
                    out,
                    "message {uid} of {} has an impossible position on the disk; it is lost",
                    named(account)
                )
            }
            Damage::Nameless(account) => {
                write!(
                    out,
                    "{} has mail but no record; create it again with the same address",
                    named(account)
                )
            }
            Damage::Rebuilt(messages) => {
                write!(
                    out,
                    "a shard was rebuilt; {messages} messages were restored, which may include deleted ones"
                )
            }
            Damage::LeftOut(messages) => {
                write!(
                    out,
                    "{messages} of the oldest messages found were not restored: the disk is full"
                )
            }
            Damage::NoUid(messages) => {
                write!(
                    out,
                    "{messages} messages found were not restored: their mailboxes have no UID left"
                )
            }
            Damage::Body(account, place, Uid(uid)) => {
                write!(
                    out,
                    "message {uid} in {} of {} is damaged: two reads differ from what was written; restore it from a backup or delete it; all other messages are served",
                    mailbox(account, place),
                    named(account)
                )
            }
            Damage::Unreadable(account, place, Uid(uid)) => {
                write!(
                    out,
                    "message {uid} in {} of {} cannot be read: the disk reported an error, which may be temporary",
                    mailbox(account, place),
                    named(account)
                )
            }
        }
    }
}
