//! Authentication of messages from outside: SPF, DKIM and DMARC, and the consequences for the
//! messages.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use dkim::{MessageReader, SigningKey};
use dns::Name;
use machine::{Machine, Micros};
use server::InUse;
use simulated::room::messages_on;

use crate::CORES;

use super::dns::{Mood, NameServer, TEXT, serving_as, text};
use super::room::{Room, Talk, stuffed};

pub(super) const INBOX: u32 = 1;
pub(super) const JUNK: u32 = 5;

/// An Ed25519 key in PKCS#8.
const KEY: [u8; 48] = {
    let head = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    let mut key = [7; 48];
    let mut at = 0;
    while at < head.len() {
        key[at] = head[at];
        at += 1;
    }
    key
};

pub(super) fn key() -> SigningKey {
    SigningKey::new(&KEY, "key").expect("a key")
}

/// A room with a name server that has DMARC policies of several domains.
pub(super) fn serving_dmarc(seed: u64, mood: Mood) -> (Room, NameServer) {
    serving_dmarc_as(seed, mood, "")
}

/// Like [`serving_dmarc`], with these lines added to the configuration.
pub(super) fn serving_dmarc_as(seed: u64, mood: Mood, more: &str) -> (Room, NameServer) {
    let (room, mut server) = serving_as(seed, mood, more);
    let policies: [(&'static str, &str); 5] = [
        ("_dmarc.pass.test", "v=DMARC1; p=reject"),
        ("_dmarc.fail.test", "v=DMARC1; p=quarantine"),
        ("_dmarc.soft.test", "v=DMARC1; p=none"),
        ("_dmarc.signed.test", "v=DMARC1; p=reject"),
        ("_dmarc.strict.test", "v=DMARC1; p=reject; aspf=s; adkim=s; psd=n"),
    ];
    server.zone.extend(policies.map(|(name, policy)| (name, TEXT, text(policy))));
    for name in ["below.signed.test", "below.strict.test"] {
        server.zone.push((name, TEXT, text("v=spf1 ip4:203.0.113.7 -all")));
    }
    for domain in ["signed.test", "strict.test", "below.signed.test", "below.strict.test"] {
        let name: &'static str = format!("key._domainkey.{domain}").leak();
        server.zone.push((name, TEXT, text(&key().record())));
    }
    (room, server)
}

/// Signs a message for a domain.
fn signed(room: &mut Room, domain: &str, message: &str) -> String {
    let mut reading = MessageReader::to_sign();
    reading.arrived(message.as_bytes());
    let domain = Name::parse(domain).expect("a name");
    reading
        .ended()
        .sign(&key(), &domain, room.machine.wall_clock())
        .expect("the message can be signed")
        + message
}

pub(super) fn message_from(from: &str) -> String {
    format!("From: {from}\r\nSubject: looms\r\n\r\nHello.\r\n")
}

/// Sends a message with the sender `path`. Returns the reply to the end of data.
pub(super) fn send(room: &mut Room, server: &mut NameServer, path: &str, message: &str) -> String {
    let mut talk = begin(room, server, path);
    room.send(&talk, &stuffed(message.as_bytes()));
    let reply = server.smtp(room, &mut talk, ".");
    room.part(talk);
    reply
}

fn begin(room: &mut Room, server: &mut NameServer, path: &str) -> Talk {
    let mut talk = server.begin(room, path);
    assert!(server.smtp(room, &mut talk, "DATA").starts_with("354 "));
    talk
}

/// Ada's newest message: its mailbox, the fields above its `Received:` field without padding, and
/// the rest of it.
pub(super) fn newest(room: &Room) -> (u32, String, String) {
    let (mailbox, message) = messages_of(room, "ada").pop().expect("a message");
    parted(mailbox, &message)
}

pub(super) fn messages_of(room: &Room, name: &str) -> Vec<(u32, Vec<u8>)> {
    let mut messages = messages_on(&room.machine.disk, &format!("{name}@barepost.test"));
    // Messages in Junk come last. So the newest message is last, unless it is in the inbox and Junk
    // has an older one.
    messages.sort_by_key(|(mailbox, _)| u32::from(*mailbox == JUNK));
    messages
}

fn parted(mailbox: u32, message: &[u8]) -> (u32, String, String) {
    let message = String::from_utf8(message.to_vec()).expect("the bytes are UTF-8");
    let (above, rest) = message.split_once("Received: from far.test (").expect("a trace");
    let (_, rest) = rest.split_once("+0000\r\n").expect("a date");
    let above =
        above.split_inclusive("\r\n").map(|line| format!("{}\r\n", line.trim_end())).collect();
    (mailbox, above, rest.to_string())
}

/// The results in the `Authentication-Results:` field.
pub(super) fn results(above: &str) -> Vec<&str> {
    let (_, results) =
        above.split_once("Authentication-Results: mail.barepost.test;\r\n\t").expect("results");
    let results = results.split("\r\nX-Barepost-Reason").next().unwrap_or_default();
    results.trim_end().split(";\r\n\t").collect()
}

const NO_CHAIN: &str = "arc=none smtp.remote-ip=203.0.113.7";

pub(super) const DEFERRED: &str = "451 4.7.0 Cannot check the message now, try again later";

pub(super) const REFUSED: &str =
    "550 5.7.26 Unauthenticated mail rejected because of the From domain's DMARC policy";

#[test]
fn spf_authenticates_unsigned_messages() {
    for seed in [31, 32] {
        let (mut room, mut server) = serving_dmarc(seed, Mood::Answers);
        for (path, from, found) in [
            (
                "me@pass.test",
                "Ada <ada@pass.test>",
                Ok((INBOX, "dmarc=pass header.from=pass.test")),
            ),
            (
                "me@pass.test",
                "a@pass.test, b@Pass.TEST",
                Ok((INBOX, "dmarc=pass header.from=pass.test")),
            ),
            ("me@far.test", "ada@pass.test", Err(REFUSED)),
            ("", "ada@pass.test", Err(REFUSED)),
            ("", "ada@far.test", Ok((INBOX, "dmarc=none header.from=far.test"))),
            ("me@far.test", "ada@fail.test", Ok((JUNK, "dmarc=fail header.from=fail.test"))),
            ("me@fail.test", "ada@fail.test", Ok((JUNK, "dmarc=fail header.from=fail.test"))),
            ("me@far.test", "ada@soft.test", Ok((INBOX, "dmarc=fail header.from=soft.test"))),
            ("me@far.test", "ada@nowhere.test", Ok((INBOX, "dmarc=none header.from=nowhere.test"))),
            (
                "me@below.signed.test",
                "ada@signed.test",
                Ok((INBOX, "dmarc=pass header.from=signed.test")),
            ),
            ("me@below.strict.test", "ada@strict.test", Err(REFUSED)),
            ("me@far.test", "ada@pass.test, bob@far.test", Ok((JUNK, "dmarc=permerror"))),
            ("me@far.test", "far@far.test\r\nFrom: ada@pass.test", Ok((JUNK, "dmarc=permerror"))),
            ("me@far.test", "undisclosed:;", Ok((JUNK, "dmarc=permerror"))),
            ("me@far.test", "ada@[203.0.113.7]", Ok((JUNK, "dmarc=permerror"))),
            ("me@far.test", "ada at pass.test", Ok((JUNK, "dmarc=permerror"))),
            ("me@far.test", "\"CEO\\\" <ceo@pass.test>", Ok((JUNK, "dmarc=permerror"))),
            ("me@far.test", "<me@far.test> <ceo@pass.test>", Ok((JUNK, "dmarc=permerror"))),
            ("me@far.test", "ceo@pass..test", Ok((JUNK, "dmarc=permerror"))),
            ("me@far.test", "ceo@p\u{e4}ss.test", Ok((JUNK, "dmarc=permerror"))),
            ("me@far.test", "<=?utf-8?Q?ceo=40pass.test?=>", Ok((JUNK, "dmarc=permerror"))),
            ("me@far.test", "x: ceo@pass.test;", Err(REFUSED)),
            ("me@far.test", "ceo@PASS.test.", Err(REFUSED)),
        ] {
            let before = messages_of(&room, "ada").len();
            let reply = send(&mut room, &mut server, path, &message_from(from));
            let after = messages_of(&room, "ada").len();
            match found {
                Err(refusal) => {
                    assert_eq!((reply.as_str(), after), (refusal, before), "{path} {from}")
                }
                Ok((mailbox, result)) => {
                    assert!(
                        reply.starts_with("250 2.0.0 ") && after == before + 1,
                        "{path} {from}: {reply}"
                    );
                    let all = messages_of(&room, "ada");
                    let (_, newest) = all
                        .iter()
                        .rfind(|(one, _)| *one == mailbox)
                        .expect("the mailbox has a message");
                    let (_, above, rest) = parted(mailbox, newest);
                    assert_eq!(
                        results(&above)[1..],
                        [result, NO_CHAIN, "dkim=none"],
                        "{path} {from}"
                    );
                    assert_eq!(rest, message_from(from));
                    assert_eq!(
                        above.contains("\r\nX-Barepost-Reason: "),
                        mailbox == JUNK,
                        "{above}"
                    );
                }
            }
        }
        let (_, above, _) = newest(&room);
        assert!(above.starts_with("Return-Path: <me@far.test>\r\n"), "{above}");
        room.until_nothing_is_in_use();
    }
}

#[test]
fn dkim_authenticates_unchanged_messages() {
    for seed in [33, 34] {
        let (mut room, mut server) = serving_dmarc(seed, Mood::Answers);
        let own = signed(&mut room, "signed.test", &message_from("ada@signed.test"));
        let below = signed(&mut room, "below.signed.test", &message_from("ada@signed.test"));
        let strict = signed(&mut room, "below.strict.test", &message_from("ada@strict.test"));
        let strict_own = signed(&mut room, "strict.test", &message_from("ada@strict.test"));
        let other = signed(&mut room, "signed.test", &message_from("ada@pass.test"));
        let none = signed(&mut room, "far.test", &message_from("ada@far.test"));
        for (message, found) in [
            (own.clone(), Ok("dkim=pass header.d=signed.test")),
            (below, Ok("dkim=pass header.d=below.signed.test")),
            (strict_own, Ok("dkim=pass header.d=strict.test")),
            (strict, Err(REFUSED)),
            (other, Err(REFUSED)),
            (own.replace("Hello", "Hullo"), Err(REFUSED)),
            (own.replace("looms", "rooms"), Err(REFUSED)),
            (own.replace("s=key", "s=gone"), Err(REFUSED)),
            (none, Ok("dkim=permerror reason=\"the domain has no such key\" header.d=far.test")),
            (format!("{own}{own}"), Err(REFUSED)),
            (format!("DKIM-Signature: nonsense\r\n{own}"), Ok("dkim=neutral reason=")),
        ] {
            let reply = send(&mut room, &mut server, "me@fail.test", &message);
            match found {
                Err(refusal) => assert_eq!(reply, refusal, "{message}"),
                Ok(result) => {
                    assert!(reply.starts_with("250 2.0.0 "), "{message}: {reply}");
                    let (mailbox, above, rest) = newest(&room);
                    assert_eq!(mailbox, INBOX);
                    let results = results(&above);
                    assert!(
                        results[0] == "spf=fail smtp.mailfrom=fail.test"
                            && results[3].starts_with(result),
                        "{above}"
                    );
                    assert_eq!(rest, message);
                }
            }
        }
        let asked = server.asked.iter().filter(|(name, _)| name == "key._domainkey.signed.test");
        assert_eq!(asked.count(), 1, "a cached record is not queried again");
        room.until_nothing_is_in_use();
    }
}

/// Bare LFs of a chunk become CRLFs. The signature of a message with CRLFs is valid then, because
/// the text that is stored is also the text that is verified.
#[test]
fn dkim_verifies_the_stored_text_of_chunks_with_bare_lf() {
    let (mut room, mut server) = serving_dmarc(44, Mood::Answers);
    let lines = "A line. \r\n\r\n\tAnother\r\n".repeat(2000);
    let message = message_from("ada@signed.test") + &lines;
    let own = signed(&mut room, "signed.test", &message);
    // The last octet of each chunk is the LF of the line end that the client adds.
    let (first, last) = own.split_at(own.rfind("Hello.").expect("a body"));
    let [first, last] =
        [first, last].map(|part| part.replace("\r\n", "\n").trim_end_matches('\n').to_string());
    let talk = &mut server.begin(&mut room, "me@fail.test");
    for (chunk, end) in [(&first, " "), (&last, " LAST")] {
        // The header ends with an empty line.
        let chunk = if end == " " { format!("{chunk}\n") } else { chunk.clone() };
        let command = format!("BDAT {}{}\r\n{chunk}", chunk.len() + 2, end.trim_end());
        let reply = server.smtp(&mut room, talk, &command);
        assert!(reply.starts_with("250 2.0.0 "), "{reply}");
    }
    let (mailbox, above, rest) = newest(&room);
    assert!(results(&above)[3].starts_with("dkim=pass header.d=signed.test"), "{above}");
    assert_eq!((mailbox, rest), (INBOX, own));
}

/// A message of two megabytes, with lines that some body canonicalizations would change.
fn large(from: &str) -> String {
    let mut message = message_from(from);
    let mut number = 0_u32;
    while message.len() < 2_000_000 {
        number += 1;
        message += &format!("{number} .  \t{}\r\n", number.wrapping_mul(2_654_435_761));
    }
    message
}

#[test]
fn results_of_a_large_message_come_first_and_survive_power_cuts() {
    let (mut room, mut server) = serving_dmarc(35, Mood::Answers);
    let large = signed(&mut room, "signed.test", &large("ada@signed.test"));
    for is_broken in [false, true] {
        let mut talk = server.begin(&mut room, "me@pass.test");
        assert!(
            server.smtp(&mut room, &mut talk, "RCPT TO:<grace@barepost.test>").starts_with("250 ")
        );
        assert!(server.smtp(&mut room, &mut talk, "DATA").starts_with("354 "));
        room.send(&talk, &stuffed(large.as_bytes()));
        let reply = server.smtp(&mut room, &mut talk, if is_broken { "x\r\n." } else { "." });
        assert!(
            if is_broken { reply == REFUSED } else { reply.starts_with("250 2.0.0 ") },
            "{reply}"
        );
        room.part(talk);
    }
    let check = |room: &mut Room| {
        for name in ["ada", "grace"] {
            let messages = messages_of(room, name);
            assert_eq!(messages.len(), 1);
            let mut reader = room.log_in(name);
            let read = room.retrieve_any(&mut reader, 1);
            assert!(read == messages[0].1);
            room.part(reader);
            let (mailbox, above, rest) = parted(INBOX, &read);
            assert!(mailbox == INBOX && rest == large);
            assert!(
                above.starts_with("Return-Path: <me@pass.test>\r\nAuthentication-Results: "),
                "{above}"
            );
            let results = results(&above);
            assert_eq!(results[1], "dmarc=pass header.from=signed.test");
            assert!(results[3].starts_with("dkim=pass header.d=signed.test "), "{above}");
        }
    };
    check(&mut room);
    room.until_nothing_is_in_use();
    check(&mut room.power_cut(36));
}

#[test]
fn the_end_of_data_waits_at_most_20_seconds_for_dns() {
    let (mut room, mut server) = serving_dmarc(37, Mood::Answers);
    let whole = signed(&mut room, "signed.test", &message_from("ada@signed.test"));
    let (header, body) = whole.split_once("Hello").expect("a body");
    let mut talk = begin(&mut room, &mut server, "me@pass.test");
    room.send(&talk, format!("{header}Hel").as_bytes());
    room.until("names are asked for", |room| {
        server.serve(room);
        ["key._domainkey.signed.test", "_dmarc.signed.test"]
            .iter()
            .all(|name| server.asked.iter().any(|(one, _)| one == name))
    });
    room.send(&talk, format!("lo{body}").as_bytes());
    assert!(server.smtp(&mut room, &mut talk, ".").starts_with("250 "));
    // From now on no name server answers, so records that are not cached stay unknown.
    server.mood = Mood::Silent;
    for command in ["MAIL FROM:<me@pass.test>", "RCPT TO:<ada@barepost.test>", "DATA"] {
        assert!(server.smtp(&mut room, &mut talk, command).starts_with(if command == "DATA" {
            "354 "
        } else {
            "250 "
        }));
    }
    let unknown = signed(&mut room, "strict.test", &message_from("ada@strict.test"));
    room.send(&talk, unknown.as_bytes());
    let before = room.machine.now;
    let reply = server.smtp(&mut room, &mut talk, ".");
    assert!(reply.starts_with("250 2.0.0 "), "no message is refused for unknown records: {reply}");
    assert!((8..=20).contains(&room.machine.now.since(before).as_secs()));
    room.part(talk);
    let (mailbox, above, _) = newest(&room);
    let found = results(&above);
    assert_eq!((mailbox, found[1]), (INBOX, "dmarc=temperror header.from=strict.test"));
    let unknown = "dkim=temperror reason=\"no name server answered\" header.d=";
    assert!(found[3].starts_with(&format!("{unknown}strict.test")), "{above}");
    // By now the domain's policy and SPF record are cached. A message may still be authentic if the
    // key of its signature or the SPF record of its sender is unknown.
    server.mood = Mood::Answers;
    assert_eq!(
        send(&mut room, &mut server, "me@far.test", &message_from("ada@strict.test")),
        REFUSED
    );
    server.mood = Mood::Silent;
    let again = signed(&mut room, "strict.test", &message_from("ada@strict.test"))
        .replace("s=key", "s=other");
    assert!(send(&mut room, &mut server, "me@far.test", &again).starts_with("250 2.0.0 "));
    assert!(
        send(&mut room, &mut server, "me@strict.test", &message_from("ada@strict.test"))
            .starts_with("250 2.0.0 ")
    );
    assert_eq!(
        send(&mut room, &mut server, "me@silent.test", &message_from("ada@strict.test")),
        REFUSED
    );
    room.until_nothing_is_in_use();
}

#[test]
fn an_interrupted_dmarc_check_delivers_nothing() {
    let (mut room, mut server) = serving_dmarc(38, Mood::Answers);
    for step in 0..3 {
        server.mood = Mood::Answers;
        let mut talk = begin(&mut room, &mut server, "me@pass.test");
        server.mood = Mood::Silent;
        let whole = signed(&mut room, "strict.test", &message_from("ada@strict.test"));
        room.send(&talk, format!("{whole}{}", if step == 0 { "" } else { ".\r\n" }).as_bytes());
        room.pass(Micros::from_secs(1));
        let in_use = room.engines.in_use();
        assert!(in_use.questions > 0 && in_use.kept_for_checks > 0, "{in_use:?}");
        if step < 2 {
            room.abort(&talk);
            room.until_nothing_is_in_use();
            assert_eq!(messages_of(&room, "ada"), []);
            continue;
        }
        let before = room.machine.now;
        room.machine.stop = true;
        // The check stops with an unknown result, and the domain's policy rejects unverified
        // messages. So the message is deferred.
        assert_eq!(server.line(&mut room, &mut talk), DEFERRED);
        assert!(room.machine.now.since(before).as_secs() < 2);
        room.until("the machine has stopped", |room| room.ended.is_some());
    }
    assert_eq!(messages_of(&room, "ada"), []);
    assert_eq!(InUse { connections: 0, ..room.engines.in_use() }, InUse::default());
}

#[test]
fn checked_signatures_and_header_memory_are_bounded() {
    let (mut room, mut server) = serving_dmarc(39, Mood::Answers);
    let whole = message_from("ada@signed.test");
    let good = signed(&mut room, "signed.test", &whole);
    let field = good.strip_suffix(&whole).expect("a field").to_string();
    assert!(
        send(&mut room, &mut server, "me@fail.test", &(field.repeat(40) + &whole))
            .starts_with("250 2.0.0 ")
    );
    let (_, above, _) = newest(&room);
    let found = results(&above).len();
    assert!((3 + 5..=3 + 8).contains(&found), "{above}");
    // Messages with unfinished long headers use up the pool. While they do, a message that needs
    // more than its least share is deferred.
    let filling = "X-Filling: ".to_string() + &"x".repeat(990) + "\r\n";
    let late = filling.repeat(132) + &whole;
    assert!(send(&mut room, &mut server, "me@signed.test", &late).starts_with("250 2.0.0 "));
    let (mailbox, above, _) = newest(&room);
    assert!(
        mailbox == JUNK && above.contains("\r\nX-Barepost-Reason: the header is too long "),
        "{above}"
    );
    let talks: Vec<Talk> = (0..40).map(|_| begin(&mut room, &mut server, "me@pass.test")).collect();
    talks.iter().for_each(|talk| room.send(talk, filling.repeat(120).as_bytes()));
    room.pass(Micros::from_secs(1));
    let kept = room.engines.in_use().kept_for_checks;
    assert!(kept > 1 << 19 && kept < usize::from(CORES) * (5 << 19), "{kept}");
    if CORES == 1 {
        let large = format!("{}{good}", filling.repeat(100));
        assert_eq!(send(&mut room, &mut server, "me@pass.test", &large), DEFERRED);
    }
    assert!(send(&mut room, &mut server, "me@pass.test", &good).starts_with("250 2.0.0 "));
    let (mailbox, above, _) = newest(&room);
    assert!(
        mailbox == JUNK && above.contains("\r\nX-Barepost-Reason: the header is too long "),
        "{above}"
    );
    let messages = messages_of(&room, "ada");
    let (_, message) =
        messages.iter().rfind(|(mailbox, _)| *mailbox == INBOX).expect("the mailbox has a message");
    let (_, above, _) = parted(INBOX, message);
    assert_eq!(results(&above)[1], "dmarc=pass header.from=signed.test");
    talks.iter().for_each(|talk| room.abort(talk));
    room.until_nothing_is_in_use();
}
