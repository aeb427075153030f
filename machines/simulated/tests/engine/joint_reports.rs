//! Reports about several recipients of a message: one report names them all, and each recipient is
//! named once, whenever the power fails.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use chance::Dice;
use machine::Micros;
use simulated::MemoryDisk;
use simulated::room::noted_arrivals;

use super::queue_page::{handle, serving as serving_queue};
use super::relay::{MESSAGE, Mood, serving, serving_on};
use super::room::{DISK_BYTES, Room};

/// Recipients at three domains, in three entries. Carol gets the message.
const ALL: [&str; 4] = ["bob@far.test", "carol@far.test", "dave@null.test", "eve@nowhere.test"];
const FAILED: [&str; 3] = ["bob@far.test", "dave@null.test", "eve@nowhere.test"];

/// How often the reports with this action name each of these recipients.
fn named(inbox: &[String], action: &str, recipients: &[&str]) -> Vec<usize> {
    let action = format!("Action: {action}\r\n");
    let of = |recipient: &&str| {
        let named = format!("Final-Recipient: rfc822; {recipient}\r\n{action}");
        inbox.iter().map(|text| text.matches(&named).count()).sum()
    };
    recipients.iter().map(of).collect()
}

/// Ends the room. Returns the number of arrival notes on its disk, which must be zero when no
/// message is being delivered.
fn notes(room: Room) -> usize {
    noted_arrivals(&room.machine.disk.power_cut(&mut Dice::new(1)), "ada@barepost.test")
}

#[test]
fn one_report_names_all_failed_recipients() {
    let (mut room, mut world) = serving(1_500, Mood::RefusesBob);
    let start = room.machine.now;
    world.submit(&mut room, &ALL, MESSAGE);
    world.until(&mut room, "the report is there", |_, room| {
        room.engines.queue_entries() == 0 || room.machine.now.since(start).as_secs() > 600
    });
    // The report does not wait when all entries were tried.
    assert!(room.machine.now.since(start) < Micros::from_secs(100));
    let inbox = world.inbox(&mut room, "ada");
    assert_eq!(inbox.len(), 1, "{inbox:?}");
    assert_eq!(named(&inbox, "failed", &FAILED), [1; 3], "{inbox:?}");
    for words in [
        "Your message with the subject \"Away\" could not be delivered to:\r\n",
        "  <bob@far.test>\r\n    The other server refused the recipient.\r\n    mx.far.test replied: 550 5.1.1 No such user\r\n",
        "  <dave@null.test>\r\n",
        "  <eve@nowhere.test>\r\n",
    ] {
        assert!(inbox[0].contains(words), "{words}: {}", inbox[0]);
    }
    assert_eq!(inbox[0].matches("\r\nSubject: Away\r\n").count(), 1);
    world.pass(&mut room, 90_000);
    assert_eq!(world.inbox(&mut room, "ada").len(), 1);
    room.until_nothing_is_in_use();
    assert_eq!(notes(room), 0);
}

/// Recipients of one domain fail together with those of others, and one that is deferred does not
/// delay the report.
#[test]
fn a_deferred_recipient_does_not_delay_the_report() {
    let (mut room, mut world) = serving(1_501, Mood::RefusesBob);
    let all = ["bob1@far.test", "bob2@far.test", "dave@silent.test", "eve@nowhere.test"];
    world.submit(&mut room, &all, MESSAGE);
    world.pass(&mut room, 200);
    let failed = ["bob1@far.test", "bob2@far.test", "eve@nowhere.test"];
    let inbox = world.inbox(&mut room, "ada");
    assert_eq!((inbox.len(), named(&inbox, "failed", &failed)), (1, vec![1; 3]), "{inbox:?}");
    world.pass(&mut room, 6 * 86_400);
    let inbox = world.inbox(&mut room, "ada");
    assert_eq!(named(&inbox, "failed", &all), [1; 4]);
    assert_eq!(named(&inbox, "delayed", &["dave@silent.test"]), [1]);
    assert_eq!((inbox.len(), room.engines.queue_entries(), notes(room)), (3, 0, 0));
}

/// An attempt for another message of the account, which takes minutes, does not delay the report.
#[test]
fn another_message_does_not_delay_the_report() {
    let (mut room, mut world) = serving(1_507, Mood::RefusesBob);
    world.submit(&mut room, &ALL, MESSAGE);
    // The last recipient fails after 30 seconds, during the attempt at this message.
    world.pass(&mut room, 20);
    world.submit(&mut room, &["dave@silent.test"], MESSAGE);
    world.pass(&mut room, 40);
    let inbox = world.inbox(&mut room, "ada");
    assert_eq!((inbox.len(), named(&inbox, "failed", &FAILED)), (1, vec![1; 3]), "{inbox:?}");
    assert_eq!(room.engines.queue_entries(), 1);
}

