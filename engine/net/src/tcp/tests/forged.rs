//! Segments forged by an attacker that does not see the connection (RFC 5961), and other invalid
//! segments.

use alloc::format;

use super::{Conversation, everywhere};
use crate::tcp::{CloseReason, RECEIVE_WINDOW};

#[test]
fn a_reset_counts_only_at_exactly_the_number_expected() {
    everywhere(|talk| {
        talk.peer("R 2:2").we(". 1:1 ack 1").silence();
        talk.peer("R 0:0").silence();
        talk.peer(&format!("R {}:{}", RECEIVE_WINDOW + 9, RECEIVE_WINDOW + 9)).silence();
        talk.ended("no");
        talk.peer("R 1:1").closed(CloseReason::Reset).silence();
        talk.ended("gone");
    });
}

#[test]
fn a_syn_in_a_connection_is_challenged_and_ignored() {
    everywhere(|talk| {
        talk.peer("S 1:1").we(". 1:1 ack 1").silence();
        talk.wait(500).peer("S. 5:5 ack 1").we(". 1:1 ack 1").silence();
        talk.wait(500).peer("S 4000000000:4000000000").we(". 1:1 ack 1").silence();
        assert_eq!(talk.state(), "Established");
    });
}

#[test]
fn challenge_acks_come_at_most_every_half_second() {
    let mut talk = Conversation::established();
    talk.peer("R 2:2").we(". 1:1 ack 1");
    for _ in 0..100 {
        talk.peer("R 2:2")
            .peer("S 9:9")
            .peer(". 1:1 ack 99")
            .peer(". 900000:900000 ack 1")
            .silence();
    }
    talk.wait(500).peer("R 2:2").we(". 1:1 ack 1").silence();
}

#[test]
fn an_ack_of_unsent_data_is_refused_with_its_payload() {
    everywhere(|talk| {
        talk.peer("P. 1:11 ack 2").we(". 1:1 ack 1").silence();
        assert_eq!(talk.given, 0);
        talk.wait(500).peer("P. 1:11 ack -64100").we(". 1:1 ack 1").silence();
        assert_eq!(talk.given, 0);
        talk.peer("P. 1:11 ack -60000").wait(40).we(". 1:1 ack 11");
        assert_eq!(talk.given, 10);
    });
}

#[test]
fn data_without_an_ack_flag_is_dropped() {
    let mut talk = Conversation::established();
    talk.peer("P 1:11").peer("- 1:11").peer("F 1:1").silence();
    assert_eq!(talk.given, 0);
}

#[test]
fn data_beyond_the_window_is_trimmed_or_answered() {
    everywhere(|talk| {
        let edge = 65_536;
        talk.peer(&format!("P. {edge}:{} ack 1", edge + 10)).we(". 1:1 ack 1").silence();
        talk.peer(&format!("P. {}:{} ack 1", edge - 5, edge + 5)).we(". 1:1 ack 1").silence();
        talk.peer("P. 1:1001 ack 1").wait(40).we(". 1:1 ack 1001").silence();
        assert_eq!(talk.given, 1000);
    });
}

#[test]
fn a_keepalive_of_the_peer_is_answered() {
    everywhere(|talk| {
        talk.wait(1000).peer(". 0:0 ack 1").we(". 1:1 ack 1").silence();
        talk.peer(". 0:1 ack 1").we(". 1:1 ack 1").silence();
        assert_eq!(talk.given, 0);
    });
}

#[test]
fn a_probe_of_our_closed_window_is_answered() {
    let mut talk = Conversation::established();
    talk.session = super::conversation::Session::LeavesAll;
    talk.peer(". 1:65536 ack 1").we(". 1:1 ack 65536");
    talk.peer(". 65536:131071 ack 1")
        .peer(". 131071:196606 ack 1")
        .peer(". 196606:262145 ack 1")
        .we_whatever();
    talk.peer(". 262145:262146 ack 1").we(". 1:1 ack 262145 win 0").silence();
    talk.peer(". 262144:262144 ack 1").we(". 1:1 ack 262145 win 0").silence();
}

#[test]
fn a_hundred_gaps_cost_little_and_the_stream_arrives() {
    let mut talk = Conversation::established();
    let free = talk.pools.free_blocks();
    for gap in 0..100 {
        talk.peer(&format!(". {}:{} ack 1", 500 * gap + 301, 500 * gap + 401)).we(". 1:1 ack 1");
    }
    assert!(free - talk.pools.free_blocks() <= 16);
    for start in (1..60_001).step_by(1000) {
        talk.peer(&format!(". {start}:{} ack 1", start + 1000)).we_whatever();
    }
    assert_eq!(talk.given, 60_000);
    talk.lent_nothing();
}

#[test]
fn unfilled_gaps_leave_half_of_the_pools_to_others() {
    let mut talk = Conversation::established();
    let mut hoarders = alloc::vec::Vec::new();
    for _ in 0..6 {
        let mut hoarder = Conversation::established();
        core::mem::swap(&mut hoarder.pools, &mut talk.pools);
        for start in (2..60_000).step_by(1000) {
            hoarder.peer(&format!(". {start}:{} ack 1", start + 1000));
        }
        core::mem::swap(&mut hoarder.pools, &mut talk.pools);
        hoarders.push(hoarder);
    }
    assert!(talk.pools.free_receive_queues() * 2 >= super::conversation::SIZES.receive_queues);
    assert!(talk.pools.free_blocks() * 2 >= super::conversation::SIZES.blocks - 1);
    talk.peer("P. 1:1001 ack 1");
    assert_eq!(talk.given, 1000);
}
