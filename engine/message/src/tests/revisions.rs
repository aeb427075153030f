//! Tests of changed headers.

use core::convert::Infallible;
use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

use machine::UnixTime;
use proptest::prelude::*;

use crate::*;

const AUTHOR: &str = "From: ada@mail.test\r\n";
const DATE: &str = "Date: Fri, 13 Feb 2009 23:31:30 +0000\r\n";
const IDENTIFIER: &str = "Message-ID: <2345@mail.test>\r\n";

/// Revises a message in pieces that end at `cuts`. The receiver takes at most the numbers of bytes
/// in `takes`, in turn. Returns the output, the hops and the number of fields.
fn revised_in_pieces(
    message: &[u8],
    origin: Origin,
    cuts: &[usize],
    takes: &[usize],
) -> (String, u16, u16) {
    let now = date_time(UnixTime::from_seconds(1_234_567_890));
    let own =
        Reviser { hostname: "mail.test", identifier: b"2345", author: "ada@mail.test", now: &now };
    let mut revision = Revision::new(origin);
    let mut out = Vec::new();
    let mut takes = takes.iter().copied().cycle();
    let mut to = |bytes: &[u8]| {
        let count = bytes.len().min(takes.next().unwrap_or(usize::MAX));
        out.extend_from_slice(&bytes[..count]);
        Ok::<usize, Infallible>(count)
    };
    let mut from = 0;
    for cut in cuts.iter().copied().chain([message.len()]) {
        let mut tries = 0;
        while from < cut {
            from += revision.pass(&message[from..cut], &own, &mut to).unwrap();
            tries += 1;
            assert!(tries < 100_000, "the revision makes progress");
        }
    }
    while !revision.end(&own, &mut to).unwrap() {}
    assert!(revision.end(&own, |_| Err(())).unwrap(), "nothing is written twice");
    (String::from_utf8(out).unwrap(), revision.hops(), revision.fields())
}

fn revised(message: &str, origin: Origin) -> String {
    let whole = revised_in_pieces(message.as_bytes(), origin, &[], &[]);
    let bytewise: Vec<usize> = (0..message.len()).collect();
    assert_eq!(revised_in_pieces(message.as_bytes(), origin, &bytewise, &[1]), whole);
    assert_eq!(revised_in_pieces(message.as_bytes(), origin, &bytewise, &[]), whole);
    assert_eq!(revised_in_pieces(message.as_bytes(), origin, &[], &[1]), whole);
    whole.0
}

fn hops(message: &[u8]) -> u16 {
    revised_in_pieces(message, Origin::Relayed, &[], &[]).1
}

#[test]
fn only_received_fields_of_the_header_are_hops() {
    assert_eq!(hops(b""), 0);
    assert_eq!(
        hops(b"Received: a\r\nreceived:b\r\nRECEIVED \t: c\r\nSubject: x\r\n\r\nReceived: d\r\n"),
        3
    );
    assert_eq!(
        hops(b"X-Received: a\r\nReceivedx: b\r\nReceived\r\nReceive: c\r\nReceived-SPF: d\r\n"),
        0
    );
    assert_eq!(hops(b"Subject: folded\r\n Received: a\r\n\tReceived: b\r\nReceived: c\r\n"), 1);
    assert_eq!(hops(b"\r\nReceived: a\r\n"), 0);
    assert_eq!(hops(&b"Received: x\r\n".repeat(70_000)), u16::MAX);
}

