//! The queue, for administrators: the page of what waits to leave from the outboxes of all cores.
//!
//! An entry is a message of an outbox, for up to eight recipients of one domain. A page shows
//! [`outbound::LINES`] of them, by outbox and within that by age, from behind one that is named: so
//! a page costs the same however much there is.
//!
//! Answers to: WCAG 2.2 AA.

use alloc::string::String;

use askama::Template;
use outbound::Handling;

use crate::frame::Frame;
use crate::tls_counts::TlsRow;

/// The one that forms call so.
pub(crate) fn handling_named(name: &str) -> Option<Handling> {
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
pub(crate) fn past(handling: Handling, count: usize) -> &'static str {
    match handling {
        Handling::Hold => "held",
        Handling::Release => "released",
        Handling::Retry => "tried again now",
        Handling::Return if count == 1 => "returned to its sender",
        Handling::Return => "returned to their senders",
        Handling::Delete => "deleted",
    }
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
