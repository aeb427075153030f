//! Bodies of requests that have no handler.

use std::vec::Vec;

use http2::{ErrorCode, FrameType};

use super::client::{Client, END_HEADERS, END_STREAM, block, fields, frame};

fn post(stream: u32, more: &[(&str, &str)]) -> Vec<u8> {
    let fields: Vec<_> =
        fields("POST", "/hello.txt").into_iter().chain(more.iter().copied()).collect();
    frame(FrameType::Headers, END_HEADERS, stream, &block(&fields))
}

#[test]
fn an_http2_body_is_read_to_its_end_before_the_response() {
    let mut client = Client::new();
    client.arrive(&post(1, &[("content-length", "8")]));
    client.arrive(&frame(FrameType::Data, 0, 1, b"hell"));
    // Padding does not belong to the body.
    client.arrive(&frame(FrameType::Data, 0x8, 1, &[&[2][..], b"o", &[0; 2]].concat()));
    assert_eq!(client.frames(), []);
    client.arrive(&frame(FrameType::Data, END_STREAM, 1, b"all"));
    let answer = client.answers().remove(&1).unwrap();
    assert_eq!((answer.status(), answer.is_over, answer.reset), ("405", true, None));
    client.arrive(&[post(3, &[]), frame(FrameType::Data, END_STREAM, 3, b"")].concat());
    assert_eq!(client.answers()[&3].status(), "405");
    client.assert_lives();
}

#[test]
fn malformed_trailers_reset_the_stream() {
    let mut client = Client::new();
    client.arrive(&[post(1, &[]), frame(FrameType::Data, 0, 1, b"abc")].concat());
    client.arrive(&frame(
        FrameType::Headers,
        END_STREAM | END_HEADERS,
        1,
        &block(&[("x-sum", "1")]),
    ));
    assert_eq!(client.answers()[&1].status(), "405");
    for (stream, flags, fields) in [
        (3, END_HEADERS, [("x-sum", "1")]),
        (5, END_HEADERS | END_STREAM, [(":path", "/")]),
        (7, END_HEADERS | END_STREAM, [("X-Sum", "1")]),
    ] {
        client.arrive(&post(stream, &[]));
        client.arrive(&frame(FrameType::Headers, flags, stream, &block(&fields)));
        assert_eq!(
            client.answers()[&stream].reset,
            Some(ErrorCode::ProtocolError as u32),
            "{fields:?}"
        );
    }
    client.assert_lives();
}

#[test]
fn a_body_of_another_length_than_announced_resets_its_stream() {
    let mut client = Client::new();
    for (stream, length, bytes) in [(1, "4", &b"abc"[..]), (3, "4", b"abcde"), (5, "1", b"")] {
        client.arrive(&post(stream, &[("content-length", length)]));
        client.arrive(&frame(FrameType::Data, END_STREAM, stream, bytes));
        let answer = client.answers().remove(&stream).unwrap();
        assert_eq!(
            (answer.status(), answer.reset),
            ("none", Some(ErrorCode::ProtocolError as u32)),
            "{length}"
        );
    }
    client.assert_lives();
}

#[test]
fn a_long_unwanted_body_is_answered_and_its_stream_reset() {
    for more in [&[][..], &[("content-length", "1000000")], &[("expect", "100-continue")]] {
        let mut client = Client::new();
        client.arrive(&post(1, more));
        for _ in 0..10 {
            client.arrive(&frame(FrameType::Data, 0, 1, &[b'x'; 6000]));
        }
        let frames = client.frames();
        let mut kinds: Vec<_> = frames.iter().map(|frame| (frame.kind, frame.stream)).collect();
        kinds.retain(|kind| kind.0 != FrameType::WindowUpdate);
        assert_eq!(
            kinds,
            [(FrameType::Headers, 1), (FrameType::Data, 1), (FrameType::ResetStream, 1)]
        );
        assert_eq!(
            frames.iter().find(|frame| frame.kind == FrameType::ResetStream).unwrap().payload,
            [0; 4]
        );
        client.assert_lives();
    }
}

#[test]
fn bytes_of_all_bodies_reopen_the_connection_window() {
    let mut client = Client::new();
    let mut given_back = 0;
    for stream in (1..80).step_by(2) {
        client.arrive(&post(stream, &[]));
        client.arrive(&frame(
            FrameType::Data,
            0x8,
            stream,
            &[&[100][..], &[b'x'; 10_000], &[0; 100]].concat(),
        ));
        client.arrive(&frame(FrameType::Data, END_STREAM, stream, b""));
        for frame in
            client.frames().into_iter().filter(|frame| frame.kind == FrameType::WindowUpdate)
        {
            assert_eq!(frame.stream, 0);
            given_back += u32::from_be_bytes(frame.payload.try_into().unwrap());
        }
        let sent = (stream / 2 + 1) * 10_101;
        assert!(given_back <= sent && sent - given_back < 33_000, "{given_back} of {sent}");
    }
}
