//! DKIM signatures on messages of local users: the domain of the author signs, and the published
//! keys verify the signatures.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use dkim::{Algorithm, MessageReader, SignatureReason, SigningKey};
use dns::{Answer, Knowledge, Missing, Name, Record};
use machine::{Machine, Micros, UnixTime};
use server::{InUse, Sizes};

use crate::CORES;

use super::relay::{Mood, serving_signed};
use super::room::tls_stream::Trust;
use super::room::{Room, Talk, stuffed, usual_sizes};

const ADA: &str = "AUTH PLAIN AGFkYUBiYXJlcG9zdC50ZXN0AGxvdmVsYWNl";

/// The signing keys: RSA and Ed25519.
pub(super) fn keys() -> Vec<SigningKey> {
    let rsa = include_str!("../../../../engine/dkim/src/tests/rsa_2048.pem");
    let head = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    let ed25519 = SigningKey::new(&[&head[..], &[7; 32]].concat(), "two").expect("a key");
    vec![SigningKey::read(rsa.as_bytes(), "one").expect("a key"), ed25519]
}

/// The verdict on each signature of a message, from the top, with the domain's published keys.
pub(super) fn verdicts(octets: &[u8], now: UnixTime) -> Vec<(SignatureReason, Algorithm)> {
    let mut reading = MessageReader::to_verify();
    octets.chunks(1000).for_each(|piece| reading.arrived(piece));
    let message = reading.ended();
    let mut knowledge = Knowledge::default();
    let domain = Name::parse("barepost.test").expect("a name");
    let mut verdicts = Vec::new();
    while verdicts.len() < message.signatures() {
        match message.verify(verdicts.len(), &knowledge, now) {
            Ok(verdict) => {
                let signer = verdict.signer.expect("the signature names a signer");
                assert_eq!(signer.domain, domain);
                verdicts.push((verdict.reason, signer.algorithm));
            }
            Err(Missing(question)) => {
                let keys = keys()
                    .into_iter()
                    .filter(|key| key.name_at(&domain).as_ref() == Ok(&question.name));
                let records: Vec<_> =
                    keys.map(|key| Record::Text(key.record().as_bytes().into())).collect();
                knowledge
                    .learn(question, Ok(Answer { exists: true, is_authenticated: false, records }));
            }
        }
    }
    verdicts
}

pub(super) const BOTH: [(SignatureReason, Algorithm); 2] = [
    (SignatureReason::Verified, Algorithm::RsaSha256),
    (SignatureReason::Verified, Algorithm::Ed25519Sha256),
];

/// The usual sizes, with places for this many concurrent messages to the same account.
pub(super) fn sizes_for_messages(messages: usize) -> Sizes {
    let usual = usual_sizes();
    Sizes { transactions: usual.transactions.max(messages / 2), ..usual }
}

/// Connects to port 587, logs in as Ada, and sends the envelope of a message and DATA.
pub(super) fn begin(room: &mut Room, path: &str) -> Talk {
    let mut talk = room.connect(587);
    assert!(room.smtp_reply(&mut talk).starts_with("220 "));
    for (command, code) in [
        ("EHLO client.test", "250"),
        (ADA, "235"),
        (&format!("MAIL FROM:<{path}>"), "250"),
        ("RCPT TO:<grace@barepost.test>", "250"),
        ("RCPT TO:<ada@barepost.test>", "250"),
        ("DATA", "354"),
    ] {
        let reply = room.smtp(&mut talk, command);
        assert!(reply.starts_with(code), "{command}: {reply}");
    }
    talk
}

fn submit(room: &mut Room, message: &str) -> String {
    let mut talk = begin(room, "ada@barepost.test");
    room.send(&talk, &stuffed(message.as_bytes()));
    let reply = room.smtp(&mut talk, ".");
    room.part(talk);
    reply
}

/// A user's newest message.
pub(super) fn newest(room: &mut Room, name: &str) -> Vec<u8> {
    let mut reader = room.log_in(name);
    let count =
        room.pop3(&mut reader, "STAT").split(' ').nth(1).and_then(|count| count.parse().ok());
    let message = room.retrieve_any(&mut reader, count.expect("a number"));
    room.part(reader);
    message
}

fn message_from(from: &str) -> String {
    format!(
        "From: {from}\r\nTo: grace@barepost.test\r\nBcc: eve@barepost.test\r\nSubject: looms\r\n\r\nHello. \r\n\r\n.\r\n\r\n"
    )
}

