//! Outbound mail: messages to remote recipients, from the submission to the delivery at the host of
//! the domain.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use chance::Dice;
use machine::Micros;
use server::InUse;
use simulated::MemoryDisk;

use super::relay::{ADA, MESSAGE, Mood, is_whole, serving, serving_pages};
use super::room::DISK_BYTES;
use super::room::Room;
use super::room::tls_stream::Trust;
use super::settings::forget_connections;
use super::webmail::Browser;

#[test]
fn a_remote_message_arrives_once_and_unchanged() {
    for seed in [700, 701] {
        let (mut room, mut world) = serving(seed, Mood::Takes);
        let long = [MESSAGE, &b"It computes, and computes again.\r\n.\r\n".repeat(56_000)].concat();
        assert!(long.len() > 2_000_000);
        for (number, message) in [MESSAGE, &long].into_iter().enumerate() {
            world.submit(&mut room, &["bob@far.test"], message);
            world.until(&mut room, "the message has arrived", |world, _| {
                world.peer.taken.len() > number
            });
            let taken = world.peer.taken[number].clone();
            assert_eq!(
                (taken.from.as_str(), &taken.to[..]),
                ("ada@barepost.test", &["bob@far.test".to_string()][..])
            );
            assert!(is_whole(&taken.content, message), "{}", taken.content.len());
        }
        world.pass(&mut room, 20_000);
        assert_eq!(world.peer.taken.len(), 2);
        assert_eq!(world.inbox(&mut room, "ada").len(), 0);
        room.until_nothing_is_in_use();
    }
}

#[test]
fn local_and_remote_recipients_get_one_copy_each() {
    let (mut room, mut world) = serving(702, Mood::Takes);
    let many: Vec<String> = (0..20).map(|number| format!("friend{number}@far.test")).collect();
    let all: Vec<&str> = many
        .iter()
        .map(String::as_str)
        .chain(["grace@barepost.test", "\"ada\"@barepost.test"])
        .collect();
    world.submit(&mut room, &all, MESSAGE);
    world.until(&mut room, "all recipients have the message", |world, _| {
        world.peer.taken.iter().map(|taken| taken.to.len()).sum::<usize>() >= many.len()
    });
    world.pass(&mut room, 10_000);
    let mut reached: Vec<String> =
        world.peer.taken.iter().flat_map(|taken| taken.to.clone()).collect();
    let mut wanted = many.clone();
    reached.sort();
    wanted.sort();
    assert_eq!(reached, wanted);
    assert!(world.peer.taken.iter().all(|taken| is_whole(&taken.content, MESSAGE)));
    for user in ["grace", "ada"] {
        let inbox = world.inbox(&mut room, user);
        assert_eq!(inbox.len(), 1, "{inbox:?}");
        assert!(
            inbox[0].starts_with("Return-Path: <ada@barepost.test>\r\nReceived: from client.test"),
            "{}",
            inbox[0]
        );
        assert!(inbox[0].ends_with(".end\r\n") && !inbox[0].contains("friend"), "{}", inbox[0]);
    }
    room.until_nothing_is_in_use();
}

/// RFC 6409 section 4.2 allows only fully qualified domains.
#[test]
fn an_unqualified_recipient_domain_is_rejected() {
    let (mut room, mut world) = serving(725, Mood::Takes);
    let (mut talk, _) = world.offered(&mut room, 587);
    for command in [ADA, "MAIL FROM:<ada@barepost.test>"] {
        world.say(&mut room, &mut talk, command);
    }
    let refused = "554 5.1.2 Domain name is not fully qualified";
    for (domain, reply) in [("far", refused), ("LOCALHOST", refused), ("far.test", "250 ")] {
        let answer = world.say(&mut room, &mut talk, &format!("RCPT TO:<bob@{domain}>"));
        assert!(answer.starts_with(reply), "{domain}: {answer}");
    }
    // A client that has not logged in gets the same reply as for any remote address.
    let (mut external, _) = world.offered(&mut room, 25);
    world.say(&mut room, &mut external, "MAIL FROM:<ada@far.test>");
    assert_eq!(
        world.say(&mut room, &mut external, "RCPT TO:<bob@far>"),
        "550 5.7.1 Relaying denied"
    );
}

