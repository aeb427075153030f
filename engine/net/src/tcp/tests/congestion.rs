//! The growth and reduction of the congestion window, without a connection. `cubic` has its own
//! tests of the curve.

use machine::Instant;

use crate::tcp::congestion::{Congestion, Growth, Reduction, initial_window};
use crate::tcp::cubic::Epoch;
use crate::tcp::slow_start::WindowGrowth;

const MSS: u32 = 1000;

fn acknowledge(congestion: &mut Congestion, bytes: u32, flight: u32) {
    let growth = Growth {
        now: Instant(1_000_000),
        bytes,
        flight,
        mss: MSS,
        round_trip: 10_000,
        pace: WindowGrowth::Fast,
    };
    congestion.acknowledged(&growth, &mut Epoch::default());
}

#[test]
fn the_initial_window_is_ten_segments_unless_they_are_large() {
    assert_eq!(initial_window(536), 5360);
    assert_eq!(initial_window(1460), 14_600);
    assert_eq!(initial_window(4000), 14_600);
    assert_eq!(initial_window(9000), 18_000);
    assert_eq!(Congestion::new(MSS, true).window(), MSS);
}

#[test]
fn window_doubles_until_a_loss_and_falls_to_seven_tenths() {
    let mut congestion = Congestion::new(MSS, false);
    for _ in 0..10 {
        let window = congestion.window();
        acknowledge(&mut congestion, MSS, window);
    }
    assert_eq!(congestion.window(), 20_000);
    congestion.lower(20_000, MSS);
    congestion.recovered(20_000, MSS);
    assert_eq!(congestion.window(), 14_000);
}

#[test]
fn limited_transmit_does_not_raise_the_threshold() {
    let mut congestion = Congestion::new(MSS, false);
    congestion.lower(12_000, MSS);
    congestion.recovered(12_000, MSS);
    assert_eq!(congestion.window(), 7_000);
}

#[test]
fn window_does_not_grow_while_the_session_is_the_limit() {
    let mut congestion = Congestion::new(MSS, false);
    for _ in 0..100 {
        acknowledge(&mut congestion, 100, 100);
    }
    assert_eq!(congestion.window(), 10_000);
}

#[test]
fn a_large_acknowledgment_causes_no_burst() {
    let mut congestion = Congestion::new(MSS, false);
    acknowledge(&mut congestion, 10_000, 10_000);
    assert_eq!(congestion.window(), 18_000);
}

#[test]
fn only_the_first_timeout_for_the_data_lowers_the_threshold() {
    let mut congestion = Congestion::new(MSS, false);
    congestion.timed_out(10_000, MSS, true);
    congestion.timed_out(2000, MSS, false);
    assert_eq!(congestion.window(), MSS);
    for _ in 0..6 {
        let window = congestion.window();
        acknowledge(&mut congestion, MSS, window);
    }
    assert_eq!(congestion.window(), 7_000, "slow start ends at seven tenths of the flight");
    acknowledge(&mut congestion, 1, 7_000);
    assert!(congestion.window() < 7_100, "then the window grows slowly");
}

/// RFC 6937 §3.1: with twenty segments in flight and one lost, the rate falls evenly to the
/// threshold, and not below.
#[test]
fn recovery_lowers_the_rate_evenly_to_the_threshold() {
    let mut congestion = Congestion::new(MSS, false);
    for _ in 0..10 {
        let window = congestion.window();
        acknowledge(&mut congestion, MSS, window);
    }
    congestion.lower(20_000, MSS);
    let mut reduction = Reduction { flight: 20_000, ..Reduction::default() };
    let (mut pipe, mut sent, mut bursts) = (19_000, 0, 0);
    for _ in 0..19 {
        pipe -= MSS;
        congestion.reduce(&mut reduction, MSS, pipe, MSS);
        let may = congestion.window().saturating_sub(pipe) / MSS;
        bursts += u32::from(may > 1);
        reduction.sent += may * MSS;
        pipe += may * MSS;
        sent += may;
    }
    assert_eq!(bursts, 0);
    assert!((12..=14).contains(&sent), "{sent}");
    assert!((13_000..=14_000).contains(&pipe), "{pipe}");
}

/// RFC 6937 §3.1 after the loss of most of the window: for each segment that arrives, up to two are
/// sent, until the window reaches the threshold.
#[test]
fn after_heavy_loss_the_rate_climbs_back_to_the_threshold() {
    let mut congestion = Congestion::new(MSS, false);
    congestion.lower(10_000, MSS);
    let mut reduction = Reduction { flight: 10_000, ..Reduction::default() };
    let (mut pipe, mut most) = (2_000, 0);
    for _ in 0..10 {
        pipe -= MSS;
        congestion.reduce(&mut reduction, MSS, pipe, MSS);
        let may = congestion.window().saturating_sub(pipe) / MSS;
        most = most.max(may);
        reduction.sent += may * MSS;
        pipe += may * MSS;
    }
    assert_eq!((most, pipe), (2, 7_000));
}
