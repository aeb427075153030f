//! An outgoing message: its envelope, and the facts about its content that the client needs.
//!
//! Implements: RFC 3461 section 4 (the reports that the sender wants).

use alloc::string::String;
use alloc::vec::Vec;

use machine::UnixTime;
use smtp::{Notify, Return, SmtpPath};

/// One message for one peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutgoingMessage {
    /// The sender, and one to [`crate::RECIPIENTS_MAX`] recipients.
    pub envelope: Envelope,
    /// The length of the content in bytes.
    pub bytes: u64,
}

/// The envelope of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// The sender, without angle brackets: failures are reported to this address. Empty: no sender.
    pub reverse_path: String,
    /// The recipients.
    pub recipients: Vec<OutgoingRecipient>,
    /// Whether the content may have non-ASCII bytes.
    pub content: ContentWidth,
    /// The script of the header.
    pub script: Script,
    /// The part of the message that a report returns (RET).
    pub returned: Option<Return>,
    /// The sender's identifier of this envelope (ENVID), as xtext.
    pub envelope_id: Option<String>,
    /// The time until which the message is held, in whole seconds (RFC 4865). `None`: it is not
    /// held.
    pub held_until: Option<UnixTime>,
}

/// A recipient of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutgoingRecipient {
    /// The number by which the caller knows the recipient.
    pub number: u16,
    /// `local-part@domain`, without angle brackets.
    pub address: String,
    /// The reports that the sender wants (NOTIFY).
    pub notify: Option<Notify>,
    /// The address that the sender wrote, before it was redirected (ORCPT): a type, such as
    /// `rfc822` or `utf-8`, then `;` and the address in ASCII.
    pub original: Option<String>,
}

/// The kind of bytes in a content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContentWidth {
    /// ASCII only, as the sender has declared.
    SevenBit,
    /// The content may have other bytes, or the sender has declared nothing.
    EightBit,
}

/// The script of a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Script {
    /// ASCII.
    Ascii,
    /// UTF-8 (RFC 6532).
    Utf8,
}

impl OutgoingRecipient {
    /// Whether the sender wants a report of successful delivery.
    pub fn wants_success(&self) -> bool {
        self.notify.is_some_and(|notify| notify.success)
    }
}

/// Writes the parameters of RCPT that say which reports the sender wants, each after a space.
pub(crate) fn write_report_parameters(recipient: &OutgoingRecipient, line: &mut String) {
    if let Some(Notify { success, failure, delay }) = recipient.notify {
        let wishes = [(success, "SUCCESS"), (failure, "FAILURE"), (delay, "DELAY")];
        let words: Vec<_> =
            wishes.into_iter().filter_map(|(is_wanted, word)| is_wanted.then_some(word)).collect();
        line.push_str(" NOTIFY=");
        line.push_str(&if words.is_empty() { String::from("NEVER") } else { words.join(",") });
    }
    if let Some(original) = recipient.original.as_ref().filter(|original| is_parameter(original)) {
        line.push_str(" ORCPT=");
        line.push_str(original);
    }
}

/// Whether a text is valid after `ENVID=` or `ORCPT=`. A comma at its end is not valid: in a stored
/// envelope it would announce another recipient.
pub(crate) fn is_parameter(text: &str) -> bool {
    (1..=500).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic())
        && !text.ends_with(',')
}

/// Whether a text without angle brackets is a valid reverse path: an address, or empty.
pub(crate) fn is_reverse_path(path: &str) -> bool {
    path.is_empty() || is_forward_path(path)
}

/// Whether a text without angle brackets is a valid address at another server.
pub(crate) fn is_forward_path(path: &str) -> bool {
    // Forms that are accepted only from our clients, such as a source route, are not valid here.
    matches!(SmtpPath::read(&alloc::format!("<{path}>")), Ok((SmtpPath::Mailbox(read), "")) if read.text == path)
}
