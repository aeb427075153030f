//! Byte ranges.

use super::world::{HELLO, Response, Talk, ask};
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

fn get(range: &str) -> Response {
    ask(&["GET /hello.txt HTTP/1.1", &format!("Range: {range}")])
}

#[test]
fn a_range_gets_206_with_its_part() {
    for (range, part) in [
        ("bytes=0-4", 0..5),
        ("bytes=7-", 7..30),
        ("bytes=-6", 24..30),
        ("bytes=-99", 0..30),
        ("bytes=29-29", 29..30),
        ("bytes=10-9999999999999999999999", 10..30),
        ("Bytes= 1-2 ,", 1..3),
        ("bytes=90-, 1-2", 1..3),
    ] {
        let response = get(range);
        assert_eq!(
            (response.status, response.body.as_slice()),
            (206, &HELLO[part.clone()]),
            "{range}"
        );
        let expected = format!("bytes {}-{}/30", part.start, part.end - 1);
        assert_eq!(response.field("content-range"), Some(expected.as_str()));
        assert_eq!(response.field("content-type"), Some("text/plain; charset=utf-8"));
    }
}

#[test]
fn a_malformed_range_is_ignored_and_one_outside_gets_416() {
    for range in [
        "bytes=",
        "lines=1-2",
        "bytes=2-1",
        "bytes=a-b",
        "bytes=-",
        "bytes=1",
        "bytes=--1",
        "bytes",
    ] {
        let response = get(range);
        let expected = if range == "bytes=" { 416 } else { 200 };
        assert_eq!(response.status, expected, "{range}");
    }
    for range in ["bytes=30-", "bytes=99-100", "bytes=-0", "bytes=30-,40-50"] {
        let response = get(range);
        assert_eq!(
            (response.status, response.field("content-range")),
            (416, Some("bytes */30")),
            "{range}"
        );
    }
    assert_eq!(ask(&["GET /empty HTTP/1.1", "Range: bytes=0-"]).status, 416);
    assert_eq!(
        ask(&["GET /hello.txt HTTP/1.1", "Range: bytes=0-1", "Range: bytes=0-1"]).status,
        200
    );
    assert_eq!(
        ask(&["HEAD /hello.txt HTTP/1.1", "Range: bytes=0-1"]).status,
        200,
        "HEAD ignores ranges"
    );
}

#[test]
fn several_ranges_get_a_multipart_response() {
    let mut talk = Talk::new();
    let response = talk.ask(&["GET /hello.txt HTTP/1.1", "Range: bytes=0-4,7-11,-5"]);
    assert_eq!(response.status, 206);
    let boundary = response
        .field("content-type")
        .unwrap()
        .strip_prefix("multipart/byteranges; boundary=")
        .unwrap();
    let expected: String = [("0-4", "Hello"), ("7-11", "world"), ("25-29", "ile.\n")]
        .map(|(range, text)| {
            format!("\r\n--{boundary}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes {range}/30\r\n\r\n{text}")
        })
        .concat();
    assert_eq!(response.text(), expected + &format!("\r\n--{boundary}--\r\n"));
    assert_eq!(talk.world.uncopied, 15);
}

#[test]
fn too_many_or_overlapping_ranges_get_the_whole_file() {
    let nine = (0..9).map(|at| format!("{at}-{at}")).collect::<Vec<_>>().join(",");
    assert_eq!(get(&format!("bytes={nine}")).status, 200);
    assert_eq!(get("bytes=0-29,0-29").status, 200);
    assert_eq!(get("bytes=0-28,29-29").status, 206);
}

#[test]
fn if_range_must_match_for_a_partial_response() {
    let tag = get("bytes=0-0").field("etag").unwrap().to_string();
    for (condition, status) in [
        (tag.clone(), 206),
        (format!("W/{tag}"), 200),
        ("\"other\"".into(), 200),
        (super::world::MODIFIED.to_string(), 206),
        ("Mon, 07 Nov 1994 08:49:37 GMT".into(), 200),
    ] {
        let fields =
            ["GET /hello.txt HTTP/1.1", "Range: bytes=0-4", &format!("If-Range: {condition}")];
        assert_eq!(ask(&fields).status, status, "{condition}");
    }
    let asked = ["GET /hello.txt HTTP/1.1", "Range: bytes=0-4", "If-None-Match: *"];
    assert_eq!(ask(&asked).status, 304, "conditions are evaluated before ranges");
}

#[test]
fn a_range_applies_to_the_compressed_representation() {
    let response = ask(&["GET /style.css HTTP/1.1", "Accept-Encoding: gzip", "Range: bytes=1-3"]);
    assert_eq!((response.status, response.text()), (206, "zip"));
    assert_eq!(response.field("content-encoding"), Some("gzip"));
    assert_eq!(response.field("content-range"), Some("bytes 1-3/7"));
}
