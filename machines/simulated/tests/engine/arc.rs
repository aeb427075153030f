//! Tests of ARC results that forwarders have added to messages from outside: only the results of
//! some forwarders count.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use dkim::{ChainVerdict, MessageReader, Sealing};
use dns::Name;
use machine::Machine;

use super::dmarc::{
    INBOX, JUNK, REFUSED, key, message_from, newest, results, send, serving_dmarc_as,
};
use super::dns::{Mood, NameServer, TEXT, text};
use super::room::Room;

const FOUND: &str =
    "mx.list.test;\r\n\tspf=pass smtp.mailfrom=pass.test;\r\n\tdmarc=pass header.from=pass.test";
const NOT_FOUND: &str = "mx.list.test; dmarc=fail header.from=pass.test";

/// A message that a domain has forwarded, sealed with its results about the message.
pub(super) fn sealed(room: &mut Room, domain: &str, results: &str, text: &str) -> String {
    let mut reading = MessageReader::to_sign();
    reading.arrived(text.as_bytes());
    let message = reading.ended();
    let found = if text.contains("ARC-Seal: ") { ChainVerdict::Pass } else { ChainVerdict::None };
    let mut sealing = Sealing::begin(&message, found, results).expect("the result fits");
    let (domain, now) = (Name::parse(domain).expect("a name"), room.machine.wall_clock());
    while sealing.is_open() {
        sealing.sign(&message, &key(), &domain, now).expect("the seal can be signed");
    }
    sealing.fields() + text
}

/// Publishes the sealing keys of these domains.
pub(super) fn publish(server: &mut NameServer, domains: &[&str]) {
    for domain in domains {
        let name: &'static str = format!("key._domainkey.{domain}").leak();
        server.zone.push((name, TEXT, text(&key().record())));
    }
}

fn judging(seed: u64, more: &str) -> (Room, NameServer) {
    let (room, mut server) = serving_dmarc_as(seed, Mood::Answers, more);
    publish(&mut server, &["list.test", "lists.list.test", "other.test"]);
    (room, server)
}

#[test]
fn the_arc_result_is_in_the_trace_fields() {
    let (mut room, mut server) = judging(60, "");
    let one = sealed(&mut room, "list.test", FOUND, &message_from("ada@far.test"));
    let two = sealed(&mut room, "other.test", FOUND, &format!("Received: by list.test\r\n{one}"));
    let unknown = sealed(&mut room, "far.test", FOUND, &message_from("ada@far.test"));
    for (message, found) in [
        (message_from("ada@far.test"), "arc=none"),
        (one.clone(), "arc=pass"),
        (two.clone(), "arc=pass"),
        (
            two.replace("Hello", "Hullo"),
            "arc=fail reason=\"set 2: the body was changed after signing\"",
        ),
        (two.replace("looms", "rooms"), "arc=fail reason=\"set 2: the signature is not valid\""),
        (
            two.replace("spf=pass", "spf=none"),
            "arc=fail reason=\"set 2: the signature is not valid\"",
        ),
        (
            two.replace("ARC-Seal: i=1", "X-Seal: i=1"),
            "arc=fail reason=\"the chain is incomplete\"",
        ),
        (
            one.replace("cv=none", "cv=fail"),
            "arc=fail reason=\"the chain was marked as failed before\"",
        ),
        (unknown, "arc=fail reason=\"set 1: the domain has no such key\""),
    ] {
        let reply = send(&mut room, &mut server, "me@far.test", &message);
        assert!(reply.starts_with("250 2.0.0 "), "{message}: {reply}");
        let (mailbox, above, rest) = newest(&room);
        assert_eq!(
            (mailbox, results(&above)[2]),
            (INBOX, format!("{found} smtp.remote-ip=203.0.113.7").as_str())
        );
        assert!(rest == message && results(&above)[3] == "dkim=none", "{above}");
    }
    // No domain is a trusted ARC domain in this configuration.
    let untrusted = sealed(&mut room, "list.test", FOUND, &message_from("ada@pass.test"));
    assert_eq!(send(&mut room, &mut server, "me@fail.test", &untrusted), REFUSED);
    room.until_nothing_is_in_use();
}

#[test]
fn arc_results_count_only_from_trusted_domains() {
    let (mut room, mut server) = judging(61, "\n[abuse]\ntrusted_arc = [\"list.test\"]\n");
    let lost = message_from("ada@pass.test");
    let by = |room: &mut Room, domain, found, message: &str| sealed(room, domain, found, message);
    let good = by(&mut room, "list.test", FOUND, &lost);
    let doubted = by(&mut room, "list.test", NOT_FOUND, &lost);
    let others = by(&mut room, "other.test", FOUND, &lost);
    for (message, voucher) in [
        (good.clone(), Some("list.test")),
        (by(&mut room, "lists.list.test", FOUND, &lost), Some("lists.list.test")),
        (by(&mut room, "lists.list.test", NOT_FOUND, &good), Some("list.test")),
        (doubted.clone(), None),
        (by(&mut room, "list.test", NOT_FOUND, &others), None),
        (others, None),
        (by(&mut room, "other.test", FOUND, &good), None),
        (good.replace("Hello", "Hullo"), None),
        (doubted.replace("dmarc=fail", "dmarc=pass"), None),
        (good.replace("s=key", "s=gone"), None),
    ] {
        let reply = send(&mut room, &mut server, "me@fail.test", &message);
        let Some(voucher) = voucher else {
            assert_eq!(reply, REFUSED, "{message}");
            continue;
        };
        assert!(reply.starts_with("250 2.0.0 "), "{message}: {reply}");
        let (mailbox, above, _) = newest(&room);
        let expected = format!(
            "dmarc=fail reason=\"{voucher} is a trusted forwarder (ARC)\" header.from=pass.test"
        );
        assert_eq!((mailbox, results(&above)[1]), (INBOX, expected.as_str()));
    }
    let apart = message_from("ada@fail.test");
    assert!(send(&mut room, &mut server, "me@far.test", &apart).starts_with("250 2.0.0 "));
    assert_eq!(newest(&room).0, JUNK);
    let apart = sealed(&mut room, "list.test", FOUND, &apart);
    assert!(send(&mut room, &mut server, "me@far.test", &apart).starts_with("250 2.0.0 "));
    let all = super::dmarc::messages_of(&room, "ada");
    assert_eq!(all.iter().filter(|(mailbox, _)| *mailbox == JUNK).count(), 1);
    // Next, the ARC signature cannot be checked. A message is not refused if a trusted domain may
    // have found it authentic.
    let lost = message_from("ada@strict.test");
    let [good, doubted] =
        [FOUND, NOT_FOUND].map(|found| sealed(&mut room, "list.test", found, &lost));
    for (message, is_refused) in [(good, false), (doubted, true)] {
        // The resolver has cached the policy of the domain.
        server.mood = Mood::Answers;
        assert_eq!(send(&mut room, &mut server, "me@fail.test", &lost), REFUSED);
        server.mood = Mood::Silent;
        let reply =
            send(&mut room, &mut server, "me@fail.test", &message.replace("s=key", "s=other"));
        assert_eq!(reply == REFUSED, is_refused, "{reply}");
    }
    room.until_nothing_is_in_use();
}
