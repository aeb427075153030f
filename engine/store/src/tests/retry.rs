//! After a failed write or flush, the store serves again as soon as the disk works. The failed
//! changes never reappear.

use super::disk::{Cut, CutEffect, TestDisk};
use super::model::World;
use super::rig::{MIB, NOW, Rig, body};
use crate::account::NewAccount;
use crate::disk_requests::{ClientRequest, DiskRequestKind};
use crate::outcome::{Outcome, Refusal, State, WhyReadOnly};
use crate::segment::SegmentOwner;
use crate::segments::Want;
use crate::types::{INBOX, Recipient, UidRange};
use alloc::vec::Vec;
use machine::CoreId;

/// The failures of a disk: of writes, of flushes, or of both.
const FAILURES: [(bool, bool); 3] = [(true, false), (false, true), (true, true)];

fn fail(rig: &mut Rig, (writes, flushes): (bool, bool)) {
    (rig.disk.fail_writes, rig.disk.fail_flushes) = (writes, flushes);
}

fn retry(rig: &mut Rig) {
    rig.store.retry();
    rig.settle();
}

#[test]
fn store_serves_again_when_the_disk_works_again() {
    for failure in FAILURES {
        let mut rig = Rig::new(2 * MIB);
        let ada = rig.create("ada@example.org");
        rig.deliver(&[ada], &body(1, 500)).unwrap();
        fail(&mut rig, failure);
        assert_eq!(rig.deliver(&[ada], &body(2, 500)), Err(Refusal::ReadOnly));
        for _ in 0..3 {
            retry(&mut rig);
            assert!(matches!(rig.store.state(), State::ReadOnly(_)), "the disk does not work yet");
            assert_eq!(rig.deliver(&[ada], &body(3, 500)), Err(Refusal::ReadOnly));
            assert_eq!(rig.list(ada).len(), 1);
        }
        fail(&mut rig, (false, false));
        retry(&mut rig);
        assert!(rig.serving() && rig.store.is_at_rest());
        rig.deliver(&[ada], &body(4, 500)).unwrap();
        for cut in [Cut::Prefix(usize::MAX), Cut::Prefix(0), Cut::Dice] {
            rig = rig.cut(cut);
            let list = rig.list(ada);
            let octets: Vec<_> =
                list.iter().map(|message| rig.read(ada, message).unwrap()).collect();
            assert!(octets == [body(1, 500), body(4, 500)], "{} messages", octets.len());
        }
    }
}

#[test]
fn failed_group_on_the_disk_never_counts() {
    let mut refused = 0;
    for seed in 0..60 {
        let mut rig = Rig::on(TestDisk::new(2 * MIB, seed));
        let ada = rig.create("ada@example.org");
        rig.deliver(&[ada], &body(1, 500)).unwrap();
        fail(&mut rig, FAILURES[seed as usize % 3]);
        assert_eq!(rig.deliver(&[ada], &body(2, 500)), Err(Refusal::ReadOnly));
        fail(&mut rig, (false, false));
        retry(&mut rig);
        assert!(rig.serving());
        // Nothing was written after the retry. So only the fence prevents the failed group from
        // continuing the journal.
        for _ in 0..3 {
            rig = rig.cut(Cut::Dice);
            assert_eq!(rig.list(ada).len(), 1, "seed {seed}");
            assert!(rig.fsck().is_clean());
        }
        refused += 1;
    }
    assert_eq!(refused, 60);
}

/// If the write of a fence's second copy is lost, the place still has the bytes of the failed
/// group.
#[test]
fn block_copy_beside_its_fence_is_rejected() {
    for copy in 0..2 {
        let mut rig = Rig::new(2 * MIB);
        let ada = rig.create("ada@example.org");
        rig.deliver(&[ada], &body(1, 500)).unwrap();
        let place = |rig: &Rig| {
            let journal = rig.store.parts().journals.of(ada.shard()).unwrap();
            rig.store.parts().segments.geometry().place_page(journal.segment(), journal.place())
        };
        let page = place(&rig).plus(copy);
        let delivery = rig.store.begin(&[Recipient::inbox(ada)]).unwrap();
        rig.append(delivery, &body(2, 500)).unwrap();
        let (_, continuation) = rig.continuation();
        rig.store.commit(delivery, NOW, continuation).unwrap();
        rig.turn(0);
        let sectors = page.sector().0..page.plus(1).sector().0;
        let failed: Vec<_> = sectors.map(|number| rig.disk.newest(number).unwrap()).collect();
        rig.disk.fail_flushes = true;
        rig.settle();
        rig.disk.fail_flushes = false;
        retry(&mut rig);
        rig.deliver(&[ada], &body(3, 500)).unwrap();
        rig.disk.cut(Cut::Prefix(usize::MAX));
        for (number, bytes) in (page.sector().0..).zip(failed) {
            rig.disk.poke(number, bytes);
        }
        let mut rig = rig.cut(Cut::Prefix(0));
        let list = rig.list(ada);
        assert_eq!(list.len(), 2);
        assert_eq!(rig.read(ada, &list[1]), Ok(body(3, 500)));
        let rebuilt =
            |finding: &crate::Finding| matches!(finding.damage, crate::Damage::Rebuilt(_));
        assert!(!rig.store.findings().iter().any(rebuilt), "copy {copy}");
    }
}

