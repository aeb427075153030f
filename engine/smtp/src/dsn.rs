//! Delivery status notifications (DSN): the reports that the sender of a message wants, as
//! parameters of MAIL and RCPT.
//!
//! Invariants:
//! - A parsed value is written as ASCII without spaces. An original recipient has at most
//!   [`ORIGINAL_BYTES_MAX`] bytes. An identifier has at most [`ENVELOPE_ID_BYTES_MAX`], and two
//!   more if it ends in a comma.
//! - Only valid xtext for printable characters is accepted.
//!
//! Implements: RFC 3461 sections 4 and 4.1 to 4.4, RFC 6533 section 3 (the type `utf-8`).

use alloc::string::String;
use core::fmt::Write as _;

/// The longest identifier of an envelope (RFC 3461 section 4.4), in bytes.
pub const ENVELOPE_ID_BYTES_MAX: usize = 100;

/// The longest original address in its written form (section 4.2), in bytes, including its type.
pub const ORIGINAL_BYTES_MAX: usize = 500;

/// The reports that the sender wants (section 4.1). If all three are false, the value is NEVER.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notify {
    /// Reports of successful delivery.
    pub success: bool,
    /// Reports of failure.
    pub failure: bool,
    /// Reports of delay.
    pub delay: bool,
}

impl Notify {
    /// Reads the value of `NOTIFY=`.
    pub fn read(conditions: &str) -> Option<Notify> {
        let mut notify = Notify { success: false, failure: false, delay: false };
        if conditions.eq_ignore_ascii_case("NEVER") {
            return Some(notify);
        }
        for condition in conditions.split(',') {
            let is = |word: &str| condition.eq_ignore_ascii_case(word);
            if is("SUCCESS") {
                notify.success = true;
            } else if is("FAILURE") {
                notify.failure = true;
            } else if is("DELAY") {
                notify.delay = true;
            } else {
                return None;
            }
        }
        Some(notify)
    }
}

/// The part of a message that a report returns (section 4.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Return {
    /// The whole message.
    Full,
    /// Only the header of the message.
    Header,
}

impl Return {
    /// Writes the value of `RET=`.
    pub fn word(self) -> &'static str {
        match self {
            Return::Full => "FULL",
            Return::Header => "HDRS",
        }
    }

    /// Reads the value of `RET=`.
    pub fn read(word: &str) -> Option<Return> {
        [Return::Full, Return::Header]
            .into_iter()
            .find(|returned| word.eq_ignore_ascii_case(returned.word()))
    }
}

/// The recipient that the sender originally named, before a redirection: a type, `;`, and an
/// address as xtext. With the type `utf-8` the address may be UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Original<'a>(&'a str);

impl<'a> Original<'a> {
    /// Reads the value of `ORCPT=`.
    pub fn read(text: &'a str) -> Option<Original<'a>> {
        let (kind, address) = text.split_once(';')?;
        let is_type = !kind.is_empty()
            && kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let is_utf8 = kind.eq_ignore_ascii_case("utf-8");
        let ascii = address
            .split(|character: char| is_utf8 && !character.is_ascii() && !character.is_control());
        let is_printable = !address.is_empty() && ascii.into_iter().all(is_xtext);
        let original = Original(text);
        (is_type && is_printable && original.ascii().len() <= ORIGINAL_BYTES_MAX)
            .then_some(original)
    }

    /// The original recipient in ASCII, as an item of a list.
    pub fn ascii(self) -> String {
        list_item(self.0)
    }
}

/// The sender's identifier of the envelope: xtext.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EnvelopeId<'a>(&'a str);

impl<'a> EnvelopeId<'a> {
    /// Reads the value of `ENVID=`.
    pub fn read(text: &'a str) -> Option<EnvelopeId<'a>> {
        ((1..=ENVELOPE_ID_BYTES_MAX).contains(&text.len()) && is_xtext(text))
            .then_some(EnvelopeId(text))
    }

    /// The identifier, as an item of a list.
    pub fn ascii(self) -> String {
        list_item(self.0)
    }
}

/// The text in ASCII, without a comma at its end, so that it can be an item of a list.
fn list_item(text: &str) -> String {
    let mut ascii = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() {
            ascii.push(character);
        } else {
            // Writing to a string never fails.
            let _ = write!(ascii, "\\x{{{:X}}}", u32::from(character));
        }
    }
    if ascii.ends_with(',') {
        ascii.pop();
        ascii.push_str("+2C");
    }
    ascii
}

/// Whether a text is xtext for printable characters.
fn is_xtext(text: &str) -> bool {
    let mut parts = text.split('+');
    let is_plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'=');
    let is_code_and_plain = |part: &str| {
        part.split_at_checked(2).is_some_and(|(code, rest)| is_code(code) && is_plain(rest))
    };
    parts.next().is_some_and(is_plain) && parts.all(is_code_and_plain)
}

/// Whether `digits` are the two hexadecimal digits of a printable character, in upper case as the
/// grammar requires.
fn is_code(digits: &str) -> bool {
    let is_upper = digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'A'..=b'F'));
    is_upper && u8::from_str_radix(digits, 16).is_ok_and(|byte| (b' '..=b'~').contains(&byte))
}
