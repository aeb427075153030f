//! Submitted mail to a recipient with a used-up quota. The sender is told at once. The mail waits
//! as long as remote mail and is delivered once, or the sender gets another report.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use chance::Dice;
use http::Site;
use machine::Micros;
use simulated::MemoryDisk;

use super::held_files::fill;
use super::quotas::{limited, message, remove_first};
use super::relay::{ADA, MESSAGE, Mood, World, configuration, world_of};
use super::room::tls_stream::Trust;
use super::room::{CONFIGURATION, DISK_BYTES, NO_QUOTA, Room, usual_sizes};
use super::settings::{again, forget_connections};
use super::webmail::Browser;

/// A machine on which Ada has a quota of one mebibyte, as Grace has.
fn serving(seed: u64, mood: Mood) -> (Room, World) {
    let ada = "address = \"ada@barepost.test\"";
    let configuration = limited(&configuration()).replace(ada, &format!("{ada}\nquota = \"1M\""));
    world_of(
        Room::configured(seed, MemoryDisk::blank(DISK_BYTES), usual_sizes(), &configuration),
        mood,
    )
}

/// How often the delay reports in an inbox name each of these recipients.
fn delayed(inbox: &[String], recipients: &[&str]) -> Vec<usize> {
    let of = |recipient: &&str| {
        let named = format!("Final-Recipient: rfc822; {recipient}\r\nAction: delayed\r\n");
        inbox.iter().map(|text| text.matches(&named).count()).sum()
    };
    recipients.iter().map(of).collect()
}

#[test]
fn submitted_mail_waits_for_quota_and_arrives_once() {
    for seed in [910, 911] {
        let (mut room, mut world) = serving(seed, Mood::Takes);
        (0..2).for_each(|_| world.submit(&mut room, &["grace@barepost.test"], &message(450)));
        world.submit(&mut room, &["grace@barepost.test", "bob@far.test"], &message(300));
        world.pass(&mut room, 3600);
        assert_eq!((world.peer.taken.len(), world.inbox(&mut room, "grace").len()), (1, 2));
        remove_first(&mut room, "grace");
        world.pass(&mut room, 3 * 3600);
        let inbox = world.inbox(&mut room, "grace");
        // Ada was told that Grace has no space.
        assert_eq!(
            (inbox.len(), world.peer.taken.len(), world.inbox(&mut room, "ada").len()),
            (2, 1, 1)
        );
        assert!(inbox[1].contains("Subject: Large") && inbox[1].len() < 320_000);
        remove_first(&mut room, "grace");
        (0..6).for_each(|_| world.pass(&mut room, 86_400));
        assert_eq!(
            (world.inbox(&mut room, "grace").len(), world.inbox(&mut room, "ada").len()),
            (1, 1)
        );
        room.until_nothing_is_in_use();
    }
}

/// A message is held until Grace and Eve have no space. They are in different entries. Bob's host
/// defers the message or does not answer, which is reported hours later.
#[test]
fn a_full_mailbox_is_reported_within_minutes() {
    let (grace, eve, bob) = ("grace@barepost.test", "eve@barepost.test", "bob@far.test");
    let configuration = limited(&configuration()).replace("quota = \"200M\"", "quota = \"1M\"");
    let disk = || MemoryDisk::blank(DISK_BYTES);
    for (seed, to_bob, mood, minutes) in [
        (923, "", Mood::Silent, 1),
        (924, "<bob@far.test>", Mood::RefusesForNow, 3),
        (925, "<bob@far.test>", Mood::Silent, 5),
    ] {
        let room = Room::configured(seed, disk(), usual_sizes(), &configuration);
        let (mut room, mut world) = world_of(room, mood);
        let eve_told = format!("<{eve}> NOTIFY=SUCCESS,FAILURE,DELAY");
        let to = [&format!("<{grace}>"), &eve_told[..], to_bob];
        let to: Vec<&str> = to.into_iter().filter(|to| !to.is_empty()).collect();
        let from = "<ada@barepost.test> SIZE=320000 HOLDFOR=600";
        world.submit_with(&mut room, from, &to, &message(300));
        for user in [grace, grace, eve, eve] {
            world.submit(&mut room, &[user], &message(450));
        }
        world.pass(&mut room, 600 + minutes * 60);
        let inbox = world.inbox(&mut room, "ada");
        assert_eq!((inbox.len(), delayed(&inbox, &[grace, eve, bob])), (1, vec![1, 1, 0]));
        assert_eq!(inbox[0].matches("    The mailbox is full.\r\n").count(), 2, "{}", inbox[0]);
        assert_eq!(inbox[0].matches("Status: 4.").count(), 2, "{}", inbox[0]);
        world.pass(&mut room, 10 * 3600);
        let inbox = world.inbox(&mut room, "ada");
        let is_bob_delayed = usize::from(!to_bob.is_empty());
        assert_eq!(delayed(&inbox, &[grace, eve, bob]), [1, 1, is_bob_delayed]);
        for user in ["grace", "eve"] {
            remove_first(&mut room, user);
        }
        world.pass(&mut room, 7 * 3600);
        let counts = ["grace", "eve"].map(|user| world.inbox(&mut room, user).len());
        assert_eq!(counts, [2, 2]);
    }
}

