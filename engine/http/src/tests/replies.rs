//! Replies: their fields and their bodies, over HTTP/1.1 and HTTP/2.

use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

use http2::FrameType;
use proptest::prelude::*;

use super::h2::client::{Client, get, window};
use super::world::{HELLO, Response, Talk, request};
use crate::{
    HttpWaitsFor, HttpsPolicy, REPLY_FIELDS_BYTES_MAX, RESPONSE_HEAD_BYTES_MAX, Reply, ReplyField,
    Status,
};

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at / 7) as u8).collect()
}

/// The response over HTTP/1.1 to a GET request that the handler answers with `reply`.
fn response_to(reply: Reply) -> Response {
    let mut talk = Talk::new();
    talk.arrive(request(&["GET /app/page HTTP/1.1"]).as_bytes());
    talk.reply(reply);
    let mut responses = talk.responses(|_| false);
    assert_eq!(responses.len(), 1);
    responses.remove(0)
}

/// The fields and the body of the response over HTTP/2 to a GET request that the handler answers
/// with `reply`.
fn http2_response_to(reply: Reply) -> (Vec<(String, String)>, Vec<u8>) {
    let mut client = Client::new();
    client.arrive(&get(1, "/app/page"));
    client.reply(reply);
    let answer = client.answers().remove(&1).expect("an answer");
    assert!(answer.is_over);
    (answer.fields, answer.body)
}

#[test]
fn a_reply_is_the_same_over_http1_and_http2() {
    for (status, code) in [
        (Status::Ok, 200),
        (Status::SeeOther, 303),
        (Status::BadRequest, 400),
        (Status::Unauthorized, 401),
        (Status::Forbidden, 403),
        (Status::NotFound, 404),
        (Status::MethodNotAllowed, 405),
        (Status::ContentTooLarge, 413),
        (Status::UnprocessableContent, 422),
        (Status::TooManyRequests, 429),
        (Status::ServiceUnavailable, 503),
        (Status::InsufficientStorage, 507),
    ] {
        let reply = || {
            Reply::new(status, "text/html; charset=utf-8", b"<p>\r\n\r\n".to_vec())
                .with(ReplyField::SetCookie, "a=1; Secure")
                .with(ReplyField::SetCookie, "b=2")
                .with(ReplyField::Location, "/app/elsewhere")
                .with(ReplyField::ContentSecurityPolicy, "default-src 'none'")
        };
        let expected = [
            ("set-cookie", "a=1; Secure"),
            ("set-cookie", "b=2"),
            ("location", "/app/elsewhere"),
            ("content-security-policy", "default-src 'none'"),
            ("content-type", "text/html; charset=utf-8"),
            ("content-length", "7"),
        ];
        let one = response_to(reply());
        assert_eq!((one.status, one.text()), (code, "<p>\r\n\r\n"));
        let fields: Vec<_> =
            one.fields.iter().map(|(name, value)| (name.to_lowercase(), value.as_str())).collect();
        let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(fields[1..], expected);
        let (fields, body) = http2_response_to(reply());
        let fields: Vec<_> =
            fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(
            (fields[0], body.as_slice()),
            ((":status", format!("{code}").as_str()), &b"<p>\r\n\r\n"[..])
        );
        assert_eq!(fields[2..], expected);
    }
}

#[test]
fn reply_fields_with_line_ends_or_too_long_are_left_out() {
    for value in ["a\r\nb: c", "a\nb", "a\rb", "a\0b", "a\u{7f}", "\u{1}"] {
        let reply = || {
            Reply::text(Status::Ok, String::new())
                .with(ReplyField::Location, value)
                .with(ReplyField::SetCookie, "x")
        };
        let response = response_to(reply());
        assert_eq!(
            (response.field("location"), response.field("set-cookie")),
            (None, Some("x")),
            "{value:?}"
        );
        assert!(
            !http2_response_to(reply()).0.iter().any(|(name, _)| name == "location" || name == "b")
        );
    }
    let spaced = Reply::text(Status::Ok, String::new()).with(ReplyField::Location, " \t/x y\t ");
    assert_eq!(response_to(spaced).field("location"), Some("/x y"));
    let line = "Location: \r\n".len();
    for (length, is_sent) in
        [(REPLY_FIELDS_BYTES_MAX - line, true), (REPLY_FIELDS_BYTES_MAX - line + 1, false)]
    {
        let reply = || {
            let empty =
                Reply::new(Status::HeaderFieldsTooLarge, "text/plain; charset=utf-8", Vec::new());
            empty.with(ReplyField::Location, &"x".repeat(length))
        };
        assert_eq!(response_to(reply()).field("location").is_some(), is_sent);
        let mut client = Client::new();
        client.world.https_policy = HttpsPolicy::Enforced;
        client.arrive(&get(1, "/app/page"));
        client.reply(reply());
        let frames = client.frames();
        assert_eq!((frames.len(), frames[0].kind), (1, FrameType::Headers));
        let mut talk = Talk::new();
        talk.world.https_policy = HttpsPolicy::Enforced;
        talk.arrive(request(&["GET /app/page HTTP/1.0"]).as_bytes());
        talk.reply(reply());
        assert!(talk.world.output.len() <= RESPONSE_HEAD_BYTES_MAX);
    }
}

