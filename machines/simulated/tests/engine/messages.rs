//! Tests of messages in the whole engine: clients with an independent TCP send and read them, and
//! the disk may lose unflushed data.

use crate::CORES;

use super::room::{CONFIGURATION, Room, usual_sizes};
use machine::Micros;
use server::Ending;
use simulated::Mood;

const MESSAGE: &[u8] = b"Subject: Hello\r\n\r\nDear Ada,\r\n.\r\n..dots\r\n\r\nyours\r\n";

#[test]
fn a_message_is_delivered_and_retrieved_unchanged() {
    let mut room = Room::new(1);
    assert!(room.deliver("ada@barepost.test", MESSAGE).starts_with("250 2."));
    let mut talk = room.log_in("ada@barepost.test");
    assert!(room.pop3(&mut talk, "STAT").starts_with("+OK 1 "));
    assert_eq!(room.retrieve(&mut talk, 1), MESSAGE);
}

#[test]
fn forged_authentication_results_are_removed() {
    let mut room = Room::new(11);
    let lie =
        b"Authentication-Results: mail.barepost.test; spf=pass\r\nSubject: Trust me\r\n\r\nYes\r\n";
    assert!(room.deliver("ada@barepost.test", lie).starts_with("250 2."));
    let mut talk = room.log_in("ada@barepost.test");
    assert_eq!(room.retrieve(&mut talk, 1), b"Subject: Trust me\r\n\r\nYes\r\n");
}

/// The account that gets mail for each of these addresses with this configuration. `None`: the
/// address is refused as unknown.
fn readers(configuration: &str, addresses: &[&str]) -> Vec<Option<&'static str>> {
    let mut room =
        Room::configured(13, simulated::MemoryDisk::blank(32 << 20), usual_sizes(), configuration);
    room.until("the engine serves", |room| room.console_says("serving"));
    let mut messages = [0, 0];
    let reader = |address: &&str| {
        let mut talk = room.connect(25);
        assert!(room.smtp_reply(&mut talk).starts_with("220 "));
        let replies = ["HELO client.test", "MAIL FROM:<>", &format!("RCPT TO:<{address}>"), "QUIT"]
            .map(|command| room.smtp(&mut talk, command));
        room.close(&talk);
        if !replies[2].starts_with("250 ") {
            assert!(replies[2].starts_with("550 5.1.1 "), "{address}: {replies:?}");
            return None;
        }
        assert!(room.deliver(address, MESSAGE).starts_with("250 2."));
        let found = ["ada", "grace"].map(|name| {
            let mut talk = room.log_in(name);
            let reply = room.pop3(&mut talk, "STAT");
            room.part(talk);
            reply.split(' ').nth(1).and_then(|count| count.parse().ok()).unwrap_or(0)
        });
        let before = std::mem::replace(&mut messages, found);
        Some(if found[0] > before[0] { "ada" } else { "grace" })
    };
    addresses.iter().map(reader).collect()
}

#[test]
fn plus_addresses_and_the_catch_all_find_their_accounts() {
    let addresses = [
        "ada+shop@barepost.test",
        "\"Countess+a+b\"@barepost.test",
        "postmaster+x@barepost.test",
        "grace+list@barepost.test",
        "nobody@barepost.test",
        "+ada@barepost.test",
        "nobody+x@barepost.test",
        "grace@two.test",
    ];
    let two = CONFIGURATION
        .replace("domains = [\"barepost.test\"]", "domains = [\"barepost.test\", \"two.test\"]")
        .replace("\"postmaster@barepost.test\", ", "");
    let (ada, grace) = (Some("ada"), Some("grace"));
    assert_eq!(readers(&two, &addresses), [ada, ada, ada, grace, None, None, None, None]);
    let caught = two.replace(
        "address = \"grace@barepost.test\"",
        "address = \"grace@barepost.test\"\ncatch_all = [\"barepost.test\"]",
    );
    assert_eq!(readers(&caught, &addresses), [ada, ada, ada, grace, grace, grace, grace, None]);
}

