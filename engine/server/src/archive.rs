//! The store as sessions see it: the same calls on every core, whoever owns the account.
//!
//! A core owns the shards of some accounts, and has a store of these: [`Own`]. What concerns other accounts is asked of the cores that
//! own them: [`Distant`] answers at once what has to be answered at once, from what they have told, and sends the rest as a
//! [`Request`] through the ring to the owner. What comes of it comes back as [`News`], and from there on is the same [`Wake`] that
//! the owner's own sessions get. A letter for accounts of several cores is one letter for each of them: [`Spread`].
//!
//! The disk has one queue for us, so one core keeps it: the first. It opens the disk, makes the accounts, and hands over to the others
//! their shares of the shards; their stores run errands to it from then on (crate `store`).
//!
//! | | for an account of this core | for one of another |
//! |---|---|---|
//! | who is who | a snapshot that all cores share | the same |
//! | a letter's octets | into the store's buffer | into a page, which travels and comes home |
//! | a body's octets | in the store's buffer | in the owner's buffer, which travels and comes home |
//! | a maildrop | locked | locked by the owner, and sent |
//!
//! Invariants:
//! - What waits to be sent is bounded: by the pages, letters, reads and sessions that there are.
//! - The messages between two cores keep their order; so the owner hears of a letter's end after all of its octets.
//! - With one core nobody is asked: each call is the store's own.

mod accounts;
mod desk;
mod distant;
mod letters;
mod own;
mod purpose;
mod question;
mod spread;
mod usage;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use machine::{CoreId, Disk};
use store::{
    AccountId, Body, Closing, DeliveryId, INBOX, Origin, Outcome, Owners, Recipient, Refusal, Room, Share, State,
    Store, Uid, UidRange, Wake,
};
use tasks::{Continuation, FrameId};

use crate::maildrop::{Maildrop, Maildrops};
use crate::sizes::Sizes;
use crate::subsystem::Subsystem;

pub(crate) use accounts::{Accounts, Changed, KnownAccount};
pub(crate) use distant::{Distant, Letter};
pub(crate) use own::Own;
pub(crate) use purpose::Purpose;
use purpose::{core_of, on_core};
pub(crate) use question::{Asked, Question, Reply};
use spread::Spread;
pub(crate) use usage::{UsageOf, Used};

tasks::points! {
    /// Where messages wait that concern several cores.
    pub(super) enum Point of Subsystem::Shards;
    /// A message for accounts of several cores: one of them has room for more of it.
    PartRoom,
    /// The same: this core may know now whether it has space for its part.
    PartSpace,
    /// The same: one of them has all of it, and space for it.
    PartPrepared,
    /// The same: one of them has it on the disk.
    PartStored,
    /// A message of another core for accounts of this one: the store has room for more of it.
    LetterRoom,
    /// The same: it is on the disk.
    LetterStored,
}

/// Octets that travel in one page.
const PAGE_OCTETS: usize = 4096;

/// The store of a core, and the way to all others.
pub(crate) struct Archive {
    core: CoreId,
    owners: Owners,
    pub(crate) own: Own,
    /// Accounts of this core's whose password has changed, and whose sessions here have not been
    /// ended.
    outdated: Vec<AccountId>,
    /// Not there where there is no other core.
    elsewhere: Option<Elsewhere>,
}

/// What a core has to do with the stores of others.
pub(crate) struct Elsewhere {
    pub(crate) distant: Distant,
    spread: Spread,
    /// Who is who, once mail is served.
    pub(crate) accounts: Arc<Accounts>,
    /// The passwords that were changed since.
    changed: BTreeMap<AccountId, Arc<Changed>>,
    /// The recipients of a spread letter that one core owns.
    recipients: Vec<Recipient>,
}

/// A letter on its way into the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LetterId {
    Own(DeliveryId),
    Distant(Letter),
    Spread(FrameId),
}

/// Octets of a letter on their way to the owner. It belongs to the core that filled it.
pub(crate) struct Page {
    letter: Letter,
    /// Who gets the letter; in its first page only.
    recipients: Vec<Recipient>,
    length: usize,
    octets: [u8; PAGE_OCTETS],
}

/// What a core asks of another, as the owner of accounts.
pub(crate) enum Request {
    /// Octets of a letter.
    Octets { page: Box<Page>, end: Option<End> },
    /// A letter that was prepared is to be delivered.
    Commit(Letter, Closing),
    /// Nobody wants the letter any more.
    Abort(Letter),
    /// A part of a body is wanted.
    Read { account: AccountId, uid: Uid, offset: u32, continuation: Continuation },
    /// A body comes home.
    BodyDone(Body),
    /// Messages are to go.
    Remove { account: AccountId, ranges: Vec<UidRange>, continuation: Continuation },
    /// That this letter has arrived is to be forgotten.
    ForgetArrival { account: AccountId, origin: Origin, continuation: Continuation },
    /// A question, whose reply is for the frame that waits at this point.
    Asked(Continuation, Asked),
    /// A maildrop comes home, to be unlocked.
    CloseMaildrop(Box<Maildrop>),
    /// The core knows the password that a clerk of this frame has told it.
    PasswordKnown(FrameId),
    /// The core owns its share of the shards now. To the first core only.
    TookOver,
    /// Callers are heard on the core from now on. To the first core only.
    Serving,
    /// The core asks for nothing any more. To the first core: nor has its store any errand.
    Left,
}

