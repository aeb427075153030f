//! Summaries: the facts about a message that are known without reading it.

use super::disk::Cut;
use super::rig::{MIB, NOW, Rig, body, limits};
use crate::account::NewAccount;
use crate::chunk::{CHUNK_OCTETS, SHORT_HEADERS_MAX, SUMMARY_BYTES, Summarizer};
use crate::layout::Page;
use crate::outcome::{Outcome, Refusal};
use crate::types::{ARCHIVE, AccountId, INBOX, Limits, MailboxId, Recipient, Uid};
use alloc::vec::Vec;

/// Summarizes a message by the number of its octets and the first octets. Messages with the same
/// first octet are a conversation.
fn summarize(octets: &[u8], out: &mut [u8; SUMMARY_BYTES]) -> (usize, u64) {
    let seen = (octets.len() as u32).to_le_bytes();
    let all = seen.iter().chain(octets);
    let written = out.iter_mut().zip(all).map(|(place, byte)| *place = *byte).count();
    (written, octets.first().map_or(0, |first| 1000 + u64::from(*first)))
}

/// A long header begins with the octets `HH` and ends at the first line end.
fn shorten_header(octets: &[u8]) -> Option<Vec<u8>> {
    let goes_on = octets.starts_with(b"HH") && !octets.contains(&b'\n');
    goes_on.then(|| octets.iter().take(2).copied().chain([octets.len() as u8]).collect())
}

const SUMMARIZER: Summarizer = Summarizer { summarize, shorten_header };

fn summary_of(octets: &[u8]) -> Vec<u8> {
    let mut out = [0; SUMMARY_BYTES];
    let (length, _) = summarize(&octets[..octets.len().min(CHUNK_OCTETS)], &mut out);
    out[..length].to_vec()
}

impl Rig {
    fn summary(
        &mut self,
        account: AccountId,
        mailbox: MailboxId,
        uid: Uid,
    ) -> Result<Vec<u8>, Refusal> {
        let (number, continuation) = self.continuation();
        self.at(account).read_summary(account, mailbox, uid, continuation)?;
        match self.outcome(number) {
            Outcome::Body(part) => {
                let bytes = part.bytes().to_vec();
                self.at(account).give_back(part);
                Ok(bytes)
            }
            Outcome::Refused(refusal) => Err(refusal),
            other => panic!("{other:?}"),
        }
    }
}

/// A store with messages of all sizes in one inbox, and their bodies.
fn filled() -> (Rig, AccountId, Vec<Vec<u8>>) {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    rig.store.summarize_with(SUMMARIZER);
    let sizes = [0, 8, 300, 5000, CHUNK_OCTETS, CHUNK_OCTETS + 1, 3 * CHUNK_OCTETS];
    let bodies: Vec<Vec<u8>> =
        sizes.iter().zip(1..).map(|(size, number)| body(number % 3, *size)).collect();
    for body in &bodies {
        rig.deliver(&[ada], body).unwrap();
    }
    (rig, ada, bodies)
}

#[test]
fn summary_of_the_first_chunk_is_read_back_unchanged() {
    let (mut rig, ada, bodies) = filled();
    for _ in 0..2 {
        for (body, uid) in bodies.iter().zip(1..) {
            assert_eq!(rig.summary(ada, INBOX, Uid(uid)), Ok(summary_of(body)));
        }
        rig = rig.cut(Cut::Prefix(0));
    }
    assert_eq!(rig.summary(ada, INBOX, Uid(99)), Err(Refusal::NoSuchMessage));
}

#[test]
fn every_recipient_gets_the_summary() {
    let mut rig = Rig::new(16 * MIB);
    let both = [rig.create("ada@example.org"), rig.create("bob@example.org")];
    rig.store.summarize_with(SUMMARIZER);
    let octets = body(1, 2 * CHUNK_OCTETS);
    rig.deliver(&both, &octets).unwrap();
    for account in both {
        assert_eq!(rig.summary(account, INBOX, Uid(1)), Ok(summary_of(&octets)));
        assert_eq!(rig.list(account)[0].conversation, 1001);
    }
}

