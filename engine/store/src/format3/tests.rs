//! Outbox entries in the bits of format 3.

use super::*;

/// The entry in the form of format 3.
fn in_marks(entry: OutboxEntry) -> OutboxEntry {
    OutboxEntry { results: Results::Packed(0), is_in_marks: true, ..entry }
}

fn submitted(first: u8) -> OutboxEntry {
    in_marks(OutboxEntry::submitted(first, 4))
}

#[test]
fn format_3_marks_survive_split_and_join() {
    for bits in 0..1u32 << 24 {
        let marks = Marks { flags: Flags((bits >> 16) as u8), keywords: bits as u16 };
        let (own, entry) = split(marks);
        if join(own, entry) != marks {
            panic!("{marks:?} became {own:?} and {entry:?}");
        }
    }
}

#[test]
fn format_3_entry_bits_are_kept_only_without_an_entry() {
    for bits in 0..=u8::MAX {
        let marks = Marks { flags: Flags(bits), keywords: 0x1234 };
        match split(marks) {
            (own, None) => assert_eq!((own, bits >> 6), (marks, 0)),
            (own, Some(_)) => assert_eq!(own, Marks { flags: Flags(bits & 0b1011), keywords: 0 }),
        }
    }
}

#[test]
fn outbox_entries_and_format_3_marks_convert_both_ways() {
    let entries = [
        (submitted(0), 0x40, 0),
        (submitted(200), 0x40, 200 << 8),
        (in_marks(OutboxEntry::forwarded()), 0x50, 0),
        (
            OutboxEntry { results: Results::Packed(0b0101_0011), ..submitted(8) },
            0x40,
            8 << 8 | 0x53,
        ),
        (OutboxEntry { state: EntryState::Held, ..submitted(1) }, 0xc0, 1 << 8),
        (OutboxEntry { state: EntryState::Returned, ..submitted(1) }, 0x80, 1 << 8),
        (OutboxEntry { is_delay_reported: true, ..submitted(1) }, 0x60, 1 << 8),
        (OutboxEntry { is_damage_reported: true, ..submitted(1) }, 0x44, 1 << 8),
    ];
    for (entry, flags, keywords) in entries {
        let marks = Marks { flags: Flags(flags | 1), keywords };
        assert_eq!(join(Marks { flags: Flags::SEEN, keywords: 0 }, Some(entry)), marks);
        assert_eq!(split(marks), (Marks { flags: Flags::SEEN, keywords: 0 }, Some(entry)));
    }
}

/// The entry after a change.
fn changed(entry: OutboxEntry, change: EntryChange, packing: Packing) -> OutboxEntry {
    let (_, entry) = split(marks_of(&change, packing).applied(join(Marks::default(), Some(entry))));
    entry.expect("a change does not remove an entry")
}

#[test]
fn format_3_entry_has_its_last_state() {
    let states = [EntryState::Queued, EntryState::Held, EntryState::Returned];
    for before in states {
        for after in states {
            let entry = OutboxEntry { state: before, results: Results::Packed(3), ..submitted(7) };
            let expected = OutboxEntry { state: after, ..entry };
            assert_eq!(changed(entry, EntryChange::to(after), Packing::Done), expected);
        }
    }
}

#[test]
fn format_3_results_are_only_added() {
    for packing in [Packing::Done, Packing::DoneAndReported] {
        let mut entry = submitted(7);
        for bit in 0..packing.recipients_max() as u8 {
            let (mut done, mut reported) = (EntryChange::default(), EntryChange::default());
            done.done(bit);
            reported.done_and_reported(bit);
            entry = changed(entry, done, packing);
            let (all, below) = ((2u16 << bit) - 1, (1u16 << bit) - 1);
            assert_eq!(entry.done(packing), all);
            assert_eq!(entry.reported(packing), if packing == Packing::Done { all } else { below });
            entry = changed(entry, reported, packing);
            assert_eq!((entry.done(packing), entry.reported(packing)), (all, all));
        }
        assert_eq!(
            (entry.first(), entry.state(), entry.source()),
            (7, EntryState::Queued, EntrySource::Submitted)
        );
    }
}

#[test]
fn format_3_reports_are_only_added() {
    let (mut delay, mut damage) = (EntryChange::default(), EntryChange::default());
    delay.delay_reported();
    damage.damage_reported();
    let entry = changed(submitted(0), delay, Packing::Done);
    assert_eq!((entry.is_delay_reported(), entry.is_damage_reported()), (true, false));
    let entry = changed(entry, damage, Packing::Done);
    assert_eq!((entry.is_delay_reported(), entry.is_damage_reported()), (true, true));
}

#[test]
fn format_3_client_flags_do_not_change_the_entry() {
    let all = Marks { flags: Flags(u8::MAX), keywords: u16::MAX };
    let entry = OutboxEntry { results: Results::Packed(5), ..submitted(9) };
    let before = join(Marks { flags: Flags::DELETED, keywords: 0 }, Some(entry));
    for change in [
        MarkChange { set: all, ..MarkChange::default() },
        MarkChange { clear: all, ..MarkChange::default() },
    ] {
        let (_, after) = split(marks_of_client(change, true).applied(before));
        assert_eq!(after, Some(entry));
        let (_, made) = split(marks_of_client(change, false).applied(Marks::default()));
        assert_eq!(made, None);
    }
}
