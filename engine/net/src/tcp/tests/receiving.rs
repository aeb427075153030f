//! Received data is delivered in order and once, and acknowledged in time. The window announces how
//! much fits.

use alloc::format;

use machine::BLOCK_BYTES;

use super::Conversation;
use super::conversation::Session;
use crate::tcp::RECEIVE_WINDOW;

#[test]
fn in_order_bytes_are_delivered_in_place_without_buffers() {
    let mut talk = Conversation::established();
    talk.peer("P. 1:101 ack 1");
    assert_eq!(talk.actions.data, 0..100);
    assert!(!talk.actions.buffered);
    talk.lent_nothing();
    talk.silence();
}

#[test]
fn an_acknowledgment_is_sent_with_the_reply_of_its_turn() {
    let mut talk = Conversation::established();
    talk.peer_quietly("P. 1:101 ack 1").write(20).we("P. 1:21 ack 101").silence();
    talk.wait(100).silence();
}

#[test]
fn without_a_reply_an_acknowledgment_waits_40_ms() {
    let mut talk = Conversation::established();
    talk.peer("P. 1:101 ack 1").wait(39).silence().wait(1).we(". 1:1 ack 101").silence();
}

#[test]
fn every_second_full_segment_is_acknowledged_at_once() {
    let mut talk = Conversation::established();
    talk.peer(". 1:1001 ack 1").silence().peer(". 1001:2001 ack 1").we(". 1:1 ack 2001").silence();
    talk.peer(". 2001:3001 ack 1").silence().wait(40).we(". 1:1 ack 3001").silence();
}

#[test]
fn a_large_frame_joined_by_the_card_is_acknowledged_at_once() {
    let mut talk = Conversation::established();
    talk.peer(". 1:30001 ack 1").we(". 1:1 ack 30001").silence();
    assert_eq!(talk.given, 30_000);
}

#[test]
fn unconsumed_bytes_wait_and_later_bytes_queue_behind_them() {
    let mut talk = Conversation::established();
    talk.session = Session::LeavesAll;
    talk.peer("P. 1:101 ack 1");
    assert_eq!(talk.actions.data, 0..100);
    talk.peer("P. 101:5001 ack 1").we(". 1:1 ack 5001");
    assert!(talk.actions.buffered && talk.actions.data.is_empty());
    talk.take(30);
    assert_eq!(talk.given, 30);
    talk.take(usize::MAX);
    assert_eq!(talk.given, 5000);
    talk.lent_nothing();
    talk.session = Session::TakesAll;
    talk.peer("P. 5001:5101 ack 1");
    assert_eq!(talk.actions.data, 0..100);
}

#[test]
fn bytes_beyond_a_gap_wait_until_it_is_filled() {
    let mut talk = Conversation::established();
    talk.peer(". 1001:2001 ack 1").we(". 1:1 ack 1");
    talk.peer(". 3001:4001 ack 1").we(". 1:1 ack 1");
    talk.peer(". 2001:3001 ack 1").we(". 1:1 ack 1");
    assert_eq!(talk.given, 0);
    talk.peer(". 1:1001 ack 1").we(". 1:1 ack 4001").silence();
    assert_eq!(talk.given, 4000);
    talk.lent_nothing();
}

#[test]
fn while_the_peer_repairs_a_loss_each_segment_is_acknowledged() {
    let each_of = |talk: &mut Conversation, from: u32| {
        let mut at = from;
        for _ in 0..16 {
            at += 1000;
            talk.peer(&format!(". {}:{at} ack 1", at - 1000))
                .we(&format!(". 1:1 ack {at}"))
                .silence();
        }
        talk.peer(&format!(". {at}:{} ack 1", at + 1000)).silence();
    };
    let mut talk = Conversation::established();
    talk.peer(". 1001:2001 ack 1").we(". 1:1 ack 1").peer(". 1:1001 ack 1").we(". 1:1 ack 2001");
    each_of(&mut talk, 2001);
    // Already received data arrives again.
    let mut talk = Conversation::established();
    talk.peer(". 1:1001 ack 1")
        .wait(40)
        .we(". 1:1 ack 1001")
        .peer(". 1:1001 ack 1")
        .we(". 1:1 ack 1001");
    each_of(&mut talk, 1001);
}

#[test]
fn full_segments_after_a_long_silence_are_acked_at_once() {
    let mut talk = Conversation::established();
    talk.wait(500)
        .peer(". 1:1001 ack 1")
        .we(". 1:1 ack 1001")
        .peer(". 1001:2001 ack 1")
        .we(". 1:1 ack 2001");
    let mut talk = Conversation::established();
    talk.wait(500).peer("P. 1:101 ack 1").silence().wait(40).we(". 1:1 ack 101").silence();
}

