//! Tests with disks of earlier programs: this program opens them, shows the same mail, and
//! completes the pending work for each message.
//!
//! `machines/simulated/disks` holds such disks, with mail in every state. The text file of a disk
//! lists the contents according to the program that wrote it, and the result for each message. To
//! make disks of the present format, run `cargo test -p simulated -- --ignored
//! disks_of_the_present_format_are_made`.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::Path;

use chance::Dice;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http::Site;
use sha2::{Digest as _, Sha256};
use simulated::MemoryDisk;
use simulated::room::{Contents, contents_on, with_message};
use store::{DRAFTS, Flags, MailboxId, OUTBOX};

use super::certificates::{self, client, send_part};
use super::draft_files::kept;
use super::forwarding::of;
use super::queue_page::{UNKNOWN, handle, look};
use super::relay::{GRACE, Mood, World, configuration, world_of};
use super::room::tls_stream::Trust;
use super::room::{DISK_BYTES, Room, Talk, usual_sizes};
use super::settings::change;
use super::webmail::{Browser, between, message};
use crate::CORES;

const HOUR: u64 = 3600;
const ACCOUNTS: [&str; 4] =
    ["ada@barepost.test", "grace@barepost.test", "dora@barepost.test", "certificates"];
const ADA: &str = ACCOUNTS[0];
const DORA: &str = ACCOUNTS[2];

/// Disks of earlier programs: the format, the disk, and the history that the program recorded.
const DISKS: [(u32, &[u8], &str); 6] = [
    (
        3,
        include_bytes!("../../disks/format-3-of-1.gz"),
        include_str!("../../disks/format-3-of-1.txt"),
    ),
    (
        3,
        include_bytes!("../../disks/format-3-of-2.gz"),
        include_str!("../../disks/format-3-of-2.txt"),
    ),
    (
        3,
        include_bytes!("../../disks/format-3-of-4.gz"),
        include_str!("../../disks/format-3-of-4.txt"),
    ),
    (
        4,
        include_bytes!("../../disks/format-4-of-1.gz"),
        include_str!("../../disks/format-4-of-1.txt"),
    ),
    (
        4,
        include_bytes!("../../disks/format-4-of-2.gz"),
        include_str!("../../disks/format-4-of-2.txt"),
    ),
    (
        4,
        include_bytes!("../../disks/format-4-of-4.gz"),
        include_str!("../../disks/format-4-of-4.txt"),
    ),
];

/// The configuration. Grace is an administrator. Mail for Dora is forwarded to another server and
/// to Ada.
fn users() -> String {
    let configuration = of("grace", "admin = true", &configuration());
    let password = configuration
        .lines()
        .find(|line| line.starts_with("password_hash"))
        .expect("users have one");
    let forward = "forward = [\"bob@far.test\", \"ada@barepost.test\"]";
    format!("{configuration}\n[[user]]\naddress = \"{DORA}\"\n{password}\n{forward}\n")
}

/// The configuration lines for a disk that keeps its format, and for a disk that is to be
/// converted.
const KEPT: &str = "";
const CONVERTED: &str = "[disk]\nformat = 4\n";

fn serving_on(
    seed: u64,
    disk: MemoryDisk,
    mood: Mood,
    trust: &Trust,
    format: &str,
) -> (Room, World) {
    let certificates = vec![trust.certificate.clone()];
    let configuration = users() + format;
    world_of(
        Room::certified(seed, disk, usual_sizes(), &configuration, Site::default(), certificates),
        mood,
    )
}

/// A message from outside with this subject and this many octets of text.
fn sized(subject: &str, octets: usize) -> Vec<u8> {
    let lines = "The Analytical Engine weaves algebraic patterns.\r\n".repeat(octets / 50);
    message(subject, &lines)
}

/// Like [`sized`], but from Ada.
fn own(subject: &str, octets: usize) -> Vec<u8> {
    let text = String::from_utf8(sized(subject, octets)).expect("the bytes are UTF-8");
    text.replace("charles@example.org", ADA).into_bytes()
}

