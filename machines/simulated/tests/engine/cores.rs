//! Tests that the cores act as one machine: connections on all cores have the same mail and locks,
//! and a stop of the machine ends all of them.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use machine::Micros;
use server::{Ending, Sizes};
use simulated::room::messages_on;
use simulated::{MemoryDisk, Mood};

use super::room::pages::site;
use super::room::{CONFIGURATION, DISK_BYTES, Room, Talk, stuffed, usual_sizes};
use super::signing::sizes_for_messages;
use super::webmail::between;
use crate::CORES;

/// The number of concurrent connections. With so many, every core gets some. The seed decides how
/// the card distributes connections over the cores.
const CROWD: usize = if CORES > 4 { 64 } else { 24 };

/// A page that takes many frames.
const PAGE_BYTES: usize = 400_000;

/// A message with more pages than a core can buffer for one message.
fn long_message(number: usize) -> Vec<u8> {
    let line = format!("Line of letter {number}, which is one of many\r\n");
    [format!("Subject: {number}\r\n\r\n").into_bytes(), line.repeat(1500).into_bytes()].concat()
}

/// Open connections, each from a new host.
fn crowd(room: &mut Room, port: u16) -> Vec<Talk> {
    let mut talks = Vec::new();
    for _ in 0..CROWD {
        let host = room.add_host();
        let mut talk = room.connect_from(host, port);
        room.line(&mut talk);
        talks.push(talk);
    }
    talks
}

fn sessions_on_each(room: &Room) -> Vec<usize> {
    room.engines.in_use_on_each().iter().map(|in_use| in_use.sessions).collect()
}

fn assert_all_cores_have_sessions(room: &Room) {
    let sessions = sessions_on_each(room);
    assert_eq!(sessions.len(), usize::from(CORES));
    assert!(sessions.iter().all(|sessions| *sessions > 0), "{sessions:?}");
}

#[test]
fn every_core_accepts_clients_once_the_machine_serves() {
    for seed in 40..60 {
        let mut room = Room::opening(seed, MemoryDisk::blank(32 << 20), usual_sizes());
        let hosts: Vec<usize> = (0..8).map(|_| room.add_host()).collect();
        let mut talks = Vec::new();
        // The last of these connections are opened just after the console message.
        while !room.console_says("serving") {
            talks = hosts.iter().map(|host| room.connect_from(*host, 25)).collect();
            room.step();
        }
        for talk in &mut talks {
            assert!(room.smtp_reply(talk).starts_with("220 "));
        }
    }
}

/// The last core gets no turns after 0, 1, 2 and more steps, and gets turns again later.
#[test]
fn machine_serves_only_after_its_last_core_listens() {
    if CORES == 1 {
        return;
    }
    for seed in [40, 41] {
        for steps in 0.. {
            let mut room = Room::opening(seed, MemoryDisk::blank(32 << 20), usual_sizes());
            let hosts: Vec<usize> = (0..8).map(|_| room.add_host()).collect();
            (0..steps).for_each(|_| room.step());
            let is_over = room.console_says("serving");
            room.engines.hold(Some(CORES - 1));
            (0..50).for_each(|_| room.step());
            if room.console_says("serving") {
                let talks: Vec<Talk> =
                    hosts.iter().map(|host| room.connect_from(*host, 25)).collect();
                (0..50).for_each(|_| room.step());
                room.engines.hold(None);
                for mut talk in talks {
                    assert!(room.smtp_reply(&mut talk).starts_with("220 "), "{steps}");
                }
            }
            if is_over {
                break;
            }
        }
    }
}

