//! Connections with a silent peer.

use super::Conversation;
use crate::tcp::CloseReason;

#[test]
fn an_idle_connection_has_no_buffers_and_is_probed_after_5_min() {
    let mut talk = Conversation::established();
    talk.lent_nothing();
    talk.wait(299_000).silence().wait(1100).we(". 0:0 ack 1").silence();
    talk.peer(". 1:1 ack 1").silence();
    talk.wait(299_000).silence().wait(1100).we(". 0:0 ack 1").silence();
}

#[test]
fn an_unresponsive_peer_times_out() {
    let mut talk = Conversation::established();
    talk.wait(301_000).we(". 0:0 ack 1").silence();
    for _ in 0..3 {
        talk.wait(30_000).we(". 0:0 ack 1").silence();
    }
    talk.wait(30_000).closed(CloseReason::TimedOut).silence();
    talk.ended("gone");
}

#[test]
fn an_active_peer_is_not_probed() {
    let mut talk = Conversation::established();
    for minute in 0..60 {
        talk.wait(60_000).peer(&alloc::format!("P. {}:{} ack 1", minute + 1, minute + 2)).wait(40);
        talk.we(&alloc::format!(". 1:1 ack {}", minute + 2)).silence();
    }
}

#[test]
fn an_early_deadline_call_does_nothing() {
    let mut talk = Conversation::established();
    talk.write(10).we("P. 1:11 ack 1");
    let actions = talk.tcb.deadline_expired(talk.now, &mut talk.pools);
    assert_eq!(actions, crate::tcp::Actions::default());
    talk.turn().silence();
}

#[test]
fn deadlines_hold_after_fifty_days_too() {
    let mut talk = Conversation::established();
    for _ in 0..4 {
        talk.now = talk.now + machine::Micros::from_secs(20 * 86_400);
        talk.wait(0).we_whatever();
        talk.peer(". 1:1 ack 1").we_whatever();
    }
    let mut at = 1;
    let edge = machine::Instant((1u64 << 32) * 1000 * 2 - 100_000);
    talk.now = edge;
    talk.wait(0).we_whatever();
    for _ in 0..3 {
        talk.peer(". 1:1 ack 1").we_whatever();
        talk.write(1).we_whatever();
        talk.wait(205).silence().wait(5);
        assert_eq!(talk.we_whatever(), 1);
        at += 1;
        talk.peer(&alloc::format!(". 1:1 ack {at}"));
        talk.write(1).we_whatever();
        at += 1;
        talk.peer(&alloc::format!(". 1:1 ack {at}")).silence();
    }
}

#[test]
fn a_vanished_peer_costs_few_deadlines() {
    let mut talk = Conversation::established();
    talk.write(10).we("P. 1:11 ack 1");
    let mut deadlines = 0;
    while let Some(deadline) = talk.tcb.deadline(talk.now) {
        talk.now = deadline;
        let _ = talk.tcb.deadline_expired(talk.now, &mut talk.pools);
        talk.turn().we_whatever();
        deadlines += 1;
        assert!(deadlines < 60, "at {:?}", talk.now);
    }
    assert!(talk.now > machine::Instant(160_000_000));
}

#[test]
fn user_timeout_closes_only_an_unacknowledged_connection() {
    let give_up_after = |seconds: u64| {
        let mut talk = Conversation::established();
        talk.tcb.set_user_timeout(machine::Micros::from_secs(seconds));
        talk
    };
    // An idle connection, and one with a peer that answers in time.
    let mut talk = give_up_after(3);
    talk.wait(60_000)
        .silence()
        .write(10)
        .we("P. 1:11 ack 1")
        .wait(210)
        .we("P. 1:11 ack 1")
        .wait(420);
    talk.we("P. 1:11 ack 1").wait(300).peer(". 1:1 ack 11").silence();
    // The timeouts are 0.42, 0.84 and 1.68 seconds, and the rest of three seconds.
    talk.write(10).we("P. 11:21 ack 1");
    talk.wait(2_939).we_whatever();
    talk.ended("no");
    talk.wait(61).closed(CloseReason::TimedOut).silence();
    talk.ended("gone");
    // The user timeout may be longer than the default of five minutes, and is at most three hours.
    for (wanted, seconds) in [(600, 600), (u64::MAX / 2_000_000, 3 * 3600)] {
        let mut talk = give_up_after(wanted);
        talk.write(10).wait(seconds * 1000 - 1).we_whatever();
        talk.ended("no");
        talk.wait(1).closed(CloseReason::TimedOut);
    }
}

#[test]
fn answered_probes_of_a_closed_window_reset_the_user_timeout() {
    let mut talk = Conversation::established();
    talk.tcb.set_user_timeout(machine::Micros(1));
    talk.peer(". 1:1 ack 1 win 0").write(10).silence();
    for _ in 0..20 {
        while talk.we_whatever() == 0 {
            talk.wait(1);
        }
        talk.peer(". 1:1 ack 1 win 0");
    }
    // The next probe is not answered for a second.
    while talk.we_whatever() == 0 {
        talk.wait(1);
    }
    talk.wait(999).silence();
    talk.ended("no");
    talk.wait(1).closed(CloseReason::TimedOut).silence();
}

#[test]
fn a_user_timeout_ends_an_attempt_to_connect() {
    let mut talk = Conversation::connecting();
    talk.tcb.set_user_timeout(machine::Micros::from_secs(5));
    talk.we("SEW 0:0").wait(1000).we("S 0:0").wait(2000).we("S 0:0").wait(1999).silence();
    talk.wait(1).closed(CloseReason::TimedOut).silence();
}
