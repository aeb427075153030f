//! Responses that wait for buffer space, and deadlines.

use super::world::{Talk, file, request, site};
use crate::{HttpWaitsFor, RESPONSE_HEAD_BYTES_MAX};
use machine::Micros;
use std::collections::BTreeMap;
use std::string::ToString;
use std::vec::Vec;

const LARGE: usize = 300_000;

fn large() -> Talk {
    let bytes: Vec<u8> = (0..LARGE).map(|at| (at / 7) as u8).collect();
    Talk::with(site(&BTreeMap::from([("/large".to_string(), file("a/b", &bytes))])))
}

#[test]
fn a_large_file_is_queued_as_space_allows() {
    let mut talk = large();
    talk.world.room = RESPONSE_HEAD_BYTES_MAX + 1000;
    let text = request(&["GET /large HTTP/1.1"]) + &request(&["GET /none HTTP/1.1"]);
    talk.arrive(text.as_bytes());
    assert_eq!(talk.session.waits_for(), HttpWaitsFor::SendRoom);
    let mut turns = 0;
    while talk.session.waits_for() == HttpWaitsFor::SendRoom {
        talk.world.room += 5000;
        talk.arrive(b"");
        turns += 1;
    }
    assert!(turns >= LARGE / 5000);
    let responses = talk.responses(|_| false);
    assert_eq!((responses[0].body.len(), responses[1].status), (LARGE, 404));
}

#[test]
fn a_response_head_is_queued_with_the_start_of_its_file() {
    let mut talk = large();
    talk.world.room = RESPONSE_HEAD_BYTES_MAX + 1000;
    talk.arrive(request(&["GET /large HTTP/1.1"]).as_bytes());
    assert!(talk.world.uncopied > 0);
    assert_eq!(
        talk.world.queued, 2,
        "the head with the start of the file, and an attempt without space"
    );
    talk.world.room += 3 * LARGE;
    talk.arrive(b"");
    assert_eq!(talk.world.queued, 3);
    talk.arrive(request(&["GET /large HTTP/1.1"]).as_bytes());
    assert_eq!(talk.world.queued, 4, "the head with the whole file");
}

#[test]
fn a_multipart_response_is_queued_as_space_allows() {
    let mut talk = large();
    talk.world.room = RESPONSE_HEAD_BYTES_MAX;
    talk.arrive(
        request(&["GET /large HTTP/1.1", "Range: bytes=0-99999,200000-299999,150000-150009"])
            .as_bytes(),
    );
    while talk.session.waits_for() == HttpWaitsFor::SendRoom {
        talk.world.room += 3000;
        talk.arrive(b"");
    }
    let responses = talk.responses(|_| false);
    assert_eq!(responses.len(), 1);
    assert!(responses[0].body.len() > 200_010);
}

#[test]
fn no_response_begins_without_space_for_its_head() {
    let mut talk = Talk::new();
    talk.world.room = RESPONSE_HEAD_BYTES_MAX - 1;
    talk.arrive(request(&["GET / HTTP/1.1"]).as_bytes());
    assert_eq!((talk.session.waits_for(), talk.world.output.len()), (HttpWaitsFor::SendRoom, 0));
    talk.world.room = RESPONSE_HEAD_BYTES_MAX;
    talk.arrive(b"");
    assert_eq!(talk.responses(|_| false)[0].status, 200);
}

#[test]
fn slow_bytes_do_not_extend_the_deadline_of_a_head() {
    let mut talk = Talk::new();
    assert_eq!(talk.world.deadline, Some(Micros::from_secs(60)));
    for byte in b"GET / HTTP/1.1\r\nX: aaaaaaaaaaaa" {
        talk.world.deadline = None;
        talk.arrive(&[*byte]);
        let expected = (*byte == b'G').then_some(Micros::from_secs(30));
        if *byte == b'G' {
            assert_eq!(talk.world.deadline, expected);
            break;
        }
    }
    for byte in b"ET / HTTP/1.1\r\nX: aaaaaaaaaaaa" {
        talk.world.deadline = None;
        talk.arrive(&[*byte]);
        assert_eq!(talk.world.deadline, None, "the deadline is not set again");
    }
    talk.session.deadline_expired(&mut talk.world);
    assert_eq!(talk.responses(|_| false)[0].status, 408);
    assert!(talk.world.closed);
}

#[test]
fn an_idle_connection_is_closed_without_a_response() {
    let mut talk = Talk::new();
    talk.ask(&["GET / HTTP/1.1"]);
    assert_eq!(talk.world.deadline, Some(Micros::from_secs(60)));
    talk.session.deadline_expired(&mut talk.world);
    assert!(talk.world.closed && talk.world.output.is_empty());
}

#[test]
fn a_stopping_server_closes_only_idle_connections() {
    let mut idle = Talk::new();
    idle.session.stopping(&mut idle.world);
    assert!(idle.world.closed);

    let mut busy = large();
    busy.world.room = RESPONSE_HEAD_BYTES_MAX;
    busy.arrive(request(&["GET /large HTTP/1.1"]).as_bytes());
    busy.session.stopping(&mut busy.world);
    assert!(!busy.world.closed);
    busy.world.room = 1 << 20;
    busy.arrive(b"");
    assert_eq!(busy.responses(|_| false)[0].body.len(), LARGE);
    assert!(busy.world.closed);
}

#[test]
fn a_half_closed_client_still_gets_its_response() {
    let mut talk = large();
    talk.arrive(request(&["GET /large HTTP/1.1"]).as_bytes());
    talk.session.peer_closed(&mut talk.world);
    assert_eq!(talk.responses(|_| false)[0].body.len(), LARGE);
    assert!(talk.world.closed);
}
