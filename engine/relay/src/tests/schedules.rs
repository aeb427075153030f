//! The times at which messages and destinations are tried again.

use machine::{CoreId, Instant, Micros};

use super::*;
use crate::destinations::{
    ConnectionOutcome, DestinationMessage, Destinations, Grant, Leave, Limits,
};
use crate::schedule::{DELAY_NOTICE_AFTER, LIFETIME, NextTry, is_delay_report_due, next_attempt};

const MINUTE: u64 = 60;
const HOUR: u64 = 3600;

/// Ages in seconds at which a message is tried, with this random number.
fn attempts(random: u64) -> Vec<u64> {
    let mut ages = Vec::from([0]);
    let mut age = Micros(0);
    while let NextTry::After(wait) = next_attempt(age, random) {
        age = age + wait;
        ages.push(age.as_secs());
        assert!(ages.len() < 100, "the attempts end");
    }
    ages
}

/// The random number with which a span gets no jitter.
fn even(span: u64) -> u64 {
    Micros::from_secs(span).0 / 4
}

#[test]
fn retries_span_minutes_then_hours_for_five_days() {
    let next =
        |age: u64| next_attempt(Micros::from_secs(age), even(age.clamp(5 * MINUTE, 4 * HOUR)));
    for (age, expected) in [
        (0, 5 * MINUTE),
        (5 * MINUTE, 5 * MINUTE),
        (10 * MINUTE, 10 * MINUTE),
        (3 * HOUR, 3 * HOUR),
        (50 * HOUR, 4 * HOUR),
    ] {
        assert_eq!(next(age), NextTry::After(Micros::from_secs(expected)), "{age}");
    }
    for random in [0, 1, u64::MAX, 0x1234_5678_9abc_def0] {
        let ages = attempts(random);
        assert_eq!(
            ages.last(),
            Some(&LIFETIME.as_secs()),
            "the last attempt is made when it is given up"
        );
        assert!((30..60).contains(&ages.len()), "{}", ages.len());
        assert!(ages.iter().filter(|age| **age < HOUR).count() >= 4);
    }
}

#[test]
fn retry_jitter_is_a_quarter_either_way() {
    let waits = |random| match next_attempt(Micros::from_secs(HOUR), random) {
        NextTry::After(wait) => wait.as_secs() / MINUTE,
        NextTry::GiveUp => panic!("too early"),
    };
    assert_eq!([0, even(HOUR), 2 * even(HOUR)].map(waits), [45, 60, 75]);
    assert!(
        (0..1000)
            .map(|random| waits(random * 0x0123_4567_89ab))
            .all(|wait| (45..=75).contains(&wait))
    );
}

#[test]
fn message_is_given_up_at_five_days() {
    assert_eq!(next_attempt(LIFETIME, 7), NextTry::GiveUp);
    assert_eq!(next_attempt(Micros(LIFETIME.0 - 1), 7), NextTry::After(Micros(1)));
    assert_eq!(next_attempt(Micros(u64::MAX), 7), NextTry::GiveUp);
    assert_eq!(LIFETIME.as_secs(), 5 * 24 * HOUR);
}

#[test]
fn delay_is_reported_after_four_hours() {
    assert!(
        !is_delay_report_due(Micros(DELAY_NOTICE_AFTER.0 - 1))
            && is_delay_report_due(DELAY_NOTICE_AFTER)
    );
    assert_eq!(DELAY_NOTICE_AFTER.as_secs(), 4 * HOUR);
}

fn at(seconds: u64) -> Instant {
    Instant::START + Micros::from_secs(seconds)
}

const A: u64 = 1;
const B: u64 = 2;
const C: u64 = 3;
const ONE: CoreId = CoreId(0);
const TWO: CoreId = CoreId(1);
const THREE: CoreId = CoreId(2);

type Table = Destinations<u32>;

fn table(destinations: usize, connections: u16) -> Table {
    Destinations::new(Limits { destinations, connections })
}

/// Whether a core may make one more connection to a destination now. If not, attempt 7 may wait.
fn may(table: &mut Table, name: u64, core: CoreId, now: Instant) -> bool {
    matches!(table.ask(name, core, 7, now), Some(Leave::Granted(_)))
}

fn is_down(table: &mut Table, name: u64, now: Instant) -> bool {
    matches!(table.ask(name, ONE, 7, now), Some(Leave::NotFor(_)))
}

fn told(table: &mut Table) -> Vec<DestinationMessage<u32>> {
    core::iter::from_fn(|| table.next_message()).collect()
}

