//! Mailboxes are created, renamed and removed, and messages are moved from one to another.

use super::disk::Cut;
use super::rig::{MIB, NOW, Rig, body, password};
use crate::MAILBOXES_MAX;
use crate::chunk::CHUNK_OCTETS;
use crate::index::Index;
use crate::layout::{Page, ShardId};
use crate::messages::MessageEntry;
use crate::outcome::{Outcome, Refusal};
use crate::record::Record;
use crate::types::{
    ARCHIVE, AccountId, BUILT_IN, Filed, Flags, INBOX, MailboxId, MarkChange, Marks, Place,
    Recipient, SENT, TRASH, Uid, UidRange,
};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

impl Rig {
    fn names(&mut self, account: AccountId) -> Vec<(u32, String)> {
        let known = self.at(account).account(account).unwrap();
        known.mailboxes().map(|(id, name)| (id.0, name.to_string())).collect()
    }

    fn create_mailbox(&mut self, account: AccountId, name: &str) -> Result<MailboxId, Refusal> {
        let (number, continuation) = self.continuation();
        self.at(account).create_mailbox(account, name, NOW, continuation)?;
        match self.outcome(number) {
            Outcome::MailboxCreated(id) => Ok(id),
            Outcome::Refused(refusal) => Err(refusal),
            other => panic!("{other:?}"),
        }
    }

    fn rename_mailbox(
        &mut self,
        account: AccountId,
        id: MailboxId,
        name: &str,
    ) -> Result<(), Refusal> {
        let (number, continuation) = self.continuation();
        self.at(account).rename_mailbox(account, id, name, continuation)?;
        self.changed(number)
    }

    fn delete_mailbox(&mut self, account: AccountId, id: MailboxId) -> Result<(), Refusal> {
        let (number, continuation) = self.continuation();
        self.at(account).delete_mailbox(account, id, continuation)?;
        self.changed(number)
    }

    fn mark(&mut self, account: AccountId, mailbox: MailboxId, uid: Uid, flags: Flags) {
        let (number, continuation) = self.continuation();
        let change = MarkChange { set: Marks { flags, keywords: 3 }, ..MarkChange::default() };
        self.at(account).mark(account, mailbox, uid, change, continuation).unwrap();
        self.changed(number).unwrap();
    }

    fn changed(&mut self, number: u32) -> Result<(), Refusal> {
        match self.outcome(number) {
            Outcome::Changed => Ok(()),
            Outcome::Refused(refusal) => Err(refusal),
            other => panic!("{other:?}"),
        }
    }
}

fn filed(outcome: Outcome) -> Filed {
    match outcome {
        Outcome::Filed(filed) => filed,
        other => panic!("{other:?}"),
    }
}

#[test]
fn new_account_has_its_built_in_mailboxes() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    let built_in: Vec<(u32, String)> =
        BUILT_IN.iter().map(|(id, name)| (id.0, name.to_string())).collect();
    assert_eq!(rig.names(ada), built_in);
    assert_eq!(rig.rename_mailbox(ada, TRASH, "Bin"), Err(Refusal::BuiltIn));
    assert_eq!(rig.delete_mailbox(ada, INBOX), Err(Refusal::BuiltIn));
    let mut rig = rig.cut(Cut::Prefix(0));
    assert_eq!(rig.names(ada), built_in);
}

#[test]
fn created_renamed_and_removed_mailboxes_survive_a_restart() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    let bills = rig.create_mailbox(ada, "Bills").unwrap();
    let trips = rig.create_mailbox(ada, "Trips").unwrap();
    rig.rename_mailbox(ada, bills, "Paid").unwrap();
    rig.delete_mailbox(ada, trips).unwrap();
    for _ in 0..2 {
        let own: Vec<(u32, String)> = rig.names(ada).into_iter().skip(BUILT_IN.len()).collect();
        assert_eq!(own, [(bills.0, String::from("Paid"))]);
        rig = rig.cut(Cut::Prefix(0));
    }
    assert_eq!(rig.delete_mailbox(ada, trips), Err(Refusal::NoSuchMailbox));
    assert_eq!(rig.rename_mailbox(ada, trips, "Tours"), Err(Refusal::NoSuchMailbox));
}

