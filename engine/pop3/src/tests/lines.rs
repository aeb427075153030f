//! Tests of pipelining and of unique identifiers.

use std::vec::Vec;

use super::world::Conversation;
use crate::{UNIQUE_ID_BYTES_MAX, UniqueId};

const DIALOGUE: &str = "CAPA\r\nUSER ada\r\nPASS secret\r\nSTAT\r\nLIST\r\nUIDL 1\r\nRETR 2\r\nTOP 2 1\r\nDELE 1\r\n\
    XYZZY\r\nRETR 1\r\nRETR 3\r\nRSET\r\nDELE 2\r\nLIST\r\nQUIT\r\nSTAT\r\n";

#[test]
fn dialogue_does_not_depend_on_its_pieces() {
    let sent = DIALOGUE.as_bytes();
    let outcome = |pieces: &[&[u8]], room: usize| {
        let mut talk = Conversation::new();
        talk.world.send_room = room;
        talk.send_room_step = room;
        for piece in pieces {
            talk.says(piece);
        }
        assert!(talk.world.closed && talk.kept.is_empty());
        (talk.replies(), talk.world.log)
    };
    let whole = outcome(&[sent], usize::MAX);
    assert!(whole.0.ends_with("1 19\r\n3 0\r\n.\r\n+OK Bye\r\n"));
    assert_eq!(whole.1, ["login \"ada\" \"secret\"", "stop", "delete [2]"]);
    for cut in 0..=sent.len() {
        assert_eq!(outcome(&[&sent[..cut], &sent[cut..]], usize::MAX), whole, "cut at {cut}");
    }
    let bytes: Vec<&[u8]> = sent.chunks(1).collect();
    assert_eq!(outcome(&bytes, usize::MAX), whole);
    assert_eq!(outcome(&bytes, 1), whole);
}

#[test]
fn unique_ids_are_printable_distinct_and_stable() {
    assert_eq!(UniqueId::from_uid(1, 2).as_str(), "0000000100000002");
    assert_eq!(UniqueId::from_uid(u32::MAX, u32::MAX).as_str(), "ffffffffffffffff");
    assert_ne!(UniqueId::from_uid(1, 0x10), UniqueId::from_uid(0x10, 1));
    assert!(UniqueId::from_uid(u32::MAX, u32::MAX).as_str().len() <= UNIQUE_ID_BYTES_MAX);
}
