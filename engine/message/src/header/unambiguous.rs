//! Lists of addresses that all mail clients read in the same way. They are for decisions that
//! depend on the authors of a message.
//!
//! Mail clients guess the meaning of a broken list, and their guesses differ. For example, one
//! client takes the first address of `<ada@example.org> <bob@example.org>`, and another the last.
//! So a list with two possible readings is refused.
//!
//! Invariants:
//! - The result has the same addresses as the result of `address.rs`, in the same order. Mailboxes
//!   without an address are left out.
//! - Quotes, comments, brackets and groups are closed. No text follows a closing bracket.
//! - Outside of quotes and comments, every `@` is part of an address. Before brackets, the address
//!   in the brackets may be repeated.
//!
//! Implements: RFC 5322 sections 3.4 and 4.4.

use alloc::string::String;
use alloc::vec::Vec;

use super::address::{ADDRESSES_MAX, push_written};
use super::lexer::{Token, Tokens};
use crate::charset;

/// A word, and whether white space or a comment precedes it.
type Spaced<'a> = (Token<'a>, bool);

/// The addresses of a field, including those in groups. `None`: the field is ambiguous.
pub(super) fn read(value: &[u8]) -> Option<Vec<String>> {
    let mut list = UnambiguousList::default();
    let mut tokens = Tokens::new(value);
    let mut is_after_comment = false;
    while let Some((token, is_spaced)) = tokens.next() {
        let is_spaced = is_spaced || core::mem::take(&mut is_after_comment);
        match token {
            Token::Comment(_) => is_after_comment = true,
            Token::Special(b',') => list.entry_ended()?,
            Token::Special(b';') => list.group_ended()?,
            Token::Special(b':') if !list.is_in_brackets => list.group_began()?,
            token => list.token_arrived(token, is_spaced),
        }
    }
    list.entry_ended()?;
    (!list.is_in_group && !tokens.is_cut()).then_some(list.addresses)
}

/// The list so far.
#[derive(Default)]
struct UnambiguousList<'a> {
    addresses: Vec<String>,
    entry: Vec<Spaced<'a>>,
    is_in_brackets: bool,
    is_in_group: bool,
}

impl<'a> UnambiguousList<'a> {
    fn token_arrived(&mut self, token: Token<'a>, is_spaced: bool) {
        match token {
            Token::Special(b'<') => self.is_in_brackets = true,
            Token::Special(b'>') => self.is_in_brackets = false,
            _ => {}
        }
        self.entry.push((token, is_spaced));
    }

    fn entry_ended(&mut self) -> Option<()> {
        let address = read_entry(&core::mem::take(&mut self.entry))?;
        self.addresses.extend(address);
        (!self.is_in_brackets && self.addresses.len() <= ADDRESSES_MAX).then_some(())
    }

    /// The words before the colon are the name of a group.
    fn group_began(&mut self) -> Option<()> {
        let is_name =
            core::mem::take(&mut self.entry).iter().all(|(token, _)| is_phrase_word(token));
        (is_name && !core::mem::replace(&mut self.is_in_group, true)).then_some(())
    }

    fn group_ended(&mut self) -> Option<()> {
        self.entry_ended()?;
        core::mem::take(&mut self.is_in_group).then_some(())
    }
}

/// The address of an entry, if it has one. `None`: the entry is ambiguous.
fn read_entry(entry: &[Spaced<'_>]) -> Option<Option<String>> {
    let is = |wanted: u8| move |(token, _): &Spaced<'_>| *token == Token::Special(wanted);
    let Some(open) = entry.iter().position(is(b'<')) else {
        let is_name = entry.iter().all(|(token, _)| is_phrase_word(token));
        return if is_name { Some(None) } else { read_address(entry).map(Some) };
    };
    let (phrase, bracketed) = entry.split_at_checked(open)?;
    let [_, written @ .., (Token::Special(b'>'), _)] = bracketed else { return None };
    // A source route, which is obsolete, begins with a domain.
    let written = match written.iter().rposition(is(b':')) {
        Some(colon) if written.first().is_some_and(is(b'@')) => written.get(colon + 1..)?,
        _ => written,
    };
    let address = read_address(written)?;
    let is_repeated =
        || read_address(phrase).is_some_and(|other| other.eq_ignore_ascii_case(&address));
    (phrase.iter().all(|(token, _)| is_phrase_word(token)) || is_repeated())
        .then_some(Some(address))
}

/// Whether a word can be part of a name, for all mail clients. An encoded word may have characters
/// that split a list for clients that do not decode it.
fn is_phrase_word(token: &Token<'_>) -> bool {
    match token {
        Token::Quoted(_) => true,
        Token::Atom(text) => !text.iter().any(|byte| b"@<>:;\"".contains(byte)),
        Token::Literal(text) => !text.iter().any(|byte| b"@<>:;,\"".contains(byte)),
        Token::Special(_) | Token::Comment(_) => false,
    }
}

/// Reads `local-part@domain`. No other words are allowed, and white space only at the ends and
/// around `@`. Dots must join the words of the local part.
fn read_address(words: &[Spaced<'_>]) -> Option<String> {
    let is_at = |(token, _): &Spaced<'_>| *token == Token::Special(b'@');
    let at = words.iter().position(is_at)?;
    let (local_part, domain) = (words.get(..at)?, words.get(at + 1..)?);
    let [(Token::Atom(_) | Token::Literal(_), _)] = domain else { return None };
    let is_plain = |(token, _): &Spaced<'_>| match token {
        Token::Atom(text) => !text.starts_with(b"=?"),
        Token::Quoted(_) => true,
        _ => false,
    };
    let is_dotted = |left: &Token<'_>, right: &Token<'_>| {
        matches!(left, Token::Atom(text) if text.ends_with(b"."))
            || matches!(right, Token::Atom(text) if text.starts_with(b"."))
    };
    let mut pairs = local_part.windows(2);
    let is_joined =
        pairs.all(|pair| matches!(pair, [(left, _), (right, is_spaced)] if !is_spaced && is_dotted(left, right)));
    if local_part.is_empty()
        || !is_joined
        || !local_part.iter().all(is_plain)
        || !domain.iter().all(is_domain)
    {
        return None;
    }
    let mut written = Vec::new();
    words.iter().for_each(|(token, _)| push_written(&mut written, *token));
    let mut address = String::with_capacity(written.len());
    charset::push_line(&mut address, &charset::decode_guessed(&written));
    Some(address)
}

fn is_domain((token, _): &Spaced<'_>) -> bool {
    matches!(token, Token::Atom(text) | Token::Literal(text) if !text.starts_with(b"=?"))
}
