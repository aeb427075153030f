//! Forwarding: the accounts that forward, the rewritten sender address, and reports about forwarded
//! messages.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use chance::Dice;
use http::Site;
use simulated::MemoryDisk;
use simulated::room::with_message;
use store::{Flags, OUTBOX};

use super::dmarc::{JUNK, messages_of};
use super::dns::{EXTERNAL, FAR, TEXT, text};
use super::relay::{MESSAGE, Mood, Taken, World, configuration, world_of};
use super::room::tls_stream::Trust;
use super::room::{DISK_BYTES, Room, Talk, stuffed, usual_sizes};
use super::webmail::{Browser, between};

pub(super) const BOB: &str = "forward = [\"bob@far.test\"]";
pub(super) const FRANK: &str = "frank@far.test";
const BOUNCE: &[u8] = b"From: postmaster@far.test\r\nSubject: Bounced\r\n\r\nNo.\r\n";

/// Adds these lines to an account of the configuration.
pub(super) fn of(user: &str, lines: &str, configuration: &str) -> String {
    let address = format!("address = \"{user}@barepost.test\"");
    configuration.replace(&address, &format!("{address}\n{lines}"))
}

pub(super) fn serving_as(
    seed: u64,
    disk: MemoryDisk,
    mood: Mood,
    configuration: &str,
) -> (Room, World) {
    serving_where(seed, disk, mood, configuration, "v=spf1 ip4:203.0.113.7 -all")
}

/// Like [`serving_as`], with this SPF record of Frank's domain.
fn serving_where(
    seed: u64,
    disk: MemoryDisk,
    mood: Mood,
    configuration: &str,
    spf: &str,
) -> (Room, World) {
    let (mut room, mut world) =
        world_of(Room::configured(seed, disk, usual_sizes(), configuration), mood);
    room.hosts[EXTERNAL].move_to(FAR);
    world.names.zone.push(("far.test", TEXT, text(spf)));
    (room, world)
}

/// A machine that forwards Grace's mail as `lines` say.
pub(super) fn serving(seed: u64, mood: Mood, lines: &str) -> (Room, World) {
    serving_as(seed, MemoryDisk::blank(DISK_BYTES), mood, &of("grace", lines, &configuration()))
}

/// Delivers a message from the external client to port 25. Returns the reply to the end of data, or
/// the reply that rejects a recipient.
fn bring(world: &mut World, room: &mut Room, from: &str, to: &[&str], message: &[u8]) -> String {
    let talk = room.connect_from(EXTERNAL, 25);
    bring_by(talk, world, room, from, to, message)
}

fn bring_by(
    mut talk: Talk,
    world: &mut World,
    room: &mut Room,
    from: &str,
    to: &[&str],
    message: &[u8],
) -> String {
    assert!(world.reply(room, &mut talk).starts_with("220 "));
    for command in ["EHLO client.test", &format!("MAIL FROM:<{from}> BODY=8BITMIME")] {
        let reply = world.say(room, &mut talk, command);
        assert!(reply.starts_with("250 "), "{command}: {reply}");
    }
    let mut reply = String::new();
    for to in to {
        reply = world.say(room, &mut talk, &format!("RCPT TO:<{to}>"));
        if !reply.starts_with("250 ") {
            room.close(&talk);
            return reply;
        }
    }
    assert!(world.say(room, &mut talk, "DATA").starts_with("354 "), "{reply}");
    room.send(&talk, &stuffed(message));
    let reply = world.say(room, &mut talk, ".");
    room.close(&talk);
    reply
}

/// Like [`delivered`], but from a host of the local network.
pub(super) fn delivered_locally(
    world: &mut World,
    room: &mut Room,
    from: &str,
    to: &[&str],
    message: &[u8],
) {
    let talk = room.connect(25);
    let reply = bring_by(talk, world, room, from, to, message);
    assert!(reply.starts_with("250 "), "{reply}");
}

pub(super) fn delivered(
    world: &mut World,
    room: &mut Room,
    from: &str,
    to: &[&str],
    message: &[u8],
) {
    let reply = bring(world, room, from, to, message);
    assert!(reply.starts_with("250 "), "{reply}");
}

