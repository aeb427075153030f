//! Tests of submission in the whole engine: clients can send mail only after a login.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use std::sync::Arc;

use http::Site;
use machine::Micros;
use rustls::ClientConfig;

use crate::CORES;

use super::room::tls_stream::{TlsStream, client};
use super::room::{Room, Talk, usual_sizes};

const SUBMISSION: u16 = 587;
const SUBMISSIONS: u16 = 465;

/// Logins: NUL, the name, NUL, the password, in base64. `ADA` has the correct password.
const ADA: &str = "AUTH PLAIN AGFkYUBiYXJlcG9zdC50ZXN0AGxvdmVsYWNl";
const GUESS: &str = "AUTH PLAIN AGFkYUBiYXJlcG9zdC50ZXN0AGd1ZXNz";
const NOBODY: &str = "AUTH PLAIN AG5vYm9keQBndWVzcw==";
const IN: &str = "235 2.7.0 Authentication successful";
const WRONG: &str = "535 5.7.8 Wrong user name or password";

fn serving(seed: u64) -> (Room, Arc<ClientConfig>) {
    let (room, trust) = Room::with_tls(seed, Site::default(), usual_sizes());
    let client = Arc::new(client(&trust, &[]));
    (room, client)
}

/// Connects with implicit TLS, and sends EHLO.
fn tls_stream(room: &mut Room, client: &Arc<ClientConfig>) -> TlsStream {
    let mut tls_stream = room.connect_tls(SUBMISSIONS, client);
    assert!(room.line_tls(&mut tls_stream).starts_with("220 "));
    assert_eq!(room.smtp_tls(&mut tls_stream, "EHLO client.test"), "250 HELP");
    tls_stream
}

/// Connects in clear text, from an address that may send its password without TLS, and sends EHLO.
fn trusted(room: &mut Room, host: usize) -> Talk {
    let mut talk = room.connect_from(host, SUBMISSION);
    assert!(room.smtp_reply(&mut talk).starts_with("220 "));
    assert_eq!(room.smtp(&mut talk, "EHLO client.test"), "250 HELP");
    talk
}

#[test]
fn a_logged_in_client_sends_mail_over_either_kind_of_tls() {
    let (mut room, client) = serving(1);
    for (number, port) in [SUBMISSIONS, SUBMISSION].into_iter().enumerate() {
        let mut session = if port == SUBMISSIONS {
            tls_stream(&mut room, &client)
        } else {
            let mut talk = trusted(&mut room, 0);
            assert_eq!(room.smtp(&mut talk, "STARTTLS"), "220 2.0.0 Ready to start TLS");
            let mut session = room.start_tls(talk, &client);
            assert_eq!(room.smtp_tls(&mut session, "EHLO client.test"), "250 HELP");
            session
        };
        assert_eq!(
            room.smtp_tls(&mut session, "MAIL FROM:<ada@barepost.test>"),
            "530 5.7.0 Authentication required"
        );
        assert_eq!(room.smtp_tls(&mut session, ADA), IN);
        assert!(room.engines.in_use() != server::InUse::default());
        for (command, code) in [
            ("MAIL FROM:<countess@barepost.test>", "250"),
            ("RCPT TO:<nobody@barepost.test>", "550 5.1.1"),
            ("RCPT TO:<grace@barepost.test>", "250"),
            ("DATA", "354"),
            ("A letter.\r\n.", "250"),
            ("QUIT", "221"),
        ] {
            let reply = room.smtp_tls(&mut session, command);
            assert!(reply.starts_with(code), "{command}: {reply}");
        }
        room.until_tls(&mut session, "the server closes", |session| session.is_closed);
        room.part(session.talk);
        let mut reader = room.log_in("grace");
        let message = String::from_utf8(room.retrieve_any(&mut reader, number + 1))
            .expect("the bytes are UTF-8");
        assert!(
            message.contains(" with ESMTPSA id ") && message.ends_with("A letter.\r\n"),
            "{message}"
        );
        room.part(reader);
    }
}