#[test]
fn messages_received_on_any_core_are_readable_on_every_core() {
    for seed in [20, 21] {
        let mut room = Room::new(seed);
        let mut senders = crowd(&mut room, 25);
        assert_all_cores_have_sessions(&room);
        for (number, talk) in senders.iter_mut().enumerate() {
            room.smtp(talk, "EHLO client.test");
            let message = [stuffed(&long_message(number)), b".\r\n".to_vec()].concat();
            for command in [
                "MAIL FROM:<>",
                "RCPT TO:<ada@barepost.test>",
                "RCPT TO:<grace@barepost.test>",
                "DATA",
            ] {
                room.smtp(talk, command);
            }
            room.send(talk, &message);
        }
        for talk in &mut senders {
            assert!(room.smtp_reply(talk).starts_with("250 2."));
            room.close(talk);
        }
        for account in ["ada", "grace"] {
            let mut numbers = Vec::new();
            // Each reader has a new connection, on any core. All cores must have the same maildrop.
            for number in 1..=CROWD {
                let mut talk = room.log_in(account);
                assert!(room.pop3(&mut talk, "STAT").starts_with(&format!("+OK {CROWD} ")));
                let message = room.retrieve_any(&mut talk, number);
                let text = String::from_utf8_lossy(&message).to_string();
                let below = text.find("Subject: ").expect("a message");
                let subject = text[below..].lines().next().unwrap_or_default();
                let sent: usize =
                    subject.trim_start_matches("Subject: ").parse().expect("a number");
                assert!(
                    text.as_bytes()[below..] == long_message(sent),
                    "message {sent} differs from the sent one"
                );
                numbers.push(sent);
                room.part(talk);
            }
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..CROWD), "each message once");
        }
        room.until_nothing_is_in_use();
    }
}

#[test]
fn one_place_per_core_suffices_for_a_message_to_all_cores() {
    let names: Vec<String> = (0..16).map(|number| format!("user{number}@barepost.test")).collect();
    let hash = between(CONFIGURATION, "password_hash = \"", "\"")
        .expect("the configuration has a password hash");
    let (machine, _) = CONFIGURATION.split_once("[[user]]").expect("the configuration has a user");
    let users = names
        .iter()
        .map(|name| format!("[[user]]\naddress = \"{name}\"\npassword_hash = \"{hash}\"\n"));
    let configuration: String = [machine.to_string()].into_iter().chain(users).collect();
    let sizes = Sizes { transactions: 1, ..usual_sizes() };
    let mut room = Room::configured(22, MemoryDisk::blank(32 << 20), sizes, &configuration);
    room.until("the engine serves", |room| room.console_says("serving"));
    for message in [b"Subject: short\r\n\r\nHello.\r\n".to_vec(), long_message(1)] {
        let mut talk = room.connect(25);
        room.smtp_reply(&mut talk);
        room.smtp(&mut talk, "EHLO client.test");
        room.smtp(&mut talk, "MAIL FROM:<>");
        for name in &names {
            assert!(room.smtp(&mut talk, &format!("RCPT TO:<{name}>")).starts_with("250 "));
        }
        let reply = room.smtp(&mut talk, "DATA");
        assert!(reply.starts_with("354 "), "{reply}");
        room.send(&talk, &[stuffed(&message), b".\r\n".to_vec()].concat());
        let reply = room.smtp_reply(&mut talk);
        assert!(reply.starts_with("250 "), "{reply}");
        room.part(talk);
    }
}

/// The maximum number of messages that a core receives at a time in the tests of that limit. A
/// place: the permission for one of these messages.
const PLACES: usize = 4;

/// A room with few places for concurrent messages, and the cores that own the accounts of Ada and
/// Grace. The two are different cores if the machine has several.
fn room_with_few_places(first_seed: u64) -> (Room, [usize; 2]) {
    for seed in first_seed..first_seed + 20 {
        let sizes = Sizes { transactions: PLACES, ..usual_sizes() };
        let mut room = Room::with_sizes(seed, MemoryDisk::blank(32 << 20), sizes);
        let owners = ["ada", "grace"].map(|name| owner_of(&mut room, name));
        if owners[0] != owners[1] || CORES == 1 {
            return (room, owners);
        }
    }
    unreachable!("one core owns both accounts in each of many rooms");
}

