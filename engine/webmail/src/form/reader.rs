//! The push parser of a message's form: it keeps the texts and passes the files on.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use super::multipart::{PartEvent, PartParser};
use super::{FIELDS_MAX, Form, FormError, URLENCODED, UploadedFile, media_type, parameters};

/// Bytes of all texts of a message's form, with the fields' names and the files' headers.
pub const MESSAGE_TEXT_BYTES_MAX: usize = 320 * 1024;

/// Events of a file, in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileEvent {
    /// It begins.
    Began(UploadedFile),
    /// More of it.
    Bytes(Vec<u8>),
    /// It has ended.
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
    /// Such a form has no files. It is buffered until all of it has come.
    Urlencoded(Vec<u8>),
    Multipart(Box<PartParser>),
}

/// The fields so far, and the one in progress.
#[derive(Debug, Default)]
struct FormTexts {
    form: Form<'static>,
    /// The text field in progress.
    field: Option<(String, Vec<u8>)>,
    /// Bytes of all fields without the contents of files, and the number of fields.
    bytes: usize,
    fields: usize,
}

impl FormReader {
    /// `content_type`: the header field of the request.
    ///
    /// Errors: it is no type of a form.
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

    /// More of the body. Events of files are appended to `events`.
    ///
    /// Errors: it is no valid form, and no more of it may be passed.
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

    /// The body has ended.
    ///
    /// Errors: it is incomplete or invalid.
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

    /// Bytes that it buffers, without texts.
    #[cfg(test)]
    pub(crate) fn kept_bytes(&self) -> usize {
        if let FormBody::Multipart(parts) = &self.body { parts.kept_bytes() } else { 0 }
    }

    /// The fields so far.
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
