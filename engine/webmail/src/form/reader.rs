//! A letter's form, read as it comes: its texts are kept, its files go by.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use super::multipart::{Parts, Said};
use super::{FIELDS_MAX, File, Form, FormError, URLENCODED, media_type, parameters};

/// Bytes of all texts of a letter's form, their names counted in, and what is said of its files.
pub const LETTER_TEXT_BYTES_MAX: usize = 320 * 1024;

/// What was heard of a file, in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Heard {
    /// It begins.
    Began(File),
    /// More of it.
    Bytes(Vec<u8>),
    /// It has ended.
    Ended,
}

/// Reads a form in pieces.
#[derive(Debug)]
pub struct Reader {
    body: Body,
    texts: Texts,
}

#[derive(Debug)]
enum Body {
    /// Kept until all of it is there: there are no files in it.
    Urlencoded(Vec<u8>),
    Multipart(Box<Parts>),
}

/// What was said so far, and what is being said.
#[derive(Debug, Default)]
struct Texts {
    form: Form<'static>,
    /// The field that comes, if it is none of a file.
    field: Option<(String, Vec<u8>)>,
    /// Bytes of all fields, but for what is in files, and how many there are.
    bytes: usize,
    fields: usize,
}

impl Reader {
    /// `content_type`: the field of the request's head.
    ///
    /// Errors: it is none of a form.
    pub fn of(content_type: &str) -> Result<Reader, FormError> {
        let (media_type, said) = media_type(content_type);
        let body = if media_type.eq_ignore_ascii_case(URLENCODED) {
            Body::Urlencoded(Vec::new())
        } else if media_type.eq_ignore_ascii_case("multipart/form-data") {
            let [boundary] = parameters::values(said, ["boundary"])?;
            Body::Multipart(Box::new(Parts::new(boundary.ok_or(FormError::Malformed)?)?))
        } else {
            return Err(FormError::OtherType);
        };
        Ok(Reader { body, texts: Texts::default() })
    }

    /// More of the body; what of files is in it is put behind `heard`.
    ///
    /// Errors: it is none of a form, and nothing more is to be read of it.
    pub fn bytes_arrived(
        &mut self,
        bytes: &[u8],
        heard: &mut VecDeque<Heard>,
    ) -> Result<(), FormError> {
        let Reader { body, texts } = self;
        match body {
            Body::Urlencoded(kept) => {
                texts.count(bytes.len())?;
                kept.extend_from_slice(bytes);
                Ok(())
            }
            Body::Multipart(parts) => {
                parts.bytes_arrived(bytes, &mut |said| texts.hear(said, heard))
            }
        }
    }

    /// That was all.
    ///
    /// Errors: it is not, or is none of a form.
    pub fn ended(&mut self) -> Result<(), FormError> {
        let Reader { body, texts } = self;
        match body {
            Body::Multipart(parts) => parts.ended(),
            Body::Urlencoded(kept) => {
                form_urlencoded::parse(&core::mem::take(kept)).try_for_each(|(name, text)| {
                    texts.form.keep(Cow::Owned(name.into_owned()), Cow::Owned(text.into_owned()))
                })
            }
        }
    }

    /// What was said, when it has ended.
    #[cfg(test)]
    pub(crate) fn into_form(self) -> Form<'static> {
        self.texts.form
    }

    /// Bytes that it keeps, but for texts.
    #[cfg(test)]
    pub(crate) fn kept_bytes(&self) -> usize {
        if let Body::Multipart(parts) = &self.body { parts.kept_bytes() } else { 0 }
    }

    /// What was said so far.
    pub fn form(&self) -> &Form<'static> {
        &self.texts.form
    }
}

impl Texts {
    fn hear(&mut self, said: Said<'_>, heard: &mut VecDeque<Heard>) -> Result<(), FormError> {
        match (said, &mut self.field) {
            (Said::Text(name), _) => {
                self.begin()?;
                self.count(name.len())?;
                self.field = Some((name, Vec::new()));
            }
            (Said::File(file), _) => {
                self.begin()?;
                self.count(file.field.len() + file.name.len() + file.media_type.len())?;
                heard.push_back(Heard::Began(file));
            }
            (Said::Bytes(bytes), Some((_, text))) => {
                text.extend_from_slice(bytes);
                self.count(bytes.len())?;
            }
            (Said::Bytes(bytes), None) => heard.push_back(Heard::Bytes(bytes.to_vec())),
            (Said::End, None) => heard.push_back(Heard::Ended),
            (Said::End, Some(_)) => {
                if let Some((name, text)) = self.field.take() {
                    self.form
                        .keep(name.into(), String::from_utf8_lossy(&text).into_owned().into())?;
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), FormError> {
        self.fields += 1;
        if self.fields > FIELDS_MAX { Err(FormError::TooLarge) } else { Ok(()) }
    }

    fn count(&mut self, bytes: usize) -> Result<(), FormError> {
        self.bytes += bytes;
        if self.bytes > LETTER_TEXT_BYTES_MAX { Err(FormError::TooLarge) } else { Ok(()) }
    }
}
