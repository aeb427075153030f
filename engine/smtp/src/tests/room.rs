//! Tests of pipelining and of little buffer space: the replies depend neither on the pieces of the
//! input nor on the space.

use std::string::String;
use std::vec::Vec;

use super::world::{Conversation, World};
use crate::{MessageRefusal, REPLY_BYTES_MAX, SmtpWaitsFor};

const DIALOGUE: &str = "EHLO client.test\r\nMAIL FROM:<ada@example.org> SIZE=30\r\nRCPT TO:<bob@mail.test>\r\n\
    RCPT TO:<nobody@mail.test>\r\nDATA\r\nSubject: x\r\n\r\n..dot\r\nend\r\n.\r\nNOOP\r\nMAIL FROM:<>\r\n\
    RCPT TO:<Postmaster>\r\nBDAT 7\r\nQUIT\r\n.BDAT 2 LAST\r\n\r\nXYZZY\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n\
    bare\n.\r\n.\r\nRSET\r\nVRFY x\r\nQUIT\r\nNOOP\r\n";

const REPLIES: &str = "250-mail.test\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250-ENHANCEDSTATUSCODES\r\n\
    250-CHUNKING\r\n250-DSN\r\n250-SIZE 1000\r\n250-LIMITS RCPTMAX=3\r\n250 HELP\r\n250 2.1.0 Sender OK\r\n\
    250 2.1.5 Recipient OK\r\n550 5.1.1 No such user here\r\n354 End data with <CR><LF>.<CR><LF>\r\n\
    250 2.0.0 Stored as 4D2\r\n250 2.0.0 OK\r\n250 2.1.0 Sender OK\r\n250 2.1.5 Recipient OK\r\n\
    250 2.0.0 Chunk received\r\n250 2.0.0 Stored as 4D2\r\n500 5.5.1 Unknown command\r\n250 2.1.0 Sender OK\r\n\
    250 2.1.5 Recipient OK\r\n354 End data with <CR><LF>.<CR><LF>\r\n\
    554 5.6.0 Message contains a bare CR or LF; lines must end with CRLF\r\n250 2.0.0 OK\r\n\
    252 2.5.0 Cannot verify the user, but will accept the message and try to deliver it\r\n221 2.0.0 Bye\r\n";

fn outcome(mut talk: Conversation, pieces: &[&[u8]]) -> (String, Vec<Vec<u8>>, Vec<String>) {
    for piece in pieces {
        talk.says(piece);
    }
    assert!(talk.world.closed && talk.world.is_settled() && talk.kept.is_empty());
    assert_eq!(talk.session.waits_for(), SmtpWaitsFor::Nothing);
    (talk.replies(), talk.world.messages, talk.world.log)
}

#[test]
fn dialogue_does_not_depend_on_its_pieces() {
    let sent = DIALOGUE.as_bytes();
    let whole = outcome(Conversation::new(), &[sent]);
    assert_eq!(whole.0, REPLIES);
    assert_eq!(whole.1, [b"Subject: x\r\n\r\n.dot\r\nend\r\n".to_vec(), b"QUIT\r\n.\r\n".to_vec()]);
    for cut in 0..=sent.len() {
        assert_eq!(
            outcome(Conversation::new(), &[&sent[..cut], &sent[cut..]]),
            whole,
            "cut at {cut}"
        );
    }
    let bytes: Vec<&[u8]> = sent.chunks(1).collect();
    assert_eq!(outcome(Conversation::new(), &bytes), whole);
}

#[test]
fn dialogue_does_not_depend_on_buffer_space() {
    let whole = outcome(Conversation::new(), &[DIALOGUE.as_bytes()]);
    for (send_room, message_room) in
        [(1, 1), (100, 2), (REPLY_BYTES_MAX, 3), (7, usize::MAX), (usize::MAX, 1)]
    {
        let mut world = World::new();
        world.send_room = 0;
        world.message_room = 0;
        let mut talk = Conversation::with(world);
        talk.send_room_step = send_room;
        talk.message_room_step = message_room;
        assert_eq!(outcome(talk, &[DIALOGUE.as_bytes()]), whole, "{send_room} {message_room}");
    }
}

