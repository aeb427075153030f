//! Tests the answer to every kind of segment in every TCP state: RFC 9293 section 3.10.7, with RFC
//! 5961 and RFC 1337.

use super::{ESTABLISHED, play};
use crate::Verdict;

const LISTEN: &str =
    "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n";

/// The script that brings a connection to a state, the sequence number that the connection expects
/// next, and the sequence number that it sends next.
fn brought_to(state: &str) -> (String, u32, u32) {
    let fin = "+0 shutdown(4, SHUT_WR) = 0\n+0 > F. 1:1(0) ack 1\n";
    let acknowledged = "+.01 < . 1:1(0) ack 2 win 32000\n";
    let their_fin = "+.01 < F. 1:1(0) ack 1 win 32000\n+0 > . 1:1(0) ack 2\n";
    let (lines, expects, sends) = match state {
        "ESTABLISHED" => (String::new(), 1, 1),
        "FIN-WAIT-1" => (fin.to_string(), 1, 2),
        "FIN-WAIT-2" => (format!("{fin}{acknowledged}"), 1, 2),
        "CLOSE-WAIT" => (their_fin.to_string(), 2, 1),
        "CLOSING" => {
            (format!("{fin}+.01 < F. 1:1(0) ack 1 win 32000\n+0 > . 2:2(0) ack 2\n"), 2, 2)
        }
        "LAST-ACK" => (format!("{their_fin}+0 close(4) = 0\n+0 > F. 1:1(0) ack 2\n"), 2, 2),
        "TIME-WAIT" => {
            (format!("{fin}+.01 < F. 1:1(0) ack 2 win 32000\n+0 > . 2:2(0) ack 2\n"), 2, 2)
        }
        other => panic!("no such state: {other}"),
    };
    (format!("{ESTABLISHED}{lines}"), expects, sends)
}

const SYNCHRONIZED: [&str; 7] =
    ["ESTABLISHED", "FIN-WAIT-1", "FIN-WAIT-2", "CLOSE-WAIT", "CLOSING", "LAST-ACK", "TIME-WAIT"];

/// The packet that the engine sends when `segment` arrives after `lines`; empty for none.
fn answer(lines: &str, segment: &str) -> String {
    let script = format!("{lines}+.01 < {segment}\n+0 > R 4000000000:4000000000(0)\n");
    let Verdict::Failed { expected, seen, .. } = play(&script).verdict else { panic!("{script}") };
    let at = expected.rsplit(" at ").next().unwrap();
    let (packet, seen_at) = match seen.strip_prefix('`').and_then(|seen| seen.split_once("` at ")) {
        Some((packet, at)) => (packet, at.split(':').next().unwrap()),
        None => return String::new(),
    };
    // The window and the options are removed. Other tests check them.
    let words: Vec<&str> = packet.split(' ').take_while(|word| *word != "win").collect();
    if seen_at == at { words.join(" ") } else { String::new() }
}

fn each(segment: impl Fn(u32, u32) -> String, wanted: impl Fn(&str, u32, u32) -> String) {
    for state in SYNCHRONIZED {
        let (lines, expects, sends) = brought_to(state);
        let segment = segment(expects, sends);
        assert_eq!(answer(&lines, &segment), wanted(state, expects, sends), "{state}: {segment}");
    }
}

fn plain(sends: u32, expects: u32) -> String {
    format!(". {sends}:{sends}(0) ack {expects}")
}

#[test]
fn a_reset_with_the_next_number_ends_every_state_silently() {
    each(|expects, _| format!("R {expects}:{expects}(0) win 0"), |_, _, _| String::new());
    for state in SYNCHRONIZED {
        let (lines, expects, _) = brought_to(state);
        let gone = format!("{lines}+.01 < R {expects}:{expects}(0) win 0\n");
        let next = format!(". {expects}:{expects}(0) ack 700 win 32000");
        // After the reset the following segment belongs to no connection, except in TIME-WAIT,
        // which a reset does not end.
        let wanted = if state == "TIME-WAIT" { "" } else { "R 700:700(0)" };
        assert_eq!(answer(&gone, &next), wanted, "{state}");
    }
}

#[test]
fn a_reset_elsewhere_in_the_window_is_challenged() {
    each(
        |expects, _| format!("R {}:{}(0) win 0", expects + 5, expects + 5),
        |state, expects, sends| {
            if state == "TIME-WAIT" { String::new() } else { plain(sends, expects) }
        },
    );
}

#[test]
fn a_reset_outside_of_the_window_is_ignored() {
    each(|_, _| "R 900000:900000(0) win 0".to_string(), |_, _, _| String::new());
}

#[test]
fn a_syn_is_challenged_except_in_time_wait() {
    each(
        |expects, _| format!("S {}:{}(0) win 32000 <mss 1000>", expects + 5, expects + 5),
        |state, expects, sends| match state {
            "TIME-WAIT" => format!("S. 0:0(0) ack {}", expects + 6),
            _ => plain(sends, expects),
        },
    );
    each(
        |_, _| "S. 0:0(0) ack 1 win 32000 <mss 1000>".to_string(),
        |_, expects, sends| plain(sends, expects),
    );
}

#[test]
fn an_acknowledgment_of_unsent_bytes_is_challenged() {
    each(
        |expects, sends| format!(". {expects}:{expects}(0) ack {} win 32000", sends + 1000),
        |state, expects, sends| {
            if state == "TIME-WAIT" { String::new() } else { plain(sends, expects) }
        },
    );
}

