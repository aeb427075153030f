//! Peers that delay acknowledgments, on long paths: nothing is sent again while nothing is lost.
//!
//! A session sends one segment at a time, as in a dialogue. Some answers come at once, and carry
//! the acknowledgment. After the others the peer's delay is added to the round trip.

use alloc::format;

use machine::Micros;

use super::conversation::{Conversation, MSS};
use crate::tcp::{SequenceNumber, TcpHandshake};

const ROUND_TRIPS_MS: [u64; 7] = [50, 100, 150, 200, 300, 450, 600];

/// A connection with selective acknowledgments over a path with this round trip.
fn over(round_trip_ms: u64) -> Conversation {
    Conversation::with_handshake(TcpHandshake {
        iss: SequenceNumber(10_000),
        irs: SequenceNumber(500_000),
        mss: MSS,
        peer_window_shift: Some(0),
        round_trip: Some(Micros::from_millis(round_trip_ms)),
        timestamps: None,
        sack_permitted: true,
        ecn: false,
    })
}

/// Sends a segment that is acknowledged after `span_ms`. Returns the number of segments sent.
fn send_one(talk: &mut Conversation, span_ms: u64) -> usize {
    talk.write(100).wait(span_ms);
    let sent = talk.we_whatever();
    talk.peer(&format!(". 1:1 ack {}", talk.queued + 1));
    sent
}

#[test]
fn a_late_ack_on_a_steady_path_causes_no_retransmission() {
    for round_trip_ms in ROUND_TRIPS_MS {
        for delay_ms in [40, 100, 150, 199] {
            for prompt in [0, 1, 5, 20, 100] {
                let mut talk = over(round_trip_ms);
                for _ in 0..prompt {
                    assert_eq!(send_one(&mut talk, round_trip_ms), 1);
                }
                let sent = send_one(&mut talk, round_trip_ms + delay_ms);
                assert_eq!(
                    sent, 1,
                    "{round_trip_ms} ms and {delay_ms} ms, after {prompt} prompt answers"
                );
            }
        }
    }
}

#[test]
fn frequent_late_acks_cause_no_retransmission() {
    for round_trip_ms in ROUND_TRIPS_MS {
        for delay_ms in [40, 100, 150, 199] {
            let mut talk = over(round_trip_ms);
            for number in 0..60_u64 {
                let is_late = number.is_multiple_of(7) || number.is_multiple_of(4);
                let late = if is_late { delay_ms } else { 0 };
                let sent = send_one(&mut talk, round_trip_ms + late);
                assert_eq!(sent, 1, "{round_trip_ms} ms and {delay_ms} ms, segment {number}");
            }
        }
    }
}

#[test]
fn constant_ack_delay_of_500_ms_causes_no_retransmission() {
    for round_trip_ms in [300, 450, 600] {
        let mut talk = over(round_trip_ms);
        for number in 1..=100_u64 {
            let jitter = if number.is_multiple_of(20) { 20 } else { 0 };
            let sent = send_one(&mut talk, round_trip_ms + 500 + jitter);
            assert_eq!(sent, 1, "{round_trip_ms} ms, segment {number}");
        }
    }
}