#[test]
fn a_message_with_a_hundred_received_fields_is_rejected() {
    let mut room = Room::new(12);
    let message = |hops| {
        [b"Received: by elsewhere.test\r\n".repeat(hops), b"\r\nAgain\r\n".to_vec()].concat()
    };
    assert!(room.deliver("ada@barepost.test", &message(99)).starts_with("250 2."));
    assert_eq!(
        room.deliver("ada@barepost.test", &message(100)),
        "554 5.4.6 Too many hops, mail loop detected"
    );
}

#[test]
fn a_delivered_message_has_a_summary() {
    let mut room = Room::new(10);
    let answer = "From: Grace Hopper <grace@example.org>\r\nTo: Ada <ada@barepost.test>\r\nSubject: Re: Engines\r\n\
        Date: Sat, 21 Nov 2026 10:55:06 +0100\r\nMessage-ID: <2@example.org>\r\nReferences: <1@barepost.test>\r\n\r\n> how?\r\nLike this.\r\n";
    let long = format!(
        "Subject: Long\r\nMessage-ID: <1@barepost.test>\r\n\r\nhow?\r\n{}",
        "all of it\r\n".repeat(6_000)
    );
    for message in [answer, &long] {
        assert!(room.deliver("ada@barepost.test", message.as_bytes()).starts_with("250 2."));
    }
    let summaries = simulated::room::summaries_on(&room.machine.disk, "ada@barepost.test");
    let [answer, long] = &summaries[..] else { panic!("{summaries:?}") };
    assert_eq!(
        (&*answer.subject, &*answer.sender_name, &*answer.snippet),
        ("Re: Engines", "Grace Hopper", "Like this.")
    );
    assert_eq!(answer.sent, Some(machine::UnixTime::from_seconds(1_795_254_906)));
    assert!(long.subject == "Long" && long.snippet.starts_with("how? all of it all"), "{long:?}");
    // The lower bits distinguish first messages that have the same identifier.
    assert_eq!(answer.conversation, long.conversation & !0xffff);
    assert_ne!(answer.message_id, long.message_id);
}

#[test]
fn a_message_survives_a_power_cut_with_its_unique_id() {
    let mut room = Room::new(2);
    let mut names = Vec::new();
    for life in 0..6_u64 {
        let body = format!("Subject: {life}\r\n\r\n{}\r\n", "x".repeat(life as usize * 700));
        assert!(room.deliver("countess@barepost.test", body.as_bytes()).starts_with("250 2."));
        room = room.power_cut(life);
        let mut talk = room.log_in("ada");
        assert!(room.pop3(&mut talk, "UIDL").starts_with("+OK"));
        let list = String::from_utf8(room.pop3_lines(&mut talk)).expect("unique-ids are text");
        let now: Vec<String> = list
            .lines()
            .map(|line| line.split(' ').nth(1).unwrap_or_default().to_string())
            .collect();
        assert_eq!(now.len(), life as usize + 1);
        assert_eq!(now[..names.len()], names[..]);
        names = now;
        assert_eq!(room.retrieve(&mut talk, life as usize + 1), body.as_bytes());
    }
}

#[test]
fn messages_of_any_size_are_retrieved_unchanged() {
    let mut room = Room::new(3);
    let sizes = [0, 1, 2, 1459, 1460, 1461, 4095, 4096, 32_672, 32_673, 65_536, 300_000];
    let body = |size: usize| {
        let mut body: Vec<u8> = (0..size)
            .map(|index| b"abcdefghijklmnopqrstuvwxyz0123456789"[index * 7 % 36])
            .collect();
        for line_end in (70..size).step_by(72) {
            body[line_end - 1] = b'\r';
            body[line_end] = b'\n';
        }
        body.extend_from_slice(b"\r\n");
        body
    };
    for size in sizes {
        assert!(room.deliver("grace@barepost.test", &body(size)).starts_with("250 2."), "{size}");
    }
    let mut talk = room.log_in("grace@barepost.test");
    for (index, size) in sizes.into_iter().enumerate() {
        assert!(room.retrieve(&mut talk, index + 1) == body(size), "{size}");
    }
}

