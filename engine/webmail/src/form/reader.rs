//! The push parser of a message's form. It keeps the texts, and passes the files to its caller.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use super::multipart::{PartEvent, PartParser};
use super::{FIELDS_MAX, Form, FormError, URLENCODED, UploadedFile, media_type, parameters};

/// The maximum number of bytes of all texts in a message's form, including field names and file
/// heads.
pub const MESSAGE_TEXT_BYTES_MAX: usize = 320 * 1024;

/// The events of a file, in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileEvent {
    /// The file begins.
    Began(UploadedFile),
    /// The next bytes of the file.
    Bytes(Vec<u8>),
    /// The file has ended.
    Ended,
}

/// Parses a form in pieces.
#[derive(Debug)]
pub struct FormReader {
    body: FormBody,
    texts: FormTexts,
}

#[derive(Debug)]
enum FormBody {
    /// A form without files. It is buffered until the whole form has arrived.
    Urlencoded(Vec<u8>),
    Multipart(Box<PartParser>),
}

/// The complete fields, and the field in progress.
#[derive(Debug, Default)]
struct FormTexts {
    form: Form<'static>,
    /// The text field in progress.
    field: Option<(String, Vec<u8>)>,
    /// The number of bytes of all fields without the contents of files, and the number of fields.
    bytes: usize,
    fields: usize,
}

impl FormReader {
    /// A parser for a form. `content_type`: the value of the request's header field.
    ///
    /// Errors: the type is not that of a form.
    pub fn of(content_type: &str) -> Result<FormReader, FormError> {
        let (media_type, parameters) = media_type(content_type);
        let body = if media_type.eq_ignore_ascii_case(URLENCODED) {
            FormBody::Urlencoded(Vec::new())
        } else if media_type.eq_ignore_ascii_case("multipart/form-data") {
            let [boundary] = parameters::values(parameters, ["boundary"])?;
            FormBody::Multipart(Box::new(PartParser::new(boundary.ok_or(FormError::Malformed)?)?))
        } else {
            return Err(FormError::OtherType);
        };
        Ok(FormReader { body, texts: FormTexts::default() })
    }

    /// Parses the next bytes of the body. Appends the events of files to `events`.
    ///
    /// Errors: the body is not a valid form. After an error, the caller must not pass more bytes.
    pub fn bytes_arrived(
        &mut self,
        bytes: &[u8],
        events: &mut VecDeque<FileEvent>,
    ) -> Result<(), FormError> {
        let FormReader { body, texts } = self;
        match body {
            FormBody::Urlencoded(kept) => {
                texts.count(bytes.len())?;
                kept.extend_from_slice(bytes);
                Ok(())
            }
            FormBody::Multipart(parts) => {
                parts.bytes_arrived(bytes, &mut |event| texts.part_event(event, events))
            }
        }
    }

    /// Completes the form, since its body has ended.
    ///
    /// Errors: the form is incomplete or invalid.
    pub fn ended(&mut self) -> Result<(), FormError> {
        let FormReader { body, texts } = self;
        match body {
            FormBody::Multipart(parts) => parts.ended(),
            FormBody::Urlencoded(kept) => form_urlencoded::parse(&core::mem::take(kept))
                .try_for_each(|(name, text)| {
                    texts.form.keep(Cow::Owned(name.into_owned()), Cow::Owned(text.into_owned()))
                }),
        }
    }

    /// The fields of the complete form.
    #[cfg(test)]
    pub(crate) fn into_form(self) -> Form<'static> {
        self.texts.form
    }

    /// The number of buffered bytes, without texts.
    #[cfg(test)]
    pub(crate) fn kept_bytes(&self) -> usize {
        if let FormBody::Multipart(parts) = &self.body { parts.kept_bytes() } else { 0 }
    }

    /// The fields that are complete so far.
    pub fn form(&self) -> &Form<'static> {
        &self.texts.form
    }
}

impl FormTexts {
    fn part_event(
        &mut self,
        event: PartEvent<'_>,
        events: &mut VecDeque<FileEvent>,
    ) -> Result<(), FormError> {
        match (event, &mut self.field) {
            (PartEvent::Text(name), _) => {
                self.begin()?;
                self.count(name.len())?;
                self.field = Some((name, Vec::new()));
            }
            (PartEvent::File(file), _) => {
                self.begin()?;
                self.count(file.field.len() + file.name.len() + file.media_type.len())?;
                events.push_back(FileEvent::Began(file));
            }
            (PartEvent::Bytes(bytes), Some((_, text))) => {
                text.extend_from_slice(bytes);
                self.count(bytes.len())?;
            }
            (PartEvent::Bytes(bytes), None) => events.push_back(FileEvent::Bytes(bytes.to_vec())),
            (PartEvent::End, None) => events.push_back(FileEvent::Ended),
            (PartEvent::End, Some(_)) => {
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
        if self.bytes > MESSAGE_TEXT_BYTES_MAX { Err(FormError::TooLarge) } else { Ok(()) }
    }
}
