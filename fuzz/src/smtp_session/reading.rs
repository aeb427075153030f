//! An independent reader of a conversation. From the client's bytes and the server's replies it
//! computes the expected number of replies and the expected stored messages. Written from RFC 5321,
//! RFC 3030 and RFC 4954. The reader is simple: it examines one byte after the other.

use std::collections::VecDeque;

use smtp::{LINE_BYTES_MAX, RESPONSE_LINE_BYTES_MAX};

use super::world::World;

/// One reply: its code, and its lines joined.
struct Reply {
    code: u16,
    text: String,
}

impl Reply {
    /// Whether the connection ends after this reply.
    fn ends(&self) -> bool {
        matches!(self.code, 221 | 421 | 521)
    }
}

/// Parses the server's output, checks that the replies are well-formed, and joins the lines of
/// each.
fn replies(sent: &[u8]) -> VecDeque<Reply> {
    let text = std::str::from_utf8(sent).expect("replies are ASCII");
    assert!(text.is_empty() || text.ends_with("\r\n"), "a reply ends with CRLF: {text:?}");
    let mut replies = VecDeque::new();
    let mut lines = String::new();
    for line in text.split_terminator("\r\n") {
        let bytes = line.as_bytes();
        assert!(
            bytes.len() <= 510 && bytes.iter().all(|byte| (b' '..0x7f).contains(byte)),
            "{line:?}"
        );
        assert!(
            (bytes.len() > 4 || line == "334 ") && bytes[..3].iter().all(u8::is_ascii_digit),
            "{line:?}"
        );
        assert!(lines.is_empty() || lines[..3] == line[..3], "one reply has one code: {text:?}");
        lines.push_str(line);
        match bytes[3] {
            b' ' => {
                let code = line[..3].parse().expect("three digits");
                replies.push_back(Reply { code, text: std::mem::take(&mut lines) });
            }
            separator => assert_eq!(separator, b'-', "{line:?}"),
        }
    }
    assert!(lines.is_empty(), "a reply has a last line");
    replies
}

/// The next item in the client's bytes.
enum Found {
    /// No complete line.
    Incomplete,
    /// A CR or LF that is not part of a CRLF.
    BareLineEnd,
    Line(Vec<u8>),
    LongLine,
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn line(&mut self, limit: usize) -> Found {
        let Some(end) = self.bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
            return Found::Incomplete;
        };
        match self.bytes[end..] {
            [b'\r', b'\n', ..] => {}
            [b'\r'] => return Found::Incomplete,
            _ => return Found::BareLineEnd,
        }
        let line = self.bytes[..end].to_vec();
        self.bytes = &self.bytes[end + 2..];
        if end < limit { Found::Line(line) } else { Found::LongLine }
    }

    /// Reads a message up to CRLF.CRLF. Returns it without dot-stuffing. `None` if its end is
    /// missing.
    fn data(&mut self) -> Option<Vec<u8>> {
        let mut lines = Vec::new();
        let mut rest = self.bytes;
        loop {
            let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
            let line = &rest[..end + 2];
            rest = &rest[end + 2..];
            if line == b".\r\n" {
                self.bytes = rest;
                return Some(lines);
            }
            lines.extend_from_slice(line.strip_prefix(b".").unwrap_or(line));
        }
    }

    fn chunk(&mut self, count: u64) -> Option<Vec<u8>> {
        let (chunk, rest) = self.bytes.split_at_checked(usize::try_from(count).ok()?)?;
        self.bytes = rest;
        Some(chunk.to_vec())
    }
}

/// Whether the message has a CR or LF that is not part of a CRLF.
fn has_bare_line_end(message: &[u8]) -> bool {
    let text: Vec<u8> = message.to_vec();
    let mut at = 0;
    while at < text.len() {
        match (text[at], text.get(at + 1)) {
            (b'\r', Some(b'\n')) => at += 2,
            (b'\r' | b'\n', _) => return true,
            _ => at += 1,
        }
    }
    false
}

/// A message of chunks, in which each bare LF has got its CR.
fn with_line_ends(message: &[u8]) -> Vec<u8> {
    let mut before = 0;
    let mut ended = Vec::new();
    for &byte in message {
        if byte == b'\n' && before != b'\r' {
            ended.push(b'\r');
        }
        ended.push(byte);
        before = byte;
    }
    ended
}