#[test]
fn a_deferred_message_is_retried_until_it_is_taken() {
    let (mut room, mut world) = serving(703, Mood::RefusesForNow);
    world.submit(&mut room, &["bob@far.test"], MESSAGE);
    world.pass(&mut room, 6 * 3600);
    let tried = world.peer.rcpt_count;
    assert!((4..60).contains(&tried), "it was tried {tried} times in six hours");
    world.peer.mood = Mood::Takes;
    world.pass(&mut room, 5 * 3600);
    assert_eq!(world.peer.taken.len(), 1);
    world.pass(&mut room, 20 * 3600);
    assert_eq!((world.peer.taken.len(), world.peer.rcpt_count), (1, tried + 1));
}

#[test]
fn each_failed_recipient_is_reported_once() {
    let (mut room, mut world) = serving(704, Mood::RefusesBob);
    let all = ["bob@far.test", "carol@far.test", "dave@null.test", "eve@nowhere.test"];
    world.submit(&mut room, &all, MESSAGE);
    world.pass(&mut room, 10_000);
    assert_eq!(
        world.peer.taken.iter().flat_map(|taken| taken.to.clone()).collect::<Vec<_>>(),
        ["carol@far.test"]
    );
    let inbox = world.inbox(&mut room, "ada");
    let [report] = &inbox[..] else { panic!("{inbox:?}") };
    assert!(
        report.starts_with("Return-Path: <>\r\n") && report.contains("Subject: Away"),
        "{report}"
    );
    for address in ["bob@far.test", "dave@null.test", "eve@nowhere.test"] {
        let of = report.split("\r\n\r\n").filter(|fields| {
            fields.contains(&format!("Final-Recipient: rfc822; {address}\r\nAction: failed\r\n"))
        });
        let [fields] = of.collect::<Vec<_>>()[..] else { panic!("{report}") };
        let is_said_there = fields.contains("Remote-MTA: dns; mx.far.test\r\n");
        assert_eq!(is_said_there, address == "bob@far.test", "{report}");
        assert_eq!(is_said_there, fields.contains("Remote-MTA"), "{report}");
    }
    world.pass(&mut room, 90_000);
    assert_eq!(world.inbox(&mut room, "ada").len(), 1);
    let talk = &mut room.connect(587);
    world.reply(&mut room, talk);
    for command in
        ["EHLO client.test", ADA, "MAIL FROM:<>", "RCPT TO:<bob@far.test>", "DATA", "Gone.\r\n."]
    {
        world.say(&mut room, talk, command);
    }
    world.pass(&mut room, 10_000);
    assert_eq!((world.inbox(&mut room, "ada").len(), world.peer.rcpt_count), (1, 3));
    room.close(talk);
}

/// A host that is silent, closes connections, or gives no reply causes neither loss nor duplicates.
#[test]
fn a_recovered_host_gets_the_message_once() {
    for (seed, mood) in [(705, Mood::Silent), (706, Mood::Cuts), (707, Mood::SwallowsAnswer)] {
        let (mut room, mut world) = serving(seed, mood);
        let message = [MESSAGE, &b"Line.\r\n".repeat(10_000)].concat();
        world.submit(&mut room, &["bob@far.test"], &message);
        world.pass(&mut room, 1800);
        assert_eq!(world.peer.taken.len(), 0);
        world.peer.mood = Mood::Takes;
        world.pass(&mut room, 6 * 3600);
        assert_eq!(world.peer.taken.len(), 1, "{mood:?}");
        assert!(is_whole(&world.peer.taken[0].content, &message));
        assert_eq!(world.inbox(&mut room, "ada").len(), 0);
        room.until_nothing_is_in_use();
    }
}

