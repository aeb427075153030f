//! The page with the messages of a mailbox, or with the results of a search.
//!
//! Invariant: each row on the page was rendered by the row template, which escapes all its values.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use askama::Template;

use crate::Escaped;
use crate::frame::PageFrame;

/// The page to which a row leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowTarget {
    /// The page of a message alone.
    Message,
    /// The page of a conversation. The browser scrolls to the opened message.
    Conversation,
    /// The page where a draft is continued.
    Draft,
}

/// A conversation or a message in a list.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "row.html")]
pub struct ListRow<'a> {
    /// The key of the conversation or message in forms.
    pub key: Escaped<'a>,
    /// The address of the row's page. It does not name the list yet.
    pub href: Escaped<'a>,
    /// The kind of that page.
    pub target: RowTarget,
    /// The participants, as text.
    pub people: Escaped<'a>,
    /// The number of messages in the conversation.
    pub messages: u32,
    /// The subject, which may be empty.
    pub subject: Escaped<'a>,
    /// The beginning of the text.
    pub snippet: Escaped<'a>,
    /// The date in short form.
    pub date: Escaped<'a>,
    /// The exact time (RFC 3339).
    pub moment: Escaped<'a>,
    /// Whether a message of the row is unread.
    pub is_unread: bool,
    /// Whether the row has a star.
    pub is_starred: bool,
    /// Whether a message of the row was answered.
    pub is_answered: bool,
    /// Whether a message of the row has an attachment.
    pub has_attachment: bool,
}

/// A rendered row. Several lists may have the row, each with its own address in the link.
#[derive(Clone, Debug)]
pub struct RenderedRow {
    text: Arc<str>,
    /// The position in the text at which the list is inserted. `None`: the row leads to a draft.
    list_at: Option<usize>,
}

/// The text in the row template that marks the position of the list. No escaped text contains it.
const LIST_MARK: &str = "<list>";

impl ListRow<'_> {
    /// Renders the row.
    pub fn written(&self) -> RenderedRow {
        let mut text = String::with_capacity(ROW_BYTES_USUAL);
        // Rendering cannot fail, whatever values the template gets.
        let _ = self.render_into(&mut text);
        let list_at = memchr::memmem::find(text.as_bytes(), LIST_MARK.as_bytes());
        if let Some(at) = list_at {
            text.replace_range(at..at + LIST_MARK.len(), "");
        }
        RenderedRow { text: text.into(), list_at }
    }
}

impl RenderedRow {
    pub(crate) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// The row in a list. `list`: the query for the address of a message, or empty.
    fn within<'a>(&'a self, list: &'a str) -> RowInList<'a> {
        match self.list_at.and_then(|at| self.text.split_at_checked(at)) {
            Some((before, after)) => RowInList([before, list, after]),
            None => RowInList([&self.text, "", ""]),
        }
    }
}

/// A row with the list in its link.
struct RowInList<'a>([&'a str; 3]);

impl fmt::Display for RowInList<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.into_iter().try_for_each(|piece| out.write_str(piece))
    }
}

impl askama::filters::HtmlSafe for RowInList<'_> {}

impl askama::FastWritable for RowInList<'_> {
    fn write_into(&self, out: &mut dyn fmt::Write, _: &dyn askama::Values) -> askama::Result<()> {
        Ok(self.0.into_iter().try_for_each(|piece| out.write_str(piece))?)
    }
}

/// The memory that is reserved for a row, in bytes. Most rows are no larger.
const ROW_BYTES_USUAL: usize = 1_500;

/// The messages of a mailbox, or the results of a search.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "list.html")]
pub struct ListPage<'a> {
    /// The page layout.
    pub frame: PageFrame<'a>,
    /// The mailbox's name, or the search.
    pub title: &'a str,
    /// The address of this page, for redirects.
    pub here: &'a str,
    /// The query with which the page of a message leads back to this list. Empty if the list has
    /// the newest messages of a mailbox.
    pub list: &'a str,
    /// The rows, in their order.
    pub rows: &'a [RenderedRow],
    /// The range and the total, as text: `1–50 of 2,104`.
    pub extent: &'a str,
    /// The progress of a search, as text. The page with older results continues the search.
    pub progress: Option<&'a str>,
    /// The address of the page with newer rows: [`crate::ListRange::After`] the first row.
    pub newer: Option<&'a str>,
    /// The address of the page with older rows: [`crate::ListRange::Before`] the last row.
    pub older: Option<&'a str>,
    /// Whether the mailbox is Trash.
    pub is_trash: bool,
    /// Whether the mailbox is the outbox. The only action there cancels the sending of a message.
    pub is_outbox: bool,
    /// Whether the mailbox is Junk.
    pub is_junk: bool,
    /// Whether a row stands for all messages of a conversation.
    pub is_grouped: bool,
    /// The highest UID that a message of the mailbox can have. Emptying the mailbox deletes nothing
    /// that arrives later.
    pub last_uid: u32,
}
