//! Tests of logins.

use std::string::ToString;

use super::world::{Conversation, World};
use crate::{LINE_BYTES_MAX, LoginRefusal, PlainLogin, Pop3WaitsFor, REPLY_BYTES_MAX};

const WRONG: &str = "-ERR [AUTH] Wrong user name or password\r\n";

#[test]
fn login_opens_the_maildrop() {
    let mut talk = Conversation::new();
    talk.exchange(&[
        ("USER ada@barepost.test\r\n", "+OK Send PASS\r\n"),
        ("PASS two  words \r\n", "+OK 3 messages\r\n"),
        ("STAT\r\n", "+OK 3 43\r\n"),
        ("QUIT\r\n", "+OK Bye\r\n"),
    ]);
    assert_eq!(talk.world.log, ["login \"ada@barepost.test\" \"two  words \""]);
    assert!(talk.world.closed && !talk.world.maildrop_open);
}

#[test]
fn capa_lists_the_available_capabilities() {
    const COMMON: &str = "RESP-CODES\r\nAUTH-RESP-CODE\r\nPIPELINING\r\nEXPIRE NEVER\r\nIMPLEMENTATION Barepost\r\n.\r\n";
    let offered = "+OK Capabilities follow\r\nTOP\r\nUIDL\r\nUSER\r\nUTF8 USER\r\nSASL SCRAM-SHA-256 PLAIN LOGIN\r\n"
        .to_string()
        + COMMON;
    assert!(offered.len() <= REPLY_BYTES_MAX);
    Conversation::new().exchange(&[("CAPA\r\n", &offered)]);
    Conversation::logged_in().exchange(&[("capa\r\n", &offered)]);
    let mut world = World::new();
    world.settings.plain_login = PlainLogin::Refused;
    let refused = "+OK Capabilities follow\r\nTOP\r\nUIDL\r\nUTF8\r\n".to_string() + COMMON;
    Conversation::with(world).exchange(&[("CAPA\r\n", &refused)]);
}

#[test]
fn plaintext_password_is_refused_where_it_is_not_safe() {
    let mut world = World::new();
    world.settings.plain_login = PlainLogin::Refused;
    let mut talk = Conversation::with(world);
    const REFUSED: &str = "-ERR Login without encryption is not allowed\r\n";
    talk.exchange(&[
        ("USER ada\r\n", REFUSED),
        ("PASS secret\r\n", REFUSED),
        ("AUTH PLAIN\r\n", REFUSED),
    ]);
    assert!(talk.world.log.is_empty());
}

#[test]
fn maildrop_commands_require_a_login() {
    let mut talk = Conversation::new();
    for command in
        ["STAT", "LIST", "LIST 1", "UIDL", "UIDL 1", "RETR 1", "TOP 1 0", "DELE 1", "NOOP", "RSET"]
    {
        talk.exchange(&[(&(command.to_string() + "\r\n"), "-ERR Log in first\r\n")]);
    }
    talk.exchange(&[("QUIT\r\n", "+OK Bye\r\n")]);
    assert!(talk.world.closed);
}

#[test]
fn pass_requires_user() {
    let mut talk = Conversation::new();
    talk.login_answer = Some(Err(LoginRefusal::Credentials));
    talk.exchange(&[
        ("PASS secret\r\n", "-ERR Send USER first\r\n"),
        ("USER\r\n", "-ERR Invalid arguments\r\n"),
        ("USER \r\n", "-ERR Invalid arguments\r\n"),
        ("USER a\0b\r\n", "-ERR Invalid arguments\r\n"),
        ("USER ada\r\n", "+OK Send PASS\r\n"),
        ("PASS\r\n", "-ERR Invalid arguments\r\n"),
        ("USER bob\r\n", "+OK Send PASS\r\n"),
        ("PASS \r\n", WRONG),
        ("PASS secret\r\n", "-ERR Send USER first\r\n"),
    ]);
    assert_eq!(talk.world.log, ["login \"bob\" \"\""]);
    talk.says(b"USER \xff\r\n");
    assert_eq!(talk.replies(), "-ERR Invalid arguments\r\n");
}

#[test]
fn user_and_password_may_be_utf_8() {
    let mut talk = Conversation::new();
    talk.exchange(&[
        ("UTF8\r\n", "+OK\r\n"),
        ("USER m\u{fc}ller\r\n", "+OK Send PASS\r\n"),
        ("PASS gr\u{fc}n\r\n", "+OK 3 messages\r\n"),
        ("UTF8\r\n", "-ERR Already logged in\r\n"),
    ]);
    assert_eq!(talk.world.log, ["login \"m\u{fc}ller\" \"gr\u{fc}n\""]);
}

