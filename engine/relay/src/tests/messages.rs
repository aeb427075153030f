//! Messages and their outcomes, by RFC 5321 sections 4.2.1 and 4.3.2.

use machine::UnixTime;

use super::*;
use crate::{Notify, Return};

#[test]
fn message_is_sent_step_by_step_without_pipelining() {
    let mut harness = ClientHarness::greeted(PLAIN);
    assert_eq!(
        harness.deliver(outgoing(&["bob@there.test", "eve@there.test"])),
        "MAIL FROM:<ada@us.test>\r\n"
    );
    harness.exchange(&[
        ("250 ok\r\n", "RCPT TO:<bob@there.test>\r\n"),
        ("251 forwarded\r\n", "RCPT TO:<eve@there.test>\r\n"),
        ("250 ok\r\n", "DATA\r\n"),
        ("354 go\r\n", "Subject: x\r\n\r\n..dot\r\n.\r\n"),
        ("250 2.0.0 taken\r\n", ""),
    ]);
    assert_eq!(harness.outcomes(), ["1 delivered 250 2.0.0 taken", "2 delivered 250 2.0.0 taken"]);
    assert!(harness.is_idle && !harness.is_over);
}

#[test]
fn message_is_pipelined_if_the_peer_offers_it() {
    let mut harness = ClientHarness::greeted(ABLE);
    assert_eq!(
        harness.deliver(outgoing(&["bob@there.test", "eve@there.test"])),
        "MAIL FROM:<ada@us.test> SIZE=19\r\nRCPT TO:<bob@there.test>\r\nRCPT TO:<eve@there.test>\r\nDATA\r\n"
    );
    harness.exchange(&[
        ("250 ok\r\n250 ok\r\n", ""),
        ("550 5.1.1 unknown\r\n354 go\r\n", "Subject: x\r\n\r\n..dot\r\n.\r\n"),
        ("250 taken\r\n", ""),
    ]);
    assert_eq!(
        harness.outcomes(),
        [
            "2 never 5.1.1 the other server refused the recipient: 550 5.1.1 unknown",
            "1 delivered 250 taken"
        ]
    );
    assert!(harness.is_idle);
}

#[test]
fn messages_follow_each_other_on_one_connection() {
    for hello in [ABLE, PLAIN] {
        let mut harness = ClientHarness::greeted(hello);
        for _ in 0..3 {
            harness.deliver(outgoing(&["bob@there.test"]));
            let replies = ["250 ok\r\n", "250 ok\r\n", "354 go\r\n", "250 taken\r\n"];
            replies.iter().for_each(|reply| drop(harness.hears(reply)));
            assert!(core::mem::take(&mut harness.is_idle));
            assert_eq!(harness.outcomes(), ["1 delivered 250 taken"]);
        }
    }
}

/// Checks the outcomes for two recipients, and whether the connection can be used again. `replies`:
/// to MAIL, RCPT, RCPT, DATA and the message, from a peer with pipelining and from a peer without.
/// A reply is empty where the peer has nothing to answer.
fn check_outcomes(replies: [&str; 5], expected: &[&str], is_idle: bool) {
    for hello in ["250-x\r\n250 PIPELINING\r\n", PLAIN] {
        let mut harness = ClientHarness::greeted(hello);
        harness.deliver(outgoing(&["bob@there.test", "eve@there.test"]));
        let is_pipelined = hello != PLAIN;
        let mut last = String::new();
        for (place, reply) in replies.iter().enumerate() {
            // With pipelining, everything up to DATA is answered.
            let reply = if reply.is_empty() && is_pipelined && place < 4 {
                "503 bad sequence"
            } else {
                reply
            };
            if !reply.is_empty() && !harness.is_over {
                last = harness.hears(&std::format!("{reply}\r\n"));
            }
        }
        if last == "RSET\r\n" {
            assert_eq!(harness.hears("250 ok\r\n"), "");
        }
        let mut found = harness.outcomes();
        found.sort();
        assert_eq!(found, expected, "{hello:?} {replies:?}");
        assert_eq!(
            (harness.is_idle, harness.is_over),
            (is_idle, !is_idle),
            "{hello:?} {replies:?}"
        );
    }
}

