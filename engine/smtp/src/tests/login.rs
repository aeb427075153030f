//! Tests of AUTH.

use std::format;
use std::string::ToString;

use machine::Micros;

use super::world::{Conversation, World};
use crate::{AuthRefusal, LoginPolicy, SenderRefusal, Session, SmtpTls, SmtpWaitsFor};

const IN: &str = "235 2.7.0 Authentication successful\r\n";
const WRONG: &str = "535 5.7.8 Wrong user name or password\r\n";
const GIVEN_UP: &str = "501 5.7.0 Authentication cancelled\r\n";
const MALFORMED: &str = "501 5.5.2 Invalid authentication response\r\n";
/// NUL, `ada`, NUL, `secret`.
const PLAIN: &str = "AUTH PLAIN AGFkYQBzZWNyZXQ=\r\n";

/// A client that has greeted.
fn talk_with(login: LoginPolicy, tls: SmtpTls) -> Conversation {
    let mut world = World::new();
    world.settings.login = login;
    world.settings.tls = tls;
    let mut talk = Conversation::with(world);
    talk.says("EHLO client.test\r\n");
    talk.replies();
    talk
}

fn talk() -> Conversation {
    talk_with(LoginPolicy::Required, SmtpTls::Spoken)
}

#[test]
fn auth_is_announced_where_it_is_possible() {
    for (login, is_announced) in [
        (LoginPolicy::Absent, false),
        (LoginPolicy::AfterTls, false),
        (LoginPolicy::Required, true),
    ] {
        let mut talk = talk_with(login, SmtpTls::Offered);
        talk.says("EHLO client.test\r\n");
        assert_eq!(
            talk.replies().contains("250-AUTH SCRAM-SHA-256 PLAIN LOGIN\r\n"),
            is_announced,
            "{login:?}"
        );
    }
}

#[test]
fn auth_plain_and_login_accept_every_client_form() {
    for lines in [
        &[(PLAIN, IN)][..],
        &[("auth plain\r\n", "334 \r\n"), ("AGFkYQBzZWNyZXQ=\r\n", IN)],
        &[
            ("AUTH LOGIN\r\n", "334 VXNlcm5hbWU6\r\n"),
            ("YWRh\r\n", "334 UGFzc3dvcmQ6\r\n"),
            ("c2VjcmV0\r\n", IN),
        ],
        &[("AUTH LOGIN YWRh\r\n", "334 UGFzc3dvcmQ6\r\n"), ("c2VjcmV0\r\n", IN)],
        &[("AUTH PLAIN \r\n", "334 \r\n"), ("AGFkYQBzZWNyZXQ= \r\n", IN)],
        &[("AUTH  PLAIN AGFkYQBzZWNyZXQ= \r\n", IN)],
        &[
            ("AUTH LOGIN \r\n", "334 VXNlcm5hbWU6\r\n"),
            ("YWRh \r\n", "334 UGFzc3dvcmQ6\r\n"),
            ("c2VjcmV0 \t\r\n", IN),
        ],
        &[("AUTH LOGIN YWRh \r\n", "334 UGFzc3dvcmQ6\r\n"), ("c2VjcmV0\r\n", IN)],
        &[(PLAIN, IN), ("MAIL FROM:<ada@mail.test> AUTH=<>\r\n", "250 2.1.0 Sender OK\r\n")],
    ] {
        let mut talk = talk();
        talk.exchange(lines);
        assert_eq!(talk.world.log[0], "login \"ada\" \"secret\"");
        assert_eq!(talk.world.deadline, Some(Micros::from_secs(300)));
    }
}

#[test]
fn mail_requires_a_login() {
    let mut talk = talk();
    talk.exchange(&[
        ("MAIL FROM:<ada@mail.test>\r\n", "530 5.7.0 Authentication required\r\n"),
        ("RCPT TO:<bob@mail.test>\r\n", "503 5.5.1 Send MAIL first\r\n"),
        ("DATA\r\n", "503 5.5.1 Send MAIL first\r\n"),
        (PLAIN, IN),
    ]);
    talk.says("EHLO again.test\r\nRSET\r\n");
    talk.replies();
    talk.exchange(&[("MAIL FROM:<ada@mail.test>\r\n", "250 2.1.0 Sender OK\r\n")]);
    let mut talk = talk_with(LoginPolicy::AfterTls, SmtpTls::Offered);
    talk.exchange(&[(
        "MAIL FROM:<ada@mail.test>\r\n",
        "530 5.7.0 Encryption required, send STARTTLS first\r\n",
    )]);
}

