//! Requests for a handler over HTTP/1.1: their content, and the admission of bodies.

use std::string::ToString;
use std::vec::Vec;
use std::{format, vec};

use machine::Micros;

use super::world::{HELLO, ReceivedRequest, Talk, request};
use crate::{
    Announced, BodyAdmission, HttpWaitsFor, HttpsPolicy, RESPONSE_HEAD_BYTES_MAX, Reply, Status,
    credentials,
};

/// The longest body that the handler admits.
const LIMIT: usize = 32 * 1024;

fn post(more: &[&str]) -> Vec<u8> {
    request(&[&["POST /app/form HTTP/1.1"][..], more].concat()).into_bytes()
}

fn text(status: Status, text: &str) -> Reply {
    Reply::text(status, text.to_string())
}

/// A connection that has received `bytes`. The handler has admitted the body of the request.
fn admitted(bytes: &[u8]) -> Talk {
    let mut talk = Talk::new();
    talk.arrive(bytes);
    assert_eq!(talk.session.waits_for(), HttpWaitsFor::Us);
    talk.admit(LIMIT);
    talk
}

fn status(talk: &mut Talk) -> u16 {
    let responses = talk.responses(|_| false);
    assert_eq!(responses.len(), 1);
    responses[0].status
}

#[test]
fn a_handler_gets_the_request_and_its_fields() {
    let mut talk = Talk::new();
    talk.arrive(
        request(&[
            "GET /app/./a%20b?x=%20y&z HTTP/1.1",
            "Host: web.test:443",
            "Cookie: a=1",
            "Authorization: Basic eA==",
            "cookie: b=2",
            "Content-Type: text/plain",
            "Origin: https://web.test",
            "Sec-Fetch-Dest: document",
            "Sec-Fetch-Site: same-origin",
            "User-Agent: test/1",
            "Accept: */*",
        ])
        .as_bytes(),
    );
    let fields = [
        ("authorization", "Basic eA=="),
        ("cookie", "a=1; b=2"),
        ("content-type", "text/plain"),
        ("origin", "https://web.test"),
        ("sec-fetch-dest", "document"),
        ("sec-fetch-site", "same-origin"),
        ("user-agent", "test/1"),
    ];
    let fields = fields.map(|(name, value)| (name, value.to_string())).to_vec();
    let line = "GET /app/a b?x=%20y&z web.test:443".to_string();
    assert_eq!(talk.world.asked, [ReceivedRequest { line, fields, body: Announced::Nothing }]);
    talk.reply(text(Status::Ok, "yes"));
    assert_eq!(talk.responses(|_| false)[0].text(), "yes");
    assert_eq!(talk.world.log, [("GET".into(), "/app/./a%20b?x=%20y&z".into(), 200, 3)]);
    for (head, line) in [
        (
            &["GET http://own.test:80/app/x?y HTTP/1.1", "Host: web.test"][..],
            "GET /app/x?y own.test:80",
        ),
        (&["GET /app/x HTTP/1.0"], "GET /app/x? "),
    ] {
        let mut talk = Talk::new();
        talk.arrive(request(head).as_bytes());
        assert_eq!(talk.world.asked[0].line, line);
    }
}

#[test]
fn a_repeated_field_is_rejected_and_a_non_utf8_one_dropped() {
    for field in ["Authorization", "Content-Type", "Origin", "Sec-Fetch-Site", "User-Agent"] {
        let field = format!("{field}: x");
        let mut talk = Talk::new();
        assert_eq!(talk.ask(&["GET /app/x HTTP/1.1", &field, &field]).status, 400, "{field}");
        assert!(talk.world.asked.is_empty() && talk.world.closed);
    }
    let mut talk = Talk::new();
    talk.arrive(b"GET /app/x HTTP/1.1\r\nHost: a\r\nCookie: \xff\r\nUser-Agent: \xc3\xbc\r\n\r\n");
    assert_eq!(talk.world.asked[0].fields, [("user-agent", "\u{fc}".to_string())]);
    assert_eq!(Talk::new().ask(&["GET /app/%ff HTTP/1.1"]).status, 404);
}