#[test]
fn refused_sender_ends_all_recipients() {
    let never = "never 5.1.8 the other server refused the sender: 550 no";
    check_outcomes(
        ["550 no", "", "", "", ""],
        &[&std::format!("1 {never}"), &std::format!("2 {never}")],
        true,
    );
    let later = "later 4.7.1 the other server refused the sender: 451 4.7.1 wait";
    check_outcomes(
        ["451 4.7.1 wait", "", "", "", ""],
        &[&std::format!("1 {later}"), &std::format!("2 {later}")],
        true,
    );
}

#[test]
fn recipients_are_refused_separately() {
    let gone = "never 5.1.0 the other server refused the recipient: 550 no";
    let full = "later 4.2.2 the other server refused the recipient: 452 4.2.2 full";
    check_outcomes(
        ["250 ok", "550 no", "250 ok", "354 go", "250 taken"],
        &[&std::format!("1 {gone}"), "2 delivered 250 taken"],
        true,
    );
    check_outcomes(
        ["250 ok", "250 ok", "452 4.2.2 full", "354 go", "250 taken"],
        &["1 delivered 250 taken", &std::format!("2 {full}")],
        true,
    );
    check_outcomes(
        ["250 ok", "550 no", "452 4.2.2 full", "", ""],
        &[&std::format!("1 {gone}"), &std::format!("2 {full}")],
        true,
    );
}

#[test]
fn message_is_refused_at_data_or_after_its_end() {
    for (reply, expected) in [
        ("554 5.6.0 no", "never 5.6.0 the other server refused the message: 554 5.6.0 no"),
        ("451 no", "later 4.6.0 the other server refused the message: 451 no"),
    ] {
        let both = [std::format!("1 {expected}"), std::format!("2 {expected}")];
        let both = both.each_ref().map(String::as_str);
        check_outcomes(["250 ok", "250 ok", "250 ok", reply, ""], &both, true);
        check_outcomes(["250 ok", "250 ok", "250 ok", "354 go", reply], &both, true);
    }
}

#[test]
fn empty_message_is_sent_if_all_recipients_were_refused() {
    let mut harness = ClientHarness::greeted(ABLE);
    harness.deliver(outgoing(&["bob@there.test"]));
    harness.exchange(&[("250 ok\r\n550 5.1.1 no\r\n354 go\r\n", ".\r\n"), ("250 taken\r\n", "")]);
    assert_eq!(
        harness.outcomes(),
        ["1 never 5.1.1 the other server refused the recipient: 550 5.1.1 no"]
    );
    assert!(harness.is_idle);
}

#[test]
fn reply_421_ends_the_connection_at_any_time() {
    let replies = ["220 x\r\n", ABLE, "250 ok\r\n", "550 5.1.1 no\r\n", "250 ok\r\n", "354 go\r\n"];
    for count in 0..=replies.len() {
        let mut harness = ClientHarness::with_tls(TlsMode::Never);
        harness.deliver(outgoing(&["bob@there.test", "eve@there.test"]));
        replies.iter().take(count).for_each(|reply| drop(harness.hears(reply)));
        harness.hears("421 4.3.2 going\r\n");
        assert!(harness.is_over);
        let outcomes = harness.outcomes();
        let is_told = |outcome: &String| outcome.contains("later 4.3.2 the other server");
        assert_eq!(outcomes.len(), 2, "{count}: {outcomes:?}");
        assert_eq!(
            outcomes.iter().filter(|outcome| is_told(outcome)).count(),
            if count > 3 { 1 } else { 2 }
        );
    }
    let mut harness = ClientHarness::greeted(PLAIN);
    harness.exchange(&[("421 idle for too long\r\n", "")]);
    assert!(harness.is_over && harness.outcomes.is_empty());
}