#[test]
fn changed_password_ends_a_logged_in_session() {
    const OVER: &str = "421 4.7.0 Your password has changed, log in again\r\n";
    let begun = "MAIL FROM:<ada@mail.test>\r\nRCPT TO:<bob@mail.test>\r\n";
    for input in
        ["", "NOO", begun, "DATA\r\nhalf", "BDAT 4\r\nha", "BDAT 4\r\nhalf", "AUTH LOGIN\r\n"]
    {
        let mut talk = talk();
        talk.exchange(&[(PLAIN, IN)]);
        talk.says(begun);
        talk.says(input);
        talk.replies();
        talk.session.password_changed(&mut talk.world);
        assert_eq!(talk.replies(), OVER, "{input}");
        assert!(talk.world.closed && talk.world.is_settled() && talk.world.messages.is_empty());
        talk.session.password_changed(&mut talk.world);
        assert_eq!(talk.replies(), "");
    }
    let mut talk = talk();
    talk.exchange(&[(PLAIN, IN)]);
    talk.store_answers = false;
    talk.says(begun);
    talk.says("DATA\r\n.\r\n");
    talk.replies();
    talk.session.password_changed(&mut talk.world);
    assert_eq!(talk.replies(), "", "a whole message is answered first");
    talk.session.message_stored(Ok(b"1"), &mut talk.world);
    assert_eq!(talk.replies(), format!("250 2.0.0 Stored as 1\r\n{OVER}"));
    assert!(talk.world.closed);
}

#[test]
fn changed_password_keeps_a_session_without_login() {
    for input in ["", "NOO", "AUTH LOGIN\r\n", PLAIN] {
        let mut talk = talk();
        talk.login_answer = None;
        talk.says(input);
        talk.replies();
        talk.session.password_changed(&mut talk.world);
        assert!(talk.replies().is_empty() && !talk.world.closed, "{input}");
    }
}

#[test]
fn commands_are_not_limited_after_the_login() {
    let mut talk = talk();
    talk.world.settings.idle_commands_max = 3;
    talk.exchange(&[("NOOP\r\n", "250 2.0.0 OK\r\n"), (PLAIN, IN)]);
    for _ in 0..20 {
        talk.exchange(&[("NOOP\r\n", "250 2.0.0 OK\r\n")]);
    }
}

#[test]
fn password_is_not_accepted_in_plain_text() {
    let mut talk = talk_with(LoginPolicy::AfterTls, SmtpTls::Offered);
    let refused = "538 5.7.11 Encryption required for authentication, send STARTTLS first\r\n";
    talk.exchange(&[(PLAIN, refused), ("AUTH LOGIN\r\n", refused), ("AUTH CRAM-MD5\r\n", refused)]);
    assert!(talk.world.log.is_empty());
}

#[test]
fn login_in_the_clear_is_forgotten_under_tls() {
    let mut talk = talk_with(LoginPolicy::Required, SmtpTls::Offered);
    talk.exchange(&[(PLAIN, IN), ("STARTTLS\r\n", "220 2.0.0 Ready to start TLS\r\n")]);
    talk.world.settings.tls = SmtpTls::Spoken;
    talk.session = Session::secured(&mut talk.world);
    talk.says("EHLO client.test\r\n");
    talk.replies();
    talk.exchange(&[("MAIL FROM:<ada@mail.test>\r\n", "530 5.7.0 Authentication required\r\n")]);
}

#[test]
fn auth_is_allowed_once_and_outside_transactions() {
    let mut talk = Conversation::new();
    talk.world.settings.login = LoginPolicy::Required;
    talk.exchange(&[(PLAIN, "503 5.5.1 Send EHLO or HELO first\r\n")]);
    let mut talk = self::talk();
    talk.exchange(&[(PLAIN, IN), (PLAIN, "503 5.5.1 Already authenticated\r\n")]);
    talk.exchange(&[("MAIL FROM:<ada@mail.test>\r\n", "250 2.1.0 Sender OK\r\n")]);
    talk.exchange(&[("AUTH LOGIN\r\n", "503 5.5.1 Already authenticated\r\n")]);
    let mut talk = talk_with(LoginPolicy::Absent, SmtpTls::Spoken);
    talk.exchange(&[
        ("MAIL FROM:<ada@mail.test>\r\n", "250 2.1.0 Sender OK\r\n"),
        (PLAIN, "502 5.5.1 Command not implemented\r\n"),
    ]);
    talk.world.settings.login = LoginPolicy::Required;
    talk.exchange(&[(PLAIN, "503 5.5.1 AUTH is not allowed during a mail transaction\r\n")]);
}

#[test]
fn auth_response_length_is_limited() {
    let longest = "AGFhAHBw".to_string() + &"cHBw".repeat(254);
    assert_eq!(longest.len() + 2, crate::RESPONSE_LINE_BYTES_MAX);
    let mut talk = talk();
    talk.exchange(&[
        ("AUTH PLAIN\r\n", "334 \r\n"),
        (&format!("{longest}cA==\r\n"), "500 5.5.2 Line too long\r\n"),
    ]);
    assert!(talk.world.log.is_empty());
    talk.exchange(&[("AUTH PLAIN\r\n", "334 \r\n"), (&format!("{longest}\r\n"), IN)]);
    assert_eq!(talk.world.log, [format!("login \"aa\" {:?}", "p".repeat(764))]);
}

