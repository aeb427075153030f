//! Bit rot, misdirected writes, lost journals, failing devices, and disks of other or later
//! formats.

use super::disk::{Cut, CutEffect, TestDisk};
use super::rig::{MIB, NOW, Rig, body, limits, password};
use crate::account::{Account, NewAccount};
use crate::finding::Damage;
use crate::index::Index;
use crate::layout::{CRASH_SECTOR, CRASH_SECTORS, PAGE_SECTORS, PIECE_PAGES, Page, ShardId};
use crate::outcome::{OpenRefusal, Outcome, Refusal, State, WhyReadOnly};
use crate::record::{self, AccountTexts};
use crate::segment::SegmentOwner;
use crate::segments::COMPACTION_RESERVE;
use crate::types::{AccountId, BUILT_IN, Flags, INBOX, MarkChange, Recipient, SENT, Uid};
use crate::{Store, block, chunk};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use chance::Dice;
use machine::SECTOR_BYTES;

/// A disk with mail of all kinds, and its contents.
struct Filled {
    disk: TestDisk,
    accounts: Vec<(AccountId, &'static str)>,
    messages: usize,
}

const ADDRESSES: [&str; 3] = ["ada@example.org", "bob@example.org", "eve@example.org"];

fn filled() -> Filled {
    filled_on(2 * MIB)
}

fn filled_on(bytes: u64) -> Filled {
    let mut rig = Rig::new(bytes);
    let accounts: Vec<_> =
        ADDRESSES.into_iter().map(|address| (rig.create(address), address)).collect();
    let mut number = 0;
    for (account, _) in &accounts {
        for size in [0, 10, 1000, 5000, 40_000, 300, 70_000] {
            number += 1;
            rig.deliver(&[*account], &body(number, size)).unwrap();
        }
        rig.remove(*account, &[2]).unwrap();
    }
    rig.disk.cut(Cut::Prefix(usize::MAX));
    Filled { disk: rig.disk, accounts, messages: 6 }
}

/// The number of lost or damaged messages. All other messages are compared octet by octet.
fn lost(rig: &mut Rig, filled: &Filled) -> usize {
    let mut lost = 0;
    for ((account, address), first) in filled.accounts.iter().zip([0, 7, 14]) {
        assert_eq!(rig.store.find(address), Some(*account));
        assert_eq!(rig.store.account(*account).unwrap().password_hash(), "secret");
        let list = rig.list(*account);
        lost += filled.messages - list.len();
        for message in list {
            assert_ne!(message.uid.0, 2, "a removed message came back");
            match rig.read(*account, &message) {
                Ok(octets) => assert!(
                    octets == body(first + u64::from(message.uid.0), message.octets as usize)
                ),
                Err(refusal) => {
                    assert!(
                        matches!(refusal, Refusal::Damaged | Refusal::Unreadable),
                        "{refusal:?}"
                    );
                    lost += 1;
                }
            }
        }
    }
    lost
}

#[test]
fn a_rotten_sector_costs_at_most_one_message() {
    let filled = filled();
    let mut costly = 0;
    for sector in filled.disk.used_sectors() {
        let mut disk = filled.disk.clone();
        disk.rot(sector);
        let mut rig = Rig::on(disk);
        assert!(rig.serving(), "sector {sector}: {:?}", rig.store.state());
        let lost = lost(&mut rig, &filled);
        assert!(lost <= 1, "sector {sector} costs {lost} messages");
        costly += lost;
    }
    assert!(costly > 100, "only {costly} sectors mattered");
}

#[test]
fn an_unreadable_sector_costs_at_most_one_message() {
    let filled = filled();
    for sector in filled.disk.used_sectors() {
        let mut disk = filled.disk.clone();
        disk.unreadable.insert(sector);
        let mut rig = Rig::on(disk);
        assert!(rig.serving(), "sector {sector}: {:?}", rig.store.state());
        let lost = lost(&mut rig, &filled);
        assert!(lost <= 1, "sector {sector} costs {lost} messages");
    }
}

/// The listed messages of each account, and the number of messages that cannot be read.
fn listed(rig: &mut Rig, filled: &Filled) -> (Vec<Vec<u32>>, usize) {
    let mut unread = 0;
    let mut listed = Vec::new();
    for ((account, _), first) in filled.accounts.iter().zip([0, 7, 14]) {
        let list = rig.list(*account);
        listed.push(list.iter().map(|message| message.uid.0).collect());
        for message in list {
            match rig.read(*account, &message) {
                Ok(octets) => assert!(
                    octets == body(first + u64::from(message.uid.0), message.octets as usize)
                ),
                Err(refusal) => {
                    assert_eq!(refusal, Refusal::Unreadable);
                    unread += 1;
                }
            }
        }
    }
    (listed, unread)
}

const LIVING: [u32; 6] = [1, 3, 4, 5, 6, 7];

/// Acknowledged messages stay in the index, whichever pages are unreadable when the disk is opened.
#[test]
fn two_unreadable_pages_remove_nothing_from_the_index() {
    two_unreadable_pages_remove_nothing(3 * MIB);
}

/// The disk is so small that compaction moves chunks, also of the last messages.
#[test]
fn two_unreadable_pages_remove_nothing_that_was_moved() {
    two_unreadable_pages_remove_nothing(2 * MIB);
}

fn two_unreadable_pages_remove_nothing(bytes: u64) {
    let mut filled = filled_on(bytes);
    // These messages are in the last group of their journal. Only their last chunk tells whether
    // they are torn.
    let mut rig = Rig::on(filled.disk);
    for number in [8, 9] {
        rig.deliver(&[filled.accounts[0].0], &body(number, 500)).unwrap();
    }
    rig.disk.cut(Cut::Prefix(usize::MAX));
    filled.disk = rig.disk;
    let pages: BTreeSet<u64> =
        filled.disk.used_sectors().into_iter().map(|sector| sector / PAGE_SECTORS).collect();
    let (mut rebuilt, mut kept) = (0, 0);
    for page in pages {
        let mut disk = filled.disk.clone();
        disk.unreadable.extend([page * PAGE_SECTORS, (page + 1) * PAGE_SECTORS]);
        let mut rig = Rig::on(disk);
        assert!(rig.serving(), "page {page}: {:?}", rig.store.state());
        let (lists, unread) = listed(&mut rig, &filled);
        assert!(unread <= 2, "page {page}");
        for list in &lists {
            assert!(
                LIVING.iter().all(|uid| list.contains(uid)),
                "page {page}: only {list:?} are listed"
            );
        }
        assert!(lists[0].ends_with(&[8, 9]), "page {page}");
        let findings = rig.store.findings();
        rebuilt += usize::from(findings.iter().any(|one| matches!(one.damage, Damage::Rebuilt(_))));
        kept +=
            usize::from(findings.iter().any(|one| matches!(one.damage, Damage::Unreadable(..))));
    }
    assert!(rebuilt > 10 && kept == 2, "{rebuilt} journals and {kept} messages were in danger");
}

/// At each read of the opening, the disk begins to fail all reads for a while.
#[test]
fn disk_that_is_away_during_opening_loses_nothing() {
    let filled = filled();
    let mut whole = Rig::on(filled.disk.clone());
    let expected = (alloc::vec![LIVING.to_vec(); 3], 0);
    assert_eq!(listed(&mut whole, &filled), expected);
    let mut opening = Rig::opening(filled.disk.clone());
    while opening.store.state() == State::Opening {
        opening.turn(1);
    }
    let reads = opening.disk.reads;
    for before in 0..reads {
        let mut rig = Rig::opening(filled.disk.clone());
        while rig.disk.reads < before {
            rig.turn(1);
        }
        rig.disk.fail_reads = true;
        rig.turn(0);
        for round in 0..50 {
            while !rig.disk.is_idle() {
                rig.turn(1);
            }
            assert_eq!(
                (rig.store.state(), rig.store.unreadable().is_some()),
                (State::Opening, true),
                "read {before}"
            );
            // In every second round the disk can read another page, and then fails again.
            rig.disk.fail_reads = round % 2 == 0;
            rig.store.read_again();
            rig.turn(0);
            rig.turn(1);
            rig.disk.fail_reads = true;
        }
        rig.disk.fail_reads = false;
        rig.settle();
        assert!(
            rig.serving() && rig.store.findings().is_empty(),
            "read {before}: {:?}",
            rig.store.findings()
        );
        assert_eq!(listed(&mut rig, &filled), expected, "read {before}");
    }
    assert!(reads > 5, "{reads}");
}

/// Enough messages that their checkpoint takes several groups.
const MANY: u32 = 1200;

/// The end of a journal cannot be read, and the power fails before the checkpoint that replaces it
/// is durable.
#[test]
fn unreadable_journal_end_is_seen_until_the_next_checkpoint() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    for number in 1..=MANY {
        rig.deliver(&[ada], &body(u64::from(number), 10)).unwrap();
    }
    let journal = rig.store.parts().journals.of(ada.shard()).unwrap();
    let last =
        rig.store.parts().segments.geometry().place_page(journal.segment(), journal.place() - 1);
    rig.disk.cut(Cut::Prefix(usize::MAX));
    rig.disk.unreadable.extend([last.sector().0, last.plus(1).sector().0]);
    let mut without_checkpoint = 0;
    for case in 0..8 * 8 * 3 {
        let (early, writes, late) = (case % 8, case / 8 % 8, case / 64);
        let mut next = Rig::opening(rig.disk.clone());
        let (mut delivered, mut marked) = (Vec::new(), Vec::new());
        // The first life is cut while it writes, the second life when a part is durable.
        let lives = [(early, Cut::Prefix(writes)), (8 + 6 * late, Cut::Prefix(0))];
        for ((turns, cut), life) in lives.into_iter().zip([1, 2]) {
            next.until_serving();
            let delivery = next.store.begin(&[Recipient::inbox(ada)]).unwrap();
            next.append(delivery, &body(10_000 + life, 10)).unwrap();
            let (number, continuation) = next.continuation();
            next.store.commit(delivery, NOW, continuation).unwrap();
            let (mark, continuation) = next.continuation();
            let change = MarkChange::of(Flags(0), Flags::FLAGGED);
            next.store.mark(ada, INBOX, Uid(life as u32), change, continuation).unwrap();
            (0..turns).for_each(|_| next.turn(1));
            if matches!(next.outcomes.remove(&number), Some(Outcome::Delivered)) {
                delivered.push(body(10_000 + life, 10));
            }
            if matches!(next.outcomes.remove(&mark), Some(Outcome::Changed)) {
                marked.push(life as u32);
            }
            if case % 2 == 1 {
                next.disk.unreadable.clear();
            }
            next = next.cut_while_opening(cut);
        }
        next.settle();
        let list = next.list(ada);
        let is_there = |uid: u32| list.iter().any(|message| message.uid.0 == uid);
        let findings = next.store.findings().to_vec();
        assert!(
            (1..=MANY).all(is_there),
            "{early} turns, {writes} writes, {late} turns: {findings:?}"
        );
        let has_mark = |uid: &u32| {
            list.iter()
                .any(|message| message.uid.0 == *uid && message.flags.0 & Flags::FLAGGED.0 != 0)
        };
        assert!(
            marked.iter().all(has_mark),
            "{early} turns, {writes} writes, {late} turns: {findings:?}"
        );
        let newest: Vec<_> = list
            .iter()
            .filter(|one| one.uid.0 > MANY)
            .map(|one| next.read(ada, one).unwrap())
            .collect();
        assert!(
            delivered.iter().all(|octets| newest.contains(octets)),
            "{early} turns, {writes} writes, {late} turns: {findings:?}"
        );
        let is_rebuilt = findings.iter().any(|one| matches!(one.damage, Damage::Rebuilt(_)));
        without_checkpoint += usize::from(!delivered.is_empty() && is_rebuilt);
    }
    assert!(without_checkpoint > 4, "the power failed too late");
}

