//! DKIM signatures on webmail messages: the remote copies, the local copies and the copy in Sent
//! are the same signed message.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use chance::Dice;
use dkim::SignatureReason;
use http::Site;
use machine::{Machine, Micros};
use server::{InUse, Sizes};
use simulated::MemoryDisk;

use crate::CORES;

use super::draft_files::{kept, large};
use super::relay::{Mood, serving_pages, serving_signed};
use super::room::tls_stream::Trust;
use super::room::{CONFIGURATION, DISK_BYTES, Room, usual_sizes};
use super::settings::forget_connections;
use super::signing::{BOTH, begin, keys, newest, sizes_for_messages, verdicts};
use super::webmail::{Browser, between};

/// The name of a file, and its contents.
type File<'a> = (&'a str, &'a [u8]);

/// Sends a message as Ada by the webmail. Returns the next page.
fn write(
    room: &mut Room,
    ada: &mut Browser,
    to: &str,
    draft: &str,
    text: &str,
    files: &[File<'_>],
) -> String {
    let token = ada.get(room, "/mail/compose").token();
    let form = [
        ("token", token.as_str()),
        ("draft", draft),
        ("to", to),
        ("bcc", "countess@barepost.test"),
        ("subject", "Looms"),
        ("text", text),
        ("do", "send"),
    ];
    kept(room, ada, &form, files)
}

fn logged_in(room: &mut Room, trust: &Trust, hold: &str) -> Browser {
    let mut ada = Browser::new(trust);
    ada.log_in(room, "ada", "lovelace");
    if !hold.is_empty() {
        ada.hold(room, hold);
    }
    ada
}

/// A message without `Bcc` fields, which its recipients do not get.
fn without_bcc(message: &str) -> String {
    message.split_inclusive("\r\n").filter(|line| !line.starts_with("Bcc: ")).collect()
}

/// A room that serves the webmail, and signs messages.
fn serving(seed: u64, trust: &Trust) -> Room {
    serving_in(usual_sizes(), seed, trust)
}

fn serving_in(sizes: Sizes, seed: u64, trust: &Trust) -> Room {
    let (disk, certificates) = (MemoryDisk::blank(DISK_BYTES), vec![trust.certificate.clone()]);
    let mut room =
        Room::keyed(seed, disk, sizes, CONFIGURATION, Site::default(), certificates, keys());
    room.until("the engine serves", |room| room.console_says("serving"));
    room
}

#[test]
fn a_webmail_message_is_signed_once_for_all_recipients() {
    let trust = Trust::new("mail.barepost.test");
    let (long, file) = ("It weaves, and weaves again.\n".repeat(4000), large());
    let messages: [(&str, &[File<'_>]); 3] =
        [("It weaves.", &[]), (&long, &[]), ("See.", &[("plan.pdf", &file)])];
    for (seed, hold) in [(740, ""), (741, "0")] {
        let (mut room, mut world) = serving_signed(seed, Mood::Takes, &trust, keys());
        let mut ada = logged_in(&mut room, &trust, hold);
        for (number, (text, files)) in messages.into_iter().enumerate() {
            let page =
                write(&mut room, &mut ada, "bob@far.test, grace@barepost.test", "", text, files);
            let words = if hold.is_empty() { "Sending…" } else { "Message sent." };
            assert!(page.contains(words), "{page}");
            world.until(&mut room, "the message has arrived", |world, _| {
                world.peer.taken.len() > number
            });
            world.pass(&mut room, 5);
            let now = room.machine.wall_clock();
            let left = String::from_utf8(world.peer.taken[number].content.clone())
                .expect("the bytes are UTF-8");
            assert!(
                left.starts_with("DKIM-Signature: v=1; a=rsa-sha256;"),
                "{}",
                &left[..2500.min(left.len())]
            );
            assert_eq!(left.matches("DKIM-Signature: ").count(), 2);
            assert_eq!(verdicts(left.as_bytes(), now), BOTH);
            let changed = left.replace("Looms", "Rooms");
            assert_eq!(verdicts(changed.as_bytes(), now)[0].0, SignatureReason::SignatureWrong);
            assert!(
                !left.contains("Bcc") && !left.contains("Envelope") && !left.contains("countess")
            );
            for (name, copies) in [("grace", number + 1), ("ada", number + 1)] {
                let inbox = world.inbox(&mut room, name);
                assert!(
                    inbox.len() == copies && inbox[number] == left,
                    "{name}: {}",
                    inbox[number]
                );
            }
            let sent = ada.get(&mut room, &format!("/mail/download/3.{}", number + 1)).text();
            assert!(
                sent.contains("\r\nBcc: countess@barepost.test\r\n") && without_bcc(&sent) == left,
                "{sent}"
            );
        }
        ada.hang_up(&mut room);
        world.until(&mut room, "nothing is in use", |_, room| {
            room.engines.in_use() == InUse::default()
        });
    }
}

#[test]
fn local_webmail_messages_are_signed_and_drafts_are_not() {
    let trust = Trust::new("mail.barepost.test");
    let mut room = serving(742, &trust);
    let now = room.machine.wall_clock();
    let mut ada = logged_in(&mut room, &trust, "0");
    for (number, text) in
        ["It weaves.", &"It weaves, and weaves again.\n".repeat(4000)].into_iter().enumerate()
    {
        let page = write(&mut room, &mut ada, "grace@barepost.test", "", text, &[]);
        assert!(page.contains("Message sent."), "{page}");
        ada.hang_up(&mut room);
        let read = newest(&mut room, "grace");
        assert_eq!(verdicts(&read, now), BOTH);
        assert!(read.starts_with(b"DKIM-Signature: ") && newest(&mut room, "ada") == read);
        let sent = ada.get(&mut room, &format!("/mail/download/3.{}", number + 1));
        assert!(sent.body == read, "{}", sent.text());
    }
    let token = ada.get(&mut room, "/mail/compose").token();
    let form = [
        ("token", token.as_str()),
        ("to", "grace@barepost.test"),
        ("text", "Later."),
        ("do", "save"),
    ];
    assert!(ada.post(&mut room, "/mail/compose", &form).text().contains("Draft saved."));
    let draft = ada.get(&mut room, "/mail/download/2.1").text();
    assert!(draft.contains("Later.") && !draft.contains("DKIM"), "{draft}");
    ada.hang_up(&mut room);
    room.until_nothing_is_in_use();
}

#[test]
fn a_message_sent_again_after_an_undo_is_signed_anew() {
    let trust = Trust::new("mail.barepost.test");
    let mut room = serving(743, &trust);
    let mut ada = logged_in(&mut room, &trust, "");
    let page = write(
        &mut room,
        &mut ada,
        "grace@barepost.test",
        "",
        "First.",
        &[("plan.pdf", b"few bytes")],
    );
    let what =
        between(&page, "name=\"what\" value=\"", "\"").expect("the page has an undo").to_string();
    let token = ada.get(&mut room, "/mail/compose").token();
    let back = ada.post(&mut room, "/mail/undo", &[("token", &token), ("what", &what)]).text();
    let draft = between(&back, "name=\"draft\" value=\"", "\"").expect("the page has a draft");
    let carried = between(&back, "name=\"carry\" value=\"", "\"").expect("the draft has a file");
    assert!(back.contains("First.") && !back.contains("DKIM"), "{back}");
    let form = [
        ("token", token.as_str()),
        ("draft", draft),
        ("carry", carried),
        ("to", "grace@barepost.test"),
        ("text", "Second."),
        ("do", "send"),
    ];
    assert!(ada.post(&mut room, "/mail/compose", &form).text().contains("Sending…"));
    room.pass(Micros::from_secs(15));
    let read = newest(&mut room, "grace");
    let text = String::from_utf8_lossy(&read);
    assert!(
        text.contains("Second.") && text.contains("plan.pdf") && !text.contains("First."),
        "{text}"
    );
    assert_eq!(verdicts(&read, room.machine.wall_clock()), BOTH);
}

#[test]
fn a_held_message_keeps_its_signature_at_any_power_cut() {
    let trust = Trust::new("mail.barepost.test");
    let (mut steps, mut cuts, mut sent) = (0, 0, 0);
    loop {
        let (mut room, mut world) = serving_signed(744, Mood::RefusesForNow, &trust, keys());
        let mut ada = logged_in(&mut room, &trust, "0");
        let token = ada.get(&mut room, "/mail/compose").token();
        let form = [
            ("token", token.as_str()),
            ("to", "bob@far.test, grace@barepost.test"),
            ("subject", "Looms"),
            ("text", "It weaves."),
            ("do", "send"),
        ];
        ada.begin(&mut room, "/mail/compose", &form);
        let is_over = world.step(&mut room, steps).as_secs() > 10;
        let disk = room.machine.disk.power_cut(&mut Dice::new(steps));
        // After the restart the machine has no signing key.
        let (mut room, mut world) = serving_pages(4700 + steps, disk, Mood::Takes, &trust);
        forget_connections(&mut [&mut ada]);
        world.pass(&mut room, 3600);
        let inbox = world.inbox(&mut room, "grace");
        assert!(inbox.len() == world.peer.taken.len() && inbox.len() <= 1, "after {steps} steps");
        for message in &inbox {
            assert_eq!(
                verdicts(message.as_bytes(), room.machine.wall_clock()),
                BOTH,
                "after {steps} steps"
            );
            assert!(message.as_bytes() == world.peer.taken[0].content, "after {steps} steps");
        }
        (cuts, sent) = (cuts + 1, sent + inbox.len());
        if is_over {
            break;
        }
        steps += 1 + steps / 20;
    }
    assert!(cuts > 30 && sent > 10 && sent < cuts, "{sent} of {cuts}");
}

#[test]
fn handlers_and_sessions_take_turns_to_sign() {
    let trust = Trust::new("mail.barepost.test");
    let mut room = serving(745, &trust);
    let mut browsers: Vec<Browser> = (0..4).map(|_| logged_in(&mut room, &trust, "0")).collect();
    let token: Vec<String> =
        browsers.iter_mut().map(|ada| ada.get(&mut room, "/mail/compose").token()).collect();
    let form = |number: usize| {
        [
            ("token", token[number].as_str()),
            ("to", "grace@barepost.test"),
            ("text", "It weaves."),
            ("do", "send"),
        ]
    };
    let message = b"From: ada@barepost.test\r\nTo: grace@barepost.test\r\n\r\nHello.\r\n.\r\n";
    let talks: Vec<_> = (0..4).map(|_| begin(&mut room, "ada@barepost.test")).collect();
    for (number, (ada, talk)) in browsers.iter_mut().zip(&talks).enumerate() {
        ada.begin(&mut room, "/mail/compose", &form(number));
        room.send(talk, message);
    }
    for ada in &mut browsers {
        let page = ada.finish(&mut room);
        assert_eq!(page.status, 303, "{}", page.text());
    }
    for mut talk in talks {
        assert!(room.smtp_reply(&mut talk).starts_with("250 "));
        room.close(&talk);
    }
    browsers.iter_mut().for_each(|ada| ada.hang_up(&mut room));
    let now = room.machine.wall_clock();
    let mut reader = room.log_in("grace");
    for number in 1..=8 {
        assert_eq!(verdicts(&room.retrieve_any(&mut reader, number), now), BOTH);
    }
    room.part(reader);
    for steps in 0..12 {
        let ada = &mut browsers[0];
        ada.get(&mut room, "/mail/compose");
        ada.begin(&mut room, "/mail/compose", &form(0));
        room.until("the message is being signed", |room| {
            room.engines.in_use().kept_for_signatures > 0
        });
        (0..steps).for_each(|_| room.step());
        let gone = ada.connection.take().expect("the browser was connected");
        room.abort(&gone.talk);
        room.until("no memory for signatures is in use", |room| {
            room.engines.in_use().kept_for_signatures == 0
        });
    }
    browsers.iter_mut().for_each(|ada| ada.hang_up(&mut room));
    room.until_nothing_is_in_use();
}

#[test]
fn smtp_signing_memory_does_not_block_webmail_sends() {
    let trust = Trust::new("mail.barepost.test");
    let messages = 40 * usize::from(CORES);
    let mut room = serving_in(sizes_for_messages(messages), 746, &trust);
    let mut ada = logged_in(&mut room, &trust, "0");
    let long = format!(
        "From: ada@barepost.test\r\nX: {}",
        format!("{}\r\n ", "x".repeat(900)).repeat(100)
    );
    let talks: Vec<_> = (0..messages).map(|_| begin(&mut room, "ada@barepost.test")).collect();
    talks.iter().for_each(|talk| room.send(talk, long.as_bytes()));
    room.pass(Micros::from_secs(1));
    let token = ada.get(&mut room, "/mail/compose").token();
    let subject = "Looms and looms ".repeat(7_000);
    let form = [
        ("token", token.as_str()),
        ("to", "grace@barepost.test"),
        ("subject", &subject),
        ("text", "It weaves."),
        ("do", "send"),
    ];
    let page = ada.post(&mut room, "/mail/compose", &form).text();
    assert!(page.contains("Message sent."), "{page}");
    assert_eq!(verdicts(&newest(&mut room, "grace"), room.machine.wall_clock()), BOTH);
    talks.iter().for_each(|talk| room.abort(talk));
    ada.hang_up(&mut room);
    room.until_nothing_is_in_use();
}

#[test]
fn a_long_signed_message_to_oneself_is_shown_once() {
    let trust = Trust::new("mail.barepost.test");
    let mut room = serving(747, &trust);
    let mut ada = logged_in(&mut room, &trust, "0");
    for (number, text) in
        ["It weaves.", &"It weaves, and weaves again.\n".repeat(4000)].into_iter().enumerate()
    {
        let page = write(&mut room, &mut ada, "ada@barepost.test", "", text, &[]);
        assert!(page.contains("Message sent."), "{page}");
        for mailbox in [1, 3] {
            let page = ada.get(&mut room, &format!("/mail/box/{mailbox}/{}", number + 1)).text();
            assert_eq!(page.matches("<article").count(), 1, "one of two copies: {page}");
        }
    }
    ada.hang_up(&mut room);
    room.until_nothing_is_in_use();
}
