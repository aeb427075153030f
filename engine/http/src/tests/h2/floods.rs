//! Floods of frames that cost their sender nothing are stopped.

use std::vec::Vec;

use http2::{ErrorCode, Kind};

use super::client::{Client, END_HEADERS, END_STREAM, block, fields, frame, get, settings, window};

/// How often the server tolerates these bytes. Its output is dropped, as if the client took it.
fn borne(mut client: Client, bytes: impl Fn(u32) -> Vec<u8>) -> u32 {
    for time in 0..20_000 {
        client.arrive(&bytes(time));
        let last = client.frames().pop();
        if client.world.closed {
            let last = last.expect("a reason");
            assert_eq!((last.kind, &last.payload[4..8]), (Kind::GoAway, &[0, 0, 0, 0xb][..]));
            return time;
        }
    }
    panic!("it is borne for ever");
}

/// The bytes of the nth repetition.
type Flood<'a> = &'a dyn Fn(u32) -> Vec<u8>;

fn stream(time: u32) -> u32 {
    2 * time + 1
}

#[test]
fn floods_of_useless_frames_get_enhance_your_calm() {
    let open = |client: &mut Client| {
        client.arrive(&frame(Kind::Headers, END_HEADERS, 1, &block(&fields("POST", "/"))));
    };
    let with_open = || {
        let mut client = Client::new();
        open(&mut client);
        client
    };
    let reset = |time| frame(Kind::ResetStream, 0, stream(time), &[0, 0, 0, 8]);
    let floods: [(&str, Client, Flood<'_>); 13] = [
        ("requests that are taken back", Client::new(), &|time| {
            [get(stream(time), "/"), reset(time)].concat()
        }),
        ("the same while they wait", Client::with(&[(4, 0)]), &|time| {
            [get(stream(time), "/"), reset(time)].concat()
        }),
        ("requests that we take back", Client::with(&[(4, 0)]), &|time| {
            [get(stream(time), "/"), window(stream(time), 0)].concat()
        }),
        ("requests that are none", Client::new(), &|time| {
            frame(Kind::Headers, END_STREAM | END_HEADERS, stream(time), &block(&[("x", "y")]))
        }),
        ("bodies of streams that are closed", Client::new(), &|time| {
            [get(stream(time), "/"), frame(Kind::Data, 0, stream(time), b"x")].concat()
        }),
        ("pings", Client::new(), &|_| frame(Kind::Ping, 0, 0, &[0; 8])),
        ("answers to pings", Client::new(), &|_| frame(Kind::Ping, 1, 0, &[0; 8])),
        ("settings", Client::new(), &|_| settings(&[])),
        ("answers to settings", Client::new(), &|_| frame(Kind::Settings, 1, 0, &[])),
        ("parts of bodies with nothing in them", with_open(), &|_| {
            frame(Kind::Data, 8, 1, &[1, 0])
        }),
        ("priorities", Client::new(), &|time| frame(Kind::Priority, 0, stream(time), &[0; 5])),
        ("what is unknown", Client::new(), &|_| frame(Kind::Unknown(99), 0, 0, &[0; 100])),
        ("windows that open and nothing waits", Client::new(), &|_| window(0, 1)),
    ];
    for (what, client, bytes) in floods {
        let times = borne(client, bytes);
        assert!((30..=1000).contains(&times), "{what}: {times}");
    }
}

#[test]
fn a_window_opened_byte_by_byte_ends_the_connection() {
    let mut client = Client::with(&[(4, 0)]);
    let asked: Vec<u8> = (0..100).flat_map(|number| get(stream(number), "/hello.txt")).collect();
    client.arrive(&asked);
    let times = borne(client, |time| window(stream(time % 100), 1));
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
    for time in 0..20_000 {
        client.arrive(&get(stream(time), "/hello.txt"));
        // Like a browser: it opens each window as soon as it has taken something, and sometimes
        // sends a ping or a reset.
        client.arrive(&[window(0, 30), window(stream(time), 30)].concat());
        if time % 10 == 0 {
            client.arrive(&frame(Kind::Ping, 0, 0, &[0; 8]));
            client.arrive(&frame(Kind::ResetStream, 0, stream(time), &[0, 0, 0, 8]));
        }
        assert!(!client.world.closed, "{time}");
        client.frames();
    }
}