/// RFC 9051 §2.3.1.1: a client that has cached UIDs of a mailbox must see that a new mailbox of the
/// same name is another one.
#[test]
fn recreated_mailbox_gets_a_new_number_and_uidvalidity() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    let before = rig.create_mailbox(ada, "Bills").unwrap();
    let validity = rig.store.mailbox(ada, before).unwrap().uid_validity;
    rig.delete_mailbox(ada, before).unwrap();
    let begun = rig.store.parts().superblock.sequence;
    for number in 0..2000 {
        rig.fill_journal(ada, number);
    }
    assert!(rig.store.parts().superblock.sequence > begun + 1, "no checkpoint was made");
    let mut rig = rig.cut(Cut::Prefix(0));
    let after = rig.create_mailbox(ada, "Bills").unwrap();
    assert!(after > before);
    assert!(rig.store.mailbox(ada, after).unwrap().uid_validity > validity);
}

impl Rig {
    /// A change that only fills the journal.
    fn fill_journal(&mut self, account: AccountId, number: u32) {
        let (requested, continuation) = self.continuation();
        self.store
            .set_password(account, &password(&format!("{number:0200}"), ""), continuation)
            .unwrap();
        self.changed(requested).unwrap();
    }
}

#[test]
fn concurrent_creations_of_one_mailbox_name_make_one_mailbox() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    let (first, one) = rig.continuation();
    let (second, two) = rig.continuation();
    rig.store.create_mailbox(ada, "Bills", NOW, one).unwrap();
    rig.store.create_mailbox(ada, "Bills", NOW, two).unwrap();
    assert!(matches!(rig.outcome(first), Outcome::MailboxCreated(_)));
    assert!(matches!(rig.outcome(second), Outcome::Refused(Refusal::NameTaken)));
    assert_eq!(rig.create_mailbox(ada, "Sent"), Err(Refusal::NameTaken));
}

#[test]
fn mailbox_names_and_counts_are_bounded() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    assert_eq!(rig.create_mailbox(ada, ""), Err(Refusal::TooLarge));
    assert_eq!(rig.create_mailbox(ada, &"x".repeat(256)), Err(Refusal::TooLarge));
    for number in BUILT_IN.len()..MAILBOXES_MAX {
        rig.create_mailbox(ada, &format!("Box {number}")).unwrap();
    }
    assert_eq!(rig.create_mailbox(ada, "One more"), Err(Refusal::TooMany));
}

#[test]
fn message_is_delivered_to_the_given_mailbox_with_the_flags() {
    let mut rig = Rig::new(16 * MIB);
    let (ada, bob) = (rig.create("ada@example.org"), rig.create("bob@example.org"));
    let own = Recipient { mailbox: SENT, flags: Flags::SEEN, ..Recipient::inbox(ada) };
    rig.deliver_to(&[Recipient::inbox(bob), own], &body(1, 50_000)).unwrap();
    for _ in 0..2 {
        let sent = rig.list_in(ada, SENT);
        assert_eq!((sent.len(), sent[0].flags), (1, Flags::SEEN));
        assert_eq!(rig.read_in(ada, SENT, &sent[0]), Ok(body(1, 50_000)));
        assert_eq!((rig.list(ada).len(), rig.list(bob).len()), (0, 1));
        rig = rig.cut(Cut::Prefix(0));
    }
}

/// The user may remove the mailbox before the message is complete.
#[test]
fn user_mailbox_takes_no_delivery() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    let bills = rig.create_mailbox(ada, "Bills").unwrap();
    let to = Recipient { mailbox: bills, ..Recipient::inbox(ada) };
    assert_eq!(rig.deliver_to(&[to], b"one"), Err(Refusal::NoSuchMailbox));
}

