//! Detects whether the HTML of a message refers to remote content: images, styles or fonts. Remote
//! content is loaded only at the reader's request, and the page offers that only if the message has
//! remote content.
//!
//! The scan is not a full HTML parser: a text that might be a remote address counts as one. A false
//! positive does no harm. Remote content that the scan does not detect stays blocked.
//!
//! Invariant: the work is linear in the length of the HTML.

use crate::inert::is_inert;

/// Whether a document loads remote content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum RemoteContent {
    /// Remote content is blocked, since it would show the sender that the message was read.
    #[default]
    Blocked,
    /// Remote content is loaded, since the reader has asked for it.
    Loaded,
}

/// Whether HTML refers to remote content.
pub(crate) fn is_in(html: &str) -> bool {
    let mut rest = html;
    while let Some((_, behind)) = rest.split_once('<') {
        if !behind.starts_with(|character: char| character.is_ascii_alphabetic()) {
            rest = behind;
            continue;
        }
        let end_of_name = behind.find(|character: char| !character.is_ascii_alphanumeric());
        let name = behind.get(..end_of_name.unwrap_or(behind.len())).unwrap_or_default();
        // `inert` turns this tag into a comment, which loads nothing and ends at the first `>`.
        if is_inert(name) {
            rest = behind.split_once('>').map_or("", |(_, behind)| behind);
            continue;
        }
        let (tag, text) = behind.split_at(end_of_tag(behind));
        let attributes = tag.get(name.len()..).unwrap_or_default();
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        // The target of a link is not loaded with the page.
        let is_link = is("a") || is("area");
        let loads = |name: &str| is_loaded(name) && !(is_link && name.eq_ignore_ascii_case("href"));
        if attribute_values(attributes).any(|(name, value)| loads(name) && leads_elsewhere(value)) {
            return true;
        }
        rest = text;
        if is("style") {
            let (style, behind) = text.split_once("</").unwrap_or((text, ""));
            if leads_elsewhere(style) {
                return true;
            }
            rest = behind;
        }
    }
    false
}

/// The length of a tag up to the first `>` outside of quotes.
fn end_of_tag(tag: &str) -> usize {
    let mut quote = None;
    let mut before = ' ';
    for (at, character) in tag.char_indices() {
        match quote {
            Some(open) if character == open => quote = None,
            Some(_) => {}
            None if character == '>' => return at,
            None if matches!(character, '"' | '\'') && before == '=' => quote = Some(character),
            None => {}
        }
        if !character.is_ascii_whitespace() {
            before = character;
        }
    }
    tag.len()
}

/// The names and values of attributes. A value without quotes ends at white space.
fn attribute_values(attributes: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = attributes;
    core::iter::from_fn(move || {
        let (name, behind) = rest.split_once('=')?;
        let name = name
            .trim_end()
            .rsplit(|character: char| character.is_ascii_whitespace() || "\"'/".contains(character))
            .next()?;
        let value = behind.trim_start();
        let quote = value.chars().next().filter(|character| matches!(character, '"' | '\''));
        let (value, after) = match quote {
            Some(quote) => value.get(1..)?.split_once(quote).unwrap_or((value, "")),
            None => value.split_at(
                value
                    .find(|character: char| character.is_ascii_whitespace())
                    .unwrap_or(value.len()),
            ),
        };
        rest = after;
        Some((name, value))
    })
}

/// Whether the value of an attribute with this name is or may contain an address that a browser
/// loads.
fn is_loaded(name: &str) -> bool {
    let all = ["src", "srcset", "background", "poster", "data", "href", "xlink:href", "style"];
    all.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Whether a value may contain a remote address. A browser may find two slashes or a scheme in it,
/// perhaps as character references.
fn leads_elsewhere(value: &str) -> bool {
    let begins = |own: &str| {
        value.trim_start().get(..own.len()).is_some_and(|start| start.eq_ignore_ascii_case(own))
    };
    if begins("cid:") || begins("data:") {
        return false;
    }
    let mut seen = value.chars().filter(|character| !character.is_control());
    let mut before = ' ';
    let has_slashes =
        seen.any(|character| core::mem::replace(&mut before, character) == '/' && character == '/');
    let ends = |text: &str, scheme: &str| {
        let end = text.len().checked_sub(scheme.len()).and_then(|at| text.get(at..));
        end.is_some_and(|end| end.eq_ignore_ascii_case(scheme))
    };
    let has_scheme = value.match_indices(':').any(|(at, _)| {
        let before = value.get(..at).unwrap_or_default();
        ends(before, "http") || ends(before, "https")
    });
    has_slashes
        || has_scheme
        || value.contains('\\')
        || value.contains("&#")
        || value.contains("&sol")
}
