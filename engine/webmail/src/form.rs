//! HTML forms: fields by name. The form of a message may have files, and is parsed while it
//! arrives.
//!
//! Invariants:
//! - The work is linear in the body's length.
//! - The memory of a form is bounded by the length of its body, and by [`FIELDS_MAX`]. The memory
//!   of a form that arrives in pieces is bounded by [`MESSAGE_TEXT_BYTES_MAX`] instead of its body.
//! - An ambiguous body is rejected, since another parser might find other fields in it.
//! - Text is UTF-8, as our pages declare. Invalid bytes are replaced by U+FFFD.
//!
//! Implements: the HTML Standard section 4.10.21.8; the URL Standard section 5; RFC 7578.

mod multipart;
mod parameters;
mod reader;

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

pub use reader::{FileEvent, FormReader, MESSAGE_TEXT_BYTES_MAX};

/// The maximum number of fields of a form.
pub const FIELDS_MAX: usize = 1000;

/// The media type of a form without files.
const URLENCODED: &str = "application/x-www-form-urlencoded";

/// The reason why a body is not a valid form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FormError {
    /// The media type is not that of a form: 415.
    OtherType,
    /// The body violates the syntax of its media type: 400.
    Malformed,
    /// The form has more than [`FIELDS_MAX`] fields, or more than [`MESSAGE_TEXT_BYTES_MAX`] of
    /// text: 413.
    TooLarge,
}

/// The fields of a form, without files.
#[derive(Debug, Default)]
pub struct Form<'a> {
    /// The names and the texts of the fields.
    fields: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

/// An uploaded file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UploadedFile {
    /// The name of its field.
    pub field: String,
    /// The file name without folders, with any characters. Empty if the user chose no file.
    pub name: String,
    /// The media type that the browser sends, or empty.
    pub media_type: String,
}

impl<'a> Form<'a> {
    /// Parses the body of a form without files. `content_type`: the header field of the request.
    ///
    /// Errors: the body is not a valid form.
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

    /// The text of the first field called `name`.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts(name).next()
    }

    /// The texts of all fields called `name`, in order.
    pub fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        self.fields.iter().filter(move |(known, _)| *known == name).map(|(_, text)| &**text)
    }
}

/// Splits a content type into media type and parameters.
fn media_type(content_type: &str) -> (&str, &str) {
    let (media_type, parameters) =
        content_type.split_at(content_type.find(';').unwrap_or(content_type.len()));
    (media_type.trim_matches([' ', '\t']), parameters)
}
