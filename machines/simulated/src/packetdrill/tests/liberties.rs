//! Tests of liberties: a difference that the RFCs leave to the host is noted and does not fail a
//! script. A difference that the RFCs forbid fails the script.

use super::{ESTABLISHED, established, failure, reason};
use crate::{Outcome, Verdict, play};

/// Like [`established`], but the script has a command for another kernel. So its windows depend on
/// that kernel's buffers.
fn foreign(lines: &str) -> Outcome {
    play(&format!("`../../common/defaults.sh`\n{ESTABLISHED}{lines}\n"))
}

fn liberties(outcome: &Outcome) -> Vec<&str> {
    assert_eq!(outcome.verdict, Verdict::Passed, "{:?}", outcome.liberties);
    outcome.liberties.iter().map(|(_, what)| what.split(':').next().unwrap()).collect()
}

const ARRIVES: &str = "+.1 < . 1:1001(1000) ack 1 win 32000\n";

#[test]
fn an_acknowledgment_may_be_delayed_up_to_half_a_second() {
    let early = format!("{ARRIVES}+0 > . 1:1(0) ack 1001");
    assert_eq!(liberties(&established(&early)), ["an acknowledgment at another moment"]);
    let late = format!("{ARRIVES}+.3 > . 1:1(0) ack 1001");
    assert_eq!(liberties(&established(&late)), ["an acknowledgment at another moment"]);
    let too_late = format!("{ARRIVES}+.7 > . 1:1(0) ack 1001");
    failure(&established(&too_late));
}

#[test]
fn a_duplicate_acknowledgment_must_be_on_time() {
    // A segment after a gap must be acknowledged at once.
    failure(&established("+.1 < . 501:1001(500) ack 1 win 32000\n+.1 > . 1:1(0) ack 1"));
}

#[test]
fn acknowledging_every_segment_or_fewer_is_a_liberty() {
    let two = "+.1 < . 1:1001(1000) ack 1 win 32000\n+0 < . 1001:2001(1000) ack 1 win 32000\n";
    let one_each = format!("{two}+0 > . 1:1(0) ack 1001\n+0 > . 1:1(0) ack 2001");
    assert_eq!(liberties(&established(&one_each)), ["an acknowledgment less"]);
    let none = format!("{two}+.1 write(4, ..., 10) = 10\n+0 > P. 1:11(10) ack 2001");
    assert_eq!(liberties(&established(&none)), ["an acknowledgment more"]);
    failure(&established(&format!("{two}+0 > . 1:1(0) ack 3001")));
}

#[test]
fn window_size_is_a_liberty_only_in_foreign_scripts() {
    let lines = format!("{ARRIVES}+.04 > . 1:1(0) ack 1001 win 229");
    assert_eq!(liberties(&foreign(&lines)).len(), 1);
    failure(&established(&lines));
    // A host is free to choose the size of an open window, but not to close the window.
    failure(&foreign(&format!("{ARRIVES}+.04 > . 1:1(0) ack 1001 win 0")));
}

#[test]
fn the_window_scale_is_a_liberty_and_its_presence_is_not() {
    let script = |ours: &str| {
        format!(
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
             +0 < S 0:0(0) win 32000 <mss 1000,nop,wscale 7>\n+0 > S. 0:0(0) ack 1 <mss 1460{ours}>\n"
        )
    };
    assert_eq!(liberties(&play(&script(",nop,wscale 14"))).len(), 1);
    failure(&play(&script("")));
}

#[test]
fn the_order_of_tcp_options_is_ignored() {
    let script = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
                  +0 < S 0:0(0) win 32000 <mss 1000,nop,wscale 7>\n+0 > S. 0:0(0) ack 1 <nop,wscale 3,eol,mss 1460>\n";
    assert_eq!(play(script).verdict, Verdict::Passed);
}

#[test]
fn segmentation_is_a_liberty_unless_the_script_is_strict() {
    let lines = "+0 write(4, ..., 3000) = 3000\n+0 > P. 1:3001(3000) ack 1";
    assert_eq!(liberties(&established(lines)), [""; 0]);
    failure(&play(&format!("--strict_segments\n{ESTABLISHED}{lines}\n")));
}

#[test]
fn a_smaller_send_buffer_makes_a_script_not_applicable() {
    let lines =
        "+0 setsockopt(4, SOL_SOCKET, SO_SNDBUF, [4000], 4) = 0\n+0 write(4, ..., 100000) = 8000";
    assert!(reason(&established(lines)).contains("buffer"));
}

#[test]
fn a_script_is_not_applicable_after_a_segment_beyond_the_window() {
    let lines = "+.1 < R 65700:65700(0) win 0\n+0 > . 1:1(0) ack 1";
    assert!(reason(&foreign(lines)).contains("window"));
    failure(&established(lines));
}

#[test]
fn requesting_ecn_in_our_syn_is_a_liberty() {
    let script = |flags: &str| {
        play(&format!(
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n\
             +0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)\n+0 > {flags} 0:0(0) <...>\n"
        ))
    };
    assert_eq!([script("S").verdict, script("SEW").verdict], [Verdict::Passed, Verdict::Passed]);
    failure(&script("SE"));
}