#[test]
fn moved_message_keeps_its_flags_and_guid() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    let sizes = [100, 3 * CHUNK_OCTETS + 5, 0];
    for (size, number) in sizes.iter().zip(1..) {
        rig.deliver(&[ada], &body(number, *size)).unwrap();
    }
    rig.mark(ada, INBOX, Uid(2), Flags::SEEN.with(Flags::FLAGGED));
    let before = rig.list(ada);
    let filed = filed(rig.file(ada, INBOX, &[1, 2], ARCHIVE));
    assert_eq!(
        filed,
        Filed { last: Uid(2), count: 2, now: UidRange { first: Uid(1), last: Uid(2) } }
    );
    for _ in 0..2 {
        assert_eq!(rig.list(ada).iter().map(|one| one.uid.0).collect::<Vec<_>>(), [3]);
        let archive = rig.list_in(ada, ARCHIVE);
        for ((now, then), (size, number)) in archive.iter().zip(&before).zip(sizes.iter().zip(1..))
        {
            assert_eq!((now.guid, now.flags, now.keywords), (then.guid, then.flags, then.keywords));
            assert_eq!((now.internal_date, now.octets), (then.internal_date, then.octets));
            assert_eq!(rig.read_in(ada, ARCHIVE, now), Ok(body(number, *size)));
        }
        assert_eq!(rig.store.mailbox(ada, ARCHIVE).unwrap().unseen, 1);
        assert_eq!(rig.store.mailbox(ada, INBOX).unwrap().unseen, 1);
        rig = rig.cut(Cut::Prefix(0));
    }
    assert!(rig.fsck().is_clean());
}

#[test]
fn move_raises_the_modseq_of_both_mailboxes() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver(&[ada], b"one").unwrap();
    let inbox = rig.store.mailbox(ada, INBOX).unwrap();
    filed(rig.file(ada, INBOX, &[1], ARCHIVE));
    assert!(rig.store.mailbox(ada, INBOX).unwrap().highest_modseq > inbox.highest_modseq);
    let archive = rig.store.mailbox(ada, ARCHIVE).unwrap();
    assert_eq!(rig.list_in(ada, ARCHIVE)[0].modseq, archive.highest_modseq);
}

#[test]
fn move_of_a_missing_message_or_to_no_mailbox_is_refused() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver(&[ada], b"one").unwrap();
    let nowhere = MailboxId(99);
    assert!(matches!(
        rig.file(ada, INBOX, &[7], ARCHIVE),
        Outcome::Refused(Refusal::NoSuchMessage)
    ));
    assert!(matches!(
        rig.file(ada, INBOX, &[1], nowhere),
        Outcome::Refused(Refusal::NoSuchMailbox)
    ));
    assert!(matches!(
        rig.file(ada, nowhere, &[1], INBOX),
        Outcome::Refused(Refusal::NoSuchMailbox)
    ));
    assert_eq!(rig.list(ada).len(), 1);
}

#[test]
fn concurrent_moves_of_a_message_move_it_once() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver(&[ada], b"one").unwrap();
    let (first, one) = rig.continuation();
    let (second, two) = rig.continuation();
    rig.store.file(ada, INBOX, &[UidRange::one(Uid(1))], ARCHIVE, one).unwrap();
    rig.store.file(ada, INBOX, &[UidRange::one(Uid(1))], TRASH, two).unwrap();
    filed(rig.outcome(first));
    assert!(matches!(rig.outcome(second), Outcome::Refused(Refusal::NoSuchMessage)));
    assert_eq!((rig.list_in(ada, ARCHIVE).len(), rig.list_in(ada, TRASH).len()), (1, 0));
}

#[test]
fn changes_requested_before_a_move_apply_after_it() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    for number in 1..=3 {
        rig.deliver(&[ada], &body(number, 50)).unwrap();
    }
    let requested: Vec<_> = (0..3).map(|_| rig.continuation()).collect();
    rig.store.mark(ada, INBOX, Uid(1), MarkChange::set(Flags::FLAGGED), requested[0].1).unwrap();
    rig.store.remove(ada, INBOX, &[UidRange::one(Uid(2))], requested[1].1).unwrap();
    let all = UidRange { first: Uid(1), last: Uid(3) };
    rig.store.file(ada, INBOX, &[all], ARCHIVE, requested[2].1).unwrap();
    assert_eq!(filed(rig.outcome(requested[2].0)).count, 3);
    for _ in 0..2 {
        let archive: Vec<(u32, Flags)> =
            rig.list_in(ada, ARCHIVE).iter().map(|one| (one.uid.0, one.flags)).collect();
        assert_eq!(archive, [(1, Flags::FLAGGED), (3, Flags::default())]);
        assert_eq!(rig.list(ada), []);
        rig = rig.cut(Cut::Prefix(0));
    }
}

