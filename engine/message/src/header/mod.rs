//! Header fields and their values, as real programs write them.
//!
//! A [`Header`] is a view over its bytes. A [`Field`] of the header is read by its kind: text,
//! addresses, a date, identifiers of messages, or a value with parameters. Reading never fails: a
//! value that is not understood is shown unchanged.
//!
//! Invariants:
//! - No text that is read here has a control character, so it never ends the line into which it is
//!   written.
//! - The work is linear in the bytes of the field. These bytes also bound the size of the result.
//!
//! Implements: RFC 5322 sections 2.2 and 4; RFC 2047, 2231, 6532.

mod address;
mod date;
mod encoded_word;
mod identifier;
mod lexer;
mod parameters;
mod unambiguous;

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use encoding_rs::UTF_8;

use crate::charset;

pub use address::{ADDRESSES_MAX, Address, HeaderMailbox};
pub use date::SentDate;
pub(crate) use date::days_since_1970;
#[cfg(test)]
pub(crate) use date::read_words as date_by_words;
pub(crate) use encoded_word::hex_value;
pub use identifier::Identifiers;
pub use parameters::{PARAMETERS_MAX, Parameters};

/// The header of a message or of a part.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    bytes: &'a [u8],
}

impl<'a> Header<'a> {
    /// `bytes`: the header. The empty line that ends it, and the bytes after it, are optional.
    pub fn new(bytes: &'a [u8]) -> Header<'a> {
        Header { bytes }
    }

    /// All fields, from the first to the last.
    pub fn fields(&self) -> Fields<'a> {
        Fields { rest: self.bytes, has_field: false }
    }

    /// The first field with this name.
    pub fn field(&self, name: &str) -> Option<Field<'a>> {
        self.fields().find(|field| field.is(name))
    }

    /// All bytes before the first field with this name, and all bytes after it. Without such a
    /// field, the first slice has all bytes.
    pub fn around(&self, name: &str) -> (&'a [u8], &'a [u8]) {
        let mut fields = self.fields();
        loop {
            let before = self.bytes.len() - fields.rest.len();
            match fields.next() {
                Some(field) if field.is(name) => {
                    return (self.bytes.get(..before).unwrap_or_default(), fields.rest);
                }
                Some(_) => {}
                None => return (self.bytes, &[]),
            }
        }
    }
}

/// One field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field<'a> {
    /// The name as written.
    pub name: &'a [u8],
    /// The value after the colon, folded as written, without the line end.
    pub value: &'a [u8],
}

impl<'a> Field<'a> {
    /// Whether the field has this name, in upper or lower case.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// The text of the field on one line, with encoded words decoded (RFC 2047). It is for
    /// `Subject` and other free text.
    pub fn text(&self) -> String {
        encoded_word::decode(self.value)
    }

    /// The addresses of `From`, `To` and similar fields. The first [`ADDRESSES_MAX`] mailboxes are
    /// read.
    pub fn addresses(&self) -> Vec<Address> {
        address::read(self.value, ADDRESSES_MAX)
    }

    /// The addresses of the field, without names. `None`: other mail clients may read other
    /// addresses.
    pub fn unambiguous_addresses(&self) -> Option<Vec<String>> {
        unambiguous::read(self.value)
    }

    /// The first `most` mailboxes and groups.
    pub(crate) fn first_addresses(&self, most: usize) -> Vec<Address> {
        address::read(self.value, most)
    }

    /// The date of the field. `None`: it is not valid, or before 1970.
    pub fn date(&self) -> Option<SentDate> {
        date::read(self.value)
    }

    /// The identifiers of messages in `Message-ID`, `In-Reply-To` and `References`.
    pub fn identifiers(&self) -> Identifiers<'a> {
        Identifiers::new(self.value)
    }

    /// The value and the parameters of `Content-Type` and `Content-Disposition`.
    pub fn parameters(&self) -> Parameters {
        Parameters::read(self.value)
    }
}

/// The fields of a [`Header`].
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
    /// Whether the header has any line before `rest`.
    has_field: bool,
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        loop {
            let field = take_field(&mut self.rest)?;
            match split_name(field) {
                Some((name, value)) => {
                    self.has_field = true;
                    return Some(Field { name, value });
                }
                // This line separates messages in a mailbox file that once held the message. It is
                // not a field.
                None if is_envelope_line(field) => self.has_field = true,
                // A line of a gateway, within the header.
                None if self.has_field && is_of_gateway(field) && begins_field(self.rest) => {}
                // The line is not a field and not empty, so the body has begun without an empty
                // line.
                None => self.rest = &[],
            }
        }
    }
}

/// The name of a field, and the text after its colon. `None`: it is not a field. `field`: a part of
/// its first line is enough. A byte order mark before the name does not belong to the name: some
/// programs write it at the beginning of a message, and servers add fields above it.
#[inline]
pub fn split_name(field: &[u8]) -> Option<(&[u8], &[u8])> {
    let field = without_mark(field);
    let length = name_length(field);
    let (name, rest) = field.split_at_checked(length)?;
    // White space may precede the colon (RFC 5322 section 4.5.8).
    let [b':', value @ ..] = rest.trim_ascii_start() else { return None };
    (length > 0).then_some((name, value))
}

