//! A stream that is cut, repeated, overlapped and shuffled is delivered whole, in order and once.

use alloc::format;
use alloc::vec::Vec;

use chance::Dice;

use super::conversation::Session;
use super::{Conversation, everywhere};

/// All orders of `items`.
fn orders<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    if items.is_empty() {
        return alloc::vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (place, item) in items.iter().enumerate() {
        let mut rest = items.to_vec();
        rest.remove(place);
        for mut order in orders(&rest) {
            order.insert(0, item.clone());
            all.push(order);
        }
    }
    all
}

/// The number of the first `end` bytes that have arrived without a gap, computed in the simplest
/// way.
fn contiguous(arrived: &[(u32, u32)], end: u32) -> u32 {
    (1..end)
        .take_while(|place| arrived.iter().any(|(from, to)| (from..to).contains(&place)))
        .count() as u32
}

#[test]
fn every_order_of_overlapping_segments_gives_the_same_stream() {
    let segments = [(1u32, 5u32), (3, 9), (5, 8), (8, 14), (12, 16), (2, 15)];
    for order in orders(&segments) {
        for session in [Session::TakesAll, Session::LeavesAll] {
            let mut talk = Conversation::established_at(5, u32::MAX - 7);
            talk.session = session;
            let mut arrived = Vec::new();
            for (from, to) in &order {
                talk.peer(&format!(". {from}:{to} ack 1"));
                arrived.push((*from, *to));
                let expected = contiguous(&arrived, 16);
                assert_eq!(
                    talk.tcb.receive().nxt.0.wrapping_sub(u32::MAX - 6),
                    expected,
                    "{order:?}"
                );
                if session == Session::TakesAll {
                    assert_eq!(talk.given, expected, "{order:?}");
                }
            }
            talk.take(usize::MAX);
            assert_eq!(talk.given, 15);
            talk.lent_nothing();
        }
    }
}

#[test]
fn every_order_with_a_fin_ends_the_stream_once() {
    let segments = [(". 1:5", 0), (". 3:9", 0), (". 9:14", 0), ("F. 12:16", 1), ("F. 16:16", 1)];
    for order in orders(&segments) {
        let mut talk = Conversation::established_at(5, u32::MAX - 7);
        let mut ends = 0;
        for (text, _) in &order {
            talk.peer(&format!("{text} ack 1"));
            ends += u32::from(talk.actions.peer_closed);
        }
        assert_eq!((talk.given, ends), (15, 1), "{order:?}");
        assert_eq!(talk.state(), "CloseWait");
        talk.lent_nothing();
    }
}

#[test]
fn random_cuts_repeats_and_orders_arrive_whole() {
    for seed in 0..60 {
        let mut dice = Dice::new(seed);
        let mut talk = Conversation::established_at(dice.roll() as u32, dice.roll() as u32);
        let end = 150_001;
        // At the start of each round, all delivered bytes are acknowledged. So all segments of the
        // round are within the window.
        let mut rounds = 0;
        while talk.given < end - 1 {
            rounds += 1;
            let nxt = talk.given + 1;
            for _ in 0..20 {
                let from = nxt.saturating_sub(500).max(1) + dice.below(30_000) as u32;
                let to = (from + dice.below(8000) as u32).min(end);
                if from < to && to <= nxt + 65_000 {
                    talk.peer(&format!(". {from}:{to} ack 1"));
                }
            }
            talk.peer(&format!(". {nxt}:{} ack 1", (nxt + 700).min(end)));
            talk.we_whatever();
            assert!(rounds < 2000, "the stream makes progress");
        }
        talk.lent_nothing();
    }
}

#[test]
fn a_stream_is_the_same_at_any_sequence_number() {
    everywhere(|talk| {
        for start in (1..70_001u32).step_by(2000) {
            talk.peer(&format!(". {}:{} ack 1", start + 1000, start + 2000));
            talk.peer(&format!(". {start}:{} ack 1", start + 1000));
            talk.we_whatever();
        }
        assert_eq!(talk.given, 70_000);
        talk.lent_nothing();
    });
}
