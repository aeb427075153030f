//! Checks after every event that each message that a machine has acknowledged is in its indexes.
//!
//! The room reads the stores of a serving machine in place, without a client. An index identifies a
//! message by its GUID. The octets on the disk show which message of the room has that GUID. When
//! the state of a mailbox has changed, the room reads the mailbox again, and checks all messages of
//! its account. A message about which a client has got a response is checked at once.
//!
//! Invariants, for messages without bad sectors:
//! - A message that a client knows to be stored is in one of the possible mailboxes of its account.
//! - A message that was refused, deleted or never sent completely is in no mailbox.
//! - The queue shows a message that was accepted for another server, until each recipient has it or
//!   is named in a stored report.
//! - The counters of a mailbox match its list, and those of an account match the sum. A
//!   conversation contains each message that refers to it.

use std::collections::BTreeMap;

use store::{AccountId, Flags, MailboxInfo, MessageInfo, OUTBOX, Store, Uid};

use super::departure::SendState;
use super::fixture::{ACCOUNTS, AT_WEBMAIL};
use super::layout::{OCTETS_FROM, PAGE, PAGE_BYTES};
use super::message::{CopyState, MessageId, OWN};
use super::model::Model;
use super::naming::{MessageName, named_in};
use super::station::Station;
use crate::{Engines, MemoryDisk};

/// The turns that a core needs to find the outbox entries of earlier lives.
const TURNS_TO_FIND_ENTRIES: u32 = 4;

/// The contents of a machine's indexes.
#[derive(Default)]
pub(super) struct IndexCheck {
    /// The life of the machine in which the indexes were read.
    life: Option<u64>,
    accounts: [ListedAccount; ACCOUNTS.len()],
}

#[derive(Default)]
struct ListedAccount {
    /// The core that owns the account, and the account's id there.
    owner: Option<(u8, AccountId)>,
    /// The number of turns of the owner in this life, since the machine began to serve.
    turns: u32,
    mailboxes: BTreeMap<u32, ListedMailbox>,
    /// The message of the room for each number of the store. If the disk has chunks of several
    /// lives under one number, the entry has all possible messages.
    names: BTreeMap<u64, Vec<MessageName>>,
    /// The mailboxes and UIDs of each message.
    places: BTreeMap<MessageName, Vec<ListedPlace>>,
}

/// One occurrence of a message in an account.
#[derive(Clone, Copy, Debug)]
struct ListedPlace {
    mailbox: u32,
    uid: Uid,
    /// Whether it is certain that this message has this mailbox and UID. Otherwise several messages
    /// are possible.
    is_sure: bool,
}

struct ListedMailbox {
    info: MailboxInfo,
    messages: Vec<MessageInfo>,
}

impl IndexCheck {
    /// Checks, after an event, that the machine still holds the messages that clients got responses
    /// about. `core`: the core of this machine that had a turn. `None`: the event was not a turn of
    /// this machine.
    pub(super) fn check(&mut self, station: &Station, model: &mut Model, core: Option<u8>) {
        let touched = std::mem::take(&mut model.touched);
        if !station.is_on() || station.ended().is_some() {
            self.life = None;
            return;
        }
        let is_new = self.life != Some(station.life);
        if is_new && !(station.is_serving() && self.begin(station)) {
            return;
        }
        for account in 0..ACCOUNTS.len() {
            let owner = self.accounts[account].owner;
            let has_turned = is_new || owner.is_some_and(|(owner, _)| core == Some(owner));
            self.accounts[account].turns += u32::from(has_turned);
            if has_turned
                && self.accounts[account].read_changes(&station.engines, &station.machine.disk)
            {
                self.accounts[account].update_reports(account, model);
                self.accounts[account].update_departures(account, model);
                (0..model.messages.len())
                    .for_each(|message| self.check_listed(MessageId(message), account, model));
            }
        }
        for message in touched {
            (0..ACCOUNTS.len()).for_each(|account| self.check_listed(message, account, model));
        }
        for posted in model.posted_waiting() {
            self.check_queued(posted, model, &station.engines);
        }
    }

