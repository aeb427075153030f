//! Words that stand one behind the other, to be found in a text.
//!
//! Upper and lower case are one, and so is what their change makes equal: letters are made lower, upper and lower again, by which `ß` and `ss`, `ς` and `σ` meet. Any
//! space between words, a line's end among it, is one space.
//!
//! A text is looked at once, letter by letter, after Knuth, Morris and Pratt: however a text and a phrase are made, the work is linear.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::TERM_LETTERS_MAX;

/// At least one word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Phrase {
    /// As it was typed, with one space between words.
    text: String,
    /// The same, folded.
    letters: Vec<char>,
    /// For each letter: if it is the first that does not fit, how many letters before it are still as the phrase begins.
    fallbacks: Vec<usize>,
}

impl Phrase {
    /// The words of a text, if there are any.
    pub(super) fn of(text: &str) -> Option<Phrase> {
        let mut kept: String = spaced(text).take(TERM_LETTERS_MAX).collect();
        kept.truncate(kept.trim_end().len());
        let mut letters = Vec::new();
        any_folded(&kept, |letter| {
            letters.push(letter);
            false
        });
        (!kept.is_empty()).then(|| Phrase { text: kept, fallbacks: fallbacks(&letters), letters })
    }

    /// As it was typed.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it stands in a text.
    pub(super) fn is_in(&self, text: &str) -> bool {
        let mut fitting = 0;
        any_folded(text, |letter| {
            fitting = self.after(fitting, letter);
            fitting == self.letters.len()
        })
    }

    /// Whether a text is this and nothing else.
    pub(super) fn is(&self, text: &str) -> bool {
        let mut letters = self.letters.iter();
        !any_folded(text.trim_end(), |letter| letters.next() != Some(&letter))
            && letters.next().is_none()
    }

    /// How many letters fit behind `letter`, if `fitting` did before it.
    fn after(&self, mut fitting: usize, letter: char) -> usize {
        loop {
            if self.letters.get(fitting) == Some(&letter) {
                return fitting + 1;
            }
            if fitting == 0 {
                return 0;
            }
            fitting = self.fallbacks.get(fitting).copied().unwrap_or_default();
        }
    }
}

fn fallbacks(letters: &[char]) -> Vec<usize> {
    let mut phrase = Phrase {
        text: String::new(),
        letters: letters.into(),
        fallbacks: Vec::with_capacity(letters.len()),
    };
    phrase.fallbacks.push(0);
    let mut fitting = 0;
    for letter in letters.iter().skip(1) {
        phrase.fallbacks.push(fitting);
        fitting = phrase.after(fitting, *letter);
    }
    phrase.fallbacks
}

/// The letters of a text, with one space for each row of them, and none in front.
fn spaced(text: &str) -> impl Iterator<Item = char> {
    let mut is_behind_space = true;
    text.chars().filter_map(move |letter| {
        let is_space = letter.is_whitespace();
        let is_kept = !(is_space && is_behind_space);
        is_behind_space = is_space;
        is_kept.then_some(if is_space { ' ' } else { letter })
    })
}

/// Whether one of the letters of a text, folded, is what is looked for: told one by one, since a search has many of them to go through, and nearly all are of ASCII.
fn any_folded(text: &str, mut is_it: impl FnMut(char) -> bool) -> bool {
    spaced(text).any(|letter| {
        if letter.is_ascii() {
            return is_it(letter.to_ascii_lowercase());
        }
        // Lower first, since there is a great `ẞ` whose upper case it is already.
        letter
            .to_lowercase()
            .flat_map(char::to_uppercase)
            .flat_map(char::to_lowercase)
            .any(&mut is_it)
    })
}

/// As it is typed behind the name of a field.
impl fmt::Display for Phrase {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quote = if self.text.contains(' ') { "\"" } else { "" };
        write!(out, "{quote}{}{quote}", self.text)
    }
}
