//! Removes elements from a message's HTML that make a browser contact hosts even though the
//! document's policy lets it load nothing.
//!
//! A Content Security Policy does not govern `<link rel=preconnect>` and `<link rel=dns-prefetch>`,
//! and Chromium connects for a nested frame before the policy blocks it. So a document is sent
//! without such elements, whether or not the reader asked for remote content. None of them shows
//! anything of use.
//!
//! An HTML parser creates an element only from `<` followed by its name. So the scan looks for
//! these characters everywhere: in text, comments, attributes, raw text and foreign content. Each
//! tag in [`NAMES`] gets a `!` after its `<`. That makes it a comment up to the next `>` (HTML,
//! "bogus comment state"); where `<` begins no tag the `!` does nothing. The scan needs no parser
//! state, so an attacker cannot use a difference between it and a browser. The document stays
//! valid, since a comment may stand anywhere, also in its head.
//!
//! Invariants:
//! - The output has no `<` or `</` in front of a whole name in [`NAMES`], in upper or lower case.
//! - The output does not depend on how the document is cut into pieces. At most [`HELD_BYTES_MAX`]
//!   are held back.
//!
//! Implements: HTML sections 13.2.5.6 to 13.2.5.8 (tags), 13.2.5.41 and 13.2.5.42 (comments);
//! w3c/webappsec-csp issue 282.

use alloc::string::String;

/// Elements that connect, resolve names, or change the target of addresses.
pub(crate) const NAMES: [&str; 11] = [
    "applet",
    "base",
    "embed",
    "fencedframe",
    "frame",
    "frameset",
    "iframe",
    "link",
    "meta",
    "object",
    "portal",
];

/// The longest of the names.
const NAME_BYTES_MAX: usize = "fencedframe".len();

/// So many bytes, from the `<` on, decide whether a tag has one of the names.
pub(crate) const HELD_BYTES_MAX: usize = "</".len() + NAME_BYTES_MAX + 1;

/// Whether an element of that name becomes a comment.
pub(crate) fn is_inert(name: &str) -> bool {
    NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// The filter of one document.
#[derive(Debug, Default)]
pub(crate) struct Inert {
    /// The beginning of a tag with a name that may go on in the next piece.
    held: String,
}

impl Inert {
    /// Filters a piece and appends the decided output to `out`.
    pub(crate) fn text_arrived(&mut self, text: &str, out: &mut String) {
        let mut rest = text;
        while !self.held.is_empty() {
            let Some(character) = rest.chars().next() else { return };
            if self.held.len() < HELD_BYTES_MAX && goes_on(&self.held, character) {
                self.held.push(character);
                rest = rest.get(character.len_utf8()..).unwrap_or_default();
            } else {
                self.text_ended(out);
            }
        }
        while let Some(start) = memchr::memchr(b'<', rest.as_bytes()) {
            let (before, tag) = rest.split_at_checked(start).unwrap_or((rest, ""));
            out.push_str(before);
            let length = tag_length(tag);
            let (tag, behind) = tag.split_at_checked(length).unwrap_or((tag, ""));
            if behind.is_empty() && length < HELD_BYTES_MAX {
                self.held.push_str(tag);
                return;
            }
            push(tag, out);
            rest = behind;
        }
        out.push_str(rest);
    }

    /// The document has ended, and so has a name that was held back.
    pub(crate) fn text_ended(&mut self, out: &mut String) {
        push(&self.held, out);
        self.held.clear();
    }
}

/// The length of a tag up to the end of its name. `html` begins with `<`.
fn tag_length(html: &str) -> usize {
    let mut length = "<".len();
    for character in html.chars().skip(1) {
        if length >= HELD_BYTES_MAX || !goes_on(html.get(..length).unwrap_or_default(), character) {
            break;
        }
        length += character.len_utf8();
    }
    length
}

/// Whether `character` continues the beginning of a tag.
fn goes_on(tag: &str, character: char) -> bool {
    character.is_ascii_alphanumeric()
        || matches!(character, '-' | '_') && tag != "<"
        || character == '/' && tag == "<"
}

/// Appends the beginning of a tag, as a comment if it has one of the names.
fn push(tag: &str, out: &mut String) {
    match tag.strip_prefix('<') {
        Some(inside) if is_inert(inside.strip_prefix('/').unwrap_or(inside)) => {
            out.push_str("<!");
            out.push_str(inside);
        }
        _ => out.push_str(tag),
    }
}
