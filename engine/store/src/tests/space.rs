//! Full disks, compaction, checkpoints, and bounded recovery.

use super::disk::Cut;
use super::rig::{MIB, Rig, body};
use crate::outcome::{Outcome, Refusal};
use crate::segment::SegmentOwner;
use crate::segments::Want;
use crate::types::AccountId;
use crate::walk::WalkCursor;
use alloc::vec::Vec;

fn fill(rig: &mut Rig, accounts: &[AccountId], size: usize) -> u32 {
    for number in 0..100_000 {
        let account = accounts[number as usize % accounts.len()];
        match rig.deliver(&[account], &body(u64::from(number), size)) {
            Ok(()) => {}
            Err(refusal) => {
                assert_eq!(refusal, Refusal::DiskFull);
                return number;
            }
        }
    }
    panic!("the disk is never full");
}

#[test]
fn full_disk_loses_nothing_and_deletions_free_space() {
    for size in [500, 3000, 9000, 50_000] {
        let mut rig = Rig::new(2 * MIB);
        let accounts = [rig.create("ada@example.org"), rig.create("bob@example.org")];
        let first = fill(&mut rig, &accounts, size);
        for round in 0..6 {
            for account in accounts {
                let list = rig.list(account);
                for message in &list {
                    assert_eq!(rig.read(account, message).unwrap().len(), size);
                }
                // Every second message is removed, so no segment becomes free without compaction.
                let uids: Vec<u32> =
                    list.iter().map(|message| message.uid.0).skip(round % 2).step_by(2).collect();
                for uids in uids.chunks(7) {
                    rig.remove(account, uids).unwrap();
                }
            }
            rig.settle();
            let again = fill(&mut rig, &accounts, size);
            assert!(again >= first / 4, "size {size}, round {round}: {again} of {first} came back");
        }
        let rig = rig.cut(Cut::Dice);
        let report = rig.fsck();
        assert!(report.is_clean(), "{report}");
    }
}

/// If few bodies fit a segment, they leave unusable space at its end.
#[test]
fn compaction_of_a_full_disk_becomes_idle() {
    for size in [9_000, 20_000, 29_000, 50_000] {
        let mut rig = Rig::new(2 * MIB);
        let ada = rig.create("ada@example.org");
        fill(&mut rig, &[ada], size);
        let uids: Vec<u32> = rig.list(ada).iter().map(|message| message.uid.0).step_by(3).collect();
        for uids in uids.chunks(7) {
            rig.remove(ada, uids).unwrap();
        }
        rig.settle();
        let writes = rig.disk.writes;
        for _ in 0..2_000 {
            rig.turn(4);
        }
        assert_eq!(rig.disk.writes, writes, "bodies of {size}: a further turn found work");
    }
}

#[test]
fn deletions_always_work_on_a_full_disk() {
    let mut rig = Rig::new(2 * MIB);
    let accounts: Vec<_> =
        (0..6).map(|number| rig.create(&alloc::format!("u{number}@example.org"))).collect();
    fill(&mut rig, &accounts, 3000);
    // The same flags change again and again: the journals grow, and only checkpoints free space.
    for round in 0..400 {
        let account = accounts[round % accounts.len()];
        let uid = rig.list(account)[0].uid;
        let (number, continuation) = rig.continuation();
        let change = crate::MarkChange::of(crate::Flags(31), crate::Flags(round as u8 & 31));
        rig.store.mark(account, crate::INBOX, uid, change, continuation).unwrap();
        rig.settle();
        assert!(matches!(rig.outcomes.remove(&number), Some(Outcome::Changed)));
    }
    for account in accounts {
        while let Some(message) = rig.list(account).first().copied() {
            rig.remove(account, &[message.uid.0]).unwrap();
        }
    }
    assert_eq!(rig.store.space().body_bytes, 0);
}

/// The power fails again and again after one or two groups of a checkpoint. `meanwhile` makes a
/// change in each life. Returns the number of checkpoints that were cut, and the number that became
/// complete.
fn cut_checkpoints(
    mut rig: Rig,
    account: AccountId,
    mut meanwhile: impl FnMut(&mut Rig),
) -> (Rig, u32, u32) {
    let (mut cut, mut complete) = (0, 0);
    for life in 0..100 {
        let root = rig.store.parts().superblock.root(account.shard());
        if life % 10 == 0 {
            rig.store.parts_mut().journals.needs_mending(account.shard());
        }
        meanwhile(&mut rig);
        let walking = (0..100).filter(|_| {
            rig.turn(1);
            rig.store.is_walking()
        });
        cut += u32::from(walking.take(8).count() == 8);
        complete += u32::from(rig.store.parts().superblock.root(account.shard()) != root);
        rig = rig.cut_while_opening(Cut::Prefix(usize::MAX));
        rig.until_serving();
    }
    rig.settle();
    (rig, cut, complete)
}