/// The messages that the peer has taken for a recipient.
pub(super) fn taken(world: &World, to: &str) -> Vec<Taken> {
    world.peer.taken.iter().filter(|taken| taken.to == [to]).cloned().collect()
}

pub(super) fn text_of(taken: &Taken) -> String {
    String::from_utf8_lossy(&taken.content).into_owned()
}

/// The text of a message without the `X-Loop` fields, by which the machine recognises its own
/// messages.
pub(super) fn unmarked(taken: &Taken) -> String {
    let text = text_of(taken);
    text.split_inclusive("\r\n").filter(|line| !line.starts_with("X-Loop: ")).collect()
}

#[test]
fn mail_is_forwarded_with_srs_and_kept_if_configured() {
    for (seed, lines, kept) in
        [(1000, BOB.to_string(), 1), (1001, format!("{BOB}\nkeep = false"), 0)]
    {
        let (mut room, mut world) = serving(seed, Mood::Takes, &lines);
        let long = [MESSAGE, &b"It computes, and computes again.\r\n.\r\n".repeat(20_000)].concat();
        for (number, message) in [MESSAGE, &long].into_iter().enumerate() {
            delivered(
                &mut world,
                &mut room,
                FRANK,
                &["ada@barepost.test", "grace+tag@barepost.test"],
                message,
            );
            world.until(&mut room, "the message has arrived", |world, _| {
                world.peer.taken.len() > number
            });
            world.pass(&mut room, 60);
            let [.., sent] = &taken(&world, "bob@far.test")[..] else {
                panic!("{:?}", world.peer.taken)
            };
            assert!(
                sent.from.starts_with("SRS0=")
                    && sent.from.ends_with("=far.test=frank@barepost.test"),
                "{}",
                sent.from
            );
            let begins = "Delivered-To: grace@barepost.test\r\nAuthentication-Results: mail.barepost.test;\r\n\tspf=pass";
            assert!(unmarked(sent).starts_with(begins), "{}", text_of(sent));
            assert_eq!(text_of(sent).matches("\r\nX-Loop: ").count(), 1);
            assert!(sent.content.ends_with(message) && !text_of(sent).contains("Return-Path"));
            let (ada, grace) = (world.inbox(&mut room, "ada"), world.inbox(&mut room, "grace"));
            assert_eq!(
                (ada.len(), grace.len(), world.peer.taken.len()),
                (number + 1, kept * (number + 1), number + 1)
            );
            assert!(grace.last().is_none_or(|copy| Some(copy) == ada.last()), "{grace:?}");
        }
        room.until_nothing_is_in_use();
    }
}

#[test]
fn only_ascii_mail_is_forwarded_to_hosts_without_8bitmime() {
    // The delivering host sends no BODY parameter.
    let (mut room, mut world) = serving(1019, Mood::Tells, BOB);
    let long = [
        &b"From: frank@far.test\r\nSubject: Cards\r\n\r\n"[..],
        &b"It computes, and computes again.\r\n.\r\n".repeat(20_000),
    ]
    .concat();
    delivered(&mut world, &mut room, FRANK, &["grace@barepost.test"], &long);
    world.pass(&mut room, 60);
    let [sent] = &taken(&world, "bob@far.test")[..] else { panic!("{:?}", world.peer.taken) };
    assert!(sent.content.ends_with(&long));
    let more = [&long, "Sm\u{f8}rebr\u{f8}d\r\n".as_bytes()].concat();
    delivered(&mut world, &mut room, FRANK, &["grace@barepost.test"], &more);
    world.pass(&mut room, 120);
    assert_eq!(taken(&world, "bob@far.test").len(), 1);
    let [bounce] = &taken(&world, FRANK)[..] else { panic!("{:?}", world.peer.taken) };
    assert!(
        text_of(bounce).contains("other server does not support 8BITMIME, which the message needs"),
        "{bounce:?}"
    );
    room.until_nothing_is_in_use();
}