/// The length of the name at the start of `field`, up to a colon or a byte that is not graphic.
/// Eight bytes are examined together.
fn name_length(field: &[u8]) -> usize {
    let (chunks, rest) = field.as_chunks();
    for (chunk, number) in chunks.iter().zip(0..) {
        let ends = ends_of_name(u64::from_le_bytes(*chunk));
        if ends != 0 {
            return number * 8 + ends.trailing_zeros() as usize / 8;
        }
    }
    let is_of_name = |byte: &&u8| matches!(byte, b'!'..=b'9' | b';'..=b'~');
    chunks.len() * 8 + rest.iter().take_while(is_of_name).count()
}

/// The upper bit of each byte that cannot be in a name, up to the first one. The bits after the
/// first one may be wrong because of a borrow or carry.
fn ends_of_name(bytes: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let colons = bytes ^ (ONES * b':' as u64);
    let is_colon = colons.wrapping_sub(ONES) & !colons;
    let is_low = bytes.wrapping_sub(ONES * b'!' as u64) & !bytes;
    let is_high = bytes | bytes.wrapping_add(ONES);
    (is_colon | is_low | is_high) & (ONES << 7)
}

/// Whether `line` is a line that mailbox files have between messages. Some programs leave it in a
/// message.
pub(crate) fn is_envelope_line(line: &[u8]) -> bool {
    line.starts_with(b"From ") || line.starts_with(b">From ")
}

/// The value of a field in UTF-8, if it is in the charset of the body without saying so. `charset`:
/// the charset of the body. Other values are returned unchanged.
pub fn in_body_charset<'a>(value: &'a [u8], charset: Option<&str>) -> Cow<'a, [u8]> {
    let encoding = || charset::encoding(charset?.as_bytes());
    if core::str::from_utf8(value).is_ok() {
        return Cow::Borrowed(value);
    }
    match encoding().filter(|encoding| *encoding != UTF_8 && encoding.is_ascii_compatible()) {
        Some(encoding) => match encoding.decode_without_bom_handling(value).0 {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        },
        None => Cow::Borrowed(value),
    }
}

/// The value of a field with addresses in UTF-8, as [`in_body_charset`] gives it. If that changes
/// the addresses, the value is returned unchanged. The author of a message is authenticated by the
/// addresses in the raw bytes. In some charsets the second byte of a character equals a backslash
/// or a bracket, so the decoded addresses may differ.
pub fn people_in_body_charset<'a>(value: &'a [u8], charset: Option<&str>) -> Cow<'a, [u8]> {
    let read = in_body_charset(value, charset);
    let addresses = |value: &[u8]| -> Vec<String> {
        let all = Field { name: &[], value }.addresses().into_iter();
        let mailboxes = all.flat_map(|address| match address {
            Address::Mailbox(mailbox) => alloc::vec![mailbox],
            Address::Group { mailboxes, .. } => mailboxes,
        });
        mailboxes.map(|mailbox| mailbox.address).collect()
    };
    match read {
        Cow::Owned(read) if addresses(value) == addresses(&read) => Cow::Owned(read),
        _ => Cow::Borrowed(value),
    }
}

/// A line without the byte order mark that may be before it.
pub fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK.as_bytes()).unwrap_or(bytes)
}

/// The byte order mark in UTF-8.
pub(crate) const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Whether a line that is not a field may belong to the header. `line`: the line with the lines
/// that continue it.
pub(crate) fn is_of_gateway(line: &[u8]) -> bool {
    // A line end is followed by a line that continues this one. Dashes may begin a boundary.
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    memchr::memchr(b'\n', line).is_none() && !line.starts_with(b"--")
}

/// Whether `line` begins with a usual field. A single line before such a field belongs to the
/// header, even if the line is not a field. It does not begin a body that lacks the empty line
/// before it.
pub(crate) fn begins_field(line: &[u8]) -> bool {
    const NAMES: [&[u8]; 12] = [
        b"Bcc",
        b"Cc",
        b"Date",
        b"From",
        b"In-Reply-To",
        b"Message-ID",
        b"MIME-Version",
        b"Received",
        b"References",
        b"Reply-To",
        b"Subject",
        b"To",
    ];
    const BEGINNINGS: [&[u8]; 6] = [b"ARC-", b"Content-", b"DKIM-", b"List-", b"Resent-", b"X-"];
    split_name(line.get(..LINE_BYTES_EXAMINED).unwrap_or(line)).is_some_and(|(name, _)| {
        let begins = |known: &&[u8]| {
            name.get(..known.len()).is_some_and(|name| name.eq_ignore_ascii_case(known))
        };
        NAMES.iter().any(|known| name.eq_ignore_ascii_case(known)) || BEGINNINGS.iter().any(begins)
    })
}

/// The number of bytes in which the name of a usual field ends.
const LINE_BYTES_EXAMINED: usize = 128;

/// Takes the next line and its continuation lines, without the last line end. `None` at the empty
/// line and at the end.
fn take_field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let all = *rest;
    if all.is_empty() || all.starts_with(b"\n") || all.starts_with(b"\r\n") {
        return None;
    }
    let mut end = 0;
    loop {
        let line = all.get(end..).unwrap_or_default();
        end += memchr::memchr(b'\n', line).map_or(line.len(), |line_end| line_end + 1);
        if !matches!(all.get(end), Some(b' ' | b'\t')) {
            break;
        }
    }
    let (field, after) = all.split_at_checked(end)?;
    *rest = after;
    let field = field.strip_suffix(b"\n").unwrap_or(field);
    Some(field.strip_suffix(b"\r").unwrap_or(field))
}
