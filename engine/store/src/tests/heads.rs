//! Messages with a head that was appended last.

use super::damage::without_journals;
use super::disk::Cut;
use super::rig::{MIB, NOW, Rig, body};
use crate::PartialMessage;
use crate::chunk::CHUNK_OCTETS;
use crate::outcome::Refusal;
use crate::types::{
    ARCHIVE, AccountId, Closing, Flags, HeadSize, INBOX, JUNK, MailboxId, Recipient, SENT,
};
use alloc::vec::Vec;

/// Octets of messages and of their heads. Heads end at, begin at, or cross the edge of a chunk.
const SHAPES: [(usize, usize); 13] = [
    (8, 8),
    (300, 0),
    (300, 104),
    (5000, HeadSize::OCTETS_MAX),
    (CHUNK_OCTETS, 800),
    (CHUNK_OCTETS + 1, 8),
    (CHUNK_OCTETS + 800, 800),
    (CHUNK_OCTETS + 792, 800),
    (CHUNK_OCTETS + 808, 800),
    (2 * CHUNK_OCTETS, HeadSize::OCTETS_MAX),
    (2 * CHUNK_OCTETS + 1, HeadSize::OCTETS_MAX),
    (2 * CHUNK_OCTETS, 0),
    (3 * CHUNK_OCTETS + 5000, 800),
];

/// The octets of a message in the order in which they are appended, and its closing.
fn message(number: usize) -> (Vec<u8>, Closing) {
    let (octets, head) = SHAPES[number];
    let mut octets = body(number as u64, octets);
    octets.rotate_left(head);
    (octets, Closing { head: HeadSize::of(head).unwrap(), ..NOW.into() })
}

fn deliver_all(rig: &mut Rig, to: &[AccountId]) {
    let recipients: Vec<Recipient> = to.iter().map(|account| Recipient::inbox(*account)).collect();
    for number in 0..SHAPES.len() {
        let (octets, closing) = message(number);
        rig.deliver_closed(&recipients, &octets, closing).unwrap();
    }
}

/// Checks that all messages are intact when read from any octet on.
fn check(rig: &mut Rig, account: AccountId, mailbox: MailboxId) {
    let list = rig.list_in(account, mailbox);
    assert_eq!(list.len(), SHAPES.len());
    for (number, info) in list.iter().enumerate() {
        let (octets, head) = SHAPES[number];
        let octets = body(number as u64, octets);
        assert!(rig.read_in(account, mailbox, info).unwrap() == octets, "message {number}");
        assert!(
            info.head == 0 || info.head as usize == head && octets.len() > CHUNK_OCTETS,
            "message {number}"
        );
        for offset in
            [1, 7, head.saturating_sub(1), head, head + 1, CHUNK_OCTETS - head, octets.len() - 1]
        {
            let Some(rest) = octets.get(offset..).filter(|rest| !rest.is_empty()) else { continue };
            let part = rig.read_from(account, mailbox, info, offset as u32).unwrap();
            assert!(
                !part.is_empty() && rest.starts_with(&part),
                "message {number} from {offset} on"
            );
        }
    }
    let report = rig.fsck();
    assert!(
        report
            .accounts
            .iter()
            .flat_map(|account| &account.mailboxes)
            .all(|known| known.damaged == 0),
        "{report}"
    );
}

#[test]
fn head_appended_last_is_always_read_first() {
    let mut rig = Rig::new(16 * MIB);
    let both = [rig.create("ada@example.org"), rig.create("bob@example.org")];
    deliver_all(&mut rig, &both);
    check(&mut rig, both[1], INBOX);
    let all: Vec<u32> = (1..=SHAPES.len() as u32).collect();
    rig.file(both[0], INBOX, &all, ARCHIVE);
    check(&mut rig, both[0], ARCHIVE);
    rig = rig.cut(Cut::Prefix(usize::MAX));
    check(&mut rig, both[0], ARCHIVE);
    check(&mut rig, both[1], INBOX);
    // Each shard's journal begins anew with a checkpoint.
    both.iter().for_each(|account| rig.store.parts_mut().journals.needs_mending(account.shard()));
    rig.deliver(&both, b"and goes").unwrap();
    for (account, uid) in [(both[0], SHAPES.len() as u32 + 1), (both[1], SHAPES.len() as u32 + 1)] {
        rig.remove(account, &[uid]).unwrap();
    }
    rig = rig.cut(Cut::Prefix(usize::MAX));
    check(&mut rig, both[0], ARCHIVE);
    check(&mut rig, both[1], INBOX);
    // Rebuilt messages are in the mailbox that they were delivered to.
    rig.disk.cut(Cut::Prefix(usize::MAX));
    let mut rig = Rig::on(without_journals(&rig.disk));
    for (account, address) in both.iter().zip(["ada@example.org", "bob@example.org"]) {
        assert_eq!(rig.create(address), *account);
        let gone = rig.list(*account).last().unwrap().uid;
        rig.remove(*account, &[gone.0]).unwrap();
        check(&mut rig, *account, INBOX);
    }
}

