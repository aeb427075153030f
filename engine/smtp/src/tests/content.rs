//! Tests of dot-stuffing, against an oracle that works on the whole message.

use std::string::String;
use std::vec::Vec;

use proptest::prelude::*;

use super::world::Conversation;
use crate::content::{ContentRun, Dots, Position, next_run};

/// The bytes that a client sends for `message`. All lines of the message end in CRLF.
pub(super) fn stuffed(message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at_line_start = true;
    for (index, &byte) in message.iter().enumerate() {
        if at_line_start && byte == b'.' {
            out.push(b'.');
        }
        out.push(byte);
        at_line_start = message[..=index].ends_with(b"\r\n");
    }
    out.extend_from_slice(b".\r\n");
    out
}

fn deliver(pieces: &[&[u8]]) -> Conversation {
    let mut talk = Conversation::addressed();
    talk.world.settings.message_bytes_max = u64::MAX;
    talk.exchange(&[("DATA\r\n", "354 End data with <CR><LF>.<CR><LF>\r\n")]);
    for piece in pieces {
        talk.says(piece);
    }
    talk
}

#[test]
fn messages_of_boundary_sizes_arrive_unchanged() {
    for size in [
        0usize, 2, 3, 63, 64, 65, 511, 512, 513, 1459, 1460, 1461, 4095, 4096, 4097, 65_535,
        65_536, 65_537,
    ] {
        let mut message: Vec<u8> = (0..size).map(|index| b'.' + (index % 60) as u8).collect();
        if let Some(end) = message.last_chunk_mut() {
            *end = *b"\r\n";
        }
        let mut talk = deliver(&[&stuffed(&message)]);
        assert_eq!(talk.replies(), "250 2.0.0 Stored as 4D2\r\n");
        assert!(talk.world.messages == [message]);
    }
}

#[test]
fn leading_dots_are_unstuffed_and_others_kept() {
    for (sent, message) in [
        ("..\r\n.\r\n", ".\r\n"),
        ("...\r\n.\r\n", "..\r\n"),
        (".a\r\n..b\r\nc.\r\n.\r\n", "a\r\n.b\r\nc.\r\n"),
        ("\r\n\r\n.\r\n", "\r\n\r\n"),
        ("a\r\n. \r\n.\r\n", "a\r\n \r\n"),
        ("..", ""),
    ] {
        let talk = deliver(&[sent.as_bytes()]);
        match talk.world.messages.first() {
            Some(stored) => assert_eq!(stored, message.as_bytes(), "{sent:?}"),
            None => assert_eq!(message, ""),
        }
    }
}

#[test]
fn message_does_not_depend_on_segment_boundaries() {
    let message = b".\r\n..\r\nSubject: x\r\n\r\n.a\r\n.b..\r\n\r\n...\r\nend\r\n";
    let sent = stuffed(message);
    for first in 0..=sent.len() {
        for second in first..=sent.len() {
            let mut talk = deliver(&[&sent[..first], &sent[first..second], &sent[second..]]);
            assert_eq!(talk.replies(), "250 2.0.0 Stored as 4D2\r\n");
            assert_eq!(talk.world.messages, [message]);
        }
    }
}

#[test]
fn message_bytes_are_never_held_back() {
    let sent = stuffed(b"a\r\n.b\r\n.\r\n\r\n");
    for length in 0..sent.len() {
        let talk = deliver(&[&sent[..length]]);
        assert!(talk.kept.is_empty());
    }
}

/// Lines of few characters, so that dots and line ends often meet.
fn lines() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec("[.a]{0,4}", 0..12).prop_map(|lines| {
        lines.iter().map(|line| line.clone() + "\r\n").collect::<String>().into_bytes()
    })
}

/// The length of the first run of `bytes`, which begin in the middle of a line, and whether it ends
/// by a bare line end. Computed byte by byte.
fn first_run(bytes: &[u8]) -> (usize, bool) {
    for (index, &byte) in bytes.iter().enumerate() {
        let (before, after) =
            (index.checked_sub(1).map(|index| bytes[index]), bytes.get(index + 1));
        match byte {
            b'\n' if before != Some(b'\r') => return (index + 1, true),
            b'\r' if after.is_some_and(|&after| after != b'\n') => return (index + 1, true),
            b'.' if before == Some(b'\n') => return (index, false),
            _ => {}
        }
    }
    (bytes.len(), false)
}

proptest! {
    #[test]
    fn block_scan_agrees_with_byte_scan(
        texts in proptest::collection::vec(("a{0,150}", "(\r\n){0,2}[.a]?|\r\n|\r\n|\r|\n|[.]"), 1..16),
    ) {
        let bytes: Vec<u8> = texts.iter().flat_map(|(text, end)| [text.as_bytes(), end.as_bytes()].concat()).collect();
        prop_assume!(!bytes.is_empty());
        let run = match next_run(Position::InLine, &bytes, Dots::Stuffed) {
            ContentRun::Content(count, position) => {
                prop_assert_eq!(position, Position::after(bytes[count - 1]));
                (count, false)
            }
            ContentRun::BareLineEnd(count, _) => (count, true),
            other => panic!("{other:?}"),
        };
        prop_assert_eq!(run, first_run(&bytes));
    }

    #[test]
    fn stuffed_message_is_restored(
        message in lines(),
        cuts in proptest::collection::vec(0usize..80, 0..6),
        room in 1usize..20,
    ) {
        let sent = stuffed(&message);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (sent.len() + 1)).collect();
        cuts.sort_unstable();
        let mut talk = Conversation::addressed();
        talk.says("DATA\r\n");
        talk.replies();
        talk.world.message_room = 0;
        talk.message_room_step = room;
        let mut from = 0;
        for cut in cuts.into_iter().chain([sent.len()]) {
            talk.says(&sent[from..cut]);
            from = cut;
        }
        prop_assert_eq!(talk.replies(), "250 2.0.0 Stored as 4D2\r\n");
        prop_assert_eq!(&talk.world.messages, &[message]);
    }
}
