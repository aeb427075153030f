//! A report to the sender of a message: words for people, fields for programs, and the message or
//! its header.
//!
//! ```text
//!   multipart/report
//!   ├── text/plain                    in plain words
//!   ├── message/delivery-status       a block for the message, and one for each recipient
//!   └── text/rfc822-headers           or message/global-headers; for a whole message
//!                                 message/rfc822 or message/global
//! ```
//! Invariants:
//! - A message with an empty reverse path is never reported. Reports have an empty reverse path
//!   (RFC 3464 section 2), so no report causes another.
//! - The lines of a report have at most 998 bytes and end in CRLF. No text of a peer or of the
//!   message begins a field or a part.
//! - The part for people shows text of a peer and of the message in UTF-8. The fields for programs
//!   are ASCII.
//! - A report is bounded, whatever the message: it returns at most [`HEADER_BYTES_MAX`] of the
//!   header. Only a failure report returns the whole message (RFC 3461 section 4.3). The caller
//!   adds the message after the bytes of [`write()`], and [`write_end`] ends the report.
//!
//! Non-ASCII addresses are written in the ASCII form of RFC 6533 section 3 (`utf-8;
//! b\x{F8}b@there.test`), so that old programs can read the fields too.
//!
//! Implements: RFC 3461 sections 4.1 and 5.2, RFC 3462, RFC 3464, RFC 3834 section 5
//! (Auto-Submitted), RFC 6522, RFC 6533.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use machine::UnixTime;
use message::date_time;
use message::header::Header;
use message::report::Enhanced;
use smtp::Notify;

use crate::outgoing_message::{Envelope, OutgoingRecipient, Script};
use crate::reply::Reply;

/// The most bytes of a message's header that are returned.
pub const HEADER_BYTES_MAX: usize = 64 * 1024;
/// The length at which lines are folded, if their words allow it.
const LINE_BYTES: usize = 76;
/// The most bytes of a message's subject that are shown.
const SUBJECT_BYTES_MAX: usize = 200;
/// The most bytes of a word on one line, and of a line of the returned header. A longer word is
/// split, and a longer line is cut.
const WORD_BYTES_MAX: usize = 900;

/// The kind of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportKind {
    /// The message was not delivered and will not be.
    Failed,
    /// The message was not delivered yet, and is tried again.
    Delayed {
        /// The time at which the message is given up.
        until: UnixTime,
    },
    /// The message was relayed to a server that sends no reports.
    Relayed,
    /// The message was delivered.
    Delivered,
}

/// The recipient of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportTo {
    /// The sender of the message.
    Sender,
    /// The account that forwards the message. The sender is not told.
    Forwarder,
}

impl ReportTo {
    /// The subject of a sentence about the message, and the participle for its delivery.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            ReportTo::Sender => ("Your message", "delivered"),
            ReportTo::Forwarder => ("A message for you", "forwarded"),
        }
    }
}

/// A report on one message.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// The kind of the report.
    pub kind: ReportKind,
    /// The name of this server.
    pub hostname: &'a str,
    /// The author of the report: an address that people read.
    pub from: &'a str,
    /// The address that the report goes to. It is not empty.
    pub to: &'a str,
    /// The kind of recipient at `to`.
    pub reader: ReportTo,
    /// The date of the report.
    pub date: UnixTime,
    /// The identifier of the report, without angle brackets.
    pub message_id: &'a str,
    /// A number that cannot be known before the report is written. The boundary of the parts is
    /// made from it.
    pub secret: u128,
    /// The time at which the message arrived.
    pub arrived: UnixTime,
    /// The sender's identifier of the envelope (ENVID), as xtext.
    pub envelope_id: Option<&'a str>,
    /// The recipients that the report is about.
    pub recipients: &'a [RecipientReport<'a>],
    /// The message from its first field on. It may end within the header or after it. The bytes
    /// after the header are ignored.
    pub header: &'a [u8],
    /// The part of the message that is returned.
    pub returned: Returned,
}

