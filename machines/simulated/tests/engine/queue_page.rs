//! The queue page of the webmail, for administrators: it shows the outbox entries of all cores, and
//! can hold, release, retry and delete them.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use chance::Dice;
use http::Site;
use machine::Sector;
use server::InUse;
use simulated::MemoryDisk;

use super::forwarding::of;
use super::outbound_damaged::delivered_damaged;
use super::quotas;
use super::relay::{GRACE, MESSAGE, Mood, World, configuration, world_of};
use super::room::tls_stream::Trust;
use super::room::{DISK_BYTES, Room, usual_sizes};
use super::webmail::{Browser, Page, between};

const QUEUE: &str = "/mail/queue";
/// The text that the page shows instead of the recipients of an unreadable entry.
pub(super) const UNKNOWN: &str = "Unknown recipients";

/// A machine on which Grace is an administrator. Ada's messages may be on another core than Grace's
/// account.
pub(super) fn serving_on(
    lines: &str,
    seed: u64,
    disk: MemoryDisk,
    mood: Mood,
    trust: &Trust,
) -> (Room, World) {
    let configuration = of("ada", lines, &of("grace", "admin = true", &configuration()));
    let certificates = vec![trust.certificate.clone()];
    world_of(
        Room::certified(seed, disk, usual_sizes(), &configuration, Site::default(), certificates),
        mood,
    )
}

pub(super) fn serving(seed: u64, mood: Mood) -> (Room, World, Trust, Browser) {
    serving_where("", seed, mood)
}

/// Like [`serving_on`] with a blank disk, and Grace's browser, logged in. `lines`: configuration
/// lines for Ada.
pub(super) fn serving_where(lines: &str, seed: u64, mood: Mood) -> (Room, World, Trust, Browser) {
    let trust = Trust::new("mail.barepost.test");
    let (mut room, world) = serving_on(lines, seed, MemoryDisk::blank(DISK_BYTES), mood, &trust);
    let mut grace = Browser::new(&trust);
    grace.log_in(&mut room, "grace", "lovelace");
    grace.hang_up(&mut room);
    (room, world, trust, grace)
}

/// Cuts the power, and restarts the machine.
pub(super) fn power_cut(world: World, room: Room, seed: u64, trust: &Trust) -> (Room, World) {
    let (taken, mood) = (world.peer.taken, world.peer.mood);
    let (room, mut world) =
        serving_on("", seed, room.machine.disk.power_cut(&mut Dice::new(seed)), mood, trust);
    world.peer.taken = taken;
    (room, world)
}

/// Requests the queue page, on any core.
pub(super) fn look(grace: &mut Browser, room: &mut Room) -> Page {
    let page = grace.get(room, QUEUE);
    assert_eq!(page.status, 200, "{}", page.text());
    page
}

/// Applies an action to the entry of these recipients, or to all entries of a domain. Returns the
/// next page.
pub(super) fn handle(grace: &mut Browser, room: &mut Room, what: &str, recipients: &str) -> String {
    let page = look(grace, room);
    let (token, text) = (page.token(), page.text());
    let (name, value) = if recipients.contains('@') || recipients == UNKNOWN {
        let card = text
            .split("<section")
            .find(|card| card.contains(&format!(">{recipients}</h2>")))
            .expect("the page shows the entry");
        ("key", between(card, "name=\"key\" value=\"", "\"").expect("a key"))
    } else {
        ("domain", recipients)
    };
    let form = [("token", token.as_str()), ("here", QUEUE), (name, value), ("do", what)];
    let page = grace.post(room, QUEUE, &form).text();
    grace.hang_up(room);
    page
}

/// Checks that no resource is in use, once the host has closed its connections.
pub(super) fn assert_idle(world: &mut World, room: &mut Room) {
    world.pass(room, 100);
    assert_eq!(room.engines.in_use(), InUse::default());
}

/// The recipients to which messages were delivered, sorted.
fn taken(world: &World) -> Vec<String> {
    let mut all: Vec<String> = world.peer.taken.iter().flat_map(|taken| taken.to.clone()).collect();
    all.sort();
    all
}

