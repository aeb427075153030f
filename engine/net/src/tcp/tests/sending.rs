//! Queued data is sent as the windows allow, in segments of reasonable size.

use super::Conversation;
use alloc::format;
use alloc::sync::Arc;
use machine::{BLOCK_BYTES, Micros, Piece};

#[test]
fn small_replies_are_sent_at_once() {
    let mut talk = Conversation::established();
    talk.write(10).we("P. 1:11 ack 1").write(10).we("P. 11:21 ack 1").silence();
    talk.peer(". 1:1 ack 21");
    talk.lent_nothing();
}

#[test]
fn small_replies_share_a_block_unless_the_card_reads_it() {
    let mut talk = Conversation::established();
    let free = talk.pools.free_blocks();
    talk.card_room = 0;
    for _ in 0..10 {
        talk.write(10);
    }
    assert_eq!(talk.pools.free_blocks(), free - 1);
    talk.card_room = usize::MAX;
    talk.turn().we("P. 1:101 ack 1").silence();
}

/// Writes `count` bytes of `byte` in place if there is room for `least`. Returns the length of the
/// buffer that `write` got.
fn write_in_place(talk: &mut Conversation, least: usize, byte: u8, count: usize) -> usize {
    let mut lent = 0;
    let now = talk.now;
    let written = talk.tcb.send_with(now, least, &mut talk.pools, |room| {
        lent = room.len();
        room[..count].fill(byte);
        count
    });
    assert_eq!(written, if lent == 0 { 0 } else { count });
    lent
}

#[test]
fn in_place_writes_share_the_block_of_copied_bytes() {
    let mut talk = Conversation::established();
    talk.card_room = 0;
    let free = talk.pools.free_blocks();
    talk.tcb.send(talk.now, b"copied", &mut talk.pools);
    assert_eq!(write_in_place(&mut talk, 100, b'a', 50), BLOCK_BYTES - 6);
    assert_eq!(write_in_place(&mut talk, BLOCK_BYTES - 56, b'b', 8096), BLOCK_BYTES - 56);
    talk.tcb.send(talk.now, b"copied", &mut talk.pools);
    assert_eq!(free - talk.pools.free_blocks(), 1);
    assert_eq!(write_in_place(&mut talk, 100, b'c', 100), BLOCK_BYTES, "34 bytes are too few");
    assert_eq!(free - talk.pools.free_blocks(), 2);
    let expected =
        [b"copied".as_slice(), &[b'a'; 50], &[b'b'; 8096], b"copied", &[b'c'; 100]].concat();
    let mut sent = alloc::vec::Vec::new();
    talk.limits.segmentation_bytes = Some(65_000);
    let limits = talk.limits;
    let collected = talk.tcb.output(talk.now, limits, &talk.pools, &mut |_, pieces: &[Piece]| {
        pieces.iter().for_each(|piece| sent.extend_from_slice(piece.bytes()));
        Ok(())
    });
    assert!(collected.is_ok());
    assert!(sent == expected, "{} bytes of {}", sent.len(), expected.len());
}

#[test]
fn in_place_writes_respect_the_limit_and_blocks_on_the_card() {
    let mut talk = Conversation::established();
    let mut on_card = alloc::vec::Vec::new();
    assert_eq!(write_in_place(&mut talk, 1, b'a', 10), BLOCK_BYTES);
    let limits = talk.limits;
    let sent = talk.tcb.output(talk.now, limits, &talk.pools, &mut |_, pieces: &[Piece]| {
        on_card.extend_from_slice(pieces);
        Ok(())
    });
    assert!(sent.is_ok());
    assert_eq!(
        write_in_place(&mut talk, 1, b'b', 10),
        BLOCK_BYTES,
        "a block that the card does not read"
    );
    assert_eq!(on_card[0].bytes(), [b'a'; 10]);
    let queued = talk.tcb.unacknowledged();
    let filler = alloc::vec![0; 300_000];
    let taken = talk.tcb.send(talk.now, &filler, &mut talk.pools);
    assert_eq!(queued + taken, 256 * 1024);
    assert_eq!(write_in_place(&mut talk, 1, b'c', 1), 0, "the queue is at its limit");
    assert!(talk.tcb.send_with(talk.now, 1, &mut talk.pools, |_| 1) == 0);
}

