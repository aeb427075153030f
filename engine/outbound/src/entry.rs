//! Entries of an outbox. `accounts::entries` makes them.
//!
//! The body of an entry begins with the message's signatures (`signing`), if the message is signed.
//! The fields of the envelope follow (`relay::envelope`), and then the message as it is sent. The
//! record of the entry ([`store::OutboxEntry`]) says which of the envelope's recipients the entry
//! is for, and which of them are done. A message without a record was found by a rebuild of the
//! store. It may have been sent before, so it is not sent again, and stays.

use alloc::boxed::Box;
use alloc::vec::Vec;

use accounts::entries;
use machine::{Instant, UnixTime};
use message::RequiredForm;
use relay::loops::LoopMark;
use relay::report::ReportKind;
use relay::schedule::LIFETIME;
use relay::{Envelope, OutgoingMessage, OutgoingRecipient};
use store::{
    AccountId, EntrySource, EntryState, Flags, MessageInfo, OUTBOX, OutboxEntry, Packing,
    Recipient, Refusal, Store,
};

use super::Place;
use super::index::{MessageMark, State};
use super::stages::bits;

/// The most recipients of one entry.
pub(super) const RECIPIENTS: usize = Packing::Done.recipients_max();

/// The way in which the message of an entry came into the outbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EntryKind {
    /// The message is in an envelope, and is to be sent.
    Posted,
    /// The message has no envelope. It came for an account that forwards its mail. The forwarded
    /// message gets this mark, by which a loop is noticed (`relay::loops`).
    Arrived(LoopMark),
    /// As `Arrived`, but this server has forwarded the message before.
    Looped,
}

/// The content of an entry, read from its head. It does not change while an attempt has the entry.
///
/// Invariant: each recipient has a bit, which is its position in the envelope.
pub(super) struct Entry {
    account: AccountId,
    /// The envelope, with only the recipients of the entry.
    envelope: Envelope,
    kind: EntryKind,
    /// The bits of the recipients that the entry is for.
    wanted: u16,
    /// The data that the record stores for each recipient.
    packing: Packing,
    /// The message's header, or its beginning.
    header: Vec<u8>,
    /// The whole message, if it has other entries.
    message: Option<Box<WholeMessage>>,
    /// The form that other servers require and the message lacks, as far as known.
    required_form: Option<RequiredForm>,
}

/// A message that has several entries.
struct WholeMessage {
    mark: MessageMark,
    /// The envelope with the recipients of all entries.
    envelope: Envelope,
}

/// The most bytes of a message's header that a report shows.
const HEADER_BYTES_MAX: usize = 8 * 1024;

impl Entry {
    /// The entry of this account with this envelope. `message`: the beginning of the message.
    /// `mark`: makes the [`MessageMark`] from the header. `None`: the envelope does not have the
    /// recipients that the record names.
    pub(super) fn posted(
        account: AccountId,
        envelope: Envelope,
        record: Option<OutboxEntry>,
        message: &[u8],
        mark: impl FnOnce(&[u8]) -> MessageMark,
    ) -> Option<Entry> {
        // An entry without a record was found by a rebuild of the store. It stays.
        let record = record.unwrap_or(OutboxEntry::submitted(0, 0));
        let recipients = entries::recipients_of(&record, &envelope)?.to_vec();
        let packing = entries::packing_of(recipients.first()?);
        let wanted = ((1u32 << recipients.len()) - 1) as u16;
        let header = shown_header(message);
        let has_others = recipients.len() < envelope.recipients.len();
        let own = Envelope { recipients, ..envelope.clone() };
        let message = has_others.then(|| Box::new(WholeMessage { mark: mark(&header), envelope }));
        let kind = EntryKind::Posted;
        let required_form = None;
        Some(Entry {
            account,
            envelope: own,
            kind,
            wanted,
            packing,
            header,
            message,
            required_form,
        })
    }

