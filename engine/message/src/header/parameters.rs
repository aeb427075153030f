//! A value with parameters: `text/plain; charset=utf-8; name*=utf-8''na%C3%AFve.txt`.
//!
//! The reader is lenient, as mail requires. The value of a parameter may have spaces and slashes
//! without quotes. It may have encoded words in place of the form of RFC 2231, or in the sections
//! of that form. The semicolon before the first parameter may be missing, or be a comma. The text
//! before it may be in quotes.
//!
//! Invariants:
//! - At most [`PARAMETERS_MAX`] parameters are read. Each section of a parameter counts as one.
//! - If a parameter is given twice, the first one counts. A parameter in the form of RFC 2231 has
//!   precedence over one in the plain form.
//!
//! Implements: RFC 2045 section 5.1, RFC 2183 section 2, RFC 2231 sections 3 and 4.

use alloc::string::String;
use alloc::vec::Vec;

use super::encoded_word::{self, hex_value};
use super::lexer;
use crate::charset;

/// The most parameters of a field that are read.
pub const PARAMETERS_MAX: usize = 128;

/// A value and its parameters.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Parameters {
    value: String,
    list: Vec<Parameter>,
}

/// A parameter, or one section of it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Parameter {
    /// The name in lower case, without asterisks.
    name: Vec<u8>,
    /// The number of the section: 2 for `name*2`, which is the third.
    section: Option<u8>,
    is_extended: bool,
    value: Vec<u8>,
}

impl Parameters {
    pub(super) fn read(field: &[u8]) -> Parameters {
        let mut rest = Scanner { rest: field };
        let value = charset::decode_guessed(rest.take_value()).trim().to_ascii_lowercase();
        let mut line = String::with_capacity(value.len());
        charset::push_line(&mut line, &value);
        let mut list = Vec::new();
        while let (true, Some(begun)) = (list.len() < PARAMETERS_MAX, rest.next_parameter()) {
            list.extend(begun);
        }
        Parameters { value: line, list }
    }

    /// The text before the first semicolon, in lower case: `text/plain`, `attachment`.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The parameter with this lower-case name, as text on one line.
    pub fn text(&self, name: &str) -> Option<String> {
        let mut text = String::new();
        match self.extended(name) {
            // Some programs cut an encoded word into sections.
            Some((bytes, None)) => text = encoded_word::decode(&bytes),
            Some((bytes, charset)) => {
                charset::push_line(&mut text, &charset::decode(charset.as_deref(), &bytes))
            }
            None => text = encoded_word::decode(self.plain(name)?),
        }
        Some(text)
    }

    /// The parameter with this lower-case name, as bytes.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.extended(name).map(|(bytes, _)| bytes).or_else(|| self.plain(name).map(<[u8]>::to_vec))
    }

    fn plain(&self, name: &str) -> Option<&[u8]> {
        let mut all = self
            .named(name)
            .filter(|parameter| parameter.section.is_none() && !parameter.is_extended);
        all.next().map(|parameter| parameter.value.as_slice())
    }

    fn named(&self, name: &str) -> impl Iterator<Item = &Parameter> {
        self.list.iter().filter(move |parameter| parameter.name == name.as_bytes())
    }

    /// The parameter in the form of RFC 2231: its bytes, and the charset that it names.
    fn extended(&self, name: &str) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        let whole =
            self.named(name).find(|parameter| parameter.section.is_none() && parameter.is_extended);
        if let Some(parameter) = whole {
            let (charset, text) = split_charset(&parameter.value);
            return Some((percent_decoded(text), charset));
        }
        let section =
            |number| self.named(name).find(move |parameter| parameter.section == Some(number));
        let (charset, mut bytes) = match section(0)? {
            first if first.is_extended => {
                let (charset, text) = split_charset(&first.value);
                (charset, percent_decoded(text))
            }
            first => (None, first.value.clone()),
        };
        for part in (1..=u8::MAX).map_while(section) {
            if part.is_extended {
                bytes.append(&mut percent_decoded(&part.value));
            } else {
                bytes.extend_from_slice(&part.value);
            }
        }
        Some((bytes, charset))
    }
}

