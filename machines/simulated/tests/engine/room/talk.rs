//! Conversations: the data that a test sends on a connection, and the data that it receives.

use server::InUse;
use simulated::Connection;
use smoltcp::wire::IpAddress;

use super::{Room, SERVER};

/// One connection, and the received data that the test has not used yet.
pub(crate) struct Talk {
    pub(crate) host: usize,
    pub(crate) connection: Connection,
    pub(crate) heard: Vec<u8>,
}

impl Room {
    pub(crate) fn connect(&mut self, port: u16) -> Talk {
        self.connect_from(0, port)
    }

    pub(crate) fn connect_from(&mut self, host: usize, port: u16) -> Talk {
        self.connect_to(SERVER.into(), host, port)
    }

    pub(crate) fn connect_to(&mut self, server: IpAddress, host: usize, port: u16) -> Talk {
        let connection = self.hosts[host].connect(server, port);
        Talk { host, connection, heard: Vec::new() }
    }

    /// Queues as much of `bytes` as fits. Returns the number of bytes queued.
    pub(crate) fn send_some(&mut self, talk: &Talk, bytes: &[u8]) -> usize {
        self.hosts[talk.host].send(talk.connection, bytes)
    }

    /// Queues as much of `bytes` as fits, and drops the rest.
    pub(crate) fn try_to_send(&mut self, talk: &Talk, bytes: &[u8]) {
        self.send_some(talk, bytes);
    }

    /// Sends all of `bytes`, with as many steps as it takes.
    pub(crate) fn send(&mut self, talk: &Talk, bytes: &[u8]) {
        let mut rest = bytes;
        self.until("all is sent", |room| {
            let sent = room.send_some(talk, rest);
            rest = &rest[sent..];
            rest.is_empty()
        });
    }

    /// Appends the data that has arrived to [`Talk::heard`].
    pub(crate) fn listen(&mut self, talk: &mut Talk) {
        talk.heard.extend(self.hosts[talk.host].received(talk.connection));
    }

    /// Closes the client's direction.
    pub(crate) fn close(&mut self, talk: &Talk) {
        self.hosts[talk.host].close(talk.connection);
    }

    /// Resets the connection.
    pub(crate) fn abort(&mut self, talk: &Talk) {
        self.hosts[talk.host].abort(talk.connection);
    }

    /// Whether the server has closed its direction or the whole connection, and the client has
    /// received everything that was sent.
    pub(crate) fn has_hung_up(&mut self, talk: &mut Talk) -> bool {
        self.listen(talk);
        !self.hosts[talk.host].is_open(talk.connection)
    }

    /// The next received line, without its CRLF, if it is complete.
    pub(crate) fn line_heard(&mut self, talk: &mut Talk) -> Option<String> {
        self.listen(talk);
        let end = talk.heard.windows(2).position(|pair| pair == b"\r\n")?;
        let line: Vec<u8> = talk.heard.drain(..end + 2).take(end).collect();
        Some(String::from_utf8(line).expect("replies are text"))
    }

    /// The next line that the server sends, without its CRLF.
    pub(crate) fn line(&mut self, talk: &mut Talk) -> String {
        let mut line = None;
        self.until("a line arrives", |room| {
            line = room.line_heard(talk);
            line.is_some()
        });
        line.unwrap_or_default()
    }

    /// Sends `command`, and returns the last line of an SMTP reply.
    pub(crate) fn smtp(&mut self, talk: &mut Talk, command: &str) -> String {
        self.send(talk, format!("{command}\r\n").as_bytes());
        self.smtp_reply(talk)
    }

    pub(crate) fn smtp_reply(&mut self, talk: &mut Talk) -> String {
        loop {
            let line = self.line(talk);
            if line.as_bytes().get(3) != Some(&b'-') {
                return line;
            }
        }
    }

    /// Sends `command`, and returns the one line of a POP3 response.
    pub(crate) fn pop3(&mut self, talk: &mut Talk, command: &str) -> String {
        self.send(talk, format!("{command}\r\n").as_bytes());
        self.line(talk)
    }

