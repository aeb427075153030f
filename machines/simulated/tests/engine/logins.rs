//! Many logins at the same time: the server answers all in turn, delays addresses with wrong
//! guesses, and lets the owner log in.

#![allow(clippy::indexing_slicing, reason = "a test may fail")]

use crate::CORES;

use super::room::{CONFIGURATION, Room, Talk, usual_sizes};
use machine::Micros;
use simulated::MemoryDisk;

/// Connects from `host` over POP3, and sends USER.
fn at_the_gate(room: &mut Room, host: usize, user: &str) -> Talk {
    let mut talk = room.connect_from(host, 110);
    assert!(room.line(&mut talk).starts_with("+OK"));
    assert!(room.pop3(&mut talk, &format!("USER {user}")).starts_with("+OK"));
    talk
}

#[test]
fn a_flood_of_guesses_does_not_lock_out_the_owner() {
    let mut room = Room::new(1);
    let mut guessers = Vec::new();
    for _ in 0..30 {
        let host = room.add_host();
        guessers.extend((0..4).map(|_| at_the_gate(&mut room, host, "ada")).collect::<Vec<_>>());
    }
    let mut owner = at_the_gate(&mut room, 0, "ada");
    guessers.iter().for_each(|talk| room.send(talk, b"PASS guess\r\n"));
    let before = room.machine.now;
    assert!(room.pop3(&mut owner, "PASS lovelace").starts_with("+OK"));
    assert!(room.machine.now.since(before) < Micros::from_secs(1));
    let mut answered_after = Vec::new();
    for talk in &mut guessers {
        assert!(room.line(talk).starts_with("-ERR [AUTH]"));
        answered_after.push(room.machine.now.since(before).as_secs());
        room.abort(talk);
    }
    assert!(
        answered_after[0] >= 2 && answered_after.last().is_some_and(|last| *last >= 16),
        "{answered_after:?}"
    );
    room.abort(&owner);
    room.pass(Micros::from_secs(1));
    room.until_nothing_is_in_use();
}

#[test]
fn pending_logins_per_address_are_few_and_failures_expire() {
    let mut room = Room::new(2);
    let mut talks: Vec<Talk> = (0..6).map(|_| at_the_gate(&mut room, 0, "grace")).collect();
    talks.iter().for_each(|talk| room.send(talk, b"PASS guess\r\n"));
    let mut refused = 0;
    for talk in &mut talks {
        refused += usize::from(room.line(talk).starts_with("-ERR [SYS/TEMP]"));
        room.abort(talk);
    }
    // Each core counts its own pending logins.
    assert!(refused == 2 || CORES > 1 && refused < 2, "{refused}");
    room.pass(Micros::from_secs(3_000));
    room.until_nothing_is_in_use();
    let mut talk = at_the_gate(&mut room, 0, "grace");
    let before = room.machine.now;
    assert!(room.pop3(&mut talk, "PASS guess").starts_with("-ERR [AUTH]"));
    assert_eq!(room.machine.now.since(before).as_secs(), 2);
}

#[test]
fn logins_whose_clients_leave_block_no_other_login() {
    for leaving in 0..4_usize {
        let mut room = Room::new(3);
        let mut hosts = vec![0];
        hosts.extend((0..2).map(|_| room.add_host()));
        let mut talks: Vec<Talk> =
            (0..8).map(|number| at_the_gate(&mut room, hosts[number % 3], "ada")).collect();
        talks.iter().for_each(|talk| room.send(talk, b"PASS lovelace\r\n"));
        // When the clients disconnect, the server hashes the passwords of some logins, other logins
        // wait, and the rest are answered.
        (0..leaving).for_each(|_| room.step());
        let behind = talks.split_off(6);
        talks.iter().for_each(|talk| room.abort(talk));
        let mut answers: Vec<String> = Vec::new();
        for mut talk in behind {
            answers.push(room.line(&mut talk));
            room.abort(&talk);
        }
        assert!(
            answers
                .iter()
                .all(|answer| answer.starts_with("+OK") || answer.starts_with("-ERR [IN-USE]"))
        );
        room.pass(Micros::from_secs(1));
        room.until_nothing_is_in_use();
        room.log_in("ada");
    }
}

#[test]
fn of_two_concurrent_logins_one_locks_the_maildrop() {
    let mut room = Room::new(4);
    let mut talks = [at_the_gate(&mut room, 0, "ada"), at_the_gate(&mut room, 0, "countess")];
    talks.iter().for_each(|talk| room.send(talk, b"PASS lovelace\r\n"));
    let mut answers: Vec<String> = talks.iter_mut().map(|talk| room.line(talk)).collect();
    answers.sort();
    assert!(
        answers[0].starts_with("+OK 0 messages") && answers[1].starts_with("-ERR [IN-USE]"),
        "{answers:?}"
    );
}

