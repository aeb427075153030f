//! The outbox: it reports each new message once, and keeps the state of its entries.

use super::disk::Cut;
use super::rig::{MIB, Rig, body};
use crate::outbox::{EntryChange, EntrySource, EntryState, OutboxEntry, Packing};
use crate::outcome::{Outcome, Refusal};
use crate::record::Record;
use crate::superblock::Format;
use crate::types::{
    AccountId, Flags, INBOX, MarkChange, MessageInfo, OUTBOX, Place, Recipient, SENT, Uid, UidRange,
};
use alloc::vec::Vec;

fn to_outbox(account: AccountId, flags: u8) -> Recipient {
    Recipient {
        mailbox: OUTBOX,
        flags: Flags(flags),
        keywords: u16::from(flags) << 8,
        ..Recipient::inbox(account)
    }
}

/// A new message in the outbox with this entry.
fn queued(account: AccountId, entry: OutboxEntry) -> Recipient {
    Recipient {
        mailbox: OUTBOX,
        flags: Flags::SEEN,
        entry: Some(entry),
        ..Recipient::inbox(account)
    }
}

/// Marks the recipients `done` as done, and the recipients `reported` as done and reported.
fn results(done: &[u8], reported: &[u8]) -> EntryChange {
    let mut change = EntryChange::default();
    done.iter().for_each(|bit| change.done(*bit));
    reported.iter().for_each(|bit| change.done_and_reported(*bit));
    change
}

/// The first recipient of an entry, its done bits, and its state.
fn fields_of(entry: OutboxEntry) -> (usize, u16, EntryState) {
    (entry.first(), entry.done(Packing::Done), entry.state())
}

impl Rig {
    fn change(&mut self, account: AccountId, uid: u32, change: EntryChange, packing: Packing) {
        let (number, continuation) = self.continuation();
        self.store.change_entry(account, Uid(uid), (change, packing), continuation).unwrap();
        assert!(matches!(self.outcome(number), Outcome::Changed));
    }

    fn entry(&self, account: AccountId, uid: u32) -> Option<OutboxEntry> {
        self.store.outbox_entry(account, Uid(uid))
    }

    /// Makes a checkpoint of the account's shard durable.
    fn checkpoint(&mut self, account: AccountId) {
        self.store.parts_mut().journals.needs_mending(account.shard());
        self.deliver(&[account], &body(1, 10)).unwrap();
        (0..20).for_each(|_| self.turn(usize::MAX));
    }

    fn posted(&mut self) -> Vec<(AccountId, Uid)> {
        let mut all: Vec<(AccountId, Uid)> =
            core::iter::from_fn(|| self.store.next_posted()).collect();
        all.sort();
        all
    }
}

#[test]
fn outbox_has_a_message_as_often_as_it_was_delivered() {
    for length in [900, 70_000] {
        let mut rig = Rig::new(16 * MIB);
        let (ada, eve) = (rig.create("ada@example.org"), rig.create("eve@example.org"));
        let all = [to_outbox(ada, 1), to_outbox(ada, 3), Recipient::inbox(eve), to_outbox(ada, 5)];
        rig.deliver_to(&all, &body(1, length)).unwrap();
        for _ in 0..2 {
            let list = rig.list_in(ada, OUTBOX);
            let marks = |message: &MessageInfo| (message.flags.0, message.keywords);
            assert_eq!(
                list.iter().map(marks).collect::<Vec<_>>(),
                [(1, 0x100), (3, 0x300), (5, 0x500)]
            );
            for message in &list {
                assert!(rig.read_in(ada, OUTBOX, message) == Ok(body(1, length)));
            }
            assert_eq!(rig.list(eve).len(), 1);
            rig = rig.cut(Cut::Prefix(0));
        }
        assert!(rig.fsck().is_clean());
    }
}

