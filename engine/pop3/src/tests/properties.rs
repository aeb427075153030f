//! Random clients: no panic, no byte beyond the buffer space, no maildrop left open, and no
//! deletion of unmarked messages.

use std::vec::Vec;

use proptest::prelude::*;

use super::world::Conversation;
use crate::LINE_BYTES_MAX;

fn piece() -> impl Strategy<Value = Vec<u8>> {
    let words: Vec<&[u8]> = std::vec![
        b"USER ada\r\n",
        b"PASS x\r\n",
        b"USER ",
        b"PASS ",
        b"STAT\r\n",
        b"LIST\r\n",
        b"LIST 1\r\n",
        b"UIDL\r\n",
        b"UIDL 2\r\n",
        b"RETR 1\r\n",
        b"RETR 2\r\n",
        b"TOP 2 1\r\n",
        b"TOP 1 0\n",
        b"DELE 1\r\n",
        b"DELE 2\r\n",
        b"RSET\r\n",
        b"NOOP\r\n",
        b"CAPA\r\n",
        b"UTF8\r\n",
        b"\r\n",
        b"\r",
        b"\n",
        b"\xff",
        b"QUIT\r\n",
    ];
    prop_oneof![
        12 => proptest::sample::select(words).prop_map(<[u8]>::to_vec),
        1 => proptest::collection::vec(any::<u8>(), 0..40),
        1 => (400usize..1_200).prop_map(|length| std::vec![b'x'; length]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn random_clients_break_no_invariant(
        pieces in proptest::collection::vec(piece(), 0..30),
        send_room in 1usize..300,
        read_step in 1usize..9,
        stop_at in 0usize..60,
    ) {
        let mut talk = Conversation::new();
        talk.world.send_room = 0;
        talk.send_room_step = send_room;
        talk.read_step = read_step;
        for (index, piece) in pieces.iter().enumerate() {
            if index == stop_at {
                talk.world.send_room = talk.world.send_room.max(128);
                talk.session.stopping(&mut talk.world);
            }
            talk.says(piece);
            prop_assert!(talk.kept.len() <= LINE_BYTES_MAX);
        }
        talk.session.peer_closed(&mut talk.world);
        prop_assert!(talk.world.closed && !talk.world.maildrop_open);
        let replies = talk.replies();
        for line in replies.split_terminator("\r\n") {
            prop_assert!(line.len() <= 510 && line.bytes().all(|byte| (b' '..0x7f).contains(&byte)));
        }
    }

    #[test]
    fn random_dialogue_does_not_depend_on_its_pieces(pieces in proptest::collection::vec(piece(), 0..25)) {
        let sent = pieces.concat();
        let mut whole = Conversation::new();
        whole.says(&sent);
        let mut cut = Conversation::new();
        for byte in &sent {
            cut.says([*byte]);
        }
        prop_assert_eq!(whole.replies(), cut.replies());
        prop_assert_eq!(&whole.world.log, &cut.world.log);
        prop_assert_eq!(&whole.kept, &cut.kept);
    }
}
