//! What a browser says in a form: fields by name, and files, which stay where they lie in the body.
//!
//! Invariants:
//! - The work is linear in the body's length, and what is kept beside the body is bounded by it and by [`FIELDS_MAX`].
//! - A body that could be read in two ways is refused: whoever cuts it elsewhere would read other fields.
//! - Text is UTF-8, as our pages ask for; what is not is replaced by U+FFFD.
//!
//! Answers to: the HTML Standard section 4.10.21.8; the URL Standard section 5; RFC 7578.

mod multipart;
mod parameters;

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

/// The most fields of a form.
pub const FIELDS_MAX: usize = 1000;

/// Why a body is no form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FormError {
    /// Its media type is none that forms have: 415.
    OtherType,
    /// It is not written as its type says: 400.
    Malformed,
    /// It has more than [`FIELDS_MAX`] fields: 413.
    TooManyFields,
}

/// What was said in a form.
#[derive(Debug)]
pub struct Form<'a> {
    fields: Vec<Field<'a>>,
}

/// A file that came along.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File<'a> {
    /// Its name, without folders, as it was said: perhaps empty, perhaps with any characters.
    pub name: String,
    /// Its media type, as the browser has it; empty if it says none.
    pub media_type: String,
    /// What is in it.
    pub bytes: &'a [u8],
}

#[derive(Debug)]
struct Field<'a> {
    name: Cow<'a, str>,
    value: Value<'a>,
}

#[derive(Debug)]
enum Value<'a> {
    Text(Cow<'a, str>),
    File(File<'a>),
    /// A field for files in which none was chosen.
    NoFile,
}

impl<'a> Form<'a> {
    /// Reads the body of a request; `content_type` is the field of its head.
    ///
    /// Errors: what is wrong with it.
    pub fn of(content_type: &str, body: &'a [u8]) -> Result<Form<'a>, FormError> {
        let (media_type, said) = content_type.split_at(content_type.find(';').unwrap_or(content_type.len()));
        let media_type = media_type.trim_matches([' ', '\t']);
        let fields = if media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            urlencoded(body)?
        } else if media_type.eq_ignore_ascii_case("multipart/form-data") {
            let [boundary] = parameters::values(said, ["boundary"])?;
            multipart::fields(boundary.ok_or(FormError::Malformed)?, body)?
        } else {
            return Err(FormError::OtherType);
        };
        Ok(Form { fields })
    }

    /// The text of the first field of that name.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts(name).next()
    }

    /// The texts of all fields of that name, in their order.
    pub fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        self.named(name).filter_map(|value| if let Value::Text(text) = value { Some(&**text) } else { None })
    }

    /// The files of all fields of that name, in their order.
    pub fn files(&self, name: &str) -> impl Iterator<Item = &File<'a>> {
        self.named(name).filter_map(|value| if let Value::File(file) = value { Some(file) } else { None })
    }

    fn named(&self, name: &str) -> impl Iterator<Item = &Value<'a>> {
        self.fields.iter().filter(move |field| field.name == name).map(|field| &field.value)
    }
}

fn urlencoded(body: &[u8]) -> Result<Vec<Field<'_>>, FormError> {
    let mut fields = Vec::new();
    for (name, value) in form_urlencoded::parse(body) {
        if fields.len() == FIELDS_MAX {
            return Err(FormError::TooManyFields);
        }
        fields.push(Field { name, value: Value::Text(value) });
    }
    Ok(fields)
}
