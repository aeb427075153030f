//! Elements of a message's HTML that make a browser contact hosts, although the document's policy
//! lets it load nothing.
//!
//! A Content Security Policy has no say in `<link rel=preconnect>` and `<link rel=dns-prefetch>`,
//! and Chromium connects for a nested frame before the policy blocks it. So the document that goes
//! out has no such elements at all, whether or not its reader asked for remote content: none of
//! them shows anything of use.
//!
//! A parser makes an element only of `<` and its name, so these characters are looked for wherever
//! they stand: in text, comments, attributes, raw text and foreign content alike. Each tag of
//! [`NAMES`] gets a `!` behind its `<`, which makes it a comment up to the next `>` (HTML, "bogus
//! comment state"); where `<` begins no tag the `!` does nothing. That needs no knowledge of the
//! state in which a browser's parser is, so there is no disagreement with it that an attacker could
//! use. A document stays in order, since a comment may stand anywhere, also in its head.
//!
//! Invariants:
//! - What comes out has no `<` or `</` with one of [`NAMES`] behind it that is a whole name, in
//!   capital or small letters.
//! - It does not depend on how the document is cut into pieces, of which at most [`HELD_BYTES_MAX`]
//!   are held back.
//!
//! Answers to: HTML sections 13.2.5.6 to 13.2.5.8 (tags), 13.2.5.41 and 13.2.5.42 (comments);
//! w3c/webappsec-csp issue 282.

use alloc::string::String;

/// The elements that connect, look names up, or change where addresses lead.
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

/// The longest of them.
const NAME_BYTES_MAX: usize = "fencedframe".len();

/// With what stands before it, a name is known to end within so many bytes, or to be none of them.
pub(crate) const HELD_BYTES_MAX: usize = "</".len() + NAME_BYTES_MAX + 1;

/// Whether an element of that name becomes a comment.
pub(crate) fn is_inert(name: &str) -> bool {
    NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// A document that goes by.
#[derive(Debug, Default)]
pub(crate) struct Inert {
    /// The beginning of a tag whose name may not have come whole.
    held: String,
}

impl Inert {
    /// Adds to `out` what is known of the document with this piece.
    pub(crate) fn text_arrived(&mut self, text: &str, out: &mut String) {
        let mut rest = text;
        while !self.held.is_empty() {
            let Some(letter) = rest.chars().next() else { return };
            if self.held.len() < HELD_BYTES_MAX && goes_on(&self.held, letter) {
                self.held.push(letter);
                rest = rest.get(letter.len_utf8()..).unwrap_or_default();
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

    /// The document has ended: a name that may have gone on does not.
    pub(crate) fn text_ended(&mut self, out: &mut String) {
        push(&self.held, out);
        self.held.clear();
    }
}

/// How many bytes of this, which begins with `<`, are the beginning of a tag, up to the end of its
/// name.
fn tag_length(html: &str) -> usize {
    let mut length = "<".len();
    for letter in html.chars().skip(1) {
        if length >= HELD_BYTES_MAX || !goes_on(html.get(..length).unwrap_or_default(), letter) {
            break;
        }
        length += letter.len_utf8();
    }
    length
}

/// Whether the beginning of a tag goes on with that.
fn goes_on(tag: &str, letter: char) -> bool {
    letter.is_ascii_alphanumeric()
        || matches!(letter, '-' | '_') && tag != "<"
        || letter == '/' && tag == "<"
}

/// Adds the beginning of a tag, as a comment's where it is to be one.
fn push(tag: &str, out: &mut String) {
    match tag.strip_prefix('<') {
        Some(inside) if is_inert(inside.strip_prefix('/').unwrap_or(inside)) => {
            out.push_str("<!");
            out.push_str(inside);
        }
        _ => out.push_str(tag),
    }
}
