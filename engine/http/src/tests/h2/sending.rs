//! Windows, buffer space, and the order of sending.

use std::collections::BTreeMap;
use std::string::ToString;
use std::vec::Vec;

use http2::{ErrorCode, FrameType};

use super::client::{Client, END_HEADERS, END_STREAM, block, fields, frame, get, settings, window};
use crate::tests::world::{World, file, files, site};
use crate::{HttpWaitsFor, ResponseCache};

const LARGE: usize = 300_000;

fn large() -> Vec<u8> {
    (0..LARGE).map(|at| (at / 7) as u8).collect()
}

/// A client of a site with a large file.
fn client(own: &[(u16, u32)]) -> Client {
    let mut files = files();
    files.insert("/large".to_string(), file("text/plain", &large()));
    let mut client = Client::with(own);
    let World { output, .. } =
        std::mem::replace(&mut client.world, World::new(site(&files), ResponseCache::empty()));
    assert!(output.is_empty());
    client
}

fn bytes_of(frames: &[super::client::Frame], stream: u32) -> usize {
    frames
        .iter()
        .filter(|frame| frame.stream == stream && frame.kind == FrameType::Data)
        .map(|frame| frame.payload.len())
        .sum()
}

#[test]
fn an_http2_head_is_queued_with_the_start_of_its_body() {
    let mut client = client(&[]);
    client.arrive(&[]);
    let before = client.world.queued;
    client.arrive(&get(1, "/hello.txt"));
    assert_eq!(client.world.queued - before, 1);
    client.arrive(&get(3, "/large"));
    let frames = client.frames().len();
    assert!(frames > 2);
    assert_eq!(
        client.world.queued - before,
        frames - 2,
        "each frame is queued once, and heads together with the next frame"
    );
}

#[test]
fn sending_respects_connection_and_stream_windows() {
    let mut client = client(&[]);
    client.arrive(&get(1, "/large"));
    assert_eq!(bytes_of(&client.frames(), 1), 65_535);
    assert_eq!(client.session.waits_for(), HttpWaitsFor::Bytes);
    client.arrive(&window(1, 1000));
    assert_eq!(bytes_of(&client.frames(), 1), 0, "the connection's window is shut");
    client.arrive(&window(0, 3000));
    assert_eq!(bytes_of(&client.frames(), 1), 1000);
    client.arrive(&window(1, 1_000_000));
    assert_eq!(bytes_of(&client.frames(), 1), 2000);
    client.arrive(&window(0, 1_000_000));
    let frames = client.frames();
    assert_eq!(bytes_of(&frames, 1), LARGE - 65_535 - 3000);
    assert_eq!(frames.iter().filter(|frame| frame.flags & END_STREAM != 0).count(), 1);
    assert!(frames.iter().all(|frame| frame.payload.len() <= 16_384));
    client.assert_lives();
}

#[test]
fn a_window_may_be_tiny_or_become_negative() {
    let mut client = client(&[(4, 3)]);
    client.arrive(&get(1, "/hello.txt"));
    assert_eq!(bytes_of(&client.frames(), 1), 3);
    // The initial size shrinks by three bytes after three were sent, so the window is negative.
    client.arrive(&settings(&[(4, 0)]));
    client.arrive(&window(1, 3));
    assert_eq!(bytes_of(&client.frames(), 1), 0);
    client.arrive(&settings(&[(4, 5)]));
    assert_eq!(bytes_of(&client.frames(), 1), 5);
    client.arrive(&window(1, 100));
    let frames = client.frames();
    assert_eq!(
        (bytes_of(&frames, 1), frames.last().map(|frame| frame.flags)),
        (30 - 8, Some(END_STREAM))
    );
    client.arrive(&get(3, "/hello.txt"));
    assert_eq!(bytes_of(&client.frames(), 3), 5);
}

#[test]
fn a_multipart_body_is_sent_through_small_windows() {
    let mut client = client(&[(4, 2000)]);
    let whole = {
        let mut other = Client::new();
        other.ask(1, "GET", "/hello.txt", &[("range", "bytes=0-9,20-25")])
    };
    let asked: Vec<_> =
        fields("GET", "/hello.txt").into_iter().chain([("range", "bytes=0-9,20-25")]).collect();
    client.arrive(&settings(&[(4, 200)]));
    client.frames();
    client.arrive(&frame(FrameType::Headers, END_STREAM | 4, 1, &block(&asked)));
    let mut answer = client.answers().remove(&1).expect("the start of the response");
    for _ in 0..20 {
        client.arrive(&window(1, 200));
        if let Some(more) = client.answers().remove(&1) {
            answer.body.extend(more.body);
            answer.is_over |= more.is_over;
        }
    }
    assert_eq!(answer, whole);
}