    /// An entry for a message that came for an account which forwards its mail. `wanted`: the bits
    /// of the recipients in the envelope that get it.
    pub(super) fn arrived(
        account: AccountId,
        envelope: Envelope,
        kind: EntryKind,
        wanted: u16,
        message: &[u8],
    ) -> Entry {
        let header = shown_header(message);
        let packing = Packing::Done;
        Entry {
            account,
            envelope,
            kind,
            wanted,
            packing,
            header,
            message: None,
            required_form: None,
        }
    }

    /// The account that has the outbox.
    pub(super) fn account(&self) -> AccountId {
        self.account
    }

    pub(super) fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    pub(super) fn kind(&self) -> EntryKind {
        self.kind
    }

    /// Whether the entry has an envelope. A message that came for an account that forwards its mail
    /// has none.
    pub(super) fn is_posted(&self) -> bool {
        self.kind == EntryKind::Posted
    }

    /// The bits of all recipients that the entry is for.
    pub(super) fn all(&self) -> u16 {
        self.wanted
    }

    /// The data that the record stores for each recipient.
    pub(super) fn packing(&self) -> Packing {
        self.packing
    }

    /// The recipient that has this bit.
    pub(super) fn recipient(&self, bit: u8) -> Option<&OutgoingRecipient> {
        self.envelope.recipients.get(usize::from(bit))
    }

    /// The address of the recipient that has this bit.
    pub(super) fn address(&self, bit: u8) -> &str {
        self.recipient(bit).map_or("", |recipient| &recipient.address)
    }

    /// The form that other servers require and the message lacks.
    pub(super) fn required_form(&self) -> Option<RequiredForm> {
        self.required_form
    }

    /// Sets the form that other servers require.
    pub(super) fn set_required_form(&mut self, form: RequiredForm) {
        self.required_form = Some(form);
    }

    /// The recipient and the head of the entry that replaces this one. The new entry is for the
    /// recipients that are not done. `record`: the record of this entry.
    pub(super) fn replacement(&self, record: OutboxEntry) -> Result<(Recipient, Vec<u8>), Refusal> {
        let done = record.done(self.packing);
        let whole = self.message.as_ref().map_or(&self.envelope, |message| &message.envelope);
        let remaining = bits(self.wanted & !done).filter_map(|bit| self.recipient(bit).cloned());
        let remaining: Vec<OutgoingRecipient> = remaining.collect();
        // If all recipients remain, the entry still belongs to the whole message.
        let (envelope, first) = if done == 0 {
            (whole.clone(), record.first())
        } else {
            (Envelope { recipients: remaining.clone(), ..whole.clone() }, 0)
        };
        let mut above = Vec::new();
        relay::envelope::write(&envelope, &mut above).map_err(|_| Refusal::NoSuchMessage)?;

        let mut entry = OutboxEntry::submitted(first as u8, remaining.len() as u8);
        if record.is_delay_reported() {
            entry = entry.with_delay_reported();
        }
        let to = Recipient {
            mailbox: OUTBOX,
            flags: Flags::SEEN,
            entry: Some(entry),
            ..Recipient::inbox(self.account)
        };
        Ok((to, above))
    }

    /// The mark of the message, if it has other entries.
    pub(super) fn mark(&self) -> Option<MessageMark> {
        self.message.as_ref().map(|message| message.mark)
    }

    /// The recipients of another entry of the message. `record`: the record of that entry.
    pub(super) fn of_message(&self, record: &OutboxEntry) -> &[OutgoingRecipient] {
        let message = self.message.as_ref();
        message
            .and_then(|message| entries::recipients_of(record, &message.envelope))
            .unwrap_or_default()
    }

    /// The message's header, as far as a report shows it.
    pub(super) fn header(&self) -> &[u8] {
        &self.header
    }

    /// The message, of `octets` bytes, as a host gets it for the recipients with these bits.
    pub(super) fn for_host(&self, recipients: u16, octets: u32) -> OutgoingMessage {
        // The SMTP client identifies the recipients by their bits.
        let known = |bit: u8| {
            Some(OutgoingRecipient { number: bit.into(), ..self.recipient(bit)?.clone() })
        };
        let recipients = bits(recipients).filter_map(known).collect();
        OutgoingMessage {
            envelope: Envelope { recipients, ..self.envelope.clone() },
            bytes: octets.into(),
        }
    }

