//! Who comes back as a real TCP does is known, and few others are.

use machine::{Instant, Micros};

use super::{Knock, Knocks};

const SECOND: Micros = Micros::from_secs(1);

fn known(knocks: &mut Knocks, now: Instant, who: impl Iterator<Item = u32>) -> usize {
    who.filter(|who| knocks.knock(now, who) == Knock::Again).count()
}

/// `strangers` call evenly for a second, and 1,000 others half a second after its begin; these call again after a second, in which
/// as many strangers call. How many of them are known then?
fn known_among(strangers: u32) -> usize {
    let (mut knocks, now) = (Knocks::new(&[7; 16]), Instant::START + SECOND);
    let tenth = |number: u32| {
        1_000_000 + number * (strangers / 10)..1_000_000 + (number + 1) * (strangers / 10)
    };
    let mut at = |number: u32| {
        let now = now + Micros::from_millis(100 * u64::from(number));
        let found = if number == 5 || number == 15 { known(&mut knocks, now, 0..1_000) } else { 0 };
        known(&mut knocks, now, tenth(number));
        found
    };
    (0..20).map(&mut at).sum()
}

#[test]
fn nearly_all_who_knock_again_are_known_however_many_have_knocked_meanwhile() {
    assert_eq!(known_among(100_000), 1_000);
    assert!(known_among(500_000) > 980);
    // More than there are places for: some find none, and whoever does keeps it for as long as he needs it.
    assert!(known_among(1_500_000) > 350);
}

#[test]
fn few_strangers_are_taken_for_known() {
    let (mut knocks, now) = (Knocks::new(&[7; 16]), Instant::START + SECOND);
    known(&mut knocks, now, 0..1_000_000);
    assert!(known(&mut knocks, now + SECOND, 1_000_000..1_100_000) < 5);
}

#[test]
fn who_knocks_without_pause_is_never_known() {
    let (mut knocks, mut now) = (Knocks::new(&[7; 16]), Instant::START + SECOND);
    for _ in 0..100 {
        assert_eq!(known(&mut knocks, now, 0..1_000), 0);
        now = now + Micros::from_millis(500);
    }
}