#[test]
fn only_administrators_see_and_change_the_queue() {
    let (mut room, mut world, trust, mut grace) = serving(900, Mood::RefusesForNow);
    world.submit(&mut room, &["bob@far.test"], MESSAGE);
    world.pass(&mut room, 60);
    let page = look(&mut grace, &mut room);
    let key = between(&page.text(), "name=\"key\" value=\"", "\"").expect("a key").to_string();
    assert!(grace.get(&mut room, "/mail/box/1").text().contains("href=\"/mail/queue\""));
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let list = ada.get(&mut room, "/mail/box/1");
    assert!(!list.text().contains("/mail/queue"));
    assert_eq!(ada.get(&mut room, QUEUE).status, 404);
    let token = list.token();
    let form =
        [("token", token.as_str()), ("here", QUEUE), ("key", key.as_str()), ("do", "delete")];
    assert_eq!(ada.send(&mut room, QUEUE, &form).status, 404);
    assert_eq!(grace.send(&mut room, QUEUE, &form).status, 403);
    for wrong in [[("key", key.as_str()), ("do", "burn")], [("key", "1.1"), ("do", "hold")]] {
        let token = page.token();
        assert_eq!(
            grace
                .send(&mut room, QUEUE, &[&[("token", token.as_str())], &wrong[..]].concat())
                .status,
            404
        );
    }
    assert!(look(&mut grace, &mut room).text().contains("bob@far.test"));
    grace.hang_up(&mut room);
    ada.hang_up(&mut room);
    world.peer.mood = Mood::Takes;
    world.pass(&mut room, 3600);
    assert_eq!(taken(&world), ["bob@far.test"]);
    assert_idle(&mut world, &mut room);
}

#[test]
fn unreadable_entries_are_shown_and_can_be_deleted() {
    // The entry is a message that Ada has submitted, or a message for Ada that is forwarded.
    for (seed, is_posted) in [(920, true), (921, false)] {
        let lines = if is_posted { "" } else { "forward = [\"bob@far.test\"]\nkeep = false" };
        let (mut room, mut world, _, mut grace) = serving_where(lines, seed, Mood::RefusesForNow);
        if is_posted {
            world.submit(&mut room, &["bob@far.test"], MESSAGE);
            world.pass(&mut room, 10);
        } else {
            delivered_damaged(&mut world, &mut room, "ada@barepost.test");
        }
        (0..DISK_BYTES / 512).for_each(|sector| room.machine.disk.spoil(Sector(sector)));
        world.pass(&mut room, 2 * 3600);
        let page = look(&mut grace, &mut room).text();
        grace.hang_up(&mut room);
        let from = "from <bdi>the outbox of ada@barepost.test</bdi>";
        for words in [UNKNOWN, from, "a part of the message can no longer be read from"] {
            assert!(page.contains(words), "{words}: {page}");
        }
        assert!(!page.contains("Delete and notify sender"));
        let page_text = handle(&mut grace, &mut room, "retry", UNKNOWN);
        let is_error = page_text.contains("class=\"notice error\"");
        assert!(is_error && page_text.contains("on the server’s disk"), "{page_text}");
        if is_posted {
            // The sender is unknown, so the message cannot be returned, and stays in the queue.
            handle(&mut grace, &mut room, "return", UNKNOWN);
            world.pass(&mut room, 2 * 3600);
            assert!(look(&mut grace, &mut room).text().contains(UNKNOWN));
            grace.hang_up(&mut room);
        }
        let page_text = handle(&mut grace, &mut room, "delete", UNKNOWN);
        assert!(page_text.contains("The message was deleted."), "{page_text}");
        assert!(look(&mut grace, &mut room).text().contains("The queue is empty"));
        grace.hang_up(&mut room);
        assert_idle(&mut world, &mut room);
    }
}

#[test]
fn the_queue_page_shows_recipients_times_and_replies() {
    let (mut room, mut world, _, mut grace) = serving(901, Mood::RefusesForNow);
    assert!(look(&mut grace, &mut room).text().contains("The queue is empty"));
    grace.hang_up(&mut room);
    world.submit(&mut room, &["bob@far.test", "carol@far.test", "dave@silent.test"], MESSAGE);
    world.pass(&mut room, 90);
    let text = look(&mut grace, &mut room).text();
    assert!(
        text.contains(">bob@far.test, carol@far.test</h2>")
            && text.contains("from <bdi>ada@barepost.test</bdi>"),
        "{text}"
    );
    assert!(
        text.contains("450 4.2.0 Not now")
            && text.contains("1 attempt")
            && text.contains("Next attempt: "),
        "{text}"
    );
    assert!(text.contains("2 messages in the queue: 0 held"), "{text}");
    grace.hang_up(&mut room);
    world.pass(&mut room, 1200);
    let text = look(&mut grace, &mut room).text();
    assert!(text.contains("3 attempts") || text.contains("4 attempts"), "{text}");
}