#[test]
fn summary_of_a_long_header_has_the_octets_after_it() {
    let mut rig = Rig::new(16 * MIB);
    let both = [rig.create("ada@example.org"), rig.create("bob@example.org")];
    rig.store.summarize_with(SUMMARIZER);
    let chunk = CHUNK_OCTETS;
    let whole = [b"HH", &*alloc::vec![b'h'; 3 * chunk]].concat();
    for (uid, (end, length)) in [
        (chunk / 2, chunk),
        (chunk + 1, 2 * chunk),
        (2 * chunk + 9, 2 * chunk + 20),
        (2 * chunk, 2 * chunk + 1),
        (3 * chunk, 3 * chunk),
    ]
    .into_iter()
    .enumerate()
    {
        let mut octets = whole[..length].to_vec();
        if let Some(octet) = octets.get_mut(end) {
            *octet = b'\n';
        }
        rig.deliver(&both, &octets).unwrap();
        // The shortened header has three octets, and the chunk with the header's end follows.
        let last = (end / chunk).min(length.div_ceil(chunk) - 1);
        let beginning = if last == 0 { chunk } else { 3 + chunk.min(length - last * chunk) };
        let uid = Uid(uid as u32 + 1);
        for account in both {
            let summary = rig.summary(account, INBOX, uid).unwrap();
            assert_eq!(summary[..4], (beginning as u32).to_le_bytes(), "{end} of {length}");
            assert_eq!(&summary[4..6], b"HH");
            let message = rig.store.message(account, INBOX, uid).unwrap();
            assert_eq!(message.conversation, 1000 + u64::from(b'H'));
        }
        rig = rig.cut(Cut::Prefix(0));
        rig.store.summarize_with(SUMMARIZER);
    }
}

#[test]
fn the_first_chunk_counts_beyond_sixteen_long_headers() {
    let buffer_bytes = 2 * limits().buffer_bytes;
    let mut rig = Rig::with_limits(16 * MIB, Limits { buffer_bytes, ..limits() });
    let ada = rig.create("ada@example.org");
    rig.store.summarize_with(SUMMARIZER);
    let octets = [b"HH", &*alloc::vec![b'h'; CHUNK_OCTETS]].concat();
    let of_whole_header = 3 + (octets.len() - CHUNK_OCTETS) as u32;
    let mut uid = 0;
    // The second time, the headers of the first time are no longer kept.
    for _ in 0..2 {
        let all: Vec<_> = (0..=SHORT_HEADERS_MAX)
            .map(|_| {
                let delivery = rig.store.begin(&[Recipient::inbox(ada)]).unwrap();
                rig.append(delivery, &octets).unwrap();
                delivery
            })
            .collect();
        for (delivery, number) in all.into_iter().zip(1..) {
            let (committed, continuation) = rig.continuation();
            rig.store.commit(delivery, NOW, continuation).unwrap();
            assert!(matches!(rig.outcome(committed), Outcome::Delivered));
            uid += 1;
            let summary = rig.summary(ada, INBOX, Uid(uid)).unwrap();
            let expected =
                if number > SHORT_HEADERS_MAX { CHUNK_OCTETS as u32 } else { of_whole_header };
            assert_eq!(summary[..4], expected.to_le_bytes(), "message {number}");
        }
    }
}

#[test]
fn summary_of_a_long_message_is_read_as_one_page() {
    let (mut rig, ada, bodies) = filled();
    let before = rig.disk.sectors_read;
    rig.summary(ada, INBOX, Uid(bodies.len() as u32)).unwrap();
    assert_eq!(rig.disk.sectors_read - before, 8);
}