#[test]
fn forwarding_sends_one_copy_and_keeps_the_null_sender() {
    let lines =
        "forward = [\"bob@far.test\", \"ada@barepost.test\", \"carol@far.test\"]\nkeep = false";
    let (mut room, mut world) = serving(1002, Mood::Takes, lines);
    delivered(&mut world, &mut room, "", &["grace@barepost.test"], MESSAGE);
    // One message is from a local user, and one from an address that is too long to rewrite.
    world.submit(&mut room, &["grace@barepost.test"], MESSAGE);
    let long = format!("{}@far.test", "f".repeat(60));
    delivered(&mut world, &mut room, &long, &["grace@barepost.test"], MESSAGE);
    world.pass(&mut room, 600);
    for to in ["bob@far.test", "carol@far.test"] {
        let mut from: Vec<String> =
            taken(&world, to).iter().map(|taken| taken.from.clone()).collect();
        from.sort();
        let [null, ada, grace] = &from[..] else { panic!("{from:?}") };
        assert_eq!((null.as_str(), grace.as_str()), ("", "grace@barepost.test"));
        assert!(
            ada.starts_with("SRS0=") && ada.ends_with("=barepost.test=ada@barepost.test"),
            "{ada}"
        );
    }
    let inbox = world.inbox(&mut room, "ada");
    assert_eq!(
        (inbox.len(), world.inbox(&mut room, "grace").len(), world.peer.taken.len()),
        (3, 0, 6)
    );
    assert!(
        inbox.iter().all(|message| message.contains("\r\nDelivered-To: grace@barepost.test\r\n")),
        "{inbox:?}"
    );
    room.until_nothing_is_in_use();
}

#[test]
fn bounces_of_forwarded_mail_return_to_the_original_sender() {
    let (mut room, mut world) = serving(1003, Mood::Takes, BOB);
    delivered(&mut world, &mut room, FRANK, &["grace@barepost.test"], MESSAGE);
    world.pass(&mut room, 60);
    let path = taken(&world, "bob@far.test")[0].from.clone();
    delivered(&mut world, &mut room, "", &[&path.to_lowercase()], BOUNCE);
    world.pass(&mut room, 60);
    let [bounce] = &taken(&world, FRANK)[..] else { panic!("{:?}", world.peer.taken) };
    assert_eq!(bounce.from, "");
    assert!(
        text_of(bounce).starts_with("Received: from client.test")
            && text_of(bounce).contains("Subject: Bounced")
    );
    for (from, to) in [
        (FRANK, path.clone()),
        ("", path.replace("frank", "eve")),
        ("", "SRS0=AAAAAA=AA=far.test=frank@barepost.test".to_string()),
        ("", "srs1+x@barepost.test".to_string()),
    ] {
        let reply = bring(&mut world, &mut room, from, &[&to], MESSAGE);
        assert!(reply.starts_with("550 5.1.1 "), "{from} {to}: {reply}");
    }
    (0..23).for_each(|_| world.pass(&mut room, 86_400));
    let reply = bring(&mut world, &mut room, "", &[&path], MESSAGE);
    assert!(reply.starts_with("550 5.1.1 "), "{reply}");
    assert_eq!((world.peer.taken.len(), world.inbox(&mut room, "ada").len()), (2, 0));
    room.until_nothing_is_in_use();
}

#[test]
fn a_failed_forward_is_reported_once() {
    let (mut room, mut world) = serving(1004, Mood::RefusesBob, BOB);
    delivered(&mut world, &mut room, FRANK, &["grace@barepost.test"], MESSAGE);
    world.submit(&mut room, &["grace@barepost.test"], MESSAGE);
    delivered(&mut world, &mut room, "", &["grace@barepost.test"], MESSAGE);
    world.pass(&mut room, 3600);
    let [report] = &taken(&world, FRANK)[..] else { panic!("{:?}", world.peer.taken) };
    let report_text = text_of(report);
    assert!(
        report.from.is_empty()
            && report_text.starts_with("Date: ")
            && report_text.contains("\r\nTo: <frank@far.test>\r\n"),
        "{report_text}"
    );
    assert!(
        report_text.contains("Final-Recipient: rfc822; bob@far.test")
            && report_text.contains("Status: 5.1.1"),
        "{report_text}"
    );
    let ada = world.inbox(&mut room, "ada");
    assert!(ada.len() == 1 && ada[0].contains("Final-Recipient: rfc822; bob@far.test"), "{ada:?}");
    // Grace has a report that the bounce was not forwarded, in addition to three messages.
    let grace = world.inbox(&mut room, "grace");
    let [_, _, _, report_text] = &grace[..] else { panic!("{grace:?}") };
    assert!(
        report_text.starts_with("Return-Path: <>\r\n")
            && report_text.contains("\r\nTo: <grace@barepost.test>\r\n"),
        "{report_text}"
    );
    assert!(
        report_text.contains("Final-Recipient: rfc822; bob@far.test")
            && world.peer.taken.len() == 1,
        "{report_text}"
    );
    room.until_nothing_is_in_use();
}

