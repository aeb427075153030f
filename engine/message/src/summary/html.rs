//! The text of an HTML page, without markup. The result is shown as text and never as HTML again,
//! so nothing here has to be secure.
//!
//! Invariants: each character is examined once, and only the beginning of a tag's or an entity's
//! name is kept.

use alloc::string::String;

/// The position in the page.
#[derive(Debug, Default)]
pub(super) struct Html {
    expect: Expect,
    /// The name of the tag or entity that has begun.
    name: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Expect {
    #[default]
    Text,
    /// After `<`.
    TagName,
    /// After a tag's name.
    TagEnd,
    /// In an attribute that ends with this quote.
    Quote(char),
    /// In a comment, after this many dashes that may belong to `-->`.
    CommentEnd(u8),
    /// In an element with content that is not text, after `seen` characters of `</` and its name.
    ElementEnd { element: &'static str, seen: usize },
    /// After `&`.
    Entity,
}

/// Elements with content that is not text.
const MUTE: [&str; 5] = ["style", "script", "title", "noscript", "template"];

/// Elements that do not separate words.
const INLINE: [&str; 15] = [
    "a", "abbr", "b", "big", "em", "font", "i", "mark", "s", "small", "span", "strong", "sub",
    "sup", "u",
];

const NAME_BYTES_MAX: usize = 12;

impl Html {
    /// Passes the characters of the text in `text` to `out`.
    pub(super) fn text_arrived(&mut self, text: &str, out: &mut impl FnMut(char)) {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            rest = match rest.get(self.passed_over(rest.as_bytes())..) {
                Some(after) if after.len() < rest.len() => after,
                _ => {
                    self.expect = self.character_arrived(c, out);
                    rest.get(c.len_utf8()..).unwrap_or_default()
                }
            };
        }
    }

    /// The number of bytes that can be skipped before the next byte that matters.
    fn passed_over(&self, rest: &[u8]) -> usize {
        let next = match self.expect {
            Expect::TagEnd => memchr::memchr3(b'>', b'"', b'\'', rest),
            Expect::Quote('"') => memchr::memchr(b'"', rest),
            Expect::CommentEnd(0) => memchr::memchr(b'-', rest),
            Expect::ElementEnd { seen: 0, .. } => memchr::memchr(b'<', rest),
            _ => Some(0),
        };
        next.unwrap_or(rest.len())
    }

    fn character_arrived(&mut self, c: char, out: &mut impl FnMut(char)) -> Expect {
        match (self.expect, c) {
            (Expect::Text, '<') => self.begin(Expect::TagName),
            (Expect::Text, '&') => self.begin(Expect::Entity),
            (Expect::Text, _) => {
                out(c);
                Expect::Text
            }
            (Expect::TagName, _) => self.tag_name_goes_on(c, out),
            (Expect::TagEnd, '>') => self.tag_ended(out),
            (Expect::TagEnd, '"' | '\'') => Expect::Quote(c),
            (Expect::TagEnd, _) => Expect::TagEnd,
            (Expect::Quote(quote), _) => {
                if c == quote {
                    Expect::TagEnd
                } else {
                    Expect::Quote(quote)
                }
            }
            (Expect::CommentEnd(2..), '>') => Expect::Text,
            (Expect::CommentEnd(seen), '-') => Expect::CommentEnd(seen.saturating_add(1)),
            (Expect::CommentEnd(_), _) => Expect::CommentEnd(0),
            (Expect::ElementEnd { element, seen }, _) => self.element_goes_on(element, seen, c),
            (Expect::Entity, _) => self.entity_goes_on(c, out),
        }
    }

    fn begin(&mut self, expect: Expect) -> Expect {
        self.name.clear();
        expect
    }

    fn tag_name_goes_on(&mut self, c: char, out: &mut impl FnMut(char)) -> Expect {
        let is_first = self.name.is_empty();
        match c {
            '>' if !is_first => self.tag_ended(out),
            'a'..='z' | 'A'..='Z' | '/' | '!' | '?' => self.push(c, Expect::TagName),
            '0'..='9' | '-' if !is_first => {
                let expect = self.push(c, Expect::TagName);
                if self.name == "!--" { Expect::CommentEnd(0) } else { expect }
            }
            // This is not a tag, but a less-than sign.
            _ if is_first => {
                out('<');
                self.expect = Expect::Text;
                self.character_arrived(c, out)
            }
            '"' | '\'' => Expect::Quote(c),
            _ => Expect::TagEnd,
        }
    }

    /// Adds a character to the name, unless the name is too long already.
    fn push(&mut self, c: char, expect: Expect) -> Expect {
        if self.name.len() < NAME_BYTES_MAX {
            self.name.push(c.to_ascii_lowercase());
        }
        expect
    }

    fn tag_ended(&mut self, out: &mut impl FnMut(char)) -> Expect {
        let name = self.name.trim_matches('/');
        if !INLINE.contains(&name) {
            out(' ');
        }
        match MUTE.into_iter().find(|mute| *mute == self.name) {
            Some(element) => Expect::ElementEnd { element, seen: 0 },
            None => Expect::Text,
        }
    }

    fn element_goes_on(&mut self, element: &'static str, seen: usize, c: char) -> Expect {
        let expected = ['<', '/'].into_iter().chain(element.chars()).nth(seen);
        match expected {
            Some(expected) if c.to_ascii_lowercase() == expected => {
                Expect::ElementEnd { element, seen: seen + 1 }
            }
            None if c == '>' => Expect::Text,
            None => self.begin(Expect::TagEnd),
            Some(_) => Expect::ElementEnd { element, seen: usize::from(c == '<') },
        }
    }

    fn entity_goes_on(&mut self, c: char, out: &mut impl FnMut(char)) -> Expect {
        if (c.is_ascii_alphanumeric() || c == '#') && self.name.len() < NAME_BYTES_MAX {
            self.name.push(c);
            return Expect::Entity;
        }
        self.expect = Expect::Text;
        match entity(&self.name) {
            Some(character) if c == ';' => {
                out(character);
                return Expect::Text;
            }
            Some(character) => out(character),
            None => ['&'].into_iter().chain(self.name.chars()).for_each(&mut *out),
        }
        self.character_arrived(c, out)
    }
}

/// The character of the entity with this name or number. Only names that are usual in mail are
/// known.
fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let number = match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => number.parse(),
        };
        return number.ok().and_then(char::from_u32);
    }
    let known = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "zwnj" | "shy" | "zwj" => '\u{ad}',
        "hellip" => '…',
        "mdash" => '—',
        "ndash" => '–',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        "laquo" => '«',
        "raquo" => '»',
        "bull" => '•',
        "middot" => '·',
        "euro" => '€',
        "pound" => '£',
        "copy" => '©',
        "reg" => '®',
        "trade" => '™',
        "deg" => '°',
        "Auml" => 'Ä',
        "auml" => 'ä',
        "Ouml" => 'Ö',
        "ouml" => 'ö',
        "Uuml" => 'Ü',
        "uuml" => 'ü',
        "szlig" => 'ß',
        "Eacute" => 'É',
        "eacute" => 'é',
        "egrave" => 'è',
        "ecirc" => 'ê',
        "agrave" => 'à',
        "aacute" => 'á',
        "ccedil" => 'ç',
        "iacute" => 'í',
        "ntilde" => 'ñ',
        "oacute" => 'ó',
        "ocirc" => 'ô',
        "oslash" => 'ø',
        "aring" => 'å',
        "uacute" => 'ú',
        "aelig" => 'æ',
        _ => return None,
    };
    Some(known)
}
