//! Events that do not come from the client: deadlines, the stop of the server, the end of the
//! connection.

use std::format;

use machine::Micros;

use super::world::Conversation;
use crate::{Session, SmtpWaitsFor};

const TOO_SLOW: &str = "421 4.4.2 Timeout exceeded, closing connection\r\n";
const STOPPING: &str = "421 4.3.2 Server is shutting down, try again later\r\n";

#[test]
fn silent_client_is_disconnected() {
    for mut talk in [Conversation::new(), Conversation::greeted(), Conversation::addressed()] {
        assert_eq!(talk.world.deadline, Some(Micros::from_secs(300)));
        talk.session.deadline_expired(&mut talk.world);
        assert_eq!(talk.replies(), TOO_SLOW);
        assert!(talk.world.closed && talk.world.is_settled());
        talk.session.deadline_expired(&mut talk.world);
        talk.session.stopping(&mut talk.world);
        talk.session.peer_closed(&mut talk.world);
    }
}

#[test]
fn silent_client_loses_its_message() {
    for start in ["DATA\r\nhalf", "BDAT 10\r\nhalf", "BDAT 4\r\nhalf"] {
        let mut talk = Conversation::addressed();
        talk.says(start);
        talk.replies();
        assert_eq!(
            talk.world.deadline,
            Some(Micros::from_secs(if start.contains("4\r") { 300 } else { 180 }))
        );
        talk.session.deadline_expired(&mut talk.world);
        assert_eq!(talk.replies(), TOO_SLOW);
        assert!(talk.world.closed && talk.world.is_settled() && talk.world.messages.is_empty());
    }
}

#[test]
fn only_a_complete_command_renews_the_deadline() {
    let mut talk = Conversation::greeted();
    talk.world.deadline = Some(Micros(1));
    talk.says("NOO");
    assert_eq!(talk.world.deadline, Some(Micros(1)));
    talk.says("P\r\n");
    assert_eq!(talk.world.deadline, Some(Micros::from_secs(300)));
    talk.says("x".repeat(2_000));
    talk.world.deadline = Some(Micros(1));
    talk.says("x".repeat(2_000));
    assert_eq!(talk.world.deadline, Some(Micros(1)));
}

#[test]
fn deadline_stops_while_the_store_works() {
    let mut talk = Conversation::addressed();
    talk.store_answers = false;
    // After the end of the message, the host sets the deadline.
    talk.world.end_patience = Some(Micros(1));
    talk.says("DATA\r\n.\r\n");
    talk.replies();
    talk.says("NOOP\r\n");
    assert_eq!(talk.world.deadline, Some(Micros(1)));
    talk.session.deadline_expired(&mut talk.world);
    assert_eq!(talk.session.waits_for(), SmtpWaitsFor::Stored);
    talk.session.message_stored(Ok(b"1"), &mut talk.world);
    assert_eq!(talk.replies(), "250 2.0.0 Stored as 1\r\n");
    assert_eq!(talk.world.deadline, Some(Micros::from_secs(300)));
}

#[test]
fn stop_is_announced_at_once_between_commands() {
    for mut talk in [Conversation::new(), Conversation::greeted(), Conversation::addressed()] {
        talk.says("NOO");
        talk.session.stopping(&mut talk.world);
        assert_eq!(talk.replies(), STOPPING);
        assert!(talk.world.closed && talk.world.is_settled());
    }
}

#[test]
fn stopping_server_still_accepts_the_arriving_message() {
    let mut talk = Conversation::addressed();
    talk.says("DATA\r\nhalf");
    talk.replies();
    talk.session.stopping(&mut talk.world);
    talk.exchange(&[
        (" and half\r\n", ""),
        (
            ".\r\nNOOP\r\n",
            "250 2.0.0 Stored as 4D2\r\n421 4.3.2 Server is shutting down, try again later\r\n",
        ),
    ]);
    assert!(talk.world.closed && talk.world.messages == [b"half and half\r\n"]);
}

#[test]
fn stopping_server_still_answers_a_complete_message() {
    let mut talk = Conversation::addressed();
    talk.store_answers = false;
    talk.says("DATA\r\n.\r\n");
    talk.replies();
    talk.session.stopping(&mut talk.world);
    assert_eq!(talk.replies(), "");
    talk.session.message_stored(Ok(b"1"), &mut talk.world);
    assert_eq!(
        talk.replies(),
        "250 2.0.0 Stored as 1\r\n421 4.3.2 Server is shutting down, try again later\r\n"
    );
    assert!(talk.world.closed && talk.world.is_settled());
}

#[test]
fn stopping_server_ends_after_the_chunk() {
    let mut talk = Conversation::addressed();
    talk.says("BDAT 4\r\nha");
    talk.session.stopping(&mut talk.world);
    talk.exchange(&[(
        "lf",
        "250 2.0.0 Chunk received\r\n421 4.3.2 Server is shutting down, try again later\r\n",
    )]);
    assert!(talk.world.closed && talk.world.is_settled() && talk.world.messages.is_empty());
}

