//! Lists of addresses: `Ada <ada@example.org>, Friends: bob@example.net, "C. D." <c@example.com>;`.
//!
//! The reader is lenient, as real mail requires. A name without quotes may have dots, and a name
//! may be encoded inside its quotes. A source route is skipped. A comment is the name if the
//! mailbox has no other name. A bracket may be missing. An entry without `@` and brackets is a name
//! without an address, to which no answer is possible.
//!
//! Invariants:
//! - An address has no white space outside quotes, and no control character.
//! - At most [`ADDRESSES_MAX`] mailboxes are read.
//!
//! Implements: RFC 5322 sections 3.4 and 4.4; RFC 6532 section 3.2; RFC 2047 section 5.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::mem;

use super::encoded_word;
use super::lexer::{Token, Tokens, unescaped};
use crate::charset;

/// The most mailboxes of one field that are read.
pub const ADDRESSES_MAX: usize = 1_000;

/// One entry of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// A mailbox.
    Mailbox(HeaderMailbox),
    /// Several mailboxes under one name, or none: `undisclosed-recipients:;`.
    Group {
        /// The name of the group.
        name: String,
        /// The mailboxes of the group.
        mailboxes: Vec<HeaderMailbox>,
    },
}

/// A mailbox.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HeaderMailbox {
    /// The name. Empty: the mailbox has no name.
    pub name: String,
    /// The address, without brackets. Empty: the mailbox has no address.
    pub address: String,
}

/// Reads the addresses of a field, up to `most` mailboxes.
pub(super) fn read(value: &[u8], most: usize) -> Vec<Address> {
    let mut list = ParsedList::default();
    let mut tokens = Tokens::new(value);
    while let Some((token, is_spaced)) = tokens.next() {
        if list.mailboxes >= most {
            break;
        }
        match token {
            Token::Special(b',') => list.mailbox_ended(),
            Token::Special(b';') => list.group_ended(),
            Token::Special(b':') if !list.entry.is_in_brackets() => list.group_began(),
            token => list.entry.token_arrived(token, is_spaced),
        }
    }
    list.group_ended();
    list.addresses
}

/// The list so far.
#[derive(Default)]
struct ParsedList {
    addresses: Vec<Address>,
    mailboxes: usize,
    group: Option<(String, Vec<HeaderMailbox>)>,
    entry: PartialMailbox,
}

impl ParsedList {
    fn mailbox_ended(&mut self) {
        let Some(mailbox) = mem::take(&mut self.entry).finish() else { return };
        self.mailboxes += 1;
        match &mut self.group {
            Some((_, mailboxes)) => mailboxes.push(mailbox),
            None => self.addresses.push(Address::Mailbox(mailbox)),
        }
    }

    fn group_began(&mut self) {
        let name = mem::take(&mut self.entry).phrase();
        // Groups do not nest (RFC 5322 section 3.4), so a group that is still open ends here. The
        // name of a group counts towards the limit.
        self.close_group();
        self.mailboxes += 1;
        self.group = Some((name, Vec::new()));
    }

    fn group_ended(&mut self) {
        self.mailbox_ended();
        self.close_group();
    }

    fn close_group(&mut self) {
        if let Some((name, mailboxes)) = self.group.take() {
            self.addresses.push(Address::Group { name, mailboxes });
        }
    }
}

/// The words of one mailbox so far.
#[derive(Default)]
struct PartialMailbox {
    /// The words outside of brackets.
    words: Vec<AddressWord>,
    comment: Option<Vec<u8>>,
    brackets: Brackets,
}

struct AddressWord {
    /// The word without quotes.
    text: Vec<u8>,
    is_quoted: bool,
    is_spaced: bool,
    is_at: bool,
}

#[derive(Default, PartialEq, Eq)]
enum Brackets {
    #[default]
    None,
    Open(Vec<u8>),
    Closed(Vec<u8>),
}

impl PartialMailbox {
    fn is_in_brackets(&self) -> bool {
        matches!(self.brackets, Brackets::Open(_))
    }

