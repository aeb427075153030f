//! A content filter for messages from outside: the effect of its results, and of missing results.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use machine::Micros;
use server::InUse;

use crate::CORES;

use super::dmarc::{INBOX, JUNK, messages_of, newest};
use super::dns::{EXTERNAL, serving_as};
use super::relay_filter::{Mood, World, filtering, filtering_at};
use super::room::{Room, Talk};

const MESSAGE: &[u8] = b"From: me@pass.test\r\nSubject: looms\r\n\r\nHello.\r\n.\r\n";
const AWAY: &str = "filter: 10.0.0.13:11333 does not answer";

/// The number of console lines that contain `words`.
fn lines_with(room: &Room, words: &str) -> usize {
    room.machine.console.iter().filter(|line| line.contains(words)).count()
}

#[test]
fn the_filter_decides_accept_junk_defer_or_reject() {
    let symbols =
        ",\"symbols\":{\"A\":{\"score\":2.5},\"B\":{\"score\":6.0},\"C\":{\"score\":-1.0}}";
    let words = ",\"messages\":{\"smtp_message\":\"Gtube\\r\\npattern\"}";
    for seed in [801, 802] {
        let (mut room, mut world) = filtering(seed, "");
        for (action, more, found) in [
            ("no action", symbols, Ok(None)),
            ("add header", symbols, Ok(Some("spam score 8.50 of 15.00: B, A"))),
            ("rewrite subject", "", Ok(Some("spam score 8.50 of 15.00"))),
            ("soft reject", words, Err("451 4.7.1 Gtubepattern")),
            (
                "greylist",
                "",
                Err("451 4.7.1 Message deferred by the content filter, try again later"),
            ),
            ("reject", words, Err("550 5.7.1 Gtubepattern")),
            ("reject", "", Err("550 5.7.1 Message rejected by the content filter")),
        ] {
            world.filter.mood = Mood::Says(action, more);
            let before = messages_of(&room, "ada").len();
            let (reply, _) = world.send(&mut room, MESSAGE);
            let after = messages_of(&room, "ada").len();
            match found {
                Err(refusal) => assert_eq!((reply.as_str(), after), (refusal, before), "{action}"),
                Ok(reason) => {
                    assert!(
                        reply.starts_with("250 2.0.0 ") && after == before + 1,
                        "{action}: {reply}"
                    );
                    let mailbox = if reason.is_some() { JUNK } else { INBOX };
                    let messages = messages_of(&room, "ada");
                    let (_, message) = messages
                        .iter()
                        .rfind(|(one, _)| *one == mailbox)
                        .expect("the mailbox has a message");
                    let message = String::from_utf8(message.clone()).expect("the bytes are UTF-8");
                    assert!(
                        message
                            .starts_with("Return-Path: <me@pass.test>\r\nAuthentication-Results: "),
                        "{message}"
                    );
                    let field = reason.map(|reason| format!("\r\nX-Barepost-Reason: {reason}"));
                    assert!(field.is_none_or(|field| message.contains(&field)), "{message}");
                    assert!(message.ends_with("\r\n\r\nHello.\r\n.\r\n"), "{message}");
                }
            }
        }
        assert_eq!(world.filter.asked.len(), 7);
        assert_eq!(lines_with(&room, "filter: "), 0);
        room.until_nothing_is_in_use();
    }
}

#[test]
fn the_filter_gets_the_envelope_and_the_original_message() {
    let (mut room, mut world) = filtering_at("filter.test", 803, "password = \"secret\"\n");
    let line = "A line, and the next, and so on.\r\n";
    let large = [MESSAGE, line.repeat(15_000).as_bytes()].concat();
    for message in [MESSAGE, &large] {
        let (reply, _) = world.send(&mut room, message);
        assert!(reply.starts_with("250 2.0.0 "), "{reply}");
        let asked = world.filter.asked.pop().expect("the filter got a request");
        assert!(asked.message == message);
        let identifier = reply.rsplit(' ').next().unwrap_or_default();
        let head = format!(
            "POST /checkv2 HTTP/1.0\r\nHost: filter.test:11333\r\nContent-Length: {}\r\nIP: 203.0.113.7\r\n\
            Helo: far.test\r\nFrom: <me@pass.test>\r\nRcpt: <ada@barepost.test>\r\nHostname: mail.barepost.test\r\n\
            Queue-Id: {identifier}\r\nPassword: secret\r\n\r\n",
            message.len()
        );
        assert_eq!(asked.head, head);
    }
    room.until_nothing_is_in_use();
}