#[test]
fn a_fin_beyond_a_gap_is_stored() {
    let mut talk = Conversation::established();
    talk.peer("F. 1001:2001 ack 1").we(". 1:1 ack 1");
    assert!(!talk.actions.peer_closed);
    talk.peer(". 1:1001 ack 1").we(". 1:1 ack 2002").silence();
    assert!(talk.actions.peer_closed && talk.actions.buffered);
    assert_eq!(talk.given, 2000);
}

#[test]
fn a_lone_fin_beyond_a_gap_is_stored() {
    let mut talk = Conversation::established();
    talk.peer("F. 1001:1001 ack 1").we(". 1:1 ack 1");
    talk.peer(". 1:1001 ack 1").we(". 1:1 ack 1002").silence();
    assert!(talk.actions.peer_closed);
    assert_eq!(talk.given, 1000);
}

#[test]
fn old_bytes_are_reacknowledged_and_new_bytes_accepted() {
    let mut talk = Conversation::established();
    talk.peer("P. 1:1001 ack 1").wait(40).we(". 1:1 ack 1001");
    talk.peer("P. 1:1001 ack 1").we(". 1:1 ack 1001").silence();
    talk.peer("P. 501:1501 ack 1").wait(40).we(". 1:1 ack 1501").silence();
    assert_eq!(talk.given, 1500);
}

#[test]
fn the_window_shrinks_with_kept_bytes_and_opens_as_they_go() {
    let mut talk = Conversation::established();
    talk.session = Session::LeavesAll;
    let mut at = 1;
    while at + 2000 <= RECEIVE_WINDOW {
        talk.peer(&format!(". {}:{} ack 1", at, at + 2000));
        let left = RECEIVE_WINDOW + 1 - (at + 2000);
        talk.we(&format!(". 1:1 ack {} win {}", at + 2000, left / 64)).silence();
        at += 2000;
    }
    let edge = RECEIVE_WINDOW + 1;
    talk.peer(&format!(". {at}:{} ack 1", at + 2000))
        .we(&format!(". 1:1 ack {edge} win 0"))
        .silence();
    talk.peer(&format!(". {edge}:{} ack 1", edge + 1))
        .we(&format!(". 1:1 ack {edge} win 0"))
        .silence();
    talk.take(1000).turn().silence();
    talk.take(1000).turn().we(&format!(". 1:1 ack {edge} win 31")).silence();
    talk.wait(100)
        .take(usize::MAX)
        .turn()
        .we(&format!(". 1:1 ack {edge} win {}", RECEIVE_WINDOW / 64))
        .silence();
    assert_eq!(talk.given, RECEIVE_WINDOW);
    talk.lent_nothing();
}

#[test]
fn a_window_without_scaling_fits_its_field() {
    let mut talk = Conversation::with_handshake(crate::tcp::TcpHandshake {
        iss: crate::tcp::SequenceNumber(5),
        irs: crate::tcp::SequenceNumber(6),
        mss: 1000,
        peer_window_shift: None,
        round_trip: None,
        timestamps: None,
        sack_permitted: false,
        ecn: false,
    });
    talk.peer(". 1:2001 ack 1").we(". 1:1 ack 2001 win 65535").silence();
}

#[test]
fn scarce_blocks_shrink_the_window_and_dropped_bytes_return() {
    let mut talk = Conversation::established();
    let mut hoard = alloc::vec::Vec::new();
    while talk.pools.free_blocks() > 1 {
        hoard.extend(talk.pools.blocks.take());
    }
    talk.session = Session::LeavesAll;
    talk.peer(". 1:10001 ack 1").wait(40).silence();
    assert!(talk.actions.data.is_empty());
    talk.peer(". 1:8001 ack 1").we(". 1:1 ack 8001");
    talk.peer(". 8001:9001 ack 1").we(". 1:1 ack 8193");
    talk.take(usize::MAX);
    assert_eq!(talk.given, 8192);
    talk.peer(". 8193:9001 ack 1").wait(40).we(". 1:1 ack 9001");
}

