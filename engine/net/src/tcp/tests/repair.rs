//! Loss recovery with a peer that supports SACK: RACK and tail loss probes (RFC 8985), and its
//! resistance to forged or broken acknowledgments.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::Conversation;
use crate::tcp::flight::Flight;
use crate::tcp::recovery::RecoveryPhase;
use crate::tcp::run::RunState;
use crate::tcp::*;

/// A connection that sent segments up to `to` at once, a round trip ago.
fn sent(to: u32) -> Conversation {
    let mut talk = Conversation::selective();
    talk.write(to as usize - 1).we_whatever();
    talk.wait(10);
    talk
}

#[test]
fn an_overtaken_segment_is_lost_after_a_quarter_round_trip() {
    let mut talk = sent(5001);
    talk.peer(". 1:1 ack 1 1001-2001").silence();
    talk.wait(2).silence().wait(1).we(". 1:1001 ack 1").silence();
}

#[test]
fn three_segments_beyond_a_gap_trigger_a_retransmission() {
    let mut talk = sent(5001);
    talk.peer(". 1:1 ack 1 1001-4001").we(". 1:1001 ack 1").silence();
    talk.peer(". 1:1 ack 5001").silence().lent_nothing();
}

#[test]
fn reordering_causes_no_retransmission_and_widens_the_window() {
    let mut talk = sent(5001);
    talk.peer(". 1:1 ack 1 1001-2001")
        .wait(2)
        .peer(". 1:1 ack 2001")
        .peer(". 1:1 ack 5001")
        .silence();
    talk.lent_nothing();
    // Reordering was seen in this flight, so three segments beyond a gap no longer prove a loss.
    let mut talk = sent(10_001);
    talk.peer(". 1:1 ack 1 1001-2001")
        .peer(". 1:1 ack 2001")
        .peer(". 1:1 ack 2001 3001-6001")
        .silence();
    talk.wait(3).we(". 2001:3001 ack 1").silence();
}

#[test]
fn a_late_arrival_cancels_the_loss_and_widens_the_window() {
    let mut talk = sent(10_001);
    let window = talk.tcb.congestion().window();
    talk.peer_quietly(". 1:1 ack 1 1001-4001").peer(". 1:1 ack 4001").silence();
    assert_eq!((talk.tcb.congestion().window(), talk.tcb.phase()), (window, RecoveryPhase::Open));
    talk.peer(". 1:1 ack 4001 5001-8001").silence();
    talk.wait(3).we(". 4001:5001 ack 1").silence();
}

#[test]
fn a_spurious_retransmission_widens_the_reordering_window() {
    let mut talk = Conversation::stamped_and_selective(100);
    talk.write(10_000).we_whatever();
    let window = talk.tcb.congestion().window();
    talk.wait(10)
        .peer(". 1:1 ack 1 1001-4001 val 101 ecr 0")
        .we(". 1:1001 ack 1 val 10 ecr 101")
        .silence();
    // The first copy arrives, and its echoed time proves it. The second copy is a duplicate.
    talk.peer(". 1:1 ack 4001 val 101 ecr 0").silence();
    assert_eq!(
        (talk.tcb.congestion().window() >= window, talk.tcb.phase()),
        (true, RecoveryPhase::Open)
    );
    talk.peer(". 1:1 ack 4001 5001-8001 val 101 ecr 0").silence();
    talk.wait(3).we(". 4001:5001 ack 1 val 13 ecr 101").silence();
}

#[test]
fn newest_first_sack_blocks_do_not_look_reordered() {
    let mut talk = sent(9001);
    talk.peer(". 1:1 ack 1 8001-9001 6001-7001 4001-5001 2001-3001");
    for lost in ["1:1001", "1001:2001", "3001:4001", "5001:6001"] {
        talk.we(&format!(". {lost} ack 1"));
    }
    // A block that is reported both as a duplicate and as beyond a gap also counts as beyond the
    // gap.
    let mut talk = sent(5001);
    talk.peer(". 1:1 ack 1 2001-5001 2001-5001").we(". 1:1001 ack 1");
}

#[test]
fn every_lost_segment_is_retransmitted_once_and_no_other() {
    let mut talk = sent(10_001);
    talk.peer(". 1:1 ack 1 1001-2001 3001-4001 5001-10001");
    let mut again = 0;
    for lost in ["1:1001", "2001:3001", "4001:5001"] {
        talk.we(&format!(". {lost} ack 1"));
        again += 1;
    }
    assert_eq!(again, 3);
    talk.silence();
    talk.wait(10).peer(". 1:1 ack 10001").silence().lent_nothing();
}

