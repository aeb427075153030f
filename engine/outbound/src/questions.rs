//! What an administrator asks a core about the entries of its outboxes, and the replies.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use machine::UnixTime;
use store::{AccountId, Refusal, Uid};

/// Entries that a page shows.
pub const LINES: usize = 20;

/// Names an entry in addresses and forms: the account, in hexadecimal digits, and the UID of the
/// message in its outbox.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Posted {
    /// The account that has the outbox.
    pub account: AccountId,
    /// The message in it.
    pub uid: Uid,
}

/// A text that names no entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoEntry;

impl FromStr for Posted {
    type Err = NoEntry;

    fn from_str(text: &str) -> Result<Posted, NoEntry> {
        let (account, uid) = text.split_once('.').ok_or(NoEntry)?;
        let is_plain = account.len() == 16
            && account.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let account = u64::from_str_radix(account, 16).ok().filter(|_| is_plain).ok_or(NoEntry)?;
        // The form that `Display` gives, and no other.
        let is_number = uid.bytes().all(|byte| byte.is_ascii_digit()) && !uid.starts_with('0');
        let uid = uid.parse().ok().filter(|_| is_number).ok_or(NoEntry)?;
        Ok(Posted { account: AccountId::from_bits(account), uid: Uid(uid) })
    }
}

impl fmt::Display for Posted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}.{}", self.account.to_bits(), self.uid.0)
    }
}

/// What an administrator does with entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handling {
    /// They do not leave until they are released.
    Hold,
    /// They leave, and are tried at once.
    Release,
    /// They are tried at once, also where their destination is left alone.
    Retry,
    /// They never leave, and the sender of each is told.
    Return,
    /// They never leave, and the senders are not told.
    Delete,
}

/// With which entries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Which {
    /// This one.
    One(Posted),
    /// All that are for this domain, in lower case.
    Domain(String),
}

/// What is asked of a core about the entries that it owns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueueAsked {
    /// The first [`LINES`] of them, or those behind this one.
    Look(Option<Posted>),
    /// That this is done with those.
    Handle(Handling, Which),
}

/// What a core tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueueTold {
    /// These are there, and what was counted of TLS.
    Lines(Vec<QueueLine>, QueueCounts, Vec<TlsCount>),
    /// That was done.
    Handled(Handled),
    /// Too many questions are under way.
    Busy,
}

/// How many entries there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueCounts {
    /// All of them.
    pub entries: usize,
    /// Of these, held by an administrator.
    pub held: usize,
    /// Of these, being delivered at this moment.
    pub under_way: usize,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Handled {
    /// With so many entries it was done.
    pub done: usize,
    /// So many may be with their hosts at this moment: nothing was done with them.
    pub under_way: usize,
    /// Why it was not done with others.
    pub refused: Option<Refusal>,
}

/// An entry, as its core knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueLine {
    /// Its name.
    pub posted: Posted,
    /// The reverse path; empty for a report. Where it cannot be read, the address of the account
    /// that has the outbox.
    pub sender: String,
    /// The recipients that do not have it. `None`: it cannot be read.
    pub recipients: Option<Vec<String>>,
    /// When it came.
    pub since: UnixTime,
    /// Octets of it, with its envelope.
    pub octets: u32,
    /// How often it was tried since the machine has started.
    pub tries: u16,
    /// What came of it the last time, in words.
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
    /// It cannot leave: its recipients are not known, or which of them have it.
    LeftAlone,
}

/// What a core has counted of TLS with a domain on a day.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsCount {
    /// The day, by its number since 1970.
    pub day: u64,
    /// The domain; empty for all that are not counted each for itself.
    pub domain: String,
    /// The kind of policy that its hosts were judged by (RFC 8460 section 4.2).
    pub policy: &'static str,
    /// Why there was no TLS, or not as it should be (RFC 8460 section 4.3). `None`: there was.
    pub failure: Option<&'static str>,
    /// How often.
    pub count: u32,
}
