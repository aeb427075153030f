//! The store as sessions see it: the same calls on every core.
//!
//! The disk has one queue for us, so one core owns it: the first. There [`Archive`] is the store itself. On every other core it
//! is a [`Distant`] one, which answers at once what has to be answered at once, from what the owner has told it (the state of
//! the store, its room, who is who), and sends the rest as a [`Request`] through the ring to the owner. What comes of it comes
//! back as [`News`], and from there on is the same [`Wake`] that the owner's own sessions get.
//!
//! | | on the first core | on another |
//! |---|---|---|
//! | who is who | the store's index | a snapshot that all share, made by the owner |
//! | a letter's octets | into the store's buffer | into a page, which travels and comes home |
//! | a body's octets | in the store's buffer | in the store's buffer, which travels and comes home |
//! | a maildrop | locked by the owner | locked by the owner, and sent |
//!
//! Invariants:
//! - What waits to be sent is bounded: by the pages, letters, reads and sessions that there are.
//! - The messages between two cores keep their order; so the owner hears of a letter's end after all of its octets.

mod accounts;
mod desk;
mod distant;
mod own;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use machine::{CoreId, UnixTime};
use pop3::LoginRefusal;
use store::{AccountId, Body, DeliveryId, INBOX, Outcome, Refusal, Room, State, Uid, UidRange, Wake};
use tasks::{Continuation, FrameId};

use crate::maildrop::{Maildrop, Maildrops};

pub(crate) use accounts::{Accounts, KnownAccount};
pub(crate) use distant::{Distant, Letter};
pub(crate) use own::Own;

/// Octets that travel in one page.
const PAGE_OCTETS: usize = 4096;

/// The store, near or far.
#[expect(clippy::large_enum_variant, reason = "there is one for each core, and the owner's is on the path of a letter")]
pub(crate) enum Archive {
    Own(Own),
    Distant(Distant),
}

/// A letter on its way into the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LetterId {
    Own(DeliveryId),
    Distant(Letter),
}

/// Octets of a letter on their way to the owner. It belongs to the core that filled it.
pub(crate) struct Page {
    letter: Letter,
    /// Who gets the letter; in its first page only.
    recipients: Vec<AccountId>,
    length: usize,
    octets: [u8; PAGE_OCTETS],
}

/// What a core asks of the owner.
pub(crate) enum Request {
    /// Octets of a letter, which is complete with them if there is a date.
    Octets { page: Box<Page>, end: Option<UnixTime> },
    /// Nobody wants the letter any more.
    Abort(Letter),
    /// A part of a body is wanted.
    Read { account: AccountId, uid: Uid, offset: u32, continuation: Continuation },
    /// A body comes home.
    BodyDone(Body),
    /// Messages are to go.
    Remove { account: AccountId, ranges: Vec<UidRange>, continuation: Continuation },
    /// A maildrop is to be locked and listed for the session of this frame.
    OpenMaildrop { account: AccountId, frame: FrameId },
    /// A maildrop comes home, to be unlocked.
    CloseMaildrop(Box<Maildrop>),
    /// The core has ended its sessions, and asks for nothing any more.
    Left,
}

/// What the owner tells another core.
pub(crate) enum News {
    /// A page comes home.
    PageDone(Box<Page>),
    /// What came of a letter, a read or a removal.
    Woken(Wake),
    /// What came of locking a maildrop.
    MaildropOpened { frame: FrameId, opened: Opened },
    /// How the store is.
    Status(Status),
    /// Mail is served from now on, for these accounts.
    Serve(Arc<Accounts>),
    /// The machine is asked to stop.
    Stop,
}

/// What came of locking a maildrop.
pub(crate) type Opened = Result<Box<Maildrop>, LoginRefusal>;

/// How the store is, as every core has to know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Status {
    state: State,
    room: Room,
    is_short_of_buffers: bool,
}