/// A recipient fails while an earlier failure of the same entry waits to be reported. One report
/// names both recipients.
#[test]
fn an_entry_with_waiting_failures_may_fail_further() {
    let (mut room, mut world, _, mut grace) = serving_queue(1_506, Mood::RefusesBob1);
    // The first attempts at Bob's host are over before the attempt at Dave's.
    world.names.zone.retain(|(name, ..)| *name != "gone.far.test");
    let all = ["bob1@far.test", "bob2@far.test", "dave@silent.test"];
    world.submit(&mut room, &all, MESSAGE);
    world.pass(&mut room, 10);
    world.peer.mood = Mood::RefusesBob;
    let page = handle(&mut grace, &mut room, "retry", "bob1@far.test, bob2@far.test");
    assert!(page.contains("immediate retry"), "{page}");
    world.pass(&mut room, 10);
    assert_eq!((world.peer.rcpt_count, world.inbox(&mut room, "ada").len()), (3, 0));
    world.pass(&mut room, 120);
    let inbox = world.inbox(&mut room, "ada");
    assert_eq!((inbox.len(), named(&inbox, "failed", &all)), (1, vec![1, 1, 0]), "{inbox:?}");
    world.pass(&mut room, 6 * 86_400);
    assert_eq!(named(&world.inbox(&mut room, "ada"), "failed", &all), [1; 3]);
    assert_eq!((room.engines.queue_entries(), notes(room)), (0, 0));
}

/// A report names a limited number of recipients, and another report names the others.
#[test]
fn a_message_with_many_failures_has_few_reports() {
    let (mut room, mut world) = serving(1_502, Mood::Takes);
    let all: Vec<String> = (0..100).map(|number| format!("bob@d{number}.far.test")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    world.submit(&mut room, &all, MESSAGE);
    world.pass(&mut room, 3600);
    let inbox = world.inbox(&mut room, "ada");
    assert_eq!(named(&inbox, "failed", &all), [1; 100]);
    assert!((2..=4).contains(&inbox.len()), "{} reports", inbox.len());
    assert_eq!((room.engines.queue_entries(), notes(room)), (0, 0));
}

/// Runs the same scenario repeatedly, with the power cut one step later each time.
#[test]
fn one_report_is_sent_at_any_power_cut() {
    let mut steps = 0;
    loop {
        let (mut room, mut world) =
            serving_on(1_503, MemoryDisk::blank(DISK_BYTES), Mood::RefusesBob);
        world.submit(&mut room, &ALL, MESSAGE);
        let is_over = world.step(&mut room, steps).as_secs() > 50;
        let (mut room, mut world) = world.power_cut(room, 8000 + steps);
        world.pass(&mut room, 5 * 3600);
        let inbox = world.inbox(&mut room, "ada");
        assert_eq!(named(&inbox, "failed", &FAILED), [1; 3], "after {steps} steps: {inbox:?}");
        let left = room.engines.queue_entries();
        assert_eq!((inbox.len(), left, notes(room)), (1, 0, 0), "after {steps} steps: {inbox:?}");
        if is_over {
            break;
        }
        steps += 1 + steps / 40;
    }
}

/// Failures that wait for others are not reported if an administrator deletes their entry without a
/// report, and are reported if the administrator returns the message.
#[test]
fn a_deleted_entry_is_not_in_the_report_of_others() {
    for (seed, what, reports) in [(1_504, "delete", [0, 1]), (1_505, "return", [1, 1])] {
        let (mut room, mut world, _, mut grace) = serving_queue(seed, Mood::Thinks);
        let all = ["carol@far.test", "eve@nowhere.test"];
        world.submit(&mut room, &all, MESSAGE);
        // The message for Carol is under way, so the report about Eve waits.
        world.until(&mut room, "the host has the message", |world, _| {
            world.peer.conversations.iter().any(|talk| talk.awaits_reply)
        });
        world.pass(&mut room, 30);
        assert_eq!(world.inbox(&mut room, "ada").len(), 0);
        let page = handle(&mut grace, &mut room, what, "eve@nowhere.test");
        assert!(page.contains("The message was "), "{page}");
        grace.hang_up(&mut room);
        world.peer.mood = Mood::RefusesBob;
        world.submit(&mut room, &["bob@far.test"], MESSAGE);
        world.pass(&mut room, 3600);
        let inbox = world.inbox(&mut room, "ada");
        let counts = named(&inbox, "failed", &["eve@nowhere.test", "bob@far.test"]);
        assert_eq!(counts, reports, "{inbox:?}");
        assert_eq!((room.engines.queue_entries(), notes(room)), (0, 0));
    }
}
