//! The store compared with a simple model, under random operations and random power cuts. Disks are
//! small, so that checkpoints, compaction and full disks are frequent.
//!
//! Checks after each cut: acknowledged mail is present once, intact, and under the UID that it had
//! before. Unacknowledged mail is completely present or completely absent, and stays so. Removed
//! mail stays removed. UIDs only grow.

use super::disk::{Cut, TestDisk};
use super::rig::{NOW, Rig, body, password as in_place};
use crate::outcome::{Outcome, Refusal};
use crate::superblock::Format;
use crate::types::{
    ARCHIVE, AccountId, BUILT_IN, Closing, Flags, HeadSize, INBOX, MailboxId, MarkChange, Marks,
    OUTBOX, Recipient, TRASH, Uid, UidRange,
};
use crate::{DeliveryId, NOTES_BYTES_MAX, NOTES_MAX, NoteChange};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use chance::Dice;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MessageState {
    /// Committed, not acknowledged yet.
    Asked,
    /// Acknowledged, or seen after a restart.
    There,
    /// The removal of the message was requested, and is not acknowledged yet.
    Leaving,
    /// The move to this mailbox was requested, and is not acknowledged yet. The message is in one
    /// of the two mailboxes.
    Filing(MailboxId),
    Gone,
}

#[derive(Clone, Debug)]
struct Message {
    length: usize,
    fate: MessageState,
    mailbox: MailboxId,
    uid: Option<Uid>,
    /// The possible flags of the message. The last known flags come first.
    flags: Vec<u8>,
}

impl Message {
    fn new(length: usize, fate: MessageState) -> Message {
        Message { length, fate, mailbox: INBOX, uid: None, flags: alloc::vec![0] }
    }
}

/// The mailboxes of this test.
const MAILBOXES: [MailboxId; 3] = [INBOX, ARCHIVE, TRASH];

type Notes = BTreeMap<Vec<u8>, Vec<u8>>;

struct Account {
    id: AccountId,
    address: String,
    passwords: Vec<String>,
    /// The possible notes of the account. The last known notes come first. Requested changes happen
    /// in order, each completely or not at all.
    notes: Vec<(u64, Notes)>,
    messages: BTreeMap<u64, Message>,
    highest_uids: BTreeMap<MailboxId, u32>,
}

enum Waiting {
    Delivery(u64, Vec<usize>),
    Removal(usize, Vec<u64>),
    Flags(usize, u64, u8),
    Filing(usize, Vec<u64>, MailboxId),
    Password(usize, String),
    /// The number of the expected notes, or the expected refusal.
    Notes(usize, Result<u64, Refusal>),
}

struct Stream {
    id: DeliveryId,
    token: u64,
    to: Vec<usize>,
    /// The octets in the order of appending: the head comes last.
    octets: Vec<u8>,
    head: HeadSize,
    appended: usize,
    waits_for: Option<u32>,
}

pub(super) struct World {
    pub(super) rig: Rig,
    pub(super) dice: Dice,
    accounts: Vec<Account>,
    waiting: BTreeMap<u32, Waiting>,
    streams: Vec<Stream>,
    next_token: u64,
    cuts: u32,
    full: u32,
    /// Whether the disk has failed since it was opened.
    has_failed: bool,
}

impl World {
    pub(super) fn new(seed: u64, bytes: u64, accounts: usize) -> World {
        let format = if seed.is_multiple_of(3) { Format::Four } else { Format::Three };
        let mut rig = Rig::on(TestDisk::new(bytes, seed).of_format(format));
        let accounts = (0..accounts)
            .map(|number| {
                let address = format!("user{number}@example.org");
                let id = rig.create(&address);
                let passwords = alloc::vec![String::from("secret")];
                let notes = alloc::vec![(0, Notes::new())];
                Account {
                    id,
                    address,
                    passwords,
                    notes,
                    messages: BTreeMap::new(),
                    highest_uids: BTreeMap::new(),
                }
            })
            .collect();
        let dice = Dice::new(seed ^ 0xABCD);
        let (waiting, streams) = (BTreeMap::new(), Vec::new());
        World {
            rig,
            dice,
            accounts,
            waiting,
            streams,
            next_token: 1,
            cuts: 0,
            full: 0,
            has_failed: false,
        }
    }

