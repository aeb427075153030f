//! Tests of reports on messages, as servers and readers' programs write them.

use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use machine::UnixTime;
use proptest::prelude::*;

use crate::header::Field;
use crate::report::*;

fn recipients(text: &str) -> Vec<RecipientStatus> {
    delivery_report(text).map(|report| report.recipients).unwrap_or_default()
}

/// The address, the action, the code, and the words of the server.
fn in_words(recipient: &RecipientStatus) -> String {
    let RecipientStatus { address, action, status, diagnostic, .. } = recipient;
    let status = status.map_or("-".into(), |status| status.to_string());
    format!("{address} {action:?} {status} {diagnostic}")
}

#[test]
fn recipients_of_a_report_are_read() {
    for (name, text, expected) in [
        (
            "Postfix",
            "Reporting-MTA: dns; a.test\nX-Postfix-Queue-ID: 4\nArrival-Date: Tue, 3 Nov 2026 21:04:05 +0000\n\nFinal-Recipient: rfc822; bob@far.test\nOriginal-Recipient: rfc822;Bob@far.test\nAction: failed\nStatus: 5.1.1\nRemote-MTA: dns; mx.far.test\nDiagnostic-Code: smtp; 550 5.1.1 <bob@far.test>:\n    no such user\n",
            &["Bob@far.test Failed 5.1.1 550 5.1.1 <bob@far.test>: no such user"][..],
        ),
        (
            "Exim, with a vague status",
            "Reporting-MTA: dns; a.test\n\nAction: failed\nFinal-Recipient: rfc822;bob@far.test\nStatus: 5.0.0\nRemote-MTA: dns; mx.far.test\nDiagnostic-Code: smtp; 552-5.2.2 The mailbox is over quota.\n 552 5.2.2 See help.test\n",
            &[
                "bob@far.test Failed 5.2.2 552-5.2.2 The mailbox is over quota. 552 5.2.2 See help.test",
            ],
        ),
        (
            "Exchange",
            "Reporting-MTA: dns;mx.test\n\nFinal-recipient: rfc822;bob@far.test\nAction: FAILED\nStatus: 5.1.10\nDiagnostic-Code: smtp;550 5.1.10 RESOLVER.ADR.RecipientNotFound\n",
            &["bob@far.test Failed 5.1.10 550 5.1.10 RESOLVER.ADR.RecipientNotFound"],
        ),
        (
            "several recipients with different actions",
            "Reporting-MTA: dns; a.test\n\nFinal-Recipient: rfc822; a@far.test\nAction: delayed\nStatus: 4.4.1 (no connection)\n\n\nFinal-Recipient: rfc822; b@far.test\nAction: delivered\nStatus: 2.0.0\n\nFinal-Recipient: rfc822; c@far.test\nAction: relayed\nStatus: 2.1.9\n\nFinal-Recipient: rfc822; d@far.test\nAction: expanded\nStatus: 2.0.0\n",
            &[
                "a@far.test Delayed 4.4.1 ",
                "b@far.test Delivered 2.0.0 ",
                "c@far.test Relayed 2.1.9 ",
                "d@far.test Expanded 2.0.0 ",
            ],
        ),
        (
            "without an action, and without blocks about the message",
            "Final-Recipient: bob@far.test\nStatus: 4.2.2\n\nFinal-Recipient: <x@far.test>\nAction: explained\nStatus: 5.7.1\n\nFinal-Recipient: rfc822; y@far.test\n",
            &["bob@far.test Delayed 4.2.2 ", "x@far.test Failed 5.7.1 "],
        ),
        (
            "international addresses",
            "Final-Recipient: utf-8; b\\x{F8}b@\\x{43}.test\nAction: failed\n\nFinal-Recipient: utf-8; \\x{}\\x{110000}\\x{+41}\\x{41\nAction: failed\n",
            &["bøb@C.test Failed - ", "\\x{}\\x{110000}\\x{+41}\\x{41 Failed - "],
        ),
        (
            "a code of another class",
            "Final-Recipient: rfc822; a@far.test\nAction: failed\nStatus: 5.0.0\nDiagnostic-Code: smtp; 450 4.2.2 full\n",
            &["a@far.test Failed 5.0.0 450 4.2.2 full"],
        ),
        (
            "characters that turn or hide others",
            "Final-Recipient: rfc822; a@\u{202e}far.test\nAction: failed\nDiagnostic-Code: smtp; 550 \u{200b}no\u{7}\n",
            &["a@far.test Failed - 550 no"],
        ),
        ("no recipient", "Reporting-MTA: dns; a.test\n\nAction: failed\n", &[]),
        ("no report", "hello\n\nworld\n", &[]),
        ("nothing", "", &[]),
    ] {
        for line_end in ["\n", "\r\n"] {
            let read = recipients(&text.replace('\n', line_end));
            assert_eq!(read.iter().map(in_words).collect::<Vec<_>>(), expected, "{name}");
        }
    }
}

