//! The store without failures.

use super::disk::{Cut, TestDisk};
use super::rig::{MIB, NOW, Rig, body, limits, password};
use crate::Store;
use crate::account::NewAccount;
use crate::chunk::{CHUNK_OCTETS, HEADER_BYTES};
use crate::layout::ShardId;
use crate::outcome::{Outcome, Refusal};
use crate::types::{BUILT_IN, Flags, INBOX, Limits, MarkChange, Marks, Recipient, Uid};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

#[test]
fn a_blank_disk_is_formatted_and_serves() {
    let rig = Rig::new(16 * MIB);
    assert!(rig.serving());
    let report = rig.fsck();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn delivered_message_is_read_back_unchanged() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver(&[ada], &body(1, 1000)).unwrap();
    let list = rig.list(ada);
    assert_eq!(list.len(), 1);
    assert_eq!(list[0].uid, Uid(1));
    assert_eq!(list[0].octets, 1000);
    assert_eq!(list[0].internal_date, NOW);
    assert_eq!(rig.read(ada, &list[0]), Ok(body(1, 1000)));
}

#[test]
fn bodies_of_all_edge_sizes_survive_a_restart() {
    let mut rig = Rig::new(64 * MIB);
    let ada = rig.create("ada@example.org");
    let chunk = CHUNK_OCTETS;
    let mut sizes: Vec<usize> = alloc::vec![0, 1, 2, 4000, 4001, 65_535, 65_536, 65_537];
    for edge in [4096 - HEADER_BYTES, 8192 - HEADER_BYTES, chunk, 2 * chunk, 3 * chunk, 40 * chunk]
    {
        sizes.extend([edge - 1, edge, edge + 1]);
    }
    for (size, number) in sizes.iter().zip(1..) {
        rig.deliver(&[ada], &body(number, *size)).unwrap();
    }
    for pass in 0..2 {
        let list = rig.list(ada);
        assert_eq!(list.len(), sizes.len());
        for ((size, number), message) in sizes.iter().zip(1..).zip(&list) {
            assert_eq!(message.octets as usize, *size);
            assert!(rig.read(ada, message) == Ok(body(number, *size)), "size {size}, pass {pass}");
        }
        rig = rig.cut(Cut::Prefix(0));
    }
    let report = rig.fsck();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_body_is_read_from_any_offset() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    let octets = body(1, 100_000);
    rig.deliver(&[ada], &octets).unwrap();
    for offset in [0, 1, 32_255, 32_256, 32_257, 64_512, 99_999] {
        let (number, continuation) = rig.continuation();
        rig.store.read(ada, INBOX, Uid(1), offset, continuation).unwrap();
        rig.settle();
        let Some(Outcome::Body(part)) = rig.outcomes.remove(&number) else { panic!("no body") };
        assert_eq!(part.bytes(), &octets[offset as usize..][..part.bytes().len()]);
        assert!(!part.bytes().is_empty());
        rig.store.give_back(part);
    }
    let (_, continuation) = rig.continuation();
    assert_eq!(rig.store.read(ada, INBOX, Uid(1), 100_000, continuation), Err(Refusal::PastEnd));
}

#[test]
fn small_message_costs_two_writes_and_one_flush() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver(&[ada], &body(1, 1000)).unwrap();
    let before = (rig.disk.writes, rig.disk.flushes);
    rig.deliver(&[ada], &body(2, 1000)).unwrap();
    assert_eq!((rig.disk.writes - before.0, rig.disk.flushes - before.1), (2, 1));
}

#[test]
fn many_deliveries_in_one_turn_cost_one_flush() {
    let mut rig = Rig::new(16 * MIB);
    let accounts: Vec<_> =
        (0..10).map(|number| rig.create(&alloc::format!("u{number}@example.org"))).collect();
    rig.settle();
    let before = rig.disk.flushes;
    let mut waiting = Vec::new();
    for (account, number) in accounts.iter().zip(1..) {
        let delivery = rig.store.begin(&[Recipient::inbox(*account)]).unwrap();
        rig.append(delivery, &body(number, 1000)).unwrap();
        let (number, continuation) = rig.continuation();
        rig.store.commit(delivery, NOW, continuation).unwrap();
        waiting.push(number);
    }
    rig.settle();
    assert!(
        waiting.iter().all(|number| matches!(rig.outcomes.get(number), Some(Outcome::Delivered)))
    );
    assert_eq!(rig.disk.flushes - before, 1);
}