#[test]
fn malformed_auth_is_refused_and_the_session_goes_on() {
    let mut talk = talk();
    talk.exchange(&[
        ("AUTH\r\n", "501 5.5.4 Invalid arguments\r\n"),
        (
            "AUTH CRAM-MD5\r\n",
            "504 5.5.4 Unknown authentication mechanism; the reply to EHLO lists those supported\r\n",
        ),
        ("AUTH PLAIN =\r\n", MALFORMED),
        ("AUTH PLAIN *\r\n", MALFORMED),
        ("AUTH PLAIN\r\n", "334 \r\n"),
        ("*\r\n", GIVEN_UP),
        ("AUTH PLAIN\r\n", "334 \r\n"),
        ("NOOP\r\n", MALFORMED),
        ("AUTH PLAIN\r\n", "334 \r\n"),
        ("\r\n", MALFORMED),
        ("AUTH LOGIN\r\n", "334 VXNlcm5hbWU6\r\n"),
        ("YWRh\r\n", "334 UGFzc3dvcmQ6\r\n"),
        ("*\r\n", GIVEN_UP),
        ("AUTH LOGIN\r\n", "334 VXNlcm5hbWU6\r\n"),
        ("YWRh!\r\n", MALFORMED),
        // Ada logs in on behalf of Bob, which is not supported.
        ("AUTH PLAIN Ym9iAGFkYQBzZWNyZXQ=\r\n", WRONG),
        ("NOOP\r\n", "250 2.0.0 OK\r\n"),
    ]);
    talk.says("AUTH PLAIN\r\n");
    talk.replies();
    talk.says([b"A".repeat(3_000).as_slice(), b"\r\nNOOP\r\n"].concat());
    assert_eq!(talk.replies(), "500 5.5.2 Line too long\r\n250 2.0.0 OK\r\n");
    assert!(talk.world.log.is_empty());
}

#[test]
fn third_failed_login_ends_the_session() {
    let mut talk = talk();
    talk.login_answer = Some(Err(AuthRefusal::TryLater));
    talk.exchange(&[(PLAIN, "454 4.7.0 Temporary authentication failure, try again later\r\n"); 5]);
    talk.login_answer = Some(Err(AuthRefusal::Credentials));
    talk.exchange(&[(PLAIN, WRONG), ("NOOP\r\n", "250 2.0.0 OK\r\n"), (PLAIN, WRONG)]);
    talk.says(PLAIN);
    assert_eq!(talk.replies(), [WRONG, "421 4.7.0 Too many errors\r\n"].concat());
    assert!(talk.world.closed && talk.world.is_settled());
}

#[test]
fn no_input_and_no_deadline_while_a_login_is_checked() {
    let mut talk = talk();
    talk.login_answer = None;
    talk.says([PLAIN, "MAIL FROM:<ada@mail.test>\r\n"].concat());
    assert_eq!((talk.session.waits_for(), talk.world.deadline), (SmtpWaitsFor::Login, None));
    assert_eq!(talk.kept, b"MAIL FROM:<ada@mail.test>\r\n");
    talk.session.deadline_expired(&mut talk.world);
    assert_eq!(talk.replies(), "");
    talk.login_answer = Some(Ok(()));
    talk.says("");
    assert_eq!(talk.replies(), [IN, "250 2.1.0 Sender OK\r\n"].concat());
}

#[test]
fn stopping_server_answers_login_and_lost_client_ends_it() {
    let mut talk = talk();
    talk.login_answer = None;
    talk.says(PLAIN);
    talk.session.stopping(&mut talk.world);
    assert_eq!(talk.replies(), "");
    talk.login_answer = Some(Ok(()));
    talk.says("");
    assert_eq!(
        talk.replies(),
        [IN, "421 4.3.2 Server is shutting down, try again later\r\n"].concat()
    );
    let mut talk = self::talk();
    talk.login_answer = None;
    talk.says(PLAIN);
    talk.session.peer_closed(&mut talk.world);
    assert!(talk.world.closed && talk.world.is_settled());
    talk.session.login_answered(Ok(None), &mut talk.world);
    assert_eq!(talk.replies(), "");
    let mut talk = self::talk();
    talk.says("AUTH LOGIN\r\n");
    talk.replies();
    talk.session.stopping(&mut talk.world);
    assert_eq!(talk.replies(), "421 4.3.2 Server is shutting down, try again later\r\n");
}

#[test]
fn sender_of_another_account_is_refused() {
    let mut talk = talk();
    talk.world.sender_refusal = Some(SenderRefusal::NotTheirs);
    talk.exchange(&[
        (PLAIN, IN),
        (
            "MAIL FROM:<bob@mail.test>\r\n",
            "553 5.7.1 Sender address rejected: not owned by the logged-in user\r\n",
        ),
    ]);
}
