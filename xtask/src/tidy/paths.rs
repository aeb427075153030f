//! The paths in a source: `crate::a::B`, `super::c`, and names such as `child::D`.

/// The beginning of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Start {
    /// `crate::`, `super::` or `self::`.
    Keyword,
    /// A name that the source knows: a crate, a child, or an imported item.
    Name,
}

/// A path with a `::` in it, as its words.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Named {
    pub(super) start: Start,
    pub(super) words: Vec<String>,
    /// Whether the path is in a `pub use`, which only passes the name on to other modules.
    pub(super) is_handed_on: bool,
}

/// A word, `::`, or one other character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Colons,
    Other(char),
}

/// All paths in `code`. Its comments and literals must be blanked. A group in braces results in a
/// path for each of its members.
pub(super) fn paths(code: &str) -> Vec<Named> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    let (mut at, mut use_is_public, mut is_in_use) = (0, false, false);
    while let Some(token) = tokens.get(at) {
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        match token {
            Token::Word("use") => {
                is_in_use = true;
                use_is_public = matches!(before, Some(Token::Word("pub") | Token::Other(')')));
            }
            Token::Other(';') => is_in_use = false,
            Token::Word(word)
                if before != Some(&Token::Colons) && tokens.get(at + 1) == Some(&Token::Colons) =>
            {
                let start = if matches!(*word, "crate" | "super" | "self") {
                    Start::Keyword
                } else {
                    Start::Name
                };
                let mut all = Vec::new();
                at = tree(&tokens, at, &[], &mut all);
                let is_handed_on = is_in_use && use_is_public;
                found.extend(all.into_iter().map(|words| Named { start, words, is_handed_on }));
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Parses a path or group at `at`, each path with the prefix `before`. Returns the end's position.
fn tree(
    tokens: &[Token<'_>],
    mut at: usize,
    before: &[String],
    found: &mut Vec<Vec<String>>,
) -> usize {
    let mut words = before.to_vec();
    loop {
        match tokens.get(at) {
            Some(Token::Word(word)) => words.push(word.to_string()),
            Some(Token::Other('{')) => return group(tokens, at + 1, &words, found),
            _ => break,
        }
        at += 1;
        if tokens.get(at) != Some(&Token::Colons) {
            break;
        }
        at += 1;
    }
    found.push(words);
    at
}

/// Parses the members of a group after its opening brace. Returns the position after the group.
fn group(
    tokens: &[Token<'_>],
    mut at: usize,
    before: &[String],
    found: &mut Vec<Vec<String>>,
) -> usize {
    loop {
        match tokens.get(at) {
            None => return at,
            Some(Token::Other('}')) => return at + 1,
            Some(Token::Word("as")) => at += 2,
            Some(Token::Word(_) | Token::Other('{')) => at = tree(tokens, at, before, found),
            Some(_) => at += 1,
        }
    }
}

fn tokens(code: &str) -> Vec<Token<'_>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut rest = code;
    while let Some(c) = rest.chars().next() {
        let length = if is_word(c) {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            tokens.push(Token::Word(rest.get(..end).unwrap_or_default()));
            end
        } else if rest.starts_with("::") {
            tokens.push(Token::Colons);
            2
        } else {
            if !c.is_whitespace() {
                tokens.push(Token::Other(c));
            }
            c.len_utf8()
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(code: &str) -> Vec<String> {
        paths(code).iter().map(|path| path.words.join("::")).collect()
    }

    #[test]
    fn a_group_is_a_path_for_each_member() {
        assert_eq!(
            found("use crate::a::{self, B, c::{D, e as f}};\nlet g = super::super::h(i);\n"),
            [
                "crate::a::self",
                "crate::a::B",
                "crate::a::c::D",
                "crate::a::c::e",
                "super::super::h"
            ]
        );
        assert_eq!(found("use crate::{a, b::C};"), ["crate::a", "crate::b::C"]);
    }

    #[test]
    fn a_name_without_colons_is_no_path() {
        assert_eq!(found("fn a(b: C) -> D { e() }"), [""; 0]);
        assert_eq!(found("child::new(other)"), ["child::new"]);
    }

    #[test]
    fn paths_in_a_public_use_are_marked() {
        let handed =
            |code: &str| paths(code).iter().map(|path| path.is_handed_on).collect::<Vec<_>>();
        assert_eq!(handed("pub use a::B; a::b()"), [true, false]);
        assert_eq!(handed("pub(crate) use a::B; use a::B;"), [true, false]);
    }
}
