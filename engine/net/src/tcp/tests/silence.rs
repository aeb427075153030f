//! What happens when nothing happens.

use super::Conversation;
use crate::tcp::CloseReason;

#[test]
fn an_idle_connection_owns_nothing_and_is_asked_after_five_minutes() {
    let mut talk = Conversation::established();
    talk.lent_nothing();
    talk.wait(299_000).silence().wait(1100).we(". 0:0 ack 1").silence();
    talk.peer(". 1:1 ack 1").silence();
    talk.wait(299_000).silence().wait(1100).we(". 0:0 ack 1").silence();
}

#[test]
fn a_peer_that_does_not_answer_is_given_up() {
    let mut talk = Conversation::established();
    talk.wait(301_000).we(". 0:0 ack 1").silence();
    for _ in 0..3 {
        talk.wait(30_000).we(". 0:0 ack 1").silence();
    }
    talk.wait(30_000).closed(CloseReason::TimedOut).silence();
    talk.ended("gone");
}

#[test]
fn a_peer_that_speaks_is_not_asked() {
    let mut talk = Conversation::established();
    for minute in 0..60 {
        talk.wait(60_000).peer(&alloc::format!("P. {}:{} ack 1", minute + 1, minute + 2)).wait(40);
        talk.we(&alloc::format!(". 1:1 ack {}", minute + 2)).silence();
    }
}

#[test]
fn a_deadline_looked_at_too_early_does_nothing() {
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
        talk.wait(199).silence().wait(1);
        assert_eq!(talk.we_whatever(), 1);
        at += 1;
        talk.peer(&alloc::format!(". 1:1 ack {at}"));
        talk.write(1).we_whatever();
        at += 1;
        talk.peer(&alloc::format!(". 1:1 ack {at}")).silence();
    }
}

#[test]
fn a_vanished_peer_with_bytes_on_the_way_costs_few_deadlines() {
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
