//! Tests of dates and trace fields.

mod calendars;
mod compose;
mod containers;
mod headers;
mod limits;
mod mailbox_files;
mod messages;
mod presentations;
mod reencoding;
mod reports;
mod revisions;
mod short_headers;
mod summaries;

use core::net::{IpAddr, Ipv4Addr};
use std::format;
use std::string::String;
use std::vec::Vec;

use machine::UnixTime;
use proptest::prelude::*;

use crate::*;

fn date(seconds: u64) -> String {
    String::from_utf8(date_time(UnixTime::from_seconds(seconds)).to_vec()).unwrap()
}

#[test]
fn dates_are_those_of_the_calendar() {
    assert_eq!(date(0), "Thu, 01 Jan 1970 00:00:00 +0000");
    assert_eq!(date(951_782_399), "Mon, 28 Feb 2000 23:59:59 +0000");
    assert_eq!(date(951_782_400), "Tue, 29 Feb 2000 00:00:00 +0000");
    assert_eq!(date(951_868_800), "Wed, 01 Mar 2000 00:00:00 +0000");
    assert_eq!(date(1_234_567_890), "Fri, 13 Feb 2009 23:31:30 +0000");
    assert_eq!(date(4_107_542_400), "Mon, 01 Mar 2100 00:00:00 +0000");
    assert_eq!(date(253_402_300_799), "Fri, 31 Dec 9999 23:59:59 +0000");
    assert_eq!(date(u64::MAX), "Fri, 31 Dec 9999 23:59:59 +0000");
}

#[test]
fn every_day_of_four_centuries_follows_the_one_before() {
    let mut year = 1970;
    let mut month = 0;
    let mut day = 1;
    for days in 0..400 * 366 {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let names =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let weekdays = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
        let expected = std::format!(
            "{}, {day:02} {} {year} 00:00:00 +0000",
            weekdays[days as usize % 7],
            names[month]
        );
        assert_eq!(date(days * 86_400), expected);
        let lengths = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        day += 1;
        if day > lengths[month] {
            day = 1;
            month += 1;
        }
        if month == 12 {
            month = 0;
            year += 1;
        }
    }
}

#[test]
fn cached_date_follows_the_clock() {
    let mut now = DateTimeNow::new(UnixTime::from_seconds(5));
    for seconds in [5, 6, 6, 90_000, 4, u64::MAX / 1_000_000, 0] {
        let time = UnixTime::from_seconds(seconds);
        assert_eq!(now.at(time), &date_time(time));
    }
}

fn received<'a>() -> Received<'a> {
    Received {
        greeting_name: "client.example",
        peer: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 10)),
        hostname: "mail.barepost.test",
        protocol: WithProtocol::Esmtp,
        assurance: Assurance::None,
        identifier: b"00000000000004d2",
        recipient: Some("ada@barepost.test"),
        at: b"Fri, 13 Feb 2009 23:31:30 +0000",
    }
}

fn written(received: &Received<'_>) -> String {
    let mut out = [0; RECEIVED_BYTES_MAX];
    let length = received.write(&mut out).unwrap();
    String::from_utf8(out[..length].to_vec()).unwrap()
}

#[test]
fn received_field_has_all_clauses() {
    assert_eq!(
        written(&received()),
        "Received: from client.example ([192.0.2.10])\r\n\tby mail.barepost.test with ESMTP id 00000000000004d2\r\n\
         \tfor <ada@barepost.test>;\r\n\tFri, 13 Feb 2009 23:31:30 +0000\r\n"
    );
}

#[test]
fn received_field_names_tls_and_login() {
    use Assurance::{Login, Tls, TlsAndLogin};
    for (protocol, assurance, expected) in [
        (WithProtocol::Smtp, TlsAndLogin, "SMTP"),
        (WithProtocol::Esmtp, Tls, "ESMTPS"),
        (WithProtocol::Esmtp, Login, "ESMTPA"),
        (WithProtocol::Esmtp, TlsAndLogin, "ESMTPSA"),
        (WithProtocol::Utf8Smtp, Tls, "UTF8SMTPS"),
        (WithProtocol::Utf8Smtp, Login, "UTF8SMTPA"),
        (WithProtocol::Utf8Smtp, TlsAndLogin, "UTF8SMTPSA"),
    ] {
        let field = written(&Received { protocol, assurance, ..received() });
        assert!(field.contains(&[" with ", expected, " id "].concat()), "{field}");
    }
}

#[test]
fn received_field_omits_several_recipients() {
    let field = written(&Received { recipient: None, protocol: WithProtocol::Smtp, ..received() });
    assert!(field.contains("with SMTP id 00000000000004d2;\r\n\tFri, 13"));
    assert!(!field.contains("for"));
}

#[test]
fn received_field_has_the_peer_as_address_literal() {
    for (address, literal) in [
        ("0.0.0.0", "([0.0.0.0])"),
        ("9.10.99.100", "([9.10.99.100])"),
        ("255.200.1.109", "([255.200.1.109])"),
        ("2001:db8::1", "([IPv6:2001:db8::1])"),
        ("::ffff:192.0.2.1", "([192.0.2.1])"),
    ] {
        let peer = address.parse().unwrap();
        let field = written(&Received { peer, protocol: WithProtocol::Utf8Smtp, ..received() });
        assert!(field.contains(literal), "{field}");
        assert!(field.contains("with UTF8SMTP id"));
    }
}

