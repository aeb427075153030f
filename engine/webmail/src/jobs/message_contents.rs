//! The contents of a message, which are extracted while it is read: the fields about people and the
//! subject, and the texts that may be shown.
//!
//! Invariant: the memory has at most [`TEXT_BYTES_MAX`] of text, [`PAGES_BYTES_MAX`] of HTML and
//! [`MAILBOXES_MAX`] mailboxes in each kind of field, and little else. A text for which there is no
//! space is shown as an attachment.

use alloc::string::String;
use alloc::vec::Vec;

use message::header::{
    ADDRESSES_MAX, Address, Field, HeaderMailbox, SentDate, in_body_charset, people_in_body_charset,
};
use message::presentation::{
    self, Content, OTHER_TEXT_BYTES_MAX, Preference, Presentation, ShownAs,
};
use message::structure::{ADDRESS_FIELD_BYTES_MAX, Listener, Part};
use message::{TextDecoder, is_blank, report, text_of_html};

use super::embedded_images;
use super::file_contents::FileContents;

/// The maximum number of bytes of a message's text on a page. Readers can download the rest.
pub const TEXT_BYTES_MAX: usize = 256 * 1024;

/// The maximum number of bytes of an HTML part on a page. Other webmails have the same limit. A
/// browser may need minutes to lay out much longer HTML.
pub(super) const HTML_BYTES_MAX: usize = 102 * 1024;

/// The maximum number of bytes of all HTML parts of a message that a page shows. An HTML part for
/// which fewer than [`HTML_BYTES_MAX`] are left is an attachment.
const PAGES_BYTES_MAX: usize = 256 * 1024;

/// The maximum number of mailboxes of one kind that are read from a message, in all fields
/// together.
const MAILBOXES_MAX: usize = ADDRESSES_MAX;

/// The maximum number of HTML parts of a message that a page shows. Each of them is a frame, for
/// which the message is read again. Further ones are attachments.
const PAGES_MAX: usize = 16;

/// The number of bytes of fields after which no more fields wait for the charset of the body.
const UNLABELLED_BYTES_MAX: usize = 16 * 1024;

/// The names of the header fields that are read.
const FIELDS: [&str; 7] = ["Date", "From", "Reply-To", "To", "Cc", "Bcc", "Subject"];

/// The data that is extracted while the message is parsed.
#[derive(Debug, Default)]
pub(super) struct MessageContents {
    pub(super) from: Option<HeaderMailbox>,
    /// The mailboxes to which the author wants replies, if not `from`.
    pub(super) reply_to: Vec<HeaderMailbox>,
    pub(super) to: Vec<HeaderMailbox>,
    pub(super) cc: Vec<HeaderMailbox>,
    pub(super) bcc: Vec<HeaderMailbox>,
    /// Whether the message may have more mailboxes of one kind than are kept.
    pub(super) has_more_people: bool,
    pub(super) subject: Option<String>,
    /// The subject of the message that a report returns, from the header of the first attached
    /// message after the report.
    returned_subject: Option<String>,
    has_report: bool,
    /// Whether the field that arrives next is in the header of the message itself.
    is_own_field: bool,
    /// The time in the date field.
    pub(super) sent: Option<SentDate>,
    /// The names and values of fields that are not in UTF-8. They are taken to be in the charset of
    /// the body, and wait until that charset is known.
    unlabelled: Vec<(&'static str, Vec<u8>)>,
    /// The number of bytes in `unlabelled`.
    unlabelled_bytes: usize,
    /// The files about which the page says something.
    files: FileContents,
    /// The texts of the parts that may be shown, in the order of the parts.
    texts: Vec<PartText>,
    /// The decoder of the last text, while its part is being read.
    decoder: Option<TextDecoder>,
    /// The number of bytes after which no more of the last text is decoded.
    room: usize,
}

/// The text of a part.
#[derive(Debug)]
pub(super) struct PartText {
    pub(super) part: usize,
    pub(super) shown_as: ShownAs,
    /// The text or the HTML.
    pub(super) text: String,
    /// Whether `text` is incomplete.
    pub(super) is_cut: bool,
    /// The kind of the content. [`Content::TooLarge`]: there is no space for the part, so nothing
    /// of it was read.
    content: Content,
}

impl MessageContents {
    /// The message has these parts, and was read to its end.
    pub(super) fn message_ended(&mut self, parts: &[Part]) {
        let charset = presentation::body_charset(parts);
        for (name, value) in core::mem::take(&mut self.unlabelled) {
            let read = if name == "Subject" { in_body_charset } else { people_in_body_charset };
            let value = read(&value, charset);
            self.field_in_utf8_arrived(&Field { name: name.as_bytes(), value: &value });
        }
    }