#[test]
fn the_time_of_the_last_attempt_is_read() {
    let text = "Final-Recipient: rfc822; a@far.test\nAction: delayed\nWill-Retry-Until: Tue, 3 Nov 2026 22:04:05 +0100\n";
    assert_eq!(recipients(text)[0].retry_until, Some(UnixTime::from_seconds(1_793_739_845)));
}

#[test]
fn reports_are_bounded() {
    let long = "x".repeat(2_000);
    let block = |number| {
        format!(
            "Final-Recipient: rfc822; {number}{long}\nAction: failed\nDiagnostic-Code: smtp; {long}\n\n"
        )
    };
    let of = |count: usize| delivery_report(&(0..count).map(block).collect::<String>()).unwrap();
    let report = of(RECIPIENTS_MAX);
    assert!(report.recipients.len() == RECIPIENTS_MAX && !report.has_more);
    let report = of(RECIPIENTS_MAX + 1);
    assert!(report.recipients.len() == RECIPIENTS_MAX && report.has_more);
    let first = &report.recipients[0];
    assert_eq!(first.address.len(), ADDRESS_CHARS_MAX);
    assert_eq!(first.diagnostic.len(), DIAGNOSTIC_CHARS_MAX);
}

#[test]
fn a_long_subject_is_cut() {
    let subject_of = |value: &str| subject(&Field { name: b"Subject", value: value.as_bytes() });
    assert_eq!(subject_of(" =?utf-8?q?L=C3=BCnch?=\r\n at  noon"), "Lünch at noon");
    assert_eq!(subject_of("Lunch \u{200b}\u{200b} at noon"), "Lunch at noon");
    let longest = "ü".repeat(SUBJECT_CHARS_MAX);
    assert_eq!(subject_of(&longest), longest);
    assert_eq!(subject_of(&format!("{longest}ü")), format!("{longest}…"));
}

#[test]
fn read_receipts_are_read() {
    let receipt = |disposition: &str| {
        read_receipt(&format!(
            "Reporting-UA: x\nFinal-Recipient: rfc822;q@x.test\nDisposition: {disposition}\n"
        ))
    };
    for (text, expected) in [
        ("manual-action/MDN-sent-manually; displayed", Some(ReceiptDisposition::Displayed)),
        (
            "automatic-action/MDN-sent-automatically;Deleted/error",
            Some(ReceiptDisposition::Deleted),
        ),
        (
            "automatic-action/MDN-sent-automatically; processed,x",
            Some(ReceiptDisposition::Processed),
        ),
        ("displayed", None),
        ("manual-action/MDN-sent-manually;", None),
    ] {
        let expected = expected
            .map(|disposition| ReadReceipt { address: "q@x.test".to_string(), disposition });
        assert_eq!(receipt(text), expected, "{text}");
    }
    let without_address = read_receipt("Disposition: a/b; displayed").unwrap();
    assert_eq!(without_address.address, "");
    for address in ["Bob", "Bob the @builder", "@ b", "b\u{a0}c@x.test"] {
        let text = format!("Final-Recipient: rfc822; {address}\nDisposition: a/b; displayed");
        assert_eq!(read_receipt(&text).unwrap().address, "", "{address}");
    }
}

#[test]
fn status_codes_have_words() {
    let words = |word: &str| Enhanced::read(word.as_bytes()).unwrap().words();
    assert_eq!(words("5.1.1"), Some("The address does not exist."));
    assert_eq!(words("4.2.2"), Some("The mailbox is full."));
    assert_eq!(words("5.99.1"), None);
    for word in
        ["", "5", "5.1", "5.1.", "5.1.1.", "5.1.1.1", "3.1.1", "55.1.1", "5.1.1000", "5. 1.1"]
    {
        assert_eq!(Enhanced::read(word.as_bytes()), None, "{word}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_as_a_bounded_report(
        pieces in proptest::collection::vec(
            prop_oneof![
                Just("Final-Recipient: rfc822; a@b\n".to_string()),
                Just("Original-Recipient: utf-8;\\x{41}\n".to_string()),
                Just("Action: failed\n".to_string()),
                Just("Status: 5.1.1\n".to_string()),
                Just("Disposition: a; displayed\n".to_string()),
                Just("\n".to_string()),
                Just(" ".to_string()),
                ".{0,20}",
            ],
            0..60,
        ),
    ) {
        let text: String = pieces.concat();
        let is_line = |text: &str| !text.contains(|c: char| c.is_control());
        for recipient in recipients(&text) {
            prop_assert!(!recipient.address.is_empty() && is_line(&recipient.address));
            prop_assert!(is_line(&recipient.diagnostic));
        }
        if let Some(receipt) = read_receipt(&text) {
            prop_assert!(is_line(&receipt.address));
        }
    }
}
