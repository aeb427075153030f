//! Every state against every kind of segment: RFC 9293 §3.10.7.4 as a table.
//!
//! Each row is a state and how to reach it. Each column is a segment. Each cell is the answer and
//! the next state.

use super::Conversation;

/// Brings a connection to the state of that name. Our FIN, if sent, has the number 1; so does the
/// peer's FIN.
fn brought_to(state: &str) -> Conversation {
    let mut talk = Conversation::established();
    match state {
        "Established" => {}
        "FinWait1" => {
            talk.close();
        }
        "FinWait2" => {
            talk.close().peer(". 1:1 ack 2");
        }
        "CloseWait" => {
            talk.peer("F. 1:1 ack 1");
        }
        "Closing" => {
            talk.close().peer("F. 1:1 ack 1");
        }
        "LastAck" => {
            talk.peer("F. 1:1 ack 1").close();
        }
        "TimeWait" => {
            talk.close().peer("F. 1:1 ack 2");
        }
        "Closed" => {
            talk.abort();
        }
        other => panic!("no such state: {other}"),
    }
    talk.we_whatever();
    assert_eq!(talk.state(), state);
    talk
}

/// `(state, whether the peer's FIN has arrived, whether ours was sent, whether ours was
/// acknowledged)`
const STATES: [(&str, bool, bool, bool); 8] = [
    ("Established", false, false, false),
    ("FinWait1", false, true, false),
    ("FinWait2", false, true, true),
    ("CloseWait", true, false, false),
    ("Closing", true, true, false),
    ("LastAck", true, true, false),
    ("TimeWait", true, true, true),
    ("Closed", true, true, true),
];

/// Sends a segment with `flags` and `text` bytes, at `ahead` of the expected number, with the
/// current acknowledgment. Returns the connection, and the number of segments that it sent.
fn hears(state: &str, flags: &str, ahead: i64, text: i64) -> (Conversation, usize) {
    let (_, fin_arrived, _, our_fin_acknowledged) =
        STATES.into_iter().find(|row| row.0 == state).unwrap();
    let mut talk = brought_to(state);
    let start = 1 + i64::from(fin_arrived) + ahead;
    let ack = 1 + i64::from(our_fin_acknowledged);
    talk.peer(&alloc::format!("{flags} {start}:{} ack {ack}", start + text));
    let sent = talk.we_whatever();
    (talk, sent)
}

#[test]
fn an_exact_reset_ends_every_state_but_time_wait() {
    for (state, ..) in STATES {
        let (talk, sent) = hears(state, "R.", 0, 0);
        assert_eq!(sent, 0, "{state}");
        assert_eq!(talk.state(), if state == "TimeWait" { "TimeWait" } else { "Closed" });
        assert_eq!(
            talk.actions.closed.is_some(),
            !matches!(state, "TimeWait" | "Closed"),
            "{state}"
        );
    }
}

#[test]
fn a_reset_elsewhere_in_the_window_is_challenged_in_every_state() {
    for (state, ..) in STATES {
        let (talk, sent) = hears(state, "R.", 5, 0);
        assert_eq!(sent, usize::from(state != "Closed"), "{state}");
        assert_eq!(talk.state(), state);
    }
}

#[test]
fn a_syn_is_challenged_in_every_state() {
    for (state, ..) in STATES {
        for flags in ["S", "S."] {
            let (talk, sent) = hears(state, flags, 0, 0);
            assert_eq!(sent, usize::from(state != "Closed"), "{state}");
            assert_eq!(talk.state(), state);
        }
    }
}

#[test]
fn an_acknowledgment_of_nothing_new_changes_no_state() {
    for (state, ..) in STATES {
        let (talk, sent) = hears(state, ".", 0, 0);
        assert_eq!(sent, 0, "{state}");
        assert_eq!(talk.state(), state);
    }
}

#[test]
fn an_ack_of_our_fin_advances_the_states_that_wait_for_it() {
    for (state, after) in [("FinWait1", "FinWait2"), ("Closing", "TimeWait"), ("LastAck", "Closed")]
    {
        let mut talk = brought_to(state);
        let at = if state == "FinWait1" { 1 } else { 2 };
        talk.peer(&alloc::format!(". {at}:{at} ack 2")).silence();
        assert_eq!(talk.state(), after);
        assert_eq!(talk.actions.closed.is_some(), state != "FinWait1");
    }
}

#[test]
fn an_ack_of_unsent_data_is_challenged_in_every_state() {
    for (state, fin_arrived, our_fin, _) in STATES {
        let mut talk = brought_to(state);
        let at = 1 + u32::from(fin_arrived);
        let ack = 2 + u32::from(our_fin);
        talk.peer(&alloc::format!("F. {at}:{at} ack {ack}"));
        assert_eq!(talk.we_whatever(), usize::from(state != "Closed"), "{state}");
        assert_eq!(talk.state(), state);
    }
}

#[test]
fn data_is_delivered_until_the_peers_fin_and_never_after() {
    for (state, fin_arrived, ..) in STATES {
        let (mut talk, mut sent) = hears(state, "P.", 0, 10);
        talk.wait(40);
        sent += talk.we_whatever();
        assert_eq!(talk.given, if fin_arrived { 0 } else { 10 }, "{state}");
        assert_eq!(sent, usize::from(state != "Closed"), "{state}");
        assert_eq!(talk.state(), state);
    }
}

#[test]
fn a_fin_is_acknowledged_in_every_state() {
    let after = |state| match state {
        "Established" => "CloseWait",
        "FinWait1" => "Closing",
        "FinWait2" => "TimeWait",
        other => other,
    };
    for (state, fin_arrived, ..) in STATES {
        let (talk, sent) = hears(state, "F.", if fin_arrived { -1 } else { 0 }, 0);
        assert_eq!(talk.state(), after(state));
        assert_eq!(sent, usize::from(state != "Closed"), "{state}");
        assert_eq!(talk.actions.peer_closed, !fin_arrived, "{state}");
    }
}

#[test]
fn a_segment_outside_the_window_is_answered_and_ignored() {
    for (state, ..) in STATES {
        for (ahead, text) in [(-20, 10), (300_000, 10), (-20, 0), (300_000, 0)] {
            let (talk, sent) = hears(state, "F.", ahead, text);
            assert_eq!(sent, usize::from(state != "Closed"), "{state}");
            assert_eq!(talk.state(), state);
            assert_eq!(talk.given, 0);
        }
    }
}

#[test]
fn a_segment_without_flags_is_dropped_in_every_state() {
    for (state, fin_arrived, ..) in STATES {
        let mut talk = brought_to(state);
        let at = 1 + u32::from(fin_arrived);
        talk.peer(&alloc::format!("F {at}:{}", at + 10)).silence();
        assert_eq!(talk.state(), state);
    }
}

#[test]
fn the_session_may_queue_only_before_it_closes() {
    for (state, ..) in STATES {
        let mut talk = brought_to(state);
        let may = matches!(state, "Established" | "CloseWait");
        assert_eq!(talk.tcb.send_room(&talk.pools) > 0, may, "{state}");
        assert_eq!(talk.tcb.send(talk.now, b"x", &mut talk.pools), usize::from(may), "{state}");
    }
}

#[test]
fn an_abort_sends_a_reset_while_the_peer_is_connected() {
    for (state, ..) in STATES {
        let mut talk = brought_to(state);
        talk.abort();
        assert_eq!(
            talk.we_whatever(),
            usize::from(!matches!(state, "TimeWait" | "Closed")),
            "{state}"
        );
        talk.ended("gone");
    }
}