    pub(super) fn act(&mut self) {
        match self.dice.below(16) {
            0..=5 => self.begin(),
            6..=9 => self.stream(),
            10..=11 => self.remove(),
            12 => self.mark(),
            13 => self.set_password(),
            14 => self.file(),
            15 => self.change_notes(),
            _ => {}
        }
        let completions = self.dice.below(6) as usize;
        self.rig.turn(completions);
        self.take_outcomes();
    }

    fn begin(&mut self) {
        let first = self.dice.below(self.accounts.len() as u64) as usize;
        let count = if self.dice.one_in(4) { 2.min(self.accounts.len()) } else { 1 };
        let mut to: Vec<usize> =
            (0..count).map(|number| (first + number) % self.accounts.len()).collect();
        let owners = self.rig.owners;
        let owner = |number: &usize| owners.of(self.accounts[*number].id);
        // A delivery is for recipients of one core, here the core of the first recipient.
        to.retain(|number| owner(number) == owner(&first));
        let ids: Vec<Recipient> =
            to.iter().map(|number| Recipient::inbox(self.accounts[*number].id)).collect();
        let length = match self.dice.below(12) {
            0..=8 => 8 + self.dice.below(3000),
            9..=10 => 4000 + self.dice.below(20_000),
            _ => 30_000 + self.dice.below(70_000),
        };
        let Ok(id) = self.rig.at(ids[0].account).begin(&ids) else { return };
        let token = self.next_token;
        self.next_token += 1;
        let mut octets = body(token, length as usize);
        let head = if self.dice.one_in(2) {
            0
        } else {
            length.min(8 * self.dice.below(256)) as usize / 8 * 8
        };
        octets.rotate_left(head);
        let head = HeadSize::of(head).unwrap();
        self.streams.push(Stream { id, token, to, octets, head, appended: 0, waits_for: None });
        self.stream();
    }

    /// Continues one stream: appends, commits or aborts.
    fn stream(&mut self) {
        if self.streams.is_empty() {
            return;
        }
        let chosen = self.dice.below(self.streams.len() as u64) as usize;
        let (number, continuation) = self.rig.continuation();
        let stream = &mut self.streams[chosen];
        if stream.waits_for.is_some_and(|number| !self.rig.outcomes.contains_key(&number)) {
            return;
        }
        let store = self.rig.at(self.accounts[stream.to[0]].id);
        let rest = &stream.octets[stream.appended..];
        if self.dice.one_in(40) {
            store.abort(stream.id);
            self.streams.swap_remove(chosen);
            return;
        }
        match store.append(stream.id, rest, continuation) {
            Ok(taken) => {
                stream.appended += taken;
                stream.waits_for = (taken < rest.len()).then_some(number);
            }
            Err(refusal) => {
                assert!(self.has_failed || refusal == Refusal::DiskFull, "{refusal:?}");
                self.full += u32::from(refusal == Refusal::DiskFull);
                store.abort(stream.id);
                self.streams.swap_remove(chosen);
                return;
            }
        }
        if stream.appended == stream.octets.len() {
            let stream = self.streams.swap_remove(chosen);
            let closing = Closing { head: stream.head, ..NOW.into() };
            if store.commit(stream.id, closing, continuation).is_ok() {
                for account in &stream.to {
                    let message = Message::new(stream.octets.len(), MessageState::Asked);
                    self.accounts[*account].messages.insert(stream.token, message);
                }
                self.waiting.insert(number, Waiting::Delivery(stream.token, stream.to));
            }
        }
    }