/// The state of a conversation as the reader knows it.
struct Reading<'a> {
    reader: Reader<'a>,
    replies: VecDeque<Reply>,
    /// The chunks of a message that began with BDAT.
    chunks: Vec<u8>,
    /// The messages that the server must have stored.
    stored: Vec<Vec<u8>>,
    /// The client's next line is its response to a challenge.
    challenged: bool,
    logged_in: bool,
}

/// Checks that the replies and the stored messages in `world` follow from the client's `bytes`.
pub(super) fn check(bytes: &[u8], world: &World, message_bytes_max: u64) {
    let mut reading = Reading {
        reader: Reader { bytes },
        replies: replies(&world.sent),
        chunks: Vec::new(),
        stored: Vec::new(),
        challenged: false,
        logged_in: false,
    };
    let greeting = reading.replies.pop_front().expect("a greeting comes first");
    assert_eq!(greeting.code, 220);
    while reading.command(world, message_bytes_max) {}
    // Only a reply of 421 may come without a command.
    if let Some(farewell) = reading.replies.pop_front() {
        assert!(
            farewell.code == 421 && world.closed,
            "no command for the reply {:?}",
            farewell.text
        );
    }
    assert!(
        reading.replies.is_empty(),
        "one reply for each command, and {} more",
        reading.replies.len()
    );
    assert!(
        world.stored == reading.stored,
        "a message is stored as it was sent, without dot-stuffing"
    );
    assert!(
        !world.stored.iter().any(|message| has_bare_line_end(message)),
        "no message can be read as two"
    );
    assert!(!world.stored.iter().any(|message| message.contains(&0)), "no message has a NUL");
}