#[test]
fn a_reader_that_pauses_gets_the_rest_of_a_large_message() {
    let mut room = Room::new(9);
    let body =
        b"0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqr\r\n".repeat(30_000);
    assert!(room.deliver("ada@barepost.test", &body).starts_with("250 2."));
    let mut talk = room.log_in("ada@barepost.test");
    room.send(&talk, b"RETR 1\r\n");
    // The client's receive buffer and all buffers of the engine fill up, and the transfer stops.
    room.pass(Micros::from_secs(100));
    assert!(room.line(&mut talk).starts_with("+OK"));
    let message = room.pop3_lines(&mut talk);
    assert!(message.ends_with(&body));
}

#[test]
fn deletions_are_durable_at_quit_and_dropped_without_it() {
    let mut room = Room::new(4);
    for subject in ["one", "two", "three"] {
        assert!(
            room.deliver("ada@barepost.test", format!("Subject: {subject}\r\n\r\n\r\n").as_bytes())
                .starts_with("250")
        );
    }
    let mut talk = room.log_in("ada@barepost.test");
    assert!(room.pop3(&mut talk, "DELE 1").starts_with("+OK"));
    room.abort(&talk);
    room.until_nothing_is_in_use();

    let mut talk = room.log_in("ada@barepost.test");
    assert!(room.pop3(&mut talk, "STAT").starts_with("+OK 3 "));
    assert!(room.pop3(&mut talk, "DELE 2").starts_with("+OK"));
    assert!(room.pop3(&mut talk, "QUIT").starts_with("+OK"));

    let mut room = room.power_cut(4);
    let mut talk = room.log_in("ada@barepost.test");
    assert!(room.pop3(&mut talk, "STAT").starts_with("+OK 2 "));
    assert_eq!(room.retrieve(&mut talk, 1), b"Subject: one\r\n\r\n\r\n");
    assert_eq!(room.retrieve(&mut talk, 2), b"Subject: three\r\n\r\n\r\n");
}

#[test]
fn a_maildrop_is_open_to_one_session_at_a_time() {
    let mut room = Room::new(5);
    let mut first = room.log_in("ada@barepost.test");
    let mut second = room.connect(110);
    room.line(&mut second);
    room.pop3(&mut second, "USER ada@barepost.test");
    assert!(room.pop3(&mut second, "PASS lovelace").starts_with("-ERR [IN-USE]"));
    assert!(room.pop3(&mut first, "QUIT").starts_with("+OK"));
    room.log_in("ada@barepost.test");
}

#[test]
fn a_wrong_password_costs_time_and_the_right_one_none() {
    let mut room = Room::new(6);
    let mut delays = Vec::new();
    for _ in 0..3 {
        let mut talk = room.connect(110);
        room.line(&mut talk);
        room.pop3(&mut talk, "USER ada@barepost.test");
        let before = room.machine.now;
        assert!(room.pop3(&mut talk, "PASS wrong").starts_with("-ERR [AUTH]"));
        delays.push(room.machine.now.since(before).as_secs());
    }
    assert_eq!(delays, [2, 4, 8]);
    let before = room.machine.now;
    room.log_in("ada@barepost.test");
    assert!(room.machine.now.since(before).as_millis() < 1_000);
}

#[test]
fn relaying_is_denied_and_postmaster_is_accepted() {
    let mut room = Room::new(7);
    let mut talk = room.connect(25);
    room.smtp_reply(&mut talk);
    room.smtp(&mut talk, "HELO client.test");
    room.smtp(&mut talk, "MAIL FROM:<>");
    assert!(room.smtp(&mut talk, "RCPT TO:<someone@elsewhere.test>").starts_with("550 5.7.1"));
    assert!(room.smtp(&mut talk, "RCPT TO:<nobody@barepost.test>").starts_with("550 5.1.1"));
    assert!(room.smtp(&mut talk, "RCPT TO:<Postmaster>").starts_with("250 2.1.5"));
    assert!(room.smtp(&mut talk, "RCPT TO:<ADA@Barepost.Test>").starts_with("250 2.1.5"));
    assert!(room.smtp(&mut talk, "RCPT TO:<\"ada\"@barepost.test>").starts_with("250 2.1.5"));
    assert!(room.smtp(&mut talk, "RCPT TO:<ada@[10.0.0.2]>").starts_with("250 2.1.5"));
    assert!(room.smtp(&mut talk, "RCPT TO:<ada@[10.0.0.3]>").starts_with("550 5.7.1"));
}