    /// Some messages that are visible now in one mailbox.
    fn some_seen(&mut self) -> Option<(usize, MailboxId, Vec<u64>)> {
        let account = self.dice.below(self.accounts.len() as u64) as usize;
        let mailbox = MAILBOXES[self.dice.below(4) as usize % MAILBOXES.len()];
        let seen: Vec<u64> = self.accounts[account]
            .messages
            .iter()
            .filter(|(_, message)| {
                message.fate == MessageState::There
                    && message.mailbox == mailbox
                    && message.uid.is_some()
            })
            .map(|(token, _)| *token)
            .collect();
        if seen.is_empty() {
            return None;
        }
        let from = self.dice.below(seen.len() as u64) as usize;
        let count = 1 + self.dice.below(8) as usize;
        Some((account, mailbox, seen.into_iter().skip(from).take(count).collect()))
    }

    fn remove(&mut self) {
        self.learn_uids();
        let Some((account, mailbox, tokens)) = self.some_seen() else { return };
        let (number, continuation) = self.rig.continuation();
        let known = &mut self.accounts[account];
        let uids: Vec<UidRange> =
            tokens.iter().map(|token| UidRange::one(known.messages[token].uid.unwrap())).collect();
        match self.rig.at(known.id).remove(known.id, mailbox, &uids, continuation) {
            Ok(()) => {
                for token in &tokens {
                    known.messages.get_mut(token).unwrap().fate = MessageState::Leaving;
                }
                self.waiting.insert(number, Waiting::Removal(account, tokens));
            }
            Err(Refusal::ReadOnly) if self.has_failed => {}
            Err(refusal) => assert_eq!(refusal, Refusal::Busy, "a full disk refuses a removal"),
        }
    }

    fn mark(&mut self) {
        self.learn_uids();
        let Some((account, mailbox, tokens)) = self.some_seen() else { return };
        let (number, continuation) = self.rig.continuation();
        let change =
            MarkChange::of(Flags(self.dice.below(32) as u8), Flags(self.dice.below(32) as u8));
        let id = self.accounts[account].id;
        let message = self.accounts[account].messages.get_mut(&tokens[0]).unwrap();
        if self.rig.at(id).mark(id, mailbox, message.uid.unwrap(), change, continuation).is_ok() {
            let before =
                Marks { flags: Flags(message.flags[message.flags.len() - 1]), keywords: 0 };
            let flags = change.applied(before).flags.0;
            message.flags.push(flags);
            self.waiting.insert(number, Waiting::Flags(account, tokens[0], flags));
        }
    }

    fn file(&mut self) {
        self.learn_uids();
        let Some((account, from, mut tokens)) = self.some_seen() else { return };
        let to = MAILBOXES[self.dice.below(3) as usize];
        let (number, continuation) = self.rig.continuation();
        let known = &mut self.accounts[account];
        tokens.sort_by_key(|token| known.messages[token].uid);
        let uids: Vec<UidRange> =
            tokens.iter().map(|token| UidRange::one(known.messages[token].uid.unwrap())).collect();
        if self.rig.at(known.id).file(known.id, from, &uids, to, continuation).is_ok() {
            for token in &tokens {
                known.messages.get_mut(token).unwrap().fate = MessageState::Filing(to);
            }
            self.waiting.insert(number, Waiting::Filing(account, tokens, to));
        }
    }

    fn set_password(&mut self) {
        let account = self.dice.below(self.accounts.len() as u64) as usize;
        let (number, continuation) = self.rig.continuation();
        let password = format!("password {}", self.dice.roll());
        let id = self.accounts[account].id;
        if self
            .rig
            .at(id)
            .set_password(id, &in_place(&password, &format!("proof of {password}")), continuation)
            .is_ok()
        {
            self.accounts[account].passwords.push(password.clone());
            self.waiting.insert(number, Waiting::Password(account, password));
        }
    }

    fn change_notes(&mut self) {
        let account = self.dice.below(self.accounts.len() as u64) as usize;
        let (number, continuation) = self.rig.continuation();
        let changes: Vec<NoteChange> =
            (0..1 + self.dice.below(5)).map(|_| self.note_change()).collect();
        let known = &mut self.accounts[account];
        let before = &known.notes.last().unwrap().1;
        let after = noted(before, &changes);
        if self.rig.at(known.id).change_notes(known.id, changes, continuation).is_ok() {
            let then = after.map(|after| {
                known.notes.push((u64::from(number), after));
                u64::from(number)
            });
            self.waiting.insert(number, Waiting::Notes(account, then));
        }
    }

