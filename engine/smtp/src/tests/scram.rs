//! Tests of AUTH SCRAM-SHA-256, with the example of RFC 7677.

use std::format;
use std::string::{String, ToString};

use machine::Micros;
use testkit::scram::{
    BINDING_FIRST, FIRST, LAST, REPLAYED_LAST, SERVER_FINAL, SERVER_FIRST, WRONG_LAST,
};

use super::world::{Conversation, World};
use crate::{AuthRefusal, LoginPolicy, SmtpTls, SmtpWaitsFor};

const IN: &str = "235 2.7.0 Authentication successful\r\n";
const WRONG: &str = "535 5.7.8 Wrong user name or password\r\n";
const MALFORMED: &str = "501 5.5.2 Invalid authentication response\r\n";
const GIVEN_UP: &str = "501 5.7.0 Authentication cancelled\r\n";
const SENDER: &str = "MAIL FROM:<ada@mail.test>\r\n";

fn talk() -> Conversation {
    let mut world = World::new();
    world.settings.login = LoginPolicy::Required;
    world.settings.tls = SmtpTls::Spoken;
    let mut talk = Conversation::with(world);
    talk.says("EHLO client.test\r\n");
    talk.replies();
    talk
}

/// A conversation in which the host has accepted the client's proof and the session has sent the
/// server's signature.
fn signed() -> Conversation {
    let mut talk = talk();
    talk.says(format!("AUTH SCRAM-SHA-256 {FIRST}\r\n{LAST}\r\n"));
    assert_eq!(talk.replies(), format!("334 {SERVER_FIRST}\r\n334 {SERVER_FINAL}\r\n"));
    talk
}

fn line(text: &str) -> String {
    text.to_string() + "\r\n"
}

#[test]
fn scram_login_completes_after_the_server_signature() {
    let (first, last) = (line(FIRST), line(LAST));
    let asked = format!("334 {SERVER_FIRST}\r\n");
    let signed = format!("334 {SERVER_FINAL}\r\n");
    let begun = format!("auth scram-sha-256 {FIRST}\r\n");
    for beginning in
        [&[(&*begun, &*asked)][..], &[("AUTH SCRAM-SHA-256\r\n", "334 \r\n"), (&first, &asked)]]
    {
        let mut talk = talk();
        talk.exchange(beginning);
        talk.exchange(&[(&last, &signed)]);
        assert_eq!(talk.world.log, ["puzzle \"user\"", "login \"user\", proved: true"]);
        assert_eq!(talk.world.deadline, Some(Micros::from_secs(300)), "it is the client's turn");
        talk.exchange(&[
            ("\r\n", IN),
            (SENDER, "250 2.1.0 Sender OK\r\n"),
            ("RSET\r\n", "250 2.0.0 OK\r\n"),
        ]);
        talk.exchange(&[("AUTH SCRAM-SHA-256\r\n", "503 5.5.1 Already authenticated\r\n")]);
    }
}

#[test]
fn cancelled_scram_login_is_no_login() {
    for (response, reply) in [
        ("*", GIVEN_UP),
        ("AA==", MALFORMED),
        ("NOOP", MALFORMED),
        (&"A".repeat(2_000), "500 5.5.2 Line too long\r\n"),
    ] {
        let mut talk = signed();
        talk.exchange(&[
            (&line(response), reply),
            (SENDER, "530 5.7.0 Authentication required\r\n"),
        ]);
        assert_eq!(talk.world.log[2], "no login");
        talk.exchange(&[
            ("\r\n", "500 5.5.1 Unknown command\r\n"),
            (SENDER, "530 5.7.0 Authentication required\r\n"),
        ]);
        assert_eq!(talk.world.log.len(), 3);
    }
    let mut talk = signed();
    talk.session.peer_closed(&mut talk.world);
    assert!(talk.world.closed && talk.world.log[2] == "no login");
    let mut talk = signed();
    talk.session.stopping(&mut talk.world);
    assert_eq!(talk.replies(), "421 4.3.2 Server is shutting down, try again later\r\n");
    assert!(talk.world.closed && talk.world.log[2] == "no login");
}

#[test]
fn wrong_scram_proof_is_refused() {
    let mut talk = talk();
    talk.login_answer = Some(Err(AuthRefusal::Credentials));
    for _ in 0..2 {
        talk.says(format!("AUTH SCRAM-SHA-256 {FIRST}\r\n{WRONG_LAST}\r\n"));
        assert_eq!(talk.replies(), format!("334 {SERVER_FIRST}\r\n{WRONG}"));
        assert_eq!(
            talk.world.log.last().map(String::as_str),
            Some("login \"user\", proved: false")
        );
    }
    talk.exchange(&[(SENDER, "530 5.7.0 Authentication required\r\n")]);
    talk.says(format!("AUTH SCRAM-SHA-256 {FIRST}\r\n{WRONG_LAST}\r\n"));
    assert!(talk.replies().ends_with("421 4.7.0 Too many errors\r\n"));
    let mut talk = self::talk();
    let begin = format!("AUTH SCRAM-SHA-256 {FIRST}\r\n");
    let asked = format!("334 {SERVER_FIRST}\r\n");
    for (last, reply) in
        [(REPLAYED_LAST, WRONG), (FIRST, MALFORMED), ("", MALFORMED), ("*", GIVEN_UP)]
    {
        talk.exchange(&[
            (&begin, &asked),
            (&line(last), reply),
            (SENDER, "530 5.7.0 Authentication required\r\n"),
        ]);
    }
    talk.exchange(&[(&format!("AUTH SCRAM-SHA-256 {BINDING_FIRST}\r\n"), MALFORMED)]);
    talk.exchange(&[(
        "AUTH SCRAM-SHA-256-PLUS\r\n",
        "504 5.5.4 Unknown authentication mechanism; the reply to EHLO lists those supported\r\n",
    )]);
    assert!(!talk.world.log.iter().any(|entry| entry.starts_with("login")));
}

#[test]
fn scram_check_blocks_commands_and_ends_at_a_stop() {
    let mut talk = talk();
    talk.login_answer = None;
    talk.says(format!("AUTH SCRAM-SHA-256 {FIRST}\r\n{LAST}\r\n\r\n"));
    assert_eq!((talk.session.waits_for(), talk.world.deadline), (SmtpWaitsFor::Login, None));
    assert_eq!(talk.kept, b"\r\n");
    talk.session.stopping(&mut talk.world);
    talk.replies();
    talk.login_answer = Some(Ok(()));
    talk.says("");
    assert_eq!(
        talk.replies(),
        format!("334 {SERVER_FINAL}\r\n421 4.3.2 Server is shutting down, try again later\r\n")
    );
    assert!(talk.world.closed && talk.world.is_settled());
}
