//! One part of a message, and the facts from its fields.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::ops::Range;

use super::DEPTH_MAX;
use crate::charset;
use crate::header::Field;

/// The most bytes that are kept of a name, an identifier or a type.
pub const TEXT_BYTES_MAX: usize = 255;

/// One part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The number of parts that contain this part: 0 for the message itself.
    pub depth: usize,
    /// The index of the innermost part that contains this part. For the message itself it is 0.
    parent: usize,
    /// Type and subtype in lower case, such as `text/plain`. An invalid type becomes `text/plain`
    /// (RFC 2045 section 5.2).
    pub media_type: String,
    /// The declared charset.
    pub charset: Option<String>,
    /// The way in which the lines of the part must be joined.
    pub flow: TextFlow,
    /// The suggested file name without its folders, since only the user may choose a folder.
    pub file_name: Option<String>,
    /// The place at which the part is meant to be shown.
    pub disposition: Disposition,
    /// The transfer encoding of the body.
    pub encoding: Encoding,
    /// The identifier by which other parts refer to this part, without angle brackets.
    pub content_id: Option<String>,
    /// For a `multipart/related`: the identifier of the root part (RFC 2387 section 3.2).
    pub start: Option<String>,
    smime_content: SmimeContent,
    /// Whether this is a multipart that is too deep to be taken apart.
    pub is_too_deep: bool,
    /// The byte range of the part's header in the message, with the empty line.
    pub header: Range<u64>,
    /// The byte range of the part's body in the message, still encoded.
    pub body: Range<u64>,
    /// The number of bytes of the decoded body.
    content_bytes: u64,
}

/// The way in which the lines of a text must be joined (RFC 3676).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TextFlow {
    /// Lines are not joined.
    #[default]
    Fixed,
    /// A line that ends in a space continues in the next line.
    Flowed,
    /// As `Flowed`, but the space at the end of a continued line is not part of the text.
    FlowedWithoutSpace,
}

/// The place at which a part is meant to be shown (RFC 2183).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Disposition {
    /// Not declared.
    #[default]
    Undeclared,
    /// As a part of the message's text.
    Inline,
    /// At the user's request. An unknown disposition means the same (section 2.8).
    Attachment,
}

/// The content of an `application/pkcs7-mime`, as its type declares it (RFC 8551 section 3.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SmimeContent {
    /// Not declared, or something else.
    #[default]
    Other,
    /// Encrypted.
    Encrypted,
    /// Signed, with the signed content inside.
    Signed,
}

/// The transfer encoding of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Encoding {
    /// None: 7bit, 8bit, binary.
    #[default]
    Identity,
    /// RFC 2045 section 6.7.
    QuotedPrintable,
    /// RFC 2045 section 6.8.
    Base64,
    /// The encoding of the program `uuencode`, by any of its private names.
    Uuencode,
    /// An unknown encoding: the body can only be offered unchanged (section 6.4).
    Unknown,
}

impl Part {
    pub(super) fn new(depth: usize, parent: usize, media_type: &str, start: u64) -> Part {
        Part {
            depth,
            parent,
            media_type: media_type.to_owned(),
            charset: None,
            flow: TextFlow::Fixed,
            file_name: None,
            disposition: Disposition::Undeclared,
            encoding: Encoding::Identity,
            content_id: None,
            start: None,
            smime_content: SmimeContent::Other,
            is_too_deep: false,
            header: start..start,
            body: start..start,
            content_bytes: 0,
        }
    }

    /// The bytes after the last part, as one more part: a file, still encoded.
    pub(super) fn rest(start: u64) -> Part {
        Part {
            file_name: Some("rest of message.txt".to_owned()),
            disposition: Disposition::Attachment,
            ..Part::new(1, 0, "application/octet-stream", start)
        }
    }

    /// Whether the main type of the part, such as `text` or `image`, is `main_type`.
    pub fn has_main_type(&self, main_type: &str) -> bool {
        self.media_type.split('/').next() == Some(main_type)
    }

    /// The number of bytes of the decoded body. It is exact for a body without encoding, and for
    /// lines of nothing but base64. For other encodings, it is the number of encoded bytes.
    pub fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    /// The content of an `application/pkcs7-mime`.
    pub fn smime_content(&self) -> SmimeContent {
        self.smime_content
    }

    /// The body has ended. `content_bytes`: the size of its content, if it is not the size of the
    /// body.
    pub(super) fn body_ended(&mut self, end: u64, content_bytes: Option<u64>) {
        self.body.end = end;
        self.content_bytes = content_bytes.unwrap_or(end - self.body.start);
    }

    /// The index of the innermost part that contains this part. For the message itself it is 0.
    pub fn parent(&self) -> usize {
        self.parent
    }

