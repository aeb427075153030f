//! The page on which a letter is written.

use askama::Template;

use crate::frame::Frame;

/// The page on which a letter is written. All of it comes back when sending fails.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "compose.html")]
pub struct ComposePage<'a> {
    /// What surrounds it.
    pub frame: Frame<'a>,
    /// `New message`, `Reply`, …
    pub title: &'a str,
    /// The draft that it is kept as; empty for none.
    pub draft: &'a str,
    /// The message that it answers; empty for none.
    pub answers: &'a str,
    /// To whom.
    pub to: &'a str,
    /// To whom else.
    pub cc: &'a str,
    /// To whom, unseen by others.
    pub bcc: &'a str,
    /// What it is about.
    pub subject: &'a str,
    /// What it says.
    pub text: &'a str,
    /// What is attached to the draft and goes along: its part and its name.
    pub attachments: &'a [(u16, &'a str)],
    /// Why it was not sent.
    pub error: Option<&'a str>,
}
