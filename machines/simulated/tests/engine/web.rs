//! Tests of pages over HTTP in the whole engine, with clients that have an independent TCP.

#![allow(clippy::expect_used, reason = "a test may fail")]

use super::room::pages::{large, site};
use super::room::{Room, Talk};
use machine::Micros;

const LARGE_BYTES: usize = 2_000_000;

fn serving(seed: u64) -> Room {
    Room::with_site(seed, site(LARGE_BYTES))
}

fn request(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: web.test\r\n\r\n").into_bytes()
}

/// The body of the next response, which must have this status.
fn body(room: &mut Room, talk: &mut Talk, status: &str) -> Vec<u8> {
    let first = room.line(talk);
    assert!(first.starts_with(&format!("HTTP/1.1 {status}")), "{first}");
    let mut length = 0;
    loop {
        let line = room.line(talk);
        match line.split_once(": ") {
            None => break,
            Some(("Content-Length", value)) => length = value.parse().expect("a length"),
            Some(_) => {}
        }
    }
    room.until("the body arrives", |room| {
        room.listen(talk);
        talk.heard.len() >= length
    });
    talk.heard.drain(..length).collect()
}

#[test]
fn a_connection_serves_one_page_after_another() {
    let mut room = serving(1);
    let mut talk = room.connect(80);
    for _ in 0..50 {
        room.send(&talk, &request("/"));
        assert_eq!(body(&mut room, &mut talk, "200"), b"Index");
    }
    room.part(talk);
}

#[test]
fn pipelined_requests_for_large_files_arrive_whole_and_in_order() {
    let mut room = serving(2);
    let mut talk = room.connect(80);
    let paths = ["/large", "/", "/nothing", "/large", "/", "/large"];
    room.send(&talk, &paths.map(request).concat());
    for path in paths {
        let found = body(&mut room, &mut talk, if path == "/nothing" { "404" } else { "200" });
        match path {
            "/large" => assert!(found == large(LARGE_BYTES), "the page arrives unchanged"),
            "/" => assert_eq!(found, b"Index"),
            _ => {}
        }
    }
    room.part(talk);
}

#[test]
fn a_half_closed_client_gets_its_response() {
    let mut room = serving(3);
    let mut talk = room.connect(80);
    room.send(&talk, &request("/large"));
    room.close(&talk);
    assert!(body(&mut room, &mut talk, "200") == large(LARGE_BYTES));
    room.until("the server closes its half", |room| room.has_hung_up(&mut talk));
    room.until_nothing_is_in_use();
}

#[test]
fn a_trickled_request_head_times_out() {
    let mut room = serving(4);
    let mut talk = room.connect(80);
    room.send(&talk, b"GET / HTTP/1.1\r\nX: ");
    for _ in 0..29 {
        room.pass(Micros::from_secs(1));
        room.try_to_send(&talk, b"a");
    }
    assert!(room.line_heard(&mut talk).is_none());
    room.pass(Micros::from_secs(2));
    assert_eq!(room.line(&mut talk), "HTTP/1.1 408 Request Timeout");
    room.until("the server hangs up", |room| room.has_hung_up(&mut talk));
}

#[test]
fn vanished_http_readers_leave_nothing_behind() {
    let mut room = serving(5);
    for round in 0..20 {
        let talk = room.connect(80);
        room.send(&talk, &[request("/large"), request("/large"), request("/")].concat());
        room.pass(Micros::from_millis(round * 7));
        room.abort(&talk);
    }
    room.until_nothing_is_in_use();
}
