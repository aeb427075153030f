//! Files of held messages: at any power cut they leave with the message, or are in the draft again.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use http::Site;
use machine::Micros;
use simulated::MemoryDisk;

use super::draft_files::{carried, draft, large};
use super::room::tls_stream::Trust;
use super::room::{CONFIGURATION, NO_QUOTA, Room, stuffed, usual_sizes};
use super::undo_send::{DELIVERED, NOT_SENT, People};
use super::webmail::{Browser, between, serving};

const SMALL: &[u8] = b"few bytes";

/// Sends a message with two files, one larger than a single read of the store and one smaller.
/// Returns the key that undoes the send.
fn send(people: &mut People, room: &mut Room) -> String {
    people.send_with(
        room,
        "",
        "Enclosed.",
        &[],
        &[("large one.pdf", &large()), ("small.pdf", SMALL)],
    )
}

/// The contents of a message's files, shortest name first.
fn files(browser: &mut Browser, room: &mut Room, key: &str) -> Vec<Vec<u8>> {
    let page = browser.get(room, &format!("/mail/box/{}", key.replace('.', "/"))).text();
    let before = format!("href=\"/mail/part/{key}/");
    let rests = page.match_indices(&before).map(|(at, before)| &page[at + before.len()..]);
    let mut parts: Vec<&str> = rests.map(|rest| &rest[..rest.find('"').expect("an end")]).collect();
    parts.sort_unstable();
    parts.dedup();
    parts_of(browser, room, key, &parts)
}

/// The contents of a draft's files, from its page in the editor.
fn files_of_draft(browser: &mut Browser, room: &mut Room, key: &str) -> Vec<Vec<u8>> {
    let page = browser.get(room, &format!("/mail/compose?draft={key}")).text();
    let parts: Vec<&str> = carried(&page)
        .iter()
        .map(|file| file.split_once(' ').expect("a part and a name").0)
        .collect();
    parts_of(browser, room, key, &parts)
}

fn parts_of(browser: &mut Browser, room: &mut Room, key: &str, parts: &[&str]) -> Vec<Vec<u8>> {
    let part = |part| browser.get(room, &format!("/mail/part/{key}/{part}")).body;
    let mut files: Vec<Vec<u8>> = parts.iter().map(part).collect();
    files.sort_by_key(Vec::len);
    files
}

/// Checks that all recipients have the message with its files.
fn assert_delivered(people: &mut People, room: &mut Room, files_sent: &[Vec<u8>], when: &str) {
    assert_eq!(people.copies(room), DELIVERED, "{when}");
    for (is_ada, mailbox) in [(true, 1), (true, 3), (false, 1)] {
        let browser = if is_ada { &mut people.ada } else { &mut people.grace };
        let list = browser.get(room, &format!("/mail/box/{mailbox}")).text();
        // The message may have another UID if the power failed in the middle of a delivery.
        let key = between(&list, "name=\"key\" value=\"", "\"").expect("the list has a row");
        assert!(files(browser, room, key) == files_sent, "{key} {when}");
    }
}

fn both() -> [Vec<u8>; 2] {
    [SMALL.to_vec(), large()]
}

#[test]
fn files_of_a_held_message_leave_or_return_to_the_draft() {
    let (mut room, trust) = serving(340);
    let mut people = People::logged_in(&mut room, &trust);
    let undo = send(&mut people, &mut room);
    assert_eq!(people.copies(&mut room), NOT_SENT);
    room.pass(Micros::from_secs(5));
    let back = people.undo(&mut room, &undo);
    assert!(back.contains("Sending undone.") && back.contains("Enclosed."), "{back}");
    let [one, two] = carried(&back)[..] else { panic!("{back}") };
    assert!(one.ends_with(" large one.pdf") && two.ends_with(" small.pdf"), "{one} {two}");
    assert!(files_of_draft(&mut people.ada, &mut room, draft(&back)) == both());
    people.wait(&mut room, 40);
    assert_eq!(people.copies(&mut room), NOT_SENT);

    // The message is sent again, with one of the files and a new one.
    let undo =
        people.send_with(&mut room, draft(&back), "Enclosed.", &[one], &[("third.pdf", b"third")]);
    assert_eq!(people.copies(&mut room), NOT_SENT, "the draft has become the held message");
    let again = people.undo(&mut room, &undo);
    let expected = [b"third".to_vec(), large()];
    assert!(files_of_draft(&mut people.ada, &mut room, draft(&again)) == expected);
    people.send_with(&mut room, draft(&again), "Enclosed.", &carried(&again), &[]);
    assert_eq!(people.copies(&mut room), NOT_SENT);
    room.pass(Micros::from_secs(12));
    assert_delivered(&mut people, &mut room, &expected, "at last");
    people.wait(&mut room, 200);
    room.until_nothing_is_in_use();
}

