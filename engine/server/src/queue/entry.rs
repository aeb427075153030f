//! Entries: what an outbox holds.
//!
//! An entry's body begins with what signs the letter (`signing`), if that is signed, then come the fields of the envelope (`relay::envelope`), and behind them stands the letter as it leaves. Which of the envelope's recipients an entry stands for, and how far it has
//! come, its marks say:
//!
//! | marks | |
//! |---|---|
//! | `SEEN` | always: nobody has to look at it |
//! | `HELD` | who sent it was told that it takes long |
//! | `FLAGGED` | its head cannot be read, and the account was told (`unreadable`) |
//! | `DRAFT` | it came for the account, which wants its mail elsewhere, and is in no envelope yet (`forwarding`) |
//! | `LEAVING` | it is to leave. An entry that a rebuild has found has no flags: it may have left before, so it stays |
//! | `LEFT` | an administrator has taken it out: with `LEAVING` he holds it, without it nobody gets it any more, and who sent it is told |
//! | keywords, upper 8 bits | n: it stands for the recipient with the number n and those next to him who are of the same domain and of whom the same is to be told, up to eight; or up to four, if of these the sender wants to hear that they have it |
//! | keywords, lower 8 bits | a bit for each of eight: he is done with. Of four: the lower bits say that he is done with, and the upper ones that what came of it was told, or is told by somebody else |
//!
//! Invariants:
//! - An entry goes to one domain: whatever happens there holds up nobody else's mail. In an envelope those of one domain stand together, and among them those of whom the sender wants to hear that they have it.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use machine::Instant;
use relay::{Content, Envelope, Script, envelope};
use store::{AccountId, Flags, MessageInfo, OUTBOX, Recipient};
use webmail::Posting;

use super::standing::State;

/// Recipients that an entry stands for at most.
pub(super) const RECIPIENTS: usize = 8;
/// The same where it is told that they have it.
const RECIPIENTS_TOLD: usize = 4;
/// Recipients of a letter that has one of them elsewhere: so that eight bits number them.
pub(crate) const RECIPIENTS_MAX: usize = 256;
/// Bytes of their addresses, and 8 for each of them.
pub(crate) const ENVELOPE_BYTES_MAX: usize = 20 * 1024;

const FIRST_SHIFT: u32 = RECIPIENTS as u32;
pub(super) const DELAY_TOLD: Flags = Flags::HELD;
pub(super) const NOTICED: Flags = Flags::FLAGGED;
const ARRIVING: Flags = Flags::DRAFT;
pub(super) const HELD: Flags = Flags::LEFT;

/// The entries in an account's outbox for a letter in this envelope.
pub(crate) fn entries_for(account: AccountId, envelope: &Envelope) -> Vec<Recipient> {
    let flags = Flags::SEEN.with(Flags::LEAVING);
    let (mut entries, mut first) = (Vec::new(), 0);
    while first < envelope.recipients.len().min(RECIPIENTS_MAX) {
        let keywords = (first as u16) << FIRST_SHIFT;
        entries.push(Recipient { mailbox: OUTBOX, flags, keywords, ..Recipient::inbox(account) });
        first += together(envelope, first);
    }
    entries
}

/// Where a letter comes in for an account whose mail is sent on.
pub(crate) fn arriving(account: AccountId) -> Recipient {
    let flags = Flags::SEEN.with(Flags::LEAVING).with(ARRIVING);
    Recipient { mailbox: OUTBOX, flags, ..Recipient::inbox(account) }
}

/// Whether it came in so.
pub(super) fn is_arriving(flags: Flags) -> bool {
    flags.contains(ARRIVING)
}

/// The recipients that an entry stands for. A lost entry may stand for any recipient of its envelope.
pub(super) fn recipients<'a>(envelope: &'a Envelope, info: &MessageInfo) -> &'a [relay::Recipient] {
    let first = first_recipient(info.keywords);
    let all = envelope.recipients.get(first..).unwrap_or_default();
    let count = if fate(info.flags) == Fate::Lost { all.len() } else { together(envelope, first) };
    all.get(..count).unwrap_or_default()
}

/// So many recipients an entry stands for whose first has this number.
pub(super) fn together(envelope: &Envelope, first: usize) -> usize {
    let all = envelope.recipients.get(first..).unwrap_or_default();
    let Some(kind) = all.first().map(kind) else { return 0 };
    let most = kind.1.recipients_max();
    all.iter().take(most).take_while(|recipient| self::kind(recipient) == kind).count()
}

/// What those have in common for whom an entry stands.
fn kind(recipient: &relay::Recipient) -> (String, Tally) {
    (domain_of(&recipient.address), Tally::of(recipient))
}

/// What an entry's marks say of each recipient.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Tally {
    /// Whether he is done with.
    Done,
    /// The same, and whether it was told.
    DoneAndTold,
}

impl Tally {
    pub(super) fn of(recipient: &relay::Recipient) -> Tally {
        if recipient.wants_success() { Tally::DoneAndTold } else { Tally::Done }
    }

    fn recipients_max(self) -> usize {
        match self {
            Tally::Done => RECIPIENTS,
            Tally::DoneAndTold => RECIPIENTS_TOLD,
        }
    }

    /// The bits of those who are done with.
    pub(super) fn done(self, keywords: u16) -> u16 {
        keywords & ((1 << self.recipients_max()) - 1)
    }

    /// The bits of those of whom there is nothing more to tell.
    pub(super) fn told(self, keywords: u16) -> u16 {
        match self {
            Tally::Done => self.done(keywords),
            Tally::DoneAndTold => self.done(keywords >> RECIPIENTS_TOLD),
        }
    }

    /// The marks of who is done with.
    pub(super) fn marks_of_done(self, bit: u8) -> u16 {
        1 << bit
    }

    /// The marks of who is done with and of whom there is nothing more to tell.
    pub(super) fn marks_of_told(self, bit: u8) -> u16 {
        match self {
            Tally::Done => 1 << bit,
            Tally::DoneAndTold => (1 | 1 << RECIPIENTS_TOLD) << bit,
        }
    }
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

/// What is to become of an entry with these flags.
pub(super) fn fate(flags: Flags) -> Fate {
    match (flags.contains(Flags::LEAVING), flags.contains(HELD)) {
        (true, false) => Fate::Leaves,
        (true, true) => Fate::Held,
        (false, true) => Fate::GivenBack,
        (false, false) => Fate::Lost,
    }
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

/// Whether who sent it was told that it takes long.
pub(super) fn is_delay_told(flags: Flags) -> bool {
    flags.contains(DELAY_TOLD)
}

/// The number of the first recipient that an entry stands for.
pub(super) fn first_recipient(keywords: u16) -> usize {
    usize::from(keywords >> FIRST_SHIFT)
}
