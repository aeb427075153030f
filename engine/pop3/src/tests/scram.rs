//! Tests of AUTH SCRAM-SHA-256, with the example of RFC 7677.

use std::format;
use std::string::{String, ToString};

use testkit::scram::{
    BINDING_FIRST, FIRST, LAST, REPLAYED_LAST, SERVER_FINAL, SERVER_FIRST, WRONG_LAST,
};

use super::world::Conversation;
use crate::{LoginRefusal, Pop3WaitsFor};

const IN: &str = "+OK 3 messages\r\n";
const WRONG: &str = "-ERR [AUTH] Wrong user name or password\r\n";
const MALFORMED: &str = "-ERR Invalid authentication response\r\n";
const GIVEN_UP: &str = "-ERR Authentication cancelled\r\n";
const LOG_IN_FIRST: &str = "-ERR Log in first\r\n";

/// A conversation in which the host has accepted the client's proof and the session has sent the
/// server's signature.
fn signed() -> Conversation {
    let mut talk = Conversation::new();
    talk.says(format!("AUTH SCRAM-SHA-256 {FIRST}\r\n{LAST}\r\n"));
    assert_eq!(talk.replies(), format!("+ {SERVER_FIRST}\r\n+ {SERVER_FINAL}\r\n"));
    assert!(talk.world.maildrop_open);
    talk
}

fn line(text: &str) -> String {
    text.to_string() + "\r\n"
}

#[test]
fn scram_login_completes_after_the_server_signature() {
    let (first, last) = (line(FIRST), line(LAST));
    let asked = format!("+ {SERVER_FIRST}\r\n");
    let signed = format!("+ {SERVER_FINAL}\r\n");
    let begun = format!("auth scram-sha-256 {FIRST}\r\n");
    for beginning in
        [&[(&*begun, &*asked)][..], &[("AUTH SCRAM-SHA-256\r\n", "+ \r\n"), (&first, &asked)]]
    {
        let mut talk = Conversation::new();
        talk.exchange(beginning);
        talk.exchange(&[(&last, &signed)]);
        assert_eq!(talk.world.log, ["puzzle \"user\"", "login \"user\", proved: true"]);
        talk.exchange(&[("\r\n", IN), ("STAT\r\n", "+OK 3 43\r\n")]);
        talk.exchange(&[
            ("AUTH SCRAM-SHA-256\r\n", "-ERR Already logged in\r\n"),
            ("QUIT\r\n", "+OK Bye\r\n"),
        ]);
        assert!(!talk.world.maildrop_open);
    }
}

#[test]
fn cancelled_scram_login_leaves_the_maildrop() {
    for (response, reply) in [
        ("*", GIVEN_UP),
        ("AA==", MALFORMED),
        ("STAT", MALFORMED),
        (&"A".repeat(2_000), "-ERR Line too long\r\n"),
    ] {
        let mut talk = signed();
        talk.exchange(&[(&line(response), reply)]);
        assert!(!talk.world.maildrop_open, "the maildrop is left");
        talk.exchange(&[
            ("STAT\r\n", LOG_IN_FIRST),
            ("\r\n", "-ERR Unknown command\r\n"),
            ("STAT\r\n", LOG_IN_FIRST),
        ]);
    }
    for end in [crate::Session::peer_closed, crate::Session::deadline_expired] {
        let mut talk = signed();
        end(&mut talk.session, &mut talk.world);
        assert!(talk.world.closed && !talk.world.maildrop_open && talk.replies().is_empty());
    }
    let mut talk = signed();
    talk.session.stopping(&mut talk.world);
    assert_eq!(talk.replies(), "-ERR [SYS/TEMP] Server is shutting down, try again later\r\n");
    assert!(talk.world.closed && !talk.world.maildrop_open);
}

#[test]
fn wrong_scram_proof_is_refused() {
    let mut talk = Conversation::new();
    talk.login_answer = Some(Err(LoginRefusal::Credentials));
    for _ in 0..2 {
        talk.says(format!("AUTH SCRAM-SHA-256 {FIRST}\r\n{WRONG_LAST}\r\n"));
        assert_eq!(talk.replies(), format!("+ {SERVER_FIRST}\r\n{WRONG}"));
        assert_eq!(
            talk.world.log.last().map(String::as_str),
            Some("login \"user\", proved: false")
        );
    }
    talk.exchange(&[("STAT\r\n", LOG_IN_FIRST)]);
    let mut talk = Conversation::new();
    let begin = format!("AUTH SCRAM-SHA-256 {FIRST}\r\n");
    let asked = format!("+ {SERVER_FIRST}\r\n");
    for (last, reply) in
        [(REPLAYED_LAST, WRONG), (FIRST, MALFORMED), ("", MALFORMED), ("*", GIVEN_UP)]
    {
        talk.exchange(&[(&begin, &asked), (&line(last), reply), ("STAT\r\n", LOG_IN_FIRST)]);
    }
    talk.exchange(&[(&format!("AUTH SCRAM-SHA-256 {BINDING_FIRST}\r\n"), MALFORMED)]);
    assert!(!talk.world.log.iter().any(|entry| entry.starts_with("login")));
}

#[test]
fn scram_check_blocks_commands_and_ends_at_a_stop() {
    let mut talk = Conversation::new();
    talk.login_answer = None;
    talk.says(format!("AUTH SCRAM-SHA-256 {FIRST}\r\n{LAST}\r\n\r\n"));
    assert_eq!((talk.session.waits_for(), &*talk.kept), (Pop3WaitsFor::Login, &b"\r\n"[..]));
    talk.session.stopping(&mut talk.world);
    talk.replies();
    talk.login_answer = Some(Ok(()));
    talk.says("");
    let stopping = "-ERR [SYS/TEMP] Server is shutting down, try again later\r\n";
    assert_eq!(talk.replies(), format!("+ {SERVER_FINAL}\r\n{stopping}"));
    assert!(talk.world.closed && !talk.world.maildrop_open);
}