/// A message is held until the disk is full.
#[test]
fn a_full_disk_is_reported_within_minutes() {
    let configuration = [&*configuration(), NO_QUOTA].concat();
    let room = Room::configured(926, MemoryDisk::blank(3 << 20), usual_sizes(), &configuration);
    let (mut room, mut world) = world_of(room, Mood::Takes);
    let (from, to) = ("<ada@barepost.test> HOLDFOR=600", ["<grace@barepost.test>"]);
    world.submit_with(&mut room, from, &to, &message(400));
    [100_000, 30_000].into_iter().for_each(|octets| fill(&mut room, octets));
    world.pass(&mut room, 900);
    let inbox = world.inbox(&mut room, "ada");
    assert_eq!((inbox.len(), delayed(&inbox, &["grace@barepost.test"])), (1, vec![1]));
    let words = "    This server has no space for the message.\r\n";
    assert!(inbox[0].contains(words) && inbox[0].contains("Status: 4.3.1\r\n"), "{}", inbox[0]);
    let before = world.inbox(&mut room, "grace").len();
    (0..before).for_each(|_| remove_first(&mut room, "grace"));
    world.pass(&mut room, 3600);
    let inbox = world.inbox(&mut room, "grace");
    assert!(inbox.len() == 1 && inbox[0].contains("Subject: Large"));
    room.until_nothing_is_in_use();
}

#[test]
fn an_outbox_may_hold_half_the_quota() {
    for (seed, sends_on) in [(913, false), (914, true)] {
        let ada = "address = \"ada@barepost.test\"";
        let forward = if sends_on { "forward = [\"grace@barepost.test\"]\n" } else { "" };
        let quota = format!("{ada}\n{forward}quota = \"1M\"");
        let configuration = limited(&configuration()).replace(ada, &quota);
        let room =
            Room::configured(seed, MemoryDisk::blank(DISK_BYTES), usual_sizes(), &configuration);
        let (mut room, mut world) = world_of(room, Mood::Takes);
        (0..2).for_each(|_| world.submit(&mut room, &["grace@barepost.test"], &message(450)));
        // Grace's quota has no space for these messages.
        let both = ["grace@barepost.test", "bob@far.test"];
        for _ in 0..2 {
            world.submit(&mut room, &both, &message(300));
            world.pass(&mut room, 60);
        }
        let mut talk = room.connect(587);
        room.smtp_reply(&mut talk);
        for command in
            ["EHLO client.test", ADA, "MAIL FROM:<ada@barepost.test>", "RCPT TO:<bob@far.test>"]
        {
            assert!(world.say(&mut room, &mut talk, command).starts_with('2'), "{command}");
        }
        let reply = world.say(&mut room, &mut talk, "DATA");
        assert_eq!(
            reply,
            "452 4.2.2 Too many of your messages are waiting to be sent, try again later"
        );
        assert!(room.console_says(
            "limits: ada@barepost.test has reached its limit of mail waiting to be sent"
        ));
        room.part(talk);
        let mut talk = room.connect(25);
        room.smtp_reply(&mut talk);
        for command in ["EHLO client.test", "MAIL FROM:<a@far.test> SIZE=1000"] {
            assert!(world.say(&mut room, &mut talk, command).starts_with('2'), "{command}");
        }
        let reply = world.say(&mut room, &mut talk, "RCPT TO:<ada@barepost.test>");
        assert!(
            reply.starts_with(if sends_on {
                "452 4.2.2 Mailbox is full, try again later"
            } else {
                "250 "
            }),
            "{reply}"
        );
        room.part(talk);
    }
}

