//! Parses the terms of a query.

use super::day::QueryDay;
use super::phrase::Phrase;
use super::{Criterion, TERMS_MAX, Term};
use alloc::vec::Vec;

/// The iterator over the terms of a text.
pub(super) struct Terms<'a>(pub(super) &'a str);

impl Iterator for Terms<'_> {
    type Item = Term;

    fn next(&mut self) -> Option<Term> {
        loop {
            let rest = self.0.trim_start();
            let (is_negated, what) = match rest.strip_prefix('-') {
                Some(after) if !after.starts_with(char::is_whitespace) && !after.is_empty() => {
                    (true, after)
                }
                _ => (false, rest),
            };
            if what.is_empty() {
                return None;
            }
            let (what, rest) = first(what);
            self.0 = rest;
            if let Some(what) = what {
                return Some(Term { is_negated, what });
            }
        }
    }
}

/// Whether a text that is typed without quotes is parsed as a search for this text anywhere.
pub(super) fn is_text(text: &str) -> bool {
    Terms(text).next().is_some_and(
        |term| matches!(&term.what, Criterion::Anywhere(phrase) if phrase.text() == text),
    )
}

/// Splits a text that does not begin with a space into its first term and the rest. The term is
/// `None` if it is empty.
fn first(text: &str) -> (Option<Criterion>, &str) {
    if let Some((words, rest)) = quoted(text) {
        return (Phrase::of(words).map(Criterion::Anywhere), rest);
    }
    let (word, rest) = text.split_at(
        text.find(|character: char| character.is_whitespace() || character == '"')
            .unwrap_or(text.len()),
    );
    let Some((name, value)) = word.split_once(':') else { return (anywhere(word), rest) };
    if value.is_empty()
        && let Some((words, rest)) = quoted(rest)
        && let Some(what) = Phrase::of(words).and_then(|words| of_field(name, words))
    {
        return (Some(what), rest);
    }
    let what = of_state(name, value)
        .or_else(|| of_day(name, value))
        .or_else(|| Phrase::of(value).and_then(|value| of_field(name, value)));
    (what.or_else(|| anywhere(word)), rest)
}

/// The words that look like operators of other programs, but are texts here.
pub(super) fn not_understood(typed: &str) -> Vec<&str> {
    let (mut found, mut rest) = (Vec::new(), typed.trim_start());
    while !rest.is_empty() && found.len() < TERMS_MAX {
        let what = rest.strip_prefix('-').filter(|what| !what.is_empty()).unwrap_or(rest);
        let (term, after) = first(what);
        let word = what.get(..what.len() - after.len()).unwrap_or_default();
        if let Some(Criterion::Anywhere(_)) = term
            && is_like_operator(word, after)
        {
            found.push(word);
        }
        rest = after.trim_start();
    }
    found
}

/// Whether the word looks like an operator, such as `cc:grace`, `before:yesterday` or `OR`. A web
/// address is not an operator, and neither is the prefix of a subject (`Re:`), which has no value.
fn is_like_operator(word: &str, after: &str) -> bool {
    if let "OR" | "AND" | "NOT" = word {
        return true;
    }
    let Some((name, value)) = word.split_once(':') else { return false };
    let has_value = !value.is_empty() && !value.starts_with("//") || after.starts_with('"');
    has_value && name.len() > 1 && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'_'))
}

fn anywhere(word: &str) -> Option<Criterion> {
    Phrase::of(word).map(Criterion::Anywhere)
}

/// Splits a text that begins with a quote into the quoted text and the rest.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let words = text.strip_prefix('"')?;
    Some(words.split_once('"').unwrap_or((words, "")))
}

fn of_field(name: &str, phrase: Phrase) -> Option<Criterion> {
    let is = |known| name.eq_ignore_ascii_case(known);
    match () {
        () if is("from") => Some(Criterion::From(phrase)),
        () if is("to") => Some(Criterion::To(phrase)),
        () if is("subject") => Some(Criterion::Subject(phrase)),
        () if is("in") => Some(Criterion::In(phrase)),
        () => None,
    }
}

fn of_state(name: &str, value: &str) -> Option<Criterion> {
    let is = |known, state| name.eq_ignore_ascii_case(known) && value.eq_ignore_ascii_case(state);
    match () {
        () if is("has", "attachment") => Some(Criterion::HasAttachment),
        () if is("is", "unread") => Some(Criterion::IsUnread),
        () if is("is", "starred") => Some(Criterion::IsStarred),
        () => None,
    }
}

fn of_day(name: &str, value: &str) -> Option<Criterion> {
    let day = QueryDay::parse(value)?;
    match () {
        () if name.eq_ignore_ascii_case("before") => Some(Criterion::Before(day)),
        () if name.eq_ignore_ascii_case("after") => Some(Criterion::After(day)),
        () => None,
    }
}