/// The places of all chunks in the index.
fn places(rig: &Rig, account: AccountId) -> Vec<(u32, Vec<u32>)> {
    let index = rig.store.parts().indexes.of(account.shard());
    let known = index.accounts().find(|known| known.id() == account).unwrap();
    let entries = known.mailboxes().flat_map(|mailbox| mailbox.messages().iter());
    entries
        .map(|entry| (entry.uid, index.chunks(entry).map(|(page, _)| page.0).collect()))
        .collect()
}

/// Compaction leaves copies of chunks in segments that are free now. Such copies must not take
/// space from deletions.
#[test]
fn rebuild_keeps_messages_beside_stale_copies_of_chunks() {
    let mut rig = Rig::new(2 * MIB);
    let ada = rig.create("ada@example.org");
    let mut number = 0;
    for _ in 0..6 {
        while rig.deliver(&[ada], &body(number, 9_000)).is_ok() {
            number += 1;
        }
        let list = rig.list(ada);
        let gone: Vec<u32> = list.iter().step_by(3).map(|message| message.uid.0).collect();
        rig.remove(ada, &gone).unwrap();
        rig.settle();
    }
    rig.store.cleaner_mut().turn_off();
    let before = places(&rig, ada);
    let journal = rig.store.parts().journals.of(ada.shard()).unwrap();
    let end = rig.store.parts().segments.geometry().place_page(journal.segment(), journal.place());
    rig.disk.cut(Cut::Prefix(usize::MAX));
    rig.disk.unreadable.extend([end.sector().0, end.plus(1).sector().0]);
    let mut rig = Rig::opening(rig.disk);
    rig.store.cleaner_mut().turn_off();
    rig.until_serving();
    let rebuilt = |finding: &crate::Finding| matches!(finding.damage, Damage::Rebuilt(_));
    assert!(rig.store.findings().iter().any(rebuilt), "{:?}", rig.store.findings());
    let after = places(&rig, ada);
    assert!(before.len() > 20, "{before:?}");
    assert!(before.iter().all(|place| after.contains(place)), "{before:?}\n{after:?}");
}