#[test]
fn no_command_is_handled_without_space_for_a_reply() {
    let mut talk = Conversation::greeted();
    talk.send_room_step = 0;
    talk.world.send_room = REPLY_BYTES_MAX - 1;
    talk.says("NOOP\r\n");
    assert_eq!((talk.replies().as_str(), talk.session.waits_for()), ("", SmtpWaitsFor::SendRoom));
    assert_eq!(talk.kept, b"NOOP\r\n");
    talk.world.send_room = REPLY_BYTES_MAX;
    talk.says("NOOP\r\n");
    assert_eq!(
        (talk.replies().as_str(), talk.session.waits_for()),
        ("250 2.0.0 OK\r\n", SmtpWaitsFor::SendRoom)
    );
}

#[test]
fn no_input_is_taken_while_the_store_works() {
    let mut talk = Conversation::addressed();
    talk.store_answers = false;
    talk.says("DATA\r\nx\r\n.\r\nNOOP\r\n");
    assert_eq!(talk.replies(), "354 End data with <CR><LF>.<CR><LF>\r\n");
    assert_eq!(
        (talk.kept.as_slice(), talk.session.waits_for()),
        (&b"NOOP\r\n"[..], SmtpWaitsFor::Stored)
    );
    assert_eq!(talk.world.deadline, None);
    talk.session.message_stored(Ok(b"1"), &mut talk.world);
    talk.session.message_stored(Ok(b"2"), &mut talk.world);
    assert_eq!(talk.replies(), "250 2.0.0 Stored as 1\r\n");
    talk.exchange(&[("", "250 2.0.0 OK\r\n")]);
}

#[test]
fn session_waits_only_for_the_store_while_it_works() {
    let mut talk = Conversation::addressed();
    talk.store_answers = false;
    talk.says("DATA\r\n.\r\n");
    talk.world.send_room = 100;
    assert_eq!(talk.session.bytes_arrived(b"NOOP\r\n", &mut talk.world), 0);
    assert_eq!(talk.session.waits_for(), SmtpWaitsFor::Stored);
}

#[test]
fn bytes_without_store_space_are_not_taken() {
    let mut talk = Conversation::addressed();
    talk.message_room_step = 0;
    talk.world.message_room = 3;
    talk.says("DATA\r\nabcdef\r\n.\r\n");
    assert_eq!(
        (talk.kept.as_slice(), talk.session.waits_for()),
        (&b"def\r\n.\r\n"[..], SmtpWaitsFor::MessageRoom)
    );
    assert_eq!(talk.world.deadline, None);
    talk.says("");
    assert_eq!(talk.kept, b"def\r\n.\r\n");
    talk.world.message_room = 100;
    talk.says("");
    assert_eq!(talk.kept, b"def\r\n.\r\n", "nothing is offered before the server reports space");
    talk.session.message_room(&mut talk.world);
    assert_eq!(talk.world.deadline, Some(machine::Micros::from_secs(180)));
    talk.says("");
    assert!(talk.replies().ends_with("250 2.0.0 Stored as 4D2\r\n"));
    assert_eq!(talk.world.messages, [b"abcdef\r\n"]);
}

#[test]
fn lack_of_space_stops_the_deadline() {
    let mut talk = Conversation::addressed();
    talk.says("DATA\r\n");
    talk.message_room_step = 0;
    talk.world.message_room = 0;
    talk.says("abc");
    assert_eq!((talk.world.deadline, talk.kept.as_slice()), (None, &b"abc"[..]));
}

