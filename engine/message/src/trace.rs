//! The trace fields that a receiving server puts in front of a message: `Return-Path:`,
//! `Authentication-Results:` and `Received:`.
//!
//! Invariants:
//! - Every line written is at most 998 bytes long and ends in CRLF (RFC 5322 section 2.1.1).
//! - The recipient is named only if there is exactly one. Otherwise the copies would reveal the
//!   other recipients (RFC 5321 section 7.6).
//!
//! Implements: RFC 5321 section 4.4; RFC 3848 and RFC 6531 section 4.3 (the protocol's names);
//! RFC 8601.

use core::fmt::{self, Write as _};
use core::net::IpAddr;

use crate::date::DATE_TIME_BYTES;
use crate::writer::Writer;

/// Enough bytes for every [`Received::write`] with texts within the limits of RFC 5321 section
/// 4.5.3.1: names of 255 bytes, a path of 256, an identifier of 64.
pub const RECEIVED_BYTES_MAX: usize = 1024;

const LINE_END: &[u8] = b"\r\n";

/// Enough bytes for every [`return_path`] of a path of 256 bytes.
pub const RETURN_PATH_BYTES_MAX: usize = 288;

/// The protocol by which the message arrived: the `with` clause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WithProtocol {
    /// The client sent HELO.
    Smtp,
    /// The client sent EHLO.
    Esmtp,
    /// The client sent EHLO and asked for SMTPUTF8 (RFC 6531 section 4.3).
    Utf8Smtp,
}

/// The protection of the connection (RFC 3848).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Assurance {
    /// The client used neither TLS nor a login.
    None,
    /// TLS was used.
    Tls,
    /// The client has logged in.
    Login,
    /// TLS was used, and the client has logged in.
    TlsAndLogin,
}

impl WithProtocol {
    /// The protocol's name. If the client sent HELO, the name does not show the protection of the
    /// connection.
    fn name(self, assurance: Assurance) -> &'static [u8] {
        match (self, assurance) {
            (WithProtocol::Smtp, _) => b"SMTP",
            (WithProtocol::Esmtp, Assurance::None) => b"ESMTP",
            (WithProtocol::Esmtp, Assurance::Tls) => b"ESMTPS",
            (WithProtocol::Esmtp, Assurance::Login) => b"ESMTPA",
            (WithProtocol::Esmtp, Assurance::TlsAndLogin) => b"ESMTPSA",
            (WithProtocol::Utf8Smtp, Assurance::None) => b"UTF8SMTP",
            (WithProtocol::Utf8Smtp, Assurance::Tls) => b"UTF8SMTPS",
            (WithProtocol::Utf8Smtp, Assurance::Login) => b"UTF8SMTPA",
            (WithProtocol::Utf8Smtp, Assurance::TlsAndLogin) => b"UTF8SMTPSA",
        }
    }
}

/// Whether a `Received:` field of [`Received::write`] says that the client had logged in. `value`:
/// the text after the field's name. Only the line that begins with `by` is read, since the client
/// chose the name in the line above it.
pub fn names_a_login(value: &[u8]) -> bool {
    let line = value.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"\tby "));
    let protocol = line
        .unwrap_or_default()
        .split(|byte| *byte == b' ')
        .skip_while(|word| *word != b"with")
        .nth(1);
    [WithProtocol::Esmtp, WithProtocol::Utf8Smtp].iter().any(|extended| {
        [Assurance::Login, Assurance::TlsAndLogin]
            .iter()
            .any(|login| protocol == Some(extended.name(*login)))
    })
}

/// One `Received:` field.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// The client's name in HELO or EHLO: a domain or an address literal.
    pub greeting_name: &'a str,
    /// The client's actual address.
    pub peer: IpAddr,
    /// This server's name, which is trusted.
    pub hostname: &'a str,
    /// The protocol by which the message arrived.
    pub protocol: WithProtocol,
    /// The protection of the connection.
    pub assurance: Assurance,
    /// This server's identifier of the message, an atom. The reply to the client has the same
    /// identifier.
    pub identifier: &'a [u8],
    /// The recipient as the client wrote it, without angle brackets, if the message has only one.
    pub recipient: Option<&'a str>,
    /// The time at which the message arrived, in the form of [`crate::date_time`].
    pub at: &'a [u8; DATE_TIME_BYTES],
}