impl Archive {
    pub(crate) fn state(&self) -> State {
        match self {
            Archive::Own(own) => own.store.state(),
            Archive::Distant(distant) => distant.status.state,
        }
    }

    /// Whether a letter of `octets` is likely to find space.
    pub(crate) fn has_room_for(&self, octets: u64) -> bool {
        match self {
            Archive::Own(own) => own.store.room().holds(octets),
            Archive::Distant(distant) => distant.status.room.holds(octets),
        }
    }

    pub(crate) fn is_short_of_buffers(&self) -> bool {
        match self {
            Archive::Own(own) => own.store.is_short_of_buffers(),
            Archive::Distant(distant) => distant.status.is_short_of_buffers,
        }
    }

    /// The account that mail for `address` goes to.
    pub(crate) fn find(&self, address: &str) -> Option<AccountId> {
        match self {
            Archive::Own(own) => own.store.find(address),
            Archive::Distant(distant) => distant.accounts.find(address),
        }
    }

    pub(crate) fn account(&self, id: AccountId) -> Option<KnownAccount<'_>> {
        match self {
            Archive::Own(own) => own.store.account(id).map(KnownAccount::of),
            Archive::Distant(distant) => distant.accounts.account(id),
        }
    }

    /// Begins a letter. Errors: as [`store::Store::begin`]; what another core finds out only later ends the letter later.
    pub(crate) fn begin(&mut self, recipients: &[AccountId]) -> Result<LetterId, Refusal> {
        match self {
            Archive::Own(own) => own.store.begin(recipients).map(LetterId::Own),
            Archive::Distant(distant) => distant.begin(recipients).map(LetterId::Distant),
        }
    }

    /// As [`store::Store::append`].
    pub(crate) fn append(
        &mut self,
        letter: LetterId,
        octets: &[u8],
        continuation: Continuation,
    ) -> Result<usize, Refusal> {
        match (self, letter) {
            (Archive::Own(own), LetterId::Own(delivery)) => own.store.append(delivery, octets, continuation),
            (Archive::Distant(distant), LetterId::Distant(letter)) => distant.append(letter, octets, continuation),
            _ => Err(Refusal::NoSuchDelivery),
        }
    }

    /// As [`store::Store::commit`].
    pub(crate) fn commit(
        &mut self,
        letter: LetterId,
        date: UnixTime,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        match (self, letter) {
            (Archive::Own(own), LetterId::Own(delivery)) => own.store.commit(delivery, date, continuation),
            (Archive::Distant(distant), LetterId::Distant(letter)) => distant.commit(letter, date, continuation),
            _ => Err(Refusal::NoSuchDelivery),
        }
    }

    /// As [`store::Store::abort`].
    pub(crate) fn abort(&mut self, letter: LetterId) {
        match (self, letter) {
            (Archive::Own(own), LetterId::Own(delivery)) => own.store.abort(delivery),
            (Archive::Distant(distant), LetterId::Distant(letter)) => distant.abort(letter),
            _ => {}
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
        match self {
            Archive::Own(own) => own.store.read(account, INBOX, uid, offset, continuation),
            Archive::Distant(distant) => distant.read(account, uid, offset, continuation),
        }
    }

    /// Takes back the buffer of a body.
    pub(crate) fn give_back(&mut self, body: Body) {
        match self {
            Archive::Own(own) => own.store.give_back(body),
            Archive::Distant(distant) => distant.give_back(body),
        }
    }

    /// As [`store::Store::remove`], of the inbox.
    pub(crate) fn remove(
        &mut self,
        account: AccountId,
        ranges: &[UidRange],
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        match self {
            Archive::Own(own) => own.store.remove(account, INBOX, ranges, continuation),
            Archive::Distant(distant) => distant.remove(account, ranges, continuation),
        }
    }

    /// Opens and locks the inbox of `account` for the POP3 session of `frame`. `None`: what comes of it is told later.
    pub(crate) fn open_maildrop(&mut self, account: AccountId, frame: FrameId) -> Option<Opened> {
        match self {
            Archive::Own(own) => Some(own.maildrops.open(&own.store, account)),
            Archive::Distant(distant) => {
                distant.open_maildrop(account, frame);
                None
            }
        }
    }

    /// Unlocks a maildrop.
    pub(crate) fn close_maildrop(&mut self, maildrop: Box<Maildrop>) {
        match self {
            Archive::Own(own) => own.maildrops.close(&maildrop),
            Archive::Distant(distant) => distant.close_maildrop(maildrop),
        }
    }

    /// The next end of something that a session of this core has asked for.
    pub(crate) fn next_wake(&mut self) -> Option<Wake> {
        match self {
            Archive::Own(own) => own.next_wake(),
            Archive::Distant(distant) => distant.next_wake(),
        }
    }

    pub(crate) fn has_wakes(&self) -> bool {
        match self {
            Archive::Own(own) => own.store.has_wakes(),
            Archive::Distant(distant) => distant.has_wakes(),
        }
    }

    /// Whether everything asked for has ended, and is on the disk or refused.
    pub(crate) fn is_at_rest(&self) -> bool {
        match self {
            Archive::Own(own) => own.is_at_rest(),
            Archive::Distant(distant) => distant.is_at_rest(),
        }
    }

    /// The locked maildrops, where they are locked.
    pub(crate) fn maildrops(&self) -> Option<&Maildrops> {
        match self {
            Archive::Own(own) => Some(&own.maildrops),
            Archive::Distant(_) => None,
        }
    }

    /// Letters on their way to the disk, as far as this core knows.
    pub(crate) fn letters_under_way(&self) -> usize {
        match self {
            Archive::Own(own) => own.store.deliveries_under_way(),
            Archive::Distant(distant) => distant.letters_under_way(),
        }
    }

    /// Parts of bodies on their way to a session, or not given back.
    pub(crate) fn reads_under_way(&self) -> usize {
        match self {
            Archive::Own(own) => own.store.reads_under_way(),
            Archive::Distant(distant) => distant.reads_under_way(),
        }
    }

    /// Whether no other core may ask for something.
    pub(crate) fn is_last(&self) -> bool {
        match self {
            Archive::Own(own) => own.is_last(),
            Archive::Distant(_) => true,
        }
    }

    /// The store, where it is ours.
    pub(crate) fn own(&mut self) -> Option<&mut Own> {
        match self {
            Archive::Own(own) => Some(own),
            Archive::Distant(_) => None,
        }
    }

    /// The other side of a store that is not ours.
    pub(crate) fn distant(&mut self) -> Option<&mut Distant> {
        match self {
            Archive::Own(_) => None,
            Archive::Distant(distant) => Some(distant),
        }
    }

    /// Whether something waits to be sent to another core.
    pub(crate) fn has_messages(&self) -> bool {
        match self {
            Archive::Own(own) => own.desk.as_ref().is_some_and(|desk| desk.has_news()),
            Archive::Distant(distant) => distant.has_requests(),
        }
    }
}

impl LetterId {
    /// The continuation's outcome when a letter is refused.
    pub(crate) fn refused(continuation: Continuation, refusal: Refusal) -> Wake {
        Wake { continuation, outcome: Outcome::Refused(refusal) }
    }
}

/// The owner tells whose core a continuation is by the upper bits of its entry: its own has none.
fn on_core(core: CoreId, continuation: Continuation) -> Continuation {
    let entry = tasks::Entry(continuation.entry.0 | u32::from(core.0) << CORE_SHIFT);
    Continuation { entry, ..continuation }
}

/// The core of a continuation of [`on_core`], and what it was made from.
fn core_of(continuation: Continuation) -> (CoreId, Continuation) {
    let entry = tasks::Entry(continuation.entry.0 & ((1 << CORE_SHIFT) - 1));
    (CoreId((continuation.entry.0 >> CORE_SHIFT) as u8), Continuation { entry, ..continuation })
}

const CORE_SHIFT: u32 = 8;
