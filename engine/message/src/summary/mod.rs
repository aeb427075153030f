//! The summary of a message for a message list, made once, when the message arrives.
//!
//! # On the disk
//!
//! A summary has at most [`SUMMARY_BYTES`] bytes. Numbers are little-endian.
//!
//! | at | bytes | what |
//! |---:|---:|---|
//! | 0 | 1 | version: 1 |
//! | 1 | 1 | bit 0: it has an attachment; bit 1: it has a date; the other bits are zero |
//! | 2 | 8 | the date of its date field in seconds since 1970, or zero |
//! | 10 | 8 | the hash of its identifier; zero: it has none |
//! | 18 | 8 | the hash of the identifier of the answered message; zero: it answers none |
//! | 26 | 8 | its conversation (`conversation.rs`); zero: none |
//! | 34 | 5 | text lengths: sender's name, sender's address, recipients, subject, snippet |
//! | 39 | | the texts, in UTF-8 |
//!
//! Invariants:
//! - No text has a control character, or a character that hides others or changes their order. A
//!   text that was cut ends in `…`.
//! - A summary from [`Summary::of`] survives [`Summary::write`] and [`Summary::read`] unchanged.
//!   [`Summary::read`] accepts only bytes that [`Summary::write`] can write.
//! - Identifiers are hashed without a secret. A secret would not help: a sender that wants its
//!   message to be in a conversation only has to name the conversation's identifier.
//!
//! Implements: RFC 5322 section 3.6; RFC 3676 section 4.5 (quotes, which a snippet leaves out).

mod body;
mod conversation;
mod fields;
#[cfg(test)]
pub(crate) mod oracle;
mod plain;
mod short_header;
mod snippet;
mod text;

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::hash::Hasher as _;

use machine::UnixTime;
use siphasher::sip::SipHasher13;

use crate::header::{Address, Field, HeaderMailbox, in_body_charset, people_in_body_charset};
use crate::shown::is_shown;
use crate::writer::Writer;
use fields::{NeededField, NeededFields, SummaryField};
use plain::{Hard, Mailboxes};
pub use short_header::{SHORT_HEADER_BYTES_MAX, shorten_header};
use snippet::{Snippet, are_shown};
use text::TextBuffer;

/// The most bytes of a summary.
pub const SUMMARY_BYTES: usize = 400;

const VERSION: u8 = 1;
/// The number of bytes before the texts.
const FIELDS_BYTES: usize = 39;

const NAME_BYTES_MAX: usize = 60;
const ADDRESS_BYTES_MAX: usize = 80;
const RECIPIENTS_BYTES_MAX: usize = 48;
const SUBJECT_BYTES_MAX: usize = 120;
/// The most bytes of a snippet, about the length of a line in a list. A snippet is shorter if the
/// other texts leave less space.
const SNIPPET_BYTES_MAX: usize = 200;

/// The most fields of one name that are tried until one gives a value.
const TRIES_MAX: u8 = 4;
/// The most bytes that are read of a complicated field. A list has no space for more.
const HARD_BYTES_MAX: usize = 2_048;
/// The most mailboxes and groups of a complicated field.
const HARD_MAILBOXES_MAX: usize = 32;
/// The most fields in the charset of the body that are read. They are read after all others.
const UNLABELLED_MAX: usize = 8;

const _: () = assert!(
    FIELDS_BYTES
        + NAME_BYTES_MAX
        + ADDRESS_BYTES_MAX
        + RECIPIENTS_BYTES_MAX
        + SUBJECT_BYTES_MAX
        + 48
        < SUMMARY_BYTES
);

