//! Lost data is retransmitted by the timer, or earlier by duplicate acknowledgments, and the window
//! is lowered.

use alloc::format;

use super::{Conversation, everywhere};
use crate::tcp::CloseReason;

/// Compares the sent segments: full segments from `from` to `to`, and no others.
fn we_send(talk: &mut Conversation, from: u32, to: u32) {
    for start in (from..to).step_by(1000) {
        talk.we(&format!(". {start}:{} ack 1", start + 1000));
    }
    talk.silence();
}

#[test]
fn retransmissions_back_off_until_the_user_timeout() {
    everywhere(|talk| {
        talk.write(10).we("P. 1:11 ack 1");
        for wait in
            [210, 420, 840, 1680, 3360, 6720, 13_440, 26_880, 53_760, 60_000, 60_000, 60_000]
        {
            talk.wait(wait - 1).silence().wait(1).we("P. 1:11 ack 1").silence();
        }
        // Five minutes in total: the last timeout is shortened.
        talk.wait(12_689).silence().wait(1).closed(CloseReason::TimedOut).silence();
        talk.ended("gone");
    });
}

#[test]
fn the_timeout_stays_backed_off_until_a_valid_sample() {
    let mut talk = Conversation::established();
    talk.write(10).we("P. 1:11 ack 1").wait(210).we("P. 1:11 ack 1").wait(10).peer(". 1:1 ack 11");
    talk.write(10)
        .we("P. 11:21 ack 1")
        .wait(419)
        .silence()
        .wait(1)
        .we("P. 11:21 ack 1")
        .peer(". 1:1 ack 21");
    talk.write(10).we("P. 21:31 ack 1").wait(10).peer(". 1:1 ack 31");
    talk.write(10).we("P. 31:41 ack 1").wait(209).silence().wait(1).we("P. 31:41 ack 1");
}

#[test]
fn the_timeout_follows_the_round_trip() {
    let mut talk = Conversation::established();
    for at in (1..400).step_by(10) {
        talk.write(10).wait(420).we(&format!("P. {at}:{} ack 1", at + 10));
        talk.we_whatever();
        talk.peer(&format!(". 1:1 ack {}", at + 10));
    }
    talk.write(10).we("P. 401:411 ack 1").wait(599).silence();
    talk.wait(100).we("P. 401:411 ack 1").silence();
}

#[test]
fn a_timeout_retransmits_everything_in_slow_start() {
    everywhere(|talk| {
        talk.write(10_000);
        for start in (1..10_000).step_by(1000) {
            talk.we(&format!(
                "{} {start}:{} ack 1",
                if start == 9001 { "P." } else { "." },
                start + 1000
            ));
        }
        talk.wait(210).we(". 1:1001 ack 1").silence();
        talk.peer(". 1:1 ack 1001").we(". 1001:2001 ack 1").we(". 2001:3001 ack 1").silence();
        talk.peer(". 1:1 ack 9001").we("P. 9001:10001 ack 1").silence();
        talk.peer(". 1:1 ack 10001").silence();
        talk.lent_nothing();
    });
}

#[test]
fn three_duplicates_trigger_a_retransmission() {
    everywhere(|talk| {
        talk.write(20_000);
        we_send(talk, 1, 10_001);
        talk.peer(". 1:1 ack 1").we(". 10001:11001 ack 1").silence();
        talk.peer(". 1:1 ack 1").we(". 11001:12001 ack 1").silence();
        talk.peer(". 1:1 ack 1").we(". 1:1001 ack 1").silence();
        // The window is seven segments, seven tenths of ten. With the retransmission, eight are in
        // flight. The third duplicate from here makes room.
        talk.peer(". 1:1 ack 1").peer(". 1:1 ack 1").silence();
        talk.peer(". 1:1 ack 1").we(". 12001:13001 ack 1").silence();
        // Everything has arrived. No burst follows, and then the window grows by one segment for
        // each window of data.
        talk.peer(". 1:1 ack 12001").we(". 13001:14001 ack 1").silence();
        talk.peer(". 1:1 ack 13001").we(". 14001:15001 ack 1").we(". 15001:16001 ack 1").silence();
    });
}

