//! What request handlers work with: the parts of their core, and what a job has on its way.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};

use accounts::{Directory, Excess};
use compute::Compute;
use machine::{ConsoleLines, CoreId, Entropy, Micros, Turn, UnixTime};
use outbound::{QueueAsked, QueueTold, Which};
use shards::{Archive, LetterId};
use signing::{Signer, Signing};
use store::{AccountId, Closing, Guid, MailboxId, Recipient, Refusal, Store, Uid};
use submission::Submission;
use tasks::{Continuation, FrameId, Subsystem};

use crate::clerk::written::WrittenRows;

tasks::points! {
    /// Where a request handler of the webmail waits for the store.
    pub enum Point of Subsystem::Webmail;
    /// Something was asked for.
    Asked,
    /// A signature is computed.
    Signed,
}

/// A question about entries of the queue.
pub struct QueueQuestion {
    /// The core that owns the accounts of the entries.
    pub owner: CoreId,
    /// The frame that waits for the reply.
    pub frame: FrameId,
    /// What is asked.
    pub asked: QueueAsked,
}

/// The parts of a core that request handlers use.
pub struct Context<'a> {
    /// The stores of all cores, as one.
    pub archive: &'a mut Archive,
    /// Messages that are held.
    pub submission: &'a mut Submission,
    /// Rows that lists had before.
    pub rows: &'a mut WrittenRows,
    /// Addresses and their accounts.
    pub directory: &'a Directory,
    /// What signs messages of our domains.
    pub signer: &'a mut Signer,
    /// Password hashes and signatures under way.
    pub compute: &'a mut Compute,
    /// The name of this machine.
    pub hostname: &'a str,
    /// What the console is told.
    pub console: &'a mut ConsoleLines,
    /// How long a message may be, in octets.
    pub letter_octets_max: u64,
    /// The clocks of this turn.
    pub turn: Turn,
    /// Randomness.
    pub entropy: &'a mut dyn Entropy,
}

/// The same for one job, with what it has on its way.
pub(crate) struct JobContext<'a, 'b> {
    pub(crate) cx: &'a mut Context<'b>,
    pub(crate) continuation: Continuation,
    pub(crate) letter: &'a mut Option<LetterId>,
    pub(crate) signing: &'a mut Option<Box<Signing>>,
    pub(crate) unheard: &'a mut u8,
    pub(crate) told: &'a mut Vec<QueueTold>,
    pub(crate) questions: &'a mut VecDeque<QueueQuestion>,
}

/// All messages that are written here share what one client's may have.
const WEBMAIL: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

impl JobContext<'_, '_> {
    /// The store.
    pub(crate) fn store(&self) -> &Store {
        &self.cx.archive.own.store
    }

    /// The store, to be asked.
    pub(crate) fn store_mut(&mut self) -> &mut Store {
        &mut self.cx.archive.own.store
    }

    /// Rows of lists that this core has written.
    pub(crate) fn rows(&mut self) -> &mut WrittenRows {
        self.cx.rows
    }

    /// What wakes the handler.
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

    /// The machine's name.
    pub(crate) fn host(&self) -> &str {
        self.cx.hostname
    }

    /// The account of this machine that gets what is sent to an address. `None`: there is none.
    pub(crate) fn recipient(&self, address: &str) -> Option<AccountId> {
        submission::recipient(address, self.cx.directory, self.cx.archive)
    }

    /// Whether a message can be sent to this address, which is of no account here, or of one with
    /// forwarding.
    pub(crate) fn may_post(&self, address: &str) -> bool {
        submission::may_post(address, self.cx.directory, self.cx.archive)
    }

    /// Whether an account may send one more message today, to these recipients elsewhere. If so, it
    /// counts.
    pub(crate) fn may_send(
        &mut self,
        account: AccountId,
        elsewhere: Vec<String>,
    ) -> Result<(), Excess> {
        let Context { archive, directory, console, turn, .. } = &mut *self.cx;
        accounts::may_send(account, elsewhere, turn.wall, directory, archive, console)
    }

    /// Begins a message. Errors: as [`Store::begin`].
    pub(crate) fn begin_letter(&mut self, recipients: &[Recipient]) -> Result<(), Refusal> {
        *self.letter = Some(self.cx.archive.begin(recipients)?);
        Ok(())
    }

