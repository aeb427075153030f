//! A disk of format 3 keeps its format until its conversion is requested. A conversion may be
//! interrupted anywhere.

use super::cuts::at_every_point;
use super::disk::{Cut, TestDisk};
use super::rig::{MIB, Rig, body};
use crate::outbox::{EntryChange, EntrySource, EntryState, OutboxEntry, Packing};
use crate::outcome::{OpenRefusal, Outcome, State};
use crate::superblock::{Format, SlotContent, Superblock};
use crate::types::{AccountId, Flags, MarkChange, OUTBOX, Recipient, Uid};
use alloc::collections::BTreeSet;
use alloc::string::ToString;
use alloc::vec::Vec;
use chance::Dice;
use core::cell::RefCell;

/// The fields of an entry, independent of its form on the disk.
type EntryFields = (EntrySource, EntryState, usize, u16, u16, bool, bool);

fn entries_of(rig: &Rig, account: AccountId) -> Vec<(Uid, Option<EntryFields>)> {
    let of = |entry: OutboxEntry| {
        // The recipients of the second message want reports of success.
        let packing = if entry.first() == 4 { Packing::DoneAndReported } else { Packing::Done };
        let (done, reported) = (entry.done(packing), entry.reported(packing));
        let (delay, damage) = (entry.is_delay_reported(), entry.is_damage_reported());
        (entry.source(), entry.state(), entry.first(), done, reported, delay, damage)
    };
    let list = rig.list_in(account, OUTBOX).into_iter();
    list.map(|message| (message.uid, rig.store.outbox_entry(account, message.uid).map(of)))
        .collect()
}

fn change(rig: &mut Rig, account: AccountId, uid: u32, change: EntryChange, packing: Packing) {
    let (number, continuation) = rig.continuation();
    rig.store.change_entry(account, Uid(uid), (change, packing), continuation).unwrap();
    assert!(matches!(rig.outcome(number), Outcome::Changed));
}

/// A disk of format 3 with entries in several states, and these states.
fn of_format_3() -> (TestDisk, AccountId, Vec<(Uid, Option<EntryFields>)>) {
    let mut rig = Rig::of_format(2 * MIB, Format::Three);
    let ada = rig.create("ada@example.org");
    let entries = [
        Some(OutboxEntry::submitted(0, 8)),
        Some(OutboxEntry::submitted(4, 4)),
        Some(OutboxEntry::forwarded()),
        Some(OutboxEntry::submitted(9, 1)),
        None,
    ];
    let to_outbox =
        |entry| Recipient { mailbox: OUTBOX, flags: Flags::SEEN, entry, ..Recipient::inbox(ada) };
    for (number, entry) in (1..).zip(entries) {
        rig.deliver_to(&[to_outbox(entry)], &body(number, 900)).unwrap();
    }
    let mut some = EntryChange::default();
    some.done(0);
    some.done(7);
    change(&mut rig, ada, 1, some, Packing::Done);
    let mut reported = EntryChange::default();
    reported.done(1);
    reported.done_and_reported(3);
    reported.delay_reported();
    change(&mut rig, ada, 2, reported, Packing::DoneAndReported);
    change(&mut rig, ada, 3, EntryChange::to(EntryState::Held), Packing::Done);
    let mut damaged = EntryChange::to(EntryState::Returned);
    damaged.damage_reported();
    change(&mut rig, ada, 4, damaged, Packing::Done);
    let known = entries_of(&rig, ada);
    assert_eq!(rig.store.format(), 3);
    (rig.disk, ada, known)
}

/// The disk as a program without format 4 sees it. `None`: that program refuses the disk.
fn as_seen_before_format_4(disk: &TestDisk) -> Option<TestDisk> {
    let mut disk = disk.clone();
    disk.is_to_be_converted = false;
    let pages = Rig::opening(disk.clone()).store.parts().superblock.geometry.slots();
    let mut are_left = false;
    for page in pages {
        let sectors = page.sector().0..page.sector().0 + crate::layout::PAGE_SECTORS;
        let bytes: Vec<u8> = sectors.flat_map(|sector| disk.peek(sector)).collect();
        match Superblock::parse(&bytes, page) {
            SlotContent::Valid(superblock) if superblock.format == Format::Three => are_left = true,
            _ => disk.rot(page.sector().0),
        }
    }
    are_left.then_some(disk)
}

#[test]
fn format_3_disk_keeps_its_format_until_conversion() {
    let (disk, ada, known) = of_format_3();
    let mut rig = Rig::on(disk);
    assert!(!rig.store.is_converted());
    change(&mut rig, ada, 3, EntryChange::to(EntryState::Queued), Packing::Done);
    let rig = rig.cut(Cut::Prefix(0));
    assert_eq!((rig.store.format(), entries_of(&rig, ada).len()), (3, known.len()));
    assert!(rig.fsck().to_string().starts_with("Barepost disk, format 3"), "{}", rig.fsck());
    let older = Rig::on(as_seen_before_format_4(&rig.disk).expect("a disk of format 3"));
    assert_eq!(entries_of(&older, ada), entries_of(&rig, ada));
}

