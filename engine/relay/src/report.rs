//! What the sender of a letter is told of it: a message in words for people, in fields for programs, and with the letter or its header.
//!
//! ```text
//!   multipart/report
//!   ├── text/plain                    in plain words
//!   ├── message/delivery-status       a block for the letter, and one for each recipient
//!   └── text/rfc822-headers           or message/global-headers, where they have more than ASCII; of the whole letter message/rfc822 or message/global
//! ```
//! Invariants:
//! - A letter that comes from nobody is never reported: whoever delivers a report gives it nobody as its sender (RFC 3464 section 2), and so there is an end to them.
//! - What is written has lines of at most 998 bytes that end in CRLF; nothing that a peer or a letter said begins a field or a part.
//! - A report is bounded, whatever the letter: of its header [`HEADER_BYTES_MAX`] go back. All of it goes back only with a failure (RFC 3461 section 4.3), and is not held here: it follows
//!   what [`write`] has written, and [`write_end`] ends it.
//!
//! Addresses beyond ASCII are written as RFC 6533 section 3 has them in ASCII (`utf-8; b\x{F8}b@there.test`), so that old programs read the fields too.
//!
//! Answers to: RFC 3461 sections 4.1 and 5.2, RFC 3462, RFC 3464, RFC 3834 section 5 (Auto-Submitted), RFC 6522, RFC 6533.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use machine::UnixTime;
use message::date_time;
use smtp::Notify;

use crate::letter::{Envelope, Recipient, Script};
use crate::reply::{Enhanced, Reply};

/// So much of a letter's header goes back.
pub const HEADER_BYTES_MAX: usize = 64 * 1024;
/// Where lines are folded, if their words allow it.
const LINE_BYTES: usize = 76;
/// A line is no longer than this; a word that is goes on in the next.
const WORD_BYTES_MAX: usize = 900;

/// What is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It was not delivered and will not be.
    Failed,
    /// It was not delivered yet, and is tried again until then.
    Delayed {
        /// When it is given up.
        until: UnixTime,
    },
    /// It went on to a server that does not tell what becomes of it.
    Relayed,
    /// It was delivered.
    Delivered,
}

/// The kind of recipient that a report has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportTo {
    /// The sender of the message.
    Sender,
    /// The account that forwards the message. The sender is not told.
    Forwarder,
}

impl ReportTo {
    /// The name of the message at the beginning of a sentence, and the participle for what was to
    /// be done.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            ReportTo::Sender => ("Your message", "delivered"),
            ReportTo::Forwarder => ("A message for you", "sent on"),
        }
    }
}

/// A report on one letter.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// What is told.
    pub kind: Kind,
    /// The name of this server.
    pub hostname: &'a str,
    /// Who writes: an address that somebody reads.
    pub from: &'a str,
    /// The address that the report goes to. It is not empty.
    pub to: &'a str,
    /// The kind of recipient at `to`.
    pub reader: ReportTo,
    /// When.
    pub date: UnixTime,
    /// What the report is to be known by, without angle brackets.
    pub message_id: &'a str,
    /// Nobody can know it before the report is written: by this its parts are told apart.
    pub secret: u128,
    /// When the letter came.
    pub arrived: UnixTime,
    /// What the sender calls its envelope (ENVID), as xtext.
    pub envelope_id: Option<&'a str>,
    /// Of whom there is something to tell.
    pub recipients: &'a [Fate<'a>],
    /// What goes back of the letter.
    pub letter: Returned<'a>,
}

/// What goes back of a letter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Returned<'a> {
    /// Its header: the letter from its first field on. What follows its header is not looked at.
    Header(&'a [u8]),
    /// All of it, which whoever asks for the report has, in this script.
    Whole(Script),
}

/// What there is to tell of one recipient.
#[derive(Clone, Copy, Debug)]
pub struct Fate<'a> {
    /// Who.
    pub recipient: &'a Recipient,
    /// How it stands (RFC 3463).
    pub status: Enhanced,
    /// The same in words, without a full stop.
    pub words: &'a str,
    /// What the other server said.
    pub reply: Option<&'a Reply>,
    /// Which server that is.
    pub host: Option<&'a str>,
}

