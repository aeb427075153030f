//! Entries: what an outbox holds.
//!
//! An entry's body begins with what signs the letter (`signing`), if that is signed, then come the fields of the envelope (`relay::envelope`), and behind them stands the letter as it leaves. Which of the envelope's recipients an entry stands for, and how far it has
//! come, says its record ([`store::OutboxEntry`]). An entry stands for its first recipient and its
//! neighbours with the same domain and the same request for reports: up to eight, or up to four if
//! the sender asks for reports of success. A message without a record was found by a rebuild: it
//! may have left before, so it stays.
//!
//! Invariants:
//! - An entry goes to one domain: whatever happens there holds up nobody else's mail. In an envelope those of one domain stand together, and among them those of whom the sender wants to hear that they have it.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use machine::Instant;
use relay::{Content, Envelope, Script, envelope};
use store::{AccountId, EntrySource, EntryState, Flags, OUTBOX, OutboxEntry, Packing, Recipient, Store};
use webmail::Posting;

use super::Place;
use super::standing::State;

/// Recipients that an entry stands for at most.
pub(super) const RECIPIENTS: usize = Packing::Done.recipients_max();
/// Recipients of a letter that has one of them elsewhere: so that eight bits number them.
pub(crate) const RECIPIENTS_MAX: usize = 256;
/// Bytes of their addresses, and 8 for each of them.
pub(crate) const ENVELOPE_BYTES_MAX: usize = 20 * 1024;

/// The entries in an account's outbox for a letter in this envelope.
pub(crate) fn entries_for(account: AccountId, envelope: &Envelope) -> Vec<Recipient> {
    let (mut entries, mut first) = (Vec::new(), 0);
    while first < envelope.recipients.len().min(RECIPIENTS_MAX) {
        entries.push(to_outbox(account, OutboxEntry::submitted(first as u8)));
        first += together(envelope, first);
    }
    entries
}

/// Where a letter comes in for an account whose mail is sent on.
pub(crate) fn arriving(account: AccountId) -> Recipient {
    to_outbox(account, OutboxEntry::forwarded())
}

fn to_outbox(account: AccountId, entry: OutboxEntry) -> Recipient {
    Recipient { mailbox: OUTBOX, flags: Flags::SEEN, entry: Some(entry), ..Recipient::inbox(account) }
}

/// Whether it came in so.
pub(super) fn is_arriving(record: Option<OutboxEntry>) -> bool {
    record.is_some_and(|record| record.source() == EntrySource::Forwarded)
}

/// The recipients that an entry stands for. A lost entry may stand for any recipient of its envelope.
pub(super) fn recipients(envelope: &Envelope, record: Option<OutboxEntry>) -> &[relay::Recipient] {
    let Some(record) = record else { return &envelope.recipients };
    let all = envelope.recipients.get(record.first()..).unwrap_or_default();
    all.get(..together(envelope, record.first())).unwrap_or_default()
}

/// So many recipients an entry stands for whose first has this number.
pub(super) fn together(envelope: &Envelope, first: usize) -> usize {
    let all = envelope.recipients.get(first..).unwrap_or_default();
    let Some(kind) = all.first().map(kind) else { return 0 };
    let most = kind.1.recipients_max();
    all.iter().take(most).take_while(|recipient| self::kind(recipient) == kind).count()
}

/// What those have in common for whom an entry stands.
fn kind(recipient: &relay::Recipient) -> (String, Packing) {
    (domain_of(&recipient.address), packing_of(recipient))
}

/// What an entry says of such a recipient.
pub(super) fn packing_of(recipient: &relay::Recipient) -> Packing {
    if recipient.wants_success() { Packing::DoneAndReported } else { Packing::Done }
}

/// Where somebody is, in lower case.
pub(super) fn domain_of(address: &str) -> String {
    address.rsplit_once('@').map_or("", |(_, domain)| domain).to_ascii_lowercase()
}

/// An envelope of whom nothing else is known.
pub(crate) fn envelope_of(reverse_path: &str, addresses: &[String]) -> Envelope {
    let recipient =
        |address: &String| relay::Recipient { number: 0, address: address.clone(), notify: None, original: None };
    Envelope {
        reverse_path: reverse_path.to_string(),
        recipients: together_by_kind(addresses.iter().map(recipient).collect()),
        content: Content::SevenBit,
        script: Script::Ascii,
        returned: None,
        envelope_id: None,
        held_until: None,
    }
}

/// The recipients of an envelope, in the order in which they stand in it.
pub(crate) fn together_by_kind(mut recipients: Vec<relay::Recipient>) -> Vec<relay::Recipient> {
    recipients.sort_by_cached_key(kind);
    recipients
}

/// Whether a domain, as it stands in an envelope, is one of several labels (RFC 6409 section 4.2).
pub(crate) fn is_fully_qualified(domain: &str) -> bool {
    domain.contains('.')
}

/// Whether a letter can be in an outbox that is for this address. In a domain: no name server says who takes the mail of a host that is named by its address.
pub(crate) fn may_be_posted(address: &str) -> bool {
    let domain = domain_of(address);
    !domain.starts_with('[')
        && is_fully_qualified(&domain)
        && envelope::write(&envelope_of("", &[address.to_string()]), &mut Vec::new()).is_ok()
}

/// How somebody's letter for these addresses is in his outbox.
pub(crate) fn posting(account: AccountId, reverse_path: &str, addresses: &[String]) -> Posting {
    let (mut head, envelope) = (Vec::new(), envelope_of(reverse_path, addresses));
    let written = envelope::write(&envelope, &mut head);
    Posting { head, entries: written.map_or(Vec::new(), |()| entries_for(account, &envelope)) }
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
