//! Quotas: the server refuses only the recipient without space, with a reply that gives the reason.
//! After a deletion it accepts mail again, with the mail on any core.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use chance::Dice;
use http::Site;
use simulated::MemoryDisk;

use super::room::tls_stream::Trust;
use super::room::{CONFIGURATION, DISK_BYTES, NO_QUOTA, Room, Talk, stuffed, usual_sizes};
use super::settings::forget_connections;
use super::webmail::{Browser, between};
use crate::CORES;

const FULL: &str = "452 4.2.2 Mailbox is full, try again later";
const NEVER: &str = "552 5.2.2 Message is larger than the mailbox quota";
const MANY: &str = "452 4.5.3 Too many recipients";

/// The configuration with quotas: Grace has one mebibyte, Eve has 200 MB, and Ada has half of the
/// disk.
pub(super) fn limited(configuration: &str) -> String {
    let grace = "address = \"grace@barepost.test\"";
    let eve = "[[user]]\naddress = \"eve@barepost.test\"\nquota = \"200M\"\npassword_hash = \"$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$Oi7AsNkSF11/Jvy4J3BMjBTrWUr2l8Z3T8a7yI9rNnQ\"\n\n[access]";
    configuration.replace(grace, &format!("{grace}\nquota = \"1M\"")).replace("[access]", eve)
}

/// A message of this many kibibytes.
pub(super) fn message(kibibytes: usize) -> Vec<u8> {
    [
        &b"Subject: Large\r\n\r\n"[..],
        &b"0123456789012345678901234567890123456789012345678901234567890.\r\n"
            .repeat(16 * kibibytes),
    ]
    .concat()
}

fn serving(seed: u64, disk: MemoryDisk) -> Room {
    let mut room = Room::configured(seed, disk, usual_sizes(), &limited(CONFIGURATION));
    room.until("the engine serves", |room| room.console_says("serving"));
    room
}

fn greeted(room: &mut Room) -> Talk {
    let mut talk = room.connect(25);
    assert!(room.smtp_reply(&mut talk).starts_with("220 "));
    assert_eq!(room.smtp(&mut talk, "EHLO client.test"), "250 HELP");
    talk
}

/// The replies to RCPT for each recipient of a message with this SIZE parameter.
fn rcpt_replies(room: &mut Room, talk: &mut Talk, size: &str, recipients: &[&str]) -> Vec<String> {
    assert_eq!(
        room.smtp(talk, &format!("MAIL FROM:<sender@elsewhere.test>{size}")),
        "250 2.1.0 Sender OK"
    );
    // The commands are sent at once, as PIPELINING permits.
    let all: String =
        recipients.iter().map(|name| format!("RCPT TO:<{name}@barepost.test>\r\n")).collect();
    room.send(talk, all.as_bytes());
    recipients.iter().map(|_| room.smtp_reply(talk)).collect()
}

/// Sends DATA and a message. Returns the reply to the end of data.
fn send_message(room: &mut Room, talk: &mut Talk, message: &[u8]) -> String {
    assert!(room.smtp(talk, "DATA").starts_with("354 "));
    room.send(talk, &stuffed(message));
    room.smtp(talk, ".")
}

/// Delivers messages of these sizes in kibibytes to Grace.
fn fill(room: &mut Room, talk: &mut Talk, sizes: &[usize]) {
    for kibibytes in sizes {
        let size = format!(" SIZE={}", message(*kibibytes).len());
        assert!(rcpt_replies(room, talk, &size, &["grace"])[0].starts_with("250 "));
        let reply = send_message(room, talk, &message(*kibibytes));
        assert!(reply.starts_with("250 "), "{reply}");
    }
}

fn count(room: &mut Room, user: &str) -> usize {
    let mut reader = room.log_in(user);
    let count = room
        .pop3(&mut reader, "STAT")
        .split(' ')
        .nth(1)
        .and_then(|count| count.parse().ok())
        .expect("a count");
    room.pop3(&mut reader, "QUIT");
    room.close(&reader);
    count
}

