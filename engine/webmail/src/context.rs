//! The context of request handlers: the parts of their core, and the state of a job in progress.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};

use accounts::{Directory, Excess};
use compute::Compute;
use machine::{ConsoleLines, CoreId, Entropy, Micros, Turn, UnixTime};
use outbound::{QueueQuery, QueueReply, Which};
use shards::{DeliveryHandle, ShardedStore};
use signing::{Signer, Signing};
use store::{AccountId, Closing, Guid, MailboxId, Recipient, Refusal, Store, Uid};
use submission::Submission;
use tasks::{Continuation, FrameId, Subsystem};

use crate::jobs::row_cache::RowCache;
use crate::preferences::Preferences;
use crate::zone::{Zone, ZoneCache};

tasks::points! {
    /// Events of the store and of the compute cores that a request handler waits for.
    pub enum WebmailWaitPoint of Subsystem::Webmail;
    /// The store has completed a request.
    Asked,
    /// A signature was computed.
    Signed,
}

/// The continuation of a request to the store that no handler waits for. No handler ever gets this
/// frame.
pub(crate) const UNAWAITED: Continuation =
    Continuation { frame: FrameId::new(u32::MAX, 0), entry: WebmailWaitPoint::Asked.entry() };

/// A question about entries of the queue.
pub struct QueueQuestion {
    /// The core that owns the accounts of the entries.
    pub owner: CoreId,
    /// The frame that waits for the reply.
    pub frame: FrameId,
    /// The question.
    pub asked: QueueQuery,
}

/// The parts of a core that request handlers use.
pub struct WebmailContext<'a> {
    /// The stores of all cores, as one.
    pub archive: &'a mut ShardedStore,
    /// The held messages.
    pub submission: &'a mut Submission,
    /// The cache of rendered list rows.
    pub rows: &'a mut RowCache,
    /// Addresses and their accounts.
    pub directory: &'a Directory,
    /// The signer of messages from our domains.
    pub signer: &'a mut Signer,
    /// Password hashes and signatures in progress.
    pub compute: &'a mut Compute,
    /// The name of this machine.
    pub hostname: &'a str,
    /// Lines for the operator.
    pub console: &'a mut ConsoleLines,
    /// The largest message, in octets.
    pub message_octets_max: u64,
    /// The clocks of this turn.
    pub turn: Turn,
    /// The source of random bytes.
    pub entropy: &'a mut dyn Entropy,
}

/// The context of one job, with the state that the job owns.
pub(crate) struct JobContext<'a, 'b> {
    pub(crate) cx: &'a mut WebmailContext<'b>,
    pub(crate) continuation: Continuation,
    pub(crate) delivery: &'a mut Option<DeliveryHandle>,
    pub(crate) signing: &'a mut Option<Box<Signing>>,
    pub(crate) unacknowledged: &'a mut u8,
    pub(crate) queue_answers: &'a mut Vec<QueueReply>,
    pub(crate) questions: &'a mut VecDeque<QueueQuestion>,
    pub(crate) zones: &'a mut ZoneCache,
}

/// The client address under which the signer's budget counts all messages that are written in the
/// webmail.
const WEBMAIL: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

impl JobContext<'_, '_> {
    /// The store of this core.
    pub(crate) fn store(&self) -> &Store {
        &self.cx.archive.own.store
    }

    /// The store of this core, mutable.
    pub(crate) fn store_mut(&mut self) -> &mut Store {
        &mut self.cx.archive.own.store
    }

    /// The cache of rendered list rows.
    pub(crate) fn rows(&mut self) -> &mut RowCache {
        self.cx.rows
    }

    /// The continuation that wakes the handler.
    pub(crate) fn continuation(&self) -> Continuation {
        self.continuation
    }

    /// The time of day.
    pub(crate) fn now(&self) -> UnixTime {
        self.cx.turn.wall
    }

    /// The time zone of an account's user.
    pub(crate) fn zone(&mut self, account: AccountId) -> Zone {
        let known = self.cx.archive.own.store.account(account);
        let preferences = known.as_ref().map(Preferences::of_account).unwrap_or_default();
        self.zones.find(&preferences.zone)
    }

    /// Random bytes, from a cryptographic generator.
    pub(crate) fn random(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        self.cx.entropy.random(&mut bytes);
        bytes
    }

    /// The machine's host name.
    pub(crate) fn host(&self) -> &str {
        self.cx.hostname
    }

    /// The local account that receives mail for an address, if one exists.
    pub(crate) fn recipient(&self, address: &str) -> Option<AccountId> {
        submission::recipient(address, self.cx.directory, self.cx.archive)
    }

    /// Whether mail for this address may be delivered through an outbox. The address belongs to no
    /// local account, or to an account with forwarding.
    pub(crate) fn may_post(&self, address: &str) -> bool {
        submission::may_post(address, self.cx.directory, self.cx.archive)
    }

    /// Whether an address is in a domain of this server.
    pub(crate) fn is_local(&self, address: &str) -> bool {
        self.cx.directory.has_domain_of(address)
    }

    /// Adds a message with these remote recipients to what the account has sent today. Errors: the
    /// limit that the message would exceed. In this case the message is not counted.
    pub(crate) fn may_send(
        &mut self,
        account: AccountId,
        remote: Vec<String>,
    ) -> Result<(), Excess> {
        let WebmailContext { archive, directory, console, turn, .. } = &mut *self.cx;
        accounts::may_send(account, remote, turn.wall, directory, archive, console)
    }

