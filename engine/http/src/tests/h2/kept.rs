//! The memory that an HTTP/2 client makes the server keep. The session reports it, and the client's
//! share limits it.

use std::string::ToString;
use std::vec::Vec;

use allocation_counter::measure;
use http2::{ErrorCode, FrameType, PREFACE};

use super::client::{Client, END_HEADERS, END_STREAM, block, fields, frame, get, settings};
use crate::h2::Http2Session;
use crate::{Reply, Status};

/// A request with a cookie of this many bytes.
fn question(stream: u32, cookie_bytes: usize) -> Vec<u8> {
    let cookie = "c".repeat(cookie_bytes);
    let all: Vec<_> =
        fields("GET", "/app/page").into_iter().chain([("cookie", cookie.as_str())]).collect();
    frame(FrameType::Headers, END_STREAM | END_HEADERS, stream, &block(&all))
}

/// A request with a field that is added to the dynamic table.
fn filling(stream: u32, name: u8, value_bytes: usize) -> Vec<u8> {
    let mut block = block(&fields("GET", "/hello.txt"));
    block.extend([
        0x40,
        1,
        name,
        127,
        (value_bytes - 127) as u8 | 0x80,
        ((value_bytes - 127) >> 7) as u8,
    ]);
    block.extend(std::iter::repeat_n(b'v', value_bytes));
    frame(FrameType::Headers, END_STREAM | END_HEADERS, stream, &block)
}

/// Checks that the session reports at least the memory that it holds, and at most twice that memory
/// and 1 KiB.
fn assert_memory_is_reported(client: Client, what: &str) {
    let reported =
        client.session.kept_bytes() + client.session.held_bytes() - size_of::<Http2Session>();
    let Client { session, .. } = client;
    let held = measure(|| drop(session)).bytes_current.unsigned_abs() as usize;
    assert!(
        held <= reported && reported <= 2 * held + 1024,
        "{what}: {held} bytes are held, {reported} are reported"
    );
}

#[test]
fn http2_sessions_report_all_memory_that_they_hold() {
    let begun = || Client::with(&[(4, 0)]);
    assert_memory_is_reported(begun(), "nothing");
    let mut client = begun();
    client.arrive(&(0..8).flat_map(|nth| question(2 * nth + 1, 7000)).collect::<Vec<_>>());
    assert_memory_is_reported(client, "requests for a handler");
    let mut client = begun();
    client.arrive(&(0..100).flat_map(|nth| get(2 * nth + 1, "/hello.txt")).collect::<Vec<_>>());
    assert_memory_is_reported(client, "streams");
    let mut client = begun();
    client.arrive(&[filling(1, b'a', 1900), filling(3, b'b', 1900)].concat());
    assert_memory_is_reported(client, "a table");
    let mut client = begun();
    client.arrive(&[get(1, "/app/1"), get(3, "/app/2")].concat());
    client.world.room = 0;
    client.reply(Reply::new(Status::Ok, "a/b", std::vec![b'x'; 9000]));
    assert_memory_is_reported(client, "a reply");
    let mut client = begun();
    client.arrive(
        &[
            frame(FrameType::Headers, END_HEADERS, 1, &block(&fields("POST", "/app/form"))),
            get(3, "/app/2"),
        ]
        .concat(),
    );
    client.admit(1 << 20);
    assert_memory_is_reported(client, "an admitted request");
}

#[test]
fn http2_requests_above_the_memory_share_are_answered_503() {
    let mut client = Client::new();
    client.world.kept_max = client.session.kept_bytes() + 10_000;
    client.arrive(&(0..8).flat_map(|nth| question(2 * nth + 1, 1500)).collect::<Vec<_>>());
    assert!(client.session.kept_bytes() <= client.world.kept_max);
    let refused = client.answers();
    assert!(
        (4..8).contains(&refused.len()) && refused.values().all(|answer| answer.status() == "503"),
        "{refused:?}"
    );
    for _ in refused.len()..8 {
        client.reply(Reply::text(Status::Ok, "x".to_string()));
    }
    let answered = client.answers();
    assert_eq!(answered.len(), 8 - refused.len());
    assert!(answered.values().all(|answer| answer.status() == "200"));
    client.assert_lives();
}

#[test]
fn streams_above_the_memory_share_are_refused() {
    let mut client = Client::with(&[(4, 0)]);
    client.world.kept_max = client.session.kept_bytes() + 1024;
    client.arrive(&(0..40).flat_map(|nth| get(2 * nth + 1, "/hello.txt")).collect::<Vec<_>>());
    assert!(client.session.kept_bytes() <= client.world.kept_max);
    let answers = client.answers();
    let refused = answers
        .values()
        .filter(|answer| answer.reset == Some(ErrorCode::RefusedStream as u32))
        .count();
    assert!((20..38).contains(&refused), "{refused}");
    client.arrive(&settings(&[(4, 30)]));
    assert_eq!(client.answers().values().filter(|answer| answer.is_over).count(), 40 - refused);
    client.assert_lives();
}

#[test]
fn a_client_above_its_share_gets_enhance_your_calm() {
    let mut client = Client::with(&[(4, 0)]);
    client.arrive(&[filling(1, b'a', 1900), question(3, 2000), get(5, "/hello.txt")].concat());
    client.frames();
    client.session.overdrawn(&mut client.world);
    assert_eq!(client.session.kept_bytes(), size_of::<Http2Session>());
    let frames = client.frames();
    let last = frames.last().map(|frame| (frame.kind, frame.payload[4..].to_vec()));
    assert_eq!(last, Some((FrameType::GoAway, ErrorCode::EnhanceYourCalm.bytes().to_vec())));
    assert!(client.world.closed);
    client.session.overdrawn(&mut client.world);
    assert_eq!(client.frames(), []);
}

#[test]
fn short_memory_turns_off_the_header_table() {
    for (kept_max, is_turned_off) in [(usize::MAX, false), (1000, true)] {
        let mut client = Client::silent();
        client.frames();
        client.world.kept_max = kept_max;
        client.session = Http2Session::connected(&mut client.world);
        client.arrive(&[PREFACE.as_slice(), &settings(&[])].concat());
        let frames = client.frames();
        let (pairs, _) = frames[0].payload.as_chunks::<6>();
        assert_eq!(pairs.contains(&[0, 1, 0, 0, 0, 0]), is_turned_off, "{pairs:?}");
    }
}