    /// What is appended from now on is to be signed by the domain of its author.
    pub(crate) fn begin_signing(&mut self) {
        let signer = &self.cx.signer;
        *self.signing = signer.has_keys().then(|| signer.begin(WEBMAIL));
    }

    /// Appends to it, as [`Store::append`] does. Errors: so, too; and [`Refusal::TooMany`] where
    /// too much is kept of messages until they are signed.
    pub(crate) fn append(&mut self, octets: &[u8]) -> Result<usize, Refusal> {
        let letter = self.letter.ok_or(Refusal::NoSuchDelivery)?;
        let taken = self.cx.archive.append(letter, octets, self.continuation)?;
        if let Some(signing) = self.signing {
            signing.arrived(octets.get(..taken).unwrap_or_default());
            signing.count(self.cx.signer).map_err(|_| Refusal::TooMany)?;
        }
        Ok(taken)
    }

    /// All of the message was appended. What signs it: its head, to be appended last. `None`: it is
    /// being computed, and the handler is woken when it is there.
    pub(crate) fn signatures(&mut self) -> Option<Vec<u8>> {
        let Some(signing) = self.signing else { return Some(Vec::new()) };
        let directory = self.cx.directory;
        signing.ended(|domain| directory.has_domain(domain));
        let at = Continuation { entry: Point::Signed.entry(), ..self.continuation };
        if signing.ask(at, self.cx.signer, self.cx.compute, self.cx.turn.wall) {
            return None;
        }
        let head = signing.head(&[]);
        self.stop_signing();
        Some(head)
    }

    /// What its first recipient's message will be called, where that is one of this core's.
    pub(crate) fn guid(&self) -> Option<Guid> {
        self.cx.archive.guid((*self.letter)?)
    }

    /// Has it delivered. The handler is woken when it is. Errors: as [`Store::commit`]; there is no
    /// message then.
    pub(crate) fn commit(&mut self, closing: Closing) -> Result<(), Refusal> {
        let letter = self.letter.take().ok_or(Refusal::NoSuchDelivery)?;
        self.cx.archive.commit(letter, closing, self.continuation)
    }

    /// Whether one more message may be held.
    pub(crate) fn may_hold(&self) -> bool {
        self.cx.submission.has_room()
    }

    /// This draft of an account of this core is held: it leaves at that time, unless it is taken
    /// back. `answers`: the message of the account that it answers.
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

    /// This draft does not leave. Returns what it answers, if that is known; `None`: it is leaving,
    /// or was never held.
    pub(crate) fn take_back(
        &mut self,
        account: AccountId,
        uid: Uid,
    ) -> Option<Option<(MailboxId, Uid)>> {
        self.cx.submission.take_back((account, uid))
    }

    /// How long a message may be, in octets.
    pub(crate) fn letter_octets_max(&self) -> u64 {
        self.cx.letter_octets_max
    }

    /// Tells all cores the password that the account has now. Whether they are to be waited for:
    /// then the handler is woken when all know it.
    pub(crate) fn tell_password(&mut self, account: AccountId) -> bool {
        *self.unheard = self.cx.archive.tell_password(account, self.continuation.frame);
        *self.unheard > 0
    }

    /// Asks this of all cores that own something of it. The handler is woken when all have told.
    pub(crate) fn ask_queue(&mut self, asked: &QueueAsked) {
        let archive = &self.cx.archive;
        let owners: Vec<CoreId> = match asked {
            QueueAsked::Handle(_, Which::One(posted)) => [archive.owner(posted.account)].into(),
            QueueAsked::Look(_) | QueueAsked::Handle(_, Which::Domain(_)) => {
                archive.all_owners().collect()
            }
        };
        *self.unheard = owners.len() as u8;
        let frame = self.continuation.frame;
        self.questions.extend(owners.into_iter().map(|owner| QueueQuestion {
            owner,
            frame,
            asked: asked.clone(),
        }));
    }

    /// What they have told.
    pub(crate) fn queue_told(&mut self) -> Vec<QueueTold> {
        core::mem::take(self.told)
    }

    /// Gives it up.
    pub(crate) fn abort(&mut self) {
        self.stop_signing();
        if let Some(letter) = self.letter.take() {
            self.cx.archive.abort(letter);
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