#[test]
fn client_name_cannot_add_a_header_line() {
    let field = written(&Received {
        greeting_name: "a\r\nSubject: x;(y)",
        recipient: Some("a\r\nb: c\0@d"),
        ..received()
    });
    assert_eq!(field.matches("\r\n").count(), 4);
    assert_eq!(field.matches(';').count(), 1);
    assert!(field.contains("from a??Subject:?x??y? ("));
    assert!(field.contains("for <a??b: c?@d>;"));
}

#[test]
fn longest_trace_fields_fit_their_buffers() {
    let name = "n".repeat(255);
    let recipient = "r".repeat(256);
    let identifier = "i".repeat(64);
    let field = written(&Received {
        greeting_name: &name,
        peer: "1111:2222:3333:4444:5555:6666:7777:8888".parse().unwrap(),
        hostname: &name,
        protocol: WithProtocol::Utf8Smtp,
        identifier: identifier.as_bytes(),
        recipient: Some(&recipient),
        ..received()
    });
    assert!(field.ends_with("+0000\r\n"));
    assert!(field.split("\r\n").all(|line| line.len() <= 998));
}

#[test]
fn trace_field_in_a_small_buffer_is_an_error() {
    let whole = written(&received()).len();
    let mut out = [0; RECEIVED_BYTES_MAX];
    for size in 0..whole {
        assert_eq!(received().write(&mut out[..size]), None);
    }
    assert_eq!(received().write(&mut out[..whole]), Some(whole));
}

#[test]
fn return_path_names_the_sender_or_is_empty() {
    let mut out = [0; RETURN_PATH_BYTES_MAX];
    let length = return_path("ada@example.org", &mut out).unwrap();
    assert_eq!(&out[..length], b"Return-Path: <ada@example.org>\r\n");
    let length = return_path("", &mut out).unwrap();
    assert_eq!(&out[..length], b"Return-Path: <>\r\n");
    assert_eq!(return_path("ada@example.org", &mut out[..16]), None);
    assert!(return_path(&"a".repeat(256), &mut out).is_some());
}

#[test]
fn spf_result_names_the_domain_and_adds_no_line() {
    for (domain, written) in [
        (SenderDomain::Path("elsewhere.test"), "mailfrom=elsewhere.test"),
        (SenderDomain::Greeting("client.test"), "helo=client.test"),
        (SenderDomain::Path("[192.0.2.1]"), "mailfrom=\"[192.0.2.1]\""),
        (SenderDomain::Path("a;b\" c\\\r\n"), "mailfrom=\"a;b? c???\""),
        (SenderDomain::Greeting("é.test"), "helo=\"é.test\""),
    ] {
        let mut out = [0; 1000];
        let mut found = AuthResultsWriter::begin(&mut out, 0, "mail.test");
        found.sender("pass", domain);
        found.author("fail", Some("a\r\nb"));
        found.chain("arc=none", "::ffff:192.0.2.7".parse().unwrap());
        found.chain("arc=pass", "2001:db8::7".parse().unwrap());
        let length = found.end(Some("a\nb"), 1);
        let whole = format!(
            "Authentication-Results: mail.test;\r\n\tspf=pass smtp.{written};\r\n\tdmarc=fail header.from=\"a??b\";\r\n\tarc=none smtp.remote-ip=192.0.2.7;\r\n\tarc=pass smtp.remote-ip=\"2001:db8::7\"\r\nX-Barepost-Reason: a?b\r\n"
        );
        assert_eq!(core::str::from_utf8(&out[..length]), Ok(whole.as_str()));
    }
}

#[test]
fn check_results_are_padded_and_omitted_if_too_long() {
    for room in 80..400 {
        for reason in [None, Some("because")] {
            let mut out = [b'x'; 400];
            let mut found = AuthResultsWriter::begin(&mut out[..room / 8 * 8], 3, "mail.test");
            found.keep(reason.map_or(0, |reason| reason.len() + 32));
            found.sender("pass", SenderDomain::Path("elsewhere.test"));
            found.author("none", None);
            found.signature(
                "dkim=pass header.d=elsewhere.test header.s=key header.a=ed25519-sha256",
            );
            found.signature("dkim=none");
            let length = found.end(reason, 8);
            assert!(length.is_multiple_of(8) && length <= room);
            let text = core::str::from_utf8(&out[3..length]).unwrap();
            let lines: Vec<&str> =
                text.strip_suffix("\r\n").unwrap().split("\r\n").map(str::trim_end).collect();
            let possible = [
                "Authentication-Results: mail.test",
                "\tspf=pass smtp.mailfrom=elsewhere.test",
                "\tdmarc=none",
                "\tdkim=pass header.d=elsewhere.test header.s=key header.a=ed25519-sha256",
                "\tdkim=none",
                "X-Barepost-Reason: because",
            ];
            assert!(
                lines.iter().all(|line| possible.contains(&line.trim_end_matches(';'))),
                "{text}"
            );
            assert_eq!(lines.last().unwrap().starts_with("X-"), reason.is_some(), "{text}");
            assert!(
                room < 300 || lines.len() == possible.len() - usize::from(reason.is_none()),
                "{text}"
            );
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_names_make_well_formed_fields(name in ".{0,80}", recipient in ".{0,80}") {
        let field = written(&Received { greeting_name: &name, recipient: Some(&recipient), ..received() });
        prop_assert_eq!(field.matches("\r\n").count(), 4);
        prop_assert!(field.bytes().all(|byte| byte >= b' ' || matches!(byte, b'\r' | b'\n' | b'\t')));
    }
}