/// Puts mail into the mailboxes of all accounts, and reads, moves and edits it, so that it is in
/// many states.
fn fill_mailboxes(room: &mut Room, world: &mut World, ada: &mut Browser) {
    for (number, octets) in
        [100, 5_000, 31_500, 32_000, 32_256, 33_000, 64_512, 200_000, 300].into_iter().enumerate()
    {
        assert!(room.deliver(ADA, &sized(&format!("Number {number}"), octets)).starts_with("250"));
    }
    for (number, to) in
        ["grace@barepost.test", "postmaster@barepost.test", "countess@barepost.test"]
            .iter()
            .enumerate()
    {
        assert!(room.deliver(to, &sized(&format!("Also {number}"), 700)).starts_with("250"));
    }
    let pictures = b"From: grace@barepost.test\r\nSubject: Pictures\r\nContent-Type: text/html\r\n\r\n<img src=\"https://a.test/x\">\r\n";
    world.submit_from(room, (GRACE, "grace@barepost.test"), &[ADA], pictures);
    let inbox = ada.get(room, "/mail/box/1");
    let token = inbox.token();
    let mut act = |path: &str, fields: &[(&str, &str)]| {
        ada.post(
            room,
            path,
            &[&[("token", token.as_str()), ("here", "/mail/box/1")], fields].concat(),
        )
        .text()
    };
    act("/mail/boxes", &[("do", "make"), ("name", "Engines")]);
    act("/mail/boxes", &[("do", "make"), ("name", "Looms")]);
    act("/mail/boxes", &[("do", "rename"), ("box", "16"), ("name", "Maschinen")]);
    for (key, what) in
        [("1.1", "read"), ("1.2", "archive"), ("1.3", "trash"), ("1.4", "junk"), ("1.5", "trash")]
    {
        act("/mail/act", &[("key", key), ("do", what)]);
    }
    act("/mail/act", &[("key", "1.1"), ("star", "1.1")]);
    act("/mail/act", &[("key", "1.6"), ("do", "move"), ("to", "16")]);
    act("/mail/act", &[("key", "1.7"), ("do", "move"), ("to", "17")]);
    act("/mail/boxes", &[("do", "remove"), ("box", "17")]);
    act("/mail/act", &[("key", "6.1"), ("do", "delete")]);
    let shown =
        act("/mail/show", &[("key", "1.12"), ("sender", "grace@barepost.test"), ("do", "always")]);
    assert!(!shown.contains("Remote images are blocked"), "{shown}");
    kept(
        room,
        ada,
        &[
            ("token", &token),
            ("to", "bob@far.test"),
            ("subject", "A draft"),
            ("text", "…"),
            ("do", "save"),
        ],
        &[("engine.pdf", &[7; 70_000])],
    );
}