/// If SPF fails or has no result, no report goes to the sender. The same holds for mail from a host
/// in the local network, which is not checked.
#[test]
fn no_report_goes_to_a_sender_that_is_not_authenticated() {
    let no = [
        "v=spf1 -all",
        "v=spf1 ~all",
        "v=spf1 ?all",
        "v=spf1 include:failing.test -all",
        "no policy",
    ];
    for (number, spf) in no.into_iter().chain(["v=spf1 ip4:203.0.113.7 -all"]).enumerate() {
        let (seed, disk) = (1510 + number as u64, MemoryDisk::blank(DISK_BYTES));
        let configuration = of("grace", &format!("{BOB}\nkeep = false"), &configuration());
        let (mut room, mut world) = serving_where(seed, disk, Mood::Takes, &configuration, spf);
        world.names.failing.push("failing.test");
        if number < no.len() {
            delivered(&mut world, &mut room, FRANK, &["grace@barepost.test"], MESSAGE);
        } else {
            delivered_locally(&mut world, &mut room, FRANK, &["grace@barepost.test"], MESSAGE);
        }
        world.pass(&mut room, 600);
        let [sent] = &taken(&world, "bob@far.test")[..] else {
            panic!("{spf}: {:?}", world.peer.taken)
        };
        assert_eq!(
            sent.from, "grace@barepost.test",
            "{spf}: the account is the sender of the forwarded message"
        );
        world.peer.mood = Mood::RefusesBob;
        let bring = if number < no.len() { delivered } else { delivered_locally };
        bring(&mut world, &mut room, FRANK, &["grace@barepost.test"], MESSAGE);
        // A bounce, as another server would send it.
        delivered(&mut world, &mut room, "", &["grace@barepost.test"], BOUNCE);
        world.pass(&mut room, 3600);
        assert_eq!(world.peer.taken.len(), 1, "{spf}: {:?}", world.peer.taken);
        let grace = world.inbox(&mut room, "grace");
        let [message, bounce] = &grace[..] else { panic!("{spf}: {grace:?}") };
        for (report, subject) in [(message, "Subject: Away"), (bounce, "Subject: Bounced")] {
            assert!(
                report.contains("Final-Recipient: rfc822; bob@far.test")
                    && report.contains(subject),
                "{report}"
            );
            assert!(report.contains("\r\nTo: <grace@barepost.test>\r\n"), "{report}");
            let subject = subject.trim_start_matches("Subject: ");
            let words = format!(
                "\r\nA message for you with the subject \"{subject}\" could not be forwarded to:\r\n"
            );
            assert!(report.contains(&words), "{report}");
        }
        room.until_nothing_is_in_use();
    }
}

#[test]
fn delay_notices_go_where_reports_go() {
    for (seed, spf, recipient) in
        [(1520, "v=spf1 ip4:203.0.113.7 -all", FRANK), (1521, "v=spf1 -all", "grace@barepost.test")]
    {
        let configuration = of("grace", &format!("{BOB}\nkeep = false"), &configuration());
        let disk = MemoryDisk::blank(DISK_BYTES);
        let (mut room, mut world) =
            serving_where(seed, disk, Mood::RefusesForNow, &configuration, spf);
        delivered(&mut world, &mut room, FRANK, &["grace@barepost.test"], MESSAGE);
        world.pass(&mut room, 12 * 3600);
        world.peer.mood = Mood::RefusesBob;
        world.pass(&mut room, 24 * 3600);
        let at_frank: Vec<String> = taken(&world, FRANK).iter().map(text_of).collect();
        let at_grace = world.inbox(&mut room, "grace");
        let (reports, others) =
            if recipient == FRANK { (&at_frank, &at_grace) } else { (&at_grace, &at_frank) };
        assert!(others.is_empty(), "{others:?}");
        for action in ["Action: delayed", "Action: failed"] {
            let found: Vec<_> = reports.iter().filter(|report| report.contains(action)).collect();
            assert!(
                found.len() == 1 && found[0].contains(&format!("\r\nTo: <{recipient}>\r\n")),
                "{reports:?}"
            );
        }
        room.until_nothing_is_in_use();
    }
}