/// Opens `count` connections on one core.
fn talks_on(room: &mut Room, core: usize, count: usize) -> Vec<Talk> {
    let (mut talks, mut others) = (Vec::new(), Vec::new());
    while talks.len() < count {
        let before = sessions_on_each(room)[core];
        let host = room.add_host();
        let mut talk = room.connect_from(host, 25);
        room.smtp_reply(&mut talk);
        if sessions_on_each(room)[core] > before {
            room.smtp(&mut talk, "EHLO client.test");
            talks.push(talk);
        } else {
            others.push(talk);
        }
    }
    others.iter().for_each(|talk| room.abort(talk));
    talks
}

/// Sends MAIL, and RCPT for these accounts.
fn name_recipients(room: &mut Room, talk: &mut Talk, names: &[&str]) {
    assert!(room.smtp(talk, "MAIL FROM:<>").starts_with("250 "));
    for name in names {
        assert!(room.smtp(talk, &format!("RCPT TO:<{name}@barepost.test>")).starts_with("250 "));
    }
}

/// The core that owns an account. A message for the account takes a place there and on the core of
/// its connection.
fn owner_of(room: &mut Room, name: &str) -> usize {
    let [mut talk] = talks_on(room, 0, 1).try_into().ok().expect("one connection");
    name_recipients(room, &mut talk, &[name]);
    assert!(room.smtp(&mut talk, "DATA").starts_with("354 "));
    room.send(&talk, &b"Some line of a message\r\n".repeat(500));
    room.pass(Micros::from_millis(10));
    let in_use = room.engines.in_use_on_each();
    let owner = (1..in_use.len()).find(|core| in_use[*core].deliveries > 0).unwrap_or(0);
    room.abort(&talk);
    room.until_nothing_is_in_use();
    owner
}

/// Each of two cores receives the most messages that it may, and each message is for accounts of
/// both cores.
#[test]
fn messages_for_two_cores_do_not_deadlock() {
    for seed in [26, 126] {
        let (mut room, owners) = room_with_few_places(seed);
        let owners = &owners[..if CORES > 1 { 2 } else { 1 }];
        let mut talks: Vec<Talk> =
            owners.iter().flat_map(|core| talks_on(&mut room, *core, PLACES)).collect();
        talks.iter_mut().for_each(|talk| name_recipients(&mut room, talk, &["ada", "grace"]));
        let begun_at = room.machine.now;
        for (command, reply) in
            [("DATA\r\n", "354 "), ("Subject: x\r\n\r\nHello.\r\n.\r\n", "250 ")]
        {
            talks.iter().for_each(|talk| room.try_to_send(talk, command.as_bytes()));
            for talk in &mut talks {
                let line = room.smtp_reply(talk);
                assert!(line.starts_with(reply), "{line}");
            }
        }
        assert!(room.machine.now.since(begun_at).as_secs() < 1, "no message was given up");
        for name in ["ada", "grace"] {
            assert_eq!(
                messages_on(&room.machine.disk, &format!("{name}@barepost.test")).len(),
                talks.len()
            );
        }
        talks.into_iter().for_each(|talk| room.part(talk));
        room.until_nothing_is_in_use();
    }
}

/// Slow senders have taken all the places of a core.
#[test]
fn a_message_that_waits_for_a_place_is_not_given_up() {
    if CORES == 1 {
        return;
    }
    let (mut room, [one, other]) = room_with_few_places(28);
    let mut slow = talks_on(&mut room, other, PLACES);
    for talk in &mut slow {
        name_recipients(&mut room, talk, &["grace"]);
        assert!(room.smtp(talk, "DATA").starts_with("354 "));
    }
    // One message has text, and the other consists of the end of data only.
    let mut waiting = talks_on(&mut room, one, 2);
    for (talk, message) in waiting.iter_mut().zip(["Subject: x\r\n\r\nHello.\r\n.\r\n", ".\r\n"]) {
        name_recipients(&mut room, talk, &["ada", "grace"]);
        assert!(room.smtp(talk, "DATA").starts_with("354 "));
        room.send(talk, message.as_bytes());
    }
    for _ in 0..10 {
        room.pass(Micros::from_secs(3));
        assert!(waiting.iter_mut().all(|talk| room.line_heard(talk).is_none()));
        slow.iter().for_each(|talk| room.send(talk, b"A line\r\n"));
    }
    slow.iter().for_each(|talk| room.send(talk, b".\r\n"));
    for talk in slow.iter_mut().chain(&mut waiting) {
        let line = room.smtp_reply(talk);
        assert!(line.starts_with("250 "), "{line}");
    }
    slow.into_iter().chain(waiting).for_each(|talk| room.part(talk));
    room.until_nothing_is_in_use();
}

