//! The queue page for administrators: the entries in the outboxes of all cores.
//!
//! An entry is a message in an outbox, for up to eight recipients of one domain. A page shows
//! [`outbound::LINES`] entries, by outbox and within that by age, from behind a given one. So the
//! cost of a page does not depend on the length of the queue.
//!
//! Implements: WCAG 2.2 AA.

use alloc::string::String;

use askama::Template;
use outbound::QueueAction;

use crate::frame::PageFrame;
use crate::tls_counts::TlsRow;

/// The action with this name in forms.
pub(crate) fn handling_named(name: &str) -> Option<QueueAction> {
    Some(match name {
        "hold" => QueueAction::Hold,
        "release" => QueueAction::Release,
        "retry" => QueueAction::Retry,
        "return" => QueueAction::Return,
        "delete" => QueueAction::Delete,
        _ => return None,
    })
}

/// The participle of an action on `count` entries, for the flash message.
pub(crate) fn past(handling: QueueAction, count: usize) -> &'static str {
    match handling {
        QueueAction::Hold => "held",
        QueueAction::Release => "released",
        QueueAction::Retry => "scheduled for an immediate retry",
        QueueAction::Return if count == 1 => "returned to its sender",
        QueueAction::Return => "returned to their senders",
        QueueAction::Delete => "deleted",
    }
}

/// An entry, as text.
#[derive(Clone, Debug)]
pub struct QueueRow {
    /// Its key.
    pub key: String,
    /// The sender.
    pub sender: String,
    /// The remaining recipients.
    pub recipients: String,
    /// Its state.
    pub state: String,
    /// Its age, its size and the number of attempts.
    pub facts: String,
    /// The result of the last attempt.
    pub last_result: String,
    /// Whether it is held.
    pub is_held: bool,
    /// Whether an attempt is in progress.
    pub is_under_way: bool,
    /// Whether its recipients could be read.
    pub is_readable: bool,
    /// Whether it can only be deleted.
    pub is_left_alone: bool,
}

/// The page.
///
/// Its forms post to `/mail/queue`: `do` (`hold`, `release`, `retry`, `return`, `delete`) with
/// `key`, the key of an entry, or with `domain`.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "queue.html")]
pub struct QueuePage<'a> {
    /// The page layout.
    pub frame: PageFrame<'a>,
    /// The totals, as text.
    pub counts: &'a str,
    /// Its address.
    pub here: &'a str,
    /// The entries.
    pub rows: &'a [QueueRow],
    /// Whether there are entries before it.
    pub is_later: bool,
    /// The address of the next page.
    pub next: Option<&'a str>,
    /// TLS statistics of other servers.
    pub tls: &'a [TlsRow],
}