#[test]
fn a_stop_ends_sessions_and_keeps_acknowledged_mail() {
    let mut room = Room::new(8);
    assert!(room.deliver("ada@barepost.test", MESSAGE).starts_with("250"));
    let mut idle = room.connect(25);
    room.smtp_reply(&mut idle);
    room.machine.stop = true;
    assert!(room.smtp_reply(&mut idle).starts_with("421 "));
    room.close(&idle);
    room.until("the engine has stopped", |room| room.ended.is_some());
    assert_eq!(room.ended, Some(Ending::Asked));

    let mut room = room.power_cut(8);
    let mut talk = room.log_in("ada@barepost.test");
    assert_eq!(room.retrieve(&mut talk, 1), MESSAGE);
}

#[test]
fn a_stop_does_not_wait_for_idle_clients() {
    let mut room = Room::new(8);
    let mut idle = room.connect(25);
    room.smtp_reply(&mut idle);
    let mut reader = room.log_in("ada@barepost.test");
    room.machine.stop = true;
    let stop_requested_at = room.machine.now;
    // The clients get the last reply, and do not close their connections.
    assert!(room.smtp_reply(&mut idle).starts_with("421 "));
    assert!(room.line(&mut reader).starts_with("-ERR [SYS/TEMP]"));
    room.until("the engine has stopped", |room| room.ended.is_some());
    let took = room.machine.now.since(stop_requested_at);
    assert!(took < Micros::from_secs(1), "{took:?}");
    assert_eq!(room.ended, Some(Ending::Asked));
}

#[test]
fn a_stop_waits_for_a_message_in_progress() {
    let mut room = Room::new(8);
    let mut sender = room.begin_message("ada@barepost.test");
    room.machine.stop = true;
    room.pass(Micros::from_secs(2));
    assert!(room.ended.is_none(), "the machine has not waited");
    room.send(&sender, MESSAGE);
    let reply = room.smtp(&mut sender, ".");
    assert!(reply.starts_with("250 ") || reply.starts_with("421 "), "{reply}");
    room.until("the engine has stopped", |room| room.ended.is_some());
}

#[test]
fn the_console_tells_the_sizes_at_start() {
    let room = Room::new(10);
    let first = room.machine.console.first().map(String::as_str).unwrap_or_default();
    let beginning = match CORES {
        1 => "sizes: 3072 connections (".to_string(),
        cores => format!("sizes: {cores} cores, each with "),
    };
    assert!(
        first.starts_with(&beginning) && first.contains(" bytes for each idle one), "),
        "{first}"
    );
}

#[test]
fn a_maildrop_stays_locked_until_pending_deletions_are_done() {
    let mut room = Room::new(11);
    for subject in ["one", "two"] {
        assert!(
            room.deliver("ada@barepost.test", format!("Subject: {subject}\r\n\r\n\r\n").as_bytes())
                .starts_with("250")
        );
    }
    let mut talk = room.log_in("ada");
    assert!(room.pop3(&mut talk, "DELE 1").starts_with("+OK"));
    room.machine.disk.mood = Mood::Waits;
    room.send(&talk, b"QUIT\r\n");
    room.pass(Micros::from_millis(100));
    room.abort(&talk);
    room.pass(Micros::from_millis(100));
    let mut next = room.connect(110);
    room.line(&mut next);
    room.pop3(&mut next, "USER ada");
    assert!(room.pop3(&mut next, "PASS lovelace").starts_with("-ERR [IN-USE]"));
    room.machine.disk.mood = Mood::Works;
    while room.machine.disk.waiting() > 0 {
        room.machine.disk.carry_out_next();
    }
    room.pass(Micros::from_millis(100));
    room.pop3(&mut next, "USER ada");
    assert!(room.pop3(&mut next, "PASS lovelace").starts_with("+OK 1 messages"));
    room.abort(&next);
    room.pass(Micros::from_millis(100));
    room.until_nothing_is_in_use();
}
