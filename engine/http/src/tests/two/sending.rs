//! Windows, room, and whose turn it is.

use std::collections::BTreeMap;
use std::string::ToString;
use std::vec::Vec;

use http2::{ErrorCode, Kind};

use super::client::{Client, END_HEADERS, END_STREAM, block, fields, frame, get, settings, window};
use crate::tests::world::{World, file, files, site};
use crate::{Remembered, WaitsFor};

const LARGE: usize = 300_000;

fn large() -> Vec<u8> {
    (0..LARGE).map(|at| (at / 7) as u8).collect()
}

/// A client of a site with a large file.
fn client(own: &[(u16, u32)]) -> Client {
    let mut files = files();
    files.insert("/large".to_string(), file("text/plain", &large()));
    let mut client = Client::with(own);
    let World { said, .. } =
        std::mem::replace(&mut client.world, World::new(site(&files), Remembered::nothing()));
    assert!(said.is_empty());
    client
}

fn bytes_of(frames: &[super::client::Frame], stream: u32) -> usize {
    frames
        .iter()
        .filter(|frame| frame.stream == stream && frame.kind == Kind::Data)
        .map(|frame| frame.payload.len())
        .sum()
}

#[test]
fn an_answer_and_the_front_of_its_body_are_queued_at_once() {
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
        "each frame once, but heads with what follows them"
    );
}

