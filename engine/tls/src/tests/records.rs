//! Records after the handshake: the place of plaintext, closing, and key updates.

use alloc::vec;
use alloc::vec::Vec;

use super::world::{BOTH, house_of, plain_house, seed};
use crate::{Connection, Event, SEALED_OVERHEAD_MAX, Text};

#[test]
fn plaintext_is_in_place_and_stays_until_it_is_taken() {
    seed(50);
    for version in BOTH {
        let mut wire = house_of(version).connect("mail.test");
        wire.established();
        wire.client_says(b"NOOP\r\nQUIT\r\n");
        let first = wire.client_bytes();
        wire.client_says(b"more");
        let second = wire.client_bytes();
        let mut stream = [first.as_slice(), &second].concat();
        let mut out = [0; 64];

        let progress = wire.server.receive(&mut stream, &mut out);
        assert_eq!((progress.event, progress.written), (Event::Plaintext(12), 0));
        let at = progress.done;
        assert_eq!(&stream[at..at + 12], b"NOOP\r\nQUIT\r\n");
        assert_eq!(&stream[first.len()..], second, "the next record is untouched");

        let mut rest = stream.split_off(at);
        assert_eq!(wire.server.taken(0), 0);
        assert_eq!(wire.server.taken(6), 6);
        rest.drain(..6);
        let progress = wire.server.receive(&mut rest, &mut out);
        assert_eq!((progress.done, progress.event), (0, Event::Plaintext(6)));
        assert_eq!(&rest[..6], b"QUIT\r\n");
        assert_eq!(
            wire.server.taken(6),
            rest.len() - second.len(),
            "the last byte also releases the end of the record"
        );
        let mut rest = rest.split_off(rest.len() - second.len());
        assert_eq!(wire.server.receive(&mut rest, &mut out).event, Event::Plaintext(4));
    }
}

#[test]
fn a_session_may_take_one_byte_at_a_time() {
    seed(51);
    for version in BOTH {
        let mut wire = house_of(version).connect("mail.test");
        wire.bite = 1;
        wire.client_says(&[b'x'; 700]);
        wire.client_says(b"end");
        wire.settle(3).unwrap();
        assert_eq!(wire.heard.len(), 703);
        assert!(wire.heard.ends_with(b"xend"));
    }
}

#[test]
fn plaintext_in_two_places_becomes_one_record() {
    seed(59);
    for version in BOTH {
        let mut wire = house_of(version).connect("mail.test");
        wire.established();
        let text = Text { first: b"head, ", second: b"and the bytes after" };
        let mut expected = Vec::new();
        for room in 1..=text.len() {
            let mut block = vec![0; room + SEALED_OVERHEAD_MAX];
            let (mut taken, mut records) = (0, 0);
            while taken < text.len() {
                let sealed = wire.server.seal(text.behind(taken), &mut block);
                assert!(sealed.taken > 0, "there is room");
                wire.to_client.extend_from_slice(&block[..sealed.written]);
                (taken, records) = (taken + sealed.taken, records + 1);
            }
            assert!(records <= text.len().div_ceil(room), "{records} records for room of {room}");
            expected.extend_from_slice(b"head, and the bytes after");
        }
        wire.settle(usize::MAX).unwrap();
        assert_eq!(wire.client_heard().0, expected);
    }
}

#[test]
fn a_record_fits_into_its_output_buffer() {
    seed(52);
    for version in BOTH {
        let mut wire = house_of(version).connect("mail.test");
        wire.established();
        let text: Vec<u8> = (0..10_000_u32).map(|number| number as u8).collect();
        for room in 0..=SEALED_OVERHEAD_MAX + 1 {
            let mut block = vec![0; room];
            let sealed = wire.server.seal(text.as_slice(), &mut block);
            assert!(
                sealed.written <= room && (sealed.taken == 0) == (sealed.written == 0),
                "{room}: {sealed:?}"
            );
            assert!(
                room <= SEALED_OVERHEAD_MAX || sealed.taken > 0,
                "{room} bytes are room for one"
            );
            wire.to_client.extend_from_slice(&block[..sealed.written]);
        }
        wire.settle(usize::MAX).unwrap();
        wire.client_heard();
        let records = wire.server_says(&text, 4096);
        assert_eq!(records, 3);
        assert!(wire.to_client.len() <= text.len() + records * SEALED_OVERHEAD_MAX);
        wire.settle(usize::MAX).unwrap();
        assert_eq!(wire.client_heard().0, text);
        // A record has a maximum length, however large the buffer is.
        let sealed = wire.server.seal(&[0; 20_000], &mut vec![0; 30_000]);
        assert_eq!(sealed.taken, 16_384);
    }
}