#[test]
fn submitted_messages_are_signed_with_each_key() {
    for seed in [1, 2] {
        let mut room = Room::signing(seed, keys());
        let now = room.machine.wall_clock();
        let large =
            message_from("Ada <ada@barepost.test>") + &"A line. \t of many\r\n".repeat(60_000);
        for message in [message_from("Ada <Ada@Barepost.TEST>"), large] {
            assert!(submit(&mut room, &message).starts_with("250 "));
            let (_, body) = message.split_once("\r\n\r\n").expect("a body");
            for name in ["ada", "grace"] {
                let read = newest(&mut room, name);
                let text = String::from_utf8_lossy(&read);
                let above = "Return-Path: <ada@barepost.test>\r\nDKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;";
                assert!(text.starts_with(above), "{}", &text[..text.len().min(2500)]);
                assert!(
                    text.ends_with(body)
                        && !text.contains("Bcc:")
                        && text.contains("\r\nMessage-ID: <")
                );
                assert_eq!(verdicts(&read, now), BOTH);
                let changed = text.replace("looms", "rooms");
                assert_eq!(verdicts(changed.as_bytes(), now)[0].0, SignatureReason::SignatureWrong);
                let changed = text.replace("Hello.", "Hullo.");
                assert_eq!(verdicts(changed.as_bytes(), now)[1].0, SignatureReason::BodyChanged);
            }
        }
        let before = newest(&mut room, "grace");
        let mut room = room.power_cut(seed);
        let after = newest(&mut room, "grace");
        assert!(after == before && verdicts(&after, now) == BOTH);
    }
}

#[test]
fn redirects_and_external_messages_are_not_signed() {
    let mut room = Room::signing(3, keys());
    for message in [
        message_from("grace@barepost.test\r\nResent-From: ada@barepost.test"),
        message_from(&format!("ada@barepost.test{}", "\r\nTo: grace@barepost.test".repeat(600))),
    ] {
        assert!(submit(&mut room, &message).starts_with("250 "));
        let text = String::from_utf8(newest(&mut room, "grace")).expect("the bytes are UTF-8");
        let head = "Return-Path: <ada@barepost.test>";
        let spaces = text
            .split("\r\n")
            .next()
            .and_then(|line| line.strip_prefix(head))
            .expect("a path")
            .len();
        let behind = &text[head.len() + spaces..];
        assert!(
            spaces < 8 && behind.starts_with("\r\nReceived: from client.test ("),
            "{}",
            &text[..text.len().min(300)]
        );
        assert!(!text.contains("DKIM-Signature"));
    }
    // A missing From field is added before the message is signed.
    assert!(submit(&mut room, "Subject: looms\r\n\r\nHello.\r\n").starts_with("250 "));
    let signed = newest(&mut room, "grace");
    assert_eq!(verdicts(&signed, room.machine.wall_clock()), BOTH);
    let own = message_from("ada@barepost.test");
    assert!(room.deliver("grace@barepost.test", own.as_bytes()).starts_with("250 "));
    let text = String::from_utf8(newest(&mut room, "grace")).expect("the bytes are UTF-8");
    assert!(
        text.starts_with("Return-Path: <sender@elsewhere.test>\r\nReceived: ")
            && !text.contains("DKIM")
    );
}

#[test]
fn a_message_with_a_null_path_is_signed_with_a_single_key() {
    let mut room = Room::signing(4, keys().split_off(1));
    let mut talk = begin(&mut room, "");
    room.send(
        &talk,
        message_from("ada@barepost.test").replace("\r\n.\r\n", "\r\n..\r\n").as_bytes(),
    );
    assert!(room.smtp(&mut talk, ".").starts_with("250 "));
    room.part(talk);
    let read = newest(&mut room, "grace");
    assert!(read.starts_with(b"Return-Path: <>\r\nDKIM-Signature: "));
    assert_eq!(verdicts(&read, room.machine.wall_clock()), BOTH[1..]);
}

