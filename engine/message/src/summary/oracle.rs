//! An oracle that makes summaries in a slow way. It takes the whole message apart, reads every
//! field by the general reader, and completes each text before it cuts the text.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::hash::Hasher as _;

use siphasher::sip::SipHasher13;

use super::{
    ADDRESS_BYTES_MAX, FIELDS_BYTES, NAME_BYTES_MAX, RECIPIENTS_BYTES_MAX, SNIPPET_BYTES_MAX,
    SUBJECT_BYTES_MAX, SUMMARY_BYTES, Summary, TRIES_MAX, UNLABELLED_MAX, conversation,
};
use crate::TextDecoder;
use crate::header::{Address, Field, HeaderMailbox, in_body_charset, people_in_body_charset};
use crate::html::{Html, HtmlPiece};
use crate::presentation::{self, body_charset, has_attachment};
use crate::shown::is_shown;
use crate::structure::{Listener, Part, StructureReader};

pub(crate) fn of(beginning: &[u8]) -> Summary {
    let mut gathering = OracleParts::default();
    let mut reader = StructureReader::new();
    reader.bytes_arrived(beginning, &mut gathering);
    let structure = reader.message_ended(&mut gathering);
    let charset = body_charset(&structure.parts);
    for (name, value) in core::mem::take(&mut gathering.unlabelled) {
        let read = if name == "Subject" { in_body_charset } else { people_in_body_charset };
        let value = read(&value, charset);
        gathering.labelled_field_arrived(&Field { name: name.as_bytes(), value: &value });
    }
    let mut summary = gathering.summary;
    summary.has_attachment = has_attachment(&structure.parts);
    summary.conversation =
        match [gathering.root, summary.in_reply_to].into_iter().find(|id| *id != 0) {
            Some(first) => conversation::of_answer(first),
            None if summary.message_id == 0 => 0,
            None => {
                conversation::of_first(summary.message_id, summary.sent, summary.subject.as_bytes())
            }
        };
    let others =
        [&summary.sender_name, &summary.sender_address, &summary.recipients, &summary.subject];
    let left = SUMMARY_BYTES - FIELDS_BYTES - others.map(String::len).iter().sum::<usize>();
    summary.snippet = cut(&gathering.snippet.finish(), left.min(SNIPPET_BYTES_MAX));
    summary
}

/// The facts that are gathered while the message is taken apart.
#[derive(Default)]
struct OracleParts {
    summary: Summary,
    /// The hash of the message's first reference.
    root: u64,
    snippet: OracleSnippet,
    text: Option<OracleText>,
    /// The fields in the charset of the body.
    unlabelled: alloc::vec::Vec<(&'static str, alloc::vec::Vec<u8>)>,
    /// The names of the fields so far.
    names: alloc::vec::Vec<alloc::vec::Vec<u8>>,
}

/// The text that is being read.
struct OracleText {
    decoder: TextDecoder,
    read: String,
    html: Option<Html>,
}

/// The fields that are read. The first of each name counts.
const FIELDS: [&str; 8] =
    ["From", "To", "Cc", "Subject", "Date", "Message-ID", "In-Reply-To", "References"];

impl OracleParts {
    fn labelled_field_arrived(&mut self, field: &Field<'_>) {
        let name = if field.is("Cc") { b"to".to_vec() } else { field.name.to_ascii_lowercase() };
        self.names.push(name.clone());
        if self.names.iter().filter(|known| **known == name).count() > usize::from(TRIES_MAX) {
            return;
        }
        let summary = &mut self.summary;
        if field.is("From") && summary.sender_name.is_empty() && summary.sender_address.is_empty() {
            let Some(sender) = mailboxes(field.addresses()).next() else { return };
            summary.sender_name = cut(&shown(&sender.name), NAME_BYTES_MAX);
            summary.sender_address = cut(&shown(&sender.address), ADDRESS_BYTES_MAX);
        } else if (field.is("To") || field.is("Cc")) && summary.recipients.is_empty() {
            summary.recipients = cut(&recipients(field.addresses()), RECIPIENTS_BYTES_MAX);
        } else if field.is("Subject") && summary.subject.is_empty() {
            summary.subject = cut(&shown(&field.text()), SUBJECT_BYTES_MAX);
        } else if field.is("Date") && summary.sent.is_none() {
            summary.sent = field.date().map(|date| date.time);
        } else if field.is("Message-ID") && summary.message_id == 0 {
            summary.message_id = field.identifiers().next().map_or(0, hash);
        } else if field.is("In-Reply-To") && summary.in_reply_to == 0 {
            summary.in_reply_to = field.identifiers().next().map_or(0, hash);
        } else if field.is("References") && self.root == 0 {
            self.root = field.identifiers().next().map_or(0, hash);
        }
    }
}

impl Listener for OracleParts {
    fn wants_field(&mut self, part: &Part, name: &[u8]) -> bool {
        part.depth == 0 && FIELDS.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
    }

    fn field_arrived(&mut self, field: &Field<'_>) {
        let mut readers = ["From", "To", "Cc", "Subject"].into_iter();
        match readers.find(|name| field.is(name) && core::str::from_utf8(field.value).is_err()) {
            Some(name) if self.unlabelled.len() < UNLABELLED_MAX => {
                self.unlabelled.push((name, field.value.to_vec()));
            }
            Some(_) => {}
            None => self.labelled_field_arrived(field),
        }
    }