/// The notice names all recipients that wait. The power fails at each step of the notice, and
/// after that the time until the next notice begins anew.
#[test]
fn a_delay_is_reported_once_after_four_hours() {
    let is_delay = |text: &&String| text.contains("Action: delayed");
    let mut steps = 0;
    loop {
        let (mut room, mut world) = serving(714, Mood::RefusesForNow);
        world.submit(
            &mut room,
            &["bob@far.test", "dave@silent.test", "eve@nowhere.test", "carol@far.test"],
            MESSAGE,
        );
        let start = room.machine.now;
        world.pass(&mut room, 4 * 3600 - 60);
        assert_eq!(world.inbox(&mut room, "ada").iter().filter(is_delay).count(), 0);
        world.step(&mut room, steps);
        let is_over = room.machine.now.since(start) > Micros::from_secs(9 * 3600);
        let (mut room, mut world) = world.power_cut(room, 5000 + steps);
        world.pass(&mut room, 10 * 3600);
        let inbox = world.inbox(&mut room, "ada");
        let notices: Vec<&String> = inbox.iter().filter(is_delay).collect();
        let [notice] = &notices[..] else { panic!("after {steps} steps: {notices:?}") };
        for name in ["bob@far.test", "carol@far.test", "dave@silent.test"] {
            let field = format!("Final-Recipient: rfc822; {name}\r\nAction: delayed\r\n");
            assert_eq!(notice.matches(&field).count(), 1, "{notice}");
        }
        assert_eq!(notice.matches("Final-Recipient").count(), 3);
        assert_eq!(notice.matches("Will-Retry-Until: ").count(), 3, "{notice}");
        if is_over {
            break;
        }
        steps += 1 + steps / 40;
    }
}

#[test]
fn a_message_is_returned_after_five_days() {
    let (mut room, mut world) = serving(708, Mood::RefusesForNow);
    world.submit(&mut room, &["bob@far.test"], MESSAGE);
    world.pass(&mut room, 4 * 86_400);
    let is_final = |text: &String| text.contains("Action: failed");
    assert_eq!(world.inbox(&mut room, "ada").iter().filter(|text| is_final(text)).count(), 0);
    world.pass(&mut room, 2 * 86_400);
    assert_eq!(world.inbox(&mut room, "ada").iter().filter(|text| is_final(text)).count(), 1);
    let tried = world.peer.rcpt_count;
    world.pass(&mut room, 86_400);
    assert_eq!((world.peer.rcpt_count, world.peer.taken.len()), (tried, 0));
}

/// Runs the same scenario repeatedly, with the power cut one step later each time. Each local
/// recipient gets the message once, and the sender gets each report once. A remote recipient gets
/// the message twice only if the power fails after the host's reply, before the server has recorded
/// the delivery.
#[test]
fn an_outbound_message_survives_a_power_cut_at_any_step() {
    let (mut once, mut twice) = (0, 0);
    for seed in [709, 710] {
        let mut steps = 0;
        loop {
            let (mut room, mut world) = serving(seed, Mood::RefusesBob);
            // The message is acknowledged before the power cut, so it is in the store.
            world.submit(
                &mut room,
                &["bob@far.test", "carol@far.test", "grace@barepost.test"],
                MESSAGE,
            );
            let is_over = world.step(&mut room, steps).as_secs() > 50;
            let (mut room, mut world) = world.power_cut(room, 3000 + steps);
            world.pass(&mut room, 5 * 3600);
            let taken =
                world.peer.taken.iter().filter(|taken| taken.to == ["carol@far.test"]).count();
            assert!((1..=2).contains(&taken), "{taken} after {steps} steps in {seed}");
            (once, twice) = (once + usize::from(taken == 1), twice + usize::from(taken == 2));
            let counts =
                (world.inbox(&mut room, "grace").len(), world.inbox(&mut room, "ada").len());
            assert_eq!(counts, (1, 1), "after {steps} steps in {seed}");
            if is_over {
                break;
            }
            steps += 1 + steps / 40;
        }
    }
    assert!(once > 8 * twice && once > 60, "{once} once, {twice} twice");
}

