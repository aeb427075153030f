//! The store of a core, and the way to those of all others.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use machine::{CoreId, Disk, Instant};
use relay::destinations::Leave;
use store::{
    AccountId, Body, INBOX, Outcome, Owners, Recipient, Refusal, State, Store, Uid, UidRange, Wake,
};
use tasks::Continuation;

use crate::allowances::Allowances;
use crate::ask::{GiveBack, Question, Subject};
use crate::calling::{CallEvent, CallNews, CallTold, DomainPolicy, MayCall};
use crate::desk::Desk;
use crate::distant::Distant;
use crate::facts::Facts;
use crate::known::{self, Accounts, Changed, KnownAccount};
use crate::maildrop::{Maildrop, Maildrops};
use crate::messages::{Event, Limits, News, Request, Status};
use crate::owned::Owned;
use crate::question::{Asked, Reply};
use crate::spread::Spread;

/// The store of a core, and the way to all others.
pub struct Archive {
    pub(crate) core: CoreId,
    pub(crate) owners: Owners,
    /// What this core has of its accounts.
    pub own: Owned,
    /// Accounts of this core's whose password has changed, and whose sessions here have not been
    /// ended.
    pub(crate) outdated: Vec<AccountId>,
    /// What owners of destinations of mail have told, and nothing has heard.
    called: VecDeque<CallTold>,
    /// Not there where there is no other core.
    pub(crate) elsewhere: Option<Elsewhere>,
}

/// What a core has to do with the stores of others.
pub(crate) struct Elsewhere {
    /// Where the others ask.
    pub(crate) desk: Desk,
    pub(crate) distant: Distant,
    pub(crate) spread: Spread,
    /// Who is who, once mail is served.
    pub(crate) accounts: Arc<Accounts>,
    /// The passwords that were changed since.
    pub(crate) changed: BTreeMap<AccountId, Arc<Changed>>,
    /// The recipients of a spread letter that one core owns.
    pub(crate) recipients: Vec<Recipient>,
}

impl Elsewhere {
    /// Whether nothing of this core is under way on others, and nothing of theirs here.
    fn is_at_rest(&self) -> bool {
        self.distant.is_at_rest() && self.spread.len() == 0 && self.desk.is_at_rest()
    }

    /// As all cores know it.
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

    /// The password of an account is another. Its sessions on this core are to be ended.
    pub(crate) fn password_changed(&mut self, changed: Arc<Changed>) -> AccountId {
        let account = changed.account();
        self.changed.insert(account, changed);
        account
    }
}

