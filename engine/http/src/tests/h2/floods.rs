//! Floods of useless frames, and how soon the server stops them.

use std::vec::Vec;

use http2::{ErrorCode, FrameType};

use super::client::{Client, END_HEADERS, END_STREAM, block, fields, frame, get, settings, window};

/// Sends the bytes of one repetition after another. Returns how many repetitions the server
/// tolerates before it ends the connection. The client reads and ignores the server's output.
fn repetitions_tolerated(mut client: Client, bytes: impl Fn(u32) -> Vec<u8>) -> u32 {
    for nth in 0..20_000 {
        client.arrive(&bytes(nth));
        let last = client.frames().pop();
        if client.world.closed {
            let last = last.expect("GOAWAY");
            assert_eq!((last.kind, &last.payload[4..8]), (FrameType::GoAway, &[0, 0, 0, 0xb][..]));
            return nth;
        }
    }
    panic!("the server never ends the connection");
}

/// The bytes of the nth repetition.
type Flood<'a> = &'a dyn Fn(u32) -> Vec<u8>;

fn stream(nth: u32) -> u32 {
    2 * nth + 1
}

#[test]
fn floods_of_useless_frames_get_enhance_your_calm() {
    let open = |client: &mut Client| {
        client.arrive(&frame(FrameType::Headers, END_HEADERS, 1, &block(&fields("POST", "/"))));
    };
    let with_open = || {
        let mut client = Client::new();
        open(&mut client);
        client
    };
    let reset = |nth| frame(FrameType::ResetStream, 0, stream(nth), &[0, 0, 0, 8]);
    let floods: [(&str, Client, Flood<'_>); 13] = [
        ("requests that the client resets", Client::new(), &|nth| {
            [get(stream(nth), "/"), reset(nth)].concat()
        }),
        ("waiting requests that the client resets", Client::with(&[(4, 0)]), &|nth| {
            [get(stream(nth), "/"), reset(nth)].concat()
        }),
        ("requests that the server resets", Client::with(&[(4, 0)]), &|nth| {
            [get(stream(nth), "/"), window(stream(nth), 0)].concat()
        }),
        ("malformed requests", Client::new(), &|nth| {
            frame(FrameType::Headers, END_STREAM | END_HEADERS, stream(nth), &block(&[("x", "y")]))
        }),
        ("bodies on closed streams", Client::new(), &|nth| {
            [get(stream(nth), "/"), frame(FrameType::Data, 0, stream(nth), b"x")].concat()
        }),
        ("pings", Client::new(), &|_| frame(FrameType::Ping, 0, 0, &[0; 8])),
        ("unrequested acknowledgements of pings", Client::new(), &|_| {
            frame(FrameType::Ping, 1, 0, &[0; 8])
        }),
        ("settings", Client::new(), &|_| settings(&[])),
        ("unrequested acknowledgements of settings", Client::new(), &|_| {
            frame(FrameType::Settings, 1, 0, &[])
        }),
        ("empty parts of bodies", with_open(), &|_| frame(FrameType::Data, 8, 1, &[1, 0])),
        ("priorities", Client::new(), &|nth| frame(FrameType::Priority, 0, stream(nth), &[0; 5])),
        ("frames of an unknown kind", Client::new(), &|_| {
            frame(FrameType::Unknown(99), 0, 0, &[0; 100])
        }),
        ("window updates while nothing waits", Client::new(), &|_| window(0, 1)),
    ];
    for (what, client, bytes) in floods {
        let times = repetitions_tolerated(client, bytes);
        assert!((30..=1000).contains(&times), "{what}: {times}");
    }
}

#[test]
fn a_window_opened_byte_by_byte_ends_the_connection() {
    let mut client = Client::with(&[(4, 0)]);
    let asked: Vec<u8> = (0..100).flat_map(|number| get(stream(number), "/hello.txt")).collect();
    client.arrive(&asked);
    let times = repetitions_tolerated(client, |nth| window(stream(nth % 100), 1));
    assert!((100..1000).contains(&times), "{times}");
}

#[test]
fn too_many_settings_in_a_frame_end_the_connection() {
    let mut client = Client::new();
    client.arrive(&settings(&[(99, 1); 33]));
    client.assert_ended(ErrorCode::EnhanceYourCalm, "CVE-2019-9515");
}

#[test]
fn a_normal_client_is_never_told_to_calm_down() {
    let mut client = Client::new();
    for nth in 0..20_000 {
        client.arrive(&get(stream(nth), "/hello.txt"));
        // The client behaves like a browser. It opens each window as soon as it has taken bytes,
        // and sometimes sends a ping or a reset.
        client.arrive(&[window(0, 30), window(stream(nth), 30)].concat());
        if nth % 10 == 0 {
            client.arrive(&frame(FrameType::Ping, 0, 0, &[0; 8]));
            client.arrive(&frame(FrameType::ResetStream, 0, stream(nth), &[0, 0, 0, 8]));
        }
        assert!(!client.world.closed, "{nth}");
        client.frames();
    }
}