/// Whether who sent a letter wants to be told this of this recipient (RFC 3461 section 4.1).
pub fn is_wanted(envelope: &Envelope, recipient: &Recipient, kind: Kind) -> bool {
    // Who says nothing wants to hear of what goes wrong.
    let notify = recipient.notify.unwrap_or(Notify { success: false, failure: true, delay: true });
    let is_wanted = match kind {
        Kind::Failed => notify.failure,
        Kind::Delayed { .. } => notify.delay,
        Kind::Relayed | Kind::Delivered => notify.success,
    };
    is_wanted && !envelope.reverse_path.is_empty()
}

/// Writes a report as a whole message; where all of the letter goes back, up to its first byte.
pub fn write(report: &Report<'_>, out: &mut Vec<u8>) {
    assert!(!report.to.is_empty(), "nobody is told nothing");
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
    let (kind, encoding, letter) = match report.letter {
        Returned::Header(letter) => {
            header = self::header(letter);
            let is_ascii = header.is_ascii();
            let (kind, encoding) = if is_ascii {
                ("text/rfc822-headers", "7bit")
            } else {
                ("message/global-headers", "8bit")
            };
            (kind, encoding, header.as_str())
        }
        // Whether there is more than ASCII in it nobody has looked.
        Returned::Whole(Script::Ascii) => ("message/rfc822", "8bit", ""),
        Returned::Whole(Script::Utf8) => ("message/global", "8bit", ""),
    };
    text.extend(["\r\n--", &boundary, "\r\nContent-Type: ", kind]);
    text.extend(["\r\nContent-Transfer-Encoding: ", encoding, "\r\n\r\n", letter]);
    out.extend_from_slice(text.as_bytes());
    if matches!(report.letter, Returned::Header(_)) {
        write_end(report.secret, out);
    }
}

/// What follows the letter in a report with this secret, where all of it goes back.
pub fn write_end(secret: u128, out: &mut Vec<u8>) {
    out.extend_from_slice(["\r\n--", &boundary(secret), "--\r\n"].concat().as_bytes());
}

fn boundary(secret: u128) -> String {
    alloc::format!("=_r{secret:032x}")
}