/// The data that a list shows of a message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// The name of the first author. Empty: there is none.
    pub sender_name: String,
    /// The address of the first author. Empty: there is none.
    pub sender_address: String,
    /// The names of the recipients, as many as there is space for.
    pub recipients: String,
    /// The subject.
    pub subject: String,
    /// The beginning of the message's text, without quotes.
    pub snippet: String,
    /// The time at which the message was sent, according to its date field.
    pub sent: Option<UnixTime>,
    /// The hash of the message's identifier, or zero if it has none.
    pub message_id: u64,
    /// The hash of the identifier of the answered message, or zero if it answers none.
    pub in_reply_to: u64,
    /// The number of the conversation. Its upper 48 bits are from the hash of the identifier of the
    /// first message, or of the earliest message that this one names. Its lower 16 bits tell first
    /// messages with the same identifier apart, and are zero if this message answers another. Zero:
    /// none.
    pub conversation: u64,
    /// Whether a file is attached.
    pub has_attachment: bool,
}

impl Summary {
    /// The summary of the message that begins with these bytes: see [`summarize`].
    pub fn of(beginning: &[u8]) -> Summary {
        let mut bytes = [0; SUMMARY_BYTES];
        let (length, _) = summarize(beginning, &mut bytes);
        bytes.get(..length).and_then(Summary::read).unwrap_or_default()
    }

    /// Writes the summary, and returns its length in bytes.
    pub fn write(&self, out: &mut [u8; SUMMARY_BYTES]) -> usize {
        let numbers = [self.message_id, self.in_reply_to, self.conversation];
        emit(out, self.has_attachment, self.sent, numbers, self.texts().map(str::as_bytes))
    }

    /// Reads a written summary. `None`: the bytes are no summary.
    pub fn read(bytes: &[u8]) -> Option<Summary> {
        let (&[VERSION, flags @ 0..=3], rest) = bytes.split_first_chunk()? else { return None };
        let (sent, rest) = number(rest)?;
        let (message_id, rest) = number(rest)?;
        let (in_reply_to, rest) = number(rest)?;
        let (conversation, rest) = number(rest)?;
        let (lengths, rest) = rest.split_first_chunk::<5>()?;
        let mut rest = core::str::from_utf8(rest).ok().filter(|texts| are_shown(texts))?;
        let mut text = |length: u8| {
            let (text, after) = rest.split_at_checked(usize::from(length))?;
            rest = after;
            Some(text.to_owned())
        };
        let [name, address, recipients, subject, snippet] = lengths.map(&mut text);
        let has_date = flags & 2 != 0;
        let summary = Summary {
            sender_name: name?,
            sender_address: address?,
            recipients: recipients?,
            subject: subject?,
            snippet: snippet?,
            sent: has_date.then_some(UnixTime::from_seconds(sent)),
            message_id,
            in_reply_to,
            conversation,
            has_attachment: flags & 1 != 0,
        };
        let is_time =
            if has_date { UnixTime::from_seconds(sent).seconds() == sent } else { sent == 0 };
        (rest.is_empty() && is_time && bytes.len() <= SUMMARY_BYTES).then_some(summary)
    }

    fn texts(&self) -> [&str; 5] {
        [&self.sender_name, &self.sender_address, &self.recipients, &self.subject, &self.snippet]
    }
}

fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    bytes.split_first_chunk().map(|(number, rest)| (u64::from_le_bytes(*number), rest))
}

/// Writes into `out` the summary of the message that begins with these bytes. Some tens of
/// kilobytes are enough. Parts that begin later are not included. Returns the length in bytes, and
/// the number of the conversation, which is zero for none.
///
/// The work is linear in the bytes. Nothing is allocated if all fields and parts have the usual
/// forms.
#[inline(never)]
pub fn summarize(beginning: &[u8], out: &mut [u8; SUMMARY_BYTES]) -> (usize, u64) {
    let mut draft = PartialSummary::default();
    let mut body_fields = body::BodyFields::default();
    let mut fields = NeededFields::new(beginning);
    let mut unlabelled = Vec::new();
    while let Some(field) = fields.next() {
        if field.is_for_readers() && core::str::from_utf8(field.value).is_err() {
            unlabelled.push(field);
        } else {
            draft.field_arrived(field, &mut body_fields);
        }
    }
    if !unlabelled.is_empty() {
        let charset = body::charset(&body_fields, fields.rest());
        for field in unlabelled.into_iter().take(UNLABELLED_MAX) {
            let read = if field.name == SummaryField::Subject {
                in_body_charset
            } else {
                people_in_body_charset
            };
            let value = read(field.value, charset.as_deref());
            let field = NeededField { value: &value, ..field };
            draft.field_arrived(field, &mut body::BodyFields::default());
        }
    }
    let mut snippet = Snippet::default();
    let has_attachment = body::read(&body_fields, fields.rest(), &mut snippet);
    draft.finish(&mut snippet, has_attachment, out)
}