#[test]
fn header_fields_are_counted_without_continuations() {
    let fields = |message: &str, origin| {
        let whole = revised_in_pieces(message.as_bytes(), origin, &[], &[]);
        let bytewise: Vec<usize> = (0..message.len()).collect();
        assert_eq!(revised_in_pieces(message.as_bytes(), origin, &bytewise, &[1]), whole);
        whole.2
    };
    let own = "Authentication-Results: mail.test; none\r\n";
    let header = format!(
        "Subject: x\r\n y: z\r\n\tz: z\r\na:\r\nReceived: r\r\n{own}Date: d\r\nMessage-ID: <i>\r\n"
    );
    for origin in [Origin::Relayed, Origin::Submitted] {
        assert_eq!(fields("", origin), 0);
        assert_eq!(fields("\r\na: b\r\n", origin), 0);
        assert_eq!(fields(&header, origin), 6);
        assert_eq!(fields(&format!("{header}Bcc: b\r\n\r\nc: d\r\n"), origin), 7);
        assert_eq!(fields(&"a:\r\n".repeat(1_001), origin), 1_001);
        assert_eq!(fields(&"a:\r\n".repeat(70_000), origin), u16::MAX);
    }
    // A line that is not a field ends the header of a submitted message, but not of a message from
    // another server. The line does not count as a field.
    assert_eq!(fields("a: b\r\nno field\r\nc: d\r\n", Origin::Submitted), 1);
    assert_eq!(fields("a: b\r\nno field\r\nc: d\r\n", Origin::Relayed), 2);
    assert_eq!(fields(&"A line of a text.\r\n".repeat(2_000), Origin::Relayed), 0);
    assert_eq!(
        fields(
            &format!("Authentication-Results {}\r\nAuth\r\nb:", "x".repeat(300)),
            Origin::Relayed
        ),
        1
    );
    assert_eq!(
        fields(&format!("Authentication-Results {}:\r\n", "x".repeat(300)), Origin::Relayed),
        1
    );
}

#[test]
fn missing_fields_are_added_to_a_submitted_message() {
    for (message, expected) in [
        (
            "Subject: x\r\n\r\nBody\r\n",
            format!("Subject: x\r\n{AUTHOR}{DATE}{IDENTIFIER}\r\nBody\r\n"),
        ),
        ("date: y\r\n\r\nDate: z\r\n", format!("date: y\r\n{AUTHOR}{IDENTIFIER}\r\nDate: z\r\n")),
        ("MESSAGE-ID : <y>\r\n\r\n", format!("MESSAGE-ID : <y>\r\n{AUTHOR}{DATE}\r\n")),
        (
            "From: x\r\nDate: y\r\nMessage-ID: <y>\r\n\r\nBody",
            "From: x\r\nDate: y\r\nMessage-ID: <y>\r\n\r\nBody".to_string(),
        ),
        (
            "Subject: x\r\n Date: folded\r\n\r\n",
            format!("Subject: x\r\n Date: folded\r\n{AUTHOR}{DATE}{IDENTIFIER}\r\n"),
        ),
        ("\r\nBody\r\n", format!("{AUTHOR}{DATE}{IDENTIFIER}\r\nBody\r\n")),
        // There is no empty line.
        ("Subject: x\r\n", format!("Subject: x\r\n{AUTHOR}{DATE}{IDENTIFIER}")),
        ("Subject: x", format!("Subject: x\r\n{AUTHOR}{DATE}{IDENTIFIER}")),
        (
            "Authentication-Results:",
            format!("Authentication-Results:\r\n{AUTHOR}{DATE}{IDENTIFIER}"),
        ),
        (
            "From: x\r\nDate: y\r\nMessage-ID: <y>",
            "From: x\r\nDate: y\r\nMessage-ID: <y>".to_string(),
        ),
        ("", format!("{AUTHOR}{DATE}{IDENTIFIER}")),
        // A line that is not a field is text.
        ("A message.\r\n", format!("{AUTHOR}{DATE}{IDENTIFIER}\r\nA message.\r\n")),
        (
            "Date: y\r\nA message.\r\n\r\nMore",
            format!("Date: y\r\n{AUTHOR}{IDENTIFIER}\r\nA message.\r\n\r\nMore"),
        ),
        (
            "From: x\r\nDate: y\r\nMessage-ID: <y>\r\n: z\r\nz",
            "From: x\r\nDate: y\r\nMessage-ID: <y>\r\n\r\n: z\r\nz".to_string(),
        ),
    ] {
        assert_eq!(revised(message, Origin::Submitted), expected, "{message:?}");
        assert_eq!(
            revised(message, Origin::Relayed),
            message,
            "a message from another server stays unchanged"
        );
        assert_eq!(revised(message, Origin::External), message);
    }
    let long = format!("{}: x\r\n\r\n", "a".repeat(300));
    assert_eq!(revised(&long, Origin::Submitted), format!("{AUTHOR}{DATE}{IDENTIFIER}\r\n{long}"));
    assert_eq!(revised(&long, Origin::Relayed), long);
}