    fn body_began(&mut self, parts: &[Part]) -> bool {
        let Some(part) = parts.last() else { return false };
        let is_text = presentation::shown_as(parts).is_some() && !part.has_main_type("multipart");
        self.text = (self.snippet.is_empty() && is_text).then(|| OracleText {
            decoder: TextDecoder::new(part),
            read: String::new(),
            html: (part.media_type == "text/html").then(Html::default),
        });
        self.text.is_some()
    }

    fn body_arrived(&mut self, bytes: &[u8]) {
        if let Some(text) = self.text.as_mut().filter(|_| !self.snippet.is_full()) {
            text.decoder.bytes_arrived(bytes, &mut text.read);
            text.pass_on(&mut self.snippet);
        }
    }

    /// Only the beginning of a message that is not a multipart is shown.
    fn has_enough(&self, parts: &[Part]) -> bool {
        self.snippet.is_full() && matches!(parts, [part] if !part.has_main_type("multipart"))
    }

    fn body_ended(&mut self) {
        if let Some(mut text) = self.text.take() {
            text.decoder.body_ended(&mut text.read);
            text.pass_on(&mut self.snippet);
        }
    }
}

impl OracleText {
    fn pass_on(&mut self, snippet: &mut OracleSnippet) {
        match &mut self.html {
            Some(html) => html.text_arrived(&self.read, &mut |piece| match piece {
                HtmlPiece::Character(c) | HtmlPiece::Preformatted(c) => snippet.push(c),
                HtmlPiece::Gap(_) | HtmlPiece::Object => snippet.push(' '),
            }),
            None => snippet.push_lines(&self.read),
        }
        self.read.clear();
    }
}

fn mailboxes(addresses: alloc::vec::Vec<Address>) -> impl Iterator<Item = HeaderMailbox> {
    addresses.into_iter().flat_map(|address| match address {
        Address::Mailbox(mailbox) => alloc::vec![mailbox],
        Address::Group { mailboxes, .. } => mailboxes,
    })
}

/// The names of the recipients, or the addresses of recipients without a name.
fn recipients(addresses: alloc::vec::Vec<Address>) -> String {
    let mut names = String::new();
    for mailbox in mailboxes(addresses) {
        if names.len() > RECIPIENTS_BYTES_MAX {
            break;
        }
        if !names.is_empty() {
            names.push_str(", ");
        }
        names.push_str(&shown(if mailbox.name.is_empty() {
            &mailbox.address
        } else {
            &mailbox.name
        }));
    }
    names
}

fn shown(text: &str) -> String {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.to_owned();
    }
    text.chars().filter(|c| is_shown(*c)).collect()
}

/// At most `bytes_max` bytes of `text`. A text that was cut ends in `…`.
fn cut(text: &str, bytes_max: usize) -> String {
    const ELLIPSIS: &str = "…";
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes_max.saturating_sub(ELLIPSIS.len()));
    let mut kept = text.get(..end).unwrap_or_default().trim_end().to_owned();
    kept.push_str(ELLIPSIS);
    kept
}

/// The hash of an identifier. It is never zero.
fn hash(identifier: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(identifier);
    hasher.finish().max(1)
}

/// Enough space for characters of four bytes.
const BYTES_MAX: usize = SNIPPET_BYTES_MAX + 8;

/// The beginning of a text: its words with one space between them.
#[derive(Debug)]
struct OracleSnippet {
    text: String,
    is_spaced: bool,
    line: OracleSnippetLine,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OracleSnippetLine {
    Begins,
    GoesOn,
    /// A quote.
    IsQuote,
}

impl Default for OracleSnippet {
    fn default() -> OracleSnippet {
        OracleSnippet {
            text: String::with_capacity(BYTES_MAX + 8),
            is_spaced: false,
            line: OracleSnippetLine::Begins,
        }
    }
}

impl OracleSnippet {
    fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    fn is_full(&self) -> bool {
        self.text.len() > BYTES_MAX
    }

    #[inline]
    fn push(&mut self, c: char) {
        if c == ' ' || c.is_whitespace() || c.is_control() {
            self.is_spaced = !self.text.is_empty();
        } else if !self.is_full() && (c.is_ascii_graphic() || is_shown(c)) {
            if core::mem::take(&mut self.is_spaced) {
                self.text.push(' ');
            }
            self.text.push(c);
        }
    }

    fn push_all(&mut self, text: &str) {
        if text.is_ascii() {
            text.bytes().for_each(|byte| self.push(char::from(byte)));
        } else {
            text.chars().for_each(|c| self.push(c));
        }
    }

    /// Adds a text in which lines that begin with `>` are quotes. It may begin and end within a
    /// line.
    fn push_lines(&mut self, text: &str) {
        for line in text.split_inclusive('\n') {
            if self.is_full() {
                return;
            }
            if self.line == OracleSnippetLine::Begins {
                self.line = if line.starts_with('>') {
                    OracleSnippetLine::IsQuote
                } else {
                    OracleSnippetLine::GoesOn
                };
            }
            if self.line == OracleSnippetLine::GoesOn {
                self.push_all(line);
            }
            if line.ends_with('\n') {
                self.line = OracleSnippetLine::Begins;
            }
        }
    }

    fn finish(self) -> String {
        self.text
    }
}