#[test]
fn conversion_cut_anywhere_loses_nothing_and_is_completed() {
    let (mut disk, ada, known) = of_format_3();
    disk.is_to_be_converted = true;
    let seen = RefCell::new([0; 4]);
    let points = at_every_point(Rig::opening(disk), Rig::exchange, |rig, _| {
        let mut seen = seen.borrow_mut();
        // This life was asked to convert the disk, and has done so.
        assert_eq!((rig.store.state(), rig.store.format()), (State::Serving, 4));
        assert_eq!(entries_of(&rig, ada), known);
        assert!(as_seen_before_format_4(&rig.disk).is_none(), "a slot of format 3 is left");
        seen[0] += usize::from(rig.store.is_converted());
        assert!(
            rig.fsck().is_clean() && rig.fsck().to_string().starts_with("Barepost disk, format 4")
        );
    });
    // The same cuts, but the next life is not asked to convert the disk, or does not know format 4.
    let (mut disk, ..) = of_format_3();
    disk.is_to_be_converted = true;
    let mut rig = Rig::opening(disk);
    while rig.store.state() == State::Opening {
        for count in 0..=rig.disk.volatile_writes() {
            let mut left = rig.disk.clone();
            left.cut(Cut::Prefix(count));
            left.is_to_be_converted = false;
            let older = as_seen_before_format_4(&left);
            let is_left_of_format_3 = older.is_some();
            if let Some(older) = older {
                let older = Rig::on(older);
                assert_eq!((older.store.format(), entries_of(&older, ada)), (3, known.clone()));
                seen.borrow_mut()[1] += 1;
            }
            let next = Rig::on(left);
            assert!(next.serving());
            assert_eq!(entries_of(&next, ada), known);
            // Only the life that completes a conversion reports it.
            assert_eq!(next.store.is_converted(), is_left_of_format_3 && next.store.format() == 4);
            seen.borrow_mut()[if next.store.format() == 3 { 2 } else { 3 }] += 1;
        }
        rig.turn(1);
    }
    assert!(
        points > 100 && seen.borrow().iter().all(|count| *count > 0),
        "{points} points, {seen:?}"
    );
}

/// The result of a failed write is unknown: the next life finds one format or the other.
#[test]
fn conversion_with_a_failed_write_loses_nothing() {
    let mut formats = BTreeSet::new();
    for seed in 0..20 {
        let (mut disk, ada, known) = of_format_3();
        (disk.is_to_be_converted, disk.fail_writes, disk.dice) = (true, true, Dice::new(seed));
        let rig = Rig::on(disk);
        assert!(matches!(rig.store.state(), State::ReadOnly(_)), "{:?}", rig.store.state());
        assert_eq!(entries_of(&rig, ada), known);
        let mut disk = rig.disk;
        (disk.is_to_be_converted, disk.fail_writes) = (false, false);
        disk.cut(Cut::Dice);
        let rig = Rig::on(disk);
        assert_eq!((rig.store.state(), entries_of(&rig, ada)), (State::Serving, known));
        formats.insert(rig.store.format());
    }
    assert_eq!(formats, BTreeSet::from([3, 4]));
}

#[test]
fn converted_entries_survive_cuts_and_checkpoints() {
    let (mut disk, ada, mut known) = of_format_3();
    disk.is_to_be_converted = true;
    let mut rig = Rig::on(disk);
    for life in 0..4 {
        assert_eq!(entries_of(&rig, ada), known, "life {life}");
        let mut more = EntryChange::default();
        more.done(life);
        change(&mut rig, ada, 1, more, Packing::Done);
        let (_, Some(first)) = &mut known[0] else { panic!("no entry") };
        (first.3, first.4) = (first.3 | 1 << life, first.4 | 1 << life);
        // A client's flags are independent of the entry.
        let (number, continuation) = rig.continuation();
        rig.store.mark(ada, OUTBOX, Uid(1), MarkChange::set(Flags(u8::MAX)), continuation).unwrap();
        assert!(matches!(rig.outcome(number), Outcome::Changed));
        if life == 1 {
            rig.store.parts_mut().journals.needs_mending(ada.shard());
            rig.deliver(&[ada], &body(99, 10)).unwrap();
            (0..20).for_each(|_| rig.turn(usize::MAX));
        }
        rig = rig.cut(Cut::Prefix(0));
    }
    assert!(rig.fsck().is_clean());
}

/// A program that knows only format 3 refuses a record of format 4, and names its kind. This
/// program does so, too, if the disk claims format 3.
#[test]
fn format_4_record_on_a_format_3_disk_is_refused() {
    let mut rig = Rig::new(2 * MIB);
    let ada = rig.create("ada@example.org");
    let entry = Some(OutboxEntry::submitted(0, 1));
    rig.deliver_to(&[Recipient { mailbox: OUTBOX, entry, ..Recipient::inbox(ada) }], &body(1, 900))
        .unwrap();
    let superblock = Superblock { format: Format::Three, ..rig.store.parts().superblock.clone() };
    for page in superblock.geometry.slots() {
        for (sector, bytes) in (page.sector().0..).zip(superblock.emit(page, 7).chunks_exact(512)) {
            rig.disk.poke(sector, bytes.try_into().unwrap());
        }
    }
    let rig = rig.cut(Cut::Prefix(0));
    assert!(
        matches!(rig.store.state(), State::Refused(OpenRefusal::UnknownRecord { kind: 14, .. })),
        "{:?}",
        rig.store.state()
    );
}
