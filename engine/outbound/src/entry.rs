//! Entries: what an outbox holds. How they are made is in `accounts::entries`.
//!
//! An entry's body begins with what signs the letter (`signing`), if that is signed, then come the fields of the envelope (`relay::envelope`), and behind them stands the letter as it leaves. Which of the envelope's recipients an entry stands for, and how far it has
//! come, says its record ([`store::OutboxEntry`]). A message without a record was found by a
//! rebuild: it may have left before, so it stays.

use alloc::vec::Vec;

use accounts::entries::together;
use machine::Instant;
use relay::Envelope;
use relay::loops::Mark;
use store::{EntrySource, EntryState, OUTBOX, OutboxEntry, Packing, Store};

use super::Place;
use super::standing::State;

/// Recipients that an entry stands for at most.
pub(super) const RECIPIENTS: usize = Packing::Done.recipients_max();

/// How a letter is in an outbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Nature {
    /// In an envelope: it leaves.
    Posted,
    /// As it came, for an account that forwards its mail with this mark.
    Arrived(Mark),
    /// The same; and it has been here before.
    ComesBack,
}

/// What an entry holds.
pub(super) struct Entry {
    pub(super) envelope: Envelope,
    /// Where the letter goes on below its signatures.
    pub(super) letter_at: u32,
    pub(super) nature: Nature,
    /// The number of the first recipient for whom it stands, and the bits of all of them.
    pub(super) first: usize,
    pub(super) wanted: u16,
    /// What its record says of each of them.
    pub(super) packing: Packing,
    /// The letter's header, or its beginning.
    pub(super) header: Vec<u8>,
}

/// Whether it came in for an account that forwards its mail.
pub(super) fn is_arriving(record: Option<OutboxEntry>) -> bool {
    record.is_some_and(|record| record.source() == EntrySource::Forwarded)
}

/// The recipients that an entry stands for. A lost entry may stand for any recipient of its envelope.
pub(super) fn recipients(envelope: &Envelope, record: Option<OutboxEntry>) -> &[relay::Recipient] {
    let Some(record) = record else { return &envelope.recipients };
    let all = envelope.recipients.get(record.first()..).unwrap_or_default();
    all.get(..together(envelope, record.first())).unwrap_or_default()
}

/// What is to become of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// It is to leave.
    Leaves,
    /// The same, when an administrator releases it.
    Held,
    /// Nobody gets it any more, and who sent it is to hear so.
    GivenBack,
    /// A rebuild has found it: how far it had come is not known.
    Lost,
}

/// What is to be done with an entry that has this record.
pub(super) fn fate(record: Option<OutboxEntry>) -> Fate {
    match record.map(|record| record.state()) {
        Some(EntryState::Queued) => Fate::Leaves,
        Some(EntryState::Held) => Fate::Held,
        Some(EntryState::Returned) => Fate::GivenBack,
        None => Fate::Lost,
    }
}

/// The same of the message in this place; `None`: there is none.
pub(super) fn fate_in(store: &Store, (account, uid): Place) -> Option<Fate> {
    store.message(account, OUTBOX, uid).map(|_| fate(store.outbox_entry(account, uid)))
}

impl Fate {
    /// How it stands with such an entry that nobody has, and that is due then if it is not held.
    pub(super) fn state(self, due: Instant) -> State {
        match self {
            Fate::Leaves | Fate::GivenBack => State::Waits(due),
            Fate::Held => State::Held,
            Fate::Lost => State::LeftAlone,
        }
    }
}