pub(super) fn remove_first(room: &mut Room, user: &str) {
    let mut reader = room.log_in(user);
    assert!(room.pop3(&mut reader, "DELE 1").starts_with("+OK"));
    assert!(room.pop3(&mut reader, "QUIT").starts_with("+OK"));
    room.close(&reader);
}

#[test]
fn a_full_account_is_refused_until_a_message_is_deleted() {
    for seed in [900, 901, 902] {
        let mut room = serving(seed, MemoryDisk::blank(DISK_BYTES));
        let talk = &mut greeted(&mut room);
        fill(&mut room, talk, &[300, 300, 300]);
        let replies = rcpt_replies(
            &mut room,
            talk,
            " SIZE=200000",
            &["ada", "grace", "nobody", "Grace", "eve"],
        );
        let codes: Vec<&str> = replies.iter().map(|reply| &reply[..9]).collect();
        assert_eq!(codes, ["250 2.1.5", "452 4.2.2", "550 5.1.1", "452 4.2.2", "250 2.1.5"]);
        assert!(send_message(&mut room, talk, &message(190)).starts_with("250 "));
        assert_eq!(
            rcpt_replies(&mut room, talk, " SIZE=1048577", &["grace", "ada"]),
            [NEVER, "250 2.1.5 Recipient OK"]
        );
        assert_eq!(room.smtp(talk, "RSET"), "250 2.0.0 OK");
        room.close(talk);
        assert_eq!(["ada", "eve", "grace"].map(|user| count(&mut room, user)), [1, 1, 3]);
        room.until_nothing_is_in_use();
        // After a restart the server knows the usage, and deleted messages do not count.
        let mut room = serving(seed, room.machine.disk.power_cut(&mut Dice::new(seed)));
        let talk = &mut greeted(&mut room);
        assert_eq!(rcpt_replies(&mut room, talk, " SIZE=200000", &["grace"]), [FULL]);
        room.smtp(talk, "RSET");
        fill(&mut room, talk, &[100]);
        assert_eq!(rcpt_replies(&mut room, talk, " SIZE=100000", &["grace"]), [FULL]);
        room.smtp(talk, "RSET");
        remove_first(&mut room, "grace");
        fill(&mut room, talk, &[300]);
        assert_eq!(rcpt_replies(&mut room, talk, " SIZE=100000", &["grace"]), [FULL]);
        room.close(talk);
        room.until_nothing_is_in_use();
    }
}

/// Reports about forwarded mail are delivered to the account, so it needs space.
#[test]
fn an_account_that_only_forwards_needs_space_too() {
    for seed in [911, 912] {
        let mut room = serving(seed, MemoryDisk::blank(DISK_BYTES));
        let talk = &mut greeted(&mut room);
        fill(&mut room, talk, &[400, 500]);
        room.close(talk);
        room.until_nothing_is_in_use();
        let grace = "address = \"grace@barepost.test\"";
        let sends_on = format!("{grace}\nforward = [\"eve@barepost.test\"]\nkeep = false");
        let configuration = limited(CONFIGURATION).replace(grace, &sends_on);
        let disk = room.machine.disk.power_cut(&mut Dice::new(seed));
        let mut room = Room::configured(seed, disk, usual_sizes(), &configuration);
        room.until("the engine serves", |room| room.console_says("serving"));
        let talk = &mut greeted(&mut room);
        assert_eq!(rcpt_replies(&mut room, talk, " SIZE=200000", &["grace"]), [FULL]);
        room.close(talk);
        room.until_nothing_is_in_use();
    }
}

