//! How full the disk and the index are, and how the cores share the limit of the index.

use super::disk::TestDisk;
use super::rig::{MIB, NOW, Rig, body, limits};
use crate::capacity::{BodySpace, Capacity};
use crate::chunk::CHUNK_OCTETS;
use crate::outcome::{Outcome, Refusal};
use crate::types::{AccountId, Limits, Recipient};
use crate::{RESIDENT_BYTES_PER_MESSAGE, Store};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

/// The messages for which the even share of a core is enough.
const EVEN: usize = 400;

/// The stores of `cores` cores with a small index, and an account of each core.
fn small_indexes(cores: u8) -> (Rig, Vec<AccountId>) {
    let resident_bytes = (EVEN * RESIDENT_BYTES_PER_MESSAGE) as u64;
    let limits = Limits { resident_bytes, ..limits() };
    let mut rig = Rig::of_cores_with(TestDisk::new(128 * MIB, 7), cores, limits);
    let mut of_each: BTreeMap<usize, AccountId> = BTreeMap::new();
    for number in 0..40 {
        let id = rig.create(&format!("user{number}@example.org"));
        of_each.entry(id.shard().index() % usize::from(cores)).or_insert(id);
    }
    rig.begin_to_share();
    assert_eq!(rig.owners.count(), cores);
    (rig, of_each.into_values().collect())
}

/// Delivers messages until the index is full. Returns their number.
fn fill_index(rig: &mut Rig, account: AccountId) -> usize {
    (0..4 * EVEN)
        .take_while(|number| match rig.deliver(&[account], &body(*number as u64, 10)) {
            Ok(()) => true,
            Err(refusal) => {
                assert_eq!(refusal, Refusal::IndexFull);
                false
            }
        })
        .count()
}

fn capacity(rig: &Rig) -> Capacity {
    rig.store.capacity().unwrap()
}

#[test]
fn one_core_may_use_nearly_all_of_the_index_limit() {
    for cores in [2, 4] {
        for core in 0..usize::from(cores) {
            let (mut rig, accounts) = small_indexes(cores);
            let all = EVEN * usize::from(cores);
            let taken = fill_index(&mut rig, accounts[core]);
            assert!((all * 9 / 10..=all).contains(&taken), "core {core}: {taken} of {all}");
            let limits_of = |store: &Store| store.parts().indexes.resident_bytes_max();
            let promised: u64 =
                core::iter::once(&rig.store).chain(&rig.clients).map(limits_of).sum();
            assert!(promised <= (all * RESIDENT_BYTES_PER_MESSAGE) as u64, "{promised}");
            rig.settle();
            assert!(capacity(&rig).index.is_full && capacity(&rig).index.percent() >= 90);
            // Deletions on this core make space for all others.
            let uids: Vec<u32> = rig.list(accounts[core]).iter().map(|one| one.uid.0).collect();
            for some in uids[..EVEN].chunks(8) {
                rig.remove(accounts[core], some).unwrap();
            }
            rig.settle();
            assert!(!capacity(&rig).index.is_full);
            let other = accounts[(core + 1) % usize::from(cores)];
            let taken = fill_index(&mut rig, other);
            assert!(taken >= EVEN * 8 / 10, "core {core}: {taken} for another core");
        }
    }
}

#[test]
fn a_restart_keeps_the_index_limit_of_a_core() {
    let (mut rig, accounts) = small_indexes(2);
    let taken = fill_index(&mut rig, accounts[1]);
    rig = rig.cut(super::disk::Cut::Prefix(0));
    assert_eq!(rig.list(accounts[1]).len(), taken);
    rig.settle();
    assert!(capacity(&rig).index.percent() >= 90);
    let uids: Vec<u32> = rig.list(accounts[1]).iter().map(|one| one.uid.0).collect();
    for some in uids[..100].chunks(8) {
        rig.remove(accounts[1], some).unwrap();
    }
    rig.settle();
    assert!(fill_index(&mut rig, accounts[1]) >= 60);
}