#[test]
fn a_handler_gets_only_the_methods_that_it_supports() {
    for (path, method, allow) in [
        ("/app/form", "DELETE", "GET, HEAD, POST, PUT"),
        ("/app/form", "OPTIONS", "GET, HEAD, POST, PUT"),
        ("/app/form", "BREW", "GET, HEAD, POST, PUT"),
        ("/app/page", "POST", "GET, HEAD"),
    ] {
        let mut talk = Talk::new();
        let response = talk.ask(&[&format!("{method} {path} HTTP/1.1")]);
        assert_eq!(
            (response.status, response.field("allow")),
            (405, Some(allow)),
            "{method} {path}"
        );
        assert!(talk.world.asked.is_empty());
        assert_eq!(talk.ask(&["GET /hello.txt HTTP/1.1"]).body, HELLO);
    }
    let mut talk = Talk::new();
    talk.world.https_policy = HttpsPolicy::Redirect;
    let response = talk.ask(&["GET /app/page HTTP/1.1"]);
    assert_eq!(
        (response.status, response.field("location")),
        (308, Some("https://web.test/app/page"))
    );
    assert!(talk.world.asked.is_empty());
}

#[test]
fn no_byte_of_a_body_is_taken_before_it_is_admitted() {
    let mut talk = Talk::new();
    let head = post(&["Content-Length: 11"]);
    assert_eq!(
        talk.session.bytes_arrived(&[&head[..], b"certificate"].concat(), &mut talk.world),
        head.len()
    );
    assert_eq!(talk.world.asked[0].body, Announced::Bytes(11));
    assert_eq!(talk.session.waits_for(), HttpWaitsFor::Us);
    assert_eq!(
        talk.session.bytes_arrived(b"certificate", &mut talk.world),
        0,
        "the body stays in the caller's buffer"
    );
    assert_eq!(talk.world.deadline, None, "a client that waits for the handler has no deadline");
    talk.admit(11);
    talk.arrive(b"certi");
    assert!(talk.world.bodies.is_empty() && talk.world.deadline.is_some());
    talk.arrive(b"ficateGET /hello.txt HTTP/1.1\r\nHost: web.test\r\n\r\n");
    assert_eq!((talk.world.bodies.concat(), talk.world.admitted), (b"certificate".to_vec(), 0));
    assert_eq!(
        talk.world.asked[0], talk.world.asked[1],
        "the request is passed again with its body"
    );
    assert_eq!((talk.session.waits_for(), talk.world.deadline), (HttpWaitsFor::Us, None));
    assert!(talk.world.output.is_empty(), "no response is sent before the handler has replied");
    talk.reply(text(Status::Ok, "taken\n"));
    let responses = talk.responses(|_| false);
    assert_eq!((responses[0].status, responses[0].text()), (200, "taken\n"));
    assert_eq!(responses[0].field("cache-control"), Some("no-store"));
    assert_eq!(responses[1].body, HELLO, "the connection stays open");
    assert_eq!(talk.world.log[0], ("POST".to_string(), "/app/form".to_string(), 200, 6));
    let mut talk = admitted(&post(&[]));
    assert_eq!(talk.world.bodies, [b""], "a missing body is passed on as an empty body");
    talk.reply(text(Status::Ok, ""));
    assert_eq!(status(&mut talk), 200);
}

#[test]
fn an_admitted_body_may_be_chunked_and_gets_100_continue() {
    let talk = admitted(
        &[
            &post(&["Transfer-Encoding: chunked"])[..],
            b"5;x=y\r\ncerti\r\n6\r\nficate\r\n0\r\nX: y\r\n\r\n",
        ]
        .concat(),
    );
    assert_eq!(talk.world.asked[0].body, Announced::Something);
    assert_eq!((talk.world.bodies, talk.world.admitted), (vec![b"certificate".to_vec()], 0));
    let mut talk = Talk::new();
    talk.arrive(&post(&["Content-Length: 11", "Expect: 100-continue"]));
    assert!(talk.world.output.is_empty());
    talk.world.room = 24;
    talk.admit(LIMIT);
    assert_eq!((talk.session.waits_for(), talk.world.output.len()), (HttpWaitsFor::SendRoom, 0));
    talk.world.room = 1 << 20;
    talk.arrive(b"");
    assert_eq!(talk.world.output, b"HTTP/1.1 100 Continue\r\n\r\n");
    talk.arrive(b"certificate");
    assert_eq!(talk.world.bodies, [b"certificate"]);
}

