//! Clients that violate the protocol.

use std::vec::Vec;

use http2::{ErrorCode, FrameType, PREFACE};

use super::client::{Client, END_HEADERS, END_STREAM, block, fields, frame, get, settings, window};

fn headers(flags: u8, stream: u32) -> Vec<u8> {
    frame(FrameType::Headers, flags, stream, &block(&fields("POST", "/")))
}

#[test]
fn a_wrong_connection_preface_ends_the_connection() {
    for (bytes, why) in [
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), "another protocol"),
        ([PREFACE.as_slice(), &get(1, "/")].concat(), "no settings"),
        (
            [PREFACE.as_slice(), &frame(FrameType::Settings, 1, 0, &[])].concat(),
            "an acknowledgement before the client's own settings",
        ),
        ([PREFACE.as_slice(), &frame(FrameType::Ping, 0, 0, &[0; 8])].concat(), "a ping first"),
        (b"PRI * HTTP/2.0\r\n\r\nXX".to_vec(), "an invalid preface"),
    ] {
        let mut client = Client::silent();
        client.arrive(&bytes);
        client.assert_ended(ErrorCode::ProtocolError, why);
    }
}

#[test]
fn connection_errors_end_the_connection_with_their_code() {
    use ErrorCode::{
        CompressionError, FlowControlError, FrameSizeError, ProtocolError, StreamClosed,
    };
    let long = [0; 16_385];
    let done = get(1, "/hello.txt");
    for (bytes, code, why) in [
        (frame(FrameType::Data, 0, 0, b"x"), ProtocolError, "a body on stream 0"),
        (
            frame(FrameType::Data, 0, 1, b"x"),
            ProtocolError,
            "a body on a stream that was not opened",
        ),
        (
            frame(FrameType::Data, 0, 2, b"x"),
            ProtocolError,
            "a body on a stream that only the server could open",
        ),
        (
            [headers(END_HEADERS, 1), frame(FrameType::Data, 8, 1, &[2, 1])].concat(),
            ProtocolError,
            "padding beyond the frame",
        ),
        (
            [headers(END_HEADERS, 1), frame(FrameType::Data, 8, 1, &[])].concat(),
            FrameSizeError,
            "padding without its length",
        ),
        (
            [headers(END_HEADERS, 1), frame(FrameType::Data, 0, 1, &long)].concat(),
            FrameSizeError,
            "a frame that is too long",
        ),
        (
            frame(FrameType::Unknown(77), 0, 1, &long),
            FrameSizeError,
            "a too long frame of an unknown kind",
        ),
        (headers(END_HEADERS, 0), ProtocolError, "a request on stream 0"),
        (headers(END_HEADERS, 2), ProtocolError, "a request on a stream for the server"),
        (
            [get(5, "/"), get(3, "/")].concat(),
            ProtocolError,
            "a stream number lower than the last one",
        ),
        ([done.clone(), get(1, "/")].concat(), StreamClosed, "a second request on a stream"),
        (
            [settings(&[(4, 0)]), done.clone(), get(1, "/")].concat(),
            StreamClosed,
            "a second request on a stream that waits",
        ),
        (
            frame(FrameType::Headers, END_HEADERS, 1, &[0x80]),
            CompressionError,
            "a block that cannot be decoded",
        ),
        (
            frame(FrameType::Headers, END_HEADERS | 8, 1, &[9, 0x82]),
            ProtocolError,
            "a head with padding beyond the frame",
        ),
        (
            frame(FrameType::Headers, END_HEADERS | 8, 1, &[]),
            FrameSizeError,
            "a head with padding without its length",
        ),
        (
            frame(FrameType::Headers, END_HEADERS | 0x20, 1, &[0; 4]),
            FrameSizeError,
            "a head with half a priority",
        ),
        ([headers(0, 1), get(3, "/")].concat(), ProtocolError, "another head within a head"),
        (
            [headers(0, 1), frame(FrameType::Ping, 0, 0, &[0; 8])].concat(),
            ProtocolError,
            "a ping within a head",
        ),
        (
            [headers(0, 1), frame(FrameType::Continuation, 4, 3, &[])].concat(),
            ProtocolError,
            "the rest of another stream's head",
        ),
        (frame(FrameType::Continuation, 4, 1, &[]), ProtocolError, "a continuation without a head"),
        (frame(FrameType::PushPromise, 4, 1, &[0; 8]), ProtocolError, "a push"),
        (frame(FrameType::Priority, 0, 0, &[0; 5]), ProtocolError, "a priority on stream 0"),
        (frame(FrameType::Priority, 0, 7, &[0; 4]), FrameSizeError, "a priority of a wrong size"),
        (
            [get(3, "/"), frame(FrameType::Priority, 0, 2, &[0; 4])].concat(),
            FrameSizeError,
            "a wrong priority on a stream for the server",
        ),
        (frame(FrameType::ResetStream, 0, 0, &[0; 4]), ProtocolError, "a reset of stream 0"),
        (
            frame(FrameType::ResetStream, 0, 1, &[0; 4]),
            ProtocolError,
            "a reset of a stream that was not opened",
        ),
        (
            [done.clone(), frame(FrameType::ResetStream, 0, 1, &[0; 3])].concat(),
            FrameSizeError,
            "a reset of a wrong size",
        ),
        (frame(FrameType::Settings, 0, 1, &[]), ProtocolError, "settings on a stream"),
        (
            frame(FrameType::Settings, 1, 0, &[0; 6]),
            FrameSizeError,
            "an acknowledgement of settings with a payload",
        ),
        (frame(FrameType::Settings, 0, 0, &[0; 5]), FrameSizeError, "half a setting"),
        (settings(&[(2, 2)]), ProtocolError, "a push setting that is neither 0 nor 1"),
        (settings(&[(4, 1 << 31)]), FlowControlError, "a window that is too wide"),
        (settings(&[(5, 16_383)]), ProtocolError, "frames that are too short"),
        (frame(FrameType::Ping, 0, 0, &[0; 7]), FrameSizeError, "a ping of a wrong size"),
        (frame(FrameType::Ping, 0, 1, &[0; 8]), ProtocolError, "a ping on a stream"),
        (frame(FrameType::GoAway, 0, 1, &[0; 8]), ProtocolError, "GOAWAY on a stream"),
        (frame(FrameType::GoAway, 0, 0, &[0; 7]), FrameSizeError, "an incomplete GOAWAY"),
        (window(0, 0), ProtocolError, "a window that is opened by nothing"),
        (window(1, 1), ProtocolError, "the window of a stream that was not begun"),
        (window(0, i32::MAX as u32), FlowControlError, "a window that is opened too wide"),
        (frame(FrameType::WindowUpdate, 0, 0, &[0; 3]), FrameSizeError, "a window of a wrong size"),
        (
            [settings(&[(4, 0)]), done.clone(), window(1, i32::MAX as u32), settings(&[(4, 1)])]
                .concat(),
            FlowControlError,
            "settings that open a stream's window too wide",
        ),
    ] {
        let mut client = Client::new();
        client.arrive(&bytes);
        client.assert_ended(code, why);
        // Later bytes are ignored.
        client.arrive(&get(99, "/"));
        assert_eq!(client.frames(), []);
    }
}