#[test]
fn an_unresponsive_filter_costs_one_timeout() {
    let reason = "\r\nX-Barepost-Reason: the content filter was not available";
    let meanwhile = ["accepted without a check", "moved to Junk", "deferred"];
    for (number, (policy, mood)) in ["", "junk", "defer"]
        .into_iter()
        .flat_map(|policy| [(policy, Mood::Silent), (policy, Mood::Drips), (policy, Mood::Down)])
        .enumerate()
    {
        let more =
            if policy.is_empty() { String::new() } else { format!("when_away = \"{policy}\"\n") };
        let (mut room, mut world) = filtering(810 + number as u64, &more);
        world.filter.mood = mood.clone();
        let waits = |world: &mut World, room: &mut Room| {
            let (reply, took) = world.send(room, MESSAGE);
            assert!(took < Micros::from_millis(5_500), "{mood:?}: {took:?}");
            if policy == "defer" {
                assert_eq!(reply, "451 4.7.1 The content filter is not available, try again later");
                assert_eq!(messages_of(room, "ada"), []);
            } else {
                assert!(reply.starts_with("250 2.0.0 "), "{reply}");
                let (mailbox, above, _) = newest(room);
                let is_junk = policy == "junk";
                assert_eq!(
                    (mailbox, above.contains(reason)),
                    (if is_junk { JUNK } else { INBOX }, is_junk),
                    "{above}"
                );
            }
            took > Micros::from_secs(4)
        };
        let waited = (0..4).filter(|_| waits(&mut world, &mut room)).count();
        let is_waited_for = mood != Mood::Down;
        assert!(
            if is_waited_for { (1..=usize::from(CORES)).contains(&waited) } else { waited == 0 },
            "{mood:?}: {waited}"
        );
        let outages = lines_with(&room, meanwhile[number / 3]);
        assert!((1..=usize::from(CORES)).contains(&outages), "{:?}", room.machine.console);
        assert_eq!(lines_with(&room, AWAY), outages, "{:?}", room.machine.console);
        // A minute later the server asks the filter again, and does not repeat the console line.
        world.pass(&mut room, Micros::from_secs(61));
        let waited = (0..2).filter(|_| waits(&mut world, &mut room)).count();
        assert!(!is_waited_for || waited > 0, "{mood:?}");
        assert!(lines_with(&room, AWAY) <= usize::from(CORES));
        world.filter.mood = Mood::Says("reject", "");
        world.pass(&mut room, Micros::from_secs(61));
        let (reply, _) = world.send(&mut room, MESSAGE);
        assert_eq!(reply, "550 5.7.1 Message rejected by the content filter");
        assert!(CORES > 1 || lines_with(&room, "filter: 10.0.0.13:11333 answers again") == 1);
        room.until_nothing_is_in_use();
    }
}

#[test]
fn an_invalid_filter_response_counts_as_an_outage() {
    let moods = [
        Mood::Babbles("{\"action\":".to_string()),
        Mood::Babbles("{\"action\":\"eat\",\"score\":1,\"required_score\":2}".to_string()),
        Mood::Babbles(format!(
            "{{\"action\":\"reject\",\"score\":1,\"required_score\":2,\"x\":\"{}\"}}",
            "x".repeat(300_000)
        )),
        Mood::CutsOff,
        Mood::Resets,
    ];
    for (seed, mood) in moods.into_iter().enumerate() {
        let (mut room, mut world) = filtering(820 + seed as u64, "when_away = \"junk\"\n");
        world.filter.mood = mood;
        let message = [MESSAGE, &b"A line.\r\n".repeat(20_000)].concat();
        let (reply, took) = world.send(&mut room, &message);
        assert!(
            reply.starts_with("250 2.0.0 ") && took < Micros::from_secs(3),
            "{seed}: {reply} {took:?}"
        );
        assert_eq!((newest(&room).0, lines_with(&room, AWAY)), (JUNK, 1));
        world.pass(&mut room, Micros::from_secs(31));
        room.until_nothing_is_in_use();
    }
}

#[test]
fn local_exempt_and_large_messages_skip_the_filter() {
    let refuse = |world: &mut World| world.filter.mood = Mood::Says("reject", "");
    let taken = |world: &mut World, room: &mut Room, talk: &mut Talk| {
        room.send(talk, b".\r\n");
        let reply = world.line(room, talk);
        assert!(reply.starts_with("250 2.0.0 "), "{reply}");
    };
    let (mut room, mut world) = filtering(830, "");
    refuse(&mut world);
    let mut talk = world.begin(&mut room, 0, MESSAGE);
    taken(&mut world, &mut room, &mut talk);
    room.part(talk);
    let large = [MESSAGE, &b"A line of some length.\r\n".repeat(22_000)].concat();
    let mut talk = world.begin(&mut room, EXTERNAL, &large);
    taken(&mut world, &mut room, &mut talk);
    room.part(talk);
    assert_eq!(world.filter.asked.len(), 0);
    room.until_nothing_is_in_use();
    let exempt = "[filter]\nurl = \"http://10.0.0.13:11333\"\n";
    let (mut room, mut names) = serving_as(
        831,
        super::dns::Mood::Answers,
        &format!("unthrottled_from = [\"203.0.113.0/24\"]\n{exempt}"),
    );
    let mut talk = names.begin(&mut room, "me@pass.test");
    assert!(names.smtp(&mut room, &mut talk, "DATA").starts_with("354 "));
    assert!(names.smtp(&mut room, &mut talk, "Letter\r\n.").starts_with("250 2.0.0 "));
}

