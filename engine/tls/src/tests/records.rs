//! Tests of records after the handshake: the place of plaintext, closing, and key updates.

use alloc::vec;
use alloc::vec::Vec;

use super::world::{BOTH, plain_server, seed, server_of};
use crate::{Connection, ENCRYPTION_OVERHEAD_MAX, SplitPlaintext, TlsEvent};

#[test]
fn plaintext_is_in_place_and_stays_until_it_is_taken() {
    seed(50);
    for version in BOTH {
        let mut connection = server_of(version).connect("mail.test");
        connection.established();
        connection.client_says(b"NOOP\r\nQUIT\r\n");
        let first = connection.client_bytes();
        connection.client_says(b"more");
        let second = connection.client_bytes();
        let mut stream = [first.as_slice(), &second].concat();
        let mut out = [0; 64];

        let progress = connection.server.receive(&mut stream, &mut out);
        assert_eq!((progress.event, progress.written), (TlsEvent::Plaintext(12), 0));
        let at = progress.done;
        assert_eq!(&stream[at..at + 12], b"NOOP\r\nQUIT\r\n");
        assert_eq!(&stream[first.len()..], second, "the next record is unchanged");

        let mut rest = stream.split_off(at);
        assert_eq!(connection.server.taken(0), 0);
        assert_eq!(connection.server.taken(6), 6);
        rest.drain(..6);
        let progress = connection.server.receive(&mut rest, &mut out);
        assert_eq!((progress.done, progress.event), (0, TlsEvent::Plaintext(6)));
        assert_eq!(&rest[..6], b"QUIT\r\n");
        assert_eq!(
            connection.server.taken(6),
            rest.len() - second.len(),
            "the last byte also releases the end of the record"
        );
        let mut rest = rest.split_off(rest.len() - second.len());
        assert_eq!(connection.server.receive(&mut rest, &mut out).event, TlsEvent::Plaintext(4));
    }
}

#[test]
fn a_session_may_take_one_byte_at_a_time() {
    seed(51);
    for version in BOTH {
        let mut connection = server_of(version).connect("mail.test");
        connection.bite = 1;
        connection.client_says(&[b'x'; 700]);
        connection.client_says(b"end");
        connection.settle(3).unwrap();
        assert_eq!(connection.plaintext.len(), 703);
        assert!(connection.plaintext.ends_with(b"xend"));
    }
}

#[test]
fn plaintext_in_two_places_becomes_one_record() {
    seed(59);
    for version in BOTH {
        let mut connection = server_of(version).connect("mail.test");
        connection.established();
        let text = SplitPlaintext { first: b"head, ", second: b"and the bytes after" };
        let mut expected = Vec::new();
        for room in 1..=text.len() {
            let mut block = vec![0; room + ENCRYPTION_OVERHEAD_MAX];
            let (mut taken, mut records) = (0, 0);
            while taken < text.len() {
                let encrypted = connection.server.encrypt(text.behind(taken), &mut block);
                assert!(encrypted.taken > 0, "the output has space");
                connection.to_client.extend_from_slice(&block[..encrypted.written]);
                (taken, records) = (taken + encrypted.taken, records + 1);
            }
            assert!(records <= text.len().div_ceil(room), "{records} records for space of {room}");
            expected.extend_from_slice(b"head, and the bytes after");
        }
        connection.settle(usize::MAX).unwrap();
        assert_eq!(connection.client_received().0, expected);
    }
}

#[test]
fn a_record_fits_into_its_output_buffer() {
    seed(52);
    for version in BOTH {
        let mut connection = server_of(version).connect("mail.test");
        connection.established();
        let text: Vec<u8> = (0..10_000_u32).map(|number| number as u8).collect();
        for room in 0..=ENCRYPTION_OVERHEAD_MAX + 1 {
            let mut block = vec![0; room];
            let encrypted = connection.server.encrypt(text.as_slice(), &mut block);
            assert!(
                encrypted.written <= room && (encrypted.taken == 0) == (encrypted.written == 0),
                "{room}: {encrypted:?}"
            );
            assert!(
                room <= ENCRYPTION_OVERHEAD_MAX || encrypted.taken > 0,
                "{room} bytes are enough space for one byte"
            );
            connection.to_client.extend_from_slice(&block[..encrypted.written]);
        }
        connection.settle(usize::MAX).unwrap();
        connection.client_received();
        let records = connection.server_says(&text, 4096);
        assert_eq!(records, 3);
        assert!(connection.to_client.len() <= text.len() + records * ENCRYPTION_OVERHEAD_MAX);
        connection.settle(usize::MAX).unwrap();
        assert_eq!(connection.client_received().0, text);
        // A record has a maximum length, however large the buffer is.
        let encrypted = connection.server.encrypt(&[0; 20_000], &mut vec![0; 30_000]);
        assert_eq!(encrypted.taken, 16_384);
    }
}

