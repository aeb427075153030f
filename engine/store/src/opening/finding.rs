//! What can be wrong on a disk, in words for its owner.

use crate::index::AccountId;
use crate::types::Uid;
use core::fmt;
use machine::Sector;

/// Something wrong on the disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Where.
    pub sector: Sector,
    /// What, and what it means.
    pub damage: Damage,
}

/// What is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Damage {
    /// A slot of the superblock is not what was written.
    Superblock,
    /// One of the two copies of a journal block is not what was written.
    JournalCopy,
    /// Both copies of a journal block are lost.
    JournalBlock,
    /// The beginning of a journal is lost.
    JournalStart,
    /// A message that nobody was told of is there in part.
    Torn(AccountId, Uid),
    /// The index names a place for a message that cannot be one.
    Misplaced(AccountId, Uid),
    /// No record of an account is left.
    Nameless(AccountId),
    /// A shard was put together from the bodies found; so many messages came back.
    Rebuilt(u32),
    /// A part of a message is not what was written, or cannot be read.
    Body(AccountId, Uid),
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "sector {}: ", self.sector.0)?;
        match &self.damage {
            Damage::Superblock => {
                write!(out, "a copy of the superblock is damaged; the others are used, nothing is lost")
            }
            Damage::JournalCopy => write!(out, "one of two copies of a journal block is damaged; nothing is lost"),
            Damage::JournalBlock => {
                write!(out, "a journal block is lost; its shard is rebuilt from the messages found")
            }
            Damage::JournalStart => write!(out, "a journal is lost; its shard is rebuilt from the messages found"),
            Damage::Torn(account, Uid(uid)) => {
                write!(
                    out,
                    "the delivery of message {uid} of account {:016x} was cut off before it was acknowledged",
                    account.0
                )
            }
            Damage::Misplaced(account, Uid(uid)) => {
                write!(out, "message {uid} of account {:016x} lies where no message can; it is lost", account.0)
            }
            Damage::Nameless(account) => {
                write!(out, "account {:016x} has mail but no record; make it again under its address", account.0)
            }
            Damage::Rebuilt(messages) => {
                write!(out, "a shard was rebuilt; {messages} messages came back, deleted ones may be among them")
            }
            Damage::Body(account, Uid(uid)) => {
                write!(out, "message {uid} of account {:016x} is damaged; all others are served", account.0)
            }
        }
    }
}