/// The cores that are granted a connection, and the cores that are to keep fewer, each with the
/// number that it keeps.
fn granted_and_kept(table: &mut Table) -> (Vec<CoreId>, Vec<(CoreId, u16)>) {
    let (mut granted, mut kept) = (Vec::new(), Vec::new());
    for told in told(table) {
        match told {
            DestinationMessage::Leave(core, _, 7, Leave::Granted(_)) => granted.push(core),
            DestinationMessage::Keeps(core, _, keeps) => kept.push((core, keeps)),
            other => panic!("{other:?}"),
        }
    }
    (granted, kept)
}

#[test]
fn connections_to_a_destination_are_limited() {
    let mut table = table(4, 2);
    assert!(may(&mut table, A, ONE, at(0)) && may(&mut table, A, TWO, at(0)));
    assert!(![ONE, TWO, THREE].into_iter().any(|core| may(&mut table, A, core, at(0))));
    assert!(may(&mut table, B, ONE, at(0)), "other destinations are not affected");
    assert_eq!(table.connections(), 3);
    told(&mut table);
    table.ended(A, ONE, ConnectionOutcome::Unknown, at(0), 0);
    assert_eq!(granted_and_kept(&mut table).0.len(), 1);
    assert_eq!(table.connections(), 3);
}

#[test]
fn working_destination_leaves_no_state() {
    let mut table = table(4, 2);
    for how in [ConnectionOutcome::Reached, ConnectionOutcome::Unknown] {
        assert!(may(&mut table, A, ONE, at(0)) && may(&mut table, A, TWO, at(0)));
        table.ended(A, ONE, how, at(0), 0);
        table.ended(A, TWO, how, at(0), 0);
        assert_eq!((table.count(), table.connections(), table.has_messages()), (0, 0, false));
    }
}

#[test]
fn cores_that_wait_for_a_connection_take_turns() {
    let mut table = table(4, 2);
    assert!(may(&mut table, A, ONE, at(0)) && may(&mut table, A, ONE, at(0)));
    assert!(![ONE, TWO, THREE].into_iter().any(|core| may(&mut table, A, core, at(0))));
    // The first core is asked to give up all of its connections for the others, which have none.
    assert_eq!(granted_and_kept(&mut table), (Vec::new(), Vec::from([(ONE, 1), (ONE, 0)])));
    table.ended(A, ONE, ConnectionOutcome::Reached, at(1), 0);
    assert_eq!(granted_and_kept(&mut table), (Vec::from([TWO]), Vec::new()));
    table.ended(A, ONE, ConnectionOutcome::Reached, at(1), 0);
    // The first core has no connection now, and has waited longest.
    assert_eq!(granted_and_kept(&mut table).0, [ONE]);
    table.ended(A, TWO, ConnectionOutcome::Reached, at(1), 0);
    assert_eq!(granted_and_kept(&mut table).0, [THREE]);
}

#[test]
fn cores_with_about_as_many_connections_keep_them() {
    let mut table = table(4, 4);
    assert!((0..4).all(|_| may(&mut table, A, ONE, at(0))));
    let mut hand_over = |expected: &[(CoreId, u16)]| {
        assert!(!may(&mut table, A, TWO, at(0)));
        let (_, kept) = granted_and_kept(&mut table);
        assert_eq!(kept, expected);
        if !kept.is_empty() {
            table.ended(A, ONE, ConnectionOutcome::Reached, at(0), 0);
            assert_eq!(granted_and_kept(&mut table), (Vec::from([TWO]), Vec::new()));
        }
    };
    hand_over(&[(ONE, 3)]);
    hand_over(&[(ONE, 2)]);
    hand_over(&[]);
}

#[test]
fn core_that_asks_again_waits_once() {
    let mut table = table(4, 1);
    assert!(may(&mut table, A, ONE, at(0)));
    for waiter in [1, 2, 3] {
        assert_eq!(table.ask(A, TWO, waiter, at(0)), None);
    }
    table.ended(A, ONE, ConnectionOutcome::Reached, at(0), 0);
    let grant = Grant { is_trial: false, keeps: 1 };
    assert_eq!(
        told(&mut table),
        [
            DestinationMessage::Keeps(ONE, A, 0),
            DestinationMessage::Leave(TWO, A, 3, Leave::Granted(grant))
        ]
    );
}

