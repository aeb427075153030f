//! Reports on messages, as other servers and other readers' programs write them: what became of a
//! message, recipient by recipient ([`delivery_report`]), and whether a reader's program has
//! displayed it ([`read_receipt`]).
//!
//! A report is a claim: any sender can write one. A page that shows it must say so.
//!
//! Invariants:
//! - Reading never fails. A block that names no recipient or says nothing about it is left out.
//! - A report has at most [`RECIPIENTS_MAX`] recipients. An address has at most
//!   [`ADDRESS_CHARS_MAX`] characters, the words of a server have at most [`DIAGNOSTIC_CHARS_MAX`],
//!   and a subject has at most [`SUBJECT_CHARS_MAX`]. All texts are on one line, without characters
//!   that hide others or change their order.
//! - The work is linear in the bytes of the report.
//!
//! Implements: RFC 3464 section 2, RFC 6533 section 3 (addresses), RFC 8098 section 3.

mod status;

use alloc::string::String;
use alloc::vec::Vec;

use machine::UnixTime;

use crate::header::{Field, Header};
use crate::shown::one_line;
pub use status::Enhanced;

/// The maximum number of recipients of a report that are read.
pub const RECIPIENTS_MAX: usize = 50;

/// The maximum number of characters of an address that are kept.
pub const ADDRESS_CHARS_MAX: usize = 320;

/// The maximum number of characters of a server's words that are kept.
pub const DIAGNOSTIC_CHARS_MAX: usize = 500;

/// The maximum number of characters of a subject that are kept.
pub const SUBJECT_CHARS_MAX: usize = 200;

/// A report on the delivery of a message (RFC 3464).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeliveryReport {
    /// The recipients, in the order of the report.
    pub recipients: Vec<RecipientStatus>,
    /// Whether the report has more recipients.
    pub has_more: bool,
}

/// What a report says about one recipient.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecipientStatus {
    /// The address, as the sender of the message wrote it, if that is known.
    pub address: String,
    /// What became of the message.
    pub action: DeliveryAction,
    /// The reason.
    pub status: Option<Enhanced>,
    /// The words of the server that has the mailbox, or of the reporting server. They may be empty.
    pub diagnostic: String,
    /// The time until which the server keeps trying.
    pub retry_until: Option<UnixTime>,
}

/// What became of a message to one recipient (RFC 3464 section 2.3.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeliveryAction {
    /// It was not delivered, and will not be.
    Failed,
    /// It was not delivered yet.
    Delayed,
    /// It was delivered.
    Delivered,
    /// It went on to a server that sends no reports.
    Relayed,
    /// It was delivered, and went on to further addresses.
    Expanded,
}

/// A report on what a reader's program did with a message (RFC 8098).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadReceipt {
    /// The address of the reader: one word with an `@`. It may be empty.
    pub address: String,
    /// What happened to the message.
    pub disposition: ReceiptDisposition,
}

/// What happened to a message at its reader (RFC 8098 section 3.2.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiptDisposition {
    /// It was displayed.
    Displayed,
    /// It was deleted.
    Deleted,
    /// Something else, such as processing without a display.
    Processed,
}

/// Whether a part of this type is a report for [`delivery_report`].
pub fn is_delivery_report(media_type: &str) -> bool {
    matches!(media_type, "message/delivery-status" | "message/global-delivery-status")
}

/// Whether a part of this type is a report for [`read_receipt`].
pub fn is_read_receipt(media_type: &str) -> bool {
    matches!(
        media_type,
        "message/disposition-notification" | "message/global-disposition-notification"
    )
}

/// Reads the content of a `message/delivery-status`. `None`: it says nothing about any recipient.
pub fn delivery_report(text: &str) -> Option<DeliveryReport> {
    let mut recipients = blocks(text).filter_map(recipient);
    let mut report = DeliveryReport::default();
    report.recipients.extend(recipients.by_ref().take(RECIPIENTS_MAX));
    report.has_more = recipients.next().is_some();
    (!report.recipients.is_empty()).then_some(report)
}

/// Reads the content of a `message/disposition-notification`. `None`: it names no disposition.
pub fn read_receipt(text: &str) -> Option<ReadReceipt> {
    let block = blocks(text).next()?;
    let disposition = block.field("Disposition")?.text();
    // The disposition follows the modes and precedes the modifiers.
    let (_, disposition) = disposition.rsplit_once(';')?;
    let disposition = disposition.split(['/', ',']).next().unwrap_or_default().trim();
    let disposition = match disposition.to_ascii_lowercase().as_str() {
        "" => return None,
        "displayed" => ReceiptDisposition::Displayed,
        "deleted" => ReceiptDisposition::Deleted,
        _ => ReceiptDisposition::Processed,
    };
    let is_address = |address: &String| address.contains('@') && !address.contains(' ');
    let address = address(block).filter(is_address).unwrap_or_default();
    Some(ReadReceipt { address, disposition })
}