    fn note_change(&mut self) -> NoteChange {
        let key: Box<[u8]> = alloc::vec![b'k'; 1 + self.dice.below(40) as usize].into();
        let length = 1 + self.dice.below(900) as usize;
        let value = || body(length as u64, length).into();
        match self.dice.below(4) {
            0 => NoteChange::Remove(key),
            1 => NoteChange::Replace(key, value()),
            _ => NoteChange::Put(key, value()),
        }
    }

    /// Delivers messages until the disk takes no more.
    fn fill(&mut self) {
        let mut number = 0;
        loop {
            number = (number + 1) % self.accounts.len();
            let token = self.next_token;
            self.next_token += 1;
            let length = 60_000;
            match self.rig.deliver(&[self.accounts[number].id], &body(token, length)) {
                Ok(()) => {
                    let message = Message::new(length, MessageState::There);
                    self.accounts[number].messages.insert(token, message);
                }
                Err(refusal) => {
                    assert_eq!(refusal, Refusal::DiskFull);
                    self.full += 1;
                    return;
                }
            }
        }
    }

    /// Removes all messages.
    fn empty(&mut self) {
        for number in 0..self.accounts.len() {
            let id = self.accounts[number].id;
            for mailbox in MAILBOXES {
                let uids: Vec<u32> =
                    self.rig.list_in(id, mailbox).iter().map(|message| message.uid.0).collect();
                for some in uids.chunks(8) {
                    self.rig.remove_in(id, mailbox, some).unwrap();
                }
            }
            self.accounts[number]
                .messages
                .values_mut()
                .for_each(|message| message.fate = MessageState::Gone);
        }
    }

    fn take_outcomes(&mut self) {
        let done: Vec<u32> = self
            .waiting
            .keys()
            .copied()
            .filter(|number| self.rig.outcomes.contains_key(number))
            .collect();
        for number in done {
            let outcome = self.rig.outcomes.remove(&number).unwrap();
            match (self.waiting.remove(&number).unwrap(), outcome) {
                // It is unknown whether the disk has the change.
                (_, Outcome::Refused(Refusal::ReadOnly)) if self.has_failed => {}
                (Waiting::Delivery(token, to), Outcome::Refused(Refusal::WriteFailed))
                    if self.has_failed =>
                {
                    to.iter()
                        .for_each(|account| self.set_fate(*account, token, MessageState::Gone));
                }
                (Waiting::Delivery(token, to), Outcome::Delivered) => {
                    to.iter()
                        .for_each(|account| self.set_fate(*account, token, MessageState::There));
                }
                (Waiting::Delivery(token, to), Outcome::Refused(Refusal::DiskFull)) => {
                    self.full += 1;
                    to.iter()
                        .for_each(|account| self.set_fate(*account, token, MessageState::Gone));
                }
                (Waiting::Removal(account, tokens), Outcome::Changed) => {
                    tokens
                        .iter()
                        .for_each(|token| self.set_fate(account, *token, MessageState::Gone));
                }
                (Waiting::Flags(account, token, flags), Outcome::Changed) => {
                    let known = &mut self.accounts[account].messages.get_mut(&token).unwrap().flags;
                    let at = known.iter().position(|known| *known == flags).unwrap_or(0);
                    known.drain(..at);
                }
                (Waiting::Filing(account, tokens, to), Outcome::Filed(filed)) => {
                    let uids = filed.now.first.0..=filed.now.last.0;
                    assert_eq!(
                        filed.count as usize,
                        tokens.len(),
                        "a move of so few messages fits a group"
                    );
                    self.learn_uids();
                    for (token, uid) in tokens.iter().zip(uids) {
                        let message = self.accounts[account].messages.get_mut(token).unwrap();
                        assert_eq!((message.mailbox, message.uid), (to, Some(Uid(uid))));
                        message.fate = MessageState::There;
                    }
                }
                (Waiting::Password(account, password), Outcome::Changed) => {
                    let known = &mut self.accounts[account].passwords;
                    let at = known.iter().position(|known| *known == password).unwrap();
                    known.drain(..at);
                }
                (Waiting::Notes(account, Ok(then)), Outcome::Changed) => {
                    let known = &mut self.accounts[account].notes;
                    let at = known.iter().position(|(number, _)| *number == then).unwrap();
                    known.drain(..at);
                }
                (Waiting::Notes(_, Err(expected)), Outcome::Refused(refusal)) => {
                    assert_eq!(refusal, expected)
                }
                (_, outcome) => panic!("ended with {outcome:?}"),
            }
        }
    }

