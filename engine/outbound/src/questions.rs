//! What an administrator asks a core about the entries of its outboxes, and the replies.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use machine::UnixTime;
use store::{AccountId, Refusal, Uid};

/// Entries that a page shows.
pub const LINES: usize = 20;

/// Names an entry in addresses and forms: the account, in hexadecimal digits, and the UID of the message in its outbox.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Posted {
    /// Whose outbox it is in.
    pub account: AccountId,
    /// Which message of it.
    pub uid: Uid,
}

/// A text that names no entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoEntry;

impl FromStr for Posted {
    type Err = NoEntry;

    fn from_str(text: &str) -> Result<Posted, NoEntry> {
        let (account, uid) = text.split_once('.').ok_or(NoEntry)?;
        let is_plain = account.len() == 16 && account.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
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
    /// They never leave, and who sent them hears so.
    Return,
    /// They never leave, and nobody hears of it.
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
    /// These are there, and so it went with TLS.
    Lines(Vec<QueueLine>, QueueCounts, Vec<TlsCount>),
    /// That was done.
    Handled(Handled),
    /// It has too much to do with others who ask.
    Busy,
}

/// How many entries there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueCounts {
    /// All of them.
    pub entries: usize,
    /// Of these, held by an administrator.
    pub held: usize,
    /// Of these, brought to their recipients at this moment.
    pub under_way: usize,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Handled {
    /// With so many entries it was done.
    pub done: usize,
    /// So many are at their hosts at this moment: nothing was done with them.
    pub under_way: usize,
    /// Why it was not done with others.
    pub refused: Option<Refusal>,
}

/// An entry, as its core knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueLine {
    /// Its name.
    pub posted: Posted,
    /// The reverse path; empty for a report. Where it cannot be read, whose outbox it is in.
    pub sender: String,
    /// Who has not got it. None: it cannot be read.
    pub recipients: Option<Vec<String>>,
    /// Since when it waits.
    pub since: UnixTime,
    /// Octets of it, with its envelope.
    pub octets: u32,
    /// How often it was tried since the machine has started.
    pub tries: u16,
    /// What came of it the last time, in words.
    pub said: Option<String>,
    /// How it stands.
    pub state: QueueState,
}

/// How it stands with an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueState {
    /// It is tried as soon as somebody is free.
    Next,
    /// It is tried at this time.
    Waits(UnixTime),
    /// It waits for others that are at the same destination.
    Behind,
    /// It is being brought to its recipients.
    UnderWay,
    /// It does not leave until it is released.
    Held,
    /// It cannot leave: its recipients are not known, or which of them have it.
    LeftAlone,
}

/// What a core has counted of a domain on a day: so often the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsCount {
    /// The day, by its number since 1970.
    pub day: u64,
    /// The domain; empty for all that are not counted each for itself.
    pub domain: String,
    /// By what its hosts were judged (RFC 8460 section 4.2).
    pub policy: &'static str,
    /// Why TLS was not had, or not as it should be (RFC 8460 section 4.3); none: it was.
    pub failure: Option<&'static str>,
    /// How often.
    pub count: u32,
}