#[test]
fn a_partial_ack_triggers_the_next_retransmission() {
    everywhere(|talk| {
        talk.write(10_000);
        for start in (1..10_000).step_by(1000) {
            talk.we(&format!(
                "{} {start}:{} ack 1",
                if start == 9001 { "P." } else { "." },
                start + 1000
            ));
        }
        talk.peer(". 1:1 ack 1")
            .peer(". 1:1 ack 1")
            .peer(". 1:1 ack 1")
            .we(". 1:1001 ack 1")
            .silence();
        talk.peer(". 1:1 ack 4001").we(". 4001:5001 ack 1").silence();
        talk.peer(". 1:1 ack 7001").we(". 7001:8001 ack 1").silence();
        talk.peer(". 1:1 ack 10001").silence();
        talk.lent_nothing();
    });
}

#[test]
fn duplicates_after_a_timeout_cause_no_retransmissions() {
    let mut talk = Conversation::established();
    talk.write(10_000).we_whatever();
    talk.wait(210).we(". 1:1001 ack 1").silence();
    talk.peer(". 1:1 ack 1").peer(". 1:1 ack 1").peer(". 1:1 ack 1").peer(". 1:1 ack 1").silence();
}

#[test]
fn a_window_update_or_a_segment_with_data_is_no_duplicate() {
    let mut talk = Conversation::established();
    talk.write(10_000).we_whatever();
    talk.peer(". 1:1 ack 1 win 64001")
        .peer(". 1:1 ack 1 win 64002")
        .peer(". 1:1 ack 1 win 64003")
        .silence();
    talk.peer_quietly("P. 1:2 ack 1").peer_quietly("P. 2:3 ack 1").peer_quietly("P. 3:4 ack 1");
    talk.peer_quietly("P. 4:5 ack 1").turn().silence();
}

#[test]
fn a_lost_fin_is_retransmitted() {
    everywhere(|talk| {
        talk.write(10).we("P. 1:11 ack 1").close().we("F. 11:11 ack 1");
        talk.peer(". 1:1 ack 11").wait(210).we("F. 11:11 ack 1").silence();
        talk.wait(420).we("F. 11:11 ack 1").peer(". 1:1 ack 12").silence();
        assert_eq!(talk.state(), "FinWait2");
    });
}

#[test]
fn lost_data_and_fin_are_retransmitted_together() {
    let mut talk = Conversation::established();
    talk.write(10)
        .we("P. 1:11 ack 1")
        .close()
        .we("F. 11:11 ack 1")
        .wait(210)
        .we("FP. 1:11 ack 1")
        .silence();
    talk.peer(". 1:1 ack 12").silence();
}

#[test]
fn a_window_closed_over_data_in_flight_gets_probes() {
    let mut talk = Conversation::established();
    talk.write(2000).we(". 1:1001 ack 1").we("P. 1001:2001 ack 1");
    talk.peer(". 1:1 ack 1001 win 0").wait(210).silence();
    talk.wait(420).we(". 1001:1002 ack 1").peer(". 1:1 ack 1001 win 0").silence();
    talk.peer(". 1:1 ack 1001 win 1000").we("P. 1001:2001 ack 1").silence();
    talk.peer(". 1:1 ack 2001");
    talk.lent_nothing();
}

#[test]
fn a_retransmitted_handshake_sets_window_1_and_timeout_3_s() {
    let mut talk = Conversation::with_handshake(crate::tcp::TcpHandshake {
        iss: crate::tcp::SequenceNumber(5),
        irs: crate::tcp::SequenceNumber(6),
        mss: 1000,
        peer_window_shift: Some(0),
        round_trip: None,
        timestamps: None,
        sack_permitted: false,
        ecn: false,
    });
    talk.write(3000).we(". 1:1001 ack 1").silence();
    talk.wait(2999).silence().wait(1).we(". 1:1001 ack 1").silence();
}