#[test]
fn set_cookie_over_http2_is_never_indexed() {
    let mut client = Client::new();
    client.arrive(&get(1, "/app/page"));
    client.reply(Reply::text(Status::Ok, "x".to_string()).with(ReplyField::SetCookie, "secret"));
    let frames = client.frames();
    let block = &frames[0].payload;
    // RFC 7541 section 6.2.3: a never indexed field with name 55 of the static table, and a value
    // of six plain bytes.
    let field = [&[0x1f, 55 - 15, 6][..], b"secret"].concat();
    assert!(block.windows(field.len()).any(|window| window == field), "{block:?}");
}

#[test]
fn head_gets_the_same_fields_as_get_from_a_handler() {
    let reply = || Reply::new(Status::Ok, "a/b", bytes(5000));
    for (version, more, stays) in [
        ("1.1", "X: y", true),
        ("1.1", "Connection: close", false),
        ("1.0", "X: y", false),
        ("1.0", "Connection: keep-alive", true),
    ] {
        for method in ["GET", "HEAD"] {
            let mut talk = Talk::new();
            talk.arrive(
                request(&[&format!("{method} /app/page HTTP/{version}"), "Host: a", more])
                    .as_bytes(),
            );
            talk.reply(reply());
            let response = talk.responses(|_| method == "HEAD").remove(0);
            assert_eq!(response.field("content-length"), Some("5000"));
            assert_eq!(response.body.len(), if method == "GET" { 5000 } else { 0 });
            assert_eq!(talk.world.closed, !stays, "{version} {more}");
        }
    }
    let mut client = Client::new();
    client.arrive(&super::h2::client::ask(1, "HEAD", "/app/page"));
    client.reply(reply());
    let answer = client.answers().remove(&1).unwrap();
    assert_eq!(
        (answer.field("content-length"), answer.body.len(), answer.is_over),
        (Some("5000"), 0, true)
    );
}

#[test]
fn a_large_reply_is_sent_as_space_and_windows_allow() {
    const LARGE: usize = 3 << 20;
    let mut talk = Talk::new();
    let both = request(&["GET /app/page HTTP/1.1"]) + &request(&["GET /hello.txt HTTP/1.1"]);
    talk.arrive(both.as_bytes());
    talk.world.room = RESPONSE_HEAD_BYTES_MAX;
    talk.reply(Reply::new(Status::Ok, "a/b", bytes(LARGE)));
    let mut times = 0;
    while talk.session.waits_for() == HttpWaitsFor::SendRoom {
        talk.world.room = 60_000;
        talk.arrive(b"");
        times += 1;
    }
    assert!(times > LARGE / 60_000);
    let responses = talk.responses(|_| false);
    assert!(responses[0].body == bytes(LARGE));
    assert_eq!(responses[1].body, HELLO);

    let mut client = Client::new();
    client.arrive(&[get(1, "/app/page"), get(3, "/hello.txt")].concat());
    client.reply(Reply::new(Status::Ok, "a/b", bytes(LARGE)));
    let (mut body, mut is_over) = (Vec::new(), false);
    while !is_over {
        let answers = client.answers();
        let answer = &answers[&1];
        body.extend_from_slice(&answer.body);
        is_over = answer.is_over;
        client.arrive(&[window(0, 60_000), window(1, 60_000)].concat());
        while client.session.waits_for() == HttpWaitsFor::SendRoom {
            client.world.room += 20_000;
            client.arrive(b"");
        }
        assert!(!client.world.closed);
    }
    assert!(body == bytes(LARGE));
    client.assert_lives();
}

proptest! {
    #[test]
    fn any_reply_fields_make_exactly_one_response(
        values in prop::collection::vec((0usize..12, "[ -~\r\n\0\t\u{80}-\u{ff}]{0,700}"), 0..12), length in 0usize..3000,
    ) {
        let fields = [
            ReplyField::Allow, ReplyField::CacheControl, ReplyField::ContentDisposition, ReplyField::ContentSecurityPolicy, ReplyField::Location,
            ReplyField::ReferrerPolicy, ReplyField::SetCookie, ReplyField::WwwAuthenticate, ReplyField::XContentTypeOptions,
            ReplyField::XDnsPrefetchControl, ReplyField::CrossOriginOpenerPolicy, ReplyField::CrossOriginResourcePolicy,
        ];
        let reply = || values.iter().fold(
            Reply::new(Status::Ok, "a/b", bytes(length)),
            |reply, (field, value)| reply.with(fields[*field], value),
        );
        let one = response_to(reply());
        prop_assert_eq!(&one.body, &bytes(length));
        let (two, body) = http2_response_to(reply());
        prop_assert_eq!(body, bytes(length));
        let one: Vec<_> = one.fields.into_iter().map(|(name, value)| (name.to_lowercase(), value)).collect();
        prop_assert_eq!(&two[1..], &one[..]);
        prop_assert!(one.len() <= 3 + values.len());
    }
}

#[test]
fn a_reply_may_have_an_empty_body() {
    assert_eq!(
        response_to(Reply::new(Status::SeeOther, "a/b", vec![])).field("content-length"),
        Some("0")
    );
    assert!(http2_response_to(Reply::new(Status::SeeOther, "a/b", vec![])).1.is_empty());
}
