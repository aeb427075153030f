//! What is to be sent: the envelope of a letter, and what has to be known of its content.
//!
//! Answers to: RFC 3461 section 4 (what is wanted of reports).

use alloc::string::String;
use alloc::vec::Vec;

use machine::UnixTime;
use smtp::{ForwardPath, Notify, Return, ReversePath};

/// One letter for one peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Letter {
    /// Whose it is and whom it is for; one to [`crate::RECIPIENTS_MAX`] recipients.
    pub envelope: Envelope,
    /// How long the content is, in bytes.
    pub bytes: u64,
}

/// What is said of a letter before it is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// Who is told of failures, without angle brackets; empty for nobody.
    pub reverse_path: String,
    /// Whom it is for.
    pub recipients: Vec<Recipient>,
    /// What bytes the content has.
    pub content: Content,
    /// What its header has.
    pub script: Script,
    /// What of the letter goes back with a report (RET).
    pub returned: Option<Return>,
    /// What the sender calls this envelope (ENVID), as xtext.
    pub envelope_id: Option<String>,
    /// Until when it waits, in whole seconds, if it does (RFC 4865).
    pub held_until: Option<UnixTime>,
}

/// Somebody whom a letter is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recipient {
    /// What the caller knows him by.
    pub number: u16,
    /// `local-part@domain`, without angle brackets.
    pub address: String,
    /// Of what the sender wants to hear (NOTIFY).
    pub notify: Option<Notify>,
    /// What the sender wrote, before it was redirected (ORCPT): `rfc822;` and xtext.
    pub original: Option<String>,
}

/// What bytes a content has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// ASCII alone, as is said.
    SevenBit,
    /// Others too, or who knows.
    EightBit,
}

/// In what script a header is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Script {
    /// ASCII.
    Ascii,
    /// UTF-8 (RFC 6532).
    Utf8,
}

impl Recipient {
    /// Whether the sender wants to hear that it has arrived.
    pub fn wants_success(&self) -> bool {
        self.notify.is_some_and(|notify| notify.success)
    }
}

/// The parameters of RCPT that say what the sender wants to hear, each behind a space.
pub(crate) fn write_wishes(recipient: &Recipient, line: &mut String) {
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

/// Whether a text may stand behind `ENVID=` or `ORCPT=`. No address ends in a comma.
pub(crate) fn is_parameter(text: &str) -> bool {
    (1..=500).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic())
        && !text.ends_with(',')
}

/// Whether a text, without angle brackets, is who a letter comes from: an address, or nobody.
pub(crate) fn is_reverse_path(path: &str) -> bool {
    // A route is none that is said.
    matches!(ReversePath::read(&alloc::format!("<{path}>")), Ok((read, "")) if read.text() == path)
}

/// Whether a text, without angle brackets, is somebody elsewhere.
pub(crate) fn is_forward_path(path: &str) -> bool {
    matches!(ForwardPath::read(&alloc::format!("<{path}>")), Ok((ForwardPath::Mailbox(read), "")) if read.text == path)
}
