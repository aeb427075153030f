//! The sharded store client of a core: the local store, and access to the stores of all other
//! cores.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use machine::{CoreId, Disk, Instant};
use relay::destinations::Leave;
use store::{
    AccountId, Body, BodySpace, INBOX, Outcome, Owners, Recipient, Refusal, State, Store,
    Summarizer, Uid, UidRange, Wake,
};
use tasks::Continuation;

use crate::allowances::Allowances;
use crate::ask::{GiveBack, OwnerQuery, Subject};
use crate::destination::{
    DestinationEvent, DestinationNotice, DestinationReport, DomainPolicy, MayConnect,
};
use crate::facts::Facts;
use crate::known::{self, Accounts, Changed, KnownAccount};
use crate::maildrop::{MaildropSnapshot, Maildrops};
use crate::messages::{CoreEvent, Limits, News, Request, StartStage, StoreStatus};
use crate::multi_shard::MultiShardDeliveries;
use crate::owned::Owned;
use crate::point::ShardWaitPoint;
use crate::question::{OwnerQuestion, Reply};
use crate::remote::RemoteShards;
use crate::server::ShardServer;

/// The local store, and access to the stores of all other cores.
pub struct ShardedStore {
    pub(crate) core: CoreId,
    pub(crate) owners: Owners,
    /// The state that this core owns.
    pub own: Owned,
    /// Accounts of this core with a changed password. Their sessions on this core must be ended.
    pub(crate) outdated: Vec<AccountId>,
    /// Notices that the owners of destinations have sent, until they are taken.
    notices: VecDeque<DestinationNotice>,
    /// `None` on a machine with one core.
    pub(crate) others: Option<OtherCores>,
}

/// The state for working with other cores.
pub(crate) struct OtherCores {
    /// Serves the requests of other cores.
    pub(crate) server: ShardServer,
    pub(crate) remote: RemoteShards,
    pub(crate) multi_shard: MultiShardDeliveries,
    /// This core's stage of the start. `Listening` as soon as the first core says so.
    pub(crate) stage: StartStage,
    /// All accounts, once they are made.
    pub(crate) accounts: Arc<Accounts>,
    /// The passwords that were changed after `accounts` was made.
    pub(crate) changed: BTreeMap<AccountId, Arc<Changed>>,
    /// Buffer for the recipients of a multi-shard message that belong to one core.
    pub(crate) recipients: Vec<Recipient>,
}

impl OtherCores {
    /// Whether no operation of this core is in progress on another core, and no operation of
    /// another core is in progress here.
    fn is_at_rest(&self) -> bool {
        self.remote.is_at_rest() && self.multi_shard.len() == 0 && self.server.is_at_rest()
    }

    /// An account, with its current password.
    pub(crate) fn account(&self, id: AccountId) -> Option<KnownAccount<'_>> {
        let known = self.accounts.account(id)?;
        Some(match self.changed.get(&id) {
            None => known,
            Some(changed) => KnownAccount {
                password_hash: &changed.password_hash,
                verifier: &changed.verifier,
                ..known
            },
        })
    }

    /// Records the new password of an account. The caller must end the account's sessions on this
    /// core.
    pub(crate) fn password_changed(&mut self, changed: Arc<Changed>) -> AccountId {
        let account = changed.account();
        self.changed.insert(account, changed);
        account
    }
}

/// Makes the summaries of all messages.
pub const SUMMARIZER: Summarizer =
    Summarizer { summarize: message::summarize, shorten_header: message::shorten_header };

const _: () = assert!(message::SHORT_HEADER_BYTES_MAX <= store::SHORT_HEADER_BYTES_MAX);