/// All messages are for one account, so they wait for the buffers of its core. The clients send
/// without a pause: more data arrives while pages of the messages are in transit between cores.
#[test]
fn messages_that_wait_for_buffers_of_one_core_are_all_stored() {
    for seed in [24, 25] {
        let disk_bytes = DISK_BYTES * u64::from(CORES.max(4)) / 4;
        let sizes = sizes_for_messages(40 * usize::from(CORES));
        let mut room = Room::with_sizes(seed, MemoryDisk::blank(disk_bytes), sizes);
        let hosts: Vec<usize> = (0..8).map(|_| room.add_host()).collect();
        let messages = 0..40 * usize::from(CORES);
        let mut talks: Vec<Talk> = messages
            .map(|number| room.begin_message_from(hosts[number % 8], "grace@barepost.test"))
            .collect();
        let message = long_message(1);
        let (first, last) = message.split_at(message.len() - 10);
        talks.iter().for_each(|talk| room.send(talk, first));
        talks.iter().for_each(|talk| room.send(talk, &[last, b".\r\n"].concat()));
        for talk in &mut talks {
            let reply = room.smtp_reply(talk);
            assert!(reply.starts_with("250 "), "{reply}");
        }
    }
}

#[test]
fn a_maildrop_lock_holds_on_all_cores() {
    for seed in [22, 23] {
        let mut room = Room::new(seed);
        let mut owner = room.log_in("ada");
        let mut others = crowd(&mut room, 110);
        assert_all_cores_have_sessions(&room);
        for talk in &mut others {
            room.pop3(talk, "USER ada");
            let answer = room.pop3(talk, "PASS lovelace");
            assert!(answer.starts_with("-ERR [IN-USE]"), "{answer}");
        }
        assert!(room.pop3(&mut owner, "QUIT").starts_with("+OK"));
        room.close(&owner);
        room.pop3(&mut others[0], "USER ada");
        assert!(room.pop3(&mut others[0], "PASS lovelace").starts_with("+OK"));
        others.iter().for_each(|talk| room.abort(talk));
        room.until_nothing_is_in_use();
    }
}

#[test]
fn a_failed_disk_is_known_on_all_cores() {
    for seed in [24, 25] {
        let mut room = Room::new(seed);
        let mut talks = crowd(&mut room, 25);
        assert_all_cores_have_sessions(&room);
        room.machine.disk.mood = Mood::FailsFlushes;
        assert!(room.deliver("ada@barepost.test", b"Subject: x\r\n\r\n").starts_with("451"));
        room.machine.disk.mood = Mood::Works;
        for talk in &mut talks {
            room.smtp(talk, "EHLO client.test");
            let answer = room.smtp(talk, "MAIL FROM:<>");
            assert!(answer.starts_with("451"), "{answer}");
        }
    }
}

#[test]
fn the_machine_stops_after_all_its_cores() {
    for seed in [26, 27] {
        let mut room = Room::new(seed);
        let mut talks = crowd(&mut room, 25);
        assert_all_cores_have_sessions(&room);
        room.machine.stop = true;
        for talk in &mut talks {
            assert!(room.smtp_reply(talk).starts_with("421 "));
            room.close(talk);
        }
        room.until("the machine has stopped", |room| room.ended.is_some());
        assert_eq!(room.ended, Some(Ending::Asked));
        assert!(room.engines.have_all_stopped());
        assert_eq!(room.machine.console.iter().filter(|line| *line == "stopped").count(), 1);
    }
}