#[test]
fn lost_connection_leaves_nothing_open() {
    for start in [
        "",
        "NOO",
        "DATA\r\n",
        "DATA\r\nx",
        "BDAT 9\r\nx",
        "BDAT 1\r\nx",
        "DATA\r\nbare\n",
        "DATA\r\n.\r\n",
    ] {
        let mut talk = Conversation::addressed();
        talk.store_answers = false;
        talk.says(start);
        talk.replies();
        talk.session.peer_closed(&mut talk.world);
        assert!(talk.world.closed && talk.world.is_settled());
        assert_eq!(talk.replies(), "");
        talk.session.message_stored(Ok(b"1"), &mut talk.world);
        assert_eq!(talk.replies(), "");
        talk.session.peer_closed(&mut talk.world);
    }
}

#[test]
fn message_does_not_begin_before_its_sender_is_checked() {
    for (begin, reply) in [("DATA\r\n", "354 "), ("BDAT 7 LAST\r\nhello\r\n", "250 2.0.0 ")] {
        let mut talk = Conversation::greeted();
        talk.world.sender_is_unknown = true;
        talk.exchange(&[("DATA\r\n", "503 5.5.1 Send MAIL first\r\n")]);
        talk.says("MAIL FROM:<ada@example.org>\r\nDATA\r\n");
        assert!(talk.replies().ends_with("554 5.5.1 No valid recipients\r\n"));
        talk.says(format!("RCPT TO:<bob@mail.test>\r\n{begin}"));
        assert_eq!(talk.replies(), "250 2.1.5 Recipient OK\r\n");
        assert_eq!((talk.session.waits_for(), talk.world.deadline), (SmtpWaitsFor::Sender, None));
        talk.says("");
        talk.session.message_room(&mut talk.world);
        talk.session.sender_known(&mut talk.world);
        talk.says("");
        assert_eq!(talk.session.waits_for(), SmtpWaitsFor::Sender, "not yet");
        let checks = talk.world.log.iter().filter(|line| *line == "who is client.test").count();
        assert_eq!((checks, talk.replies().as_str()), (2, ""));
        talk.world.sender_is_unknown = false;
        talk.session.sender_known(&mut talk.world);
        assert_eq!(talk.world.deadline, Some(Micros::from_secs(300)));
        talk.says("");
        let replies = talk.replies();
        assert!(replies.starts_with(reply), "{replies}");
    }
}

#[test]
fn recipient_is_not_answered_before_it_is_checked() {
    let mut talk = Conversation::greeted();
    talk.world.recipient_is_unknown = true;
    talk.exchange(&[("RCPT TO:<bob@mail.test>\r\n", "503 5.5.1 Send MAIL first\r\n")]);
    talk.says("MAIL FROM:<ada@example.org>\r\nRCPT TO:<bob@mail.test>\r\nRCPT TO:<eve@mail.test>\r\nNOOP\r\n");
    assert_eq!(talk.replies(), "250 2.1.0 Sender OK\r\n");
    assert_eq!(talk.session.waits_for(), SmtpWaitsFor::Sender);
    talk.session.sender_known(&mut talk.world);
    talk.says("");
    assert_eq!(
        (talk.session.waits_for(), talk.replies().as_str()),
        (SmtpWaitsFor::Sender, ""),
        "not yet"
    );
    let checks = |talk: &Conversation| {
        talk.world.log.iter().filter(|line| line.starts_with("who is <")).count()
    };
    assert_eq!(checks(&talk), 2);
    talk.world.recipient_is_unknown = false;
    talk.session.sender_known(&mut talk.world);
    talk.says("");
    assert_eq!(
        talk.replies(),
        "250 2.1.5 Recipient OK\r\n250 2.1.5 Recipient OK\r\n250 2.0.0 OK\r\n"
    );
    for end in [Session::stopping, Session::peer_closed, Session::deadline_expired] {
        let mut talk = Conversation::addressed();
        talk.world.recipient_is_unknown = true;
        talk.says("RCPT TO:<eve@mail.test>\r\n");
        end(&mut talk.session, &mut talk.world);
        assert!(talk.world.closed && talk.world.is_settled());
        talk.session.sender_known(&mut talk.world);
    }
}

/// If refused recipients were checked, a client could cause any number of checks, and no limit
/// would count them.
#[test]
fn refused_recipient_is_not_checked() {
    let mut talk = Conversation::greeted();
    talk.says("MAIL FROM:<ada@example.org>\r\n");
    (0..3).for_each(|_| talk.says("RCPT TO:<bob@mail.test>\r\n"));
    talk.replies();
    talk.world.recipient_is_unknown = true;
    talk.exchange(&[
        ("RCPT TO:<eve@mail.test>\r\n", "452 4.5.3 Too many recipients\r\n"),
        ("RSET\r\n", "250 2.0.0 OK\r\n"),
        ("MAIL FROM:<ada@example.org>\r\n", "250 2.1.0 Sender OK\r\n"),
        ("RCPT TO:<\u{e4}@mail.test>\r\n", "553 5.6.7 Non-ASCII address requires SMTPUTF8\r\n"),
    ]);
    assert_eq!(talk.session.waits_for(), SmtpWaitsFor::Bytes);
}

#[test]
fn session_that_ends_during_a_sender_check_leaves_nothing() {
    for end in [Session::stopping, Session::peer_closed, Session::deadline_expired] {
        let mut talk = Conversation::addressed();
        talk.world.sender_is_unknown = true;
        talk.says("DATA\r\n");
        end(&mut talk.session, &mut talk.world);
        assert!(talk.world.closed && talk.world.is_settled());
        talk.session.sender_known(&mut talk.world);
    }
}