    /// The indices of the parts that contain this part, from the innermost to the message itself.
    /// `parts`: the parts of the message, at least those before this part.
    pub(crate) fn ancestors(&self, parts: &[Part]) -> impl Iterator<Item = usize> {
        let first = (self.depth > 0).then_some(self.parent);
        core::iter::successors(first, move |index| {
            parts.get(*index).filter(|part| part.depth > 0).map(|part| part.parent)
        })
    }

    /// Whether the part belongs to an attached message. `parts`: the parts of the
    /// message, at least those before this part.
    pub fn is_enclosed(&self, parts: &[Part]) -> bool {
        self.ancestors(parts).any(|index| parts.get(index).is_some_and(Part::holds_message))
    }

    /// Whether the part is a message that is taken apart (RFC 2046 section 5.2.1). A message that
    /// is too deep is not taken apart. Section 5.2.1 forbids an encoded message, and such a message
    /// is not taken apart either.
    pub fn holds_message(&self) -> bool {
        let is_message = matches!(&*self.media_type, "message/rfc822" | "message/global");
        is_message && self.encoding == Encoding::Identity && self.depth + 1 < DEPTH_MAX
    }

    /// Reads the field `Content-Type`. Returns the boundary, if the part is a multipart that names
    /// one.
    pub(super) fn content_type_arrived(
        &mut self,
        field: &Field<'_>,
    ) -> Option<alloc::vec::Vec<u8>> {
        let parameters = field.parameters();
        let media_type = parameters.value();
        let is_token = |text: &str| {
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/')
        };
        let is_type =
            media_type.split_once('/').is_some_and(|(main, sub)| is_token(main) && is_token(sub));
        self.media_type =
            if is_type { bounded(media_type.to_owned()) } else { "text/plain".to_owned() };
        self.charset = parameters.text("charset").map(bounded);
        self.start =
            parameters.text("start").map(|start| bounded(without_brackets(&start).to_owned()));
        let says = |name, expected| {
            parameters.text(name).is_some_and(|text| text.eq_ignore_ascii_case(expected))
        };
        self.flow = match says("format", "flowed") {
            true if says("delsp", "yes") => TextFlow::FlowedWithoutSpace,
            true => TextFlow::Flowed,
            false => TextFlow::Fixed,
        };
        self.smime_content = match parameters.text("smime-type").as_deref() {
            Some(content) if content.eq_ignore_ascii_case("signed-data") => SmimeContent::Signed,
            Some(content)
                if ["enveloped-data", "authenveloped-data"]
                    .iter()
                    .any(|known| content.eq_ignore_ascii_case(known)) =>
            {
                SmimeContent::Encrypted
            }
            _ => SmimeContent::Other,
        };
        // The file name of an earlier `Content-Disposition` has precedence.
        self.file_name =
            self.file_name.take().or_else(|| parameters.text("name").and_then(file_name));
        parameters.bytes("boundary").filter(|_| self.has_main_type("multipart"))
    }

    pub(super) fn disposition_arrived(&mut self, field: &Field<'_>) {
        let parameters = field.parameters();
        self.disposition = match parameters.value() {
            "" => Disposition::Undeclared,
            "inline" => Disposition::Inline,
            _ => Disposition::Attachment,
        };
        self.file_name = parameters.text("filename").and_then(file_name).or(self.file_name.take());
    }

    pub(super) fn encoding_arrived(&mut self, field: &Field<'_>) {
        self.encoding = match field.parameters().value() {
            "" | "7bit" | "8bit" | "binary" => Encoding::Identity,
            "quoted-printable" => Encoding::QuotedPrintable,
            "base64" => Encoding::Base64,
            "x-uuencode" | "x-uue" | "uuencode" | "uue" => Encoding::Uuencode,
            _ => Encoding::Unknown,
        };
    }

    pub(super) fn content_id_arrived(&mut self, field: &Field<'_>) {
        // An identifier with spaces is not valid, but some programs write it.
        let in_brackets = || {
            let value = field.value.trim_ascii();
            let value = value.strip_prefix(b"<").unwrap_or(value);
            value.strip_suffix(b">").unwrap_or(value).trim_ascii()
        };
        let identifier = field.identifiers().next().unwrap_or_else(in_brackets);
        let mut text = String::new();
        charset::push_line(&mut text, &charset::decode_guessed(identifier));
        self.content_id = (!text.is_empty()).then(|| bounded(text));
    }
}

/// The file name without folders: `C:\mail\a.txt` becomes `a.txt` (RFC 2183 section 2.3).
fn file_name(path: String) -> Option<String> {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default().trim();
    (!name.is_empty()).then(|| bounded(name.to_owned()))
}

fn without_brackets(text: &str) -> &str {
    text.trim().trim_start_matches('<').trim_end_matches('>')
}

fn bounded(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    text.shrink_to_fit();
    text
}
