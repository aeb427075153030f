//! Mail for other servers. Such a message goes into the sender's outbox with all its recipients,
//! remote and local, and the queue delivers it. Two other kinds of submitted mail also go into the
//! outbox, because the queue has timers and writes reports. These are held mail (RFC 4865), and
//! mail with a request for success reports about local recipients.
//!
//! A bounce of a message that was forwarded (`relay::srs`) goes into the postmaster's outbox, for
//! the original sender.
//!
//! Invariants:
//! - Only a logged-in client may name recipients on other servers. So each sender has an account
//!   and an outbox. EHLO offers no reports (DSN) to external clients, so their report parameters
//!   are not stored. An external client gets a final answer at once, and that client sends any
//!   report.
//! - External mail reaches a remote recipient only through an address of ours that stands for that
//!   recipient, and only with an empty reverse path (RFC 3464 section 2). So this server sends such
//!   mail to no other address, and a failure to deliver it is not reported.
//! - The whole envelope is at the beginning of the entry: it has at most [`RECIPIENTS_MAX`]
//!   recipients, with [`ENVELOPE_BYTES_MAX`] bytes of addresses.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use accounts::entries::{
    ENVELOPE_BYTES_MAX, RECIPIENTS_MAX, entries_for, envelope_of, together_by_kind,
};
use machine::UnixTime;
use relay::{ContentWidth, Envelope, Notify, Return, Script, envelope};
use shards::{DeliveryHandle, ShardedStore};
use smtp::{BodyType, CharacterSet, EnvelopeId, Mail, MessageRefusal, Original, RecipientRefusal};
use store::{AccountId, Recipient};

use super::incoming::message_refusal;
use super::transaction::InboundTransaction;

/// The most bytes of a recipient in an envelope, in addition to its address and its original
/// address.
const RECIPIENT_OVERHEAD: usize = 8;
/// The value of [`RECIPIENT_OVERHEAD`] for a recipient with report parameters.
const WISHES_OVERHEAD: usize = RECIPIENT_OVERHEAD + " NOTIFY=SUCCESS,FAILURE,DELAY ORCPT=".len();

/// The part of an open transaction for the queue: remote recipients, and the reports that the
/// sender wants.
#[derive(Default)]
pub(super) struct RemotePart {
    /// Remote recipients, as the client wrote them.
    elsewhere: Vec<(String, Wishes)>,
    /// Local recipients with report parameters.
    here: Vec<(AccountId, Wishes)>,
    /// The account that provides the outbox if the sender has none.
    pub(super) postmaster: Option<AccountId>,
    is_eight_bit: bool,
    is_utf8: bool,
    returned: Option<Return>,
    envelope_id: Option<String>,
    held_until: Option<UnixTime>,
}

/// The reports about a recipient that the sender wants.
#[derive(Clone, PartialEq, Eq, Default)]
pub(super) struct Wishes {
    notify: Option<Notify>,
    original: Option<String>,
}

impl Wishes {
    pub(super) fn of(recipient: &smtp::RcptTo<'_>) -> Wishes {
        Wishes { notify: recipient.notify, original: recipient.original.map(Original::ascii) }
    }

    /// Whether RCPT had no report parameters.
    fn are_none(&self) -> bool {
        *self == Wishes::default()
    }

    /// The bytes that a recipient takes in an envelope. `address`: the length of its address.
    fn envelope_bytes(&self, address: usize) -> usize {
        let overhead = if self.are_none() { RECIPIENT_OVERHEAD } else { WISHES_OVERHEAD };
        address + overhead + self.original.as_ref().map_or(0, String::len)
    }

    fn recipient(&self, address: String) -> relay::OutgoingRecipient {
        relay::OutgoingRecipient {
            number: 0,
            address,
            notify: self.notify,
            original: self.original.clone(),
        }
    }
}

impl RemotePart {
    /// Stores the parameters of MAIL.
    pub(super) fn note(&mut self, mail: &Mail<'_>) {
        self.is_eight_bit = mail.body != BodyType::SevenBit;
        self.is_utf8 = mail.character_set == CharacterSet::Utf8;
        self.returned = mail.returned;
        self.envelope_id = mail.envelope_id.map(EnvelopeId::ascii);
        self.held_until = mail.held_until;
    }

    /// Whether the message goes to the queue: a recipient is remote, the message is held, or a
    /// success report is wanted.
    pub(super) fn goes_to_queue(&self) -> bool {
        let is_told =
            |(_, wishes): &(AccountId, Wishes)| wishes.notify.is_some_and(|notify| notify.success);
        !self.elsewhere.is_empty() || self.held_until.is_some() || self.here.iter().any(is_told)
    }

