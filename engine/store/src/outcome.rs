//! How what was asked of the store ends, and what state the store is in.

use crate::body::Body;
use crate::types::{AccountId, Filed, MailboxId};
use alloc::collections::VecDeque;
use core::fmt;
use tasks::Continuation;

/// The end of something that was asked for.
#[derive(Debug)]
pub struct Wake {
    /// Who asked.
    pub continuation: Continuation,
    /// What came of it.
    pub outcome: Outcome,
}

/// The ends that nobody has asked for yet, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Wakes(VecDeque<Wake>);

impl Wakes {
    pub(crate) fn wake(&mut self, continuation: Continuation, outcome: Outcome) {
        self.0.push_back(Wake { continuation, outcome });
    }

    pub(crate) fn refuse(&mut self, continuation: Continuation, refusal: Refusal) {
        self.wake(continuation, Outcome::Refused(refusal));
    }

    pub(crate) fn next(&mut self) -> Option<Wake> {
        self.0.pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What came of a request.
#[derive(Debug)]
pub enum Outcome {
    /// More octets of the delivery can be taken: append again.
    Room,
    /// The message is durable for every recipient.
    Delivered,
    /// A verified part of a body, or a summary. Give it back when done with it.
    Body(Body),
    /// The change is durable: a removal, flags, a password, notes, a mailbox's name or end.
    Changed,
    /// The account exists, durably.
    AccountCreated(AccountId),
    /// The mailbox exists, durably.
    MailboxCreated(MailboxId),
    /// Some of the messages are in the other mailbox, durably.
    Filed(Filed),
    /// It was not done. After [`Refusal::ReadOnly`] nobody can say whether the disk has it.
    Refused(Refusal),
}

/// Why the store does not do what it was asked to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It is still opening, or was refused.
    NotServing,
    /// The disk has failed a write or a flush.
    ReadOnly,
    /// No space on the disk. Deletions still work.
    DiskFull,
    /// The index has reached its limit. Deletions still work.
    IndexFull,
    /// Too much is under way: try again later.
    Busy,
    /// Larger than [`crate::BODY_OCTETS_MAX`], a name, a note or an account whose texts are too long, or too many ranges.
    TooLarge,
    /// No such account.
    NoSuchAccount,
    /// No such mailbox.
    NoSuchMailbox,
    /// The mailbox is one that every account has.
    BuiltIn,
    /// The mailbox has messages.
    NotEmpty,
    /// The account has a mailbox of this name.
    NameTaken,
    /// The account has as many mailboxes, or notes, as it may. Or more messages arrive at it at
    /// once than are kept account of; or a mailbox has given all its UIDs.
    TooMany,
    /// The letter has arrived there already.
    Arrived,
    /// With it an account would have more than it may.
    OverQuota,
    /// It is larger than all that an account may have.
    LargerThanQuota,
    /// None of the notes to be changed is there.
    NoSuchNote,
    /// No such message, or it was removed meanwhile.
    NoSuchMessage,
    /// No such delivery, or it is committed already.
    NoSuchDelivery,
    /// The body ends before the offset.
    PastEnd,
    /// The address belongs to an account already.
    AddressTaken,
    /// This part of the body is not what was written.
    Damaged,
    /// The disk fails to read this part of the body; it may get over that.
    Unreadable,
    /// The disk failed to write a part of the message.
    WriteFailed,
}

impl Refusal {
    /// Why a delivery that has begun is over. If another core was too busy to begin its part, the
    /// delivery is lost: to go on with it would be refused for ever.
    pub fn of_begun_delivery(self) -> Refusal {
        if self == Refusal::Busy { Refusal::NoSuchDelivery } else { self }
    }
}

/// What the store is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Reading the disk, or formatting a blank one.
    Opening,
    /// Everything works.
    Serving,
    /// Mail is read; nothing is changed until the disk works again: see [`crate::Store::retry`].
    ReadOnly(WhyReadOnly),
    /// The disk is not touched.
    Refused(Reason),
}

/// What made the store read-only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhyReadOnly {
    /// A write that others depend on failed.
    WriteFailed,
    /// A flush failed.
    FlushFailed,
    /// The flush at the end of opening failed: only another start tells what is durable.
    LastFlushFailed,
}

/// Why a disk is not opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The device cannot make anything durable.
    NotDurable,
    /// Under 1 MiB.
    TooSmall,
    /// The store on it is larger than the disk.
    Shrunk {
        /// Sectors that the store needs.
        needs: u64,
        /// Sectors that there are.
        has: u64,
    },
    /// A Barepost disk of a format that this version does not know.
    OtherFormat(u32),
    /// A Barepost disk with a record that this version cannot read, and may not lose.
    UnknownRecord {
        /// What begins the record.
        kind: u8,
        /// Where its group begins.
        sector: u64,
    },
    /// Not blank, and not a Barepost disk.
    NotOurs,
    /// Its superblocks, or first pages of its segments, cannot be read.
    Unreadable,
    /// A Barepost disk, but all of its superblocks are lost.
    SuperblocksLost,
    /// Blank, and not to be formatted (a check only reads).
    Blank,
    /// The device failed a write or a flush while a blank disk was formatted.
    FormatFailed,
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::NotDurable => {
                write!(
                    out,
                    "the disk offers neither flush nor write-through: mail on it could be lost"
                )
            }
            Reason::TooSmall => write!(out, "the disk is smaller than 1 MiB"),
            Reason::Shrunk { needs, has } => {
                write!(out, "the disk has {has} sectors, the store on it needs {needs}")
            }
            Reason::OtherFormat(version) => {
                write!(
                    out,
                    "the disk has format {version}, this version knows only formats 3 to {}",
                    crate::FORMAT_VERSION
                )
            }
            Reason::UnknownRecord { kind, sector } => write!(
                out,
                "the disk has a record of kind {kind} at sector {sector} that this version cannot read; a later one may"
            ),
            Reason::NotOurs => write!(out, "the disk is neither blank nor a Barepost disk"),
            Reason::Unreadable => {
                write!(
                    out,
                    "the disk cannot be read where a store begins; nothing is written to it"
                )
            }
            Reason::SuperblocksLost => {
                write!(
                    out,
                    "the disk holds mail of a Barepost server, but its superblocks are lost; it is not formatted"
                )
            }
            Reason::Blank => write!(out, "the disk is blank"),
            Reason::FormatFailed => write!(out, "the disk failed while it was formatted"),
        }
    }
}

impl fmt::Display for WhyReadOnly {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, until) = match self {
            WhyReadOnly::WriteFailed => ("write", "it works again"),
            WhyReadOnly::FlushFailed => ("flush", "it works again"),
            WhyReadOnly::LastFlushFailed => ("flush while it was opened", "restart"),
        };
        write!(out, "the disk failed a {what}; no mail is accepted until {until}")
    }
}
