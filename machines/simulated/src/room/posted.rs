//! The messages of a machine for the other mail server of the room (`peer.rs`). A message is
//! accepted, waits in an outbox, or was taken by the other server.
//!
//! Invariants, checked after every power cut and at the end:
//! - A message that was accepted is in its sender's outbox, unchanged, until it is settled. It is
//!   settled when each recipient has it or is named in a report that the sender has.
//! - A message that was refused is in no outbox, and the other server never gets it.
//! - At the end no message waits: each recipient of an accepted message has it, or is named in a
//!   report.
//! - No report names a recipient that takes mail, unless the message is on bad sectors.

use chance::Dice;
use sometimes::sometimes;

use super::layout::CHUNK_OCTETS;
use super::message::MessageId;
use super::naming::{MessageName, ReportOf, number_after};
use super::remote::RemoteMailbox;

/// Messages for the other server have numbers from this one on. Messages for local accounts have
/// lower numbers.
const NUMBERS_FROM: usize = 1_000_000;
/// An upper bound for the octets of all header fields that the machine adds to a message.
const ABOVE_OCTETS: u64 = 1_300;

/// The index of a message for the other server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PostedId(usize);

/// The knowledge of the model about a message for the other server.
pub(super) struct PostedMessage {
    /// The number by which reports name the message.
    number: usize,
    /// The account that sends the message.
    pub(super) sender: usize,
    /// The content that the other server gets, below the fields that machines add.
    content: Vec<u8>,
    answer: SubmissionResult,
    recipients: Vec<PostedRecipient>,
    /// The report that the message is delayed.
    delay: MessageId,
    /// A sector of the message went bad.
    is_harmed: bool,
}

/// The knowledge of the model about one recipient of a message for the other server.
struct PostedRecipient {
    mailbox: RemoteMailbox,
    /// The number of times that the other server accepted the message for this recipient.
    taken: usize,
    /// The report that this recipient does not get the message.
    report: MessageId,
}

/// The response to the sender of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SubmissionResult {
    Nothing,
    Accepted,
    Refused,
}

/// All messages of a machine for the other server.
#[derive(Default)]
pub(super) struct PostedMessages(Vec<PostedMessage>);

impl PostedMessages {
    /// The number of the next message.
    pub(super) fn next_number(&self) -> usize {
        NUMBERS_FROM + self.0.len()
    }

    /// Adds a message. `recipients`: each recipient with the report of its failure. `delay`: the
    /// report that the message is delayed.
    pub(super) fn add(
        &mut self,
        (number, sender): (usize, usize),
        content: Vec<u8>,
        recipients: &[(RemoteMailbox, MessageId)],
        delay: MessageId,
    ) -> PostedId {
        let receiver = |(mailbox, report): &(RemoteMailbox, MessageId)| PostedRecipient {
            mailbox: *mailbox,
            taken: 0,
            report: *report,
        };
        let recipients = recipients.iter().map(receiver).collect();
        let answer = SubmissionResult::Nothing;
        self.0.push(PostedMessage {
            number,
            sender,
            content,
            answer,
            recipients,
            delay,
            is_harmed: false,
        });
        PostedId(self.0.len() - 1)
    }

    pub(super) fn get(&self, place: usize) -> &PostedMessage {
        &self.0[place]
    }

    /// Notes that the server answered the message with 250, or refused it while the disk worked.
    pub(super) fn answered(&mut self, id: PostedId, is_accepted: bool) {
        self.0[id.0].answered(is_accepted);
    }

    /// Notes the result of a message of the webmail, from a response or from the machine's index.
    /// The result also applies to the part of the message for the other server, if it has one.
    pub(super) fn message_answered(&mut self, message: MessageId, is_accepted: bool) {
        if let Some(posted) = self.0.iter_mut().find(|posted| posted.number == message.0) {
            posted.answered(is_accepted);
        }
    }

    /// Notes that the other server has taken a message for `mailboxes`.
    pub(super) fn taken(&mut self, content: &[u8], mailboxes: &[RemoteMailbox]) {
        let place = self.place_of(content);
        let posted = &mut self.0[place];
        assert!(
            content.ends_with(&posted.content),
            "a message has left that differs from the submitted message"
        );
        assert!(posted.answer != SubmissionResult::Refused, "a message has left that was refused");
        for mailbox in mailboxes {
            let mut recipients = posted.recipients.iter_mut();
            let recipient = recipients.find(|recipient| recipient.mailbox == *mailbox);
            recipient
                .unwrap_or_else(|| panic!("a message has left for {mailbox:?}, and is not for it"))
                .taken += 1;
        }
        sometimes!(AcceptedByAnotherServer);
    }

    /// Notes that a sector went bad that holds part of the message with this number.
    pub(super) fn harm(&mut self, number: usize) {
        let harmed = self.0.iter_mut().find(|posted| posted.number == number);
        harmed.into_iter().for_each(|posted| posted.is_harmed = true);
    }