impl Archive {
    /// Of one of `cores` cores. The first one's store begins to open the disk. `facts`: what is
    /// known of hosts elsewhere.
    pub fn new(
        (core, cores): (CoreId, u8),
        limits: &Limits,
        seed: [u8; 32],
        disk: Disk,
        facts: Facts,
    ) -> Archive {
        let mut store = match core {
            CoreId::FIRST => Store::keeper(limits.store, disk, seed, cores),
            _ => Store::guest(limits.store, seed),
        };
        store.summarize_with(message::summarize);
        let elsewhere = (cores > 1).then(|| Elsewhere {
            desk: Desk::new(core, cores, limits),
            distant: Distant::new(cores, limits.letters_for_others),
            spread: Spread::new(limits.transactions),
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
        Archive {
            core,
            owners: Owners::ONE,
            own,
            outdated: Vec::new(),
            called: VecDeque::new(),
            elsewhere,
        }
    }

    /// How the store is that this core's clients depend on.
    pub fn state(&self) -> State {
        match self.elsewhere.as_ref().filter(|_| !self.owns_something()) {
            None => self.own.store.state(),
            // Who owns nothing knows what the first core has told.
            Some(elsewhere) => elsewhere
                .distant
                .status(CoreId::FIRST)
                .map_or(State::Opening, |status| status.state),
        }
    }

    /// Whether a letter of `octets` is likely to find space on some core.
    pub fn has_room_for(&self, octets: u64) -> bool {
        self.owns_something() && self.own.store.room().holds(octets)
            || self.all_status().any(|status| status.room.holds(octets))
    }

    /// Whether the stores have fewer buffers or places than are asked for.
    pub fn is_short_of_buffers(&self) -> bool {
        self.is_short_of_buffers_itself()
            || self.all_status().any(|status| status.is_short_of_buffers)
    }

    /// Whether this core's store has.
    pub(crate) fn is_short_of_buffers_itself(&self) -> bool {
        let has_no_place = |elsewhere: &Elsewhere| elsewhere.desk.is_short_of_places();
        self.own.store.is_short_of_buffers() || self.elsewhere.as_ref().is_some_and(has_no_place)
    }

    /// The account that mail for `address` goes to.
    pub fn find(&self, address: &str) -> Option<AccountId> {
        match &self.elsewhere {
            None => self.own.store.find(address),
            Some(elsewhere) => elsewhere.accounts.find(address),
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

    /// What is known of an account.
    pub fn account(&self, id: AccountId) -> Option<KnownAccount<'_>> {
        match &self.elsewhere {
            None => self.own.store.account(id).map(KnownAccount::of),
            Some(elsewhere) => elsewhere.account(id),
        }
    }

    /// What the salts are made from that are told of names that nobody has.
    pub fn secret_of_nobody(&self) -> [u8; 16] {
        match &self.elsewhere {
            None => known::secret_of_nobody(&self.own.store),
            Some(elsewhere) => elsewhere.accounts.secret_of_nobody(),
        }
    }

    /// What addresses of those are sealed with whose letters are sent on.
    pub fn secret_of_paths(&self) -> [u8; 16] {
        match &self.elsewhere {
            None => known::secret_of_paths(&self.own.store),
            Some(elsewhere) => elsewhere.accounts.secret_of_paths(),
        }
    }

    /// The core that owns this.
    fn owner_of(&self, subject: Subject) -> CoreId {
        match subject {
            Subject::Account(account) => self.owner(account),
            // The low bits of a hash say where it stands in a table of its owner.
            Subject::Elsewhere(hash) => CoreId(((hash >> 32) % u64::from(self.cores())) as u8),
        }
    }

    fn cores(&self) -> u8 {
        self.elsewhere.as_ref().map_or(1, |elsewhere| elsewhere.desk.cores())
    }

    /// Asks the owner of something. `None`: the reply comes later, to the frame that waits `at`
    /// this point.
    pub fn ask_owner<Q: Question>(&mut self, question: Q, at: Continuation) -> Option<Q::Reply>
    where
        Asked: From<Q>,
    {
        let owner = self.owner_of(question.subject());
        match self.distant_at(owner) {
            None => Some(question.answer(&mut self.own)),
            Some(distant) => {
                distant.ask(owner, Request::Asked(at, question.into()));
                None
            }
        }
    }

    /// Nothing waits for this reply any more: what it holds goes home.
    pub fn give_back_reply(&mut self, reply: Reply) {
        match reply.unwanted() {
            Some(GiveBack::Maildrop(maildrop)) => self.close_maildrop(maildrop),
            None => {}
        }
    }

    /// Asks the owner of a destination of mail whether one more connection may be made there.
    /// `None`: [`Archive::next_called`] tells it later.
    pub fn ask_to_call(
        &mut self,
        destination: u64,
        at: Continuation,
        now: Instant,
    ) -> Option<(Leave, DomainPolicy)> {
        let question = MayCall { destination, core: self.core, at, now };
        match self.ask_owner(question, at)?? {
            CallTold::Leave(_, _, leave, policy) => Some((leave, policy)),
            CallTold::Keeps(..) => unreachable!("no reply to a question"),
        }
    }

    /// Tells the owner of a destination of mail what was found out about it.
    pub fn tell_of_call(&mut self, destination: u64, event: CallEvent) {
        self.ask_owner(CallNews { destination, core: self.core, event }, CallNews::NOWHERE);
    }

    /// What the owner of a destination of mail tells this core next; what this core has to tell
    /// others goes to them.
    pub fn next_called(&mut self) -> Option<CallTold> {
        while let Some((core, told)) = self.own.facts.next_told() {
            match &mut self.elsewhere {
                Some(elsewhere) if core != self.core => {
                    elsewhere.desk.tell(core, News::Called(told))
                }
                _ => self.called.push_back(told),
            }
        }
        self.called.pop_front()
    }

    /// The owner of a destination of mail has told this.
    pub(crate) fn called(&mut self, told: Option<CallTold>) -> Option<Event> {
        self.called.push_back(told?);
        Some(Event::Called)
    }

    /// As [`store::Store::read`], of the inbox.
    pub fn read(
        &mut self,
        account: AccountId,
        uid: Uid,
        offset: u32,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        let owner = self.owners.of(account);
        match self.distant_at(owner) {
            None => self.own.store.read(account, INBOX, uid, offset, continuation),
            Some(distant) => distant.read(owner, account, uid, offset, continuation),
        }
    }

    /// Gives back what came for a frame that is gone.
    pub fn forget(&mut self, outcome: Outcome) {
        if let Outcome::Body(body) = outcome {
            self.give_back(body);
        }
    }

    /// Takes back the buffer of a body.
    pub fn give_back(&mut self, body: Body) {
        let owner = self.owners.of(body.account());
        match self.distant_at(owner) {
            None => self.own.store.give_back(body),
            Some(distant) => distant.give_back(owner, body),
        }
    }

    /// As [`store::Store::remove`], of the inbox.
    pub fn remove(
        &mut self,
        account: AccountId,
        ranges: &[UidRange],
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        let owner = self.owners.of(account);
        match self.distant_at(owner) {
            None => self.own.store.remove(account, INBOX, ranges, continuation),
            Some(distant) => distant.remove(owner, account, ranges, continuation),
        }
    }

    /// Unlocks a maildrop.
    pub fn close_maildrop(&mut self, maildrop: Box<Maildrop>) {
        let owner = self.owners.of(maildrop.account());
        match self.distant_at(owner) {
            None => self.own.maildrops.close(&maildrop),
            Some(distant) => distant.ask(owner, Request::CloseMaildrop(maildrop)),
        }
    }

    /// Which core this is.
    pub fn core(&self) -> CoreId {
        self.core
    }

    /// The next end of something that a session of this core has asked for.
    pub fn next_wake(&mut self) -> Option<Wake> {
        if self.elsewhere.is_none() {
            return self.own.store.next_wake();
        }
        self.next_wake_of_several()
    }

    /// The same among several cores.
    #[inline(never)]
    fn next_wake_of_several(&mut self) -> Option<Wake> {
        loop {
            let Elsewhere { desk, distant, .. } = self.elsewhere.as_mut()?;
            let wake = desk.next_wake(&mut self.own.store).or_else(|| distant.next_wake())?;
            if let Some(wake) = self.of_session(wake) {
                return Some(wake);
            }
        }
    }

    /// Whether a wake waits.
    pub fn has_wakes(&self) -> bool {
        self.own.store.has_wakes()
            || self.elsewhere.as_ref().is_some_and(|elsewhere| elsewhere.distant.has_wakes())
    }

    /// Whether everything asked for has ended, and is on the disk or refused.
    pub fn is_at_rest(&self) -> bool {
        let is_answered = |elsewhere: &Elsewhere| elsewhere.is_at_rest();
        self.own.store.is_at_rest() && self.elsewhere.as_ref().is_none_or(is_answered)
    }

    /// Who is who, as the store knows before it is shared out: with one core nobody needs it.
    pub fn note_accounts(&mut self) {
        if let Some(elsewhere) = &mut self.elsewhere {
            elsewhere.accounts = Arc::new(Accounts::of(&self.own.store));
        }
    }

    /// Letters on their way to the disk, as far as this core knows.
    pub fn letters_under_way(&self) -> usize {
        let elsewhere = self.elsewhere.as_ref();
        self.own.store.deliveries_under_way()
            + elsewhere.map_or(0, |elsewhere| {
                elsewhere.distant.letters_under_way() + elsewhere.spread.len()
            })
    }

    /// Parts of bodies on their way to a session, or not given back.
    pub fn reads_under_way(&self) -> usize {
        let elsewhere = self.elsewhere.as_ref();
        self.own.store.reads_under_way()
            + elsewhere.map_or(0, |elsewhere| elsewhere.distant.reads_under_way())
    }

    /// The locked maildrops of this core's accounts.
    pub fn maildrops(&self) -> &Maildrops {
        &self.own.maildrops
    }

    fn owns_something(&self) -> bool {
        self.core.0 < self.owners.count()
    }

    fn all_status(&self) -> impl Iterator<Item = Status> {
        self.elsewhere.iter().flat_map(|elsewhere| elsewhere.distant.all_status())
    }

    /// The way to an owner, unless that is this core.
    pub(crate) fn distant_at(&mut self, owner: CoreId) -> Option<&mut Distant> {
        let elsewhere = self.elsewhere.as_mut().filter(|_| owner != self.core)?;
        Some(&mut elsewhere.distant)
    }
}