#[test]
fn lost_connection_defers_open_recipients() {
    let replies = ["220 x\r\n", ABLE, "250 ok\r\n", "550 5.1.1 no\r\n", "250 ok\r\n", "354 go\r\n"];
    let stages = [
        "before its greeting",
        "after EHLO",
        "after MAIL FROM",
        "after RCPT TO",
        "after RCPT TO",
        "after DATA",
        "after the end of the message, which it may have accepted",
    ];
    for (count, stage) in stages.iter().enumerate() {
        let mut harness = ClientHarness::with_tls(TlsMode::Never);
        harness.deliver(outgoing(&["bob@there.test", "eve@there.test"]));
        replies.iter().take(count).for_each(|reply| drop(harness.hears(reply)));
        harness.lost(Lost::Silence);
        let last = std::format!("2 later 4.4.2 the other server did not respond in time {stage}");
        assert_eq!(harness.outcomes().last(), Some(&last));
        harness.client.lost(Lost::Closed);
        assert!(harness.client.next_action().is_none(), "the connection is lost once");
    }
}

#[test]
fn refusal_during_the_message_is_its_answer() {
    let mut harness = ClientHarness::greeted(ABLE);
    harness.is_bringing = false;
    harness.deliver(outgoing(&["bob@there.test"]));
    harness.exchange(&[("250 ok\r\n250 ok\r\n354 go\r\n", "")]);
    assert!(harness.wants_body);
    harness.client.body(b"so much\r\n");
    assert_eq!(harness.says(), "so much\r\n");
    harness.exchange(&[("552 5.3.4 too much\r\n", "")]);
    assert_eq!(
        harness.outcomes(),
        ["1 never 5.3.4 the other server refused the message: 552 5.3.4 too much"]
    );
    assert!(harness.is_over);
    assert_eq!(harness.client.body(b"more"), 4, "further bytes are discarded");
    assert_eq!(harness.says(), "");
}

#[test]
fn reply_552_to_rcpt_means_too_many_recipients() {
    for (reply, expected) in [
        ("552 too many", "1 later 4.1.0 the other server refused the recipient: 552 too many"),
        (
            "552 5.5.3 too many",
            "1 later 4.5.3 the other server refused the recipient: 552 5.5.3 too many",
        ),
        ("552 5.2.2 full", "1 never 5.2.2 the other server refused the recipient: 552 5.2.2 full"),
    ] {
        let mut harness = ClientHarness::greeted(PLAIN);
        harness.deliver(outgoing(&["bob@there.test"]));
        harness.hears("250 ok\r\n");
        harness.hears(&std::format!("{reply}\r\n"));
        assert_eq!(harness.outcomes(), [expected]);
    }
}

#[test]
fn unsupported_message_is_not_sent() {
    type Change = fn(&mut OutgoingMessage);
    let cases: [(&str, Change, &str); 6] = [
        (
            "250-x\r\n250 SIZE 18\r\n",
            |_| {},
            "5.3.4 the other server accepts messages of at most 18 bytes",
        ),
        (
            PLAIN,
            |it| it.envelope.script = Script::Utf8,
            "5.6.9 the other server does not support headers with non-ASCII characters",
        ),
        (
            PLAIN,
            |it| it.envelope.reverse_path = "æda@us.test".into(),
            "5.6.7 the other server does not support addresses with non-ASCII characters",
        ),
        (
            PLAIN,
            |it| it.envelope.recipients[0].address = "bøb@x.test".into(),
            "5.6.7 the other server does not support addresses with non-ASCII characters",
        ),
        (
            ABLE,
            |it| it.envelope.reverse_path = "@a.test:ada@us.test".into(),
            "5.1.7 the address is not valid",
        ),
        (
            ABLE,
            |it| it.envelope.reverse_path = "a>\r\nDATA\r\n@x".into(),
            "5.1.7 the address is not valid",
        ),
    ];
    for (hello, change, expected) in cases {
        let mut harness = ClientHarness::greeted(hello);
        let mut outgoing = outgoing(&["bob@there.test"]);
        change(&mut outgoing);
        assert_eq!(harness.deliver(outgoing), "");
        assert_eq!(harness.outcomes(), [std::format!("1 never {expected}")]);
        assert!(harness.is_idle);
    }
}

/// A message that has this content, according to its envelope.
fn of(content: ContentWidth) -> OutgoingMessage {
    let mut outgoing = outgoing(&["bob@there.test"]);
    outgoing.envelope.content = content;
    outgoing
}