    /// Checks the messages in all outboxes. `has_arrived`: whether a report has arrived.
    pub(super) fn audit<'a>(
        &self,
        entries: impl Iterator<Item = &'a [u8]>,
        has_arrived: impl Fn(MessageId) -> bool,
    ) {
        let mut entry_counts = vec![0; self.0.len()];
        for entry in entries {
            let number = self.place_of(entry);
            assert!(
                entry.ends_with(&self.0[number].content),
                "an entry differs from the submitted message"
            );
            entry_counts[number] += 1;
            sometimes!(WaitsInOutbox);
        }
        for (number, posted) in self.0.iter().enumerate().filter(|(_, posted)| !posted.is_harmed) {
            let is_lost = posted.answer == SubmissionResult::Accepted
                && !posted.is_settled(&has_arrived)
                && entry_counts[number] == 0;
            assert!(
                !is_lost,
                "message {number} was accepted, but is not in the queue, although not every recipient is done"
            );
            assert!(
                posted.answer != SubmissionResult::Refused || entry_counts[number] == 0,
                "message {number} was refused, and is in the queue"
            );
            assert!(
                entry_counts[number] <= 1,
                "message {number} is in the queue {} times",
                entry_counts[number]
            );
        }
    }

    /// The index of the message with this content. Header fields that machines added above it do
    /// not matter.
    fn place_of(&self, content: &[u8]) -> usize {
        let number = number_after(content, b"\r\nMessage-ID: <", b".posted@");
        let number = number.or_else(|| number_after(content, b"\r\nSubject: ", b"\r\n"));
        let place = number.and_then(|number| self.place_numbered(number));
        place.unwrap_or_else(|| {
            panic!("not a message of this room: {:?}", String::from_utf8_lossy(content))
        })
    }

    /// The index of the message that reports name by this number.
    fn place_numbered(&self, number: usize) -> Option<usize> {
        self.0.iter().position(|posted| posted.number == number)
    }

    /// The indexes of the accepted messages that wait for another attempt, except those on bad
    /// sectors.
    pub(super) fn waiting(&self, has_arrived: impl Fn(MessageId) -> bool) -> Vec<usize> {
        let waits = |posted: &PostedMessage| {
            posted.answer == SubmissionResult::Accepted
                && !posted.is_harmed
                && !posted.is_settled(&has_arrived)
        };
        (0..self.0.len()).filter(|number| waits(&self.0[*number])).collect()
    }

    /// The number under which the model has a report.
    pub(super) fn report(&self, of: ReportOf) -> MessageId {
        let posted = &self.0[self.place_of_report(of)];
        let Some(mailbox) = of.mailbox else { return posted.delay };
        let recipient = posted.recipients.iter().find(|recipient| recipient.mailbox == mailbox);
        recipient
            .unwrap_or_else(|| panic!("a report names {mailbox:?}, which the message is not for"))
            .report
    }

    fn place_of_report(&self, of: ReportOf) -> usize {
        self.place_numbered(of.number).expect("a report names a message that was sent")
    }

    /// Checks a report that the machine's index has in this account.
    pub(super) fn reported(&self, of: ReportOf, account: usize) {
        let posted = &self.0[self.place_of_report(of)];
        assert_eq!(
            posted.sender, account,
            "a report goes to the account that has sent the message"
        );
        assert!(
            posted.answer != SubmissionResult::Refused,
            "a report names a message that was refused"
        );
        let is_right = posted.is_harmed || of.mailbox.is_none_or(|mailbox| !mailbox.takes());
        assert!(is_right, "a report names a recipient that takes mail: {of:?}");
    }
}

impl PostedMessage {
    fn answered(&mut self, is_accepted: bool) {
        let has_left = self.recipients.iter().any(|recipient| recipient.taken > 0);
        assert!(
            is_accepted || !has_left,
            "message {} was refused or taken back, and has left",
            self.number
        );
        self.answer =
            if is_accepted { SubmissionResult::Accepted } else { SubmissionResult::Refused };
    }

    /// Whether each recipient has the message, or the sender has a report that names the recipient.
    fn is_settled(&self, has_arrived: impl Fn(MessageId) -> bool) -> bool {
        self.recipients.iter().all(|recipient| recipient.taken > 0 || has_arrived(recipient.report))
    }

    /// The name under which [`super::listing`] finds the message.
    pub(super) fn name(&self) -> MessageName {
        if self.number < NUMBERS_FROM {
            MessageName::Local(self.number)
        } else {
            MessageName::Posted(self.number)
        }
    }
}

/// Draws the length of a body. In three of four cases the header, which the store keeps after the
/// body, begins shortly before the edge of a chunk.
pub(super) fn octets_near_an_edge(chunks_max: u64, dice: &mut Dice) -> u64 {
    match dice.below(4) {
        0 => dice.below(4_000),
        _ => (1 + dice.below(chunks_max)) * CHUNK_OCTETS as u64 - dice.below(ABOVE_OCTETS),
    }
}