#[test]
fn an_empty_in_place_write_borrows_nothing() {
    let mut talk = Conversation::established();
    assert_eq!(talk.tcb.send_with(talk.now, 1, &mut talk.pools, |_| 0), 0);
    talk.lent_nothing();
}

/// Sends `bytes`, and returns the pieces that the card holds.
fn sent_by_card(talk: &mut Conversation, bytes: &[u8]) -> alloc::vec::Vec<Piece> {
    let mut on_card = alloc::vec::Vec::new();
    talk.tcb.send(talk.now, bytes, &mut talk.pools);
    let limits = talk.limits;
    let sent = talk.tcb.output(talk.now, limits, &talk.pools, &mut |_, pieces: &[Piece]| {
        on_card.extend_from_slice(pieces);
        Ok(())
    });
    assert!(sent.is_ok());
    on_card
}

#[test]
fn a_block_on_the_card_is_neither_written_nor_lent_again() {
    let mut talk = Conversation::established();
    let on_card = sent_by_card(&mut talk, b"first");
    talk.tcb.send(talk.now, b"second", &mut talk.pools);
    talk.peer(". 1:1 ack 6");
    let mut all = alloc::vec::Vec::new();
    while let Some(mut block) = talk.pools.lend_block() {
        assert!(alloc::sync::Arc::get_mut(&mut block).is_some(), "a lent block is not shared");
        all.push(block);
    }
    assert_eq!(on_card[0].bytes(), b"first");
    drop(on_card);
    all.into_iter().for_each(|block| talk.pools.give_back_block(block));
    talk.peer(". 1:1 ack 12");
    talk.lent_nothing();
}

#[test]
fn a_block_released_by_the_card_counts_as_unheld() {
    let mut talk = Conversation::established();
    let on_card = sent_by_card(&mut talk, b"all");
    talk.peer(". 1:1 ack 4");
    let free = talk.pools.free_blocks();
    assert_eq!(talk.pools.unheld_blocks(), free, "the card still reads the block");
    drop(on_card);
    assert_eq!((talk.pools.unheld_blocks(), talk.pools.free_blocks()), (free + 1, free));
    talk.lent_nothing();
}

#[test]
fn a_long_reply_is_sent_in_full_segments() {
    let mut talk = Conversation::established();
    talk.write(25_500);
    for segment in 0..10 {
        talk.we(&format!(". {}:{} ack 1", segment * 1000 + 1, segment * 1000 + 1001));
    }
    talk.silence();
    talk.peer(". 1:1 ack 2001");
    for segment in 10..14 {
        talk.we(&format!(". {}:{} ack 1", segment * 1000 + 1, segment * 1000 + 1001));
    }
    talk.silence();
}

#[test]
fn with_segmentation_by_the_card_one_output_spans_many_segments() {
    let mut talk = Conversation::established();
    talk.limits.segmentation_bytes = Some(65_000);
    talk.write(40_500).we(". 1:10001 ack 1").silence();
    talk.peer(". 1:1 ack 10001").we(". 10001:28001 ack 1").silence();
    talk.peer(". 1:1 ack 28001").we("P. 28001:40501 ack 1").silence();
}

#[test]
fn segments_refused_by_the_card_are_sent_later_and_once() {
    let mut talk = Conversation::established();
    talk.card_room = 2;
    talk.write(3500).we(". 1:1001 ack 1").we(". 1001:2001 ack 1").silence();
    talk.turn().silence();
    talk.card_room = usize::MAX;
    talk.turn().we(". 2001:3001 ack 1").we("P. 3001:3501 ack 1").silence();
}