#[test]
fn deletions_find_space_after_many_cut_checkpoints() {
    let mut rig = Rig::new(8 * MIB);
    let ada = rig.create("ada@example.org");
    fill(&mut rig, &[ada], 100);
    let mut flags = 0;
    let (mut rig, cut, complete) = cut_checkpoints(rig, ada, |rig| {
        flags += 1;
        let (_, continuation) = rig.continuation();
        let change = crate::MarkChange::of(crate::Flags(31), crate::Flags(flags & 31));
        rig.store.mark(ada, crate::INBOX, crate::Uid(1), change, continuation).unwrap();
    });
    assert!(cut >= 20 && complete > 2, "{cut} checkpoints were cut, {complete} complete");
    while let Some(message) = rig.list(ada).first().copied() {
        rig.remove(ada, &[message.uid.0]).unwrap();
    }
    assert_eq!(rig.store.space().body_bytes, 0);
}

#[test]
fn cut_checkpoint_continues_in_the_space_that_it_lacks() {
    let mut rig = Rig::new(32 * MIB);
    let ada = rig.create("ada@example.org");
    fill(&mut rig, &[ada], 100);
    let root = rig.store.parts().superblock.root(ada.shard());
    let needed = rig.store.parts().indexes.of(ada.shard()).checkpoint_blocks();
    rig.store.parts_mut().journals.needs_mending(ada.shard());
    let written = |rig: &Rig| rig.store.parts().journals.of(ada.shard()).unwrap().blocks();
    while !rig.store.is_walking() || written(&rig) < needed / 2 {
        rig.turn(1);
    }
    rig = rig.cut_while_opening(Cut::Prefix(usize::MAX));
    // Nothing is written before the end of the turn in which the store begins to serve.
    while !rig.serving() {
        rig.store.turn_ended();
        rig.exchange();
        rig.disk.complete().into_iter().for_each(|completion| rig.store.disk_completed(completion));
        rig.exchange();
    }
    assert!(!rig.store.is_walking());
    assert!(
        rig.store.parts().superblock.root(ada.shard()) == root,
        "the checkpoint is complete already"
    );
    let segments = &mut rig.store.parts_mut().segments;
    let left = (needed / 2).div_ceil(segments.geometry().link_place());
    assert!(left + 2 < needed / segments.geometry().link_place(), "too few blocks");
    while segments.free() > left {
        segments.take(SegmentOwner::Journal(ada.shard()), Want::Journal).unwrap();
    }
    rig.settle();
    assert!(
        rig.store.parts().superblock.root(ada.shard()) != root,
        "the checkpoint does not continue"
    );
}

#[test]
fn checkpoint_that_reached_an_unknown_account_is_forgotten() {
    let mut rig = Rig::new(2 * MIB);
    let ada = rig.create("ada@example.org");
    let parts = rig.store.parts();
    let index = parts.indexes.of(ada.shard());
    for (account, is_known) in [(ada, true), (AccountId(ada.0 ^ 1), false)] {
        let mut journal = parts.journals.of(ada.shard()).unwrap().clone();
        let before = journal.clone();
        journal.found_checkpoint(&before);
        journal.found_walk(WalkCursor::Mailbox(account, 0));
        journal.check_checkpoint(index);
        assert_eq!(journal.has_unfinished_checkpoint(), is_known);
    }
}

/// A checkpoint of many groups without a message.
#[test]
fn cut_checkpoints_advance_without_messages() {
    let mut rig = Rig::new(4 * MIB);
    let ada = rig.create("ada@example.org");
    for number in 0..200 {
        let (_, continuation) = rig.continuation();
        let name = alloc::format!("{number:0250}");
        rig.store.create_mailbox(ada, &name, super::rig::NOW, continuation).unwrap();
        rig.settle();
    }
    let mailboxes = |rig: &Rig| {
        let index = rig.store.parts().indexes.of(ada.shard());
        index.account(ada).unwrap().mailboxes().count()
    };
    let before = mailboxes(&rig);
    assert!(before > 200);
    let (rig, cut, complete) = cut_checkpoints(rig, ada, |_| {});
    assert!(cut >= 20 && complete > 2, "{cut} checkpoints were cut, {complete} complete");
    assert_eq!(mailboxes(&rig), before);
}

/// The accounts with grown journals do not change, so only the lack of space makes checkpoints due.
#[test]
fn body_without_space_gets_surplus_journal_segments() {
    let mut rig = Rig::new(2 * MIB);
    let quiet: Vec<_> =
        (0..6).map(|number| rig.create(&alloc::format!("u{number}@example.org"))).collect();
    let ada = rig.create("ada@example.org");
    let all = quiet.len() as u64 + 1;
    for account in quiet {
        rig.deliver(&[account], &body(1, 500)).unwrap();
        for round in 0..12 {
            let (_, continuation) = rig.continuation();
            let change = crate::MarkChange::of(crate::Flags(31), crate::Flags(round));
            rig.store.mark(account, crate::INBOX, crate::Uid(1), change, continuation).unwrap();
            rig.settle();
        }
    }
    let segment_bytes = rig.fsck().segment_bytes;
    assert!(rig.store.space().journal_bytes > all * segment_bytes, "the journals have not grown");
    fill(&mut rig, &[ada], 20_000);
    rig.settle();
    assert!(fill(&mut rig, &[ada], 20_000) > 0, "the space of the journals is not used");
    assert_eq!(
        rig.store.space().journal_bytes,
        all * segment_bytes,
        "a journal has more than it needs"
    );
    let writes = rig.disk.writes;
    (0..2_000).for_each(|_| rig.turn(4));
    assert_eq!(rig.disk.writes, writes, "a further turn found work");
}

