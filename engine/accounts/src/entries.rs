//! Makes outbox entries from a message and its envelope.
//!
//! An entry covers adjacent recipients with the same domain and the same request for reports of
//! success. It covers up to eight recipients, or up to four if the sender wants these reports.
//!
//! Invariants:
//! - An entry goes to one domain, so a failure there does not delay other mail. Recipients of one
//!   domain are adjacent in an envelope. Among them, the recipients for which a report of success
//!   is requested are adjacent.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use relay::{ContentWidth, Envelope, Script, envelope};
use store::{AccountId, Flags, OUTBOX, OutboxEntry, Packing, Recipient};

/// The most recipients of a message with an external recipient: eight bits number them.
pub const RECIPIENTS_MAX: usize = 256;
/// The most bytes of the recipients' addresses, with 8 more for each recipient.
pub const ENVELOPE_BYTES_MAX: usize = 20 * 1024;

/// The parts of a message in its sender's outbox, from which it goes to external recipients.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutboxDelivery {
    /// The octets that precede the message in the outbox.
    pub head: Vec<u8>,
    /// The outbox entries of the message.
    pub entries: Vec<Recipient>,
}

/// The entries in an account's outbox for a message with this envelope.
pub fn entries_for(account: AccountId, envelope: &Envelope) -> Vec<Recipient> {
    let (mut entries, mut first) = (Vec::new(), 0);
    while first < envelope.recipients.len().min(RECIPIENTS_MAX) {
        let count = together(envelope, first);
        entries.push(to_outbox(account, OutboxEntry::submitted(first as u8, count as u8)));
        first += count;
    }
    entries
}

/// The outbox entry in which mail arrives for an account that forwards its mail.
pub(crate) fn arriving(account: AccountId) -> Recipient {
    to_outbox(account, OutboxEntry::forwarded())
}

fn to_outbox(account: AccountId, entry: OutboxEntry) -> Recipient {
    Recipient {
        mailbox: OUTBOX,
        flags: Flags::SEEN,
        entry: Some(entry),
        ..Recipient::inbox(account)
    }
}

/// The recipients of the envelope that an entry covers. The record of the entry has the number of
/// its recipients. If it has no number (format 3), the number follows from the way in which entries
/// are made. `None`: the envelope has no such recipients, or they have different domains.
pub fn recipients_of<'a>(
    entry: &OutboxEntry,
    envelope: &'a Envelope,
) -> Option<&'a [relay::OutgoingRecipient]> {
    let count = entry.count().unwrap_or_else(|| together(envelope, entry.first()));
    let recipients = envelope.recipients.get(entry.first()..)?.get(..count)?;
    let (first, more) = recipients.split_first()?;
    let domain = domain_of(&first.address);
    more.iter().all(|recipient| domain_of(&recipient.address) == domain).then_some(recipients)
}

/// The number of recipients that an entry covers if `first` is its first recipient.
fn together(envelope: &Envelope, first: usize) -> usize {
    let all = envelope.recipients.get(first..).unwrap_or_default();
    let Some(kind) = all.first().map(kind) else { return 0 };
    let most = kind.1.recipients_max();
    all.iter().take(most).take_while(|recipient| self::kind(recipient) == kind).count()
}

/// The properties that all recipients of an entry share.
fn kind(recipient: &relay::OutgoingRecipient) -> (String, Packing) {
    (domain_of(&recipient.address), packing_of(recipient))
}

/// The packing of the results of an entry that covers this recipient.
pub fn packing_of(recipient: &relay::OutgoingRecipient) -> Packing {
    if recipient.wants_success() { Packing::DoneAndReported } else { Packing::Done }
}

/// The domain of an address, in lower case.
pub fn domain_of(address: &str) -> String {
    address.rsplit_once('@').map_or("", |(_, domain)| domain).to_ascii_lowercase()
}

/// An envelope with only a reverse path and addresses.
pub fn envelope_of(reverse_path: &str, addresses: &[String]) -> Envelope {
    let recipient = |address: &String| relay::OutgoingRecipient {
        number: 0,
        address: address.clone(),
        notify: None,
        original: None,
    };
    Envelope {
        reverse_path: reverse_path.to_string(),
        recipients: together_by_kind(addresses.iter().map(recipient).collect()),
        content: ContentWidth::SevenBit,
        script: Script::Ascii,
        returned: None,
        envelope_id: None,
        held_until: None,
    }
}

/// Sorts the recipients into the order in which an envelope must have them.
pub fn together_by_kind(
    mut recipients: Vec<relay::OutgoingRecipient>,
) -> Vec<relay::OutgoingRecipient> {
    recipients.sort_by_cached_key(kind);
    recipients
}

/// Whether a domain of an envelope has several labels (RFC 6409 section 4.2).
pub fn is_fully_qualified(domain: &str) -> bool {
    domain.contains('.')
}

/// Whether a message for this address can be in an outbox. The address must have a domain name:
/// name servers know no mail host for an address literal.
pub fn may_be_posted(address: &str) -> bool {
    let domain = domain_of(address);
    !domain.starts_with('[')
        && is_fully_qualified(&domain)
        && envelope::write(&envelope_of("", &[address.to_string()]), &mut Vec::new()).is_ok()
}

/// The head and the entries for an account's message to these addresses.
pub fn posting(account: AccountId, reverse_path: &str, addresses: &[String]) -> OutboxDelivery {
    let (mut head, envelope) = (Vec::new(), envelope_of(reverse_path, addresses));
    let written = envelope::write(&envelope, &mut head);
    OutboxDelivery {
        head,
        entries: written.map_or(Vec::new(), |()| entries_for(account, &envelope)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn entry_covers_its_recipients() {
        let addresses = ["a@far.test", "b@far.test", "c@far.test", "d@other.test"];
        let envelope = envelope_of("ada@here.test", &addresses.map(|address| address.to_string()));
        let made: Vec<OutboxEntry> = entries_for(AccountId::from_bits(1), &envelope)
            .iter()
            .filter_map(|one| one.entry)
            .collect();
        assert_eq!(made, [OutboxEntry::submitted(0, 3), OutboxEntry::submitted(3, 1)]);
        let covered = |first, count| {
            let recipients = recipients_of(&OutboxEntry::submitted(first, count), &envelope)?;
            Some(recipients.iter().map(|recipient| recipient.address.as_str()).collect::<Vec<_>>())
        };
        assert_eq!(covered(0, 3), Some(addresses[..3].to_vec()));
        // An entry that was made with another grouping can be read too.
        assert_eq!(covered(0, 2), Some(addresses[..2].to_vec()));
        assert_eq!(covered(1, 1), Some(addresses[1..2].to_vec()));
        // An entry of format 3 does not have the number of its recipients.
        assert_eq!(covered(1, 0), Some(addresses[1..3].to_vec()));
        for (first, count) in [(0, 5), (3, 2), (4, 1), (200, 1), (4, 0), (0, 4), (2, 2)] {
            assert_eq!(covered(first, count), None, "{count} from {first} on");
        }
    }
}
