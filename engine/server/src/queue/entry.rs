//! Entries: what an outbox holds.
//!
//! An entry's body begins with what signs the letter (`signing`), if that is signed, then come the fields of the envelope (`relay::envelope`), and behind them stands the letter as it leaves. Which of the envelope's recipients an entry stands for, and how far it has
//! come, its marks say:
//!
//! | marks | |
//! |---|---|
//! | `SEEN` | always: nobody has to look at it |
//! | `HELD` | who sent it was told that it takes long |
//! | `LEAVING` | it is to leave. What a rebuild has found has no flags, and so does not leave a second time |
//! | keywords, upper 8 bits | n: it stands for the recipient with the number n and those next to him who are of the same domain, up to eight |
//! | keywords, lower 8 bits | a bit for each of these: he is done with |
//!
//! Invariants:
//! - An entry goes to one domain: whatever happens there holds up nobody else's mail. In an envelope those of one domain stand together.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use relay::{Content, Envelope, Script, envelope};
use store::{AccountId, Flags, OUTBOX, Recipient};
use webmail::Posting;

/// Recipients that an entry stands for at most.
pub(super) const RECIPIENTS: usize = 8;
/// Recipients of a letter that has one of them elsewhere: so that eight bits number them.
pub(crate) const RECIPIENTS_MAX: usize = 256;
/// Bytes of their addresses, and 8 for each of them: so that the whole envelope is at the beginning of a body.
pub(crate) const ENVELOPE_BYTES_MAX: usize = 20 * 1024;

const FIRST_SHIFT: u32 = RECIPIENTS as u32;
pub(super) const DELAY_TOLD: Flags = Flags::HELD;

/// What fields begin with that are signatures.
const SIGNATURE: &[u8] = b"DKIM-Signature:";

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

/// So many recipients an entry stands for whose first has this number.
pub(super) fn together(envelope: &Envelope, first: usize) -> usize {
    let all = envelope.recipients.get(first..).unwrap_or_default();
    let domain = |recipient: &relay::Recipient| domain_of(&recipient.address);
    let Some(name) = all.first().map(domain) else { return 0 };
    all.iter().take(RECIPIENTS).take_while(|recipient| domain(recipient) == name).count()
}

/// Where somebody is, in lower case.
pub(super) fn domain_of(address: &str) -> String {
    address.rsplit_once('@').map_or("", |(_, domain)| domain).to_ascii_lowercase()
}

/// An envelope of whom nothing else is known.
pub(crate) fn envelope_of(reverse_path: &str, addresses: &[String]) -> Envelope {
    let recipient =
        |address: &String| relay::Recipient { number: 0, address: address.clone(), notify: None, original: None };
    let mut recipients: Vec<relay::Recipient> = addresses.iter().map(recipient).collect();
    recipients.sort_by_cached_key(|recipient| domain_of(&recipient.address));
    Envelope {
        reverse_path: reverse_path.to_string(),
        recipients,
        content: Content::SevenBit,
        script: Script::Ascii,
        returned: None,
        envelope_id: None,
    }
}

/// Whether a letter can be in an outbox that is for this address.
pub(crate) fn may_be_posted(address: &str) -> bool {
    envelope::write(&envelope_of("", &[address.to_string()]), &mut Vec::new()).is_ok()
}

/// How somebody's letter for these addresses is in his outbox.
pub(crate) fn posting(account: AccountId, reverse_path: &str, addresses: &[String]) -> Posting {
    let (mut head, envelope) = (Vec::new(), envelope_of(reverse_path, addresses));
    let written = envelope::write(&envelope, &mut head);
    Posting { head, entries: written.map_or(Vec::new(), |()| entries_for(account, &envelope)) }
}

/// Octets of the signatures above an envelope.
pub(super) fn signatures_length(entry: &[u8]) -> usize {
    let mut length = 0;
    while let Some(field) = entry.get(length..).filter(|rest| rest.starts_with(SIGNATURE)) {
        let mut ends = memchr::memmem::find_iter(field, b"\r\n").map(|end| end + 2);
        let end = ends.find(|end| !matches!(field.get(*end), Some(b' ' | b'\t')));
        length += end.unwrap_or(field.len());
    }
    length
}

pub(super) fn is_to_leave(flags: Flags) -> bool {
    flags.contains(Flags::LEAVING)
}

/// Whether who sent it was told that it takes long.
pub(super) fn is_delay_told(flags: Flags) -> bool {
    flags.contains(DELAY_TOLD)
}

/// The number of the first recipient that an entry stands for.
pub(super) fn first_recipient(keywords: u16) -> usize {
    usize::from(keywords >> FIRST_SHIFT)
}

/// The bits of those who are done with.
pub(super) fn done(keywords: u16) -> u16 {
    keywords & ((1 << FIRST_SHIFT) - 1)
}
