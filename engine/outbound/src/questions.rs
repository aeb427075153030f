//! The questions of an administrator to a core about the entries of its outboxes, and the replies.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use machine::UnixTime;
use store::{AccountId, Refusal, Uid};

/// The number of entries on a page.
pub const LINES: usize = 20;

/// The identifier of an entry in URLs and forms: the account in hexadecimal digits, and the UID of
/// the message in its outbox.
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
        // Only the form that `Display` writes is accepted.
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
    /// Hold: the entries are not sent until they are released.
    Hold,
    /// Release: the entries are to be sent, and are tried at once.
    Release,
    /// Retry: the entries are tried at once, even if their destination is down.
    Retry,
    /// Return: the entries are never sent, and each sender gets a report.
    Return,
    /// Delete: the entries are never sent, and the senders get no report.
    Delete,
}

/// The entries that an action applies to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Which {
    /// This entry.
    One(QueueEntryId),
    /// This entry, and the other entries of its message, if the account of the outbox has sent it.
    Message(QueueEntryId),
    /// All entries for this domain. Its name is in lower case.
    Domain(String),
}

/// A question to a core about the entries that it owns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueueQuery {
    /// Lists [`LINES`] entries: the first ones, or those after this entry.
    Look(Option<QueueEntryId>),
    /// Takes this action on these entries.
    Handle(QueueAction, Which),
}

/// The reply of a core.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueueReply {
    /// The entries of a page, and one more if another page follows; the numbers of entries; and the
    /// TLS statistics.
    Lines(Vec<QueueLine>, QueueCounts, Vec<TlsCount>),
    /// The result of an action.
    Handled(Handled),
    /// Too many questions are under way.
    Busy,
}

/// The numbers of entries of a core.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueCounts {
    /// All entries.
    pub entries: usize,
    /// The entries that an administrator holds.
    pub held: usize,
    /// The entries that are being delivered at this moment.
    pub under_way: usize,
}

/// The result of an action.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Handled {
    /// The number of entries to which the action was applied.
    pub done: usize,
    /// The number of entries that were left alone, because a host may have the message already.
    pub under_way: usize,
    /// Why the action was not applied to other entries.
    pub refused: Option<Refusal>,
}

/// An entry, as its core knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueLine {
    /// The identifier of the entry.
    pub posted: QueueEntryId,
    /// The reverse path, empty for a report. If it cannot be read, the address of the account that
    /// has the outbox.
    pub sender: String,
    /// The recipients that do not have the message. `None`: they cannot be read.
    pub recipients: Option<Vec<String>>,
    /// The time at which the message arrived.
    pub since: UnixTime,
    /// The size of the entry in bytes, with its envelope.
    pub octets: u32,
    /// The number of attempts since the machine has started.
    pub tries: u16,
    /// The result of the last attempt, in words.
    pub last_result: Option<String>,
    /// The state of the entry.
    pub state: QueueState,
}

/// The state of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueState {
    /// The entry is tried as soon as an attempt can begin.
    Next,
    /// The entry is tried at this time.
    Waits(UnixTime),
    /// The entry waits for an attempt at the same destination to end.
    Behind,
    /// The entry is being delivered.
    UnderWay,
    /// The entry is not sent until it is released.
    Held,
    /// The entry cannot be sent: its recipients cannot be read, or the recipients that already have
    /// the message are not known.
    LeftAlone,
}

/// TLS statistics: the connections of one day to one domain with one result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsCount {
    /// The number of the day since 1970-01-01.
    pub day: u64,
    /// The domain. Empty: all domains that are not counted separately.
    pub domain: String,
    /// The kind of policy that applied to the hosts of the domain (RFC 8460 section 4.2).
    pub policy: &'static str,
    /// The failure (RFC 8460 section 4.3). `None`: TLS succeeded.
    pub failure: Option<&'static str>,
    /// The number of connections.
    pub count: u32,
}
