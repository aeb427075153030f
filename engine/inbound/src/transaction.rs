//! The state of an open SMTP transaction.

use alloc::string::String;
use alloc::vec::Vec;

use shards::ShardedStore;
use smtp::{MessageRefusal, RecipientRefusal};
use store::{Recipient, Refusal};

use super::allowance::Permission;
use super::deferral::Deferral;
use super::incoming::{IncomingMessage, message_refusal};
use super::posting::RemotePart;
use super::quota::{AvailableSpace, KnownUsage};
use super::spf_check::SpfState;

/// The state of an open SMTP transaction.
#[derive(Default)]
pub(crate) struct InboundTransaction {
    pub(super) reverse_path: String,
    /// The first recipient as the client wrote it.
    pub(super) first_recipient: String,
    /// The local recipients.
    pub(super) recipients: Vec<Recipient>,
    pub(super) posting: RemotePart,
    pub(super) spf_state: SpfState,
    /// The size that the client has declared.
    pub(super) declared: Option<u64>,
    pub(super) taken: KnownUsage,
    pub(super) permission: Permission,
    pub(super) deferral: Deferral,
    /// Whether the only recipient so far lacks space for the largest message, and the client has
    /// declared no size. In this case no other recipient is accepted.
    pub(super) is_narrow: bool,
    /// Why the message is refused, in the words of the filter.
    pub(super) reason: String,
    pub(super) message: Option<IncomingMessage>,
}

impl InboundTransaction {
    /// A record with buffers large enough that a usual transaction does not allocate.
    pub(crate) fn with_room() -> InboundTransaction {
        InboundTransaction {
            reverse_path: String::with_capacity(smtp::PATH_BYTES_MAX),
            first_recipient: String::with_capacity(smtp::PATH_BYTES_MAX),
            recipients: Vec::with_capacity(8),
            posting: RemotePart::default(),
            spf_state: SpfState::NotSought,
            declared: None,
            taken: KnownUsage::NotAsked,
            permission: Permission::NotAsked,
            deferral: Deferral::NotAsked,
            is_narrow: false,
            reason: String::new(),
            message: None,
        }
    }

    pub(super) fn clear(&mut self) {
        self.reverse_path.clear();
        self.first_recipient.clear();
        self.recipients.clear();
        self.posting = RemotePart::default();
        self.spf_state = SpfState::NotSought;
        (self.declared, self.taken, self.is_narrow) = (None, KnownUsage::NotAsked, false);
        (self.permission, self.deferral) = (Permission::NotAsked, Deferral::NotAsked);
        self.reason.clear();
        self.message = None;
    }

    /// Checks the space of one more recipient.
    ///
    /// Errors: `TooMany` if the message may fit into the mailbox of one recipient and not into that
    /// of another. For all recipients together, the server can send only one reply to the message.
    pub(super) fn note_room(&mut self, room: AvailableSpace) -> Result<(), RecipientRefusal> {
        if !self.recipients.is_empty() && (self.is_narrow || room == AvailableSpace::ThisMessage) {
            return Err(RecipientRefusal::TooMany);
        }
        self.is_narrow |= room == AvailableSpace::ThisMessage;
        Ok(())
    }

    /// Checks that the disk has space for the copies of a queued message for its local recipients.
    /// The copies are made later, from the outbox. So the sender is told at once that there is no
    /// space, and not by a report hours later.
    pub(super) fn check_copies(
        &self,
        octets: u64,
        store: &mut ShardedStore,
    ) -> Result<(), MessageRefusal> {
        let copies = self.recipients.len() as u64;
        if copies == 0 || !self.posting.goes_to_queue() {
            return Ok(());
        }
        store.check_space(octets.saturating_mul(copies)).map_err(|refusal| match refusal {
            // All copies together may be too large for the disk, although the message is not.
            Refusal::TooLarge => MessageRefusal::StorageFull,
            other => message_refusal(other),
        })
    }
}
