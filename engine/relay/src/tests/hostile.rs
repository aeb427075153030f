//! Peers that violate SMTP.

use super::*;

/// A message to a peer that sends these segments one after the other. Returns the outcomes in
/// words.
fn outcome_of(segments: &[&str]) -> String {
    let mut harness = ClientHarness::with_tls(TlsMode::Never);
    harness.deliver(outgoing(&["bob@there.test"]));
    for segment in segments {
        harness.hears(segment);
    }
    assert!(harness.is_over, "{segments:?}");
    let outcomes = harness.outcomes();
    assert_eq!(outcomes.len(), 1, "{outcomes:?}");
    outcomes.into_iter().next().unwrap()
}

fn misbehaved(what: &str, when: &str) -> String {
    std::format!("1 later 4.5.0 the other server broke the SMTP protocol ({what}) {when}")
}

#[test]
fn invalid_reply_ends_the_connection() {
    for garbage in [
        "SSH-2.0-x\r\n",
        "\r\n",
        "22\r\n",
        "220x\r\n",
        "120 wait\r\n",
        "620 x\r\n",
        "2a0 x\r\n",
        "\0\0\0\n",
    ] {
        assert_eq!(
            outcome_of(&[garbage]),
            misbehaved("an invalid reply", "before its greeting"),
            "{garbage:?}"
        );
    }
    assert_eq!(
        outcome_of(&["220-x\r\n250 y\r\n"]),
        misbehaved("a reply with two codes", "before its greeting")
    );
}

#[test]
fn endless_lines_and_replies_end_the_connection() {
    let line = "x".repeat(4096);
    assert_eq!(
        outcome_of(&["220 ", &line]),
        misbehaved("a reply line that is too long", "before its greeting")
    );
    let lines = "220-x\r\n".repeat(129);
    assert_eq!(
        outcome_of(&[&lines]),
        misbehaved("a reply with too many lines", "before its greeting")
    );
}

#[test]
fn reply_before_its_command_is_not_trusted() {
    const EARLY: &str = "a reply before the command";
    // Our EHLO was not sent yet when the second reply came.
    assert_eq!(outcome_of(&["220 x\r\n250 SIZE 1\r\n"]), misbehaved(EARLY, "after EHLO"));
    assert_eq!(
        outcome_of(&["220 x\r\n", "250 x\r\n250 sender\r\n"]),
        misbehaved(EARLY, "before MAIL FROM")
    );
    assert_eq!(
        outcome_of(&["220 x\r\n", ABLE, "250 ok\r\n250 ok\r\n354 go\r\n250 taken\r\n"]),
        misbehaved(EARLY, "during the message")
    );
    let mut harness = ClientHarness::greeted(PLAIN);
    harness.hears("250 more\r\n");
    assert!(harness.is_over);
}

#[test]
fn reply_to_a_half_sent_command_is_early() {
    let mut harness = ClientHarness::greeted(ABLE);
    harness.client.deliver(outgoing(&["bob@there.test"]));
    let length = harness.client.output().len();
    harness.client.sent(length - 1);
    harness.client.arrived(b"250 ok\r\n250 ok\r\n");
    assert_eq!(harness.client.next_action(), None, "MAIL and RCPT were sent completely");
    harness.client.arrived(b"354 go\r\n");
    assert!(matches!(
        harness.client.next_action(),
        Some(Action::Done { outcome: DeliveryOutcome::Later(_), .. })
    ));
}

#[test]
fn reply_out_of_place_is_not_trusted() {
    for (segments, code, when) in [
        (&["354 go\r\n"][..], 354, "before its greeting"),
        (&["220 x\r\n", "354 go\r\n"], 354, "after EHLO"),
        (&["220 x\r\n", PLAIN, "354 go\r\n"], 354, "after MAIL FROM"),
        (&["220 x\r\n", PLAIN, "250 ok\r\n", "354 go\r\n"], 354, "after RCPT TO"),
        (&["220 x\r\n", PLAIN, "250 ok\r\n", "250 ok\r\n", "250 ok\r\n"], 250, "after DATA"),
        (
            &["220 x\r\n", PLAIN, "250 ok\r\n", "250 ok\r\n", "354 go\r\n", "354 go\r\n"],
            354,
            "after the end of the message, which it may have accepted",
        ),
    ] {
        assert_eq!(
            outcome_of(segments),
            misbehaved(&std::format!("an unexpected reply {code}"), when)
        );
    }
}

#[test]
fn bytes_after_the_end_are_ignored() {
    let mut harness = ClientHarness::greeted(PLAIN);
    harness.hears("nonsense\r\n");
    harness.exchange(&[("250 ok\r\n", ""), ("354 go\r\n", "")]);
    assert_eq!(harness.deliver(outgoing(&["bob@there.test"])), "");
    assert_eq!(harness.outcomes(), [misbehaved("an invalid reply", "between two messages")]);
}

#[test]
fn peer_that_refuses_rset_is_left() {
    let mut harness = ClientHarness::greeted(PLAIN);
    harness.deliver(outgoing(&["bob@there.test"]));
    harness.exchange(&[
        ("250 ok\r\n", "RCPT TO:<bob@there.test>\r\n"),
        ("550 no\r\n", "RSET\r\n"),
        ("500 ?\r\n", ""),
    ]);
    assert!(harness.is_over && !harness.is_idle);
    assert_eq!(harness.outcomes().len(), 1);
}
