//! The failures of a core that wait to be reported together with others of the same message
//! (`joint_reports`).
//!
//! Invariant: at most [`RECIPIENTS_MAX`] recipients wait.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use machine::Instant;

use super::failure::FailureReason;
use super::index::MessageMark;
use super::waiting::Place;

/// The most recipients of a core that wait to be reported.
const RECIPIENTS_MAX: usize = 4096;

/// Recipients that cannot get the message, each with its bit and the reason.
pub(super) type Failures = Vec<(u8, FailureReason)>;

/// The failures of a core that wait to be reported together with others.
#[derive(Default)]
pub(super) struct WaitingFailures {
    messages: BTreeMap<MessageMark, BTreeMap<Place, EntryFailures>>,
    recipients: usize,
}

/// The waiting failures of an entry.
struct EntryFailures {
    failed: Failures,
    /// The time at which they are reported, whatever other entries wait for.
    due: Instant,
}

impl WaitingFailures {
    /// Adds the failures of an entry. Returns false if there is no memory for them.
    pub(super) fn add(
        &mut self,
        mark: MessageMark,
        place: Place,
        failed: &Failures,
        due: Instant,
    ) -> bool {
        if self.recipients + failed.len() > RECIPIENTS_MAX {
            return false;
        }
        self.recipients += failed.len();
        let failures = EntryFailures { failed: failed.clone(), due };
        let before = self.messages.entry(mark).or_default().insert(place, failures);
        assert!(before.is_none(), "the failures of an entry are taken before others are added");
        true
    }

    /// Takes the failures of an entry, and the time at which they are due.
    pub(super) fn take(&mut self, mark: MessageMark, place: Place) -> Option<(Failures, Instant)> {
        let entries = self.messages.get_mut(&mark)?;
        let EntryFailures { failed, due } = entries.remove(&place)?;
        if entries.is_empty() {
            self.messages.remove(&mark);
        }
        self.recipients -= failed.len();
        Some((failed, due))
    }

    /// The entries of a message that have waiting failures.
    pub(super) fn entries(&self, mark: MessageMark) -> impl Iterator<Item = Place> {
        self.messages.get(&mark).into_iter().flat_map(|entries| entries.keys().copied())
    }

    /// Whether no failures wait.
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Whether failures of a message are due.
    pub(super) fn is_due(&self, mark: MessageMark, now: Instant) -> bool {
        self.messages
            .get(&mark)
            .is_some_and(|entries| entries.values().any(|failures| failures.due <= now))
    }

    /// Whether an entry of a message has waiting failures.
    pub(super) fn has(&self, mark: MessageMark, place: Place) -> bool {
        self.messages.get(&mark).is_some_and(|entries| entries.contains_key(&place))
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU64;

    use super::*;
    use store::{AccountId, Uid};

    fn mark(number: u64) -> MessageMark {
        MessageMark(NonZeroU64::new(number).unwrap())
    }

    fn failures(count: usize) -> Failures {
        (0..count).map(|bit| (bit as u8, FailureReason::Busy)).collect()
    }

    #[test]
    fn waiting_failures_are_bounded_and_found_by_message() {
        let mut waiting = WaitingFailures::default();
        let place = |number: usize| (AccountId::from_bits(1), Uid(number as u32));
        for number in 0..RECIPIENTS_MAX / 8 {
            let due = Instant(number as u64);
            assert!(waiting.add(mark(1 + number as u64 / 4), place(number), &failures(8), due));
        }
        assert!(!waiting.add(mark(7), place(99_999), &failures(1), Instant(0)));
        assert_eq!(waiting.entries(mark(2)).collect::<Vec<_>>(), [4, 5, 6, 7].map(place));
        assert!(waiting.has(mark(2), place(7)) && !waiting.has(mark(2), place(8)));
        assert!(waiting.is_due(mark(2), Instant(4)) && !waiting.is_due(mark(2), Instant(3)));
        assert!(waiting.take(mark(2), place(8)).is_none());
        for number in 0..RECIPIENTS_MAX / 8 {
            let taken = waiting.take(mark(1 + number as u64 / 4), place(number));
            assert!(taken.is_some_and(|(failed, due)| failed.len() == 8 && due == Instant(number as u64)));
        }
        assert!(waiting.messages.is_empty() && waiting.recipients == 0);
    }
}
