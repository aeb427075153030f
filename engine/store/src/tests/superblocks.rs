//! Versions of the superblock. A version is needed only until the next version is durable. No
//! version is written while the version before it may be lost.

use super::disk::{Cut, CutEffect};
use super::rig::{MIB, Rig, body};
use crate::finding::Damage;
use crate::layout::PAGE_SECTORS;
use crate::outcome::{State, WhyReadOnly};
use crate::superblock::{SlotContent, Superblock};
use crate::types::{AccountId, Uid};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// The segments of the previous version's roots stay unchanged until that version is replaced, too.
#[test]
fn all_mail_survives_the_loss_of_the_newest_superblock() {
    let mut rig = Rig::new(2 * MIB);
    let accounts = [
        rig.create("ada@example.org"),
        rig.create("bob@example.org"),
        rig.create("eve@example.org"),
    ];
    let (mut kept, mut roots) = (Vec::new(), BTreeSet::new());
    for number in 1..600 {
        let account = accounts[number as usize / 10 % 3];
        rig.deliver(&[account], &body(number, 600)).unwrap();
        let uid = rig.list(account).last().unwrap().uid;
        if number % 15 == 0 {
            kept.push((account, uid, number));
        } else {
            rig.remove(account, &[uid.0]).unwrap();
        }
        roots.extend(rig.store.parts().superblock.roots.iter().flatten().map(|root| root.sequence));
        let mut disk = rig.disk.clone();
        disk.cut(Cut::Prefix(usize::MAX));
        let superblock = &rig.store.parts().superblock;
        let slots = superblock.geometry.slots();
        superblock.slot_numbers().into_iter().for_each(|slot| disk.rot(slots[slot].sector().0));
        let opened = Rig::on(disk);
        let unexpected =
            opened.store.findings().iter().find(|finding| finding.damage != Damage::Superblock);
        assert_eq!(unexpected, None, "after message {number}");
        let uids = |rig: &Rig| {
            accounts.map(|account| rig.list(account).iter().map(|one| one.uid).collect::<Vec<_>>())
        };
        assert_eq!(uids(&opened), uids(&rig), "after message {number}");
        if number % 10 == 0 {
            are_kept_by(opened, &accounts, &kept);
        }
    }
    assert!(roots.len() > 20, "{} checkpoints", roots.len());
}

/// Checks that these messages stay intact while others come and go.
fn are_kept_by(mut rig: Rig, accounts: &[AccountId], kept: &[(AccountId, Uid, u64)]) {
    for life in 0..3 {
        for (account, uid, number) in kept {
            let message = *rig.list(*account).iter().find(|message| message.uid == *uid).unwrap();
            assert!(
                rig.read(*account, &message) == Ok(body(*number, 600)),
                "life {life}: {number}"
            );
        }
        for (number, account) in (10_000..).zip(accounts.iter().cycle().take(60)) {
            rig.deliver(&[*account], &body(number, 600)).unwrap();
            let uid = rig.list(*account).last().unwrap().uid;
            rig.remove(*account, &[uid.0]).unwrap();
        }
        rig = rig.cut(Cut::Prefix(0));
    }
}

/// A root has moved, and the previous version still refers to the segments before the new root.
/// Then the power fails. The next life uses these segments, and after that the newest version is
/// lost.
#[test]
fn no_single_superblock_version_is_needed_after_a_root_moved() {
    let mut rig = Rig::new(2 * MIB);
    let accounts = [rig.create("ada@example.org"), rig.create("bob@example.org")];
    let segments =
        |rig: &Rig| rig.store.parts().journals.of(accounts[0].shard()).unwrap().chain().len();
    while segments(&rig) < 3 {
        rig.deliver(&accounts[..1], &body(0, 600)).unwrap();
        let uid = rig.list(accounts[0]).last().unwrap().uid;
        rig.remove(accounts[0], &[uid.0]).unwrap();
    }
    rig.deliver(&accounts, &body(1, 600)).unwrap();
    let (mut points, mut failed) = (0, 0);
    let mut versions = BTreeSet::new();
    rig.store.parts_mut().journals.needs_mending(accounts[0].shard());
    rig.store.turn_ended();
    rig.exchange();
    while !rig.disk.is_idle() {
        for (cut, bodies) in [0, usize::MAX]
            .into_iter()
            .flat_map(|count| [2, 6, 12, 18, 24].map(|bodies| (count, bodies)))
        {
            let mut disk = rig.disk.clone();
            disk.cut(Cut::Prefix(cut));
            // If the second version cannot be written, nothing else is written.
            let mut refusing = Rig::opening(disk.clone());
            refusing.disk.fail_writes = true;
            refusing.settle();
            failed += usize::from(
                refusing.store.state() == State::ReadOnly(WhyReadOnly::LastFlushFailed),
            );
            let mut next = Rig::on(disk);
            assert!(next.serving());
            assert_eq!(refusing.list(accounts[0]), next.list(accounts[0]));
            versions.insert(next.store.parts().superblock.sequence);
            // Two bodies fill a segment.
            (0..bodies).for_each(|number| {
                next.deliver(&accounts[1..], &body(10_000 + number, 30_000)).unwrap()
            });
            let uids = |rig: &Rig| {
                accounts
                    .map(|account| rig.list(account).iter().map(|one| one.uid).collect::<Vec<_>>())
            };
            let expected = uids(&next);
            let superblock = &next.store.parts().superblock;
            let slots = superblock.geometry.slots();
            let newest = superblock.slot_numbers().map(|slot| slots[slot].sector().0);
            next.disk.cut(Cut::Prefix(usize::MAX));
            newest.into_iter().for_each(|sector| next.disk.rot(sector));
            let next = Rig::on(next.disk);
            let unexpected =
                next.store.findings().iter().find(|finding| finding.damage != Damage::Superblock);
            assert_eq!((unexpected, uids(&next)), (None, expected), "point {points}");
            points += 1;
        }
        rig.turn(1);
    }
    assert!(
        points > 40 && versions.len() > 1 && failed > 0,
        "{points} points, {versions:?}, {failed} failed"
    );
}