#[test]
fn delivery_is_not_acknowledged_or_visible_before_the_flush() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    let delivery = rig.store.begin(&[Recipient::inbox(ada)]).unwrap();
    rig.append(delivery, &body(1, 1000)).unwrap();
    let (number, continuation) = rig.continuation();
    rig.store.commit(delivery, NOW, continuation).unwrap();
    let flushes = rig.disk.flushes;
    while rig.disk.flushes == flushes {
        assert!(rig.list(ada).is_empty() && !rig.outcomes.contains_key(&number));
        rig.turn(1);
    }
    assert_eq!(rig.list(ada).len(), 1);
    assert!(rig.outcomes.contains_key(&number));
}

#[test]
fn each_recipient_gets_a_body_of_its_own() {
    let mut rig = Rig::new(16 * MIB);
    let accounts: Vec<_> =
        (0..8).map(|number| rig.create(&alloc::format!("u{number}@example.org"))).collect();
    for (size, number) in [(500, 1), (40_000, 2), (200_000, 3)] {
        rig.deliver(&accounts, &body(number, size)).unwrap();
    }
    let first = rig.list(accounts[0]);
    let uids: Vec<u32> = first.iter().map(|message| message.uid.0).collect();
    rig.remove(accounts[0], &uids).unwrap();
    assert!(rig.list(accounts[0]).is_empty());
    for account in &accounts[1..] {
        let list = rig.list(*account);
        assert_eq!(list.len(), 3);
        for (message, (size, number)) in list.iter().zip([(500, 1), (40_000, 2), (200_000, 3)]) {
            assert!(rig.read(*account, message) == Ok(body(number, size)));
        }
    }
}

#[test]
fn many_streams_share_a_small_pool_without_deadlock() {
    let mut rig = Rig::new(64 * MIB);
    let accounts: Vec<_> =
        (0..8).map(|number| rig.create(&alloc::format!("u{number}@example.org"))).collect();
    let bodies: Vec<Vec<u8>> =
        (1..=24).map(|number| body(number, 30_000 + number as usize * 9_000)).collect();
    let mut streams: Vec<_> = (0..24)
        .map(|number| {
            let to: Vec<_> =
                accounts.iter().copied().skip(number % 5).map(Recipient::inbox).collect();
            (rig.store.begin(&to).unwrap(), 0, None::<u32>, to.len())
        })
        .collect();
    let mut committed = Vec::new();
    for round in 0..100_000 {
        for (stream, octets) in streams.iter_mut().zip(&bodies) {
            if stream.1 > octets.len()
                || stream.2.is_some_and(|number| !rig.outcomes.contains_key(&number))
            {
                continue;
            }
            let (number, continuation) = rig.continuation();
            if stream.1 == octets.len() {
                rig.store.commit(stream.0, NOW, continuation).unwrap();
                committed.push(number);
                stream.1 += 1;
                continue;
            }
            let end = octets.len().min(stream.1 + 1460);
            let taken = rig.store.append(stream.0, &octets[stream.1..end], continuation).unwrap();
            stream.1 += taken;
            stream.2 = (stream.1 < end).then_some(number);
        }
        rig.turn(2);
        if committed.len() == 24 && committed.iter().all(|number| rig.outcomes.contains_key(number))
        {
            break;
        }
        assert!(round < 99_999, "the streams do not make progress");
    }
    assert!(
        committed.iter().all(|number| matches!(rig.outcomes.get(number), Some(Outcome::Delivered)))
    );
    let expected: usize = streams.iter().map(|stream| stream.3).sum();
    let got: usize = accounts.iter().map(|account| rig.list(*account).len()).sum();
    assert_eq!(got, expected);
    assert!(rig.fsck().is_clean());
}

#[test]
fn aborted_delivery_leaves_nothing_and_frees_its_space() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    let before = rig.store.space();
    for number in 0..100 {
        let delivery = rig.store.begin(&[Recipient::inbox(ada)]).unwrap();
        rig.append(delivery, &body(number, 200_000)).unwrap();
        rig.store.abort(delivery);
        rig.settle();
    }
    assert!(rig.list(ada).is_empty());
    let after = rig.store.space();
    assert!(before.free_bytes - after.free_bytes <= 65_536, "{before:?} {after:?}");
    assert_eq!(after.body_bytes, 0);
}

