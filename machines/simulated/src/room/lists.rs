//! Pages of the webmail held against the ledger: what a list shows may be there, and what is there for sure is shown.
//!
//! Between a request and what comes of it other clients go on: of what changed meanwhile a page may show either.

use super::doubt::Asked;
use super::fixture::AT_WEBMAIL;
use super::ledger::Ledger;
use super::letter::{COPIES, Copy, Fate, LetterId, OWN};

/// Archive is the last mailbox that is searched unless it is named: what follows is what was thrown away.
const SEARCHED_LAST: u32 = 4;

/// A row of a list.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) mailbox: u32,
    pub(super) uid: u32,
    /// None if it cannot be read.
    pub(super) letter: Option<LetterId>,
    pub(super) is_starred: bool,
}

impl Row {
    /// As forms and addresses name it.
    pub(super) fn key(&self) -> String {
        format!("{}.{}", self.mailbox, self.uid)
    }
}

/// What was known when a page was asked for.
#[derive(Clone, Debug)]
pub(super) struct View {
    account: usize,
    /// How often each copy had become another.
    changes: Vec<[u64; COPIES]>,
}

/// How much of what there is a page has to show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Extent {
    /// Some of it.
    Some,
    /// All that is in this mailbox.
    Mailbox(u32),
    /// This letter, if it is in a mailbox of this account that is searched.
    Letter(LetterId),
}

impl Ledger {
    /// A page of an account is asked for.
    pub(super) fn view(&self, account: usize) -> View {
        let changes = self
            .letters
            .iter()
            .map(|letter| std::array::from_fn(|copy| letter.copies[copy].changes));
        View { account, changes: changes.collect() }
    }

    /// Whether nothing has become of a copy since.
    pub(super) fn is_unchanged(&self, view: &View, id: LetterId, copy: usize) -> bool {
        view.changes
            .get(id.0)
            .is_some_and(|changes| changes[copy] == self.letters[id.0].copies[copy].changes)
    }

    /// Whether any message of the account may have gone elsewhere since.
    pub(super) fn may_have_gone(&self, view: &View) -> bool {
        (0..self.letters.len()).map(LetterId).any(|id| {
            let copies = self.letters[id.0].recipients.iter();
            let mut own = copies.filter(|copy| {
                **copy == view.account || **copy == OWN && view.account == AT_WEBMAIL
            });
            own.any(|copy| {
                let Copy { fate, place, .. } = &self.letters[id.0].copies[*copy];
                !self.is_unchanged(view, id, *copy)
                    || *fate == Fate::PerhapsDeleted
                    || place.is().is_none()
            })
        })
    }

    /// The page has come, with these rows.
    pub(super) fn listed(&self, view: &View, rows: &[Row], extent: Extent) {
        for row in rows {
            let Some(id) = row.letter else { continue };
            let name = self.copy_in(id, view.account, row.mailbox);
            let copy = &self.letters[id.0].copies[name];
            if self.is_unchanged(view, id, name) {
                let is_there = matches!(
                    copy.fate,
                    Fate::PerhapsDelivered | Fate::Present | Fate::PerhapsDeleted
                );
                assert!(
                    is_there,
                    "letter {} is {:?} and is shown in {}",
                    id.0, copy.fate, row.mailbox
                );
                let place = &copy.place;
                assert!(
                    place.may_be(&row.mailbox),
                    "letter {} is in {place:?} and is shown in {}",
                    id.0,
                    row.mailbox
                );
                let star = &copy.is_starred;
                assert!(
                    star.may_be(&row.is_starred),
                    "letter {} has a star: {star:?}, and is shown as {row:?}",
                    id.0
                );
            }
        }
        for (number, letter) in
            self.letters.iter().enumerate().filter(|(_, letter)| !letter.is_harmed)
        {
            for (name, copy) in
                letter.copies.iter().enumerate().filter(|(_, copy)| copy.fate == Fate::Present)
            {
                let (id, Some(mailbox)) = (LetterId(number), copy.place.is()) else { continue };
                let is_meant = match extent {
                    Extent::Some => false,
                    Extent::Mailbox(all) => all == *mailbox,
                    Extent::Letter(one) => one == id && *mailbox <= SEARCHED_LAST,
                };
                let is_wanted = is_meant && self.copy_in(id, view.account, *mailbox) == name;
                if is_wanted && self.is_unchanged(view, id, name) {
                    let is_shown =
                        rows.iter().any(|row| row.letter == Some(id) && row.mailbox == *mailbox);
                    assert!(is_shown, "letter {number} is in {mailbox} and is not shown there");
                }
            }
        }
    }

    /// Rows are of what is durable: nothing of it may be lost any more.
    pub(super) fn seen(&mut self, view: &View, rows: &[Row]) {
        for row in rows {
            if let Some(id) = row.letter {
                let copy = self.copy_in(id, view.account, row.mailbox);
                self.letters[id.0].copies[copy].is_seen();
            }
        }
    }

    /// The letter of this name, as lists show it. `None` for what says that it cannot be read.
    pub(super) fn named(&self, subject: &str) -> Option<LetterId> {
        let number: usize = subject.parse().ok()?;
        assert!(number < self.letters.len(), "no letter of ours: {subject}");
        Some(LetterId(number))
    }

    /// Whether all copies of a letter are in accounts of their own: then its rows stand for it alone.
    pub(super) fn has_one_copy_each(&self, id: LetterId) -> bool {
        let copies = &self.letters[id.0].recipients;
        !(copies.contains(&AT_WEBMAIL) && copies.contains(&OWN))
    }

    /// Whether a copy is in this mailbox, and nobody doubts it. Another client may have moved it since a row was shown.
    pub(super) fn is_surely_in(&self, id: LetterId, copy: usize, mailbox: u32) -> bool {
        let copy = &self.letters[id.0].copies[copy];
        copy.fate == Fate::Present && copy.place.is() == Some(&mailbox)
    }

    /// A copy is asked to go into another mailbox.
    pub(super) fn move_asked(&mut self, id: LetterId, copy: usize, to: u32) -> Asked<u32> {
        self.touch(id, copy).place.asked(to)
    }

    /// It was told to have gone there; or that nothing was moved.
    pub(super) fn moved(&mut self, id: LetterId, copy: usize, asked: &Asked<u32>, is_moved: bool) {
        self.touched.push(id);
        let copy = self.touch(id, copy);
        if is_moved {
            copy.place.done(asked);
            copy.is_seen();
        } else {
            copy.place.not_done(asked);
        }
    }

    /// The star of a copy is asked to be or not to be.
    pub(super) fn star_asked(
        &mut self,
        id: LetterId,
        copy: usize,
        is_starred: bool,
    ) -> Asked<bool> {
        self.touch(id, copy).is_starred.asked(is_starred)
    }

    /// It was told that this is so.
    pub(super) fn starred(&mut self, id: LetterId, copy: usize, asked: &Asked<bool>) {
        let copy = self.touch(id, copy);
        copy.is_starred.done(asked);
        copy.is_seen();
    }

    /// What is known of the star of a copy.
    pub(super) fn star(&self, id: LetterId, copy: usize) -> Option<bool> {
        self.letters[id.0].copies[copy].is_starred.is().copied()
    }

    fn touch(&mut self, id: LetterId, copy: usize) -> &mut Copy {
        let copy = &mut self.letters[id.0].copies[copy];
        copy.changes += 1;
        copy
    }
}
