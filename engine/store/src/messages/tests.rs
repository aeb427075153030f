//! The messages of a mailbox, compared with an ordered map.

use super::*;
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

#[test]
fn count_below_works_from_either_end() {
    let mut messages = Messages::default();
    for uid in (2..=2 * UIDS).step_by(2) {
        messages.insert(entry(uid));
    }
    for uid in 0..=2 * UIDS + 1 {
        assert_eq!(messages.count_below(uid), uid.saturating_sub(1) / 2, "{uid}");
    }
    assert_eq!(Messages::default().count_below(7), 0);
}
