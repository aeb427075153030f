//! A year in the life of a store. Messages have realistic sizes. They are kept, flagged, moved and
//! removed every day, with a power cut each month.
//!
//! The octets of a message follow from its number. The disk stores such octets as their first word
//! (`super::disk`), so that a log of ten gigabytes fits into memory.

extern crate std;

use super::disk::Cut;
use super::rig::{MIB, NOW, Rig, limits};
use crate::Recipient;
use crate::outcome::Outcome;
use crate::types::{
    ARCHIVE, AccountId, Flags, INBOX, Limits, MailboxId, MarkChange, MessageInfo, Uid, UidRange,
};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::vec::Vec;
use chance::Dice;
use machine::UnixTime;

/// Octets of the largest message that the server accepts. On a small disk, a message has at most a
/// twentieth of the disk's size.
const OCTETS_MAX: u64 = 50_000_000;
const DAY_SECONDS: u64 = 24 * 3600;
/// The number of deliveries that share a flush.
const TOGETHER: usize = 16;

/// Octets that no other message has: words that count up.
fn octets_of(number: u64, length: usize) -> Vec<u8> {
    let words = (number << 24..).take(length.div_ceil(8));
    let mut octets: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    octets.truncate(length);
    octets
}

/// Half of all messages have less than 4.5 KB, one in ten has more than 20 KB, and some have the
/// maximum size. This is a log-normal distribution, as measured for mail, with a mean of about 9
/// KB.
fn length_of(dice: &mut Dice, octets_max: u64) -> usize {
    if dice.one_in(40_000) {
        return (octets_max - dice.below(1000)) as usize;
    }
    // The sum of twelve uniform numbers is close to a normal distribution.
    let sum: u64 = (0..12).map(|_| dice.below(1_000_000)).sum();
    let normal = sum as f64 / 1_000_000.0 - 6.0;
    ((8.4 + 1.2 * normal).exp() as usize).clamp(200, octets_max as usize)
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Known {
    number: u64,
    length: usize,
    flags: Flags,
}

struct Account {
    id: AccountId,
    mailboxes: BTreeMap<MailboxId, BTreeMap<Uid, Known>>,
}

struct World {
    rig: Rig,
    dice: Dice,
    accounts: Vec<Account>,
    now: UnixTime,
    /// The number of the next message.
    next: u64,
    /// Octets of all messages delivered so far.
    octets: u64,
    octets_max: u64,
}

impl World {
    fn new(bytes: u64, accounts: usize, messages: u64) -> World {
        let limits = Limits { resident_bytes: messages * 256, ..limits() };
        let mut rig = Rig::with_limits(bytes, limits);
        let make = |number| {
            let id = rig.create(&format!("user{number}@example.org"));
            Account {
                id,
                mailboxes: [INBOX, ARCHIVE].map(|mailbox| (mailbox, BTreeMap::new())).into(),
            }
        };
        let accounts = (0..accounts).map(make).collect();
        let octets_max = OCTETS_MAX.min(bytes / 20);
        World {
            rig,
            dice: Dice::new(bytes ^ messages),
            accounts,
            now: NOW,
            next: 1,
            octets: 0,
            octets_max,
        }
    }

    /// Delivers messages to one account. One flush commits them.
    fn deliver(&mut self, count: usize) {
        let place = self.dice.below(self.accounts.len() as u64) as usize;
        let id = self.accounts[place].id;
        let mut requested = BTreeMap::new();
        for _ in 0..count {
            let (number, length) = (self.next, length_of(&mut self.dice, self.octets_max));
            self.next += 1;
            self.octets += length as u64;
            let delivery = self.rig.store.begin(&[Recipient::inbox(id)]).unwrap();
            self.rig.append(delivery, &octets_of(number, length)).unwrap();
            let (waiting, continuation) = self.rig.continuation();
            self.rig.store.commit(delivery, self.now, continuation).unwrap();
            requested.insert(number, (waiting, Known { number, length, flags: Flags(0) }));
        }
        self.rig.settle();
        // A message with several chunks gets its UID later than a small message that was committed
        // after it.
        let inbox = self.accounts[place].mailboxes.get_mut(&INBOX).unwrap();
        let last = inbox.last_key_value().map(|(uid, _)| *uid);
        for info in self.rig.list(id).into_iter().rev().take_while(|info| Some(info.uid) > last) {
            let beginning = self.rig.read_from(id, INBOX, &info, 0).unwrap();
            let number = u64::from_le_bytes(beginning[..8].try_into().unwrap()) >> 24;
            let (waiting, known) = requested.remove(&number).expect("a message that was not sent");
            let outcome = self.rig.outcomes.remove(&waiting);
            assert!(matches!(outcome, Some(Outcome::Delivered)), "message {number}: {outcome:?}");
            inbox.insert(info.uid, known);
        }
        assert!(requested.is_empty(), "{} messages are not there", requested.len());
        self.rig.outcomes.clear();
    }

    /// The users read the mail, archive some of it, and remove some of it.
    fn tidy_up(&mut self) {
        for place in 0..self.accounts.len() {
            self.flag(place);
            self.archive(place);
            for mailbox in [INBOX, ARCHIVE] {
                self.remove(place, mailbox);
            }
        }
    }

    fn flag(&mut self, place: usize) {
        let Account { id, mailboxes } = &mut self.accounts[place];
        let Some((uid, known)) = mailboxes.get_mut(&INBOX).unwrap().iter_mut().next_back() else {
            return;
        };
        let (number, continuation) = self.rig.continuation();
        let change = MarkChange::of(Flags(0), Flags::SEEN);
        self.rig.store.mark(*id, INBOX, *uid, change, continuation).unwrap();
        assert!(matches!(self.rig.outcome(number), Outcome::Changed));
        known.flags = Flags::SEEN;
    }

    fn archive(&mut self, place: usize) {
        let Account { id, mailboxes } = &mut self.accounts[place];
        let Some((uid, known)) = mailboxes.get_mut(&INBOX).unwrap().pop_first() else { return };
        match self.rig.file(*id, INBOX, &[uid.0], ARCHIVE) {
            Outcome::Filed(filed) => {
                mailboxes.get_mut(&ARCHIVE).unwrap().insert(filed.now.first, known);
            }
            other => panic!("a move ended with {other:?}"),
        }
    }

    /// Removes about half of the messages in the oldest fiftieth of a mailbox.
    fn remove(&mut self, place: usize, mailbox: MailboxId) {
        let Account { id, mailboxes } = &mut self.accounts[place];
        let known = mailboxes.get_mut(&mailbox).unwrap();
        let old = known.len() / 50;
        let uids: BTreeSet<Uid> =
            known.keys().take(old.min(400)).copied().filter(|_| self.dice.one_in(2)).collect();
        if uids.is_empty() {
            return;
        }
        known.retain(|uid, _| !uids.contains(uid));
        let (number, continuation) = self.rig.continuation();
        let ranges: Vec<UidRange> = uids.into_iter().map(UidRange::one).collect();
        self.rig.store.remove(*id, mailbox, &ranges, continuation).unwrap();
        assert!(matches!(self.rig.outcome(number), Outcome::Changed));
    }

    /// Checks that exactly the known messages exist. One message in `one_in` is read.
    fn check(&mut self, one_in: u64) {
        assert!(self.rig.serving(), "{:?}", self.rig.store.state());
        for account in &self.accounts {
            for (mailbox, messages) in &account.mailboxes {
                let listed = self.rig.list_in(account.id, *mailbox);
                let seen = |info: &MessageInfo| (info.uid, info.octets as usize, info.flags);
                let known = |(uid, known): (&Uid, &Known)| (*uid, known.length, known.flags);
                assert!(
                    listed.iter().map(seen).eq(messages.iter().map(known)),
                    "a mailbox has changed"
                );
                for (info, known) in listed.iter().zip(messages.values()) {
                    if self.dice.one_in(one_in) {
                        let octets = self.rig.read_in(account.id, *mailbox, info);
                        assert!(
                            octets == Ok(octets_of(known.number, known.length)),
                            "message {} has changed",
                            known.number
                        );
                    }
                }
            }
        }
    }

    fn cut(self) -> World {
        World { rig: self.rig.cut(Cut::Dice), ..self }
    }

    fn messages(&self) -> usize {
        self.accounts.iter().flat_map(|account| account.mailboxes.values()).map(BTreeMap::len).sum()
    }
}

/// Runs a store for a year with `messages` messages, on a disk of `bytes`.
fn live_a_year(bytes: u64, accounts: usize, messages: u64) -> World {
    let mut world = World::new(bytes, accounts, messages);
    for day in 1..=365 {
        while world.next <= messages * day / 365 {
            let left = messages * day / 365 + 1 - world.next;
            world.deliver(TOGETHER.min(left as usize));
        }
        world.tidy_up();
        world.now = UnixTime::from_seconds(world.now.seconds() + DAY_SECONDS);
        if day % 30 == 0 {
            world = world.cut();
            world.check(100);
            std::println!(
                "day {day}: {} messages, {} MB came",
                world.messages(),
                world.octets / 1_000_000
            );
        }
    }
    assert_eq!(world.next - 1, messages);
    world = world.cut();
    world.check(1);
    let report = world.rig.fsck();
    assert!(report.is_clean(), "{report}");
    world
}

#[test]
fn a_simulated_year_of_a_small_store_loses_nothing() {
    let world = live_a_year(24 * MIB, 3, 4_000);
    assert!(world.octets > 24 * MIB, "less mail than the disk holds");
}

#[test]
#[ignore = "the part long-world"]
fn a_year_of_a_million_messages_loses_nothing() {
    let world = live_a_year(4_500 * MIB, 20, 1_100_000);
    assert!(world.octets > 10_000_000_000, "only {} octets came", world.octets);
    std::println!("{} messages of {} octets came", world.next - 1, world.octets);
}
