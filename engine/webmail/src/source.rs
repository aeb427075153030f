//! The page with a message's source, and the page for printing.

use askama::Template;

use crate::conversation::{ConversationMessage, MessageBody};
use crate::frame::PageFrame;

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
    /// Whether the conversation has older messages that are not on the page.
    pub is_cut: bool,
    /// The messages, the oldest first.
    pub messages: &'a [ConversationMessage<'a>],
}
