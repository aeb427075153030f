//! Removes elements from a message's HTML that make a browser contact hosts although the document's
//! policy forbids it to load anything.
//!
//! A Content Security Policy does not govern `<link rel=preconnect>` and `<link rel=dns-prefetch>`,
//! and Chromium connects for a nested frame before the policy blocks it. So a document is sent
//! without such elements, even if the reader has asked for remote content. They would show nothing
//! useful.
//!
//! An HTML parser creates an element only from `<` followed by its name. So the scan looks for
//! these characters everywhere: in text, comments, attributes, raw text and foreign content. Each
//! tag in [`NAMES`] gets a `!` after its `<`. The browser then reads a comment up to the next `>`
//! (HTML, "bogus comment state"). If the `<` does not begin a tag, the `!` has no effect. The scan
//! has no parser state, so an attacker cannot use a difference between the scan and a browser. The
//! document stays valid, since a comment may occur anywhere, even in the head.
//!
//! Invariants:
//! - In the output, no `<` or `</` is followed by a whole name in [`NAMES`], in upper or lower
//!   case.
//! - The output does not depend on how the document is cut into pieces. At most [`HELD_BYTES_MAX`]
//!   bytes are held back.
//!
//! Implements: HTML sections 13.2.5.6 to 13.2.5.8 (tags), 13.2.5.41 and 13.2.5.42 (comments);
//! w3c/webappsec-csp issue 282.

use alloc::string::String;

/// The names of elements that connect, resolve names, or change the target of addresses.
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

/// The length of the longest name in bytes.
const NAME_BYTES_MAX: usize = "fencedframe".len();

/// The number of bytes, from the `<` on, that decide whether a tag has one of the names.
pub(crate) const HELD_BYTES_MAX: usize = "</".len() + NAME_BYTES_MAX + 1;

/// Whether an element with this name becomes a comment.
pub(crate) fn is_inert(name: &str) -> bool {
    NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// The filter of one document.
#[derive(Debug, Default)]
pub(crate) struct Inert {
    /// The beginning of a tag with a name that may continue in the next piece.
    held: String,
}

impl Inert {
    /// Filters a piece, and appends the output that no later piece can change to `out`.
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

    /// Appends the name that was held back, since the document or the name has ended.
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

/// Appends the beginning of a tag. If the tag has one of the names, it becomes a comment.
fn push(tag: &str, out: &mut String) {
    match tag.strip_prefix('<') {
        Some(inside) if is_inert(inside.strip_prefix('/').unwrap_or(inside)) => {
            out.push_str("<!");
            out.push_str(inside);
        }
        _ => out.push_str(tag),
    }
}
