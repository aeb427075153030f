//! A client's end of a connection: what is still to be said goes out in pieces, what comes back is cut into replies.

use simulated::Dice;

use crate::room::{Room, Talk};

pub(crate) struct Line {
    pub(crate) talk: Talk,
    unsaid: Vec<u8>,
}

impl Line {
    pub(crate) fn connect(room: &mut Room, host: usize, port: u16) -> Line {
        Line { talk: room.connect_from(host, port), unsaid: Vec::new() }
    }

    pub(crate) fn say(&mut self, bytes: &[u8]) {
        self.unsaid.extend_from_slice(bytes);
    }

    /// Sends some of what is to be said, and listens now and then.
    pub(crate) fn go_on(&mut self, room: &mut Room, dice: &mut Dice) {
        let piece = match dice.below(4) {
            0 => dice.below(4) as usize,
            1 => dice.below(200) as usize,
            _ => self.unsaid.len(),
        };
        let sent = room.send_some(&self.talk, &self.unsaid[..piece.min(self.unsaid.len())]);
        self.unsaid.drain(..sent);
        if !dice.one_in(3) {
            room.listen(&mut self.talk);
        }
    }

    /// The last line of the next SMTP reply.
    pub(crate) fn smtp_reply(&mut self) -> Option<String> {
        let mut at = 0;
        loop {
            let end = at + position(&self.talk.heard[at..], b"\r\n")?;
            let is_last = self.talk.heard.get(at + 3) != Some(&b'-');
            if is_last {
                let line = text(&self.talk.heard[at..end]);
                self.talk.heard.drain(..end + 2);
                return Some(line);
            }
            at = end + 2;
        }
    }

    /// The next POP3 response: its first line, and the lines that follow a good one if `follow`, unstuffed.
    pub(crate) fn pop3_response(&mut self, follow: bool) -> Option<(String, Vec<u8>)> {
        let end = position(&self.talk.heard, b"\r\n")? + 2;
        let first = text(&self.talk.heard[..end - 2]);
        if !follow || !first.starts_with("+OK") {
            self.talk.heard.drain(..end);
            return Some((first, Vec::new()));
        }
        let rest = &self.talk.heard[end..];
        let length = if rest.starts_with(b".\r\n") { 0 } else { position(rest, b"\r\n.\r\n")? + 2 };
        let mut lines = Vec::new();
        for line in rest[..length].split_inclusive(|byte| *byte == b'\n') {
            lines.extend_from_slice(line.strip_prefix(b".").unwrap_or(line));
        }
        self.talk.heard.drain(..end + length + 3);
        Some((first, lines))
    }

    /// Whether nothing more will be heard.
    pub(crate) fn is_dead(&mut self, room: &mut Room) -> bool {
        let host = &room.hosts[self.talk.host];
        !host.is_open(self.talk.connection) && host.is_over(self.talk.connection)
    }
}

fn position(heard: &[u8], words: &[u8]) -> Option<usize> {
    heard.windows(words.len()).position(|window| window == words)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("replies are text")
}