impl Received<'_> {
    /// Writes the field with its final CRLF and returns its length in bytes.
    ///
    /// Errors: `None` when `out` is too small. [`RECEIVED_BYTES_MAX`] is enough for texts within
    /// their limits.
    pub fn write(&self, out: &mut [u8]) -> Option<usize> {
        let mut out = Writer::new(out);
        out.put(b"Received: from ");
        out.put_filtered(self.greeting_name.as_bytes(), is_name_byte);
        out.put(b" (");
        put_address_literal(&mut out, self.peer);
        out.put(b")\r\n\tby ");
        out.put(self.hostname.as_bytes());
        out.put(b" with ");
        out.put(self.protocol.name(self.assurance));
        out.put(b" id ");
        out.put(self.identifier);
        if let Some(recipient) = self.recipient {
            out.put(b"\r\n\tfor <");
            out.put_filtered(recipient.as_bytes(), is_path_byte);
            out.put(b">");
        }
        out.put(b";\r\n\t");
        out.put(self.at);
        out.put(b"\r\n");
        out.finish()
    }
}

/// Writes the `Return-Path:` field for `reverse_path` (without angle brackets; empty for the null
/// path) with its final CRLF, and returns its length in bytes. The server that makes the final
/// delivery puts it on top of the message.
///
/// Errors: `None` when `out` is too small. [`RETURN_PATH_BYTES_MAX`] is enough for a path of 256
/// bytes.
pub fn return_path(reverse_path: &str, out: &mut [u8]) -> Option<usize> {
    let mut out = Writer::new(out);
    out.put(b"Return-Path: <");
    out.put_filtered(reverse_path.as_bytes(), is_path_byte);
    out.put(b">\r\n");
    out.finish()
}

/// The domain that a message is sent for: a name or an address literal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderDomain<'a> {
    /// The domain of the reverse path.
    Path(&'a str),
    /// The client's name in EHLO, if the reverse path is empty.
    Greeting(&'a str),
}

/// The check results of a message as an `Authentication-Results:` field, and the reason why the
/// message went to another mailbox. The caller passes each result when it becomes known. A result
/// that does not fit is left out.
pub struct AuthResultsWriter<'a> {
    out: &'a mut [u8],
    written: usize,
    /// The number of bytes that are reserved for later, more important texts.
    kept: usize,
}

