//! HTTPS policy: redirections of plaintext requests, and the field `Strict-Transport-Security`.

use super::world::{Response, Talk};
use crate::HttpsPolicy;

fn asked(https_policy: HttpsPolicy, head: &[&str]) -> Response {
    let mut talk = Talk::new();
    talk.world.https_policy = https_policy;
    talk.ask(head)
}

#[test]
fn plaintext_requests_are_redirected_to_https_on_our_names() {
    for (line, host, location) in [
        ("GET /hello.txt HTTP/1.1", "web.test", "https://web.test/hello.txt"),
        ("GET /hello.txt HTTP/1.1", "web.test:8080", "https://web.test/hello.txt"),
        ("HEAD /a%20b?c=d%2f&e=/../ HTTP/1.1", "web.test", "https://web.test/a%20b?c=d%2f&e=/../"),
        ("POST / HTTP/1.1", "web.test", "https://web.test/"),
        ("GET / HTTP/1.1", "evil.test", "https://own.test/"),
        ("GET / HTTP/1.1", "evil.test:80", "https://own.test/"),
        ("GET / HTTP/1.1", "[::1]:80", "https://own.test/"),
        ("GET / HTTP/1.1", "", "https://own.test/"),
        ("GET //evil.test/ HTTP/1.1", "web.test", "https://web.test//evil.test/"),
        ("GET /?http://evil.test HTTP/1.1", "web.test", "https://web.test/?http://evil.test"),
        ("GET http://web.test?x HTTP/1.1", "evil.test", "https://web.test/?x"),
        ("GET http://evil.test/x HTTP/1.1", "web.test", "https://own.test/x"),
    ] {
        let response = asked(HttpsPolicy::Redirect, &[line, &std::format!("Host: {host}")]);
        assert_eq!(
            (response.status, response.field("location")),
            (308, Some(location)),
            "{line} {host}"
        );
        assert!(response.body.is_empty());
        assert_eq!(response.field("strict-transport-security"), None, "RFC 6797 section 7.2");
    }
    let malformed = ["GET / HTTP/1.1", "Host: evil.test:80.web.test"];
    assert_eq!(asked(HttpsPolicy::Redirect, &malformed).status, 400);
    let long = std::format!("{}.web.test", "x".repeat(300));
    let response = asked(HttpsPolicy::Redirect, &["GET / HTTP/1.1", &std::format!("Host: {long}")]);
    assert_eq!(response.field("location"), Some("https://own.test/"));
    let long = std::format!("GET /?{} HTTP/1.1", "x".repeat(1024));
    assert_eq!(asked(HttpsPolicy::Redirect, &[&long]).status, 414);
}

#[test]
fn a_response_cached_over_tls_is_not_sent_in_plaintext() {
    let mut talk = Talk::new();
    talk.world.https_policy = HttpsPolicy::Enforced;
    for _ in 0..2 {
        assert_eq!(
            talk.ask(&["GET /hello.txt HTTP/1.1"]).field("strict-transport-security"),
            Some("max-age=31536000")
        );
    }
    let mut talk = talk.next();
    talk.world.https_policy = HttpsPolicy::Redirect;
    assert_eq!(talk.ask(&["GET /hello.txt HTTP/1.1"]).status, 308);
}

#[test]
fn malformed_plaintext_requests_are_rejected_not_redirected() {
    for (line, status) in [
        ("GET /../x HTTP/1.1", 400),
        ("GET /%zz HTTP/1.1", 400),
        ("GET ftp://web.test/ HTTP/1.1", 400),
        ("OPTIONS * HTTP/1.1", 204),
        ("CONNECT web.test:443 HTTP/1.1", 405),
    ] {
        assert_eq!(asked(HttpsPolicy::Redirect, &[line]).status, status, "{line}");
    }
}

#[test]
fn every_response_over_tls_has_strict_transport_security() {
    for (line, status) in [
        ("GET /hello.txt HTTP/1.1", 200),
        ("GET /folder HTTP/1.1", 301),
        ("GET /nothing HTTP/1.1", 404),
        ("POST / HTTP/1.1", 405),
        ("OPTIONS * HTTP/1.1", 204),
    ] {
        let response = asked(HttpsPolicy::Enforced, &[line]);
        let field = response.field("strict-transport-security");
        assert_eq!((response.status, field), (status, Some("max-age=31536000")), "{line}");
        let response = asked(HttpsPolicy::Optional, &[line]);
        assert_eq!(
            (response.status, response.field("strict-transport-security")),
            (status, None),
            "{line}"
        );
    }
}
