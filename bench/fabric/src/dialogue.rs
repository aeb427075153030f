//! A client's dialogue in one connection: it requests a page, sends a message, or does only a TLS
//! handshake. The client sends the next request when the answer has arrived.

use std::sync::Arc;

use rustls::HandshakeKind;
use rustls::client::ClientConfig;

use crate::server::{LARGE, PAGE, PAGE_BYTES, account};
use crate::tls_client::TlsClient;
use crate::trusting::{self, Tickets};

pub use crate::server::LARGE_BYTES;

/// The size of a message with its header, without the final dot.
pub(crate) const MESSAGE_BYTES: usize = 1024;
/// The longest head of a response, or line of a reply.
const HEARD_BYTES_MAX: usize = 2048;

/// The load that the clients make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// Pages of 4 KB, in connections that stay open.
    Pages,
    /// Pages of 4 KB, each in a new connection.
    PagesInNewConnections,
    /// Messages of 1 KB, in sessions that stay open.
    Messages,
    /// Messages of 1 KB, each in a new session.
    MessagesInNewSessions,
    /// Pages of 4 KB over TLS, in connections that stay open.
    SecurePages,
    /// Pages of [`LARGE_BYTES`] over TLS, in connections that stay open.
    SecureLargePages,
    /// TLS handshakes without data, each in a new connection and without a ticket.
    Handshakes,
    /// TLS handshakes without data, each in a new connection. All but the first ones use tickets.
    ResumedHandshakes,
    /// Handshakes that the client ends after the server's first flight.
    Hellos,
}

impl Load {
    pub(crate) fn port(self) -> u16 {
        match self {
            Load::Pages | Load::PagesInNewConnections => machine::HTTP.port,
            Load::Messages | Load::MessagesInNewSessions => machine::SMTP.port,
            Load::SecurePages
            | Load::SecureLargePages
            | Load::Handshakes
            | Load::ResumedHandshakes
            | Load::Hellos => machine::HTTPS.port,
        }
    }

    /// The number of connections that a client has at a time.
    pub(crate) fn connections(self) -> usize {
        match self {
            Load::SecureLargePages => 4,
            // A client keeps this many tickets. More connections would find no unused ticket.
            Load::ResumedHandshakes => trusting::TICKETS,
            _ => 64,
        }
    }

    /// The number of exchanges of each client before the measurement begins.
    pub(crate) fn warm(self) -> u64 {
        match self {
            Load::SecureLargePages => 50,
            Load::Handshakes | Load::ResumedHandshakes | Load::Hellos => 200,
            _ => 1_000,
        }
    }

    fn is_kept(self) -> bool {
        matches!(self, Load::Pages | Load::Messages | Load::SecurePages | Load::SecureLargePages)
    }

    fn page(self) -> (&'static str, usize) {
        if self == Load::SecureLargePages { (LARGE, LARGE_BYTES) } else { (PAGE, PAGE_BYTES) }
    }

    /// The TLS settings of the clients, if they use TLS.
    fn tls_client(self) -> Result<Option<Arc<ClientConfig>>, String> {
        let tickets = match self {
            Load::SecurePages | Load::SecureLargePages | Load::Handshakes => Tickets::Forgotten,
            Load::ResumedHandshakes => Tickets::Kept,
            _ => return Ok(None),
        };
        trusting::settings(&["http/1.1"], tickets).map(Some)
    }

    /// The first expected event.
    fn beginning(self) -> Expect {
        match self {
            Load::Pages
            | Load::PagesInNewConnections
            | Load::SecurePages
            | Load::SecureLargePages => Expect::Head,
            Load::Messages | Load::MessagesInNewSessions => Expect::Greeting,
            Load::Handshakes | Load::ResumedHandshakes => Expect::Handshake,
            Load::Hellos => Expect::Answer,
        }
    }
}

/// The event that the dialogue expects: a part of a response, or a reply to a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expect {
    Head,
    Body {
        /// The number of bytes that have not arrived.
        left: usize,
    },
    Greeting,
    Hello,
    Sender,
    Recipient,
    /// The reply 354 to DATA.
    GoAhead,
    /// The reply 250 to a message.
    Acceptance,
    Farewell,
    /// The end of a handshake.
    Handshake,
    /// The server's first flight of a handshake.
    Answer,
    /// The end of the connection. The dialogue is complete.
    End,
}