impl ShardedStore {
    /// The client for one of `cores` cores. The first core's store begins to open the disk.
    /// `facts`: state about external hosts.
    pub fn new(
        (core, cores): (CoreId, u8),
        limits: &Limits,
        seed: [u8; 32],
        disk: Disk,
        facts: Facts,
    ) -> ShardedStore {
        let mut store = match core {
            CoreId::FIRST => Store::disk_owner(limits.store, disk, seed, cores),
            _ => Store::client(limits.store, seed),
        };
        store.summarize_with(SUMMARIZER);
        let others = (cores > 1).then(|| OtherCores {
            server: ShardServer::new(core, cores, limits),
            remote: RemoteShards::new(cores, limits.remote_deliveries),
            multi_shard: MultiShardDeliveries::new(limits.transactions),
            stage: StartStage::Waiting,
            accounts: Arc::default(),
            changed: BTreeMap::new(),
            recipients: Vec::with_capacity(limits.store.recipients),
        });
        let own = Owned {
            store,
            maildrops: Maildrops::new(cores),
            allowances: Allowances::default(),
            facts,
        };
        ShardedStore {
            core,
            owners: Owners::ONE,
            own,
            outdated: Vec::new(),
            notices: VecDeque::new(),
            others,
        }
    }

    /// The state of the store that this core's sessions depend on.
    pub fn state(&self) -> State {
        match self.others.as_ref().filter(|_| !self.owns_accounts()) {
            None => self.own.store.state(),
            // A core without shards uses the state that the first core has reported.
            Some(others) => {
                others.remote.status(CoreId::FIRST).map_or(State::Opening, |status| status.state)
            }
        }
    }

    /// Checks that a message of `octets` is likely to find space on some core. Notes a refusal for
    /// the operator.
    ///
    /// Errors: `DiskFull` if any core gives it, else `IndexFull`, else `TooLarge`, else
    /// `NotServing`.
    pub fn check_space(&mut self, octets: u64) -> Result<(), Refusal> {
        let mut mildest = Refusal::NotServing;
        for space in self.spaces() {
            match (space.check(octets), mildest) {
                (Ok(()), _) => return Ok(()),
                (Err(Refusal::NotServing), _) | (Err(_), Refusal::DiskFull) => {}
                (Err(Refusal::TooLarge), Refusal::IndexFull) => {}
                (Err(refusal), _) => mildest = refusal,
            }
        }
        if mildest == Refusal::DiskFull {
            self.own.store.message_refused();
        }
        Err(mildest)
    }

    /// The size of the largest message that an otherwise empty disk has space for.
    pub fn octets_max(&self) -> u64 {
        self.spaces().map(BodySpace::octets_max).max().unwrap_or(0)
    }

    /// The space on each core that owns accounts.
    fn spaces(&self) -> impl Iterator<Item = BodySpace> {
        let own = self.owns_accounts().then(|| self.own.store.room());
        own.into_iter().chain(self.all_status().map(|status| status.room))
    }

    /// Whether any store is short of buffers, or of places for messages.
    pub fn is_short_of_buffers(&self) -> bool {
        self.is_local_short_of_buffers()
            || self.all_status().any(|status| status.is_short_of_buffers)
    }

    /// Whether this core's store is short of buffers, or of places for messages.
    pub(crate) fn is_local_short_of_buffers(&self) -> bool {
        let has_no_place = |others: &OtherCores| others.server.is_short_of_places();
        self.own.store.is_short_of_buffers() || self.others.as_ref().is_some_and(has_no_place)
    }

    /// The account that mail for `address` goes to.
    pub fn find(&self, address: &str) -> Option<AccountId> {
        match &self.others {
            None => self.own.store.find(address),
            Some(others) => others.accounts.find(address),
        }
    }

    /// The cores that own accounts.
    pub fn all_owners(&self) -> impl Iterator<Item = CoreId> + use<> {
        (0..self.owners.count()).map(CoreId)
    }

    /// The core that owns an account.
    pub fn owner(&self, account: AccountId) -> CoreId {
        self.owners.of(account)
    }