/// What is to be done with a letter that is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// It is delivered.
    Commit(Closing),
    /// It waits to be committed, with the space that it needs.
    Prepare,
}

/// What an owner of accounts tells another core.
pub(crate) enum News {
    /// A page comes home.
    PageDone(Box<Page>),
    /// What came of a letter, a read, a removal or what was to be forgotten.
    Woken(Purpose, Wake),
    /// All of a letter is there, and space for it.
    Prepared(Letter),
    /// The reply to a question of the frame that waits at this point.
    Replied(Continuation, Reply),
    /// The password of an account is another; the clerk of this frame wants to know when that is known.
    Password(FrameId, Arc<Changed>),
    /// How the store is.
    Status(Status),
    /// These shards are the other core's from now on. From the first core only, as are the next two.
    Share(Box<Share>),
    /// Mail is served from now on, for these accounts, which are owned so.
    Serve(Arc<Accounts>, Owners),
    /// The machine is asked to stop.
    Stop,
}

/// How the store is, as every core has to know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Status {
    state: State,
    room: Room,
    is_short_of_buffers: bool,
}

impl Archive {
    /// Of one of `cores` cores. The first one's store begins to open the disk.
    pub(crate) fn new((core, cores): (CoreId, u8), sizes: &Sizes, seed: [u8; 32], disk: Disk) -> Archive {
        let limits = sizes.store_limits(cores);
        let mut store = match core {
            CoreId::FIRST => Store::keeper(limits, disk, seed, cores),
            _ => Store::guest(limits, seed),
        };
        store.summarize_with(message::summarize);
        let elsewhere = (cores > 1).then(|| Elsewhere {
            distant: Distant::new(cores, sizes.letters_for_others(cores)),
            spread: Spread::new(sizes.transactions),
            accounts: Arc::default(),
            changed: BTreeMap::new(),
            recipients: Vec::with_capacity(limits.recipients),
        });
        Archive { core, owners: Owners::ONE, own: Own::new(store, core, cores, sizes), outdated: Vec::new(), elsewhere }
    }

    pub(crate) fn state(&self) -> State {
        match self.elsewhere.as_ref().filter(|_| !self.owns_something()) {
            None => self.own.store.state(),
            // Who owns nothing knows what the first core has told.
            Some(elsewhere) => elsewhere.distant.status(CoreId::FIRST).map_or(State::Opening, |status| status.state),
        }
    }

    /// Whether a letter of `octets` is likely to find space on some core.
    pub(crate) fn has_room_for(&self, octets: u64) -> bool {
        self.owns_something() && self.own.store.room().holds(octets)
            || self.all_status().any(|status| status.room.holds(octets))
    }

    pub(crate) fn is_short_of_buffers(&self) -> bool {
        self.own.store.is_short_of_buffers() || self.all_status().any(|status| status.is_short_of_buffers)
    }

    /// The account that mail for `address` goes to.
    pub(crate) fn find(&self, address: &str) -> Option<AccountId> {
        match &self.elsewhere {
            None => self.own.store.find(address),
            Some(elsewhere) => elsewhere.accounts.find(address),
        }
    }

    /// The cores that own accounts.
    pub(crate) fn all_owners(&self) -> impl Iterator<Item = CoreId> + use<> {
        (0..self.owners.count()).map(CoreId)
    }

    /// The core that owns an account.
    pub(crate) fn owner(&self, account: AccountId) -> CoreId {
        self.owners.of(account)
    }

