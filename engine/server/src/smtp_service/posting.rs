//! Mail for somebody elsewhere: it goes into the outbox of whoever sends it, with all its recipients, also those who are here; the queue brings it on.
//!
//! Invariants:
//! - Nobody names anybody elsewhere but who is logged in: so whoever sends has an account, and an outbox.
//! - The whole envelope is at the beginning of the entry: there are at most [`RECIPIENTS_MAX`] recipients, with [`ENVELOPE_BYTES_MAX`] bytes of addresses.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use relay::{Content, Envelope, Script, envelope};
use smtp::{Body, CharacterSet, Mail, MessageRefusal, RecipientRefusal};
use store::{AccountId, Recipient};

use crate::archive::{Archive, LetterId};
use crate::common::Common;
use crate::queue::{ENVELOPE_BYTES_MAX, RECIPIENTS_MAX, entries_for, envelope_of};

use super::{Transaction, message_refusal};

/// Bytes that a recipient takes in an envelope beside his address, at most.
const RECIPIENT_OVERHEAD: usize = 8;

/// What an open transaction has for somebody elsewhere.
#[derive(Default)]
pub(super) struct Posting {
    /// Who is elsewhere, as the client wrote it.
    elsewhere: Vec<String>,
    is_eight_bit: bool,
    is_utf8: bool,
}

impl Posting {
    /// A transaction begins so.
    pub(super) fn note(&mut self, mail: &Mail<'_>) {
        self.is_eight_bit = mail.body != Body::SevenBit;
        self.is_utf8 = mail.character_set == CharacterSet::Utf8;
    }

    /// Whether somebody is elsewhere.
    pub(super) fn is_wanted(&self) -> bool {
        !self.elsewhere.is_empty()
    }
}

impl Transaction {
    /// Somebody here is to get it.
    pub(super) fn add(&mut self, recipient: Recipient, store: &Archive) -> Result<(), RecipientRefusal> {
        if self.posting.is_wanted() {
            self.check_envelope(address_of(recipient.account, store).len(), store)?;
        }
        self.recipients.push(recipient);
        Ok(())
    }

    /// Somebody elsewhere is.
    pub(super) fn add_elsewhere(&mut self, address: &str, store: &Archive) -> Result<(), RecipientRefusal> {
        if !self.posting.elsewhere.iter().any(|known| known == address) {
            self.check_envelope(address.len(), store)?;
            self.posting.elsewhere.push(address.to_string());
        }
        Ok(())
    }

    /// Whether one more has room whose address is so long.
    fn check_envelope(&self, bytes: usize, store: &Archive) -> Result<(), RecipientRefusal> {
        let here = self.recipients.iter().map(|recipient| address_of(recipient.account, store).len());
        let lengths = here.chain(self.posting.elsewhere.iter().map(String::len)).chain([bytes]);
        let (count, bytes) =
            lengths.fold((0, 0), |(count, bytes), length| (count + 1, bytes + length + RECIPIENT_OVERHEAD));
        let fits = count <= RECIPIENTS_MAX && bytes <= ENVELOPE_BYTES_MAX;
        if fits { Ok(()) } else { Err(RecipientRefusal::TooMany) }
    }

    /// Begins the letter of all recipients, or its entries in the outbox of who sends it. What is to stand above it then.
    pub(super) fn begin(
        &self,
        account: Option<AccountId>,
        common: &mut Common,
    ) -> Result<(LetterId, Vec<u8>), MessageRefusal> {
        let Some(account) = account.filter(|_| self.posting.is_wanted()) else {
            let letter = common.store.begin(&self.recipients).map_err(message_refusal)?;
            return Ok((letter, Vec::new()));
        };
        let here = self.recipients.iter().map(|recipient| address_of(recipient.account, &common.store));
        let addresses: Vec<String> = here.chain(self.posting.elsewhere.iter().cloned()).collect();
        let envelope = Envelope {
            content: if self.posting.is_eight_bit { Content::EightBit } else { Content::SevenBit },
            script: if self.posting.is_utf8 { Script::Utf8 } else { Script::Ascii },
            ..envelope_of(&self.reverse_path, &addresses)
        };
        let mut head = Vec::new();
        envelope::write(&envelope, &mut head).map_err(|_| MessageRefusal::TryLater)?;
        Ok((common.store.begin(&entries_for(account, &envelope)).map_err(message_refusal)?, head))
    }
}

fn address_of(account: AccountId, store: &Archive) -> String {
    store.account(account).map(|known| known.address.to_string()).unwrap_or_default()
}