    /// Begins to read the indexes of a serving machine, once each account has a core. Returns
    /// whether it has begun.
    fn begin(&mut self, station: &Station) -> bool {
        let mut listing = IndexCheck { life: Some(station.life), ..IndexCheck::default() };
        for (name, account) in ACCOUNTS.iter().zip(&mut listing.accounts) {
            let found = |core| {
                let mut accounts = station.engines.of(core).store().accounts();
                accounts
                    .find(|account| account.address() == *name)
                    .map(|account| (core, account.id()))
            };
            let mut owners = station.cores().filter_map(found);
            account.owner = owners.next();
            assert!(owners.next().is_none(), "only one core has the mail of {name}");
        }
        let has_all = listing.accounts.iter().all(|account| account.owner.is_some());
        if has_all {
            *self = listing;
        }
        has_all
    }

    /// Whether the machine is being checked. Each serving machine must be.
    pub(super) fn is_checking(&self) -> bool {
        self.life.is_some()
    }

    /// A mailbox of an account, according to the index.
    pub(super) fn mailbox(&self, account: usize, mailbox: u32) -> Option<&MailboxInfo> {
        self.accounts[account].mailboxes.get(&mailbox).map(|mailbox| &mailbox.info)
    }

    /// Checks that the index of this account lists a message in a possible mailbox, or not at all
    /// if the message must not exist.
    fn check_listed(&self, id: MessageId, account: usize, model: &Model) {
        let message = &model.messages[id.0];
        let name = message.report.map_or(MessageName::Local(id.0), MessageName::Report);
        let places = self.accounts[account].places.get(&name).map_or(&[][..], |places| &places[..]);
        let copies = [account, OWN].into_iter().take(if account == AT_WEBMAIL { 2 } else { 1 });
        for copy in copies.filter(|_| !message.is_harmed) {
            let filed = places.iter().filter(|place| place.mailbox != OUTBOX.0);
            let mut own = filed.filter(|place| model.copy_in(id, account, place.mailbox) == copy);
            let known = &message.copies[copy];
            match known.fate {
                CopyState::Present => {
                    let is_there = own.any(|place| known.place.may_be(&place.mailbox));
                    assert!(
                        is_there,
                        "message {} was accepted for {account}, and is listed in {places:?}",
                        id.0
                    );
                }
                CopyState::Absent | CopyState::Deleted(_) => {
                    let is_there = own.any(|place| place.is_sure);
                    assert!(
                        !is_there,
                        "message {} is {:?}, and is listed in {places:?}",
                        id.0, known.fate
                    );
                }
                CopyState::PerhapsDelivered | CopyState::PerhapsDeleted => {}
            }
        }
    }

    /// Checks that a message for another server is in an outbox, and that the queue shows it.
    fn check_queued(&self, number: usize, model: &Model, engines: &Engines) {
        let posted = model.posted.get(number);
        let account = &self.accounts[posted.sender];
        let entries = account.places.get(&posted.name()).map_or(&[][..], |places| &places[..]);
        let is_shown = |place: &ListedPlace| {
            let owner = account.owner.filter(|_| place.mailbox == OUTBOX.0);
            owner.is_some_and(|(core, account)| engines.of(core).is_in_queue(account, place.uid))
        };
        let is_queued = entries.iter().any(is_shown)
            || !entries.is_empty() && account.turns < TURNS_TO_FIND_ENTRIES;
        assert!(
            is_queued,
            "message {number} was accepted for another server, and is in no queue: {entries:?}"
        );
    }
}

impl ListedAccount {
    /// Reads the mailboxes that have changed. Returns whether any has.
    fn read_changes(&mut self, engines: &Engines, disk: &MemoryDisk) -> bool {
        let Some((core, id)) = self.owner else { return false };
        let store = engines.of(core).store();
        let Some(known) = store.account(id) else { return false };
        let mut has_changed = false;
        let mut octets = 0;
        for (number, _) in known.mailboxes() {
            let Some(info) = store.mailbox(id, number) else { continue };
            octets += if number == OUTBOX { 0 } else { info.octets };
            if self.mailboxes.get(&number.0).is_none_or(|mailbox| mailbox.info != info) {
                let messages = store.messages(id, number).collect();
                let mailbox = ListedMailbox { info, messages };
                mailbox.check_counters(store, id, number.0);
                self.mailboxes.insert(number.0, mailbox);
                has_changed = true;
            }
        }
        if has_changed {
            assert_eq!(
                known.taken(),
                octets,
                "the octets of an account are the sum of its mailboxes"
            );
            self.identify(id, disk);
        }
        has_changed
    }