#[test]
fn a_session_is_told_when_there_is_room_again() {
    let mut talk = Conversation::established();
    let bytes = super::conversation::bytes_at(0, 300_000);
    let taken = talk.tcb.send(talk.now, &bytes, &mut talk.pools);
    assert_eq!(taken, 256 * 1024);
    assert_eq!(talk.tcb.send_room(&talk.pools), 0);
    talk.turn().we_whatever();
    talk.peer(". 1:1 ack 1001").we_whatever();
    assert!(!talk.actions.send_room, "a little room is not worth a call");
    talk.peer(". 1:1 ack 10001");
    assert!(talk.actions.send_room);
    talk.we_whatever();
}

#[test]
fn a_session_is_told_when_empty_pools_have_room() {
    let mut talk = Conversation::established();
    let mut hoard = alloc::vec::Vec::new();
    while let Some(block) = talk.pools.lend_block() {
        hoard.push(block);
    }
    assert_eq!(talk.tcb.send_room(&talk.pools), 0);
    assert_eq!(talk.tcb.send(talk.now, b"hello", &mut talk.pools), 0);
    talk.wait(500);
    assert!(!talk.actions.send_room);
    hoard.into_iter().for_each(|block| talk.pools.give_back_block(block));
    talk.wait(60);
    assert!(talk.actions.send_room);
}

#[test]
fn an_idle_session_is_told_when_empty_pools_have_room() {
    let mut talk = Conversation::established();
    talk.write(100).we("P. 1:101 ack 1");
    let mut hoard = alloc::vec::Vec::new();
    while let Some(block) = talk.pools.lend_block() {
        hoard.push(block);
    }
    // The remaining blocks are reserved for received bytes.
    hoard.extend(talk.pools.blocks.take());
    talk.tcb.want_room(talk.now);
    talk.peer(". 1:1 ack 101");
    assert!(!talk.actions.send_room);
    hoard.into_iter().for_each(|block| talk.pools.give_back_block(block));
    talk.wait(60);
    assert!(talk.actions.send_room);
}

#[test]
fn blocks_released_by_the_card_go_to_waiting_sessions() {
    let mut talk = Conversation::established();
    let blocks: alloc::vec::Vec<_> = core::iter::from_fn(|| talk.pools.lend_block()).collect();
    let read_by_the_card = blocks.clone();
    blocks.into_iter().for_each(|block| talk.pools.give_back_block(block));
    assert_eq!(talk.tcb.send(talk.now, b"hello", &mut talk.pools), 0);
    talk.wait(210);
    assert!(!talk.actions.send_room);
    drop(read_by_the_card);
    talk.wait(60);
    assert!(talk.actions.send_room);
}

#[test]
fn static_pieces_are_sent_between_copied_bytes() {
    let mut talk = Conversation::established();
    static PIECE: [u8; 3000] = [7; 3000];
    talk.tcb.send(talk.now, b"ab", &mut talk.pools);
    talk.tcb.send_piece(talk.now, Piece::from_static(&PIECE), &mut talk.pools).unwrap();
    talk.tcb.send(talk.now, b"cd", &mut talk.pools);
    let mut wire = alloc::vec::Vec::new();
    let limits = talk.limits;
    let sent = talk.tcb.output(talk.now, limits, &talk.pools, &mut |_, pieces: &[Piece]| {
        pieces.iter().for_each(|piece| wire.extend_from_slice(piece.bytes()));
        Ok(())
    });
    assert!(sent.is_ok());
    assert_eq!(wire.len(), 3004);
    assert!(wire.starts_with(b"ab\x07") && wire.ends_with(b"\x07cd"));
    talk.peer(". 1:1 ack 3005");
    talk.lent_nothing();
}

