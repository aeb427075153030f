//! The client's end of a connection. It sends its output in pieces, in clear text or over TLS, and
//! splits its input into replies.
//!
//! Invariants:
//! - A client gets a positive reply only after it has sent the complete request.
//! - No other data arrives between the reply to STARTTLS or STLS and the TLS handshake.

use std::collections::VecDeque;

use chance::Dice;
use machine::{Instant, Micros};

use super::fixture::HOSTNAME;
use super::tls_client::TlsClient;
use crate::{Client, Connection};

/// A client disconnects after this time without input and output.
const PATIENCE: Micros = Micros::from_secs(400);

pub(super) struct ClientLine {
    pub(super) connection: Connection,
    heard: Vec<u8>,
    /// The length of the start of `heard` that was already searched for the end of a response.
    searched: usize,
    unsaid: Vec<u8>,
    tls: TlsState,
    /// The offset in the output at which each unanswered request ends.
    due: VecDeque<u64>,
    /// The number of bytes of all output so far, and of the part that was sent undamaged.
    output_length: u64,
    passed: u64,
    /// The time at which input last arrived or output could last be sent.
    pub(super) moved: Instant,
}

/// Whether TLS protects the connection.
enum TlsState {
    /// TLS is never used.
    Never,
    /// TLS starts after both sides have agreed.
    Later(Box<TlsClient>),
    Now(Box<TlsClient>),
}

/// The side that sends first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FirstSender {
    /// The machine sends a greeting.
    Machine,
    Client,
}

impl ClientLine {
    pub(super) fn new(connection: Connection, first: FirstSender, now: Instant) -> ClientLine {
        let due = if first == FirstSender::Machine { VecDeque::from([0]) } else { VecDeque::new() };
        ClientLine {
            connection,
            heard: Vec::new(),
            searched: 0,
            unsaid: Vec::new(),
            tls: TlsState::Never,
            due,
            output_length: 0,
            passed: 0,
            moved: now,
        }
    }

    /// Gives the connection the means to use TLS once both sides agree.
    pub(super) fn may_start_tls(&mut self, tls_client: TlsClient) {
        self.tls = TlsState::Later(Box::new(tls_client));
    }

    /// Starts TLS, if [`ClientLine::may_start_tls`] has prepared it.
    pub(super) fn start_tls(&mut self, now: Instant) {
        assert!(
            self.heard.is_empty(),
            "data that arrived before TLS is not an answer to data sent within TLS"
        );
        let TlsState::Later(mut tls_client) = std::mem::replace(&mut self.tls, TlsState::Never)
        else {
            return;
        };
        tls_client.begin(now);
        self.tls = TlsState::Now(tls_client);
    }

    /// The TLS client, if TLS has started.
    pub(super) fn tls_client(&self) -> Option<&TlsClient> {
        if let TlsState::Now(tls_client) = &self.tls { Some(tls_client) } else { None }
    }

    /// Sends a request that gets a response.
    pub(super) fn send_request(&mut self, bytes: &[u8]) {
        self.unsaid.extend_from_slice(bytes);
        self.output_length += bytes.len() as u64;
        self.due.push_back(self.output_length);
    }

    /// Sends data that gets no response.
    pub(super) fn send_data(&mut self, bytes: &[u8]) {
        self.unsaid.extend_from_slice(bytes);
        self.output_length += bytes.len() as u64;
    }

    /// The unparsed input, for clients that parse it themselves.
    pub(super) fn input(&mut self) -> &mut Vec<u8> {
        &mut self.heard
    }

    /// Sends some of the output. In two of three cases, also reads input.
    pub(super) fn step(&mut self, host: &mut Client, now: Instant, dice: &mut Dice) {
        let piece = some_of(&self.unsaid, dice);
        let sent = match &mut self.tls {
            TlsState::Now(tls_client) => {
                let (sound, lost) = tls_client.encrypt(piece, dice);
                self.passed += sound as u64;
                self.unsaid.drain(..sound + lost);
                let sent = host.send(self.connection, some_of(&tls_client.output, dice));
                tls_client.output.drain(..sent);
                sent
            }
            _ => {
                let sent = host.send(self.connection, piece);
                self.passed += sent as u64;
                self.unsaid.drain(..sent);
                sent
            }
        };
        let heard = if dice.one_in(3) { Vec::new() } else { host.received(self.connection) };
        if sent > 0 || !heard.is_empty() {
            self.moved = now;
        }
        match &mut self.tls {
            TlsState::Now(tls_client) => tls_client.hear(&heard, &mut self.heard, dice),
            _ => self.heard.extend(heard),
        }
    }

    /// Closes the connection, with or without a TLS close_notify alert.
    pub(super) fn close(&mut self, host: &mut Client, dice: &mut Dice) {
        if let TlsState::Now(tls_client) = &mut self.tls {
            if dice.one_in(2) {
                tls_client.close(dice);
            }
            host.send(self.connection, &tls_client.output);
        }
        host.close(self.connection);
    }