#[test]
fn a_message_that_comes_back_is_not_forwarded_again() {
    let circle = of("ada", "forward = [\"grace@barepost.test\"]", &configuration());
    let circle = of("grace", "forward = [\"countess@barepost.test\", \"bob@far.test\"]", &circle);
    let (mut room, mut world) =
        serving_as(1005, MemoryDisk::blank(DISK_BYTES), Mood::Takes, &circle);
    delivered(&mut world, &mut room, FRANK, &["ada@barepost.test"], MESSAGE);
    world.pass(&mut room, 600);
    let [message] = &taken(&world, "bob@far.test")[..] else { panic!("{:?}", world.peer.taken) };
    let begins = "Delivered-To: grace@barepost.test\r\nDelivered-To: ada@barepost.test\r\n";
    assert!(unmarked(message).starts_with(begins));
    assert!(
        message.from.starts_with("SRS0=")
            && message.from.ends_with("=far.test=frank@barepost.test"),
        "{}",
        message.from
    );
    let [report] = &taken(&world, FRANK)[..] else { panic!("{:?}", world.peer.taken) };
    assert!(text_of(report).contains("Status: 5.4.6"), "{}", text_of(report));
    assert_eq!(
        (world.inbox(&mut room, "ada").len(), world.inbox(&mut room, "grace").len()),
        (1, 1)
    );
    // Another server sends the forwarded message back.
    delivered(&mut world, &mut room, &message.from, &["grace@barepost.test"], &message.content);
    delivered(&mut world, &mut room, "", &["grace@barepost.test"], &message.content);
    world.pass(&mut room, 86_400);
    // Our SPF record does not allow the host that sends the message back, so the report goes to the
    // account.
    assert_eq!((taken(&world, FRANK).len(), world.peer.taken.len()), (1, 2));
    let grace = world.inbox(&mut room, "grace");
    let [_, first, second] = &grace[..] else { panic!("{grace:?}") };
    assert!(
        [first, second].iter().all(|report_text| report_text.contains("Status: 5.4.6")),
        "{grace:?}"
    );
    assert_eq!(world.inbox(&mut room, "ada").len(), 1);
    room.until_nothing_is_in_use();
}

#[test]
fn junk_is_not_forwarded() {
    let (mut room, mut world) = serving(1006, Mood::Takes, &format!("{BOB}\nkeep = false"));
    world.names.zone.push(("_dmarc.fail.test", TEXT, text("v=DMARC1; p=quarantine")));
    world.names.zone.push(("fail.test", TEXT, text("v=spf1 -all")));
    for from in ["eve@fail.test", "eve@soft.test"] {
        let mut talk = room.connect_from(EXTERNAL, 25);
        assert!(world.reply(&mut room, &mut talk).starts_with("220 "));
        let path = format!("MAIL FROM:<{from}>");
        for command in ["EHLO far.test", &path, "RCPT TO:<grace@barepost.test>", "DATA"] {
            assert!(world.say(&mut room, &mut talk, command).starts_with(['2', '3']));
        }
        let message = format!("From: {from}\r\nSubject: {from}\r\n\r\nHello.\r\n.");
        assert!(world.say(&mut room, &mut talk, &message).starts_with("250 "));
        room.close(&talk);
    }
    world.pass(&mut room, 600);
    let [sent] = &world.peer.taken[..] else { panic!("{:?}", world.peer.taken) };
    assert!(
        sent.from == "grace@barepost.test" && text_of(sent).contains("Subject: eve@soft.test"),
        "{sent:?}"
    );
    let all = messages_of(&room, "grace");
    let [(mailbox, junk)] = &all[..] else { panic!("{all:?}") };
    assert_eq!(*mailbox, JUNK);
    assert!(String::from_utf8_lossy(junk).contains("X-Barepost-Reason: "));
}

