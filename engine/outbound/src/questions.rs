//! The questions of an administrator to a core about the entries of its outboxes, and the replies.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use machine::UnixTime;
use store::{AccountId, Refusal, Uid};

/// The number of entries on a page.
pub const LINES: usize = 20;

/// Names an entry in URLs and forms: the account in hexadecimal digits, and the UID of the message
/// in its outbox.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct QueueEntryId {
    /// The account that has the outbox.
    pub account: AccountId,
    /// The message in that outbox.
    pub uid: Uid,
}

/// A text that names no entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoEntry;

impl FromStr for QueueEntryId {
    type Err = NoEntry;

    fn from_str(text: &str) -> Result<QueueEntryId, NoEntry> {
        let (account, uid) = text.split_once('.').ok_or(NoEntry)?;
        let is_plain = account.len() == 16
            && account.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let account = u64::from_str_radix(account, 16).ok().filter(|_| is_plain).ok_or(NoEntry)?;
        // Only the form that `Display` gives is accepted.
        let is_number = uid.bytes().all(|byte| byte.is_ascii_digit()) && !uid.starts_with('0');
        let uid = uid.parse().ok().filter(|_| is_number).ok_or(NoEntry)?;
        Ok(QueueEntryId { account: AccountId::from_bits(account), uid: Uid(uid) })
    }
}

impl fmt::Display for QueueEntryId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}.{}", self.account.to_bits(), self.uid.0)
    }
}

/// An administrator's action on entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueAction {
    /// Hold: the entries do not leave until they are released.
    Hold,
    /// Release: the entries leave, and are tried at once.
    Release,
    /// Retry: the entries are tried at once, even if their destination is down.
    Retry,
    /// Return: the entries never leave, and the sender of each is told.
    Return,
    /// Delete: the entries never leave, and the senders are not told.
    Delete,
}

/// The entries of an action.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Which {
    /// This entry.
    One(QueueEntryId),
    /// All that are for this domain, in lower case.
    Domain(String),
}

/// A question to a core about the entries that it owns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueueQuery {
    /// The first [`LINES`] entries, or those after this one.
    Look(Option<QueueEntryId>),
    /// To take this action on these entries.
    Handle(QueueAction, Which),
}

/// The reply of a core.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueueReply {
    /// The entries of a page, and the TLS statistics.
    Lines(Vec<QueueLine>, QueueCounts, Vec<TlsCount>),
    /// The result of an action.
    Handled(Handled),
    /// Too many questions are under way.
    Busy,
}

/// How many entries there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueCounts {
    /// All entries.
    pub entries: usize,
    /// Of these, held by an administrator.
    pub held: usize,
    /// Of these, being delivered at this moment.
    pub under_way: usize,
}

/// The result of an action.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Handled {
    /// The number of entries with which it was done.
    pub done: usize,
    /// The number of entries that may be with their hosts at this moment: nothing was done with
    /// them.
    pub under_way: usize,
    /// Why it was not done with others.
    pub refused: Option<Refusal>,
}

/// An entry, as its core knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueLine {
    /// Its name.
    pub posted: QueueEntryId,
    /// The reverse path; empty for a report. Where it cannot be read, the address of the account
    /// that has the outbox.
    pub sender: String,
    /// The recipients that do not have it. `None`: it cannot be read.
    pub recipients: Option<Vec<String>>,
    /// When it came.
    pub since: UnixTime,
    /// Its size in bytes, with its envelope.
    pub octets: u32,
    /// The number of attempts since the machine has started.
    pub tries: u16,
    /// The result of the last attempt, in words.
    pub said: Option<String>,
    /// Its state.
    pub state: QueueState,
}

/// The state of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueState {
    /// It is tried as soon as an attempt can begin.
    Next,
    /// It is tried at this time.
    Waits(UnixTime),
    /// It waits for attempts at the same destination.
    Behind,
    /// It is being delivered.
    UnderWay,
    /// It does not leave until it is released.
    Held,
    /// It cannot leave: its recipients, or the recipients that have it, are not known.
    LeftAlone,
}

/// TLS statistics: the connections of one day to one domain with one result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsCount {
    /// The day, by its number since 1970.
    pub day: u64,
    /// The domain. Empty: all domains that are not counted separately.
    pub domain: String,
    /// The kind of policy that applied to its hosts (RFC 8460 section 4.2).
    pub policy: &'static str,
    /// The failure (RFC 8460 section 4.3). `None`: TLS succeeded.
    pub failure: Option<&'static str>,
    /// The number of connections.
    pub count: u32,
}
