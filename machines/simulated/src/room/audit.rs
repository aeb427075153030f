//! Reads the contents of a disk with a separate store that runs without faults.
//!
//! The audit reads a copy of the disk. The machine itself recovers from the original disk later,
//! and may lose power again before it has recovered.

use std::collections::BTreeMap;

use machine::UnixTime;
use message::Summary;
use server::Sizes;
use store::{
    ARRIVALS_MAX, AccountId, Damage, DiskSpace, Flags, Guid, INBOX, MailboxId, MailboxInfo,
    MessageInfo, Outcome, Recipient, Refusal, SentId, State, Store,
};
use tasks::{Continuation, EntryPoint, FrameId};

use super::departure::SendState;
use super::fixture::ACCOUNTS;
use super::layout::CHUNK_OCTETS;
use super::message::FoundMessage;
use super::model::Model;
use crate::{MemoryDisk, Mood};

/// The audit panics if the store has not opened after this many steps.
const STEPS_MAX: usize = 200_000;

/// Opens a copy of `disk` and checks its contents against `model`. Panics if the store finds a
/// damaged journal block. `seed`: the start of the store's key. Returns the free and used space.
pub(super) fn audit(disk: &MemoryDisk, model: &mut Model, seed: u64) -> DiskSpace {
    // Mishaps are off, so that the audit reports the true contents.
    sometimes::pause();
    let mut reading = DiskReader::open(disk, seed);
    let found: Vec<Vec<FoundMessage>> =
        ACCOUNTS.into_iter().map(|name| reading.account(name)).collect();
    model.audit_all(found);
    sometimes::resume();
    reading.store.space()
}

/// The summaries of the messages in an account's inbox, read from a copy of `disk`.
pub fn summaries_on(disk: &MemoryDisk, account: &str) -> Vec<Summary> {
    let mut reading = DiskReader::open(disk, 0);
    let account = reading.store.find(account).expect("the account exists");
    let messages: Vec<MessageInfo> = reading.store.messages(account, INBOX).collect();
    messages.iter().map(|message| reading.summary(account, INBOX, message)).collect()
}

/// The messages in an account's mailboxes, each with its mailbox number, read from a copy of
/// `disk`.
pub fn messages_on(disk: &MemoryDisk, account: &str) -> Vec<(u32, Vec<u8>)> {
    let found = DiskReader::open(disk, 0).account(account);
    found.into_iter().map(|found| (found.mailbox, found.message)).collect()
}

/// A mailbox of an account on a disk.
pub struct Mailbox {
    /// The number of the mailbox.
    pub id: MailboxId,
    /// The name of the mailbox.
    pub name: String,
    /// The counters of the mailbox.
    pub info: MailboxInfo,
    /// The messages of the mailbox, each with its octets.
    pub messages: Vec<(MessageInfo, Vec<u8>)>,
}

