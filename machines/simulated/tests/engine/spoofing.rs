//! Messages that try to pass as another sender's by being too much to be checked, or hard to read.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use simulated::room::letters_on;

use super::names::Mood;
use super::proofs::{letter, letters_of, proving, send};
use super::room::{Room, Talk, stuffed};
use super::signing::{begin, keys};

/// A header of so many fields, each with a name of its own.
fn fields(count: usize) -> String {
    (0..count).map(|number| format!("x{number:x}:\r\n")).collect()
}

/// Submits a message as Ada to Grace and to Ada.
fn submit(room: &mut Room, message: &str) -> String {
    let mut talk: Talk = begin(room, "ada@barepost.test");
    room.send(&talk, &stuffed(message.as_bytes()));
    let reply = room.smtp(&mut talk, ".");
    room.part(talk);
    reply
}

#[test]
fn a_message_with_too_many_fields_is_refused() {
    let refusal = "550 5.6.0 The header has more than 1,000 fields";
    let (mut room, mut server) = proving(41, Mood::Answers);
    for (count, is_taken) in [(1_000, true), (1_001, false), (20_500, false)] {
        // Subject and From are two of them.
        let message = fields(count - 2) + &letter("ada@far.test");
        let reply = send(&mut room, &mut server, "me@far.test", &message);
        assert!(if is_taken { reply.starts_with("250 ") } else { reply == refusal }, "{count}: {reply}");
    }
    assert_eq!(letters_of(&room, "ada").len(), 1);
    // It does not matter that the domain would let it be refused for another reason.
    let spoofed = fields(20_500) + &letter("ceo@pass.test");
    assert_eq!(send(&mut room, &mut server, "me@far.test", &spoofed), refusal);
    room.until_nothing_is_in_use();
    let mut room = Room::signing(42, keys());
    for (count, is_taken) in [(1_000, true), (1_001, false)] {
        let message = format!("From: ada@barepost.test\r\n{}\r\nHello.\r\n", fields(count - 1));
        let reply = submit(&mut room, &message);
        assert!(if is_taken { reply.starts_with("250 ") } else { reply == refusal }, "{count}: {reply}");
    }
    assert_eq!(letters_on(&room.machine.disk, "grace@barepost.test").len(), 1);
}
