//! The question to a filter, and its verdict.

use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use proptest::prelude::*;

use crate::filter::{FilterEnvelope, FilterQuestion, FilterVerdict};
use crate::{Lost, Speaker};

fn question(outgoing: &[u8], envelope: &FilterEnvelope<'_>) -> FilterQuestion {
    FilterQuestion::about(outgoing.to_vec(), envelope, "filter.test:11333", Some("secret"))
}

fn envelope(recipients: &[String]) -> FilterEnvelope<'_> {
    let address = "::ffff:203.0.113.7".parse().unwrap();
    let (hello, reverse_path) = ("far.test", "me@far.test");
    FilterEnvelope {
        address,
        hello,
        reverse_path,
        recipients,
        hostname: "mail.test",
        identifier: "4D2",
    }
}

/// All bytes that are sent, `step` bytes at a time.
fn sent(question: &mut FilterQuestion, step: usize) -> String {
    let mut all = Vec::new();
    while !question.output().is_empty() {
        let count = question.output().len().min(step);
        all.extend_from_slice(&question.output()[..count]);
        question.sent(count);
    }
    String::from_utf8(all).unwrap()
}

#[test]
fn filter_gets_the_message_and_its_envelope() {
    let recipients = ["ada@mail.test".to_string(), "bob@mail.test".to_string()];
    let whole = "POST /checkv2 HTTP/1.0\r\nHost: filter.test:11333\r\nContent-Length: 8\r\nIP: 203.0.113.7\r\n\
        Helo: far.test\r\nFrom: <me@far.test>\r\nRcpt: <ada@mail.test>\r\nRcpt: <bob@mail.test>\r\n\
        Hostname: mail.test\r\nQueue-Id: 4D2\r\nPassword: secret\r\n\r\nMessage\n";
    for step in [1, 2, 100, usize::MAX] {
        let mut question = question(b"Message\n", &envelope(&recipients));
        assert_eq!(sent(&mut question, step), whole);
        question = question.again();
        assert_eq!(sent(&mut question, step), whole, "once more");
        assert_eq!(question.verdict(), None);
        assert!(!format!("{question:?}").contains("secret"));
    }
    let bounce = FilterEnvelope { reverse_path: "", ..envelope(&recipients) };
    let mut question = FilterQuestion::about(Vec::new(), &bounce, "10.0.0.5:11333", None);
    let request = sent(&mut question, usize::MAX);
    assert!(
        request.contains("\r\nFrom: <>\r\n")
            && !request.contains("Password")
            && request.ends_with("\r\n\r\n"),
        "{request}"
    );
}

#[test]
fn client_words_never_end_a_field() {
    let recipients = ["\"a\r\nUser: root\"@mail.test".to_string()];
    let with_line_end = FilterEnvelope { hello: "x\r\nPassword: y\u{85}", ..envelope(&recipients) };
    let request = sent(&mut question(b"", &with_line_end), usize::MAX);
    assert!(
        request.contains("\r\nHelo: xPassword: y\r\n") && !request.contains("\nUser"),
        "{request}"
    );
}

/// The verdict from a body of this type, in pieces of `step` bytes.
fn answered(kind: &str, body: &str, step: usize) -> Option<FilterVerdict> {
    let mut question = question(b"x", &envelope(&[]));
    let length = body.len();
    let all = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    all.as_bytes().chunks(step).for_each(|bytes| question.arrived(bytes));
    question.lost(Lost::Closed);
    question.verdict().expect("the response is over").cloned()
}

fn json(action: &str, more: &str) -> String {
    format!(
        "{{\"is_skipped\":false,\"score\":8.25,\"required_score\":15.0,\"action\":\"{action}\"{more}}}"
    )
}

#[test]
fn filter_answer_is_one_of_four_verdicts() {
    let symbols = ",\"symbols\":{\"A\":{\"name\":\"A\",\"score\":1.5},\"B\":{\"score\":6.75,\"options\":[\"x\"]},\"C\":{\"score\":-2},\"D\":{}}";
    let words = ",\"messages\":{\"smtp_message\":\"Gtube\\r\\npatt\\u00e4ern\",\"other\":1}";
    let reason = "spam score 8.25 of 15.00".to_string();
    for (action, more, verdict) in [
        ("no action", "", FilterVerdict::Clean),
        ("no action", words, FilterVerdict::Clean),
        ("add header", symbols, FilterVerdict::Suspect(format!("{reason}: B, A"))),
        ("rewrite subject", "", FilterVerdict::Suspect(reason)),
        ("greylist", "", FilterVerdict::Later(String::new())),
        ("soft reject", words, FilterVerdict::Later("Gtubepattern".into())),
        ("reject", words, FilterVerdict::Never("Gtubepattern".into())),
        ("reject", "", FilterVerdict::Never(String::new())),
    ] {
        for step in [1, 1_000] {
            assert_eq!(
                answered("application/json", &json(action, more), step),
                Some(verdict.clone()),
                "{action}"
            );
        }
    }
}

#[test]
fn score_is_shown_in_few_digits() {
    let body = "{\"action\":\"add header\",\"score\":1e300,\"required_score\":-1e300}";
    let words = "spam score 1000000.00 of -1000000.00".to_string();
    assert_eq!(answered("application/json", body, 1_000), Some(FilterVerdict::Suspect(words)));
}

#[test]
fn incomplete_filter_answer_is_no_verdict() {
    let whole = json("reject", "");
    for (kind, body) in [
        ("text/html", whole.as_str()),
        ("application/json", &whole[1..]),
        ("application/json", "{\"error\":\"no\"}"),
        ("application/json", "[]"),
        ("application/json", ""),
        ("application/json", &json("discard", "")),
        ("application/json", &json("reject", &format!(",\"more\":\"{}\"", "x".repeat(64 * 1024)))),
        ("application/json", &"[".repeat(60_000)),
    ] {
        assert_eq!(answered(kind, body, 1_000), None, "{kind} {}", &body[..body.len().min(80)]);
    }
    for response in [
        "HTTP/1.1 403 Unauthorized\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        "x",
    ] {
        let mut question = question(b"x", &envelope(&[]));
        question.arrived(response.as_bytes());
        question.lost(Lost::Closed);
        assert_eq!(question.verdict(), Some(None), "{response}");
    }
    let mut question = question(b"x", &envelope(&[]));
    question.arrived(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{\"act",
    );
    question.lost(Lost::Closed);
    assert_eq!(question.verdict(), Some(None), "cut off");
    for step in [1_000, usize::MAX] {
        let kind = format!("application/json\r\nX: {}", "x".repeat(16 * 1024));
        assert_eq!(answered(&kind, &whole, step), None, "a long head");
    }
}

proptest! {
    #[test]
    fn any_filter_answer_gives_a_printable_verdict_or_none(body in ".{0,200}", step in 1_usize..50) {
        for text in [json("reject", &format!(",\"messages\":{{\"smtp_message\":{body:?}}}")), body.clone()] {
            if let Some(FilterVerdict::Never(words)) = answered("application/json", &text, step) {
                prop_assert!(words.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '));
            }
        }
    }
}
