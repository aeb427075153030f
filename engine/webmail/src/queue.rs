//! The queue, for administrators: what waits to leave from the outboxes of all cores, what is asked of each of them about it, what they tell, and the page of it.
//!
//! An entry is a message of an outbox, for up to eight recipients of one domain. A page shows [`LINES`] of them, by outbox and within that by age, from behind one that is named: so
//! a page costs the same however much there is.
//!
//! Answers to: WCAG 2.2 AA.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use askama::Template;
use machine::UnixTime;
use store::{AccountId, Refusal, Uid};

use crate::NotFound;
use crate::address::number;
use crate::frame::Frame;
use crate::tls_counts::{TlsCount, TlsRow};

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

impl FromStr for Posted {
    type Err = NotFound;

    fn from_str(text: &str) -> Result<Posted, NotFound> {
        let (account, uid) = text.split_once('.').ok_or(NotFound)?;
        let is_plain = account.len() == 16 && account.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let account = u64::from_str_radix(account, 16).ok().filter(|_| is_plain).ok_or(NotFound)?;
        Ok(Posted { account: AccountId::from_bits(account), uid: Uid(number(uid)?) })
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

impl Handling {
    /// The one that forms call so.
    pub(crate) fn named(name: &str) -> Option<Handling> {
        Some(match name {
            "hold" => Handling::Hold,
            "release" => Handling::Release,
            "retry" => Handling::Retry,
            "return" => Handling::Return,
            "delete" => Handling::Delete,
            _ => return None,
        })
    }

    /// What has become of so many that it was done with.
    pub(crate) fn past(self, count: usize) -> &'static str {
        match self {
            Handling::Hold => "held",
            Handling::Release => "released",
            Handling::Retry => "tried again now",
            Handling::Return if count == 1 => "given back to who sent it",
            Handling::Return => "given back to who sent them",
            Handling::Delete => "deleted",
        }
    }
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

/// An entry, in the words of the page.
#[derive(Clone, Debug)]
pub struct QueueRow {
    /// Its name.
    pub key: String,
    /// Who sent it.
    pub sender: String,
    /// Who has not got it.
    pub recipients: String,
    /// How it stands.
    pub state: String,
    /// Since when it is there, how large it is and how often it was tried.
    pub facts: String,
    /// What came of it the last time.
    pub said: String,
    /// Whether it is held.
    pub is_held: bool,
    /// Whether it is under way.
    pub is_under_way: bool,
    /// Whether it is known whom it is for.
    pub is_readable: bool,
    /// Whether it can only be deleted.
    pub is_left_alone: bool,
}

/// The page.
///
/// Posted to `/mail/queue`: `do` (`hold`, `release`, `retry`, `return`, `delete`) with `key`, the name of an entry, or with `domain`.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "queue.html")]
pub struct QueuePage<'a> {
    /// What surrounds it.
    pub frame: Frame<'a>,
    /// How many there are, in words.
    pub counts: &'a str,
    /// Its address.
    pub here: &'a str,
    /// The entries.
    pub rows: &'a [QueueRow],
    /// Whether it begins behind others.
    pub is_later: bool,
    /// Where it goes on.
    pub next: Option<&'a str>,
    /// How often TLS was had with other servers.
    pub tls: &'a [TlsRow],
}
