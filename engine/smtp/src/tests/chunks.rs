//! BDAT: a chunk is read even if it is refused, and its bytes are never taken for commands.

use std::string::String;

use proptest::prelude::*;

use super::world::Conversation;
use crate::MessageRefusal;

const STORED: &str = "250 2.0.0 Stored as 4D2\r\n";
const CHUNK_TAKEN: &str = "250 2.0.0 Chunk received\r\n";
const OK: &str = "250 2.0.0 OK\r\n";

#[test]
fn chunks_make_a_message_byte_by_byte() {
    let mut talk = Conversation::addressed();
    talk.exchange(&[
        ("BDAT 7\r\na: b\r\n.", CHUNK_TAKEN),
        ("BDAT 0\r\n", CHUNK_TAKEN),
        ("NOOP\r\n", OK),
        ("bdat 3\r\n.\r\n", CHUNK_TAKEN),
        ("BDAT 5 last\r\n\r\nend", STORED),
        ("BDAT 1 LAST\r\nx", "503 5.5.1 Send MAIL first\r\n"),
    ]);
    assert_eq!(talk.world.messages, [b"a: b\r\n..\r\n\r\nend"]);
    assert!(talk.world.is_settled());
}

#[test]
fn empty_last_chunk_ends_the_message() {
    let mut talk = Conversation::addressed();
    talk.exchange(&[("BDAT 3\r\na\r\n", CHUNK_TAKEN), ("BDAT 0 LAST\r\n", STORED)]);
    assert_eq!(talk.world.messages, [b"a\r\n"]);
    let mut talk = Conversation::addressed();
    talk.exchange(&[("BDAT 0 LAST\r\n", STORED)]);
    assert_eq!(talk.world.messages, [b""]);
}

#[test]
fn line_end_may_be_cut_between_chunks() {
    let mut talk = Conversation::addressed();
    talk.exchange(&[("BDAT 2\r\na\r", CHUNK_TAKEN), ("BDAT 2 LAST\r\n\nb", STORED)]);
    assert_eq!(talk.world.messages, [b"a\r\nb"]);
}

/// The message in which each bare LF has its CR.
fn with_line_ends(message: &str) -> String {
    message.replace("\r\n", "\n").replace('\n', "\r\n")
}

#[test]
fn bare_lf_in_a_chunk_becomes_a_line_end() {
    for message in
        ["\n", "a\nb", "\n.\n", "\n\n", "a\r\n\nb", "a\n\r\nb\n", "a\n.\r\n..\n.", "\r\n\n\r\n"]
    {
        for first in 0..=message.len() {
            for second in first..=message.len() {
                let chunks = [&message[..first], &message[first..second], &message[second..]];
                let mut talk = Conversation::addressed();
                (talk.world.message_room, talk.message_room_step) = (0, 1);
                for (chunk, last) in chunks.iter().zip(["", "", " LAST"]) {
                    talk.says(std::format!("BDAT {}{last}\r\n{chunk}", chunk.len()));
                }
                talk.says("NOOP\r\n");
                assert_eq!(
                    talk.replies(),
                    std::format!("{CHUNK_TAKEN}{CHUNK_TAKEN}{STORED}{OK}"),
                    "{chunks:?}"
                );
                assert_eq!(talk.world.messages, [with_line_ends(message).as_bytes()], "{chunks:?}");
            }
        }
    }
}

#[test]
fn added_line_ends_count_against_the_limit() {
    const TOO_BIG: &str = "552 5.3.4 Message size exceeds the limit\r\n";
    for (length, reply) in [(999, STORED), (1_000, TOO_BIG)] {
        let mut talk = Conversation::addressed();
        let chunk = "x".repeat(length - 1) + "\n";
        talk.says(std::format!("BDAT {length} LAST\r\n{chunk}NOOP\r\n"));
        assert_eq!(talk.replies(), std::format!("{reply}{OK}"), "{length}");
    }
}

proptest! {
    #[test]
    fn chunks_give_their_text_with_crlf_line_ends(
        text in "(\r\n|\n|[.ab]|a{30}){0,40}",
        pieces in proptest::collection::vec(0usize..40, 0..6),
        room in 1usize..9,
    ) {
        let mut talk = Conversation::addressed();
        talk.world.settings.message_bytes_max = 10_000;
        (talk.world.message_room, talk.message_room_step) = (0, room);
        let mut rest = text.as_str();
        for piece in pieces {
            let (chunk, after) = rest.split_at(piece.min(rest.len()));
            talk.says(std::format!("BDAT {}\r\n{chunk}", chunk.len()));
            rest = after;
        }
        talk.says(std::format!("BDAT {} LAST\r\n{rest}", rest.len()));
        prop_assert!(talk.replies().ends_with(STORED));
        prop_assert_eq!(&talk.world.messages, &[with_line_ends(&text).into_bytes()]);
    }
}

