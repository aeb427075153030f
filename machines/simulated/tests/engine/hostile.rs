//! Tests with data that is not TLS or was changed in transit. The server sends an alert or closes
//! the connection, never sends data, and frees all resources (RFC 8446 sections 5.1 and 6).

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use std::sync::Arc;

use http::Site;
use machine::Micros;
use rustls::{ClientConfig, SupportedProtocolVersion};
use server::InUse;

use super::room::pages::site;
use super::room::tls_stream::{BOTH, TlsStream, Trust, client_of};
use super::room::{Room, Talk, usual_sizes};

/// Alert descriptions.
const UNEXPECTED_MESSAGE: u8 = 10;
const RECORD_OVERFLOW: u8 = 22;
const PROTOCOL_VERSION: u8 = 70;

/// A time that is longer than any handshake may take.
const LONG: Micros = Micros::from_secs(12);

fn serving(seed: u64) -> (Room, Trust) {
    Room::with_tls(seed, site(1000), usual_sizes())
}

fn of_version(trust: &Trust, version: &'static SupportedProtocolVersion) -> Arc<ClientConfig> {
    Arc::new(client_of(trust, &["http/1.1"], &[version]))
}

/// The bytes that the client's TLS wants to send now.
fn flight(tls_stream: &mut TlsStream) -> Vec<u8> {
    let mut flight = Vec::new();
    while tls_stream.tls.wants_write() {
        tls_stream.tls.write_tls(&mut flight).expect("I/O in memory cannot fail");
    }
    flight
}

/// Sends the ClientHello, receives the server's flight, and returns the client's next flight.
fn second_flight(room: &mut Room, tls_stream: &mut TlsStream) -> Vec<u8> {
    let hello = flight(tls_stream);
    room.send(&tls_stream.talk, &hello);
    room.until("the server has spoken", |room| {
        room.listen(&mut tls_stream.talk);
        let heard = std::mem::take(&mut tls_stream.talk.heard);
        let mut rest = heard.as_slice();
        while !rest.is_empty() {
            chance::seed(1);
            tls_stream.tls.read_tls(&mut rest).expect("I/O in memory cannot fail");
            tls_stream.tls.process_new_packets().expect("the server's TLS is right");
        }
        let is_old = tls_stream.tls.protocol_version() == Some(rustls::ProtocolVersion::TLSv1_2);
        !tls_stream.tls.is_handshaking() || is_old && tls_stream.tls.wants_write()
    });
    flight(tls_stream)
}

/// A connection with a finished handshake.
fn established(room: &mut Room, client: &Arc<ClientConfig>) -> TlsStream {
    let mut tls_stream = room.connect_tls(443, client);
    room.complete_handshake(&mut tls_stream);
    room.pass(Micros::from_millis(5));
    room.exchange(&mut tls_stream);
    tls_stream
}

/// The bytes of an encrypted request, in one record.
fn request(tls_stream: &mut TlsStream) -> Vec<u8> {
    use std::io::Write;
    tls_stream
        .tls
        .writer()
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .expect("I/O in memory cannot fail");
    flight(tls_stream)
}

/// Checks that the server answers these bytes only with a plaintext alert, and closes the
/// connection at once.
fn expect_alert(room: &mut Room, port: u16, bytes: &[u8], alert: u8) {
    let mut talk = room.connect(port);
    let begun = room.machine.now;
    room.send(&talk, bytes);
    room.until("the server hangs up", |room| room.has_hung_up(&mut talk));
    assert_eq!(talk.heard, [21, 3, 3, 0, 2, 2, alert], "{:?}", &bytes[..bytes.len().min(20)]);
    assert!(room.machine.now.since(begun) < Micros::from_secs(1), "the alert comes at once");
    room.part(talk);
}

/// A ClientHello of TLS 1.1 (`[3, 2]`) or earlier.
fn old_hello(version: [u8; 2]) -> Vec<u8> {
    let mut hello = vec![version[0], version[1]];
    hello.extend_from_slice(&[0x11; 32]);
    hello.extend_from_slice(&[0, 0, 2, 0xc0, 0x2b, 1, 0, 0, 8, 0, 13, 0, 4, 0, 2, 4, 3]);
    let message = [&[1, 0, 0, hello.len() as u8][..], &hello].concat();
    [&[22, 3, 1, 0, message.len() as u8][..], &message].concat()
}