/// The blocks of fields in a report, which empty lines separate.
fn blocks(text: &str) -> impl Iterator<Item = Header<'_>> {
    let mut rest = text;
    core::iter::from_fn(move || {
        let is_empty = |line: &&str| line.trim_ascii().is_empty();
        let length = |lines: &mut dyn Iterator<Item = &str>| lines.map(str::len).sum::<usize>();
        let before = length(&mut rest.split_inclusive('\n').take_while(is_empty));
        let (_, block) = rest.split_at_checked(before)?;
        let block_length =
            length(&mut block.split_inclusive('\n').take_while(|line| !is_empty(line)));
        let (block, after) = block.split_at_checked(block_length)?;
        rest = after;
        (!block.is_empty()).then(|| Header::new(block.as_bytes()))
    })
}

/// Reads a block about a recipient.
fn recipient(block: Header<'_>) -> Option<RecipientStatus> {
    let address = address(block)?;
    let diagnostic = block.field("Diagnostic-Code").map(|field| typed_text(&field).1);
    let diagnostic = diagnostic.unwrap_or_default();
    let status = block.field("Status").and_then(|field| Enhanced::in_field(&field.text()));
    let status = Enhanced::most_specific(status, Enhanced::in_reply(&diagnostic));
    let action = block.field("Action").map(|field| field.text().to_ascii_lowercase());
    let action = match action.as_deref().map(str::trim) {
        Some("failed") => DeliveryAction::Failed,
        Some("delayed") => DeliveryAction::Delayed,
        Some("delivered") => DeliveryAction::Delivered,
        Some("relayed") => DeliveryAction::Relayed,
        Some("expanded") => DeliveryAction::Expanded,
        _ => match status?.class {
            2 => DeliveryAction::Delivered,
            4 => DeliveryAction::Delayed,
            _ => DeliveryAction::Failed,
        },
    };
    let retry_until = block.field("Will-Retry-Until").and_then(|field| field.date());
    Some(RecipientStatus {
        address,
        action,
        status,
        diagnostic: one_line(diagnostic.chars(), DIAGNOSTIC_CHARS_MAX),
        retry_until: retry_until.map(|date| date.time),
    })
}

/// The address of a block about a recipient.
fn address(block: Header<'_>) -> Option<String> {
    let names = ["Original-Recipient", "Final-Recipient"];
    names.into_iter().find_map(|name| {
        let (kind, address) = typed_text(&block.field(name)?);
        let address = address.trim_start_matches('<').trim_end_matches('>');
        let address = match kind.as_str() {
            "utf-8" => &*decoded(address),
            _ => address,
        };
        let address = one_line(address.chars(), ADDRESS_CHARS_MAX);
        (!address.is_empty()).then_some(address)
    })
}

/// The type of a field and the text after it: `rfc822; bob@there.test`. The type may be missing.
fn typed_text(field: &Field<'_>) -> (String, String) {
    let text = field.text();
    match text.split_once(';') {
        Some((kind, text)) if !kind.trim().contains([' ', '@']) => {
            (kind.trim().to_ascii_lowercase(), text.trim().into())
        }
        _ => (String::new(), text.trim().into()),
    }
}

/// Decodes the characters that RFC 6533 section 3 writes as `\x{F8}`.
fn decoded(address: &str) -> String {
    let mut pieces = address.split("\\x{");
    let mut out = String::from(pieces.next().unwrap_or_default());
    for piece in pieces {
        let character = piece.split_once('}').and_then(|(digits, after)| {
            let is_hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            let is_number = (1..=6).contains(&digits.len()) && is_hexadecimal;
            let number = u32::from_str_radix(digits, 16).ok().filter(|_| is_number)?;
            Some((char::from_u32(number)?, after))
        });
        match character {
            Some((character, after)) => {
                out.push(character);
                out.push_str(after);
            }
            None => out.extend(["\\x{", piece]),
        }
    }
    out
}

/// The subject of a reported message.
pub fn subject(field: &Field<'_>) -> String {
    let subject = one_line(field.text().chars(), SUBJECT_CHARS_MAX + 1);
    match subject.char_indices().nth(SUBJECT_CHARS_MAX) {
        Some((end, _)) => [subject.get(..end).unwrap_or_default(), "…"].concat(),
        None => subject,
    }
}