#[test]
fn mail_that_never_fits_the_quota_is_reported() {
    let (mut room, mut world) = serving(912, Mood::Takes);
    world.submit(&mut room, &["grace@barepost.test", "bob@far.test"], &message(1030));
    world.pass(&mut room, 60);
    let inbox = world.inbox(&mut room, "ada");
    assert_eq!(inbox.len(), 1);
    assert!(
        inbox[0].contains("Status: 5.2.2\r\n") && inbox[0].contains("larger than the"),
        "{}",
        inbox[0]
    );
    (0..2).for_each(|_| world.submit(&mut room, &["grace@barepost.test"], &message(450)));
    world.submit(&mut room, &["grace@barepost.test", "bob@far.test"], &message(300));
    world.pass(&mut room, 300);
    assert_eq!(world.inbox(&mut room, "ada").len(), 2);
    world.pass(&mut room, 8 * 3600);
    let inbox = world.inbox(&mut room, "ada");
    assert_eq!(inbox.len(), 2, "no other report is sent before the time is over");
    assert!(
        inbox[1].contains("Status: 4.2.2\r\n") && inbox[1].contains("Action: delayed"),
        "{}",
        inbox[1]
    );
    world.pass(&mut room, 5 * 86_400);
    let inbox = world.inbox(&mut room, "ada");
    assert_eq!(
        (inbox.len(), world.inbox(&mut room, "grace").len(), world.peer.taken.len()),
        (3, 2, 2)
    );
    assert!(
        inbox[2].contains("Status: 5.2.2\r\n") && inbox[2].contains("The mailbox is full"),
        "{}",
        inbox[2]
    );
    assert!(inbox[2].contains("Action: failed"), "{}", inbox[2]);
    room.until_nothing_is_in_use();
}

/// An account keeps few arrival notes. While a message waits for one recipient's quota, the other
/// recipients keep no notes for it.
#[test]
fn a_recipient_without_quota_does_not_delay_the_others() {
    let configuration = limited(&configuration());
    let room = Room::configured(921, MemoryDisk::blank(DISK_BYTES), usual_sizes(), &configuration);
    let (mut room, mut world) = world_of(room, Mood::Takes);
    let (from, to) = (
        "<ada@barepost.test> SIZE=60000 HOLDFOR=600",
        ["<ada@barepost.test>", "<grace@barepost.test>"],
    );
    let count = store::ARRIVALS_MAX + 6;
    (0..count).for_each(|_| world.submit_with(&mut room, from, &to, &message(50)));
    (0..2).for_each(|_| world.submit(&mut room, &["grace@barepost.test"], &message(490)));
    world.pass(&mut room, 1200);
    let counts = |world: &mut World, room: &mut Room| {
        let is_message = |text: &&String| text.contains("Subject: Large");
        let is_report = |text: &String| text.contains("Action: delayed");
        ["ada", "grace"].map(|user| {
            let inbox = world.inbox(room, user);
            inbox.iter().filter(is_message).filter(|text| !is_report(text)).count()
        })
    };
    assert_eq!(counts(&mut world, &mut room), [count, 2]);
    let inbox = world.inbox(&mut room, "ada");
    assert_eq!(delayed(&inbox, &["grace@barepost.test"]), [count]);
    remove_first(&mut room, "grace");
    world.pass(&mut room, 3 * 3600);
    let [ada, grace] = counts(&mut world, &mut room);
    assert!(ada == count && grace > 2, "{ada}, {grace}");
    room.until_nothing_is_in_use();
}