#[test]
fn a_line_that_crosses_blocks_can_be_copied_whole() {
    let mut talk = Conversation::established();
    talk.session = Session::LeavesAll;
    talk.peer(". 1:9001 ack 1");
    talk.take(8100);
    let mut line = [0; 200];
    assert_eq!(talk.tcb.waiting().len(), BLOCK_BYTES - 8100);
    assert_eq!(talk.tcb.copy_waiting(&mut line), 200);
    assert_eq!(line[..], super::conversation::bytes_at(8100, 200)[..]);
    talk.take(800);
    assert_eq!(talk.tcb.copy_waiting(&mut line), 100);
    talk.take(usize::MAX);
    assert_eq!(talk.tcb.copy_waiting(&mut line), 0);
}

#[test]
fn filling_a_gap_is_acknowledged_at_once_however_small() {
    let mut talk = Conversation::established();
    talk.peer("P. 11:21 ack 1")
        .we(". 1:1 ack 1")
        .peer("P. 1:11 ack 1")
        .we(". 1:1 ack 21")
        .silence();
}

#[test]
fn an_acknowledgment_counts_when_our_window_is_full() {
    let mut talk = Conversation::established();
    talk.write(10).we("P. 1:11 ack 1");
    talk.peer(". 65536:65536 ack 11").silence();
    talk.lent_nothing();
}

#[test]
fn a_fin_beyond_the_window_does_not_end_the_stream() {
    let mut talk = Conversation::established();
    talk.session = Session::LeavesAll;
    talk.peer("F. 60001:70001 ack 1").we(". 1:1 ack 1");
    talk.peer(". 1:60001 ack 1").we(". 1:1 ack 65536").silence();
    assert!(!talk.actions.peer_closed);
    talk.peer("F. 65536:70001 ack 1").we(". 1:1 ack 70002").silence();
    assert!(talk.actions.peer_closed);
}

#[test]
fn a_fin_needs_no_room() {
    let mut talk = Conversation::established();
    talk.session = Session::LeavesAll;
    talk.peer(". 1:65536 ack 1").peer(". 65536:131071 ack 1").peer(". 131071:196606 ack 1");
    talk.peer(". 196606:262145 ack 1").we_whatever();
    talk.peer("F. 262145:262145 ack 1").we(". 1:1 ack 262146 win 0").silence();
    assert!(talk.actions.peer_closed);
    talk.take(usize::MAX).turn().silence();
    assert_eq!(talk.given, RECEIVE_WINDOW);
}

#[test]
fn data_beyond_the_end_of_the_stream_is_dropped() {
    let mut talk = Conversation::established();
    talk.peer(". 2001:3001 ack 1").peer("F. 1:1001 ack 1").we_whatever();
    assert!(talk.actions.peer_closed);
    talk.lent_nothing();
    let mut talk = Conversation::established();
    talk.peer(". 2001:3001 ack 1").peer("F. 501:1001 ack 1").peer(". 1:501 ack 1").we_whatever();
    assert!(talk.actions.peer_closed);
    talk.lent_nothing();
}

#[test]
fn a_window_never_opens_by_less_than_a_segment() {
    let mut talk = Conversation::established();
    talk.session = Session::LeavesAll;
    talk.peer(". 1:65536 ack 1").peer(". 65536:131071 ack 1").peer(". 131071:196606 ack 1");
    talk.peer(". 196606:262145 ack 1").we_whatever();
    talk.take(900).write(1).we("P. 1:2 ack 262145 win 0").peer(". 262145:262145 ack 2").silence();
    talk.take(100).write(1).we("P. 2:3 ack 262145 win 15");
}

#[test]
fn a_wide_open_window_is_not_announced_repeatedly() {
    let mut talk = Conversation::established();
    talk.session = Session::LeavesAll;
    talk.peer(". 1:60001 ack 1").we(". 1:1 ack 60001");
    for _ in 0..20 {
        talk.take(3000).turn().silence();
    }
}

#[test]
fn data_decoded_in_place_is_put_back_at_the_front() {
    let mut talk = Conversation::established();
    talk.session = Session::LeavesAll;
    talk.peer("P. 1:4001 ack 1").peer("P. 4001:9001 ack 1");
    assert_eq!(talk.tcb.waiting_bytes(), 9000);
    talk.tcb.consumed(100, &mut talk.pools);
    let mut bytes = [0; 9000];
    assert_eq!(talk.tcb.copy_waiting(&mut bytes), 8900);
    bytes[..5000].fill(b'!');
    let expected = bytes;
    talk.tcb.put_back(&bytes[..5000], &mut talk.pools);
    bytes.fill(0);
    assert_eq!(talk.tcb.copy_waiting(&mut bytes), 8900);
    assert!(bytes == expected, "only these bytes change, across the end of a block");
    assert_eq!(talk.tcb.waiting_bytes(), 8900);
}