#[test]
fn submission_adds_missing_fields_and_removes_bcc() {
    let (mut room, client) = serving(6);
    let mut session = tls_stream(&mut room, &client);
    assert_eq!(room.smtp_tls(&mut session, ADA), IN);
    for message in [
        "Subject: Bare\r\nBcc: eve@elsewhere.test,\r\n\tmallory@elsewhere.test\r\n\r\nBcc: a word\r\n.",
        "From mbox Fri Feb 13 23:31:30 2009\r\nFrom: Ada <ada@barepost.test>\r\nSubject: Whole\r\nDate: then\r\nMessage-ID: <1@client.test>\r\n\r\nWhole.\r\n.",
        "A letter.\r\n.",
        "Subject: No more\r\n.",
    ] {
        for (command, code) in [
            ("MAIL FROM:<ada@barepost.test>", "250"),
            ("RCPT TO:<grace@barepost.test>", "250"),
            ("DATA", "354"),
            (message, "250"),
        ] {
            let reply = room.smtp_tls(&mut session, command);
            assert!(reply.starts_with(code), "{command}: {reply}");
        }
    }
    room.finish_tls(session);
    let mut reader = room.log_in("grace");
    let mut messages = (1..=4).map(|number| {
        let message =
            String::from_utf8(room.retrieve_any(&mut reader, number)).expect("the bytes are UTF-8");
        let start = message.find(" +0000\r\n").expect("our own trace ends with the time")
            + " +0000\r\n".len();
        message[start..].to_string()
    });
    let bare = messages.next().expect("there is a first message");
    let added = bare
        .strip_prefix("Subject: Bare\r\nFrom: ada@barepost.test\r\nDate: ")
        .and_then(|rest| rest.strip_suffix("\r\n\r\nBcc: a word\r\n"));
    let (date, identifier) =
        added.and_then(|rest| rest.split_once("\r\nMessage-ID: <")).expect("both were added");
    assert_eq!(date.len(), "Sat, 21 Nov 2026 10:55:06 +0000".len());
    assert!(
        identifier.ends_with("@mail.barepost.test>")
            && identifier.len() == 16 + "@mail.barepost.test>".len(),
        "{bare}"
    );
    assert_eq!(
        messages.next().as_deref(),
        Some(
            "From: Ada <ada@barepost.test>\r\nSubject: Whole\r\nDate: then\r\nMessage-ID: <1@client.test>\r\n\r\nWhole.\r\n"
        )
    );
    let text = messages.next().expect("there is a third message");
    assert!(
        text.starts_with("From: ada@barepost.test\r\nDate: ")
            && text.ends_with("@mail.barepost.test>\r\n\r\nA letter.\r\n"),
        "{text}"
    );
    let short = messages.next().expect("there is a fourth message");
    assert!(
        short.starts_with("Subject: No more\r\nFrom: ada@barepost.test\r\nDate: ")
            && short.ends_with("@mail.barepost.test>\r\n"),
        "{short}"
    );
    drop(messages);
    room.part(reader);
}

