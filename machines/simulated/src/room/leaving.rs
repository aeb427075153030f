//! What is known of letters that are sent from the webmail: each of them leaves, or was taken back and is a draft.
//!
//! Where a letter is held, nobody is told when it leaves. So the disk is asked, whose marks say how far it has come (`docs/format.md`, section 7).
//!
//! Invariants, of a letter that is on no bad sector:
//! - What was sent leaves, unless its writer has asked for it back; then it may be a draft, and once he was told so it is one for ever.
//! - Nobody has what is held or is a draft again. Once everybody is said to have it everybody does, or did before it was deleted.
//! - Nothing is on its way any more when there was time enough.

use store::Flags;

use super::doubt::{Asked, Doubt};
use super::ledger::{AT_WEBMAIL, DRAFTS, Fate, Found, Ledger, Letter, LetterId, OWN};

/// How far a letter has come, as its writer's copy says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Course {
    /// It is a draft as any other.
    Draft,
    /// It can be taken back.
    Held,
    /// It cannot. Some have it.
    Leaving,
    /// All have it, and their copies are not forgotten yet.
    Left,
    /// It lies elsewhere than among drafts.
    Sent,
}

impl Course {
    /// That of a message with these flags in this mailbox.
    pub(super) fn of(mailbox: u32, flags: Flags) -> Course {
        match mailbox {
            DRAFTS if flags.contains(Flags::LEFT) => Course::Left,
            DRAFTS if flags.contains(Flags::LEAVING) => Course::Leaving,
            DRAFTS if flags.contains(Flags::HELD) => Course::Held,
            DRAFTS => Course::Draft,
            _ => Course::Sent,
        }
    }
}

/// What is known of a letter's departure.
pub(super) struct Departure {
    /// Whether it leaves, if it came to be at all.
    leaves: Doubt<bool>,
    /// How far it had come when the disk was looked at last; `None`: its writer had no copy.
    course: Option<Course>,
}

impl Departure {
    /// Nothing is known but that somebody wants it to leave.
    pub(super) fn wanted() -> Departure {
        Departure { leaves: Doubt::none(true), course: None }
    }

    /// Whether some may still get it.
    pub(super) fn is_under_way(&self) -> bool {
        matches!(self.course, Some(Course::Held | Course::Leaving))
    }
}

impl Ledger {
    /// A letter is asked for back.
    pub(super) fn back_asked(&mut self, id: LetterId) -> Asked<bool> {
        self.letters[id.0].departure.leaves.asked(false)
    }

    /// Its writer was told that it is a draft again, or that it is too late.
    pub(super) fn back_told(&mut self, id: LetterId, asked: &Asked<bool>, is_back: bool) {
        self.touched.push(id);
        let letter = &mut self.letters[id.0];
        if !is_back {
            return letter.departure.leaves.not_done(asked);
        }
        letter.departure.leaves.done(asked);
        if letter.departure.leaves.is() == Some(&false) {
            letter.is_draft_again(id);
            self.letter_answered(id, false);
        }
    }

    /// Whether a letter is for anybody: it may be taken back, while a draft is none to be.
    pub(super) fn is_for_somebody(&self, id: LetterId) -> bool {
        self.letters[id.0].is_sent_by_webmail()
    }

    /// The disk was looked at, and nobody is asking for anything: what who is at the webmail has on it.
    pub(super) fn courses(&mut self, found: &[Found]) {
        self.letters.iter_mut().for_each(|letter| letter.departure.course = None);
        for message in found {
            let id = self.is_whole(&message.message);
            if self.copy_in(id, AT_WEBMAIL, message.mailbox) == OWN {
                self.letters[id.0].departure.course = Some(message.course);
            }
        }
        for (number, letter) in self.letters.iter_mut().enumerate().filter(|(_, letter)| letter.is_sent_by_webmail()) {
            let Departure { leaves, course } = &mut letter.departure;
            let settled = match course {
                None => {
                    leaves.settle();
                    Ok(())
                }
                Some(course) => leaves.settle_as(*course != Course::Draft),
            };
            assert!(settled.is_ok(), "letter {number} is {course:?}; that it leaves is {leaves:?}");
        }
    }

    /// The letters that had not left when the disk was looked at last.
    pub(super) fn on_their_way(&self) -> Vec<LetterId> {
        let is_on_its_way = |id: &LetterId| {
            let course = self.letters[id.0].departure.course;
            matches!(course, Some(Course::Held | Course::Leaving | Course::Left))
        };
        (0..self.letters.len()).map(LetterId).filter(is_on_its_way).collect()
    }

    /// Whether all had but those on bad sectors.
    pub(super) fn all_have_left(&self) -> bool {
        self.on_their_way().iter().all(|id| self.letters[id.0].is_harmed)
    }
}

impl Letter {
    /// Nobody else gets it, and its writer finds it among his drafts.
    fn is_draft_again(&mut self, id: LetterId) {
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
        let others = self.recipients.iter().filter(|copy| **copy != OWN).map(|copy| self.copies[*copy].fate);
        let have: Vec<bool> = others.map(|fate| !matches!(fate, Fate::Absent | Fate::PerhapsDelivered)).collect();
        let (some, all) = (have.contains(&true), !have.contains(&false));
        let Departure { leaves, course } = &self.departure;
        let is_right = match course {
            _ if have.is_empty() => true,
            Some(Course::Draft | Course::Held) => !some,
            Some(Course::Leaving) => true,
            Some(Course::Left | Course::Sent) => all,
            // It never came to be, or was erased since.
            None if self.copies[OWN].fate == Fate::Absent => !some,
            None => leaves.is().map_or(some == all, |leaves| *leaves == some && some == all),
        };
        assert!(
            is_right,
            "letter {number} is {course:?} at its writer's, that it leaves is {leaves:?}, and they have it: {have:?}"
        );
    }
}
