//! Short scenarios with a power cut at every point, and another power cut at every point of the
//! recovery. For each cut, all small sets of sectors with another fate than the rest are tried.

use super::disk::{Cut, CutEffect, TestDisk};
use super::rig::{MIB, NOW, Rig, body};
use crate::account::NewAccount;
use crate::outcome::Outcome;
use crate::types::{AccountId, Recipient};
use alloc::vec::Vec;

/// The most pages for which every combination of old, new and garbage pages is tried.
const PAGES_MAX: usize = 5;

/// All disks that a power cut may leave of `disk`, within bounds: all sectors old or all new, with
/// up to two sectors that have any other fate. If the pages are few, also each page as a whole is
/// old, new or garbage.
fn remains(disk: &TestDisk) -> Vec<TestDisk> {
    let sectors = disk.unflushed();
    let cut = |fate: &dyn Fn(u64) -> CutEffect| {
        let mut disk = disk.clone();
        disk.cut_each(fate);
        disk
    };
    let mut all = Vec::new();
    for (usual, others) in [
        (CutEffect::Old, [CutEffect::New, CutEffect::Garbage]),
        (CutEffect::New, [CutEffect::Old, CutEffect::Garbage]),
    ] {
        all.push(cut(&|_| usual));
        for (at, first) in sectors.iter().enumerate() {
            for one in others {
                all.push(cut(&|sector| if sector == *first { one } else { usual }));
                for (second, two) in
                    sectors[at + 1..].iter().flat_map(|second| others.map(|two| (second, two)))
                {
                    let fate = |sector| match sector {
                        _ if sector == *first => one,
                        _ if sector == *second => two,
                        _ => usual,
                    };
                    all.push(cut(&fate));
                }
            }
        }
    }
    let mut pages: Vec<u64> = sectors.iter().map(|sector| sector / 8).collect();
    pages.dedup();
    if pages.len() <= PAGES_MAX {
        for combination in 0..3_usize.pow(pages.len() as u32) {
            all.push(cut(&|sector| {
                let digit = pages.iter().position(|page| *page == sector / 8).unwrap() as u32;
                [CutEffect::Old, CutEffect::New, CutEffect::Garbage]
                    [combination / 3_usize.pow(digit) % 3]
            }));
        }
    }
    all
}

/// Runs `act` with one completion a turn. At every point before, during and after it, calls `visit`
/// with the disk, and with whether the operation was acknowledged by then.
fn at_every_point(mut rig: Rig, act: impl Fn(&mut Rig), mut visit: impl FnMut(&TestDisk, bool)) {
    act(&mut rig);
    loop {
        let acknowledged =
            rig.outcomes.values().any(|outcome| !matches!(outcome, Outcome::DeliveryReady));
        visit(&rig.disk, acknowledged);
        if rig.disk.is_idle() {
            return;
        }
        rig.turn(1);
    }
}

/// Opens `disk` request by request, cuts the power at each point, and calls `visit` with each disk
/// that this may leave.
fn at_every_point_of_recovery(disk: TestDisk, mut visit: impl FnMut(TestDisk)) {
    let mut rig = Rig::opening(disk);
    rig.exchange();
    loop {
        for count in 0..=rig.disk.volatile_writes() {
            for torn in [0, 5, 8] {
                let mut disk = rig.disk.clone();
                disk.cut(if torn == 8 { Cut::Prefix(count) } else { Cut::TornAt(count, torn) });
                visit(disk);
            }
        }
        if rig.disk.is_idle() {
            return;
        }
        rig.turn(1);
    }
}

