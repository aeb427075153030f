//! Messages for another server, in the ledger: accepted, lying in an outbox, taken by that server.
//!
//! Invariants, held after every power cut and at the end:
//! - A message that was accepted is in its sender's outbox, as it was sent, until each recipient
//!   has it or is named in a report that its sender has.
//! - A message that was refused is in no outbox, and the other server never gets it.
//! - At the end nothing waits: each recipient of an accepted message has it, or was reported.

use sometimes::sometimes;

use super::ledger::{ACCOUNTS, Ledger, LetterId};
use super::listing::Named;
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
    /// The number by which reports name it.
    number: usize,
    /// The account that sends it.
    pub(super) sender: usize,
    /// What the other server gets, below what machines write above it.
    content: Vec<u8>,
    pub(super) answer: Answer,
    pub(super) recipients: Vec<Receiver>,
    /// The report that it is delayed.
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
    /// A new message of this account, for these mailboxes. Every line of it names it.
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
        let octets = octets_near_an_edge(2, dice);
        let mut content = head.into_bytes();
        while (content.len() as u64) < octets {
            content.extend_from_slice(format!("<{number}> {:x}\r\n", dice.roll()).as_bytes());
        }
        let id = PostedId(self.posted.len());
        self.post(number, account, content.clone(), mailboxes);
        (id, content)
    }

    /// Notes a message for the other server, and the reports that may come on it.
    pub(super) fn post(&mut self, number: usize, sender: usize, content: Vec<u8>, mailboxes: &[Mailbox]) {
        let receiver = |mailbox: &Mailbox| {
            let report = self.expect_report(ReportOf { number, mailbox: Some(*mailbox) }, sender);
            Receiver { mailbox: *mailbox, taken: 0, report }
        };
        let recipients = mailboxes.iter().map(receiver).collect();
        let delay = self.expect_report(ReportOf { number, mailbox: None }, sender);
        let answer = Answer::Nothing;
        self.posted.push(Posted { number, sender, content, answer, recipients, delay, is_harmed: false });
    }

    /// It was answered with 250, or refused by a machine whose disk works.
    pub(super) fn posted_answered(&mut self, id: PostedId, is_accepted: bool) {
        self.posted[id.0].answered(is_accepted);
    }

    /// What the writer of a webmail message was told, or what the machine's index says, holds for
    /// the message to the other server too.
    pub(super) fn letter_answered(&mut self, letter: LetterId, is_accepted: bool) {
        if let Some(posted) = self.posted.iter_mut().find(|posted| posted.number == letter.0) {
            posted.answered(is_accepted);
        }
    }

    /// The other server has taken a message for these mailboxes.
    pub(super) fn posted_taken(&mut self, content: &[u8], mailboxes: &[Mailbox]) {
        let place = self.posted_in(content);
        let posted = &mut self.posted[place];
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
        let harmed = self.posted.iter_mut().find(|posted| posted.number == number);
        harmed.into_iter().for_each(|posted| posted.is_harmed = true);
    }

    /// All outboxes were looked at: these messages are in them.
    pub(super) fn audit_outboxes<'a>(&self, entries: impl Iterator<Item = &'a [u8]>) {
        let mut lie = vec![0; self.posted.len()];
        for entry in entries {
            let number = self.posted_in(entry);
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

    /// The place of the message with this content, whatever stands above it.
    fn posted_in(&self, content: &[u8]) -> usize {
        let number = number_behind(content, b"\r\nMessage-ID: <", b".posted@");
        let number = number.or_else(|| number_behind(content, b"\r\nSubject: ", b"\r\n"));
        let place = number.and_then(|number| self.posted_numbered(number));
        place.unwrap_or_else(|| panic!("no message of ours: {:?}", String::from_utf8_lossy(content)))
    }

    /// The place of the message that reports name by this number.
    pub(super) fn posted_numbered(&self, number: usize) -> Option<usize> {
        self.posted.iter().position(|posted| posted.number == number)
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

impl Posted {
    fn answered(&mut self, is_accepted: bool) {
        let has_left = self.recipients.iter().any(|recipient| recipient.taken > 0);
        assert!(is_accepted || !has_left, "message {} was refused or taken back, and has left", self.number);
        self.answer = if is_accepted { Answer::Accepted } else { Answer::Refused };
    }

    /// The name by which an index knows it.
    pub(super) fn name(&self) -> Named {
        if self.number < NUMBERS_FROM { Named::Letter(self.number) } else { Named::Posted(self.number) }
    }
}

/// The length of a body that most often ends where the head above it lies across the edge of a
/// chunk, or near that.
pub(super) fn octets_near_an_edge(chunks_max: u64, dice: &mut Dice) -> u64 {
    match dice.below(4) {
        0 => dice.below(4_000),
        _ => (1 + dice.below(chunks_max)) * CHUNK_OCTETS - dice.below(ABOVE_OCTETS),
    }
}

/// The number between these words, where they stand first.
pub(super) fn number_behind(octets: &[u8], before: &[u8], after: &[u8]) -> Option<usize> {
    let at = octets.windows(before.len()).position(|window| window == before)? + before.len();
    let digits = octets[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = std::str::from_utf8(&octets[at..at + digits]).ok()?.parse().ok()?;
    octets[at + digits..].starts_with(after).then_some(number)
}