#[test]
fn mailbox_line_is_removed_from_a_submitted_message() {
    let rest = "From : ada@a.test\r\nSubject: x\r\n";
    for line in ["From ada@a.test Fri Feb 13 23:31:30 2009\r\n", ">From x\r\n", "From  \r\n"] {
        assert_eq!(
            revised(&format!("{line}{rest}\r\n"), Origin::Submitted),
            format!("{rest}{DATE}{IDENTIFIER}\r\n")
        );
        assert_eq!(
            revised(&format!("{line}{rest}\r\n"), Origin::External),
            format!("{line}{rest}\r\n")
        );
        let late = format!("{rest}{DATE}{IDENTIFIER}\r\n{line}");
        assert_eq!(revised(&format!("{rest}{line}"), Origin::Submitted), late, "it is text");
    }
    let long = "a".repeat(AUTHOR.len() + 400);
    let now = date_time(UnixTime::from_seconds(1_234_567_890));
    let own =
        Reviser { hostname: &"h".repeat(255), identifier: &[b'i'; 32], author: &long, now: &now };
    let mut out = Vec::new();
    let mut revision = Revision::new(Origin::Submitted);
    let whole = revision.end(&own, |bytes| {
        out.extend_from_slice(bytes);
        Ok::<usize, Infallible>(bytes.len())
    });
    assert!(
        whole.unwrap() && !out.is_empty() && !out.starts_with(b"From"),
        "an address that is too long is not added"
    );
}

#[test]
fn our_own_fields_from_outside_are_removed() {
    let kept = "Subject: x\r\nX-Barepostx: y\r\nX-Bare: z\r\nReturn-Pathx: a\r\n";
    let barepost = "X-Barepost-Reason: fine\r\nx-bAREPOST-:\r\n y\r\n";
    let wide = format!("X-Barepost-{}: x\r\n", "y".repeat(300));
    let path = "Return-Path: <a@b>\r\nRETURN-path : x\r\n\ty\r\n";
    let delivered = "Delivered-To: ada@mail.test\r\nDELIVERED-to :\r\n\tada@mail.test\r\n";
    let likewise = "Delivered: x\r\nDelivered-Too: x\r\nX-Delivered-To: x\r\nDate: x\r\n";
    let message = format!("{delivered}{likewise}{delivered}\r\n{delivered}");
    assert_eq!(revised(&message, Origin::External), format!("{likewise}\r\n{delivered}"));
    assert_eq!(revised(&message, Origin::Relayed), message);
    let message = format!("{path}{barepost}{wide}{kept}{path}\r\n{path}{barepost}");
    assert_eq!(revised(&message, Origin::External), format!("{kept}\r\n{path}{barepost}"));
    assert_eq!(
        revised(&message, Origin::Relayed),
        format!("{barepost}{wide}{kept}\r\n{path}{barepost}")
    );
    let marked = "\u{feff}Authentication-Results: mail.test; spf=pass\r\n\u{feff}X-Barepost-Reason: x\r\n\u{feff}Return-Path: x\r\n";
    assert_eq!(revised(&format!("{marked}{kept}\r\n"), Origin::External), format!("{kept}\r\n"));
    assert_eq!(revised("\u{feff}", Origin::External), "\u{feff}");
    let long = format!("\u{feff}{}\r\n\r\n", "x".repeat(600));
    assert_eq!(revised(&long, Origin::External), long);
    let odd = "Authentication-Results\u{c}: mail.test; spf=pass\r\nX-Barepost-\u{b}: x\r\n";
    assert_eq!(revised(&format!("{odd}{kept}\r\n"), Origin::External), format!("{kept}\r\n"));
    for claimed in [
        "mail.test.",
        "MAIL.test..",
        "\"mail.test.\"",
        "=?utf-8?q?mail=2Etest?=",
        "\"mail\\.test\"",
        "mail\u{ff0e}test",
    ] {
        let field = format!("Authentication-Results: {claimed}; spf=pass\r\n");
        assert_eq!(
            revised(&format!("{field}{kept}\r\n"), Origin::External),
            format!("{kept}\r\n"),
            "{claimed}"
        );
        assert_eq!(
            revised(&format!("{field}\r\n"), Origin::Relayed),
            format!("{field}\r\n"),
            "{claimed}"
        );
    }
}

