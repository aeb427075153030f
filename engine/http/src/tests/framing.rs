//! Body framing: the end of a request is never guessed.

use super::world::{Talk, request};
use std::format;
use std::string::String;
use std::vec::Vec;

/// The statuses of all responses to `bytes`, and whether the connection is closed afterwards.
fn answers(bytes: &[u8]) -> (Vec<u16>, bool) {
    let mut talk = Talk::new();
    talk.arrive(bytes);
    let statuses = talk.responses(|_| false).iter().map(|response| response.status).collect();
    (statuses, talk.world.closed)
}

/// The statuses for a request with these fields and this body, and for a simple GET after it. Also
/// returns whether the connection is closed afterwards.
fn followed(fields: &[&str], body: &str) -> (Vec<u16>, bool) {
    let head = [&["GET / HTTP/1.1"], fields].concat();
    let text = request(&head) + body + &request(&["GET /hello.txt HTTP/1.1"]);
    answers(text.as_bytes())
}

#[test]
fn the_next_request_begins_after_the_body() {
    for (fields, body) in [
        (&["Content-Length: 5"][..], "GET /"),
        (&["Content-Length: 0"], ""),
        (&["Content-Length: 0000000005"], "12345"),
        (&["Transfer-Encoding: chunked"], "5\r\nGET /\r\n0\r\n\r\n"),
        (
            &["Transfer-Encoding: CHUNKED"],
            "1;a=b;c=\"d\"\r\nx\r\n00a\r\n0123456789\r\n0\r\nTrailer: x\r\nB:\r\n\r\n",
        ),
        (&["Transfer-Encoding: chunked"], "1 ;a\r\nx\r\n0;last\r\n\r\n"),
        (&["Transfer-Encoding: chunked"], "1 \t; a = b\r\nx\r\n0\r\n!#$: \t\u{fc}\r\n\r\n"),
    ] {
        assert_eq!(followed(fields, body), (std::vec![200, 200], false), "{fields:?} {body:?}");
    }
}

#[test]
fn ambiguous_body_framing_is_rejected() {
    for (fields, body) in [
        (&["Content-Length: 5", "Transfer-Encoding: chunked"][..], "0\r\n\r\n"),
        (&["Content-Length: 5", "Content-Length: 5"], "12345"),
        (&["Content-Length: 5, 5"], "12345"),
        (&["Content-Length: +5"], "12345"),
        (&["Content-Length: -1"], ""),
        (&["Content-Length: 0x5"], "12345"),
        (&["Content-Length: 5 5"], "12345"),
        (&["Content-Length:"], ""),
        (&["Content-Length: 99999999999999999999"], ""),
        (&["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], "0\r\n\r\n"),
        (&["Transfer-Encoding: chunked, chunked"], "0\r\n\r\n"),
        (&["Transfer-Encoding: chunked, gzip"], "0\r\n\r\n"),
        (&["Transfer-Encoding: identity"], ""),
        (&["Transfer-Encoding: xchunked"], "0\r\n\r\n"),
        (&["Transfer-Encoding: chunked;q=1"], "0\r\n\r\n"),
        (&["Transfer-Encoding: \"chunked\""], "0\r\n\r\n"),
        (&["Transfer-Encoding:"], ""),
    ] {
        assert_eq!(followed(fields, body), (std::vec![400], true), "{fields:?}");
    }
    assert_eq!(
        followed(&["Transfer-Encoding: gzip, chunked"], "0\r\n\r\n"),
        (std::vec![501], true)
    );
    let old = "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(answers(old.as_bytes()), (std::vec![400], true));
}

#[test]
fn malformed_chunks_are_rejected_and_end_the_connection() {
    let too_long = format!("1;{}\r\nx\r\n0\r\n\r\n", "x".repeat(300));
    let too_wide = format!("1{};a\r\nx\r\n0\r\n\r\n", " ".repeat(300));
    let long_trailer = format!("0\r\nX: {}\r\n\r\n", "x".repeat(9000));
    for body in [
        "x\r\n",
        "\r\n",
        ";a\r\n",
        " 1\r\nx\r\n",
        "0x1\r\nx\r\n",
        "-1\r\n",
        "1\nx\r\n0\r\n\r\n",
        "1\r\nxy\r\n0\r\n\r\n",
        "1\r\nx0\r\n\r\n",
        "1\r\nx\n0\r\n\r\n",
        "1;a\nb\r\nx\r\n0\r\n\r\n",
        "1\rx\r\n0\r\n\r\n",
        "10000000000000000\r\n",
        "ffffffffffffffff\r\n",
        "0\r\nA: b\n\r\n\r\n",
        "0\r\nA: b\r\r\n",
        "0\r\n\rX",
        // White space behind a size is allowed only before an extension.
        "1 \r\nx\r\n0\r\n\r\n",
        "1\t\r\nx\r\n0\r\n\r\n",
        "1 2\r\nx\r\n0\r\n\r\n",
        "1\r\nx\r\n0 \r\n\r\n",
        // A trailer line must be a field, and must not be folded.
        "0\r\nA: b\r\n c\r\n\r\n",
        "0\r\n A: b\r\n\r\n",
        "0\r\nA\r\n\r\n",
        "0\r\nA : b\r\n\r\n",
        "0\r\n: b\r\n\r\n",
        "0\r\nA(: b\r\n\r\n",
        "0\r\nA: \x7f\r\n\r\n",
        too_wide.as_str(),
        "1;\0\r\nx\r\n0\r\n\r\n",
        too_long.as_str(),
        long_trailer.as_str(),
    ] {
        assert_eq!(
            followed(&["Transfer-Encoding: chunked"], body),
            (std::vec![400], true),
            "{body:?}"
        );
    }
}

#[test]
fn a_long_unwanted_body_is_answered_at_once() {
    for fields in ["Content-Length: 65537", "Content-Length: 18446744073709551615"] {
        let text = request(&["POST / HTTP/1.1", fields]);
        assert_eq!(answers(text.as_bytes()), (std::vec![405], true));
    }
    let chunk = format!("8000\r\n{}\r\n", "x".repeat(0x8000));
    let text = request(&["POST / HTTP/1.1", "Transfer-Encoding: chunked"])
        + &chunk.repeat(3)
        + "0\r\n\r\n";
    assert_eq!(answers(text.as_bytes()), (std::vec![405], true));
    let text = request(&["POST / HTTP/1.1", "Content-Length: 65536"]) + &"x".repeat(65536);
    assert_eq!(answers(text.as_bytes()), (std::vec![405], false));
}

#[test]
fn expect_100_continue_gets_the_final_response_at_once() {
    let head = ["PUT /x HTTP/1.1", "Expect: 100-continue", "Content-Length: 10"];
    assert_eq!(answers(request(&head).as_bytes()), (std::vec![405], true));
    let without_body = ["GET / HTTP/1.1", "Expect: 100-Continue"];
    assert_eq!(answers(request(&without_body).as_bytes()), (std::vec![200], false));
    let unknown = ["GET / HTTP/1.1", "Expect: tea"];
    assert_eq!(answers(request(&unknown).as_bytes()), (std::vec![417], false));
}

#[test]
fn an_incomplete_body_is_answered_408() {
    let mut talk = Talk::new();
    let text: String = request(&["GET / HTTP/1.1", "Content-Length: 10"]) + "12345";
    talk.arrive(text.as_bytes());
    assert!(talk.world.output.is_empty());
    talk.session.deadline_expired(&mut talk.world);
    assert_eq!(talk.responses(|_| false)[0].status, 408);
    assert!(talk.world.closed);
}
