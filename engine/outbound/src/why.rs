//! Why a recipient does not get a message.

use alloc::string::{String, ToString};

use dns::Name;
use relay::route::Unroutable;
use relay::{Enhanced, Reason};

/// Why a recipient does not get a message.
#[derive(Clone, Debug)]
pub(super) enum Why {
    /// The recipient's host said so, or did not speak with us. The name of the host, if known.
    Said(Reason, Option<Name>),
    /// There is no route to the recipient's host.
    Nowhere(Unroutable),
    /// The address is in a domain of this machine, but no account has it.
    Nobody,
    /// The recipient's mailbox on this machine has no space for it.
    Full,
    /// The message is larger than the mailbox's quota.
    NeverFits,
    /// The message was here before: it is in a forwarding loop.
    Circle,
    /// This machine had no time for an attempt.
    Busy,
    /// Its result is not marked yet: the disk has no space, or fails.
    Unmarked,
    /// An administrator has taken it out of the queue.
    GivenBack,
    /// A part of the message cannot be read from the disk.
    Damaged,
    /// The envelope of the entry is not valid.
    Unreadable,
}

impl Why {
    /// The status code (RFC 3463). `class`: 5 for a final failure, also when the time for attempts
    /// is over; else 4.
    pub(super) fn status(&self, class: u8) -> Enhanced {
        match self {
            Why::Said(reason, _) => reason.status(class),
            Why::Nowhere(unroutable) => Enhanced { class, ..unroutable.status() },
            Why::Nobody => Enhanced { class, subject: 1, detail: 1 },
            Why::Full | Why::NeverFits => Enhanced { class, subject: 2, detail: 2 },
            Why::Circle => Enhanced { class, subject: 4, detail: 6 },
            Why::Busy => Enhanced { class, subject: 4, detail: 5 },
            Why::GivenBack => Enhanced { class, subject: 7, detail: 1 },
            Why::Unmarked | Why::Damaged | Why::Unreadable => {
                Enhanced { class, subject: 3, detail: 0 }
            }
        }
    }

    /// The name of the host.
    pub(super) fn host(&self) -> Option<String> {
        if let Why::Said(_, host) = self { host.as_ref().map(Name::to_string) } else { None }
    }

    /// The reason in words, without a full stop.
    pub(super) fn words(&self) -> String {
        match self {
            Why::Said(reason, _) => reason.to_string(),
            Why::Nowhere(unroutable) => unroutable.to_string(),
            Why::Nobody => "there is no such address on this server".to_string(),
            Why::Full => "the mailbox is full".to_string(),
            Why::NeverFits => "it is larger than all that the mailbox may hold".to_string(),
            Why::Circle => {
                "it was here before: mail for this address is sent on in a circle".to_string()
            }
            Why::Busy => "this server has had too much to do".to_string(),
            Why::Unmarked => {
                "its result could not be written to this server's disk yet".to_string()
            }
            Why::GivenBack => {
                "an administrator of this server has taken it out of the queue".to_string()
            }
            Why::Damaged => {
                "a part of it cannot be read from this server's disk any more".to_string()
            }
            Why::Unreadable => "its envelope in this server's queue is not valid".to_string(),
        }
    }
}