/// A removed message without its first chunk cannot come back. Its other chunks take no space from
/// messages that do.
#[test]
fn rebuild_leaves_nothing_out_for_remains_of_removed_messages() {
    let mut rig = Rig::new(2 * MIB);
    let ada = rig.create("ada@example.org");
    rig.store.cleaner_mut().turn_off();
    while rig.deliver(&[ada], &body(1, 100_000)).is_ok() {}
    let removed = places(&rig, ada);
    let uids: Vec<u32> = removed.iter().map(|(uid, _)| *uid).collect();
    rig.remove(ada, &uids).unwrap();
    rig.deliver(&[ada], &body(2, 300)).unwrap();
    let last = rig.list(ada)[0].uid.0;
    let journal = rig.store.parts().journals.of(ada.shard()).unwrap();
    let place = journal.place() - 1;
    let lost = rig.store.parts().segments.geometry().place_page(journal.segment(), place);
    rig.disk.cut(Cut::Prefix(usize::MAX));
    rig.disk.unreadable.extend([lost.sector().0, lost.plus(1).sector().0]);
    for (_, pages) in &removed {
        rig.disk.rot(Page(pages[0]).sector().0);
    }
    let mut rig = Rig::opening(rig.disk);
    rig.until_serving();
    let findings: Vec<_> = rig.store.findings().iter().map(|one| &one.damage).collect();
    assert!(findings.iter().any(|one| matches!(one, Damage::Rebuilt(1..))), "{findings:?}");
    assert!(!findings.iter().any(|one| matches!(one, Damage::LeftOut(_))), "{findings:?}");
    assert!(rig.list(ada).iter().any(|message| message.uid.0 == last), "{findings:?}");
}

/// A rebuild restores a message under another UID than its chunk has. The next rebuild does not
/// restore it again.
#[test]
fn rebuild_restores_a_message_once() {
    let mut rig = Rig::new(2 * MIB);
    let ada = rig.create("ada@example.org");
    (1..=2).for_each(|number| rig.deliver(&[ada], &body(number, 300)).unwrap());
    let first = rig.list(ada)[0].guid;
    rig.remove(ada, &[1]).unwrap();
    let index = rig.store.parts().indexes.of(ada.shard());
    let second = *index.mailbox(ada, INBOX.0).unwrap().messages().find(2).unwrap();
    let from = (crate::types::Place { mailbox: INBOX.0, uid: 2 }, 20);
    let gathered = rig.store.parts_mut().journals.gather(ada.shard());
    record::put_filed(gathered, ada, from, (INBOX.0, 1), &second.filed(1, 20));
    rig.settle();
    let mut counts = Vec::new();
    for _ in 0..3 {
        let journal = rig.store.parts().journals.of(ada.shard()).unwrap();
        let geometry = rig.store.parts().segments.geometry();
        let end = geometry.place_page(journal.segment(), journal.place());
        rig.disk.cut(Cut::Prefix(usize::MAX));
        rig.disk.unreadable.extend([end.sector().0, end.plus(1).sector().0]);
        rig = Rig::opening(rig.disk);
        rig.until_serving();
        rig.settle();
        counts.push(rig.list(ada).iter().filter(|message| message.guid == first).count());
    }
    assert_eq!(counts, [1; 3]);
}