#[test]
fn concurrent_filter_requests_are_limited() {
    let (mut room, mut world) = filtering(
        840,
        "timeout = \"30s\"\nwhen_away = \"defer\"\n[abuse]\ngreeting_delay = \"0s\"\n",
    );
    world.filter.mood = Mood::Silent;
    let mut talks: Vec<Talk> =
        (0..20 * usize::from(CORES)).map(|_| world.begin(&mut room, EXTERNAL, MESSAGE)).collect();
    talks.iter().for_each(|talk| room.send(talk, b".\r\n"));
    world.pass(&mut room, Micros::from_secs(5));
    let in_use = room.engines.in_use();
    assert_eq!(in_use.filter_queries, talks.len());
    assert!(
        in_use.kept_for_filter > 0 && world.filter.connections_max <= 16 * usize::from(CORES),
        "{}",
        world.filter.connections_max
    );
    // A client that leaves makes space for another.
    room.abort(&talks.remove(0));
    world.filter.mood = Mood::Says("reject", "");
    for talk in &mut talks {
        assert_eq!(world.line(&mut room, talk), "550 5.7.1 Message rejected by the content filter");
    }
    talks.into_iter().for_each(|talk| room.part(talk));
    room.until_nothing_is_in_use();
    if CORES > 1 {
        // With several cores, large messages that fill the memory of all cores would take longer
        // than the clients' timeouts.
        return;
    }
    // The memory for all messages is limited. A message that finds no memory is deferred.
    let long = [MESSAGE, &b"A line of some length.\r\n".repeat(20_000)].concat();
    let mut talks: Vec<Talk> = (0..24).map(|_| world.begin(&mut room, EXTERNAL, &long)).collect();
    world.pass(&mut room, Micros::from_secs(5));
    let kept = room.engines.in_use().kept_for_filter;
    assert!(kept > 1 << 20 && kept <= 8 << 20, "{kept}");
    let mut replies = Vec::new();
    for talk in &mut talks {
        room.send(talk, b".\r\n");
        replies.push(world.line(&mut room, talk));
    }
    let unwanted = replies.iter().filter(|reply| reply.starts_with("550 5.7.1 ")).count();
    let later = replies.iter().filter(|reply| reply.starts_with("451 4.7.1 ")).count();
    assert!(unwanted > 0 && later > 0 && unwanted + later == replies.len(), "{replies:?}");
    talks.into_iter().for_each(|talk| room.part(talk));
    room.until_nothing_is_in_use();
}

#[test]
fn a_client_that_leaves_during_filtering_has_sent_nothing() {
    let (mut room, mut world) = filtering(850, "timeout = \"60s\"\n");
    world.filter.mood = Mood::Silent;
    let mut talk = world.begin(&mut room, EXTERNAL, MESSAGE);
    room.send(&talk, b".\r\n");
    world.pass(&mut room, Micros::from_secs(2));
    assert_eq!(room.engines.in_use().filter_queries, 1);
    room.abort(&talk);
    room.until_nothing_is_in_use();
    assert_eq!((messages_of(&room, "ada"), lines_with(&room, "filter: ")), (Vec::new(), 0));
    talk = world.begin(&mut room, EXTERNAL, MESSAGE);
    room.send(&talk, b".\r\n");
    world.pass(&mut room, Micros::from_secs(2));
    let before = room.machine.now;
    room.machine.stop = true;
    assert!(world.line(&mut room, &mut talk).starts_with("250 2.0.0 "));
    assert!(room.machine.now.since(before).as_secs() < 2);
    world.until(&mut room, "the machine has stopped", |_, room| room.ended.is_some());
    assert_eq!((newest(&room).0, lines_with(&room, "filter: ")), (INBOX, 0));
    assert_eq!(InUse { connections: 0, ..room.engines.in_use() }, InUse::default());
}

#[test]
fn a_power_cut_drops_messages_that_are_being_filtered() {
    for (seed, ms) in [(860, 0), (861, 20), (862, 3_000)] {
        let (mut room, mut world) = filtering(seed, "timeout = \"60s\"\n");
        let (reply, _) = world.send(&mut room, MESSAGE);
        assert!(reply.starts_with("250 2.0.0 "));
        world.filter.mood = Mood::Silent;
        let talk = world.begin(&mut room, EXTERNAL, MESSAGE);
        room.send(&talk, b".\r\n");
        world.until(&mut room, "the filter checks the message", |_, room| {
            room.engines.in_use().filter_queries > 0
        });
        world.pass(&mut room, Micros::from_millis(ms));
        let room = room.power_cut(seed);
        assert_eq!(messages_of(&room, "ada").len(), 1);
    }
}
