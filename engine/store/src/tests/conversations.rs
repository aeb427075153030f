//! The messages of a conversation are found in all mailboxes.

use super::disk::Cut;
use super::rig::{MIB, Rig};
use crate::chunk::{CHUNK_OCTETS, SUMMARY_BYTES, Summarizer};
use crate::conversations::{CONVERSED_BYTES, Conversations};
use crate::messages::MessageEntry;
use crate::types::{ARCHIVE, AccountId, INBOX, MailboxId, SENT, Uid};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use chance::Dice;

const MAILBOXES: [MailboxId; 3] = [INBOX, SENT, ARCHIVE];

/// Two threads.
const ONE: u64 = 1 << 48 | 1 << 16;
const OTHER: u64 = ONE + (1 << 16);
/// The conversations: messages without a thread, and answers and first messages of threads.
const NUMBERS: [u64; 8] = [7000, 7001, ONE, ONE | 5, ONE | 0xffff, OTHER, OTHER | 1, OTHER | 2];

/// The first octet determines the conversation of a message.
fn summarize(octets: &[u8], _: &mut [u8; SUMMARY_BYTES]) -> (usize, u64) {
    (0, octets.first().map_or(0, |first| NUMBERS[usize::from(*first)]))
}

const SUMMARIZER: Summarizer = Summarizer { summarize, ..Summarizer::NONE };

/// All messages of an account, collected from its mailboxes, by the number of the conversation.
fn by_looking_at_all(rig: &Rig, account: AccountId) -> BTreeMap<u64, Vec<(MailboxId, Uid)>> {
    let mut all: BTreeMap<u64, Vec<(MailboxId, Uid)>> = BTreeMap::new();
    for mailbox in MAILBOXES {
        for message in rig.list_in(account, mailbox) {
            all.entry(message.conversation).or_default().push((mailbox, message.uid));
        }
    }
    all
}

/// The number of the first messages that the answers with this number belong to. Any other number
/// is returned unchanged.
fn first_messages(number: u64, all: &BTreeMap<u64, Vec<(MailboxId, Uid)>>) -> u64 {
    let is_answer = number >> 48 > 0 && number & 0xffff == 0;
    let lowest = is_answer.then(|| all.range(number + 1..=number | 0xffff).next()).flatten();
    lowest.map_or(number, |(lowest, _)| *lowest)
}

fn check(rig: &Rig, account: AccountId) {
    let all = by_looking_at_all(rig, account);
    for conversation in NUMBERS.into_iter().chain([7005, OTHER | 7]).chain(all.keys().copied()) {
        let is_of =
            |number: u64| first_messages(number, &all) == first_messages(conversation, &all);
        let of_it = all.iter().filter(|(number, _)| is_of(**number));
        let mut expected: Vec<(MailboxId, Uid)> =
            of_it.flat_map(|(_, places)| places.iter().copied()).collect();
        expected.sort();
        let found: Vec<(MailboxId, Uid)> = rig.store.conversation(account, conversation).collect();
        assert_eq!(found, expected, "conversation {conversation:x}");
        for mailbox in MAILBOXES {
            let found =
                rig.store.conversation_in(account, mailbox, conversation).map(|uid| (mailbox, uid));
            let expected = expected.iter().copied().filter(|(of, _)| *of == mailbox);
            assert!(found.eq(expected.clone()), "conversation {conversation:x} in {mailbox:?}");
            let found = rig.store.conversation_in(account, mailbox, conversation).rev();
            assert!(found.eq(expected.rev().map(|(_, uid)| uid)), "backwards {conversation:x}");
        }
    }
}

#[test]
fn conversation_lookup_finds_all_its_messages_and_no_others() {
    let mut rig = Rig::new(16 * MIB);
    let (ada, bob) = (rig.create("ada@example.org"), rig.create("bob@example.org"));
    let mut dice = Dice::new(1);
    for number in 0..400 {
        rig.store.summarize_with(SUMMARIZER);
        let mailbox = MAILBOXES[dice.below(3) as usize];
        let uids: Vec<u32> =
            rig.list_in(ada, mailbox).iter().map(|message| message.uid.0).collect();
        let some: Vec<u32> = uids.into_iter().filter(|_| dice.one_in(8)).collect();
        match dice.below(8) {
            0 if !some.is_empty() => rig.remove_in(ada, mailbox, &some).unwrap(),
            1 if !some.is_empty() => {
                rig.file(ada, mailbox, &some, MAILBOXES[dice.below(3) as usize]);
            }
            2 if dice.one_in(4) => rig = rig.cut(Cut::Dice),
            3 => rig
                .deliver(&[ada, bob], &alloc::vec![dice.below(8) as u8; 2 * CHUNK_OCTETS])
                .unwrap(),
            _ => rig.deliver(&[ada], &alloc::vec![dice.below(8) as u8; 40]).unwrap(),
        }
        if number % 5 == 0 {
            check(&rig, ada);
        }
    }
    assert!(by_looking_at_all(&rig, ada).len() == NUMBERS.len() && rig.list(bob).len() > 5);
    check(&rig, bob);
}

#[test]
fn conversation_index_memory_per_message_is_bounded() {
    let entry = |number: u32, conversation| {
        MessageEntry::new(number, 1, 1, 1, 1, 1).in_conversation(conversation)
    };
    for scatter in [1, 0x9e37_79b9_7f4a_7c15] {
        let mut set = Conversations::default();
        let held = |set: &mut Conversations, act: &dyn Fn(&mut Conversations)| {
            allocation_counter::measure(|| act(set)).bytes_current
        };
        let number = |uid: u32| u64::from(uid).wrapping_mul(scatter);
        let full = held(&mut set, &|set| {
            (1..=60_000).for_each(|uid| set.insert(1, &entry(uid, number(uid))))
        });
        assert!(full <= 60_000 * CONVERSED_BYTES as i64, "{full}");
        // Four of five entries are removed, so the nodes are as empty as they can be.
        let gone = held(&mut set, &|set| {
            (1..=60_000)
                .filter(|uid| uid % 5 > 0)
                .for_each(|uid| set.remove(1, &entry(uid, number(uid))));
        });
        assert!(full + gone <= 12_000 * CONVERSED_BYTES as i64, "{}", full + gone);
    }
}