    fn token_arrived(&mut self, token: Token<'_>, is_spaced: bool) {
        match (&mut self.brackets, token) {
            (_, Token::Comment(text)) => {
                self.comment.get_or_insert_with(|| unescaped(text));
            }
            (Brackets::None, Token::Special(b'<')) => self.brackets = Brackets::Open(Vec::new()),
            (Brackets::Open(spec), Token::Special(b'>')) => {
                self.brackets = Brackets::Closed(mem::take(spec))
            }
            // The text before a colon is a source route, which is obsolete.
            (Brackets::Open(spec), Token::Special(b':')) => spec.clear(),
            (Brackets::Open(spec), token) => push_written(spec, token),
            // Text after the brackets is ignored.
            (Brackets::Closed(_), _) => {}
            (Brackets::None, Token::Quoted(text)) => self.push(unescaped(text), is_spaced, true),
            (Brackets::None, Token::Atom(text) | Token::Literal(text)) => {
                self.push(text.to_owned(), is_spaced, false)
            }
            (Brackets::None, Token::Special(b'@')) => {
                self.words.push(AddressWord {
                    text: b"@".to_vec(),
                    is_quoted: false,
                    is_spaced,
                    is_at: true,
                });
            }
            (Brackets::None, Token::Special(_)) => {}
        }
    }

    fn push(&mut self, text: Vec<u8>, is_spaced: bool, is_quoted: bool) {
        self.words.push(AddressWord { text, is_quoted, is_spaced, is_at: false });
    }

    /// The mailbox. `None`: the entry is empty.
    fn finish(mut self) -> Option<HeaderMailbox> {
        let address = match mem::take(&mut self.brackets) {
            Brackets::Open(spec) | Brackets::Closed(spec) => spec,
            Brackets::None => self.take_bare_address(),
        };
        let comment = self.comment.take();
        let mut name = self.phrase();
        if let (true, false, Some(comment)) = (name.is_empty(), address.is_empty(), comment) {
            name = encoded_word::decode(&comment);
        }
        let mut text = String::with_capacity(address.len());
        charset::push_line(&mut text, &charset::decode_guessed(&address));
        (!name.is_empty() || !text.is_empty()).then_some(HeaderMailbox { name, address: text })
    }

    /// Removes an address without brackets from the words. The address consists of the last `@`,
    /// the words directly before and after it, and further words that are joined by dots.
    fn take_bare_address(&mut self) -> Vec<u8> {
        let Some(at) = self.words.iter().rposition(|word| word.is_at) else { return Vec::new() };
        let dotted = |left: &AddressWord, right: &AddressWord| {
            left.text.ends_with(b".") || right.text.starts_with(b".")
        };
        let joins = |(_, pair): &(usize, &[AddressWord])| matches!(pair, [left, right] if dotted(left, right));
        let before = self.words.get(..at).unwrap_or_default();
        let first =
            before.windows(2).enumerate().rev().take_while(joins).last().map(|(index, _)| index);
        let first = first.unwrap_or(at.saturating_sub(1));
        let after = self.words.get(at + 1..).unwrap_or_default();
        let last =
            after.windows(2).enumerate().take_while(joins).last().map_or(0, |(index, _)| index + 1);
        let end = (at + 2 + last).min(self.words.len());
        let mut spec = Vec::new();
        for word in self.words.drain(first..end) {
            push_word(&mut spec, &word.text, word.is_quoted);
        }
        spec
    }

    /// The words as a name.
    fn phrase(self) -> String {
        let mut text = Vec::new();
        for (index, word) in self.words.iter().enumerate() {
            if word.is_spaced && index > 0 {
                text.push(b' ');
            }
            text.extend_from_slice(&word.text);
        }
        encoded_word::decode(&text)
    }
}

/// Adds a word of an address, in the form that addresses have.
pub(super) fn push_written(spec: &mut Vec<u8>, token: Token<'_>) {
    match token {
        Token::Atom(text) | Token::Literal(text) => push_word(spec, text, false),
        Token::Quoted(text) => push_word(spec, &unescaped(text), true),
        Token::Special(b'@') => spec.push(b'@'),
        Token::Special(_) | Token::Comment(_) => {}
    }
}

/// Adds a word to an address, in quotes if it needs them.
fn push_word(spec: &mut Vec<u8>, text: &[u8], is_quoted: bool) {
    let is_plain = |byte: &u8| {
        byte.is_ascii_alphanumeric() || *byte >= 0x80 || b".!#$%&'*+-/=?^_`{|}~".contains(byte)
    };
    let is_dotted = text.starts_with(b".")
        || text.ends_with(b".")
        || memchr::memmem::find(text, b"..").is_some();
    if !is_quoted || (!text.is_empty() && !is_dotted && text.iter().all(is_plain)) {
        spec.extend(text.iter().filter(|byte| **byte > b' ' && **byte != 0x7f));
        return;
    }
    spec.push(b'"');
    for &byte in text {
        if matches!(byte, b'"' | b'\\') {
            spec.push(b'\\');
        }
        spec.push(byte);
    }
    spec.push(b'"');
}
