//! The opening of connections.

use super::Conversation;
use super::conversation::Session;
use crate::tcp::{CloseReason, SequenceNumber};

#[test]
fn connect_is_established_by_the_peers_syn_ack() {
    let mut talk = Conversation::connecting();
    talk.we("SEW 0:0 win 65535 mss 1000 wscale 6");
    talk.wait(20).peer("S. 0:0 ack 1 win 8000 mss 1400 wscale 2");
    assert!(talk.actions.connected);
    talk.we(". 1:1 ack 1").silence();
    talk.write(5).we("P. 1:6 ack 1");
    talk.peer("P. 1:11 ack 6").peer("P. 11:21 ack 6");
    assert_eq!(talk.given, 20);
}

#[test]
fn unanswered_syns_are_given_up_after_three_minutes() {
    let mut talk = Conversation::connecting();
    talk.we("SEW 0:0");
    for second in [1, 2, 4, 8, 16, 32, 60] {
        talk.wait(second * 1000 - 1).silence().wait(1).we("S 0:0").silence();
    }
    talk.wait(60_000).closed(CloseReason::TimedOut).silence();
    talk.ended("gone");
}

#[test]
fn a_refused_connect_is_reported() {
    let mut talk = Conversation::connecting();
    talk.we("SEW 0:0").peer("R. 0:0 ack 1").closed(CloseReason::Refused).silence();
    talk.ended("gone");
}

#[test]
fn a_reset_that_does_not_acknowledge_our_syn_is_ignored() {
    let mut talk = Conversation::connecting();
    talk.we("SEW 0:0").peer("R 0:0").peer("R. 0:0 ack 2").peer("R. 0:0 ack 0").silence();
    assert_eq!(talk.state(), "SynSent");
}

#[test]
fn a_wrong_ack_of_our_syn_is_reset_and_connecting_goes_on() {
    let mut talk = Conversation::connecting();
    talk.we("SEW 0:0").peer(". 7:7 ack 77").we("R 77:77").silence();
    talk.peer("S. 0:0 ack 1").we(". 1:1 ack 1");
}

#[test]
fn a_simultaneous_open_establishes_a_connection() {
    let mut talk = Conversation::connecting();
    talk.we("SEW 0:0").peer("S 0:0 mss 1400 wscale 0").we("S. 0:0 ack 1").silence();
    talk.peer("S. 0:0 ack 1");
    assert!(talk.actions.connected);
    assert_eq!(talk.state(), "Established");
    talk.write(3).we("P. 1:4 ack 1");
}

#[test]
fn a_syn_window_is_unscaled_in_a_simultaneous_open() {
    let mut talk = Conversation::connecting();
    talk.we("SEW 0:0").peer("S 0:0 win 2000 mss 1000 wscale 7").we("S. 0:0 ack 1");
    talk.peer("S. 0:0 ack 1 win 2000 wscale 7");
    talk.write(5000).we(". 1:1001 ack 1").silence();
}

#[test]
fn a_reset_refuses_a_simultaneous_open() {
    let mut talk = Conversation::connecting();
    talk.we("SEW 0:0")
        .peer("S 0:0")
        .we("S. 0:0 ack 1")
        .peer("R 1:1")
        .closed(CloseReason::Refused)
        .silence();
}

#[test]
fn a_reset_before_the_window_ends_no_simultaneous_open() {
    let mut talk = Conversation::connecting();
    talk.we("SEW 0:0").peer("S 0:0").we("S. 0:0 ack 1").peer("SR. 0:0 ack 1");
    assert_eq!(talk.state(), "SynReceived");
    talk.silence();
}

#[test]
fn data_on_a_syn_ack_is_taken_and_acknowledged() {
    let mut talk = Conversation::connecting();
    talk.we("SEW 0:0").wait(20).peer("SP. 0:11 ack 1 win 8000 mss 1400");
    assert!(talk.actions.connected);
    assert_eq!(talk.given, 11);
    talk.we(". 1:1 ack 12").silence().peer("P. 12:22 ack 1").wait(40).we(". 1:1 ack 22");
    assert_eq!(talk.given, 21);
    talk.lent_nothing();
}

#[test]
fn data_that_the_session_leaves_on_a_syn_ack_waits() {
    let mut talk = Conversation::connecting();
    talk.session = Session::LeavesAll;
    talk.we("SEW 0:0").peer("SP. 0:11 ack 1").we(". 1:1 ack 12").silence();
    talk.take(usize::MAX);
    assert_eq!(talk.given, 11);
    talk.lent_nothing();
}

#[test]
fn a_fin_on_a_syn_ack_ends_the_stream() {
    let mut talk = Conversation::connecting();
    talk.we("SEW 0:0").peer("SF. 0:11 ack 1");
    assert!(talk.actions.connected && talk.actions.peer_closed);
    assert_eq!((talk.given, talk.state().as_str()), (11, "CloseWait"));
    talk.we(". 1:1 ack 13").silence();
    talk.close().we("F. 1:1 ack 13").peer(". 13:13 ack 2").closed(CloseReason::Normal);
    talk.ended("gone");
}

#[test]
fn data_on_a_syn_ack_without_a_free_buffer_is_sent_again() {
    let mut talk = Conversation::connecting();
    let hoard: alloc::vec::Vec<_> =
        core::iter::from_fn(|| talk.pools.lend_receive_queue()).collect();
    talk.we("SEW 0:0").peer("SP. 0:11 ack 1").we(". 1:1 ack 1").silence();
    assert_eq!(talk.given, 0);
    hoard.into_iter().for_each(|queue| talk.pools.take_back_receive_queue(queue));
    talk.peer("P. 1:12 ack 1").wait(40).we(". 1:1 ack 12");
    assert_eq!(talk.given, 11);
}

#[test]
fn data_on_a_syn_waits_until_the_connection_is_established() {
    // The peer's answer to our SYN-ACK is an acknowledgment, data, or its SYN with the data again.
    for (answer, last) in [(". 1:1 ack 1", 12), (". 12:22 ack 1", 22), ("SP. 0:11 ack 1", 12)] {
        let mut talk = Conversation::connecting();
        talk.we("SEW 0:0").peer("SP 0:11 mss 1400").we("S. 0:0 ack 1").silence();
        assert_eq!((talk.given, talk.actions.buffered), (0, false));
        talk.peer(answer);
        assert!(talk.actions.connected && talk.actions.buffered, "{answer}");
        talk.take(usize::MAX).we_whatever();
        assert_eq!(
            (talk.given, talk.tcb.receive().reported.since(SequenceNumber(500_000))),
            (last - 1, last)
        );
        talk.lent_nothing();
    }
}

#[test]
fn early_data_is_dropped_with_a_failed_simultaneous_open() {
    let mut talk = Conversation::connecting();
    talk.we("SEW 0:0").peer("SP 0:11").we("S. 0:0 ack 1").peer("R 1:1");
    talk.closed(CloseReason::Refused).ended("gone");
}

#[test]
fn early_data_that_finds_no_buffer_is_sent_again() {
    let mut talk = Conversation::connecting();
    let hoard: alloc::vec::Vec<_> =
        core::iter::from_fn(|| talk.pools.lend_receive_queue()).collect();
    talk.we("SEW 0:0").peer("SP 0:11").we("S. 0:0 ack 1").silence();
    hoard.into_iter().for_each(|queue| talk.pools.take_back_receive_queue(queue));
    talk.peer("SP. 0:11 ack 1").wait(40).we(". 1:1 ack 12").silence();
    assert_eq!(talk.given, 11);
}
