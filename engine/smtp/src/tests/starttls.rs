//! Tests of STARTTLS: no plaintext state survives the handshake.

use machine::Micros;

use super::world::{Conversation, World};
use crate::{Session, SmtpTls, SmtpWaitsFor};

const START: &str = "220 2.0.0 Ready to start TLS\r\n";

fn talk_with(tls: SmtpTls) -> Conversation {
    let mut world = World::new();
    world.settings.tls = tls;
    Conversation::with(world)
}

/// The server does the handshake that the session asks for.
fn secure(talk: &mut Conversation) {
    assert_eq!(talk.session.waits_for(), SmtpWaitsFor::Handshake);
    talk.kept.clear();
    talk.world.settings.tls = SmtpTls::Spoken;
    talk.session = Session::secured(&mut talk.world);
    assert_eq!(talk.replies(), "", "a client is not greeted again after STARTTLS");
}

#[test]
fn starttls_is_announced_while_available_and_not_in_use() {
    for (tls, is_announced) in [
        (SmtpTls::Absent, false),
        (SmtpTls::Offered, true),
        (SmtpTls::Busy, true),
        (SmtpTls::Spoken, false),
    ] {
        let mut talk = talk_with(tls);
        talk.says("EHLO client.test\r\n");
        assert_eq!(talk.replies().contains("250-STARTTLS\r\n"), is_announced, "{tls:?}");
    }
}

#[test]
fn starttls_works_once_and_is_refused_if_impossible() {
    for (tls, reply) in [
        (SmtpTls::Absent, "502 5.5.1 Command not implemented\r\n"),
        (SmtpTls::Offered, START),
        (SmtpTls::Busy, "454 4.7.0 Too many TLS handshakes in progress, try again later\r\n"),
        (SmtpTls::Spoken, "503 5.5.1 TLS is already active\r\n"),
    ] {
        let mut talk = talk_with(tls);
        talk.exchange(&[
            ("STARTTLS now\r\n", "501 5.5.4 Invalid arguments\r\n"),
            ("starttls\r\n", reply),
        ]);
        let expected =
            if tls == SmtpTls::Offered { SmtpWaitsFor::Handshake } else { SmtpWaitsFor::Bytes };
        assert_eq!(talk.session.waits_for(), expected);
    }
}

#[test]
fn session_begins_again_under_tls() {
    let mut talk = talk_with(SmtpTls::Offered);
    talk.says("EHLO client.test\r\nMAIL FROM:<ada@example.org>\r\nRCPT TO:<bob@mail.test>\r\n");
    talk.replies();
    talk.exchange(&[("STARTTLS\r\n", START)]);
    assert!(talk.world.is_settled() && !talk.world.closed, "the transaction is over");
    secure(&mut talk);
    assert_eq!(talk.world.deadline, Some(Micros::from_secs(300)));
    talk.exchange(&[
        ("RCPT TO:<bob@mail.test>\r\n", "503 5.5.1 Send MAIL first\r\n"),
        ("MAIL FROM:<ada@example.org>\r\n", "503 5.5.1 Send EHLO or HELO first\r\n"),
        ("STARTTLS\r\n", "503 5.5.1 TLS is already active\r\n"),
    ]);
}

#[test]
fn starttls_drops_a_message_in_chunks() {
    let mut talk = talk_with(SmtpTls::Offered);
    talk.says("EHLO a\r\nMAIL FROM:<ada@example.org>\r\nRCPT TO:<bob@mail.test>\r\nBDAT 4\r\nhalf");
    talk.replies();
    talk.exchange(&[("STARTTLS\r\n", START)]);
    assert!(talk.world.is_settled() && talk.world.messages.is_empty());
}

#[test]
fn bytes_after_starttls_are_discarded() {
    const INJECTED: &str = "NOOP\r\nEHLO thief.test\r\nMAIL FROM:<thief@example.org>\r\nQUIT\r\n";
    for cut in 0..=INJECTED.len() {
        let mut talk = talk_with(SmtpTls::Offered);
        let (with_starttls, after_starttls) = INJECTED.split_at(cut);
        talk.says([b"STARTTLS\r\n", with_starttls.as_bytes()].concat());
        talk.says(after_starttls);
        assert_eq!(talk.replies(), START);
        assert!(talk.kept.is_empty() && !talk.world.closed, "all injected bytes are dropped");
        assert!(talk.world.log.is_empty());
        secure(&mut talk);
        talk.exchange(&[(
            "MAIL FROM:<ada@example.org>\r\n",
            "503 5.5.1 Send EHLO or HELO first\r\n",
        )]);
    }
}

#[test]
fn discarded_bytes_need_no_space_for_a_reply() {
    let mut talk = talk_with(SmtpTls::Offered);
    talk.world.send_room = crate::REPLY_BYTES_MAX;
    talk.send_room_step = 0;
    talk.says("STARTTLS\r\nNOOP\r\n");
    assert_eq!(talk.session.waits_for(), SmtpWaitsFor::Handshake);
    assert!(talk.kept.is_empty());
}

#[test]
fn nothing_is_sent_in_plaintext_after_starttls() {
    let mut talk = talk_with(SmtpTls::Offered);
    talk.exchange(&[("STARTTLS\r\n", START)]);
    talk.session.deadline_expired(&mut talk.world);
    talk.session.stopping(&mut talk.world);
    talk.session.peer_closed(&mut talk.world);
    assert_eq!(talk.replies(), "");
    assert!(talk.world.closed && talk.world.is_settled());
}
