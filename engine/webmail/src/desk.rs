//! What a clerk works with: the store, and the way of messages to all accounts of this machine.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use machine::UnixTime;
use store::{AccountId, Closing, Guid, MailboxId, Origin, Recipient, Refusal, Store, Uid};
use tasks::Continuation;

use crate::clerk::written::WrittenRows;
use crate::queue::{QueueAsked, QueueTold};

/// What a clerk works with: the store of the core that owns the account, and the way of letters to everybody on this machine.
///
/// He has one letter on its way at a time.
pub trait Desk {
    /// The store.
    fn store(&self) -> &Store;

    /// The store, to be asked.
    fn store_mut(&mut self) -> &mut Store;

    /// Rows of lists that this core has written.
    fn rows(&mut self) -> &mut WrittenRows;

    /// What wakes the clerk.
    fn continuation(&self) -> Continuation;

    /// The time of day.
    fn now(&self) -> UnixTime;

    /// Random bytes that nobody can know before.
    fn random(&mut self) -> [u8; 16];

    /// The machine's name.
    fn host(&self) -> &str;

    /// Whose inbox what is sent to an address comes into. `None`: nobody's here.
    fn recipient(&self, address: &str) -> Option<AccountId>;

    /// Whether a letter can go to this address, which is nobody's here or of somebody whose mail is sent on.
    fn may_post(&self, address: &str) -> bool;

    /// How a letter of an account goes to these addresses, all of which [`Desk::may_post`] has allowed.
    fn posting(&self, account: AccountId, addresses: &[String]) -> Posting;

    /// Whether an account may send one more letter today, for these people elsewhere. If so, it counts.
    fn may_send(&mut self, account: AccountId, elsewhere: Vec<String>) -> Result<(), Excess>;

    /// Begins a letter. Errors: as [`Store::begin`].
    fn begin_letter(&mut self, recipients: &[Recipient]) -> Result<(), Refusal>;

    /// What is appended from now on is to be signed by the domain in whose name it is.
    fn begin_signing(&mut self);

    /// Appends to it, as [`Store::append`] does. Errors: so, too; and [`Refusal::TooMany`] where too much is kept of letters that are being signed.
    fn append(&mut self, octets: &[u8]) -> Result<usize, Refusal>;

    /// What signs the letter, all of which was appended: its head, to be appended last. `None`: it is being computed, and the clerk is woken when it is there.
    fn signatures(&mut self) -> Option<Vec<u8>>;

    /// What its first recipient's message will be called, where that is one of this core's.
    fn guid(&self) -> Option<Guid>;

    /// Has it delivered. The clerk is woken when it is. Errors: as [`Store::commit`]; there is no letter then.
    fn commit(&mut self, closing: Closing) -> Result<(), Refusal>;

    /// Gives it up.
    fn abort(&mut self);

    /// How long a letter may be, in octets.
    fn letter_octets_max(&self) -> u64;

    /// As [`Store::forget_arrival`], whoever's account it is.
    fn forget_arrival(&mut self, account: AccountId, origin: Origin) -> Result<(), Refusal>;

    /// Whether one more letter may be held.
    fn may_hold(&self) -> bool;

    /// This draft of an account of this core is held: it leaves when that time has come, if nobody takes it back. `answers`: the message of the account that it answers.
    fn hold(&mut self, account: AccountId, uid: Uid, answers: Option<(MailboxId, Uid)>, until: UnixTime);

    /// This draft does not leave. Returns what it answers, if that is known; `None`: it is leaving, or was never held.
    fn take_back(&mut self, account: AccountId, uid: Uid) -> Option<Option<(MailboxId, Uid)>>;

    /// Tells all cores the password that the account has now. Whether they are to be waited for: then the clerk is woken when all know it.
    fn tell_password(&mut self, account: AccountId) -> bool;

    /// Asks this of all cores that own something of it. The clerk is woken when all have told.
    fn ask_queue(&mut self, asked: &QueueAsked);

    /// What they have told.
    fn queue_told(&mut self) -> Vec<QueueTold>;
}

/// Why an account may not send a letter today.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Excess {
    /// It has sent so many.
    Letters(u32),
    /// It may write to so many people elsewhere to whom it has not before, and these would be more.
    People(u32),
    /// Its outbox holds as much as it may.
    Waiting,
}

/// In words for the page of the message that was not sent.
impl fmt::Display for Excess {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Excess::Letters(most) => write!(
                out,
                "You have sent {most} letters today, and more are not allowed. This one was not sent: it is kept on \
                 this page. Try again tomorrow."
            ),
            Excess::Waiting => out.write_str(
                "Too much of your mail is waiting to be sent. This message was not sent: it is kept on this page. \
                 Try again later.",
            ),
            Excess::People(most) => write!(
                out,
                "To more than {most} people a day to whom you have not written before you may not write. Your letter \
                 was not sent: it is kept on this page. Try again tomorrow, or with fewer of them."
            ),
        }
    }
}

/// How a letter goes to people elsewhere: from its writer's outbox.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Posting {
    /// What stands above it there.
    pub head: Vec<u8>,
    /// The entries of the outbox that it is to be in.
    pub entries: Vec<Recipient>,
}