#[test]
fn summary_survives_body_damage_and_own_damage_is_detected() {
    let (mut rig, ada, bodies) = filled();
    rig.disk.cut(Cut::Prefix(usize::MAX));
    let page = rig
        .store
        .parts()
        .indexes
        .iter()
        .find_map(|index| index.mailbox(ada, INBOX.0)?.messages().find(4))
        .unwrap()
        .page;
    let mut rig = rig.cut(Cut::Prefix(usize::MAX));
    rig.disk.rot_at(Page(page).sector().0 + 1, 7);
    assert_eq!(rig.summary(ada, INBOX, Uid(4)), Ok(summary_of(&bodies[3])));
    let message = rig.list(ada)[3];
    assert_eq!(rig.read(ada, &message), Err(Refusal::Damaged));
    rig.disk.rot_at(Page(page).sector().0, 120);
    assert_eq!(rig.summary(ada, INBOX, Uid(4)), Err(Refusal::Damaged));
}

#[test]
fn conversation_number_survives_moves() {
    let (mut rig, ada, bodies) = filled();
    rig.file(ada, INBOX, &[3, 6], ARCHIVE);
    let conversation = |octets: &Vec<u8>| 1000 + u64::from(octets[0]);
    for _ in 0..2 {
        let inbox = rig.list(ada);
        for message in inbox.iter().skip(1) {
            assert_eq!(message.conversation, conversation(&bodies[message.uid.0 as usize - 1]));
        }
        let archive: Vec<u64> =
            rig.list_in(ada, ARCHIVE).iter().map(|one| one.conversation).collect();
        assert_eq!(archive, [conversation(&bodies[2]), conversation(&bodies[5])]);
        // An empty message is a conversation by itself.
        assert_eq!(u128::from(inbox[0].conversation), inbox[0].guid.0 & u128::from(u64::MAX));
        rig = rig.cut(Cut::Prefix(0));
    }
}

#[test]
fn rebuild_and_compaction_keep_summaries_and_conversations() {
    let mut rig = Rig::new(2 * MIB);
    let ada = rig.create("ada@example.org");
    rig.store.summarize_with(SUMMARIZER);
    let kept: Vec<Vec<u8>> = (1..=10).map(|number| body(number, 3000)).collect();
    for octets in &kept {
        rig.deliver(&[ada], octets).unwrap();
        (0..3).for_each(|_| rig.deliver(&[ada], &body(99, 3000)).unwrap());
    }
    let pages = |rig: &Rig| {
        let entries = rig.store.parts().indexes.iter().filter_map(|one| one.mailbox(ada, INBOX.0));
        entries
            .flat_map(|mailbox| mailbox.messages().iter())
            .map(|entry| entry.page)
            .collect::<Vec<_>>()
    };
    let before = pages(&rig);
    let others: Vec<u32> = (1..=40).filter(|uid| uid % 4 != 1).collect();
    rig.remove(ada, &others).unwrap();
    while rig.deliver(&[ada], &body(77, 20_000)).is_ok() {}
    assert!(!before.starts_with(&pages(&rig)[..1]), "no compaction took place");
    let filling: Vec<u32> =
        rig.list(ada).iter().map(|one| one.uid.0).filter(|uid| *uid > 40).collect();
    rig.remove(ada, &filling).unwrap();
    let mut rig = rig.cut(Cut::Prefix(usize::MAX));
    rig.disk.cut(Cut::Prefix(usize::MAX));
    let mut rig = Rig::on(super::damage::without_journals(&rig.disk));
    let (_, continuation) = rig.continuation();
    let new = NewAccount {
        address: "ada@example.org",
        aliases: &[],
        password_hash: "secret",
        verifier: "",
    };
    rig.store.create_account(&new, super::rig::NOW, continuation).unwrap();
    rig.settle();
    for (octets, number) in kept.iter().zip(0..) {
        let uid = Uid(number * 4 + 1);
        assert_eq!(rig.summary(ada, INBOX, uid), Ok(summary_of(octets)));
        assert_eq!(
            rig.store.message(ada, INBOX, uid).unwrap().conversation,
            1000 + u64::from(octets[0])
        );
    }
}
