//! Tests that clients are served over paths with a reduced MTU that drop longer packets silently
//! (RFC 2923).

#![allow(clippy::expect_used, reason = "a test may fail")]

use std::sync::Arc;

use machine::Micros;

use super::room::pages::{large, site};
use super::room::tls_stream::{BOTH, client_of};
use super::room::{Room, usual_sizes};

const LARGE_BYTES: usize = 20_000;

/// The longest frame on a path with a reduced MTU: a packet of 576 bytes.
const FRAME_BYTES: usize = 14 + 576;

/// The limit of a path that drops everything.
const NOTHING: usize = 0;

#[test]
fn a_black_hole_path_completes_tls_and_a_page() {
    for (seed, version) in (0..).zip(BOTH) {
        // If the SYN-ACK was lost, the engine does not know the round-trip time, and each timeout
        // is longer.
        for is_answer_lost in [false, true] {
            let (mut room, trust) = Room::with_tls(seed, site(LARGE_BYTES), usual_sizes());
            let client = Arc::new(client_of(&trust, &["http/1.1"], &[version]));
            let first = room.connect(80);
            room.until("both know each other's addresses", |room| {
                room.hosts[0].has_answered(first.connection)
            });
            room.part(first);
            let begun = room.machine.now;
            room.carries = if is_answer_lost { NOTHING } else { FRAME_BYTES };
            let mut tls_stream = room.connect_tls(443, &client);
            room.pass(Micros::from_millis(500));
            room.carries = FRAME_BYTES;
            room.complete_handshake(&mut tls_stream);
            let taken = room.machine.now.since(begun);
            assert!(
                tls_stream.complaint.is_none() && taken > Micros::from_secs(2),
                "{taken:?}: the path dropped no long frame"
            );
            room.send_tls(&mut tls_stream, b"GET /large HTTP/1.1\r\nHost: web.test\r\n\r\n");
            let page = large(LARGE_BYTES);
            room.until_tls(&mut tls_stream, "the page comes", |tls_stream| {
                tls_stream.heard.ends_with(&page)
            });
            assert_eq!(room.engines.handshakes().late, 0);
            room.finish_tls(tls_stream);
        }
    }
}

#[test]
fn an_outage_of_the_path_does_not_use_up_client_time() {
    for (seed, halves) in (20..).zip(0..14) {
        let (mut room, trust) = Room::with_tls(seed, site(LARGE_BYTES), usual_sizes());
        let client = Arc::new(client_of(&trust, &["http/1.1"], BOTH));
        let mut tls_stream = room.connect_tls(443, &client);
        room.until("the connection is open", |room| {
            room.hosts[0].has_answered(tls_stream.talk.connection)
        });
        room.pass(Micros::from_secs(3));
        room.exchange(&mut tls_stream);
        room.carries = NOTHING;
        room.pass(Micros::from_millis(halves * 500));
        room.carries = usize::MAX;
        // The client's program is slow, although its TCP is not.
        room.pass(Micros::from_secs(6));
        room.complete_handshake(&mut tls_stream);
        assert!(tls_stream.complaint.is_none(), "{halves}");
        assert_eq!(room.engines.handshakes().late, 0, "{halves}");
        room.abort(&tls_stream.talk);
    }
}

#[test]
fn an_unacknowledged_handshake_ends_after_a_minute() {
    let (mut room, trust) = Room::with_tls(3, site(LARGE_BYTES), usual_sizes());
    let client = Arc::new(client_of(&trust, &["http/1.1"], BOTH));
    let mut tls_stream = room.connect_tls(443, &client);
    room.until("the connection is open", |room| {
        room.hosts[0].has_answered(tls_stream.talk.connection)
    });
    room.exchange(&mut tls_stream);
    room.carries = NOTHING;
    room.pass(Micros::from_secs(55));
    assert_eq!(
        room.engines.in_use().handshakes,
        1,
        "the handshake waits for the client's acknowledgment"
    );
    room.pass(Micros::from_secs(6));
    assert_eq!(room.engines.in_use().handshakes, 0);
    assert_eq!(room.engines.handshakes().late, 1, "{}", room.engines.handshakes());
    room.abort(&tls_stream.talk);
}
