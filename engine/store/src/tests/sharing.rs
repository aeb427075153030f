//! Shards owned by several cores: the number of owners, one flush for all, and space that moves
//! between cores.

use super::disk::TestDisk;
use super::rig::{MIB, NOW, Rig, body};
use crate::disk_requests::{ClientRequest, DiskRequestKind, NoticeKind, OwnerNotice};
use crate::layout::PIECE_PAGES;
use crate::outcome::{Outcome, Refusal, State, WhyReadOnly};
use crate::types::{AccountId, INBOX, Recipient};
use crate::{Owners, SHARDS};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use machine::CoreId;

/// The stores of `cores` cores, and an account of each core.
fn shared(bytes: u64, cores: u8) -> (Rig, Vec<AccountId>) {
    let mut rig = Rig::of_cores(TestDisk::new(bytes, 7), cores);
    let mut of_each: BTreeMap<usize, AccountId> = BTreeMap::new();
    for number in 0..40 {
        let id = rig.create(&format!("user{number}@example.org"));
        of_each.entry(id.shard().index() % usize::from(cores)).or_insert(id);
    }
    assert_eq!(of_each.len(), usize::from(cores));
    rig.begin_to_share();
    (rig, of_each.into_values().collect())
}

/// Commits a message without waiting for anything.
fn post(rig: &mut Rig, to: AccountId, octets: &[u8]) -> u32 {
    let (number, continuation) = rig.continuation();
    let store = rig.at(to);
    let delivery = store.begin(&[Recipient::inbox(to)]).unwrap();
    assert_eq!(store.append(delivery, octets, continuation), Ok(octets.len()));
    store.commit(delivery, NOW, continuation).unwrap();
    number
}

#[test]
fn each_core_owns_and_knows_its_shards() {
    let (mut rig, accounts) = shared(64 * MIB, 8);
    assert_eq!((rig.owners.count(), rig.clients.len()), (8, 7));
    for (account, number) in accounts.iter().zip(1..) {
        rig.deliver(&[*account], &body(number, 50_000)).unwrap();
    }
    for cores in [3, 1, 5] {
        rig.cores = cores;
        rig = rig.cut(super::disk::Cut::Prefix(0));
        assert_eq!(rig.owners.count(), cores);
        for (account, number) in accounts.iter().zip(1..) {
            let list = rig.list(*account);
            assert_eq!(list.len(), 1);
            assert_eq!(rig.read(*account, &list[0]), Ok(body(number, 50_000)));
        }
    }
    assert!(rig.fsck().is_clean());
}

#[test]
fn fewer_cores_own_shards_on_a_small_disk() {
    for (bytes, cores) in [(MIB, 1), (2 * MIB, 1), (64 * MIB, 16)] {
        let mut rig = Rig::of_cores(TestDisk::new(bytes, 7), 16);
        rig.create("ada@example.org");
        rig.begin_to_share();
        assert_eq!(rig.owners.count(), cores, "{bytes}");
    }
    assert_eq!(Owners::ONE.count(), 1);
    assert_eq!(SHARDS % 16, 0);
}

#[test]
fn several_cores_share_a_flush() {
    let (mut rig, accounts) = shared(64 * MIB, 8);
    // Each journal has begun.
    for account in &accounts {
        rig.deliver(&[*account], &body(1, 500)).unwrap();
    }
    let before = rig.disk.flushes;
    let numbers: Vec<u32> =
        accounts.iter().map(|account| post(&mut rig, *account, &body(2, 500))).collect();
    rig.settle();
    for number in numbers {
        assert!(matches!(rig.outcomes.remove(&number), Some(Outcome::Delivered)));
    }
    let flushes = rig.disk.flushes - before;
    assert!((1..8).contains(&flushes), "{flushes} flushes for 8 cores");
}

#[test]
fn disk_failure_of_one_core_stops_all_cores() {
    for fails_flush in [false, true] {
        let (mut rig, accounts) = shared(64 * MIB, 4);
        for account in &accounts {
            rig.deliver(&[*account], &body(1, 500)).unwrap();
        }
        let number = post(&mut rig, accounts[2], &body(2, 500));
        (rig.disk.fail_flushes, rig.disk.fail_writes) = (fails_flush, !fails_flush);
        rig.settle();
        (rig.disk.fail_flushes, rig.disk.fail_writes) = (false, false);
        assert!(matches!(rig.outcomes.remove(&number), Some(Outcome::Refused(Refusal::ReadOnly))));
        for account in &accounts {
            assert!(matches!(rig.at(*account).state(), State::ReadOnly(_)));
            let list = rig.list(*account);
            assert_eq!(rig.read(*account, &list[0]), Ok(body(1, 500)));
        }
    }
}