    /// An account as sessions see it.
    pub fn account(&self, id: AccountId) -> Option<KnownAccount<'_>> {
        match &self.others {
            None => self.own.store.account(id).map(KnownAccount::of),
            Some(others) => others.account(id),
        }
    }

    /// The secret for the salts of unknown names.
    pub fn secret_of_unknown_names(&self) -> [u8; 16] {
        match &self.others {
            None => known::secret_of_unknown_names(&self.own.store),
            Some(others) => others.accounts.secret_of_unknown_names(),
        }
    }

    /// The secret for the rewritten senders (SRS) of forwarded mail.
    pub fn secret_of_paths(&self) -> [u8; 16] {
        match &self.others {
            None => known::secret_of_paths(&self.own.store),
            Some(others) => others.accounts.secret_of_paths(),
        }
    }

    /// The core that owns this subject.
    fn owner_of(&self, subject: Subject) -> CoreId {
        match subject {
            Subject::Account(account) => self.owner(account),
            // The low bits of the hash select the slot in the owner's table.
            Subject::ExternalHost(hash) => CoreId(((hash >> 32) % u64::from(self.cores())) as u8),
        }
    }

    fn cores(&self) -> u8 {
        self.others.as_ref().map_or(1, |others| others.server.cores())
    }

    /// Asks the owner of a subject. `None`: the reply comes later, to the frame that waits at `at`.
    pub fn ask_owner<Q: OwnerQuery>(&mut self, question: Q, at: Continuation) -> Option<Q::Reply>
    where
        OwnerQuestion: From<Q>,
    {
        let owner = self.owner_of(question.subject());
        match self.remote_at(owner) {
            None => Some(question.answer(&mut self.own)),
            Some(remote) => {
                remote.ask(owner, Request::Question(at, question.into()));
                None
            }
        }
    }

    /// Handles a reply after its asker has ended: gives back the resource in the reply.
    pub fn give_back_reply(&mut self, reply: Reply) {
        match reply.unwanted() {
            Some(GiveBack::Maildrop(maildrop)) => self.close_maildrop(maildrop),
            None => {}
        }
    }

    /// Asks the owner of a destination whether one more connection to it is allowed. `None`:
    /// [`ShardedStore::next_destination_notice`] returns the answer later.
    pub fn ask_to_connect(
        &mut self,
        destination: u64,
        at: Continuation,
        now: Instant,
    ) -> Option<(Leave, DomainPolicy)> {
        let question = MayConnect { destination, core: self.core, at, now };
        match self.ask_owner(question, at)?? {
            DestinationNotice::Leave(_, _, leave, policy) => Some((leave, policy)),
            DestinationNotice::Keeps(..) => unreachable!("no reply to a question"),
        }
    }

    /// Reports an event at a destination to its owner.
    pub fn report_destination(&mut self, destination: u64, event: DestinationEvent) {
        self.ask_owner(
            DestinationReport { destination, core: self.core, event },
            DestinationReport::NOWHERE,
        );
    }

    /// The next message of a destination owner for this core. Messages for other cores are sent to
    /// them.
    pub fn next_destination_notice(&mut self) -> Option<DestinationNotice> {
        while let Some((core, notice)) = self.own.facts.next_notice() {
            match &mut self.others {
                Some(others) if core != self.core => {
                    others.server.tell(core, News::Destination(notice))
                }
                _ => self.notices.push_back(notice),
            }
        }
        self.notices.pop_front()
    }

    /// Stores a notice from the owner of a destination. Returns the event for the engine, if there
    /// is a notice.
    pub(crate) fn notice_arrived(
        &mut self,
        notice: Option<DestinationNotice>,
    ) -> Option<CoreEvent> {
        self.notices.push_back(notice?);
        Some(CoreEvent::DestinationNotice)
    }

    /// Reads from an inbox, as [`store::Store::read`].
    pub fn read(
        &mut self,
        account: AccountId,
        uid: Uid,
        offset: u32,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        let owner = self.owners.of(account);
        match self.remote_at(owner) {
            None => self.own.store.read(account, INBOX, uid, offset, continuation),
            Some(remote) => remote.read(owner, account, uid, offset, continuation),
        }
    }

    /// Gives back the resources of an outcome after its frame has ended.
    pub fn forget(&mut self, outcome: Outcome) {
        if let Outcome::Body(body) = outcome {
            self.give_back(body);
        }
    }

    /// Takes back the buffer of a body.
    pub fn give_back(&mut self, body: Body) {
        let owner = self.owners.of(body.account());
        match self.remote_at(owner) {
            None => self.own.store.give_back(body),
            Some(remote) => remote.give_back(owner, body),
        }
    }

    /// Removes from an inbox, as [`store::Store::remove`].
    pub fn remove(
        &mut self,
        account: AccountId,
        ranges: &[UidRange],
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        let owner = self.owners.of(account);
        match self.remote_at(owner) {
            None => self.own.store.remove(account, INBOX, ranges, continuation),
            Some(remote) => remote.remove(owner, account, ranges, continuation),
        }
    }

    /// Unlocks a maildrop.
    pub fn close_maildrop(&mut self, maildrop: Box<MaildropSnapshot>) {
        let owner = self.owners.of(maildrop.account());
        match self.remote_at(owner) {
            None => self.own.maildrops.close(&maildrop),
            Some(remote) => remote.ask(owner, Request::CloseMaildrop(maildrop)),
        }
    }

    /// The number of this core.
    pub fn core(&self) -> CoreId {
        self.core
    }

    /// The next result for a session of this core.
    pub fn next_wake(&mut self) -> Option<Wake> {
        if self.others.is_none() {
            return self.own.store.next_wake();
        }
        self.next_wake_of_several()
    }

    /// As [`ShardedStore::next_wake`], with several cores.
    #[inline(never)]
    fn next_wake_of_several(&mut self) -> Option<Wake> {
        loop {
            let OtherCores { server, remote, .. } = self.others.as_mut()?;
            let wake = server.next_wake(&mut self.own.store).or_else(|| remote.next_wake())?;
            if let Some(wake) = self.of_session(wake) {
                return Some(wake);
            }
        }
    }

    /// Returns the wake if it is for a session. A wake for a part of a multi-shard message is
    /// handled here.
    fn of_session(&mut self, wake: Wake) -> Option<Wake> {
        let delivery = wake.continuation.frame;
        match (ShardWaitPoint::of(wake.continuation.entry), &wake.outcome) {
            (Some(ShardWaitPoint::PartBegun), _) => return self.place_taken(delivery),
            (Some(ShardWaitPoint::PartSpace), _) => self.part_has_space(delivery),
            (Some(ShardWaitPoint::PartPrepared), Outcome::Refused(refusal)) => {
                self.refuse_preparing(delivery, *refusal);
            }
            (Some(ShardWaitPoint::PartPrepared), _) => self.part_prepared(delivery),
            (Some(ShardWaitPoint::PartRoom | ShardWaitPoint::PartStored), _) => {
                return self.others.as_mut().and_then(|others| others.multi_shard.woken(wake));
            }
            _ => return Some(wake),
        }
        None
    }

    /// Whether a wake waits.
    pub fn has_wakes(&self) -> bool {
        self.own.store.has_wakes()
            || self.others.as_ref().is_some_and(|others| others.remote.has_wakes())
    }

    /// Whether all operations have ended, and their changes are on the disk or refused.
    pub fn is_at_rest(&self) -> bool {
        let is_answered = |others: &OtherCores| others.is_at_rest();
        self.own.store.is_at_rest() && self.others.as_ref().is_none_or(is_answered)
    }

    /// Takes the snapshot of all accounts, before the other cores get their shards. A single core
    /// does not need it.
    pub fn note_accounts(&mut self) {
        if let Some(others) = &mut self.others {
            others.accounts = Arc::new(Accounts::of(&self.own.store));
        }
    }

    /// The number of messages on their way to the disk, as far as this core knows.
    pub fn deliveries_in_progress(&self) -> usize {
        let others = self.others.as_ref();
        self.own.store.deliveries_under_way()
            + others.map_or(0, |others| {
                others.remote.deliveries_in_progress() + others.multi_shard.len()
            })
    }

    /// The number of parts of bodies that are being read, or were not given back.
    pub fn reads_under_way(&self) -> usize {
        let others = self.others.as_ref();
        self.own.store.reads_under_way()
            + others.map_or(0, |others| others.remote.reads_under_way())
    }

    /// The locked maildrops of this core's accounts.
    pub fn maildrops(&self) -> &Maildrops {
        &self.own.maildrops
    }

    fn owns_accounts(&self) -> bool {
        self.core.0 < self.owners.count()
    }

    fn all_status(&self) -> impl Iterator<Item = StoreStatus> {
        self.others.iter().flat_map(|others| others.remote.all_status())
    }

    /// The client for the stores of other cores, unless the owner is this core.
    pub(crate) fn remote_at(&mut self, owner: CoreId) -> Option<&mut RemoteShards> {
        let others = self.others.as_mut().filter(|_| owner != self.core)?;
        Some(&mut others.remote)
    }
}