#[test]
fn a_message_interrupted_by_a_stop_is_sent_after_the_restart() {
    for (seed, mood) in [(711, Mood::Silent), (712, Mood::SwallowsAnswer), (713, Mood::Takes)] {
        let (mut room, mut world) = serving(seed, mood);
        world.submit(
            &mut room,
            &["bob@far.test"],
            &[MESSAGE, &b"Line.\r\n".repeat(20_000)].concat(),
        );
        if mood == Mood::Takes {
            world.until(&mut room, "the message has begun", |world, _| {
                world.peer.conversations.iter().any(|talk| talk.is_message)
            });
        } else {
            world.pass(&mut room, 60);
        }
        room.machine.stop = true;
        world.until(&mut room, "the machine has stopped", |_, room| room.ended.is_some());
        let before = world.peer.taken.len();
        world.peer.mood = Mood::Takes;
        let (mut room, mut world) = world.power_cut(room, seed);
        world.pass(&mut room, 7200);
        assert_eq!((before, world.peer.taken.len()), (0, 1));
        assert_eq!(world.inbox(&mut room, "ada").len(), 0);
        room.until_nothing_is_in_use();
    }
}

/// Sends a message by the webmail to one local recipient and two remote ones.
fn compose_remote(ada: &mut Browser, room: &mut Room) -> String {
    let people = "Bob <bob@far.test>, grace@barepost.test";
    compose(ada, room, &[("to", people), ("bcc", "carol@far.test")])
}

fn compose(ada: &mut Browser, room: &mut Room, recipients: &[(&str, &str)]) -> String {
    let token = ada.get(room, "/mail/compose").token();
    let mut form = vec![
        ("token", token.as_str()),
        ("subject", "Away"),
        ("text", "It computes."),
        ("do", "send"),
    ];
    form.extend(recipients);
    ada.post(room, "/mail/compose", &form).text()
}

