//! Entries: what an outbox holds.
//!
//! An entry's body begins with what signs the letter (`signing`), if that is signed, then come the fields of the envelope (`relay::envelope`), and behind them stands the letter as it leaves. Which of the envelope's recipients an entry stands for, and how far it has
//! come, its marks say:
//!
//! | marks | |
//! |---|---|
//! | `SEEN` | always: nobody has to look at it |
//! | `ANSWERED` to `DRAFT`, four bits | n: it stands for the recipients from 16 n on |
//! | `HELD` | who sent it was told that it takes long |
//! | `LEAVING` | it is to leave. What a rebuild has found has no flags, and so does not leave a second time |
//! | keywords, 16 bits | a bit for each of the sixteen: he is done with |

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use relay::{Content, Envelope, Script, envelope};
use store::{AccountId, Flags, OUTBOX, Recipient};
use webmail::Posting;

/// Recipients that an entry stands for.
pub(super) const RECIPIENTS: usize = 16;
/// Recipients of a letter that has one of them elsewhere.
pub(crate) const RECIPIENTS_MAX: usize = 16 * RECIPIENTS;
/// Bytes of their addresses, and 8 for each of them: so that the whole envelope is at the beginning of a body.
pub(crate) const ENVELOPE_BYTES_MAX: usize = 20 * 1024;

const GROUP_SHIFT: u8 = 1;
pub(super) const DELAY_TOLD: Flags = Flags::HELD;

/// What fields begin with that are signatures.
const SIGNATURE: &[u8] = b"DKIM-Signature:";

/// The entries in an account's outbox for a letter with so many recipients.
pub(crate) fn entries_for(account: AccountId, recipients: usize) -> impl Iterator<Item = Recipient> {
    (0..recipients.min(RECIPIENTS_MAX).div_ceil(RECIPIENTS)).map(move |group| {
        let flags = Flags::SEEN.with(Flags::LEAVING).with(Flags((group as u8) << GROUP_SHIFT));
        Recipient { mailbox: OUTBOX, flags, ..Recipient::inbox(account) }
    })
}

/// An envelope of whom nothing else is known.
pub(crate) fn envelope_of(reverse_path: &str, addresses: &[String]) -> Envelope {
    let recipient = |(number, address): (u16, &String)| relay::Recipient {
        number,
        address: address.clone(),
        notify: None,
        original: None,
    };
    Envelope {
        reverse_path: reverse_path.to_string(),
        recipients: (0..).zip(addresses).map(recipient).collect(),
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
    let mut head = Vec::new();
    let written = envelope::write(&envelope_of(reverse_path, addresses), &mut head);
    let count = if written.is_ok() { addresses.len() } else { 0 };
    Posting { head, entries: entries_for(account, count).collect() }
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
pub(super) fn first_recipient(flags: Flags) -> usize {
    usize::from(flags.0 >> GROUP_SHIFT & 0xf) * RECIPIENTS
}

/// The bit of the recipient with this number in the envelope, in the entry that stands for him.
pub(super) fn bit_of(number: u16) -> u8 {
    (usize::from(number) % RECIPIENTS) as u8
}