#[test]
fn every_message_refusal_is_sent_at_its_end() {
    for (refusal, reply) in [
        (MessageRefusal::StorageFull, "452 4.3.1 Insufficient system storage, try again later\r\n"),
        (
            MessageRefusal::IndexFull,
            "452 4.3.1 The server has reached its maximum number of messages, try again later\r\n",
        ),
        (MessageRefusal::TryLater, "451 4.3.0 Message could not be stored, try again later\r\n"),
        (MessageRefusal::DiskFailed, "451 4.3.0 The server's disk has failed, try again later\r\n"),
        (MessageRefusal::Loop, "554 5.4.6 Too many hops, mail loop detected\r\n"),
        (MessageRefusal::TooManyFields, "550 5.6.0 Message header has more than 1,000 fields\r\n"),
        (MessageRefusal::TooBig, "552 5.3.4 Message size exceeds the limit\r\n"),
        (
            MessageRefusal::OutboxFull,
            "452 4.2.2 Too many of your messages are waiting to be sent, try again later\r\n",
        ),
        (
            MessageRefusal::TooManyToday,
            "451 4.7.0 Daily message limit reached, try again tomorrow\r\n",
        ),
        (
            MessageRefusal::TooManyNewToday,
            "451 4.7.0 Daily limit for new recipients reached, try again tomorrow or with fewer recipients\r\n",
        ),
        (
            MessageRefusal::NotTheirs,
            "550 5.7.1 From address rejected: not owned by the logged-in user\r\n",
        ),
        (
            MessageRefusal::NoAuthor,
            "550 5.6.0 Message must have exactly one From field with valid addresses\r\n",
        ),
        (MessageRefusal::Unchecked, "451 4.7.0 Cannot check the message now, try again later\r\n"),
        (
            MessageRefusal::Unproved,
            "550 5.7.26 Unauthenticated mail rejected because of the From domain's DMARC policy\r\n",
        ),
        (MessageRefusal::Unwanted, "550 5.7.1 Message rejected by the content filter\r\n"),
        (
            MessageRefusal::Unsure,
            "451 4.7.1 Message deferred by the content filter, try again later\r\n",
        ),
    ] {
        let mut talk = Conversation::addressed();
        talk.world.bytes_refusal = Some((3, refusal));
        talk.exchange(&[
            ("DATA\r\n", "354 End data with <CR><LF>.<CR><LF>\r\n"),
            ("a\r\nb\r\nc", ""),
            ("\r\n.\r\n", reply),
        ]);
        let mut talk = Conversation::addressed();
        talk.world.end_refusal = Some(refusal);
        talk.exchange(&[
            ("DATA\r\n", "354 End data with <CR><LF>.<CR><LF>\r\n"),
            ("a\r\n.\r\n", reply),
        ]);
        let mut talk = Conversation::addressed();
        talk.store_answers = false;
        talk.exchange(&[
            ("DATA\r\n", "354 End data with <CR><LF>.<CR><LF>\r\n"),
            ("a\r\n.\r\n", ""),
        ]);
        talk.session.message_stored(Err(refusal), &mut talk.world);
        talk.exchange(&[("", reply), ("RCPT TO:<a@b>\r\n", "503 5.5.1 Send MAIL first\r\n")]);
        assert!(talk.world.is_settled());
    }
}

#[test]
fn filter_refusal_has_its_words_in_one_line() {
    for (refusal, code) in
        [(MessageRefusal::Unwanted, "550 5.7.1"), (MessageRefusal::Unsure, "451 4.7.1")]
    {
        let long = "x".repeat(2_000);
        for (reason, printed) in
            [("spam\r\n250 ha: \u{e4}ha", "spam250 ha: ha"), (&long, &long[..500])]
        {
            let reply = std::format!("{code} {printed}\r\n");
            let mut talk = Conversation::addressed();
            talk.world.reason = reason.into();
            talk.store_answers = false;
            talk.exchange(&[
                ("DATA\r\n", "354 End data with <CR><LF>.<CR><LF>\r\n"),
                ("a\r\n.\r\n", ""),
            ]);
            talk.session.message_stored(Err(refusal), &mut talk.world);
            talk.exchange(&[
                ("", reply.as_str()),
                ("MAIL FROM:<a@b>\r\n", "250 2.1.0 Sender OK\r\n"),
            ]);
        }
    }
}

#[test]
fn message_size_limit_is_exact() {
    for (length, reply) in [
        (1_000, "250 2.0.0 Stored as 4D2\r\n"),
        (1_001, "552 5.3.4 Message size exceeds the limit\r\n"),
    ] {
        let line = "x".repeat(length - 2) + "\r\n";
        let mut talk = Conversation::addressed();
        talk.exchange(&[
            ("DATA\r\n", "354 End data with <CR><LF>.<CR><LF>\r\n"),
            (&line, ""),
            (".\r\nNOOP\r\n", &(String::from(reply) + "250 2.0.0 OK\r\n")),
        ]);
        assert!(talk.world.is_settled());
    }
}

#[test]
fn client_beyond_twice_the_limit_is_disconnected() {
    let mut talk = Conversation::addressed();
    talk.says("DATA\r\n");
    talk.replies();
    for _ in 0..40 {
        talk.says("x".repeat(100));
    }
    assert_eq!(talk.replies(), "552 5.3.4 Message size exceeds the limit\r\n");
    assert!(talk.world.closed && talk.world.is_settled());
}
