//! The rules by which a part may be shown. They depend only on the parts before it, so a listener
//! can follow them while a message arrives.

use crate::structure::{Disposition, Part};

/// The most octets of a text that is shown although it is neither plain text nor HTML. A larger
/// text is an attachment.
pub const OTHER_TEXT_BYTES_MAX: u64 = 64 * 1024;

/// The form in which a part is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShownAs {
    /// As plain text.
    Text,
    /// As HTML.
    Html,
}

/// Types of text that programs read, rather than people.
const FILE_TYPES: [&str; 5] =
    ["text/calendar", "text/directory", "text/rtf", "text/vcard", "text/x-vcard"];

/// Types of reports with fields that people can read (RFC 3464, 5965, 6533, 8098).
const REPORT_TYPES: [&str; 6] = [
    "message/delivery-status",
    "message/disposition-notification",
    "message/feedback-report",
    "message/global-delivery-status",
    "message/global-disposition-notification",
    "message/global-headers",
];

/// The form in which the last of `parts` is shown, if it has no parts and is not too large. `None`:
/// it is never shown.
pub fn shown_as(parts: &[Part]) -> Option<ShownAs> {
    let (part, before) = parts.split_last()?;
    if part.is_enclosed(parts) {
        return None;
    }
    if part.has_main_type("multipart") {
        return Some(ShownAs::Text);
    }
    let is_text = is_shown_in_messages(part) && !FILE_TYPES.contains(&&*part.media_type);
    let is_other_file = part.file_name.is_some() && has_text_before(part, before);
    if !is_text
        || part.disposition == Disposition::Attachment
        || is_other_file
        || is_resource(part, before)
    {
        return None;
    }
    Some(if part.media_type == "text/html" { ShownAs::Html } else { ShownAs::Text })
}

/// Whether the part is plain text or HTML.
pub(super) fn is_usual_text(part: &Part) -> bool {
    matches!(&*part.media_type, "text/plain" | "text/html")
}

/// Whether the type of the part is one that messages show.
pub(super) fn is_shown_in_messages(part: &Part) -> bool {
    part.has_main_type("text")
        || part.has_main_type("multipart")
        || REPORT_TYPES.contains(&&*part.media_type)
}

/// Whether the part is a signature of the part before it.
pub(super) fn is_signature(part: &Part) -> bool {
    matches!(
        &*part.media_type,
        "application/pgp-signature"
            | "application/pkcs7-signature"
            | "application/x-pkcs7-signature"
    )
}

/// Whether a text precedes the part. The part's own alternatives do not count. The first text of a
/// message is its body, even if it has a file name. Other texts with file names are files.
fn has_text_before(part: &Part, before: &[Part]) -> bool {
    let mut start = before.len();
    for ancestor in part.ancestors(before) {
        if before.get(ancestor).is_some_and(|part| part.media_type == "multipart/alternative") {
            start = ancestor;
        }
    }
    let is_text = |part: &Part| is_usual_text(part) && part.disposition != Disposition::Attachment;
    before.iter().take(start).rev().any(is_text)
}

/// Whether the part belongs to the page at the root of a `multipart/related`, such as a style
/// sheet. Parts without an identifier are texts that a program has added.
fn is_resource(part: &Part, before: &[Part]) -> bool {
    let Some(related) = before.get(part.parent()) else { return false };
    let is_first = before.len() == part.parent() + 1;
    related.media_type == "multipart/related"
        && !is_first
        && part.content_id.is_some()
        && part.content_id != related.start
}