#[test]
fn read_gets_the_buffers_of_deliveries_refused_on_failure() {
    let why = WhyReadOnly::WriteFailed;
    for of_first in [false, true] {
        let (mut rig, accounts) = shared(64 * MIB, 2);
        let account = accounts[usize::from(!of_first)];
        rig.deliver(&[account], &body(1, 30_000)).unwrap();
        let uid = rig.list(account)[0].uid;
        while rig.at(account).parts().pool.has_sparing(PIECE_PAGES) {
            let (_, continuation) = rig.continuation();
            let store = rig.at(account);
            let delivery = store.begin(&[Recipient::inbox(account)]).unwrap();
            assert_eq!(store.append(delivery, &body(2, 8_000), continuation), Ok(8_000));
        }
        let (number, continuation) = rig.continuation();
        rig.at(account).read(account, INBOX, uid, 0, continuation).unwrap();
        assert!(rig.at(account).is_short_of_buffers());
        match of_first {
            true => rig
                .store
                .client_request_arrived(CoreId(1), ClientRequest(DiskRequestKind::Failed(why))),
            false => rig.at(account).owner_notice_arrived(OwnerNotice(NoticeKind::Failed(why))),
        }
        assert!(!rig.at(account).is_short_of_buffers(), "the read still waits");
        rig.settle();
        assert!(matches!(rig.outcomes.remove(&number), Some(Outcome::Body(_))));
    }
}

#[test]
fn space_freed_by_one_core_is_available_to_another() {
    let (mut rig, accounts) = shared(16 * MIB, 3);
    assert_eq!(rig.owners.count(), 3);
    let (first, second) = (accounts[1], accounts[2]);
    let mut delivered = 0;
    while rig.deliver(&[first], &body(1, 60_000)).is_ok() {
        delivered += 1;
    }
    // One core has had most of the space.
    assert!(delivered > 60, "{delivered}");
    assert!(!rig.at(first).room().holds(60_000));
    let mut others = 0;
    while rig.deliver(&[second], &body(1, 60_000)).is_ok() {
        others += 1;
    }
    let uids: Vec<u32> = rig.list(first).iter().map(|message| message.uid.0).collect();
    for some in uids.chunks(8) {
        rig.remove(first, some).unwrap();
    }
    rig.settle();
    let mut more = 0;
    while rig.deliver(&[second], &body(1, 60_000)).is_ok() {
        more += 1;
    }
    assert!(more > delivered / 2, "{others}, then {more} of {delivered}");
}

#[test]
fn every_core_knows_when_half_of_the_disk_is_in_use() {
    let (mut rig, accounts) = shared(32 * MIB, 4);
    assert_eq!(rig.owners.count(), 4);
    rig.settle();
    let half_full_cores =
        |rig: &mut Rig| accounts.iter().filter(|account| rig.at(**account).is_half_full()).count();
    assert_eq!(half_full_cores(&mut rig), 0);
    let mut octets = 0;
    while half_full_cores(&mut rig) < accounts.len() {
        assert!(octets <= rig.store.disk_bytes() / 2, "{octets} are in use");
        rig.deliver(&[accounts[1]], &body(1, 60_000)).unwrap();
        octets += 60_000;
        rig.settle();
    }
    assert!(octets > rig.store.disk_bytes() / 4, "{octets} are in use");
    let uids: Vec<u32> = rig.list(accounts[1]).iter().map(|message| message.uid.0).collect();
    for some in uids.chunks(8) {
        rig.remove(accounts[1], some).unwrap();
    }
    rig.settle();
    assert_eq!(half_full_cores(&mut rig), 0);
}

#[test]
fn prepared_delivery_keeps_its_space_on_a_full_disk() {
    let mut rig = Rig::new(MIB);
    let ada = rig.create("ada@example.org");
    let octets = body(1, 50_000);
    let prepared = rig.store.begin(&[Recipient::inbox(ada)]).unwrap();
    rig.append(prepared, &octets).unwrap();
    let (number, continuation) = rig.continuation();
    assert_eq!(rig.store.prepare(prepared, continuation), Ok(true));
    while rig.deliver(&[ada], &body(2, 30_000)).is_ok() {}
    let refused = rig.store.begin(&[Recipient::inbox(ada)]).unwrap();
    rig.append(refused, &octets[..20_000]).unwrap();
    assert_eq!(rig.store.prepare(refused, continuation), Err(Refusal::DiskFull));
    rig.store.commit(prepared, NOW, continuation).unwrap();
    rig.settle();
    assert!(matches!(rig.outcomes.remove(&number), Some(Outcome::Delivered)));
    let last = *rig.list(ada).last().unwrap();
    assert_eq!(rig.read(ada, &last), Ok(octets));
}