#[test]
fn ascii_message_is_sent_to_ascii_only_peer() {
    for content in [ContentWidth::SevenBit, ContentWidth::EightBit] {
        let mut harness = ClientHarness::greeted(PLAIN);
        harness.message = b"Subject: x\r\n\r\n.dot\r\n".repeat(2000);
        assert_eq!(harness.deliver(of(content)), "MAIL FROM:<ada@us.test>\r\n");
        harness.exchange(&[
            ("250 ok\r\n", "RCPT TO:<bob@there.test>\r\n"),
            ("250 ok\r\n", "DATA\r\n"),
        ]);
        assert_eq!(
            harness.hears("354 go\r\n"),
            "Subject: x\r\n\r\n..dot\r\n".repeat(2000) + ".\r\n"
        );
        harness.hears("250 taken\r\n");
        assert_eq!(harness.outcomes(), ["1 delivered 250 taken"]);
    }
}

/// RFC 6152 section 3.
#[test]
fn eight_bit_message_is_not_sent_to_ascii_only_peer() {
    for content in [ContentWidth::SevenBit, ContentWidth::EightBit] {
        let mut harness = ClientHarness::greeted(PLAIN);
        harness.message =
            [b"Subject: x\r\n\r\n", &[b'a'; 40_000][..], "\u{e6}".as_bytes(), b"\r\n"].concat();
        assert_eq!(harness.deliver(of(content)), "");
        assert_eq!(
            harness.outcomes(),
            ["1 never 5.6.3 the other server does not support 8BITMIME, which the message needs"]
        );
        assert!(core::mem::take(&mut harness.is_idle));
        harness.message = b"Subject: y\r\n\r\n".to_vec();
        assert_eq!(
            harness.deliver(outgoing(&["eve@there.test"])),
            "MAIL FROM:<ada@us.test>\r\n",
            "the next message is sent"
        );
    }
}

#[test]
fn connection_lost_during_inspection_defers_the_message() {
    let looking = || {
        let mut harness = ClientHarness::greeted(PLAIN);
        harness.is_bringing = false;
        assert_eq!(harness.deliver(of(ContentWidth::EightBit)), "");
        assert!(harness.wants_body);
        harness
    };
    let mut harness = looking();
    harness.lost(Lost::Closed);
    assert_eq!(
        harness.outcomes(),
        ["1 later 4.4.2 the other server closed the connection before MAIL FROM"]
    );
    let mut harness = looking();
    assert_eq!(harness.hears("421 busy\r\n"), "");
    assert!(harness.is_over);
    assert_eq!(
        harness.outcomes(),
        ["1 later 4.3.0 the other server refused the connection: 421 busy"]
    );
}

#[test]
fn invalid_address_does_not_stop_other_recipients() {
    for bad in [
        "",
        "bob",
        "bob@",
        "<bob@x>",
        "b\nb@x",
        "bob@x> NOTIFY=NEVER",
        "postmaster",
        "@a,@b:bob@x",
        "b b@x",
    ] {
        let mut harness = ClientHarness::greeted(PLAIN);
        assert_eq!(
            harness.deliver(outgoing(&[bad, "eve@there.test"])),
            "MAIL FROM:<ada@us.test>\r\n",
            "{bad:?}"
        );
        assert_eq!(harness.outcomes(), ["1 never 5.1.3 the address is not valid"], "{bad:?}");
        harness.exchange(&[("250 ok\r\n", "RCPT TO:<eve@there.test>\r\n")]);
    }
}

#[test]
fn size_without_a_number_is_no_limit() {
    for hello in [
        "250-x\r\n250 SIZE\r\n",
        "250-x\r\n250 SIZE 0\r\n",
        "250-x\r\n250 SIZE 99999999999999999999999\r\n",
    ] {
        let mut harness = ClientHarness::greeted(hello);
        assert_eq!(
            harness.deliver(outgoing(&["bob@there.test"])),
            "MAIL FROM:<ada@us.test> SIZE=19\r\n"
        );
    }
}