#[test]
fn a_lost_retransmission_is_detected_by_later_segments() {
    let mut talk = sent(13_001);
    talk.peer(". 1:1 ack 1 1001-10001")
        .we(". 1:1001 ack 1")
        .we(". 10001:11001 ack 1")
        .we(". 11001:12001 ack 1");
    talk.we("P. 12001:13001 ack 1").silence();
    talk.wait(10).peer(". 1:1 ack 1 1001-13001").we(". 1:1001 ack 1").silence();
}

#[test]
fn the_tail_is_probed_after_two_round_trips_and_once() {
    let mut talk = Conversation::selective();
    talk.write(3000).we_whatever();
    talk.wait(21).silence().wait(1).we("P. 2001:3001 ack 1").silence();
    talk.wait(100).silence();
    talk.wait(210).we(". 1:1001 ack 1");
}

#[test]
fn losses_found_by_a_tail_probe_are_repaired() {
    let mut talk = Conversation::selective();
    talk.write(3000).we_whatever();
    talk.wait(22).we("P. 2001:3001 ack 1");
    talk.wait(10).peer(". 1:1 ack 1001 2001-3001").wait(3).we(". 1001:2001 ack 1").silence();
    talk.wait(10).peer(". 1:1 ack 3001").silence().lent_nothing();
}

#[test]
fn a_tail_probe_carries_new_bytes_if_there_are_some() {
    let mut talk = Conversation::selective();
    talk.write(12_000);
    assert_eq!(talk.we_whatever(), 10);
    talk.wait(22).we(". 10001:11001 ack 1").silence();
}

#[test]
fn a_tail_repaired_by_its_probe_counts_as_a_loss() {
    for (text, expected) in [(". 1:1 ack 4001", 7), (". 1:1 ack 3001 2001-3001", 10)] {
        let mut talk = Conversation::selective();
        talk.write(3000).we_whatever();
        talk.wait(22).we("P. 2001:3001 ack 1");
        talk.write(20_000);
        talk.we_whatever();
        talk.wait(10).peer(". 1:1 ack 3001").peer(text).we_whatever();
        talk.peer(". 1:1 ack 10001");
        assert_eq!(talk.tcb.congestion().window() < 10_000, expected == 7, "{text}");
    }
}

#[test]
fn forged_sack_blocks_change_nothing() {
    for text in
        ["5001-6001", "4001-5002", "-999-1", "3001-2001", "1-1", "2000000000-2000001000", "0-900"]
    {
        let mut talk = sent(5001);
        talk.peer(&format!(". 1:1 ack 1 {}", text.replace("-999-1", "0-1"))).wait(50).we_whatever();
        assert_eq!(talk.tcb.pipe(), 4000 + 1000, "{text}");
        talk.peer(". 1:1 ack 5001").silence().lent_nothing();
    }
}

#[test]
fn a_reneging_peer_gets_everything_again() {
    let mut talk = sent(5001);
    talk.peer(". 1:1 ack 1 1001-5001").we(". 1:1001 ack 1");
    talk.wait(10).peer(". 1:1 ack 1001").silence();
    talk.wait(420).we(". 1001:2001 ack 1").peer(". 1:1 ack 2001");
    talk.we(". 2001:3001 ack 1")
        .we(". 3001:4001 ack 1")
        .peer(". 1:1 ack 4001")
        .we("P. 4001:5001 ack 1")
        .silence();
    talk.peer(". 1:1 ack 5001").lent_nothing();
}

#[test]
fn a_spurious_timeout_is_undone() {
    let mut talk = Conversation::stamped(100);
    talk.write(5000).we_whatever();
    let window = talk.tcb.congestion().window();
    talk.wait(210).we(". 1:1001 ack 1 val 210 ecr 100").silence();
    assert_eq!(talk.tcb.congestion().window(), 1000);
    // The acknowledgment echoes the time of the first copy.
    talk.wait(10).peer(". 1:1 ack 1001 val 101 ecr 0").silence();
    assert!(talk.tcb.congestion().window() >= window);
    let mut talk = Conversation::stamped(100);
    talk.write(5000).we_whatever();
    talk.wait(210)
        .we(". 1:1001 ack 1 val 210 ecr 100")
        .wait(10)
        .peer(". 1:1 ack 1001 val 101 ecr 210");
    assert_eq!(talk.we_whatever(), 2, "the echo is of the second copy, so slow start goes on");
}