    /// A field arrived that is in UTF-8, or in an unknown charset.
    fn field_in_utf8_arrived(&mut self, field: &Field<'_>) {
        if field.is("From") && self.from.is_none() {
            self.from = mailboxes(field).next();
        } else if field.is("Reply-To") {
            self.people_arrived(field, |contents| &mut contents.reply_to);
        } else if field.is("To") {
            self.people_arrived(field, |contents| &mut contents.to);
        } else if field.is("Cc") {
            self.people_arrived(field, |contents| &mut contents.cc);
        } else if field.is("Bcc") {
            self.people_arrived(field, |contents| &mut contents.bcc);
        } else if field.is("Subject") && self.subject.is_none() {
            self.subject = Some(field.text());
        } else if field.is("Date") && self.sent.is_none() {
            self.sent = field.date();
        }
    }

    /// The presentation of the message. `parts`: its parts, which were all read.
    pub(super) fn presentation(&self, parts: &[Part], preference: Preference) -> Presentation {
        let content = |part| self.text_of(part).map_or(Content::TooLarge, |text| text.content);
        let mut presentation = Presentation::of(parts, preference, content);
        if preference == Preference::Html {
            let pages = presentation.shown().filter(|(_, shown_as)| *shown_as == ShownAs::Html);
            // A blank page is not shown, so its images are attachments.
            let texts = pages
                .filter_map(|(part, _)| self.text_of(part))
                .filter(|text| text.content != Content::Blank);
            let drawn: Vec<usize> =
                texts.flat_map(|text| embedded_images::drawn_in(&text.text, parts)).collect();
            drawn.into_iter().for_each(|image| presentation.image_is_drawn(image));
        }
        presentation
    }

    /// The subject of the message that a report returns.
    pub(super) fn returned_subject(&self) -> Option<&str> {
        self.returned_subject.as_deref()
    }

    /// The files about which the page says something.
    pub(super) fn files(&self) -> &FileContents {
        &self.files
    }

    /// Takes the files about which the page says something.
    pub(super) fn take_files(&mut self) -> FileContents {
        core::mem::take(&mut self.files)
    }

    /// The text of a part, if the part may be shown.
    pub(super) fn text_of(&self, part: usize) -> Option<&PartText> {
        let place = self.texts.binary_search_by_key(&part, |text| text.part);
        place.ok().and_then(|place| self.texts.get(place))
    }

    /// Takes the texts that are shown. If all of them are blank, the text of a container is added.
    /// Blank texts are left out if there are others.
    pub(super) fn take_shown(&mut self, presentation: &Presentation) -> Vec<PartText> {
        let mut texts = core::mem::take(&mut self.texts);
        texts.retain(|text| presentation.shown().any(|(part, _)| part == text.part));
        if texts.iter().all(|text| text.content == Content::Blank)
            && let Some((part, container)) = self.files.with_text()
        {
            texts.push(PartText {
                part,
                shown_as: ShownAs::Text,
                text: container.text().into(),
                is_cut: container.is_text_cut(),
                content: Content::Visible,
            });
        }
        if texts.len() > 1 {
            texts.retain(|text| text.content != Content::Blank);
        }
        texts
    }

    /// All that the presentation shows, as plain text, and whether that is the whole text of the
    /// shown parts. The text of a container may be cut without an effect on this result, since the
    /// container is also an attachment.
    pub(super) fn plain_text(&self, presentation: &Presentation) -> (String, bool) {
        let (mut plain, mut is_whole) = (String::new(), true);
        for (part, shown_as) in presentation.shown() {
            let Some(text) = self.text_of(part) else { continue };
            let before = plain.len();
            is_whole &= !text.is_cut;
            match shown_as {
                ShownAs::Text => plain.push_str(&text.text),
                ShownAs::Html => plain.push_str(&text_of_html(&text.text)),
            }
            if plain.len() > before && !plain.ends_with('\n') {
                plain.push('\n');
            }
        }
        if plain.trim().is_empty()
            && let Some((_, container)) = self.files.with_text()
        {
            plain = container.text().into();
        }
        is_whole &= plain.len() <= TEXT_BYTES_MAX;
        plain.truncate(plain.floor_char_boundary(TEXT_BYTES_MAX));
        (plain, is_whole)
    }