#[test]
fn compaction_keeps_a_head_unchanged() {
    let mut rig = Rig::new(2 * MIB);
    let (ada, bob) = (rig.create("ada@example.org"), rig.create("bob@example.org"));
    let mut gone = Vec::new();
    for number in 0..SHAPES.len() {
        let (octets, closing) = message(number);
        rig.deliver_closed(&[Recipient::inbox(ada)], &octets, closing).unwrap();
        rig.deliver(&[ada], &body(1000 + number as u64, 20_000)).unwrap();
        gone.push(2 * number as u32 + 2);
    }
    let places = |rig: &Rig| -> Vec<u32> {
        let index = rig.store.parts().indexes.of(ada.shard());
        let entries: Vec<_> =
            index.mailbox(ada, INBOX.0).unwrap().messages().iter().copied().collect();
        let entries = entries.iter().filter(|entry| entry.uid % 2 == 1);
        entries.flat_map(|entry| index.chunks(entry).map(|(page, _)| page.0)).collect()
    };
    let before = places(&rig);
    rig.remove(ada, &gone).unwrap();
    for number in 0.. {
        if rig.deliver(&[bob], &body(2000 + number, 20_000)).is_err() {
            break;
        }
    }
    (0..200).for_each(|_| rig.settle());
    let after = places(&rig);
    let moved = before.iter().zip(&after).filter(|(before, after)| before != after).count();
    assert!(moved > 5 && before.len() == after.len(), "{moved} were moved");
    check(&mut rig, ada, INBOX);
}

#[test]
fn message_may_be_redirected_to_another_mailbox_at_commit() {
    for octets in [300, CHUNK_OCTETS + 300] {
        let mut rig = Rig::new(16 * MIB);
        let mut both =
            [rig.create("ada@example.org"), rig.create("bob@example.org")].map(Recipient::inbox);
        // In the other mailbox the message is new mail, whatever flags were requested.
        (both[1].flags, both[1].keywords) = (Flags::SEEN.with(Flags::LEAVING), 7);
        let to = |mailbox| Closing {
            mailbox: Some(mailbox),
            head: HeadSize::of(104).unwrap(),
            ..NOW.into()
        };
        let mut appended = body(1, octets);
        appended.rotate_left(104);
        rig.deliver_closed(&both, &appended, to(JUNK)).unwrap();
        // If that mailbox does not exist, the message goes to the original mailbox.
        rig.deliver_closed(&both, &appended, to(MailboxId(99))).unwrap();
        rig.deliver_closed(&[Recipient { mailbox: SENT, ..both[0] }], &appended, NOW.into())
            .unwrap();
        rig = rig.cut(Cut::Prefix(usize::MAX));
        for (recipient, sent) in both.into_iter().zip([1, 0]) {
            for (mailbox, count) in [(JUNK, 1), (INBOX, 1), (SENT, sent)] {
                assert_eq!(rig.list_in(recipient.account, mailbox).len(), count);
            }
            let info = rig.list_in(recipient.account, JUNK)[0];
            assert_eq!((info.flags, info.keywords), (Flags::default(), 0));
            assert!(rig.read_in(recipient.account, JUNK, &info).unwrap() == body(1, octets));
        }
        rig.disk.cut(Cut::Prefix(usize::MAX));
        let mut rig = Rig::on(without_journals(&rig.disk));
        assert_eq!(rig.create("bob@example.org"), both[1].account);
        assert_eq!(
            (rig.list(both[1].account).len(), rig.list_in(both[1].account, JUNK).len()),
            (1, 1)
        );
    }
}

#[test]
fn head_length_is_a_multiple_of_8_and_within_the_message() {
    assert_eq!((HeadSize::of(7), HeadSize::of(HeadSize::OCTETS_MAX + 8)), (None, None));
    let mut rig = Rig::new(16 * MIB);
    let ada = Recipient::inbox(rig.create("ada@example.org"));
    let closing = Closing { head: HeadSize::of(16).unwrap(), ..NOW.into() };
    assert_eq!(rig.deliver_closed(&[ada], &[b'x'; 15], closing), Err(Refusal::PastEnd));
    rig.deliver_closed(&[ada], &[b'x'; 16], closing).unwrap();
    assert_eq!(rig.list(ada.account).len(), 1);
}

/// Octets from `from` on, gathered part by part, and the number of parts.
fn gathered(rig: &mut Rig, account: AccountId, from: u32) -> (PartialMessage, usize) {
    let info = *rig.list(account).last().unwrap();
    let (mut beginning, mut parts) = (PartialMessage::from(from), 0);
    while !beginning.is_all_of(info.octets) {
        let part = rig.read_from(account, INBOX, &info, beginning.next()).unwrap();
        assert!(!part.is_empty(), "a read returned nothing");
        beginning.arrived(&part);
        parts += 1;
    }
    (beginning, parts)
}

#[test]
fn beginning_is_gathered_across_every_chunk_edge() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    let mut heads_in_two_parts = 0;
    for head in (0..=HeadSize::OCTETS_MAX).step_by(HeadSize::UNIT) {
        let around =
            [-1, 0, 1, head as isize / 2, head as isize - 1, head as isize, head as isize + 1];
        for octets in around.map(|octets| CHUNK_OCTETS.saturating_add_signed(octets)) {
            let whole = body(octets as u64, octets);
            let mut appended = whole.clone();
            appended.rotate_left(head);
            let closing = Closing { head: HeadSize::of(head).unwrap(), ..NOW.into() };
            rig.deliver_closed(&[Recipient::inbox(ada)], &appended, closing).unwrap();
            let (all, parts) = gathered(&mut rig, ada, 0);
            assert!(all.octets() == whole, "{octets} octets, of which {head} are the head");
            heads_in_two_parts += usize::from(parts > 2);
            let (below, _) = gathered(&mut rig, ada, head as u32);
            assert!(below.octets() == &whole[head..], "below {head} octets of {octets}");
            let uid = rig.list(ada).last().unwrap().uid;
            rig.remove(ada, &[uid.0]).unwrap();
        }
    }
    assert!(
        heads_in_two_parts >= HeadSize::OCTETS_MAX / HeadSize::UNIT,
        "{heads_in_two_parts} heads lie across an edge"
    );
}
