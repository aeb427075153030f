//! The statements about the kind of a message, from its contents.
//!
//! What a report says about deliveries is a claim of its author. So the statement names the report
//! as its source. All texts of the report are facts below the statement: none is within a sentence
//! of the webmail.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use message::header::Header;
use message::presentation::{Presentation, ShownAs};
use message::report::{
    self, DeliveryAction, DeliveryReport, ReadReceipt, ReceiptDisposition, RecipientStatus,
};
use message::structure::Part;

use crate::moments::Moment;
use crate::notice::KindNotice;
use crate::zone::Zone;

use super::invitation::{self, Zones};
use super::message_contents::MessageContents;
use super::secured;

#[cfg(test)]
mod tests;

/// The maximum number of reports of a message about which something is said.
const REPORTS_MAX: usize = 10;

/// The statements about a message with these parts, which was read to its end.
pub(super) fn of(
    contents: &MessageContents,
    parts: &[Part],
    presentation: &Presentation,
    zones: &mut Zones<'_>,
) -> Vec<KindNotice> {
    let texts = presentation.shown().filter(|(_, shown_as)| *shown_as == ShownAs::Text);
    let texts = texts.filter_map(|(index, _)| {
        Some((&*parts.get(index)?.media_type, contents.text_of(index)?.text.as_str()))
    });
    let texts: Vec<(&str, &str)> = texts.collect();
    let subject = subject_in(&texts);
    let subject = subject.as_deref().or(contents.returned_subject()).unwrap_or_default();
    let mut reports = texts.iter().filter_map(|(media_type, text)| {
        if report::is_delivery_report(media_type) {
            Some(delivery(&report::delivery_report(text)?, subject, zones.reader()))
        } else if report::is_read_receipt(media_type) {
            Some(receipt(&report::read_receipt(text)?, subject))
        } else {
            None
        }
    });
    let plain = texts.iter().filter(|(media_type, _)| *media_type == "text/plain");
    let mut all = secured::notices(parts, plain.map(|(_, text)| *text));
    all.extend(reports.by_ref().take(REPORTS_MAX));
    if reports.next().is_some() {
        all.push(KindNotice::sentence("This message has more reports."));
    }
    let from = contents.from.as_ref().map_or("", |from| &from.address);
    zones.message_begins();
    for calendar in contents.files().calendars() {
        all.extend(invitation::notices(calendar, from, zones));
    }
    all
}

/// The subject in a returned header.
fn subject_in(texts: &[(&str, &str)]) -> Option<String> {
    let mut headers = texts.iter().filter(|(media_type, _)| {
        matches!(*media_type, "text/rfc822-headers" | "message/global-headers")
    });
    let subjects = headers.find_map(|(_, text)| Header::new(text.as_bytes()).field("Subject"));
    subjects.map(|field| report::subject(&field))
}

/// A fact, unless its text is empty.
fn fact(name: &str, text: &str) -> Option<(String, String)> {
    (!text.is_empty()).then(|| (name.into(), text.into()))
}

fn delivery(report: &DeliveryReport, subject: &str, zone: &Zone) -> KindNotice {
    let mut actions = report.recipients.iter().map(|recipient| recipient.action);
    let common = actions.next().filter(|first| actions.all(|action| action == *first));
    let result = match common {
        Some(DeliveryAction::Failed) => "was not delivered to the recipients below.",
        Some(DeliveryAction::Delayed) => "has not been delivered yet to the recipients below.",
        Some(DeliveryAction::Delivered) => "was delivered to the recipients below.",
        Some(DeliveryAction::Relayed) => {
            "was relayed to a server that sends no reports, for the recipients below."
        }
        Some(DeliveryAction::Expanded) => {
            "was delivered to the recipients below, and forwarded to further addresses."
        }
        None => "had different results for the recipients below.",
    };
    let mut facts: Vec<(String, String)> = fact("Subject", subject).into_iter().collect();
    facts.extend(report.recipients.iter().map(|recipient| {
        (recipient.address.clone(), result_of(recipient, common.is_some(), zone))
    }));
    if report.has_more {
        facts.push(("…".into(), "The report names more recipients.".into()));
    }
    KindNotice { words: format!("According to this report, your message {result}"), facts }
}

/// What a report says about one recipient. `is_common`: the sentence above says what became of the
/// message.
fn result_of(recipient: &RecipientStatus, is_common: bool, zone: &Zone) -> String {
    let action = match recipient.action {
        DeliveryAction::Failed => "Not delivered.",
        DeliveryAction::Delayed => "Not delivered yet.",
        DeliveryAction::Delivered => "Delivered.",
        DeliveryAction::Relayed => "Relayed to a server that sends no reports.",
        DeliveryAction::Expanded => "Delivered, and forwarded to further addresses.",
    };
    let is_problem = matches!(recipient.action, DeliveryAction::Failed | DeliveryAction::Delayed);
    let reason = recipient.status.filter(|_| is_problem).and_then(|status| status.words());
    let details = match &*recipient.diagnostic {
        "" => None,
        diagnostic => Some(format!("Details: {diagnostic}")),
    };
    let retry = recipient.retry_until.filter(|_| recipient.action == DeliveryAction::Delayed);
    let retry = retry.map(|until| {
        format!("The server keeps trying until {}.", Moment::of(until, zone).in_words())
    });
    let is_silent = reason.is_none() && details.is_none() && retry.is_none();
    let action = (!is_common || is_silent).then_some(action);
    let sentences = [action, reason, retry.as_deref(), details.as_deref()];
    sentences.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn receipt(receipt: &ReadReceipt, subject: &str) -> KindNotice {
    let result = match receipt.disposition {
        ReceiptDisposition::Displayed => {
            "was displayed to its reader. That does not mean that it was read."
        }
        ReceiptDisposition::Deleted => {
            "was deleted by its reader, perhaps without being displayed."
        }
        ReceiptDisposition::Processed => {
            "was processed by a program of its reader, perhaps without being displayed."
        }
    };
    let words = format!("According to this receipt, your message {result}");
    let facts = [fact("Subject", subject), fact("Reader", &receipt.address)];
    KindNotice { words, facts: facts.into_iter().flatten().collect() }
}
