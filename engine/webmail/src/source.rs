//! The page with a message's source, and the page for printing.

use askama::Template;

use crate::frame::PageFrame;
use crate::prose::Unfolded;

/// The page with a message's source.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "source.html")]
pub struct SourcePage<'a> {
    /// The page layout.
    pub frame: PageFrame<'a>,
    /// The subject.
    pub subject: &'a str,
    /// The address of the message's page.
    pub back: &'a str,
    /// The address of the message as a file download.
    pub download: &'a str,
    /// The shown octets, with invalid UTF-8 replaced.
    pub octets: &'a str,
    /// Whether the page shows only the beginning of the message.
    pub is_cut: bool,
}

/// A message for printing.
#[derive(Clone, Copy, Debug)]
pub struct Printed<'a> {
    /// The author's name, or the address if there is no name.
    pub from: &'a str,
    /// The author's address.
    pub address: &'a str,
    /// The recipients, as text.
    pub to: &'a str,
    /// The date, as text.
    pub date: &'a str,
    /// The exact time (RFC 3339).
    pub moment: &'a str,
    /// The text.
    pub text: &'a str,
    /// The names of attachments.
    pub attachments: &'a [&'a str],
}

impl<'a> Printed<'a> {
    fn prose(&self) -> Unfolded<'a> {
        Unfolded(self.text)
    }
}

/// The page for printing, without the page layout.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "print.html")]
pub struct PrintPage<'a> {
    /// The account's address.
    pub address: &'a str,
    /// The subject.
    pub subject: &'a str,
    /// The address of the messages' page.
    pub back: &'a str,
    /// The messages, the oldest first.
    pub messages: &'a [Printed<'a>],
}