#[test]
fn a_shared_block_is_not_returned_to_the_pool() {
    let mut talk = Conversation::established();
    let (free, mut block) = (talk.pools.free_blocks(), Arc::new([7; BLOCK_BYTES]));
    talk.tcb.send_piece(talk.now, Piece::from_shared(block.clone(), 500), &mut talk.pools).unwrap();
    talk.tcb.send(talk.now, b"ab", &mut talk.pools);
    assert_eq!(talk.pools.free_blocks(), free - 1, "later bytes are in another block");
    let mut wire = alloc::vec::Vec::new();
    let limits = talk.limits;
    let sent = talk.tcb.output(talk.now, limits, &talk.pools, &mut |_, pieces: &[Piece]| {
        pieces.iter().for_each(|piece| wire.extend_from_slice(piece.bytes()));
        Ok(())
    });
    assert!(sent.is_ok());
    assert_eq!(wire, [&[7; 500][..], b"ab"].concat());
    assert!(Arc::get_mut(&mut block).is_none(), "an unacknowledged piece is kept");
    talk.peer(". 1:1 ack 503");
    assert!(Arc::get_mut(&mut block).is_some());
    assert_eq!(talk.pools.free_blocks(), free);
    talk.lent_nothing();
}

#[test]
fn pieces_and_bytes_are_bounded() {
    let mut talk = Conversation::established();
    static PIECE: [u8; 1] = [7];
    let mut queued = 0;
    while talk.tcb.send_piece(talk.now, Piece::from_static(&PIECE), &mut talk.pools).is_ok() {
        queued += 1;
    }
    assert!((64..=64 * 18).contains(&queued), "{queued} pieces of a byte are taken");
    assert_eq!(talk.tcb.send(talk.now, b"x", &mut talk.pools), 0);
    assert_eq!(talk.tcb.send_room(&talk.pools), 0);
}

#[test]
fn a_closed_window_gets_only_probes_with_backoff() {
    let mut talk = Conversation::established();
    talk.peer(". 1:1 ack 1 win 0").write(10).silence();
    talk.wait(209).silence().wait(1).we(". 1:2 ack 1").silence();
    talk.peer(". 1:1 ack 1 win 0");
    talk.wait(419).silence().wait(1).we(". 1:2 ack 1").peer(". 1:1 ack 1 win 0");
    talk.wait(839).silence().wait(1).we(". 1:2 ack 1").peer(". 1:1 ack 2 win 0").silence();
    talk.wait(1680).we(". 2:3 ack 1").peer(". 1:1 ack 2 win 64000").we("P. 2:11 ack 1").silence();
    talk.peer(". 1:1 ack 11");
    talk.lent_nothing();
}

#[test]
fn probes_go_on_while_the_peer_answers_and_end_when_it_does_not() {
    let mut talk = Conversation::established();
    talk.peer(". 1:1 ack 1 win 0").write(10);
    for _ in 0..40 {
        talk.wait(60_000).peer(". 1:1 ack 1 win 0");
        assert!(talk.we_whatever() > 0);
    }
    for _ in 0..5 {
        talk.wait(60_000).we(". 1:2 ack 1").silence();
    }
    talk.wait(60_000).closed(crate::tcp::CloseReason::TimedOut).silence();
    talk.ended("gone");
}

#[test]
fn a_small_window_is_not_filled_with_a_small_segment() {
    let mut talk = Conversation::established();
    talk.peer(". 1:1 ack 1 win 100").write(3000).silence();
    talk.wait(210).we(". 1:101 ack 1").silence();
    talk.peer(". 1:1 ack 101 win 2500").we(". 101:1101 ack 1").we(". 1101:2101 ack 1").silence();
    talk.peer(". 1:1 ack 2101 win 900").we("P. 2101:3001 ack 1").silence();
}

#[test]
fn half_of_the_largest_window_is_worth_a_segment() {
    let handshake = crate::tcp::TcpHandshake {
        iss: crate::tcp::SequenceNumber(5),
        irs: crate::tcp::SequenceNumber(6),
        mss: 1000,
        peer_window_shift: Some(0),
        round_trip: None,
        timestamps: None,
        sack_permitted: false,
        ecn: false,
    };
    let mut talk = Conversation::with_window(handshake, 800);
    talk.peer(". 1:1 ack 1 win 399").write(3000).silence();
    talk.peer(". 1:1 ack 1 win 400").we(". 1:401 ack 1").silence();
}

