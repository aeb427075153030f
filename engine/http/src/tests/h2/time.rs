//! Deadlines, and the end of an HTTP/2 connection.

use std::vec::Vec;

use http2::{ErrorCode, FrameType, PREFACE};
use machine::Micros;

use super::client::{Client, END_HEADERS, END_STREAM, block, fields, frame, get, settings, window};
use crate::HttpWaitsFor;

fn deadline(client: &mut Client) -> Option<Micros> {
    client.world.deadline.take()
}

const IDLE: Option<Micros> = Some(Micros::from_secs(60));
const REQUEST: Option<Micros> = Some(Micros::from_secs(30));
const RESPONSE: Option<Micros> = Some(Micros::from_secs(60));

#[test]
fn pings_do_not_extend_the_idle_deadline() {
    let mut client = Client::silent();
    assert_eq!(deadline(&mut client), IDLE);
    client.arrive(&[PREFACE.as_slice(), &settings(&[])].concat());
    client.arrive(&frame(FrameType::Ping, 0, 0, &[0; 8]));
    client.arrive(&frame(FrameType::Ping, 0, 0, &[0; 8])[..12]);
    assert_eq!(deadline(&mut client), None);
    client.arrive(&[0; 5]);
    client.arrive(&get(1, "/hello.txt"));
    assert_eq!(deadline(&mut client), IDLE);
    client.frames();
    client.session.deadline_expired(&mut client.world);
    client.assert_ended(ErrorCode::NoError, "the idle deadline has expired");
}

#[test]
fn slow_bytes_do_not_extend_http2_request_deadlines() {
    let mut client = Client::new();
    let request = get(1, "/hello.txt");
    client.arrive(&request[..20]);
    assert_eq!(deadline(&mut client), REQUEST);
    for byte in &request[20..request.len() - 1] {
        client.arrive(&[*byte]);
    }
    assert_eq!(deadline(&mut client), None);
    client.arrive(&request[request.len() - 1..]);
    assert_eq!(deadline(&mut client), IDLE);
    client.arrive(&frame(FrameType::Headers, END_HEADERS, 3, &block(&fields("POST", "/"))));
    assert_eq!(deadline(&mut client), REQUEST);
    for _ in 0..20 {
        client.arrive(&frame(FrameType::Data, 0, 3, b"x"));
    }
    assert_eq!(deadline(&mut client), None);
    client.arrive(&frame(FrameType::Data, END_STREAM, 3, b""));
    assert_eq!(deadline(&mut client), IDLE);
}

#[test]
fn progress_of_a_response_restarts_its_deadline() {
    let mut client = Client::with(&[(4, 3)]);
    client.arrive(&get(1, "/hello.txt"));
    assert_eq!(deadline(&mut client), RESPONSE);
    client.arrive(&get(3, "/empty"));
    client.arrive(&frame(FrameType::Ping, 0, 0, &[0; 8]));
    assert_eq!(deadline(&mut client), None, "the client took no bytes of the response");
    client.arrive(&window(1, 4));
    assert_eq!(deadline(&mut client), RESPONSE);
    client.arrive(&window(1, 100));
    assert_eq!(deadline(&mut client), IDLE, "the response is complete");
}

#[test]
fn a_stopping_http2_server_answers_open_requests() {
    let mut client = Client::new();
    client.session.stopping(&mut client.world);
    client.assert_ended(ErrorCode::NoError, "no request is open");
    let mut client = Client::with(&[(4, 3)]);
    client.arrive(&get(1, "/hello.txt"));
    client.frames();
    client.session.stopping(&mut client.world);
    let frames = client.frames();
    assert_eq!(
        (frames.len(), frames[0].kind, frames[0].payload.as_slice()),
        (1, FrameType::GoAway, &[0, 0, 0, 1, 0, 0, 0, 0][..])
    );
    client.arrive(&get(3, "/hello.txt"));
    assert_eq!(client.frames(), [], "a late request is ignored");
    client.arrive(&window(1, 100));
    assert_eq!(client.answers()[&1].body.len(), 27);
    assert!(client.world.closed);
    assert_eq!(client.session.waits_for(), HttpWaitsFor::Nothing);
}

#[test]
fn a_client_after_goaway_still_gets_its_responses() {
    let mut client = Client::with(&[(4, 3)]);
    client.arrive(
        &[get(1, "/hello.txt"), frame(FrameType::GoAway, 0, 0, &[&[0; 8][..], b"debug"].concat())]
            .concat(),
    );
    assert!(!client.world.closed);
    client.frames();
    client.arrive(&window(1, 100));
    assert_eq!(client.answers()[&1].body.len(), 27);
    assert!(client.world.closed);
}

#[test]
fn nothing_is_sent_to_a_closed_http2_client() {
    let mut client = Client::with(&[(4, 3)]);
    client.arrive(&get(1, "/hello.txt"));
    client.frames();
    client.session.peer_closed(&mut client.world);
    assert!(client.world.closed);
    assert_eq!((client.frames(), client.world.deadline), (Vec::new(), None));
}

#[test]
fn the_http2_busy_response_permits_a_retry() {
    let mut rest = crate::h2::BUSY;
    let mut kinds = Vec::new();
    while let Some(head) = http2::FrameHead::parse(rest) {
        kinds.push((head.kind, head.stream, head.length));
        rest = &rest[9 + head.length as usize..];
    }
    assert_eq!(kinds, [(FrameType::Settings, 0, 0), (FrameType::GoAway, 0, 8)]);
    assert!(rest.is_empty());
}