/// Makes outgoing mail in every lasting state.
fn queue_mail(room: &mut Room, world: &mut World, grace: &mut Browser) {
    let send = |room: &mut Room, world: &mut World, subject: &str, to: &[&str]| {
        world.submit(room, to, &own(subject, 400));
    };
    let hosts: Vec<String> = (0..12).map(|number| format!("friend{number}@far.test")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    send(
        room,
        world,
        "Long under way",
        &["carol@far.test", "dave@silent.test", "eve@nowhere.test"],
    );
    let recipients = [
        "<dan@far.test> NOTIFY=SUCCESS",
        "<dot@far.test> NOTIFY=SUCCESS,FAILURE",
        "<ned@far.test> NOTIFY=NEVER",
    ];
    world.submit_with(
        room,
        "<ada@barepost.test> BODY=8BITMIME RET=HDRS ENVID=E1",
        &recipients,
        &own("To be told", 400),
    );
    world.pass(room, 6 * HOUR);
    send(room, world, "For many", &hosts);
    world.submit(room, &["large@far.test"], &own("Large", 100_000));
    world.submit_with(
        room,
        "<ada@barepost.test> BODY=8BITMIME HOLDFOR=86400",
        &["<lise@far.test>"],
        &own("Tomorrow", 400),
    );
    send(room, world, "Held", &["hedy@far.test"]);
    assert!(room.deliver(DORA, &sized("Sent on", 500)).starts_with("250"));
    world.pass(room, 900);
    let page_text = handle(grace, room, "hold", "hedy@far.test");
    assert!(page_text.contains("The message was held."), "{page_text}");
}

/// A disk with mail in every lasting state.
fn make_disk(seed: u64, trust: &Trust) -> MemoryDisk {
    let (mut room, mut world) =
        serving_on(seed, MemoryDisk::blank(DISK_BYTES), Mood::RefusesForNow, trust, KEPT);
    let [mut ada, mut grace, mut dora] = ["ada", "grace", "dora"].map(|user| {
        let mut browser = Browser::new(trust);
        browser.log_in(&mut room, user, "lovelace");
        browser.hang_up(&mut room);
        browser
    });
    fill_mailboxes(&mut room, &mut world, &mut ada);
    ada.hang_up(&mut room);
    let changed = change(&mut dora, &mut room, ["lovelace", "analytical", "analytical"]);
    assert!(changed.contains("password"), "{changed}");
    dora.hang_up(&mut room);
    queue_mail(&mut room, &mut world, &mut grace);
    let mut tls_stream = room.connect_tls(443, &client(&[trust]));
    send_part(&mut room, &mut tls_stream, certificates::GRACE, &trust.pem, trust.pem.len());
    assert!(room.line_tls(&mut tls_stream).starts_with("HTTP/1.1 200 "));
    room.close_tls(tls_stream);
    let late: Vec<Talk> = (0..CORES).map(|_| room.begin_message(ADA)).collect();
    // The send of this reply can be undone for half a minute.
    ada.hold(&mut room, "30");
    let token = ada.get(&mut room, "/mail/compose").token();
    let form = [
        ("token", token.as_str()),
        ("answers", "1.1"),
        ("to", "grace@barepost.test, max@far.test"),
        ("subject", "Taken back"),
        ("text", "Wait."),
        ("do", "send"),
    ];
    assert!(ada.post(&mut room, "/mail/compose", &form).text().contains("Sending…"));
    // Messages that may be incomplete when the power fails.
    for (number, talk) in late.iter().enumerate() {
        room.try_to_send(
            talk,
            &[&sized(&format!("Cut off {number}"), 3_000)[..], b".\r\n"].concat(),
        );
        (0..3 * number).for_each(|_| room.step());
    }
    with_transient_mail(room.machine.disk.power_cut(&mut Dice::new(seed)))
}

/// Returns a copy of a disk with mail in the transient states added.
fn with_transient_mail(disk: MemoryDisk) -> MemoryDisk {
    let mailboxes = contents_on(&disk, ADA).mailboxes;
    let octets_of = |subject: &str, id: MailboxId| {
        let mailbox =
            mailboxes.iter().find(|mailbox| mailbox.id == id).expect("the mailbox exists");
        let holds = |octets: &[u8]| {
            String::from_utf8_lossy(octets).contains(&format!("Subject: {subject}\r\n"))
        };
        let found = mailbox.messages.iter().find(|(_, octets)| holds(octets));
        found
            .map(|(_, octets)| String::from_utf8_lossy(octets).into_owned())
            .expect("the message exists")
    };
    let copy = |subject: &str, name: &str, id| {
        octets_of(subject, id)
            .replace(&format!("Subject: {subject}\r\n"), &format!("Subject: {name}\r\n"))
    };
    let leaving = Flags::SEEN.with(Flags::LEAVING);
    let drafted = Flags::DRAFT.with(Flags::SEEN);
    let many = copy("For many", "Some done", OUTBOX);
    let partly_reported = copy("To be told", "Some told", OUTBOX);
    let arrived = "Return-Path: <frank@far.test>\r\nReceived: from far.test ([203.0.113.7])\r\n\tby mail.barepost.test with ESMTP id 1;\r\n\tThu, 1 Jan 2026 00:00:00 +0000\r\nFrom: frank@far.test\r\nMessage-ID: <arriving@far.test>\r\nSubject: Arriving\r\n\r\nHello.\r\n";
    let states = [
        (ADA, DRAFTS, drafted.with(Flags::LEAVING), 0, copy("Taken back", "Leaving", DRAFTS)),
        (ADA, DRAFTS, Flags::SEEN.with(Flags::LEFT), 0, copy("Taken back", "Left", DRAFTS)),
        // Two entries: one for the first eight recipients, and one for the four after them.
        (ADA, OUTBOX, leaving, 0b0101_0101, many.clone()),
        (ADA, OUTBOX, leaving, 8 << 8 | 0b0011, many.clone()),
        // Both recipients are done, and one was reported.
        (ADA, OUTBOX, leaving, 1 << 8 | 0b0001_0011, partly_reported),
        (ADA, OUTBOX, leaving.with(Flags::HELD), 0, copy("Large", "Delay told", OUTBOX)),
        (ADA, OUTBOX, Flags::SEEN.with(Flags::LEFT), 0, copy("Large", "Given back", OUTBOX)),
        (ADA, OUTBOX, Flags::default(), 0, copy("Large", "Found by a rebuild", OUTBOX)),
        (ADA, OUTBOX, leaving, 0, "Subject: Without an envelope\r\n\r\n".repeat(100)),
        (
            ADA,
            OUTBOX,
            leaving.with(Flags::FLAGGED),
            0,
            "Subject: Without an envelope, and told\r\n\r\n".repeat(100),
        ),
        (DORA, OUTBOX, leaving.with(Flags::DRAFT), 0, arrived.to_string()),
        (
            DORA,
            OUTBOX,
            leaving.with(Flags::DRAFT),
            0b001,
            arrived.replace("rriving", "rriving, one done"),
        ),
    ];
    states.into_iter().fold(disk, |disk, (account, mailbox, flags, keywords, octets)| {
        with_message(&disk, (account, mailbox), (flags, keywords), octets.as_bytes())
    })
}

/// The first `Subject` field in a message.
fn subject(octets: &[u8]) -> String {
    let text = String::from_utf8_lossy(octets);
    let subject = text.split("\r\n").find_map(|line| line.strip_prefix("Subject: "));
    subject.unwrap_or("none").to_string()
}

/// Lists the contents of a disk, by account.
fn listed(disk: &MemoryDisk) -> String {
    let mut lines = String::new();
    for account in ACCOUNTS {
        let Contents { mailboxes, notes } = contents_on(disk, account);
        for (key, value) in notes {
            writeln!(lines, "{account}: note {} of {} octets", key.escape_ascii(), value.len())
                .expect("a write to a string succeeds");
        }
        for mailbox in mailboxes {
            let (id, info) = (mailbox.id, mailbox.info);
            writeln!(
                lines,
                "{account}: {} {:?} of {}, next {}",
                id.0, mailbox.name, info.uid_validity, info.uid_next.0
            )
            .expect("a write to a string succeeds");
            for (message, octets) in mailbox.messages {
                // The meaning of these flags depends on the format.
                let marks = if id == OUTBOX {
                    String::new()
                } else {
                    format!(" flags {:02x}", message.flags.0)
                };
                let hash: String =
                    Sha256::digest(&octets)[..8].iter().map(|byte| format!("{byte:02x}")).collect();
                writeln!(lines, "  {} {hash}{marks} {}", message.uid.0, subject(&octets))
                    .expect("a write to a string succeeds");
            }
        }
    }
    lines
}

/// The text for the recipients of an unreadable entry in the text files of the disks.
const UNKNOWN_IN_TEXTS: &str = "Somebody whom nobody knows any more";

/// The text that the queue page shows for each entry, in alphabetical order.
fn queue(grace: &mut Browser, room: &mut Room) -> Vec<String> {
    let mut lines = Vec::new();
    let mut page = look(grace, room).text();
    loop {
        for card in page.split("<section").skip(1).filter(|card| card.contains("name=\"key\"")) {
            let recipients =
                between(card, "dir=\"auto\">", "</h2>").expect("a card names the recipients");
            let recipients = if recipients == UNKNOWN { UNKNOWN_IN_TEXTS } else { recipients };
            let state = ["Held", "Cannot be sent"]
                .into_iter()
                .find(|state| card.contains(&format!(">{state}<")));
            lines.push(format!("{}: {recipients}", state.unwrap_or("Is to leave")));
        }
        let Some(next) = between(&page, "class=\"button\" href=\"/mail/queue?after=", "\"") else {
            break;
        };
        page = grace.get(room, &format!("/mail/queue?after={next}")).text();
    }
    grace.hang_up(room);
    lines.sort();
    lines
}

/// Describes the contents of a disk, and serves it. The other server defers all mail for five
/// minutes, and then takes it for ten days. Also returns whether the lines `format` led to a
/// conversion of the disk.
fn history(disk: &MemoryDisk, seed: u64, trust: &Trust, format: &str) -> (String, bool) {
    let mut history = format!("On the disk\n{}", listed(disk));
    let disk = MemoryDisk::of_image(&disk.image()).expect("the image is valid");
    let (mut room, mut world) = serving_on(seed, disk, Mood::RefusesForNow, trust, format);
    let is_converted = room.console_says("the disk has been converted to format 4");
    let mut grace = Browser::new(trust);
    grace.log_in(&mut room, "grace", "lovelace");
    grace.hang_up(&mut room);
    world.pass(&mut room, 300);
    let section = |history: &mut String, name: &str, lines: Vec<String>| {
        writeln!(history, "{name}\n{}", lines.join("\n")).expect("a write to a string succeeds");
    };
    section(&mut history, "The queue", queue(&mut grace, &mut room));
    world.peer.mood = Mood::Takes;
    world.pass(&mut room, 10 * 24 * HOUR);
    let taken = world.peer.taken.iter().map(|taken| {
        let mut to = taken.to.clone();
        to.sort();
        format!("{} for {}", subject(&taken.content), to.join(", "))
    });
    let mut taken: Vec<String> = taken.collect();
    taken.sort();
    section(&mut history, "Taken by the other server", taken);
    section(&mut history, "The queue, later", queue(&mut grace, &mut room));
    let mut dora = Browser::new(trust);
    dora.log_in(&mut room, "dora", "analytical");
    dora.hang_up(&mut room);
    world.pass(&mut room, HOUR);
    let mut listing = Vec::new();
    for account in ACCOUNTS {
        for mailbox in contents_on(&room.machine.disk, account).mailboxes {
            for (message, octets) in mailbox.messages {
                let marks = if mailbox.id == OUTBOX {
                    String::new()
                } else {
                    format!(" flags {:02x}", message.flags.0)
                };
                listing.push(format!("{account}: {}{marks} {}", mailbox.id.0, subject(&octets)));
            }
        }
    }
    listing.sort();
    section(&mut history, "On the disk, later", listing);
    (history, is_converted)
}

/// The lines of a history. Equal reports of a delay count once: a report names the recipients that
/// wait at that time, but not one that is just being tried. So the number of reports depends on the
/// time.
fn without_repetitions(history: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = history.lines().collect();
    lines.dedup_by(|one, other| one == other && one.ends_with("has not been delivered yet"));
    lines
}

#[test]
fn disks_of_earlier_formats_are_served_and_their_queue_sent() {
    let trust = Trust::new("mail.barepost.test");
    for ((seed, (version, image, expected)), format) in
        (2_000..).zip(DISKS).flat_map(|one| [(one, KEPT), (one, CONVERTED)])
    {
        let mut octets = Vec::new();
        GzDecoder::new(image).read_to_end(&mut octets).expect("the disk is compressed");
        let disk = MemoryDisk::of_image(&octets).expect("the image is valid");
        let (found, is_converted) = history(&disk, seed, &trust, format);
        assert_eq!(is_converted, version == 3 && format == CONVERTED, "disk {seed}");
        let (found, expected) = (without_repetitions(&found), without_repetitions(expected));
        // The first different line is easier to read than both texts.
        for (number, (found, expected)) in (1..).zip(found.iter().zip(&expected)) {
            assert_eq!(found, expected, "line {number} of disk {seed}");
        }
        assert_eq!(found.len(), expected.len());
    }
}

#[test]
#[ignore = "writes files into the source tree"]
fn disks_of_the_present_format_are_made() {
    let trust = Trust::new("mail.barepost.test");
    let disk = make_disk(1_990 + u64::from(CORES), &trust);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("disks");
    let path =
        |ending: &str| folder.join(format!("format-{}-of-{CORES}.{ending}", store::FORMAT_VERSION));
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&disk.image()).expect("a write to memory succeeds");
    std::fs::create_dir_all(&folder).expect("the folder can be created");
    std::fs::write(path("gz"), packed.finish().expect("a write to memory succeeds"))
        .expect("the file can be written");
    std::fs::write(path("txt"), history(&disk, 2_000, &trust, KEPT).0)
        .expect("the file can be written");
}