#[test]
fn an_old_segment_does_not_change_the_window() {
    let mut talk = Conversation::established();
    talk.peer("P. 1:11 ack 1 win 500").wait(40).we(". 1:1 ack 11");
    talk.peer(". 11:11 ack 1 win 2000").peer(". 10:11 ack 1 win 1").we(". 1:1 ack 11");
    talk.write(1500).we(". 1:1001 ack 11").we("P. 1001:1501 ack 11").silence();
}

#[test]
fn a_pause_shrinks_the_congestion_window_to_the_initial_one() {
    let mut talk = Conversation::established();
    let mut at = 1;
    talk.limits.segmentation_bytes = Some(65_000);
    for _ in 0..6 {
        talk.write(40_000).we_whatever();
        at += 40_000;
        for back in (0..40_000).step_by(2000).rev() {
            talk.peer(&format!(". 1:1 ack {}", at - back));
        }
        talk.we_whatever();
    }
    talk.write(40_000).we_whatever();
    at += 40_000;
    talk.peer(&format!(". 1:1 ack {at}"));
    assert!(talk.tcb.congestion().window() > 30_000);
    talk.wait(1000).write(40_000).we(&format!(". {at}:{} ack 1", at + 10_000)).silence();
}

#[test]
fn a_request_after_a_pause_does_not_hide_the_pause() {
    let mut talk = Conversation::established();
    talk.limits.segmentation_bytes = Some(65_000);
    let mut at = 1;
    for _ in 0..10 {
        let count = talk.tcb.congestion().window().min(40_000);
        talk.write(count as usize).we_whatever();
        at += count;
        talk.peer(&format!(". 1:1 ack {at}"));
    }
    assert!(talk.tcb.congestion().window() > 20_000);
    talk.wait(1000).peer_quietly(&format!("P. 1:11 ack {at}"));
    talk.write(40_000).we(&format!(". {at}:{} ack 11", at + 10_000)).silence();
}

#[test]
fn an_older_acknowledgment_does_not_change_the_window() {
    let mut talk = Conversation::established();
    talk.write(10).we("P. 1:11 ack 1").peer(". 1:1 ack 11 win 2000").peer(". 1:1 ack 1 win 1");
    talk.write(1500).we(". 11:1011 ack 1").we("P. 1011:1511 ack 1").silence();
}

#[test]
fn unanswered_probes_do_not_lengthen_later_timeouts() {
    let mut talk = Conversation::established();
    talk.peer(". 1:1 ack 1 win 0").write(10).wait(6000);
    assert!(talk.we_whatever() >= 4);
    talk.peer(". 1:1 ack 1 win 64000")
        .we("P. 1:11 ack 1")
        .wait(209)
        .silence()
        .wait(1)
        .we("P. 1:11 ack 1")
        .silence();
}

#[test]
fn offload_gets_no_small_segment_cut_by_the_window() {
    let mut talk = Conversation::established();
    talk.limits.segmentation_bytes = Some(65_000);
    talk.peer(". 1:1 ack 1 win 2400").write(5000).we(". 1:2001 ack 1").silence();
}

#[test]
fn data_that_must_wait_requests_one_output_for_its_timer() {
    let mut talk = Conversation::established();
    talk.peer(". 1:1 ack 1 win 0");
    assert!(!talk.tcb.wants_output());
    assert_eq!(talk.tcb.send(talk.now, b"x", &mut talk.pools), 1);
    assert!(talk.tcb.wants_output());
    talk.turn().silence();
    assert!(!talk.tcb.wants_output());
    let timeout = Micros::from_millis(210);
    assert!(talk.tcb.deadline(talk.now).is_some_and(|at| at.since(talk.now) <= timeout));
}
