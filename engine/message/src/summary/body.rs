//! The beginning of a message's text, and whether a file is attached. An unencoded plain text is
//! read directly; all other messages are taken apart.

use alloc::string::String;

use super::fields::{NeededField, SummaryField};
use super::plain::{Hard, Plain};
use super::snippet::Snippet;
use crate::TextDecoder;
use crate::html::{Html, HtmlPiece};
use crate::presentation::{self, body_charset, has_attachment};
use crate::structure::{Listener, Part, StructureReader, TextFlow};

/// The header fields about the body. Of a repeated field, the first one counts.
#[derive(Default)]
pub(super) struct BodyFields<'a> {
    content_type: Option<NeededField<'a>>,
    disposition: Option<NeededField<'a>>,
    encoding: Option<NeededField<'a>>,
    identifier: Option<NeededField<'a>>,
}

impl<'a> BodyFields<'a> {
    pub(super) fn field_arrived(&mut self, field: NeededField<'a>) {
        let place = match field.name {
            SummaryField::ContentType => &mut self.content_type,
            SummaryField::ContentDisposition => &mut self.disposition,
            SummaryField::ContentTransferEncoding => &mut self.encoding,
            _ => &mut self.identifier,
        };
        place.get_or_insert(field);
    }

    /// The form of a message that is a single unencoded plain text. Errors: the message has another
    /// form.
    fn plain(&self) -> Result<Plain, Hard> {
        let is_inline =
            |field: &NeededField<'_>| field.value.trim_ascii().eq_ignore_ascii_case(b"inline");
        let is_identity = |field: &NeededField<'_>| {
            let value = field.value.trim_ascii();
            [&b"7bit"[..], b"8bit", b"binary"]
                .into_iter()
                .any(|known| value.eq_ignore_ascii_case(known))
        };
        if !self.disposition.as_ref().is_none_or(is_inline)
            || !self.encoding.as_ref().is_none_or(is_identity)
        {
            return Err(Hard);
        }
        self.content_type
            .as_ref()
            .map_or(Ok(Plain::UNDECLARED), |field| Plain::of_type(field.value))
    }

    /// The fields, in the order of the header.
    fn fields(&self) -> [&'a [u8]; 4] {
        let all = [&self.content_type, &self.disposition, &self.encoding, &self.identifier];
        let mut all = all.map(|field| field.map_or(&[][..], |field| field.bytes));
        // All fields are slices of the message, so their addresses give their order.
        all.sort_unstable_by_key(|bytes| bytes.as_ptr());
        all
    }
}

/// Reads the bytes after the fields, from the empty line on, into an empty snippet. Returns whether
/// a file is attached.
pub(super) fn read(body_fields: &BodyFields<'_>, rest: &[u8], snippet: &mut Snippet) -> bool {
    if let Ok(plain) = body_fields.plain()
        && read_plain(plain, rest, snippet).is_ok()
    {
        return false;
    }
    *snippet = Snippet::default();
    read_parts(body_fields, rest, snippet)
}

/// The charset of the text. The arguments are the same as for [`read`].
#[inline(never)]
pub(super) fn charset(body_fields: &BodyFields<'_>, rest: &[u8]) -> Option<String> {
    let mut reader = StructureReader::new();
    message_arrived(body_fields, rest, &mut reader, &mut ());
    body_charset(&reader.message_ended(&mut ()).parts).map(String::from)
}

fn read_plain(plain: Plain, rest: &[u8], snippet: &mut Snippet) -> Result<(), Hard> {
    let mut rest = rest.strip_prefix(b"\r\n").or_else(|| rest.strip_prefix(b"\n")).unwrap_or(rest);
    // This byte may begin a byte order mark, which a text that is declared as UTF-8 does not need.
    if rest.starts_with(&[0xef]) {
        return Err(Hard);
    }
    while !rest.is_empty() && !snippet.is_full() {
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
        let (line, after) = rest.split_at_checked(end).unwrap_or((rest, &[]));
        // The line looks like a quote once the space that protects it is removed.
        if plain.flow == TextFlow::Flowed && line.starts_with(b" >") {
            return Err(Hard);
        }
        if line.starts_with(b">") || !snippet.push_words(line) {
            let is_plain = plain.is_utf8 || line.is_ascii();
            snippet.push_lines(core::str::from_utf8(line).ok().filter(|_| is_plain).ok_or(Hard)?);
        }
        rest = after;
    }
    Ok(())
}

/// Takes the message apart.
#[inline(never)]
fn read_parts(body_fields: &BodyFields<'_>, rest: &[u8], snippet: &mut Snippet) -> bool {
    let mut gathering = TextSearch { snippet, text: None };
    let mut reader = StructureReader::new();
    message_arrived(body_fields, rest, &mut reader, &mut gathering);
    has_attachment(&reader.message_ended(&mut gathering).parts)
}

/// Passes the fields about the body, and the bytes after the fields, to a reader.
fn message_arrived(
    body_fields: &BodyFields<'_>,
    rest: &[u8],
    reader: &mut StructureReader,
    listener: &mut impl Listener,
) {
    for field in body_fields.fields() {
        reader.bytes_arrived(field, listener);
    }
    // The header ends here, even if the empty line after it is missing.
    if !matches!(rest, [b'\r' | b'\n', ..]) {
        reader.bytes_arrived(b"\r\n", listener);
    }
    reader.bytes_arrived(rest, listener);
}

/// The search for the text while the message is taken apart.
struct TextSearch<'a> {
    snippet: &'a mut Snippet,
    text: Option<BodyText>,
}

/// The text that is being read.
struct BodyText {
    decoder: TextDecoder,
    read: String,
    html: Option<Html>,
}

impl Listener for TextSearch<'_> {
    fn body_began(&mut self, parts: &[Part]) -> bool {
        let Some(part) = parts.last() else { return false };
        // The source of a multipart says nothing to readers of a list.
        let is_wanted = self.snippet.is_empty() && !part.has_main_type("multipart");
        self.text = (is_wanted && presentation::shown_as(parts).is_some()).then(|| BodyText {
            decoder: TextDecoder::new(part),
            read: String::new(),
            html: (part.media_type == "text/html").then(Html::default),
        });
        self.text.is_some()
    }

    fn body_arrived(&mut self, bytes: &[u8]) {
        if let Some(text) = self.text.as_mut().filter(|_| !self.snippet.is_full()) {
            text.decoder.bytes_arrived(bytes, &mut text.read);
            text.pass_on(self.snippet);
        }
    }

    /// A message that is not a multipart needs only its beginning.
    fn has_enough(&self, parts: &[Part]) -> bool {
        self.snippet.is_full() && matches!(parts, [part] if !part.has_main_type("multipart"))
    }

    fn body_ended(&mut self) {
        if let Some(mut text) = self.text.take() {
            text.decoder.body_ended(&mut text.read);
            text.pass_on(self.snippet);
        }
    }
}

impl BodyText {
    fn pass_on(&mut self, snippet: &mut Snippet) {
        match &mut self.html {
            Some(html) => html.text_arrived(&self.read, &mut |piece| match piece {
                HtmlPiece::Character(c) | HtmlPiece::Preformatted(c) => snippet.push(c),
                HtmlPiece::Gap(_) | HtmlPiece::Object => snippet.push(' '),
            }),
            None => snippet.push_lines(&self.read),
        }
        self.read.clear();
    }
}
