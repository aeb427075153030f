//! The messages of a conversation are found in all mailboxes.

use super::disk::Cut;
use super::rig::{MIB, Rig};
use crate::chunk::{CHUNK_OCTETS, SUMMARY_BYTES};
use crate::conversations::{CONVERSED_BYTES, Conversations};
use crate::messages::MessageEntry;
use crate::types::{ARCHIVE, AccountId, INBOX, MailboxId, SENT, Uid};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use chance::Dice;

const MAILBOXES: [MailboxId; 3] = [INBOX, SENT, ARCHIVE];

/// The first octet determines the conversation of a message.
fn summarize(octets: &[u8], _: &mut [u8; SUMMARY_BYTES]) -> (usize, u64) {
    (0, octets.first().map_or(0, |first| 7000 + u64::from(*first)))
}

/// All messages of an account by conversation, collected from its mailboxes.
fn by_looking_at_all(rig: &Rig, account: AccountId) -> BTreeMap<u64, Vec<(MailboxId, Uid)>> {
    let mut all: BTreeMap<u64, Vec<(MailboxId, Uid)>> = BTreeMap::new();
    for mailbox in MAILBOXES {
        for message in rig.list_in(account, mailbox) {
            all.entry(message.conversation).or_default().push((mailbox, message.uid));
        }
    }
    all
}

fn check(rig: &Rig, account: AccountId) {
    let all = by_looking_at_all(rig, account);
    for conversation in (7000..7008).chain(all.keys().copied()) {
        let expected = all.get(&conversation).cloned().unwrap_or_default();
        let found: Vec<(MailboxId, Uid)> = rig.store.conversation(account, conversation).collect();
        assert_eq!(found, expected, "conversation {conversation}");
        for mailbox in MAILBOXES {
            let found =
                rig.store.conversation_in(account, mailbox, conversation).map(|uid| (mailbox, uid));
            let expected = expected.iter().copied().filter(|(of, _)| *of == mailbox);
            assert!(found.eq(expected), "conversation {conversation} in {mailbox:?}");
        }
    }
}

#[test]
fn conversation_lookup_finds_all_its_messages_and_no_others() {
    let mut rig = Rig::new(16 * MIB);
    let (ada, bob) = (rig.create("ada@example.org"), rig.create("bob@example.org"));
    let mut dice = Dice::new(1);
    for number in 0..400 {
        rig.store.summarize_with(summarize);
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
    assert!(by_looking_at_all(&rig, ada).len() == 8 && rig.list(bob).len() > 5);
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