#[test]
fn each_side_may_close_while_the_other_continues() {
    seed(53);
    for version in BOTH {
        // First case: the client closes first.
        let mut wire = house_of(version).connect("mail.test");
        wire.established();
        wire.client_says(b"QUIT\r\n");
        wire.client.send_close_notify();
        wire.settle(usize::MAX).unwrap();
        assert_eq!(wire.heard, b"QUIT\r\n");
        assert_eq!(wire.events.last(), Some(&Event::PeerClosed));
        wire.server_says(b"221 bye\r\n", 512);
        wire.arrive(b"later bytes are ignored");
        close(&mut wire.server, &mut wire.to_client);
        wire.settle(usize::MAX).unwrap();
        assert_eq!(wire.client_heard(), (b"221 bye\r\n".to_vec(), true));
        assert_eq!((wire.heard.as_slice(), wire.stream.len()), (b"QUIT\r\n".as_slice(), 0));

        // Second case: the server closes first.
        let mut wire = house_of(version).connect("mail.test");
        wire.established();
        wire.server_says(b"421 no\r\n", 512);
        close(&mut wire.server, &mut wire.to_client);
        let sealed = wire.server.seal(b"too late", &mut [0; 512]);
        assert_eq!((sealed.taken, sealed.written), (0, 0), "nothing follows a close");
        assert_eq!(wire.server.close(&mut [0; 64]), 0, "close_notify is sent once");
        wire.client_says(b"still here");
        wire.settle(usize::MAX).unwrap();
        assert_eq!(wire.client_heard(), (b"421 no\r\n".to_vec(), true));
        assert_eq!(wire.heard, b"still here");
    }
}

fn close(server: &mut Connection, to_client: &mut Vec<u8>) {
    let mut block = [0; 64];
    assert_eq!(server.close(&mut block[..5]), 0, "without space nothing is written");
    let written = server.close(&mut block);
    assert!(written > 0);
    to_client.extend_from_slice(&block[..written]);
}

#[test]
fn key_updates_work_in_both_directions() {
    seed(54);
    let mut wire = plain_house().connect("mail.test");
    wire.established();
    for round in 0..100_u8 {
        // Asks the server for new keys too, as rustls does.
        wire.client.refresh_traffic_keys().unwrap();
        wire.client_says(&[round]);
        wire.settle(usize::MAX).unwrap();
        wire.server_says(&[round; 3], 512);
        wire.settle(usize::MAX).unwrap();
        assert_eq!(wire.client_heard(), (vec![round; 3], false));
    }
    assert_eq!(wire.heard, (0..100).collect::<Vec<u8>>());
}

#[test]
fn a_key_is_updated_before_its_limit() {
    seed(55);
    let mut wire = house_of(&rustls::version::TLS13).connect("mail.test");
    wire.established();
    for left in [3, 2, 1] {
        wire.server.leave(left);
        for word in [b"one", b"two", b"six"] {
            wire.server_says(word, 512);
        }
        wire.settle(usize::MAX).unwrap();
        assert_eq!(wire.client_heard(), (b"onetwosix".to_vec(), false));
    }
    wire.server.leave(1);
    let sealed = wire.server.seal(b"word", &mut [0; 20]);
    assert_eq!(
        (sealed.taken, sealed.written),
        (0, 0),
        "without space for a key update nothing is encrypted"
    );
    wire.server_says(b"word", 512);
    wire.settle(usize::MAX).unwrap();
    assert_eq!(wire.client_heard().0, b"word");
}

#[test]
fn tls_1_2_ends_a_connection_before_the_key_limit() {
    seed(56);
    let mut wire = house_of(&rustls::version::TLS12).connect("mail.test");
    wire.established();
    wire.server.leave(2);
    wire.server_says(b"last", 512);
    let mut block = [0; 512];
    let sealed = wire.server.seal(b"one too many", &mut block);
    assert_eq!(sealed.taken, 0);
    wire.to_client.extend_from_slice(&block[..sealed.written]);
    wire.settle(usize::MAX).unwrap();
    assert_eq!(wire.client_heard(), (b"last".to_vec(), true));
    let sealed = wire.server.seal(b"one too many", &mut block);
    assert_eq!((sealed.taken, sealed.written), (0, 0));
}

