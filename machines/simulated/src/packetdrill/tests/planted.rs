//! Tests that a script with a false expectation fails at the line of the expectation.

use super::{established, failure};

/// A conversation with every kind of event. In the whole script the first of these lines has the
/// number 10.
const TALK: [&str; 12] = [
    "+.1 < P. 1:101(100) ack 1 win 32000",
    "+.04 > . 1:1(0) ack 101 win 65435",
    "+0 read(4, ..., 1000) = 100",
    "+0 write(4, ..., 2500) = 2500",
    "+0 > . 1:1001(1000) ack 101",
    "+0 > . 1001:2001(1000) ack 101",
    "+0 > P. 2001:2501(500) ack 101",
    "+.1 < . 101:101(0) ack 2501 win 32000",
    "+0 read(4, ..., 1000) = -1 EAGAIN (Resource temporarily unavailable)",
    "+0 close(4) = 0",
    "+0 > F. 2501:2501(0) ack 101",
    "+.1 < F. 101:101(0) ack 2502 win 32000",
];

fn talk(lines: &[&str]) -> String {
    format!("+0 fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n{}", lines.join("\n"))
}

#[test]
fn a_script_with_correct_expectations_passes() {
    let outcome = established(&talk(&TALK));
    assert_eq!(outcome.verdict, crate::Verdict::Passed);
    assert_eq!(outcome.liberties, []);
}

#[test]
fn every_false_expectation_is_found_at_its_line() {
    for (index, is, planted) in [
        (1, "+.04 > . 1:1(0) ack 101 win 65435", "+.04 > . 1:1(0) ack 101 win 65434"),
        (1, "", "+.04 > . 1:1(0) ack 102 win 65435"),
        (1, "", "+.04 > . 2:2(0) ack 101 win 65435"),
        (1, "", "+.04 > P. 1:1(0) ack 101 win 65435"),
        (1, "", "+.04 > . 1:1(0) ack 101 win 65435 <nop,nop,TS val 1 ecr 1>"),
        (1, "", "+.04 > [ect0] . 1:1(0) ack 101 win 65435"),
        (1, "", "+.04 > (ttl 63) . 1:1(0) ack 101 win 65435"),
        (2, "", "+0 read(4, ..., 1000) = 99"),
        (2, "", "+0 read(4, ..., 1000) = 0"),
        (3, "", "+0 write(3, ..., 2500) = 2500"),
        (4, "", "+0 > . 1:1002(1001) ack 101"),
        (4, "", "+0 > . 1:1000(999) ack 101"),
        (4, "", "+.2 > . 1:1001(1000) ack 101"),
        (4, "", "+.2~+.3 > . 1:1001(1000) ack 101"),
        (4, "", "+0 > R. 1:1(0) ack 101"),
        (5, "", "+0 > . 2001:2501(500) ack 101"),
        (6, "", "+0 > . 2001:2501(500) ack 101"),
        (8, "", "+0 read(4, ..., 1000) = -1 ECONNRESET (Connection reset by peer)"),
        (9, "", "+0 close(7) = 0"),
        (10, "", "+0 > . 2501:2501(0) ack 101"),
        (10, "", "+0 > F. 2501:2501(0) ack 101 <mss 7>"),
    ] {
        let mut lines = TALK;
        assert!(is.is_empty() || lines[index] == is);
        lines[index] = planted;
        let outcome = established(&talk(&lines));
        // A script that expects ECN from an engine without ECN is not applicable.
        if let crate::Verdict::NotApplicable { reason, .. } = &outcome.verdict {
            assert!(reason.contains("ECN"), "{planted}: {reason}");
            continue;
        }
        let (line, _) = failure(&outcome);
        assert_eq!(line, index + 10, "{planted}: {}", outcome.verdict);
    }
}

#[test]
fn a_missing_packet_fails_the_script() {
    let (line, seen) = failure(&established("+.1 > . 1:1(0) ack 1"));
    assert_eq!((line, seen.as_str()), (9, "nothing"));
}

#[test]
fn a_call_that_never_returns_fails_the_script() {
    let (line, seen) = failure(&established("+0...0.5 read(4, ..., 10) = 10"));
    assert_eq!(line, 9);
    assert!(seen.contains("for ever") || seen.contains("its return"), "{seen}");
}

#[test]
fn a_time_before_the_previous_event_fails_the_script() {
    assert_eq!(failure(&established("1 close(4) = 0\n0.5 close(3) = 0")).0, 10);
}