#[test]
fn each_side_may_close_while_the_other_continues() {
    seed(53);
    for version in BOTH {
        // First case: the client closes first.
        let mut connection = server_of(version).connect("mail.test");
        connection.established();
        connection.client_says(b"QUIT\r\n");
        connection.client.send_close_notify();
        connection.settle(usize::MAX).unwrap();
        assert_eq!(connection.plaintext, b"QUIT\r\n");
        assert_eq!(connection.events.last(), Some(&TlsEvent::PeerClosed));
        connection.server_says(b"221 bye\r\n", 512);
        connection.arrive(b"later bytes are ignored");
        close(&mut connection.server, &mut connection.to_client);
        connection.settle(usize::MAX).unwrap();
        assert_eq!(connection.client_received(), (b"221 bye\r\n".to_vec(), true));
        assert_eq!(
            (connection.plaintext.as_slice(), connection.stream.len()),
            (b"QUIT\r\n".as_slice(), 0)
        );

        // Second case: the server closes first.
        let mut connection = server_of(version).connect("mail.test");
        connection.established();
        connection.server_says(b"421 no\r\n", 512);
        close(&mut connection.server, &mut connection.to_client);
        let encrypted = connection.server.encrypt(b"too late", &mut [0; 512]);
        assert_eq!((encrypted.taken, encrypted.written), (0, 0), "no data follows a close");
        assert_eq!(connection.server.close(&mut [0; 64]), 0, "close_notify is sent once");
        connection.client_says(b"still here");
        connection.settle(usize::MAX).unwrap();
        assert_eq!(connection.client_received(), (b"421 no\r\n".to_vec(), true));
        assert_eq!(connection.plaintext, b"still here");
    }
}

fn close(server: &mut Connection, to_client: &mut Vec<u8>) {
    let mut block = [0; 64];
    assert_eq!(server.close(&mut block[..5]), 0, "without enough space no byte is written");
    let written = server.close(&mut block);
    assert!(written > 0);
    to_client.extend_from_slice(&block[..written]);
}

#[test]
fn key_updates_work_in_both_directions() {
    seed(54);
    let mut connection = plain_server().connect("mail.test");
    connection.established();
    for round in 0..100_u8 {
        // With this call rustls also asks the server for new keys.
        connection.client.refresh_traffic_keys().unwrap();
        connection.client_says(&[round]);
        connection.settle(usize::MAX).unwrap();
        connection.server_says(&[round; 3], 512);
        connection.settle(usize::MAX).unwrap();
        assert_eq!(connection.client_received(), (vec![round; 3], false));
    }
    assert_eq!(connection.plaintext, (0..100).collect::<Vec<u8>>());
}

#[test]
fn a_key_is_updated_before_its_limit() {
    seed(55);
    let mut connection = server_of(&rustls::version::TLS13).connect("mail.test");
    connection.established();
    for left in [3, 2, 1] {
        connection.server.set_records_left(left);
        for word in [b"one", b"two", b"six"] {
            connection.server_says(word, 512);
        }
        connection.settle(usize::MAX).unwrap();
        assert_eq!(connection.client_received(), (b"onetwosix".to_vec(), false));
    }
    connection.server.set_records_left(1);
    let encrypted = connection.server.encrypt(b"word", &mut [0; 20]);
    assert_eq!(
        (encrypted.taken, encrypted.written),
        (0, 0),
        "without space for a key update no data is encrypted"
    );
    connection.server_says(b"word", 512);
    connection.settle(usize::MAX).unwrap();
    assert_eq!(connection.client_received().0, b"word");
}

#[test]
fn tls_1_2_ends_a_connection_before_the_key_limit() {
    seed(56);
    let mut connection = server_of(&rustls::version::TLS12).connect("mail.test");
    connection.established();
    connection.server.set_records_left(2);
    connection.server_says(b"last", 512);
    let mut block = [0; 512];
    let encrypted = connection.server.encrypt(b"one too many", &mut block);
    assert_eq!(encrypted.taken, 0);
    connection.to_client.extend_from_slice(&block[..encrypted.written]);
    connection.settle(usize::MAX).unwrap();
    assert_eq!(connection.client_received(), (b"last".to_vec(), true));
    let encrypted = connection.server.encrypt(b"one too many", &mut block);
    assert_eq!((encrypted.taken, encrypted.written), (0, 0));
}