#[test]
fn needed_smtp_extensions_are_requested() {
    let mut harness = ClientHarness::greeted(ABLE);
    let envelope = Envelope {
        content: ContentWidth::EightBit,
        script: Script::Utf8,
        returned: Some(Return::Header),
        envelope_id: Some("QQ+2B1".to_string()),
        held_until: Some(UnixTime::from_seconds(1)),
        reverse_path: String::new(),
        recipients: Vec::from([
            OutgoingRecipient {
                notify: Some(Notify { success: true, failure: true, delay: false }),
                original: Some("rfc822;bob@old.test".to_string()),
                ..to(1, "bob@there.test")
            },
            OutgoingRecipient {
                notify: Some(Notify { success: false, failure: false, delay: false }),
                original: Some("rfc822;a b".to_string()),
                ..to(2, "\"a b\"@there.test")
            },
        ]),
    };
    let wanted = OutgoingMessage { envelope, bytes: 19 };
    assert_eq!(
        harness.deliver(wanted.clone()),
        "MAIL FROM:<> SIZE=19 BODY=8BITMIME SMTPUTF8 RET=HDRS ENVID=QQ+2B1\r\n\
         RCPT TO:<bob@there.test> NOTIFY=SUCCESS,FAILURE ORCPT=rfc822;bob@old.test\r\n\
         RCPT TO:<\"a b\"@there.test> NOTIFY=NEVER\r\nDATA\r\n"
    );
    assert!(harness.client.passes_on_reports());
    let mut harness = ClientHarness::greeted("250-x\r\n250-8BITMIME\r\n250 SMTPUTF8\r\n");
    assert_eq!(harness.deliver(wanted), "MAIL FROM:<> BODY=8BITMIME SMTPUTF8\r\n");
    assert!(!harness.client.passes_on_reports());
    harness.exchange(&[("250 ok\r\n", "RCPT TO:<bob@there.test>\r\n")]);
    let mut harness = ClientHarness::greeted(ABLE);
    assert!(
        harness
            .deliver(outgoing(&["bøb@there.test"]))
            .starts_with("MAIL FROM:<ada@us.test> SIZE=19 SMTPUTF8\r\n")
    );
}

#[test]
fn message_for_a_hundred_recipients_is_pipelined() {
    let addresses: Vec<_> =
        (0..crate::RECIPIENTS_MAX).map(|number| std::format!("u{number}@there.test")).collect();
    let addresses: Vec<_> = addresses.iter().map(String::as_str).collect();
    let mut harness = ClientHarness::greeted(ABLE);
    assert_eq!(harness.deliver(outgoing(&addresses)).lines().count(), 102);
    harness.hears(&"250 ok\r\n".repeat(101));
    harness.hears("354 go\r\n");
    harness.hears("250 taken\r\n");
    assert_eq!(harness.outcomes().len(), 100);
}

#[test]
fn message_may_be_given_before_the_greeting() {
    let mut harness = ClientHarness::with_tls(TlsMode::Never);
    harness.exchange(&[("220 x\r\n", "EHLO us.test\r\n")]);
    harness.client.arrived(b"250 x\r\n");
    harness.client.deliver(outgoing(&["bob@there.test"]));
    assert_eq!(harness.says(), "MAIL FROM:<ada@us.test>\r\n");
    assert!(!harness.is_idle, "no message is requested while one is sent");
}

#[test]
fn next_message_waits_for_all_answers() {
    let mut harness = ClientHarness::greeted(ABLE);
    harness.deliver(outgoing(&["bob@there.test"]));
    harness.exchange(&[("550 no\r\n", ""), ("503 ?\r\n", "")]);
    assert!(!harness.is_idle);
    harness.exchange(&[("503 ?\r\n", "")]);
    assert!(harness.is_idle);
}

#[test]
fn nothing_is_sent_after_the_end() {
    let mut harness = ClientHarness::greeted(ABLE);
    harness.client.deliver(outgoing(&["bob@there.test"]));
    harness.client.arrived(b"nonsense\r\n");
    assert_eq!(harness.says(), "");
    assert!(harness.is_over);
}
