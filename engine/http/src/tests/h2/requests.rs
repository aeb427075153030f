//! Requests and responses over HTTP/2, compared with HTTP/1.1.

use std::string::String;
use std::vec::Vec;

use http2::{ErrorCode, FrameType};

use super::client::{Client, ClientResponse, END_HEADERS, END_STREAM, block, fields, frame, get};
use crate::HttpsPolicy;
use crate::tests::world::Talk;

/// The response to the request over HTTP/1.1, in the form of HTTP/2.
fn in_http1(method: &str, path: &str, more: &[(&str, &str)]) -> ClientResponse {
    let line = std::format!("{method} {path} HTTP/1.1");
    let lines = more.iter().map(|(name, value)| std::format!("{name}: {value}"));
    let head: Vec<String> = [line].into_iter().chain(lines).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let response = Talk::new().ask(&head);
    let status = [(":status".into(), std::format!("{}", response.status))];
    let sent_fields = response.fields.into_iter().filter(|(name, _)| name != "Connection");
    let fields = status
        .into_iter()
        .chain(sent_fields.map(|(name, value)| (name.to_ascii_lowercase(), value)))
        .collect();
    ClientResponse { fields, body: response.body, is_over: true, reset: None }
}

#[test]
fn http2_responses_equal_http1_responses() {
    let tag = in_http1("GET", "/style.css", &[]).field("etag").unwrap().replace('"', "");
    let [tag, modified] = [std::format!("\"{tag}\""), crate::tests::world::MODIFIED.into()];
    let mut stream = 1;
    let mut client = Client::new();
    for path in [
        "/",
        "/hello.txt",
        "/style.css",
        "/empty",
        "/folder",
        "/folder/?x",
        "/nothing",
        "/%zz",
        "/../x",
        "*",
    ] {
        for method in ["GET", "HEAD", "OPTIONS", "POST", "BREW"] {
            for more in [
                &[][..],
                &[("accept-encoding", "gzip, br;q=0.5")],
                &[("range", "bytes=1-4")],
                &[("range", "bytes=1-4,6-7, -2")],
                &[("range", "bytes=900-")],
                &[("if-none-match", tag.as_str())],
                &[("if-modified-since", modified.as_str())],
                &[("if-match", "\"x\"")],
                &[("expect", "100-continue")],
                &[("expect", "more")],
            ] {
                // Over HTTP/1.1 a request with a malformed target is never treated as HEAD.
                if path == "*" && method != "OPTIONS"
                    || ["/%zz", "/../x"].contains(&path) && method == "HEAD"
                {
                    continue;
                }
                let answer = client.ask(stream, method, path, more);
                assert_eq!(answer, in_http1(method, path, more), "{method} {path} {more:?}");
                stream += 2;
            }
        }
    }
    let answer = client.ask(stream, "HEAD", "/../x", &[]);
    assert_eq!((answer.status(), answer.body.len(), answer.is_over), ("400", 0, true));
    assert_eq!(client.world.log.len() as u32, stream / 2 + 1);
    assert_eq!(client.world.log[0], ("GET".into(), "/".into(), 200, 14));
}

#[test]
fn a_file_is_sent_over_http2_without_a_copy() {
    let mut client = Client::new();
    let answer = client.ask(1, "GET", "/hello.txt", &[]);
    assert_eq!((answer.status(), answer.body.as_slice()), ("200", crate::tests::world::HELLO));
    assert_eq!(client.world.uncopied, answer.body.len());
}

#[test]
fn http2_responses_have_strict_transport_security() {
    let mut client = Client::new();
    client.world.https_policy = HttpsPolicy::Enforced;
    assert_eq!(
        client.ask(1, "GET", "/", &[]).field("strict-transport-security"),
        Some("max-age=31536000")
    );
}

