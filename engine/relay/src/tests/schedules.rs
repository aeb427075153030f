//! When letters are tried again, and destinations.

use machine::{Instant, Micros};

use super::*;
use crate::destinations::{Admission, Destinations, Ended, Limits};
use crate::schedule::{DELAY_NOTICE_AFTER, LIFETIME, Next, is_delay_to_be_told, next_attempt};

const MINUTE: u64 = 60;
const HOUR: u64 = 3600;

/// Ages in seconds at which a letter is tried, with this random number.
fn attempts(random: u64) -> Vec<u64> {
    let mut ages = Vec::from([0]);
    let mut age = Micros(0);
    while let Next::After(wait) = next_attempt(age, random) {
        age = age + wait;
        ages.push(age.as_secs());
        assert!(ages.len() < 100, "there is an end");
    }
    ages
}

/// A random number by which a span is what it would be without the jitter.
fn even(span: u64) -> u64 {
    Micros::from_secs(span).0 / 4
}

#[test]
fn a_letter_is_tried_after_minutes_then_hours_for_five_days() {
    let next = |age: u64| next_attempt(Micros::from_secs(age), even(age.clamp(5 * MINUTE, 4 * HOUR)));
    for (age, expected) in [
        (0, 5 * MINUTE),
        (5 * MINUTE, 5 * MINUTE),
        (10 * MINUTE, 10 * MINUTE),
        (3 * HOUR, 3 * HOUR),
        (50 * HOUR, 4 * HOUR),
    ] {
        assert_eq!(next(age), Next::After(Micros::from_secs(expected)), "{age}");
    }
    for random in [0, 1, u64::MAX, 0x1234_5678_9abc_def0] {
        let ages = attempts(random);
        assert_eq!(ages.last(), Some(&LIFETIME.as_secs()), "the last attempt is made when it is given up");
        assert!((30..60).contains(&ages.len()), "{}", ages.len());
        assert!(ages.iter().filter(|age| **age < HOUR).count() >= 4);
    }
}

#[test]
fn the_jitter_is_a_quarter_either_way() {
    let waits = |random| match next_attempt(Micros::from_secs(HOUR), random) {
        Next::After(wait) => wait.as_secs() / MINUTE,
        Next::GiveUp => panic!("too early"),
    };
    assert_eq!([0, even(HOUR), 2 * even(HOUR)].map(waits), [45, 60, 75]);
    assert!((0..1000).map(|random| waits(random * 0x0123_4567_89ab)).all(|wait| (45..=75).contains(&wait)));
}

#[test]
fn a_letter_is_given_up_at_five_days_and_not_before() {
    assert_eq!(next_attempt(LIFETIME, 7), Next::GiveUp);
    assert_eq!(next_attempt(Micros(LIFETIME.0 - 1), 7), Next::After(Micros(1)));
    assert_eq!(next_attempt(Micros(u64::MAX), 7), Next::GiveUp);
    assert_eq!(LIFETIME.as_secs(), 5 * 24 * HOUR);
}

#[test]
fn a_delay_is_told_after_four_hours() {
    assert!(!is_delay_to_be_told(Micros(DELAY_NOTICE_AFTER.0 - 1)) && is_delay_to_be_told(DELAY_NOTICE_AFTER));
    assert_eq!(DELAY_NOTICE_AFTER.as_secs(), 4 * HOUR);
}

fn at(seconds: u64) -> Instant {
    Instant::START + Micros::from_secs(seconds)
}

fn table(destinations: usize) -> Destinations {
    Destinations::new(Limits { destinations, connections: 2 })
}

#[test]
fn a_destination_has_so_many_connections_and_no_more() {
    let mut table = table(4);
    let admit = |table: &mut Destinations| table.admit("a.test", at(0));
    assert_eq!(
        [admit(&mut table), admit(&mut table), admit(&mut table)],
        [Admission::Go, Admission::Go, Admission::Busy]
    );
    assert_eq!(table.admit("b.test", at(0)), Admission::Go, "others have theirs");
    table.ended("a.test", Ended::Unknown, at(0), 0);
    assert_eq!(admit(&mut table), Admission::Go);
    for _ in 0..2 {
        table.ended("a.test", Ended::Reached, at(0), 0);
    }
    table.ended("b.test", Ended::Reached, at(0), 0);
    assert_eq!(table.count(), 0, "nothing is left to be known");
}

