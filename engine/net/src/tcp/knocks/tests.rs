//! Who comes back as a real TCP does is known, and few others are.

use machine::{Instant, Micros};

use super::{Knock, Knocks};

const SECOND: Micros = Micros::from_secs(1);

fn known(knocks: &mut Knocks, now: Instant, who: impl Iterator<Item = u32>) -> usize {
    who.filter(|who| knocks.knock(now, who) == Knock::Again).count()
}

#[test]
fn most_who_knock_again_are_known_however_many_have_knocked_meanwhile() {
    let (mut knocks, now) = (Knocks::new(&[7; 16]), Instant::START + SECOND);
    assert_eq!(known(&mut knocks, now, 0..1_000), 0);
    known(&mut knocks, now, 10_000..310_000);
    assert!(known(&mut knocks, now + SECOND, 0..1_000) > 650);
    known(&mut knocks, now + SECOND, 310_000..610_000);
    assert!(known(&mut knocks, now + SECOND + SECOND, 0..1_000) > 650, "whoever was not known is now");
}

#[test]
fn few_strangers_are_taken_for_known() {
    let (mut knocks, now) = (Knocks::new(&[7; 16]), Instant::START + SECOND);
    known(&mut knocks, now, 0..1_000_000);
    assert!(known(&mut knocks, now + SECOND, 1_000_000..1_100_000) < 500);
}

#[test]
fn who_knocks_without_pause_is_never_known() {
    let (mut knocks, mut now) = (Knocks::new(&[7; 16]), Instant::START + SECOND);
    for _ in 0..100 {
        assert_eq!(known(&mut knocks, now, 0..1_000), 0);
        now = now + Micros::from_millis(500);
    }
}