impl Report<'_> {
    /// The identifier of the message, if it has one that a field of a report can have.
    fn message_id_of_message(&self) -> Option<&str> {
        let identifier = Header::new(self.header).field("Message-ID")?.identifiers().next()?;
        let is_plain =
            identifier.iter().all(|byte| byte.is_ascii_graphic() && !b"<>".contains(byte));
        core::str::from_utf8(identifier)
            .ok()
            .filter(|_| is_plain && identifier.len() < LINE_BYTES * 4)
    }

    /// The subject of the message, decoded, if it has one.
    fn subject(&self) -> Option<String> {
        let subject = Header::new(self.header).field("Subject")?.text();
        let subject = subject.trim();
        let end = subject.floor_char_boundary(SUBJECT_BYTES_MAX);
        let (shown, rest) = subject.split_at_checked(end)?;
        (!shown.is_empty()).then(|| [shown, if rest.is_empty() { "" } else { "…" }].concat())
    }
}

/// The part of a message that is returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Returned {
    /// The header.
    Header,
    /// The whole message, in this script. The caller writes it.
    Whole(Script),
}

/// The part of a report about one recipient.
#[derive(Clone, Copy, Debug)]
pub struct RecipientReport<'a> {
    /// The recipient.
    pub recipient: &'a OutgoingRecipient,
    /// The status (RFC 3463).
    pub status: Enhanced,
    /// The reason in words, without a full stop. If a delay report also names recipients of other
    /// outbox entries of the message, the words about those recipients end with the other server's
    /// reply, since `reply` is not known.
    pub words: &'a str,
    /// The other server's reply.
    pub reply: Option<&'a Reply>,
    /// The other server's name.
    pub host: Option<&'a str>,
}

/// Whether the sender of a message wants this kind of report about this recipient (RFC 3461 section
/// 4.1).
pub fn is_wanted(envelope: &Envelope, recipient: &OutgoingRecipient, kind: ReportKind) -> bool {
    // By default, a sender wants reports of failures and delays.
    let notify = recipient.notify.unwrap_or(Notify { success: false, failure: true, delay: true });
    let is_wanted = match kind {
        ReportKind::Failed => notify.failure,
        ReportKind::Delayed { .. } => notify.delay,
        ReportKind::Relayed | ReportKind::Delivered => notify.success,
    };
    is_wanted && !envelope.reverse_path.is_empty()
}

/// Writes a report. If the whole message is returned, the report is written up to the first byte of
/// the message.
pub fn write(report: &Report<'_>, out: &mut Vec<u8>) {
    assert!(!report.to.is_empty(), "a report has a recipient");
    let boundary = boundary(report.secret);
    let mut text = String::new();
    write_header(report, &boundary, &mut text);
    let mut words = String::new();
    write_words(report, &mut words);
    let encoding = if words.is_ascii() { "7bit" } else { "8bit" };
    text.extend(["--", &boundary, "\r\nContent-Type: text/plain; charset=utf-8\r\n"]);
    text.extend(["Content-Transfer-Encoding: ", encoding, "\r\n\r\n", &words]);
    text.extend(["\r\n--", &boundary, "\r\nContent-Type: message/delivery-status\r\n\r\n"]);
    write_status(report, &mut text);
    let header;
    let (kind, encoding, message) = match report.returned {
        Returned::Header => {
            header = self::header(report.header);
            let is_ascii = header.is_ascii();
            let (kind, encoding) = if is_ascii {
                ("text/rfc822-headers", "7bit")
            } else {
                ("message/global-headers", "8bit")
            };
            (kind, encoding, header.as_str())
        }
        // The content was not checked, so the message may have non-ASCII bytes.
        Returned::Whole(Script::Ascii) => ("message/rfc822", "8bit", ""),
        Returned::Whole(Script::Utf8) => ("message/global", "8bit", ""),
    };
    text.extend(["\r\n--", &boundary, "\r\nContent-Type: ", kind]);
    text.extend(["\r\nContent-Transfer-Encoding: ", encoding, "\r\n\r\n", message]);
    out.extend_from_slice(text.as_bytes());
    if report.returned == Returned::Header {
        write_end(report.secret, out);
    }
}

/// Writes the end of a report with this secret, after a whole message that is returned.
pub fn write_end(secret: u128, out: &mut Vec<u8>) {
    out.extend_from_slice(["\r\n--", &boundary(secret), "--\r\n"].concat().as_bytes());
}

fn boundary(secret: u128) -> String {
    alloc::format!("=_r{secret:032x}")
}