    /// Tells the model which reports are in the index.
    fn update_reports(&self, account: usize, model: &mut Model) {
        for (name, places) in &self.places {
            if let MessageName::Report(of) = name {
                let places: Vec<(u32, u32)> =
                    places.iter().map(|place| (place.mailbox, place.uid.0)).collect();
                model.report_listed(*of, account, &places);
            }
        }
    }

    /// Tells the model which webmail messages have left. By then the outbox has accepted the
    /// message for the other server.
    fn update_departures(&self, account: usize, model: &mut Model) {
        for (mailbox, listed) in self.mailboxes.iter().filter(|(mailbox, _)| **mailbox != OUTBOX.0)
        {
            for message in &listed.messages {
                let Some([MessageName::Local(id)]) =
                    self.names.get(&number_of(message)).map(|names| &names[..])
                else {
                    continue;
                };
                let (id, send_state) = (MessageId(*id), SendState::of(*mailbox, message.flags));
                let is_own = account == AT_WEBMAIL && model.copy_in(id, account, *mailbox) == OWN;
                if is_own && matches!(send_state, SendState::Left | SendState::Sent) {
                    model.posted.message_answered(id, true);
                }
            }
        }
    }

    /// Identifies the listed messages, and records the mailbox and UID of each.
    fn identify(&mut self, id: AccountId, disk: &MemoryDisk) {
        let listed = self.mailboxes.values().flat_map(|mailbox| &mailbox.messages);
        let mut unknown: Vec<u64> =
            listed.map(number_of).filter(|number| !self.names.contains_key(number)).collect();
        unknown.sort_unstable();
        if !unknown.is_empty() {
            read_names(disk, id, &unknown, &mut self.names);
        }
        self.places.clear();
        for (mailbox, listed) in &self.mailboxes {
            for message in &listed.messages {
                let names = self.names.get(&number_of(message)).map_or(&[][..], |names| &names[..]);
                let place =
                    ListedPlace { mailbox: *mailbox, uid: message.uid, is_sure: names.len() == 1 };
                names.iter().for_each(|name| self.places.entry(*name).or_default().push(place));
            }
        }
    }
}

impl ListedMailbox {
    fn check_counters(&self, store: &Store, account: AccountId, number: u32) {
        let ListedMailbox { info, messages } = self;
        let unseen = messages.iter().filter(|message| !message.flags.contains(Flags::SEEN)).count();
        let octets: u64 = messages.iter().map(|message| u64::from(message.octets)).sum();
        let counted = (info.messages as usize, info.unseen as usize, info.octets);
        assert_eq!(
            counted,
            (messages.len(), unseen, octets),
            "the counters of a mailbox match its list"
        );
        assert!(
            messages.is_sorted_by(|one, next| one.uid < next.uid),
            "UIDs are in increasing order"
        );
        assert!(
            messages.last().is_none_or(|last| last.uid < info.uid_next),
            "the next message gets a larger UID"
        );
        for message in messages {
            let mut all = store.conversation(account, message.conversation);
            let is_in = all.any(|(mailbox, uid)| mailbox.0 == number && uid == message.uid);
            assert!(is_in, "a conversation contains each message that refers to it");
        }
    }
}

/// The store's number of a message: the lower half of its GUID.
fn number_of(message: &MessageInfo) -> u64 {
    message.guid.0 as u64
}

/// Reads from the disk which messages have these numbers of the store. Only the first chunk of a
/// body identifies its message.
fn read_names(
    disk: &MemoryDisk,
    account: AccountId,
    numbers: &[u64],
    names: &mut BTreeMap<u64, Vec<MessageName>>,
) {
    for page in 0..disk.sectors() / PAGE {
        let head = disk.held(page * PAGE);
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| head[at + byte]));
        let is_first = head.get(16..20) == Some(b"BODY") && head[48..52] == [0; 4];
        if !is_first || word(32) != account.to_bits() || numbers.binary_search(&word(40)).is_err() {
            continue;
        }
        let sectors = page * PAGE..(page + u64::from(head[21])) * PAGE;
        let mut bytes = Vec::with_capacity(PAGE_BYTES * usize::from(head[21]));
        sectors.for_each(|sector| bytes.extend_from_slice(disk.held(sector).as_slice()));
        let length = u32::from_le_bytes(std::array::from_fn(|byte| head[52 + byte])) as usize;
        let octets = &bytes[OCTETS_FROM..(OCTETS_FROM + length).min(bytes.len())];
        let known = names.entry(word(40)).or_default();
        known.extend(named_in(octets).filter(|name| !known.contains(name)));
    }
}
