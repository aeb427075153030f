//! The page with the messages of a conversation.

use alloc::string::String;

use askama::Template;

use crate::frame::PageFrame;
use crate::notice::KindNotice;
use crate::prose::Prose;

/// A shown part of a message.
#[derive(Clone, Copy, Debug)]
pub enum MessageBody<'a> {
    /// Plain text.
    Text(Prose<'a>),
    /// HTML as a separate document, in a sandboxed frame.
    Html {
        /// The address of the document.
        source: &'a str,
        /// The address of the whole HTML part, if the document in the frame is only its beginning.
        whole: Option<&'a str>,
    },
    /// The page shows only one line of the message, with a link.
    Folded,
}

/// Whether a message loads remote content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loads {
    /// The message has no remote content.
    Own,
    /// Remote content is blocked.
    Nothing,
    /// Remote content is loaded, since the reader has asked for it once.
    Once,
    /// Remote content is loaded, since the reader trusts the sender.
    Always,
}

/// An attachment.
#[derive(Clone, Copy, Debug)]
pub struct Attachment<'a> {
    /// The file name of the attachment.
    pub name: &'a str,
    /// The size of the attachment, as text.
    pub size: &'a str,
    /// The address of the attachment.
    pub href: &'a str,
}

/// A message of a conversation.
#[derive(Clone, Copy, Debug)]
pub struct ConversationMessage<'a> {
    /// The key of the message in forms.
    pub key: &'a str,
    /// The address of the message's page, if the message is folded.
    pub href: &'a str,
    /// The author's name, or the address if there is no name.
    pub from: &'a str,
    /// The author's address.
    pub address: &'a str,
    /// The recipients, as text.
    pub to: &'a str,
    /// The fields with people, and the people in them with their addresses.
    pub people: &'a [(&'static str, String)],
    /// The date in short form.
    pub date: &'a str,
    /// The exact time (RFC 3339).
    pub moment: &'a str,
    /// The time in the message's date field, if it differs from the arrival: in the form of `date`,
    /// and in the form of `moment`.
    pub sent: Option<[&'a str; 2]>,
    /// The beginning of the text.
    pub snippet: &'a str,
    /// Whether the message has a star.
    pub is_starred: bool,
    /// Whether the reader has requested this message. Other read messages are folded.
    pub is_asked_for: bool,
    /// Whether the message was unread. An unread message is not folded.
    pub is_unread: bool,
    /// Warnings: the sender or a link may be fraudulent, or the message is not shown in full.
    pub warnings: &'a [String],
    /// Statements about the kind of the message.
    pub notices: &'a [KindNotice],
    /// Whether the HTML of the message loads remote content.
    pub loads: Loads,
    /// The parts that are shown, in their order.
    pub bodies: &'a [MessageBody<'a>],
    /// The attachments of the message.
    pub attachments: &'a [Attachment<'a>],
}

impl ConversationMessage<'_> {
    /// The character in the round mark next to the name.
    fn initial(&self) -> char {
        self.from.chars().find(|character| character.is_alphanumeric()).unwrap_or('?')
    }

    /// Whether the page shows only one line of the message.
    fn is_line(&self) -> bool {
        matches!(self.bodies, [MessageBody::Folded])
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
    /// The address of the list that has the conversation.
    pub back: &'a str,
    /// The address of this page.
    pub here: &'a str,
    /// The key of the conversation in forms.
    pub key: &'a str,
    /// Whether the opened message is in the outbox. The only action there cancels its sending.
    pub is_outbox: bool,
    /// Whether the conversation has older messages that are not shown.
    pub is_cut: bool,
    /// The messages of the conversation.
    pub messages: &'a [ConversationMessage<'a>],
}