#[test]
fn a_webmail_message_is_in_the_outbox_until_it_is_delivered() {
    let trust = Trust::new("mail.barepost.test");
    for (seed, hold) in [(720, ""), (721, "0")] {
        let (mut room, mut world) =
            serving_pages(seed, MemoryDisk::blank(DISK_BYTES), Mood::RefusesForNow, &trust);
        let mut ada = Browser::new(&trust);
        ada.log_in(&mut room, "ada", "lovelace");
        if !hold.is_empty() {
            ada.hold(&mut room, hold);
        }
        let page = compose_remote(&mut ada, &mut room);
        assert!(
            page.contains(if hold.is_empty() { "Sending…" } else { "Message sent." }),
            "{page}"
        );
        assert!(!page.contains(">Outbox<"), "{page}");
        world.pass(&mut room, 15);
        let page = ada.get(&mut room, "/mail/box/3").text();
        assert!(
            page.contains(">Outbox<") && page.contains("<span class=\"subject\">Away</span>"),
            "{page}"
        );
        let page = ada.get(&mut room, "/mail/box/7").text();
        assert!(
            page.contains("<span class=\"subject\">Away</span>")
                && page.contains("Waiting to be sent"),
            "{page}"
        );
        let page = ada.get(&mut room, "/mail/compose?draft=7.1");
        assert_eq!(page.status, 303, "a message in the outbox cannot be edited: {}", page.text());
        assert!(ada.get(&mut room, page.field("Location")).text().contains("Sending…"));
        // Messages in the outbox cannot be changed, and no message can be moved there.
        let token = ada.get(&mut room, "/mail/compose").token();
        for (key, what, to) in
            [("7.1", "erase", ""), ("7.1", "trash", ""), ("7.1", "read", ""), ("3.1", "move", "7")]
        {
            let form = [
                ("token", token.as_str()),
                ("here", "/mail/box/7"),
                ("key", key),
                ("to", to),
                ("do", what),
            ];
            ada.send(&mut room, "/mail/act", &form);
        }
        assert_eq!(world.inbox(&mut room, "grace").len(), 1);
        ada.hang_up(&mut room);
        world.peer.mood = Mood::Takes;
        world.pass(&mut room, 3600);
        let to: Vec<String> = world.peer.taken.iter().flat_map(|taken| taken.to.clone()).collect();
        assert_eq!(to, ["bob@far.test", "carol@far.test"]);
        let [taken] = &world.peer.taken[..] else { panic!("it is one message") };
        let content = String::from_utf8(taken.content.clone()).expect("the bytes are UTF-8");
        assert!(
            content.contains("To: Bob <bob@far.test>") && !content.contains("carol"),
            "{content}"
        );
        assert!(!content.contains("Envelope") && !content.contains("Return-Path"), "{content}");
        assert_eq!(taken.from, "ada@barepost.test");
        let page = ada.get(&mut room, "/mail/box/3").text();
        assert!(
            !page.contains(">Outbox<") && page.contains("<span class=\"subject\">Away</span>"),
            "{page}"
        );
        assert_eq!(world.inbox(&mut room, "ada").len(), 0);
        ada.hang_up(&mut room);
        world.until(&mut room, "nothing is in use", |_, room| {
            room.engines.in_use() == InUse::default()
        });
    }
}

#[test]
fn the_sender_cancels_a_message_in_the_outbox() {
    let trust = Trust::new("mail.barepost.test");
    let (mut room, mut world) =
        serving_pages(723, MemoryDisk::blank(DISK_BYTES), Mood::RefusesForNow, &trust);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    ada.hold(&mut room, "0");
    compose_remote(&mut ada, &mut room);
    world.pass(&mut room, 15);
    let page = ada.get(&mut room, "/mail/box/7").text();
    assert!(page.contains("Cancel sending") && page.contains("Bob, grace@barepost.test"), "{page}");
    assert!(!page.contains("value=\"archive\""), "{page}");
    let page = ada.get(&mut room, "/mail/box/7/1").text();
    assert!(page.contains("Cancel sending") && !page.contains("value=\"archive\""), "{page}");
    let token = ada.get(&mut room, "/mail/compose").token();
    let cancel = |ada: &mut Browser, room: &mut Room, keys: &[&str]| {
        let mut form = vec![("token", token.as_str()), ("here", "/mail/box/7"), ("do", "cancel")];
        form.extend(keys.iter().map(|key| ("key", *key)));
        ada.post(room, "/mail/act", &form).text()
    };
    for keys in [&[][..], &["3.1"], &["7.1", "7.1"]] {
        let page = cancel(&mut ada, &mut room, keys);
        assert!(page.contains("Select one message"), "{page}");
    }
    let page = cancel(&mut ada, &mut room, &["7.9"]);
    assert!(page.contains("Nothing was changed"), "{page}");
    let page = cancel(&mut ada, &mut room, &["7.1"]);
    assert!(page.contains("Sending canceled.") && page.contains("No messages."), "{page}");
    ada.hang_up(&mut room);
    world.peer.mood = Mood::Takes;
    world.pass(&mut room, 7200);
    assert_eq!(world.peer.taken.len(), 0);
    assert_eq!(world.inbox(&mut room, "ada").len(), 0, "no report");
    let page = ada.get(&mut room, "/mail/box/3").text();
    assert!(page.contains("<span class=\"subject\">Away</span>"), "{page}");
}

