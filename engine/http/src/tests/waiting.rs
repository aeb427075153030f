//! Room that runs out, and time that does.

use super::world::{Talk, file, request, site};
use crate::{RESPONSE_HEAD_BYTES_MAX, WaitsFor};
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
fn a_large_file_is_queued_as_room_comes_and_the_next_request_waits_its_turn() {
    let mut talk = large();
    talk.world.room = RESPONSE_HEAD_BYTES_MAX + 1000;
    let text = request(&["GET /large HTTP/1.1"]) + &request(&["GET /none HTTP/1.1"]);
    talk.arrive(text.as_bytes());
    assert_eq!(talk.session.waits_for(), WaitsFor::SendRoom);
    let mut turns = 0;
    while talk.session.waits_for() == WaitsFor::SendRoom {
        talk.world.room += 5000;
        talk.arrive(b"");
        turns += 1;
    }
    assert!(turns >= LARGE / 5000);
    let responses = talk.responses(|_| false);
    assert_eq!((responses[0].body.len(), responses[1].status), (LARGE, 404));
}

#[test]
fn a_response_and_the_front_of_its_file_are_queued_at_once() {
    let mut talk = large();
    talk.world.room = RESPONSE_HEAD_BYTES_MAX + 1000;
    talk.arrive(request(&["GET /large HTTP/1.1"]).as_bytes());
    assert!(talk.world.uncopied > 0);
    assert_eq!(talk.world.queued, 2, "head and front; and what there was no room for");
    talk.world.room += 3 * LARGE;
    talk.arrive(b"");
    assert_eq!(talk.world.queued, 3);
    talk.arrive(request(&["GET /large HTTP/1.1"]).as_bytes());
    assert_eq!(talk.world.queued, 4, "head and all");
}

#[test]
fn parts_are_queued_as_room_comes() {
    let mut talk = large();
    talk.world.room = RESPONSE_HEAD_BYTES_MAX;
    talk.arrive(
        request(&["GET /large HTTP/1.1", "Range: bytes=0-99999,200000-299999,150000-150009"])
            .as_bytes(),
    );
    while talk.session.waits_for() == WaitsFor::SendRoom {
        talk.world.room += 3000;
        talk.arrive(b"");
    }
    let responses = talk.responses(|_| false);
    assert_eq!(responses.len(), 1);
    assert!(responses[0].body.len() > 200_010);
}

#[test]
fn no_response_is_begun_without_room_for_its_head() {
    let mut talk = Talk::new();
    talk.world.room = RESPONSE_HEAD_BYTES_MAX - 1;
    talk.arrive(request(&["GET / HTTP/1.1"]).as_bytes());
    assert_eq!((talk.session.waits_for(), talk.world.said.len()), (WaitsFor::SendRoom, 0));
    talk.world.room = RESPONSE_HEAD_BYTES_MAX;
    talk.arrive(b"");
    assert_eq!(talk.responses(|_| false)[0].status, 200);
}

#[test]
fn a_trickle_does_not_prolong_the_time_for_a_head() {
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
        assert_eq!(talk.world.deadline, None, "nothing new is set");
    }
    talk.session.deadline_expired(&mut talk.world);
    assert_eq!(talk.responses(|_| false)[0].status, 408);
    assert!(talk.world.closed);
}

#[test]
fn an_idle_connection_is_closed_without_a_word() {
    let mut talk = Talk::new();
    talk.ask(&["GET / HTTP/1.1"]);
    assert_eq!(talk.world.deadline, Some(Micros::from_secs(60)));
    talk.session.deadline_expired(&mut talk.world);
    assert!(talk.world.closed && talk.world.said.is_empty());
}

#[test]
fn a_server_that_stops_ends_idle_connections_and_answers_what_was_asked() {
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
fn a_client_that_sends_no_more_gets_all_that_it_asked_for() {
    let mut talk = large();
    talk.arrive(request(&["GET /large HTTP/1.1"]).as_bytes());
    talk.session.peer_closed(&mut talk.world);
    assert_eq!(talk.responses(|_| false)[0].body.len(), LARGE);
    assert!(talk.world.closed);
}