#[test]
fn outbox_delivery_is_reported_exactly_once() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver(&[ada], &body(1, 100)).unwrap();
    assert!(!rig.store.has_posted());
    rig.deliver_to(&[to_outbox(ada, 1), to_outbox(ada, 1)], &body(1, 100)).unwrap();
    rig.deliver_to(&[to_outbox(ada, 1)], &body(2, 100)).unwrap();
    assert!(rig.store.has_posted());
    assert_eq!(rig.posted(), [(ada, Uid(1)), (ada, Uid(2)), (ada, Uid(3))]);
    assert_eq!(rig.posted(), []);
    let mut rig = rig.cut(Cut::Prefix(0));
    assert_eq!(rig.posted(), [], "messages of an earlier life are reported");
    assert_eq!(rig.list_in(ada, OUTBOX).len(), 3);
}

#[test]
fn no_message_is_moved_to_an_outbox() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver_to(&[Recipient::inbox(ada), to_outbox(ada, 1)], &body(1, 100)).unwrap();
    let (_, continuation) = rig.continuation();
    let one = [UidRange::one(Uid(1))];
    assert_eq!(rig.store.file(ada, INBOX, &one, OUTBOX, continuation), Err(Refusal::BuiltIn));
    rig.file(ada, OUTBOX, &[1], SENT);
    assert_eq!((rig.list_in(ada, OUTBOX).len(), rig.list_in(ada, SENT).len()), (0, 1));
}

#[test]
fn outbox_entry_survives_cuts_and_checkpoints() {
    for format in [Format::Three, Format::Four] {
        let mut rig = Rig::of_format(16 * MIB, format);
        let ada = rig.create("ada@example.org");
        let new = [
            OutboxEntry::submitted(0, 8),
            OutboxEntry::submitted(200, 4),
            OutboxEntry::forwarded(),
        ];
        rig.deliver_to(&new.map(|entry| queued(ada, entry)), &body(1, 900)).unwrap();
        rig.change(ada, 1, results(&[0, 7], &[]), Packing::Done);
        rig.change(ada, 2, results(&[0], &[3]), Packing::DoneAndReported);
        let mut held = EntryChange::to(EntryState::Held);
        held.delay_reported();
        rig.change(ada, 3, held, Packing::Done);
        for life in 0..4 {
            let [first, second, third] = [1, 2, 3].map(|uid| rig.entry(ada, uid).unwrap());
            assert_eq!(
                (first.first(), first.done(Packing::Done), first.state()),
                (0, 0x81, EntryState::Queued)
            );
            // With this packing, a recipient that is done counts as reported, since it needs no
            // report.
            assert_eq!(first.reported(Packing::Done), 0x81);
            let packing = Packing::DoneAndReported;
            assert_eq!(
                (second.first(), second.done(packing), second.reported(packing)),
                (200, 0b1001, 0b1000)
            );
            assert_eq!((third.source(), third.state()), (EntrySource::Forwarded, EntryState::Held));
            assert_eq!((third.is_delay_reported(), third.is_damage_reported()), (true, false));
            assert!(
                rig.list_in(ada, OUTBOX)
                    .iter()
                    .all(|info| (info.flags, info.keywords) == (Flags::SEEN, 0))
            );
            if life == 1 {
                rig.checkpoint(ada);
            }
            rig = rig.cut(Cut::Prefix(0));
        }
        assert!(rig.fsck().is_clean());
    }
}

#[test]
fn changes_of_an_entry_in_one_group_all_apply() {
    for format in [Format::Three, Format::Four] {
        let mut rig = Rig::of_format(16 * MIB, format);
        let ada = rig.create("ada@example.org");
        rig.deliver_to(&[queued(ada, OutboxEntry::submitted(1, 8))], &body(1, 900)).unwrap();
        let changes = [results(&[0], &[]), EntryChange::to(EntryState::Held), results(&[1], &[])];
        let requested = changes.map(|change| {
            let (number, continuation) = rig.continuation();
            rig.store.change_entry(ada, Uid(1), (change, Packing::Done), continuation).unwrap();
            number
        });
        requested
            .into_iter()
            .for_each(|number| assert!(matches!(rig.outcome(number), Outcome::Changed)));
        let rig = rig.cut(Cut::Prefix(0));
        let entry = rig.entry(ada, 1).unwrap();
        assert_eq!((entry.done(Packing::Done), entry.state()), (3, EntryState::Held));
    }
}