/// Writes a summary and returns its length in bytes. `numbers`: the message, the message that it
/// answers, the conversation.
fn emit(
    out: &mut [u8; SUMMARY_BYTES],
    has_attachment: bool,
    sent: Option<UnixTime>,
    numbers: [u64; 3],
    texts: [&[u8]; 5],
) -> usize {
    let mut writer = Writer::new(out);
    writer.put(&[VERSION, u8::from(has_attachment) | u8::from(sent.is_some()) << 1]);
    writer.put(&sent.map_or(0, UnixTime::seconds).to_le_bytes());
    numbers.iter().for_each(|number| writer.put(&number.to_le_bytes()));
    writer.put(&texts.map(|text| text.len().min(usize::from(u8::MAX)) as u8));
    texts.iter().for_each(|text| writer.put(text));
    writer.finish().unwrap_or(0)
}

/// The values of the fields so far. If a name occurs several times, the first field with a value
/// counts.
#[derive(Default)]
struct PartialSummary {
    sender_name: TextBuffer<NAME_BYTES_MAX>,
    sender_address: TextBuffer<ADDRESS_BYTES_MAX>,
    recipients: TextBuffer<RECIPIENTS_BYTES_MAX>,
    subject: TextBuffer<SUBJECT_BYTES_MAX>,
    sent: Option<UnixTime>,
    message_id: u64,
    in_reply_to: u64,
    /// The hash of the message's first reference.
    root: u64,
    /// The number of fields of each name that were tried.
    tries: [u8; SummaryField::COUNT],
}