    /// Notes that a response has arrived. A positive one must answer a complete request.
    fn answered(&mut self, is_good: bool) {
        let Some(end) = self.due.pop_front() else { return };
        assert!(
            !is_good || end <= self.passed,
            "{} of {end} bytes were sent, and the reply is positive",
            self.passed
        );
    }

    /// Whether all output was sent.
    pub(super) fn is_all_sent(&self) -> bool {
        self.unsaid.is_empty()
            && self.tls_client().is_none_or(|tls_client| tls_client.output.is_empty())
    }

    /// The time since the client last received or sent anything.
    pub(super) fn waited(&self, now: Instant) -> Micros {
        now.since(self.moved)
    }

    /// Whether the client has waited for too long.
    pub(super) fn has_timed_out(&self, now: Instant) -> bool {
        self.waited(now) > PATIENCE
    }

    /// The last line of the next SMTP reply.
    pub(super) fn smtp_reply(&mut self) -> Option<String> {
        let mut at = 0;
        loop {
            let end = at + position(&self.heard[at..], b"\r\n")?;
            let is_last = self.heard.get(at + 3) != Some(&b'-');
            if is_last {
                let line = text(&self.heard[at..end]);
                self.heard.drain(..end + 2);
                self.answered(line.starts_with('2') || line.starts_with('3'));
                return Some(line);
            }
            at = end + 2;
        }
    }

    /// The next POP3 response: its first line, and with `follow` the unstuffed lines after a
    /// positive one.
    pub(super) fn pop3_response(&mut self, follow: bool) -> Option<(String, Vec<u8>)> {
        let end = position(&self.heard, b"\r\n")? + 2;
        let first = text(&self.heard[..end - 2]);
        if !follow || !first.starts_with("+OK") {
            self.heard.drain(..end);
            self.answered(first.starts_with("+OK"));
            return Some((first, Vec::new()));
        }
        let rest = &self.heard[end..];
        let from = self.searched.saturating_sub(end + 5);
        let length = if rest.starts_with(b".\r\n") {
            0
        } else {
            self.searched = self.heard.len();
            from.min(rest.len()) + position(&rest[from.min(rest.len())..], b"\r\n.\r\n")? + 2
        };
        self.searched = 0;
        let mut lines = Vec::new();
        for line in rest[..length].split_inclusive(|byte| *byte == b'\n') {
            lines.extend_from_slice(line.strip_prefix(b".").unwrap_or(line));
        }
        self.heard.drain(..end + length + 3);
        self.answered(true);
        Some((first, lines))
    }

    /// The next HTTP response: its head and its body. A response to `HEAD` has no body.
    pub(super) fn http_response(&mut self, is_to_head: bool) -> Option<(String, Vec<u8>)> {
        let end = position(&self.heard, b"\r\n\r\n")? + 4;
        let head = text(&self.heard[..end]);
        let length = if is_to_head || field(&head, "Content-Length").is_none() {
            0
        } else {
            field(&head, "Content-Length")
                .and_then(|length| length.parse().ok())
                .expect("a length is a number")
        };
        if self.heard.len() < end + length {
            return None;
        }
        let body = self.heard[end..end + length].to_vec();
        self.heard.drain(..end + length);
        // The server may redirect to the login page before it has the complete request.
        let asks_for_login =
            field(&head, "Location").is_some_and(|location| location.starts_with("/mail/login"));
        self.answered(
            head.starts_with("HTTP/1.1 2") || head.starts_with("HTTP/1.1 3") && !asks_for_login,
        );
        Some((head, body))
    }

    /// Whether no further input can arrive.
    pub(super) fn has_ended(&self, host: &Client) -> bool {
        let is_over = self.tls_client().is_some_and(TlsClient::is_over);
        is_over || !host.is_open(self.connection) && host.has_answered(self.connection)
    }

    /// Whether the TLS handshake may be a reason for the machine to reset the connection.
    pub(super) fn may_be_reset(&self, now: Instant) -> bool {
        self.tls_client().is_some_and(|tls_client| tls_client.may_be_reset(now))
    }
}

/// Draws the part of `waiting` that is sent next.
fn some_of<'a>(waiting: &'a [u8], dice: &mut Dice) -> &'a [u8] {
    let piece = match dice.below(4) {
        0 => dice.below(4) as usize,
        1 => dice.below(200) as usize,
        _ => waiting.len(),
    };
    &waiting[..piece.min(waiting.len())]
}

fn position(heard: &[u8], words: &[u8]) -> Option<usize> {
    heard.windows(words.len()).position(|window| window == words)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("replies are text")
}

/// The value of a field of an HTTP response head.
pub(super) fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = head.split("\r\n").filter_map(|line| line.split_once(": "));
    fields.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// A complete HTTP/1.1 request.
pub(super) fn http_request(
    method: &str,
    path: &str,
    mut fields: String,
    body: &[u8],
    is_last: bool,
) -> Vec<u8> {
    if is_last {
        fields += "Connection: close\r\n";
    }
    if !body.is_empty() {
        fields += &format!("Content-Length: {}\r\n", body.len());
    }
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {HOSTNAME}\r\n{fields}\r\n");
    [head.as_bytes(), body].concat()
}

/// `text` as the value of a form field.
pub(super) fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}