/// The contents of an account on a disk.
pub struct Contents {
    /// The mailboxes of the account.
    pub mailboxes: Vec<Mailbox>,
    /// The keys and values of the account's notes.
    pub notes: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The contents of an account, read from a copy of `disk`.
pub fn contents_on(disk: &MemoryDisk, account: &str) -> Contents {
    let mut reading = DiskReader::open(disk, 0);
    let id = reading.store.find(account).expect("the account exists");
    let known = reading.store.account(id).expect("the account exists");
    let notes = known.notes().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
    let names: Vec<(MailboxId, String)> =
        known.mailboxes().map(|(id, name)| (id, name.to_string())).collect();
    let mailboxes = names.into_iter().map(|(mailbox, name)| {
        let info = reading.store.mailbox(id, mailbox).expect("the mailbox exists");
        let messages: Vec<MessageInfo> = reading.store.messages(id, mailbox).collect();
        let with_octets = |message: MessageInfo| {
            let octets = reading.octets("a message", (id, mailbox), &message);
            (message, octets)
        };
        Mailbox {
            id: mailbox,
            name,
            info,
            messages: messages.into_iter().map(with_octets).collect(),
        }
    });
    Contents { mailboxes: mailboxes.collect(), notes }
}

/// Returns a copy of `disk` with one more message, which has these flags and keywords.
pub fn with_message(
    disk: &MemoryDisk,
    (account, mailbox): (&str, MailboxId),
    (flags, keywords): (Flags, u16),
    octets: &[u8],
) -> MemoryDisk {
    let mut reading = DiskReader::open(disk, 0);
    reading.store.summarize_with(shards::SUMMARIZER);
    let account = reading.store.find(account).expect("the account exists");
    let recipient = Recipient { mailbox, flags, keywords, ..Recipient::inbox(account) };
    reading.deliver(recipient, octets);
    reading.disk
}

/// Returns a copy of `disk` on which a mailbox has [`ARRIVALS_MAX`] arrival notes. The mailbox
/// takes no other message with an arrival note until one of these notes is forgotten.
pub fn with_all_arrivals(disk: &MemoryDisk, (account, mailbox): (&str, MailboxId)) -> MemoryDisk {
    let mut reading = DiskReader::open(disk, 0);
    reading.store.summarize_with(shards::SUMMARIZER);
    let account = reading.store.find(account).expect("the account exists");
    for number in 0..ARRIVALS_MAX {
        let once = Some(SentId::of(account, Guid(1 << 100 | number as u128)));
        let recipient = Recipient { mailbox, once, ..Recipient::inbox(account) };
        reading.deliver(recipient, b"Subject: Arrived\r\n\r\n");
    }
    reading.disk
}

/// The number of arrivals that are noted for an account on a disk.
///
/// # Panics
///
/// If the disk cannot be opened, or the account does not exist.
pub fn noted_arrivals(disk: &MemoryDisk, account: &str) -> usize {
    let reading = DiskReader::open(disk, 0);
    let account = reading.store.find(account).expect("the account exists");
    ARRIVALS_MAX - reading.store.arrivals_left(account)
}

/// A store on a copy of a disk.
struct DiskReader {
    store: Store,
    disk: MemoryDisk,
    /// The outcomes of the store's requests, by number.
    outcomes: BTreeMap<usize, Outcome>,
    /// The number of read requests so far.
    requests: u32,
}

impl DiskReader {
    /// Delivers a message with a fixed arrival time.
    fn deliver(&mut self, recipient: Recipient, octets: &[u8]) {
        let delivery = self.store.begin(&[recipient]).expect("the result fits");
        let continuation = Continuation { frame: FrameId::new(0, 0), entry: EntryPoint(0) };
        assert_eq!(self.store.append(delivery, octets, continuation), Ok(octets.len()));
        self.store
            .commit(delivery, UnixTime::from_seconds(1_234_567_890), continuation)
            .expect("the message is complete");
        while self.outcomes.is_empty() {
            self.step();
        }
        assert!(matches!(self.outcomes.remove(&0), Some(Outcome::Delivered)));
    }

