//! Tests of AUTH.

use std::format;
use std::string::ToString;

use super::world::Conversation;
use crate::{LoginRefusal, Pop3WaitsFor};

const IN: &str = "+OK 3 messages\r\n";
const MALFORMED: &str = "-ERR Invalid authentication response\r\n";
/// NUL, `ada`, NUL, `secret`.
const PLAIN: &str = "AUTH PLAIN AGFkYQBzZWNyZXQ=\r\n";

#[test]
fn auth_plain_and_login_accept_every_client_form() {
    for lines in [
        &[(PLAIN, IN)][..],
        &[("auth plain\r\n", "+ \r\n"), ("AGFkYQBzZWNyZXQ=\r\n", IN)],
        &[
            ("AUTH LOGIN\r\n", "+ VXNlcm5hbWU6\r\n"),
            ("YWRh\r\n", "+ UGFzc3dvcmQ6\r\n"),
            ("c2VjcmV0\r\n", IN),
        ],
        &[("AUTH LOGIN YWRh\r\n", "+ UGFzc3dvcmQ6\r\n"), ("c2VjcmV0\r\n", IN)],
    ] {
        let mut talk = Conversation::new();
        talk.exchange(lines);
        assert_eq!(talk.world.log, ["login \"ada\" \"secret\""]);
        talk.exchange(&[("STAT\r\n", "+OK 3 43\r\n"), (PLAIN, "-ERR Already logged in\r\n")]);
    }
}

#[test]
fn auth_response_length_is_limited() {
    let longest = "AGFhAHBw".to_string() + &"cHBw".repeat(254);
    assert_eq!(longest.len() + 2, crate::RESPONSE_LINE_BYTES_MAX);
    let mut talk = Conversation::new();
    talk.exchange(&[
        ("AUTH PLAIN\r\n", "+ \r\n"),
        (&format!("{longest}cA==\r\n"), "-ERR Line too long\r\n"),
    ]);
    assert!(talk.world.log.is_empty());
    talk.exchange(&[("AUTH PLAIN\r\n", "+ \r\n"), (&format!("{longest}\r\n"), IN)]);
    assert_eq!(talk.world.log, [format!("login \"aa\" {:?}", "p".repeat(764))]);
}

#[test]
fn malformed_auth_is_refused_and_the_session_goes_on() {
    let mut talk = Conversation::new();
    talk.login_answer = Some(Err(LoginRefusal::Credentials));
    talk.exchange(&[
        ("AUTH\r\n", "-ERR Invalid arguments\r\n"),
        (
            "AUTH CRAM-MD5\r\n",
            "-ERR Unknown authentication mechanism; the reply to CAPA lists those supported\r\n",
        ),
        ("AUTH PLAIN =\r\n", MALFORMED),
        ("AUTH PLAIN\r\n", "+ \r\n"),
        ("*\r\n", "-ERR Authentication cancelled\r\n"),
        ("AUTH LOGIN\r\n", "+ VXNlcm5hbWU6\r\n"),
        ("YWRh\r\n", "+ UGFzc3dvcmQ6\r\n"),
        ("STAT!\r\n", MALFORMED),
        ("AUTH PLAIN Ym9iAGFkYQBzZWNyZXQ=\r\n", "-ERR [AUTH] Wrong user name or password\r\n"),
        // The name in USER is not used by AUTH.
        ("USER bob\r\n", "+OK Send PASS\r\n"),
        ("AUTH LOGIN\r\n", "+ VXNlcm5hbWU6\r\n"),
        ("*\r\n", "-ERR Authentication cancelled\r\n"),
        ("PASS secret\r\n", "-ERR Send USER first\r\n"),
    ]);
    assert!(talk.world.log.is_empty());
    talk.exchange(&[(PLAIN, "-ERR [AUTH] Wrong user name or password\r\n")]);
    talk.says([b"AUTH PLAIN\r\n".as_slice(), &b"A".repeat(2_000), b"\r\nUTF8\r\n"].concat());
    assert_eq!(talk.replies(), "+ \r\n-ERR Line too long\r\n+OK\r\n");
}

#[test]
fn lost_connection_abandons_the_login() {
    for command in [PLAIN, "AUTH PLAIN\r\n"] {
        let mut talk = Conversation::new();
        talk.login_answer = None;
        talk.says(command);
        talk.session.peer_closed(&mut talk.world);
        assert!(talk.world.closed);
        assert_eq!(talk.session.waits_for(), Pop3WaitsFor::Nothing);
    }
}
