//! Properties that hold for all bytes and all segmentations.

use super::world::{Talk, request};
use crate::HttpWaitsFor;
use proptest::prelude::*;
use std::string::String;
use std::vec::Vec;

/// The responses to `bytes` if they arrive in pieces of `lengths` bytes, and whether the connection
/// was closed.
fn output_of(bytes: &[u8], lengths: &[usize]) -> (Vec<u8>, bool) {
    let mut talk = Talk::new();
    let mut rest = bytes;
    for length in lengths.iter().copied().chain([usize::MAX]) {
        let (piece, after) = rest.split_at(length.min(rest.len()));
        talk.arrive(piece);
        rest = after;
    }
    while talk.session.waits_for() == HttpWaitsFor::SendRoom {
        talk.world.room += 10_000;
        talk.arrive(b"");
    }
    (talk.world.output, talk.world.closed)
}

fn line() -> impl Strategy<Value = &'static str> {
    prop::sample::select(std::vec![
        "GET / HTTP/1.1\r\n",
        "HEAD /hello.txt HTTP/1.1\r\n",
        "POST /x HTTP/1.1\r\n",
        "OPTIONS * HTTP/1.1\r\n",
        "GET /style.css HTTP/1.0\r\n",
        "Host: a\r\n",
        "Host: a\r\n\r\n",
        "Connection: close\r\n",
        "Content-Length: 3\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Expect: 100-continue\r\n",
        "Range: bytes=1-2,4-5\r\n",
        "Accept-Encoding: br\r\n",
        "\r\n",
        "abc",
        "3\r\nabc\r\n",
        "0\r\n\r\n",
        "\n",
        "\r",
        " ",
        "X",
    ])
}

proptest! {
    #[test]
    fn segmentation_of_http1_bytes_changes_nothing(
        lines in prop::collection::vec(line(), 0..20), lengths in prop::collection::vec(0usize..40, 0..12),
    ) {
        let bytes = lines.concat();
        prop_assert_eq!(output_of(bytes.as_bytes(), &lengths), output_of(bytes.as_bytes(), &[]));
    }

    #[test]
    fn no_bytes_break_an_http1_connection(bytes in prop::collection::vec(any::<u8>(), 0..300), lengths in prop::collection::vec(0usize..40, 0..12)) {
        output_of(&bytes, &lengths);
    }

    #[test]
    fn any_field_value_gets_a_response(
        name in "(?i)(range|if-range|if-match|if-none-match|if-modified-since|accept-encoding|connection|expect|host)",
        value in "[ -~]{0,60}",
    ) {
        let field = std::format!("{name}: {value}");
        let text: String = request(&["GET /style.css HTTP/1.1", &field]);
        let (output, _) = output_of(text.as_bytes(), &[]);
        prop_assert!(output.starts_with(b"HTTP/1.1 "));
    }
}