#[test]
fn restarts_with_a_full_index_do_not_enlarge_it() {
    for cores in [2, 4] {
        let (mut rig, accounts) = small_indexes(cores);
        let limit = (EVEN * usize::from(cores) * RESIDENT_BYTES_PER_MESSAGE) as u64;
        for restart in 0..5 {
            for account in &accounts {
                fill_index(&mut rig, *account);
            }
            rig.settle();
            let used = capacity(&rig).index.used;
            assert!(used <= limit, "{cores} cores, {restart} restarts: {used} of {limit}");
            rig = rig.cut(super::disk::Cut::Prefix(0));
        }
    }
}

#[test]
fn a_delivery_that_awaits_segments_is_no_refusal() {
    let mut rig = Rig::of_cores(TestDisk::new(64 * MIB, 7), 2);
    let mut of_each: BTreeMap<usize, AccountId> = BTreeMap::new();
    for number in 0..40 {
        let id = rig.create(&format!("user{number}@example.org"));
        of_each.entry(id.shard().index()).or_insert(id);
    }
    rig.begin_to_share();
    rig.settle();
    let of_client: Vec<Recipient> = of_each
        .into_iter()
        .filter(|(shard, _)| shard % 2 == 1)
        .map(|(_, id)| Recipient::inbox(id))
        .collect();
    let (number, continuation) = rig.continuation();
    let store = &mut rig.clients[0];
    let recipients = &of_client[..limits().recipients];
    assert!((store.parts().segments.spare() as usize) < recipients.len(), "no segment is awaited");
    let delivery = store.begin(recipients).unwrap();
    assert_eq!(store.append(delivery, b"hello", continuation), Ok(5));
    store.commit(delivery, NOW, continuation).unwrap();
    while !rig.outcomes.contains_key(&number) {
        rig.turn(1);
        assert!(!capacity(&rig).disk.is_full, "{:?}", capacity(&rig));
    }
    assert!(matches!(rig.outcomes.remove(&number), Some(Outcome::Delivered)));
}

#[test]
fn the_disk_owner_knows_how_full_the_disk_is() {
    for cores in [1, 4] {
        let mut rig = Rig::of_cores(TestDisk::new(32 * MIB, 7), cores);
        let account = (0..40)
            .map(|number| rig.create(&format!("user{number}@example.org")))
            .find(|account| account.shard().index() % usize::from(cores) + 1 == usize::from(cores))
            .unwrap();
        rig.begin_to_share();
        rig.settle();
        assert!(capacity(&rig).disk.percent() < 25, "{:?}", capacity(&rig));
        let mut before = capacity(&rig).disk.percent();
        while rig.deliver(&[account], &body(1, 60_000)).is_ok() {
            rig.settle();
            let now = capacity(&rig).disk.percent();
            assert!(now <= before + 2, "{before} % to {now} %");
            before = before.max(now);
        }
        rig.settle();
        let full = capacity(&rig).disk;
        assert!(full.is_full && (90..=100).contains(&full.percent()), "{full:?}");
        let uids: Vec<u32> = rig.list(account).iter().map(|message| message.uid.0).collect();
        for some in uids[..uids.len() / 2].chunks(8) {
            rig.remove(account, some).unwrap();
        }
        rig.settle();
        let half = capacity(&rig).disk;
        assert!(!half.is_full && (40..=65).contains(&half.percent()), "{half:?}");
    }
}

#[test]
fn a_message_that_an_empty_disk_holds_finds_space() {
    let mut rig = Rig::new(4 * MIB);
    let ada = rig.create("ada@example.org");
    let space = rig.store.room();
    let most = space.octets_max();
    assert!(most > 3 * MIB, "{most}");
    assert_eq!(space.check(most + 1), Err(Refusal::TooLarge));
    // Journals take some of the space while the message is delivered.
    let octets = most - 8 * CHUNK_OCTETS as u64;
    assert!(octets > 2 * MIB && space.holds(octets), "{octets}");
    rig.deliver(&[ada], &body(1, octets as usize)).unwrap();
    assert_eq!(rig.store.room().check(octets), Err(Refusal::DiskFull));
    assert_eq!(BodySpace::NONE.check(0), Err(Refusal::NotServing));
}
