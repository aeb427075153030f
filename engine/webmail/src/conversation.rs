//! The page with the messages of a conversation.

use alloc::string::String;

use askama::Template;

use crate::frame::PageFrame;
use crate::prose::Prose;

/// The contents of a message.
#[derive(Clone, Copy, Debug)]
pub enum MessageBody<'a> {
    /// Text.
    Text(Prose<'a>),
    /// HTML as a document of its own, in a sandboxed frame.
    Html {
        /// Its address.
        source: &'a str,
        /// Whether it loads remote content.
        loads: Loads,
        /// The address of all of it, if it is longer than the frame shows.
        whole: Option<&'a str>,
    },
    /// The page has only a line of it, with a link.
    Folded,
}

/// Whether a message loads remote content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loads {
    /// It has none.
    Own,
    /// It is blocked.
    Nothing,
    /// The reader has asked for it once.
    Once,
    /// The sender is trusted.
    Always,
}

/// An attachment.
#[derive(Clone, Copy, Debug)]
pub struct Attachment<'a> {
    /// Its file name.
    pub name: &'a str,
    /// Its size, as text.
    pub size: &'a str,
    /// Its address.
    pub href: &'a str,
}

/// A message of a conversation.
#[derive(Clone, Copy, Debug)]
pub struct ConversationMessage<'a> {
    /// Names it in forms.
    pub key: &'a str,
    /// The address of its own page, if it is folded.
    pub href: &'a str,
    /// The author's name, or the address if there is no name.
    pub from: &'a str,
    /// The author's address.
    pub address: &'a str,
    /// The recipients, as text.
    pub to: &'a str,
    /// The date, in few words.
    pub date: &'a str,
    /// The time, exactly (RFC 3339).
    pub moment: &'a str,
    /// The beginning of its text.
    pub snippet: &'a str,
    /// Whether it has a star.
    pub is_starred: bool,
    /// Whether it is the requested message: the others are folded.
    pub is_asked_for: bool,
    /// Whether it was unread: then it is not folded.
    pub is_unread: bool,
    /// Warnings: the sender or a link is not what it seems, or the message is not shown in full.
    pub warnings: &'a [String],
    /// Its contents.
    pub body: MessageBody<'a>,
    /// Its attachments.
    pub attachments: &'a [Attachment<'a>],
}

impl ConversationMessage<'_> {
    /// The character in the round mark beside the name.
    fn initial(&self) -> char {
        self.from.chars().find(|character| character.is_alphanumeric()).unwrap_or('?')
    }

    /// Whether the page has only a line of it.
    fn is_line(&self) -> bool {
        matches!(self.body, MessageBody::Folded)
    }
}

/// The messages of a conversation, the oldest first.
#[derive(Clone, Copy, Debug, Template)]
#[template(path = "conversation.html")]
pub struct ConversationPage<'a> {
    /// The page layout.
    pub frame: PageFrame<'a>,
    /// The subject.
    pub subject: &'a str,
    /// The list that it belongs to.
    pub back: &'a str,
    /// The address of this page.
    pub here: &'a str,
    /// Names the conversation in forms.
    pub key: &'a str,
    /// Whether there are older messages that are not shown.
    pub is_cut: bool,
    /// Its messages.
    pub messages: &'a [ConversationMessage<'a>],
}