    fn set_fate(&mut self, account: usize, token: u64, fate: MessageState) {
        self.accounts[account].messages.get_mut(&token).unwrap().fate = fate;
    }

    /// Finds the UIDs of messages that have become visible.
    fn learn_uids(&mut self) {
        for number in 0..self.accounts.len() {
            let id = self.accounts[number].id;
            for mailbox in MAILBOXES {
                let there =
                    self.accounts[number].messages.values().filter(|one| one.mailbox == mailbox);
                let known: BTreeSet<Uid> = there.filter_map(|one| one.uid).collect();
                for message in self.rig.list_in(id, mailbox) {
                    if !known.contains(&message.uid) {
                        let octets = self.rig.read_in(id, mailbox, &message).unwrap();
                        self.saw(number, mailbox, message.uid, &octets);
                    }
                }
            }
        }
    }

    fn saw(&mut self, account: usize, mailbox: MailboxId, uid: Uid, octets: &[u8]) -> u64 {
        let token = u64::from_le_bytes(octets[..8].try_into().unwrap());
        let account = &mut self.accounts[account];
        let message = account.messages.get_mut(&token).expect("a message that was not committed");
        assert_eq!(octets, body(token, message.length), "a part of a message");
        if let MessageState::Filing(to) = message.fate
            && (mailbox != message.mailbox || message.uid != Some(uid))
        {
            assert_eq!(to, mailbox, "a message was moved to another mailbox");
            (message.mailbox, message.uid) = (mailbox, None);
        }
        assert_eq!(message.mailbox, mailbox, "a message changed its mailbox");
        let highest = account.highest_uids.entry(mailbox).or_default();
        match message.uid {
            Some(known) => assert_eq!(known, uid, "a message changed its UID"),
            None => {
                assert!(uid.0 > *highest, "UID {uid:?} after {highest}");
                *highest = uid.0;
                message.uid = Some(uid);
            }
        }
        token
    }

    /// Lets the disk fail writes, flushes or both for a while.
    pub(super) fn disk_fails(&mut self, turns: u64) {
        let failing = 1 + self.dice.below(3);
        (self.rig.disk.fail_flushes, self.rig.disk.fail_writes) =
            (failing & 1 == 1, failing & 2 == 2);
        self.has_failed = true;
        for _ in 0..self.dice.below(turns) {
            self.act();
        }
        (self.rig.disk.fail_flushes, self.rig.disk.fail_writes) = (false, false);
    }

    /// Retries the disk until the store serves. From then on refused changes are absent, and do not
    /// come back.
    pub(super) fn serve_again(&mut self) {
        while self.dice.one_in(3) {
            self.rig.store.retry();
            self.disk_fails(12);
        }
        self.rig.settle();
        self.rig.store.retry();
        self.rig.settle();
        self.take_outcomes();
        assert!(self.waiting.is_empty(), "an operation has no outcome");
        for stream in core::mem::take(&mut self.streams) {
            self.rig.at(self.accounts[stream.to[0]].id).abort(stream.id);
        }
        self.rig.settle();
        self.rig.outcomes.clear();
        self.has_failed = false;
        assert!(self.rig.all_serve());
        assert_eq!(self.rig.pinned_pages(), 0, "an ended operation keeps its pages");
        self.check();
    }