#[test]
fn a_line_may_span_several_records() {
    seed(57);
    for version in BOTH {
        for cut in [usize::MAX, 1, 9] {
            let mut connection = server_of(version).connect("mail.test");
            connection.takes_lines = true;
            connection.established();
            let mut sent = Vec::new();
            for record in
                ["EH", "L", "O a\r\nMAIL FROM:", "<b@c>", "\r", "\n", "one\r\ntwo\r\nthr", "ee\r\n"]
            {
                connection.client_says(record.as_bytes());
                sent.extend_from_slice(&connection.client_bytes());
                if record == "<b@c>" && version.version == rustls::ProtocolVersion::TLSv1_3 {
                    connection.client.refresh_traffic_keys().unwrap();
                }
            }
            for part in sent.chunks(cut.min(sent.len())) {
                connection.arrive(part);
            }
            assert_eq!(
                connection.plaintext, b"EHLO a\r\nMAIL FROM:<b@c>\r\none\r\ntwo\r\nthree\r\n",
                "cut to {cut}"
            );
            assert!(connection.stream.is_empty());
            connection.settle(usize::MAX).unwrap();
        }
    }
}

#[test]
fn an_incomplete_line_stays_available_after_close() {
    seed(58);
    for version in BOTH {
        let mut connection = server_of(version).connect("mail.test");
        connection.takes_lines = true;
        connection.established();
        connection.client_says(b"QUI");
        let mut sent = connection.client_bytes();
        connection.client_says(b"T");
        connection.client.send_close_notify();
        sent.extend_from_slice(&connection.client_bytes());
        connection.arrive(&sent);
        assert_eq!(connection.events.last(), Some(&TlsEvent::PeerClosed));
        assert_eq!(connection.stream, b"QUIT", "the stream has only the incomplete line");
        let progress = connection.server.receive(&mut connection.stream, &mut []);
        assert_eq!((progress.done, progress.event), (0, TlsEvent::Plaintext(4)));
        assert_eq!(connection.server.taken(4), 4);
        assert_eq!(
            connection.server.receive(&mut [1, 2, 3], &mut []).done,
            3,
            "bytes after a close are dropped"
        );
    }
}

#[test]
fn a_broken_record_drops_the_plaintext_before_it() {
    seed(59);
    for version in BOTH {
        let mut connection = server_of(version).connect("mail.test");
        connection.takes_lines = true;
        connection.established();
        connection.client_says(b"DEL");
        let mut sent = connection.client_bytes();
        connection.client_says(b"E 1\r\n");
        sent.extend_from_slice(&connection.client_bytes());
        *sent.last_mut().unwrap() ^= 1;
        connection.arrive(&sent);
        assert!(connection.failure().is_some());
        assert_eq!((connection.plaintext.len(), connection.stream.len()), (0, 0));
    }
}

#[test]
fn wanted_skips_calls_that_make_no_progress() {
    seed(58);
    for version in BOTH {
        let mut connection = server_of(version).connect("mail.test");
        connection.established();
        connection.client_says(b"EHLO a\r\nEHL");
        let first = connection.client_bytes();
        connection.client_says(&[b'x'; 9000]);
        let second = connection.client_bytes();
        let mut stream = [first.as_slice(), &second].concat();
        let mut out = [0; 64];
        assert_eq!(connection.server.receive(&mut stream[..3], &mut out).event, TlsEvent::Bytes);
        assert_eq!(connection.server.wanted(), 5);
        assert_eq!(connection.server.receive(&mut stream[..5], &mut out).event, TlsEvent::Bytes);
        assert_eq!(connection.server.wanted(), first.len());
        let progress = connection.server.receive(&mut stream[..first.len()], &mut out);
        assert_eq!(progress.event, TlsEvent::Plaintext(11));
        let done = progress.done + connection.server.taken(8);
        let mut stream = stream.split_off(done);
        assert_eq!((connection.server.held(), &stream[..3]), (3, b"EHL".as_slice()));
        // The second record without its last byte is not enough. The whole record is.
        let whole = stream.len();
        assert_eq!(
            connection.server.more(&mut stream[..whole - 1], &mut out).event,
            TlsEvent::Bytes
        );
        assert_eq!(connection.server.wanted(), whole);
        assert_eq!(
            connection.server.more(&mut stream, &mut out).event,
            TlsEvent::Plaintext(3 + 9000)
        );
        assert_eq!(connection.server.held(), 3 + 9000);
    }
}

#[test]
fn a_key_limit_is_respected_with_any_output_space() {
    seed(58);
    for version in BOTH {
        for room in 0..ENCRYPTION_OVERHEAD_MAX + 8 {
            let mut connection = server_of(version).connect("mail.test");
            connection.established();
            connection.server.set_records_left(1);
            let mut block = vec![0; room];
            let encrypted = connection.server.encrypt(b"x".as_slice(), &mut block);
            assert_eq!(encrypted.taken, 0, "{version:?}: the last record is for our own message");
            connection.to_client.extend_from_slice(&block[..encrypted.written]);
            connection.settle(usize::MAX).unwrap();
        }
    }
}