    /// The lines of a multi-line response, unstuffed, with their CRLF.
    pub(crate) fn pop3_lines(&mut self, talk: &mut Talk) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.until("the last line arrives", |room| {
            room.listen(talk);
            talk.heard.ends_with(b"\r\n.\r\n") || talk.heard == b".\r\n"
        });
        for line in talk.heard.drain(..).collect::<Vec<u8>>().split_inclusive(|byte| *byte == b'\n')
        {
            if line == b".\r\n" {
                break;
            }
            bytes.extend_from_slice(line.strip_prefix(b".").unwrap_or(line));
        }
        bytes
    }

    /// Connects, and sends commands up to DATA.
    pub(crate) fn begin_message(&mut self, recipient: &str) -> Talk {
        self.begin_message_from(0, recipient)
    }

    pub(crate) fn begin_message_from(&mut self, host: usize, recipient: &str) -> Talk {
        let mut talk = self.connect_from(host, 25);
        assert!(self.smtp_reply(&mut talk).starts_with("220 "));
        assert!(self.smtp(&mut talk, "EHLO client.test").starts_with("250 "));
        assert!(self.smtp(&mut talk, "MAIL FROM:<sender@elsewhere.test>").starts_with("250 "));
        assert!(self.smtp(&mut talk, &format!("RCPT TO:<{recipient}>")).starts_with("250 "));
        assert!(self.smtp(&mut talk, "DATA").starts_with("354 "));
        talk
    }

    /// Sends one message on a new connection, and returns the reply to its end.
    pub(crate) fn deliver(&mut self, recipient: &str, body: &[u8]) -> String {
        let mut talk = self.begin_message(recipient);
        self.send(&talk, &stuffed(body));
        let reply = self.smtp(&mut talk, ".");
        assert!(self.smtp(&mut talk, "QUIT").starts_with("221 "));
        self.close(&talk);
        reply
    }

    /// Opens a POP3 session of `user`, logged in.
    pub(crate) fn log_in(&mut self, user: &str) -> Talk {
        let mut talk = self.connect(110);
        assert!(self.line(&mut talk).starts_with("+OK"));
        assert!(self.pop3(&mut talk, &format!("USER {user}")).starts_with("+OK"));
        let response = self.pop3(&mut talk, "PASS lovelace");
        assert!(response.starts_with("+OK"), "{response}");
        talk
    }

    /// Retrieves message `number`, without the trace fields of the delivery.
    pub(crate) fn retrieve(&mut self, talk: &mut Talk, number: usize) -> Vec<u8> {
        let response = self.pop3(talk, &format!("RETR {number}"));
        assert!(response.starts_with("+OK"), "{response}");
        without_trace(self.pop3_lines(talk))
    }

    /// Retrieves message `number`, from any sender, with all its fields.
    pub(crate) fn retrieve_any(&mut self, talk: &mut Talk, number: usize) -> Vec<u8> {
        let response = self.pop3(talk, &format!("RETR {number}"));
        assert!(response.starts_with("+OK"), "{response}");
        self.pop3_lines(talk)
    }

    /// Closes the connection, and waits until no client holds any resource of the engine.
    pub(crate) fn part(&mut self, talk: Talk) {
        self.close(&talk);
        self.until("the conversation is over", |room| room.engines.in_use() == InUse::default());
    }
}

/// `body` with a dot doubled at the start of each line that begins with one.
pub(crate) fn stuffed(body: &[u8]) -> Vec<u8> {
    let mut stuffed = Vec::new();
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b".") {
            stuffed.push(b'.');
        }
        stuffed.extend_from_slice(line);
    }
    stuffed
}

/// A stored message without its two trace fields.
pub(crate) fn without_trace(mut message: Vec<u8>) -> Vec<u8> {
    let trace =
        b"Return-Path: <sender@elsewhere.test>\r\nReceived: from client.test ([10.0.0.1])\r\n";
    assert!(
        message.starts_with(trace),
        "{:?}",
        String::from_utf8_lossy(&message[..message.len().min(200)])
    );
    let mut trace_lines = 0;
    let mut at = 0;
    while trace_lines < 2 || message[at] == b'\t' {
        at += message[at..].iter().position(|byte| *byte == b'\n').expect("a line ends") + 1;
        trace_lines += 1;
    }
    message.drain(..at);
    message
}