    /// The field that a local delivery puts above the message.
    pub(super) fn return_path(&self) -> Vec<u8> {
        let mut field = [0; message::RETURN_PATH_BYTES_MAX];
        let length = message::return_path(&self.envelope.reverse_path, &mut field).unwrap_or(0);
        field.get(..length).unwrap_or_default().to_vec()
    }

    /// The first time at which the message may be delivered: its arrival, or the end of its hold.
    pub(super) fn released(&self, info: MessageInfo) -> UnixTime {
        self.envelope.held_until.map_or(info.internal_date, |until| until.max(info.internal_date))
    }

    /// The kind of delay report that the sender gets.
    pub(super) fn delayed(&self, info: MessageInfo) -> ReportKind {
        ReportKind::Delayed { until: UnixTime(self.released(info).0.saturating_add(LIFETIME.0)) }
    }
}

/// Whether the beginning of a message holds as much of its header as a report shows.
pub(super) fn has_shown_header(message: &[u8]) -> bool {
    message.len() >= HEADER_BYTES_MAX || memchr::memmem::find(message, b"\r\n\r\n").is_some()
}

/// The part of a message's header that a report shows: whole lines.
fn shown_header(message: &[u8]) -> Vec<u8> {
    let end = memchr::memmem::find(message, b"\r\n\r\n").map_or(message.len(), |at| at + 2);
    let header = message.get(..end.min(HEADER_BYTES_MAX)).unwrap_or_default();
    header.get(..memchr::memrchr(b'\n', header).map_or(0, |at| at + 1)).unwrap_or_default().to_vec()
}

/// The result of opening an entry by its beginning.
pub(super) enum OpenedEntry {
    /// More of the entry must be read.
    Partial,
    /// The entry can be used. `signatures`: the number of bytes at the beginning that are the
    /// message's signatures. `message_at`: the offset of the rest of the message.
    Whole { entry: Entry, signatures: usize, message_at: u32 },
    /// The recipients cannot be read from the entry.
    Unreadable,
    /// The account of the entry is gone, and the entry with it.
    Gone,
}

/// Whether the message came for an account that forwards its mail.
pub(super) fn is_forwarding_entry(record: Option<OutboxEntry>) -> bool {
    record.is_some_and(|record| record.source() == EntrySource::Forwarded)
}

/// The recipients that an entry is for. A lost entry may be for any recipient of its envelope.
/// `None`: the entry names recipients that its envelope lacks.
pub(super) fn recipients(
    envelope: &Envelope,
    record: Option<OutboxEntry>,
) -> Option<&[OutgoingRecipient]> {
    let Some(record) = record else { return Some(&envelope.recipients) };
    entries::recipients_of(&record, envelope)
}

/// The required action for an entry, according to its record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RecordedState {
    /// The entry is to be sent.
    Leaves,
    /// The entry is sent when an administrator releases it.
    Held,
    /// No further recipient gets the message, and the sender gets a report.
    Returned,
    /// The entry was found by a rebuild. It is not known which recipients have the message.
    Lost,
}

/// The state of an entry with this record.
pub(super) fn recorded_state(record: Option<OutboxEntry>) -> RecordedState {
    match record.map(|record| record.state()) {
        Some(EntryState::Queued) => RecordedState::Leaves,
        Some(EntryState::Held) => RecordedState::Held,
        Some(EntryState::Returned) => RecordedState::Returned,
        None => RecordedState::Lost,
    }
}

/// The state of the entry in this place. `None`: there is no message.
pub(super) fn recorded_state_in(store: &Store, (account, uid): Place) -> Option<RecordedState> {
    store.message(account, OUTBOX, uid).map(|_| recorded_state(store.outbox_entry(account, uid)))
}

impl RecordedState {
    /// The queue state of an entry with this recorded state, while no attempt has the entry. `due`:
    /// when the entry is due, if it is not held.
    pub(super) fn state(self, due: Instant) -> State {
        match self {
            RecordedState::Leaves | RecordedState::Returned => State::Waits(due),
            RecordedState::Held => State::Held,
            RecordedState::Lost => State::LeftAlone,
        }
    }
}
