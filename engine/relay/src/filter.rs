//! What a filter makes of a letter: it is asked by HTTP, as rspamd has it. One request, with the letter and what was said of it, one response (`response`) in JSON, on a connection of its own.
//!
//! | it says | the letter |
//! |---|---|
//! | `no action` | is taken |
//! | `add header`, `rewrite subject` | is suspicious, for the points that it has and what most of them are for |
//! | `soft reject`, `greylist` | is refused for now |
//! | `reject` | is refused |
//!
//! Invariants:
//! - What the client said stands in fields of the request, and never ends one: of it only what may stand in a line is sent.
//! - Of an answer at most [`ANSWER_BYTES_MAX`] are read; what is longer, not whole, or no such answer, is none.
//! - What the filter says to be said on is printable ASCII, in one line.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;

use serde::Deserialize;

use crate::outcome::Lost;
use crate::response::Response;
use crate::speaker::Speaker;

/// The longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// So many of what a letter has points for are named.
const SYMBOLS_MAX: usize = 6;
/// Points beyond this are said to be so many.
const POINTS_MAX: f64 = 1e6;
/// Characters of a word of the filter's, and of what it wants a client to be told.
const WORD_CHARACTERS_MAX: usize = 64;
const WORDS_CHARACTERS_MAX: usize = 200;

/// What was said of a letter.
#[derive(Clone, Debug)]
pub struct Said<'a> {
    /// Where it comes from.
    pub address: IpAddr,
    /// What the client calls itself.
    pub hello: &'a str,
    /// Who sends it; empty: nobody.
    pub reverse_path: &'a str,
    /// Whom it is for.
    pub recipients: &'a [String],
    /// Who takes it.
    pub hostname: &'a str,
    /// By what the log knows it.
    pub identifier: &'a str,
}

/// What a filter makes of a letter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Nothing.
    Clean,
    /// It is suspicious, for this reason.
    Suspect(String),
    /// It is not wanted now, in these words, if there are any.
    Later(String),
    /// It is not wanted, in these words, if there are any.
    Never(String),
}

/// A question about one letter.
pub struct Question {
    head: Vec<u8>,
    letter: Vec<u8>,
    /// How much of both was sent.
    sent: usize,
    response: Response,
    verdict: Option<Option<Verdict>>,
}

/// What the filter answers.
#[derive(Deserialize)]
struct Answer {
    action: String,
    score: f64,
    required_score: f64,
    #[serde(default)]
    symbols: BTreeMap<String, Symbol>,
    #[serde(default)]
    messages: Messages,
}

#[derive(Deserialize)]
struct Symbol {
    #[serde(default)]
    score: f64,
}

#[derive(Default, Deserialize)]
struct Messages {
    smtp_message: Option<String>,
}

impl Question {
    /// `host`: by what the filter is known, with its port. `letter`: as it came.
    pub fn about(letter: Vec<u8>, said: &Said<'_>, host: &str, password: Option<&str>) -> Question {
        let head = head(letter.len(), said, host, password).into_bytes();
        let response = Response::of("application/json", ANSWER_BYTES_MAX);
        Question { head, letter, sent: 0, response, verdict: None }
    }

    /// The same, to be asked at another address from the beginning.
    pub fn again(self) -> Question {
        let response = Response::of("application/json", ANSWER_BYTES_MAX);
        Question { sent: 0, response, verdict: None, ..self }
    }

    /// What came of it: a verdict, or none. `None`: it is not over.
    pub fn verdict(&self) -> Option<Option<&Verdict>> {
        self.verdict.as_ref().map(Option::as_ref)
    }

    fn look(&mut self) {
        if self.verdict.is_none() {
            self.verdict = self.response.body().map(|text| text.and_then(read));
        }
    }
}

impl Speaker for Question {
    fn output(&self) -> &[u8] {
        let of_letter =
            || self.letter.get(self.sent.saturating_sub(self.head.len())..).unwrap_or_default();
        self.head.get(self.sent..).filter(|rest| !rest.is_empty()).unwrap_or_else(of_letter)
    }

    fn sent(&mut self, count: usize) {
        self.sent += count;
    }

    fn arrived(&mut self, bytes: &[u8]) {
        self.response.arrived(bytes);
        self.look();
    }

    fn lost(&mut self, lost: Lost) {
        if lost == Lost::Closed {
            self.response.ended()
        } else {
            self.response.failed()
        }
        self.look();
    }
}

impl fmt::Debug for Question {
    /// Without the password, so that no log ever holds it, and without the letter.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Question")
            .field("sent", &self.sent)
            .field("verdict", &self.verdict)
            .finish_non_exhaustive()
    }
}

fn head(length: usize, said: &Said<'_>, host: &str, password: Option<&str>) -> String {
    let mut head =
        format!("POST /checkv2 HTTP/1.0\r\nHost: {host}\r\nContent-Length: {length}\r\n");
    let mut field = |name: &str, value: &str| {
        let value = value.chars().filter(|character| !character.is_control()).collect::<String>();
        head += &format!("{name}: {value}\r\n");
    };
    field("IP", &said.address.to_canonical().to_string());
    field("Helo", said.hello);
    field("From", &format!("<{}>", said.reverse_path));
    said.recipients.iter().for_each(|recipient| field("Rcpt", &format!("<{recipient}>")));
    field("Hostname", said.hostname);
    field("Queue-Id", said.identifier);
    password.into_iter().for_each(|password| field("Password", password));
    head + "\r\n"
}

/// What an answer says. `None`: it is none.
fn read(text: &[u8]) -> Option<Verdict> {
    let answer: Answer = serde_json::from_slice(text).ok()?;
    let words = answer.messages.smtp_message.as_deref().unwrap_or_default();
    let words = sayable(words, WORDS_CHARACTERS_MAX);
    match answer.action.as_str() {
        "no action" => Some(Verdict::Clean),
        "add header" | "rewrite subject" => Some(Verdict::Suspect(reason(&answer))),
        "soft reject" | "greylist" => Some(Verdict::Later(words)),
        "reject" => Some(Verdict::Never(words)),
        _ => None,
    }
}

/// Why a letter is suspicious: its points, and what has brought most of them.
fn reason(answer: &Answer) -> String {
    let Answer { score, required_score, symbols, .. } = answer;
    let mut symbols: Vec<(&String, f64)> =
        symbols.iter().map(|(name, symbol)| (name, symbol.score)).collect();
    symbols.retain(|(_, score)| *score > 0.0);
    symbols.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let named =
        symbols.iter().take(SYMBOLS_MAX).map(|(name, _)| sayable(name, WORD_CHARACTERS_MAX));
    let named = named.collect::<Vec<_>>().join(", ");
    let [score, required_score] =
        [score, required_score].map(|points| points.clamp(-POINTS_MAX, POINTS_MAX));
    let behind = if named.is_empty() { "" } else { ": " };
    format!("the filter gives it {score:.2} of {required_score:.2} points{behind}{named}")
}

fn sayable(text: &str, most: usize) -> String {
    text.chars()
        .filter(|character| character.is_ascii_graphic() || *character == ' ')
        .take(most)
        .collect()
}