/// The power is cut one step later each time, from before the message leaves until every recipient
/// has it.
#[test]
fn a_held_message_with_files_survives_any_power_cut() {
    let mut ends = Vec::new();
    let mut steps = 0;
    loop {
        let (mut room, trust) = serving(341);
        let mut people = People::logged_in(&mut room, &trust);
        send(&mut people, &mut room);
        room.pass(Micros::from_secs(10));
        (0..steps).for_each(|_| room.step());
        let has_left = room.machine.now.0 > 15_000_000;
        let mut room = people.after_power_cut(room, 4000 + steps, &trust);
        let end = people.copies(&mut room);
        ends.push(end);
        // The power is cut again while the machine completes the work after the first power cut.
        (0..steps % 7 * 9).for_each(|_| room.step());
        let mut room = people.after_power_cut(room, 5000 + steps, &trust);
        people.wait(&mut room, 40);
        assert_delivered(
            &mut people,
            &mut room,
            &both(),
            &format!("cut {steps} steps after ten seconds"),
        );
        if has_left && end == DELIVERED {
            break;
        }
        steps += 2 + steps / 40;
    }
    for end in [NOT_SENT, DELIVERED] {
        assert!(ends.contains(&end), "{end:?} in {ends:?}");
    }
}

/// The files stay with the message, which is a draft or has left. If the server confirmed the undo,
/// the message is a draft.
#[test]
fn files_survive_a_power_cut_during_an_undo() {
    let mut ends = Vec::new();
    for (seed, waits) in [(342, 5_000), (343, 10_900)] {
        for steps in 0..16 {
            let (mut room, trust) = serving(seed);
            let mut people = People::logged_in(&mut room, &trust);
            let undo = send(&mut people, &mut room);
            room.pass(Micros::from_millis(waits));
            if steps % 4 == 3 {
                people.undo(&mut room, &undo);
            } else {
                people.ada.begin(
                    &mut room,
                    "/mail/undo",
                    &[("token", &people.token), ("what", &undo)],
                );
                (0..steps).for_each(|_| room.step());
            }
            let mut room = people.after_power_cut(room, 6000 + steps, &trust);
            people.wait(&mut room, 40);
            let end = people.copies(&mut room);
            if end == NOT_SENT {
                let list = people.ada.get(&mut room, "/mail/box/2").text();
                let draft =
                    between(&list, "name=\"key\" value=\"", "\"").expect("the list has a row");
                assert!(
                    files_of_draft(&mut people.ada, &mut room, draft) == both(),
                    "{steps} steps after {waits} ms"
                );
            } else {
                assert_delivered(
                    &mut people,
                    &mut room,
                    &both(),
                    &format!("{steps} steps after {waits} ms"),
                );
            }
            ends.push(end);
        }
    }
    assert!(ends.contains(&NOT_SENT) && ends.contains(&DELIVERED), "{ends:?}");
}

/// Delivers messages of this many octets until one is refused.
pub(super) fn fill(room: &mut Room, octets: usize) {
    let body = stuffed(&[&b"Subject: Filler\r\n\r\n"[..], &b"x\r\n".repeat(octets / 3)].concat());
    loop {
        let mut talk = room.connect(25);
        assert!(room.smtp_reply(&mut talk).starts_with("220 "));
        let commands = [
            "EHLO elsewhere.test",
            "MAIL FROM:<a@elsewhere.test>",
            "RCPT TO:<grace@barepost.test>",
            "DATA",
        ];
        let is_taken =
            commands.iter().all(|command| room.smtp(&mut talk, command).starts_with(['2', '3']));
        if is_taken {
            room.send(&talk, &body);
        }
        let assert_delivered = is_taken && room.smtp(&mut talk, ".").starts_with("250 ");
        room.close(&talk);
        if !assert_delivered {
            return;
        }
    }
}

/// The message has begun to leave, and waits for another attempt because the first recipient's copy
/// found no space.
#[test]
fn an_undo_is_refused_when_a_message_has_begun_to_leave() {
    let trust = Trust::new("mail.barepost.test");
    let (disk, certificates) = (MemoryDisk::blank(6 << 20), vec![trust.certificate.clone()]);
    let configuration = [CONFIGURATION, NO_QUOTA].concat();
    let mut room =
        Room::certified(344, disk, usual_sizes(), &configuration, Site::default(), certificates);
    room.until("the engine serves", |room| room.console_says("serving"));
    let mut people = People::logged_in(&mut room, &trust);
    let undo = send(&mut people, &mut room);
    let begun = room.machine.now;
    [400_000, 20_000].into_iter().for_each(|octets| fill(&mut room, octets));
    assert!(
        room.machine.now.since(begun) < Micros::from_secs(10),
        "the message is still held: {:?}",
        room.machine.now.since(begun)
    );
    room.pass(Micros::from_secs(11));
    let late = people.undo(&mut room, &undo);
    assert!(late.contains("Too late to undo") && !late.contains("Sending undone"), "{late}");
    assert!(people.ada.get(&mut room, "/mail/box/2").text().contains("Sending…"));
    people.grace.hang_up(&mut room);
    people.ada.hang_up(&mut room);
    let mut talk = room.log_in("grace");
    let count = room.pop3(&mut talk, "STAT");
    let count: usize =
        count.split(' ').nth(1).and_then(|count| count.parse().ok()).expect("a count");
    (1..=count).for_each(|number| {
        assert!(room.pop3(&mut talk, &format!("DELE {number}")).starts_with("+OK"))
    });
    assert!(room.pop3(&mut talk, "QUIT").starts_with("+OK"));
    room.close(&talk);
    room.pass(Micros::from_secs(100));
    assert_delivered(&mut people, &mut room, &both(), "once there is space");
    people.wait(&mut room, 200);
    room.until_nothing_is_in_use();
}
