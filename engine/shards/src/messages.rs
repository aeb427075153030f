//! The messages between the stores of several cores.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use store::{
    AccountId, Body, BodySpace, ClientRequest, Closing, DeliveryId, Outcome, OwnerNotice, Owners,
    Recipient, Refusal, SentId, Share, State, Uid, UidRange, Wake,
};
use tasks::{Continuation, FrameId};

use crate::destination::DestinationNotice;
use crate::known::{Accounts, Changed};
use crate::maildrop::MaildropSnapshot;
use crate::purpose::OwnerRequestKind;
use crate::question::{OwnerQuestion, Reply};

/// Octets in one page.
pub(crate) const PAGE_OCTETS: usize = 4096;

/// A message between the stores of two cores.
pub struct ShardMessage(pub(crate) ShardMessageKind);

/// The kinds of messages.
pub(crate) enum ShardMessageKind {
    /// To the owner of accounts.
    Request(Request),
    /// From the owner of accounts.
    News(News),
    /// To the disk owner.
    ClientRequest(ClientRequest),
    /// From the disk owner.
    OwnerNotice(OwnerNotice),
}

/// An event from another core that other parts of the engine must handle.
pub enum CoreEvent {
    /// The password of this account has changed: its sessions on this core must be ended.
    PasswordChanged(AccountId),
    /// A core knows the new password that the request handler in this frame has announced.
    PasswordKnown(FrameId),
    /// The reply to a question of the frame that waits at this point.
    Replied(Continuation, Reply),
    /// Owners of destinations have sent messages
    /// ([`crate::ShardedStore::next_destination_notice`]).
    DestinationNotice,
    /// This core knows all accounts, so it can make the passwords of its own accounts.
    AccountsKnown,
    /// The machine is asked to stop.
    Stop,
}

/// The limits of a core.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The limits of the core's store.
    pub store: store::Limits,
    /// The most messages that clients of the core may send at a time.
    pub transactions: usize,
    /// The number of these messages that may be for accounts of other cores.
    pub remote_deliveries: usize,
}

/// Identifies a message from a core to accounts of another core, on both cores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemoteDeliveryId(pub(crate) FrameId);

/// A message on its way into the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeliveryHandle {
    /// A message for accounts of this core.
    Local(DeliveryId),
    /// A message for accounts of one other core.
    Remote(RemoteDeliveryId),
    /// A message for accounts of several cores.
    MultiShard(FrameId),
}

/// Octets of a message for the owner. The page belongs to the core that filled it.
pub(crate) struct MessagePage {
    pub(crate) delivery: RemoteDeliveryId,
    /// The recipients of the message, only in its first page.
    pub(crate) recipients: Vec<Recipient>,
    pub(crate) length: usize,
    pub(crate) octets: [u8; PAGE_OCTETS],
}

/// A request to the core that owns an account.
pub(crate) enum Request {
    /// Octets of a message.
    Octets { page: Box<MessagePage>, end: Option<MessageCompletion> },
    /// Delivers a prepared message.
    Commit(RemoteDeliveryId, Closing),
    /// Aborts a message.
    Abort(RemoteDeliveryId),
    /// Reads a part of a body.
    Read { account: AccountId, uid: Uid, offset: u32, continuation: Continuation },
    /// Returns the buffer of a body.
    BodyDone(Body),
    /// Removes messages.
    Remove { account: AccountId, ranges: Vec<UidRange>, continuation: Continuation },
    /// Forgets that the message `origin` has arrived.
    ForgetArrival { account: AccountId, origin: SentId, continuation: Continuation },
    /// A question. Its reply goes to the frame that waits at this point.
    Question(Continuation, OwnerQuestion),
    /// Returns a maildrop, to be unlocked.
    CloseMaildrop(Box<MaildropSnapshot>),
    /// The sending core knows the new password that a request handler in this frame has announced.
    PasswordKnown(FrameId),
    /// The sending core has reached this stage of its start. Only to the first core.
    Reached(StartStage),
    /// The sending core sends no further requests. When the first core gets this message, the store
    /// of the sending core has no request at the disk owner either.
    Left,
}

/// The stages of a core's start, in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum StartStage {
    /// The core waits for its share of the shards.
    Waiting,
    /// The core owns its share of the shards.
    TookOver,
    /// The core may listen as soon as all other cores may.
    Ready,
    /// The core listens.
    Listening,
}

/// The step that follows when a message is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MessageCompletion {
    /// The message is delivered.
    Commit(Closing),
    /// Space for the message is allocated, and the message waits for its commit.
    Prepare,
}

/// A message from an account owner to another core.
pub(crate) enum News {
    /// Returns a page.
    PageDone(Box<MessagePage>),
    /// The result of a delivery, a read, a removal or a forgotten arrival.
    Woken(OwnerRequestKind, Wake),
    /// The owner has all octets of a message, and disk space for them.
    Prepared(RemoteDeliveryId),
    /// The reply to a question of the frame that waits at this point.
    Replied(Continuation, Reply),
    /// The message of a destination owner.
    Destination(DestinationNotice),
    /// The password of an account has changed. The request handler in this frame waits until all
    /// cores know it.
    Password(FrameId, Arc<Changed>),
    /// The state of the store.
    Status(StoreStatus),
    /// The receiving core owns these shards from now on. Only the first core sends this message and
    /// the next three.
    Share(Box<Share>),
    /// All accounts and their owners. All cores have taken over their shards.
    Accounts(Arc<Accounts>, Owners),
    /// All cores are ready, so the receiving core begins to listen.
    Listen,
    /// The machine is asked to stop.
    Stop,
}

/// The state of the store that every core must know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StoreStatus {
    pub(crate) state: State,
    pub(crate) room: BodySpace,
    pub(crate) is_short_of_buffers: bool,
}

/// The wake that refuses a message.
pub(crate) fn refused(continuation: Continuation, refusal: Refusal) -> Wake {
    Wake { continuation, outcome: Outcome::Refused(refusal) }
}

/// The refusal in the outcome of a message, if the message was refused.
pub(crate) fn end_of(outcome: &Outcome) -> Option<Refusal> {
    if let Outcome::Refused(refusal) = outcome { Some(*refusal) } else { None }
}
