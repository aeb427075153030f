//! A value that clients change. The model may know only the set of possible values.
//!
//! Invariants:
//! - After an acknowledged change the value is the requested value, unless another change was
//!   pending at the same time.
//! - A power cut ends all pending changes. After it, the value is the last acknowledged value, or a
//!   value that was requested later.

use std::fmt::Debug;

/// A value that is known, or one of several possible values.
#[derive(Clone, Debug)]
pub(super) struct Uncertain<T> {
    /// The possible values.
    may_be: Vec<T>,
    /// The number of pending changes.
    under_way: u32,
    /// Whether changes have overlapped since the last time at which no change was pending.
    is_disturbed: bool,
    /// All values that clients have requested, in order.
    wanted: Vec<T>,
    /// The number of times that [`Uncertain::settle`] was called.
    settled: u64,
}

/// The possible values at the moment of a request.
#[derive(Clone, Debug)]
pub(super) struct Snapshot<T> {
    may_be: Vec<T>,
    /// The number of changes that clients had requested before.
    changes: usize,
}

/// A change that a client has requested.
#[derive(Clone, Debug)]
pub(super) struct RequestedChange<T> {
    to: T,
    /// The possible values before the request.
    before: Vec<T>,
    /// The number of requested changes, including this one.
    change: usize,
    /// [`Uncertain::settled`] at the request.
    settled: u64,
}

impl<T: Clone + PartialEq + Debug> Uncertain<T> {
    /// A value that is certain.
    pub(super) fn certain(is: T) -> Uncertain<T> {
        Uncertain::between(vec![is])
    }

    /// A value that is one of `may_be`.
    pub(super) fn between(may_be: Vec<T>) -> Uncertain<T> {
        Uncertain { may_be, under_way: 0, is_disturbed: false, wanted: Vec::new(), settled: 0 }
    }

    /// The value, if it is certain.
    pub(super) fn known(&self) -> Option<&T> {
        if let [is] = self.may_be.as_slice() { Some(is) } else { None }
    }

    pub(super) fn may_be(&self, what: &T) -> bool {
        self.may_be.contains(what)
    }

    /// The values that are possible now. A client takes the snapshot when it sends a request, to
    /// check the response.
    pub(super) fn snapshot(&self) -> Snapshot<T> {
        Snapshot { may_be: self.may_be.clone(), changes: self.wanted.len() }
    }

    /// Whether the value may have been `what` at any time since `snapshot`. It may change several
    /// times before the response arrives.
    pub(super) fn was_since(&self, snapshot: &Snapshot<T>, what: &T) -> bool {
        snapshot.may_be.contains(what)
            || self.wanted.iter().skip(snapshot.changes).any(|wanted| wanted == what)
    }

    /// Notes that a client requests this value.
    pub(super) fn requested(&mut self, to: T) -> RequestedChange<T> {
        self.is_disturbed |= self.under_way > 0;
        self.under_way += 1;
        self.wanted.push(to.clone());
        let before = self.may_be.clone();
        if !self.may_be.contains(&to) {
            self.may_be.push(to.clone());
        }
        RequestedChange { to, before, change: self.wanted.len(), settled: self.settled }
    }

    /// Notes that the server has acknowledged the change.
    pub(super) fn done(&mut self, requested: &RequestedChange<T>) {
        if requested.settled == self.settled {
            self.ended(vec![requested.to.clone()]);
        } else if self.wanted.len() == requested.change && requested.before.len() == 1 {
            assert!(
                self.may_be(&requested.to),
                "{:?} was acknowledged, and a power cut has made it {:?}",
                requested.to,
                self.may_be
            );
        }
    }

    /// Notes that the server has not made the change, and never will.
    pub(super) fn not_done(&mut self, requested: &RequestedChange<T>) {
        if requested.settled == self.settled {
            self.ended(requested.before.clone());
        }
    }

    /// Ends one change. `known`: the possible values if the change did not overlap another one.
    fn ended(&mut self, known: Vec<T>) {
        self.under_way -= 1;
        if !self.is_disturbed {
            self.may_be = known;
        }
        self.is_disturbed &= self.under_way > 0;
    }

    /// Ends all pending changes.
    pub(super) fn settle(&mut self) {
        (self.under_way, self.is_disturbed) = (0, false);
        self.settled += 1;
    }

    /// Ends all pending changes, and sets the value. Errors: the possible values, if `is` is not
    /// one of them.
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
    fn overlapping_changes_may_end_in_either_value() {
        let mut uncertain = Uncertain::certain(1);
        let one = uncertain.requested(2);
        assert!(uncertain.known().is_none() && uncertain.may_be(&1) && uncertain.may_be(&2));
        uncertain.done(&one);
        assert_eq!(uncertain.known(), Some(&2));
        let (one, other) = (uncertain.requested(3), uncertain.requested(4));
        uncertain.done(&one);
        uncertain.done(&other);
        assert_eq!(uncertain.may_be, [2, 3, 4]);
        assert_eq!(uncertain.settle_as(5), Err(vec![2, 3, 4]));
        assert_eq!(uncertain.settle_as(4), Ok(()));
    }

    #[test]
    fn a_late_response_may_show_an_earlier_value() {
        let mut uncertain = Uncertain::certain(1);
        let snapshot = uncertain.snapshot();
        for to in [2, 3] {
            let requested = uncertain.requested(to);
            uncertain.done(&requested);
        }
        assert_eq!(
            [1, 2, 3, 4].map(|what| uncertain.was_since(&snapshot, &what)),
            [true, true, true, false]
        );
        assert_eq!(
            [1, 2, 3].map(|what| uncertain.was_since(&uncertain.snapshot(), &what)),
            [false, false, true]
        );
    }

    #[test]
    #[should_panic(expected = "was acknowledged, and a power cut has made it")]
    fn an_acknowledgment_after_a_power_cut_still_holds() {
        let mut uncertain = Uncertain::certain(1);
        let requested = uncertain.requested(2);
        assert_eq!(uncertain.settle_as(1), Ok(()));
        uncertain.done(&requested);
    }
}
