//! Damage found on a disk, and the text about it for the administrator.

use crate::types::{AccountId, Uid};
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
    /// A shard was rebuilt from the bodies found. The number of restored messages.
    Rebuilt(u32),
    /// The number of messages that were found but not restored, because the disk has no space.
    LeftOut(u32),
    /// The number of messages that were found but not restored, because their mailboxes have no UID
    /// left.
    NoUid(u32),
    /// A part of a message is not what was written, or cannot be read.
    Body(AccountId, Uid),
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "sector {}: ", self.sector.0)?;
        match &self.damage {
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
                    "the delivery of message {uid} of account {:016x} was interrupted before it was acknowledged",
                    account.0
                )
            }
            Damage::Misplaced(account, Uid(uid)) => {
                write!(
                    out,
                    "message {uid} of account {:016x} has an impossible position on the disk; it is lost",
                    account.0
                )
            }
            Damage::Nameless(account) => {
                write!(
                    out,
                    "account {:016x} has mail but no record; create it again with the same address",
                    account.0
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
            Damage::Body(account, Uid(uid)) => {
                write!(
                    out,
                    "message {uid} of account {:016x} is damaged; all others are served",
                    account.0
                )
            }
        }
    }
}
