//! MTA-STS policies of domains, and how they are fetched.

use std::format;
use std::string::String;
use std::vec::Vec;

use dns::{Name, Record};
use machine::Micros;
use proptest::prelude::*;

use crate::sts::{StsMode, StsPolicy, TEXT_BYTES_MAX, announced};
use crate::tally::Shortfall;
use crate::{Fetch, Lost, Speaker};

const POLICY: &str = "version: STSv1\r\nmode: enforce\r\nmx: mail.there.test\r\nmx: *.pool.test\r\nmax_age: 86400\r\n";

fn records(texts: &[&str]) -> Vec<Record> {
    texts.iter().map(|text| Record::Text(text.as_bytes().into())).collect()
}

#[test]
fn policy_version_needs_exactly_one_record() {
    for (one, other, is_same) in [
        ("v=STSv1; id=20160831085700Z;", "v=STSv1;id=20160831085700Z", true),
        ("v=STSv1; a=b; id=1;", "v=STSv1; id=1", true),
        ("v=STSv1; id=1;", "v=STSv1; id=2;", false),
    ] {
        let [one, other] = [one, other].map(|text| announced(&records(&["v=spf1 -all", text])));
        assert!(one.is_some() && other.is_some());
        assert_eq!(one == other, is_same);
    }
    let long = format!("v=STSv1; id={};", "1".repeat(33));
    for none in [
        &[][..],
        &["v=STSv1; id=1;", "v=STSv1; id=1;"],
        &["v=STSv2; id=1;"],
        &["v=STSv1 ; id=1;"],
        &["v=STSv1;"],
        &["v=STSv1; id=;"],
        &["v=STSv1; id=a-b;"],
        &[long.as_str()],
    ] {
        assert_eq!(announced(&records(none)), None, "{none:?}");
    }
}

#[test]
fn policy_wildcard_matches_one_label() {
    let policy = StsPolicy::read(POLICY.as_bytes()).unwrap();
    assert_eq!((policy.mode, policy.max_age), (StsMode::Enforce, Micros::from_secs(86_400)));
    for (host, is_allowed) in [
        ("mail.there.test", true),
        ("MAIL.There.test", true),
        ("there.test", false),
        ("x.mail.there.test", false),
        ("a.pool.test", true),
        ("pool.test", false),
        ("a.b.pool.test", false),
        ("pool.test.evil.test", false),
    ] {
        assert_eq!(policy.allows(&Name::parse(host).unwrap()), is_allowed, "{host}");
    }
}

#[test]
fn incomplete_or_unknown_policy_is_rejected() {
    let read = |text: &str| StsPolicy::read(text.as_bytes());
    let lines = POLICY.replace("\r\n", "\n");
    assert_eq!(read(&lines), read(POLICY), "lines may end either way");
    assert_eq!(
        read(&[POLICY, "later: x\r\nmode: none\r\n"].concat()),
        read(POLICY),
        "the first value of a key counts"
    );
    let none = read("version: STSv1\nmode: none\nmax_age: 60\n").unwrap();
    assert_eq!((none.mode, none.max_age), (StsMode::None, Micros::from_secs(60)));
    assert_eq!(read(&POLICY.replace("enforce", "testing")).unwrap().mode, StsMode::Testing);
    let year = read(&POLICY.replace("86400", "99999999999")).unwrap();
    assert_eq!(year.max_age, Micros::from_secs(31_557_600));
    for (from, to) in [
        ("STSv1", "STSv2"),
        ("version: STSv1\r\n", ""),
        ("mode: enforce\r\n", ""),
        ("enforce", "maybe"),
        ("max_age: 86400\r\n", ""),
        ("86400", "-1"),
        ("86400", ""),
        ("mx: mail.there.test\r\nmx: *.pool.test\r\n", ""),
        ("*.pool.test", "*."),
        ("*.pool.test", "a..b"),
    ] {
        assert_eq!(read(&POLICY.replace(from, to)), None, "{to:?} for {from:?}");
    }
    assert_eq!(StsPolicy::read(b"\xff"), None);
}