#[test]
fn a_message_that_waits_for_quota_says_so() {
    let (mut room, mut world, _, mut grace) = serving_where("quota = \"1M\"", 907, Mood::Takes);
    let mut send = |world: &mut World, to: &[&str], kilobytes| {
        world.submit_from(
            &mut room,
            (GRACE, "grace@barepost.test"),
            to,
            &quotas::message(kilobytes),
        );
        world.pass(&mut room, 60);
    };
    (0..2).for_each(|_| send(&mut world, &["ada@barepost.test"], 450));
    send(&mut world, &["ada@barepost.test", "bob@far.test"], 300);
    let text = look(&mut grace, &mut room).text();
    let words = "Last attempt: the mailbox is full.";
    assert!(
        text.contains(">ada@barepost.test</h2>")
            && text.contains("1 attempt")
            && text.contains(words),
        "{text}"
    );
    grace.hang_up(&mut room);
}

#[test]
fn a_long_queue_is_paged_and_shows_each_entry_once() {
    let (mut room, mut world, _, mut grace) = serving(902, Mood::RefusesForNow);
    for number in 0..45 {
        world.submit(&mut room, &[&format!("friend{number}@far.test")], MESSAGE);
    }
    world.pass(&mut room, 60);
    let (mut page, mut seen, mut sizes) = (look(&mut grace, &mut room), Vec::new(), Vec::new());
    loop {
        let text = page.text();
        let all = text
            .split(" class=\"recipients\" dir=\"auto\">")
            .skip(1)
            .filter_map(|rest| rest.split('<').next());
        let before = seen.len();
        seen.extend(all.map(String::from));
        sizes.push(seen.len() - before);
        let Some(next) = between(&text, "class=\"button\" href=\"/mail/queue?after=", "\"") else {
            break;
        };
        page = grace.get(&mut room, &format!("{QUEUE}?after={next}"));
    }
    let mut wanted: Vec<String> =
        (0..45).map(|number| format!("friend{number}@far.test")).collect();
    wanted.sort();
    seen.sort();
    assert_eq!((sizes, seen), (vec![20, 20, 5], wanted));
    let page_text = handle(&mut grace, &mut room, "delete", "far.test");
    assert!(
        page_text.contains("45 messages for far.test were deleted.")
            && page_text.contains("The queue is empty"),
        "{page_text}"
    );
    world.peer.mood = Mood::Takes;
    world.pass(&mut room, 10_000);
    assert_eq!((world.peer.taken.len(), world.inbox(&mut room, "ada").len()), (0, 0));
    assert_idle(&mut world, &mut room);
}

#[test]
fn a_hold_survives_a_power_cut_and_a_release_sends_once() {
    for seed in 903..906 {
        let (mut room, mut world, trust, mut grace) = serving(seed, Mood::RefusesForNow);
        world.submit(&mut room, &["bob@far.test"], MESSAGE);
        world.submit(&mut room, &["carol@far.test"], MESSAGE);
        world.pass(&mut room, 60);
        let page_text = handle(&mut grace, &mut room, "hold", "bob@far.test");
        assert!(
            page_text.contains("The message was held.")
                && page_text.contains(">Release<")
                && page_text.contains("1 held"),
            "{page_text}"
        );
        world.peer.mood = Mood::Takes;
        let (mut room, mut world) = power_cut(world, room, seed, &trust);
        world.pass(&mut room, 20_000);
        assert_eq!(taken(&world), ["carol@far.test"]);
        assert!(
            !handle(&mut grace, &mut room, "retry", "bob@far.test").contains("immediate retry")
        );
        world.pass(&mut room, 100);
        assert_eq!(taken(&world), ["carol@far.test"]);
        let page_text = handle(&mut grace, &mut room, "release", "bob@far.test");
        assert!(page_text.contains("The message was released."), "{page_text}");
        world.pass(&mut room, 120);
        assert_eq!(taken(&world), ["bob@far.test", "carol@far.test"]);
        world.pass(&mut room, 20_000);
        assert_eq!((world.peer.taken.len(), world.inbox(&mut room, "ada").len()), (2, 0));
        assert_idle(&mut world, &mut room);
    }
}

#[test]
fn a_deleted_entry_never_leaves_and_is_reported_if_requested() {
    for (seed, what, reports) in [(910, "return", 1), (911, "delete", 0), (912, "return", 1)] {
        let (mut room, mut world, trust, mut grace) = serving(seed, Mood::RefusesForNow);
        world.submit(&mut room, &["bob@far.test"], MESSAGE);
        world.pass(&mut room, 60);
        if seed == 912 {
            handle(&mut grace, &mut room, "hold", "bob@far.test");
        }
        let page_text = handle(&mut grace, &mut room, what, "bob@far.test");
        assert!(page_text.contains("The message was "), "{page_text}");
        world.peer.mood = Mood::Takes;
        let (mut room, mut world) = power_cut(world, room, seed, &trust);
        world.pass(&mut room, 20_000);
        let inbox = world.inbox(&mut room, "ada");
        assert_eq!((world.peer.taken.len(), inbox.len()), (0, reports), "{inbox:?}");
        for report in inbox {
            assert!(
                report.contains("Action: failed") && report.contains("Status: 5.7.1"),
                "{report}"
            );
            assert!(
                report
                    .contains("An administrator of this server removed the message from the queue"),
                "{report}"
            );
        }
        assert!(look(&mut grace, &mut room).text().contains("The queue is empty"));
        grace.hang_up(&mut room);
        assert_idle(&mut world, &mut room);
    }
}

