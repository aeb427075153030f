//! The retransmission timeout, by the arithmetic of RFC 6298.

use machine::{Instant, Micros};

use crate::tcp::round_trip::RoundTrip;
use crate::tcp::{RTO_INITIAL, RTO_MAX, RTO_MIN, SequenceNumber};

const NOW: Instant = Instant(7_000_000);

fn after(samples_ms: &[u64]) -> RoundTrip {
    let mut round_trip = RoundTrip::unknown();
    for sample in samples_ms {
        round_trip.sent(NOW, SequenceNumber(1));
        assert!(round_trip.acknowledged(NOW + Micros::from_millis(*sample), SequenceNumber(1)));
    }
    round_trip
}

#[test]
fn the_timeout_is_what_the_rfc_computes() {
    assert_eq!(after(&[]).timeout(), RTO_INITIAL);
    assert_eq!(after(&[100]).timeout(), Micros(300_000));
    assert_eq!(after(&[100, 200]).timeout(), Micros(362_500));
    assert_eq!(after(&[100, 200, 100]).timeout(), Micros(110_938 + 4 * 50_000));
}

#[test]
fn it_stays_within_its_bounds_with_backoff_too() {
    assert_eq!(after(&[0]).timeout(), RTO_MIN);
    assert_eq!(after(&[1]).timeout_after(3), Micros(RTO_MIN.0 * 8));
    assert_eq!(after(&[1]).timeout_after(255), RTO_MAX);
    assert_eq!(after(&[50_000]).timeout(), RTO_MAX);
}

#[test]
fn an_acknowledgment_of_less_than_what_is_timed_is_no_sample() {
    let mut round_trip = RoundTrip::unknown();
    round_trip.sent(NOW, SequenceNumber(3));
    round_trip.sent(NOW + Micros::from_millis(50), SequenceNumber(9));
    assert!(!round_trip.acknowledged(NOW + Micros::from_millis(60), SequenceNumber(2)));
    assert!(round_trip.acknowledged(NOW + Micros::from_millis(100), SequenceNumber(3)));
    assert_eq!(round_trip.timeout(), Micros(300_000), "only the first of both was timed");
    assert!(!round_trip.acknowledged(NOW + Micros::from_millis(200), SequenceNumber(9)));
}

#[test]
fn what_was_sent_twice_is_no_sample() {
    let mut round_trip = after(&[100]);
    round_trip.sent(NOW, SequenceNumber(3));
    round_trip.retransmitted();
    assert!(!round_trip.acknowledged(NOW + Micros::from_millis(900), SequenceNumber(3)));
    assert_eq!(round_trip.timeout(), Micros(300_000));
}
