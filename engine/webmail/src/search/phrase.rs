//! A phrase: consecutive words to find in a text.
//!
//! Case is ignored. Characters are converted to lower, to upper and again to lower case. So `ß`
//! equals `ss`, and `ς` equals `σ`. Any white space between words equals one space, even a line
//! end.
//!
//! A text is scanned once, by the algorithm of Knuth, Morris and Pratt. So the work is linear for
//! any text and any phrase.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::TERM_CHARS_MAX;

/// A phrase of at least one word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Phrase {
    /// The words as the user typed them, with one space between two words.
    text: String,
    /// The case-folded characters of `text`.
    characters: Vec<char>,
    /// For each position: the number of characters before it that still match the phrase's
    /// beginning if the character at this position does not match.
    fallbacks: Vec<usize>,
}

impl Phrase {
    /// The phrase of a text, if the text has any words.
    pub(super) fn of(text: &str) -> Option<Phrase> {
        let mut kept: String = spaced(text).take(TERM_CHARS_MAX).collect();
        kept.truncate(kept.trim_end().len());
        let mut characters = Vec::new();
        any_folded(&kept, |character| {
            characters.push(character);
            false
        });
        (!kept.is_empty()).then(|| Phrase {
            text: kept,
            fallbacks: fallbacks(&characters),
            characters,
        })
    }

    /// The words as the user typed them.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the phrase occurs in a text.
    pub(super) fn is_in(&self, text: &str) -> bool {
        let mut fitting = 0;
        any_folded(text, |character| {
            fitting = self.after(fitting, character);
            fitting == self.characters.len()
        })
    }

    /// Whether a text consists only of the phrase.
    pub(super) fn is(&self, text: &str) -> bool {
        let mut characters = self.characters.iter();
        !any_folded(text.trim_end(), |character| characters.next() != Some(&character))
            && characters.next().is_none()
    }

    /// The number of matching characters after `character`, if `fitting` characters matched before
    /// it.
    fn after(&self, mut fitting: usize, character: char) -> usize {
        loop {
            if self.characters.get(fitting) == Some(&character) {
                return fitting + 1;
            }
            if fitting == 0 {
                return 0;
            }
            fitting = self.fallbacks.get(fitting).copied().unwrap_or_default();
        }
    }
}

fn fallbacks(characters: &[char]) -> Vec<usize> {
    let mut phrase = Phrase {
        text: String::new(),
        characters: characters.into(),
        fallbacks: Vec::with_capacity(characters.len()),
    };
    phrase.fallbacks.push(0);
    let mut fitting = 0;
    for character in characters.iter().skip(1) {
        phrase.fallbacks.push(fitting);
        fitting = phrase.after(fitting, *character);
    }
    phrase.fallbacks
}

/// The characters of a text, with white space collapsed, and without white space at the start.
fn spaced(text: &str) -> impl Iterator<Item = char> {
    let mut is_behind_space = true;
    text.chars().filter_map(move |character| {
        let is_space = character.is_whitespace();
        let is_kept = !(is_space && is_behind_space);
        is_behind_space = is_space;
        is_kept.then_some(if is_space { ' ' } else { character })
    })
}

/// Whether `accepts` accepts one of the case-folded characters of a text. Nearly all characters of
/// a search are ASCII, so ASCII has a fast path.
fn any_folded(text: &str, mut accepts: impl FnMut(char) -> bool) -> bool {
    spaced(text).any(|character| {
        if character.is_ascii() {
            return accepts(character.to_ascii_lowercase());
        }
        // The first conversion is to lower case, since the capital `ẞ` has no other upper case.
        character
            .to_lowercase()
            .flat_map(char::to_uppercase)
            .flat_map(char::to_lowercase)
            .any(&mut accepts)
    })
}

/// The phrase, as a user types it after a field's name.
impl fmt::Display for Phrase {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quote = if self.text.contains(' ') { "\"" } else { "" };
        write!(out, "{quote}{}{quote}", self.text)
    }
}