#[test]
fn stream_errors_reset_only_their_stream() {
    let open = headers(END_HEADERS, 1);
    let done = get(1, "/hello.txt");
    let waiting = [settings(&[(4, 0)]), done.clone()].concat();
    for (bytes, code, why) in [
        (
            [waiting.clone(), frame(FrameType::Data, 0, 1, b"x")].concat(),
            ErrorCode::StreamClosed,
            "a body after its end",
        ),
        (
            [done.clone(), frame(FrameType::Data, 0, 1, b"x")].concat(),
            ErrorCode::StreamClosed,
            "a body when all is over",
        ),
        (
            [waiting.clone(), window(1, 0)].concat(),
            ErrorCode::ProtocolError,
            "a window that is opened by nothing",
        ),
        (
            [waiting, window(1, 1), window(1, i32::MAX as u32)].concat(),
            ErrorCode::FlowControlError,
            "one that is too wide",
        ),
        (
            [open, frame(FrameType::Priority, 0, 1, &[0; 4])].concat(),
            ErrorCode::FrameSizeError,
            "a priority of a wrong size",
        ),
    ] {
        let mut client = Client::new();
        client.arrive(&bytes);
        assert_eq!(client.answers()[&1].reset, Some(code as u32), "{why}");
        client.arrive(&settings(&[(4, 65_535)]));
        // Bytes in flight are skipped.
        client.arrive(&frame(FrameType::Data, END_STREAM, 1, b"x"));
        client.assert_lives();
    }
}

#[test]
fn unknown_and_late_frames_are_ignored() {
    let mut client = Client::new();
    client.arrive(&get(1, "/hello.txt"));
    client.frames();
    for bytes in [
        frame(FrameType::Unknown(0xfa), 0xff, 9, &[7; 3000]),
        frame(FrameType::Unknown(10), 0, 0, &[]),
        settings(&[(99, 1), (1, 0), (3, 0), (6, 10)]),
        window(1, 5),
        frame(FrameType::ResetStream, 0, 1, &[0; 4]),
        frame(FrameType::Priority, 0, 1, &[0; 5]),
        frame(FrameType::Priority, 0, 99, &[0; 5]),
        frame(FrameType::Ping, 1, 0, &[1; 8]),
        frame(FrameType::Settings, 1, 0, &[]),
    ] {
        client.arrive(&bytes);
        assert!(
            client
                .frames()
                .iter()
                .all(|frame| frame.kind == FrameType::Settings && frame.payload.is_empty())
        );
    }
    client.arrive(&frame(FrameType::Ping, 0, 0, b"12345678"));
    let frames = client.frames();
    assert_eq!(
        (frames[0].kind, frames[0].flags, frames[0].payload.as_slice()),
        (FrameType::Ping, 1, &b"12345678"[..])
    );
    client.assert_lives();
}