/// An account without space for a report gets the report once when it has space, even long after
/// all other mail was given up.
#[test]
fn a_report_waits_for_quota_and_arrives_once() {
    for (seed, days) in [(913, 0), (914, 7)] {
        let (mut room, mut world) = serving(seed, Mood::RefusesBob);
        (0..2).for_each(|_| world.submit(&mut room, &["ada@barepost.test"], &message(511)));
        world.submit(&mut room, &["bob@far.test"], MESSAGE);
        world.pass(&mut room, 600);
        (0..days).for_each(|_| world.pass(&mut room, 86_400));
        assert_eq!(world.inbox(&mut room, "ada").len(), 2);
        let named = world.peer.rcpt_count;
        world.pass(&mut room, 6 * 3600);
        assert!(
            world.peer.rcpt_count - named <= 20,
            "the host is not asked all the time: {}",
            world.peer.rcpt_count - named
        );
        remove_first(&mut room, "ada");
        world.pass(&mut room, 5 * 3600);
        let inbox = world.inbox(&mut room, "ada");
        assert_eq!(inbox.len(), 2);
        assert!(inbox[1].contains("Action: failed"), "{}", inbox[1]);
        world.pass(&mut room, 86_400);
        assert_eq!((world.inbox(&mut room, "ada").len(), world.peer.taken.len()), (2, 0));
        room.until_nothing_is_in_use();
    }
}

/// A webmail message to one recipient without space in the quota and one with space, with a power
/// cut at any step.
#[test]
fn a_webmail_message_waits_for_quota_at_any_power_cut() {
    let trust = Trust::new("mail.barepost.test");
    let configuration = limited(CONFIGURATION);
    for (seed, steps) in [
        (915, None),
        (916, Some(1)),
        (917, Some(9)),
        (918, Some(17)),
        (919, Some(25)),
        (920, Some(60)),
    ] {
        let (disk, certificates) = (MemoryDisk::blank(DISK_BYTES), vec![trust.certificate.clone()]);
        let mut room = Room::certified(
            seed,
            disk,
            usual_sizes(),
            &configuration,
            Site::default(),
            certificates,
        );
        room.until("the engine serves", |room| room.console_says("serving"));
        (0..2).for_each(|_| {
            assert!(room.deliver("grace@barepost.test", &message(500)).starts_with("250 "))
        });
        let mut ada = Browser::new(&trust);
        ada.log_in(&mut room, "ada", "lovelace");
        let token = ada.get(&mut room, "/mail/compose").token();
        let text = "Words. ".repeat(10_000);
        let to = "grace@barepost.test, eve@barepost.test";
        let form = [
            ("token", token.as_str()),
            ("to", to),
            ("subject", "Held"),
            ("text", &text),
            ("do", "send"),
        ];
        assert!(ada.post(&mut room, "/mail/compose", &form).text().contains("Sending…"));
        ada.hang_up(&mut room);
        room.pass(Micros::from_secs(9));
        if let Some(steps) = steps {
            room.pass(Micros::from_secs(2));
            (0..steps).for_each(|_| room.step());
            let disk = room.machine.disk.power_cut(&mut Dice::new(seed));
            let certificates = vec![trust.certificate.clone()];
            room = Room::certified(
                seed,
                disk,
                usual_sizes(),
                &configuration,
                Site::default(),
                certificates,
            );
            room.until("the engine serves", |room| room.console_says("serving"));
            forget_connections(&mut [&mut ada]);
        }
        room.pass(Micros::from_secs(120));
        let mut world = Inboxes(room);
        assert_eq!((world.count("grace"), world.count("eve")), (2, 1), "{steps:?}");
        let sent = ada.get(&mut world.0, "/mail/box/3").text();
        assert!(sent.contains("<span class=\"subject\">Held</span>"), "it has left: {steps:?}");
        // The message waits in an outbox, even through a power cut.
        let mut world = Inboxes(again(world.0, seed, &trust, &configuration));
        forget_connections(&mut [&mut ada]);
        remove_first(&mut world.0, "grace");
        world.0.pass(Micros::from_secs(5 * 3600));
        assert_eq!((world.count("grace"), world.count("eve")), (2, 1), "{steps:?}");
        let newest = world.newest("grace");
        assert!(newest.contains("Subject: Held") && newest.contains("Words. Words."), "{steps:?}");
        remove_first(&mut world.0, "grace");
        world.0.pass(Micros::from_secs(86_400));
        assert_eq!(world.count("grace"), 1, "{steps:?}");
        world.0.until_nothing_is_in_use();
    }
}

/// A room, with functions for the contents of inboxes.
struct Inboxes(Room);

impl Inboxes {
    fn count(&mut self, user: &str) -> usize {
        let mut reader = self.0.log_in(user);
        let count = self.0.pop3(&mut reader, "STAT");
        self.0.pop3(&mut reader, "QUIT");
        self.0.close(&reader);
        count.split(' ').nth(1).and_then(|count| count.parse().ok()).expect("a count")
    }