/// A checkpoint that has passed the target mailbox, but not the source mailbox, must not lose the
/// message.
#[test]
fn move_during_a_checkpoint_loses_nothing() {
    let mut rig = Rig::new(64 * MIB);
    let ada = rig.create("ada@example.org");
    for number in 1..=800 {
        rig.deliver(&[ada], &body(number, 10)).unwrap();
    }
    let mut from = 1;
    while from <= 800 {
        let some: Vec<u32> = (from..=800).take(400).collect();
        from = filed(rig.file(ada, INBOX, &some, ARCHIVE)).last.0 + 1;
    }
    let mut number = 0;
    while !rig.store.is_walking() {
        let (_, continuation) = rig.continuation();
        rig.store
            .set_password(ada, &password(&format!("{number:0200}"), ""), continuation)
            .unwrap();
        number += 1;
        rig.turn(1);
    }
    let walked = rig.store.parts().superblock.sequence;
    let moved = filed(rig.file(ada, ARCHIVE, &[800], INBOX));
    assert!(rig.store.parts().superblock.sequence > walked, "the checkpoint did not end");
    let mut rig = rig.cut(Cut::Prefix(0));
    let inbox = rig.list(ada);
    assert_eq!(inbox.iter().map(|one| one.uid).collect::<Vec<_>>(), [moved.now.first]);
    assert_eq!(rig.read(ada, &inbox[0]), Ok(body(800, 10)));
    assert_eq!(rig.list_in(ada, ARCHIVE).len(), 799);
    // Compaction and a rebuild need the places of moved messages.
    assert_eq!(
        rig.store.parts().indexes.iter().map(|shard| shard.all_placed().count()).sum::<usize>(),
        800
    );
}

#[test]
fn only_an_empty_mailbox_is_removed() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    let bills = rig.create_mailbox(ada, "Bills").unwrap();
    rig.deliver(&[ada], b"one").unwrap();
    filed(rig.file(ada, INBOX, &[1], bills));
    assert_eq!(rig.delete_mailbox(ada, bills), Err(Refusal::NotEmpty));
    filed(rig.file(ada, bills, &[1], TRASH));
    assert_eq!(rig.delete_mailbox(ada, bills), Ok(()));
}

#[test]
fn large_move_takes_several_groups() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    for number in 1..=500 {
        rig.deliver(&[ada], &body(number, 8)).unwrap();
    }
    let (mut from, mut moves) = (1, 0);
    while from <= 500 {
        let uids: Vec<u32> = (from..=500).collect();
        let ranges: Vec<u32> = uids.into_iter().take(400).collect();
        let part = filed(rig.file(ada, INBOX, &ranges, ARCHIVE));
        assert_eq!(part.now.first.0, from, "the order has changed");
        (from, moves) = (part.last.0 + 1, moves + 1);
    }
    assert!(moves > 2);
    assert_eq!((rig.list(ada).len(), rig.list_in(ada, ARCHIVE).len()), (0, 500));
    for (message, number) in rig.list_in(ada, ARCHIVE).iter().zip(1..) {
        assert_eq!(rig.read_in(ada, ARCHIVE, message), Ok(body(number, 8)));
    }
}

