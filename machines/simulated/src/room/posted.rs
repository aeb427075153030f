//! Messages for another server, in the ledger: accepted, lying in an outbox, taken by that server.
//!
//! Invariants, held after every power cut and at the end:
//! - A message that was accepted is in its sender's outbox, as it was sent, until each recipient
//!   has it or is named in a report that its sender has.
//! - A message that was refused is in no outbox, and the other server never gets it.
//! - At the end nothing waits: each recipient of an accepted message has it, or was reported.

use sometimes::sometimes;

use super::ledger::{ACCOUNTS, Ledger, LetterId};
use super::peer::Mailbox;
use super::reported::ReportOf;
use crate::Dice;

/// Numbers of these messages begin here: no letter has as high a number.
const NUMBERS_FROM: usize = 1_000_000;
/// Octets in a chunk of a body: `docs/format.md`, section 5.
const CHUNK_OCTETS: u64 = 8 * 4_096 - 512;
/// More octets than the fields have that the machine writes above a message.
const ABOVE_OCTETS: u64 = 1_300;

/// Names a message for another server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PostedId(usize);

/// What is known of such a message.
pub(super) struct Posted {
    /// The account that sends it.
    pub(super) sender: usize,
    content: Vec<u8>,
    pub(super) answer: Answer,
    pub(super) recipients: Vec<Receiver>,
    /// The report that it takes long.
    pub(super) delay: LetterId,
    /// A sector of it went bad.
    pub(super) is_harmed: bool,
}

/// What is known of one of its recipients.
pub(super) struct Receiver {
    pub(super) mailbox: Mailbox,
    /// How often the other server has taken the message for it.
    taken: usize,
    /// The report that it does not get the message.
    pub(super) report: LetterId,
}

/// What its sender was told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    Nothing,
    Accepted,
    Refused,
}

impl Ledger {
    /// A new message of this account, for these. Every line of it names it.
    pub(super) fn write_posted(
        &mut self,
        account: usize,
        mailboxes: &[Mailbox],
        dice: &mut Dice,
    ) -> (PostedId, Vec<u8>) {
        let number = NUMBERS_FROM + self.posted.len();
        let sender = ACCOUNTS[account];
        let head = format!(
            "From: <{sender}>\r\nSubject: Elsewhere\r\nDate: Fri, 13 Feb 2009 23:31:30 +0000\r\n\
             Message-ID: <{number}.posted@elsewhere.test>\r\n\r\n"
        );
        // Most end where the head that stands above them lies across the edge of a chunk, or near
        // that.
        let octets = match dice.below(4) {
            0 => dice.below(4_000),
            chunks => (1 + chunks / 3) * CHUNK_OCTETS - dice.below(ABOVE_OCTETS),
        };
        let mut content = head.into_bytes();
        while (content.len() as u64) < octets {
            content.extend_from_slice(format!("<{number}> {:x}\r\n", dice.roll()).as_bytes());
        }
        let id = PostedId(self.posted.len());
        self.post(account, content.clone(), mailboxes);
        (id, content)
    }

    /// There is a message for the other server, and there may be reports on it.
    fn post(&mut self, sender: usize, content: Vec<u8>, mailboxes: &[Mailbox]) {
        let posted = self.posted.len();
        let receiver = |mailbox: &Mailbox| {
            let report = self.expect_report(ReportOf { posted, mailbox: Some(*mailbox) }, sender);
            Receiver { mailbox: *mailbox, taken: 0, report }
        };
        let recipients = mailboxes.iter().map(receiver).collect();
        let delay = self.expect_report(ReportOf { posted, mailbox: None }, sender);
        let answer = Answer::Nothing;
        self.posted.push(Posted { sender, content, answer, recipients, delay, is_harmed: false });
    }

    /// It was answered with 250, or refused by a machine whose disk works.
    pub(super) fn posted_answered(&mut self, id: PostedId, is_accepted: bool) {
        let posted = &mut self.posted[id.0];
        let has_left = posted.recipients.iter().any(|recipient| recipient.taken > 0);
        assert!(is_accepted || !has_left, "message {} was refused, and has left", id.0);
        posted.answer = if is_accepted { Answer::Accepted } else { Answer::Refused };
    }

    /// The other server has taken a message for these.
    pub(super) fn posted_taken(&mut self, content: &[u8], mailboxes: &[Mailbox]) {
        let posted = &mut self.posted[number_in(content)];
        assert!(content.ends_with(&posted.content), "a message has left that is not what was sent");
        assert!(posted.answer != Answer::Refused, "a message has left that was refused");
        for mailbox in mailboxes {
            let mut recipients = posted.recipients.iter_mut();
            let recipient = recipients.find(|recipient| recipient.mailbox == *mailbox);
            recipient.unwrap_or_else(|| panic!("a message has left for {mailbox:?}, and is not for it")).taken += 1;
        }
        sometimes!(TakenElsewhere);
    }

    /// A sector goes bad in which a message of this number lies.
    pub(super) fn harm_posted(&mut self, number: usize) {
        if let Some(posted) = place_of(number).and_then(|place| self.posted.get_mut(place)) {
            posted.is_harmed = true;
        }
    }

    /// All outboxes were looked at: these messages are in them.
    pub(super) fn audit_outboxes<'a>(&self, entries: impl Iterator<Item = &'a [u8]>) {
        let mut lie = vec![0; self.posted.len()];
        for entry in entries {
            let number = number_in(entry);
            assert!(entry.ends_with(&self.posted[number].content), "an entry is not what was sent");
            lie[number] += 1;
            sometimes!(WaitsInOutbox);
        }
        for (number, posted) in self.posted.iter().enumerate().filter(|(_, posted)| !posted.is_harmed) {
            let is_lost = posted.answer == Answer::Accepted && !self.is_settled(posted) && lie[number] == 0;
            assert!(!is_lost, "message {number} was accepted, and is not in the queue, taken or reported for each");
            assert!(posted.answer != Answer::Refused || lie[number] == 0, "message {number} was refused, and waits");
            assert!(lie[number] <= 1, "message {number} is in the queue {} times", lie[number]);
        }
    }

    /// Whether each recipient has the message, or its sender a report that names the recipient.
    fn is_settled(&self, posted: &Posted) -> bool {
        posted.recipients.iter().all(|recipient| recipient.taken > 0 || self.has_come(recipient.report))
    }

    /// The accepted messages that wait for another try, but for those on bad sectors.
    pub(super) fn posted_waiting(&self) -> Vec<usize> {
        let waits =
            |posted: &Posted| posted.answer == Answer::Accepted && !posted.is_harmed && !self.is_settled(posted);
        (0..self.posted.len()).filter(|number| waits(&self.posted[*number])).collect()
    }
}

/// The place of a message with this number, if it is one of these.
pub(super) fn place_of(number: usize) -> Option<usize> {
    number.checked_sub(NUMBERS_FROM)
}

/// Which message this is, whatever stands above it.
fn number_in(content: &[u8]) -> usize {
    let before = b"\r\nMessage-ID: <";
    let at = content.windows(before.len()).position(|window| window == before);
    let at = at.unwrap_or_else(|| panic!("no message of ours: {:?}", String::from_utf8_lossy(content)));
    let digits = content[at + before.len()..].iter().take_while(|byte| byte.is_ascii_digit());
    let number: usize = digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0'));
    number - NUMBERS_FROM
}
