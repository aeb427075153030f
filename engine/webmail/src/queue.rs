//! The queue page for administrators: the entries in the outboxes of all cores.
//!
//! An entry is a message in an outbox, for up to eight recipients of one domain. Entries are sorted
//! by outbox, and within an outbox by age. A page shows the next [`outbound::LINES`] entries after
//! a given entry. So the cost of a page does not depend on the length of the queue.
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
    /// The key of the entry.
    pub key: String,
    /// The sender.
    pub sender: String,
    /// The remaining recipients.
    pub recipients: String,
    /// The state of the entry.
    pub state: String,
    /// The age, the size and the number of delivery attempts.
    pub facts: String,
    /// The result of the last delivery attempt.
    pub last_result: String,
    /// Whether the entry is held.
    pub is_held: bool,
    /// Whether a delivery attempt is in progress.
    pub is_under_way: bool,
    /// Whether the recipients could be read.
    pub is_readable: bool,
    /// Whether the only possible action is to delete the entry.
    pub is_left_alone: bool,
}

/// The queue page.
///
/// The forms of the page post to `/mail/queue`: `do` with the action (`hold`, `release`, `retry`,
/// `return`, `delete`), and either `key` with the key of an entry, or `domain`.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "queue.html")]
pub struct QueuePage<'a> {
    /// The page layout.
    pub frame: PageFrame<'a>,
    /// The totals, as text.
    pub counts: &'a str,
    /// The address of the page.
    pub here: &'a str,
    /// The entries.
    pub rows: &'a [QueueRow],
    /// Whether the queue has entries before those of the page.
    pub is_later: bool,
    /// The address of the next page.
    pub next: Option<&'a str>,
    /// The TLS statistics with other servers.
    pub tls: &'a [TlsRow],
}