#[test]
fn canceling_stops_all_entries_of_a_message() {
    let trust = Trust::new("mail.barepost.test");
    let (mut room, mut world) =
        serving_pages(726, MemoryDisk::blank(DISK_BYTES), Mood::RefusesForNow, &trust);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    ada.hold(&mut room, "0");
    let many: Vec<String> = (0..20).map(|number| format!("user{number}@far.test")).collect();
    let many = many.join(", ");
    // The last message has the same octets as the second, except for the fields with its time.
    for to in ["bob@far.test", &many, &many] {
        compose(&mut ada, &mut room, &[("to", to)]);
        world.pass(&mut room, 15);
    }
    let rows = |ada: &mut Browser, room: &mut Room| {
        let list = ada.get(room, "/mail/box/7").text();
        list.matches("Waiting to be sent").count()
    };
    assert_eq!(rows(&mut ada, &mut room), 7, "8, 8 and 4 recipients have an entry each");
    let token = ada.get(&mut room, "/mail/compose").token();
    // This is the third entry of the second message.
    let page = ada.get(&mut room, "/mail/box/7/4").text();
    assert!(page.contains("name=\"key\" value=\"7.4\""), "{page}");
    let form = [("token", &*token), ("here", "/mail/box/7"), ("do", "cancel"), ("key", "7.4")];
    let page = ada.post(&mut room, "/mail/act", &form).text();
    assert!(page.contains("Sending canceled."), "{page}");
    assert_eq!(rows(&mut ada, &mut room), 4);
    // Entries of a message without an identifier are no conversation.
    let recipients: Vec<&str> = many.split(", ").collect();
    let nameless = b"From: ada@barepost.test\r\nMessage-ID: \r\nSubject: Away\r\n\r\nHello\r\n";
    ada.hang_up(&mut room);
    world.submit(&mut room, &recipients, nameless);
    world.pass(&mut room, 15);
    assert_eq!(rows(&mut ada, &mut room), 7);
    let cancel = [("token", &*token), ("here", "/mail/box/7"), ("do", "cancel"), ("key", "7.9")];
    let page = ada.post(&mut room, "/mail/act", &cancel).text();
    assert!(page.contains("Sending canceled."), "{page}");
    assert_eq!(rows(&mut ada, &mut room), 4);
    let again = ada.post(&mut room, "/mail/act", &form).text();
    assert!(
        again.contains(
            "Nothing was changed: this message is no longer waiting for these recipients."
        ),
        "{again}"
    );
    ada.hang_up(&mut room);
    world.peer.mood = Mood::Takes;
    world.pass(&mut room, 7200);
    let reached: usize = world.peer.taken.iter().map(|taken| taken.to.len()).sum();
    assert_eq!(reached, 21);
}

#[test]
fn a_bounce_is_in_the_conversation_of_its_message() {
    let trust = Trust::new("mail.barepost.test");
    let (mut room, mut world) =
        serving_pages(724, MemoryDisk::blank(DISK_BYTES), Mood::RefusesBob, &trust);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    ada.hold(&mut room, "0");
    compose_remote(&mut ada, &mut room);
    ada.hang_up(&mut room);
    world.pass(&mut room, 600);
    assert!(!world.inbox(&mut room, "ada").is_empty(), "a report");
    let page = ada.get(&mut room, "/mail/box/1/1").text();
    assert!(
        page.contains("could not be delivered") && page.contains("<p>It computes.</p>"),
        "{page}"
    );
    assert!(page.contains("According to this report, your message "), "{page}");
    assert!(page.contains("was not delivered to the recipients below."), "{page}");
}