#[test]
fn data_that_is_not_tls_gets_an_alert_on_every_tls_port() {
    let (mut room, _) = serving(1);
    // An SSL 2 hello begins with two bytes of length, with the first bit set. Its kind and version
    // follow.
    let ssl2 = [&[0x80, 0x2e, 1, 0, 2, 0, 0x15, 0, 0, 0, 0x10][..], &[0x33; 37]].concat();
    for port in [443, 465, 995] {
        expect_alert(
            &mut room,
            port,
            b"GET / HTTP/1.1\r\nHost: mail.barepost.test\r\n\r\n",
            UNEXPECTED_MESSAGE,
        );
        expect_alert(&mut room, port, b"EHLO client.test\r\n", UNEXPECTED_MESSAGE);
        expect_alert(&mut room, port, &ssl2, UNEXPECTED_MESSAGE);
        expect_alert(&mut room, port, &[0; 64], UNEXPECTED_MESSAGE);
        expect_alert(&mut room, port, &[0xff; 64], UNEXPECTED_MESSAGE);
        // The records have a version that never existed, obsolete versions, and lengths that are
        // too large.
        expect_alert(&mut room, port, &[22, 4, 1, 0, 4, 1, 0, 0, 0], PROTOCOL_VERSION);
        expect_alert(&mut room, port, &old_hello([3, 2]), PROTOCOL_VERSION);
        expect_alert(&mut room, port, &old_hello([3, 0]), PROTOCOL_VERSION);
        expect_alert(&mut room, port, &[22, 3, 1, 0xff, 0xff, 1], RECORD_OVERFLOW);
        expect_alert(&mut room, port, &[22, 3, 3, 0x48, 1, 1], RECORD_OVERFLOW);
        // The record has application data before the handshake.
        expect_alert(&mut room, port, &[23, 3, 3, 0, 1, 0], UNEXPECTED_MESSAGE);
    }
    let outcomes = room.engines.handshakes();
    assert_eq!(
        (outcomes.failed(), outcomes.no_common_ground, outcomes.established),
        (33, 9, 0),
        "{outcomes}"
    );
}

#[test]
fn floods_of_empty_records_are_rejected() {
    let (mut room, _) = serving(2);
    // Before the handshake no record may be empty (RFC 8446 section 5.1). The tests of the crate
    // `tls` cover encrypted records.
    let floods = [
        [22, 3, 1, 0, 0].repeat(400),
        [20, 3, 3, 0, 1, 1].repeat(400),
        [23, 3, 3, 0, 0].repeat(400),
    ];
    for flood in floods {
        let mut talk = room.connect(443);
        room.send(&talk, &flood);
        room.until("the server hangs up", |room| room.has_hung_up(&mut talk));
        assert_eq!(talk.heard.get(..6), Some(&[21, 3, 3, 0, 2, 2][..]), "{:?}", &flood[..6]);
        room.part(talk);
    }
}

/// A client that has sent a changed record, and a description of the change.
struct Harmed {
    tls_stream: TlsStream,
    what: String,
}

/// Checks that each of these clients gets an alert or nothing, and no data. The server closes the
/// connections and frees all resources.
fn expect_refusals(room: &mut Room, harmed: Vec<Harmed>) {
    room.pass(LONG);
    for Harmed { mut tls_stream, what } in harmed {
        assert!(room.has_hung_up(&mut tls_stream.talk), "{what}: the connection is still open");
        let mut rest = tls_stream.talk.heard.as_slice();
        while !rest.is_empty() {
            let is_refused = tls_stream.tls.read_tls(&mut rest).is_err()
                || tls_stream.tls.process_new_packets().is_err();
            let plaintext = tls_stream
                .tls
                .process_new_packets()
                .map_or(0, |state| state.plaintext_bytes_to_read());
            assert_eq!(plaintext, 0, "{what} was answered");
            if is_refused {
                break;
            }
        }
        room.abort(&tls_stream.talk);
        room.hosts[tls_stream.talk.host].forget(tls_stream.talk.connection);
    }
    room.until("nothing is in use", |room| room.engines.in_use() == InUse::default());
}

/// Whether a change at `place` of a flight has no effect, because the byte is part of the version
/// in a record header (RFC 8446 section 5.1).
fn has_no_effect(flight: &[u8], place: usize) -> bool {
    let mut start = 0;
    while let Some([_, _, _, high, low]) = flight.get(start..start + 5) {
        if place == start + 2 {
            return true;
        }
        start += 5 + usize::from(u16::from_be_bytes([*high, *low]));
    }
    false
}

#[test]
fn a_handshake_with_any_changed_byte_fails() {
    for (seed, version) in (3..).zip(BOTH) {
        let (mut room, trust) = serving(seed);
        let client = of_version(&trust, version);
        for is_second in [false, true] {
            let (mut place, mut harmed, mut is_over) = (0, Vec::new(), false);
            while !is_over {
                // Only a few clients connect at a time, because the server has no capacity for more
                // handshakes.
                while harmed.len() < 24 && !is_over {
                    let mut tls_stream = room.connect_tls(443, &client);
                    let mut bytes = if is_second {
                        second_flight(&mut room, &mut tls_stream)
                    } else {
                        flight(&mut tls_stream)
                    };
                    is_over = place >= bytes.len();
                    if is_over || has_no_effect(&bytes, place) {
                        room.abort(&tls_stream.talk);
                    } else {
                        bytes[place] ^= 0x55;
                        room.send(&tls_stream.talk, &bytes);
                        harmed.push(Harmed {
                            tls_stream,
                            what: format!("byte {place} of flight {is_second}"),
                        });
                    }
                    place += 1;
                }
                expect_refusals(&mut room, std::mem::take(&mut harmed));
            }
            assert!(place > 50, "{place} bytes");
        }
        assert_eq!(room.engines.handshakes().established, 0, "{}", room.engines.handshakes());
        assert!(room.engines.handshakes().broken > 100, "{}", room.engines.handshakes());
    }
}

