//! Sending the body of a message.

use super::*;
use crate::BODY_ROOM_BYTES;

/// The bytes that are sent for a message that is given in pieces of this length.
pub(super) fn sent(message: &[u8], piece: usize) -> Vec<u8> {
    let mut harness = ClientHarness::greeted(ABLE);
    harness.is_bringing = false;
    harness.deliver(outgoing(&["bob@there.test"]));
    harness.hears("250 ok\r\n250 ok\r\n354 go\r\n");
    let mut sent = Vec::new();
    for piece in message.chunks(piece) {
        let mut rest = piece;
        while !rest.is_empty() {
            rest = &rest[harness.client.body(rest)..];
            sent.extend_from_slice(harness.client.output());
            harness.client.sent(harness.client.output().len());
        }
    }
    harness.client.body_ended();
    sent.extend_from_slice(harness.client.output());
    harness.client.sent(harness.client.output().len());
    assert!(harness.hears("250 taken\r\n").is_empty() && harness.is_idle);
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
fn output_of_a_message_body_is_bounded() {
    let mut harness = ClientHarness::greeted(ABLE);
    harness.is_bringing = false;
    harness.deliver(outgoing(&["bob@there.test"]));
    harness.hears("250 ok\r\n250 ok\r\n354 go\r\n");
    let message = b".\n".repeat(BODY_ROOM_BYTES);
    let taken = harness.client.body(&message);
    assert!(taken < BODY_ROOM_BYTES && harness.client.output().len() <= BODY_ROOM_BYTES + 4);
    assert_eq!(harness.client.body(&message), 0);
    assert_eq!(harness.client.next_action(), None, "there is no room");
    harness.client.sent(BODY_ROOM_BYTES / 4);
    assert_eq!(harness.client.next_action(), None, "there is too little room yet");
    harness.client.sent(BODY_ROOM_BYTES / 2);
    assert_eq!(harness.client.next_action(), Some(Action::NeedBody));
    assert_eq!(harness.client.next_action(), None, "the body is requested once");
    assert!(harness.client.body(&message) > 0);
}

#[test]
fn body_is_requested_again_while_there_is_space() {
    let mut harness = ClientHarness::greeted(ABLE);
    harness.is_bringing = false;
    harness.deliver(outgoing(&["bob@there.test"]));
    harness.hears("250 ok\r\n250 ok\r\n354 go\r\n");
    assert_eq!(harness.client.next_action(), None, "the body was requested already");
    assert_eq!(harness.client.body(b"little"), 6);
    assert_eq!(harness.client.next_action(), Some(Action::NeedBody));
    harness.client.body_ended();
    assert_eq!(harness.client.next_action(), None);
}