#[test]
fn outbox_entry_is_removed_with_its_message() {
    for format in [Format::Three, Format::Four] {
        let mut rig = Rig::of_format(16 * MIB, format);
        let ada = rig.create("ada@example.org");
        let resident = |rig: &Rig| rig.store.parts().indexes.of(ada.shard()).resident_bytes();
        let before = resident(&rig);
        rig.deliver_to(
            &[to_outbox(ada, 1), queued(ada, OutboxEntry::submitted(0, 8))],
            &body(1, 900),
        )
        .unwrap();
        let each = crate::RESIDENT_BYTES_PER_MESSAGE as u64;
        assert_eq!(resident(&rig), before + 2 * each + crate::RESIDENT_BYTES_QUEUED as u64);
        assert_eq!(
            (rig.entry(ada, 1), rig.entry(ada, 2).map(fields_of)),
            (None, Some((0, 0, EntryState::Queued)))
        );
        rig.remove_in(ada, OUTBOX, &[2]).unwrap();
        assert_eq!((rig.entry(ada, 2), resident(&rig)), (None, before + each));
        let (_, continuation) = rig.continuation();
        for uid in [1, 2, 3] {
            let change = (results(&[0], &[]), Packing::Done);
            assert_eq!(
                rig.store.change_entry(ada, Uid(uid), change, continuation),
                Err(Refusal::NoSuchMessage)
            );
        }
    }
}

/// No version of Barepost has written such marks, but a disk may have them.
#[test]
fn outbox_entry_without_state_bits_is_gone() {
    let mut rig = Rig::of_format(16 * MIB, Format::Three);
    let ada = rig.create("ada@example.org");
    let resident = |rig: &Rig| rig.store.parts().indexes.of(ada.shard()).resident_bytes();
    rig.deliver_to(&[queued(ada, OutboxEntry::submitted(0, 8))], &body(1, 900)).unwrap();
    let before = resident(&rig);
    let change = MarkChange::clear(Flags(64 | 128));
    let marked = Record::Marked {
        account: ada,
        place: Place { mailbox: OUTBOX.0, uid: 1 },
        modseq: 9,
        change,
    };
    rig.store.parts_mut().indexes.of_mut(ada.shard()).apply(&marked, &mut |_| {});
    assert_eq!(rig.entry(ada, 1), None);
    assert_eq!(resident(&rig), before - crate::RESIDENT_BYTES_QUEUED as u64);
}

#[test]
fn client_flags_neither_change_nor_create_an_entry() {
    for format in [Format::Three, Format::Four] {
        let mut rig = Rig::of_format(16 * MIB, format);
        let ada = rig.create("ada@example.org");
        rig.deliver_to(
            &[to_outbox(ada, 0), queued(ada, OutboxEntry::submitted(0, 8))],
            &body(1, 900),
        )
        .unwrap();
        rig.change(ada, 2, results(&[1], &[]), Packing::Done);
        let before = rig.entry(ada, 2);
        assert_eq!(before.map(fields_of), Some((0, 2, EntryState::Queued)));
        for change in [MarkChange::set(Flags(u8::MAX)), MarkChange::clear(Flags(u8::MAX))] {
            for uid in [1, 2] {
                let (number, continuation) = rig.continuation();
                rig.store.mark(ada, OUTBOX, Uid(uid), change, continuation).unwrap();
                assert!(matches!(rig.outcome(number), Outcome::Changed));
            }
            assert_eq!((rig.entry(ada, 1), rig.entry(ada, 2)), (None, before));
        }
    }
}