#[test]
fn accounts_are_found_by_address_and_alias_after_restarts() {
    let mut rig = Rig::new(16 * MIB);
    let (_, continuation) = rig.continuation();
    let new = NewAccount {
        address: "ada@example.org",
        aliases: &["postmaster@example.org"],
        password_hash: "one",
        verifier: "a proof",
    };
    let ada = rig.store.create_account(&new, NOW, continuation).unwrap();
    assert_eq!(rig.store.find("ada@example.org"), None);
    let again = rig.store.create_account(&new, NOW, continuation);
    assert_eq!(again, Err(Refusal::AddressTaken));
    rig.settle();
    rig.store.set_password(ada, &password("two", "another"), continuation).unwrap();
    rig.settle();
    for _ in 0..2 {
        assert_eq!(rig.store.find("ada@example.org"), Some(ada));
        assert_eq!(rig.store.find("postmaster@example.org"), Some(ada));
        assert_eq!(rig.store.find("eve@example.org"), None);
        let info = rig.store.account(ada).unwrap();
        assert_eq!(
            (info.address(), info.password_hash(), info.verifier()),
            ("ada@example.org", "two", "another")
        );
        assert_eq!(info.replaced(), "secret");
        assert_eq!(info.aliases().collect::<Vec<_>>(), ["postmaster@example.org"]);
        assert_eq!(info.mailboxes().collect::<Vec<_>>(), BUILT_IN);
        assert_eq!(rig.store.accounts().count(), 1);
        let other = NewAccount {
            address: "eve@example.org",
            aliases: &["ada@example.org"],
            password_hash: "",
            verifier: "",
        };
        assert_eq!(rig.store.create_account(&other, NOW, continuation), Err(Refusal::AddressTaken));
        rig = rig.cut(Cut::Prefix(0));
    }
}

#[test]
fn addresses_of_an_account_are_limited_by_number_and_bytes() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    let mut set = |count: usize, bytes: usize| {
        let names: Vec<String> = (0..count).map(|number| format!("{number:0bytes$}")).collect();
        let aliases: Vec<&str> = names.iter().map(|name| &**name).collect();
        let (_, continuation) = rig.continuation();
        let result = rig.store.set_aliases(ada, &aliases, continuation);
        rig.settle();
        if result.is_ok() {
            assert_eq!(rig.store.account(ada).unwrap().aliases().count(), count);
        }
        result
    };
    assert_eq!(set(64, 43), Ok(()));
    assert_eq!(set(65, 20), Err(Refusal::TooLarge));
    assert_eq!(set(64, 60), Err(Refusal::TooLarge));
    assert_eq!(set(12, 254), Ok(()));
    assert_eq!(set(13, 254), Err(Refusal::TooLarge));
    assert_eq!(set(1, 255), Err(Refusal::TooLarge));
    let rig = rig.cut(Cut::Prefix(0));
    assert_eq!(rig.store.account(ada).unwrap().aliases().count(), 12);
}

const TAKEN: Result<(), Refusal> = Err(Refusal::AddressTaken);

#[test]
fn aliases_are_replaced_and_freed_when_durable() {
    let mut rig = Rig::new(16 * MIB);
    let [ada, grace] = ["ada@example.org", "grace@example.org"].map(|name| rig.create(name));
    let (_, continuation) = rig.continuation();
    rig.store.set_aliases(ada, &["one@example.org", "two@example.org"], continuation).unwrap();
    assert_eq!(rig.store.set_aliases(grace, &["two@example.org"], continuation), TAKEN);
    rig.settle();
    assert_eq!(rig.store.find("two@example.org"), Some(ada));
    rig.store.set_aliases(ada, &["one@example.org", "three@example.org"], continuation).unwrap();
    assert_eq!(rig.store.set_aliases(grace, &["two@example.org"], continuation), TAKEN);
    rig.settle();
    assert_eq!(rig.store.find("two@example.org"), None);
    rig.store.set_aliases(grace, &["two@example.org"], continuation).unwrap();
    assert_eq!(rig.store.set_aliases(grace, &["ada@example.org"], continuation), TAKEN);
    rig.settle();
    for _ in 0..2 {
        let owners = ["ada", "one", "two", "three", "grace"]
            .map(|name| rig.store.find(&format!("{name}@example.org")));
        assert_eq!(owners, [Some(ada), Some(ada), Some(grace), Some(ada), Some(grace)]);
        assert_eq!(rig.store.account(ada).unwrap().password_hash(), "secret");
        rig = rig.cut(Cut::Prefix(0));
    }
}