#[test]
fn a_refused_body_gets_its_status_and_the_connection_stays() {
    for (refused, expected) in [
        (Status::Unauthorized, 401),
        (Status::Forbidden, 403),
        (Status::TooManyRequests, 429),
        (Status::SeeOther, 303),
    ] {
        let mut talk = Talk::new();
        talk.arrive(&[&post(&["Content-Length: 11"])[..], b"certificate"].concat());
        talk.reply(Reply::refusal(refused));
        assert_eq!(status(&mut talk), expected);
        assert!(talk.world.bodies.is_empty());
        assert_eq!(talk.ask(&["GET /hello.txt HTTP/1.1"]).body, HELLO);
    }
    let mut talk = Talk::new();
    talk.arrive(&post(&["Content-Length: 11", "Expect: 100-continue"]));
    talk.reply(Reply::refusal(Status::Unauthorized));
    assert_eq!(status(&mut talk), 401);
    assert!(talk.world.closed, "it is unknown whether the body will arrive");
}

#[test]
fn a_body_above_its_limit_is_answered_413_and_not_kept() {
    let most = vec![b'x'; LIMIT];
    let length = |bytes: usize| format!("Content-Length: {bytes}");
    let talk = admitted(&[&post(&[&length(LIMIT)])[..], &most].concat());
    assert_eq!(talk.world.bodies, [&most[..]]);
    assert_eq!(talk.world.bodies[0].capacity(), LIMIT);
    let one_more = [&most[..], b"x"].concat();
    let chunked =
        [format!("{:x}\r\n", one_more.len()).as_bytes(), &one_more, b"\r\n0\r\n\r\n"].concat();
    let dribble = b"1\r\nx\r\n".repeat(LIMIT);
    for (framing, body, closes) in [
        (length(one_more.len()), &one_more, false),
        (length(1 << 30), &most, true),
        ("Transfer-Encoding: chunked".to_string(), &chunked, false),
        ("Transfer-Encoding: chunked".to_string(), &dribble, true),
    ] {
        let mut talk = admitted(&post(&[&framing]));
        body.chunks(1000).for_each(|part| talk.arrive(part));
        let responses = talk.responses(|_| false);
        assert_eq!((responses.len(), responses[0].status), (1, 413), "{framing}");
        assert_eq!(responses[0].text(), format!("/app/form takes {LIMIT} bytes"), "{framing}");
        assert!(talk.world.bodies.is_empty());
        assert_eq!((talk.world.closed, talk.world.admitted), (closes, 0), "{framing}");
    }
}

#[test]
fn a_large_body_stays_within_its_memory_and_extends_its_time() {
    const LARGE: usize = 300_000;
    let large: Vec<u8> = (0..LARGE).map(|at| (at / 7) as u8).collect();
    let chunks: Vec<u8> = large
        .chunks(10_000)
        .flat_map(|part| [b"2710\r\n", part, b"\r\n"].concat())
        .chain(*b"0\r\n\r\n")
        .collect();
    for (framing, bytes) in [
        (format!("Content-Length: {LARGE}"), &large),
        ("Transfer-Encoding: chunked".into(), &chunks),
    ] {
        let mut talk = Talk::new();
        talk.arrive(&post(&[&framing]));
        talk.admit(LARGE);
        let mut times = 0;
        for part in bytes.chunks(1460) {
            talk.world.deadline = None;
            talk.arrive(part);
            times += usize::from(talk.world.deadline == Some(Micros::from_secs(30)));
        }
        assert_eq!(talk.world.bodies, [&large[..]]);
        assert!((8..=10).contains(&times), "{times}");
        assert!(talk.world.bodies[0].capacity() <= LARGE);
    }
}

