//! The text of an HTML page, without markup. The result is shown as text and never as HTML again,
//! so nothing here has to be secure.
//!
//! Invariants: each character is examined a bounded number of times, and only the beginning of a
//! tag's or an entity's name is kept. The text of [`text_of_html`] is at most four times as long as
//! the HTML.

use alloc::string::String;

use crate::shown::is_shown;

/// The position in the page.
#[derive(Debug, Default)]
pub(crate) struct Html {
    expect: Expect,
    /// The name of the tag or entity that has begun.
    name: String,
    /// Whether the text is preformatted: its spaces and line ends are shown.
    is_preformatted: bool,
}

/// A piece of the content of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HtmlPiece {
    /// A character of the text. A white space separates words.
    Character(char),
    /// A character of preformatted text, but not a line end.
    Preformatted(char),
    /// The place between two pieces of text.
    Gap(Gap),
    /// An element that shows something other than text.
    Object,
}

/// A place between two pieces of text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Gap {
    /// The pieces are separate words.
    Word,
    /// A line ends.
    Line,
    /// A block begins or ends. Its text has lines of its own.
    Block,
    /// A paragraph begins or ends, with an empty line between it and other text.
    Paragraph,
    /// A quote begins.
    QuoteBegin,
    /// A quote ends.
    QuoteEnd,
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
const MUTE: [&str; 4] = ["style", "script", "title", "template"];

/// Elements that do not separate words.
const INLINE: [&str; 15] = [
    "a", "abbr", "b", "big", "em", "font", "i", "mark", "s", "small", "span", "strong", "sub",
    "sup", "u",
];

/// Elements with lines of their own.
const BLOCKS: [&str; 21] = [
    "address", "article", "aside", "center", "dd", "div", "dt", "fieldset", "footer", "form",
    "header", "li", "main", "nav", "section", "table", "tbody", "tfoot", "thead", "tr", "caption",
];

/// Elements that are separated from other text by an empty line.
const PARAGRAPHS: [&str; 13] =
    ["dl", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "ol", "p", "pre", "ul", "hr"];

/// Elements that show something other than text.
const OBJECTS: [&str; 11] = [
    "audio", "canvas", "hr", "image", "img", "input", "math", "select", "svg", "textarea", "video",
];

const NAME_BYTES_MAX: usize = 12;

/// The greatest depth of a quote that is marked.
const QUOTES_MAX: usize = 8;

/// The number of bytes of HTML that are examined together by [`is_blank`].
const STEP_BYTES: usize = 256;

/// The text of an HTML page, with a line for each line of the page. Lines of quotes begin with `>`.
pub fn text_of_html(html: &str) -> String {
    let mut lines = TextLines::default();
    Html::default().text_arrived(html, &mut |piece| lines.piece_arrived(piece));
    lines.text
}

/// Whether an HTML page shows nothing: no text, no images, and nothing else.
pub fn is_blank(html: &str) -> bool {
    let (mut reader, mut is_blank, mut rest) = (Html::default(), true, html);
    while is_blank && !rest.is_empty() {
        let (step, after) =
            rest.split_at_checked(rest.ceil_char_boundary(STEP_BYTES)).unwrap_or((rest, ""));
        reader.text_arrived(step, &mut |piece| {
            is_blank &= match piece {
                HtmlPiece::Character(c) | HtmlPiece::Preformatted(c) => {
                    c.is_whitespace() || !is_shown(c)
                }
                HtmlPiece::Gap(_) => true,
                HtmlPiece::Object => false,
            };
        });
        rest = after;
    }
    is_blank
}

/// The lines of a page's text.
#[derive(Default)]
struct TextLines {
    text: String,
    /// The number of line ends before the next word.
    line_ends: usize,
    is_spaced: bool,
    quotes: usize,
}

impl TextLines {
    fn piece_arrived(&mut self, piece: HtmlPiece) {
        match piece {
            HtmlPiece::Character(c) if c.is_whitespace() => self.is_spaced = true,
            HtmlPiece::Preformatted('\t') => self.push('\t'),
            HtmlPiece::Character(c) | HtmlPiece::Preformatted(c) if c.is_control() => {}
            HtmlPiece::Character(c) | HtmlPiece::Preformatted(c) => self.push(c),
            HtmlPiece::Gap(gap) => self.gap_arrived(gap),
            HtmlPiece::Object => {}
        }
    }