#[test]
fn compaction_moves_live_chunks_while_serving() {
    let mut rig = Rig::new(4 * MIB);
    let ada = rig.create("ada@example.org");
    let mut kept = Vec::new();
    for number in 0..4000u64 {
        let size = 100 + (number as usize * 37) % 6000 + if number % 50 == 0 { 60_000 } else { 0 };
        rig.deliver(&[ada], &body(number, size))
            .unwrap_or_else(|refusal| panic!("message {number}: {refusal:?}"));
        let message = *rig.list(ada).last().unwrap();
        if number % 40 == 0 && kept.len() < 30 {
            kept.push((message, number, size));
        } else {
            rig.remove(ada, &[message.uid.0]).unwrap();
        }
        if number % 500 == 499 {
            for (message, number, size) in &kept {
                assert!(rig.read(ada, message) == Ok(body(*number, *size)));
            }
            rig = rig.cut(Cut::Dice);
        }
    }
    assert_eq!(rig.list(ada).len(), kept.len());
    assert!(rig.fsck().is_clean());
}

#[test]
fn damaged_chunk_never_gets_a_fresh_hash() {
    let mut rig = Rig::new(2 * MIB);
    let ada = rig.create("ada@example.org");
    for number in 0..40 {
        rig.deliver(&[ada], &body(number, 3000)).unwrap();
    }
    let victim = rig.list(ada)[20];
    let index = rig.store.parts().indexes.of(ada.shard());
    let entry = index.mailbox(ada, 1).unwrap().messages().find(victim.uid.0).unwrap();
    let page = index.chunk(entry, 0).unwrap().0;
    rig.disk.rot_at(page.sector().0, 100);
    let others: Vec<u32> = (1..=40).filter(|uid| *uid != victim.uid.0).collect();
    rig.remove(ada, &others).unwrap();
    let accounts = [rig.create("bob@example.org")];
    fill(&mut rig, &accounts, 3000);
    assert_eq!(rig.read(ada, &victim), Err(Refusal::Damaged));
    let report = rig.fsck();
    assert_eq!(report.findings.len(), 1, "{report}");
}

#[test]
fn recovery_reads_a_bounded_part_of_the_disk() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    let mut most = 0;
    for number in 0..3000 {
        rig.deliver(&[ada], &body(number, 100)).unwrap();
        let uid = rig.list(ada)[0].uid.0;
        rig.remove(ada, &[uid]).unwrap();
        if number % 250 == 0 {
            rig = rig.cut(Cut::Prefix(0));
            let journal = rig.store.parts().journals.of(ada.shard()).unwrap().clone();
            most = most.max(journal.blocks());
        }
    }
    // Two segments of slack, twice the blocks that the index needs, and the blocks of one group.
    assert!(most > 0 && most <= 16 + 2 * 2 + 8, "{most} blocks");
    let reads = rig.disk.reads;
    let rig = rig.cut(Cut::Prefix(0));
    assert!(rig.disk.reads - reads < 40, "{} reads", rig.disk.reads - reads);
}

#[test]
fn a_mailbox_of_many_messages_survives_checkpoints() {
    let mut rig = Rig::new(64 * MIB);
    let ada = rig.create("ada@example.org");
    for number in 0..3000 {
        rig.deliver(&[ada], &body(number, 50)).unwrap();
    }
    let expected = rig.list(ada);
    assert_eq!(expected.len(), 3000);
    rig.store.parts_mut().journals.needs_mending(ada.shard());
    rig.settle();
    let rig = rig.cut(Cut::Dice);
    assert!(rig.list(ada) == expected);
    let blocks = rig.store.parts().journals.of(ada.shard()).unwrap().blocks();
    assert!(blocks < 40, "{blocks} blocks for 3000 messages");
}

#[test]
fn segment_with_a_read_in_flight_is_not_overwritten() {
    let mut rig = Rig::new(2 * MIB);
    let ada = rig.create("ada@example.org");
    for number in 0..40 {
        rig.deliver(&[ada], &body(number, 3000)).unwrap();
    }
    rig.disk.hold_reads = true;
    let mut waiting = Vec::new();
    for number in 0..8 {
        let uid = rig.list(ada)[number].uid;
        let (waits, continuation) = rig.continuation();
        rig.store.read(ada, crate::INBOX, uid, 0, continuation).unwrap();
        waiting.push((waits, number as u64));
    }
    rig.exchange();
    rig.remove(ada, &(1..=40).collect::<Vec<u32>>()).unwrap();
    fill(&mut rig, &[ada], 3000);
    rig.disk.hold_reads = false;
    rig.settle();
    for (waits, number) in waiting {
        match rig.outcomes.remove(&waits) {
            Some(Outcome::Body(octets)) => assert!(octets.bytes() == body(number, 3000)),
            other => panic!("{other:?}"),
        }
    }
}
