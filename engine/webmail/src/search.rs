//! Search queries, and the test whether a message matches a query.
//!
//! ```text
//! query  = *( term SP )
//! term   = [ "-" ] ( field ":" text / "has:attachment" / "is:unread" / "is:starred"
//!          / ( "before:" / "after:" ) day / text )
//! field  = "from" / "to" / "subject" / "in"
//! text   = word / DQUOTE words DQUOTE        ; the second quote may be missing
//! day    = 4DIGIT "-" 1*2DIGIT "-" 1*2DIGIT  ; year, month and day, or with "/"
//! ```
//! All terms must match. `-` negates a term. A text matches anywhere, also within words, since not
//! all languages have spaces between words. Days are those of the user's zone. `after:` includes
//! the messages of the day itself, and `before:` does not.
//!
//! Invariants:
//! - Any input is a query: input that is not another kind of term is a text. A query has at most
//!   [`TERMS_MAX`] terms of at most [`TERM_CHARS_MAX`] characters. The rest of the input is
//!   ignored.
//! - If a query is written by `Display` and parsed again, the result is the same query.
//! - A match allocates no memory, and its time is linear in the texts of the message.

mod day;
mod phrase;
mod terms;

use alloc::vec::Vec;
use core::fmt;
use machine::UnixTime;

use day::QueryDay;
use phrase::Phrase;

/// The maximum number of terms of a query.
pub const TERMS_MAX: usize = 32;

/// The maximum number of characters of a term's text.
pub const TERM_CHARS_MAX: usize = 128;

/// A search query.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Query {
    terms: Vec<Term>,
}

/// The texts and properties of a message that a search uses.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// The name and address of the author.
    pub from: &'a str,
    /// The names and addresses of the recipients.
    pub to: &'a str,
    /// The subject.
    pub subject: &'a str,
    /// The beginning of the text.
    pub snippet: &'a str,
    /// The text, if it is available.
    pub text: Option<&'a str>,
    /// The name of the message's mailbox.
    pub mailbox: &'a str,
    /// The local time when the message arrived: the date and the time of day in the user's zone,
    /// as if they were UTC.
    pub date: UnixTime,
    /// Whether the message is unread.
    pub is_unread: bool,
    /// Whether the message has a star.
    pub is_starred: bool,
    /// Whether the message has an attachment.
    pub has_attachment: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Term {
    is_negated: bool,
    what: Criterion,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Criterion {
    From(Phrase),
    To(Phrase),
    Subject(Phrase),
    In(Phrase),
    HasAttachment,
    IsUnread,
    IsStarred,
    Before(QueryDay),
    After(QueryDay),
    /// The phrase occurs in any of the texts.
    Anywhere(Phrase),
}

impl Query {
    /// Parses user input.
    pub fn parse(typed: &str) -> Query {
        Query { terms: terms::Terms(typed).take(TERMS_MAX).collect() }
    }

    /// The words of the input that look like operators, but are searched as text.
    pub fn not_understood(typed: &str) -> Vec<&str> {
        terms::not_understood(typed)
    }

    /// Whether the query has no terms, so that all messages match.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether a message matches.
    pub fn matches(&self, candidate: &Candidate<'_>) -> bool {
        self.terms.iter().all(|term| term.what.holds(candidate) != term.is_negated)
    }
}

impl Criterion {
    fn holds(&self, of: &Candidate<'_>) -> bool {
        match self {
            Criterion::From(phrase) => phrase.is_in(of.from),
            Criterion::To(phrase) => phrase.is_in(of.to),
            Criterion::Subject(phrase) => phrase.is_in(of.subject),
            Criterion::In(phrase) => phrase.is(of.mailbox),
            Criterion::HasAttachment => of.has_attachment,
            Criterion::IsUnread => of.is_unread,
            Criterion::IsStarred => of.is_starred,
            Criterion::Before(day) => of.date < day.begins(),
            Criterion::After(day) => of.date >= day.begins(),
            Criterion::Anywhere(phrase) => {
                let texts = [of.from, of.to, of.subject, of.snippet, of.text.unwrap_or_default()];
                texts.into_iter().any(|text| phrase.is_in(text))
            }
        }
    }
}

/// The query, as a user could type it.
impl fmt::Display for Query {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, term) in self.terms.iter().enumerate() {
            let space = if number > 0 { " " } else { "" };
            write!(out, "{space}{}{}", if term.is_negated { "-" } else { "" }, term.what)?;
        }
        Ok(())
    }
}

impl fmt::Display for Criterion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Criterion::From(phrase) => write!(out, "from:{phrase}"),
            Criterion::To(phrase) => write!(out, "to:{phrase}"),
            Criterion::Subject(phrase) => write!(out, "subject:{phrase}"),
            Criterion::In(phrase) => write!(out, "in:{phrase}"),
            Criterion::HasAttachment => out.write_str("has:attachment"),
            Criterion::IsUnread => out.write_str("is:unread"),
            Criterion::IsStarred => out.write_str("is:starred"),
            Criterion::Before(day) => write!(out, "before:{day}"),
            Criterion::After(day) => write!(out, "after:{day}"),
            Criterion::Anywhere(phrase) if terms::is_text(phrase.text()) => {
                out.write_str(phrase.text())
            }
            Criterion::Anywhere(phrase) => write!(out, "\"{}\"", phrase.text()),
        }
    }
}
