//! Every order in which two ends can close, and what remains afterwards.

use super::{Conversation, everywhere};
use crate::tcp::CloseReason;

#[test]
fn a_connection_that_we_close_first_ends() {
    everywhere(|talk| {
        talk.close().we("F. 1:1 ack 1").peer(". 1:1 ack 2").silence();
        talk.peer("F. 1:1 ack 2").closed(CloseReason::Normal).we(". 2:2 ack 2").silence();
        assert!(talk.actions.peer_closed);
        talk.ended("time-wait");
    });
}

#[test]
fn we_close_first_and_the_peer_answers_with_its_own_fin() {
    everywhere(|talk| {
        talk.close()
            .we("F. 1:1 ack 1")
            .peer("F. 1:1 ack 2")
            .closed(CloseReason::Normal)
            .we(". 2:2 ack 2")
            .silence();
        talk.ended("time-wait");
    });
}

#[test]
fn a_connection_that_the_peer_closes_first_ends() {
    everywhere(|talk| {
        talk.peer("F. 1:1 ack 1").we(". 1:1 ack 2").silence();
        assert!(talk.actions.peer_closed);
        talk.write(10).we("P. 1:11 ack 2").close().we("F. 11:11 ack 2").silence();
        talk.ended("no");
        talk.peer(". 2:2 ack 12").closed(CloseReason::Normal).silence();
        talk.ended("gone");
    });
}

#[test]
fn a_reply_and_fin_after_the_peers_fin_fit_one_segment() {
    let mut talk = Conversation::established();
    talk.peer_quietly("FP. 1:11 ack 1");
    assert!(talk.actions.peer_closed);
    let taken = talk.tcb.send(talk.now, &super::conversation::bytes_at(0, 10), &mut talk.pools);
    assert_eq!(taken, 10);
    talk.close().we("FP. 1:11 ack 12").silence();
    talk.peer(". 12:12 ack 12").closed(CloseReason::Normal);
    talk.ended("gone");
}

#[test]
fn a_connection_that_both_close_at_once_ends() {
    everywhere(|talk| {
        talk.close().we("F. 1:1 ack 1").peer("F. 1:1 ack 1").we(". 2:2 ack 2").silence();
        assert_eq!(talk.state(), "Closing");
        talk.peer(". 2:2 ack 2").closed(CloseReason::Normal).silence();
        talk.ended("time-wait");
    });
}

#[test]
fn a_repeated_fin_delivers_a_lost_acknowledgment() {
    everywhere(|talk| {
        talk.close().we("F. 1:1 ack 1").peer("F. 1:1 ack 1").we(". 2:2 ack 2").silence();
        talk.peer("F. 1:1 ack 2").closed(CloseReason::Normal).we(". 2:2 ack 2").silence();
        talk.ended("time-wait");
    });
    // A repeated data segment delivers its acknowledgment too. Its data is not accepted again.
    everywhere(|talk| {
        talk.peer("P. 1:11 ack 1").write(10).we("P. 1:11 ack 11");
        talk.peer("P. 1:11 ack 11").we(". 11:11 ack 11").wait(10_000).silence();
        assert_eq!(talk.given, 10);
        talk.lent_nothing();
    });
}

#[test]
fn an_invalid_or_older_repetition_acknowledges_nothing() {
    let mut talk = Conversation::established();
    talk.peer("P. 1:11 ack 1")
        .peer("P. 11:21 ack 1")
        .wait(40)
        .we(". 1:1 ack 21")
        .write(10)
        .we("P. 1:11 ack 21");
    talk.peer("P. 11:21 ack 999").we(". 11:11 ack 21").silence();
    talk.peer("P. 1:11 ack 11").we(". 11:11 ack 21").wait(210).we("P. 1:11 ack 21").silence();
}

#[test]
fn after_our_fin_the_peer_may_go_on_sending() {
    everywhere(|talk| {
        talk.close().we("F. 1:1 ack 1").peer(". 1:1 ack 2");
        talk.peer("P. 1:11 ack 2").wait(40).we(". 2:2 ack 11");
        talk.peer("FP. 11:21 ack 2").closed(CloseReason::Normal).we(". 2:2 ack 22").silence();
        assert_eq!(talk.given, 20);
        talk.ended("time-wait");
    });
}