#[test]
fn a_manual_retry_ignores_the_destination_backoff() {
    for (seed, recipients) in [(920, "bob@far.test"), (921, "far.test")] {
        let (mut room, mut world, _, mut grace) = serving(seed, Mood::Silent);
        world.submit(&mut room, &["bob@far.test"], MESSAGE);
        world.pass(&mut room, 60);
        while look(&mut grace, &mut room).text().contains("Sending") {
            grace.hang_up(&mut room);
            world.pass(&mut room, 5);
        }
        grace.hang_up(&mut room);
        let accepted = world.peer.accepted;
        world.peer.mood = Mood::Takes;
        let page_text = handle(&mut grace, &mut room, "retry", recipients);
        assert!(page_text.contains("immediate retry"), "{page_text}");
        let under_way =
            |text: &str| text.contains("Sending") || text.contains("The queue is empty");
        world.pass(&mut room, 1);
        let page = look(&mut grace, &mut room).text();
        assert!(under_way(&page), "{page}");
        grace.hang_up(&mut room);
        world.pass(&mut room, 120);
        assert_eq!(
            (taken(&world), world.peer.accepted),
            (vec!["bob@far.test".to_string()], accepted + 1)
        );
        assert_idle(&mut world, &mut room);
    }
}

#[test]
fn a_domain_is_held_and_released_without_affecting_others() {
    let (mut room, mut world, trust, mut grace) = serving(930, Mood::RefusesForNow);
    for friend in ["bob", "carol", "dora"] {
        world.submit(&mut room, &[&format!("{friend}@far.test"), "eve@silent.test"], MESSAGE);
    }
    world.pass(&mut room, 60);
    let page_text = handle(&mut grace, &mut room, "hold", " FAR.test");
    assert!(
        page_text.contains("3 messages for far.test were held.")
            && page_text.contains("6 messages in the queue: 3 held"),
        "{page_text}"
    );
    assert!(
        handle(&mut grace, &mut room, "hold", "far.test")
            .contains("no messages for far.test to which this applies")
    );
    world.peer.mood = Mood::Takes;
    // After the restart the server has not read the recipients of the entries yet.
    let (mut room, mut world) = power_cut(world, room, 930, &trust);
    world.pass(&mut room, 7200);
    assert_eq!(world.peer.taken.len(), 0);
    let (mut room, mut world) = power_cut(world, room, 931, &trust);
    assert!(
        handle(&mut grace, &mut room, "release", "far.test")
            .contains("3 messages for far.test were released.")
    );
    world.pass(&mut room, 120);
    assert_eq!(taken(&world), ["bob@far.test", "carol@far.test", "dora@far.test"]);
    let page_text = handle(&mut grace, &mut room, "delete", "silent.test");
    assert!(page_text.contains("3 messages for silent.test were deleted."), "{page_text}");
    assert_idle(&mut world, &mut room);
}

#[test]
fn an_attempt_is_cancelled_unless_the_host_may_have_the_message() {
    for (seed, mood) in [(940, Mood::Silent), (941, Mood::Thinks)] {
        let (mut room, mut world, _, mut grace) = serving(seed, mood);
        world.submit(&mut room, &["carol@far.test"], MESSAGE);
        world.pass(&mut room, 60);
        let page = look(&mut grace, &mut room).text();
        assert!(
            page.contains("Sending")
                && page.contains("1 being sent")
                && !page.contains(">Retry now<"),
            "{page}"
        );
        let page_text = handle(&mut grace, &mut room, "hold", "carol@far.test");
        assert_eq!(
            page_text.contains("The message was held."),
            mood == Mood::Silent,
            "{page_text}"
        );
        assert_eq!(
            page_text.contains("left unchanged: check again"),
            mood == Mood::Thinks,
            "{page_text}"
        );
        world.peer.mood = Mood::Takes;
        world.pass(&mut room, 20_000);
        assert_eq!(world.peer.taken.len(), usize::from(mood == Mood::Thinks));
        if mood == Mood::Silent {
            assert!(
                handle(&mut grace, &mut room, "delete", "carol@far.test")
                    .contains("The message was deleted.")
            );
        }
        assert_idle(&mut world, &mut room);
    }
}
