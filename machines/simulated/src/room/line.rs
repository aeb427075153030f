//! A client's end of a connection: what is still to be said goes out in pieces, what comes back is cut into replies.

use machine::{Instant, Micros};

use crate::{Client, Connection, Dice};

/// How long a client listens to nothing before it leaves.
const PATIENCE: Micros = Micros::from_secs(400);

pub(super) struct Line {
    pub(super) connection: Connection,
    heard: Vec<u8>,
    /// Bytes of what was heard in which no end of a response was found.
    searched: usize,
    unsaid: Vec<u8>,
    /// When anything was heard or could be said last.
    pub(super) moved: Instant,
}

impl Line {
    pub(super) fn new(connection: Connection, now: Instant) -> Line {
        Line { connection, heard: Vec::new(), searched: 0, unsaid: Vec::new(), moved: now }
    }

    pub(super) fn say(&mut self, bytes: &[u8]) {
        self.unsaid.extend_from_slice(bytes);
    }

    /// Sends some of what is to be said, and listens now and then.
    pub(super) fn go_on(&mut self, host: &mut Client, now: Instant, dice: &mut Dice) {
        let piece = match dice.below(4) {
            0 => dice.below(4) as usize,
            1 => dice.below(200) as usize,
            _ => self.unsaid.len(),
        };
        let sent = host.send(self.connection, &self.unsaid[..piece.min(self.unsaid.len())]);
        self.unsaid.drain(..sent);
        let before = self.heard.len();
        if !dice.one_in(3) {
            self.heard.extend(host.received(self.connection));
        }
        if sent > 0 || self.heard.len() > before {
            self.moved = now;
        }
    }

    /// Whether everything to be said is on its way.
    pub(super) fn has_said_all(&self) -> bool {
        self.unsaid.is_empty()
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
        Some((first, lines))
    }

    /// The next HTTP response, its head and its body, which a response to `HEAD` has not.
    pub(super) fn http_response(&mut self, is_to_head: bool) -> Option<(String, Vec<u8>)> {
        let end = position(&self.heard, b"\r\n\r\n")? + 4;
        let head = text(&self.heard[..end]);
        let length = if is_to_head || field(&head, "Content-Length").is_none() {
            0
        } else {
            field(&head, "Content-Length").and_then(|length| length.parse().ok()).expect("a length is a number")
        };
        if self.heard.len() < end + length {
            return None;
        }
        let body = self.heard[end..end + length].to_vec();
        self.heard.drain(..end + length);
        Some((head, body))
    }

    /// Whether nothing more will be heard.
    pub(super) fn is_dead(&self, host: &Client) -> bool {
        !host.is_open(self.connection) && host.has_answered(self.connection)
    }
}

fn position(heard: &[u8], words: &[u8]) -> Option<usize> {
    heard.windows(words.len()).position(|window| window == words)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("replies are text")
}

/// The value of a field of an HTTP response's head.
pub(super) fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.split("\r\n").find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}