/// The next action of the client.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum ClientAction<'a> {
    /// Wait for more bytes.
    Listen,
    /// Send these bytes.
    Say(&'a [u8]),
    /// Abort the connection.
    Leave,
}

/// The text that the client sends in its dialogues, made once.
pub(crate) struct Words {
    load: Load,
    request: Vec<u8>,
    recipients: Vec<Vec<u8>>,
    message: Vec<u8>,
    pub(crate) tls_client: Option<Arc<ClientConfig>>,
}

impl Words {
    /// Errors: the text of the TLS library's error.
    pub(crate) fn of(load: Load) -> Result<Words, String> {
        let (page, _) = load.page();
        let close = if load.is_kept() { "" } else { "Connection: close\r\n" };
        let mut message =
            b"From: sender@client.test\r\nTo: user@fabric.test\r\nSubject: measured\r\n\r\n"
                .to_vec();
        while message.len() < MESSAGE_BYTES - 2 {
            let line = (MESSAGE_BYTES - message.len()).min(74) - 2;
            message.extend(std::iter::repeat_n(b'x', line));
            message.extend_from_slice(b"\r\n");
        }
        message.extend_from_slice(b".\r\n");
        let hello = match load {
            Load::Hellos => {
                TlsClient::new(&trusting::settings(&["http/1.1"], Tickets::Forgotten)?)?.words()
            }
            _ => format!("GET {page} HTTP/1.1\r\nHost: fabric.test\r\n{close}\r\n").into_bytes(),
        };
        Ok(Words {
            load,
            request: hello,
            tls_client: load.tls_client()?,
            recipients: (0..crate::server::ACCOUNTS)
                .map(|number| format!("RCPT TO:<{}>\r\n", account(number)).into_bytes())
                .collect(),
            message,
        })
    }

    pub(crate) fn port(&self) -> u16 {
        self.load.port()
    }
}

/// The dialogue of one connection.
pub(crate) struct Dialogue {
    expect: Expect,
    /// The received part of a head or a line.
    heard: Vec<u8>,
    recipient: usize,
    is_connected: bool,
    /// The number of exchanges that are done, such as pages or messages.
    pub(crate) done: u64,
}

impl Dialogue {
    /// `recipient`: the index of the first message's recipient. The next message is for the next
    /// recipient.
    pub(crate) fn new(words: &Words, recipient: usize) -> Dialogue {
        let expect = words.load.beginning();
        Dialogue {
            expect,
            heard: Vec::with_capacity(HEARD_BYTES_MAX),
            recipient,
            is_connected: false,
            done: 0,
        }
    }