#[test]
fn streams_send_in_turn_one_frame_each() {
    let mut client = client(&[(4, 1 << 20)]);
    client.world.room = 3 * 2500;
    client.arrive(&[get(1, "/large"), get(3, "/large"), get(5, "/large")].concat());
    client.arrive(&window(0, 1 << 20));
    let mut order = Vec::new();
    let mut bytes = BTreeMap::<u32, Vec<u8>>::new();
    for _ in 0..400 {
        for frame in client.frames().into_iter().filter(|frame| frame.kind == FrameType::Data) {
            order.push(frame.stream);
            bytes.entry(frame.stream).or_default().extend(frame.payload);
        }
        client.world.room = 20_000;
        client.arrive(&[]);
    }
    assert!(
        bytes.len() == 3 && bytes.values().all(|bytes| *bytes == large()),
        "each file is complete"
    );
    let turns = order.iter().skip(1).take(30).collect::<Vec<_>>();
    assert!(
        turns.windows(3).all(|turn| turn[0] != turn[1] && turn[1] != turn[2] && turn[0] != turn[2]),
        "{turns:?}"
    );
}

#[test]
fn a_stream_keeps_its_turn_when_an_earlier_one_is_reset() {
    let mut client = client(&[(4, 1 << 20)]);
    client.world.room = 3 * 2500;
    client.arrive(&[get(1, "/large"), get(3, "/large"), get(5, "/large")].concat());
    client.arrive(&window(0, 1 << 20));
    let mut sent = |bytes: &[u8]| {
        client.world.room = 20_000;
        client.arrive(bytes);
        let data = client.frames().into_iter().filter(|frame| frame.kind == FrameType::Data);
        data.map(|frame| frame.stream).collect::<Vec<_>>()
    };
    assert!((0..20).any(|_| sent(&[]).last() == Some(&1)));
    let reset = frame(FrameType::ResetStream, 0, 1, &8_u32.to_be_bytes());
    assert_eq!(sent(&reset).first(), Some(&3));
}

#[test]
fn a_long_response_does_not_delay_other_heads() {
    let mut client = client(&[(4, 1 << 20)]);
    client.arrive(&window(0, 1 << 20));
    client.world.room = 10_000;
    client.arrive(&get(1, "/large"));
    assert_eq!(client.session.waits_for(), HttpWaitsFor::SendRoom);
    assert!(client.world.room > 2048, "space is left for other heads");
    let room = client.world.room;
    client.arrive(&get(3, "/empty"));
    client.world.room = room;
    assert!(client.answers()[&3].is_over);
}

#[test]
fn a_cut_frame_is_completed_before_any_other_frame() {
    // The connection takes fewer bytes than `send_room` returned.
    let mut client = client(&[(4, 1 << 20)]);
    client.arrive(&window(0, 1 << 20));
    client.world.static_room = Some(5000);
    client.arrive(&get(1, "/large"));
    assert_eq!(client.session.waits_for(), HttpWaitsFor::SendRoom);
    client.arrive(
        &[get(3, "/hello.txt"), frame(FrameType::ResetStream, 0, 1, &[0, 0, 0, 8])].concat(),
    );
    client.world.static_room = None;
    client.arrive(&[]);
    let frames = client.frames();
    let data: Vec<_> = frames
        .iter()
        .filter(|frame| frame.kind == FrameType::Data)
        .map(|frame| frame.stream)
        .collect();
    assert_eq!(data, [1, 3], "the first frame is completed before the second");
    assert_eq!(bytes_of(&frames, 1), 16_384);
}

#[test]
fn a_reset_stream_sends_no_more() {
    let mut client = client(&[]);
    client.arrive(&get(1, "/large"));
    client.arrive(&frame(FrameType::ResetStream, 0, 1, &[0, 0, 0, 8]));
    client.frames();
    client.arrive(&[window(0, 100_000), window(1, 100_000)].concat());
    assert_eq!(client.frames(), []);
    client.arrive(&window(0, 1 << 20));
    client.assert_lives();
}

#[test]
fn a_client_may_have_100_streams_and_not_101() {
    let mut client = client(&[(4, 0)]);
    let asked: Vec<u8> = (0..101).flat_map(|number| get(2 * number + 1, "/hello.txt")).collect();
    client.arrive(&asked);
    let answers = client.answers();
    assert_eq!(answers.values().filter(|answer| answer.status() == "200").count(), 100);
    assert_eq!(answers[&201].reset, Some(ErrorCode::RefusedStream as u32));
    client.arrive(&settings(&[(4, 30)]));
    assert_eq!(
        client
            .answers()
            .values()
            .filter(|answer| answer.is_over && answer.body.len() == 30)
            .count(),
        100
    );
    client.assert_lives();
}