    fn newest(&mut self, user: &str) -> String {
        let count = self.count(user);
        let mut reader = self.0.log_in(user);
        let text = String::from_utf8_lossy(&self.0.retrieve_any(&mut reader, count)).into_owned();
        self.0.pop3(&mut reader, "QUIT");
        self.0.close(&reader);
        text
    }
}

#[test]
fn a_report_without_space_is_tried_once_an_hour() {
    let configuration = [&*configuration(), NO_QUOTA].concat();
    let room = Room::configured(915, MemoryDisk::blank(2 << 20), usual_sizes(), &configuration);
    let (mut room, mut world) = world_of(room, Mood::RefusesForNow);
    // The reports of this many messages use up the space.
    (0..60).for_each(|_| world.submit(&mut room, &["bob@far.test"], MESSAGE));
    [40_000, 4_000, 400].into_iter().for_each(|octets| fill(&mut room, octets));
    world.pass(&mut room, 6 * 86_400);
    let entries = room.engines.queue_entries();
    assert!(entries > 0, "all reports found space");
    let before = world.peer.rcpt_count;
    world.pass(&mut room, 86_400);
    let tries = (world.peer.rcpt_count - before) / entries;
    assert!((20..=25).contains(&tries), "{tries} tries a day of each of {entries}");
    (0..8).for_each(|_| remove_first(&mut room, "grace"));
    world.pass(&mut room, 2 * 3600);
    assert_eq!(room.engines.queue_entries(), 0);
    let failed =
        world.inbox(&mut room, "ada").iter().filter(|text| text.contains("Action: failed")).count();
    assert_eq!(failed, 60);
    room.until_nothing_is_in_use();
}

/// A message for a local and a remote recipient is stored three times: the outbox has an entry for
/// each, and the local recipient gets a copy. If there is no space for all, the sender is told at
/// once.
#[test]
fn a_queued_message_needs_disk_space_for_local_copies() {
    let configuration = [&*configuration(), NO_QUOTA].concat();
    let disk = MemoryDisk::blank(4 << 20);
    let room = Room::configured(922, disk, usual_sizes(), &configuration);
    let (mut room, mut world) = world_of(room, Mood::Takes);
    let has_space = |room: &mut Room, octets: u64| {
        let mut talk = room.connect(25);
        room.smtp_reply(&mut talk);
        room.smtp(&mut talk, "EHLO client.test");
        let command = format!("MAIL FROM:<a@far.test> SIZE={octets}");
        let reply = room.smtp(&mut talk, &command);
        room.close(&talk);
        reply.starts_with("250")
    };
    let content = message(400);
    let octets = content.len() as u64;
    while has_space(&mut room, 5 * octets / 2) {
        room.deliver("grace@barepost.test", &message(30));
    }
    assert!(has_space(&mut room, 2 * octets + 50_000));
    let mut submit = |room: &mut Room, parameters: &str, recipients: &[&str]| {
        let mut talk = room.connect(587);
        room.smtp_reply(&mut talk);
        let mail = format!("MAIL FROM:<ada@barepost.test>{parameters}");
        for command in ["EHLO client.test", ADA, &mail] {
            assert!(world.say(room, &mut talk, command).starts_with('2'), "{command}");
        }
        for recipient in recipients {
            let command = format!("RCPT TO:<{recipient}>");
            assert!(world.say(room, &mut talk, &command).starts_with("250"), "{command}");
        }
        let mut reply = world.say(room, &mut talk, "DATA");
        if reply.starts_with("354") {
            room.send(&talk, &content);
            reply = world.say(room, &mut talk, ".");
        }
        room.part(talk);
        reply
    };
    let both = ["grace@barepost.test", "bob@far.test"];
    for parameters in ["", &format!(" SIZE={octets}")] {
        let reply = submit(&mut room, parameters, &both);
        assert!(reply.starts_with("452 4.3.1 Insufficient system storage"), "{reply}");
    }
    room.pass(Micros::from_secs(1));
    // With several cores, the space may be on another core than the outbox.
    if crate::CORES == 1 {
        assert!(submit(&mut room, "", &["bob@far.test"]).starts_with("250"));
    }
}
