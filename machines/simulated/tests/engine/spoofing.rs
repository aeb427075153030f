//! Messages with a forged sender that try to evade the checks: they exceed a limit of the checks,
//! or are hard to parse.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use machine::Micros;
use simulated::room::messages_on;

use super::dmarc::{
    DEFERRED, INBOX, JUNK, REFUSED, message_from, messages_of, newest, results, send, serving_dmarc,
};
use super::dns::{Mood, NameServer, TEXT, text};
use super::room::{Room, Talk, stuffed};
use super::signing::{begin, keys};

/// A header of this many fields with different names.
fn fields(count: usize) -> String {
    (0..count).map(|number| format!("x{number:x}:\r\n")).collect()
}

/// Submits a message as Ada, to Grace and Ada.
fn submit(room: &mut Room, message: &str) -> String {
    let mut talk: Talk = begin(room, "ada@barepost.test");
    room.send(&talk, &stuffed(message.as_bytes()));
    let reply = room.smtp(&mut talk, ".");
    room.part(talk);
    reply
}

#[test]
fn a_message_with_too_many_fields_is_refused() {
    let refusal = "550 5.6.0 Message header has more than 1,000 fields";
    let (mut room, mut server) = serving_dmarc(41, Mood::Answers);
    for (count, is_taken) in [(1_000, true), (1_001, false), (20_500, false)] {
        // The fields `Subject` and `From` count too.
        let message = fields(count - 2) + &message_from("ada@far.test");
        let reply = send(&mut room, &mut server, "me@far.test", &message);
        assert!(
            if is_taken { reply.starts_with("250 ") } else { reply == refusal },
            "{count}: {reply}"
        );
    }
    assert_eq!(messages_of(&room, "ada").len(), 1);
    // The domain's policy would reject this message too, but the check of the number of fields is
    // earlier.
    let spoofed = fields(20_500) + &message_from("ceo@pass.test");
    assert_eq!(send(&mut room, &mut server, "me@far.test", &spoofed), refusal);
    room.until_nothing_is_in_use();
    let mut room = Room::signing(42, keys());
    for (count, is_taken) in [(1_000, true), (1_001, false)] {
        let message = format!("From: ada@barepost.test\r\n{}\r\nHello.\r\n", fields(count - 1));
        let reply = submit(&mut room, &message);
        assert!(
            if is_taken { reply.starts_with("250 ") } else { reply == refusal },
            "{count}: {reply}"
        );
    }
    assert_eq!(messages_on(&room.machine.disk, "grace@barepost.test").len(), 1);
}

/// A message in the name of a domain that rejects unauthenticated mail.
fn spoofed() -> String {
    message_from("CEO <ceo@pass.test>")
}

/// Opens connections with messages that have endless headers: 24 long ones, and many short ones.
fn half_sent(room: &mut Room, server: &mut NameServer) -> Vec<Talk> {
    let line = format!("X: {}\r\n", "y".repeat(890));
    let lengths =
        [(24, 130), (30, 7), (40, 1)].into_iter().flat_map(|(count, lines)| vec![lines; count]);
    let begun = lengths.map(|lines| {
        let mut talk = server.begin(room, "me@far.test");
        assert!(server.smtp(room, &mut talk, "DATA").starts_with("354 "));
        room.send(&talk, line.repeat(lines).as_bytes());
        talk
    });
    let talks = begun.collect();
    room.pass(Micros::from_secs(1));
    talks
}

#[test]
fn half_sent_messages_do_not_stop_the_check_of_others() {
    let (mut room, mut server) = serving_dmarc(43, Mood::Answers);
    let held = half_sent(&mut room, &mut server);
    for _ in 0..3 {
        assert_eq!(send(&mut room, &mut server, "me@far.test", &spoofed()), REFUSED);
    }
    let own = message_from("ada@pass.test");
    assert!(send(&mut room, &mut server, "me@pass.test", &own).starts_with("250 "));
    let (mailbox, above, _) = newest(&room);
    assert_eq!((mailbox, results(&above)[1]), (INBOX, "dmarc=pass header.from=pass.test"));
    held.iter().for_each(|talk| room.abort(talk));
    room.until_nothing_is_in_use();
}

#[test]
fn a_message_is_deferred_when_too_many_questions_wait() {
    let (mut room, mut server) = serving_dmarc(44, Mood::Answers);
    server.ignored = Some(".slow.example");
    let names: Vec<String> = (0..98).map(|number| format!("me@d{number}.slow.example")).collect();
    let waiting: Vec<Talk> = names.iter().map(|path| server.begin(&mut room, path)).collect();
    waiting.iter().for_each(|talk| room.send(talk, b"DATA\r\n"));
    room.pass(Micros::from_secs(1));
    assert_eq!(room.engines.in_use().questions, 32, "an address may have a third of 96");
    // Neither the SPF record nor the policy of the domain can be queried.
    assert_eq!(
        send(&mut room, &mut server, "ceo@strict.test", &message_from("ceo@strict.test")),
        DEFERRED
    );
    assert_eq!(messages_of(&room, "ada"), []);
    waiting.iter().for_each(|talk| room.abort(talk));
    room.pass(Micros::from_secs(60));
    assert!(send(&mut room, &mut server, "ceo@pass.test", &spoofed()).starts_with("250 "));
    assert_eq!(send(&mut room, &mut server, "me@far.test", &spoofed()), REFUSED);
    room.until_nothing_is_in_use();
}