fn write_header(report: &Report<'_>, boundary: &str, out: &mut String) {
    let (message, done) = report.reader.words();
    let subject = match report.kind {
        Kind::Failed => alloc::format!("{message} could not be {done}"),
        Kind::Delayed { .. } => alloc::format!("{message} has not been {done} yet"),
        Kind::Relayed => alloc::format!("{message} went on to another server"),
        Kind::Delivered => alloc::format!("{message} was {done}"),
    };
    field("Date", &date(report.date), out);
    field("From", &["Mail delivery <", report.from, ">"].concat(), out);
    field("To", &["<", report.to, ">"].concat(), out);
    field("Subject", &subject, out);
    field("Message-ID", &["<", report.message_id, ">"].concat(), out);
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
    let until;
    let (before, after) = match (report.kind, report.reader) {
        (Kind::Failed, ReportTo::Sender) => (
            alloc::format!("{message} could not be {done} to:"),
            "It will not be tried again. If you write again, see first that the address is right.",
        ),
        (Kind::Failed, ReportTo::Forwarder) => (
            alloc::format!("{message} could not be {done} to:"),
            "It will not be tried again. The sender was not told: the message names none, or its address could not be verified.",
        ),
        (Kind::Delayed { until: given }, _) => {
            until = alloc::format!(
                "Delivery will be retried until {}. You do not need to do anything. If it cannot be {done} by then, you will be told.",
                date(given)
            );
            (alloc::format!("{message} has not been {done} yet to:"), &*until)
        }
        (Kind::Relayed, _) => (
            alloc::format!(
                "{message} went on to a server that does not tell what becomes of it, for:"
            ),
            "If it cannot be delivered there, you should be told.",
        ),
        (Kind::Delivered, _) => {
            (alloc::format!("{message} was {done} to:"), "You will not be told whether it is read.")
        }
    };
    paragraph("", &before, out);
    for fate in report.recipients {
        out.push_str("\r\n");
        paragraph("  ", &["<", &fate.recipient.address, ">"].concat(), out);
        paragraph("    ", fate.words, out);
    }
    out.push_str("\r\n");
    paragraph("", after, out);
    out.push_str("\r\n");
    let came = date(report.arrived);
    let what = if matches!(report.letter, Returned::Whole(_)) { "It" } else { "Its header" };
    let hostname = report.hostname;
    paragraph(
        "",
        &alloc::format!(
            "{message} came to {hostname} on {came}. {what} is below, after a report for programs."
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
    for fate in report.recipients {
        out.push_str("\r\n");
        if let Some((kind, address)) =
            fate.recipient.original.as_ref().and_then(|original| original.split_once(';'))
        {
            field("Original-Recipient", &[kind, "; ", &from_xtext(address)].concat(), out);
        }
        field("Final-Recipient", &typed(&fate.recipient.address), out);
        let action = match report.kind {
            Kind::Failed => "failed",
            Kind::Delayed { .. } => "delayed",
            Kind::Relayed => "relayed",
            Kind::Delivered => "delivered",
        };
        field("Action", action, out);
        field("Status", &alloc::format!("{}", fate.status), out);
        if let Some(host) = fate.host {
            field("Remote-MTA", &["dns; ", host].concat(), out);
        }
        if let Some(reply) = fate.reply {
            field("Diagnostic-Code", &alloc::format!("smtp; {reply}"), out);
        }
        field("Last-Attempt-Date", &date(report.date), out);
        if let Kind::Delayed { until } = report.kind {
            field("Will-Retry-Until", &date(until), out);
        }
    }
}

fn date(time: UnixTime) -> String {
    String::from_utf8_lossy(&date_time(time)).into_owned()
}

/// A field, folded between its words.
fn field(name: &str, value: &str, out: &mut String) {
    out.extend([name, ": "]);
    fold(name.len() + 2, " ", value, out);
}

/// A paragraph, with so much space before each of its lines.
fn paragraph(indent: &str, text: &str, out: &mut String) {
    out.push_str(indent);
    fold(indent.len(), indent, text, out);
}

/// Words on lines; the first of which has so many bytes already, and each other begins with `indent`. What would end a line is a question mark.
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

/// An address with its type: in ASCII, whatever it is (RFC 6533 section 3).
fn typed(address: &str) -> String {
    if address.is_ascii() {
        return ["rfc822; ", address].concat();
    }
    let mut text = String::from("utf-8; ");
    for character in address.chars() {
        if character.is_ascii_graphic() && !matches!(character, '+' | '=' | '\\') {
            text.push(character);
        } else {
            // A string takes whatever it is given.
            let _ = write!(text, "\\x{{{:X}}}", u32::from(character));
        }
    }
    text
}

/// Undoes xtext (RFC 3461 section 4). What is none, or stands for what cannot be printed, stays as it is.
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

/// The header of a letter, line by line: what is no UTF-8 is not believed to be text, and becomes question marks.
fn header(letter: &[u8]) -> String {
    let most = letter.get(..HEADER_BYTES_MAX).unwrap_or(letter);
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
    // A line that is longer than any may be is cut.
    let line = line.get(..WORD_BYTES_MAX).unwrap_or(line);
    match core::str::from_utf8(line) {
        Ok(line) => out.extend(line.chars().map(|character| match character {
            '\t' => '\t',
            character if character.is_control() => '?',
            character => character,
        })),
        Err(_) => out.extend(line.iter().map(|byte| match byte {
            b'\t' | b' '..=b'~' => char::from(*byte),
            _ => '?',
        })),
    }
}