#[test]
fn bcc_is_removed_from_a_submitted_message() {
    let message = "From: x\r\nDate: y\r\nMessage-ID: <y>\r\nBCC: eve\r\n\t, mallory\r\nTo: bob\r\nbcc :\r\nResent-Bcc: x\r\n y\r\n\r\nBcc: z\r\n";
    let kept = "From: x\r\nDate: y\r\nMessage-ID: <y>\r\nTo: bob\r\n\r\nBcc: z\r\n";
    assert_eq!(revised(message, Origin::Submitted), kept);
    assert_eq!(revised(message, Origin::Relayed), message);
}

#[test]
fn forged_authentication_results_are_removed() {
    for ours in [
        "Authentication-Results: mail.test; spf=pass\r\n",
        "authentication-RESULTS :MAIL.Test 1;\r\n\tdkim=pass\r\n",
        "Authentication-Results:\r\n\tmail.test\r\n\t; none\r\n",
        "Authentication-Results: (of (who?) \\) knows) \"mail.test\"; none\r\n",
        "Authentication-Results: mail.test\r\n",
        "Authentication-Results: mail.test(x); none\r\n",
    ] {
        let message = format!("{ours}Subject: x\r\n{ours}\r\n{ours}");
        assert_eq!(
            revised(&message, Origin::Relayed),
            format!("Subject: x\r\n\r\n{ours}"),
            "{ours:?}"
        );
        assert_eq!(
            revised(&message, Origin::External),
            format!("Subject: x\r\n\r\n{ours}"),
            "{ours:?}"
        );
    }
    let late = format!("Authentication-Results: ({}) mail.test; none\r\n", "x".repeat(300));
    assert_eq!(revised(&format!("{late}\r\n"), Origin::Relayed), "\r\n");
    let wide = format!("Authentication-Results{}: mail.test; none\r\n\r\n", " ".repeat(300));
    assert_eq!(revised(&wide, Origin::Relayed), "\r\n", "a reader may take it for ours");
    for theirs in [
        "Authentication-Results: mail.test.example; spf=pass\r\n",
        "Authentication-Results: xmail.test; mail.test\r\n",
        "Authentication-Results: (mail.test) other.test; none\r\n",
        "Authentication-Results: \"mail.test;\"; none\r\n",
        "Authentication-Results:\r\nSubject: mail.test\r\n",
        "Authentication-Results: ; mail.test\r\n",
        "Authentication-Resultss: mail.test\r\n",
        "Authentication-Results mail.test\r\n",
        "ARC-Authentication-Results: i=1; mail.test; none\r\n",
    ] {
        let message = format!("{theirs}\r\n");
        assert_eq!(revised(&message, Origin::Relayed), message);
    }
}