proptest! {
    /// Compares the flight with the simplest model, which has one entry for each byte.
    #[test]
    fn the_flight_never_exceeds_what_was_acknowledged(
        steps in proptest::collection::vec((0u8..6, 0u32..4000, 1u32..300), 1..300),
        start in prop_oneof![Just(0u32), Just(u32::MAX - 1000), Just((1 << 31) - 500)],
    ) {
        let start = SequenceNumber(start);
        let mut flight = Flight::default();
        let mut model: Vec<bool> = vec![];
        let (mut una, mut clock) = (0u32, 0u32);
        for (kind, place, count) in steps {
            clock += 10;
            let max = model.len() as u32;
            let from = una + place % (max - una + 1);
            let to = (from + count).min(max);
            match kind {
                0 | 1 => {
                    flight.sent(clock, start + max, start + max + count, RunState::OnTheWay);
                    model.resize((max + count) as usize, false);
                }
                2 => {
                    let block = SackBlock { start: start + from, end: start + to };
                    flight.acknowledge_block(block, &mut |_| {});
                    (from..to).for_each(|byte| model[byte as usize] = true);
                }
                3 => {
                    una = to.min(una + count);
                    flight.acknowledge(start + una, &mut |_| {});
                }
                4 => flight.judge(|run| if (run.sent_at / 10) % 3 == 0 { RunState::Lost } else { RunState::OnTheWay }),
                _ => {
                    if let Some(lost) = flight.first_lost() {
                        flight.sent(clock, lost.start, (lost.start + count).earlier(lost.end), RunState::OnTheWay);
                    } else {
                        flight.lose_first(count);
                    }
                }
            }
            flight.assert_invariants(start + una, start + model.len() as u32);
            let truth = model[una as usize..].iter().filter(|arrived| **arrived).count() as u32;
            prop_assert!(flight.arrived() <= truth);
        }
    }
}

#[test]
fn too_many_gaps_are_merged_without_false_arrivals() {
    let mut flight = Flight::default();
    let at = |segment: u32| SequenceNumber(segment * 1000);
    for segment in 0..400 {
        flight.sent(segment, at(segment), at(segment + 1), RunState::OnTheWay);
        flight.assert_invariants(at(0), at(segment + 1));
    }
    for segment in (1..400).step_by(2) {
        flight
            .acknowledge_block(SackBlock { start: at(segment), end: at(segment + 1) }, &mut |_| {});
        assert!(flight.arrived() <= segment.div_ceil(2) * 1000);
        flight.assert_invariants(at(0), at(400));
    }
    assert!(flight.arrived() >= 28_000, "gaps are distinguished as far as there is room");
    flight.judge(|_| RunState::Lost);
    flight.sent(1000, at(0), at(1), RunState::OnTheWay);
    flight.assert_invariants(at(0), at(400));
    flight.acknowledge(at(400), &mut |_| {});
    flight.assert_invariants(at(400), at(400));
}

#[test]
fn merged_runs_give_no_round_trip_sample() {
    let at = |segment: u32| SequenceNumber(segment * 1000);
    let mut flight = Flight::default();
    for segment in 0..400 {
        flight.sent(segment * 100, at(segment), at(segment + 1), RunState::OnTheWay);
    }
    for segment in (1..120).step_by(2) {
        flight
            .acknowledge_block(SackBlock { start: at(segment), end: at(segment + 1) }, &mut |_| {});
    }
    for segment in 0..400 {
        flight.acknowledge(at(segment + 1), &mut |run| {
            assert!(
                run.ambiguous || run.sent_at.abs_diff(segment * 100) <= 40_000 / 16,
                "{segment}: {run:?}"
            );
        });
    }
    for segment in 400..410 {
        flight.sent(segment * 100, at(segment), at(segment + 1), RunState::OnTheWay);
    }
    flight.judge(|_| RunState::Lost);
    flight.unmark_lost();
    flight.acknowledge(at(401), &mut |run| {
        assert!(run.ambiguous, "runs that were lost together are joined: {run:?}")
    });
}

#[test]
fn duplicates_do_not_count_once_all_is_acknowledged() {
    let mut talk = Conversation::established();
    talk.write(40_000).we_whatever();
    talk.peer(". 1:1 ack 1").we_whatever();
    talk.peer(". 1:1 ack 1001").we_whatever();
    let outstanding = talk.tcb.snd_max().since(talk.tcb.snd_una());
    assert!(
        outstanding < 39_000 && outstanding > talk.tcb.pipe(),
        "data is outstanding, and a duplicate acknowledgment has shown that a segment arrived"
    );
    talk.peer(&alloc::format!(". 1:1 ack {}", 1001 + outstanding));
    assert_eq!(talk.tcb.pipe(), talk.tcb.snd_max().since(talk.tcb.snd_una()));
}
