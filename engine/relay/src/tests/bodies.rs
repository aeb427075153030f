//! Sending the body of a message.

use super::*;
use crate::BODY_ROOM_BYTES;

/// The bytes that are sent for a message that is given in pieces of this length.
pub(super) fn sent(message: &[u8], piece: usize) -> Vec<u8> {
    let mut house = House::greeted(ABLE);
    house.is_bringing = false;
    house.deliver(letter(&["bob@there.test"]));
    house.hears("250 ok\r\n250 ok\r\n354 go\r\n");
    let mut sent = Vec::new();
    for piece in message.chunks(piece) {
        let mut rest = piece;
        while !rest.is_empty() {
            rest = &rest[house.client.body(rest)..];
            sent.extend_from_slice(house.client.output());
            house.client.sent(house.client.output().len());
        }
    }
    house.client.body_ended();
    sent.extend_from_slice(house.client.output());
    house.client.sent(house.client.output().len());
    assert!(house.hears("250 taken\r\n").is_empty() && house.is_idle);
    sent
}

#[test]
fn dots_are_doubled_and_lines_end_in_crlf() {
    for (message, expected) in [
        ("", ".\r\n"),
        (".", "..\r\n.\r\n"),
        ("x", "x\r\n.\r\n"),
        ("x\r\n", "x\r\n.\r\n"),
        ("x\r", "x\r\n.\r\n"),
        (".\r\n..\r\n", "..\r\n...\r\n.\r\n"),
        ("a.b\r\n.c", "a.b\r\n..c\r\n.\r\n"),
        ("a\n.\nb", "a\r\n..\r\nb\r\n.\r\n"),
        ("a\r.\rb", "a\r\n..\r\nb\r\n.\r\n"),
        ("a\r\r\n.\r\n", "a\r\n\r\n..\r\n.\r\n"),
        ("a\n\r.", "a\r\n\r\n..\r\n.\r\n"),
    ] {
        for piece in 1..=message.len().max(1) {
            let found = sent(message.as_bytes(), piece);
            assert_eq!(found, expected.as_bytes(), "{message:?} in pieces of {piece}");
        }
    }
}

#[test]
fn output_is_bounded() {
    let mut house = House::greeted(ABLE);
    house.is_bringing = false;
    house.deliver(letter(&["bob@there.test"]));
    house.hears("250 ok\r\n250 ok\r\n354 go\r\n");
    let message = b".\n".repeat(BODY_ROOM_BYTES);
    let taken = house.client.body(&message);
    assert!(taken < BODY_ROOM_BYTES && house.client.output().len() <= BODY_ROOM_BYTES + 4);
    assert_eq!(house.client.body(&message), 0);
    assert_eq!(house.client.next_action(), None, "there is no room");
    house.client.sent(BODY_ROOM_BYTES / 4);
    assert_eq!(house.client.next_action(), None, "nor much yet");
    house.client.sent(BODY_ROOM_BYTES / 2);
    assert_eq!(house.client.next_action(), Some(Action::NeedBody));
    assert_eq!(house.client.next_action(), None, "it is said once");
    assert!(house.client.body(&message) > 0);
}

#[test]
fn body_is_requested_again_while_there_is_space() {
    let mut house = House::greeted(ABLE);
    house.is_bringing = false;
    house.deliver(letter(&["bob@there.test"]));
    house.hears("250 ok\r\n250 ok\r\n354 go\r\n");
    assert_eq!(house.client.next_action(), None, "it was said");
    assert_eq!(house.client.body(b"little"), 6);
    assert_eq!(house.client.next_action(), Some(Action::NeedBody));
    house.client.body_ended();
    assert_eq!(house.client.next_action(), None);
}
