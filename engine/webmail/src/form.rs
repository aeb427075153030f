//! What a browser says in a form: fields by name; and of a letter, which comes as it is sent, its files too.
//!
//! Invariants:
//! - The work is linear in the body's length.
//! - What is kept of a form is bounded by its body, and of one that comes in pieces by [`LETTER_TEXT_BYTES_MAX`]; and by [`FIELDS_MAX`].
//! - A body that could be read in two ways is refused: whoever cuts it elsewhere would read other fields.
//! - Text is UTF-8, as our pages ask for; what is not is replaced by U+FFFD.
//!
//! Answers to: the HTML Standard section 4.10.21.8; the URL Standard section 5; RFC 7578.

mod multipart;
mod parameters;
mod reader;

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

pub use reader::{Heard, LETTER_TEXT_BYTES_MAX, Reader};

/// The most fields of a form.
pub const FIELDS_MAX: usize = 1000;

/// The type of a form without files.
const URLENCODED: &str = "application/x-www-form-urlencoded";

/// Why a body is no form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FormError {
    /// Its media type is none that forms have: 415.
    OtherType,
    /// It is not written as its type says: 400.
    Malformed,
    /// It has more than [`FIELDS_MAX`] fields, or more than [`LETTER_TEXT_BYTES_MAX`] of text: 413.
    TooLarge,
}

/// What was said in a form, but for files.
#[derive(Debug, Default)]
pub struct Form<'a> {
    /// Names and texts.
    fields: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

/// A file that comes along.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// The field that it came in.
    pub field: String,
    /// Its name, without folders, as it was said: with any characters; empty where none was chosen.
    pub name: String,
    /// Its media type, as the browser has it; empty if it says none.
    pub media_type: String,
}

impl<'a> Form<'a> {
    /// Reads the body of a request, of a form without files; `content_type` is the field of its head.
    ///
    /// Errors: what is wrong with it.
    pub fn of(content_type: &str, body: &'a [u8]) -> Result<Form<'a>, FormError> {
        if !media_type(content_type).0.eq_ignore_ascii_case(URLENCODED) {
            return Err(FormError::OtherType);
        }
        let mut form = Form::default();
        for (name, text) in form_urlencoded::parse(body) {
            form.keep(name, text)?;
        }
        Ok(form)
    }

    fn keep(&mut self, name: Cow<'a, str>, text: Cow<'a, str>) -> Result<(), FormError> {
        if self.fields.len() == FIELDS_MAX {
            return Err(FormError::TooLarge);
        }
        self.fields.push((name, text));
        Ok(())
    }

    /// The text of the first field of that name.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts(name).next()
    }

    /// The texts of all fields of that name, in their order.
    pub fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        self.fields.iter().filter(move |(known, _)| *known == name).map(|(_, text)| &**text)
    }
}

/// What a content type says before its parameters, and these.
fn media_type(content_type: &str) -> (&str, &str) {
    let (media_type, said) =
        content_type.split_at(content_type.find(';').unwrap_or(content_type.len()));
    (media_type.trim_matches([' ', '\t']), said)
}