#[test]
fn pipelined_guesses_are_answered_in_turn_until_the_limit() {
    let mut room = Room::new(5);
    let mut talk = room.connect(110);
    room.line(&mut talk);
    room.send(&talk, &b"USER ada\r\nPASS guess\r\n".repeat(10));
    let before = room.machine.now;
    let mut failures = 0;
    while failures < 3 {
        failures += usize::from(room.line(&mut talk).starts_with("-ERR [AUTH]"));
    }
    assert_eq!(room.machine.now.since(before).as_secs(), 2 + 4 + 8);
    room.until("the server has hung up", |room| room.has_hung_up(&mut talk));
    assert!(talk.heard.is_empty());
}

#[test]
fn a_password_hash_that_is_only_on_disk_is_checked() {
    let large =
        "$argon2id$v=19$m=20480,t=1,p=1$c29tZXNhbHQ$N03vxXfVDJvqprHtPqY1pmNtcD7H61146Iu/xnB0xmw";
    let user =
        format!("[[user]]\naddress = \"byron@barepost.test\"\npassword_hash = \"{large}\"\n");
    let with_user = format!("{CONFIGURATION}{user}");
    let mut room = Room::configured(6, MemoryDisk::blank(16 << 20), usual_sizes(), &with_user);
    room.until("the engine serves", |room| room.console_says("serving"));
    room.log_in("byron");
    let mut room = room.power_cut(6);
    room.log_in("byron");
}

/// Sends 20 guesses in ten seconds from one address. The client resets each connection after 400
/// ms. Returns the number of guesses without a reply by then: the server checks these, and refuses
/// the others at once.
fn guesses_looked_at(room: &mut Room, names: &[&str]) -> usize {
    let mut looked_at = 0;
    for number in 0..20 {
        let mut talk = at_the_gate(room, 0, names[number % names.len()]);
        room.send(&talk, b"PASS guess\r\n");
        room.pass(Micros::from_millis(400));
        looked_at += usize::from(room.line_heard(&mut talk).is_none());
        room.abort(&talk);
        room.pass(Micros::from_millis(100));
    }
    looked_at
}

#[test]
fn hanging_up_does_not_speed_up_guessing() {
    let mut room = Room::new(7);
    let looked_at = guesses_looked_at(&mut room, &["ada"]);
    assert!(looked_at <= 8, "{looked_at} guesses in ten seconds");
    room.pass(Micros::from_secs(100));
    let mut owner = at_the_gate(&mut room, 0, "ada");
    assert!(room.pop3(&mut owner, "PASS lovelace").starts_with("+OK"));
}

#[test]
fn failures_count_per_account_across_its_names() {
    let mut room = Room::new(8);
    let names =
        ["ada", "ada@barepost.test", "ADA@Barepost.test", "countess", "postmaster@barepost.test"];
    let mut costs = Vec::new();
    for name in names {
        let host = room.add_host();
        let mut talk = at_the_gate(&mut room, host, name);
        let before = room.machine.now;
        assert!(room.pop3(&mut talk, "PASS guess").starts_with("-ERR [AUTH]"));
        costs.push(room.machine.now.since(before).as_secs());
        room.abort(&talk);
    }
    assert_eq!(costs, [2, 2, 2, 2, 4]);
}

/// The time that the machine needs for the hashes of many guesses, of 40 ms each. `beside` runs
/// before each step.
fn hashes_take(beside: impl Fn(&mut Room)) -> Micros {
    const GUESSES: usize = 9;
    let mut room = Room::new(11);
    let hosts: Vec<usize> = (0..GUESSES / 3).map(|_| room.add_host()).collect();
    let talks: Vec<Talk> = (0..GUESSES)
        .map(|number| at_the_gate(&mut room, hosts[number % hosts.len()], "ada"))
        .collect();
    room.machine.computing = Micros::from_millis(20);
    // A hash reads the clock at its beginning and end. So it takes 40 ms, and the engine measures
    // 20 ms.
    let (before, readings) = (room.machine.now, room.machine.readings + 2 * GUESSES as u64);
    talks.iter().for_each(|talk| room.send(talk, b"PASS guess\r\n"));
    room.until("all hashes are computed", |room| {
        beside(room);
        room.machine.readings >= readings
    });
    room.machine.now.since(before)
}

#[test]
fn a_core_with_other_work_hashes_half_of_its_time() {
    // With several cores the other work may be on another core.
    if CORES > 1 {
        return;
    }
    let quiet = hashes_take(|_| {});
    assert!(
        quiet < Micros::from_millis(9 * 40 + 20),
        "a core without other work does not rest: {quiet:?}"
    );
    let busy = hashes_take(|room| room.machine.to_engine.push_back(vec![0; 60]));
    assert!(
        busy >= Micros::from_millis(9 * 60 - 20),
        "the core rests as long as it hashes: {busy:?}"
    );
}
