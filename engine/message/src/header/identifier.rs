//! Identifiers of messages: `<local@domain>`, one or a list.
//!
//! Between identifiers, obsolete syntax allows words, quoted strings and comments, which some
//! programs still write. If there are no angle brackets at all, the words with an `@` are the
//! identifiers.
//!
//! Implements: RFC 5322 sections 3.6.4 and 4.5.4.

/// The identifiers in a field, without angle brackets and otherwise unchanged.
#[derive(Clone, Debug)]
pub struct Identifiers<'a> {
    rest: &'a [u8],
    has_brackets: bool,
}

impl<'a> Identifiers<'a> {
    pub(super) fn new(value: &'a [u8]) -> Identifiers<'a> {
        Identifiers { rest: value, has_brackets: memchr::memchr(b'<', value).is_some() }
    }

    /// The text in the next angle brackets. An opening bracket is ignored if another opening
    /// bracket follows before a closing one.
    fn next_in_brackets(&mut self) -> Option<&'a [u8]> {
        loop {
            let start = memchr::memchr(b'<', self.rest)? + 1;
            self.rest = self.rest.get(start..)?;
            let end = memchr::memchr2(b'>', b'<', self.rest)?;
            let (inside, rest) = self.rest.split_at_checked(end)?;
            self.rest = rest;
            let inside = inside.trim_ascii();
            if rest.starts_with(b">") && is_identifier(inside) {
                return Some(inside);
            }
        }
    }

    fn next_word(&mut self) -> Option<&'a [u8]> {
        loop {
            self.rest = self.rest.trim_ascii_start();
            let ends = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',';
            let end = self.rest.iter().position(ends).unwrap_or(self.rest.len());
            let (word, rest) = self.rest.split_at_checked(end)?;
            if word.is_empty() && rest.is_empty() {
                return None;
            }
            self.rest = rest.get(1..).unwrap_or_default();
            if word.contains(&b'@') && is_identifier(word) {
                return Some(word);
            }
        }
    }
}

/// Whether `word` may be an identifier. It must not have white space or control characters.
fn is_identifier(word: &[u8]) -> bool {
    // Every byte is examined, which needs no branch.
    !word.is_empty()
        && word.iter().fold(true, |is_so, byte| is_so & (*byte > b' ') & (*byte != 0x7f))
}

impl<'a> Iterator for Identifiers<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.has_brackets { self.next_in_brackets() } else { self.next_word() }
    }
}
