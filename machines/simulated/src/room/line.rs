//! A client's end of a connection: what is still to be said goes out in pieces, in the clear or over TLS, and what comes back is cut into replies.
//!
//! Invariants:
//! - Nobody is told that all is well who has not said all of what that answers.
//! - Between the answer to who asks for TLS and TLS there is no word.

use std::collections::VecDeque;

use chance::Dice;
use machine::{Instant, Micros};

use super::fixture::HOSTNAME;
use super::shield::Shield;
use crate::{Client, Connection};

/// How long a client listens to nothing before it leaves.
const PATIENCE: Micros = Micros::from_secs(400);

pub(super) struct Line {
    pub(super) connection: Connection,
    heard: Vec<u8>,
    /// Bytes of what was heard in which no end of a response was found.
    searched: usize,
    unsaid: Vec<u8>,
    cover: Cover,
    /// Where in all that is said each thing ends that is to be answered.
    due: VecDeque<u64>,
    /// How much there is to be said in all, and how much of it is on its way, in order and as it is.
    said: u64,
    passed: u64,
    /// When anything was heard or could be said last.
    pub(super) moved: Instant,
}

/// What hides what is said.
enum Cover {
    /// Nothing ever does.
    Never,
    /// TLS once both sides have agreed to it.
    Later(Box<Shield>),
    Now(Box<Shield>),
}

/// Who speaks first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum First {
    /// The machine greets.
    Machine,
    Client,
}

impl Line {
    pub(super) fn new(connection: Connection, first: First, now: Instant) -> Line {
        let due = if first == First::Machine { VecDeque::from([0]) } else { VecDeque::new() };
        Line {
            connection,
            heard: Vec::new(),
            searched: 0,
            unsaid: Vec::new(),
            cover: Cover::Never,
            due,
            said: 0,
            passed: 0,
            moved: now,
        }
    }

    /// The client may speak TLS, once both agree to.
    pub(super) fn may_be_covered(&mut self, shield: Shield) {
        self.cover = Cover::Later(Box::new(shield));
    }

    /// TLS is spoken from now on.
    pub(super) fn cover(&mut self, now: Instant) {
        assert!(
            self.heard.is_empty(),
            "what was said before TLS is no answer to what is said within it"
        );
        let Cover::Later(mut shield) = std::mem::replace(&mut self.cover, Cover::Never) else {
            return;
        };
        shield.begin(now);
        self.cover = Cover::Now(shield);
    }

    /// What hides all that is said.
    pub(super) fn shield(&self) -> Option<&Shield> {
        if let Cover::Now(shield) = &self.cover { Some(shield) } else { None }
    }

    /// Says something that is to be answered.
    pub(super) fn say(&mut self, bytes: &[u8]) {
        self.unsaid.extend_from_slice(bytes);
        self.said += bytes.len() as u64;
        self.due.push_back(self.said);
    }

    /// Says something that nobody answers.
    pub(super) fn mention(&mut self, bytes: &[u8]) {
        self.unsaid.extend_from_slice(bytes);
        self.said += bytes.len() as u64;
    }

    /// What was heard, for who takes it apart himself.
    pub(super) fn heard(&mut self) -> &mut Vec<u8> {
        &mut self.heard
    }

    /// Sends some of what is to be said, and listens now and then.
    pub(super) fn go_on(&mut self, host: &mut Client, now: Instant, dice: &mut Dice) {
        let piece = some_of(&self.unsaid, dice);
        let sent = match &mut self.cover {
            Cover::Now(shield) => {
                let (sound, lost) = shield.seal(piece, dice);
                self.passed += sound as u64;
                self.unsaid.drain(..sound + lost);
                let sent = host.send(self.connection, some_of(&shield.sealed, dice));
                shield.sealed.drain(..sent);
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
        match &mut self.cover {
            Cover::Now(shield) => shield.hear(&heard, &mut self.heard, dice),
            _ => self.heard.extend(heard),
        }
    }

    /// Leaves, with a word about it or without.
    pub(super) fn leave(&mut self, host: &mut Client, dice: &mut Dice) {
        if let Cover::Now(shield) = &mut self.cover {
            if dice.one_in(2) {
                shield.close(dice);
            }
            host.send(self.connection, &shield.sealed);
        }
        host.close(self.connection);
    }

    /// Something was answered.
    fn answered(&mut self, is_good: bool) {
        let Some(end) = self.due.pop_front() else { return };
        assert!(
            !is_good || end <= self.passed,
            "{} of {end} bytes were said, and all is well",
            self.passed
        );
    }

    /// Whether everything to be said is on its way.
    pub(super) fn has_said_all(&self) -> bool {
        self.unsaid.is_empty() && self.shield().is_none_or(|shield| shield.sealed.is_empty())
    }

    /// How long nothing was heard, and nothing could be said.
    pub(super) fn waited(&self, now: Instant) -> Micros {
        now.since(self.moved)
    }

    /// Whether the client has waited for too long.
    pub(super) fn is_tired(&self, now: Instant) -> bool {
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

    /// The next POP3 response: its first line, and the lines that follow a good one if `follow`, unstuffed.
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

    /// The next HTTP response, its head and its body, which a response to `HEAD` has not.
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
        // Who has to say first who he is may be told so before he has said all.
        let is_stranger =
            field(&head, "Location").is_some_and(|location| location.starts_with("/mail/login"));
        self.answered(
            head.starts_with("HTTP/1.1 2") || head.starts_with("HTTP/1.1 3") && !is_stranger,
        );
        Some((head, body))
    }

    /// Whether nothing more will be heard.
    pub(super) fn is_dead(&self, host: &Client) -> bool {
        let is_over = self.shield().is_some_and(Shield::is_over);
        is_over || !host.is_open(self.connection) && host.has_answered(self.connection)
    }

    /// Whether the machine may have a reason to reset the connection that it has not where nothing hides what is said.
    pub(super) fn may_be_reset(&self, now: Instant) -> bool {
        self.shield().is_some_and(|shield| shield.may_be_reset(now))
    }
}

/// What goes out next of what waits.
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

/// The value of a field of an HTTP response's head.
pub(super) fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = head.split("\r\n").filter_map(|line| line.split_once(": "));
    fields.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// A request as HTTP/1.1 has it.
pub(super) fn in_one(
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
