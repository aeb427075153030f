//! Tests of STARTTLS and STLS in the whole engine: from clear text to TLS on one connection.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use std::sync::Arc;

use http::Site;
use machine::Micros;
use rustls::{ClientConfig, HandshakeKind};
use server::InUse;

use crate::CORES;

use super::room::tls_stream::{BOTH, TlsStream, Trust, client, client_of};
use super::room::{Room, Talk, stuffed, usual_sizes};

const SMTP: u16 = 25;
const POP3: u16 = 110;

fn serving(seed: u64) -> (Room, Arc<ClientConfig>) {
    let (room, trust) = Room::with_tls(seed, Site::default(), usual_sizes());
    let client = Arc::new(client(&trust, &[]));
    (room, client)
}

/// The command that starts TLS.
fn command(port: u16) -> &'static str {
    if port == SMTP { "STARTTLS" } else { "STLS" }
}

fn is_welcome(line: &str) -> bool {
    line == "220 2.0.0 Ready to start TLS" || line == "+OK Begin TLS negotiation"
}

/// Connects, and receives the greeting.
fn greeted(room: &mut Room, port: u16) -> Talk {
    let mut talk = room.connect(port);
    let greeting = room.line(&mut talk);
    assert!(greeting.starts_with("220 ") || greeting.starts_with("+OK"), "{greeting}");
    talk
}

/// Connects, and starts TLS with the command.
fn begun(room: &mut Room, port: u16, client: &Arc<ClientConfig>) -> TlsStream {
    let mut talk = greeted(room, port);
    let answer = room.pop3(&mut talk, command(port));
    assert!(is_welcome(&answer), "{answer}");
    let mut tls_stream = room.start_tls(talk, client);
    room.complete_handshake(&mut tls_stream);
    tls_stream
}

/// Checks that the session has lost its state from before TLS, and has sent no data without a
/// request.
fn expect_new_session(room: &mut Room, port: u16, tls_stream: &mut TlsStream) {
    if port == SMTP {
        assert_eq!(
            room.smtp_tls(tls_stream, "MAIL FROM:<a@b.test>"),
            "503 5.5.1 Send EHLO or HELO first"
        );
        assert_eq!(room.smtp_tls(tls_stream, "NOOP"), "250 2.0.0 OK");
    } else {
        assert_eq!(room.pop3_tls(tls_stream, "PASS lovelace"), "-ERR Send USER first");
        assert_eq!(room.pop3_tls(tls_stream, "UTF8"), "+OK");
    }
    assert!(tls_stream.heard.is_empty());
}

fn leave(room: &mut Room, mut tls_stream: TlsStream) {
    let goodbye = room.pop3_tls(&mut tls_stream, "QUIT");
    assert!(goodbye.starts_with("221 ") || goodbye.starts_with("+OK"), "{goodbye}");
    room.until_tls(&mut tls_stream, "the server closes", |tls_stream| tls_stream.is_closed);
    room.part(tls_stream.talk);
}

#[test]
fn mail_is_sent_and_read_after_starttls() {
    for (seed, version) in (0..).zip(BOTH) {
        let trust = Trust::new("mail.barepost.test");
        let mut room = Room::with_certificates(
            seed,
            Site::default(),
            vec![trust.certificate.clone()],
            usual_sizes(),
        );
        let client = Arc::new(client_of(&trust, &[], &[version]));
        let mut talk = greeted(&mut room, SMTP);
        room.send(&talk, b"EHLO client.test\r\n");
        let announced: Vec<String> =
            std::iter::from_fn(|| Some(room.line(&mut talk))).take(10).collect();
        assert_eq!(
            announced.iter().filter(|line| *line == "250-STARTTLS").count(),
            1,
            "{announced:?}"
        );
        assert!(is_welcome(&room.smtp(&mut talk, "STARTTLS")));
        let mut tls_stream = room.start_tls(talk, &client);
        room.send_tls(&mut tls_stream, b"EHLO client.test\r\n");
        let announced: Vec<String> =
            std::iter::from_fn(|| Some(room.line_tls(&mut tls_stream))).take(9).collect();
        assert_eq!(announced.last().map(String::as_str), Some("250 HELP"));
        assert!(!announced.iter().any(|line| line.contains("STARTTLS")), "{announced:?}");
        assert!(room.smtp_tls(&mut tls_stream, "STARTTLS").starts_with("503 "));
        for command in ["MAIL FROM:<sender@elsewhere.test>", "RCPT TO:<ada@barepost.test>", "DATA"]
        {
            let reply = room.smtp_tls(&mut tls_stream, command);
            assert!(reply.starts_with('2') || reply.starts_with("354 "), "{command}: {reply}");
        }
        let body =
            "A line of mail, and one that is longer than the one before it.\r\n".repeat(3000);
        room.send_tls(&mut tls_stream, &stuffed(body.as_bytes()));
        assert!(room.smtp_tls(&mut tls_stream, ".").starts_with("250 "));
        leave(&mut room, tls_stream);
        let mut tls_stream = begun(&mut room, POP3, &client);
        for command in ["USER ada@barepost.test", "PASS lovelace", "RETR 1"] {
            let response = room.pop3_tls(&mut tls_stream, command);
            assert!(response.starts_with("+OK"), "{command}: {response}");
        }
        room.until_tls(&mut tls_stream, "the message is there", |tls_stream| {
            tls_stream.heard.ends_with(b"\r\n.\r\n")
        });
        let message =
            String::from_utf8(std::mem::take(&mut tls_stream.heard)).expect("the bytes are UTF-8");
        assert!(message.contains(" with ESMTPS id ") && message.contains(&body));
        leave(&mut room, tls_stream);
    }
}

