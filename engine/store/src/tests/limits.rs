//! Exhausted numbers, and pages that no body can have. No number is assigned twice, every walk
//! ends, and no unreadable message is restored.

use super::disk::Cut;
use super::rig::{MIB, NOW, Rig, body};
use crate::chunk::{self, CHUNK_OCTETS, ChunkHeader, HEADER_BYTES, LastChunkFields};
use crate::finding::Damage;
use crate::layout::{PAGE_BYTES, SegmentIndex};
use crate::mailbox::RECIPIENTS_UNDER_WAY_MAX;
use crate::outcome::{Outcome, Refusal};
use crate::record;
use crate::types::{AccountId, Filed, HeadSize, INBOX, MailboxId, Recipient, SENT, Uid};
use alloc::string::ToString;
use alloc::vec::Vec;
use machine::SECTOR_BYTES;

/// A mailbox with this UIDNEXT accepts no new message.
const UID_END: u32 = u32::MAX - RECIPIENTS_UNDER_WAY_MAX as u32;

/// A store with messages in the inbox, and with `uid_next` as the UIDNEXT of `mailbox`.
fn with_uid_next(mailbox: MailboxId, uid_next: u32, messages: u64) -> (Rig, AccountId) {
    let mut rig = Rig::new(2 * MIB);
    let ada = rig.create("ada@example.org");
    let gathered = rig.store.parts_mut().journals.gather(ada.shard());
    record::put_mailbox(gathered, ada, mailbox.0, 1, (uid_next, 0), "Name");
    (1..=messages).for_each(|number| rig.deliver(&[ada], &body(number, 300)).unwrap());
    (rig, ada)
}

fn uids(rig: &Rig, account: AccountId, mailbox: MailboxId) -> Vec<u32> {
    rig.list_in(account, mailbox).iter().map(|message| message.uid.0).collect()
}

#[test]
fn move_without_free_uids_is_refused_before_any_record() {
    for uid_next in [UID_END, UID_END + 1, u32::MAX - 1, u32::MAX] {
        let (mut rig, ada) = with_uid_next(SENT, uid_next, 3);
        let outcome = rig.file(ada, INBOX, &[1, 2], SENT);
        assert!(matches!(outcome, Outcome::Refused(Refusal::TooMany)), "{outcome:?}");
        // The next group contains no part of the move.
        rig.deliver(&[ada], &body(4, 300)).unwrap();
        for _ in 0..2 {
            assert_eq!(
                (uids(&rig, ada, INBOX), uids(&rig, ada, SENT)),
                (alloc::vec![1, 2, 3, 4], Vec::new())
            );
            rig = rig.cut(Cut::Prefix(0));
        }
    }
}

#[test]
fn move_stops_when_the_uids_are_used_up() {
    let (mut rig, ada) = with_uid_next(SENT, UID_END - 2, 4);
    let outcome = rig.file(ada, INBOX, &[1, 2, 3, 4], SENT);
    assert!(matches!(outcome, Outcome::Filed(Filed { last: Uid(2), count: 2, .. })), "{outcome:?}");
    assert!(matches!(rig.file(ada, INBOX, &[3], SENT), Outcome::Refused(Refusal::TooMany)));
    let rig = rig.cut(Cut::Prefix(0));
    assert_eq!(uids(&rig, ada, INBOX), [3, 4]);
    assert_eq!(uids(&rig, ada, SENT), [UID_END - 2, UID_END - 1]);
}

