//! The messages of a mailbox, or those that a search has found.
//!
//! Invariant: what stands in a list's page as a row was written by the template of rows, which escapes all that it is told.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use askama::Template;

use crate::Escaped;
use crate::frame::Frame;

/// A conversation or message in a list.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "row.html")]
pub struct Row<'a> {
    /// Names it in forms.
    pub key: Escaped<'a>,
    /// Where it is read.
    pub href: Escaped<'a>,
    /// Who took part, for people.
    pub people: Escaped<'a>,
    /// Messages in the conversation.
    pub messages: u32,
    /// What it is about; may be empty.
    pub subject: Escaped<'a>,
    /// How it begins.
    pub snippet: Escaped<'a>,
    /// When, in few words.
    pub date: Escaped<'a>,
    /// When, exactly (RFC 3339).
    pub moment: Escaped<'a>,
    /// Whether something in it was not read.
    pub is_unread: bool,
    /// Whether it has a star.
    pub is_starred: bool,
    /// Whether something in it was answered.
    pub is_answered: bool,
    /// Whether something is attached.
    pub has_attachment: bool,
}

/// A row as HTML.
#[derive(Clone, Debug)]
pub struct WrittenRow(Arc<str>);

impl Row<'_> {
    /// As it stands in a page.
    pub fn written(&self) -> WrittenRow {
        let mut text = String::with_capacity(ROW_BYTES_USUAL);
        // Nothing that fills a row can fail.
        let _ = self.render_into(&mut text);
        WrittenRow(text.into())
    }
}

impl WrittenRow {
    pub(crate) fn bytes(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Display for WrittenRow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl askama::filters::HtmlSafe for WrittenRow {}

impl askama::FastWritable for WrittenRow {
    fn write_into(&self, out: &mut dyn fmt::Write, _: &dyn askama::Values) -> askama::Result<()> {
        Ok(out.write_str(&self.0)?)
    }
}

/// Most rows have no more.
const ROW_BYTES_USUAL: usize = 1_500;

/// The messages of a mailbox, or those that a search has found.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "list.html")]
pub struct ListPage<'a> {
    /// What surrounds it.
    pub frame: Frame<'a>,
    /// The mailbox's name, or what the search is for.
    pub title: &'a str,
    /// The address of this page, to come back to.
    pub here: &'a str,
    /// What is shown, in its order.
    pub rows: &'a [WrittenRow],
    /// Which of how many, for people: `1–50 of 2,104`.
    pub extent: &'a str,
    /// How far a search has come, in words, if it has not looked at all messages yet: the page with older ones goes on.
    pub progress: Option<&'a str>,
    /// The page with newer ones: [`crate::Stretch::After`] the first row.
    pub newer: Option<&'a str>,
    /// The page with older ones: [`crate::Stretch::Before`] the last row.
    pub older: Option<&'a str>,
    /// Whether it is the mailbox of what is to be removed.
    pub is_trash: bool,
    /// Whether it is the mailbox of what nobody asked for.
    pub is_junk: bool,
    /// Whether a row stands for all messages of its conversation.
    pub is_grouped: bool,
}