    /// Handles the establishment of the connection.
    pub(crate) fn connected<'a>(&mut self, words: &'a Words) -> ClientAction<'a> {
        self.is_connected = true;
        let begins = matches!(self.expect, Expect::Head | Expect::Answer);
        if begins { ClientAction::Say(&words.request) } else { ClientAction::Listen }
    }

    /// Handles a TLS handshake that has ended on both sides.
    ///
    /// Returns true if the dialogue consists of only the handshake. Then the dialogue is complete,
    /// and the caller must close TLS.
    pub(crate) fn handshake_ended(&mut self, kind: HandshakeKind, words: &Words) -> bool {
        let is_all = self.expect == Expect::Handshake;
        if is_all {
            self.expect = Expect::End;
            let wanted = if words.load == Load::Handshakes {
                HandshakeKind::Full
            } else {
                HandshakeKind::Resumed
            };
            self.done += u64::from(kind == wanted);
        }
        is_all
    }

    /// Handles the end of the server's stream.
    ///
    /// Errors: the dialogue is not complete.
    pub(crate) fn peer_closed(&self) -> Result<(), String> {
        match self.expect {
            Expect::End => Ok(()),
            expect => Err(format!("the server has gone while we waited for {expect:?}")),
        }
    }

    /// Whether the dialogue is complete.
    pub(crate) fn is_over(&self) -> bool {
        self.expect == Expect::End
    }

    /// Whether the connection was established.
    pub(crate) fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// Handles bytes that have arrived.
    ///
    /// Errors: the bytes are not the expected answer.
    pub(crate) fn heard<'a>(
        &mut self,
        mut bytes: &[u8],
        words: &'a Words,
    ) -> Result<ClientAction<'a>, String> {
        loop {
            if self.expect == Expect::Answer {
                (self.expect, self.done) = (Expect::End, self.done + 1);
                return Ok(ClientAction::Leave);
            }
            if let Expect::Body { left } = &mut self.expect {
                *left = left.checked_sub(bytes.len()).ok_or("the response is too long")?;
                return Ok(if *left == 0 { self.page_done(words) } else { ClientAction::Listen });
            }
            let end: &[u8] = if self.expect == Expect::Head { b"\r\n\r\n" } else { b"\r\n" };
            let Some((line, rest)) = self.line(bytes, end)? else {
                return Ok(ClientAction::Listen);
            };
            bytes = rest;
            match self.line_arrived(&line, words)? {
                ClientAction::Listen if !bytes.is_empty() => {}
                then if bytes.is_empty() => return Ok(then),
                _ => return Err("the response is too long".into()),
            }
        }
    }

    /// The text before `end`, and the bytes after `end`. `None` until `end` has arrived.
    fn line<'b>(
        &mut self,
        bytes: &'b [u8],
        end: &[u8],
    ) -> Result<Option<(String, &'b [u8])>, String> {
        let before = self.heard.len();
        self.heard.extend_from_slice(bytes);
        let Some(at) = self.heard.windows(end.len()).position(|window| window == end) else {
            let is_short = self.heard.len() < HEARD_BYTES_MAX;
            return if is_short { Ok(None) } else { Err("a reply line that is too long".into()) };
        };
        let line = String::from_utf8_lossy(self.heard.get(..at).unwrap_or_default()).into_owned();
        self.heard.clear();
        Ok(Some((line, bytes.get((at + end.len()).saturating_sub(before)..).unwrap_or_default())))
    }

    fn line_arrived<'a>(
        &mut self,
        line: &str,
        words: &'a Words,
    ) -> Result<ClientAction<'a>, String> {
        let (start, next, say): (&str, Expect, &[u8]) = match self.expect {
            Expect::Head => return self.head_arrived(line, words),
            Expect::Greeting => ("220", Expect::Hello, b"EHLO client.test\r\n"),
            Expect::Hello if line.starts_with("250-") => return Ok(ClientAction::Listen),
            Expect::Hello => ("250", Expect::Sender, FROM),
            Expect::Sender => (
                "250",
                Expect::Recipient,
                words.recipients.get(self.recipient).map_or(b"", |to| to),
            ),
            Expect::Recipient => ("250", Expect::GoAhead, b"DATA\r\n"),
            Expect::GoAhead => ("354", Expect::Acceptance, &words.message),
            Expect::Acceptance if words.load.is_kept() => ("250", Expect::Sender, FROM),
            Expect::Acceptance => ("250", Expect::Farewell, b"QUIT\r\n"),
            Expect::Farewell => ("221", Expect::End, b""),
            Expect::Body { .. } | Expect::Handshake | Expect::Answer | Expect::End => {
                return Err(format!("an unexpected line came: {line}"));
            }
        };
        if !line.starts_with(start) {
            return Err(format!("{start} was expected, and this came: {line}"));
        }
        if self.expect == Expect::Acceptance {
            self.done += 1;
            self.recipient = (self.recipient + 1) % words.recipients.len().max(1);
        }
        self.expect = next;
        Ok(if say.is_empty() { ClientAction::Listen } else { ClientAction::Say(say) })
    }

    fn head_arrived<'a>(
        &mut self,
        head: &str,
        words: &'a Words,
    ) -> Result<ClientAction<'a>, String> {
        let (_, bytes) = words.load.page();
        let length =
            head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
        if !head.starts_with("HTTP/1.1 200 ") || length != Some(bytes) {
            return Err(format!("the page was expected, and this came: {head}"));
        }
        self.expect = Expect::Body { left: bytes };
        Ok(ClientAction::Listen)
    }

    fn page_done<'a>(&mut self, words: &'a Words) -> ClientAction<'a> {
        self.done += 1;
        self.expect = if words.load.is_kept() { Expect::Head } else { Expect::End };
        if words.load.is_kept() { ClientAction::Say(&words.request) } else { ClientAction::Listen }
    }
}

const FROM: &[u8] = b"MAIL FROM:<sender@client.test>\r\n";
