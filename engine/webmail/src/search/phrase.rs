//! A phrase: consecutive words to find in a text.
//!
//! Case does not matter. Characters are converted to lower, upper and again lower case, by which
//! `ß` equals `ss`, and `ς` equals `σ`. Any white space between words equals one space, also a line
//! end.
//!
//! A text is scanned once, by the algorithm of Knuth, Morris and Pratt. So the work is linear for
//! any text and any phrase.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::TERM_CHARS_MAX;

/// At least one word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Phrase {
    /// The words as typed, with one space between them.
    text: String,
    /// The same, folded.
    characters: Vec<char>,
    /// For each position: if that character does not match, how many characters before it still
    /// match the phrase's beginning.
    fallbacks: Vec<usize>,
}

impl Phrase {
    /// The phrase of a text, if that has any words.
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

    /// The words as typed.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it occurs in a text.
    pub(super) fn is_in(&self, text: &str) -> bool {
        let mut fitting = 0;
        any_folded(text, |character| {
            fitting = self.after(fitting, character);
            fitting == self.characters.len()
        })
    }

    /// Whether a text consists of the phrase alone.
    pub(super) fn is(&self, text: &str) -> bool {
        let mut characters = self.characters.iter();
        !any_folded(text.trim_end(), |character| characters.next() != Some(&character))
            && characters.next().is_none()
    }

    /// How many characters match after `character`, if `fitting` matched before it.
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

/// The characters of a text, with white space collapsed and none at the front.
fn spaced(text: &str) -> impl Iterator<Item = char> {
    let mut is_behind_space = true;
    text.chars().filter_map(move |character| {
        let is_space = character.is_whitespace();
        let is_kept = !(is_space && is_behind_space);
        is_behind_space = is_space;
        is_kept.then_some(if is_space { ' ' } else { character })
    })
}

/// Whether `is_it` accepts one of the case-folded characters of a text. Nearly all characters of a
/// search are ASCII, so those take a short path.
fn any_folded(text: &str, mut is_it: impl FnMut(char) -> bool) -> bool {
    spaced(text).any(|character| {
        if character.is_ascii() {
            return is_it(character.to_ascii_lowercase());
        }
        // First to lower case: the capital `ẞ` is its own upper case.
        character
            .to_lowercase()
            .flat_map(char::to_uppercase)
            .flat_map(char::to_lowercase)
            .any(&mut is_it)
    })
}

/// The phrase as a user types it after a field's name.
impl fmt::Display for Phrase {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quote = if self.text.contains(' ') { "\"" } else { "" };
        write!(out, "{quote}{}{quote}", self.text)
    }
}
