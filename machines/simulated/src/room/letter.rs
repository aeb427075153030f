//! A letter of the room, and what is known of each copy of it.

use super::departure::{Course, Departure};
use super::doubt::Doubt;
use super::fixture::{ACCOUNTS, DRAFTS, INBOX, SENT};
use super::naming::ReportOf;

/// The copies that there may be of a letter: one in each account that gets it, and the one that its writer keeps at the webmail.
pub(super) const COPIES: usize = ACCOUNTS.len() + 1;
pub(super) const OWN: usize = ACCOUNTS.len();

/// How letters come from the webmail, and drafts.
pub(super) const WRITTEN: &str = "the webmail";

/// A letter, by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub(super) struct LetterId(pub(super) usize);

/// A moment in the order of what became known of deletions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Moment(pub(super) u64);

/// What is known of one copy of a letter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// It was never sent whole, or it was refused, or a restart has shown that it did not come to be.
    Absent,
    /// It was sent, and nobody said what came of it.
    PerhapsDelivered,
    /// It is there: a client was told so, or somebody has seen it.
    Present,
    /// It was there, and nobody said what came of its deletion.
    PerhapsDeleted,
    /// It was deleted, and that was known then.
    Deleted(Moment),
}

pub(super) struct Copy {
    pub(super) fate: Fate,
    pub(super) place: Doubt<u32>,
    pub(super) is_starred: Doubt<bool>,
    /// How often anything of this became another.
    pub(super) changes: u64,
}

pub(super) struct Letter {
    pub(super) body: Vec<u8>,
    /// What was spoken to send it (RFC 3848).
    pub(super) protocol: &'static str,
    /// Those of its copies that there are to be.
    pub(super) recipients: Vec<usize>,
    pub(super) copies: [Copy; COPIES],
    /// A sector of it went bad: it may be unreadable, and it may be gone.
    pub(super) is_harmed: bool,
    pub(super) departure: Departure,
    /// It goes to another server as well.
    pub(super) is_for_others: bool,
    /// Its subject, if it is a report. A report may come at any time.
    pub(super) report: Option<ReportOf>,
}

/// A message that somebody has found.
pub(super) struct Found {
    pub(super) mailbox: u32,
    pub(super) unique_id: String,
    pub(super) is_starred: bool,
    /// How far it has come, if it is its writer's.
    pub(super) course: Course,
    pub(super) message: Vec<u8>,
}

impl Letter {
    pub(super) fn new(body: Vec<u8>, protocol: &'static str, recipients: &[usize]) -> Letter {
        let copies = std::array::from_fn(|_| Copy {
            fate: Fate::Absent,
            place: Doubt::none(INBOX),
            is_starred: Doubt::none(false),
            changes: 0,
        });
        let (recipients, departure) = (recipients.to_vec(), Departure::wanted());
        Letter {
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

    /// A report that may come to an account.
    pub(super) fn report(of: ReportOf, account: usize) -> Letter {
        let mut letter = Letter::new(Vec::new(), "a report", &[account]);
        letter.report = Some(of);
        letter.copies[account].turns_into(Fate::PerhapsDelivered);
        letter
    }

    /// Whether it may come after a power cut, though no client sends it.
    pub(super) fn may_still_come(&self) -> bool {
        self.is_harmed || self.departure.is_under_way() || self.report.is_some()
    }

    /// Nobody else gets it, and its writer finds it among his drafts.
    pub(super) fn is_draft_again(&mut self, id: LetterId) {
        for copy in &self.recipients {
            let (name, copy) = (*copy, &mut self.copies[*copy]);
            if name == OWN {
                copy.place = Doubt::none(DRAFTS);
                copy.changes += 1;
                continue;
            }
            let has_come = !matches!(copy.fate, Fate::Absent | Fate::PerhapsDelivered);
            assert!(!has_come, "letter {} was taken back, and {name} has it", id.0);
            copy.turns_into(Fate::Absent);
        }
    }

    /// All accounts were looked at: those have it who should.
    pub(super) fn has_come_as_it_should(&self, number: usize) {
        if self.is_harmed || !self.is_sent_by_webmail() {
            return;
        }
        let others =
            self.recipients.iter().filter(|copy| **copy != OWN).map(|copy| self.copies[*copy].fate);
        let have: Vec<bool> =
            others.map(|fate| !matches!(fate, Fate::Absent | Fate::PerhapsDelivered)).collect();
        let is_right = self.departure.is_fulfilled(&have, self.copies[OWN].fate != Fate::Absent);
        assert!(
            is_right,
            "letter {number} is {:?} at its writer's, and they have it: {have:?}",
            self.departure
        );
    }

    /// Whether it is no draft, and was written at the webmail.
    pub(super) fn is_sent_by_webmail(&self) -> bool {
        self.protocol == WRITTEN && (self.recipients != [OWN] || self.is_for_others)
    }
}

impl Copy {
    pub(super) fn turns_into(&mut self, fate: Fate) {
        (self.fate, self.changes) = (fate, self.changes + 1);
    }

    /// Somebody has seen it, or was told of it.
    pub(super) fn is_seen(&mut self) {
        if self.fate == Fate::PerhapsDelivered {
            self.turns_into(Fate::Present);
        }
    }

    /// It lies there, and nothing that was asked for of it is under way any more.
    pub(super) fn lies(&mut self, id: LetterId, found: &Found) {
        let is_leaving = matches!(found.course, Course::Held | Course::Leaving | Course::Left);
        if let Err(places) = self.place.settle_as(found.mailbox) {
            panic!("letter {} lies in {}, and has to lie in {places:?}", id.0, found.mailbox);
        }
        if is_leaving {
            self.place = Doubt::between(vec![DRAFTS, SENT]);
        }
        if let Err(stars) = self.is_starred.settle_as(found.is_starred) {
            panic!("letter {} has a star: {}, and has to: {stars:?}", id.0, found.is_starred);
        }
    }
}
