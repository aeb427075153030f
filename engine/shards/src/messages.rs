//! What the stores of several cores tell each other, and where their messages wait.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use store::{
    AccountId, Answer, Body, Closing, DeliveryId, Errand, Origin, Outcome, Owners, Recipient,
    Refusal, Room, Share, State, Uid, UidRange, Wake,
};
use tasks::{Continuation, FrameId};

use crate::calling::CallTold;
use crate::known::{Accounts, Changed};
use crate::maildrop::Maildrop;
use crate::purpose::Purpose;
use crate::question::{Asked, Reply};

/// Octets that travel in one page.
pub(crate) const PAGE_OCTETS: usize = 4096;

/// What the stores of two cores tell each other.
pub struct Message(pub(crate) Kind);

/// What it is.
pub(crate) enum Kind {
    /// To the owner of accounts.
    Request(Request),
    /// From the owner of accounts.
    News(News),
    /// To the first core, which has the disk.
    Errand(Errand),
    /// From the first core, which has the disk.
    Answer(Answer),
}

/// What has come from another core and concerns more than the stores.
pub enum Event {
    /// This account has another password: its sessions on this core are to be ended.
    PasswordChanged(AccountId),
    /// A core knows the password that the frame has told.
    PasswordKnown(FrameId),
    /// The reply to a question of the frame that waits at this point.
    Replied(Continuation, Reply),
    /// Owners of destinations of mail have told something ([`crate::Archive::next_called`]).
    Called,
    /// Mail is served from now on.
    Serve,
    /// The machine is asked to stop.
    Stop,
}

/// How much of everything a core may have.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Of its store.
    pub store: store::Limits,
    /// Messages that its clients may send at a time.
    pub transactions: usize,
    /// Of these, messages for accounts of other cores.
    pub letters_for_others: usize,
}

/// Names a letter on its own core, and on the owner's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Letter(pub(crate) FrameId);

/// A letter on its way into the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LetterId {
    /// For accounts of this core.
    Own(DeliveryId),
    /// For accounts of another.
    Distant(Letter),
    /// For accounts of several.
    Spread(FrameId),
}

/// Octets of a letter on their way to the owner. It belongs to the core that filled it.
pub(crate) struct Page {
    pub(crate) letter: Letter,
    /// Who gets the letter; in its first page only.
    pub(crate) recipients: Vec<Recipient>,
    pub(crate) length: usize,
    pub(crate) octets: [u8; PAGE_OCTETS],
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
    /// What is to be known of a destination of mail.
    Called(CallTold),
    /// The password of an account is another; the clerk of this frame wants to know when that is
    /// known.
    Password(FrameId, Arc<Changed>),
    /// How the store is.
    Status(Status),
    /// These shards are the other core's from now on. From the first core only, as are the next
    /// two.
    Share(Box<Share>),
    /// Mail is served from now on, for these accounts, which are owned so.
    Serve(Arc<Accounts>, Owners),
    /// The machine is asked to stop.
    Stop,
}

/// How the store is, as every core has to know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Status {
    pub(crate) state: State,
    pub(crate) room: Room,
    pub(crate) is_short_of_buffers: bool,
}

/// The continuation's outcome when a message is refused.
pub(crate) fn refused(continuation: Continuation, refusal: Refusal) -> Wake {
    Wake { continuation, outcome: Outcome::Refused(refusal) }
}

/// What the end of a letter says.
pub(crate) fn end_of(outcome: &Outcome) -> Option<Refusal> {
    if let Outcome::Refused(refusal) = outcome { Some(*refusal) } else { None }
}
