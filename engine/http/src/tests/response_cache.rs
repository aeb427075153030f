//! The response cache.

use super::world::{HELLO, Talk, request};
use crate::ResponseCache;
use proptest::prelude::*;
use std::string::{String, ToString};
use std::vec::Vec;

fn is_remembered(talk: &Talk, request: &str) -> bool {
    talk.world.response_cache.recall(request.as_bytes()).is_some()
}

#[test]
fn a_repeated_request_is_answered_from_the_cache() {
    let mut talk = Talk::new();
    for head in ["GET /hello.txt HTTP/1.1", "HEAD /hello.txt HTTP/1.1", "GET /folder/ HTTP/1.1"] {
        let request = request(&[head, "Accept-Encoding: gzip, br"]);
        assert!(!is_remembered(&talk, &request));
        let first = talk.ask(&[head, "Accept-Encoding: gzip, br"]);
        assert!(is_remembered(&talk, &request), "{head}");
        assert_eq!(talk.ask(&[head, "Accept-Encoding: gzip, br"]), first);
    }
    let entries: Vec<_> = talk
        .world
        .log
        .iter()
        .map(|entry| (entry.0.as_str(), entry.1.as_str(), entry.2, entry.3))
        .collect();
    assert_eq!(entries[0], ("GET", "/hello.txt", 200, HELLO.len() as u64));
    assert_eq!(entries[0..1], entries[1..2], "the access log has an entry for both");
    assert_eq!(entries[2], ("HEAD", "/hello.txt", 200, 0));
}

#[test]
fn requests_with_a_body_or_credentials_are_not_cached() {
    let mut talk = Talk::new();
    for lines in [
        &["GET /hello.txt HTTP/1.1", "Content-Length: 1"][..],
        &["GET /hello.txt HTTP/1.1", "Transfer-Encoding: chunked"],
        &["GET /hello.txt HTTP/1.1", "Cookie: name=secret"],
        &["GET /hello.txt HTTP/1.1", "AUTHORIZATION: Basic YTpi"],
        &["GET /hello.txt HTTP/1.1", "Range: bytes=0-4"],
        &["GET /not-there.txt HTTP/1.1", "X: a long line"],
        &["OPTIONS /hello.txt HTTP/1.1", "X: a long line"],
        &["GET /hello.txt HTTP/1.1", "Host: a", "Host: b"],
    ] {
        let request = request(lines);
        talk.arrive(request.as_bytes());
        talk.arrive(b"1\r\n0\r\n\r\n");
        assert!(!is_remembered(&talk, &request), "{lines:?}");
        talk = talk.next();
    }
    let long = ["GET /hello.txt HTTP/1.1", &std::format!("X: {}", "x".repeat(512))];
    assert_eq!(talk.ask(&long).body, HELLO);
    assert!(!is_remembered(&talk, &request(&long)));
}

#[test]
fn a_cached_request_must_match_in_every_byte() {
    let mut talk = Talk::new();
    // Both requests have the same length and begin with the same bytes, so they have the same place
    // in the cache.
    let harmless = "GET /hello.txt HTTP/1.1\r\nHost: web.test\r\nXontent-Length: 5\r\n\r\nGET /";
    let with_body = "GET /hello.txt HTTP/1.1\r\nHost: web.test\r\nContent-Length: 5\r\n\r\nGET /";
    talk.arrive(harmless.as_bytes());
    assert_eq!(talk.responses(|_| false).len(), 1);
    assert!(is_remembered(&talk, harmless));
    talk = talk.next();
    talk.arrive(with_body.as_bytes());
    let responses = talk.responses(|_| false);
    assert_eq!(responses.len(), 1, "the body is not read as a request");
    assert_eq!(responses[0].body, HELLO);
    let closes = request(&["GET /hello.txt HTTP/1.1", "Connection: close"]);
    let stays = request(&["GET /hello.txt HTTP/1.1", "Connection: clos_"]);
    for (request, is_over) in [(&stays, false), (&closes, true), (&stays, false), (&closes, true)] {
        talk = talk.next();
        talk.arrive(request.as_bytes());
        assert_eq!(talk.world.closed, is_over);
    }
}

/// Sends the request again, in the given second. Returns how many responses were shared for it.
fn asks_again(talk: &mut Talk, second: &[u8; 2]) -> usize {
    let shared = |talk: &Talk| talk.world.shared.as_ref().map_or(0, Vec::len);
    talk.world.date[23..25].copy_from_slice(second);
    let before = shared(talk);
    let response =
        talk.ask(&["GET /hello.txt HTTP/1.1", "X-Padding: that makes a head long enough"]);
    assert_eq!(response.body, HELLO);
    assert_eq!(response.field("Date"), Some(core::str::from_utf8(&talk.world.date).unwrap()));
    shared(talk) - before
}

