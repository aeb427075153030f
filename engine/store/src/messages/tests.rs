//! The messages of a mailbox, compared with an ordered map.

use super::*;
use crate::types::DatePlace;
use alloc::collections::BTreeMap;

const UIDS: u32 = 4_000;

fn entry(uid: u32) -> MessageEntry {
    MessageEntry::new(uid, 100 + uid, uid, 0, 1, u64::from(uid))
}

/// Checks the invariants at the head of the module.
fn check(messages: &Messages, known: &BTreeMap<u32, MessageEntry>) {
    assert!(messages.iter().eq(known.values()));
    assert_eq!(messages.len() as usize, known.len());
    assert_eq!(messages.octets(), known.values().map(|entry| u64::from(entry.octets)).sum::<u64>());
    assert!(messages.blocks.iter().all(|block| !block.is_empty()));
    for pair in messages.blocks.windows(2) {
        assert!(pair[0].len() + pair[1].len() > BLOCK_ENTRIES, "two neighbours fit into one block");
    }
    for block in &messages.blocks {
        assert!(
            block.capacity() <= 2 * block.len().max(4),
            "a block of {} has {}",
            block.len(),
            block.capacity()
        );
    }
}

#[test]
fn removal_keeps_uid_order_and_merges_half_empty_blocks() {
    let mut state = 1_u32;
    let mut chance = move |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % below
    };
    let (mut messages, mut known) = (Messages::default(), BTreeMap::new());
    for uid in 1..=UIDS {
        messages.insert(entry(uid));
        known.insert(uid, entry(uid));
    }
    while !known.is_empty() {
        let first = 1 + chance(UIDS);
        let last = first + [0, 0, 3, 70, 300][chance(5) as usize];
        let mut removed = Vec::new();
        messages.remove(first, last, &mut |entry| removed.push(entry.uid));
        let expected: Vec<u32> = known.range(first..=last).map(|(uid, _)| *uid).collect();
        assert_eq!(removed, expected);
        known.retain(|uid, _| !expected.contains(uid));
        check(&messages, &known);
    }
}

/// An entry. Its GUID number is that of its UID, or that of an earlier UID after a move.
fn dated(uid: u32, date: u32, guid: u32) -> MessageEntry {
    MessageEntry::new(uid, 100, uid, date, 1, u64::from(guid))
}

/// Compares the order of dates with that of a sorted list.
fn check_order(messages: &Messages) {
    let mut sorted: Vec<MessageEntry> = messages.iter().copied().collect();
    let is_in_order = sorted.is_sorted_by_key(|entry| entry.date);
    assert_eq!(messages.are_in_order(), is_in_order);
    if !is_in_order {
        sorted.sort_by_key(MessageEntry::date_place);
    }
    let ids = |entries: Vec<&MessageEntry>| entries.iter().map(|e| e.uid).collect::<Vec<_>>();
    for most in [0, 1, 50, UIDS as usize] {
        let expected = sorted.iter().rev().take(most).collect();
        assert_eq!(ids(messages.older(None, most).collect()), ids(expected));
    }
    for (index, entry) in sorted.iter().enumerate().step_by(1 + sorted.len() / 20) {
        let place = entry.date_place();
        assert_eq!(messages.count_older(place) as usize, index);
        for most in [1, 50] {
            let older = sorted[..index].iter().rev().take(most).collect();
            assert_eq!(ids(messages.older(Some(place), most).collect()), ids(older));
            let newer = sorted[index + 1..].iter().take(most).collect();
            assert_eq!(ids(messages.newer(place, most).collect()), ids(newer));
            let same = sorted[..=index].iter().rev().take(most).collect();
            let behind = DatePlace { uid: place.uid + 1, ..place };
            assert_eq!(ids(messages.older(Some(behind), most).collect()), ids(same));
        }
    }
}

#[test]
fn order_of_dates_holds_after_moves() {
    let mut state = 7_u32;
    let mut chance = move |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % below
    };
    let mut messages = Messages::default();
    check_order(&messages);
    for uid in 1..=UIDS / 8 {
        messages.insert(dated(uid, uid / 3, uid));
    }
    check_order(&messages);
    for step in 0..120 {
        let [first, last] = [chance(UIDS / 8), chance(4)];
        let mut moved = Vec::new();
        messages.remove(first, first + last, &mut |entry| moved.push(*entry));
        check_order(&messages);
        for entry in moved {
            let uid = UIDS + 10 * step + entry.uid % 10;
            messages.insert(dated(uid, entry.date, entry.guid() as u32));
        }
        check_order(&messages);
        // A new message between the moved ones, and one with a UID below them.
        messages.insert(dated(UIDS + 10 * step + 11, UIDS, UIDS + step));
        messages.insert(dated(UIDS / 8 + 1 + chance(UIDS / 2), chance(UIDS), UIDS + 200 + step));
        check_order(&messages);
    }
    messages.remove(UIDS / 8, u32::MAX, &mut |_| {});
    assert!(messages.are_in_order(), "only messages that were not moved are left");
    check_order(&messages);
}

#[test]
fn an_undone_move_restores_the_order_of_dates() {
    let mut messages = Messages::default();
    for uid in 1..=UIDS {
        messages.insert(dated(uid, uid, uid));
    }
    messages.remove(7, 8, &mut |_| {});
    for (uid, old) in [(UIDS + 1, 7), (UIDS + 2, 8)] {
        messages.insert(dated(uid, old, old));
    }
    let newest = messages.older(None, 1).map(|entry| entry.uid).next();
    assert_eq!(newest, Some(UIDS));
    let place = dated(0, 10, 10).date_place();
    let older: Vec<u32> = messages.older(Some(place), 4).map(|entry| entry.uid).collect();
    assert_eq!(older, [9, UIDS + 2, UIDS + 1, 6]);
}
