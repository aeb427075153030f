//! The stored envelope of a waiting message: fields at the top of the stored message.
//!
//! ```text
//!   Return-Path: <ada@us.test>
//!   Envelope-Options: BODY=8BITMIME SMTPUTF8 RET=HDRS ENVID=QQ1 HELDUNTIL=1795521600 (optional)
//!   Envelope-To: <bob@there.test> NOTIFY=FAILURE,DELAY ORCPT=rfc822;bob@old.test,
//!       <"a b"@there.test>
//! ```
//! If the message has long lines, [`LONG_LINES`] stands above these fields. The message that is
//! sent follows the envelope. Only this server reads these fields, so they have a fixed form and
//! order, with one recipient a line. A line that ends in a comma is followed by another recipient.
//! The message itself may begin with fields that look the same. These are not read.
//!
//! Invariants:
//! - A written envelope can be read again, whatever quotes an address has. The reader finds the
//!   byte at which the message begins.
//! - An envelope that was read has valid paths, and none of its values contains a line end.
//!
//! Implements: RFC 5321 section 4.4 (Return-Path), RFC 3461 section 4, RFC 6531 section 3.4, RFC
//! 5322 section 2.1.1.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::str;

use machine::UnixTime;
use smtp::{Notify, Return};

use crate::outgoing_message::{
    ContentWidth, Envelope, OutgoingRecipient, Script, is_forward_path, is_parameter,
    is_reverse_path, write_report_parameters,
};

/// The most recipients of an envelope.
pub const RECIPIENTS_MAX: usize = 1024;
/// The most bytes of an envelope.
pub const BYTES_MAX: usize = 256 * 1024;

/// The field above the envelope of a submitted message that has lines longer than SMTP permits. It
/// follows the signatures, since it is known at the end of the message.
pub const LONG_LINES: &[u8] = b"Envelope-Lines: LONG\r\n";

const RETURN_PATH: &str = "Return-Path: ";
const OPTIONS: &str = "Envelope-Options: ";
const HELD_UNTIL: &str = "HELDUNTIL";
const TO: &str = "Envelope-To: ";

/// Why an envelope cannot be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnwritableEnvelope {
    /// An address or a parameter is not valid.
    Malformed,
    /// There are no recipients, or too many.
    Recipients,
    /// The envelope would be longer than [`BYTES_MAX`].
    TooLong,
}

/// Why an envelope cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnreadableEnvelope {
    /// The envelope may continue after these bytes.
    Partial,
    /// The envelope is not valid.
    Malformed,
}