fn write_header(report: &Report<'_>, boundary: &str, out: &mut String) {
    let (message, done) = report.reader.words();
    let subject = match report.kind {
        ReportKind::Failed => alloc::format!("{message} could not be {done}"),
        ReportKind::Delayed { .. } => alloc::format!("{message} has not been {done} yet"),
        ReportKind::Relayed => alloc::format!("{message} went on to another server"),
        ReportKind::Delivered => alloc::format!("{message} was {done}"),
    };
    field("Date", &date(report.date), out);
    field("From", &["Mail delivery <", report.from, ">"].concat(), out);
    field("To", &["<", report.to, ">"].concat(), out);
    field("Subject", &subject, out);
    field("Message-ID", &["<", report.message_id, ">"].concat(), out);
    if let Some(reported) = report.message_id_of_message() {
        // The report is in the conversation of the message.
        let reported = ["<", reported, ">"].concat();
        field("In-Reply-To", &reported, out);
        field("References", &reported, out);
    }
    field("Auto-Submitted", "auto-replied", out);
    field("MIME-Version", "1.0", out);
    out.extend([
        "Content-Type: multipart/report; report-type=delivery-status;\r\n boundary=\"",
        boundary,
        "\"\r\n\r\n",
    ]);
}

/// The part for people.
fn write_words(report: &Report<'_>, out: &mut String) {
    let (message, done) = report.reader.words();
    let subject = report.subject();
    let message = &*subject.map_or(message.into(), |subject| {
        [message, " with the subject \"", &subject, "\""].concat()
    });
    let until;
    let (before, after) = match (report.kind, report.reader) {
        (ReportKind::Failed, ReportTo::Sender) => (
            alloc::format!("{message} could not be {done} to:"),
            "The server will not try again. Check the address before you send the message again.",
        ),
        (ReportKind::Failed, ReportTo::Forwarder) => (
            alloc::format!("{message} could not be {done} to:"),
            "The server will not try again. The sender was not told: the message names no sender, or the address could not be verified.",
        ),
        (ReportKind::Delayed { until: given }, _) => {
            until = alloc::format!(
                "The server will keep trying until {}. You do not need to do anything. If the message cannot be {done} by then, you will get another report.",
                date(given)
            );
            (alloc::format!("{message} has not been {done} yet to:"), &*until)
        }
        (ReportKind::Relayed, _) => (
            alloc::format!(
                "{message} was relayed to a server that does not report deliveries, for:"
            ),
            "If that server cannot deliver it, it should tell you.",
        ),
        (ReportKind::Delivered, _) => (
            alloc::format!("{message} was {done} to:"),
            "This does not mean that the message was read.",
        ),
    };
    paragraph("", &before, out);
    for recipient in report.recipients {
        out.push_str("\r\n");
        paragraph("  ", &["<", &recipient.recipient.address, ">"].concat(), out);
        paragraph("    ", &sentence(recipient.words), out);
        if let Some(reply) = recipient.reply {
            let host = recipient.host.unwrap_or("It");
            paragraph("    ", &alloc::format!("{host} replied: {reply}"), out);
        }
    }
    out.push_str("\r\n");
    paragraph("", after, out);
    out.push_str("\r\n");
    let arrived = date(report.arrived);
    let what = if matches!(report.returned, Returned::Whole(_)) { "It" } else { "Its header" };
    let hostname = report.hostname;
    paragraph(
        "",
        &alloc::format!(
            "{message} was received by {hostname} on {arrived}. {what} is attached, after a report for programs."
        ),
        out,
    );
}

/// The part for programs (RFC 3464 sections 2.2 and 2.3).
fn write_status(report: &Report<'_>, out: &mut String) {
    if let Some(identifier) = report.envelope_id {
        field("Original-Envelope-Id", &from_xtext(identifier), out);
    }
    field("Reporting-MTA", &["dns; ", report.hostname].concat(), out);
    field("Arrival-Date", &date(report.arrived), out);
    for recipient in report.recipients {
        out.push_str("\r\n");
        if let Some((kind, address)) =
            recipient.recipient.original.as_ref().and_then(|original| original.split_once(';'))
        {
            field("Original-Recipient", &[kind, "; ", &from_xtext(address)].concat(), out);
        }
        field("Final-Recipient", &typed(&recipient.recipient.address), out);
        let action = match report.kind {
            ReportKind::Failed => "failed",
            ReportKind::Delayed { .. } => "delayed",
            ReportKind::Relayed => "relayed",
            ReportKind::Delivered => "delivered",
        };
        field("Action", action, out);
        field("Status", &alloc::format!("{}", recipient.status), out);
        if let Some(host) = recipient.host {
            field("Remote-MTA", &["dns; ", host].concat(), out);
        }
        if let Some(reply) = recipient.reply {
            let reply = ascii(&alloc::format!("smtp; {reply}"), |byte| byte != b'\\');
            field("Diagnostic-Code", &reply, out);
        }
        field("Last-Attempt-Date", &date(report.date), out);
        if let ReportKind::Delayed { until } = report.kind {
            field("Will-Retry-Until", &date(until), out);
        }
    }
}