#[test]
fn forgeries_of_our_own_addresses_are_not_forwarded() {
    let configuration = of("grace", &format!("{BOB}\nkeep = false"), &configuration());
    let configuration = configuration.replace("mail.barepost.test", "mail.host.test");
    let (mut room, mut world) =
        serving_as(1009, MemoryDisk::blank(DISK_BYTES), Mood::Takes, &configuration);
    for domain in ["_dmarc.barepost.test", "_dmarc.host.test", "_dmarc.soft.test"] {
        world.names.zone.push((domain, TEXT, text("v=DMARC1; p=none")));
    }
    let forged =
        ["a@barepost.test", "b@office.barepost.test", "c@a+b.barepost.test", "d@host.test"];
    for from in forged.into_iter().chain(["eve@soft.test"]) {
        let message = format!("From: {from}\r\nSubject: {from}\r\n\r\nHello.\r\n");
        delivered(&mut world, &mut room, FRANK, &["grace@barepost.test"], message.as_bytes());
    }
    world.pass(&mut room, 600);
    let [sent] = &world.peer.taken[..] else { panic!("{:?}", world.peer.taken) };
    assert!(text_of(sent).contains("Subject: eve@soft.test"), "{sent:?}");
    let kept = world.inbox(&mut room, "grace");
    assert_eq!(kept.len(), forged.len(), "{kept:?}");
    assert!(
        kept.iter().zip(forged).all(|(kept, from)| kept.contains(&format!("Subject: {from}\r\n"))),
        "{kept:?}"
    );
    room.until_nothing_is_in_use();
}

#[test]
fn an_entry_ends_when_its_forward_addresses_were_removed() {
    let (room, _) = serving(1011, Mood::Takes, BOB);
    let disk = room.machine.disk.power_cut(&mut Dice::new(1011));
    let arrived = b"Return-Path: <frank@far.test>\r\nSubject: Arrived\r\n\r\nHello.\r\n";
    let marks = Flags::SEEN.with(Flags::LEAVING).with(Flags::DRAFT);
    // The entry says that Bob has the message, and the configuration forwards nothing for Grace.
    let disk = with_message(&disk, ("grace@barepost.test", OUTBOX), (marks, 0b10), arrived);
    let (mut room, mut world) = serving_as(1012, disk, Mood::Takes, &configuration());
    world.pass(&mut room, 600);
    assert_eq!((world.peer.taken.len(), world.inbox(&mut room, "grace").len()), (0, 1));
    assert_eq!(messages_of(&room, "grace").len(), 1, "nothing is left in the outbox");
    room.until_nothing_is_in_use();
}

#[test]
fn a_relayed_bounce_is_not_for_a_local_account() {
    let (mut room, mut world) = serving(1010, Mood::Takes, BOB);
    world.names.zone.push(("_dmarc.fail.test", TEXT, text("v=DMARC1; p=quarantine")));
    delivered(&mut world, &mut room, FRANK, &["grace@barepost.test"], MESSAGE);
    world.pass(&mut room, 60);
    let path = taken(&world, "bob@far.test")[0].from.clone();
    let message = b"From: eve@fail.test\r\nSubject: No bounce\r\n\r\nHello.\r\n";
    for to in [[&*path, "ada@barepost.test"], ["ada@barepost.test", &*path]] {
        let reply = bring(&mut world, &mut room, "", &to, message);
        assert!(reply.starts_with("452 4.5.3 "), "{reply}");
        delivered(&mut world, &mut room, "", &to[..1], message);
    }
    world.pass(&mut room, 60);
    assert_eq!(taken(&world, FRANK).len(), 1);
    let [(mailbox, _)] = &messages_of(&room, "ada")[..] else { panic!("Ada has one message") };
    assert_eq!(*mailbox, JUNK);
    room.until_nothing_is_in_use();
}