#[test]
fn durable_superblock_is_not_overwritten() {
    for seed in 0..20 {
        let mut rig = Rig::on(TestDisk::new(2 * MIB, seed));
        let ada = rig.create("ada@example.org");
        rig.deliver(&[ada], &body(1, 500)).unwrap();
        rig.store.parts_mut().commit.superblock_is_due();
        fail(&mut rig, FAILURES[seed as usize % 3]);
        rig.settle();
        assert!(matches!(rig.store.state(), State::ReadOnly(_)));
        fail(&mut rig, (false, false));
        rig.store.retry();
        rig.turn(seed as usize % 4);
        assert!(!rig.serving());
        // All unflushed writes are lost, including the version that failed before.
        rig.disk.cut_each(|_| CutEffect::Garbage);
        let mut rig = Rig::on(rig.disk);
        assert!(rig.serving(), "{:?}", rig.store.state());
        let list = rig.list(ada);
        assert_eq!(rig.read(ada, &list[0]), Ok(body(1, 500)));
    }
}

/// A core may serve again before the disk owner does. It is lent no segment that a group on the
/// disk may name, unless a fence excludes that group.
#[test]
fn no_space_is_lent_before_the_disk_serves_again() {
    let mut rig = Rig::of_cores(TestDisk::new(64 * MIB, 7), 2);
    let ada = rig.create("ada@example.org");
    rig.begin_to_share();
    rig.disk.fail_flushes = true;
    assert_eq!(rig.deliver(&[ada], &body(2, 500)), Err(Refusal::ReadOnly));
    rig.disk.fail_flushes = false;
    let before = rig.store.parts().segments.free();
    rig.store.client_request_arrived(CoreId(1), ClientRequest(DiskRequestKind::Segments(4)));
    assert_eq!(rig.store.parts().segments.free(), before, "a segment was lent");
    retry(&mut rig);
    assert!(rig.all_serve());
    assert_eq!(
        rig.store.parts().segments.free(),
        before - 4,
        "the requested segments were not lent"
    );
}