    pub(crate) fn account(&self, id: AccountId) -> Option<KnownAccount<'_>> {
        match &self.elsewhere {
            None => self.own.store.account(id).map(KnownAccount::of),
            Some(elsewhere) => elsewhere.account(id),
        }
    }

    /// What the salts are made from that are told of names that nobody has.
    pub(crate) fn secret_of_nobody(&self) -> [u8; 16] {
        match &self.elsewhere {
            None => accounts::secret_of_nobody(&self.own.store),
            Some(elsewhere) => elsewhere.accounts.secret_of_nobody(),
        }
    }

    /// What addresses of those are sealed with whose letters are sent on.
    pub(crate) fn secret_of_paths(&self) -> [u8; 16] {
        match &self.elsewhere {
            None => accounts::secret_of_paths(&self.own.store),
            Some(elsewhere) => elsewhere.accounts.secret_of_paths(),
        }
    }

    /// As [`store::Store::read`], of the inbox.
    pub(crate) fn read(
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
    pub(crate) fn forget(&mut self, outcome: Outcome) {
        if let Outcome::Body(body) = outcome {
            self.give_back(body);
        }
    }

    /// Takes back the buffer of a body.
    pub(crate) fn give_back(&mut self, body: Body) {
        let owner = self.owners.of(body.account());
        match self.distant_at(owner) {
            None => self.own.store.give_back(body),
            Some(distant) => distant.give_back(owner, body),
        }
    }

    /// As [`store::Store::remove`], of the inbox.
    pub(crate) fn remove(
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
    pub(crate) fn close_maildrop(&mut self, maildrop: Box<Maildrop>) {
        let owner = self.owners.of(maildrop.account);
        match self.distant_at(owner) {
            None => self.own.maildrops.close(&maildrop),
            Some(distant) => distant.ask(owner, Request::CloseMaildrop(maildrop)),
        }
    }

    /// Which core this is.
    pub(crate) fn core(&self) -> CoreId {
        self.core
    }

    /// The next end of something that a session of this core has asked for.
    pub(crate) fn next_wake(&mut self) -> Option<Wake> {
        if self.elsewhere.is_none() {
            return self.own.store.next_wake();
        }
        self.next_wake_of_several()
    }

    /// The same among several cores.
    #[inline(never)]
    fn next_wake_of_several(&mut self) -> Option<Wake> {
        loop {
            let distant = &mut self.elsewhere.as_mut()?.distant;
            let wake = self.own.next_wake().or_else(|| distant.next_wake())?;
            if let Some(wake) = self.of_session(wake) {
                return Some(wake);
            }
        }
    }

    pub(crate) fn has_wakes(&self) -> bool {
        self.own.store.has_wakes() || self.elsewhere.as_ref().is_some_and(|elsewhere| elsewhere.distant.has_wakes())
    }

    /// Whether everything asked for has ended, and is on the disk or refused.
    pub(crate) fn is_at_rest(&self) -> bool {
        let is_answered = |elsewhere: &Elsewhere| elsewhere.distant.is_at_rest() && elsewhere.spread.len() == 0;
        self.own.is_at_rest() && self.elsewhere.as_ref().is_none_or(is_answered)
    }

    /// Tells all other cores but the first that this one asks for nothing any more.
    pub(crate) fn leave_others(&mut self) {
        let (own, all) = (self.core, 1..self.own.cores());
        all.map(CoreId).filter(|core| *core != own).for_each(|core| self.ask(core, Request::Left));
    }

    /// Tells a core something that ends nothing.
    pub(crate) fn ask(&mut self, core: CoreId, request: Request) {
        if let Some(elsewhere) = &mut self.elsewhere {
            elsewhere.distant.ask(core, request);
        }
    }

    /// Who is who, as the store knows before it is shared out: with one core nobody needs it.
    pub(crate) fn note_accounts(&mut self) {
        if let Some(elsewhere) = &mut self.elsewhere {
            elsewhere.accounts = Arc::new(Accounts::of(&self.own.store));
        }
    }

    /// Mail is served from now on, for accounts that are owned so.
    pub(crate) fn served_by(&mut self, owners: Owners) {
        self.owners = owners;
    }

    /// Letters on their way to the disk, as far as this core knows.
    pub(crate) fn letters_under_way(&self) -> usize {
        let elsewhere = self.elsewhere.as_ref();
        self.own.store.deliveries_under_way()
            + elsewhere.map_or(0, |elsewhere| elsewhere.distant.letters_under_way() + elsewhere.spread.len())
    }

    /// Parts of bodies on their way to a session, or not given back.
    pub(crate) fn reads_under_way(&self) -> usize {
        let elsewhere = self.elsewhere.as_ref();
        self.own.store.reads_under_way() + elsewhere.map_or(0, |elsewhere| elsewhere.distant.reads_under_way())
    }

    /// The locked maildrops of this core's accounts.
    pub(crate) fn maildrops(&self) -> &Maildrops {
        &self.own.maildrops
    }

    pub(crate) fn elsewhere(&mut self) -> Option<&mut Elsewhere> {
        self.elsewhere.as_mut()
    }

    /// Whether something waits to be sent to another core.
    pub(crate) fn has_messages(&self) -> bool {
        self.elsewhere.as_ref().is_some_and(|elsewhere| elsewhere.distant.has_requests()) || self.own.has_messages()
    }

    fn owns_something(&self) -> bool {
        self.core.0 < self.owners.count()
    }

    fn all_status(&self) -> impl Iterator<Item = Status> {
        self.elsewhere.iter().flat_map(|elsewhere| elsewhere.distant.all_status())
    }

    /// The way to an owner, unless that is this core.
    fn distant_at(&mut self, owner: CoreId) -> Option<&mut Distant> {
        let elsewhere = self.elsewhere.as_mut().filter(|_| owner != self.core)?;
        Some(&mut elsewhere.distant)
    }
}