#[test]
fn signing_does_one_signature_per_turn() {
    let mut room = Room::signing(5, keys());
    let talks: Vec<Talk> = (0..6).map(|_| begin(&mut room, "ada@barepost.test")).collect();
    for talk in &talks {
        room.send(
            talk,
            (message_from("ada@barepost.test").replace("\r\n.\r\n", "\r\n..\r\n") + ".\r\n")
                .as_bytes(),
        );
    }
    room.until("some messages are being signed", |room| {
        room.engines.in_use().kept_for_signatures > 0
    });
    let mut kept = room.engines.in_use().kept_for_signatures;
    let (mut steps, mut most) = (0, kept);
    room.until("all messages are signed", |room| {
        let now = room.engines.in_use().kept_for_signatures;
        most = most.max(now);
        steps += u32::from(now < kept);
        // All messages are alike, and each core completes at most one signature per turn.
        assert!(now + usize::from(CORES) * most.div_ceil(talks.len()) * 2 > kept, "{kept} {now}");
        kept = now;
        now == 0 && steps > 0
    });
    assert!(steps >= talks.len() as u32 / u32::from(CORES), "{steps}");
    for mut talk in talks {
        assert!(room.smtp_reply(&mut talk).starts_with("250 "));
        room.close(&talk);
    }
    room.until_nothing_is_in_use();
    for number in 0..4 {
        let talk = begin(&mut room, "ada@barepost.test");
        room.send(
            &talk,
            (message_from("ada@barepost.test").replace("\r\n.\r\n", "\r\n..\r\n") + ".\r\n")
                .as_bytes(),
        );
        room.until("the message is being signed", |room| {
            room.engines.in_use().kept_for_signatures > 0
        });
        (0..number).for_each(|_| room.step());
        room.abort(&talk);
        room.until_nothing_is_in_use();
    }
    assert_eq!(room.engines.in_use(), InUse::default());
}

#[test]
fn memory_for_headers_to_sign_is_bounded() {
    // The store has buffers and places for all messages.
    let sizes = Sizes { buffer_bytes: 16 << 20, ..sizes_for_messages(40 * usize::from(CORES)) };
    let mut room = Room::signing_in(sizes, 6, keys());
    let long = format!(
        "From: ada@barepost.test\r\nX: {}",
        format!("{}\r\n ", "x".repeat(900)).repeat(100)
    );
    let mut talks: Vec<Talk> =
        (0..40 * usize::from(CORES)).map(|_| begin(&mut room, "ada@barepost.test")).collect();
    talks.iter().for_each(|talk| room.send(talk, long.as_bytes()));
    room.pass(Micros::from_secs(1));
    let kept = room.engines.in_use().kept_for_signatures;
    assert!(kept > 1 << 19 && kept < usize::from(CORES) * (5 << 19), "{kept}");
    for talk in &talks {
        room.try_to_send(talk, b"\r\n\r\nHello.\r\n.\r\n");
    }
    room.pass(Micros::from_secs(1));
    let replies: Vec<_> = talks.iter_mut().map(|talk| room.line_heard(talk)).collect();
    let refused = replies.iter().flatten().filter(|reply| reply.starts_with("45")).count();
    let accepted = replies.iter().flatten().filter(|reply| reply.starts_with("250 ")).count();
    assert!(refused > 0 && accepted > 0, "{replies:?}");
    talks.iter().for_each(|talk| room.abort(talk));
    room.until_nothing_is_in_use();
    assert!(submit(&mut room, &message_from("ada@barepost.test")).starts_with("250 "));
}

#[test]
fn signatures_are_on_top_for_remote_and_local_recipients() {
    let trust = Trust::new("mail.barepost.test");
    for seed in [7, 8] {
        let (mut room, mut world) = serving_signed(seed, Mood::Takes, &trust, keys());
        let large = message_from("ada@barepost.test") + &"A line. \t of many\r\n".repeat(60_000);
        let unsigned = message_from("grace@barepost.test\r\nResent-From: ada@barepost.test");
        for (number, message) in
            [message_from("ada@barepost.test"), large, unsigned].into_iter().enumerate()
        {
            world.submit(&mut room, &["bob@far.test", "grace@barepost.test"], message.as_bytes());
            world.until(&mut room, "the message has arrived", |world, _| {
                world.peer.taken.len() > number
            });
            world.pass(&mut room, 60);
            let now = room.machine.wall_clock();
            let (is_signed, (_, body)) =
                (number < 2, message.split_once("\r\n\r\n").expect("a body"));
            let delivered = world.inbox(&mut room, "grace").pop().expect("a message");
            let below =
                delivered.strip_prefix("Return-Path: <ada@barepost.test>\r\n").expect("a path");
            let left = world.peer.taken[number].content.clone();
            assert!(below.as_bytes() == left, "both are the same message");
            let first = if is_signed {
                "DKIM-Signature: v=1; a=rsa-sha256;"
            } else {
                "Received: from client.test"
            };
            assert!(
                below.starts_with(first) && below.ends_with(body),
                "{}",
                &below[..below.len().min(2500)]
            );
            assert!(!below.contains("Envelope") && !below.contains("Return-Path"));
            assert_eq!(verdicts(&left, now), if is_signed { &BOTH[..] } else { &[] });
        }
        assert_eq!(world.inbox(&mut room, "ada").len(), 0);
        room.until_nothing_is_in_use();
    }
}
