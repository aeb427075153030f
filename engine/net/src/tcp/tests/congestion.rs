//! How the congestion window grows and falls, without a connection around it.

use crate::tcp::SequenceNumber;
use crate::tcp::congestion::{Congestion, initial_window};
use crate::tcp::recovery::{Duplicate, Progress, Recovery};

const MSS: u32 = 1000;

#[test]
fn the_initial_window_is_ten_segments_unless_they_are_large() {
    assert_eq!(initial_window(536), 5360);
    assert_eq!(initial_window(1460), 14_600);
    assert_eq!(initial_window(4000), 14_600);
    assert_eq!(initial_window(9000), 18_000);
    assert_eq!(Congestion::new(MSS, true).window(), MSS);
}

#[test]
fn it_doubles_each_round_trip_until_a_loss_and_then_grows_by_a_segment() {
    let mut congestion = Congestion::new(MSS, false);
    for _ in 0..10 {
        congestion.acknowledged(MSS, congestion.window(), MSS);
    }
    assert_eq!(congestion.window(), 20_000);
    congestion.loss_found(20_000, MSS);
    assert_eq!(congestion.window(), 13_000);
    congestion.recovered(20_000, MSS);
    assert_eq!(congestion.window(), 10_000);
    for round in 1..=5 {
        let window = congestion.window();
        for _ in 0..window / MSS {
            congestion.acknowledged(MSS, window, MSS);
        }
        assert_eq!(congestion.window(), 10_000 + round * MSS);
    }
}

#[test]
fn it_does_not_grow_while_the_session_is_what_holds_us_back() {
    let mut congestion = Congestion::new(MSS, false);
    for _ in 0..100 {
        congestion.acknowledged(100, 100, MSS);
    }
    assert_eq!(congestion.window(), 10_000);
}

#[test]
fn one_acknowledgment_of_much_makes_no_burst() {
    let mut congestion = Congestion::new(MSS, false);
    congestion.acknowledged(10_000, 10_000, MSS);
    assert_eq!(congestion.window(), 12_000);
}

#[test]
fn only_the_first_timeout_for_the_same_bytes_lowers_the_threshold() {
    let mut congestion = Congestion::new(MSS, false);
    congestion.timed_out(20_000, MSS, true);
    congestion.timed_out(2000, MSS, false);
    assert_eq!(congestion.window(), MSS);
    for _ in 0..9 {
        congestion.acknowledged(MSS, congestion.window(), MSS);
    }
    assert_eq!(congestion.window(), 10_000, "slow start up to half of what was on the way");
    congestion.acknowledged(MSS, congestion.window(), MSS);
    assert_eq!(congestion.window(), 10_000, "and then no more");
}

#[test]
fn a_connection_that_has_sent_many_gigabytes_still_sees_a_loss() {
    let mut recovery = Recovery::new(SequenceNumber(0));
    let mut at = SequenceNumber(1);
    for _ in 0..20 {
        at = at + 500_000_000;
        assert_eq!(recovery.acknowledged(at), Progress::Good);
        assert_eq!(recovery.duplicate_arrived(at, at + 9000), Duplicate::MayBeLoss);
        assert_eq!(recovery.duplicate_arrived(at, at + 9000), Duplicate::MayBeLoss);
        assert_eq!(recovery.duplicate_arrived(at, at + 9000), Duplicate::Loss);
        assert_eq!(recovery.acknowledged(at + 9000), Progress::Recovered);
        at = at + 9000;
    }
    for _ in 0..20 {
        at = at + 500_000_000;
        assert_eq!(recovery.acknowledged(at), Progress::Good);
    }
    assert_eq!(recovery.duplicate_arrived(at, at + 9000), Duplicate::MayBeLoss);
    assert_eq!(recovery.duplicate_arrived(at, at + 9000), Duplicate::MayBeLoss);
    assert_eq!(recovery.duplicate_arrived(at, at + 9000), Duplicate::Loss);
}
