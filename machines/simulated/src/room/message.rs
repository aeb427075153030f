//! A message of the room, and the knowledge of the model about each copy.

use super::departure::{Departure, SendState};
use super::fixture::{ACCOUNTS, DRAFTS, INBOX, SENT};
use super::naming::ReportOf;
use super::uncertain::Uncertain;

/// The number of possible copies of a message: one for each account, and `OWN`, the copy that the
/// webmail keeps for the sender.
pub(super) const COPIES: usize = ACCOUNTS.len() + 1;
pub(super) const OWN: usize = ACCOUNTS.len();

/// The protocol of messages and drafts that are composed at the webmail.
pub(super) const WRITTEN: &str = "the webmail";

/// The number of a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub(super) struct MessageId(pub(super) usize);

/// A moment in the order of known deletions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct DeletionMoment(pub(super) u64);

/// The knowledge of the model about one copy of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CopyState {
    /// The client never sent the complete message, the server refused it, or a restart has shown
    /// that it was not stored.
    Absent,
    /// The client sent the message, and has no response yet.
    PerhapsDelivered,
    /// The copy is stored: a response said so, or a client has seen the copy.
    Present,
    /// The copy was stored, and a client has requested its deletion. No response is known.
    PerhapsDeleted,
    /// The copy is deleted. The deletion became known at this moment.
    Deleted(DeletionMoment),
}

pub(super) struct MessageCopy {
    pub(super) fate: CopyState,
    pub(super) place: Uncertain<u32>,
    pub(super) is_starred: Uncertain<bool>,
    /// The number of times that any field of this copy has changed.
    pub(super) changes: u64,
}

pub(super) struct Message {
    pub(super) body: Vec<u8>,
    /// The transfer protocol (RFC 3848).
    pub(super) protocol: &'static str,
    /// The accounts that get a copy, and [`OWN`] if the sender keeps one.
    pub(super) recipients: Vec<usize>,
    pub(super) copies: [MessageCopy; COPIES],
    /// A sector of the message went bad, so the message may be unreadable or lost.
    pub(super) is_harmed: bool,
    pub(super) departure: Departure,
    /// The message also goes to the other server.
    pub(super) is_for_others: bool,
    /// The message and recipient that a report is about; `None`: this is no report. A report may
    /// arrive at any time.
    pub(super) report: Option<ReportOf>,
}

/// A message that a client or an audit has found.
pub(super) struct FoundMessage {
    pub(super) mailbox: u32,
    pub(super) unique_id: String,
    pub(super) is_starred: bool,
    /// The progress of the send, according to this copy.
    pub(super) send_state: SendState,
    pub(super) message: Vec<u8>,
}

impl Message {
    pub(super) fn new(body: Vec<u8>, protocol: &'static str, recipients: &[usize]) -> Message {
        let copies = std::array::from_fn(|_| MessageCopy {
            fate: CopyState::Absent,
            place: Uncertain::certain(INBOX),
            is_starred: Uncertain::certain(false),
            changes: 0,
        });
        let (recipients, departure) = (recipients.to_vec(), Departure::wanted());
        Message {
            body,
            protocol,
            recipients,
            copies,
            is_harmed: false,
            departure,
            is_for_others: false,
            report: None,
        }
    }

    /// A report that may arrive in an account.
    pub(super) fn report(of: ReportOf, account: usize) -> Message {
        let mut message = Message::new(Vec::new(), "a report", &[account]);
        message.report = Some(of);
        message.copies[account].set_state(CopyState::PerhapsDelivered);
        message
    }

    /// Whether the message may appear after a power cut although no client sends it.
    pub(super) fn may_still_arrive(&self) -> bool {
        self.is_harmed || self.departure.is_under_way() || self.report.is_some()
    }

    /// Notes that the message is a draft again. No recipient gets it, and the sender's copy is
    /// among the drafts.
    pub(super) fn return_to_drafts(&mut self, id: MessageId) {
        for copy in &self.recipients {
            let (name, copy) = (*copy, &mut self.copies[*copy]);
            if name == OWN {
                copy.place = Uncertain::certain(DRAFTS);
                copy.changes += 1;
                continue;
            }
            let has_arrived = !matches!(copy.fate, CopyState::Absent | CopyState::PerhapsDelivered);
            assert!(!has_arrived, "the send of message {} was undone, and {name} has it", id.0);
            copy.set_state(CopyState::Absent);
        }
    }

    /// Checks, after all accounts were audited, that the right recipients have the message.
    pub(super) fn check_recipients(&self, number: usize) {
        if self.is_harmed || !self.is_sent_by_webmail() {
            return;
        }
        let others =
            self.recipients.iter().filter(|copy| **copy != OWN).map(|copy| self.copies[*copy].fate);
        let have: Vec<bool> = others
            .map(|fate| !matches!(fate, CopyState::Absent | CopyState::PerhapsDelivered))
            .collect();
        let is_right =
            self.departure.is_fulfilled(&have, self.copies[OWN].fate != CopyState::Absent);
        assert!(
            is_right,
            "the sender's copy of message {number} is {:?}, and these recipients have it: {have:?}",
            self.departure
        );
    }

    /// Whether the message was composed at the webmail and has recipients. A draft that was only
    /// saved has none.
    pub(super) fn is_sent_by_webmail(&self) -> bool {
        self.protocol == WRITTEN && (self.recipients != [OWN] || self.is_for_others)
    }
}

impl MessageCopy {
    pub(super) fn set_state(&mut self, fate: CopyState) {
        (self.fate, self.changes) = (fate, self.changes + 1);
    }

    /// Notes that a client has seen the copy, or that a response said that it is stored.
    pub(super) fn mark_present(&mut self) {
        if self.fate == CopyState::PerhapsDelivered {
            self.set_state(CopyState::Present);
        }
    }

    /// Notes that an audit has found the copy. No change of the copy is pending.
    pub(super) fn found_by_audit(&mut self, id: MessageId, found: &FoundMessage) {
        let is_leaving =
            matches!(found.send_state, SendState::Held | SendState::Leaving | SendState::Left);
        if let Err(places) = self.place.settle_as(found.mailbox) {
            panic!("message {} is in {}, and must be in {places:?}", id.0, found.mailbox);
        }
        if is_leaving {
            self.place = Uncertain::between(vec![DRAFTS, SENT]);
        }
        if let Err(stars) = self.is_starred.settle_as(found.is_starred) {
            panic!(
                "the star of message {} is {}, and must be one of {stars:?}",
                id.0, found.is_starred
            );
        }
    }
}