/// The result of `revised_in_pieces`, computed from the whole message. All lines must end in CRLF.
fn revised_naively(message: &str, origin: Origin) -> (String, u16, u16) {
    let is_submitted = origin == Origin::Submitted;
    let mut lines: Vec<&str> = message.split_inclusive("\r\n").collect();
    let mut fields: Vec<String> = vec![];
    let mut rest = String::new();
    let is_envelope = |line: &str| {
        is_submitted
            && line.starts_with("From ")
            && !line[4..].trim_start_matches([' ', '\t']).starts_with(':')
    };
    while !lines.is_empty() {
        let line = lines[0];
        let name = line.split(':').next().unwrap().trim_end_matches([' ', '\t']);
        let is_field = line.contains(':') && !name.contains([' ', '\t']) && !name.is_empty();
        if line.starts_with([' ', '\t']) && !fields.is_empty() {
            fields.last_mut().unwrap().push_str(line);
        } else if line == "\r\n" {
            rest = lines.concat();
            break;
        } else if is_envelope(line) && fields.iter().all(|field| field.starts_with([' ', '\t'])) {
            fields.push(line.to_string());
        } else if is_submitted && !is_field && !line.starts_with([' ', '\t']) {
            rest = "\r\n".to_string() + &lines.concat();
            break;
        } else {
            fields.push(line.to_string());
        }
        lines.remove(0);
    }
    let name = |field: &String| {
        field.split(':').next().unwrap().trim_end_matches([' ', '\t']).to_ascii_lowercase()
    };
    let is_ours = |field: &String| {
        let is_name = |byte: u8| byte.is_ascii_graphic() && byte != b':';
        let start: String =
            field.chars().take_while(|c| u8::try_from(*c).is_ok_and(is_name)).collect();
        let is_no_field = !field[start.len()..].trim_start_matches([' ', '\t']).starts_with(':');
        let start = start.to_ascii_lowercase();
        if origin == Origin::External && is_no_field {
            return start.starts_with("x-barepost-")
                || ["authentication-results", "return-path", "delivered-to"].contains(&&*start);
        }
        let Some((_, value)) = field.split_once(':') else { return false };
        let value =
            value.replace("\r\n", "").replace("(c)", " ").replace('"', "").to_ascii_lowercase();
        let server = value.trim().split([';', ' ', '\t']).next().unwrap().to_string();
        let is_external = origin == Origin::External;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let server = if is_external { server.trim_end_matches('.') } else { &server };
        match name(field).as_str() {
            "authentication-results" if is_external && !server.chars().all(is_plain) => true,
            "authentication-results" => server == "mail.test",
            "return-path" => true,
            name => is_external && (name.starts_with("x-barepost-") || name == "delivered-to"),
        }
    };
    let is_field =
        |field: &&String| field.split("\r\n").next().unwrap().contains(':') || is_envelope(field);
    let count = fields
        .iter()
        .filter(|field| (is_field(field) || is_ours(field)) && !field.starts_with([' ', '\t']))
        .count();
    fields.retain(|field| !is_ours(field) && !is_envelope(field));
    if is_submitted {
        fields.retain(|field| !matches!(name(field).as_str(), "bcc" | "resent-bcc"));
    }
    let has =
        |wanted: &str| fields.iter().any(|field| field.contains(':') && name(field) == wanted);
    let hops =
        fields.iter().filter(|field| field.contains(':') && name(field) == "received").count();
    let mut out = fields.concat();
    if is_submitted && !has("from") {
        out.push_str(AUTHOR);
    }
    if is_submitted && !has("date") {
        out.push_str(DATE);
    }
    if is_submitted && !has("message-id") {
        out.push_str(IDENTIFIER);
    }
    (out + &rest, hops as u16, count as u16)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn revision_does_not_depend_on_pieces(
        lines in proptest::collection::vec(
            "(Received|received |From|Date|Message-Id|Bcc|resent-bcc\t|X|X-Barepost-|Delivered-To|Return-Path |Authentication-Results|Authentication-Resul|)(:|: |:\r\n\t|)(|[a-c:]{1,3}|mail[.]test|(c) \"Mail[.]test\" ;|mail[.]test; x|mail[.]test[.]|other[.]test| \t|Bcc: x)",
            0..12,
        ),
        origin in proptest::sample::select(vec![Origin::External, Origin::Relayed, Origin::Submitted]),
        cuts in proptest::collection::vec(0usize..400, 0..12),
        takes in proptest::collection::vec(0usize..40, 1..6),
    ) {
        let message: String = lines.iter().map(|line| line.to_string() + "\r\n").collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (message.len() + 1)).collect();
        cuts.sort_unstable();
        let takes = [takes, vec![1]].concat();
        let expected = revised_naively(&message, origin);
        prop_assert_eq!(&revised_in_pieces(message.as_bytes(), origin, &cuts, &takes), &expected);
        prop_assert_eq!(&revised_in_pieces(message.as_bytes(), origin, &[], &[]), &expected);
    }
}
