//! Tests of STLS: no plaintext state survives the handshake.

use machine::Micros;

use super::world::{Conversation, World};
use crate::{PlainLogin, Pop3Tls, Pop3WaitsFor, Session};

const START: &str = "+OK Begin TLS negotiation\r\n";

fn talk_with(tls: Pop3Tls, plain_login: PlainLogin) -> Conversation {
    let mut world = World::new();
    world.settings.tls = tls;
    world.settings.plain_login = plain_login;
    Conversation::with(world)
}

/// The server does the handshake that the session asks for.
fn secure(talk: &mut Conversation) {
    assert_eq!(talk.session.waits_for(), Pop3WaitsFor::Handshake);
    talk.kept.clear();
    talk.world.settings.tls = Pop3Tls::Spoken;
    talk.world.settings.plain_login = PlainLogin::Offered;
    talk.session = Session::secured(&mut talk.world);
    assert_eq!(talk.replies(), "", "there is no second greeting");
}

#[test]
fn stls_is_announced_while_available_and_not_in_use() {
    for (tls, is_announced) in [
        (Pop3Tls::Absent, false),
        (Pop3Tls::Offered, true),
        (Pop3Tls::Busy, true),
        (Pop3Tls::Spoken, false),
    ] {
        let mut talk = talk_with(tls, PlainLogin::Refused);
        talk.says("CAPA\r\n");
        assert_eq!(talk.replies().contains("\r\nSTLS\r\n"), is_announced, "{tls:?}");
    }
}

#[test]
fn stls_is_accepted_once_before_the_login_if_available() {
    for (tls, reply) in [
        (Pop3Tls::Absent, "-ERR Unknown command\r\n"),
        (Pop3Tls::Offered, START),
        (Pop3Tls::Busy, "-ERR [SYS/TEMP] Too many TLS handshakes in progress, try again later\r\n"),
        (Pop3Tls::Spoken, "-ERR TLS is already active\r\n"),
    ] {
        let mut talk = talk_with(tls, PlainLogin::Refused);
        talk.exchange(&[("STLS now\r\n", "-ERR Invalid arguments\r\n"), ("stls\r\n", reply)]);
        let expected =
            if tls == Pop3Tls::Offered { Pop3WaitsFor::Handshake } else { Pop3WaitsFor::Bytes };
        assert_eq!(talk.session.waits_for(), expected);
    }
    let mut talk = talk_with(Pop3Tls::Offered, PlainLogin::Offered);
    talk.says("USER ada\r\nPASS secret\r\n");
    talk.replies();
    talk.exchange(&[("STLS\r\n", "-ERR Already logged in\r\n"), ("STAT\r\n", "+OK 3 43\r\n")]);
}

#[test]
fn session_state_is_reset_by_stls() {
    let mut talk = talk_with(Pop3Tls::Offered, PlainLogin::Offered);
    talk.exchange(&[("USER thief\r\n", "+OK Send PASS\r\n"), ("STLS\r\n", START)]);
    secure(&mut talk);
    assert_eq!(talk.world.deadline, Some(Micros::from_secs(600)));
    talk.exchange(&[
        ("PASS secret\r\n", "-ERR Send USER first\r\n"),
        ("STLS\r\n", "-ERR TLS is already active\r\n"),
        ("USER ada\r\n", "+OK Send PASS\r\n"),
        ("PASS secret\r\n", "+OK 3 messages\r\n"),
    ]);
}

#[test]
fn commands_injected_after_stls_are_dropped() {
    const INJECTED: &str = "NOOP\r\nUSER thief\r\nPASS secret\r\nQUIT\r\n";
    for cut in 0..=INJECTED.len() {
        let mut talk = talk_with(Pop3Tls::Offered, PlainLogin::Offered);
        let (with_stls, after_stls) = INJECTED.split_at(cut);
        talk.says([b"STLS\r\n", with_stls.as_bytes()].concat());
        talk.says(after_stls);
        assert_eq!(talk.replies(), START);
        assert!(talk.kept.is_empty() && !talk.world.closed, "all of it is dropped");
        assert!(talk.world.log.is_empty());
        secure(&mut talk);
        talk.exchange(&[("PASS secret\r\n", "-ERR Send USER first\r\n")]);
    }
}

#[test]
fn nothing_is_sent_in_plaintext_after_stls() {
    let mut talk = talk_with(Pop3Tls::Offered, PlainLogin::Offered);
    talk.exchange(&[("STLS\r\n", START)]);
    talk.session.stopping(&mut talk.world);
    talk.session.deadline_expired(&mut talk.world);
    assert_eq!(talk.replies(), "");
    assert!(talk.world.closed);
}