/// The machine restarts while a root moves, but the device keeps its power and its cache. Then the
/// power fails while the disk is being opened, and all unflushed slots are torn.
#[test]
fn no_superblock_is_written_before_the_current_is_durable() {
    let mut rig = Rig::new(2 * MIB);
    let ada = rig.create("ada@example.org");
    (1..=4).for_each(|number| rig.deliver(&[ada], &body(number, 600)).unwrap());
    rig.store.parts_mut().journals.needs_mending(ada.shard());
    rig.store.turn_ended();
    rig.exchange();
    let slots = rig.store.parts().superblock.geometry.slots().map(|page| page.sector());
    let is_slot =
        |sector| slots.iter().any(|slot| (slot.0..slot.0 + PAGE_SECTORS).contains(&sector));
    let mut renewed = 0;
    while !rig.disk.is_idle() {
        let mut disk = rig.disk.clone();
        disk.forget_requests();
        let mut next = Rig::opening(disk);
        while next.store.state() == State::Opening {
            next.turn(1);
            let mut disk = next.disk.clone();
            renewed += usize::from(disk.unflushed().into_iter().any(is_slot));
            disk.cut_each(
                |sector| if is_slot(sector) { CutEffect::Garbage } else { CutEffect::New },
            );
            let last = Rig::on(disk);
            assert_eq!(last.store.state(), State::Serving);
            assert_eq!(last.list(ada).len(), 4);
        }
        rig.turn(1);
    }
    assert!(renewed > 4, "{renewed} times a slot was not flushed");
}

/// A slot that is unreadable now may have a version of format 3, and may be readable later.
#[test]
fn lost_slot_causes_a_rewrite_of_all_slots_before_serving() {
    let mut rig = Rig::new(2 * MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver(&[ada], &body(1, 600)).unwrap();
    let slots = rig.store.parts().superblock.geometry.slots();
    for lost in slots {
        let mut disk = rig.disk.clone();
        disk.rot(lost.sector().0);
        let mut opened = Rig::opening(disk);
        opened.until_serving();
        for page in slots {
            let sectors = page.sector().0..page.sector().0 + PAGE_SECTORS;
            let bytes: Vec<u8> = sectors.flat_map(|sector| opened.disk.peek(sector)).collect();
            assert!(
                matches!(Superblock::parse(&bytes, page), SlotContent::Valid(_)),
                "{page:?} after {lost:?}"
            );
        }
        assert_eq!(opened.list(ada).len(), 1);
    }
}

/// Slots 2 and 3 are where the end of the disk was when it was formatted.
#[test]
fn a_grown_disk_has_its_four_slots_where_they_were() {
    let mut rig = Rig::new(2 * MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver(&[ada], &body(1, 600)).unwrap();
    rig = rig.cut(Cut::Prefix(usize::MAX));
    let (sequence, slots) = {
        let superblock = &rig.store.parts().superblock;
        (superblock.sequence, superblock.geometry.slots())
    };
    rig.disk.cut(Cut::Prefix(usize::MAX));
    rig.disk.resize(8 * MIB);
    for life in 0..3 {
        rig = Rig::on(rig.disk);
        assert!(rig.serving() && rig.store.findings().is_empty());
        assert_eq!(
            rig.store.parts().superblock.sequence,
            sequence,
            "life {life} writes no version"
        );
        rig.disk.cut(Cut::Prefix(usize::MAX));
    }
    // One of the slots is lost, and written again.
    rig.disk.rot(slots[2].sector().0);
    rig = Rig::on(rig.disk);
    assert_eq!(rig.store.findings().len(), 1, "{:?}", rig.store.findings());
    assert!(rig.serving() && rig.store.parts().superblock.sequence > sequence);
    rig = rig.cut(Cut::Prefix(usize::MAX));
    assert!(rig.store.findings().is_empty());
    assert_eq!(rig.list(ada).len(), 1);
}
