//! Entries that wait behind a destination that goes down.

use configuration::Relay;
use machine::Micros;

use super::*;

const DOWN: &str = "down.test";

fn queue() -> Queue {
    let [queue_ids, _] = QueueIds::pair(0);
    Queue::new(Instant::START, Config::new("mail.test".into(), Relay::default()), queue_ids)
}

#[test]
fn entries_behind_a_down_destination_are_released_in_batches() {
    let mut queue = queue();
    queue.is_serving = true;
    let places = (1..=3 * EXAMINED_MAX as u32)
        .map(|number| (AccountId::from_bits(u64::from(number % 2)), Uid(number)));
    for place in places {
        queue.index.found(place, State::Behind);
        queue.behind.entry(DOWN.into()).or_default().push(place);
    }
    let due = |queue: &Queue| {
        let is_due = |status: &super::super::index::EntryStatus| {
            status.state == State::Waits(Instant::START)
        };
        queue.index.behind(None).filter(|(_, status)| is_due(status)).count()
    };
    queue.release_entries_behind(DOWN);
    assert_eq!(due(&queue), 0);
    for turn in 1..=3 {
        assert!(queue.has_unannounced_work());
        queue.make_due(&mut { EXAMINED_MAX });
        assert_eq!(due(&queue), turn * EXAMINED_MAX);
    }
    queue.make_due(&mut { EXAMINED_MAX });
    assert!(!queue.has_unannounced_work());
}

#[test]
fn waiting_failures_of_a_removed_entry_are_dropped() {
    let (mut queue, place) = (queue(), (AccountId::from_bits(1), Uid(1)));
    let mark = MessageMark(NonZeroU64::MIN);
    queue.index.found(place, State::Waits(Instant::START));
    queue.index.set_message(place, Some(mark));
    queue.take_up(place);
    queue.shares.begin_acting(place.0);
    let failed = alloc::vec![(0, super::super::failure::FailureReason::Busy)];
    assert!(queue.failures.add(mark, place, &failed, Instant::START));
    let (next, destination_try) = (None, DestinationTry::NotTried);
    let outcome = AttemptOutcome { place, next, destination_try, is_left: false, words: None };
    queue.ended(outcome, Instant::START);
    assert!(queue.index.of(place).is_none() && !queue.failures.has(mark, place));
}

/// An entry of another message delays the report only until it was read, and the report begins when
/// the attempt at that entry has ended.
#[test]
fn failures_do_not_wait_for_other_messages() {
    let mut queue = queue();
    let [place, other] = [1, 2].map(|number| (AccountId::from_bits(1), Uid(number)));
    let (mark, due) = (MessageMark(NonZeroU64::MIN), Instant::START + Micros::from_secs(120));
    queue.index.found(place, State::Waits(due));
    queue.index.set_message(place, Some(mark));
    let failed = alloc::vec![(0, super::super::failure::FailureReason::Busy)];
    assert!(queue.failures.add(mark, place, &failed, due));
    queue.index.found(other, State::Waits(Instant::START));
    queue.take_up(other);
    queue.shares.begin_acting(other.0);
    assert!(queue.index.has_untried(mark, place, Instant::START));
    queue.index.set_message(other, None);
    assert!(!queue.index.has_untried(mark, place, Instant::START));
    let (next, destination_try) = (None, DestinationTry::NotTried);
    let outcome =
        AttemptOutcome { place: other, next, destination_try, is_left: false, words: None };
    queue.ended(outcome, Instant::START);
    assert!(queue.index.has_state(place, State::Waits(Instant::START)));
}

#[test]
fn held_entry_is_not_released_when_its_destination_goes_down() {
    let (mut queue, place) = (queue(), (AccountId::from_bits(1), Uid(1)));
    queue.index.found(place, State::Behind);
    queue.behind.entry(DOWN.into()).or_default().push(place);
    queue.release_entries_behind(DOWN);
    queue.index.set(place, State::Held);
    queue.make_due(&mut { EXAMINED_MAX });
    assert!(queue.index.has_state(place, State::Held));
}