#[test]
fn each_core_reports_its_share_of_the_load_at_the_stop() {
    let mut room = Room::new(32);
    let mut talks = crowd(&mut room, 25);
    room.machine.stop = true;
    for talk in &mut talks {
        assert!(room.smtp_reply(talk).starts_with("421 "));
        room.close(talk);
    }
    room.until("the machine has stopped", |room| room.ended.is_some());
    let shares = (0..CORES).filter_map(|core| {
        let line = room
            .machine
            .console
            .iter()
            .find_map(|line| line.strip_prefix(&format!("core {core}: ")))?;
        line.split_once(" connections, ")?.0.parse::<usize>().ok()
    });
    let shares: Vec<usize> = shares.collect();
    // A machine with one core reports no shares.
    let is_alone = CORES == 1;
    assert_eq!(shares.len(), if is_alone { 0 } else { usize::from(CORES) });
    assert_eq!(shares.iter().sum::<usize>(), if is_alone { 0 } else { talks.len() });
}

/// When the clients disconnect, some of their data is on the cores of their connections. The rest
/// is at a store that accepts no more data if its disk does not answer.
#[test]
fn abandoned_messages_leave_nothing_behind_on_any_core() {
    for (seed, mood) in [(28, Mood::Works), (29, Mood::Works), (30, Mood::Waits), (31, Mood::Waits)]
    {
        let mut room = Room::new(seed);
        let mut talks = crowd(&mut room, 25);
        room.machine.disk.mood = mood;
        for talk in &mut talks {
            room.smtp(talk, "EHLO client.test");
            for command in ["MAIL FROM:<>", "RCPT TO:<ada@barepost.test>", "DATA"] {
                room.smtp(talk, command);
            }
        }
        for _ in 0..if mood == Mood::Works { 1 } else { 300 } {
            for (number, talk) in talks.iter().enumerate() {
                room.try_to_send(talk, &b"A line of its text\r\n".repeat(40 * number));
            }
            room.pass(Micros::from_millis(3));
        }
        talks.iter().for_each(|talk| room.abort(talk));
        room.pass(Micros::from_millis(3));
        room.machine.disk.mood = Mood::Works;
        room.until_nothing_is_in_use();
        let message = b"Subject: x\r\n\r\nstill here\r\n";
        assert!(room.deliver("ada@barepost.test", message).starts_with("250"));
        let mut talk = room.log_in("ada");
        assert!(room.pop3(&mut talk, "STAT").starts_with("+OK 1 "));
        assert_eq!(room.retrieve(&mut talk, 1), message);
    }
}

#[test]
fn a_core_that_sends_for_others_gets_its_share_of_the_card() {
    for seed in [24, 26] {
        let mut room = Room::with_site(seed, site(PAGE_BYTES));
        room.machine.transmit_ring = 2;
        let mut own = None;
        let mut others = Vec::new();
        while own.is_none() || others.len() < 8 * usize::from(CORES - 1).max(1) {
            let sessions = sessions_on_each(&room);
            let host = room.add_host();
            let mut talk = room.connect_from(host, if own.is_none() { 25 } else { 80 });
            room.until("a core has the connection", |room| sessions_on_each(room) != sessions);
            // On a machine with one core every connection is on the first core.
            let is_on_first_core = sessions_on_each(&room)[0] > sessions[0];
            match (own.is_some(), is_on_first_core) {
                (false, true) => {
                    room.smtp_reply(&mut talk);
                    own = Some(talk);
                }
                (true, is_on_first_core) if !is_on_first_core || CORES == 1 => others.push(talk),
                _ => {}
            }
        }
        let mut own = own.expect("a connection on the first core");
        for talk in &mut others {
            room.send(talk, b"GET /large HTTP/1.1\r\nHost: web.test\r\n\r\n");
        }
        for _ in 0..20 {
            room.send(&own, b"NOOP\r\n");
            room.until("NOOP is answered", |room| {
                others.iter_mut().for_each(|other| room.listen(other));
                room.line_heard(&mut own).is_some()
            });
        }
        assert!(
            others.iter().any(|talk| talk.heard.len() < PAGE_BYTES),
            "the pages came before the answers"
        );
    }
}