#[test]
fn a_malformed_http2_request_resets_only_its_stream() {
    let method = (":method", "GET");
    let scheme = (":scheme", "https");
    let authority = (":authority", "web.test");
    let path = (":path", "/hello.txt");
    let right = [method, scheme, authority, path];
    let with = |field| [right.as_slice(), &[field]].concat();
    let mut client = Client::new();
    let mut stream = 1;
    for (fields, why) in [
        (Vec::from([scheme, authority, path]), "no method"),
        (Vec::from([method, authority, path]), "no scheme"),
        (Vec::from([method, scheme, authority]), "no path"),
        (Vec::from([method, scheme, authority, (":path", "")]), "an empty path"),
        (Vec::from([method, scheme, authority, (":path", "hello.txt")]), "a path without a slash"),
        (
            Vec::from([method, scheme, authority, (":path", "https://web.test/")]),
            "an absolute target",
        ),
        (
            Vec::from([method, scheme, authority, (":path", "/a b")]),
            "a path that would end a request line",
        ),
        (Vec::from([(":method", "G ET"), scheme, authority, path]), "a method that is not a token"),
        (Vec::from([(":method", "CONNECT"), scheme, authority, path]), "CONNECT to a path"),
        (with(method), "a method twice"),
        (with((":status", "200")), "the status of a response"),
        (with((":unknown", "x")), "an unknown pseudo-field"),
        (
            Vec::from([method, scheme, ("accept", "*/*"), authority, path]),
            "a pseudo-field after a field",
        ),
        (with(("Accept", "*/*")), "a name with a capital letter"),
        (with(("", "x")), "a name that is empty"),
        (with(("a b", "x")), "a name that is not a token"),
        (with(("accept:", "x")), "a name with a colon"),
        (with(("accept", "a\r\nb: c")), "a value that would end a line"),
        (with(("accept", "a\0")), "a value with a zero"),
        (with(("accept", " a")), "a value with a space before it"),
        (with(("accept", "a\t")), "a value with a tab after it"),
        (with(("connection", "close")), "the field Connection of HTTP/1.1"),
        (with(("transfer-encoding", "chunked")), "a transfer coding"),
        (with(("keep-alive", "5")), "the field Keep-Alive of HTTP/1.1"),
        (with(("upgrade", "h2c")), "an upgrade"),
        (with(("proxy-connection", "x")), "the field Proxy-Connection of HTTP/1.1"),
        (with(("te", "gzip")), "an accepted transfer coding"),
        (with(("host", "evil.test")), "another host"),
        (with(("content-length", "5")), "a length of a missing body"),
        (with(("content-length", "x")), "a length that is not a number"),
        (
            Vec::from([
                method,
                scheme,
                authority,
                path,
                ("content-length", "0"),
                ("content-length", "0"),
            ]),
            "two lengths",
        ),
    ] {
        client.arrive(&frame(
            FrameType::Headers,
            END_STREAM | END_HEADERS,
            stream,
            &block(&fields),
        ));
        let answer = client.answers().remove(&stream).expect(why);
        assert_eq!(answer.reset, Some(ErrorCode::ProtocolError as u32), "{why}");
        assert!(answer.fields.is_empty(), "{why}");
        stream += 2;
    }
    for (fields, status, why) in [
        (with(("te", "trailers")), "200", "trailers are accepted"),
        (with(("host", "web.test")), "200", "the same host in two fields"),
        (
            Vec::from([method, scheme, path, ("host", "web.test")]),
            "200",
            "the host in the field of HTTP/1.1",
        ),
        (Vec::from([method, scheme, path]), "400", "no host"),
        (Vec::from([method, scheme, (":authority", "a@b"), path]), "400", "an invalid host"),
        (Vec::from([method, scheme, (":authority", "x:abc"), path]), "400", "an invalid port"),
        (Vec::from([(":method", "CONNECT"), authority]), "405", "a well-formed CONNECT"),
        (with(("content-length", "0")), "200", "no body"),
    ] {
        client.arrive(&frame(
            FrameType::Headers,
            END_STREAM | END_HEADERS,
            stream,
            &block(&fields),
        ));
        assert_eq!(client.answers().remove(&stream).expect(why).status(), status, "{why}");
        stream += 2;
    }
    client.assert_lives();
}

#[test]
fn a_head_may_have_several_frames_padding_and_a_priority() {
    let mut client = Client::new();
    let whole = block(&fields("GET", "/hello.txt"));
    let (first, rest) = whole.split_at(10);
    let (second, third) = rest.split_at(7);
    let padded = [&[3, 0x80, 0, 0, 0, 9][..], first, &[0; 3]].concat();
    let frames = [
        frame(FrameType::Headers, END_STREAM | 0x8 | 0x20, 1, &padded),
        frame(FrameType::Continuation, 0, 1, second),
        frame(FrameType::Continuation, 0, 1, &[]),
        frame(FrameType::Continuation, END_HEADERS, 1, third),
    ];
    for frame in &frames {
        assert!(client.answers().is_empty());
        client.arrive(frame);
    }
    assert_eq!(client.answers()[&1].body, crate::tests::world::HELLO);
    client.assert_lives();
}

#[test]
fn a_too_large_http2_head_is_rejected() {
    let long = "x".repeat(990);
    let mut client = Client::new();
    // A field of the dynamic table is repeated, so a short block decodes to a long list.
    let mut small = block(&fields("GET", "/"));
    small.extend([0x40, 1, b'a', 127, 0xe0, 0x06]);
    small.extend([b'v'; 127 + 0x60 + (6 << 7)]);
    small.extend([0xbe; 12]);
    client.arrive(&frame(FrameType::Headers, END_STREAM | END_HEADERS, 1, &small));
    assert_eq!(client.answers()[&1].status(), "431");
    client.assert_lives();
    let mut large = fields("GET", "/");
    large.extend((0..9).map(|_| ("x-filler", long.as_str())));
    let large = block(&large);
    let mut client = Client::new();
    client.arrive(&frame(FrameType::Headers, END_STREAM, 1, &large[..4000]));
    client.arrive(&frame(FrameType::Continuation, 0, 1, &large[4000..8000]));
    assert_eq!(client.frames(), []);
    client.arrive(&frame(FrameType::Continuation, END_HEADERS, 1, &large[8000..]));
    client.assert_ended(ErrorCode::EnhanceYourCalm, "CVE-2024-27316");
    let mut client = Client::new();
    client.arrive(&frame(FrameType::Headers, END_STREAM | END_HEADERS, 1, &large));
    client.assert_ended(ErrorCode::EnhanceYourCalm, "a too large head in one frame");
    let mut client = Client::new();
    client.arrive(&frame(FrameType::Headers, END_STREAM, 1, &block(&fields("GET", "/"))));
    for _ in 0..20 {
        client.arrive(&frame(FrameType::Continuation, 0, 1, &[]));
    }
    client.assert_ended(ErrorCode::EnhanceYourCalm, "too many continuations without bytes");
}

#[test]
fn many_http2_requests_in_one_segment_are_all_answered() {
    let mut client = Client::new();
    let asked: Vec<u8> = (0..90).flat_map(|number| get(2 * number + 1, "/hello.txt")).collect();
    client.arrive(&asked);
    let answers = client.answers();
    assert_eq!(answers.len(), 90);
    assert!(
        answers.values().all(|answer| answer.is_over && answer.body == crate::tests::world::HELLO)
    );
}