#[test]
fn an_account_without_a_quota_may_use_half_of_the_disk() {
    for seed in [909, 910] {
        let disk_octets = 12 << 20;
        let mut room =
            Room::configured(seed, MemoryDisk::blank(disk_octets), usual_sizes(), CONFIGURATION);
        room.until("the engine serves", |room| room.console_says("serving"));
        let talk = &mut greeted(&mut room);
        let mut taken = 0;
        let refused = loop {
            let reply = rcpt_replies(&mut room, talk, " SIZE=310000", &["ada"]).remove(0);
            if !reply.starts_with("250 ") {
                break reply;
            }
            assert!(send_message(&mut room, talk, &message(300)).starts_with("250 "));
            taken += message(300).len() as u64;
        };
        assert_eq!(refused, FULL);
        assert!((disk_octets / 2 - 400_000..disk_octets / 2).contains(&taken), "{taken} octets");
        room.smtp(talk, "RSET");
        let replies = rcpt_replies(&mut room, talk, " SIZE=310000", &["ada", "grace"]);
        assert_eq!(replies, [FULL, "250 2.1.5 Recipient OK"]);
        assert!(send_message(&mut room, talk, &message(300)).starts_with("250 "));
        room.close(talk);
        // Most of the cores have one of these connections.
        for _ in 0..4 * CORES {
            let talk = &mut greeted(&mut room);
            let replies = rcpt_replies(&mut room, talk, " SIZE=310000", &["ada", "grace"]);
            assert_eq!(replies, [FULL, "250 2.1.5 Recipient OK"]);
            room.close(talk);
        }
        room.until_nothing_is_in_use();
        let unlimited = CONFIGURATION.replace("[access]", &format!("{NO_QUOTA}\n[access]"));
        let disk = room.machine.disk.power_cut(&mut Dice::new(seed));
        let mut room = Room::configured(seed, disk, usual_sizes(), &unlimited);
        room.until("the engine serves", |room| room.console_says("serving"));
        let talk = &mut greeted(&mut room);
        assert_eq!(
            rcpt_replies(&mut room, talk, " SIZE=310000", &["ada"]),
            ["250 2.1.5 Recipient OK"]
        );
        assert!(send_message(&mut room, talk, &message(300)).starts_with("250 "));
        room.close(talk);
        room.until_nothing_is_in_use();
    }
}

#[test]
fn a_message_without_size_is_counted_at_its_end() {
    for seed in [903, 904, 905] {
        let mut room = serving(seed, MemoryDisk::blank(DISK_BYTES));
        let talk = &mut greeted(&mut room);
        fill(&mut room, talk, &[400, 400]);
        assert_eq!(
            rcpt_replies(&mut room, talk, "", &["grace", "ada", "eve"]),
            ["250 2.1.5 Recipient OK", MANY, MANY]
        );
        assert_eq!(send_message(&mut room, talk, &message(300)), FULL);
        assert_eq!(rcpt_replies(&mut room, talk, "", &["ada", "grace", "eve"])[1], MANY);
        assert!(send_message(&mut room, talk, &message(300)).starts_with("250 "));
        assert_eq!(
            rcpt_replies(&mut room, talk, " SIZE=5", &["grace"]),
            ["250 2.1.5 Recipient OK"],
            "a wrong SIZE is accepted at RCPT"
        );
        assert_eq!(send_message(&mut room, talk, &message(1100)), NEVER);
        assert_eq!(rcpt_replies(&mut room, talk, "", &["grace"]), ["250 2.1.5 Recipient OK"]);
        assert!(send_message(&mut room, talk, &message(100)).starts_with("250 "));
        room.close(talk);
        assert_eq!(["ada", "eve", "grace"].map(|user| count(&mut room, user)), [1, 1, 3]);
        room.until_nothing_is_in_use();
    }
}