#[test]
fn a_from_address_of_another_account_is_rejected() {
    let (mut room, client) = serving(7);
    let mut session = tls_stream(&mut room, &client);
    assert_eq!(room.smtp_tls(&mut session, ADA), IN);
    let long =
        format!("ada@barepost.test\r\nX: {}", format!("{}\r\n ", "x".repeat(900)).repeat(150));
    for (from, code) in [
        ("grace@barepost.test", "550 5.7.1"),
        ("Ada <ada@elsewhere.test>", "550 5.7.1"),
        ("ada@below.barepost.test", "550 5.7.1"),
        ("nobody@barepost.test", "550 5.7.1"),
        ("\"ada@barepost.test\" <grace@barepost.test>", "550 5.7.1"),
        ("ada@barepost.test,\r\n grace@barepost.test", "550 5.7.1"),
        ("all: ada@barepost.test, grace@barepost.test;", "550 5.7.1"),
        ("ada@barepost.test\r\nfrom: grace@barepost.test", "550 5.6.0"),
        ("ada@barepost.test\r\nSubject: x\r\n\r\nFrom: grace@barepost.test", "250"),
        ("Ada <Ada@Barepost.test>", "250"),
        ("postmaster@barepost.test, ada+looms@barepost.test", "250"),
        ("ada", "550 5.6.0"),
        (long.as_str(), "550 5.6.0"),
        ("", "550 5.6.0"),
        ("undisclosed:;", "550 5.6.0"),
        ("<ada@barepost.test> <grace@barepost.test>", "550 5.6.0"),
        ("grace@barepost.test <ada@barepost.test>", "550 5.6.0"),
        ("\"Grace\\\" <grace@barepost.test>", "550 5.6.0"),
        ("<=?utf-8?Q?grace=40barepost.test?=>", "550 5.6.0"),
        ("grace@barepost.test:;", "550 5.6.0"),
        ("ada@barepost.test\r\nFrom: Ada <ada@barepost.test>", "550 5.6.0"),
        ("grace@barepost.test\r\nResent-From: ada@barepost.test", "250"),
        ("grace@barepost.test\r\nResent-From: eve@elsewhere.test", "550 5.7.1"),
        (
            "grace@barepost.test\r\nResent-From: <ada@barepost.test> <eve@elsewhere.test>",
            "550 5.7.1",
        ),
        (
            "grace@barepost.test\r\nResent-From: eve@elsewhere.test\r\nResent-From: ada@barepost.test",
            "550 5.7.1",
        ),
    ] {
        for (command, code) in [
            ("MAIL FROM:<ada@barepost.test>", "250"),
            ("RCPT TO:<grace@barepost.test>", "250"),
            ("RCPT TO:<bob@elsewhere.test>", "250"),
            ("DATA", "354"),
            (&format!("From: {from}\r\n\r\nHello.\r\n."), code),
        ] {
            let reply = room.smtp_tls(&mut session, command);
            assert!(reply.starts_with(code), "{from}: {command}: {reply}");
        }
    }
    room.finish_tls(session);
}

#[test]
fn a_mail_from_address_of_another_account_is_rejected() {
    let (mut room, client) = serving(2);
    let mut session = tls_stream(&mut room, &client);
    assert_eq!(room.smtp_tls(&mut session, ADA), IN);
    for (path, code) in [
        ("grace@barepost.test", "553 5.7.1"),
        ("ada@elsewhere.test", "553 5.7.1"),
        ("nobody@barepost.test", "553 5.7.1"),
        ("Ada@Barepost.test", "250"),
        ("postmaster@barepost.test", "250"),
        ("", "250"),
    ] {
        let reply = room.smtp_tls(&mut session, &format!("MAIL FROM:<{path}>"));
        assert!(reply.starts_with(code), "{path}: {reply}");
        assert_eq!(room.smtp_tls(&mut session, "RSET"), "250 2.0.0 OK");
    }
    room.finish_tls(session);
}

#[test]
fn clear_text_passwords_need_an_allowed_network() {
    let (mut room, _) = serving(3);
    let mut talk = trusted(&mut room, 0);
    assert_eq!(room.smtp(&mut talk, ADA), IN);
    room.part(talk);
    let elsewhere =
        super::room::CONFIGURATION.replace("plaintext_auth_from = [\"10.0.0.0/24\"]", "");
    let disk = simulated::MemoryDisk::blank(16 << 20);
    let mut room = Room::configured(4, disk, usual_sizes(), &elsewhere);
    room.until("the engine serves", |room| room.console_says("serving"));
    let mut talk = trusted(&mut room, 0);
    for login in [ADA, "AUTH LOGIN", "AUTH SCRAM-SHA-256"] {
        assert!(room.smtp(&mut talk, login).starts_with("538 5.7.11 "), "{login}");
    }
    assert!(room.smtp(&mut talk, "MAIL FROM:<ada@barepost.test>").starts_with("530 5.7.0 "));
    room.part(talk);
    let mut talk = room.connect(25);
    assert!(room.smtp_reply(&mut talk).starts_with("220 "));
    assert_eq!(room.smtp(&mut talk, "EHLO client.test"), "250 HELP");
    assert!(room.smtp(&mut talk, ADA).starts_with("502 "), "port 25 accepts no password");
    room.part(talk);
}

