//! Power cuts at every point of short scenarios: every prefix of the writes, and each sector of the
//! next write torn.

use super::disk::{Cut, TestDisk};
use super::rig::{MIB, NOW, Rig, body, password as of};
use crate::account::NewAccount;
use crate::types::{AccountId, INBOX, Recipient};
use crate::{NoteChange, block};
use alloc::string::String;
use alloc::vec::Vec;
use chance::Dice;

/// Runs a scenario with one completion a turn, and cuts the power at every point in every way.
pub(super) fn at_every_point(
    mut start: Rig,
    act: impl Fn(&mut Rig),
    check: impl Fn(Rig, bool),
) -> usize {
    act(&mut start);
    let mut points = 0;
    let mut ended = false;
    while !ended {
        ended = start.disk.is_idle();
        let acknowledged = start
            .outcomes
            .values()
            .any(|outcome| !matches!(outcome, crate::Outcome::DeliveryReady));
        for count in 0..=start.disk.volatile_writes() {
            for torn in 0..=8 {
                let mut disk = start.disk.clone();
                disk.cut(if torn == 8 { Cut::Prefix(count) } else { Cut::TornAt(count, torn) });
                check(Rig::on(disk), acknowledged);
                points += 1;
            }
        }
        for seed in 0..20 {
            let mut disk = start.disk.clone();
            disk.dice = Dice::new(seed * 7919);
            disk.cut(Cut::Dice);
            check(Rig::on(disk), acknowledged);
            points += 1;
        }
        start.turn(1);
    }
    points
}