#[test]
fn concurrent_messages_are_accepted_up_to_the_quota() {
    for seed in [906, 907, 908] {
        let mut room = serving(seed, MemoryDisk::blank(DISK_BYTES));
        let mut talks: Vec<Talk> = (0..3).map(|_| greeted(&mut room)).collect();
        for talk in &mut talks {
            assert_eq!(
                rcpt_replies(&mut room, talk, " SIZE=400000", &["grace"]),
                ["250 2.1.5 Recipient OK"]
            );
            assert!(room.smtp(talk, "DATA").starts_with("354 "));
        }
        for talk in &talks {
            room.send(talk, &stuffed(&message(390)));
        }
        talks.iter().for_each(|talk| room.send(talk, b".\r\n"));
        let replies: Vec<String> = talks.iter_mut().map(|talk| room.smtp_reply(talk)).collect();
        assert_eq!(
            replies.iter().filter(|reply| reply.starts_with("250 ")).count(),
            2,
            "{replies:?}"
        );
        assert!(replies.contains(&FULL.to_string()), "{replies:?}");
        talks.iter().for_each(|talk| room.close(talk));
        assert_eq!(count(&mut room, "grace"), 2);
        room.until_nothing_is_in_use();
    }
}

#[test]
fn the_webmail_shows_usage_and_refuses_beyond_the_quota() {
    let (disk, trust) = (MemoryDisk::blank(DISK_BYTES), Trust::new("mail.barepost.test"));
    let certificates = vec![trust.certificate.clone()];
    let ada = "address = \"ada@barepost.test\"";
    let configuration =
        limited(CONFIGURATION).replace(ada, &format!("{ada}\nquota = \"unlimited\""));
    let mut room =
        Room::certified(909, disk, usual_sizes(), &configuration, Site::default(), certificates);
    room.until("the engine serves", |room| room.console_says("serving"));
    let [mut ada, mut grace] = [(); 2].map(|()| Browser::new(&trust));
    ada.log_in(&mut room, "ada", "lovelace");
    grace.log_in(&mut room, "grace", "lovelace");
    assert!(
        !ada.get(&mut room, "/mail/box/1").text().contains("<meter"),
        "without a quota there is no meter"
    );
    let meter = |room: &mut Room, grace: &mut Browser| {
        let page = grace.get(room, "/mail/box/1").text();
        let words = between(&page, "<span id=\"quota\">", "</span>").expect("words").to_string();
        let meter = between(&page, "<meter aria-labelledby=\"quota\"", ">").expect("a meter");
        let value = between(meter, " value=\"", "\"").expect("a value").to_string();
        (words, value)
    };
    let is = |words: &str, value: &str| (words.to_string(), value.to_string());
    assert_eq!(meter(&mut room, &mut grace), is("0 KB of 1 MB used", "0"));
    let talk = &mut greeted(&mut room);
    fill(&mut room, talk, &[300, 210]);
    assert_eq!(meter(&mut room, &mut grace), is("510 KB of 1 MB used", "49"));
    fill(&mut room, talk, &[420]);
    assert_eq!(
        meter(&mut room, &mut grace),
        is("930 KB of 1 MB used. You are running low on space.", "90")
    );
    room.close(talk);
    let token = grace.get(&mut room, "/mail/compose").token();
    let text = "Words.".repeat(18_000);
    let mut form = vec![
        ("token", token.as_str()),
        ("to", "ada@barepost.test"),
        ("text", &text),
        ("do", "save"),
    ];
    for what in ["save", "send"] {
        form[3] = ("do", what);
        let page = grace.send(&mut room, "/mail/compose", &form).text();
        assert!(
            page.contains("Your mailbox is full") && page.contains(&text),
            "the page contains the written text"
        );
    }
    form[2] = ("text", "A short one.");
    assert!(grace.post(&mut room, "/mail/compose", &form).text().contains("Sending…"));
    // Without a hold, the page gives the reason for the failure: the lack of space in a recipient's
    // mailbox.
    ada.hold(&mut room, "0");
    let token = ada.get(&mut room, "/mail/compose").token();
    let form =
        [("token", token.as_str()), ("to", "grace@barepost.test"), ("text", &text), ("do", "send")];
    let page = ada.send(&mut room, "/mail/compose", &form).text();
    assert!(page.contains("in that of a recipient") && page.contains(&text));
    forget_connections(&mut [&mut ada, &mut grace]);
}
