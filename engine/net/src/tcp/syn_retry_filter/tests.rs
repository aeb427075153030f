//! SYNs that are repeated as a real TCP does are recognised, and few others are.

use machine::{Instant, Micros};

use super::{SynHistory, SynRetryFilter};

const SECOND: Micros = Micros::from_secs(1);

fn recognised(filter: &mut SynRetryFilter, now: Instant, keys: impl Iterator<Item = u32>) -> usize {
    keys.filter(|key| filter.record_syn(now, key) == SynHistory::Repeated).count()
}

/// Sends `new_syns` SYNs evenly in each of two seconds. In the middle of the first second, 1,000
/// other SYNs arrive. They are repeated one second later. Returns the number of recognised
/// repetitions.
fn recognised_among(new_syns: u32) -> usize {
    let (mut filter, now) = (SynRetryFilter::new(&[7; 16]), Instant::START + SECOND);
    let tenth = |number: u32| {
        1_000_000 + number * (new_syns / 10)..1_000_000 + (number + 1) * (new_syns / 10)
    };
    let mut at = |number: u32| {
        let now = now + Micros::from_millis(100 * u64::from(number));
        let found =
            if number == 5 || number == 15 { recognised(&mut filter, now, 0..1_000) } else { 0 };
        recognised(&mut filter, now, tenth(number));
        found
    };
    (0..20).map(&mut at).sum()
}

#[test]
fn repeated_syns_are_recognised_among_many_new_ones() {
    assert_eq!(recognised_among(100_000), 1_000);
    assert!(recognised_among(500_000) > 980);
    // There are more SYNs than entries: some are not stored, and stored ones are kept long enough.
    assert!(recognised_among(1_500_000) > 350);
}

#[test]
fn few_new_syns_are_taken_for_repetitions() {
    let (mut filter, now) = (SynRetryFilter::new(&[7; 16]), Instant::START + SECOND);
    recognised(&mut filter, now, 0..1_000_000);
    assert!(recognised(&mut filter, now + SECOND, 1_000_000..1_100_000) < 5);
}

#[test]
fn syns_repeated_every_half_second_are_never_recognised() {
    let (mut filter, mut now) = (SynRetryFilter::new(&[7; 16]), Instant::START + SECOND);
    for _ in 0..100 {
        assert_eq!(recognised(&mut filter, now, 0..1_000), 0);
        now = now + Micros::from_millis(500);
    }
}
