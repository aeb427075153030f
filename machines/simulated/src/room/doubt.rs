//! What is known of something that clients change, and that nobody may be able to tell for sure: what it may be.
//!
//! Invariants:
//! - What was acknowledged to be so is so, unless another change of the same thing was under way meanwhile.
//! - A power cut ends what was under way. Then it is as some change says that was ever asked for, and as the last one says that was acknowledged.

use std::fmt::Debug;

/// Something that may be one of some things.
#[derive(Clone, Debug)]
pub(super) struct Doubt<T> {
    may_be: Vec<T>,
    under_way: u32,
    /// Of those under way several were so at once.
    is_disturbed: bool,
    /// All that it was asked to become, in this order.
    wanted: Vec<T>,
    /// How often it was settled.
    settled: u64,
}

/// What it might be at a moment.
#[derive(Clone, Debug)]
pub(super) struct Snapshot<T> {
    may_be: Vec<T>,
    changes: usize,
}

/// A change that was asked for.
#[derive(Clone, Debug)]
pub(super) struct Asked<T> {
    to: T,
    before: Vec<T>,
    change: usize,
    settled: u64,
}

impl<T: Clone + PartialEq + Debug> Doubt<T> {
    /// It is this.
    pub(super) fn none(is: T) -> Doubt<T> {
        Doubt::between(vec![is])
    }

    /// It is one of these.
    pub(super) fn between(may_be: Vec<T>) -> Doubt<T> {
        Doubt { may_be, under_way: 0, is_disturbed: false, wanted: Vec::new(), settled: 0 }
    }

    /// What it is, if there is no doubt.
    pub(super) fn is(&self) -> Option<&T> {
        if let [is] = self.may_be.as_slice() { Some(is) } else { None }
    }

    pub(super) fn may_be(&self, what: &T) -> bool {
        self.may_be.contains(what)
    }

    /// What it may be now: for the reply to a request that is sent now.
    pub(super) fn snapshot(&self) -> Snapshot<T> {
        Snapshot { may_be: self.may_be.clone(), changes: self.wanted.len() }
    }

    /// Whether it may have been `what` at any time since `snapshot`: what is changed while a reply
    /// is on its way may be changed again before the reply arrives.
    pub(super) fn was_since(&self, snapshot: &Snapshot<T>, what: &T) -> bool {
        snapshot.may_be.contains(what)
            || self.wanted.iter().skip(snapshot.changes).any(|wanted| wanted == what)
    }

    /// It was asked to become this.
    pub(super) fn asked(&mut self, to: T) -> Asked<T> {
        self.is_disturbed |= self.under_way > 0;
        self.under_way += 1;
        self.wanted.push(to.clone());
        let before = self.may_be.clone();
        if !self.may_be.contains(&to) {
            self.may_be.push(to.clone());
        }
        Asked { to, before, change: self.wanted.len(), settled: self.settled }
    }

    /// That was acknowledged.
    pub(super) fn done(&mut self, asked: &Asked<T>) {
        if asked.settled == self.settled {
            self.ended(vec![asked.to.clone()]);
        } else if self.wanted.len() == asked.change && asked.before.len() == 1 {
            assert!(
                self.may_be(&asked.to),
                "{:?} was acknowledged, and a power cut has made it {:?}",
                asked.to,
                self.may_be
            );
        }
    }

    /// That was not done, and will not be.
    pub(super) fn not_done(&mut self, asked: &Asked<T>) {
        if asked.settled == self.settled {
            self.ended(asked.before.clone());
        }
    }

    fn ended(&mut self, known: Vec<T>) {
        self.under_way -= 1;
        if !self.is_disturbed {
            self.may_be = known;
        }
        self.is_disturbed &= self.under_way > 0;
    }

    /// Nothing is under way any more.
    pub(super) fn settle(&mut self) {
        (self.under_way, self.is_disturbed) = (0, false);
        self.settled += 1;
    }

    /// Nothing is under way any more, and this is what it is. Returns what else it had to be.
    pub(super) fn settle_as(&mut self, is: T) -> Result<(), Vec<T>> {
        self.settle();
        if !self.may_be.contains(&is) {
            return Err(self.may_be.clone());
        }
        self.may_be = vec![is];
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_acknowledged_is_so_and_what_was_asked_for_at_once_may_be_either() {
        let mut doubt = Doubt::none(1);
        let one = doubt.asked(2);
        assert!(doubt.is().is_none() && doubt.may_be(&1) && doubt.may_be(&2));
        doubt.done(&one);
        assert_eq!(doubt.is(), Some(&2));
        let (one, other) = (doubt.asked(3), doubt.asked(4));
        doubt.done(&one);
        doubt.done(&other);
        assert_eq!(doubt.may_be, [2, 3, 4]);
        assert_eq!(doubt.settle_as(5), Err(vec![2, 3, 4]));
        assert_eq!(doubt.settle_as(4), Ok(()));
    }

    #[test]
    fn what_it_became_and_is_no_more_may_be_in_an_answer_that_was_on_its_way() {
        let mut doubt = Doubt::none(1);
        let snapshot = doubt.snapshot();
        for to in [2, 3] {
            let asked = doubt.asked(to);
            doubt.done(&asked);
        }
        assert_eq!(
            [1, 2, 3, 4].map(|what| doubt.was_since(&snapshot, &what)),
            [true, true, true, false]
        );
        assert_eq!(
            [1, 2, 3].map(|what| doubt.was_since(&doubt.snapshot(), &what)),
            [false, false, true]
        );
    }

    #[test]
    #[should_panic(expected = "was acknowledged, and a power cut has made it")]
    fn what_an_acknowledgment_says_that_was_on_its_way_in_a_power_cut_is_so_too() {
        let mut doubt = Doubt::none(1);
        let asked = doubt.asked(2);
        assert_eq!(doubt.settle_as(1), Ok(()));
        doubt.done(&asked);
    }
}