/// A message on the disk has the highest possible UID.
#[test]
fn message_with_the_highest_uid_moves_once_if_listed_twice() {
    let mut rig = Rig::new(2 * MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver(&[ada], &body(1, 300)).unwrap();
    let known = *rig
        .store
        .parts()
        .indexes
        .of(ada.shard())
        .mailbox(ada, INBOX.0)
        .unwrap()
        .messages()
        .find(1)
        .unwrap();
    let gathered = rig.store.parts_mut().journals.gather(ada.shard());
    let moved = known.filed(u32::MAX, 9);
    record::put_filed(
        gathered,
        ada,
        (crate::types::Place { mailbox: 1, uid: 1 }, 9),
        (INBOX.0, 1),
        &moved,
    );
    rig.settle();
    assert_eq!(uids(&rig, ada, INBOX), [u32::MAX]);
    assert_eq!(rig.deliver(&[ada], &body(2, 300)), Err(Refusal::TooMany));
    let outcome = rig.file(ada, INBOX, &[u32::MAX, u32::MAX], SENT);
    assert!(matches!(outcome, Outcome::Filed(Filed { count: 1, .. })), "{outcome:?}");
    let rig = rig.cut(Cut::Prefix(0));
    assert_eq!((uids(&rig, ada, INBOX), uids(&rig, ada, SENT)), (Vec::new(), alloc::vec![1]));
}

/// A rebuild finds a removed message with a UID that another message has.
#[test]
fn a_rebuild_counts_the_messages_without_a_free_uid() {
    let mut rig = Rig::new(2 * MIB);
    let ada = rig.create("ada@example.org");
    (1..=3).for_each(|number| rig.deliver(&[ada], &body(number, 300)).unwrap());
    rig.remove(ada, &[1]).unwrap();
    for (uid, new, modseq) in [(2, 1, 20), (3, u32::MAX, 21)] {
        let index = rig.store.parts().indexes.of(ada.shard());
        let known = *index.mailbox(ada, INBOX.0).unwrap().messages().find(uid).unwrap();
        let gathered = rig.store.parts_mut().journals.gather(ada.shard());
        let from = (crate::types::Place { mailbox: INBOX.0, uid }, modseq);
        record::put_filed(gathered, ada, from, (INBOX.0, 1), &known.filed(new, modseq));
        rig.settle();
    }
    assert_eq!(uids(&rig, ada, INBOX), [1, u32::MAX]);
    let journal = rig.store.parts().journals.of(ada.shard()).unwrap();
    let end = rig.store.parts().segments.geometry().place_page(journal.segment(), journal.place());
    rig.disk.cut(Cut::Prefix(usize::MAX));
    rig.disk.unreadable.extend([end.sector().0, end.plus(1).sector().0]);
    let mut rig = Rig::opening(rig.disk);
    rig.until_serving();
    let findings = rig.store.findings();
    let texts: Vec<_> = findings.iter().map(|one| one.named(&rig.store).to_string()).collect();
    assert!(findings.iter().any(|one| one.damage == Damage::NoUid(1)), "{texts:?}");
    assert!(texts.iter().any(|one| one.contains("no UID left")), "{texts:?}");
    assert!(!texts.iter().any(|one| one.contains("the disk is full")), "{texts:?}");
    assert!([1, u32::MAX].iter().all(|uid| uids(&rig, ada, INBOX).contains(uid)));
}

#[test]
fn no_uid_is_reused_when_the_last_ones_are_given_out() {
    let (mut rig, ada) = with_uid_next(INBOX, UID_END - 1, 0);
    rig.settle();
    // Four deliveries have begun before the last UID is assigned.
    let begun: Vec<_> = (1..=4)
        .map(|number| (number, rig.store.begin(&[Recipient::inbox(ada); 2]).unwrap()))
        .collect();
    for (number, delivery) in begun {
        rig.append(delivery, &body(number, 300)).unwrap();
        let (number, continuation) = rig.continuation();
        rig.store.commit(delivery, NOW, continuation).unwrap();
        assert!(matches!(rig.outcome(number), Outcome::Delivered));
    }
    let expected: Vec<u32> = (UID_END - 1..UID_END + 7).collect();
    for _ in 0..2 {
        assert_eq!(uids(&rig, ada, INBOX), expected);
        assert_eq!(rig.deliver(&[ada], &body(5, 300)), Err(Refusal::TooMany));
        rig = rig.cut(Cut::Prefix(0));
    }
}

/// Mailboxes that the user created take no delivery, whatever UIDs they have.
#[test]
fn full_mailbox_takes_no_delivery() {
    let own = MailboxId(20);
    for (mailbox, expected) in [(SENT, Refusal::TooMany), (own, Refusal::NoSuchMailbox)] {
        let (mut rig, ada) = with_uid_next(mailbox, UID_END, 1);
        let recipient = Recipient { mailbox, ..Recipient::inbox(ada) };
        assert_eq!(rig.deliver_to(&[recipient], &body(2, 300)), Err(expected));
    }
}

#[test]
fn checkpoint_of_the_last_mailbox_number_ends() {
    let mut rig = Rig::new(2 * MIB);
    let ada = rig.create("ada@example.org");
    let gathered = rig.store.parts_mut().journals.gather(ada.shard());
    record::put_mailbox(gathered, ada, u32::MAX, 1, (1, 0), "Last");
    rig.deliver(&[ada], &body(1, 300)).unwrap();
    rig.store.parts_mut().journals.needs_mending(ada.shard());
    rig.deliver(&[ada], &body(2, 300)).unwrap();
    (0..1000).for_each(|_| rig.turn(usize::MAX));
    assert!(!rig.store.is_walking(), "the checkpoint does not end");
    let (number, continuation) = rig.continuation();
    rig.store.create_mailbox(ada, "One more", NOW, continuation).unwrap();
    let outcome = rig.outcome(number);
    assert!(matches!(outcome, Outcome::Refused(Refusal::TooMany)), "{outcome:?}");
    let rig = rig.cut(Cut::Prefix(0));
    let account = rig.store.account(ada).unwrap();
    assert_eq!(account.mailboxes().last(), Some((MailboxId(u32::MAX), "Last")));
    assert_eq!(uids(&rig, ada, INBOX), [1, 2]);
}

/// The first chunk of a message with two chunks is always eight pages long. Here a chunk in the
/// last page of a segment claims to be a first chunk.
#[test]
fn rebuild_does_not_restore_a_message_at_an_impossible_place() {
    let mut rig = Rig::new(2 * MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver(&[ada], &body(1, 300)).unwrap();
    let parts = rig.store.parts();
    let (geometry, key) = (parts.segments.geometry(), parts.superblock.key.clone());
    let journal = parts.journals.of(ada.shard()).unwrap();
    let end = geometry.place_page(journal.segment(), journal.place());
    let guid = parts.indexes.of(ada.shard()).guid_next() + 9;
    rig.disk.cut(Cut::Prefix(usize::MAX));
    let free = geometry.first_page(SegmentIndex(geometry.segments() - 1));
    let octets = CHUNK_OCTETS as u32 + 300;
    let last = LastChunkFields { uid: 7, octets, modseq: 9, date: 0, head: HeadSize::NONE };
    let misplaced = free.plus(geometry.segment_pages - 1);
    for (page, index, last) in [(misplaced, 0, None), (free, 1, Some(last))] {
        let header = ChunkHeader {
            account: ada,
            guid,
            index,
            length: 300,
            mailbox: 1,
            uid_validity: 1,
            conversation: 1,
            last,
        };
        let mut buffer = alloc::vec![7; PAGE_BYTES];
        assert!(HEADER_BYTES + 300 <= buffer.len());
        chunk::emit(&mut buffer, &key, page, &header, &[]);
        for (sector, bytes) in (page.sector().0..).zip(buffer.chunks(SECTOR_BYTES)) {
            rig.disk.poke(sector, bytes.try_into().unwrap());
        }
    }
    rig.disk.unreadable.extend([end.sector().0, end.plus(1).sector().0]);
    let rig = Rig::on(rig.disk);
    let findings: Vec<_> =
        rig.store.findings().iter().map(|finding| finding.damage.clone()).collect();
    assert!(findings.contains(&Damage::Misplaced(ada, Uid(7))), "{findings:?}");
    assert!(findings.contains(&Damage::Rebuilt(0)), "{findings:?}");
    assert_eq!(uids(&rig, ada, INBOX), [1]);
}