#[test]
fn a_missing_body_gets_408_and_a_malformed_one_400() {
    let mut talk = admitted(&post(&["Content-Length: 11"]));
    talk.session.deadline_expired(&mut talk.world);
    assert_eq!((status(&mut talk), talk.world.admitted), (408, 0));
    let mut talk = admitted(&[&post(&["Transfer-Encoding: chunked"])[..], b"x"].concat());
    assert_eq!((status(&mut talk), talk.world.admitted), (400, 0));
    assert!(talk.world.bodies.is_empty() && talk.world.closed);
    let mut talk = admitted(&post(&["Content-Length: 11"]));
    talk.session.peer_closed(&mut talk.world);
    assert!(talk.world.closed && talk.world.admitted == 0);
    talk.session.replied(Reply::refusal(Status::Ok), &mut talk.world);
    talk.world.admitted += 5;
    talk.session.admitted(BodyAdmission::whole(5), &mut talk.world);
    assert_eq!((talk.world.output.len(), talk.world.admitted), (0, 0), "the connection is closed");
}

#[test]
fn a_reply_waits_for_space_for_its_head_or_times_out() {
    let mut talk = Talk::new();
    talk.arrive(request(&["GET /app/page HTTP/1.1"]).as_bytes());
    talk.world.room = RESPONSE_HEAD_BYTES_MAX - 1;
    talk.reply(text(Status::Ok, "late"));
    assert_eq!((talk.session.waits_for(), talk.world.output.len()), (HttpWaitsFor::SendRoom, 0));
    assert_eq!(talk.world.deadline, Some(Micros::from_secs(60)));
    talk.world.room = RESPONSE_HEAD_BYTES_MAX;
    talk.arrive(b"");
    assert_eq!(talk.responses(|_| false)[0].text(), "late");
    talk.arrive(request(&["GET /app/page HTTP/1.1"]).as_bytes());
    talk.world.room = 0;
    talk.reply(text(Status::Ok, "never"));
    talk.session.deadline_expired(&mut talk.world);
    assert!(talk.world.closed && talk.world.output.is_empty());
}

#[test]
fn a_stopping_server_answers_open_requests() {
    let mut talk = Talk::new();
    talk.arrive(request(&["GET /app/page HTTP/1.1"]).as_bytes());
    talk.session.stopping(&mut talk.world);
    assert!(!talk.world.closed);
    talk.reply(text(Status::Ok, "last"));
    let responses = talk.responses(|_| false);
    assert_eq!((responses[0].text(), responses[0].field("connection")), ("last", Some("close")));
    assert!(talk.world.closed);
}

#[test]
fn basic_credentials_are_parsed_per_rfc_7617() {
    let ada = |password: &[u8]| Some(("ada".to_string(), password.to_vec()));
    assert_eq!(
        credentials("Basic YWRhOmxvdmU6bGFjZQ=="),
        ada(b"love:lace"),
        "a password may have a colon in it"
    );
    assert_eq!(credentials("bAsIc  YWRhOmxvdmVsYWNl"), ada(b"lovelace"));
    for authorization in [
        "Bearer YWRhOmxvdmVsYWNl",
        "Basic",
        "Basic ",
        "",
        "Basic YWRh",
        "Basic YWRhOmxvdmVsYWNl=",
        "Basic ///6bG92ZWxhY2U=",
        &format!("Basic {}", "AAAA".repeat(257)),
    ] {
        assert_eq!(credentials(authorization), None, "{authorization}");
    }
}

#[test]
fn a_reply_that_is_known_at_once_is_sent_at_once() {
    let mut talk = Talk::new();
    talk.world.known_reply = Some("at once".to_string());
    let get = request(&["GET /app/x HTTP/1.1"]);
    // One request is followed by another, and one by a body that no admission was given for.
    let form = request(&["POST /app/x HTTP/1.1", "Content-Length: 4"]);
    talk.arrive([&get, &form, "body", &get].concat().as_bytes());
    let responses = talk.responses(|_| false);
    let texts: Vec<_> = responses.iter().map(|response| response.text()).collect();
    assert_eq!(texts, ["at once"; 3]);
    assert_eq!((talk.world.asked.len(), talk.world.closed), (3, false));
}

#[test]
fn a_reply_known_when_a_body_ends_is_sent_at_once() {
    let mut talk = Talk::new();
    talk.arrive(request(&["POST /app/form HTTP/1.1", "Content-Length: 4"]).as_bytes());
    talk.world.known_reply = Some("taken".to_string());
    talk.admit(10);
    talk.arrive(b"body");
    assert_eq!(talk.responses(|_| false)[0].text(), "taken");
    assert_eq!(talk.world.bodies, [b"body".to_vec()]);
}
