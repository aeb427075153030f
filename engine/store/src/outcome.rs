//! The results of operations on the store, and the state of the store.

use crate::body::Body;
use crate::types::{AccountId, Filed, MailboxId};
use alloc::collections::VecDeque;
use core::fmt;
use tasks::Continuation;

/// The result of an operation, for the caller that waits for it.
#[derive(Debug)]
pub struct Wake {
    /// The continuation of the caller.
    pub continuation: Continuation,
    /// The result.
    pub outcome: Outcome,
}

/// Results that have not been collected yet, oldest first.
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

/// The result of an operation.
#[derive(Debug)]
pub enum Outcome {
    /// The delivery can take more octets: append again.
    DeliveryReady,
    /// The message is durable for every recipient.
    Delivered,
    /// A verified part of a body, or a summary. Return it after use.
    Body(Body),
    /// The change is durable: a removal, flags, a password, notes, or the renaming or removal of a
    /// mailbox.
    Changed,
    /// The account exists and is durable.
    AccountCreated(AccountId),
    /// The mailbox exists and is durable.
    MailboxCreated(MailboxId),
    /// Some or all of the messages are durable in the other mailbox.
    Filed(Filed),
    /// The operation failed. After [`Refusal::ReadOnly`], it is unknown whether the disk has the
    /// change.
    Refused(Refusal),
}

/// The reason why the store refuses an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The store is still opening, or the disk was refused.
    NotServing,
    /// The disk has failed a write or a flush.
    ReadOnly,
    /// No space on the disk. Removals still work.
    DiskFull,
    /// The index has reached its limit. Removals still work.
    IndexFull,
    /// Too many operations are in progress: try again later.
    Busy,
    /// The message is larger than [`crate::BODY_OCTETS_MAX`], a name, a note or the texts of an
    /// account are too long, or there are too many ranges.
    TooLarge,
    /// No such account.
    NoSuchAccount,
    /// No such mailbox.
    NoSuchMailbox,
    /// The mailbox is one of those that every account has.
    BuiltIn,
    /// The mailbox has messages.
    NotEmpty,
    /// The account has a mailbox of this name.
    NameTaken,
    /// The account has the maximum number of mailboxes, of notes or of noted arrivals, or a mailbox
    /// has used all its UIDs.
    TooMany,
    /// The message has already arrived in the account.
    Arrived,
    /// The message would take the account over its quota.
    OverQuota,
    /// The message is larger than the whole quota of the account.
    LargerThanQuota,
    /// None of the notes to be changed exists.
    NoSuchNote,
    /// No such message exists, or it was removed after the request.
    NoSuchMessage,
    /// No such delivery, or it is committed already.
    NoSuchDelivery,
    /// The body ends before the offset.
    PastEnd,
    /// The address belongs to an account already.
    AddressTaken,
    /// This part of the body is not what was written. Two reads have shown it.
    Damaged,
    /// The disk cannot read this part of the body. That may be temporary.
    Unreadable,
    /// The disk failed to write a part of the message.
    WriteFailed,
}

impl Refusal {
    /// This refusal, as the reason for the end of a delivery that had begun. `Busy` becomes
    /// `NoSuchDelivery`. After `Busy` the caller would continue the delivery later, but the
    /// delivery is over: another core was too busy to begin its part, so all further requests are
    /// refused.
    pub fn of_begun_delivery(self) -> Refusal {
        if self == Refusal::Busy { Refusal::NoSuchDelivery } else { self }
    }
}

/// The state of the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The store reads the disk, or formats a blank disk.
    Opening,
    /// The store serves all operations.
    Serving,
    /// Mail can be read. Nothing can be changed until the disk works again: see
    /// [`crate::Store::retry`].
    ReadOnly(WhyReadOnly),
    /// The disk was refused, and nothing is written to it.
    Refused(OpenRefusal),
}

/// The reason why the store is read-only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhyReadOnly {
    /// A write failed that other data depends on.
    WriteFailed,
    /// A flush failed.
    FlushFailed,
    /// The flush at the end of opening failed. Only the next opening can tell what is durable.
    LastFlushFailed,
}

/// The reason why a disk is not opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenRefusal {
    /// The device cannot make anything durable.
    NotDurable,
    /// The disk is smaller than 1 MiB.
    TooSmall,
    /// The store on the disk needs a larger disk.
    Shrunk {
        /// Sectors that the store needs.
        needs: u64,
        /// Sectors that the disk has.
        has: u64,
    },
    /// A Barepost disk of a format that this version does not know.
    OtherFormat(u32),
    /// A Barepost disk with a record that this version cannot read and may not discard.
    UnknownRecord {
        /// The kind of the record.
        kind: u8,
        /// The first sector of the record's group.
        sector: u64,
    },
    /// The disk is neither blank nor a Barepost disk.
    NotOurs,
    /// The superblocks, or first pages of segments, cannot be read.
    Unreadable,
    /// A Barepost disk that has lost all superblocks.
    SuperblocksLost,
    /// The disk is blank, and an inspection does not format it.
    Blank,
    /// The device failed a write or a flush while a blank disk was being formatted.
    FormatFailed,
}

impl fmt::Display for OpenRefusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenRefusal::NotDurable => {
                write!(
                    out,
                    "the disk supports neither flush nor write-through, so mail on it could be lost"
                )
            }
            OpenRefusal::TooSmall => write!(out, "the disk is smaller than 1 MiB"),
            OpenRefusal::Shrunk { needs, has } => {
                write!(out, "the disk has {has} sectors, but the store on it needs {needs}")
            }
            OpenRefusal::OtherFormat(version) => {
                write!(
                    out,
                    "the disk has format {version}, but this version supports only formats 3 to {}",
                    crate::FORMAT_VERSION
                )
            }
            OpenRefusal::UnknownRecord { kind, sector } => write!(
                out,
                "the disk has a record of kind {kind} at sector {sector} that this version cannot read; use a later version"
            ),
            OpenRefusal::NotOurs => write!(out, "the disk is neither blank nor a Barepost disk"),
            OpenRefusal::Unreadable => {
                write!(out, "the superblocks of the disk cannot be read; nothing is written to it")
            }
            OpenRefusal::SuperblocksLost => {
                write!(
                    out,
                    "the disk holds mail of a Barepost server, but its superblocks are lost; to keep the mail, the disk is not formatted"
                )
            }
            OpenRefusal::Blank => write!(out, "the disk is blank"),
            OpenRefusal::FormatFailed => {
                write!(out, "the disk failed while it was being formatted")
            }
        }
    }
}

/// What the server does about a failed disk without help of an operator.
const AGAIN: &str = "it is tried again every minute";

impl fmt::Display for WhyReadOnly {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, action, until) = match self {
            WhyReadOnly::WriteFailed => ("write", AGAIN, "it works again"),
            WhyReadOnly::FlushFailed => ("flush", AGAIN, "it works again"),
            WhyReadOnly::LastFlushFailed => {
                ("flush at the start", "check the disk and restart the machine", "the restart")
            }
        };
        write!(
            out,
            "the disk failed a {what}; {action}; mail can be read, but no mail is accepted until {until}"
        )
    }
}