    pub(super) fn cut(mut self) -> World {
        self.cuts += 1;
        self.has_failed = false;
        let mut rig = self.rig;
        if rig.cores > 1 {
            // The number of cores is different each time.
            rig.cores = 2 + self.dice.below(7) as u8;
        }
        while self.dice.one_in(3) {
            rig.disk.is_to_be_converted = self.dice.one_in(2);
            rig = rig.cut_while_opening(Cut::Dice);
            for _ in 0..self.dice.below(30) {
                rig.turn(1);
            }
        }
        self.rig = rig.cut(Cut::Dice);
        self.waiting.clear();
        self.streams.clear();
        self.rig.outcomes.clear();
        self.check();
        self
    }

    /// Checks everything after a restart. Afterwards the result of each unacknowledged change is
    /// known.
    fn check(&mut self) {
        assert!(self.rig.serving(), "{:?}", self.rig.store.state());
        for number in 0..self.accounts.len() {
            let id = self.accounts[number].id;
            let known = self.rig.at(id).account(id).unwrap();
            assert_eq!(known.address(), self.accounts[number].address);
            let password = String::from(known.password_hash());
            assert!(self.accounts[number].passwords.contains(&password));
            let first = "secret";
            let proof =
                if password == first { String::new() } else { format!("proof of {password}") };
            assert_eq!(known.verifier(), proof, "the verifier belongs to another password");
            assert_eq!(known.replaced(), if password == first { "" } else { first });
            let notes: Notes =
                known.notes().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
            let may_be = &mut self.accounts[number].notes;
            assert!(
                may_be.iter().any(|(_, may_be)| *may_be == notes),
                "notes that were not made, or only in part"
            );
            *may_be = alloc::vec![(0, notes)];
            self.accounts[number].passwords = alloc::vec![password];
            let mut seen = BTreeSet::new();
            let all = MAILBOXES.map(|mailbox| {
                self.rig.list_in(id, mailbox).into_iter().map(move |one| (mailbox, one))
            });
            for (mailbox, message) in all.into_iter().flatten() {
                let octets = self.rig.read_in(id, mailbox, &message).unwrap();
                let token = self.saw(number, mailbox, message.uid, &octets);
                assert!(seen.insert(token), "a message is there twice");
                let known = self.accounts[number].messages.get_mut(&token).unwrap();
                assert!(known.fate != MessageState::Gone, "a removed message came back");
                assert!(
                    known.flags.contains(&message.flags.0),
                    "{:?} has {:?}",
                    known.flags,
                    message.flags
                );
                known.flags = alloc::vec![message.flags.0];
                known.fate = MessageState::There;
            }
            let counted = BUILT_IN
                .map(|(mailbox, _)| mailbox)
                .into_iter()
                .filter(|mailbox| *mailbox != OUTBOX);
            let octets: u64 = counted
                .flat_map(|mailbox| self.rig.list_in(id, mailbox))
                .map(|one| u64::from(one.octets))
                .sum();
            assert_eq!(
                octets,
                self.rig.at(id).usage(id).mailboxes,
                "the usage of an account is wrong"
            );
            for mailbox in MAILBOXES {
                let info = self.rig.at(id).mailbox(id, mailbox).unwrap();
                let highest =
                    self.accounts[number].highest_uids.get(&mailbox).copied().unwrap_or(0);
                assert!(info.uid_next.0 > highest, "UIDNEXT fell");
                let unseen = self
                    .rig
                    .list_in(id, mailbox)
                    .iter()
                    .filter(|one| !one.flags.contains(Flags::SEEN))
                    .count();
                assert_eq!(info.unseen as usize, unseen);
            }
            for (token, message) in &mut self.accounts[number].messages {
                if !seen.contains(token) {
                    assert!(
                        message.fate != MessageState::There,
                        "message {token} of {} octets is lost",
                        message.length
                    );
                    message.fate = MessageState::Gone;
                }
            }
        }
    }
}