#[test]
fn back_off_of_a_down_destination_grows() {
    let mut table = table(4, 2);
    let mut now = at(0);
    let mut waits = Vec::new();
    for _ in 0..8 {
        assert!(may(&mut table, A, ONE, now));
        let span = Micros::from_secs(60 << waits.len()).0.min(Micros::from_secs(HOUR).0);
        table.ended(A, ONE, ConnectionOutcome::Failed, now, span / 4);
        // The answer is the same on every core.
        let Some(Leave::NotFor(span)) = table.ask(A, TWO, 7, now) else {
            panic!("the destination is down")
        };
        assert!(may(&mut table, B, ONE, now), "other destinations are not down");
        table.ended(B, ONE, ConnectionOutcome::Reached, now, 0);
        waits.push(span.as_secs() / 60);
        now = now + span;
        assert!(is_down(&mut table, A, Instant(now.0 - 1)));
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
    // One core tries; when it succeeds, all may connect.
    let trial = Leave::Granted(Grant { is_trial: true, keeps: 1 });
    assert_eq!((table.ask(A, ONE, 7, now), table.ask(A, TWO, 7, now)), (Some(trial), None));
    told(&mut table);
    table.reached(A);
    assert_eq!(granted_and_kept(&mut table).0, [TWO]);
}

#[test]
fn waiting_cores_are_told_that_a_destination_is_down() {
    let mut table = table(4, 1);
    assert!(may(&mut table, A, ONE, at(0)));
    assert!(!may(&mut table, A, TWO, at(0)) && !may(&mut table, A, THREE, at(0)));
    told(&mut table);
    table.ended(A, ONE, ConnectionOutcome::Failed, at(0), even(MINUTE));
    let down = Leave::NotFor(Micros::from_secs(MINUTE));
    assert_eq!(
        told(&mut table),
        [DestinationMessage::Leave(TWO, A, 7, down), DestinationMessage::Leave(THREE, A, 7, down)]
    );
    assert_eq!(table.connections(), 0);
}

#[test]
fn down_destination_is_tried_at_once_on_request() {
    let mut table = table(2, 2);
    for destination in [A, B] {
        assert!(may(&mut table, destination, ONE, at(0)));
        table.ended(destination, ONE, ConnectionOutcome::Failed, at(0), 0);
    }
    table.call_again(B);
    table.call_again(C);
    assert!(is_down(&mut table, A, at(1)));
    assert!(may(&mut table, B, ONE, at(1)) && !may(&mut table, B, TWO, at(1)));
    table.ended(B, ONE, ConnectionOutcome::Unknown, at(1), 0);
    assert_eq!(granted_and_kept(&mut table).0, [TWO]);
    table.ended(B, TWO, ConnectionOutcome::Failed, at(1), 0);
    table.call_again(B);
    assert!(may(&mut table, C, ONE, at(2)));
    table.ended(C, ONE, ConnectionOutcome::Failed, at(2), 0);
    assert_eq!(table.count(), 2, "B is forgotten first");
    assert!(is_down(&mut table, A, at(2)) && is_down(&mut table, C, at(2)));
}

#[test]
fn connections_that_fail_together_count_once() {
    let mut table = table(4, 2);
    assert!(may(&mut table, A, ONE, at(0)) && may(&mut table, A, TWO, at(0)));
    table.ended(A, ONE, ConnectionOutcome::Failed, at(0), 0);
    table.ended(A, TWO, ConnectionOutcome::Failed, at(1), 0);
    assert_eq!(table.ask(A, ONE, 7, at(1)), Some(Leave::NotFor(Micros::from_secs(44))));
}

#[test]
fn destination_table_evicts_the_shortest_back_off() {
    let mut table = table(2, 2);
    for (name, random) in [(A, 0), (B, Micros::from_secs(5).0), (C, Micros::from_secs(9).0)] {
        assert!(may(&mut table, name, ONE, at(0)));
        table.ended(name, ONE, ConnectionOutcome::Failed, at(0), random);
    }
    assert_eq!(table.count(), 2);
    assert!(is_down(&mut table, B, at(0)) && is_down(&mut table, C, at(0)));
    assert!(may(&mut table, A, ONE, at(0)), "A was forgotten");
    assert_eq!(table.count(), 3, "a destination with connections stays");
}

#[test]
fn destination_on_trial_stays_known() {
    let mut table = table(1, 2);
    assert!(may(&mut table, A, ONE, at(0)));
    table.ended(A, ONE, ConnectionOutcome::Failed, at(0), 0);
    assert!(may(&mut table, A, ONE, at(100)));
    assert!(may(&mut table, B, ONE, at(100)));
    table.ended(B, ONE, ConnectionOutcome::Failed, at(100), 0);
    assert!(!may(&mut table, A, TWO, at(100)), "only one core tries");
    table.ended(A, ONE, ConnectionOutcome::Failed, at(100), 0);
    assert!(is_down(&mut table, A, at(100 + 80)), "A has failed twice");
}