    /// Begins the delivery of a message. Errors: those of [`Store::begin`].
    pub(crate) fn begin_delivery(&mut self, recipients: &[Recipient]) -> Result<(), Refusal> {
        *self.delivery = Some(self.cx.archive.begin(recipients)?);
        Ok(())
    }

    /// Begins the signature by the author's domain. It covers the octets that are appended from now
    /// on.
    pub(crate) fn begin_signing(&mut self) {
        let signer = &self.cx.signer;
        *self.signing = signer.has_keys().then(|| signer.begin(WEBMAIL));
    }

    /// Appends to the message. Returns the number of octets that the store took. Errors: those of
    /// [`Store::append`], and [`Refusal::TooMany`] if the signer has no memory for this message.
    pub(crate) fn append(&mut self, octets: &[u8]) -> Result<usize, Refusal> {
        let delivery = self.delivery.ok_or(Refusal::NoSuchDelivery)?;
        let taken = self.cx.archive.append(delivery, octets, self.continuation)?;
        if let Some(signing) = self.signing {
            signing.arrived(octets.get(..taken).unwrap_or_default());
            signing.count(self.cx.signer).map_err(|_| Refusal::TooMany)?;
        }
        Ok(taken)
    }

    /// Returns the signatures of the complete message, which must be appended as its head. `None`:
    /// the signatures are being computed, and the handler is woken when they are ready.
    pub(crate) fn signatures(&mut self) -> Option<Vec<u8>> {
        let Some(signing) = self.signing else { return Some(Vec::new()) };
        let directory = self.cx.directory;
        signing.ended(|domain| directory.has_domain(domain));
        let at = Continuation { entry: WebmailWaitPoint::Signed.entry(), ..self.continuation };
        if signing.ask(at, self.cx.signer, self.cx.compute, self.cx.turn.wall) {
            return None;
        }
        let head = signing.head(&[], &[]);
        self.stop_signing();
        Some(head)
    }

    /// The GUID of the message in the first recipient's mailbox, if this core owns that account.
    pub(crate) fn guid(&self) -> Option<Guid> {
        self.cx.archive.guid((*self.delivery)?)
    }

    /// Commits the message. The handler is woken when the message is delivered. Errors: those of
    /// [`Store::commit`]. If it fails, nothing is delivered.
    pub(crate) fn commit(&mut self, closing: Closing) -> Result<(), Refusal> {
        let delivery = self.delivery.take().ok_or(Refusal::NoSuchDelivery)?;
        self.cx.archive.commit(delivery, closing, self.continuation)
    }

    /// Whether the submission service can hold one more message.
    pub(crate) fn may_hold(&self) -> bool {
        self.cx.submission.has_room()
    }

    /// Holds a draft of an account of this core. It is sent at `until`, unless the user takes it
    /// back. `answers`: the message of the account that the draft replies to.
    pub(crate) fn hold(
        &mut self,
        account: AccountId,
        uid: Uid,
        answers: Option<(MailboxId, Uid)>,
        until: UnixTime,
    ) {
        let after = Micros(until.0.saturating_sub(self.cx.turn.wall.0));
        self.cx.submission.hold((account, uid), answers, self.cx.turn.now, after);
    }

    /// Takes a held draft back, so that it is not sent. Returns the message that the draft replies
    /// to, if it is known. `None`: the draft is being sent already, or was never held.
    pub(crate) fn take_back(
        &mut self,
        account: AccountId,
        uid: Uid,
    ) -> Option<Option<(MailboxId, Uid)>> {
        self.cx.submission.take_back((account, uid))
    }

    /// The largest message, in octets.
    pub(crate) fn message_octets_max(&self) -> u64 {
        self.cx.message_octets_max
    }

    /// Tells all cores the account's current password. Returns whether other cores must acknowledge
    /// it. If so, the handler is woken when all of them have acknowledged the password.
    pub(crate) fn tell_password(&mut self, account: AccountId) -> bool {
        *self.unacknowledged = self.cx.archive.tell_password(account, self.continuation.frame);
        *self.unacknowledged > 0
    }

    /// Sends a question about the queue to all cores that own the entries. The handler is woken
    /// when all of them have answered.
    pub(crate) fn ask_queue(&mut self, asked: &QueueQuery) {
        let archive = &self.cx.archive;
        let owners: Vec<CoreId> = match asked {
            QueueQuery::Handle(_, Which::One(posted) | Which::Message(posted)) => {
                [archive.owner(posted.account)].into()
            }
            QueueQuery::Look(_) | QueueQuery::Handle(_, Which::Domain(_)) => {
                archive.all_owners().collect()
            }
        };
        *self.unacknowledged = owners.len() as u8;
        let frame = self.continuation.frame;
        self.questions.extend(owners.into_iter().map(|owner| QueueQuestion {
            owner,
            frame,
            asked: asked.clone(),
        }));
    }

    /// Takes the answers of the cores.
    pub(crate) fn take_queue_answers(&mut self) -> Vec<QueueReply> {
        core::mem::take(self.queue_answers)
    }

    /// Aborts the delivery and the signing that the job has begun.
    pub(crate) fn abort(&mut self) {
        self.stop_signing();
        if let Some(delivery) = self.delivery.take() {
            self.cx.archive.abort(delivery);
        }
    }
}

impl JobContext<'_, '_> {
    fn stop_signing(&mut self) {
        if let Some(mut signing) = self.signing.take() {
            signing.forget(self.cx.signer, self.cx.compute);
        }
    }
}