#[test]
fn a_line_may_span_several_records() {
    seed(57);
    for version in BOTH {
        for cut in [usize::MAX, 1, 9] {
            let mut wire = house_of(version).connect("mail.test");
            wire.takes_lines = true;
            wire.established();
            let mut said = Vec::new();
            for record in
                ["EH", "L", "O a\r\nMAIL FROM:", "<b@c>", "\r", "\n", "one\r\ntwo\r\nthr", "ee\r\n"]
            {
                wire.client_says(record.as_bytes());
                said.extend_from_slice(&wire.client_bytes());
                if record == "<b@c>" && version.version == rustls::ProtocolVersion::TLSv1_3 {
                    wire.client.refresh_traffic_keys().unwrap();
                }
            }
            for part in said.chunks(cut.min(said.len())) {
                wire.arrive(part);
            }
            assert_eq!(
                wire.heard, b"EHLO a\r\nMAIL FROM:<b@c>\r\none\r\ntwo\r\nthree\r\n",
                "cut to {cut}"
            );
            assert!(wire.stream.is_empty());
            wire.settle(usize::MAX).unwrap();
        }
    }
}

#[test]
fn an_incomplete_line_stays_available_after_close() {
    seed(58);
    for version in BOTH {
        let mut wire = house_of(version).connect("mail.test");
        wire.takes_lines = true;
        wire.established();
        wire.client_says(b"QUI");
        let mut said = wire.client_bytes();
        wire.client_says(b"T");
        wire.client.send_close_notify();
        said.extend_from_slice(&wire.client_bytes());
        wire.arrive(&said);
        assert_eq!(wire.events.last(), Some(&Event::PeerClosed));
        assert_eq!(wire.stream, b"QUIT", "and nothing else");
        let progress = wire.server.receive(&mut wire.stream, &mut []);
        assert_eq!((progress.done, progress.event), (0, Event::Plaintext(4)));
        assert_eq!(wire.server.taken(4), 4);
        assert_eq!(
            wire.server.receive(&mut [1, 2, 3], &mut []).done,
            3,
            "bytes after a close are dropped"
        );
    }
}

#[test]
fn a_broken_record_drops_the_plaintext_before_it() {
    seed(59);
    for version in BOTH {
        let mut wire = house_of(version).connect("mail.test");
        wire.takes_lines = true;
        wire.established();
        wire.client_says(b"DEL");
        let mut said = wire.client_bytes();
        wire.client_says(b"E 1\r\n");
        said.extend_from_slice(&wire.client_bytes());
        *said.last_mut().unwrap() ^= 1;
        wire.arrive(&said);
        assert!(wire.failure().is_some());
        assert_eq!((wire.heard.len(), wire.stream.len()), (0, 0));
    }
}

#[test]
fn wanted_skips_calls_that_make_no_progress() {
    seed(58);
    for version in BOTH {
        let mut wire = house_of(version).connect("mail.test");
        wire.established();
        wire.client_says(b"EHLO a\r\nEHL");
        let first = wire.client_bytes();
        wire.client_says(&[b'x'; 9000]);
        let second = wire.client_bytes();
        let mut stream = [first.as_slice(), &second].concat();
        let mut out = [0; 64];
        assert_eq!(wire.server.receive(&mut stream[..3], &mut out).event, Event::Bytes);
        assert_eq!(wire.server.wanted(), 5);
        assert_eq!(wire.server.receive(&mut stream[..5], &mut out).event, Event::Bytes);
        assert_eq!(wire.server.wanted(), first.len());
        let progress = wire.server.receive(&mut stream[..first.len()], &mut out);
        assert_eq!(progress.event, Event::Plaintext(11));
        let done = progress.done + wire.server.taken(8);
        let mut stream = stream.split_off(done);
        assert_eq!((wire.server.held(), &stream[..3]), (3, b"EHL".as_slice()));
        // All of the second record except one byte is not enough. With that byte it is.
        let whole = stream.len();
        assert_eq!(wire.server.more(&mut stream[..whole - 1], &mut out).event, Event::Bytes);
        assert_eq!(wire.server.wanted(), whole);
        assert_eq!(wire.server.more(&mut stream, &mut out).event, Event::Plaintext(3 + 9000));
        assert_eq!(wire.server.held(), 3 + 9000);
    }
}
