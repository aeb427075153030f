//! Reports to senders.

use machine::UnixTime;
use mail_parser::{MessageParser, MimeHeaders as _, PartType};
use proptest::prelude::*;

use super::*;
use crate::report::{
    self, HEADER_BYTES_MAX, RecipientReport, Report, ReportKind, ReportTo, Returned, is_wanted,
};
use crate::{Enhanced, Notify, Reply};

const UNTIL: UnixTime = UnixTime::from_seconds(1_800_000_000);
const STATUS: Enhanced = Enhanced { class: 5, subject: 1, detail: 1 };

fn written(kind: ReportKind, recipients: &[RecipientReport<'_>], original: &[u8]) -> String {
    written_for(ReportTo::Sender, kind, recipients, original)
}

fn written_for(
    reader: ReportTo,
    kind: ReportKind,
    recipients: &[RecipientReport<'_>],
    original: &[u8],
) -> String {
    let text = begun(reader, kind, recipients, (original, Returned::Header));
    assert!(
        text.split_inclusive('\n').all(|line| line.ends_with("\r\n") && line.len() <= 1000),
        "{text}"
    );
    assert!(!text.replace("\r\n", "").contains(['\r', '\n']), "{text}");
    text
}

fn begun(
    reader: ReportTo,
    kind: ReportKind,
    recipients: &[RecipientReport<'_>],
    (header, returned): (&[u8], Returned),
) -> String {
    let report = Report {
        kind,
        hostname: "mail.us.test",
        from: "postmaster@us.test",
        to: "ada@us.test",
        reader,
        date: UnixTime::from_seconds(1_790_000_000),
        message_id: "4D2@mail.us.test",
        secret: 7,
        arrived: UnixTime::from_seconds(1_789_000_000),
        envelope_id: Some("QQ+2B+0D+zz"),
        recipients,
        header,
        returned,
    };
    let mut out = b"before".to_vec();
    report::write(&report, &mut out);
    String::from_utf8(out.split_off("before".len())).unwrap()
}

/// A recipient that was rejected for good, without a reply of a host.
fn rejected<'a>(recipient: &'a OutgoingRecipient, words: &'a str) -> RecipientReport<'a> {
    RecipientReport { recipient, status: STATUS, words, reply: None, host: None }
}

#[test]
fn report_refers_to_its_message() {
    let recipient = to(0, "bob@there.test");
    let of =
        |original: &[u8]| written(ReportKind::Failed, &[rejected(&recipient, "No.")], original);
    let text = of(b"Message-ID: <1.engine@us.test>\r\nSubject: Engine\r\n\r\n");
    let message = MessageParser::default().parse(text.as_bytes()).unwrap();
    assert_eq!(message.in_reply_to().as_text(), Some("1.engine@us.test"));
    assert_eq!(message.references().as_text(), Some("1.engine@us.test"));
    let long = alloc::format!("Message-ID: <{}@us.test>\r\n\r\n", "x".repeat(400));
    for original in ["\r\n", "Message-ID: \r\n\r\n", "Message-ID: <a\x01@b>\r\n\r\n", &long] {
        assert!(!of(original.as_bytes()).contains("References:"), "{original:?}");
    }
}

/// The parts of a report as a MIME library reads them: the words, the fields for programs, and the
/// message's header.
fn parts(text: &str) -> [String; 3] {
    let message = MessageParser::default().parse(text.as_bytes()).unwrap();
    let kind = message.content_type().unwrap();
    assert_eq!((kind.ctype(), kind.subtype()), ("multipart", Some("report")));
    assert_eq!(kind.attribute("report-type"), Some("delivery-status"));
    assert_eq!(message.header_raw("Auto-Submitted").map(str::trim), Some("auto-replied"));
    assert_eq!(message.from().unwrap().first().unwrap().address(), Some("postmaster@us.test"));
    assert_eq!(message.to().unwrap().first().unwrap().address(), Some("ada@us.test"));
    let PartType::Multipart(children) = &message.parts[0].body else {
        panic!("a report has parts")
    };
    assert_eq!(children.len(), 3);
    let kinds = ["text/plain", "message/delivery-status"];
    for (kind, child) in kinds.iter().zip(children) {
        let found = message.parts[*child as usize].content_type().unwrap();
        assert_eq!(std::format!("{}/{}", found.ctype(), found.subtype().unwrap()), *kind);
    }
    let part = |place: usize| {
        let part = &message.parts[children[place] as usize];
        text[part.offset_body as usize..part.offset_end as usize].to_string()
    };
    [part(0), part(1), part(2)]
}

#[test]
fn failure_report_has_text_status_and_header() {
    let recipient = OutgoingRecipient {
        original: Some("rfc822;bob+2Bold@old.test".to_string()),
        ..to(0, "bob@there.test")
    };
    let reply = Reply { code: 550, enhanced: Some(STATUS), text: "no such user".to_string() };
    let recipient_report = RecipientReport {
        recipient: &recipient,
        status: STATUS,
        words: "the other server refused the recipient",
        reply: Some(&reply),
        host: Some("mx.there.test"),
    };
    let text = written(
        ReportKind::Failed,
        &[recipient_report],
        b"Subject: lunch\r\nX: y\r\n\r\nSECRET\r\n",
    );
    assert!(text.contains("\r\nSubject: Your message could not be delivered\r\n"));
    let [words, status, header] = parts(&text);
    assert_eq!(
        words.trim_end(),
        "Your message with the subject \"lunch\" could not be delivered to:\r\n\r\n  <bob@there.test>\r\n    The other server refused the recipient.\r\n    mx.there.test replied: 550 5.1.1 no such user\r\n\r\n\
         The server will not try again. Check the address before you send the message\r\nagain.\r\n\r\n\
         Your message with the subject \"lunch\" was received by mail.us.test on Thu,\r\n10 Sep 2026 00:26:40 +0000. Its header is attached, after a report for\r\nprograms."
    );
    assert_eq!(
        status.trim_end(),
        "Original-Envelope-Id: QQ++0D+zz\r\nReporting-MTA: dns; mail.us.test\r\nArrival-Date: Thu, 10 Sep 2026 00:26:40 +0000\r\n\r\n\
         Original-Recipient: rfc822; bob+old@old.test\r\nFinal-Recipient: rfc822; bob@there.test\r\nAction: failed\r\nStatus: 5.1.1\r\n\
         Remote-MTA: dns; mx.there.test\r\nDiagnostic-Code: smtp; 550 5.1.1 no such user\r\nLast-Attempt-Date: Mon, 21 Sep 2026 14:13:20 +0000"
    );
    assert_eq!(header.trim_end(), "Subject: lunch\r\nX: y");
    assert!(text.contains("Content-Type: text/rfc822-headers\r\n") && !text.contains("SECRET"));
}

#[test]
fn text_of_other_hosts_is_shown_in_utf8() {
    let (recipient, reply) = (
        to(0, "bob@there.test"),
        Reply {
            code: 550,
            enhanced: None,
            text: "gr\u{fc}\u{df}e \\o/ \u{43d}\u{435}\u{442}".to_string(),
        },
    );
    let words = "the other server refused the message";
    let reported = RecipientReport { reply: Some(&reply), ..rejected(&recipient, words) };
    for subject in ["gr\u{fc}n", "=?iso-8859-1?Q?gr=FCn?=", "gr\r\n\t=?utf-8?B?w7xu?="] {
        let original = std::format!("Subject: {subject}\r\n\r\n");
        let text = written(ReportKind::Failed, &[reported], original.as_bytes());
        let [words, status, _] = parts(&text);
        let shown = if subject.starts_with("gr\r") { "gr \u{fc}n" } else { "gr\u{fc}n" };
        let first = std::format!(
            "Your message with the subject \"{shown}\" could not be delivered to:\r\n"
        );
        assert!(words.starts_with(&first), "{words}");
        assert!(
            words
                .contains("\r\n    It replied: 550 gr\u{fc}\u{df}e \\o/ \u{43d}\u{435}\u{442}\r\n"),
            "{words}"
        );
        let code =
            "Diagnostic-Code: smtp; 550 gr\\x{FC}\\x{DF}e \\x{5C}o/ \\x{43D}\\x{435}\\x{442}\r\n";
        assert!(status.contains(code) && status.is_ascii(), "{status}");
    }
    for (subject, shown) in [("", "Your message could"), ("X: y", "Your message could")] {
        let text = written(ReportKind::Failed, &[reported], subject.as_bytes());
        assert!(parts(&text)[0].starts_with(shown), "{text}");
    }
}

#[test]
fn whole_message_is_returned_if_requested() {
    let recipient = to(0, "bob@there.test");
    let recipient_report = rejected(&recipient, "no");
    for (script, kind) in [(Script::Ascii, "rfc822"), (Script::Utf8, "global")] {
        // The message may even look like the end of a report.
        let original = "Subject: lunch\r\n\r\n--=_r\r\nAt t\u{fc}welve?\r\n";
        let mut text = begun(
            ReportTo::Sender,
            ReportKind::Failed,
            &[recipient_report],
            (original.as_bytes(), Returned::Whole(script)),
        );
        text.push_str(original);
        let mut end = Vec::new();
        report::write_end(7, &mut end);
        text.push_str(&String::from_utf8(end).unwrap());
        let [words, status, whole] = parts(&text);
        assert!(
            words.contains(
                "\r\n10 Sep 2026 00:26:40 +0000. It is attached, after a report for programs."
            ),
            "{words}"
        );
        assert!(status.contains("Action: failed\r\n"));
        assert_eq!(whole, original);
        assert!(text.contains(&std::format!(
            "Content-Type: message/{kind}\r\nContent-Transfer-Encoding: 8bit\r\n\r\n"
        )));
    }
}

#[test]
fn delay_report_states_the_last_retry() {
    let recipient = to(0, "bob@there.test");
    let status = Enhanced { class: 4, subject: 4, detail: 1 };
    let recipient_report = RecipientReport {
        recipient: &recipient,
        status,
        words: "it is down",
        reply: None,
        host: None,
    };
    let text =
        written(ReportKind::Delayed { until: UNTIL }, &[recipient_report, recipient_report], b"");
    let [words, status, header] = parts(&text);
    assert!(
        words.contains("not been delivered yet")
            && words.contains("until Fri, 15 Jan 2027 08:00:00 +0000"),
        "{words}"
    );
    assert_eq!(status.matches("Action: delayed\r\nStatus: 4.4.1\r\n").count(), 2);
    assert_eq!(status.matches("Will-Retry-Until: Fri, 15 Jan 2027 08:00:00 +0000\r\n").count(), 2);
    assert_eq!(header.trim_end(), "");
}

#[test]
fn report_to_forwarding_account_uses_other_words() {
    let recipient = to(0, "bob@there.test");
    let recipient_report = rejected(&recipient, "no");
    for (kind, subject, ours) in [
        (ReportKind::Failed, "could not be forwarded", "The sender was not told"),
        (
            ReportKind::Delayed { until: UNTIL },
            "has not been forwarded yet",
            "If the message cannot be forwarded by then",
        ),
    ] {
        let text = written_for(ReportTo::Forwarder, kind, &[recipient_report], b"Subject: x\r\n");
        assert!(
            text.contains(&std::format!("\r\nSubject: A message for you {subject}\r\n")),
            "{text}"
        );
        let words = parts(&text)[0].replace("\r\n", " ");
        assert!(
            words.starts_with(&std::format!(
                "A message for you with the subject \"x\" {subject} to:"
            )) && words.contains(ours),
            "{words}"
        );
        assert!(
            words.contains(
                "A message for you with the subject \"x\" was received by mail.us.test on"
            ) && !words.contains("Your message"),
            "{words}"
        );
    }
}

#[test]
fn relayed_and_delivered_recipients_are_reported() {
    let recipient = to(0, "bob@there.test");
    let status = Enhanced { class: 2, subject: 0, detail: 0 };
    let recipient_report =
        RecipientReport { recipient: &recipient, status, words: "250 ok", reply: None, host: None };
    for (kind, action) in [(ReportKind::Relayed, "relayed"), (ReportKind::Delivered, "delivered")] {
        let [_, status, _] = parts(&written(kind, &[recipient_report], b"Subject: x\r\n"));
        assert!(
            status.contains(&std::format!("Action: {action}\r\n"))
                && !status.contains("Will-Retry")
        );
    }
}

#[test]
fn non_ascii_addresses_are_kept() {
    let recipient = to(0, "b\u{f8}b+\"a b\"@there.test");
    let recipient_report = rejected(&recipient, "no");
    let text =
        written(ReportKind::Failed, &[recipient_report], "Subject: l\u{fc}nch\r\n\r\n".as_bytes());
    let [words, status, header] = parts(&text);
    assert!(words.contains("b\u{f8}b"));
    assert!(
        status.contains("Final-Recipient: utf-8; b\\x{F8}b\\x{2B}\"a\\x{20}b\"@there.test\r\n"),
        "{status}"
    );
    assert!(status.is_ascii());
    assert_eq!(header.trim_end(), "Subject: l\u{fc}nch");
    assert!(
        text.contains(
            "Content-Type: message/global-headers\r\nContent-Transfer-Encoding: 8bit\r\n"
        )
    );
    let text = written(ReportKind::Failed, &[recipient_report], b"Subject: l\xfcnch\r\n\r\n");
    assert!(
        text.contains("Content-Type: message/global-headers\r\nContent-Transfer-Encoding: 8bit\r\n\r\nSubject: l\u{fc}nch\r\n")
    );
}

#[test]
fn report_is_bounded_whatever_the_message() {
    let recipient = to(0, "bob@there.test");
    let long = "x".repeat(3000);
    let recipient_report = rejected(&recipient, &long);
    let mut original = b"Subject: x\n".to_vec();
    original.resize(3000, b'y');
    original.extend(b"\r\n");
    original.extend(b"X: y\r\n".repeat(HEADER_BYTES_MAX));
    let text = written(ReportKind::Failed, &[recipient_report], &original);
    assert!(text.len() < HEADER_BYTES_MAX + 8 * 1024);
}

#[test]
fn reports_are_sent_only_if_wanted() {
    let mut envelope = outgoing(&["bob@there.test"]).envelope;
    let kinds = [
        ReportKind::Failed,
        ReportKind::Delayed { until: UNTIL },
        ReportKind::Relayed,
        ReportKind::Delivered,
    ];
    let wanted =
        |envelope: &Envelope| kinds.map(|kind| is_wanted(envelope, &envelope.recipients[0], kind));
    assert_eq!(wanted(&envelope), [true, true, false, false]);
    for (success, failure, delay) in
        [(true, false, false), (false, true, false), (false, false, true), (false, false, false)]
    {
        envelope.recipients[0].notify = Some(Notify { success, failure, delay });
        assert_eq!(wanted(&envelope), [failure, delay, success, success]);
    }
    envelope.recipients[0].notify = Some(Notify { success: true, failure: true, delay: true });
    envelope.reverse_path.clear();
    assert_eq!(
        wanted(&envelope),
        [false; 4],
        "a message with an empty reverse path is not reported"
    );
}

proptest! {
    #[test]
    fn peer_text_never_begins_a_field_or_part(
        words in "\\PC{0,80}|[\r\n:a-]{0,40}",
        reply in "\\PC{0,100}|[ -~]{0,200}",
        original in proptest::collection::vec(prop_oneof![Just(b"\r\n--=_r".to_vec()), Just(b"\n\r".to_vec()), proptest::collection::vec(any::<u8>(), 0..40)], 0..10),
    ) {
        let recipient = to(0, "bob@there.test");
        let reply = Reply { code: 550, enhanced: None, text: reply };
        let recipient_report = RecipientReport { recipient: &recipient, status: STATUS, words: &words, reply: Some(&reply), host: Some(&words) };
        let text = written(ReportKind::Failed, &[recipient_report], &original.concat());
        let [_, status, _] = parts(&text);
        let names: Vec<_> = status.lines().filter(|line| !line.starts_with(' ')).map(|line| line.split(':').next().unwrap()).collect();
        prop_assert_eq!(
            names,
            ["Original-Envelope-Id", "Reporting-MTA", "Arrival-Date", "", "Final-Recipient", "Action", "Status", "Remote-MTA", "Diagnostic-Code", "Last-Attempt-Date"]
        );
    }
}
