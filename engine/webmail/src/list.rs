//! The page with the messages of a mailbox, or with the results of a search.
//!
//! Invariant: each row on the page was rendered by the row template, which escapes all its values.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use askama::Template;

use crate::Escaped;
use crate::frame::PageFrame;

/// A conversation or a message in a list.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "row.html")]
pub struct ListRow<'a> {
    /// The key of the conversation or message in forms.
    pub key: Escaped<'a>,
    /// The address of the page that shows it.
    pub href: Escaped<'a>,
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

/// A rendered row.
#[derive(Clone, Debug)]
pub struct RenderedRow(Arc<str>);

impl ListRow<'_> {
    /// Renders the row.
    pub fn written(&self) -> RenderedRow {
        let mut text = String::with_capacity(ROW_BYTES_USUAL);
        // Rendering cannot fail, whatever values the template gets.
        let _ = self.render_into(&mut text);
        RenderedRow(text.into())
    }
}

impl RenderedRow {
    pub(crate) fn bytes(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Display for RenderedRow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl askama::filters::HtmlSafe for RenderedRow {}

impl askama::FastWritable for RenderedRow {
    fn write_into(&self, out: &mut dyn fmt::Write, _: &dyn askama::Values) -> askama::Result<()> {
        Ok(out.write_str(&self.0)?)
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
    /// Whether the mailbox is Junk.
    pub is_junk: bool,
    /// Whether a row stands for all messages of a conversation.
    pub is_grouped: bool,
}