#[test]
fn commands_after_starttls_in_its_segment_are_ignored() {
    for port in [SMTP, POP3] {
        let (mut room, client) = serving(u64::from(port));
        for injected in ["EHLO thief.test\r\n", "USER ada\r\nPASS lovelace\r\n", "QUIT\r\n", "NO"] {
            let mut talk = greeted(&mut room, port);
            room.send(&talk, format!("{}\r\n{injected}", command(port)).as_bytes());
            assert!(is_welcome(&room.line(&mut talk)));
            let mut tls_stream = room.start_tls(talk, &client);
            expect_new_session(&mut room, port, &mut tls_stream);
            leave(&mut room, tls_stream);
        }
    }
}

#[test]
fn commands_buffered_after_starttls_are_ignored() {
    // The command is split, so that its rest is read together with the data after it.
    for port in [SMTP, POP3] {
        let (mut room, client) = serving(u64::from(port) + 1);
        let all = format!("{}\r\nEHLO thief.test\r\nUSER ada\r\n", command(port));
        for cut in 1..command(port).len() + 2 {
            let mut talk = greeted(&mut room, port);
            room.send(&talk, &all.as_bytes()[..cut]);
            room.pass(Micros::from_millis(5));
            room.send(&talk, &all.as_bytes()[cut..]);
            assert!(is_welcome(&room.line(&mut talk)));
            let mut tls_stream = room.start_tls(talk, &client);
            expect_new_session(&mut room, port, &mut tls_stream);
            leave(&mut room, tls_stream);
        }
    }
    // The session is busy when the command and the injected data arrive: it stores a message, or
    // checks a password.
    let (mut room, client) = serving(3);
    let mut talk = room.begin_message("ada@barepost.test");
    let injected = "EHLO thief.test\r\nMAIL FROM:<thief@b.test>\r\n".repeat(400);
    room.send(&talk, format!("A letter.\r\n.\r\nSTARTTLS\r\n{injected}").as_bytes());
    assert!(room.line(&mut talk).starts_with("250 2.0.0 Stored"));
    assert!(is_welcome(&room.line(&mut talk)));
    room.pass(Micros::from_millis(5));
    let mut tls_stream = room.start_tls(talk, &client);
    expect_new_session(&mut room, SMTP, &mut tls_stream);
    leave(&mut room, tls_stream);
    let mut talk = greeted(&mut room, POP3);
    room.send(&talk, b"USER ada\r\nPASS guess\r\nSTLS\r\nUSER ada\r\nPASS lovelace\r\n");
    assert_eq!(room.line(&mut talk), "+OK Send PASS");
    assert!(room.line(&mut talk).starts_with("-ERR [AUTH]"));
    assert!(is_welcome(&room.line(&mut talk)));
    let mut tls_stream = room.start_tls(talk, &client);
    expect_new_session(&mut room, POP3, &mut tls_stream);
    leave(&mut room, tls_stream);
}