#[test]
fn a_webmail_message_leaves_at_any_power_cut() {
    let trust = Trust::new("mail.barepost.test");
    let (mut steps, mut cuts) = (0, 0);
    loop {
        // The host defers at first. So no remote recipient has the message before the power cut,
        // and any second copy is a duplicate.
        let (mut room, mut world) =
            serving_pages(722, MemoryDisk::blank(DISK_BYTES), Mood::RefusesForNow, &trust);
        let mut ada = Browser::new(&trust);
        ada.log_in(&mut room, "ada", "lovelace");
        compose_remote(&mut ada, &mut room);
        world.pass(&mut room, 9);
        let is_over = world.step(&mut room, steps).as_secs() > 40;
        let disk = room.machine.disk.power_cut(&mut Dice::new(steps));
        let (mut room, mut world) = serving_pages(4000 + steps, disk, Mood::Takes, &trust);
        forget_connections(&mut [&mut ada]);
        world.pass(&mut room, 3600);
        assert_eq!(world.peer.taken.len(), 1, "after {steps} steps");
        cuts += 1;
        assert_eq!(world.inbox(&mut room, "grace").len(), 1, "after {steps} steps");
        let page = ada.get(&mut room, "/mail/box/3").text();
        assert!(page.contains("1–1 of 1") && !page.contains(">Outbox<"), "{page}");
        if is_over {
            break;
        }
        steps += 1 + steps / 40;
    }
    assert!(cuts > 40, "{cuts}");
}

/// Each domain has its own outbox entries, independent of the number of domains.
#[test]
fn domains_of_one_message_do_not_wait_for_each_other() {
    let (mut room, mut world) = serving(724, Mood::Takes);
    let unreachable: Vec<String> =
        (0..40).map(|number| format!("eve@{number}.nowhere.test")).collect();
    let friends: Vec<String> = (0..20).map(|number| format!("friend{number}@far.test")).collect();
    let all: Vec<&str> = ["dave@silent.test", "grace@barepost.test"]
        .into_iter()
        .chain(
            unreachable
                .iter()
                .zip(friends.iter().cycle())
                .take(20)
                .flat_map(|(one, other)| [one.as_str(), other]),
        )
        .chain(unreachable.iter().skip(20).map(String::as_str))
        .collect();
    let start = room.machine.now;
    world.submit(&mut room, &all, MESSAGE);
    world.until(&mut room, "all friends have the message", |world, _| {
        world.peer.taken.iter().map(|taken| taken.to.len()).sum::<usize>() >= friends.len()
    });
    // The first of the friends' hosts is down, which takes half a minute. Dave's domain takes no
    // time.
    assert!(
        room.machine.now.since(start) < Micros::from_secs(45),
        "{:?}",
        room.machine.now.since(start)
    );
    assert_eq!(world.peer.taken.len(), 3, "an entry has at most eight recipients");
    world.pass(&mut room, 600);
    assert_eq!((world.inbox(&mut room, "grace").len(), world.peer.taken.len()), (1, 3));
    let inbox = world.inbox(&mut room, "ada");
    let [report] = &inbox[..] else { panic!("{inbox:?}") };
    for address in &unreachable {
        let field = format!("Final-Recipient: rfc822; {address}\r\n");
        assert_eq!(report.matches(&field).count(), 1, "{address}");
    }
    assert_eq!(report.matches("Final-Recipient: ").count(), unreachable.len());
}

/// While one host is silent, other hosts get their mail. The silent host gets no more connections
/// than another host.
#[test]
fn a_silent_host_does_not_delay_others() {
    let (mut room, mut world) = serving(723, Mood::Takes);
    for number in 0..40 {
        world.submit(&mut room, &[&format!("friend{number}@silent.test")], MESSAGE);
    }
    world.pass(&mut room, 5);
    world.submit(&mut room, &["bob@far.test"], MESSAGE);
    let start = room.machine.now;
    world.until(&mut room, "bob has the message", |world, _| !world.peer.taken.is_empty());
    assert!(
        room.machine.now.since(start) < Micros::from_secs(60),
        "{:?}",
        room.machine.now.since(start)
    );
    world.pass(&mut room, 1800);
    assert_eq!(world.peer.taken.len(), 1);
}
