//! The context of request handlers: the parts of their core, and the work in progress of a job.

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

tasks::points! {
    /// Events of the store and of the compute cores that a request handler waits for.
    pub enum WebmailWaitPoint of Subsystem::Webmail;
    /// The store completes a request.
    Asked,
    /// A signature is computed.
    Signed,
}

/// The continuation of a request to the store if its outcome is not awaited: no handler ever has
/// this frame.
pub(crate) const UNAWAITED: Continuation =
    Continuation { frame: FrameId::new(u32::MAX, 0), entry: WebmailWaitPoint::Asked.entry() };

/// A question about entries of the queue.
pub struct QueueQuestion {
    /// The core that owns the accounts of the entries.
    pub owner: CoreId,
    /// The frame that waits for the reply.
    pub frame: FrameId,
    /// What is asked.
    pub asked: QueueQuery,
}

/// The parts of a core that request handlers use.
pub struct WebmailContext<'a> {
    /// The stores of all cores, as one.
    pub archive: &'a mut ShardedStore,
    /// Messages that are held.
    pub submission: &'a mut Submission,
    /// Rows that lists had before.
    pub rows: &'a mut RowCache,
    /// Addresses and their accounts.
    pub directory: &'a Directory,
    /// What signs messages of our domains.
    pub signer: &'a mut Signer,
    /// Password hashes and signatures under way.
    pub compute: &'a mut Compute,
    /// The name of this machine.
    pub hostname: &'a str,
    /// Lines for the operator.
    pub console: &'a mut ConsoleLines,
    /// The largest message, in octets.
    pub message_octets_max: u64,
    /// The clocks of this turn.
    pub turn: Turn,
    /// Randomness.
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
}

/// The signer's budget counts messages by client address. All messages that are written in the
/// webmail count for this one address.
const WEBMAIL: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

impl JobContext<'_, '_> {
    /// The store of this core.
    pub(crate) fn store(&self) -> &Store {
        &self.cx.archive.own.store
    }

    /// The store of this core, for requests to it.
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

    /// The local account that receives mail for an address. `None`: there is no such account.
    pub(crate) fn recipient(&self, address: &str) -> Option<AccountId> {
        submission::recipient(address, self.cx.directory, self.cx.archive)
    }

    /// Whether mail for this address may leave by an outbox: it belongs to no local account, or to
    /// one with forwarding.
    pub(crate) fn may_post(&self, address: &str) -> bool {
        submission::may_post(address, self.cx.directory, self.cx.archive)
    }

    /// Whether an address is in a domain of this server.
    pub(crate) fn is_local(&self, address: &str) -> bool {
        self.cx.directory.has_domain_of(address)
    }

    /// Counts one more message of the account for today, with these remote recipients. Errors: the
    /// limit that it would exceed; then it does not count.
    pub(crate) fn may_send(
        &mut self,
        account: AccountId,
        remote: Vec<String>,
    ) -> Result<(), Excess> {
        let WebmailContext { archive, directory, console, turn, .. } = &mut *self.cx;
        accounts::may_send(account, remote, turn.wall, directory, archive, console)
    }

    /// Begins a message. Errors: as [`Store::begin`].
    pub(crate) fn begin_delivery(&mut self, recipients: &[Recipient]) -> Result<(), Refusal> {
        *self.delivery = Some(self.cx.archive.begin(recipients)?);
        Ok(())
    }

    /// Octets that are appended from now on are to be signed by the author's domain.
    pub(crate) fn begin_signing(&mut self) {
        let signer = &self.cx.signer;
        *self.signing = signer.has_keys().then(|| signer.begin(WEBMAIL));
    }

    /// Appends to the message. Errors: those of [`Store::append`]; [`Refusal::TooMany`] when the
    /// signer has no memory for this message.
    pub(crate) fn append(&mut self, octets: &[u8]) -> Result<usize, Refusal> {
        let delivery = self.delivery.ok_or(Refusal::NoSuchDelivery)?;
        let taken = self.cx.archive.append(delivery, octets, self.continuation)?;
        if let Some(signing) = self.signing {
            signing.arrived(octets.get(..taken).unwrap_or_default());
            signing.count(self.cx.signer).map_err(|_| Refusal::TooMany)?;
        }
        Ok(taken)
    }

    /// The message is complete: returns its signatures, to be appended as its head. `None`: they
    /// are being computed, and the handler is woken when they are ready.
    pub(crate) fn signatures(&mut self) -> Option<Vec<u8>> {
        let Some(signing) = self.signing else { return Some(Vec::new()) };
        let directory = self.cx.directory;
        signing.ended(|domain| directory.has_domain(domain));
        let at = Continuation { entry: WebmailWaitPoint::Signed.entry(), ..self.continuation };
        if signing.ask(at, self.cx.signer, self.cx.compute, self.cx.turn.wall) {
            return None;
        }
        let head = signing.head(&[]);
        self.stop_signing();
        Some(head)
    }

    /// The GUID of the message in the first recipient's mailbox, if this core owns that account.
    pub(crate) fn guid(&self) -> Option<Guid> {
        self.cx.archive.guid((*self.delivery)?)
    }

    /// Commits the message. The handler is woken when it is delivered. Errors: those of
    /// [`Store::commit`]; then nothing is delivered.
    pub(crate) fn commit(&mut self, closing: Closing) -> Result<(), Refusal> {
        let delivery = self.delivery.take().ok_or(Refusal::NoSuchDelivery)?;
        self.cx.archive.commit(delivery, closing, self.continuation)
    }

    /// Whether submission can hold one more message.
    pub(crate) fn may_hold(&self) -> bool {
        self.cx.submission.has_room()
    }

    /// Holds a draft of an account of this core. It leaves at `until` unless it is taken back.
    /// `answers`: the account's message that it replies to.
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

    /// Stops a draft from leaving. Returns the message that it replies to, if that is known.
    /// `None`: it is leaving already, or was never held.
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

    /// Tells all cores the account's present password. Returns whether other cores must
    /// acknowledge: then the handler is woken when all have done so.
    pub(crate) fn tell_password(&mut self, account: AccountId) -> bool {
        *self.unacknowledged = self.cx.archive.tell_password(account, self.continuation.frame);
        *self.unacknowledged > 0
    }

    /// Asks all cores that own entries in question. The handler is woken when all have answered.
    pub(crate) fn ask_queue(&mut self, asked: &QueueQuery) {
        let archive = &self.cx.archive;
        let owners: Vec<CoreId> = match asked {
            QueueQuery::Handle(_, Which::One(posted)) => [archive.owner(posted.account)].into(),
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