impl PartialSummary {
    fn field_arrived<'a>(
        &mut self,
        found: NeededField<'a>,
        body_fields: &mut body::BodyFields<'a>,
    ) {
        let Some(tries) = self.tries.get_mut(found.name as usize) else { return };
        if *tries == TRIES_MAX {
            return;
        }
        *tries += 1;
        let field = Field { name: &[], value: found.value };
        match found.name {
            SummaryField::From if self.sender_name.is_empty() && self.sender_address.is_empty() => {
                self.sender_arrived(&field)
            }
            SummaryField::Recipients if self.recipients.is_empty() => {
                self.recipients_arrived(&field)
            }
            SummaryField::Subject if self.subject.is_empty() => self.subject_arrived(&field),
            SummaryField::Date if self.sent.is_none() => {
                self.sent = field.date().map(|date| date.time)
            }
            SummaryField::MessageId if self.message_id == 0 => {
                self.message_id = first_hashed(&field)
            }
            SummaryField::InReplyTo if self.in_reply_to == 0 => {
                self.in_reply_to = first_hashed(&field)
            }
            SummaryField::References if self.root == 0 => self.root = first_hashed(&field),
            SummaryField::ContentType
            | SummaryField::ContentDisposition
            | SummaryField::ContentTransferEncoding
            | SummaryField::ContentId => {
                body_fields.field_arrived(found);
            }
            _ => {}
        }
    }

    fn sender_arrived(&mut self, field: &Field<'_>) {
        match Mailboxes::new(field.value).next() {
            Ok(None) => {}
            Ok(Some(sender)) => {
                self.sender_name.push_ascii(sender.name);
                self.sender_address.push_ascii(sender.address);
            }
            Err(Hard) => {
                let Some(sender) = mailboxes(field).next() else { return };
                push_shown(&mut self.sender_name, &sender.name);
                push_shown(&mut self.sender_address, &sender.address);
            }
        }
        self.sender_name.cut(NAME_BYTES_MAX);
        self.sender_address.cut(ADDRESS_BYTES_MAX);
    }

    /// Adds the names of the recipients, or the addresses of recipients without a name.
    fn recipients_arrived(&mut self, field: &Field<'_>) {
        if self.push_plain_recipients(field.value).is_err() {
            self.recipients.clear();
            for mailbox in mailboxes(field) {
                if self.recipients.is_over() {
                    break;
                }
                self.begin_recipient();
                let shown = if mailbox.name.is_empty() { &mailbox.address } else { &mailbox.name };
                push_shown(&mut self.recipients, shown);
            }
        }
        self.recipients.cut(RECIPIENTS_BYTES_MAX);
    }

    fn push_plain_recipients(&mut self, value: &[u8]) -> Result<(), Hard> {
        let mut mailboxes = Mailboxes::new(value);
        while let (false, Some(mailbox)) = (self.recipients.is_over(), mailboxes.next()?) {
            self.begin_recipient();
            self.recipients.push_ascii(if mailbox.name.is_empty() {
                mailbox.address
            } else {
                mailbox.name
            });
        }
        Ok(())
    }

    fn begin_recipient(&mut self) {
        if !self.recipients.is_empty() {
            self.recipients.push_ascii(b", ");
        }
    }

    fn subject_arrived(&mut self, field: &Field<'_>) {
        if plain::push_text(field.value, &mut self.subject).is_err() {
            self.subject.clear();
            push_shown(&mut self.subject, &beginning(field).text());
        }
        self.subject.cut(SUBJECT_BYTES_MAX);
    }

    fn finish(
        &self,
        snippet: &mut Snippet,
        has_attachment: bool,
        out: &mut [u8; SUMMARY_BYTES],
    ) -> (usize, u64) {
        let [name, address] = [self.sender_name.bytes(), self.sender_address.bytes()];
        let [recipients, subject] = [self.recipients.bytes(), self.subject.bytes()];
        let left = SUMMARY_BYTES
            - FIELDS_BYTES
            - name.len()
            - address.len()
            - recipients.len()
            - subject.len();
        let snippet = snippet.finish(left.min(SNIPPET_BYTES_MAX));
        let conversation = match [self.root, self.in_reply_to, self.message_id] {
            [0, 0, 0] => 0,
            [0, 0, own] => conversation::of_first(own, self.sent, subject),
            [0, first, _] | [first, _, _] => conversation::of_answer(first),
        };
        let numbers = [self.message_id, self.in_reply_to, conversation];
        let texts = [name, address, recipients, subject, snippet];
        (emit(out, has_attachment, self.sent, numbers, texts), conversation)
    }
}

/// The beginning of a field, for the general reader. It ends with a whole character.
fn beginning<'a>(field: &Field<'a>) -> Field<'a> {
    let goes_on = |end: usize| field.value.get(end).is_some_and(|byte| byte & 0xc0 == 0x80);
    let end = (HARD_BYTES_MAX - 3..=HARD_BYTES_MAX)
        .rev()
        .find(|end| !goes_on(*end))
        .unwrap_or(HARD_BYTES_MAX);
    Field { value: field.value.get(..end).unwrap_or(field.value), ..*field }
}

fn mailboxes(field: &Field<'_>) -> impl Iterator<Item = HeaderMailbox> {
    beginning(field).first_addresses(HARD_MAILBOXES_MAX).into_iter().flat_map(|address| {
        match address {
            Address::Mailbox(mailbox) => alloc::vec![mailbox],
            Address::Group { mailboxes, .. } => mailboxes,
        }
    })
}

fn push_shown<const N: usize>(out: &mut TextBuffer<N>, text: &str) {
    text.chars().filter(|c| is_shown(*c)).for_each(|c| out.push(c));
}

/// The hash of the first identifier, or zero if there is none.
fn first_hashed(field: &Field<'_>) -> u64 {
    field.identifiers().next().map_or(0, hash)
}

/// The hash of an identifier. It is never zero.
fn hash(identifier: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(identifier);
    hasher.finish().max(1)
}
