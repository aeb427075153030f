//! An independent reader of a conversation. It computes each expected response from the client's
//! bytes and the maildrop. Written from RFC 1939 and RFC 5034.

use pop3::{LINE_BYTES_MAX, RESPONSE_LINE_BYTES_MAX};

use super::world::World;

/// The client's lines, each without its LF.
fn lines(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
        lines.push(&bytes[..end]);
        bytes = &bytes[end + 1..];
    }
    lines
}

/// The bytes of the server that the reader has not read yet.
struct Responses<'a> {
    bytes: &'a [u8],
}

impl<'a> Responses<'a> {
    /// Reads the next line. Returns it without its CRLF.
    fn line(&mut self) -> Option<&'a [u8]> {
        let end = self.bytes.windows(2).position(|pair| pair == b"\r\n")?;
        let (line, rest) = (&self.bytes[..end], &self.bytes[end + 2..]);
        self.bytes = rest;
        Some(line)
    }

    /// Reads the status line of a response. Returns whether it is positive, and its text.
    fn status(&mut self) -> Option<(bool, String)> {
        if self.bytes.is_empty() {
            return None;
        }
        let line = self.line().expect("a response ends with CRLF");
        assert!(
            line.len() <= 510 && line.iter().all(|byte| (b' '..0x7f).contains(byte)),
            "{line:?}"
        );
        let text = String::from_utf8_lossy(line).into_owned();
        assert!(["+OK", "-ERR ", "+ "].iter().any(|start| text.starts_with(start)), "{text:?}");
        Some((text.starts_with("+OK"), text))
    }

    /// Reads the lines up to a line with one dot. Returns them without dot-stuffing, with their
    /// CRLFs. `None` if the last line is missing.
    fn lines(&mut self) -> Option<Vec<u8>> {
        let mut lines = Vec::new();
        loop {
            let line = self.line()?;
            if line == b"." {
                return Some(lines);
            }
            lines.extend_from_slice(line.strip_prefix(b".").unwrap_or(line));
            lines.extend_from_slice(b"\r\n");
        }
    }
}

/// The state of the session as the reader knows it.
struct Reading<'a> {
    responses: Responses<'a>,
    world: &'a World,
    logged_in: bool,
    /// The client's next line is its response to a challenge.
    challenged: bool,
    marked: Vec<bool>,
}

/// Checks that the responses in `world` follow from the client's `bytes` and the maildrop.
pub(super) fn check(bytes: &[u8], world: &World) {
    let mut reading = Reading {
        responses: Responses { bytes: &world.sent },
        world,
        logged_in: false,
        challenged: false,
        marked: vec![false; world.messages.len()],
    };
    assert!(
        reading.responses.status().is_some_and(|(positive, _)| positive),
        "a greeting comes first"
    );
    for line in lines(bytes) {
        let limit = if reading.challenged { RESPONSE_LINE_BYTES_MAX } else { LINE_BYTES_MAX };
        let command = (line.len() < limit).then(|| line.strip_suffix(b"\r").unwrap_or(line));
        if !reading.response(command) {
            return;
        }
    }
    if let Some((positive, text)) = reading.responses.status() {
        assert!(!positive && world.closed, "no command for the response {text:?}");
    }
    assert!(reading.responses.bytes.is_empty(), "one response for each command");
}

