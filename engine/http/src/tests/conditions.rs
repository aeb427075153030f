//! Conditional requests and content codings.

use super::world::{Response, ask};
use std::format;
use std::string::{String, ToString};

fn get(path: &str, fields: &[&str]) -> Response {
    let line = format!("GET {path} HTTP/1.1");
    ask(&[&[line.as_str()], fields].concat())
}

fn tag(path: &str, fields: &[&str]) -> String {
    get(path, fields).field("etag").unwrap().to_string()
}

#[test]
fn a_file_that_the_client_has_is_answered_304() {
    let tag = tag("/hello.txt", &[]);
    let later = "Mon, 07 Nov 1994 00:00:00 GMT";
    let earlier = "Sun, 06 Nov 1994 08:49:36 GMT";
    for (field, status) in [
        (format!("If-None-Match: {tag}"), 304),
        (format!("If-None-Match: W/{tag}"), 304),
        (format!("If-None-Match: \"a,b\", {tag}"), 304),
        ("If-None-Match: *".into(), 304),
        ("If-None-Match: \"other\"".into(), 200),
        (format!("If-None-Match: {}", tag.trim_matches('"')), 200),
        (format!("If-Modified-Since: {}", super::world::MODIFIED), 304),
        (format!("If-Modified-Since: {later}"), 304),
        (format!("If-Modified-Since: {earlier}"), 200),
        ("If-Modified-Since: never".into(), 200),
        (format!("If-Match: {tag}"), 200),
        ("If-Match: *".into(), 200),
        (format!("If-Match: W/{tag}"), 412),
        ("If-Match: \"other\"".into(), 412),
        (format!("If-Unmodified-Since: {later}"), 200),
        (format!("If-Unmodified-Since: {earlier}"), 412),
    ] {
        let response = get("/hello.txt", &[&field]);
        assert_eq!(response.status, status, "{field}");
        if status == 304 {
            assert_eq!(response.field("etag"), Some(tag.as_str()));
            assert_eq!(response.field("content-length"), None);
        }
    }
}

#[test]
fn conditions_are_evaluated_in_rfc_order() {
    let tag = tag("/hello.txt", &[]);
    let newer = "If-Modified-Since: Mon, 07 Nov 1994 00:00:00 GMT";
    assert_eq!(
        get("/hello.txt", &["If-None-Match: \"other\"", newer]).status,
        200,
        "the entity tag takes precedence over the date"
    );
    let older = "If-Unmodified-Since: Sat, 05 Nov 1994 00:00:00 GMT";
    assert_eq!(
        get("/hello.txt", &[&format!("If-Match: {tag}"), older]).status,
        200,
        "the entity tag takes precedence over the date"
    );
    assert_eq!(get("/hello.txt", &["If-Match: \"other\"", "If-None-Match: *"]).status, 412);
    assert_eq!(get("/nothing", &["If-None-Match: *"]).status, 404);
}

#[test]
fn the_coding_that_a_client_prefers_is_sent() {
    for (accepted, coding) in [
        ("", None),
        ("gzip", Some("gzip")),
        ("gzip, deflate, br", Some("br")),
        ("br;q=0.5, gzip;q=0.8", Some("gzip")),
        ("br;q=0, *", Some("gzip")),
        ("*;q=0.1", Some("br")),
        ("gzip;q=0", None),
        ("identity, gzip;q=0.5", None),
        ("GZIP ; Q=1.000", Some("gzip")),
        ("gzip;q=2", None),
        ("gzip;q=0.0001", None),
        ("x-gzip", Some("gzip")),
        ("zstd", None),
    ] {
        let response = get("/style.css", &[&format!("Accept-Encoding: {accepted}")]);
        assert_eq!(response.field("content-encoding"), coding, "{accepted}");
        assert_eq!(response.field("vary"), Some("Accept-Encoding"));
        let body = match coding {
            None => "body { color: black }",
            Some("gzip") => "gzipped",
            Some(_) => "brotli!",
        };
        assert_eq!(response.text(), body);
    }
    assert_eq!(
        get("/zipped.txt", &["Accept-Encoding: br, gzip"]).field("content-encoding"),
        Some("gzip")
    );
    assert_eq!(get("/hello.txt", &["Accept-Encoding: br, gzip"]).field("vary"), None);
}

#[test]
fn each_coding_has_its_own_entity_tag() {
    let tags = ["", "gzip", "br"]
        .map(|coding| tag("/style.css", &[&format!("Accept-Encoding: {coding}")]));
    assert!(tags[0] != tags[1] && tags[1] != tags[2] && tags[0] != tags[2]);
    let plain_is_known = format!("If-None-Match: {}", tags[0]);
    assert_eq!(get("/style.css", &[&plain_is_known]).status, 304);
    assert_eq!(get("/style.css", &[&plain_is_known, "Accept-Encoding: br"]).status, 200);
}