#[test]
fn clear_text_before_the_handshake_ends_the_connection() {
    for port in [SMTP, POP3] {
        let (mut room, client) = serving(u64::from(port) + 2);
        let mut talk = greeted(&mut room, port);
        assert!(is_welcome(&room.pop3(&mut talk, command(port))));
        room.send(&talk, b"EHLO thief.test\r\nMAIL FROM:<thief@b.test>\r\n");
        room.until("the server has hung up", |room| room.has_hung_up(&mut talk));
        assert_eq!(talk.heard[..3], [21, 3, 3], "an alert, and no reply: {:?}", talk.heard);
        assert_eq!(talk.heard.len(), 7);
        room.part(talk);
        // Next, clear text is sent in the middle of a handshake.
        let mut talk = greeted(&mut room, port);
        assert!(is_welcome(&room.pop3(&mut talk, command(port))));
        let mut tls_stream = room.start_tls(talk, &client);
        let mut hello = Vec::new();
        tls_stream.tls.write_tls(&mut hello).expect("I/O in memory cannot fail");
        room.send(&tls_stream.talk, &[hello.as_slice(), b"EHLO thief.test\r\n"].concat());
        room.until("the server has hung up", |room| room.has_hung_up(&mut tls_stream.talk));
        let heard = String::from_utf8_lossy(&tls_stream.talk.heard).into_owned();
        assert!(!heard.contains("250") && !heard.contains("-ERR"), "{heard}");
        room.part(tls_stream.talk);
    }
}

#[test]
fn starttls_without_a_handshake_ends_after_ten_seconds() {
    for port in [SMTP, POP3] {
        let (mut room, _) = serving(u64::from(port) + 3);
        let mut silent = greeted(&mut room, port);
        assert!(is_welcome(&room.pop3(&mut silent, command(port))));
        room.pass(Micros::from_secs(9));
        assert!(!room.has_hung_up(&mut silent));
        room.pass(Micros::from_secs(2));
        assert!(room.has_hung_up(&mut silent) && silent.heard.is_empty());
        let mut leaving = greeted(&mut room, port);
        room.send(&leaving, format!("{}\r\n", command(port)).as_bytes());
        room.close(&leaving);
        room.until("the server leaves too", |room| room.has_hung_up(&mut leaving));
        room.until("nothing is left", |room| room.engines.in_use() == InUse::default());
    }
}

#[test]
fn session_tickets_are_issued_on_pop3_and_not_on_smtp() {
    let (mut room, client) = serving(5);
    for (port, later) in [(SMTP, HandshakeKind::Full), (POP3, HandshakeKind::Resumed)] {
        for time in 0..3 {
            let mut tls_stream = begun(&mut room, port, &client);
            expect_new_session(&mut room, port, &mut tls_stream);
            let expected = if time == 0 { HandshakeKind::Full } else { later };
            assert_eq!(tls_stream.tls.handshake_kind(), Some(expected), "port {port}");
            leave(&mut room, tls_stream);
        }
    }
}

#[test]
fn a_machine_without_a_certificate_offers_no_tls() {
    let mut room = Room::new(6);
    let mut talk = greeted(&mut room, SMTP);
    assert_eq!(room.smtp(&mut talk, "EHLO client.test"), "250 HELP");
    assert!(room.smtp(&mut talk, "STARTTLS").starts_with("502 "));
    room.part(talk);
    let mut talk = greeted(&mut room, POP3);
    assert_eq!(room.pop3(&mut talk, "STLS"), "-ERR Unknown command");
    room.part(talk);
}

#[test]
fn starttls_is_refused_while_handshakes_are_at_their_limit() {
    if CORES > 1 {
        return;
    }
    let sizes = usual_sizes();
    let most = (sizes.connections / 32).max(32);
    let (mut room, trust) = Room::with_tls(7, Site::default(), sizes);
    let client = Arc::new(client(&trust, &[]));
    let mut hello = Vec::new();
    let mut first = room.connect_tls(995, &client);
    first.tls.write_tls(&mut hello).expect("I/O in memory cannot fail");
    let mut talks: Vec<Talk> = (0..2).map(|at| greeted(&mut room, [SMTP, POP3][at])).collect();
    let flood: Vec<Talk> = (0..most)
        .map(|_| {
            let talk = room.connect(995);
            room.send(&talk, &hello[..hello.len() - 1]);
            room.step();
            talk
        })
        .collect();
    room.until("there is no room for another", |room| room.engines.in_use().handshakes == most);
    assert!(room.smtp(&mut talks[0], "STARTTLS").starts_with("454 4.7.0 "));
    assert!(room.pop3(&mut talks[1], "STLS").starts_with("-ERR [SYS/TEMP] "));
    assert_eq!(room.smtp(&mut talks[0], "NOOP"), "250 2.0.0 OK", "the conversation continues");
    flood.iter().chain(&talks).chain([&first.talk]).for_each(|talk| room.abort(talk));
    room.until("nothing is left", |room| room.engines.in_use() == InUse::default());
}