    fn open(disk: &MemoryDisk, seed: u64) -> DiskReader {
        let mut disk = disk.truth();
        disk.mood = Mood::Works;
        let sizes = Sizes {
            connections: 8,
            transactions: 4,
            blocks: 8,
            buffer_bytes: 1 << 20,
            index_bytes: 1 << 24,
        };
        let limits = store::Limits {
            deliveries: sizes.transactions,
            recipients: 4,
            reads: 4,
            buffer_bytes: sizes.buffer_bytes,
            resident_bytes: sizes.index_bytes,
        };
        let mut key = [7; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let store = Store::new(limits, disk.describe(), key);
        let mut reading = DiskReader { store, disk, outcomes: BTreeMap::new(), requests: 0 };
        let mut steps = 0;
        while reading.store.state() == State::Opening {
            reading.step();
            steps += 1;
            assert!(steps < STEPS_MAX, "the store never opens");
        }
        assert_eq!(reading.store.state(), State::Serving, "the store serves after a power cut");
        let findings = reading.store.findings();
        assert!(
            findings.iter().all(|one| one.damage != Damage::JournalBlock),
            "a power cut has damaged journal blocks: {findings:?}"
        );
        reading
    }

    fn step(&mut self) {
        while let Some(request) = self.store.next_request() {
            if let Err(request) = self.disk.request(request) {
                self.store.request_refused(request);
                break;
            }
        }
        self.disk.work();
        while let Some(completion) = self.disk.completed() {
            self.store.disk_completed(completion);
        }
        while let Some(wake) = self.store.next_wake() {
            self.outcomes.insert(wake.continuation.frame.index(), wake.outcome);
        }
        self.store.turn_ended();
    }

    /// The messages of an account in the order of its mailboxes. Empty if the account does not
    /// exist.
    fn account(&mut self, name: &str) -> Vec<FoundMessage> {
        let Some(account) = self.store.find(name) else { return Vec::new() };
        let known = self.store.account(account);
        let mailboxes: Vec<MailboxId> =
            known.iter().flat_map(|known| known.mailboxes()).map(|(id, _)| id).collect();
        mailboxes.into_iter().flat_map(|mailbox| self.mailbox(name, account, mailbox)).collect()
    }

    fn mailbox(&mut self, name: &str, account: AccountId, id: MailboxId) -> Vec<FoundMessage> {
        let Some(mailbox) = self.store.mailbox(account, id) else { return Vec::new() };
        let messages: Vec<MessageInfo> = self.store.messages(account, id).collect();
        let mut found = Vec::new();
        for message in messages {
            assert!(message.uid < mailbox.uid_next, "the next message gets a larger UID");
            let unique_id = format!("{:08x}{:08x}", mailbox.uid_validity, message.uid.0);
            let what = format!("message {unique_id} of {name} in {}", id.0);
            let octets = self.octets(&what, (account, id), &message);
            let summary = self.summary(account, id, &message);
            assert_eq!(summary, expected_summary(&octets, message.head as usize), "{what}");
            if summary.conversation != 0 {
                assert_eq!(message.conversation, summary.conversation, "{what}");
            }
            let is_starred = message.flags.contains(Flags::FLAGGED);
            let send_state = SendState::of(id.0, message.flags);
            found.push(FoundMessage {
                mailbox: id.0,
                unique_id,
                is_starred,
                send_state,
                message: octets,
            });
        }
        found
    }

    fn octets(
        &mut self,
        what: &str,
        (account, id): (AccountId, MailboxId),
        message: &MessageInfo,
    ) -> Vec<u8> {
        let mut octets = Vec::new();
        while octets.len() < message.octets as usize {
            let offset = octets.len() as u32;
            let read = |store: &mut Store, continuation| {
                store.read(account, id, message.uid, offset, continuation)
            };
            octets.extend_from_slice(&self.bytes(what, read));
        }
        octets
    }

    fn summary(
        &mut self,
        account: AccountId,
        mailbox: MailboxId,
        message: &MessageInfo,
    ) -> Summary {
        let read = |store: &mut Store, continuation| {
            store.read_summary(account, mailbox, message.uid, continuation)
        };
        let bytes = self.bytes(&format!("the summary of {:?}", message.uid), read);
        Summary::read(&bytes).expect("a message has a summary")
    }

    /// Reads the bytes that `read` requests. `what` describes them in panics.
    fn bytes(
        &mut self,
        what: &str,
        read: impl FnOnce(&mut Store, Continuation) -> Result<(), Refusal>,
    ) -> Vec<u8> {
        self.requests += 1;
        let continuation =
            Continuation { frame: FrameId::new(self.requests, 0), entry: EntryPoint(0) };
        assert_eq!(read(&mut self.store, continuation), Ok(()), "{what}");
        let outcome = loop {
            self.step();
            if let Some(outcome) = self.outcomes.remove(&(self.requests as usize)) {
                break outcome;
            }
        };
        let Outcome::Body(body) = outcome else { panic!("{what}: {outcome:?}") };
        let bytes = body.bytes().to_vec();
        self.store.give_back(body);
        bytes
    }
}

/// The summary that the store must have made of a message with a head of this many octets. The
/// store has written the head after all other octets, and has read the message chunk by chunk.
/// After each chunk that does not complete the header, it has shortened the header.
fn expected_summary(octets: &[u8], head: usize) -> Summary {
    let (head, below_head) = octets.split_at(head);
    let written = [below_head, head].concat();
    let mut beginning = Vec::new();
    for chunk in written.chunks(CHUNK_OCTETS) {
        beginning.extend_from_slice(chunk);
        let is_last = chunk.as_ptr_range().end == written.as_ptr_range().end;
        match message::shorten_header(&beginning) {
            Some(short) if !is_last => beginning = short,
            _ if is_last => {
                beginning.truncate(beginning.len() - head.len().min(chunk.len()));
                break;
            }
            _ => break,
        }
    }
    Summary::of(&beginning)
}
