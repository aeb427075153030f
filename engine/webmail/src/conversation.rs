//! The messages of a conversation, own answers among them.

use alloc::string::String;

use askama::Template;

use crate::frame::Frame;
use crate::prose::Prose;

/// What is read of a message.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// Text.
    Text(Prose<'a>),
    /// A page of its own, in a frame that may do nothing.
    Html {
        /// Where it is.
        source: &'a str,
        /// Whether it loads what it wants from elsewhere.
        loads: Loads,
        /// Where all of it is, if it is longer than what is shown.
        whole: Option<&'a str>,
    },
    /// Not read yet by the page: shown when it is opened.
    Folded,
}

/// Whether a page within a message loads what it wants from elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loads {
    /// It wants nothing.
    Own,
    /// It is kept from it.
    Nothing,
    /// Its reader has asked for it this once.
    Once,
    /// Its sender is trusted.
    Always,
}

/// Something attached.
#[derive(Clone, Copy, Debug)]
pub struct Attachment<'a> {
    /// Its file's name.
    pub name: &'a str,
    /// Its size, for people.
    pub size: &'a str,
    /// Where it is.
    pub href: &'a str,
}

/// A message of a conversation.
#[derive(Clone, Copy, Debug)]
pub struct Letter<'a> {
    /// Names it in forms.
    pub key: &'a str,
    /// Where it is shown opened, if it is folded.
    pub href: &'a str,
    /// Who wrote it: a name, or the address where there is none.
    pub from: &'a str,
    /// Under which address.
    pub address: &'a str,
    /// To whom, for people.
    pub to: &'a str,
    /// When, in few words.
    pub date: &'a str,
    /// When, exactly (RFC 3339).
    pub moment: &'a str,
    /// How it begins.
    pub snippet: &'a str,
    /// Whether it has a star.
    pub is_starred: bool,
    /// Whether it is the one that was asked for: the others fold.
    pub is_asked_for: bool,
    /// Whether it was not read before: it is not folded.
    pub is_unread: bool,
    /// What a reader should know of it: that its sender or its links are not what they seem, that it is not shown whole.
    pub warnings: &'a [String],
    /// What is read.
    pub body: Body<'a>,
    /// What is attached.
    pub attachments: &'a [Attachment<'a>],
}

impl Letter<'_> {
    /// The letter in the round mark beside the name.
    fn initial(&self) -> char {
        self.from.chars().find(|letter| letter.is_alphanumeric()).unwrap_or('?')
    }

    /// Whether it is elsewhere that it is read.
    fn is_line(&self) -> bool {
        matches!(self.body, Body::Folded)
    }
}

/// The messages of a conversation, the oldest first.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "conversation.html")]
pub struct ConversationPage<'a> {
    /// What surrounds it.
    pub frame: Frame<'a>,
    /// What it is about.
    pub subject: &'a str,
    /// The list that it was opened from.
    pub back: &'a str,
    /// The address of this page.
    pub here: &'a str,
    /// Names all of it in forms.
    pub key: &'a str,
    /// Whether it has older messages that are not shown.
    pub is_cut: bool,
    /// Its messages.
    pub letters: &'a [Letter<'a>],
}