#[test]
fn failed_submission_logins_count_like_failed_pop3_logins() {
    let (mut room, _) = serving(5);
    let mut waited = Vec::new();
    for name in [GUESS, NOBODY] {
        let host = room.add_host();
        let mut talk = trusted(&mut room, host);
        for _ in 0..2 {
            let before = room.machine.now;
            assert_eq!(room.smtp(&mut talk, name), WRONG);
            waited.push(room.machine.now.since(before).as_secs());
        }
        room.part(talk);
        let mut reader = room.connect_from(host, 110);
        room.line(&mut reader);
        assert!(room.pop3(&mut reader, "USER grace").starts_with("+OK"));
        let before = room.machine.now;
        assert!(room.pop3(&mut reader, "PASS guess").starts_with("-ERR [AUTH]"));
        waited.push(room.machine.now.since(before).as_secs());
        room.part(reader);
    }
    assert_eq!(waited, [2, 4, 8, 2, 4, 8]);
    let mut owner = trusted(&mut room, 0);
    let before = room.machine.now;
    assert_eq!(room.smtp(&mut owner, ADA), IN);
    assert!(room.machine.now.since(before) < Micros::from_secs(1), "the owner is let in at once");
    room.part(owner);
}

#[test]
fn the_third_failed_login_ends_the_session() {
    let (mut room, _) = serving(6);
    let mut talk = trusted(&mut room, 0);
    room.send(&talk, format!("{GUESS}\r\n").repeat(5).as_bytes());
    let before = room.machine.now;
    for _ in 0..3 {
        assert_eq!(room.line(&mut talk), WRONG);
    }
    assert_eq!(room.line(&mut talk), "421 4.7.0 Too many errors");
    assert_eq!(room.machine.now.since(before).as_secs(), 2 + 4 + 8);
    room.until("the server has hung up", |room| room.has_hung_up(&mut talk));
    room.part(talk);
    for leaving in 0..4 {
        let host = room.add_host();
        let mut talks: Vec<Talk> = (0..6).map(|_| trusted(&mut room, host)).collect();
        talks.iter().for_each(|talk| room.send(talk, format!("{GUESS}\r\n").as_bytes()));
        (0..leaving).for_each(|_| room.step());
        talks.drain(..4).for_each(|talk| room.abort(&talk));
        for mut talk in talks {
            let answer = room.line(&mut talk);
            assert!(answer == WRONG || answer.starts_with("454 4.7.0 "), "{answer}");
            room.abort(&talk);
        }
        room.pass(Micros::from_secs(70));
    }
    room.until_nothing_is_in_use();
}

#[test]
fn pending_submission_logins_per_address_are_few() {
    let (mut room, _) = serving(7);
    let mut talks: Vec<Talk> = (0..6).map(|_| trusted(&mut room, 0)).collect();
    talks.iter().for_each(|talk| room.send(talk, format!("{GUESS}\r\n").as_bytes()));
    let mut refused = 0;
    for talk in &mut talks {
        refused += usize::from(room.line(talk).starts_with("454 4.7.0 "));
        room.abort(talk);
    }
    // Each core counts its own pending logins.
    assert!(refused == 2 || CORES > 1 && refused < 2, "{refused}");
}

#[test]
fn pop3_supports_auth_plain() {
    let (mut room, client) = serving(8);
    let mut session = room.connect_tls(995, &client);
    assert!(room.line_tls(&mut session).starts_with("+OK"));
    assert_eq!(room.pop3_tls(&mut session, "AUTH LOGIN"), "+ VXNlcm5hbWU6");
    assert_eq!(room.pop3_tls(&mut session, "YWRh"), "+ UGFzc3dvcmQ6");
    assert_eq!(room.pop3_tls(&mut session, "bG92ZWxhY2U="), "+OK 0 messages");
    room.finish_tls(session);
}