fn date(time: UnixTime) -> String {
    String::from_utf8_lossy(&date_time(time)).into_owned()
}

/// Writes a field, folded between its words.
fn field(name: &str, value: &str, out: &mut String) {
    out.extend([name, ": "]);
    fold(name.len() + 2, " ", value, out);
}

/// Writes a paragraph, with this indentation before each of its lines.
fn paragraph(indent: &str, text: &str, out: &mut String) {
    out.push_str(indent);
    fold(indent.len(), indent, text, out);
}

/// Writes words on lines. The first line has `start` bytes already, and each other line begins with
/// `indent`. Control characters become question marks.
fn fold(start: usize, indent: &str, text: &str, out: &mut String) {
    let mut column = start;
    let mut is_first = true;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut rest = word;
        while !rest.is_empty() {
            let (part, after) = rest
                .split_at_checked(rest.floor_char_boundary(WORD_BYTES_MAX))
                .unwrap_or((rest, ""));
            if is_first {
                is_first = false;
            } else if column + 1 + part.len() > LINE_BYTES {
                out.extend(["\r\n", indent]);
                column = indent.len();
            } else {
                out.push(' ');
                column += 1;
            }
            out.extend(
                part.chars().map(|character| if character.is_control() { '?' } else { character }),
            );
            column += part.len();
            rest = after;
        }
    }
    out.push_str("\r\n");
}

/// An address with its type, always in ASCII (RFC 6533 section 3).
fn typed(address: &str) -> String {
    if address.is_ascii() {
        return ["rfc822; ", address].concat();
    }
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'+' | b'=' | b'\\');
    ["utf-8; ", &ascii(address, is_plain)].concat()
}

/// A text in which each character that is not ASCII, or not plain, is written as `\x{F8}` (RFC 6533
/// section 3). `is_plain`: whether an ASCII character stays.
fn ascii(text: &str, is_plain: impl Fn(u8) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if u8::try_from(character).is_ok_and(|byte| byte.is_ascii() && is_plain(byte)) {
            out.push(character);
        } else {
            // Writing to a string never fails.
            let _ = write!(out, "\\x{{{:X}}}", u32::from(character));
        }
    }
    out
}

/// Words as a sentence: with a capital letter and a full stop.
fn sentence(words: &str) -> String {
    let mut rest = words.chars();
    let first = rest.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(rest.as_str().chars()).chain(core::iter::once('.')).collect()
}

/// Undoes xtext (RFC 3461 section 4). Invalid sequences and unprintable characters stay encoded.
fn from_xtext(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('+') {
        plain.push_str(before);
        let hexadecimal = after
            .split_at_checked(2)
            .filter(|(digits, _)| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let value = hexadecimal
            .and_then(|(digits, behind)| Some((u8::from_str_radix(digits, 16).ok()?, behind)));
        match value.filter(|(byte, _)| byte.is_ascii_graphic() || *byte == b' ') {
            Some((byte, behind)) => {
                plain.push(char::from(byte));
                rest = behind;
            }
            None => {
                plain.push('+');
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    plain
}

/// The header of a message, line by line. The charset of a line that is not UTF-8 is guessed.
fn header(message: &[u8]) -> String {
    let most = message.get(..HEADER_BYTES_MAX).unwrap_or(message);
    let mut header = String::with_capacity(most.len().min(4096));
    for line in most.split_inclusive(|byte| *byte == b'\n') {
        let Some(line) = line.strip_suffix(b"\n") else { break };
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            break;
        }
        push_line(line, &mut header);
        header.push_str("\r\n");
    }
    header
}

fn push_line(line: &[u8], out: &mut String) {
    let line = message::decode_guessed(line);
    // A line above the limit is cut.
    let line = line.get(..line.floor_char_boundary(WORD_BYTES_MAX)).unwrap_or(&line);
    out.extend(line.chars().map(|character| match character {
        '\t' => '\t',
        character if character.is_control() => '?',
        character => character,
    }));
}