    /// The addresses of the remote recipients.
    pub(super) fn remote_addresses(&self) -> Vec<String> {
        self.elsewhere.iter().map(|(address, _)| address.clone()).collect()
    }

    fn wishes_of(&self, account: AccountId) -> Wishes {
        let found = self.here.iter().find(|(known, _)| *known == account);
        found.map_or(Wishes::default(), |(_, wishes)| wishes.clone())
    }
}

impl InboundTransaction {
    /// Adds a local recipient.
    pub(super) fn add(
        &mut self,
        recipient: Recipient,
        wishes: Wishes,
        store: &ShardedStore,
    ) -> Result<(), RecipientRefusal> {
        self.recipients.push(recipient);
        let is_asked = !wishes.are_none();
        self.posting.here.extend(is_asked.then_some((recipient.account, wishes)));
        let checked =
            if self.posting.goes_to_queue() { self.check_envelope(store) } else { Ok(()) };
        if checked.is_err() {
            self.recipients.pop();
            self.posting.here.truncate(self.posting.here.len() - usize::from(is_asked));
        }
        checked
    }

    /// Adds a remote recipient.
    pub(super) fn add_elsewhere(
        &mut self,
        address: &str,
        wishes: Wishes,
        store: &ShardedStore,
    ) -> Result<(), RecipientRefusal> {
        if self.posting.elsewhere.iter().any(|(known, _)| known == address) {
            return Ok(());
        }
        self.posting.elsewhere.push((address.to_string(), wishes));
        self.check_envelope(store).inspect_err(|_| {
            self.posting.elsewhere.pop();
        })
    }

    /// The addresses of all recipients.
    pub(super) fn named(&self, store: &ShardedStore) -> Vec<String> {
        let here =
            self.recipients.iter().map(|Recipient { account, .. }| address_of(*account, store));
        here.chain(self.posting.remote_addresses()).collect()
    }

    /// Checks that all recipients fit into an envelope.
    fn check_envelope(&self, store: &ShardedStore) -> Result<(), RecipientRefusal> {
        let InboundTransaction { recipients, posting, .. } = self;
        let here = recipients.iter().map(|Recipient { account, .. }| {
            posting.wishes_of(*account).envelope_bytes(address_of(*account, store).len())
        });
        let elsewhere =
            posting.elsewhere.iter().map(|(address, wishes)| wishes.envelope_bytes(address.len()));
        let (count, bytes) =
            here.chain(elsewhere).fold((0, 0), |(count, all), bytes| (count + 1, all + bytes));
        let fits = count <= RECIPIENTS_MAX && bytes <= ENVELOPE_BYTES_MAX;
        if fits { Ok(()) } else { Err(RecipientRefusal::TooMany) }
    }

    /// Begins the delivery of the message to its recipients, or into the outbox. Also returns the
    /// bytes above the message, such as the envelope.
    pub(super) fn begin(
        &self,
        account: Option<AccountId>,
        store: &mut ShardedStore,
    ) -> Result<(DeliveryHandle, Vec<u8>), MessageRefusal> {
        let Some(account) =
            account.or(self.posting.postmaster).filter(|_| self.posting.goes_to_queue())
        else {
            let delivery = store.begin(&self.recipients).map_err(message_refusal)?;
            return Ok((delivery, Vec::new()));
        };
        let InboundTransaction { recipients, posting, .. } = self;
        let here = recipients.iter().map(|Recipient { account, .. }| {
            posting.wishes_of(*account).recipient(address_of(*account, store))
        });
        let elsewhere =
            posting.elsewhere.iter().map(|(address, wishes)| wishes.recipient(address.clone()));
        let envelope = Envelope {
            recipients: together_by_kind(here.chain(elsewhere).collect()),
            content: if posting.is_eight_bit {
                ContentWidth::EightBit
            } else {
                ContentWidth::SevenBit
            },
            script: if posting.is_utf8 { Script::Utf8 } else { Script::Ascii },
            returned: posting.returned,
            envelope_id: posting.envelope_id.clone(),
            held_until: posting.held_until,
            ..envelope_of(&self.reverse_path, &[])
        };
        let mut head = Vec::new();
        envelope::write(&envelope, &mut head).map_err(|_| MessageRefusal::TryLater)?;
        Ok((store.begin(&entries_for(account, &envelope)).map_err(message_refusal)?, head))
    }
}

fn address_of(account: AccountId, store: &ShardedStore) -> String {
    store.account(account).map(|known| known.address.to_string()).unwrap_or_default()
}