    /// Adds the mailboxes of a field to the mailboxes of earlier fields of the same kind.
    fn people_arrived(
        &mut self,
        field: &Field<'_>,
        kind: impl FnOnce(&mut MessageContents) -> &mut Vec<HeaderMailbox>,
    ) {
        let people = kind(self);
        let room = MAILBOXES_MAX.saturating_sub(people.len());
        people.extend(mailboxes(field).take(room));
        let is_full = people.len() == MAILBOXES_MAX
            || field.value.len() + "Reply-To: ".len() >= ADDRESS_FIELD_BYTES_MAX;
        self.has_more_people |= is_full;
    }
}

impl Listener for MessageContents {
    fn wants_field(&mut self, part: &Part, name: &[u8]) -> bool {
        self.is_own_field = part.depth == 0;
        if self.is_own_field {
            return FIELDS.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
        }
        self.has_report && self.returned_subject.is_none() && name.eq_ignore_ascii_case(b"Subject")
    }

    fn field_arrived(&mut self, field: &Field<'_>) {
        if !self.is_own_field {
            self.returned_subject = Some(report::subject(field));
            return;
        }
        let is_in_utf8 = core::str::from_utf8(field.value).is_ok();
        if is_in_utf8 || self.unlabelled_bytes > UNLABELLED_BYTES_MAX {
            return self.field_in_utf8_arrived(field);
        }
        self.unlabelled_bytes += size_of::<(&str, Vec<u8>)>() + field.value.len();
        let name = FIELDS.into_iter().find(|name| field.is(name)).unwrap_or_default();
        self.unlabelled.push((name, field.value.to_vec()));
    }

    fn body_began(&mut self, parts: &[Part]) -> bool {
        let Some(part) = parts.last() else { return false };
        // Text before the parts of a multipart is shown only if there are no parts.
        self.texts
            .pop_if(|last| parts.get(last.part + 1).is_some_and(|next| next.parent() == last.part));
        let Some(shown_as) = presentation::shown_as(parts) else {
            return self.files.body_began(parts);
        };
        self.has_report |= report::is_delivery_report(&part.media_type)
            || report::is_read_receipt(&part.media_type);
        let is_usual = matches!(&*part.media_type, "text/plain" | "text/html")
            || part.has_main_type("multipart");
        let same = self.texts.iter().filter(|text| text.shown_as == shown_as);
        let pages = same.clone().count();
        let taken: usize = same.map(|text| text.text.len()).sum();
        self.room = match shown_as {
            ShownAs::Text if !is_usual => OTHER_TEXT_BYTES_MAX as usize,
            ShownAs::Text => TEXT_BYTES_MAX,
            ShownAs::Html => HTML_BYTES_MAX,
        };
        let left = match shown_as {
            ShownAs::Text => TEXT_BYTES_MAX.saturating_sub(taken),
            ShownAs::Html => PAGES_BYTES_MAX.saturating_sub(taken),
        };
        let is_too_large = match shown_as {
            ShownAs::Text => left == 0,
            ShownAs::Html => left < HTML_BYTES_MAX || pages >= PAGES_MAX,
        };
        self.room = self.room.min(left);
        self.texts.push(PartText {
            part: parts.len() - 1,
            shown_as,
            text: String::new(),
            is_cut: false,
            content: if is_too_large { Content::TooLarge } else { Content::Blank },
        });
        self.decoder = (!is_too_large).then(|| TextDecoder::new(part));
        !is_too_large
    }

    fn body_arrived(&mut self, bytes: &[u8]) {
        if self.files.body_arrived(bytes) {
            return;
        }
        if let (Some(decoder), Some(text)) = (&mut self.decoder, self.texts.last_mut()) {
            if text.text.len() < self.room {
                decoder.bytes_arrived(bytes, &mut text.text);
            } else {
                text.is_cut = true;
            }
        }
    }

    fn body_ended(&mut self) {
        if self.files.body_ended() {
            return;
        }
        if let (Some(mut decoder), Some(text)) = (self.decoder.take(), self.texts.last_mut()) {
            decoder.body_ended(&mut text.text);
            // A frame shows exactly this much of an HTML part.
            if text.shown_as == ShownAs::Html && text.text.len() > HTML_BYTES_MAX {
                text.is_cut = true;
                text.text.truncate(text.text.floor_char_boundary(HTML_BYTES_MAX));
            }
            text.content = text.content_of_text();
        }
    }
}

impl PartText {
    fn content_of_text(&self) -> Content {
        let is_blank = match self.shown_as {
            ShownAs::Html => is_blank(&self.text),
            ShownAs::Text => self.text.trim_start().is_empty(),
        };
        if is_blank && !self.is_cut { Content::Blank } else { Content::Visible }
    }
}

/// The mailboxes of a field.
pub(super) fn mailboxes(field: &Field<'_>) -> impl Iterator<Item = HeaderMailbox> {
    field.addresses().into_iter().flat_map(|address| match address {
        Address::Mailbox(mailbox) => alloc::vec![mailbox],
        Address::Group { mailboxes, .. } => mailboxes,
    })
}