impl Reading<'_> {
    /// Reads the response to one command. False: the session ends with this response.
    fn response(&mut self, command: Option<&[u8]>) -> bool {
        let line = command.unwrap_or_default();
        let (verb, arguments) = match line.iter().position(|byte| *byte == b' ') {
            Some(space) => (line[..space].to_ascii_uppercase(), line[space + 1..].trim_ascii()),
            None => (line.to_ascii_uppercase(), &line[..0]),
        };
        let Some((positive, text)) = self.responses.status() else {
            assert!(
                self.world.closed || self.world.has_open_request(),
                "no response to {:?}",
                String::from_utf8_lossy(line)
            );
            return false;
        };
        if self.challenged || verb == b"AUTH" {
            assert!(!self.logged_in || !positive, "a client logs in once");
            self.challenged = text.starts_with("+ ");
            self.logged_in |= positive;
            return positive
                || self.challenged
                || !(self.world.closed && self.responses.bytes.is_empty());
        }
        assert!(!text.starts_with("+ "), "only a login has challenges: {text:?}");
        if !positive {
            let deleted_some = verb == b"QUIT" && text.contains("[SYS/TEMP]");
            return if deleted_some {
                self.deleted()
            } else {
                !(self.world.closed && self.responses.bytes.is_empty())
            };
        }
        let number: Option<usize> =
            std::str::from_utf8(arguments.split(|byte| *byte == b' ').next().unwrap_or_default())
                .ok()
                .and_then(|digits| digits.parse().ok());
        match verb.as_slice() {
            b"PASS" => self.logged_in = true,
            b"CAPA" => {
                let lines = self.responses.lines().expect("the list of capabilities is complete");
                assert!(lines.windows(6).any(|word| word == b"UIDL\r\n"));
            }
            b"STAT" => assert_eq!(text, self.statistics()),
            b"LIST" | b"UIDL" if arguments.is_empty() => self.listing(&verb),
            b"RETR" | b"TOP" => {
                return self.message(&verb, arguments, number.expect("a message has a number"));
            }
            b"DELE" => {
                let number = number.expect("a message has a number");
                assert!(
                    !std::mem::replace(&mut self.marked[number - 1], true),
                    "a message is deleted once"
                );
            }
            b"RSET" => self.marked.fill(false),
            b"QUIT" => return self.deleted(),
            _ => assert!(
                self.logged_in || matches!(verb.as_slice(), b"USER" | b"UTF8"),
                "{text:?} before a login"
            ),
        }
        true
    }

    fn statistics(&self) -> String {
        let left = || self.world.messages.iter().zip(&self.marked).filter(|(_, marked)| !**marked);
        format!(
            "+OK {} {}",
            left().count(),
            left().map(|(message, _)| message.len()).sum::<usize>()
        )
    }

    fn listing(&mut self, verb: &[u8]) {
        let lines = self.responses.lines().expect("a list is complete");
        let mut expected = String::new();
        for (number, message) in (1..).zip(&self.world.messages) {
            if self.marked[number - 1] {
                continue;
            }
            let value = match verb {
                b"LIST" => message.len().to_string(),
                _ => format!("{:016x}", 0x5eed_u64 << 32 | (number as u64 + 9)),
            };
            expected.push_str(&format!("{number} {value}\r\n"));
        }
        assert_eq!(String::from_utf8_lossy(&lines), expected);
    }

    /// Reads the lines of the response to RETR or TOP. False: the store could not read the message,
    /// or the connection has ended.
    fn message(&mut self, verb: &[u8], arguments: &[u8], number: usize) -> bool {
        let message = &self.world.messages[number - 1];
        assert!(!self.marked[number - 1], "a deleted message is not read");
        let Some(lines) = self.responses.lines() else {
            assert!(
                self.world.closed || self.world.has_open_request(),
                "a message is complete unless the connection ends"
            );
            return false;
        };
        let mut expected = message.clone();
        if verb == b"TOP" {
            let count = arguments.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
            let count = String::from_utf8_lossy(count.trim_ascii()).parse().unwrap_or(usize::MAX);
            expected = top(message, count);
        }
        if !expected.is_empty() && !expected.ends_with(b"\r\n") {
            expected.extend_from_slice(b"\r\n");
        }
        assert_eq!(String::from_utf8_lossy(&lines), String::from_utf8_lossy(&expected));
        true
    }

    /// Checks the end of a session by QUIT: exactly the marked messages are deleted.
    fn deleted(&self) -> bool {
        let marked: Vec<usize> = (1..)
            .zip(&self.marked)
            .filter(|(_, marked)| **marked)
            .map(|(number, _)| number)
            .collect();
        assert_eq!(self.world.deleted, marked, "the marked messages are deleted");
        assert!(
            self.world.closed && self.responses.bytes.is_empty(),
            "nothing follows QUIT's reply"
        );
        false
    }
}

/// The header, the empty line and `count` lines of the body.
fn top(message: &[u8], count: usize) -> Vec<u8> {
    let mut top = Vec::new();
    let mut body_lines = None;
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        if body_lines == Some(count) {
            break;
        }
        top.extend_from_slice(line);
        body_lines = match body_lines {
            None if line == b"\r\n" => Some(0),
            None => None,
            Some(lines) => Some(lines + 1),
        };
    }
    top
}