fn with_account() -> (Rig, AccountId) {
    let mut rig = Rig::new(2 * MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver(&[ada], &body(1, 1000)).unwrap();
    (rig, ada)
}

/// Checks that the earlier message exists, and that the new message exists completely or not at
/// all. If it was acknowledged, the new message must exist.
fn check_delivery(mut rig: Rig, ada: AccountId, octets: &[u8], acknowledged: bool) {
    for _ in 0..2 {
        assert!(rig.serving());
        let list = rig.list(ada);
        assert_eq!(rig.read(ada, &list[0]), Ok(body(1, 1000)));
        assert!(list.len() <= 2 && (list.len() == 2 || !acknowledged));
        if let Some(second) = list.get(1) {
            assert!(rig.read(ada, second).unwrap() == octets);
        }
        // The next message gets a UID above all UIDs that were seen.
        rig.deliver(&[ada], &body(3, 500)).unwrap();
        let after = rig.list(ada);
        assert!(after.last().unwrap().uid > list.last().unwrap().uid);
        let last = after.last().unwrap().uid.0;
        rig.remove(ada, &[last]).unwrap();
        rig = rig.cut(Cut::Prefix(0));
    }
}

fn deliver(rig: &mut Rig, ada: AccountId, octets: &[u8]) {
    let delivery = rig.store.begin(&[Recipient::inbox(ada)]).unwrap();
    rig.append(delivery, octets).unwrap();
    let (_, continuation) = rig.continuation();
    rig.store.commit(delivery, NOW, continuation).unwrap();
    rig.store.turn_ended();
    rig.exchange();
}

#[test]
fn small_delivery_cut_anywhere_is_atomic() {
    let (rig, ada) = with_account();
    let octets = body(2, 1500);
    let points = at_every_point(
        rig,
        |rig| deliver(rig, ada, &octets),
        |rig, acknowledged| check_delivery(rig, ada, &octets, acknowledged),
    );
    assert!(points > 100, "{points}");
}

#[test]
fn large_delivery_cut_anywhere_is_atomic() {
    let (rig, ada) = with_account();
    let octets = body(2, 70_000);
    at_every_point(
        rig,
        |rig| deliver(rig, ada, &octets),
        |rig, acknowledged| check_delivery(rig, ada, &octets, acknowledged),
    );
}

#[test]
fn removal_cut_anywhere_is_atomic() {
    let (mut rig, ada) = with_account();
    rig.deliver(&[ada], &body(2, 70_000)).unwrap();
    rig.deliver(&[ada], &body(3, 100)).unwrap();
    at_every_point(
        rig,
        |rig| {
            let (_, continuation) = rig.continuation();
            let ranges = [1, 2].map(|uid| crate::UidRange::one(crate::Uid(uid)));
            rig.store.remove(ada, INBOX, &ranges, continuation).unwrap();
            rig.store.turn_ended();
            rig.exchange();
        },
        |mut rig, acknowledged| {
            let before: Vec<_> = rig.list(ada);
            assert!(before.len() == 1 || before.len() == 3 && !acknowledged);
            for message in &before {
                assert!(rig.read(ada, message).is_ok());
            }
            let rig = rig.cut(Cut::Prefix(0));
            assert_eq!(rig.list(ada), before);
        },
    );
}

#[test]
fn first_account_cut_anywhere_is_atomic() {
    at_every_point(
        Rig::new(2 * MIB),
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
        |mut rig, acknowledged| {
            let known = rig.store.find("ada@example.org");
            assert!(known.is_some() || !acknowledged);
            let ada = known.unwrap_or_else(|| rig.create("ada@example.org"));
            rig.deliver(&[ada], &body(1, 100)).unwrap();
            let rig = rig.cut(Cut::Prefix(0));
            assert_eq!(rig.list(ada).len(), 1);
        },
    );
}

#[test]
fn formatting_cut_anywhere_is_completed_at_the_next_start() {
    let mut start = Rig::opening(TestDisk::new(2 * MIB, 3));
    loop {
        start.exchange();
        for count in 0..=start.disk.volatile_writes() {
            for torn in 0..=8 {
                let mut disk = start.disk.clone();
                disk.cut(if torn == 8 { Cut::Prefix(count) } else { Cut::TornAt(count, torn) });
                let mut rig = Rig::on(disk);
                assert!(rig.serving(), "{:?}", rig.store.state());
                rig.create("ada@example.org");
            }
        }
        for seed in 0..50 {
            let mut disk = start.disk.clone();
            disk.dice = Dice::new(seed * 7919);
            disk.cut(Cut::Dice);
            assert!(Rig::on(disk).serving());
        }
        if start.disk.is_idle() {
            break;
        }
        start.turn(1);
    }
}

#[test]
fn checkpoint_cut_anywhere_loses_nothing() {
    let (mut rig, ada) = with_account();
    for number in 2..=30 {
        rig.deliver(&[ada], &body(number, 200)).unwrap();
    }
    let evens: Vec<u32> = (2..=30).filter(|uid| uid % 2 == 0).collect();
    rig.remove(ada, &evens).unwrap();
    rig.deliver(&[ada], &body(31, 70_000)).unwrap();
    let expected = rig.list(ada);
    let root = rig.store.parts().superblock.roots[ada.shard().index()].unwrap();
    let mut moved = false;
    rig.store.parts_mut().journals.needs_mending(ada.shard());
    rig.store.turn_ended();
    rig.exchange();
    while !rig.disk.is_idle() {
        for count in 0..=rig.disk.volatile_writes() {
            for torn in [0, 3, 7, 8] {
                let mut disk = rig.disk.clone();
                disk.cut(if torn == 8 { Cut::Prefix(count) } else { Cut::TornAt(count, torn) });
                let mut after = Rig::on(disk);
                assert_eq!(after.list(ada), expected);
                assert!(
                    after
                        .store
                        .findings()
                        .iter()
                        .all(|one| one.damage != crate::Damage::JournalBlock)
                );
                for message in &expected {
                    assert!(after.read(ada, message).is_ok());
                }
                moved |=
                    after.store.parts().superblock.roots[ada.shard().index()].unwrap().sequence
                        != root.sequence;
            }
        }
        rig.turn(1);
    }
    assert!(moved, "the checkpoint never ended");
}

#[test]
fn recovery_is_idempotent_after_a_second_cut() {
    let (mut rig, ada) = with_account();
    for seed in 0..60 {
        deliver(&mut rig, ada, &body(100 + seed, 300));
        for _ in 0..seed % 5 {
            rig.turn(1);
        }
        rig = rig.cut(Cut::Dice);
        let seen = rig.list(ada);
        for _ in 0..3 {
            rig = rig.cut(Cut::Dice);
            assert_eq!(rig.list(ada), seen);
        }
    }
}

#[test]
fn reboot_without_a_power_cut_shows_only_durable_messages() {
    let (mut rig, ada) = with_account();
    deliver(&mut rig, ada, &body(2, 300));
    // All writes complete, but the machine restarts before the flush completes. The device keeps
    // its cache.
    while rig.disk.flushes == 0 || rig.list(ada).len() == 1 {
        let mut disk = rig.disk.clone();
        disk.forget_requests();
        let shown = Rig::on(disk);
        let seen = shown.list(ada);
        let after = shown.cut(Cut::Prefix(0));
        assert_eq!(after.list(ada), seen, "a message was shown and then lost");
        rig.turn(1);
    }
}

/// An account with a record that takes most of a block, in the second life of its store.
fn with_long_account() -> (Rig, AccountId) {
    let mut rig = Rig::new(2 * MIB);
    let name = |character: char| core::iter::repeat_n(character, 250).collect::<String>();
    let aliases: Vec<String> = ('a'..'i').map(name).collect();
    let aliases: Vec<&str> = aliases.iter().map(|alias| &**alias).collect();
    let (_, continuation) = rig.continuation();
    let new = NewAccount {
        address: "ada@example.org",
        aliases: &aliases,
        password_hash: "first",
        verifier: "",
    };
    let ada = rig.store.create_account(&new, NOW, continuation).unwrap();
    rig.settle();
    (rig.cut(Cut::Prefix(usize::MAX)), ada)
}

/// Sets these passwords, and cuts the power while `writes` writes are in flight. `cut` decides
/// which of them reach the disk.
fn set_passwords(mut rig: Rig, ada: AccountId, passwords: &[&str], writes: usize, cut: Cut) -> Rig {
    let (_, continuation) = rig.continuation();
    for password in passwords {
        rig.store.set_password(ada, &of(password, ""), continuation).unwrap();
    }
    rig.store.turn_ended();
    rig.exchange();
    assert_eq!(rig.disk.volatile_writes(), writes);
    rig.cut(cut)
}

#[test]
fn block_of_a_torn_group_never_completes_a_later_group() {
    let (rig, ada) = with_long_account();
    // Each group is a fence and two blocks. Of the first group only the two blocks reach the disk,
    // of the second group only the fence.
    let rig = set_passwords(rig, ada, &["one", "two"], 3, Cut::Only(&[(1, 0..16), (2, 0..16)]));
    let rig = set_passwords(rig, ada, &["six", "ten"], 3, Cut::Only(&[(0, 0..16)]));
    assert_eq!(rig.store.account(ada).unwrap().password_hash(), "first");
}

#[test]
fn lost_write_never_restores_a_group_of_an_earlier_life() {
    for copy in 0..2 {
        let (rig, ada) = with_long_account();
        // Only the fence of a group reaches the disk. The next life writes a complete group in the
        // same place.
        let rig = set_passwords(rig, ada, &["one"], 2, Cut::Only(&[(0, 0..16)]));
        let journal = rig.store.parts().journals.of(ada.shard()).unwrap().clone();
        let page = rig
            .store
            .parts()
            .segments
            .geometry()
            .place_page(journal.segment(), journal.place())
            .plus(copy);
        let before = rig.disk.clone();
        let mut rig = set_passwords(rig, ada, &["two"], 2, Cut::Prefix(usize::MAX));
        // The device has lost one copy of that group's fence.
        (0..8)
            .map(|at| page.sector().0 + at)
            .for_each(|sector| rig.disk.poke(sector, before.peek(sector)));
        let rig = rig.cut(Cut::Prefix(0));
        assert_eq!(rig.store.account(ada).unwrap().password_hash(), "two", "copy {copy}");
        assert_eq!(rig.store.findings().len(), 1, "{:?}", rig.store.findings());
    }
}

#[test]
fn later_sector_never_completes_a_torn_block() {
    let (rig, ada) = with_long_account();
    // The block lacks one sector. The next life would write the missing bytes if it used the same
    // place.
    let rig = set_passwords(rig, ada, &["one"], 2, Cut::Only(&[(0, 0..16), (1, 0..2), (1, 3..8)]));
    let rig = set_passwords(rig, ada, &["two"], 2, Cut::Only(&[(0, 2..3)]));
    assert_eq!(rig.store.account(ada).unwrap().password_hash(), "first");
}

#[test]
fn later_link_never_reaches_an_orphaned_block() {
    let (rig, ada) = with_account();
    let mut rig = rig.cut(Cut::Prefix(usize::MAX));
    let seen = rig.list(ada);
    let fill_segment = |rig: &mut Rig| {
        rig.store.parts_mut().journals.of_mut(ada.shard()).unwrap().wants_fresh_segment();
    };
    // A removal goes to a new segment, but the link to it is lost.
    fill_segment(&mut rig);
    rig.remove_without_waiting(ada, 1);
    assert_eq!(rig.disk.volatile_writes(), 2);
    let mut rig = rig.cut(Cut::Only(&[(1, 0..16)]));
    assert_eq!(rig.list(ada), seen);
    // Another change goes to the same segment. Its link reaches the disk, but its block does not.
    fill_segment(&mut rig);
    rig.remove_without_waiting(ada, 99);
    assert_eq!(rig.disk.volatile_writes(), 2);
    let rig = rig.cut(Cut::Only(&[(0, 0..16)]));
    assert_eq!(rig.list(ada), seen, "a removal that was not there came back");
}

#[test]
fn later_sector_never_completes_a_torn_superblock() {
    let (rig, ada) = with_account();
    let mut rig = rig.cut(Cut::Prefix(usize::MAX));
    let number = ada.shard().index();
    let root = rig.store.parts().superblock.roots[number].unwrap();
    // The superblock moves the root, but lacks a sector that does not contain the root.
    let mut version = rig.store.parts().superblock.clone();
    version.sequence += 1;
    version.roots[number].as_mut().unwrap().sequence += 1;
    let slot = version.geometry.slots()[version.slot_numbers()[0]];
    let lacking = if number < 32 { 4 } else { 1 };
    for (bytes, sector) in
        version.emit(slot, 1).chunks(512).zip(0..8).filter(|(_, sector)| *sector != lacking)
    {
        rig.disk.poke(slot.sector().0 + sector, bytes.try_into().unwrap());
    }
    let mut rig = rig.cut(Cut::Prefix(0));
    assert_eq!(rig.store.parts().superblock.roots[number], Some(root));
    rig.store.parts_mut().commit.superblock_is_due();
    rig.store.turn_ended();
    rig.exchange();
    let cut = if lacking == 4 { Cut::Only(&[(0, 4..5)]) } else { Cut::Only(&[(0, 1..2)]) };
    let rig = rig.cut(cut);
    assert_eq!(rig.store.parts().superblock.roots[number], Some(root));
}

#[test]
fn older_valid_block_never_hides_the_other_copy() {
    let (mut rig, ada) = with_account();
    let shard = ada.shard();
    let journal = rig.store.parts().journals.of(shard).unwrap().clone();
    let page = rig.store.parts().segments.geometry().place_page(journal.segment(), journal.place());
    // A block that an earlier use of the segment left in the place of the next block.
    let mut pair = alloc::vec![0; 2 * crate::PAGE_BYTES];
    let header =
        block::BlockHeader { shard, sequence: 1, group_first: 1, group_blocks: 1, previous: 7 };
    block::emit_records(&mut pair, &rig.store.parts().superblock.key, page, header, &[]);
    let poke = |rig: &mut Rig, bytes: &[u8]| {
        for (sector, number) in bytes[..crate::PAGE_BYTES].chunks(512).zip(page.sector().0..) {
            rig.disk.poke(number, sector.try_into().unwrap());
        }
    };
    // Of a removal's block, only the second copy reaches the disk.
    rig.remove_without_waiting(ada, 1);
    rig.disk.cut(Cut::Prefix(usize::MAX));
    poke(&mut rig, &pair);
    let mut rig = rig.cut(Cut::Prefix(0));
    let seen = rig.list(ada);
    // The next write does not reach the disk, but it corrupts the first copy.
    rig.remove_without_waiting(ada, 99);
    rig.disk.cut(Cut::Prefix(0));
    poke(&mut rig, &[0xAA; crate::PAGE_BYTES]);
    let rig = rig.cut(Cut::Prefix(0));
    assert_eq!(rig.list(ada), seen, "a removal that was not there came back");
}

/// Changes of notes that were requested together take effect together, or not at all.
#[test]
fn note_changes_cut_anywhere_are_atomic() {
    let (mut rig, ada) = with_account();
    let put = |key: &[u8], value: &[u8]| NoteChange::Put(key.into(), value.into());
    rig.note(ada, alloc::vec![put(b"a", b"1"), put(b"b", b"1")]).unwrap();
    at_every_point(
        rig,
        |rig| {
            let (_, continuation) = rig.continuation();
            let changes = alloc::vec![
                put(b"a", &[b'2'; 3000]),
                NoteChange::Remove(b"b"[..].into()),
                put(b"c", &[b'2'; 3000])
            ];
            rig.store.change_notes(ada, changes, continuation).unwrap();
            rig.store.turn_ended();
            rig.exchange();
        },
        |rig, acknowledged| {
            let notes = |rig: &Rig| {
                let known = rig.store.account(ada).unwrap();
                known.notes().map(|(key, value)| (key[0], value[0])).collect::<Vec<_>>()
            };
            let before = notes(&rig);
            assert!(
                before == [(b'a', b'2'), (b'c', b'2')]
                    || before == [(b'a', b'1'), (b'b', b'1')] && !acknowledged
            );
            let rig = rig.cut(Cut::Prefix(0));
            assert_eq!(notes(&rig), before);
        },
    );
}
