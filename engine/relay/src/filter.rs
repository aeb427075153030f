//! Asks a content filter about a message, over HTTP in the protocol of rspamd. Each connection has
//! one request, with the message and its envelope, and one response (`response`) in JSON.
//!
//! | the filter's action | the message |
//! |---|---|
//! | `no action` | is accepted |
//! | `add header`, `rewrite subject` | is suspicious; the reason is its score and highest symbols |
//! | `soft reject`, `greylist` | is refused for now |
//! | `reject` | is refused |
//!
//! Invariants:
//! - Texts of the client are sent in fields of the request, without control characters, so they
//!   cannot end a field.
//! - At most [`ANSWER_BYTES_MAX`] of an answer are read. A longer, incomplete or invalid answer
//!   counts as no answer.
//! - The filter's text for the client is printable ASCII, on one line.

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
/// The most symbols that are named.
const SYMBOLS_MAX: usize = 6;
/// The highest score that is shown. A higher score is shown as this one.
const POINTS_MAX: f64 = 1e6;
/// The most characters of a symbol, and of the filter's text for the client.
const WORD_CHARACTERS_MAX: usize = 64;
const WORDS_CHARACTERS_MAX: usize = 200;

/// The envelope of a message, as the filter gets it.
#[derive(Clone, Debug)]
pub struct FilterEnvelope<'a> {
    /// The address of the client.
    pub address: IpAddr,
    /// The name of the client in EHLO.
    pub hello: &'a str,
    /// The reverse path. Empty: no sender.
    pub reverse_path: &'a str,
    /// The recipients.
    pub recipients: &'a [String],
    /// The name of this server.
    pub hostname: &'a str,
    /// The identifier of the message in the log.
    pub identifier: &'a str,
}

/// A filter's verdict on a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FilterVerdict {
    /// The message is accepted.
    Clean,
    /// The message is suspicious, for this reason.
    Suspect(String),
    /// The message is refused for now, with this text, if not empty.
    Later(String),
    /// The message is refused, with this text, if not empty.
    Never(String),
}

/// A question about one message.
pub struct FilterQuestion {
    head: Vec<u8>,
    message: Vec<u8>,
    /// The number of bytes of the head and the message that were sent.
    sent: usize,
    response: Response,
    verdict: Option<Option<FilterVerdict>>,
}

/// The filter's answer.
#[derive(Deserialize)]
struct FilterReply {
    action: String,
    score: f64,
    required_score: f64,
    #[serde(default)]
    symbols: BTreeMap<String, Symbol>,
    #[serde(default)]
    messages: RspamdMessages,
}

#[derive(Deserialize)]
struct Symbol {
    #[serde(default)]
    score: f64,
}

#[derive(Default, Deserialize)]
struct RspamdMessages {
    smtp_message: Option<String>,
}

impl FilterQuestion {
    /// `host`: the name of the filter, with its port. `message`: the message as it came.
    pub fn about(
        message: Vec<u8>,
        envelope: &FilterEnvelope<'_>,
        host: &str,
        password: Option<&str>,
    ) -> FilterQuestion {
        let head = head(message.len(), envelope, host, password).into_bytes();
        let response = Response::of("application/json", ANSWER_BYTES_MAX);
        FilterQuestion { head, message, sent: 0, response, verdict: None }
    }

    /// Resets the question, so that it is sent to another address from its beginning.
    pub fn again(self) -> FilterQuestion {
        let response = Response::of("application/json", ANSWER_BYTES_MAX);
        FilterQuestion { sent: 0, response, verdict: None, ..self }
    }

    /// The result. `None`: it is not known yet. `Some(None)`: the filter has given no valid answer.
    pub fn verdict(&self) -> Option<Option<&FilterVerdict>> {
        self.verdict.as_ref().map(Option::as_ref)
    }

    /// Sets the result if the response is complete.
    fn read_response(&mut self) {
        if self.verdict.is_none() {
            self.verdict = self.response.body().map(|text| text.and_then(read));
        }
    }
}

impl Speaker for FilterQuestion {
    fn output(&self) -> &[u8] {
        let of_message =
            || self.message.get(self.sent.saturating_sub(self.head.len())..).unwrap_or_default();
        self.head.get(self.sent..).filter(|rest| !rest.is_empty()).unwrap_or_else(of_message)
    }

    fn sent(&mut self, count: usize) {
        self.sent += count;
    }

    fn arrived(&mut self, bytes: &[u8]) {
        self.response.arrived(bytes);
        self.read_response();
    }

    fn lost(&mut self, lost: Lost) {
        if lost == Lost::Closed {
            self.response.ended()
        } else {
            self.response.failed()
        }
        self.read_response();
    }
}

impl fmt::Debug for FilterQuestion {
    /// Omits the message and the password, so that no log holds them.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Question")
            .field("sent", &self.sent)
            .field("verdict", &self.verdict)
            .finish_non_exhaustive()
    }
}

/// The head of the request for a message of `length` bytes.
fn head(
    length: usize,
    envelope: &FilterEnvelope<'_>,
    host: &str,
    password: Option<&str>,
) -> String {
    let mut head =
        format!("POST /checkv2 HTTP/1.0\r\nHost: {host}\r\nContent-Length: {length}\r\n");
    let mut field = |name: &str, value: &str| {
        let value = value.chars().filter(|character| !character.is_control()).collect::<String>();
        head += &format!("{name}: {value}\r\n");
    };
    field("IP", &envelope.address.to_canonical().to_string());
    field("Helo", envelope.hello);
    field("From", &format!("<{}>", envelope.reverse_path));
    envelope.recipients.iter().for_each(|recipient| field("Rcpt", &format!("<{recipient}>")));
    field("Hostname", envelope.hostname);
    field("Queue-Id", envelope.identifier);
    password.into_iter().for_each(|password| field("Password", password));
    head + "\r\n"
}

/// The verdict in an answer. `None`: the answer is not valid.
fn read(text: &[u8]) -> Option<FilterVerdict> {
    let answer: FilterReply = serde_json::from_slice(text).ok()?;
    let words = answer.messages.smtp_message.as_deref().unwrap_or_default();
    let words = printable(words, WORDS_CHARACTERS_MAX);
    match answer.action.as_str() {
        "no action" => Some(FilterVerdict::Clean),
        "add header" | "rewrite subject" => Some(FilterVerdict::Suspect(reason(&answer))),
        "soft reject" | "greylist" => Some(FilterVerdict::Later(words)),
        "reject" => Some(FilterVerdict::Never(words)),
        _ => None,
    }
}

/// Why a message is suspicious: its score, and the symbols with the highest scores.
fn reason(answer: &FilterReply) -> String {
    let FilterReply { score, required_score, symbols, .. } = answer;
    let mut symbols: Vec<(&String, f64)> =
        symbols.iter().map(|(name, symbol)| (name, symbol.score)).collect();
    symbols.retain(|(_, score)| *score > 0.0);
    symbols.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let named =
        symbols.iter().take(SYMBOLS_MAX).map(|(name, _)| printable(name, WORD_CHARACTERS_MAX));
    let named = named.collect::<Vec<_>>().join(", ");
    let [score, required_score] =
        [score, required_score].map(|points| points.clamp(-POINTS_MAX, POINTS_MAX));
    let behind = if named.is_empty() { "" } else { ": " };
    format!("spam score {score:.2} of {required_score:.2}{behind}{named}")
}

/// The printable ASCII characters of `text`, at most `most` of them.
fn printable(text: &str, most: usize) -> String {
    text.chars()
        .filter(|character| character.is_ascii_graphic() || *character == ' ')
        .take(most)
        .collect()
}