impl Reading<'_> {
    /// Reads one command and its reply. False: the conversation ends here.
    fn command(&mut self, world: &World, message_bytes_max: u64) -> bool {
        let limit = if self.challenged { RESPONSE_LINE_BYTES_MAX } else { LINE_BYTES_MAX };
        let line = match self.reader.line(limit) {
            Found::Incomplete => return false,
            Found::BareLineEnd => return self.expect_reply(521),
            Found::LongLine => {
                self.challenged = false;
                return self.expect_reply(500);
            }
            Found::Line(line) => line,
        };
        if self.challenged {
            return self.login_goes_on(world);
        }
        let line = line.trim_ascii_end();
        let word = line.split(|byte| *byte == b' ').next().unwrap_or_default().to_ascii_uppercase();
        if word == b"BDAT" && std::str::from_utf8(line).is_ok() {
            return self.chunk(line, message_bytes_max, world);
        }
        if word == b"AUTH" {
            return self.login_goes_on(world);
        }
        let Some(reply) = self.replies.pop_front() else {
            panic!("no reply to {:?}", String::from_utf8_lossy(line))
        };
        match (word.as_slice(), reply.code) {
            (_, 235 | 334) => panic!("only a login is answered by {}", reply.code),
            (b"DATA", 354) => return self.message(message_bytes_max, world),
            (_, 354) => panic!("only DATA is answered by 354"),
            (b"QUIT", code) => assert!(matches!(code, 221 | 421 | 500 | 501)),
            (b"RSET" | b"EHLO" | b"HELO", 250) => self.chunks.clear(),
            _ => {}
        }
        self.goes_on_after(&reply)
    }

    /// Reads the reply to AUTH, or to a response in a login. False: the conversation ends here.
    fn login_goes_on(&mut self, world: &World) -> bool {
        let Some(reply) = self.replies.pop_front() else {
            assert!(world.has_open_request() || world.closed, "no reply to a login");
            return false;
        };
        self.challenged = reply.code == 334;
        assert!(!self.logged_in || !matches!(reply.code, 235 | 334), "a client logs in once");
        self.logged_in |= reply.code == 235;
        assert!(matches!(reply.code, 235 | 334 | 421 | 454 | 500..=504 | 535), "{:?}", reply.text);
        self.goes_on_after(&reply)
    }

    /// Reads a message after DATA, and its reply. False: the conversation ends here.
    fn message(&mut self, message_bytes_max: u64, world: &World) -> bool {
        let sent = self.reader.bytes;
        let Some(message) = self.reader.data() else {
            return self.unfinished(sent, message_bytes_max, world);
        };
        self.answered(message, sent, message_bytes_max, world)
    }

    /// Reads a chunk after BDAT, and its reply. False: the conversation ends here.
    fn chunk(&mut self, line: &[u8], message_bytes_max: u64, world: &World) -> bool {
        let Some((count, is_last)) = chunk_arguments(line) else { return self.expect_reply(521) };
        let sent = self.reader.bytes;
        let Some(chunk) = self.reader.chunk(count) else {
            return self.unfinished(sent, message_bytes_max, world);
        };
        self.chunks.extend_from_slice(&chunk);
        let is_taken =
            self.replies.front().is_some_and(|reply| reply.text == "250 2.0.0 Chunk received");
        if !is_last && is_taken {
            return self.replies.pop_front().is_some_and(|reply| self.goes_on_after(&reply));
        }
        let message = with_line_ends(&std::mem::take(&mut self.chunks));
        let stored_before = self.stored.len();
        let goes_on = self.answered(message, sent, message_bytes_max, world);
        assert!(
            is_last || self.stored.len() == stored_before,
            "only the last chunk makes a message"
        );
        goes_on
    }

    /// Reads the reply to a whole message. False: the conversation ends here.
    fn answered(
        &mut self,
        message: Vec<u8>,
        sent: &[u8],
        message_bytes_max: u64,
        world: &World,
    ) -> bool {
        let Some(reply) = self.replies.pop_front() else {
            assert!(world.waits_for_store() || world.closed, "no reply to a message");
            return false;
        };
        match reply.code {
            250 => self.stored.push(message),
            421 => {}
            // The refused message was so long that the server stopped reading and closed.
            451 | 452 | 503 | 552 | 554
                if world.closed && self.replies.is_empty() && is_flood(sent, message_bytes_max) =>
            {
                return false;
            }
            code => assert!(matches!(code, 451 | 452 | 503 | 552 | 554), "{:?}", reply.text),
        }
        self.goes_on_after(&reply)
    }

    /// Handles a message without an end, which ends the conversation. The message has no reply,
    /// unless it was so long that the server refused it and closed the connection. Returns false.
    fn unfinished(&mut self, sent: &[u8], message_bytes_max: u64, world: &World) -> bool {
        if world.closed && is_flood(sent, message_bytes_max) {
            self.replies.pop_front();
        }
        false
    }

    /// Checks that the next reply has this code, or 421. False: the conversation ends here.
    fn expect_reply(&mut self, code: u16) -> bool {
        let reply = self.replies.pop_front().expect("an invalid command has a reply");
        assert!(
            reply.code == code || reply.code == 421,
            "expected {code}, received {:?}",
            reply.text
        );
        self.goes_on_after(&reply)
    }

    /// Whether the conversation continues after this reply.
    fn goes_on_after(&self, reply: &Reply) -> bool {
        assert!(!reply.ends() || self.replies.is_empty(), "nothing is sent after {:?}", reply.text);
        !reply.ends()
    }
}

/// Whether the client has sent more bytes after the command than a message may have.
fn is_flood(sent: &[u8], message_bytes_max: u64) -> bool {
    sent.len() as u64 > message_bytes_max
}

/// The arguments of `BDAT SIZE [LAST]`: the size, and whether this is the last chunk.
fn chunk_arguments(line: &[u8]) -> Option<(u64, bool)> {
    let text = std::str::from_utf8(line).ok()?.get(4..)?.trim_start_matches(' ');
    let (size, rest) = text.split_once(' ').unwrap_or((text, ""));
    let is_number =
        (1..=20).contains(&size.len()) && size.bytes().all(|byte| byte.is_ascii_digit());
    let size = size.parse().ok().filter(|_| is_number)?;
    match rest.trim_start_matches(' ') {
        last if last.eq_ignore_ascii_case("LAST") => Some((size, true)),
        "" if !text.contains(' ') => Some((size, false)),
        _ => None,
    }
}