    fn gap_arrived(&mut self, gap: Gap) {
        self.is_spaced |= gap == Gap::Word;
        let line_ends = match gap {
            Gap::Word => self.line_ends,
            Gap::Line => self.line_ends + 1,
            Gap::Block => self.line_ends.max(1),
            Gap::Paragraph | Gap::QuoteBegin | Gap::QuoteEnd => 2,
        };
        self.line_ends = line_ends.min(2);
        match gap {
            Gap::QuoteBegin => self.quotes += 1,
            Gap::QuoteEnd => self.quotes = self.quotes.saturating_sub(1),
            _ => {}
        }
    }

    fn push(&mut self, c: char) {
        let line_ends = core::mem::take(&mut self.line_ends);
        let is_spaced = core::mem::take(&mut self.is_spaced);
        let is_first = self.text.is_empty();
        if line_ends > 0 && !is_first {
            self.text.extend(core::iter::repeat_n('\n', line_ends));
        }
        if line_ends > 0 || is_first {
            let depth = self.quotes.min(QUOTES_MAX);
            self.text.extend(core::iter::repeat_n('>', depth));
            self.text.extend((depth > 0).then_some(' '));
        } else if is_spaced {
            self.text.push(' ');
        }
        self.text.push(c);
    }
}

impl Html {
    /// Passes the characters of the text in `text` to `out`.
    pub(crate) fn text_arrived(&mut self, text: &str, out: &mut impl FnMut(HtmlPiece)) {
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

    fn character_arrived(&mut self, c: char, out: &mut impl FnMut(HtmlPiece)) -> Expect {
        match (self.expect, c) {
            (Expect::Text, '<') => self.begin(Expect::TagName),
            (Expect::Text, '&') => self.begin(Expect::Entity),
            (Expect::Text, _) => {
                self.push_text(c, out);
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

    fn tag_name_goes_on(&mut self, c: char, out: &mut impl FnMut(HtmlPiece)) -> Expect {
        let is_first = self.name.is_empty();
        match c {
            '>' if !is_first => self.tag_ended(out),
            'a'..='z' | 'A'..='Z' | '/' | '!' | '?' => self.push(c, Expect::TagName),
            '0'..='9' | '-' if !is_first => {
                let expect = self.push(c, Expect::TagName);
                // As in browsers, `<!-->` is a whole comment.
                if self.name == "!--" { Expect::CommentEnd(2) } else { expect }
            }
            // This is not a tag, but a less-than sign.
            _ if is_first => {
                self.push_text('<', out);
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

    fn tag_ended(&mut self, out: &mut impl FnMut(HtmlPiece)) -> Expect {
        let (is_end, name) = (self.name.starts_with('/'), self.name.trim_matches('/'));
        match name {
            "br" => out(HtmlPiece::Gap(Gap::Line)),
            "blockquote" if is_end => out(HtmlPiece::Gap(Gap::QuoteEnd)),
            "blockquote" => out(HtmlPiece::Gap(Gap::QuoteBegin)),
            name if PARAGRAPHS.contains(&name) => out(HtmlPiece::Gap(Gap::Paragraph)),
            name if BLOCKS.contains(&name) => out(HtmlPiece::Gap(Gap::Block)),
            name if INLINE.contains(&name) => {}
            _ => out(HtmlPiece::Gap(Gap::Word)),
        }
        if OBJECTS.contains(&name) {
            out(HtmlPiece::Object);
        }
        if name == "pre" {
            self.is_preformatted = !is_end;
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

    fn entity_goes_on(&mut self, c: char, out: &mut impl FnMut(HtmlPiece)) -> Expect {
        if (c.is_ascii_alphanumeric() || c == '#') && self.name.len() < NAME_BYTES_MAX {
            self.name.push(c);
            return Expect::Entity;
        }
        self.expect = Expect::Text;
        match entity(&self.name) {
            Some(character) if c == ';' => {
                self.push_text(character, out);
                return Expect::Text;
            }
            Some(character) => self.push_text(character, out),
            None => {
                let name = core::mem::take(&mut self.name);
                ['&'].into_iter().chain(name.chars()).for_each(|c| self.push_text(c, out));
                self.name = name;
            }
        }
        self.character_arrived(c, out)
    }

    /// Passes on a character of the text.
    fn push_text(&self, c: char, out: &mut impl FnMut(HtmlPiece)) {
        match (self.is_preformatted, c) {
            (false, _) => out(HtmlPiece::Character(c)),
            (true, '\n') => out(HtmlPiece::Gap(Gap::Line)),
            (true, '\r') => {}
            (true, _) => out(HtmlPiece::Preformatted(c)),
        }
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
