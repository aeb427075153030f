//! A core's own attempts at destinations: leave, trials, kept connections, and destinations that
//! are down.

use alloc::format;

use machine::Micros;

use super::*;

const A: &str = "a.test";

fn grant(is_trial: bool, keeps: u16) -> Grant {
    Grant { is_trial, keeps }
}

fn admit(calls: &mut CoreDestinations) -> AttemptAdmission {
    calls.admit(A, 1, Instant::START)
}

#[test]
fn one_attempt_at_a_time_asks_for_leave() {
    let mut calls = CoreDestinations::default();
    for number in 1..=CONNECTIONS_MAX {
        assert_eq!(
            [admit(&mut calls), admit(&mut calls)],
            [AttemptAdmission::Ask, AttemptAdmission::Busy]
        );
        assert!(calls.granted(A, grant(false, number)));
    }
    assert_eq!(admit(&mut calls), AttemptAdmission::Busy, "all connections are in use");
    (0..CONNECTIONS_MAX).for_each(|_| calls.ended(A, true));
    assert!(!calls.is_called(A));
}

#[test]
fn attempt_that_ends_without_leave_lets_another_ask() {
    let mut calls = CoreDestinations::default();
    assert_eq!(admit(&mut calls), AttemptAdmission::Ask);
    calls.granted(A, grant(false, 1));
    assert_eq!(admit(&mut calls), AttemptAdmission::Ask);
    calls.ended(A, false);
    assert_eq!(
        [admit(&mut calls), admit(&mut calls)],
        [AttemptAdmission::Ask, AttemptAdmission::Busy]
    );
}

#[test]
fn trial_of_a_destination_is_alone_until_it_reaches_the_host() {
    let mut calls = CoreDestinations::default();
    assert_eq!(admit(&mut calls), AttemptAdmission::Ask);
    assert!(!calls.granted(A, grant(true, 1)));
    assert_eq!(admit(&mut calls), AttemptAdmission::Busy);
    assert!(calls.reached(A));
    assert_eq!(admit(&mut calls), AttemptAdmission::Ask);
}

#[test]
fn core_keeps_as_many_connections_as_the_owner_allows() {
    let mut calls = CoreDestinations::default();
    for number in 1..=2 {
        assert_eq!(admit(&mut calls), AttemptAdmission::Ask);
        calls.granted(A, grant(false, number));
    }
    assert!(calls.may_keep(A));
    assert!(calls.keeps(1, 1), "this core has more connections than it may keep");
    assert!(!calls.may_keep(A));
    calls.ended(A, true);
    assert!(calls.may_keep(A));
    assert!(!calls.keeps(1, 0), "the last one ends after its message");
    assert!(!calls.may_keep(A) && !calls.keeps(2, 0), "another destination is not known");
}

#[test]
fn remembered_down_destinations_are_bounded() {
    let mut calls = CoreDestinations::default();
    let until = |number: usize| Instant::START + Micros::from_secs(60 + number as u64);
    for number in 0..=DOWN_MAX {
        calls.went_down(&format!("{number}.test"), until(number));
    }
    assert_eq!((calls.down.len(), calls.ends.len()), (DOWN_MAX, DOWN_MAX));
    assert_eq!(
        calls.admit("0.test", 1, Instant::START),
        AttemptAdmission::Ask,
        "0.test was forgotten"
    );
    assert_eq!(calls.admit("1.test", 1, Instant::START), AttemptAdmission::WaitUntil(until(1)));
    assert_eq!(calls.admit("1.test", 1, until(1)), AttemptAdmission::Ask);
    calls.try_again("2.test");
    assert_eq!(calls.admit("2.test", 1, Instant::START), AttemptAdmission::Ask);
    assert_eq!((calls.down.len(), calls.ends.len()), (DOWN_MAX - 2, DOWN_MAX - 2));
}