#[test]
fn peer_data_that_crosses_our_fin_is_delivered() {
    let mut talk = Conversation::established();
    talk.close()
        .we("F. 1:1 ack 1")
        .peer("P. 1:11 ack 1")
        .peer("FP. 11:21 ack 2")
        .we(". 2:2 ack 22")
        .silence();
    assert_eq!(talk.given, 20);
    talk.ended("time-wait");
}

#[test]
fn queued_data_is_sent_before_the_fin() {
    let mut talk = Conversation::established();
    talk.peer(". 1:1 ack 1 win 1500").write(2000).we(". 1:1001 ack 1");
    talk.close().silence();
    assert_eq!(
        talk.tcb.send(talk.now, b"more", &mut talk.pools),
        0,
        "nothing is queued after a FIN"
    );
    talk.peer(". 1:1 ack 1001 win 1500").we("FP. 1001:2001 ack 1").silence();
    talk.peer(". 1:1 ack 2002").silence();
    assert_eq!(talk.state(), "FinWait2");
}

#[test]
fn a_fin_waits_for_the_window_and_probes_it() {
    let mut talk = Conversation::established();
    talk.peer(". 1:1 ack 1 win 0").close().silence();
    talk.wait(210).we("F. 1:1 ack 1").silence().peer(". 1:1 ack 2 win 0").silence();
    assert_eq!(talk.state(), "FinWait2");
}

#[test]
fn closing_twice_has_no_further_effect() {
    let mut talk = Conversation::established();
    talk.close().we("F. 1:1 ack 1").close().silence();
    talk.peer("F. 1:1 ack 1").we(". 2:2 ack 2").close().silence();
}

#[test]
fn a_peer_that_never_closes_times_out() {
    let mut talk = Conversation::established();
    talk.close().we("F. 1:1 ack 1").peer(". 1:1 ack 2").wait(110_000).silence();
    talk.peer("P. 1:2 ack 2").wait(119_000).we(". 2:2 ack 2").silence();
    talk.ended("no");
    talk.wait(1500).closed(CloseReason::TimedOut).silence();
    talk.ended("gone");
}

#[test]
fn an_abort_resets_the_peer_and_drops_everything() {
    everywhere(|talk| {
        talk.write(5000).we_whatever();
        talk.abort().we("R. 5001:5001 ack 1").silence();
        assert_eq!(talk.actions.closed, None, "an abort causes no event");
        talk.ended("gone");
        talk.peer("P. 1:11 ack 1").silence();
        assert!(talk.actions.data.is_empty());
    });
}

#[test]
fn an_abort_reaches_a_peer_with_gaps_in_a_full_window() {
    everywhere(|talk| {
        talk.peer(". 1:1 ack 1 win 3000").write(5000).we_whatever();
        talk.abort().we("R. 3001:3001 ack 1").we("R. 3000:3000 ack 1").silence();
    });
    everywhere(|talk| {
        talk.write(2000).we_whatever();
        talk.peer(". 1:1 ack 2001 win 0").write(10).wait(300).we_whatever();
        talk.abort().we("R. 2002:2002 ack 1").we("R. 2001:2001 ack 1").silence();
        talk.ended("gone");
    });
}

#[test]
fn an_abort_waits_for_the_card() {
    let mut talk = Conversation::established();
    talk.card_room = 0;
    talk.abort().silence();
    talk.ended("no");
    talk.card_room = 1;
    talk.turn().we("R. 1:1 ack 1").silence();
    talk.ended("gone");
}

#[test]
fn the_last_acknowledgment_waits_for_the_card() {
    let mut talk = Conversation::established();
    talk.close().we("F. 1:1 ack 1").peer(". 1:1 ack 2");
    talk.card_room = 0;
    talk.peer("F. 1:1 ack 2").silence();
    talk.ended("no");
    talk.card_room = 1;
    talk.turn().we(". 2:2 ack 2").silence();
    talk.ended("time-wait");
}

#[test]
fn a_repeated_fin_is_acknowledged_again() {
    everywhere(|talk| {
        talk.peer("F. 1:1 ack 1")
            .we(". 1:1 ack 2")
            .peer("F. 1:1 ack 1")
            .we(". 1:1 ack 2")
            .silence();
        assert!(!talk.actions.peer_closed, "the FIN is reported once");
    });
}

#[test]
fn a_connect_can_be_aborted() {
    let mut talk = Conversation::connecting();
    talk.we("SEW 0:0").close().silence();
    talk.ended("gone");
}
