//! The queue index stays consistent after any sequence of changes to the entries.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use store::{AccountId, Uid};

use super::*;

fn place(number: u64) -> Place {
    (AccountId::from_bits(number % 3), Uid(number as u32 / 3 + 1))
}

#[test]
fn waiting_and_held_entries_agree_with_entry_states() {
    let (mut index, mut random) = (QueueIndex::default(), 7u64);
    for _ in 0..20_000 {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (what, entry, at) =
            (random >> 60, place(random >> 40 & 63), Instant(random >> 20 & 15));
        let states =
            [State::Waits(at), State::Behind, State::UnderWay, State::Held, State::Claimed];
        match what {
            0..3 => index.found(entry, State::Waits(at)),
            3..5 => index.gone(entry),
            what => index.set(entry, states[what as usize % 5]),
        }
        let all: Vec<(Place, EntryStatus)> = index.behind(None).collect();
        let waiting: BTreeSet<(Instant, Place)> =
            all.iter()
                .filter_map(|(place, status)| {
                    if let State::Waits(at) = status.state { Some((at, *place)) } else { None }
                })
                .collect();
        assert_eq!(
            index.held(),
            all.iter().filter(|(_, status)| status.state == State::Held).count()
        );
        assert_eq!(index.count(), all.len());
        for own in 0..3 {
            let first_of_account = waiting
                .iter()
                .find(|(_, (account, _))| *account == AccountId::from_bits(own))
                .copied();
            assert_eq!(
                index.next(|account| account == AccountId::from_bits(own)),
                first_of_account
            );
        }
    }
}

#[test]
fn last_results_are_truncated_and_evicted() {
    let mut index = QueueIndex::default();
    for number in 0..WORDS_MAX as u64 + 10 {
        index.found(place(number), State::Behind);
        index.remember_result(place(number), "ü".repeat(number as usize % 300));
    }
    assert_eq!(index.words.len(), WORDS_MAX);
    assert!(index.words.values().all(|words| words.len() <= WORDS_BYTES_MAX));
    let last = place(WORDS_MAX as u64 + 9);
    assert!(index.words(last).is_some());
    index.gone(last);
    assert_eq!(index.words(last), None);
}

#[test]
fn a_replacement_is_as_old_as_its_entry() {
    let mut index = QueueIndex::default();
    let (date, other_date) = (UnixTime::from_seconds(5), UnixTime::from_seconds(6));
    let account = AccountId::from_bits(0);
    let of = |uid| (account, Uid(uid));
    // The second entry is from an earlier life.
    index.arrived(of(1), date, Instant(10));
    index.hold(of(1), Instant(30));
    index.found(of(2), State::UnderWay);
    let age = |index: &QueueIndex, uid, dated| index.age(of(uid), Micros(dated), Instant(1000)).0;
    let long = 2 * LIFETIME.0;
    let ages = [1, 2].map(|uid| [0, long].map(|dated| age(&index, uid, dated)));
    assert_eq!(ages[0], [970, 990]);
    index.begin_replacement(of(1), date);
    index.begin_replacement(of(2), other_date);
    index.arrived(of(3), date, Instant(900));
    index.arrived(of(4), other_date, Instant(900));
    index.arrived(of(5), UnixTime::from_seconds(7), Instant(900));
    assert_eq!([3, 4].map(|uid| [0, long].map(|dated| age(&index, uid, dated))), ages);
    assert_eq!([0, long].map(|dated| age(&index, 5, dated)), [100; 2]);
    index.gone(of(1));
    index.gone(of(2));
    index.arrived(of(6), date, Instant(900));
    assert_eq!(age(&index, 6, long), 100);
    assert!(index.replaced.is_empty());
}