#[test]
fn large_key_responses_do_not_hide_the_policy() {
    // Eight keys with responses of 5 KB each exceed the memory for one message.
    let (mut room, mut server) = serving_dmarc(45, Mood::CutsShort);
    let signature = |number: usize| {
        format!(
            "DKIM-Signature: v=1; a=ed25519-sha256; c=simple/simple; d=k{number}.test; s=s; h=from; bh=eHg=; b=eHg=\r\n"
        )
    };
    for number in 0..8 {
        let name: &'static str = format!("s._domainkey.k{number}.test").leak();
        server.zone.extend((0..20).map(|_| (name, TEXT, text(&"x".repeat(250)))));
    }
    let signatures: String = (0..8).map(signature).collect();
    let deep = message_from("ceo@a.b.c.d.e.pass.test");
    for message in [signatures.clone() + &spoofed(), signatures + &deep] {
        let reply = send(&mut room, &mut server, "me@far.test", &message);
        assert!(reply == REFUSED || reply == DEFERRED, "{reply}");
    }
    assert_eq!(messages_of(&room, "ada"), []);
    room.until_nothing_is_in_use();
}

#[test]
fn unanswered_key_queries_do_not_hide_the_policy() {
    let (mut room, mut server) = serving_dmarc(46, Mood::Answers);
    server.ignored = Some(".slow.example");
    let signature = |number: usize| {
        format!(
            "DKIM-Signature: v=1; a=ed25519-sha256; c=simple/simple; d=k{number}.slow.example; s=s; h=from; bh=eHg=; b=eHg=\r\n"
        )
    };
    let message =
        (0..8).map(signature).collect::<String>() + &message_from("ceo@a.b.c.d.e.pass.test");
    assert_eq!(send(&mut room, &mut server, "me@far.test", &message), REFUSED);
    let policy = server.asked.iter().position(|(name, _)| name == "_dmarc.a.b.c.d.e.pass.test");
    assert!(
        policy.is_some_and(|place| place <= 9),
        "the policy is queried before the keys: {:?}",
        server.asked
    );
    room.until_nothing_is_in_use();
}

#[test]
fn a_message_without_a_readable_author_goes_to_junk() {
    let (mut room, mut server) = serving_dmarc(47, Mood::Answers);
    for (message, reason) in [
        ("Subject: x\r\n\r\nHello.\r\n", "the message has no From field"),
        (
            "From: me@far.test\r\nno field\r\nFrom: ceo@pass.test\r\n\r\n",
            "the message has more than one From field",
        ),
        (
            "\u{feff}From: ceo@pass.test\r\nFrom: me@far.test\r\n\r\n",
            "the message has more than one From field",
        ),
        (
            "\u{feff}From: ceo@pass.test\r\nSubject: x\r\n\r\n",
            "the From field cannot be read reliably",
        ),
        (
            "Subject: x\r\nno field\r\nno field\r\nFrom: ceo@pass.test\r\n\r\n",
            "the From field cannot be read reliably",
        ),
    ] {
        assert!(send(&mut room, &mut server, "me@far.test", message).starts_with("250 "));
        let (mailbox, above, _) = newest(&room);
        assert_eq!(mailbox, JUNK);
        assert!(above.contains(&format!("\r\nX-Barepost-Reason: {reason}\r\n")), "{above}");
    }
    // The webmail finds the author even after a header line that is no field, as some gateways add.
    // So the policy of the author's domain counts.
    let message = "Subject: x\r\nno field\r\nFrom: ceo@pass.test\r\n\r\n";
    assert_eq!(send(&mut room, &mut server, "me@far.test", message), REFUSED);
    let claims = "X-Barepost-Reason: none\r\nAuthentication-Results: mail.barepost.test.; dmarc=pass\r\nReturn-Path: <x@y>\r\n";
    let own = message_from("me@far.test");
    assert!(
        send(&mut room, &mut server, "me@far.test", &format!("{claims}{own}")).starts_with("250 ")
    );
    let messages = messages_of(&room, "ada");
    let (_, stored) = messages
        .iter()
        .find(|(mailbox, _)| *mailbox == INBOX)
        .expect("the message is in the inbox");
    let stored = String::from_utf8_lossy(stored);
    assert!(stored.ends_with(&format!("+0000\r\n{own}")), "{stored}");
    room.until_nothing_is_in_use();
}

#[test]
fn long_headers_of_others_do_not_block_signing() {
    let mut room = Room::signing(48, keys());
    let line = format!("X: {}\r\n", "y".repeat(890));
    let lengths =
        [(10, 130), (20, 7), (20, 1)].into_iter().flat_map(|(count, lines)| vec![lines; count]);
    let held: Vec<(Talk, usize)> =
        lengths.map(|lines| (begin(&mut room, "ada@barepost.test"), lines)).collect();
    for (talk, lines) in &held {
        room.send(talk, line.repeat(*lines).as_bytes());
        room.pass(Micros::from_millis(10));
    }
    assert!(submit(&mut room, &message_from("ada@barepost.test")).starts_with("250 "));
    held.iter().for_each(|(talk, _)| room.abort(talk));
    room.until_nothing_is_in_use();
}