#[test]
fn local_webmail_messages_are_forwarded_too() {
    let trust = Trust::new("mail.barepost.test");
    let (disk, certificates) = (MemoryDisk::blank(DISK_BYTES), vec![trust.certificate.clone()]);
    let configuration = of("grace", BOB, &configuration());
    let room =
        Room::certified(1007, disk, usual_sizes(), &configuration, Site::default(), certificates);
    let (mut room, mut world) = world_of(room, Mood::Takes);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let token = ada.get(&mut room, "/mail/compose").token();
    let form = [
        ("token", token.as_str()),
        ("to", "grace@barepost.test, countess@barepost.test"),
        ("subject", "Here"),
        ("text", "It computes."),
        ("do", "send"),
    ];
    ada.post(&mut room, "/mail/compose", &form);
    world.pass(&mut room, 600);
    let [sent] = &world.peer.taken[..] else { panic!("{:?}", world.peer.taken) };
    assert!(sent.from.starts_with("SRS0=") && sent.to == ["bob@far.test"], "{sent:?}");
    assert_eq!(
        (world.inbox(&mut room, "grace").len(), world.inbox(&mut room, "ada").len()),
        (1, 1)
    );
}

#[test]
fn an_account_cannot_cancel_what_it_forwards() {
    let trust = Trust::new("mail.barepost.test");
    let (disk, certificates) = (MemoryDisk::blank(DISK_BYTES), vec![trust.certificate.clone()]);
    let configuration = of("grace", BOB, &configuration());
    let room =
        Room::certified(1009, disk, usual_sizes(), &configuration, Site::default(), certificates);
    let (mut room, mut world) = world_of(room, Mood::RefusesForNow);
    world.submit(&mut room, &["grace@barepost.test"], MESSAGE);
    world.pass(&mut room, 60);
    let mut grace = Browser::new(&trust);
    grace.log_in(&mut room, "grace", "lovelace");
    let token = grace.get(&mut room, "/mail/compose").token();
    let list = grace.get(&mut room, "/mail/box/7").text();
    let row = between(&list, "name=\"key\" value=\"", "\"").unwrap_or_else(|| panic!("{list}"));
    let form = [("token", &*token), ("here", "/mail/box/7"), ("do", "cancel"), ("key", row)];
    let page = grace.post(&mut room, "/mail/act", &form).text();
    assert!(page.contains("Nothing was changed: ") && page.contains(row), "{page}");
    grace.hang_up(&mut room);
    world.peer.mood = Mood::Takes;
    world.pass(&mut room, 3600);
    assert_eq!(taken(&world, "bob@far.test").len(), 1);
}

/// Runs the same scenario repeatedly, with the power cut one step later each time.
#[test]
fn forwarded_mail_survives_a_power_cut_at_any_step() {
    let lines = "forward = [\"carol@far.test\", \"bob@far.test\", \"ada@barepost.test\"]";
    let configuration = of("grace", lines, &configuration());
    let (mut once, mut twice, mut steps) = (0, 0, 0);
    loop {
        let (mut room, mut world) =
            serving_as(1008, MemoryDisk::blank(DISK_BYTES), Mood::RefusesBob, &configuration);
        delivered(&mut world, &mut room, FRANK, &["grace@barepost.test"], MESSAGE);
        let is_over = world.step(&mut room, steps).as_secs() > 50;
        let before = world.peer.taken;
        let disk = room.machine.disk.power_cut(&mut Dice::new(7000 + steps));
        let (mut room, mut world) =
            serving_as(7000 + steps, disk, Mood::RefusesBob, &configuration);
        world.peer.taken = before;
        world.pass(&mut room, 5 * 3600);
        let counts = [taken(&world, "carol@far.test").len(), taken(&world, FRANK).len()];
        assert!(
            counts.iter().all(|count| (1..=2).contains(count)),
            "{counts:?} after {steps} steps"
        );
        for count in counts {
            (once, twice) = (once + usize::from(count == 1), twice + usize::from(count == 2));
        }
        let counts = (world.inbox(&mut room, "grace").len(), world.inbox(&mut room, "ada").len());
        assert_eq!(counts, (1, 1), "after {steps} steps");
        if is_over {
            break;
        }
        steps += 1 + steps / 40;
    }
    assert!(once > 8 * twice && once > 100, "{once} once, {twice} twice");
}
