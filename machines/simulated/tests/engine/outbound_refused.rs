//! Mailboxes of this machine that take no more messages: the sender gets a report when the time for
//! attempts is over. If the sender cannot get the report, the queue page shows the problem.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use chance::Dice;
use simulated::MemoryDisk;
use simulated::room::with_all_arrivals;
use store::SENT;

use super::queue_page::{assert_idle, look, serving_on};
use super::relay::{MESSAGE, Mood, World};
use super::room::tls_stream::Trust;
use super::room::{DISK_BYTES, Room};
use super::webmail::Browser;

const DAY: u64 = 24 * 3600;

/// A machine on which the account of `user` has the maximum number of arrival notes. So its
/// mailboxes take no message from an outbox or a submission.
fn closed(user: &str, seed: u64, mood: Mood, trust: &Trust) -> (Room, World) {
    let (room, _) = serving_on("", seed, MemoryDisk::blank(DISK_BYTES), mood, trust);
    let disk = room.machine.disk.power_cut(&mut Dice::new(seed));
    let disk = with_all_arrivals(&disk, (&format!("{user}@barepost.test"), SENT));
    serving_on("", seed + 1, disk, mood, trust)
}

fn queue(room: &mut Room, trust: &Trust) -> String {
    let mut grace = Browser::new(trust);
    grace.log_in(room, "grace", "lovelace");
    let page = look(&mut grace, room).text();
    grace.hang_up(room);
    page
}

fn failures(world: &mut World, room: &mut Room) -> Vec<String> {
    let inbox = world.inbox(room, "ada");
    inbox.into_iter().filter(|text| text.contains("Action: failed")).collect()
}

#[test]
fn a_mailbox_that_takes_no_more_is_reported_in_time() {
    let trust = Trust::new("mail.barepost.test");
    let (mut room, mut world) = closed("grace", 1_000, Mood::Takes, &trust);
    world.submit(&mut room, &["grace@barepost.test", "bob@far.test"], MESSAGE);
    world.pass(&mut room, DAY);
    assert_eq!((world.peer.taken.len(), world.inbox(&mut room, "grace").len()), (1, 0));
    let page = queue(&mut room, &trust);
    assert!(page.contains("the mailbox does not accept more messages"), "{page}");
    assert!(failures(&mut world, &mut room).is_empty());
    world.pass(&mut room, 5 * DAY);
    let failures = failures(&mut world, &mut room);
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(failures[0].contains("Final-Recipient: rfc822; grace@barepost.test"), "{failures:?}");
    assert!(failures[0].contains("The mailbox does not accept more messages"), "{failures:?}");
    assert_eq!(room.engines.queue_entries(), 0);
    assert_idle(&mut world, &mut room);
}

#[test]
fn a_report_that_the_sender_cannot_get_is_shown() {
    let trust = Trust::new("mail.barepost.test");
    let (mut room, mut world) = closed("ada", 1_010, Mood::RefusesBob, &trust);
    world.submit(&mut room, &["bob@far.test"], MESSAGE);
    world.pass(&mut room, 6 * DAY);
    assert_eq!((failures(&mut world, &mut room).len(), room.engines.queue_entries()), (0, 1));
    let page = queue(&mut room, &trust);
    assert!(page.contains("no space for the message, or for the report to its sender"), "{page}");
    let named = world.peer.rcpt_count;
    world.pass(&mut room, DAY);
    assert!(world.peer.rcpt_count - named <= 25, "{} tries a day", world.peer.rcpt_count - named);
}

#[test]
fn a_webmail_message_to_a_closed_mailbox_is_reported_in_time() {
    let trust = Trust::new("mail.barepost.test");
    let (mut room, mut world) = closed("grace", 1_020, Mood::Takes, &trust);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let token = ada.get(&mut room, "/mail/compose").token();
    let form = [
        ("token", token.as_str()),
        ("to", "grace@barepost.test"),
        ("subject", "Held"),
        ("text", "Words."),
        ("do", "send"),
    ];
    assert!(ada.post(&mut room, "/mail/compose", &form).text().contains("Sending…"));
    ada.hang_up(&mut room);
    world.pass(&mut room, 300);
    let drafts = ada.get(&mut room, "/mail/box/2").text();
    assert!(!drafts.contains("Sending…"), "{drafts}");
    ada.hang_up(&mut room);
    world.pass(&mut room, 6 * DAY);
    assert_eq!((failures(&mut world, &mut room).len(), room.engines.queue_entries()), (1, 0));
    assert_idle(&mut world, &mut room);
}

/// Sends a message by the webmail as Ada, to this many domains.
fn send_to_domains(room: &mut Room, ada: &mut Browser, domains: usize) {
    ada.log_in(room, "ada", "lovelace");
    let token = ada.get(room, "/mail/compose").token();
    let to: Vec<String> = (0..domains).map(|number| format!("bob@d{number}.far.test")).collect();
    let to = to.join(", ");
    let form = [
        ("token", token.as_str()),
        ("to", to.as_str()),
        ("subject", "Held"),
        ("text", "Words."),
        ("do", "send"),
    ];
    assert!(ada.post(room, "/mail/compose", &form).text().contains("Sending…"));
    ada.hang_up(room);
}

#[test]
fn a_webmail_message_goes_to_as_many_domains_as_it_may_have() {
    let trust = Trust::new("mail.barepost.test");
    let (mut room, mut world) =
        serving_on("", 1_030, MemoryDisk::blank(DISK_BYTES), Mood::Takes, &trust);
    let mut ada = Browser::new(&trust);
    send_to_domains(&mut room, &mut ada, 99);
    world.pass(&mut room, 3600);
    // None of the domains exists, so Ada's reports name each of them.
    let failures = failures(&mut world, &mut room);
    for number in 0..99 {
        let named =
            format!("Final-Recipient: rfc822; bob@d{number}.far.test\r\nAction: failed\r\n");
        let count: usize = failures.iter().map(|text| text.matches(&named).count()).sum();
        assert_eq!(count, 1, "{number}");
    }
    assert!(failures.len() < 10, "{} reports", failures.len());
    assert_eq!(room.engines.queue_entries(), 0);
    let sent = ada.get(&mut room, "/mail/box/3").text();
    assert!(sent.contains("class=\"rows\""), "{sent}");
    ada.hang_up(&mut room);
    assert_idle(&mut world, &mut room);
}

/// The writer's account has no space for another arrival note, which an outbox entry needs.
#[test]
fn a_webmail_message_without_note_space_is_a_draft_again() {
    let trust = Trust::new("mail.barepost.test");
    let (mut room, mut world) = closed("ada", 1_040, Mood::Takes, &trust);
    let mut ada = Browser::new(&trust);
    send_to_domains(&mut room, &mut ada, 3);
    world.pass(&mut room, 3600);
    assert_eq!((world.peer.taken.len(), room.engines.queue_entries()), (0, 0));
    let drafts = ada.get(&mut room, "/mail/box/2").text();
    assert!(!drafts.contains("Sending…") && drafts.contains("class=\"rows\""), "{drafts}");
    ada.hang_up(&mut room);
    assert_idle(&mut world, &mut room);
}