#[test]
fn a_destination_that_is_down_is_left_alone_for_longer_and_longer() {
    let mut table = table(4);
    let mut now = at(0);
    let mut waits = Vec::new();
    for _ in 0..8 {
        assert_eq!(table.admit("a.test", now), Admission::Go);
        let span = Micros::from_secs(60 << waits.len()).0.min(Micros::from_secs(HOUR).0);
        table.ended("a.test", Ended::Failed, now, span / 4);
        let Admission::WaitUntil(until) = table.admit("a.test", now) else { panic!("it is left alone") };
        assert_eq!(table.admit("b.test", now), Admission::Go, "others are not");
        table.ended("b.test", Ended::Reached, now, 0);
        waits.push(until.since(now).as_secs() / 60);
        assert_eq!(table.admit("a.test", Instant(until.0 - 1)), Admission::WaitUntil(until));
        now = until;
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
    // One tries; when it comes through all may.
    assert_eq!([table.admit("a.test", now), table.admit("a.test", now)], [Admission::Go, Admission::Busy]);
    table.ended("a.test", Ended::Reached, now, 0);
    assert_eq!([table.admit("a.test", now), table.admit("a.test", now)], [Admission::Go, Admission::Go]);
}

#[test]
fn a_destination_that_is_left_alone_is_tried_at_once_if_somebody_wants_it() {
    let mut table = table(2);
    for destination in ["a.test", "b.test"] {
        assert_eq!(table.admit(destination, at(0)), Admission::Go);
        table.ended(destination, Ended::Failed, at(0), 0);
    }
    table.call_again("b.test");
    table.call_again("nobody.test");
    assert!(matches!(table.admit("a.test", at(1)), Admission::WaitUntil(_)));
    assert_eq!([table.admit("b.test", at(1)), table.admit("b.test", at(1))], [Admission::Go, Admission::Busy]);
    table.ended("b.test", Ended::Failed, at(1), 0);
    table.call_again("b.test");
    assert_eq!((table.admit("c.test", at(2)), table.count()), (Admission::Go, 2), "it is the first to be forgotten");
    assert!(matches!(table.admit("a.test", at(2)), Admission::WaitUntil(_)));
}

#[test]
fn connections_that_fail_together_count_once() {
    let mut table = table(4);
    assert_eq!([table.admit("a.test", at(0)), table.admit("a.test", at(0))], [Admission::Go, Admission::Go]);
    table.ended("a.test", Ended::Failed, at(0), 0);
    table.ended("a.test", Ended::Failed, at(1), 0);
    assert_eq!(table.admit("a.test", at(1)), Admission::WaitUntil(at(45)));
}

#[test]
fn the_table_is_bounded_and_forgets_who_is_left_alone_the_least() {
    let mut table = table(3);
    for (name, random) in [("a.test", 0), ("b.test", Micros::from_secs(5).0)] {
        table.admit(name, at(0));
        table.ended(name, Ended::Failed, at(0), random);
    }
    assert_eq!(table.admit("c.test", at(0)), Admission::Go);
    assert_eq!(table.admit("d.test", at(0)), Admission::Go);
    assert_eq!(table.count(), 3);
    assert!(matches!(table.admit("b.test", at(0)), Admission::WaitUntil(_)), "it is known longer");
    assert_eq!(table.admit("a.test", at(0)), Admission::Go, "it was forgotten, and now b.test is");
    assert_eq!(table.admit("e.test", at(0)), Admission::Busy, "whoever has connections stays");
    assert_eq!(table.count(), 3);
}

#[test]
fn who_was_left_alone_and_is_tried_again_stays_known() {
    let mut table = table(2);
    table.admit("a.test", at(0));
    table.ended("a.test", Ended::Failed, at(0), 0);
    assert_eq!(table.admit("a.test", at(100)), Admission::Go);
    assert_eq!(table.admit("b.test", at(100)), Admission::Go);
    assert_eq!(table.admit("c.test", at(100)), Admission::Busy);
    assert_eq!(table.admit("a.test", at(100)), Admission::Busy, "one tries");
}