#[test]
fn duplicate_bytes_are_acknowledged_again() {
    each(
        |expects, sends| format!(". {}:{expects}(1) ack {sends} win 32000", expects - 1),
        // The segment with the repeated byte also acknowledges our FIN, which ends the connection
        // in LAST-ACK.
        |state, expects, sends| {
            if state == "LAST-ACK" { String::new() } else { plain(sends, expects) }
        },
    );
}

#[test]
fn a_fin_is_acknowledged_at_once_in_every_state() {
    each(
        |expects, sends| format!("F. {expects}:{expects}(0) ack {sends} win 32000"),
        |state, expects, sends| match state {
            "ESTABLISHED" | "FIN-WAIT-1" | "FIN-WAIT-2" => plain(sends, expects + 1),
            // In the other states the peer has closed already. A further segment is answered with
            // our present acknowledgment.
            "LAST-ACK" => String::new(),
            _ => plain(sends, expects),
        },
    );
}

#[test]
fn listen_and_closed_answer_only_as_rfc_9293_says() {
    for (segment, wanted) in [
        ("S 0:0(0) win 32000 <mss 1000>", "S. 0:0(0) ack 1"),
        (". 5:5(0) ack 77 win 32000", "R 77:77(0)"),
        ("P. 5:15(10) ack 77 win 32000", "R 77:77(0)"),
        ("F. 5:5(0) ack 77 win 32000", "R 77:77(0)"),
        ("S. 5:5(0) ack 77 win 32000", "R 77:77(0)"),
        ("R 5:5(0) win 0", ""),
        ("R. 5:5(0) ack 77 win 0", ""),
        ("F 5:5(0) win 32000", ""),
        ("P 5:15(10) win 32000", ""),
        ("SF 0:0(0) win 32000", "R. 0:0(0) ack 2"),
        ("SR 0:0(0) win 32000", ""),
    ] {
        assert_eq!(answer(LISTEN, segment), wanted, "LISTEN: {segment}");
    }
    for (segment, wanted) in [
        (". 5:5(0) ack 77 win 32000", "R 77:77(0)"),
        ("F 5:5(0) win 32000", "R. 0:0(0) ack 6"),
        ("P 5:15(10) win 32000", "R. 0:0(0) ack 15"),
        ("R 5:5(0) win 0", ""),
    ] {
        assert_eq!(answer("", &format!("{segment}\n")).trim(), wanted, "CLOSED: {segment}");
    }
}

#[test]
fn in_syn_sent_only_an_answer_to_our_syn_is_accepted() {
    let lines = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n\
                 +0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)\n+0 > S 0:0(0) <...>\n";
    for (segment, wanted) in [
        ("S. 0:0(0) ack 1 win 32000 <mss 1460>", ". 1:1(0) ack 1"),
        ("S 0:0(0) win 32000 <mss 1460>", "S. 0:0(0) ack 1"),
        (". 0:0(0) ack 77 win 32000", "R 77:77(0)"),
        ("S. 0:0(0) ack 77 win 32000 <mss 1460>", "R 77:77(0)"),
        (". 0:0(0) ack 1 win 32000", ""),
        ("F 0:0(0) win 32000", ""),
        ("R 0:0(0) win 0", ""),
        ("R. 0:0(0) ack 77 win 0", ""),
        ("R. 0:0(0) ack 1 win 0", ""),
    ] {
        assert_eq!(answer(lines, segment), wanted, "SYN-SENT: {segment}");
    }
}

#[test]
fn a_simultaneous_open_accepts_only_a_completing_segment() {
    let lines = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n\
                 +0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)\n+0 > S 0:0(0) <...>\n\
                 +.01 < S 0:0(0) win 32000 <mss 1000>\n+0 > S. 0:0(0) ack 1 <mss 1460>\n";
    for (segment, wanted) in [
        (". 1:1(0) ack 1 win 32000", ""),
        ("S. 0:0(0) ack 1 win 32000 <mss 1000>", ""),
        ("F. 1:1(0) ack 1 win 32000", ". 1:1(0) ack 2"),
        (". 1:1(0) ack 77 win 32000", ". 1:1(0) ack 1"),
        ("S 9:9(0) win 32000 <mss 1000>", ". 1:1(0) ack 1"),
        ("R 1:1(0) win 0", ""),
        ("R 9:9(0) win 0", ". 1:1(0) ack 1"),
        ("R 900000:900000(0) win 0", ""),
        (". 900000:900000(0) ack 1 win 32000", ". 1:1(0) ack 1"),
        ("F 1:1(0) win 32000", ""),
    ] {
        assert_eq!(answer(lines, segment), wanted, "SYN-RECEIVED: {segment}");
    }
}

#[test]
fn syn_received_accepts_only_a_completing_segment() {
    let lines =
        format!("{LISTEN}+0 < S 0:0(0) win 32000 <mss 1000>\n+0 > S. 0:0(0) ack 1 <mss 1460>\n");
    for (segment, wanted) in [
        (". 1:1(0) ack 1 win 32000", ""),
        ("S 0:0(0) win 32000 <mss 1000>", "S. 0:0(0) ack 1"),
        ("S 9:9(0) win 32000 <mss 1000>", ". 1:1(0) ack 1"),
        (". 1:1(0) ack 77 win 32000", "R 77:77(0)"),
        ("R 1:1(0) win 0", ""),
        ("R 9:9(0) win 0", ". 1:1(0) ack 1"),
        ("R 900000:900000(0) win 0", ""),
        (". 900000:900000(0) ack 1 win 32000", ". 1:1(0) ack 1"),
        ("F. 1:1(0) ack 1 win 32000", ". 1:1(0) ack 2"),
    ] {
        assert_eq!(answer(&lines, segment), wanted, "SYN-RECEIVED: {segment}");
    }
}