#[test]
fn a_disk_without_a_free_segment_serves_again() {
    let mut rig = Rig::new(MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver(&[ada], &body(1, 500)).unwrap();
    let link_place = rig.store.parts().segments.geometry().link_place();
    let place = |rig: &Rig| rig.store.parts().journals.of(ada.shard()).unwrap().place();
    while place(&rig) != link_place - 1 {
        let delivered = rig.deliver(&[ada], &body(1, 500));
        assert!(delivered.is_ok());
    }
    while rig.store.parts_mut().segments.take(SegmentOwner::Elsewhere, Want::Journal).is_some() {}
    rig.disk.fail_writes = true;
    let (number, continuation) = rig.continuation();
    let first = UidRange::one(rig.list(ada)[0].uid);
    rig.store.remove(ada, INBOX, &[first], continuation).unwrap();
    assert!(matches!(rig.outcome(number), Outcome::Refused(Refusal::ReadOnly)));
    fail(&mut rig, (false, false));
    let before = rig.list(ada).len();
    retry(&mut rig);
    assert!(rig.serving(), "{:?}", rig.store.state());
    for _ in 0..3 {
        rig = rig.cut(Cut::Dice);
        assert_eq!(rig.list(ada).len(), before);
    }
}

#[test]
fn failed_account_creation_can_be_repeated() {
    let mut rig = Rig::new(2 * MIB);
    let new = NewAccount {
        address: "ada@example.org",
        aliases: &["a@example.org"],
        password_hash: "",
        verifier: "",
    };
    fail(&mut rig, (true, false));
    let (number, continuation) = rig.continuation();
    rig.store.create_account(&new, NOW, continuation).unwrap();
    assert!(matches!(rig.outcome(number), Outcome::Refused(Refusal::ReadOnly)));
    fail(&mut rig, (false, false));
    retry(&mut rig);
    assert_eq!(rig.store.find("a@example.org"), None);
    let (number, continuation) = rig.continuation();
    let id = rig.store.create_account(&new, NOW, continuation).unwrap();
    assert!(matches!(rig.outcome(number), Outcome::AccountCreated(_)));
    rig.deliver(&[id], &body(1, 10)).unwrap();
}

#[test]
fn refused_alias_change_leaves_the_addresses_as_they_were() {
    let mut rig = Rig::new(2 * MIB);
    let [ada, grace] = ["ada@example.org", "grace@example.org"].map(|name| rig.create(name));
    let set = |rig: &mut Rig, id, alias| {
        let (number, continuation) = rig.continuation();
        rig.store.set_aliases(id, &[alias], continuation).unwrap();
        rig.outcome(number)
    };
    assert!(matches!(set(&mut rig, ada, "one@example.org"), Outcome::Changed));
    fail(&mut rig, (true, false));
    let refused = set(&mut rig, ada, "two@example.org");
    assert!(matches!(refused, Outcome::Refused(Refusal::ReadOnly)));
    fail(&mut rig, (false, false));
    retry(&mut rig);
    assert_eq!(rig.store.find("one@example.org"), Some(ada));
    assert_eq!(rig.store.find("two@example.org"), None);
    assert!(matches!(set(&mut rig, grace, "two@example.org"), Outcome::Changed));
    assert_eq!(rig.store.find("two@example.org"), Some(grace));
}

#[test]
fn deliveries_in_progress_at_a_failure_free_their_space() {
    let mut rig = Rig::new(2 * MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver(&[ada], &body(1, 500)).unwrap();
    let before = rig.store.space();
    for failure in FAILURES {
        for _ in 0..4 {
            let delivery = rig.store.begin(&[Recipient::inbox(ada)]).unwrap();
            rig.append(delivery, &body(2, 60_000)).unwrap();
        }
        fail(&mut rig, failure);
        let refused = rig.deliver(&[ada], &body(3, 500));
        assert_eq!(refused, Err(Refusal::ReadOnly));
        fail(&mut rig, (false, false));
        retry(&mut rig);
        assert!(rig.serving() && rig.store.is_at_rest());
        assert_eq!(rig.store.usage(ada).mailboxes, 500);
    }
    // No space is lost, except that the open segment may have been closed early.
    let after = rig.store.space();
    assert!(
        after.body_bytes == before.body_bytes && after.free_bytes + 2 * 65_536 >= before.free_bytes,
        "{after:?}"
    );
}

#[test]
fn disk_with_a_failed_first_flush_is_not_retried() {
    let mut rig = Rig::new(2 * MIB);
    rig.create("ada@example.org");
    let mut rig = rig.cut_while_opening(Cut::Prefix(usize::MAX));
    rig.disk.fail_flushes = true;
    rig.settle();
    fail(&mut rig, (false, false));
    retry(&mut rig);
    assert_eq!(rig.store.state(), State::ReadOnly(WhyReadOnly::LastFlushFailed));
}

#[test]
fn torn_message_stays_dropped_after_a_disk_failure() {
    let mut rig = Rig::new(MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver(&[ada], &body(1, 70_000)).unwrap();
    let index = rig.store.parts().indexes.of(ada.shard());
    let entry = *index.mailbox(ada, 1).unwrap().messages().find(1).unwrap();
    let (last, _) = index.chunks(&entry).last().unwrap();
    rig.disk.cut(Cut::Prefix(usize::MAX));
    rig.disk.rot_at(last.sector().0, 20);
    let mut rig = Rig::opening(rig.disk);
    while !rig.serving() {
        rig.turn(1);
    }
    rig.disk.fail_writes = true;
    rig.settle();
    assert!(matches!(rig.store.state(), State::ReadOnly(_)));
    fail(&mut rig, (false, false));
    retry(&mut rig);
    assert!(rig.serving() && rig.list(ada).is_empty());
    rig.deliver(&[ada], &body(2, 500)).unwrap();
    rig = rig.cut(Cut::Prefix(usize::MAX));
    let list = rig.list(ada);
    assert_eq!(list.len(), 1);
    assert_eq!(rig.read(ada, &list[0]), Ok(body(2, 500)));
    assert!(rig.fsck().is_clean());
}

fn live(cores: u8, seed: u64, bytes: u64, accounts: usize, failures: u32) {
    let mut world = World::new(seed, bytes, accounts);
    if cores > 1 {
        world.rig.cores = cores;
        world = world.cut();
    }
    for _ in 0..failures {
        for _ in 0..world.dice.below(40) {
            world.act();
        }
        world.disk_fails(30);
        match world.dice.below(6) {
            0 => world = world.cut(),
            1 => {
                world.rig.settle();
                world.rig.store.retry();
                let turns = world.dice.below(20);
                (0..turns).for_each(|_| world.rig.turn(1));
                world = world.cut();
            }
            _ => world.serve_again(),
        }
        if world.dice.one_in(3) {
            world = world.cut();
        }
    }
    let report = world.cut().rig.fsck();
    assert!(report.refused.is_none() && report.accounts.len() == accounts, "{report}");
}

/// The number of lives of each kind, so that a test takes a few seconds.
const LIVES: u64 = if cfg!(debug_assertions) { 12 } else { 100 };

#[test]
fn all_promises_hold_when_the_disk_fails_and_recovers() {
    for seed in 0..LIVES {
        live(1, 5000 + seed, 4 << 20, 1 + seed as usize % 4, 30);
    }
}

#[test]
fn all_promises_hold_when_a_nearly_full_disk_fails() {
    for seed in 0..LIVES {
        live(1, 6000 + seed, 3 << 19, 1 + seed as usize % 3, 30);
    }
}

#[test]
fn all_promises_hold_when_a_shared_disk_fails() {
    for seed in 0..LIVES {
        live(2, 7000 + seed, 6 << 20, 1 + seed as usize % 8, 25);
    }
}