#[test]
fn an_idle_http2_connection_takes_little_memory() {
    let mut client = client(&[(4, 0)]);
    let asked: Vec<u8> = (0..100).flat_map(|number| get(2 * number + 1, "/hello.txt")).collect();
    client.arrive(&asked);
    assert!(client.session.kept_bytes() < 12 * 1024, "{}", client.session.kept_bytes());
    client.arrive(&settings(&[(4, 30)]));
    assert!(client.session.kept_bytes() <= 512, "{}", client.session.kept_bytes());
}

#[test]
fn http2_requests_wait_for_buffer_space() {
    let mut client = client(&[]);
    client.world.room = 2000;
    client.arrive(&get(1, "/hello.txt"));
    assert_eq!((client.session.waits_for(), client.frames()), (HttpWaitsFor::SendRoom, Vec::new()));
    client.world.room = 1 << 20;
    client.arrive(&[]);
    assert!(client.answers()[&1].is_over);
}

#[test]
fn the_connection_window_opens_as_soon_as_there_is_space() {
    let mut client = client(&[]);
    client.arrive(&frame(
        FrameType::Headers,
        END_HEADERS,
        1,
        &block(&fields("POST", "/hello.txt")),
    ));
    client.world.room = 100;
    client.arrive(&frame(FrameType::Data, 0, 1, &[b'x'; 16_384]).repeat(2));
    assert_eq!((client.session.waits_for(), client.frames()), (HttpWaitsFor::SendRoom, Vec::new()));
    client.world.room = 1 << 20;
    client.arrive(&[]);
    let updates =
        client.frames().into_iter().map(|frame| (frame.kind, frame.stream, frame.payload));
    assert_eq!(
        updates.collect::<Vec<_>>(),
        [(FrameType::WindowUpdate, 0, 32_768_u32.to_be_bytes().to_vec())]
    );
    assert_eq!(client.session.waits_for(), HttpWaitsFor::Bytes);
}

#[test]
fn a_stream_window_opens_as_soon_as_there_is_space() {
    let mut client = Client::new();
    client.arrive(&frame(FrameType::Headers, END_HEADERS, 1, &block(&fields("POST", "/app/form"))));
    client.admit(1 << 20);
    client.world.room = 0;
    client.arrive(&frame(FrameType::Data, 0, 1, &[b'x'; 16_384]).repeat(2));
    // Raises the buffer space until it is enough for one of the two window updates.
    let mut updates = |room| {
        client.world.room = room;
        client.arrive(&[]);
        let updates =
            client.frames().into_iter().map(|frame| (frame.kind, frame.stream, frame.payload));
        (updates.collect::<Vec<_>>(), client.session.waits_for())
    };
    let opens =
        |stream| Vec::from([(FrameType::WindowUpdate, stream, 32_768_u32.to_be_bytes().to_vec())]);
    let first = (1..).map(&mut updates).find(|(updates, _)| !updates.is_empty());
    assert_eq!(first, Some((opens(0), HttpWaitsFor::SendRoom)));
    assert_eq!(updates(1 << 20), (opens(1), HttpWaitsFor::Bytes));
}

#[test]
fn nothing_is_sent_after_the_end_of_a_connection() {
    // In the first case, a window update and an answer are still due. In the second case, the rest
    // of a file is.
    let mut client = client(&[]);
    client.arrive(&frame(
        FrameType::Headers,
        END_HEADERS,
        1,
        &block(&fields("POST", "/hello.txt")),
    ));
    client.world.room = 100;
    client.arrive(&frame(FrameType::Data, 0, 1, &[b'x'; 16_384]).repeat(2));
    client.session.peer_closed(&mut client.world);
    client.world.room = 1 << 20;
    assert_eq!(client.session.bytes_arrived(b"more", &mut client.world), 4, "late bytes are taken");
    assert_eq!((client.session.waits_for(), client.frames()), (HttpWaitsFor::Nothing, Vec::new()));

    let mut client = self::client(&[(4, 1 << 20)]);
    client.world.static_room = Some(5000);
    client.arrive(&get(1, "/large"));
    assert_eq!(client.session.waits_for(), HttpWaitsFor::SendRoom);
    client.session.peer_closed(&mut client.world);
    client.world.static_room = None;
    let output = client.world.output.len();
    client.session.bytes_arrived(b"", &mut client.world);
    assert_eq!(client.world.output.len(), output);
}
