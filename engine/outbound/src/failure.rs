//! Why a recipient does not get a message, or does not have it yet.

use alloc::string::{String, ToString};

use dns::Name;
use relay::route::Unroutable;
use relay::{Cause, DeliveryFailure, Enhanced, Reply};

/// Why a recipient does not get a message, or does not have it yet.
#[derive(Clone, Debug)]
pub(super) enum FailureReason {
    /// The recipient's host has refused the message, or did not reply. The second value is the name
    /// of the host, if known.
    Host(DeliveryFailure, Option<Name>),
    /// There is no route to the recipient's host.
    NoRoute(Unroutable),
    /// The address is in a domain of this machine, but no account has it.
    UnknownAddress,
    /// The recipient's account on this machine could not be set up at the start.
    NotSetUp,
    /// The recipient's mailbox on this machine has no space for the message.
    MailboxFull,
    /// The message is larger than the mailbox's quota.
    NeverFits,
    /// The recipient's mailbox, on this machine, takes no more messages: it has no UID left, or
    /// too many messages are arriving there.
    MailboxClosed,
    /// This machine has no space for the message.
    DiskFull,
    /// This machine has no space for the message, or for a report about it.
    NoRoom,
    /// This server has forwarded the message before: it is in a forwarding loop.
    Loop,
    /// This machine had no time for an attempt.
    Busy,
    /// The result of the delivery is not marked yet: the disk has no space, or fails.
    Unmarked,
    /// An administrator has taken the message out of the queue.
    Returned,
    /// A part of the message cannot be read from the disk.
    Damaged,
    /// The envelope of the entry is not valid.
    Unreadable,
}

impl FailureReason {
    /// The status code (RFC 3463). `class`: 4 for a temporary failure, 5 for a final one. A failure
    /// that is temporary by its kind also gets class 5 when the time for attempts is over.
    pub(super) fn status(&self, class: u8) -> Enhanced {
        match self {
            FailureReason::Host(reason, _) => reason.status(class),
            FailureReason::NoRoute(unroutable) => Enhanced { class, ..unroutable.status() },
            FailureReason::UnknownAddress => Enhanced { class, subject: 1, detail: 1 },
            FailureReason::MailboxFull | FailureReason::NeverFits => {
                Enhanced { class, subject: 2, detail: 2 }
            }
            FailureReason::MailboxClosed | FailureReason::NotSetUp => {
                Enhanced { class, subject: 2, detail: 1 }
            }
            FailureReason::DiskFull | FailureReason::NoRoom => {
                Enhanced { class, subject: 3, detail: 1 }
            }
            FailureReason::Loop => Enhanced { class, subject: 4, detail: 6 },
            FailureReason::Busy => Enhanced { class, subject: 4, detail: 5 },
            FailureReason::Returned => Enhanced { class, subject: 7, detail: 1 },
            FailureReason::Unmarked | FailureReason::Damaged | FailureReason::Unreadable => {
                Enhanced { class, subject: 3, detail: 0 }
            }
        }
    }

    /// Whether a mailbox of this machine does not get the message for now: it has no space, or does
    /// not exist yet.
    pub(super) fn is_of_mailbox(&self) -> bool {
        matches!(
            self,
            FailureReason::MailboxFull
                | FailureReason::MailboxClosed
                | FailureReason::NotSetUp
                | FailureReason::DiskFull
        )
    }

    /// The name of the host.
    pub(super) fn host(&self) -> Option<String> {
        if let FailureReason::Host(_, host) = self {
            host.as_ref().map(Name::to_string)
        } else {
            None
        }
    }

    /// Whether the host accepts only ASCII.
    pub(super) fn is_eight_bit(&self) -> bool {
        matches!(self, FailureReason::Host(DeliveryFailure { cause: Cause::EightBit, .. }, _))
    }

    /// The reply of the host, if it has refused.
    pub(super) fn reply(&self) -> Option<&Reply> {
        if let FailureReason::Host(reason, _) = self { reason.reply() } else { None }
    }

    /// The reason in words on one line, with the reply of the host.
    pub(super) fn words_and_reply(&self) -> String {
        if let FailureReason::Host(reason, _) = self { reason.to_string() } else { self.words() }
    }

    /// The reason in words, without the reply of the host and without a full stop.
    pub(super) fn words(&self) -> String {
        match self {
            FailureReason::Host(reason, _) => reason.words(),
            FailureReason::NoRoute(unroutable) => unroutable.to_string(),
            FailureReason::UnknownAddress => "there is no such address on this server".to_string(),
            FailureReason::NotSetUp => {
                "the account could not be set up on this server yet".to_string()
            }
            FailureReason::MailboxFull => "the mailbox is full".to_string(),
            FailureReason::NeverFits => "the message is larger than the mailbox quota".to_string(),
            FailureReason::MailboxClosed => "the mailbox does not accept more messages".to_string(),
            FailureReason::DiskFull => "this server has no space for the message".to_string(),
            FailureReason::NoRoom => {
                "this server has no space for the message, or for the report to its sender"
                    .to_string()
            }
            FailureReason::Loop => {
                "mail loop: mail for this address is forwarded in a circle".to_string()
            }
            FailureReason::Busy => "this server was too busy".to_string(),
            FailureReason::Unmarked => {
                "the result of the delivery could not be written to this server's disk yet"
                    .to_string()
            }
            FailureReason::Returned => {
                "an administrator of this server removed the message from the queue".to_string()
            }
            FailureReason::Damaged => {
                "a part of the message can no longer be read from this server's disk".to_string()
            }
            FailureReason::Unreadable => {
                "the message's envelope in this server's queue is not valid".to_string()
            }
        }
    }
}