#[test]
fn no_more_is_sent_than_the_connections_window_and_the_streams_allow() {
    let mut client = client(&[]);
    client.arrive(&get(1, "/large"));
    assert_eq!(bytes_of(&client.frames(), 1), 65_535);
    assert_eq!(client.session.waits_for(), WaitsFor::Bytes);
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
fn a_window_of_a_few_bytes_is_filled_and_one_that_the_client_makes_smaller_is_waited_for() {
    let mut client = client(&[(4, 3)]);
    client.arrive(&get(1, "/hello.txt"));
    assert_eq!(bytes_of(&client.frames(), 1), 3);
    // Ten bytes fewer than before for each stream, so that it owes.
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
fn a_body_of_several_parts_comes_through_windows_and_room_of_any_size() {
    let mut client = client(&[(4, 2000)]);
    let whole = {
        let mut other = Client::new();
        other.ask(1, "GET", "/hello.txt", &[("range", "bytes=0-9,20-25")])
    };
    let asked: Vec<_> =
        fields("GET", "/hello.txt").into_iter().chain([("range", "bytes=0-9,20-25")]).collect();
    client.arrive(&settings(&[(4, 200)]));
    client.frames();
    client.arrive(&frame(Kind::Headers, END_STREAM | 4, 1, &block(&asked)));
    let mut answer = client.answers().remove(&1).expect("its beginning");
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
fn streams_send_in_turn_a_frame_each() {
    let mut client = client(&[(4, 1 << 20)]);
    client.world.room = 3 * 2500;
    client.arrive(&[get(1, "/large"), get(3, "/large"), get(5, "/large")].concat());
    client.arrive(&window(0, 1 << 20));
    let mut order = Vec::new();
    let mut bytes = BTreeMap::<u32, Vec<u8>>::new();
    for _ in 0..400 {
        for frame in client.frames().into_iter().filter(|frame| frame.kind == Kind::Data) {
            order.push(frame.stream);
            bytes.entry(frame.stream).or_default().extend(frame.payload);
        }
        client.world.room = 20_000;
        client.arrive(&[]);
    }
    assert!(bytes.len() == 3 && bytes.values().all(|bytes| *bytes == large()), "each whole");
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
        let data = client.frames().into_iter().filter(|frame| frame.kind == Kind::Data);
        data.map(|frame| frame.stream).collect::<Vec<_>>()
    };
    assert!((0..20).any(|_| sent(&[]).last() == Some(&1)));
    let reset = frame(Kind::ResetStream, 0, 1, &8_u32.to_be_bytes());
    assert_eq!(sent(&reset).first(), Some(&3));
}

#[test]
fn a_long_answer_keeps_nobody_from_being_answered() {
    let mut client = client(&[(4, 1 << 20)]);
    client.arrive(&window(0, 1 << 20));
    client.world.room = 10_000;
    client.arrive(&get(1, "/large"));
    assert_eq!(client.session.waits_for(), WaitsFor::SendRoom);
    assert!(client.world.room > 2048, "room is left for others");
    let room = client.world.room;
    client.arrive(&get(3, "/empty"));
    client.world.room = room;
    assert!(client.answers()[&3].is_over);
}

#[test]
fn a_frame_that_room_cuts_is_ended_before_anything_else_is_said() {
    // Room that is less than it was said to be.
    let mut client = client(&[(4, 1 << 20)]);
    client.arrive(&window(0, 1 << 20));
    client.world.static_room = Some(5000);
    client.arrive(&get(1, "/large"));
    assert_eq!(client.session.waits_for(), WaitsFor::SendRoom);
    client.arrive(&[get(3, "/hello.txt"), frame(Kind::ResetStream, 0, 1, &[0, 0, 0, 8])].concat());
    client.world.static_room = None;
    client.arrive(&[]);
    let frames = client.frames();
    let data: Vec<_> =
        frames.iter().filter(|frame| frame.kind == Kind::Data).map(|frame| frame.stream).collect();
    assert_eq!(data, [1, 3], "the first was begun, and ended whole; then came the other");
    assert_eq!(bytes_of(&frames, 1), 16_384);
}

#[test]
fn what_a_client_does_not_want_any_more_is_not_sent() {
    let mut client = client(&[]);
    client.arrive(&get(1, "/large"));
    client.arrive(&frame(Kind::ResetStream, 0, 1, &[0, 0, 0, 8]));
    client.frames();
    client.arrive(&[window(0, 100_000), window(1, 100_000)].concat());
    assert_eq!(client.frames(), []);
    client.arrive(&window(0, 1 << 20));
    client.assert_lives();
}

#[test]
fn a_hundred_streams_may_wait_and_one_more_is_refused() {
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
fn an_idle_connection_of_http_2_takes_little_memory() {
    let mut client = client(&[(4, 0)]);
    let asked: Vec<u8> = (0..100).flat_map(|number| get(2 * number + 1, "/hello.txt")).collect();
    client.arrive(&asked);
    assert!(client.session.kept_bytes() < 12 * 1024, "{}", client.session.kept_bytes());
    client.arrive(&settings(&[(4, 30)]));
    assert!(client.session.kept_bytes() <= 512, "{}", client.session.kept_bytes());
}

#[test]
fn where_there_is_no_room_requests_wait_and_windows_are_still_opened() {
    let mut client = client(&[]);
    client.world.room = 2000;
    client.arrive(&get(1, "/hello.txt"));
    assert_eq!((client.session.waits_for(), client.frames()), (WaitsFor::SendRoom, Vec::new()));
    client.world.room = 1 << 20;
    client.arrive(&[]);
    assert!(client.answers()[&1].is_over);
}

#[test]
fn a_client_that_may_send_more_is_told_so_as_soon_as_there_is_room_to() {
    let mut client = client(&[]);
    client.arrive(&frame(Kind::Headers, END_HEADERS, 1, &block(&fields("POST", "/hello.txt"))));
    client.world.room = 100;
    client.arrive(&frame(Kind::Data, 0, 1, &[b'x'; 16_384]).repeat(2));
    assert_eq!((client.session.waits_for(), client.frames()), (WaitsFor::SendRoom, Vec::new()));
    client.world.room = 1 << 20;
    client.arrive(&[]);
    let told = client.frames().into_iter().map(|frame| (frame.kind, frame.stream, frame.payload));
    assert_eq!(
        told.collect::<Vec<_>>(),
        [(Kind::WindowUpdate, 0, 32_768_u32.to_be_bytes().to_vec())]
    );
    assert_eq!(client.session.waits_for(), WaitsFor::Bytes);
}

#[test]
fn a_body_window_is_opened_as_soon_as_there_is_room() {
    let mut client = Client::new();
    client.arrive(&frame(Kind::Headers, END_HEADERS, 1, &block(&fields("POST", "/app/form"))));
    client.admit(1 << 20);
    client.world.room = 0;
    client.arrive(&frame(Kind::Data, 0, 1, &[b'x'; 16_384]).repeat(2));
    // Room for one of the two frames.
    let mut told = |room| {
        client.world.room = room;
        client.arrive(&[]);
        let told =
            client.frames().into_iter().map(|frame| (frame.kind, frame.stream, frame.payload));
        (told.collect::<Vec<_>>(), client.session.waits_for())
    };
    let opens =
        |stream| Vec::from([(Kind::WindowUpdate, stream, 32_768_u32.to_be_bytes().to_vec())]);
    let first = (1..).map(&mut told).find(|(told, _)| !told.is_empty());
    assert_eq!(first, Some((opens(0), WaitsFor::SendRoom)));
    assert_eq!(told(1 << 20), (opens(1), WaitsFor::Bytes));
}

#[test]
fn after_the_end_nothing_is_said_whatever_was_to_be() {
    // That more may be sent, and the rest of a file.
    let mut client = client(&[]);
    client.arrive(&frame(Kind::Headers, END_HEADERS, 1, &block(&fields("POST", "/hello.txt"))));
    client.world.room = 100;
    client.arrive(&frame(Kind::Data, 0, 1, &[b'x'; 16_384]).repeat(2));
    client.session.peer_closed(&mut client.world);
    client.world.room = 1 << 20;
    assert_eq!(client.session.bytes_arrived(b"more", &mut client.world), 4, "they are taken");
    assert_eq!((client.session.waits_for(), client.frames()), (WaitsFor::Nothing, Vec::new()));

    let mut client = self::client(&[(4, 1 << 20)]);
    client.world.static_room = Some(5000);
    client.arrive(&get(1, "/large"));
    assert_eq!(client.session.waits_for(), WaitsFor::SendRoom);
    client.session.peer_closed(&mut client.world);
    client.world.static_room = None;
    let said = client.world.said.len();
    client.session.bytes_arrived(b"", &mut client.world);
    assert_eq!(client.world.said.len(), said);
}