#[test]
fn chunk_without_recipients_is_read_and_refused() {
    let mut talk = Conversation::greeted();
    talk.exchange(&[
        ("BDAT 6\r\nQUIT\r\nNOOP\r\n", "503 5.5.1 Send MAIL first\r\n250 2.0.0 OK\r\n"),
        ("BDAT 0 LAST\r\n", "503 5.5.1 Send MAIL first\r\n"),
        (
            "MAIL FROM:<a@b>\r\nRCPT TO:<nobody@b>\r\nBDAT 6\r\nQUIT\r\nBDAT 6 LAST\r\nQUIT\r\nNOOP\r\n",
            "250 2.1.0 Sender OK\r\n550 5.1.1 No such user here\r\n554 5.5.1 No valid recipients\r\n\
             503 5.5.1 Send MAIL first\r\n250 2.0.0 OK\r\n",
        ),
    ]);
    assert!(talk.world.messages.is_empty() && talk.world.is_settled() && !talk.world.closed);
}

#[test]
fn other_commands_between_chunks_keep_their_rules() {
    let mut talk = Conversation::addressed();
    talk.exchange(&[
        ("BDAT 1\r\na", CHUNK_TAKEN),
        ("DATA\r\n", "503 5.5.1 BDAT already sent, send BDAT or RSET\r\n"),
        ("RCPT TO:<c@d>\r\n", "503 5.5.1 BDAT already sent, send BDAT or RSET\r\n"),
        ("MAIL FROM:<c@d>\r\n", "503 5.5.1 MAIL already sent, send RSET to start again\r\n"),
        ("BDAT 1 LAST\r\nb", STORED),
    ]);
    assert_eq!(talk.world.messages, [b"ab"]);
    for command in ["RSET\r\n", "EHLO x\r\n", "QUIT\r\n"] {
        let mut talk = Conversation::addressed();
        talk.exchange(&[("BDAT 1\r\na", CHUNK_TAKEN)]);
        talk.says(command);
        assert!(talk.world.is_settled() && talk.world.messages.is_empty());
        assert!(talk.world.log.contains(&"abort".into()));
    }
}

#[test]
fn invalid_bdat_size_ends_the_session() {
    for command in [
        "BDAT\r\n",
        "BDAT x\r\n",
        "BDAT -1\r\n",
        "BDAT 1 LAS\r\n",
        "BDAT 1 LAST x\r\n",
        "BDAT 100000000000000000000\r\n",
        "BDAT 99999999999999999999 LAST\r\n",
        "BDAT 18446744073709551616 LAST\r\n",
    ] {
        let mut talk = Conversation::addressed();
        talk.says(command);
        talk.says("QUIT\r\n");
        assert_eq!(talk.replies(), "521 5.5.4 Syntax: BDAT size [LAST]\r\n");
        assert!(talk.world.closed && talk.world.is_settled());
    }
}

#[test]
fn chunks_beyond_the_limit_are_read_and_refused() {
    let mut talk = Conversation::addressed();
    let chunk = "x".repeat(600);
    talk.exchange(&[
        (&std::format!("BDAT 600\r\n{chunk}"), CHUNK_TAKEN),
        (
            &std::format!("BDAT 600\r\n{chunk}NOOP\r\n"),
            "552 5.3.4 Message size exceeds the limit\r\n250 2.0.0 OK\r\n",
        ),
        (&std::format!("BDAT 600 LAST\r\n{chunk}"), "503 5.5.1 Send MAIL first\r\n"),
    ]);
    assert!(talk.world.messages.is_empty() && talk.world.is_settled());
}

#[test]
fn endless_chunk_ends_the_session() {
    let mut talk = Conversation::addressed();
    talk.says("BDAT 18446744073709551615 LAST\r\n");
    for _ in 0..30 {
        talk.says("x".repeat(100));
    }
    assert_eq!(talk.replies(), "552 5.3.4 Message size exceeds the limit\r\n");
    assert!(talk.world.closed && talk.world.is_settled());
}

#[test]
fn refusal_is_sent_at_the_end_of_the_chunk() {
    let mut talk = Conversation::addressed();
    talk.world.begin_refusal = Some(MessageRefusal::StorageFull);
    talk.exchange(&[
        ("BDAT 6 LAST\r\nQUIT\r\n", "452 4.3.1 Insufficient system storage, try again later\r\n"),
        ("BDAT 0 LAST\r\n", "503 5.5.1 Send MAIL first\r\n"),
    ]);
    let mut talk = Conversation::addressed();
    talk.world.bytes_refusal = Some((4, MessageRefusal::TryLater));
    talk.exchange(&[(
        "BDAT 6\r\nQUIT\r\nNOOP\r\n",
        "451 4.3.0 Message could not be stored, try again later\r\n250 2.0.0 OK\r\n",
    )]);
    assert!(talk.world.is_settled());
}