impl<'a> AuthResultsWriter<'a> {
    /// Begins the field after the first `written` bytes. `hostname`: this server's name, which is
    /// trusted.
    pub fn begin(out: &'a mut [u8], written: usize, hostname: &str) -> AuthResultsWriter<'a> {
        let mut findings = AuthResultsWriter { out, written, kept: LINE_END.len() };
        findings.add(|out| {
            out.put(b"Authentication-Results: ");
            out.put(hostname.as_bytes());
        });
        findings
    }

    /// Reserves this many bytes for later texts. The next call replaces the number.
    pub fn keep(&mut self, bytes: usize) {
        self.kept = bytes + LINE_END.len();
    }

    /// Writes that nothing was checked (RFC 8601 section 2.2).
    pub fn nothing(&mut self) {
        self.add(|out| out.put(b"; none"));
    }

    /// Writes the SPF result for the host that sent the message, in the words of RFC 8601 section
    /// 2.7.2.
    pub fn sender(&mut self, spf: impl fmt::Display, domain: SenderDomain<'_>) {
        let (property, domain) = match domain {
            SenderDomain::Path(domain) => ("mailfrom", domain),
            SenderDomain::Greeting(name) => ("helo", name),
        };
        self.result(format_args!("spf={spf} smtp.{property}="), Some(domain));
    }

    /// Writes the result of a DKIM signature, in the words of RFC 8601 section 2.7.1.
    pub fn signature(&mut self, dkim: impl fmt::Display) {
        self.result(format_args!("{dkim}"), None);
    }

    /// Writes the DMARC result of the author's domain, in the words of RFC 7489 section 11.2.
    /// `None`: the author's domain is unknown.
    pub fn author(&mut self, dmarc: impl fmt::Display, domain: Option<&str>) {
        match domain {
            Some(domain) => self.result(format_args!("dmarc={dmarc} header.from="), Some(domain)),
            None => self.result(format_args!("dmarc={dmarc}"), None),
        }
    }

    /// Writes the result of the ARC chain, in the words of RFC 8617 section 10, and the address of
    /// the client.
    pub fn chain(&mut self, arc: impl fmt::Display, peer: IpAddr) {
        match peer.to_canonical() {
            IpAddr::V4(peer) => self.result(format_args!("{arc} smtp.remote-ip={peer}"), None),
            IpAddr::V6(peer) => self.result(format_args!("{arc} smtp.remote-ip=\"{peer}\""), None),
        }
    }

    /// Ends the field. `reason`: why the message went to another mailbox, which is written as a
    /// separate field. After the text, spaces are added until `unit` divides the number of all
    /// bytes. Returns this number.
    pub fn end(mut self, reason: Option<&str>, unit: usize) -> usize {
        self.kept = 0;
        self.add(|out| out.put(LINE_END));
        self.kept = unit;
        if let Some(reason) = reason {
            self.add(|out| {
                out.put(b"X-Barepost-Reason: ");
                out.put_filtered(reason.as_bytes(), is_path_byte);
                out.put(LINE_END);
            });
        }
        self.kept = 0;
        let spaces = self.written.next_multiple_of(unit) - self.written;
        self.written = self.written.saturating_sub(LINE_END.len());
        self.add(|out| {
            (0..spaces).for_each(|_| out.put(b" "));
            out.put(LINE_END);
        });
        self.written
    }

    fn result(&mut self, result: fmt::Arguments<'_>, domain: Option<&str>) {
        self.add(|out| {
            // If a write fails, the buffer is full, and the writer reports this at its end.
            let _ = write!(out, ";\r\n\t{result}");
            let Some(domain) = domain else { return };
            let is_plain =
                |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
            if domain.bytes().all(is_plain) {
                out.put(domain.as_bytes());
            } else {
                out.put(b"\"");
                out.put_filtered(domain.as_bytes(), |byte| {
                    is_path_byte(byte) && !matches!(byte, b'"' | b'\\')
                });
                out.put(b"\"");
            }
        });
    }

    fn add(&mut self, write: impl FnOnce(&mut Writer<'_>)) {
        let end = self.out.len().saturating_sub(self.kept);
        let mut out = Writer::new(self.out.get_mut(self.written..end).unwrap_or_default());
        write(&mut out);
        self.written += out.finish().unwrap_or(0);
    }
}

/// Writes an address literal (RFC 5321 section 4.1.3). An IPv4 address mapped into IPv6 is written
/// as IPv4.
fn put_address_literal(out: &mut Writer<'_>, address: IpAddr) {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            out.put(b"[");
            out.put_decimal(a);
            for byte in [b, c, d] {
                out.put(b".");
                out.put_decimal(byte);
            }
            out.put(b"]");
        }
        IpAddr::V6(address) => {
            // If a write fails, the buffer is full, and the writer reports this at its end.
            let _ = write!(out, "[IPv6:{address}]");
        }
    }
}

/// Whether a byte is allowed in a name: it is not a control character or a space, and does not open
/// or end a comment.
fn is_name_byte(byte: u8) -> bool {
    byte > b' ' && byte != 0x7f && !matches!(byte, b'(' | b')' | b';')
}

/// Whether a byte is allowed in a path. Quoted local parts may have spaces.
fn is_path_byte(byte: u8) -> bool {
    byte >= b' ' && byte != 0x7f
}