#[test]
fn refusals_have_reasons_and_wrong_passwords_are_counted() {
    let mut talk = Conversation::new();
    let mut attempt = |refusal, reply| {
        talk.login_answer = Some(Err(refusal));
        talk.says("USER ada\r\nPASS x\r\n");
        assert_eq!(talk.replies(), "+OK Send PASS\r\n".to_string() + reply);
        talk.world.closed
    };
    for _ in 0..5 {
        assert!(!attempt(
            LoginRefusal::InUse,
            "-ERR [IN-USE] Mailbox is in use by another session\r\n"
        ));
        assert!(!attempt(
            LoginRefusal::TryLater,
            "-ERR [SYS/TEMP] Temporary authentication failure, try again later\r\n"
        ));
    }
    assert!(!attempt(LoginRefusal::Credentials, WRONG));
    assert!(!attempt(LoginRefusal::Credentials, WRONG));
    assert!(attempt(LoginRefusal::Credentials, WRONG));
}

#[test]
fn no_command_is_taken_while_a_password_is_checked() {
    let mut talk = Conversation::new();
    talk.login_answer = None;
    talk.says("USER ada\r\nPASS x\r\nSTAT\r\n");
    assert_eq!(talk.replies(), "+OK Send PASS\r\n");
    assert_eq!(
        (talk.kept.as_slice(), talk.session.waits_for()),
        (&b"STAT\r\n"[..], Pop3WaitsFor::Login)
    );
    talk.login_answer = Some(Ok(()));
    talk.exchange(&[("", "+OK 3 messages\r\n+OK 3 43\r\n")]);
    talk.session.login_answered(Err(LoginRefusal::InUse), &mut talk.world);
    assert_eq!(talk.replies(), "");
}

#[test]
fn login_commands_are_refused_after_the_login() {
    let mut talk = Conversation::logged_in();
    talk.exchange(&[
        ("USER bob\r\n", "-ERR Already logged in\r\n"),
        ("PASS x\r\n", "-ERR Already logged in\r\n"),
        ("APOP ada c4c9334bac560ecc979e58001b3e22fb\r\n", "-ERR Unknown command\r\n"),
    ]);
}

#[test]
fn too_many_faults_end_the_session_and_a_login_resets_them() {
    let mut talk = Conversation::new();
    for _ in 0..20 {
        talk.exchange(&[("XYZZY\r\n", "-ERR Unknown command\r\n")]);
    }
    talk.exchange(&[("USER ada\r\n", "+OK Send PASS\r\n"), ("PASS x\r\n", "+OK 3 messages\r\n")]);
    for _ in 0..20 {
        talk.exchange(&[("XYZZY\r\n", "-ERR Unknown command\r\n")]);
    }
    talk.exchange(&[("XYZZY\r\nSTAT\r\n", "-ERR Too many errors\r\n")]);
    assert!(talk.world.closed && talk.kept.is_empty());
}

#[test]
fn commands_before_the_login_are_limited() {
    for command in ["CAPA\r\n", "UTF8\r\n", "USER ada\r\n"] {
        let mut talk = Conversation::new();
        talk.world.settings.commands_before_login_max = 5;
        for _ in 0..5 {
            talk.says(command);
            assert!(!talk.replies().contains("-ERR"), "{command}");
        }
        talk.exchange(&[(command, "-ERR Too many commands without a login\r\n"), (command, "")]);
        assert!(talk.world.closed && talk.kept.is_empty());
    }
    let mut talk = Conversation::logged_in();
    talk.world.settings.commands_before_login_max = 3;
    for _ in 0..20 {
        talk.exchange(&[("NOOP\r\n", "+OK\r\n")]);
    }
}

#[test]
fn command_line_length_is_limited() {
    let password = "p".repeat(LINE_BYTES_MAX - 7);
    let mut talk = Conversation::new();
    talk.exchange(&[("USER ada\r\n", "+OK Send PASS\r\n")]);
    talk.exchange(&[(&std::format!("PASS {password}\r\n"), "+OK 3 messages\r\n")]);
    let endless = "x".repeat(5_000);
    talk.exchange(&[
        (&endless, ""),
        (&endless, ""),
        ("\r\nSTAT\r\n", "-ERR Line too long\r\n+OK 3 43\r\n"),
    ]);
    assert!(talk.kept.is_empty());
}

#[test]
fn bare_lf_and_extra_spaces_are_accepted() {
    Conversation::logged_in().exchange(&[
        ("stat\n", "+OK 3 43\r\n"),
        ("LIST  1  \n", "+OK 1 19\r\n"),
        ("\n", "-ERR Unknown command\r\n"),
    ]);
}
