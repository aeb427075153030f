//! Random clients: no panic, no kept bytes beyond the longest line, well-formed replies, and an end
//! for each message, transaction and login.

use std::vec::Vec;

use proptest::prelude::*;

use super::world::{Conversation, World};

/// Pieces of valid commands and messages, which reach all states of a session, and random bytes.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let words: Vec<&[u8]> = std::vec![
        b"EHLO a\r\n",
        b"HELO b\r\n",
        b"MAIL FROM:<a@b>",
        b"MAIL FROM:<>",
        b"MAIL FROM:\t\"A\" <a@b>",
        b"EHLO \xfc (c)\r\n",
        b" SIZE=10",
        b" SMTPUTF8",
        b" RET=HDRS ENVID=a+20b",
        b"RCPT TO:<b@c> NOTIFY=DELAY ORCPT=rfc822;b@d\r\n",
        b"RCPT TO:<b@c>\r\n",
        b"RCPT TO:<nobody@c>\r\n",
        b"DATA\r\n",
        b"BDAT 3\r\n",
        b"BDAT 5 LAST\r\n",
        b"BDAT 0 LAST\r\n",
        b"BDAT 4 LAST\r\na\n.\n",
        b"RSET\r\n",
        b"NOOP\r\n",
        b"\r\n",
        b"\r\n.\r\n",
        b".\r\n",
        b"\r",
        b"\n",
        b".",
        b"abc",
        b"VRFY x\r\n",
        b"\xc3\xa4",
        b"\xff",
    ];
    prop_oneof![
        8 => proptest::sample::select(words).prop_map(<[u8]>::to_vec),
        1 => proptest::collection::vec(any::<u8>(), 0..40),
        1 => (900usize..2_500).prop_map(|length| std::vec![b'x'; length]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn random_clients_break_no_invariant(
        pieces in proptest::collection::vec(piece(), 0..40),
        send_room in 1usize..600,
        message_room in 1usize..9,
        stop_at in 0usize..80,
    ) {
        let mut talk = Conversation::with(World::new());
        talk.world.send_room = 0;
        talk.send_room_step = send_room;
        talk.message_room_step = message_room;
        talk.world.message_room = message_room;
        for (index, piece) in pieces.iter().enumerate() {
            if index == stop_at {
                talk.session.stopping(&mut talk.world);
            }
            talk.says(piece);
            talk.replies();
            prop_assert!(talk.kept.len() <= crate::LINE_BYTES_MAX);
        }
        talk.session.peer_closed(&mut talk.world);
        prop_assert!(talk.world.closed && talk.world.is_settled());
        talk.replies();
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
        prop_assert_eq!(&whole.world.messages, &cut.world.messages);
        prop_assert_eq!(&whole.world.log, &cut.world.log);
        prop_assert_eq!(&whole.kept, &cut.kept);
    }
}