/// Compaction may have begun to move a chunk before its message was moved to another mailbox.
#[test]
fn compaction_finds_a_chunk_of_a_moved_message() {
    let (account, guid) = (AccountId(7), 5);
    let mut index = Index::of_shard(ShardId(0));
    let mut apply = |record| index.apply(&record, &mut |_| {});
    apply(Record::Delivered {
        account,
        mailbox: 1,
        uid_validity: 1,
        entry: MessageEntry::new(1, 10, 30, 0, 1, guid),
        check: 0,
    });
    index.announce(guid, 0, core::iter::once(30));
    let mut apply = |record| index.apply(&record, &mut |_| {});
    let from = Place { mailbox: 1, uid: 1 };
    let entry = MessageEntry::new(9, 10, 30, 0, 2, guid);
    apply(Record::Filed { account, from, modseq: 2, to: 4, uid_validity: 1, entry });
    apply(Record::Moved {
        account,
        mailbox: 1,
        uid: 1,
        guid,
        index: 0,
        from: Page(30),
        to: Page(50),
    });
    let known = *index.mailbox(account, 4).unwrap().messages().find(9).unwrap();
    assert_eq!(index.chunk(&known, 0), Some((Page(50), 1)));
    assert_eq!(index.placed(guid).unwrap().pages, [50]);
}

/// The mailbox in the chunks of a moved message is out of date. Compaction must not treat the
/// message as dead.
#[test]
fn compaction_keeps_moved_messages() {
    let mut rig = Rig::new(2 * MIB);
    let ada = rig.create("ada@example.org");
    for number in 1..=40 {
        rig.deliver(&[ada], &body(number, 3000)).unwrap();
    }
    let kept: Vec<u32> = (1..=40).filter(|number| number % 4 == 0).collect();
    filed(rig.file(ada, INBOX, &kept, ARCHIVE));
    let pages = |rig: &Rig| {
        rig.store
            .parts()
            .indexes
            .iter()
            .flat_map(|one| one.all_placed())
            .map(|one| one.pages[0])
            .collect::<Vec<_>>()
    };
    let before = pages(&rig);
    let rest: Vec<u32> = (1..=40).filter(|number| number % 4 != 0).collect();
    rig.remove(ada, &rest).unwrap();
    let mut number = 100;
    while rig.deliver(&[ada], &body(number, 20_000)).is_ok() {
        number += 1;
    }
    assert!(pages(&rig) != before, "no compaction took place");
    let mut rig = rig.cut(Cut::Prefix(0));
    let archive = rig.list_in(ada, ARCHIVE);
    assert_eq!(archive.len(), kept.len());
    for (message, number) in archive.iter().zip(&kept) {
        assert_eq!(rig.read_in(ada, ARCHIVE, message), Ok(body(u64::from(*number), 3000)));
    }
    assert!(rig.fsck().is_clean());
}

#[test]
fn failed_write_refuses_pending_metadata_changes() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver(&[ada], b"one").unwrap();
    let (number, continuation) = rig.continuation();
    rig.store.file(ada, INBOX, &[UidRange::one(Uid(1))], ARCHIVE, continuation).unwrap();
    rig.store.fail(crate::WhyReadOnly::WriteFailed);
    assert!(matches!(rig.outcome(number), Outcome::Refused(Refusal::ReadOnly)));
    assert_eq!(rig.create_mailbox(ada, "Bills"), Err(Refusal::ReadOnly));
}

/// A checkpoint is made in one of the lives, and records the mailbox.
#[test]
fn newest_user_mailbox_survives_any_checkpoint() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    let (number, continuation) = rig.continuation();
    rig.store.create_mailbox(ada, "Own", NOW, continuation).unwrap();
    let Outcome::MailboxCreated(own) = rig.outcome(number) else { panic!("no mailbox") };
    for length in [900, 70_000] {
        rig.deliver(&[ada], &body(length, length as usize)).unwrap();
    }
    rig.file(ada, INBOX, &[1, 2], own);
    for life in 0..8 {
        rig = rig.cut(Cut::Prefix(0));
        for _ in 0..4 {
            rig.deliver(&[ada], &body(life, 3_000)).unwrap();
        }
        let list = rig.list_in(ada, own);
        assert_eq!(list.len(), 2, "life {life}");
        for message in &list {
            assert!(
                rig.read_in(ada, own, message)
                    == Ok(body(u64::from(message.octets), message.octets as usize))
            );
        }
    }
    assert!(rig.fsck().is_clean());
}