/// Splits `charset'language'text` into charset and text (RFC 2231 section 4).
fn split_charset(value: &[u8]) -> (Option<Vec<u8>>, &[u8]) {
    let mut parts = value.splitn(3, |byte| *byte == b'\'');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(charset), Some(_), Some(text)) => (Some(charset.to_vec()), text),
        _ => (None, value),
    }
}

fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        rest = after;
        match after {
            [high, low, after @ ..]
                if *byte == b'%' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                decoded.push(hex_value(*high) << 4 | hex_value(*low));
                rest = after;
            }
            _ => decoded.push(*byte),
        }
    }
    decoded
}

struct Scanner<'a> {
    rest: &'a [u8],
}

impl<'a> Scanner<'a> {
    /// The text before the parameters, without comments and quotes.
    fn take_value(&mut self) -> &'a [u8] {
        self.take_while(lexer::is_space);
        if let [b'"', inside @ ..] = self.rest {
            let length = lexer::quoted_length(inside);
            let (quoted, rest) = inside.split_at_checked(length).unwrap_or((inside, &[]));
            self.rest = rest.get(1..).unwrap_or_default();
            return quoted.trim_ascii();
        }
        let start = self.rest;
        let value = self.take_while(|byte| byte != b';');
        let end = memchr::memchr(b'(', value).unwrap_or(value.len());
        let text = value.get(..end).unwrap_or_default().trim_ascii();
        let ends = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',';
        let (word, more) = text
            .split_at_checked(text.iter().position(ends).unwrap_or(text.len()))
            .unwrap_or((text, &[]));
        if memchr::memchr(b'=', more).is_none() {
            return text;
        }
        // A parameter follows without a semicolon.
        self.rest = start.get(word.len() + 1..).unwrap_or_default();
        word
    }

    fn take_while(&mut self, belongs: impl Fn(u8) -> bool) -> &'a [u8] {
        let length = self.rest.iter().take_while(|byte| belongs(**byte)).count();
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, &[]));
        self.rest = rest;
        taken
    }

    /// The next parameter. The inner `None`: it is not valid.
    fn next_parameter(&mut self) -> Option<Option<Parameter>> {
        self.take_while(|byte| byte == b';' || lexer::is_space(byte));
        if self.rest.is_empty() {
            return None;
        }
        let name = self.take_while(|byte| !matches!(byte, b'=' | b';')).trim_ascii();
        if !self.rest.starts_with(b"=") {
            return Some(None);
        }
        self.rest = self.rest.get(1..).unwrap_or_default();
        self.take_while(lexer::is_space);
        let value = self.take_parameter_value();
        Some(Parameter::new(name, value))
    }

    fn take_parameter_value(&mut self) -> Vec<u8> {
        if let [b'"', inside @ ..] = self.rest {
            let length = lexer::quoted_length(inside);
            let (quoted, rest) = inside.split_at_checked(length).unwrap_or((inside, &[]));
            self.rest = rest;
            self.take_while(|byte| byte != b';');
            return lexer::unescaped(quoted);
        }
        let value = self.take_while(|byte| byte != b';');
        let is_comment =
            |(at, pair): (usize, &[u8])| matches!(pair, [b' ' | b'\t' | b'\n', b'(']).then_some(at);
        let end = value.windows(2).enumerate().find_map(is_comment).unwrap_or(value.len());
        let mut decoded = value.get(..end).unwrap_or_default().trim_ascii().to_vec();
        decoded.retain(|byte| !matches!(byte, b'\r' | b'\n'));
        decoded
    }
}

impl Parameter {
    /// `None`: the name is empty, or the number of a section is invalid.
    fn new(name: &[u8], value: Vec<u8>) -> Option<Parameter> {
        let (name, is_extended) =
            name.strip_suffix(b"*").map_or((name, false), |name| (name, true));
        let mut parts = name.splitn(2, |byte| *byte == b'*');
        let name = parts.next()?.trim_ascii().to_ascii_lowercase();
        let section = match parts.next() {
            Some(digits) => Some(core::str::from_utf8(digits).ok()?.trim().parse().ok()?),
            None => None,
        };
        (!name.is_empty()).then_some(Parameter { name, section, is_extended, value })
    }
}