#[test]
fn a_record_with_any_changed_byte_ends_only_its_connection() {
    for (seed, version) in (5..).zip(BOTH) {
        let (mut room, trust) = serving(seed);
        let client = of_version(&trust, version);
        let mut kept = established(&mut room, &client);
        room.pass(Micros::from_secs(1));
        let before = room.engines.in_use();
        for place in 0.. {
            let mut tls_stream = established(&mut room, &client);
            let mut record = request(&mut tls_stream);
            let Some(byte) = record.get_mut(place) else { break };
            *byte ^= 0x55;
            // The server must not accept the following records either, although they are unchanged.
            let next = request(&mut tls_stream);
            room.send(&tls_stream.talk, &[record.clone(), next.repeat(20)].concat());
            let is_first = place < 5;
            room.until("the connection ends", |room| {
                room.exchange(&mut tls_stream);
                tls_stream.complaint.is_some() || room.has_hung_up(&mut tls_stream.talk)
            });
            assert!(tls_stream.heard.is_empty(), "byte {place} was answered");
            assert!(
                is_first || tls_stream.complaint.is_some(),
                "byte {place}: the client gets an alert"
            );
            room.abort(&tls_stream.talk);
            room.until("the server holds nothing for the client", |room| {
                room.engines.in_use() == before
            });
        }
        let record = request(&mut kept);
        room.send(&kept.talk, &record);
        room.until_tls(&mut kept, "the page is there", |kept| kept.heard.ends_with(b"Index"));
        room.finish_tls(kept);
    }
}

#[test]
fn a_client_that_leaves_mid_record_leaves_nothing_behind() {
    let (mut room, trust) = Room::with_tls(7, Site::default(), usual_sizes());
    for version in BOTH {
        let client = of_version(&trust, version);
        let mut tls_stream = room.connect_tls(443, &client);
        let hello = flight(&mut tls_stream);
        room.abort(&tls_stream.talk);
        for length in (1..hello.len()).step_by(7) {
            let talk: Talk = room.connect(443);
            room.send(&talk, &hello[..length]);
            room.part(talk);
        }
        let length = {
            let mut tls_stream = room.connect_tls(443, &client);
            let finished = second_flight(&mut room, &mut tls_stream).len();
            room.part(tls_stream.talk);
            finished
        };
        for cut in (1..length).step_by(7) {
            let mut tls_stream = room.connect_tls(443, &client);
            let finished = second_flight(&mut room, &mut tls_stream);
            room.send(&tls_stream.talk, &finished[..cut]);
            room.part(tls_stream.talk);
        }
        for cut in (1..40).step_by(3) {
            let mut tls_stream = established(&mut room, &client);
            let record = request(&mut tls_stream);
            room.send(&tls_stream.talk, &record[..cut]);
            room.part(tls_stream.talk);
        }
    }
}

#[test]
fn handshake_results_are_counted_and_printed_at_the_stop() {
    let (mut room, trust) = serving(8);
    let client = of_version(&trust, &rustls::version::TLS13);
    for _ in 0..2 {
        let tls_stream = established(&mut room, &client);
        room.finish_tls(tls_stream);
    }
    expect_alert(&mut room, 443, b"GET / HTTP/1.1\r\n\r\n", UNEXPECTED_MESSAGE);
    expect_alert(&mut room, 443, &old_hello([3, 1]), PROTOCOL_VERSION);
    // One client does not trust the certificate (unknown_ca), one disconnects, and one is slow.
    let mut doubting = room.connect_tls(443, &of_version(&trust, &rustls::version::TLS12));
    second_flight(&mut room, &mut doubting);
    room.send(&doubting.talk, &[21, 3, 3, 0, 2, 2, 48]);
    room.until("the server has closed the connection", |room| room.has_hung_up(&mut doubting.talk));
    room.part(doubting.talk);
    for stays in [false, true] {
        let talk = room.connect(443);
        room.send(&talk, &[22, 3, 1]);
        room.until("the handshake has begun", |room| room.engines.in_use().handshakes == 1);
        if stays {
            room.pass(LONG);
        }
        room.part(talk);
    }
    let outcomes = room.engines.handshakes();
    let server::Handshakes {
        established,
        resumed,
        turned_away,
        late,
        no_common_ground,
        broken,
        given_up,
    } = outcomes;
    assert_eq!((established, resumed, turned_away), (2, 1, 0), "{outcomes}");
    assert_eq!((late, no_common_ground, broken, given_up), (1, 1, 1, 2), "{outcomes}");
    room.machine.stop = true;
    room.until("the machine has stopped", |room| room.ended.is_some());
    assert!(room.console_says(" failed: "), "{:?}", room.machine.console);
}