const NOT_FETCHED: Shortfall = Shortfall::PolicyNotFetched;

fn response(head: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {head}\r\n\r\n{body}").into_bytes()
}

/// The result of a response in pieces of `cut` bytes. `is_ended`: whether the server closed the
/// connection properly after it.
fn fetched(response: &[u8], cut: usize, is_ended: bool) -> Result<StsPolicy, Shortfall> {
    let mut fetch = Fetch::from(&Name::parse("mta-sts.there.test").unwrap());
    let request = String::from_utf8(fetch.output().to_vec()).unwrap();
    assert!(
        request
            .starts_with("GET /.well-known/mta-sts.txt HTTP/1.0\r\nHost: mta-sts.there.test\r\n"),
        "{request}"
    );
    fetch.sent(request.len());
    assert_eq!(fetch.output(), b"");
    response.chunks(cut.max(1)).for_each(|bytes| fetch.arrived(bytes));
    match fetch.outcome() {
        None if is_ended => fetch.lost(Lost::Closed),
        None => fetch.lost(Lost::Unvouched),
        Some(_) => {}
    }
    fetch.outcome().unwrap().cloned()
}

#[test]
fn policy_ends_by_length_or_connection_close() {
    let whole = StsPolicy::read(POLICY.as_bytes()).ok_or(NOT_FETCHED);
    let length = format!(
        "200 OK\r\nContent-Type: text/plain; charset=utf-8\r\ncontent-length: {}",
        POLICY.len()
    );
    assert_eq!(fetched(&response(&length, POLICY), usize::MAX, false), whole);
    assert_eq!(
        fetched(&response("200 OK\r\nContent-Type: text/plain", POLICY), usize::MAX, true),
        whole
    );
    assert_eq!(
        fetched(&response("200 OK\r\nContent-Type: text/plain", POLICY), usize::MAX, false),
        Err(Shortfall::PolicyUnvouched),
        "cut off"
    );
    assert_eq!(
        fetched(&response(&length, &POLICY[..POLICY.len() - 1]), usize::MAX, true),
        Err(NOT_FETCHED),
        "the body is incomplete"
    );
}

#[test]
fn invalid_policy_response_and_redirect_are_rejected() {
    let long = "x".repeat(TEXT_BYTES_MAX + 1);
    for (head, body) in [
        ("301 Moved\r\nLocation: https://there.test/\r\nContent-Type: text/plain", POLICY),
        ("404 Not found\r\nContent-Type: text/plain", POLICY),
        ("200 OK\r\nContent-Type: text/html", POLICY),
        ("200 OK", POLICY),
        ("200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked", POLICY),
        ("200 OK\r\nContent-Type: text/plain\r\nContent-Length: x", POLICY),
        ("200 OK\r\nContent-Type: text/plain", "Hello"),
        ("200 OK\r\nContent-Type: text/plain", &[POLICY, &long].concat()),
        (
            "200 OK\r\nContent-Type: text/plain\r\nContent-Length: 99999999",
            &[POLICY, &long].concat(),
        ),
        (&format!("200 OK\r\nContent-Type: text/plain\r\nX: {long}"), POLICY),
    ] {
        let why = if body == "Hello" { Shortfall::PolicyInvalid } else { NOT_FETCHED };
        assert_eq!(
            fetched(&response(head, body), 1000, true),
            Err(why),
            "{}",
            &head[..head.len().min(60)]
        );
    }
    assert_eq!(fetched(&[b'x'; 20_000], 1000, true), Err(NOT_FETCHED));
    assert_eq!(fetched(b"", 1, true), Err(NOT_FETCHED));
}

proptest! {
    #[test]
    fn response_parsing_ignores_segment_boundaries(cut in 1_usize..60, wild: Vec<u8>) {
        let whole = response("200 OK\r\nContent-Type: text/plain", POLICY);
        prop_assert_eq!(fetched(&whole, cut, true).ok(), StsPolicy::read(POLICY.as_bytes()));
        let _ = (fetched(&wild, cut, true), StsPolicy::read(&wild));
    }
}
