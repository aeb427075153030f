//! Tests that many DNS lookups for some external clients do not prevent the checks of other
//! clients' mail.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use machine::Micros;
use smoltcp::wire::Ipv4Address;

use super::dmarc::{INBOX, messages_of};
use super::dns::{EXTERNAL, Mood, NameServer, TEXT, serving_as, text};
use super::room::{Room, Talk};

/// Configuration lines without a greeting delay, so that all clients are checked at the same time.
const AT_ONCE: &str = "[abuse]\ngreeting_delay = \"0s\"\n";

/// Moves the external client to the address `host`. The client begins `count` messages, each from a
/// domain that no name server answers for.
fn ask_many_questions(
    room: &mut Room,
    server: &mut NameServer,
    host: Ipv4Address,
    count: usize,
) -> Vec<Talk> {
    room.hosts[EXTERNAL].move_to(host);
    let [_, _, network, own] = host.octets();
    let path = |number: usize| format!("me@{network}-{own}-{number}.slow.test");
    let talks: Vec<Talk> = (0..count).map(|number| server.begin(room, &path(number))).collect();
    talks.iter().for_each(|talk| room.send(talk, b"DATA\r\n"));
    room.pass(Micros::from_millis(100));
    talks
}

/// The reply to the end of a message from this author.
fn message(room: &mut Room, server: &mut NameServer, author: &str) -> String {
    let mut talk = server.begin(room, author);
    assert!(server.smtp(room, &mut talk, "DATA").starts_with("354 "));
    let reply = server.smtp(room, &mut talk, &format!("From: {author}\r\n\r\nLetter\r\n."));
    room.close(&talk);
    reply
}

#[test]
fn a_network_holds_only_a_share_of_the_dns_questions() {
    let (mut room, mut server) = serving_as(1540, Mood::Answers, AT_ONCE);
    server.ignored = Some(".slow.test");
    server.zone.push(("other.test", TEXT, text("v=spf1 ip4:198.51.100.7 -all")));
    server.zone.push(("_dmarc.reject.test", TEXT, text("v=DMARC1; p=reject")));
    ask_many_questions(&mut room, &mut server, Ipv4Address::new(203, 0, 113, 7), 60);
    assert_eq!(room.engines.in_use().questions, 32, "an address may have a third of the questions");
    ask_many_questions(&mut room, &mut server, Ipv4Address::new(203, 0, 113, 8), 60);
    assert_eq!(room.engines.in_use().questions, 48, "a network may have half of the questions");
    let unchecked = "451 4.7.0 Cannot check the message now, try again later";
    assert_eq!(
        message(&mut room, &mut server, "ceo@reject.test"),
        unchecked,
        "an unchecked message is deferred"
    );
    room.hosts[EXTERNAL].move_to(Ipv4Address::new(198, 51, 100, 7));
    assert!(message(&mut room, &mut server, "me@other.test").starts_with("250 "));
    assert!(message(&mut room, &mut server, "ceo@reject.test").starts_with("550 5.7.26 "));
    assert_eq!(room.engines.in_use().questions, 48, "all questions still wait");
    let all = messages_of(&room, "ada");
    let [(mailbox, message)] = &all[..] else { panic!("{all:?}") };
    let message = String::from_utf8_lossy(message);
    assert!(
        *mailbox == INBOX && message.contains("spf=pass smtp.mailfrom=other.test;"),
        "{message}"
    );
}

#[test]
fn many_waiting_networks_leave_dns_questions_for_a_client() {
    let lists = "dnsbl = [\"block.test\", \"other.test\"]\ndnsbl_junk = [\"junk.test\"]\ndnswl = [\"trust.test\"]\n";
    let (mut room, mut server) = serving_as(1541, Mood::Answers, &format!("{AT_ONCE}{lists}"));
    server.ignored = Some(".slow.test");
    // Each network takes the largest share that it can get of the remaining questions.
    for (network, share) in [(1, 32), (2, 16), (3, 8), (4, 4)] {
        ask_many_questions(&mut room, &mut server, Ipv4Address::new(203, 0, network, 7), share);
        ask_many_questions(&mut room, &mut server, Ipv4Address::new(203, 0, network, 8), share / 2);
    }
    assert_eq!(room.engines.in_use().questions, 90);
    room.hosts[EXTERNAL].move_to(Ipv4Address::new(198, 51, 100, 7));
    let mut talk = server.begin(&mut room, "me@pass.test");
    assert_eq!(
        server.smtp(&mut room, &mut talk, "RCPT TO:<grace@barepost.test>"),
        "250 2.1.5 Recipient OK"
    );
    let asked =
        |list: &str| server.asked.iter().any(|(name, _)| *name == format!("7.100.51.198.{list}"));
    for list in ["block.test", "other.test", "junk.test", "trust.test"] {
        assert!(asked(list), "{list}");
    }
}