#[test]
fn password_hash_and_verifier_have_at_most_256_bytes() {
    let mut rig = Rig::new(16 * MIB);
    let long = |number: u8| String::from_utf8(alloc::vec![b'a' + number; 254]).unwrap();
    let names: Vec<String> = (0..9).map(long).collect();
    let aliases: Vec<&str> = names[1..].iter().map(|name| &**name).collect();
    let hash = String::from_utf8(alloc::vec![b'h'; 256]).unwrap();
    let (_, continuation) = rig.continuation();
    let new =
        NewAccount { address: &names[0], aliases: &aliases, password_hash: &hash, verifier: &hash };
    let longer = String::from_utf8(alloc::vec![b'v'; 257]).unwrap();
    let too_long = NewAccount { verifier: &longer, ..new };
    assert_eq!(rig.store.create_account(&too_long, NOW, continuation), Err(Refusal::TooLarge));
    rig.store.create_account(&new, NOW, continuation).unwrap();
    rig.settle();
    let mut rig = rig.cut(Cut::Prefix(0));
    let ada = rig.store.find(&names[0]).unwrap();
    assert_eq!(
        rig.store.set_password(ada, &password(&hash, &longer), continuation),
        Err(Refusal::TooLarge)
    );
    assert_eq!(rig.store.account(ada).unwrap().verifier(), hash);
    assert!(names.iter().all(|name| rig.store.find(name).is_some()));
}

#[test]
fn marks_and_removals_raise_modseq_and_keep_uidnext() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    for number in 1..=3 {
        rig.deliver(&[ada], &body(number, 100)).unwrap();
    }
    let before = rig.store.mailbox(ada, INBOX).unwrap();
    let (_, continuation) = rig.continuation();
    let set = Marks { flags: Flags::SEEN.with(Flags::FLAGGED), keywords: 5 };
    rig.store
        .mark(ada, INBOX, Uid(2), MarkChange { set, ..MarkChange::default() }, continuation)
        .unwrap();
    rig.settle();
    rig.remove(ada, &[3]).unwrap();
    rig.remove(ada, &[1]).unwrap();
    for _ in 0..2 {
        let list = rig.list(ada);
        assert_eq!(list.len(), 1);
        assert_eq!((list[0].uid, list[0].keywords), (Uid(2), 5));
        assert!(list[0].flags.contains(Flags::SEEN) && !list[0].flags.contains(Flags::DELETED));
        assert_eq!(list[0].modseq.0, before.highest_modseq.0 + 1);
        let info = rig.store.mailbox(ada, INBOX).unwrap();
        assert_eq!((info.uid_next, info.uid_validity), (Uid(4), before.uid_validity));
        assert_eq!(info.highest_modseq.0, before.highest_modseq.0 + 3);
        rig = rig.cut(Cut::Prefix(0));
    }
    rig.deliver(&[ada], &body(4, 100)).unwrap();
    assert_eq!(rig.list(ada).last().unwrap().uid, Uid(4));
}

#[test]
fn concurrent_mark_changes_of_a_message_all_apply() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver(&[ada], &body(1, 100)).unwrap();
    let both = Flags::ANSWERED.with(Flags::DELETED);
    let keywords = |clear, set| {
        let [clear, set] = [clear, set].map(|keywords| Marks { keywords, ..Marks::default() });
        MarkChange { clear, set }
    };
    // The first changes are in one group. The later changes come while that group is in flight.
    for change in [MarkChange::set(both), keywords(0, 6), MarkChange::set(Flags::SEEN)] {
        let (_, continuation) = rig.continuation();
        rig.store.mark(ada, INBOX, Uid(1), change, continuation).unwrap();
    }
    rig.turn(0);
    let late = [
        MarkChange::clear(Flags::ANSWERED),
        keywords(2, 8),
        MarkChange::of(Flags::SEEN, Flags::FLAGGED),
    ];
    for change in late {
        let (_, continuation) = rig.continuation();
        rig.store.mark(ada, INBOX, Uid(1), change, continuation).unwrap();
    }
    rig.settle();
    for _ in 0..2 {
        let message = rig.list(ada)[0];
        assert_eq!((message.flags, message.keywords), (Flags::DELETED.with(Flags::FLAGGED), 12));
        assert_eq!(rig.store.mailbox(ada, INBOX).unwrap().unseen, 1);
        rig = rig.cut(Cut::Prefix(0));
    }
}