/// Writes the fields of an envelope. The envelope stores the order of the recipients, but not their
/// numbers.
///
/// Errors: nothing is written.
pub fn write(envelope: &Envelope, out: &mut Vec<u8>) -> Result<(), UnwritableEnvelope> {
    if !(1..=RECIPIENTS_MAX).contains(&envelope.recipients.len()) {
        return Err(UnwritableEnvelope::Recipients);
    }
    let mut parameters = envelope
        .recipients
        .iter()
        .filter_map(|to| to.original.as_ref())
        .chain(&envelope.envelope_id);
    let are_paths = is_reverse_path(&envelope.reverse_path)
        && envelope.recipients.iter().all(|recipient| is_forward_path(&recipient.address));
    if !are_paths || !parameters.all(|parameter| is_parameter(parameter)) {
        return Err(UnwritableEnvelope::Malformed);
    }
    let mut text = [RETURN_PATH, "<", &envelope.reverse_path, ">\r\n"].concat();
    let options = options(envelope);
    if !options.is_empty() {
        text.extend([OPTIONS, &options, "\r\n"]);
    }
    for (place, recipient) in envelope.recipients.iter().enumerate() {
        text.push_str(if place == 0 { TO } else { ",\r\n\t" });
        text.extend(["<", &recipient.address, ">"]);
        write_report_parameters(recipient, &mut text);
    }
    text.push_str("\r\n");
    if text.len() > BYTES_MAX {
        return Err(UnwritableEnvelope::TooLong);
    }
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

fn options(envelope: &Envelope) -> String {
    let returned = envelope.returned.map(|returned| ["RET=", returned.word()].concat());
    let identifier =
        envelope.envelope_id.as_ref().map(|identifier| ["ENVID=", identifier].concat());
    let held = envelope.held_until.map(|until| format!("{HELD_UNTIL}={}", until.seconds()));
    let words = [
        (envelope.content == ContentWidth::EightBit).then_some("BODY=8BITMIME"),
        (envelope.script == Script::Utf8).then_some("SMTPUTF8"),
        returned.as_deref(),
        identifier.as_deref(),
        held.as_deref(),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Reads the envelope at the beginning of a message, with its recipients numbered from zero. Also
/// returns the length of the envelope in bytes, which is the offset of the message.
pub fn read(bytes: &[u8]) -> Result<(Envelope, usize), UnreadableEnvelope> {
    match read_fields(bytes) {
        // No envelope has this length.
        Err(UnreadableEnvelope::Partial) if bytes.len() >= BYTES_MAX => {
            Err(UnreadableEnvelope::Malformed)
        }
        read => read,
    }
}

fn read_fields(bytes: &[u8]) -> Result<(Envelope, usize), UnreadableEnvelope> {
    let mut lines = EnvelopeLines { rest: bytes };
    let reverse_path = lines.field(RETURN_PATH)?.ok_or(UnreadableEnvelope::Malformed)?;
    let reverse_path = reverse_path.strip_prefix('<').and_then(|path| path.strip_suffix('>'));
    let reverse_path =
        reverse_path.filter(|path| is_reverse_path(path)).ok_or(UnreadableEnvelope::Malformed)?;
    let mut envelope = Envelope {
        reverse_path: String::from(reverse_path),
        recipients: Vec::new(),
        content: ContentWidth::SevenBit,
        script: Script::Ascii,
        returned: None,
        envelope_id: None,
        held_until: None,
    };
    if let Some(options) = lines.field(OPTIONS)? {
        options
            .split(' ')
            .try_for_each(|word| read_option(word, &mut envelope))
            .ok_or(UnreadableEnvelope::Malformed)?;
    }
    let mut line = lines.field(TO)?.ok_or(UnreadableEnvelope::Malformed)?;
    loop {
        let is_last = !line.ends_with(',');
        let number = u16::try_from(envelope.recipients.len())
            .ok()
            .filter(|number| usize::from(*number) < RECIPIENTS_MAX);
        let recipient = number
            .and_then(|number| read_recipient(number, line.strip_suffix(',').unwrap_or(line)));
        envelope.recipients.push(recipient.ok_or(UnreadableEnvelope::Malformed)?);
        if is_last {
            return Ok((envelope, bytes.len() - lines.rest.len()));
        }
        line = lines.field("\t")?.ok_or(UnreadableEnvelope::Malformed)?;
    }
}

fn read_option(word: &str, envelope: &mut Envelope) -> Option<()> {
    match word.split_once('=') {
        Some(("BODY", "8BITMIME")) => envelope.content = ContentWidth::EightBit,
        None if word == "SMTPUTF8" => envelope.script = Script::Utf8,
        Some(("RET", returned)) => envelope.returned = Some(Return::read(returned)?),
        Some(("ENVID", identifier)) if is_parameter(identifier) => {
            envelope.envelope_id = Some(String::from(identifier))
        }
        Some((HELD_UNTIL, seconds)) if seconds.bytes().all(|byte| byte.is_ascii_digit()) => {
            envelope.held_until = Some(UnixTime::from_seconds(seconds.parse().ok()?))
        }
        _ => return None,
    }
    Some(())
}

fn read_recipient(number: u16, line: &str) -> Option<OutgoingRecipient> {
    let (path, wishes) = smtp::SmtpPath::read(line).ok()?;
    let smtp::SmtpPath::Mailbox(mailbox) = path else { return None };
    // A path in another form, such as one with a source route, is refused, since the client would
    // write it as a path of the usual form.
    line.strip_prefix('<')?.strip_prefix(mailbox.text)?.strip_prefix('>')?;
    let mut recipient = OutgoingRecipient {
        number,
        address: String::from(mailbox.text),
        notify: None,
        original: None,
    };
    let mut words = wishes.split(' ');
    if words.next() != Some("") {
        return None;
    }
    for word in words {
        match word.split_once('=')? {
            ("NOTIFY", wishes) => recipient.notify = Some(Notify::read(wishes)?),
            ("ORCPT", original) if is_parameter(original) => {
                recipient.original = Some(String::from(original))
            }
            _ => return None,
        }
    }
    Some(recipient)
}

/// The lines that were not read yet.
struct EnvelopeLines<'a> {
    rest: &'a [u8],
}

impl<'a> EnvelopeLines<'a> {
    /// The rest of the next line, if it begins with `name`.
    fn field(&mut self, name: &str) -> Result<Option<&'a str>, UnreadableEnvelope> {
        let Some(value) = self.rest.strip_prefix(name.as_bytes()) else {
            let may_be = name.as_bytes().starts_with(self.rest);
            return if may_be { Err(UnreadableEnvelope::Partial) } else { Ok(None) };
        };
        let end = memchr::memchr(b'\n', value).ok_or(UnreadableEnvelope::Partial)?;
        let (line, rest) = value.split_at_checked(end + 1).ok_or(UnreadableEnvelope::Partial)?;
        let line = line.strip_suffix(b"\r\n").and_then(|line| str::from_utf8(line).ok());
        self.rest = rest;
        line.map(Some).ok_or(UnreadableEnvelope::Malformed)
    }
}