#[test]
fn a_lost_ack_is_repeated_when_its_data_is_retransmitted() {
    everywhere(|talk| {
        talk.peer("P. 1:11 ack 1").wait(40).we(". 1:1 ack 11");
        talk.peer("P. 1:11 ack 1")
            .we(". 1:1 ack 11")
            .peer("P. 1:11 ack 1")
            .we(". 1:1 ack 11")
            .silence();
        assert_eq!(talk.given, 10);
    });
}

#[test]
fn a_path_mtu_report_counts_only_for_data_in_flight() {
    everywhere(|talk| {
        talk.write(1000).we("P. 1:1001 ack 1");
        let una = talk.tcb.snd_una();
        talk.tcb.path_narrowed(una - 1, 600);
        talk.tcb.path_narrowed(una + 1000, 600);
        talk.turn().silence();
        talk.tcb.path_narrowed(una, 600);
        talk.turn().we(". 1:601 ack 1").we("P. 601:1001 ack 1").silence();
        talk.tcb.path_narrowed(una, 10);
        talk.turn().we(". 1:537 ack 1").we("P. 537:1001 ack 1").silence();
        talk.peer(". 1:1 ack 1001");
        talk.lent_nothing();
    });
}

#[test]
fn lost_small_segments_are_merged_and_carry_no_fin() {
    let mut talk = Conversation::established();
    for at in [1, 11, 21, 31] {
        talk.write(10).we(&format!("P. {at}:{} ack 1", at + 10));
    }
    talk.peer(". 1:1 ack 1").peer(". 1:1 ack 1").peer(". 1:1 ack 1").we("P. 1:41 ack 1").silence();
    talk.peer(". 1:1 ack 41");
    talk.lent_nothing();
}

#[test]
fn repeatedly_lost_long_segments_become_smaller() {
    let mut talk = Conversation::with_handshake(crate::tcp::TcpHandshake {
        iss: crate::tcp::SequenceNumber(10_000),
        irs: crate::tcp::SequenceNumber(500_000),
        mss: 1460,
        peer_window_shift: Some(0),
        round_trip: Some(machine::Micros::from_millis(10)),
        timestamps: None,
        sack_permitted: false,
        ecn: false,
    });
    talk.write(2000).we_whatever();
    talk.wait(210)
        .we(". 1:1461 ack 1")
        .wait(420)
        .we(". 1:1461 ack 1")
        .wait(840)
        .we(". 1:1201 ack 1");
    talk.wait(1680).we(". 1:537 ack 1").wait(3360).we(". 1:537 ack 1").peer(". 1:1 ack 537");
    talk.we(". 537:1073 ack 1").we(". 1073:1609 ack 1").silence();
    // A segment need not be full to be too long.
    let mut talk = Conversation::established();
    talk.write(789).we("P. 1:790 ack 1");
    for span in [210, 420, 840] {
        talk.wait(span).we("P. 1:790 ack 1");
    }
    talk.wait(1680).we(". 1:537 ack 1").peer(". 1:1 ack 537").we("P. 537:790 ack 1").silence();
    // Small segments are not the cause.
    let mut talk = Conversation::established();
    talk.write(10).we_whatever();
    talk.wait(20_000).we_whatever();
    assert_eq!(talk.tcb.mss(), super::conversation::MSS);
}

#[test]
fn an_unreachable_report_ends_only_its_own_connect() {
    let mut talk = Conversation::connecting();
    talk.we("SEW 0:0");
    let iss = talk.tcb.snd_una();
    assert_eq!(talk.tcb.connect_refused_by_path(iss + 1, &mut talk.pools), Default::default());
    let actions = talk.tcb.connect_refused_by_path(iss, &mut talk.pools);
    assert_eq!(actions.closed, Some(CloseReason::Refused));
    let mut talk = Conversation::established();
    talk.write(10).we_whatever();
    let una = talk.tcb.snd_una();
    assert_eq!(talk.tcb.connect_refused_by_path(una, &mut talk.pools), Default::default());
    assert_eq!(talk.state(), "Established");
}