#[test]
fn rebuild_leaves_the_space_that_deleting_needs() {
    let mut rig = Rig::new(2 * MIB);
    let ada = rig.create("ada@example.org");
    let mut number = 0;
    // Compaction on a full disk leaves dead messages in every segment.
    for round in 0..60 {
        while rig.deliver(&[ada], &body(number, 30_000)).is_ok() {
            number += 1;
        }
        let list = rig.list(ada);
        let gone: Vec<u32> =
            list.iter().skip(round % 2).step_by(3).map(|message| message.uid.0).collect();
        rig.remove(ada, &gone).unwrap();
    }
    rig.store.cleaner_mut().turn_off();
    let list: Vec<u32> = rig.list(ada).iter().map(|message| message.uid.0).collect();
    let (gone, kept) = list.split_at(list.len() - 4);
    rig.remove(ada, gone).unwrap();
    let journal = rig.store.parts().journals.of(ada.shard()).unwrap();
    let end = rig.store.parts().segments.geometry().place_page(journal.segment(), journal.place());
    rig.disk.cut(Cut::Prefix(usize::MAX));
    rig.disk.unreadable.extend([end.sector().0, end.plus(1).sector().0]);
    let mut rig = Rig::opening(rig.disk);
    rig.until_serving();
    assert!(
        rig.store.parts().segments.free() >= 2 + COMPACTION_RESERVE,
        "no space for a link, a checkpoint and compaction"
    );
    let left_out = |finding: &crate::Finding| matches!(finding.damage, Damage::LeftOut(_));
    assert!(
        rig.serving() && rig.store.findings().iter().any(left_out),
        "{:?}",
        rig.store.findings()
    );
    let list: Vec<u32> = rig.list(ada).iter().map(|message| message.uid.0).collect();
    assert!(kept.iter().all(|uid| list.contains(uid)), "an earlier message is lost: {list:?}");
    for uid in &list[1..] {
        rig.remove(ada, &[*uid]).unwrap();
    }
    assert_eq!(rig.deliver(&[ada], &body(0, 30_000)), Ok(()));
    let rig = rig.cut(Cut::Prefix(usize::MAX));
    assert_eq!(rig.list(ada).len(), 2);
    assert!(rig.store.findings().is_empty(), "{:?}", rig.store.findings());
}

#[test]
fn a_misdirected_or_lost_write_costs_at_most_one_message() {
    let filled = filled();
    let sectors = filled.disk.used_sectors();
    let mut dice = Dice::new(7);
    for sector in &sectors {
        let from = sectors[dice.below(sectors.len() as u64) as usize];
        for bytes in [filled.disk.peek(from), [0; SECTOR_BYTES]] {
            let mut disk = filled.disk.clone();
            disk.poke(*sector, bytes);
            let mut rig = Rig::on(disk);
            assert!(rig.serving(), "sector {sector}: {:?}", rig.store.state());
            let lost = lost(&mut rig, &filled);
            assert!(lost <= 1, "sector {from} on {sector} costs {lost} messages");
        }
    }
}

