//! Requests: methods, targets, versions and persistence.

use super::world::{Talk, ask, request};
use std::string::String;
use std::vec::Vec;

#[test]
fn a_file_is_sent_with_its_fields_and_without_a_copy() {
    let mut talk = Talk::new();
    let response = talk.ask(&["GET /hello.txt HTTP/1.1"]);
    assert_eq!((response.status, response.body.as_slice()), (200, super::world::HELLO));
    assert_eq!(response.field("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(response.field("last-modified"), Some(super::world::MODIFIED));
    assert_eq!(response.field("accept-ranges"), Some("bytes"));
    assert_eq!(response.field("date"), Some("Tue, 03 Nov 2026 21:04:05 GMT"));
    assert!(response.field("etag").unwrap().starts_with('"'));
    assert_eq!(response.field("connection"), None);
    assert_eq!(talk.world.uncopied, response.body.len());
    assert_eq!(talk.world.log, [("GET".into(), "/hello.txt".into(), 200, 30)]);
}

#[test]
fn head_gets_the_same_fields_as_get_for_a_file() {
    for path in ["/hello.txt", "/style.css", "/nothing", "/folder", "/empty"] {
        let asked = ["Accept-Encoding: br"];
        let get = ask(&[&std::format!("GET {path} HTTP/1.1"), asked[0]]);
        let head = ask(&[&std::format!("HEAD {path} HTTP/1.1"), asked[0]]);
        assert!(head.body.is_empty());
        assert_eq!(head, super::world::Response { body: Vec::new(), ..get });
    }
}

#[test]
fn a_folder_serves_its_index_and_redirects_to_its_slash() {
    assert_eq!(ask(&["GET / HTTP/1.1"]).text(), "<h1>Index</h1>");
    assert_eq!(ask(&["GET /folder/ HTTP/1.1"]).text(), "<h1>Folder</h1>");
    for (target, location) in [
        ("/folder", "/folder/"),
        ("/folder?a=b?c", "/folder/?a=b?c"),
        ("/./folder", "/./folder/"),
        ("http://web.test/folder", "http://web.test/folder/"),
    ] {
        let response = ask(&[&std::format!("GET {target} HTTP/1.1")]);
        assert_eq!((response.status, response.field("location")), (301, Some(location)));
    }
    // A redirection never names another host.
    let response = ask(&["GET //evil.test/%2e%2e/folder HTTP/1.1"]);
    assert_ne!(response.field("location").map(|location| location.starts_with("//")), Some(true));
}

#[test]
fn a_path_is_decoded_once_and_stays_inside_the_site() {
    for (target, status) in [
        ("/with%20space/%C3%BC.txt", 200),
        ("/hello%2Etxt", 200),
        ("/folder/../hello.txt", 200),
        ("/folder/./../%68ello.txt?x#y", 400),
        ("/folder/..", 200),
        ("/folder/.", 200),
        ("/folder/%2e%2e/hello.txt", 200),
        ("/a/b/../../hello.txt?q=/../..", 200),
        ("/../hello.txt", 400),
        ("/folder/../../hello.txt", 400),
        ("/%2e%2e/hello.txt", 400),
        ("/hello.txt%00", 400),
        ("/hello.txt%0", 400),
        ("/hello.txt%zz", 400),
        ("/hello.txt%", 400),
        ("/%ff", 404),
        ("/folder%2findex.html", 404),
        ("/hello%252etxt", 404),
        ("/hello.txt/", 404),
        ("/hello.txt/..", 200),
        ("//hello.txt", 404),
        ("/folder/index.html/x", 404),
        ("/\\..\\hello.txt", 404),
        ("hello.txt", 400),
        ("http://web.test/hello.txt", 200),
        ("HTTPS://web.test:80?x", 200),
        ("http://web.test", 200),
        ("http://a@b/", 400),
        ("http://web.test:80x/", 400),
        ("http://[::1/", 400),
        ("http://web.test:/hello.txt", 200),
        ("http://[::1]:80/hello.txt", 200),
        ("http:///hello.txt", 400),
        ("ftp://web.test/hello.txt", 400),
        ("*", 400),
    ] {
        assert_eq!(ask(&[&std::format!("GET {target} HTTP/1.1")]).status, status, "{target}");
    }
    let long = std::format!("GET /{} HTTP/1.1", "x".repeat(3000));
    assert_eq!(ask(&[&long]).status, 404);
}

#[test]
fn writing_methods_get_405_and_unknown_methods_501() {
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE"] {
        let response = ask(&[&std::format!("{method} /hello.txt HTTP/1.1")]);
        assert_eq!((response.status, response.field("allow")), (405, Some("GET, HEAD, OPTIONS")));
    }
    assert_eq!(ask(&["CONNECT web.test:443 HTTP/1.1"]).status, 405);
    for method in ["BREW", "get", "GETX", "PROPFIND"] {
        assert_eq!(ask(&[&std::format!("{method} / HTTP/1.1")]).status, 501, "{method}");
    }
    for target in ["*", "/", "/nothing"] {
        let response = ask(&[&std::format!("OPTIONS {target} HTTP/1.1")]);
        assert_eq!((response.status, response.field("allow")), (204, Some("GET, HEAD, OPTIONS")));
        assert_eq!(response.field("content-length"), None, "RFC 9110 section 8.6");
    }
}

#[test]
fn keep_alive_follows_the_version_and_the_connection_field() {
    let open = |head: &[&str]| {
        let mut talk = Talk::new();
        let response = talk.ask(head);
        assert_eq!(talk.world.closed, response.field("connection") == Some("close"));
        (!talk.world.closed, response.field("connection").map(String::from))
    };
    assert_eq!(open(&["GET / HTTP/1.1"]), (true, None));
    assert_eq!(open(&["GET / HTTP/1.1", "Connection: foo, Close"]), (false, Some("close".into())));
    assert_eq!(open(&["GET / HTTP/1.0"]), (false, Some("close".into())));
    assert_eq!(
        open(&["GET / HTTP/1.0", "Connection: Keep-Alive"]),
        (true, Some("keep-alive".into()))
    );
    assert_eq!(
        open(&["GET / HTTP/1.0", "Connection: keep-alive, close"]),
        (false, Some("close".into()))
    );
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let mut talk = Talk::new();
    let paths = ["/hello.txt", "/nothing", "/folder/", "/empty", "/"];
    let all: String = paths.map(|path| request(&[&std::format!("GET {path} HTTP/1.1")])).concat();
    talk.arrive(all.as_bytes());
    let statuses: Vec<_> =
        talk.responses(|_| false).iter().map(|response| response.status).collect();
    assert_eq!(statuses, [200, 404, 200, 200, 200]);
    assert!(!talk.world.closed);
}

#[test]
fn a_host_is_a_name_or_an_address_with_or_without_a_port() {
    for host in [
        "",
        "a",
        "a:",
        "a:80",
        "a:0080",
        "10.0.0.2:443",
        "xn--bcher-kva.example",
        "a_b.c~d!$&'()*+,;=",
        "%C3%BC.test",
        "[::1]",
        "[2001:db8::1.2.3.4]:80",
        "[v1.a:b]",
    ] {
        assert_eq!(status_for_host(host), 200, "{host}");
    }
    for host in [
        ":",
        ":80",
        "x:abc",
        "a:80:80",
        "a:-1",
        "a:80 80",
        "a:+1",
        "::1",
        "[::1",
        "::1]",
        "[]",
        "[a]",
        "[::1]a",
        "[::1]:x",
        "[::1]]",
        "[v.a]",
        "[vg.a]",
        "[v1.]",
        "[v1]",
        "a[::1]",
        "%",
        "%4",
        "%4g.test",
        "a%",
        "a/b",
        "a?b",
        "a#b",
        "a@b",
        "a\\b",
        "a\"b",
        "a|b",
        "<a>",
        "{a}",
        "a^b",
        "a`b",
        "\u{fc}.test",
    ] {
        assert_eq!(status_for_host(host), 400, "{host}");
    }
}

fn status_for_host(host: &str) -> u16 {
    let mut talk = Talk::new();
    talk.arrive(std::format!("GET /hello.txt HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
    talk.responses(|_| false)[0].status
}

#[test]
fn malformed_requests_are_rejected_and_end_the_connection() {
    for (bytes, status) in [
        (&b"\x16\x03\x01\x02\x00\x01"[..], 400),
        (b"GET / HTTP/1.1\nHost: a\n\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: y\rz\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\n: empty\r\n\r\n", 400),
        (b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /\r\n\r\n", 400),
        (b"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400),
        (b"GET /\xc3\xbc HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        (b"GET / HTTX/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /a b HTTP/2.0\r\nHost: a\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x:abc\r\n\r\n", 400),
        (b"GET http://x:abc/ HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ] {
        let mut talk = Talk::new();
        talk.arrive(bytes);
        talk.arrive(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let responses = talk.responses(|_| false);
        assert_eq!(
            responses.len(),
            1,
            "later bytes are not answered: {:?}",
            String::from_utf8_lossy(bytes)
        );
        assert_eq!(responses[0].status, status, "{:?}", String::from_utf8_lossy(bytes));
        assert_eq!(responses[0].field("connection"), Some("close"));
        assert!(talk.world.closed);
    }
}

#[test]
fn empty_lines_before_a_request_are_skipped() {
    let mut talk = Talk::new();
    talk.arrive(b"\r\n\r\n\r");
    talk.arrive(b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(talk.responses(|_| false)[0].status, 200);
}

#[test]
fn the_size_of_a_request_head_is_limited() {
    let long_line = std::format!("GET /{} HTTP/1.1\r\n", "x".repeat(9000));
    let long_field = std::format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(9000));
    let many_fields = std::format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "a:b\r\n".repeat(200));
    let most = std::format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "a:b\r\n".repeat(99));
    for (bytes, status) in [(long_line, 414), (long_field, 431), (many_fields, 431), (most, 200)] {
        let mut talk = Talk::new();
        for piece in bytes.as_bytes().chunks(1000) {
            talk.arrive(piece);
        }
        let responses = talk.responses(|_| false);
        assert_eq!(responses[0].status, status);
        assert_eq!(talk.world.closed, status != 200);
    }
}

#[test]
fn the_site_may_have_its_own_error_pages() {
    let response = ask(&["GET /nothing HTTP/1.1"]);
    assert_eq!((response.status, response.text()), (404, "<h1>Nothing here</h1>"));
    assert_eq!(response.field("content-type"), Some("text/html; charset=utf-8"));
    let response = ask(&["POST / HTTP/1.1"]);
    assert_eq!((response.status, response.text()), (405, "405 Method Not Allowed\n"));
}
