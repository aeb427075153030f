//! The page for writing a message.

use askama::Template;

use crate::frame::PageFrame;

/// The page for writing a message. It keeps all fields when sending fails.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "compose.html")]
pub struct ComposePage<'a> {
    /// The page layout.
    pub frame: PageFrame<'a>,
    /// `New message`, `Reply`, …
    pub title: &'a str,
    /// The key of the saved draft, or empty.
    pub draft: &'a str,
    /// The key of the message that this message replies to, or empty.
    pub answers: &'a str,
    /// The recipients.
    pub to: &'a str,
    /// The recipients of copies.
    pub cc: &'a str,
    /// The recipients of blind copies.
    pub bcc: &'a str,
    /// The subject.
    pub subject: &'a str,
    /// The text.
    pub text: &'a str,
    /// The attached files of the draft: part and name.
    pub attachments: &'a [(u16, &'a str)],
    /// The reason why the message was not sent.
    pub error: Option<&'a str>,
    /// Whether the server has not saved the fields yet.
    pub is_unsaved: bool,
}
