//! The progress of a message that is sent from the webmail: the message leaves, or the client
//! undoes the send and the message is a draft again.
//!
//! The server does not tell the client when a held message leaves. The flags on the disk show the
//! progress (`docs/format.md`, section 7).
//!
//! Invariants, for a message without bad sectors:
//! - A message that was sent leaves, unless the client has requested an undo. After that request
//!   the message may be a draft. After the confirmation it is a draft for ever.
//! - No recipient has a message that is held or is a draft again. If the flags say that all
//!   recipients have the message, each recipient has it, or had it and has deleted it.
//! - Every send finishes within a bounded time.

use store::Flags;

use super::fixture::DRAFTS;
use super::uncertain::{RequestedChange, Uncertain};

/// The progress of a message, according to the sender's copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SendState {
    /// The message is an ordinary draft.
    Draft,
    /// The client can still undo the send.
    Held,
    /// The send can no longer be undone. Some recipients have the message.
    Leaving,
    /// All recipients have the message. Their copies are still recorded.
    Left,
    /// The message is in a mailbox other than the drafts.
    Sent,
}

impl SendState {
    /// The progress of a message that has these flags and is in this mailbox.
    pub(super) fn of(mailbox: u32, flags: Flags) -> SendState {
        match mailbox {
            DRAFTS if flags.contains(Flags::LEFT) => SendState::Left,
            DRAFTS if flags.contains(Flags::LEAVING) => SendState::Leaving,
            DRAFTS if flags.contains(Flags::HELD) => SendState::Held,
            DRAFTS => SendState::Draft,
            _ => SendState::Sent,
        }
    }
}

/// The knowledge of the model about the sending of a message.
#[derive(Debug)]
pub(super) struct Departure {
    /// Whether the message leaves, if the server ever stored it.
    leaves: Uncertain<bool>,
    /// The progress at the last audit of the disk. `None`: the sender had no copy.
    send_state: Option<SendState>,
}

impl Departure {
    /// The state at the start: the client wants the message to leave, and no audit has found it
    /// yet.
    pub(super) fn wanted() -> Departure {
        Departure { leaves: Uncertain::certain(true), send_state: None }
    }

    /// Whether more recipients may still get the message.
    pub(super) fn is_under_way(&self) -> bool {
        matches!(self.send_state, Some(SendState::Held | SendState::Leaving))
    }

    /// Whether the sending was unfinished at the last audit of the disk.
    pub(super) fn is_on_its_way(&self) -> bool {
        matches!(self.send_state, Some(SendState::Held | SendState::Leaving | SendState::Left))
    }

    /// Notes that the client requests an undo.
    pub(super) fn undo_requested(&mut self) -> RequestedChange<bool> {
        self.leaves.requested(false)
    }

    /// Notes the server's response to the undo. Returns whether the message is certainly a draft
    /// from now on.
    pub(super) fn undo_answered(
        &mut self,
        requested: &RequestedChange<bool>,
        is_back: bool,
    ) -> bool {
        if !is_back {
            self.leaves.not_done(requested);
            return false;
        }
        self.leaves.done(requested);
        self.leaves.known() == Some(&false)
    }

    /// Notes the progress that an audit of the disk has found. `None`: the sender has no copy.
    pub(super) fn set_progress(&mut self, send_state: Option<SendState>) {
        self.send_state = send_state;
    }

    /// Ends all pending undos, because the audit shows the result. Returns whether the found
    /// progress is possible.
    pub(super) fn settle(&mut self) -> bool {
        match self.send_state {
            None => {
                self.leaves.settle();
                true
            }
            Some(send_state) => self.leaves.settle_as(send_state != SendState::Draft).is_ok(),
        }
    }

    /// Whether the right recipients have the message. `have`: whether each one has it. `is_kept`:
    /// the sender's copy exists, or existed.
    pub(super) fn is_fulfilled(&self, have: &[bool], is_kept: bool) -> bool {
        let (some, all) = (have.contains(&true), !have.contains(&false));
        match self.send_state {
            _ if have.is_empty() => true,
            Some(SendState::Draft | SendState::Held) => !some,
            Some(SendState::Leaving) => true,
            Some(SendState::Left | SendState::Sent) => all,
            // The server never stored the message, or it was erased since.
            None if !is_kept => !some,
            None => {
                self.leaves.known().map_or(some == all, |leaves| *leaves == some && some == all)
            }
        }
    }
}
