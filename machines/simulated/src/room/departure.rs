//! How far a letter that is sent from the webmail has come: it leaves, or was taken back and is a draft.
//!
//! Where a letter is held, nobody is told when it leaves. So the disk is asked, whose marks say how far it has come (`docs/format.md`, section 7).
//!
//! Invariants, of a letter that is on no bad sector:
//! - What was sent leaves, unless its writer has asked for it back; then it may be a draft, and once he was told so it is one for ever.
//! - Nobody has what is held or is a draft again. Once everybody is said to have it everybody does, or did before it was deleted.
//! - Nothing is on its way any more when there was time enough.

use store::Flags;

use super::doubt::{Asked, Doubt};
use super::fixture::DRAFTS;

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
#[derive(Debug)]
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

    /// Whether it had not left for good when the disk was looked at last.
    pub(super) fn is_on_its_way(&self) -> bool {
        matches!(self.course, Some(Course::Held | Course::Leaving | Course::Left))
    }

    /// The letter is asked for back.
    pub(super) fn back_asked(&mut self) -> Asked<bool> {
        self.leaves.asked(false)
    }

    /// Its writer was told that it is a draft again, or that it is too late. Returns whether it is a
    /// draft from now on.
    pub(super) fn back_told(&mut self, asked: &Asked<bool>, is_back: bool) -> bool {
        if !is_back {
            self.leaves.not_done(asked);
            return false;
        }
        self.leaves.done(asked);
        self.leaves.is() == Some(&false)
    }

    /// The disk was looked at: so far it has come. `None`: its writer has no copy.
    pub(super) fn looked_at(&mut self, course: Option<Course>) {
        self.course = course;
    }

    /// Nobody is asking for it back any more. Returns whether it has come as far as it may have.
    pub(super) fn settle(&mut self) -> bool {
        match self.course {
            None => {
                self.leaves.settle();
                true
            }
            Some(course) => self.leaves.settle_as(course != Course::Draft).is_ok(),
        }
    }

    /// Whether those have it who should. `have`: whether each recipient has it. `is_kept`: its
    /// writer's copy is there, or was.
    pub(super) fn is_fulfilled(&self, have: &[bool], is_kept: bool) -> bool {
        let (some, all) = (have.contains(&true), !have.contains(&false));
        match self.course {
            _ if have.is_empty() => true,
            Some(Course::Draft | Course::Held) => !some,
            Some(Course::Leaving) => true,
            Some(Course::Left | Course::Sent) => all,
            // It never came to be, or was erased since.
            None if !is_kept => !some,
            None => self.leaves.is().map_or(some == all, |leaves| *leaves == some && some == all),
        }
    }
}