#[test]
fn guids_never_repeat() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    let bob = rig.create("bob@example.org");
    let mut seen = alloc::collections::BTreeSet::new();
    for number in 0..40 {
        rig.deliver(&[ada, bob], &body(number, 100)).unwrap();
        for account in [ada, bob] {
            let last = *rig.list(account).last().unwrap();
            assert!(seen.insert(last.guid.0));
            rig.remove(account, &[last.uid.0]).unwrap();
        }
        if number % 7 == 0 {
            if number % 2 == 0 {
                ShardId::all()
                    .for_each(|shard| rig.store.parts_mut().journals.needs_mending(shard));
                rig.settle();
            }
            rig = rig.cut(Cut::Prefix(0));
            // All messages have been removed, but none of their GUID numbers is assigned again.
            for guid in &seen {
                let number = *guid as u64;
                let next = rig.store.parts().indexes.of(ShardId((number >> 42) as u8)).guid_next();
                assert!(next > number, "GUID number {number:x} again, next is {next:x}");
            }
        }
    }
}

#[test]
fn a_mailbox_is_listed_by_index_and_uid() {
    let mut rig = Rig::new(64 * MIB);
    let ada = rig.create("ada@example.org");
    for number in 1..=300 {
        rig.deliver(&[ada], &body(number, 10)).unwrap();
    }
    let odd: Vec<u32> = (1..=300).filter(|uid| uid % 2 == 1).collect();
    rig.remove(ada, &odd).unwrap();
    let list = rig.list(ada);
    assert_eq!(list.len(), 150);
    for (index, message) in list.iter().enumerate() {
        assert_eq!(message.uid.0 as usize, 2 * (index + 1));
        assert_eq!(rig.store.message_at(ada, INBOX, index), Some(*message));
        assert_eq!(rig.store.message(ada, INBOX, message.uid), Some(*message));
    }
    assert_eq!(rig.store.message_at(ada, INBOX, 150), None);
    assert_eq!(rig.store.message(ada, INBOX, Uid(3)), None);
    assert_eq!(rig.store.mailbox(ada, INBOX).unwrap().octets, 1500);
}

#[test]
fn memory_limit_refuses_only_deliveries() {
    let mut rig = Rig::with_limits(
        16 * MIB,
        Limits { resident_bytes: 10 * crate::RESIDENT_BYTES_PER_MESSAGE as u64, ..limits() },
    );
    let ada = rig.create("ada@example.org");
    let taken =
        (0..20).take_while(|number| rig.deliver(&[ada], &body(*number, 10)).is_ok()).count();
    assert_eq!(taken, 10);
    assert_eq!(rig.deliver(&[ada], &body(99, 10)), Err(Refusal::IndexFull));
    rig.remove(ada, &[1, 2]).unwrap();
    rig.deliver(&[ada], &body(100, 10)).unwrap();
}

#[test]
fn a_device_that_cannot_flush_is_refused() {
    let disk = TestDisk::new(16 * MIB, 1);
    let mut store = Store::new(limits(), machine::Disk { durable: false, ..disk.disk() }, [0; 32]);
    assert_eq!(store.state(), crate::State::Refused(crate::OpenRefusal::NotDurable));
    assert!(store.next_request().is_none());
}

#[test]
fn requests_refused_by_the_machine_are_retried() {
    let mut rig = Rig::opening(TestDisk::new(16 * MIB, 1));
    let first = rig.store.next_request().unwrap();
    let token = first.token;
    rig.store.request_refused(first);
    assert_eq!(rig.store.next_request().map(|request| request.token), Some(token));
}