fn with_account() -> (Rig, AccountId) {
    let mut rig = Rig::new(MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver(&[ada], &body(1, 200)).unwrap();
    (rig, ada)
}

fn deliver(rig: &mut Rig, ada: AccountId) {
    let delivery = rig.store.begin(&[Recipient::inbox(ada)]).unwrap();
    rig.append(delivery, &body(2, 300)).unwrap();
    let (_, continuation) = rig.continuation();
    rig.store.commit(delivery, NOW, continuation).unwrap();
    rig.store.turn_ended();
    rig.exchange();
}

/// Checks that the first message exists, and that the second message exists completely or not at
/// all. If it was acknowledged, the second message must exist.
fn is_delivered_or_not(disk: TestDisk, ada: AccountId, acknowledged: bool) {
    let mut rig = Rig::on(disk);
    assert!(rig.serving(), "{:?}", rig.store.state());
    let list = rig.list(ada);
    assert!(
        list.len() == 2 || list.len() == 1 && !acknowledged,
        "{} messages, acknowledged: {acknowledged}",
        list.len()
    );
    for (message, number, length) in
        list.iter().zip([(1, 200), (2, 300)]).map(|(one, (n, l))| (one, n, l))
    {
        assert_eq!(rig.read(ada, message), Ok(body(number, length)));
    }
}

/// Checks that the second of two messages exists, and that the first message is gone if its removal
/// was acknowledged.
fn is_removed_or_not(disk: TestDisk, ada: AccountId, acknowledged: bool) {
    let mut rig = Rig::on(disk);
    assert!(rig.serving(), "{:?}", rig.store.state());
    let list = rig.list(ada);
    assert!(
        list.len() == 1 || list.len() == 2 && !acknowledged,
        "{} messages, acknowledged: {acknowledged}",
        list.len()
    );
    assert_eq!(rig.read(ada, list.last().unwrap()), Ok(body(2, 300)));
}

#[test]
fn delivery_is_atomic_for_any_set_of_written_sectors() {
    let (rig, ada) = with_account();
    let mut points = 0;
    at_every_point(
        rig,
        |rig| deliver(rig, ada),
        |disk, acknowledged| {
            for left in remains(disk) {
                is_delivered_or_not(left, ada, acknowledged);
                points += 1;
            }
        },
    );
    assert!(points > 5_000, "only {points} points");
}

/// Each page reaches the disk wholly or not at all, as when a virtual machine ends and its host
/// continues.
#[test]
fn any_written_pages_of_a_delivery_leave_a_clean_disk() {
    let (rig, ada) = with_account();
    let mut torn = 0;
    at_every_point(
        rig,
        |rig| deliver(rig, ada),
        |disk, _| {
            let mut pages: Vec<u64> = disk.unflushed().iter().map(|sector| sector / 8).collect();
            pages.dedup();
            for combination in 0..1_usize << pages.len() {
                let mut left = disk.clone();
                left.cut_each(|sector| {
                    let place = pages.iter().position(|page| *page == sector / 8).unwrap();
                    if combination >> place & 1 == 1 { CutEffect::New } else { CutEffect::Old }
                });
                let report = crate::fsck(&mut left);
                assert!(report.is_clean(), "{report}");
                torn += report.findings.len();
            }
        },
    );
    assert!(torn > 0, "no delivery was cut off");
}

#[test]
fn removal_is_atomic_for_any_set_of_written_sectors() {
    let (mut rig, ada) = with_account();
    rig.deliver(&[ada], &body(2, 300)).unwrap();
    at_every_point(
        rig,
        |rig| rig.remove_without_waiting(ada, 1),
        |disk, acknowledged| {
            remains(disk).into_iter().for_each(|left| is_removed_or_not(left, ada, acknowledged))
        },
    );
}

#[test]
fn first_account_is_atomic_for_any_set_of_written_sectors() {
    at_every_point(
        Rig::new(MIB),
        |rig| {
            let (_, continuation) = rig.continuation();
            let new = NewAccount {
                address: "ada@example.org",
                aliases: &[],
                password_hash: "x",
                verifier: "",
            };
            rig.store.create_account(&new, NOW, continuation).unwrap();
            rig.store.turn_ended();
            rig.exchange();
        },
        |disk, acknowledged| {
            for left in remains(disk) {
                let rig = Rig::on(left);
                assert!(rig.serving(), "{:?}", rig.store.state());
                assert!(rig.store.find("ada@example.org").is_some() || !acknowledged);
            }
        },
    );
}

#[test]
fn recovery_cut_anywhere_loses_nothing_after_any_first_cut() {
    let (rig, ada) = with_account();
    let mut points = 0;
    at_every_point(
        rig,
        |rig| deliver(rig, ada),
        |disk, acknowledged| {
            for sector in [None].into_iter().chain(disk.unflushed().into_iter().map(Some)) {
                for usual in [CutEffect::Old, CutEffect::New] {
                    let mut left = disk.clone();
                    left.cut_each(
                        |one| if Some(one) == sector { CutEffect::Garbage } else { usual },
                    );
                    let was_there = Rig::on(left.clone()).list(ada).len() == 2;
                    at_every_point_of_recovery(left, |again| {
                        is_delivered_or_not(again, ada, acknowledged || was_there);
                        points += 1;
                    });
                }
            }
        },
    );
    assert!(points > 2_000, "only {points} points");
}