#[test]
fn torn_message_keeps_its_pages_until_its_removal_is_durable() {
    let mut rig = Rig::new(MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver(&[ada], &body(1, 70_000)).unwrap();
    let index = rig.store.parts().indexes.of(ada.shard());
    let entry = *index.mailbox(ada, 1).unwrap().messages().find(1).unwrap();
    let chunks: Vec<_> =
        index.chunks(&entry).map(|(page, pages)| (page.sector().0, pages)).collect();
    rig.disk.cut(Cut::Prefix(usize::MAX));

    // For a while the disk returns wrong bytes for the message's last chunk, which therefore looks
    // torn.
    let (last, _) = *chunks.last().unwrap();
    let sound = rig.disk.peek(last);
    rig.disk.rot_at(last, 20);
    let mut rig = Rig::opening(rig.disk);
    while !rig.serving() {
        rig.turn(1);
    }
    assert!(rig.list(ada).is_empty());
    // The next message is being written. The removal of the first message is not durable yet.
    let delivery = rig.store.begin(&[Recipient::inbox(ada)]).unwrap();
    rig.append(delivery, &body(2, 70_000)).unwrap();
    let mut disk = rig.disk.clone();
    disk.poke(last, sound);
    let is_body = |sector| {
        chunks.iter().any(|(first, pages)| {
            (*first..first + u64::from(*pages) * PAGE_SECTORS).contains(&sector)
        })
    };
    disk.cut_each(|sector| if is_body(sector) { CutEffect::New } else { CutEffect::Old });
    let mut again = Rig::on(disk);
    let message = again.list(ada)[0];
    assert!(again.read(ada, &message) == Ok(body(1, 70_000)), "a listed message cannot be read");

    // Once the removal is durable the pages are free.
    rig.store.abort(delivery);
    rig.settle();
    let segments = &rig.store.parts().segments;
    for (sector, _) in chunks {
        let segment = segments.geometry().segment_of(Page((sector / PAGE_SECTORS) as u32)).unwrap();
        assert_eq!(segments.owner(segment), SegmentOwner::Free);
    }
    assert!(rig.cut(Cut::Prefix(usize::MAX)).list(ada).is_empty());
}

#[test]
fn read_error_is_not_damage_and_a_retry_may_succeed() {
    let mut rig = Rig::new(MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver(&[ada], &body(1, 500)).unwrap();
    let message = rig.list(ada)[0];
    let index = rig.store.parts().indexes.of(ada.shard());
    let entry = *index.mailbox(ada, 1).unwrap().messages().find(1).unwrap();
    let (page, _) = index.chunks(&entry).next().unwrap();
    rig.disk.unreadable.insert(page.sector().0);
    assert_eq!(rig.read(ada, &message), Err(Refusal::Unreadable));
    rig.disk.unreadable.clear();
    assert_eq!(rig.read(ada, &message), Ok(body(1, 500)));
    let fault = rig.store.next_read_fault().map(|finding| finding.damage);
    assert_eq!(fault, Some(Damage::Unreadable(ada, INBOX, Uid(1))));
    assert_eq!(rig.store.next_read_fault(), None);
    rig.disk.cut(Cut::Prefix(usize::MAX));
    rig.disk.rot_at(page.sector().0 + 1, 7);
    assert_eq!(rig.read(ada, &message), Err(Refusal::Damaged));
    let fault = rig.store.next_read_fault().unwrap();
    assert_eq!(fault.damage, Damage::Body(ada, INBOX, Uid(1)));
    assert_eq!(
        fault.named(&rig.store).to_string(),
        format!(
            "sector {}: message 1 in INBOX of ada@example.org is damaged: two reads differ from what was written; restore it from a backup or delete it; all other messages are served",
            page.sector().0
        )
    );
}

#[test]
fn wrong_data_of_a_single_read_is_not_damage() {
    let mut rig = Rig::new(MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver(&[ada], &body(1, 500)).unwrap();
    let message = rig.list(ada)[0];
    let index = rig.store.parts().indexes.of(ada.shard());
    let entry = *index.mailbox(ada, 1).unwrap().messages().find(1).unwrap();
    let (page, _) = index.chunks(&entry).next().unwrap();
    rig.disk.wrong_once = Some(page.sector().0);
    assert_eq!(rig.read(ada, &message), Ok(body(1, 500)));
    assert_eq!((rig.disk.wrong_once, rig.store.next_read_fault()), (None, None));
    // The second read fails, so it is unknown whether the data on the disk are wrong.
    rig.disk.wrong_once = Some(page.sector().0);
    rig.disk.fails_after_wrong = true;
    assert_eq!(rig.read(ada, &message), Err(Refusal::Unreadable));
}

#[test]
fn read_faults_beyond_a_limit_are_counted() {
    let mut rig = Rig::new(MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver(&[ada], &body(1, 500)).unwrap();
    let message = rig.list(ada)[0];
    rig.disk.fail_reads = true;
    for _ in 0..20 {
        assert_eq!(rig.read(ada, &message), Err(Refusal::Unreadable));
    }
    let named = core::iter::from_fn(|| rig.store.next_read_fault()).count();
    assert_eq!((named, rig.store.take_read_faults_left_out()), (16, 4));
    assert_eq!(rig.store.take_read_faults_left_out(), 0);
}

#[test]
fn chunk_in_the_wrong_place_is_rejected() {
    let filled = filled();
    let mut rig = Rig::on(filled.disk.clone());
    let place = |rig: &Rig, account: AccountId, uid: u32| {
        let index = rig.store.parts().indexes.of(account.shard());
        let entry = index.mailbox(account, 1).unwrap().messages().find(uid).unwrap();
        index.chunk(entry, 0).unwrap().0.sector().0
    };
    let (ada, bob) = (filled.accounts[0].0, filled.accounts[1].0);
    let (from, to) = (place(&rig, ada, 3), place(&rig, bob, 3));
    for number in 0..8 {
        let bytes = rig.disk.peek(from + number);
        rig.disk.poke(to + number, bytes);
    }
    let message = rig.list(bob)[1];
    assert_eq!(rig.read(bob, &message), Err(Refusal::Damaged));
    assert_eq!(lost(&mut rig, &filled), 1);
    let chunk: Vec<u8> = (from..from + 8).flat_map(|sector| rig.disk.peek(sector)).collect();
    let (right, wrong) = (Page((from / 8) as u32), Page((to / 8) as u32));
    assert!(chunk::parse(&chunk, &rig.store.parts().superblock.key, right).is_some());
    assert!(chunk::parse(&chunk, &rig.store.parts().superblock.key, wrong).is_none());
}

#[test]
fn block_in_the_wrong_place_or_shard_is_rejected() {
    let filled = filled();
    let rig = Rig::on(filled.disk.clone());
    let shard = filled.accounts[0].0.shard();
    let segment = rig.store.parts().journals.of(shard).unwrap().chain()[0];
    let page = rig.store.parts().segments.geometry().place_page(segment, 0);
    let bytes: Vec<u8> =
        (0..8).flat_map(|number| rig.disk.peek(page.sector().0 + number)).collect();
    let key = &rig.store.parts().superblock.key;
    assert!(block::parse(&bytes, key, page, shard).is_some());
    assert!(block::parse(&bytes, key, page.plus(2), shard).is_none());
    assert!(block::parse(&bytes, key, page, ShardId(shard.0 ^ 1)).is_none());
}

#[test]
fn checkpoint_replaces_a_damaged_journal_copy() {
    let filled = filled();
    let rig = Rig::on(filled.disk.clone());
    let journal = rig.store.parts().journals.of(filled.accounts[0].0.shard()).unwrap().clone();
    let page = rig.store.parts().segments.geometry().place_page(journal.chain()[0], 1);
    let mut disk = filled.disk.clone();
    disk.rot_at(page.sector().0, 70);
    let rig = Rig::on(disk);
    assert!(rig.store.findings().iter().any(|finding| finding.damage == Damage::JournalCopy));
    let mut rig = rig.cut(Cut::Prefix(usize::MAX));
    assert!(rig.store.findings().is_empty(), "{:?}", rig.store.findings());
    assert_eq!(lost(&mut rig, &filled), 0);
}

/// Corrupts both copies of the block in this place of an account's journal.
fn spoil_block(disk: &mut TestDisk, store: &Store, account: AccountId, place: u32) {
    let journal = store.parts().journals.of(account.shard()).unwrap();
    let page = store.parts().segments.geometry().place_page(journal.chain()[0], place);
    disk.rot_at(page.sector().0, 66);
    disk.rot_at(page.plus(1).sector().0, 66);
}

#[test]
fn mail_of_a_lost_journal_block_is_restored() {
    let filled = filled();
    let rig = Rig::on(filled.disk.clone());
    for place in 1..6 {
        for (account, _) in &filled.accounts {
            let mut disk = filled.disk.clone();
            spoil_block(&mut disk, &rig.store, *account, place);
            let mut rig = Rig::on(disk);
            assert!(
                rig.store.findings().iter().any(|finding| finding.damage == Damage::JournalBlock)
            );
            let highest = rig.store.mailbox(*account, INBOX).unwrap().uid_next.0;
            assert!(highest > 1024, "UIDs of lost records may be reused");
            let uids: BTreeSet<u32> =
                rig.list(*account).iter().map(|message| message.uid.0).collect();
            assert!([1, 3, 4, 5, 6, 7].iter().all(|uid| uids.contains(uid)), "{uids:?}");
            for message in rig.list(*account) {
                assert!(rig.read(*account, &message).is_ok());
            }
            let rig = rig.cut(Cut::Prefix(usize::MAX));
            assert!(rig.store.findings().is_empty());
            assert!(rig.list(*account).len() >= 6);
        }
    }
}

/// The disk with all journals lost.
pub(super) fn without_journals(disk: &TestDisk) -> TestDisk {
    let rig = Rig::on(disk.clone());
    let mut disk = disk.clone();
    let geometry = rig.store.parts().segments.geometry();
    for (_, journal) in rig.store.parts().journals.iter() {
        for segment in journal.chain() {
            let first = geometry.first_page(*segment).sector().0;
            (first..first + u64::from(geometry.segment_pages) * 8)
                .for_each(|sector| disk.poke(sector, [0; SECTOR_BYTES]));
        }
    }
    disk
}

#[test]
fn rebuild_reads_each_piece_once_and_eight_at_a_time() {
    let mut rig = Rig::new(2 * MIB);
    let account = rig.create("ada@example.org");
    (0..120).for_each(|number| rig.deliver(&[account], &body(number, 300)).unwrap());
    rig.disk.cut(Cut::Prefix(usize::MAX));
    let mut rig = Rig::opening(without_journals(&rig.disk));
    while !rig.store.is_rebuilding() {
        rig.turn(1);
    }
    (rig.disk.reads, rig.disk.requests_most) = (0, 0);
    rig.settle();
    assert_eq!(rig.list(account).len(), 120);
    let pieces = u64::from(rig.store.parts().segments.geometry().pages / PIECE_PAGES);
    let (reads, at_a_time) = (rig.disk.reads, rig.disk.requests_most);
    assert!(
        reads <= pieces + 8 && at_a_time >= 8,
        "{reads} reads of {pieces} pieces, {at_a_time} at a time"
    );
}

#[test]
fn rebuilt_message_is_in_its_delivery_mailbox() {
    let mut rig = Rig::new(2 * MIB);
    let ada = rig.create("ada@example.org");
    let sent = Recipient { mailbox: SENT, ..Recipient::inbox(ada) };
    rig.deliver_to(&[sent], &body(1, 40_000)).unwrap();
    let validity = rig.store.mailbox(ada, SENT).unwrap().uid_validity;
    rig.disk.cut(Cut::Prefix(usize::MAX));
    let mut rig = Rig::on(without_journals(&rig.disk));
    assert_eq!(rig.create("ada@example.org"), ada);
    assert_eq!((rig.list(ada).len(), rig.list_in(ada, SENT).len()), (0, 1));
    assert_eq!(rig.store.mailbox(ada, SENT).unwrap().uid_validity, validity);
}

#[test]
fn account_with_lost_mailboxes_has_the_built_in_ones() {
    let id = AccountId(7);
    let mut index = Index::of_shard(ShardId(7));
    let unnamed = Account::unnamed(id);
    let mut records = Vec::new();
    record::put_account(
        &mut records,
        AccountTexts { address: "ada@example.org", ..unnamed.texts() },
    );
    record::records(&records).for_each(|record| index.apply(&record, &mut |_| {}));
    for (mailbox, name) in BUILT_IN {
        let known = index.mailbox(id, mailbox.0).unwrap();
        assert_eq!((known.name(), known.uid_validity(), known.counts().0), (name, 1, 1));
    }
}

#[test]
fn rebuild_finds_chunks_across_piece_edges() {
    let mut rig = Rig::new(2 * MIB);
    let account = rig.create("ada@example.org");
    let sizes = [300, 20_000, 9000, 30_000].into_iter().cycle().take(40);
    for (size, number) in sizes.zip(0..) {
        rig.deliver(&[account], &body(number, size)).unwrap();
    }
    rig.disk.cut(Cut::Prefix(usize::MAX));
    let mut rig = Rig::on(without_journals(&rig.disk));
    let list = rig.list(account);
    assert_eq!(list.len(), 40);
    for message in list {
        let octets = rig.read(account, &message).unwrap();
        assert!(octets == body(u64::from(message.uid.0) - 1, message.octets as usize));
    }
}

#[test]
fn lost_index_is_rebuilt_from_the_bodies() {
    let filled = filled();
    let mut rig = Rig::on(without_journals(&filled.disk));
    for ((account, address), first) in filled.accounts.iter().zip([0, 7, 14]) {
        assert_eq!(rig.store.find(address), None);
        assert!(
            rig.store.findings().iter().any(|finding| finding.damage == Damage::Nameless(*account))
        );
        // The account is created again, as at a start with the configuration, and has its mail.
        let (_, continuation) = rig.continuation();
        let new = NewAccount { address, aliases: &[], password_hash: "secret", verifier: "" };
        assert_eq!(rig.store.create_account(&new, NOW, continuation), Ok(*account));
        rig.settle();
        let list = rig.list(*account);
        assert!(list.len() >= 6);
        for message in list {
            let octets = rig.read(*account, &message).unwrap();
            assert!(octets == body(first + u64::from(message.uid.0), message.octets as usize));
        }
    }
    let rig = rig.cut(Cut::Prefix(usize::MAX));
    assert!(rig.store.findings().is_empty());
    assert_eq!(rig.store.accounts().count(), 3);
}

fn refused(disk: &TestDisk) -> OpenRefusal {
    let before = disk.clone();
    let mut rig = Rig::opening(disk.clone());
    rig.settle();
    assert!(
        rig.disk.same_as(&before) && rig.disk.writes == before.writes,
        "a refused disk was written to"
    );
    let State::Refused(reason) = rig.store.state() else { panic!("{:?}", rig.store.state()) };
    assert_eq!(rig.fsck().refused, Some(reason));
    let (_, continuation) = rig.continuation();
    let new = NewAccount { address: "a@b", aliases: &[], password_hash: "", verifier: "" };
    assert_eq!(rig.store.create_account(&new, NOW, continuation), Err(Refusal::NotServing));
    reason
}

#[test]
fn unknown_format_is_refused_without_writing() {
    let filled = filled();
    for version in [1, 2, crate::FORMAT_VERSION + 1, crate::FORMAT_VERSION + 2, 255] {
        let mut disk = filled.disk.clone();
        for page in rig_slots(&filled) {
            let mut bytes = disk.peek(page);
            bytes[8] = version as u8;
            disk.poke(page, bytes);
        }
        assert_eq!(refused(&disk), OpenRefusal::OtherFormat(version));
    }
}

fn rig_slots(filled: &Filled) -> Vec<u64> {
    let rig = Rig::on(filled.disk.clone());
    rig.store.parts().segments.geometry().slots().iter().map(|page| page.sector().0).collect()
}

#[test]
fn a_single_slot_of_another_format_is_only_damage() {
    let filled = filled();
    for page in rig_slots(&filled) {
        let mut disk = filled.disk.clone();
        let mut bytes = disk.peek(page);
        bytes[8] = 1;
        disk.poke(page, bytes);
        let mut rig = Rig::on(disk);
        assert_eq!(lost(&mut rig, &filled), 0);
        assert!(rig.store.findings().iter().any(|finding| finding.damage == Damage::Superblock));
    }
}

/// The two newest slots are at opposite ends of the disk. Without them the previous root is used.
/// Its segments have not been reused yet.
#[test]
fn all_mail_survives_the_loss_of_any_two_slots() {
    let mut rig = Rig::new(2 * MIB);
    let ada = rig.create("ada@example.org");
    let mut kept = Vec::new();
    for number in 1..900 {
        rig.deliver(&[ada], &body(number, 600)).unwrap();
        let uid = rig.list(ada).last().unwrap().uid;
        if number % 30 == 0 {
            kept.push((uid, number));
        } else {
            rig.remove(ada, &[uid.0]).unwrap();
        }
    }
    rig.disk.cut(Cut::Prefix(usize::MAX));
    let slots: Vec<u64> =
        rig.store.parts().segments.geometry().slots().iter().map(|page| page.sector().0).collect();
    let mut rebuilt = false;
    for (index, first) in slots.iter().enumerate() {
        for second in slots.iter().skip(index + 1) {
            let mut disk = rig.disk.clone();
            disk.rot(*first);
            disk.rot(*second);
            let mut opened = Rig::on(disk);
            assert!(opened.serving(), "without {first} and {second}: {:?}", opened.store.state());
            rebuilt |= opened
                .store
                .findings()
                .iter()
                .any(|finding| matches!(finding.damage, Damage::Rebuilt(_)));
            let list = opened.list(ada);
            for (uid, number) in &kept {
                let message = list.iter().find(|message| message.uid == *uid);
                let message = *message
                    .unwrap_or_else(|| panic!("{uid:?} is lost without {first} and {second}"));
                assert!(opened.read(ada, &message).unwrap() == body(*number, 600));
            }
        }
    }
    assert!(!rebuilt, "the previous root led to reused segments");
}

#[test]
fn foreign_disk_is_refused_without_writing() {
    for sector in [0, 1, 8, 100, 128, 4096 - 1, 4096 - 64] {
        let mut disk = TestDisk::new(2 * MIB, 1);
        disk.poke(sector, [1; SECTOR_BYTES]);
        assert_eq!(refused(&disk), OpenRefusal::NotOurs, "sector {sector}");
    }
}

#[test]
fn shrunk_disk_is_refused_without_writing() {
    let mut disk = filled().disk;
    disk.resize(MIB);
    assert_eq!(refused(&disk), OpenRefusal::Shrunk { needs: 4096, has: 2048 });
}

#[test]
fn grown_disk_is_opened_with_its_old_size() {
    let filled = filled();
    let mut disk = filled.disk.clone();
    disk.resize(8 * MIB);
    let mut rig = Rig::on(disk);
    assert_eq!(lost(&mut rig, &filled), 0);
    assert!(rig.store.findings().is_empty());
    assert_eq!(rig.store.space().bytes, 2 * MIB);
}

#[test]
fn crash_area_is_ignored_and_left_unchanged() {
    let filled = filled();
    let mut disk = filled.disk.clone();
    let area = CRASH_SECTOR.0..CRASH_SECTOR.0 + CRASH_SECTORS;
    area.clone().for_each(|sector| disk.poke(sector, [b'!'; SECTOR_BYTES]));
    let mut rig = Rig::on(disk);
    assert!(rig.store.findings().is_empty());
    rig.deliver(&[filled.accounts[0].0], &body(99, 100)).unwrap();
    area.for_each(|sector| assert_eq!(rig.disk.peek(sector), [b'!'; SECTOR_BYTES]));
    let mut blank = TestDisk::new(2 * MIB, 1);
    blank.poke(CRASH_SECTOR.0, [b'!'; SECTOR_BYTES]);
    assert!(Rig::on(blank).serving());
}

#[test]
fn failed_flush_stops_acknowledgements_but_not_reads() {
    let filled = filled();
    let mut rig = Rig::on(filled.disk.clone());
    let ada = filled.accounts[0].0;
    let before = rig.list(ada);
    rig.disk.fail_flushes = true;
    assert_eq!(rig.deliver(&[ada], &body(99, 100)), Err(Refusal::ReadOnly));
    rig.disk.fail_flushes = false;
    assert_eq!(rig.store.state(), State::ReadOnly(WhyReadOnly::FlushFailed));
    assert_eq!(rig.deliver(&[ada], &body(99, 100)), Err(Refusal::ReadOnly));
    let (_, continuation) = rig.continuation();
    assert_eq!(rig.store.remove(ada, INBOX, &[], continuation), Err(Refusal::ReadOnly));
    assert_eq!(rig.list(ada), before);
    assert_eq!(lost(&mut rig, &filled), 0);
    assert!(rig.store.is_at_rest());
}

#[test]
fn failed_group_write_stops_acknowledgements_but_not_reads() {
    let filled = filled();
    let mut rig = Rig::on(filled.disk.clone());
    let ada = filled.accounts[0].0;
    rig.disk.fail_writes = true;
    let mut waiting = Vec::new();
    for number in 0..4 {
        let delivery = rig.store.begin(&[Recipient::inbox(filled.accounts[number % 3].0)]).unwrap();
        rig.append(delivery, &body(99, 100)).unwrap();
        let (number, continuation) = rig.continuation();
        rig.store.commit(delivery, NOW, continuation).unwrap();
        waiting.push(number);
    }
    let (number, continuation) = rig.continuation();
    rig.store.set_password(ada, &password("other", ""), continuation).unwrap();
    waiting.push(number);
    rig.settle();
    for number in waiting {
        let outcome = rig.outcomes.remove(&number);
        assert!(matches!(outcome, Some(Outcome::Refused(Refusal::ReadOnly))), "{outcome:?}");
    }
    assert_eq!(rig.store.state(), State::ReadOnly(WhyReadOnly::WriteFailed));
    assert_eq!(lost(&mut rig, &filled), 0);
    assert!(rig.store.is_at_rest());
}

#[test]
fn failed_journal_or_superblock_write_makes_store_read_only() {
    let filled = filled();
    for superblock in [false, true] {
        let mut rig = Rig::on(filled.disk.clone());
        let ada = filled.accounts[0].0;
        let (number, continuation) = rig.continuation();
        if superblock {
            // Only the superblock is written.
            rig.store.parts_mut().commit.superblock_is_due();
        } else {
            rig.store.set_password(ada, &password("other", ""), continuation).unwrap();
        }
        rig.disk.fail_writes = true;
        rig.settle();
        assert_eq!(rig.store.state(), State::ReadOnly(WhyReadOnly::WriteFailed));
        assert_eq!(rig.outcomes.contains_key(&number), !superblock);
        assert_eq!(lost(&mut rig, &filled), 0);
        assert_eq!(rig.deliver(&[ada], &body(99, 100)), Err(Refusal::ReadOnly));
    }
}

#[test]
fn failed_chunk_write_fails_only_its_delivery() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    let delivery = rig.store.begin(&[Recipient::inbox(ada)]).unwrap();
    rig.disk.fail_writes = true;
    rig.append(delivery, &body(1, 40_000)).unwrap();
    rig.settle();
    rig.disk.fail_writes = false;
    let (_, continuation) = rig.continuation();
    assert_eq!(rig.store.append(delivery, &[0], continuation), Err(Refusal::WriteFailed));
    assert_eq!(rig.store.commit(delivery, NOW, continuation), Err(Refusal::WriteFailed));
    rig.deliver(&[ada], &body(2, 40_000)).unwrap();
    assert_eq!(rig.list(ada).len(), 1);
}

#[test]
fn fsck_reports_contents_and_damage() {
    let filled = filled();
    let report = crate::fsck(&mut filled.disk.clone());
    assert!(report.is_clean(), "{report}");
    let text = report.to_string();
    assert!(text.contains("format 4") && text.contains("KiB: 30 segments"), "{text}");
    assert!(text.contains("nothing is wrong"), "{text}");
    for address in ADDRESSES {
        assert!(text.contains(&format!("{address} INBOX: 6 messages, 116300 bytes")), "{text}");
        assert!(text.contains("UIDNEXT 8"), "{text}");
    }
    let rig = Rig::on(filled.disk.clone());
    let ada = filled.accounts[0].0;
    let index = rig.store.parts().indexes.of(ada.shard());
    let page =
        index.chunk(index.mailbox(ada, 1).unwrap().messages().find(5).unwrap(), 1).unwrap().0;
    let mut disk = filled.disk.clone();
    disk.rot_at(page.sector().0, 40);
    let before = disk.clone();
    let report = crate::fsck(&mut disk);
    assert!(disk.same_as(&before));
    assert_eq!(report.findings.len(), 1);
    let text = report.to_string();
    let place = format!("sector {}: message 5 in INBOX of {}", page.sector().0, ADDRESSES[0]);
    assert!(text.contains(&format!("{place} is damaged: two reads differ")), "{text}");
    assert!(text.contains("1 damaged"), "{text}");
    let mut disk = filled.disk.clone();
    disk.unreadable.insert(page.sector().0);
    let text = crate::fsck(&mut disk).to_string();
    assert!(text.contains(&format!("{place} cannot be read")), "{text}");
}

#[test]
fn fsck_reports_a_blank_disk_and_leaves_it_blank() {
    let mut disk = TestDisk::new(2 * MIB, 1);
    let report = crate::fsck(&mut disk);
    assert_eq!(report.refused, Some(OpenRefusal::Blank));
    assert!(disk.used_sectors().is_empty());
    assert_eq!(limits().reads, 8);
}

#[test]
fn no_disk_content_makes_opening_panic() {
    let filled = filled();
    let sectors = filled.disk.used_sectors();
    let mut dice = Dice::new(3);
    for _ in 0..400 {
        let mut disk = filled.disk.clone();
        for _ in 0..1 + dice.below(60) {
            let sector = sectors[dice.below(sectors.len() as u64) as usize];
            disk.rot(sector);
            if dice.one_in(3) {
                disk.unreadable.insert(sector + dice.below(9));
            }
        }
        let mut rig = Rig::on(disk);
        rig.fsck();
        for (account, _) in &filled.accounts {
            for message in rig.list(*account) {
                let _ = rig.read(*account, &message);
            }
            let _ = rig
                .store
                .begin(&[Recipient::inbox(*account)])
                .map(|delivery| rig.store.abort(delivery));
        }
        rig.settle();
    }
}
