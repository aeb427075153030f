//! Whether a page within a letter wants anything from elsewhere: pictures, styles, fonts. Nothing of it is loaded unless the reader asks for it; only where
//! something is wanted is he asked.
//!
//! No browser's parser is imitated: what might be an address elsewhere is taken for one. Whoever is told too much is told nothing wrong that matters; what is overlooked is kept from loading all the same.
//!
//! Invariant: the work is linear in the page's length.

use crate::inert::is_inert;

/// Whether a page wants anything from elsewhere.
pub(crate) fn is_wanted(html: &str) -> bool {
    let mut rest = html;
    while let Some((_, behind)) = rest.split_once('<') {
        if !behind.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            rest = behind;
            continue;
        }
        let (tag, text) = behind.split_at(end_of_tag(behind));
        let (name, attributes) = tag.split_at(
            tag.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(tag.len()),
        );
        // What becomes a comment asks for nothing, and ends at the first `>`.
        if is_inert(name) {
            rest = behind.split_once('>').map_or("", |(_, behind)| behind);
            continue;
        }
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        // Where a link leads is nothing that a page loads.
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

/// Where a tag ends: at the first `>` that stands in no quotes.
fn end_of_tag(tag: &str) -> usize {
    let mut quote = None;
    let mut before = ' ';
    for (at, letter) in tag.char_indices() {
        match quote {
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if letter == '>' => return at,
            None if matches!(letter, '"' | '\'') && before == '=' => quote = Some(letter),
            None => {}
        }
        if !letter.is_ascii_whitespace() {
            before = letter;
        }
    }
    tag.len()
}

/// Names and values of attributes, values with what follows up to the next one where they are not quoted.
fn attribute_values(attributes: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = attributes;
    core::iter::from_fn(move || {
        let (name, behind) = rest.split_once('=')?;
        let name = name
            .trim_end()
            .rsplit(|letter: char| letter.is_ascii_whitespace() || "\"'/".contains(letter))
            .next()?;
        let value = behind.trim_start();
        let quote = value.chars().next().filter(|letter| matches!(letter, '"' | '\''));
        let (value, after) = match quote {
            Some(quote) => value.get(1..)?.split_once(quote).unwrap_or((value, "")),
            None => value.split_at(
                value.find(|letter: char| letter.is_ascii_whitespace()).unwrap_or(value.len()),
            ),
        };
        rest = after;
        Some((name, value))
    })
}

/// Whether what an attribute says is loaded, or says what is.
fn is_loaded(name: &str) -> bool {
    let all = ["src", "srcset", "background", "poster", "data", "href", "xlink:href", "style"];
    all.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Whether something within may be an address elsewhere: it has two slashes or a scheme, as browsers read them, or could have them in letters that are written otherwise.
fn leads_elsewhere(value: &str) -> bool {
    let begins = |own: &str| {
        value.trim_start().get(..own.len()).is_some_and(|start| start.eq_ignore_ascii_case(own))
    };
    if begins("cid:") || begins("data:") {
        return false;
    }
    let mut seen = value.chars().filter(|letter| !letter.is_control());
    let mut before = ' ';
    let has_slashes =
        seen.any(|letter| core::mem::replace(&mut before, letter) == '/' && letter == '/');
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