#[test]
fn a_shared_response_is_not_changed_while_it_is_in_use() {
    let mut talk = Talk::new();
    talk.world.shared = Some(Vec::new());
    let first_second: Vec<_> = (0..4).map(|_| asks_again(&mut talk, b"05")).collect();
    assert_eq!(first_second, [0, 0, 1, 1], "parsed, then cached, then shared");
    let shared_bytes = |talk: &Talk| {
        talk.world.shared.iter().flatten().map(|piece| piece.bytes().to_vec()).collect::<Vec<_>>()
    };
    let before = shared_bytes(&talk);
    assert_eq!(
        [asks_again(&mut talk, b"06"), asks_again(&mut talk, b"06"), asks_again(&mut talk, b"06")],
        [0, 1, 1]
    );
    assert_eq!(
        [asks_again(&mut talk, b"07"), asks_again(&mut talk, b"07")],
        [0, 0],
        "both blocks are in flight"
    );
    assert_eq!(shared_bytes(&talk)[..2], before);
    talk.world.shared = Some(Vec::new());
    assert_eq!([asks_again(&mut talk, b"08"), asks_again(&mut talk, b"08")], [0, 1]);
}

#[test]
fn a_shared_response_waits_for_space() {
    let mut talk = Talk::new();
    talk.world.shared = Some(Vec::new());
    let times: Vec<_> = (0..3).map(|_| asks_again(&mut talk, b"05")).collect();
    assert_eq!(times, [0, 0, 1]);
    talk.world.room = crate::RESPONSE_HEAD_BYTES_MAX - 1;
    talk.arrive(
        request(&["GET /hello.txt HTTP/1.1", "X-Padding: that makes a head long enough"])
            .as_bytes(),
    );
    assert!(talk.world.output.is_empty());
    talk.world.room = 1 << 20;
    talk.arrive(b"");
    assert_eq!(talk.responses(|_| false)[0].body, HELLO);
}

fn line() -> impl Strategy<Value = &'static str> {
    prop::sample::select(std::vec![
        "X-Padding: that makes a head long enough\r\n",
        "Connection: close\r\n",
        "Content-Length: 3\r\n",
        "Content-Length: 0\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Range: bytes=1-2\r\n",
        "If-None-Match: *\r\n",
        "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
        "Accept-Encoding: br\r\n",
        "Accept-Encoding: gzip;q=0.5, br\r\n",
        "Host: a\r\n",
        "\r\n",
    ])
}

fn asked() -> impl Strategy<Value = String> {
    let first = prop::sample::select(std::vec![
        "GET /hello.txt HTTP/1.1\r\nHost: a\r\n",
        "GET /style.css HTTP/1.1\r\nHost: a\r\n",
        "HEAD /style.css HTTP/1.0\r\n",
        "GET / HTTP/1.0\r\nConnection: keep-alive\r\n",
    ]);
    (first, prop::collection::vec(line(), 0..3))
        .prop_map(|(first, lines)| [first, &lines.concat(), "\r\n"].concat())
}

proptest! {
    #[test]
    fn cached_responses_equal_fresh_responses(
        // The requests are few, so that they repeat. A server without a cache gets the same
        // requests.
        requests in prop::collection::vec(asked(), 1..4),
        order in prop::collection::vec((0usize..4, 0usize..120), 1..24),
    ) {
        let (mut one, mut other) = (Talk::new(), Talk::new());
        one.world.shared = Some(Vec::new());
        for (which, cut) in order {
            let request = requests[which % requests.len()].to_string();
            let (start, rest) = request.as_bytes().split_at(cut.min(request.len()));
            for talk in [&mut one, &mut other] {
                talk.arrive(start);
                talk.arrive(rest);
            }
            other.world.response_cache = ResponseCache::empty();
            let (one_world, other_world) = (&one.world, &other.world);
            prop_assert_eq!(&one_world.output, &other_world.output);
            prop_assert_eq!(&one_world.log, &other_world.log);
            prop_assert_eq!((one_world.closed, one_world.deadline), (other_world.closed, other_world.deadline));
            if one.world.closed {
                one = one.next();
                other = Talk::new();
            }
        }
    }
}
