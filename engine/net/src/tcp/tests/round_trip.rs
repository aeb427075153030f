//! The retransmission timeout by the arithmetic of RFC 6298.

use machine::Micros;

use super::Conversation;
use crate::tcp::round_trip::RoundTrip;
use crate::tcp::{RTO_INITIAL, RTO_MARGIN_MIN, RTO_MAX};

fn after(samples_ms: &[u64]) -> RoundTrip {
    let mut round_trip = RoundTrip::unknown();
    for sample in samples_ms {
        round_trip.learn(Micros::from_millis(*sample));
    }
    round_trip
}

#[test]
fn the_timeout_is_what_the_rfc_computes() {
    assert_eq!(after(&[]).timeout(), RTO_INITIAL);
    assert_eq!(after(&[100]).timeout(), Micros(300_000));
    assert_eq!(after(&[100, 200]).timeout(), Micros(362_500));
    assert_eq!(after(&[100, 200, 100]).timeout(), Micros(110_938 + 4 * 50_000));
    assert_eq!(after(&[300]).timeout(), Micros(300_000 + 4 * 150_000));
}

#[test]
fn the_timeout_exceeds_every_round_trip_by_200_ms() {
    for round_trip_ms in [1, 50, 100, 200, 300, 600] {
        let timeout = after(&[round_trip_ms; 40]).timeout();
        let margin = timeout.0 - round_trip_ms * 1000;
        assert!(margin.abs_diff(RTO_MARGIN_MIN.0) <= 10, "{timeout:?} for {round_trip_ms} ms");
    }
}

#[test]
fn the_timeout_stays_within_bounds_with_backoff() {
    assert_eq!(after(&[0]).timeout(), RTO_MARGIN_MIN + Micros(1));
    assert_eq!(after(&[1]).timeout_after(3), Micros(201_000 * 8));
    assert_eq!(after(&[1]).timeout_after(255), RTO_MAX);
    assert_eq!(after(&[50_000]).timeout(), RTO_MAX);
}

#[test]
fn one_sample_a_round_trip_and_none_of_retransmissions() {
    let mut talk = Conversation::established();
    assert_eq!(talk.tcb.round_trip().smoothed(), 10_000);
    talk.write(2000).we_whatever();
    talk.wait(90).peer(". 1:1 ack 1001");
    assert_eq!(talk.tcb.round_trip().smoothed(), 20_000);
    talk.wait(90).peer(". 1:1 ack 2001");
    assert_eq!(
        talk.tcb.round_trip().smoothed(),
        20_000,
        "the segment was in flight when the sample was taken"
    );
    talk.write(1000).wait(210).we_whatever();
    talk.wait(10).peer(". 1:1 ack 3001");
    assert_eq!(talk.tcb.round_trip().smoothed(), 20_000);
    talk.write(1000).wait(100).peer(". 1:1 ack 4001");
    assert_eq!(talk.tcb.round_trip().smoothed(), 30_000);
}