/// The notes after these changes.
fn noted(before: &Notes, changes: &[NoteChange]) -> Result<Notes, Refusal> {
    let (mut after, mut is_changed) = (before.clone(), false);
    for change in changes {
        is_changed |= match change {
            NoteChange::Put(key, value) => {
                after.insert(key.to_vec(), value.to_vec());
                true
            }
            NoteChange::Replace(key, value) => {
                after.get_mut(&**key).map(|known| *known = value.to_vec()).is_some()
            }
            NoteChange::Remove(key) => after.remove(&**key).is_some(),
        };
    }
    let bytes: usize = after.iter().map(|(key, value)| key.len() + value.len()).sum();
    match is_changed {
        false => Err(Refusal::NoSuchNote),
        true if after.len() > NOTES_MAX || bytes > NOTES_BYTES_MAX => Err(Refusal::TooMany),
        true => Ok(after),
    }
}

/// The number of lives of each kind, so that a test takes a few seconds.
const LIVES: u64 = if cfg!(debug_assertions) { 12 } else { 100 };

/// Runs a store through `cuts` power cuts. Returns the number of cuts, and how often the disk was
/// full.
pub(super) fn live(seed: u64, bytes: u64, accounts: usize, cuts: u32) -> (u32, u32) {
    live_on(1, seed, bytes, accounts, cuts)
}

/// As [`live`], with shards owned by `cores` cores.
fn live_on(cores: u8, seed: u64, bytes: u64, accounts: usize, cuts: u32) -> (u32, u32) {
    let mut world = World::new(seed, bytes, accounts);
    if cores > 1 {
        world.rig.cores = cores;
        world = world.cut();
    }
    while world.cuts < cuts {
        for _ in 0..world.dice.below(60) {
            world.act();
        }
        world = world.cut();
    }
    let report = world.rig.fsck();
    assert!(report.refused.is_none() && report.accounts.len() == accounts, "{report}");
    (world.cuts, world.full)
}

#[test]
fn all_promises_hold_after_any_power_cut() {
    let mut cuts = 0;
    for seed in 0..LIVES {
        cuts += live(seed, 4 << 20, 1 + seed as usize % 4, 40).0;
    }
    assert_eq!(u64::from(cuts), LIVES * 40);
}

#[test]
fn all_promises_hold_after_power_cuts_on_a_nearly_full_disk() {
    let mut full = 0;
    for seed in 1000..1000 + LIVES {
        full += live(seed, 3 << 19, 1 + seed as usize % 3, 40).1;
    }
    assert!(u64::from(full) > LIVES * 2, "the disk was full only {full} times");
}

/// With this seed, power cuts end checkpoints before they are complete. With a reserve that counted
/// the largest checkpoint only once, no segment would be free in the end, and deletions would fail.
#[test]
fn deletions_find_space_after_cuts_amid_checkpoints() {
    live(1_006_275, 3 << 19, 2, 40);
}

#[test]
fn all_promises_hold_after_power_cuts_with_several_owners() {
    for seed in 2000..2000 + LIVES {
        live_on(2, seed, 6 << 20, 1 + seed as usize % 8, 30);
    }
}

/// A disk that is nearly full when it is opened has one owner. Here the disk is empty when it is
/// opened, and several cores fill it.
#[test]
fn all_promises_hold_after_power_cuts_on_a_full_shared_disk() {
    let (mut full, mut shared) = (0, 0);
    for seed in 3000..3000 + LIVES {
        let mut world = World::new(seed, 5 << 20, 2 + seed as usize % 4);
        for _ in 0..4 {
            world.rig.cores = 2;
            world = world.cut();
            shared += u64::from(world.rig.owners.count() > 1);
            world.fill();
            for _ in 0..world.dice.below(100) {
                world.act();
            }
            world = world.cut();
            world.empty();
        }
        full += world.full;
    }
    assert!(
        shared > LIVES && u64::from(full) > LIVES * 4,
        "{shared} times several owners, {full} times full"
    );
}
