//! Tests with broken, forged or non-TLS input. It gets an alert, and never yields plaintext.

use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::world::{
    BOTH, PLAIN, TestConnection, TestServer, pems_p256, plain_server, seed, server_of,
};
use crate::record::{ContentType, RECORD_BYTES_MAX};
use crate::{Alert, ENCRYPTION_OVERHEAD_MAX, Failure, PLAINTEXT_BYTES_MAX, TlsEvent};

const BAD_RECORD_MAC: Alert = Alert(20);
const RECORD_OVERFLOW: Alert = Alert(22);

/// An unencrypted alert.
fn plain_alert(number: u8) -> Vec<u8> {
    vec![21, 3, 3, 0, 2, 2, number]
}

/// The result of the client for the last output of the server.
fn client_result(connection: &mut TestConnection) -> std::string::String {
    std::format!("{:?}", connection.settle(usize::MAX))
}

#[test]
fn a_record_with_a_flipped_bit_yields_no_plaintext() {
    seed(60);
    for version in BOTH {
        let server = server_of(version);
        for bit in 0.. {
            seed(61);
            let mut connection = server.connect("mail.test");
            connection.established();
            connection.client_says(b"MAIL FROM:<a@b>");
            let mut record = connection.client_bytes();
            let Some(byte) = record.get_mut(bit / 8) else { break };
            *byte ^= 1 << (bit % 8);
            connection.arrive(&record);
            assert!(connection.plaintext.is_empty(), "bit {bit}");
            match connection.failure() {
                // The changed length makes the record longer, so the server waits for the rest.
                None => {
                    assert!((24..40).contains(&bit) && !connection.stream.is_empty(), "bit {bit}")
                }
                Some(Failure::Refused(alert)) => {
                    assert!(*alert == BAD_RECORD_MAC || bit < 40, "bit {bit}: {alert}");
                    assert!(client_result(&mut connection).contains("AlertReceived"), "bit {bit}");
                    assert_eq!(
                        connection.server.encrypt(b"x", &mut [0; 100]).written,
                        0,
                        "no record follows the alert"
                    );
                }
                failure => panic!("bit {bit}: {failure:?}"),
            }
        }
    }
}

#[test]
fn a_handshake_with_a_changed_byte_fails() {
    seed(62);
    for version in BOTH {
        let server = server_of(version);
        for flight in 0..2 {
            for place in 0.. {
                seed(63);
                let mut connection = server.connect("mail.test");
                if flight == 1 {
                    let hello = connection.client_bytes();
                    connection.arrive(&hello);
                    let mut received = std::mem::take(&mut connection.to_client);
                    while !received.is_empty() {
                        let count = connection.client.read_tls(&mut received.as_slice()).unwrap();
                        received.drain(..count);
                        connection.client.process_new_packets().unwrap();
                    }
                }
                let mut bytes = connection.client_bytes();
                let Some(byte) = bytes.get_mut(place) else { break };
                *byte ^= 0x55;
                connection.arrive(&bytes);
                let _ = connection.settle(usize::MAX);
                let is_established =
                    connection.events.iter().any(|event| matches!(event, TlsEvent::Established(_)));
                // A change is harmless only in the version of a record header, which receivers
                // ignore (RFC 8446 section 5.1).
                let before = place.checked_sub(2).and_then(|start| bytes.get(start..place));
                let is_idle = matches!(before, Some([20 | 22 | 23, 3]));
                assert!(!is_established || is_idle, "flight {flight}, byte {place}");
                assert!(connection.plaintext.is_empty());
            }
        }
    }
}

#[test]
fn an_incomplete_record_is_awaited() {
    seed(64);
    for version in BOTH {
        let mut connection = server_of(version).connect("mail.test");
        connection.established();
        connection.client_says(b"DATA");
        let record = connection.client_bytes();
        for length in 0..record.len() {
            let mut part = record[..length].to_vec();
            let progress = connection.server.receive(&mut part, &mut [0; 64]);
            assert_eq!((progress.done, progress.written, progress.event), (0, 0, TlsEvent::Bytes));
            assert_eq!(part, record[..length], "the incomplete record stays unchanged");
        }
        connection.arrive(&record);
        assert_eq!(connection.plaintext, b"DATA");
    }
}

#[test]
fn non_tls_bytes_get_an_alert() {
    seed(65);
    let server = plain_server();
    for (bytes, alert) in [
        (b"GET / HTTP/1.1\r\n\r\n".as_slice(), 10),
        (b"EHLO client\r\n", 10),
        (b"\x16\x03\x01\xff\xff\x01", 22),
        (b"\x80\x2e\x01\x03\x01", 10),
        (b"\x16\x02\x01\x00\x05\x01", 70),
    ] {
        let mut connection = TestConnection::without_client(&server.settings);
        connection.arrive(bytes);
        assert_eq!(connection.to_client, plain_alert(alert), "{bytes:?}");
        assert_eq!(connection.failure(), Some(&Failure::Refused(Alert(alert))));
        connection.arrive(b"more");
        assert_eq!(
            (connection.events.len(), connection.stream.len()),
            (1, 0),
            "later bytes are ignored"
        );
    }
}

/// A client hello with this minor version as the newest that the client supports.
fn old_hello(minor: u8) -> Vec<u8> {
    let mut hello = vec![3, minor];
    hello.extend_from_slice(&[0x11; 32]);
    // The fields are: no session; one suite, ECDHE with AES-128-GCM; no compression; signatures by
    // ECDSA with P-256 and SHA-256.
    hello.extend_from_slice(&[0, 0, 2, 0xc0, 0x2b, 1, 0, 0, 8, 0, 13, 0, 4, 0, 2, 4, 3]);
    let mut message = vec![1, 0, 0, hello.len() as u8];
    message.extend_from_slice(&hello);
    let mut record = vec![22, 3, 1, 0, message.len() as u8];
    record.extend_from_slice(&message);
    record
}

#[test]
fn tls_versions_before_1_2_are_rejected() {
    seed(66);
    let server = plain_server();
    for minor in [0, 1, 2] {
        let mut connection = TestConnection::without_client(&server.settings);
        connection.arrive(&old_hello(minor));
        assert_eq!(connection.to_client, plain_alert(70), "protocol_version, for 3.{minor}");
        assert!(connection.failure().is_some());
    }
}

#[test]
fn a_client_without_a_common_group_gets_an_alert() {
    seed(67);
    let server = plain_server();
    let mut connection = TestConnection::without_client(&server.settings);
    // The hello is for TLS 1.2, and names no group that both sides support.
    connection.arrive(&old_hello(3));
    assert!(connection.to_client.starts_with(&[21, 3, 3, 0, 2, 2]), "{:?}", connection.to_client);
    assert!(matches!(connection.failure(), Some(Failure::Handshake(_))));
}

#[test]
fn an_alert_of_the_client_is_not_answered() {
    seed(68);
    let server = server_of(&rustls::version::TLS12);
    let mut connection = server.connect("mail.test");
    let hello = connection.client_bytes();
    connection.arrive(&hello);
    let answered = connection.to_client.len();
    connection.arrive(&plain_alert(48));
    assert_eq!(connection.failure(), Some(&Failure::PeerGaveUp(Alert(48))));
    assert_eq!(connection.to_client.len(), answered);

    for version in BOTH {
        let mut connection = server_of(version).connect("mail.test");
        connection.established();
        let mut forger = connection.forger();
        let mut block = [0; 64];
        let (_, written) = forger.encrypt(ContentType::Alert, &[2, 80], &mut block);
        connection.arrive(&block[..written]);
        assert_eq!(connection.failure(), Some(&Failure::PeerGaveUp(Alert(80))));
        assert!(connection.to_client.is_empty());
        assert_eq!(connection.server.encrypt(b"x", &mut [0; 100]).written, 0);
    }
}

#[test]
fn unexpected_post_handshake_messages_are_fatal() {
    seed(69);
    let (tls13, tls12) = (&rustls::version::TLS13, &rustls::version::TLS12);
    let hello = [1, 0, 0, 2, 3, 3];
    let cases: &[(&'static rustls::SupportedProtocolVersion, ContentType, &[u8], u8)] = &[
        // The client begins a renegotiation.
        (tls12, ContentType::Handshake, &hello, 100),
        (tls13, ContentType::Handshake, &hello, 10),
        // Invalid key updates: wrong lengths, an unknown request, an incomplete message, two
        // messages in one record, and an empty record.
        (tls13, ContentType::Handshake, &[24, 0, 0, 2, 0, 0], 50),
        (tls13, ContentType::Handshake, &[24, 0, 0, 0], 50),
        (tls13, ContentType::Handshake, &[24, 0, 0, 1, 2], 47),
        (tls13, ContentType::Handshake, &[24, 0, 0], 10),
        (tls13, ContentType::Handshake, &[24, 0, 0, 1, 0, 24, 0, 0, 1, 0], 10),
        (tls13, ContentType::Handshake, &[], 10),
        (tls12, ContentType::ChangeCipherSpec, &[1], 10),
        (tls13, ContentType::ChangeCipherSpec, &[1], 10),
        (tls12, ContentType::Alert, &[1], 50),
        (tls13, ContentType::Alert, &[1, 0, 1, 0], 50),
    ];
    for (version, content, text, alert) in cases {
        let mut connection = server_of(version).connect("mail.test");
        connection.established();
        let mut forger = connection.forger();
        let mut block = [0; 128];
        let (_, written) = forger.encrypt(*content, *text, &mut block);
        connection.arrive(&block[..written]);
        assert_eq!(
            connection.failure(),
            Some(&Failure::Refused(Alert(*alert))),
            "{content:?} {text:?}"
        );
        assert!(!connection.to_client.is_empty(), "the peer must get an alert");
    }
}

#[test]
fn only_a_few_empty_records_in_a_row_are_accepted() {
    seed(70);
    for version in BOTH {
        for (content, text) in
            [(ContentType::ApplicationData, [].as_slice()), (ContentType::Alert, &[1, 90])]
        {
            let mut connection = server_of(version).connect("mail.test");
            connection.established();
            let mut forger = connection.forger();
            let mut send = |connection: &mut TestConnection, content, text: &[u8], count| {
                for _ in 0..count {
                    let mut block = [0; 64];
                    let (_, written) = forger.encrypt(content, text, &mut block);
                    connection.arrive(&block[..written]);
                }
            };
            for _ in 0..3 {
                send(&mut connection, content, text, 32);
                send(&mut connection, ContentType::ApplicationData, b"a", 1);
            }
            assert_eq!(
                (connection.plaintext.as_slice(), connection.failure()),
                (b"aaa".as_slice(), None)
            );
            send(&mut connection, content, text, 33);
            assert_eq!(connection.failure(), Some(&Failure::Refused(Alert(10))));
        }
    }
}

#[test]
fn a_record_of_the_maximum_length_is_accepted() {
    seed(71);
    for version in BOTH {
        let mut connection = server_of(version).connect("mail.test");
        connection.established();
        let mut forger = connection.forger();
        let mut block = vec![0; RECORD_BYTES_MAX + 100];
        let text = vec![b'm'; PLAINTEXT_BYTES_MAX];
        let (taken, written) =
            forger.encrypt(ContentType::ApplicationData, text.as_slice(), &mut block);
        assert_eq!(taken, text.len());
        assert!(written <= text.len() + ENCRYPTION_OVERHEAD_MAX && written <= RECORD_BYTES_MAX);
        connection.arrive(&block[..written]);
        assert_eq!(connection.plaintext, text);
        connection.arrive(&[23, 3, 3, 0x42, 0]);
        assert_eq!(
            connection.failure(),
            Some(&Failure::Refused(RECORD_OVERFLOW)),
            "a record with a length above the limit is rejected before it has arrived"
        );
    }
}

#[test]
fn a_record_above_the_maximum_length_is_rejected() {
    seed(75);
    for version in BOTH {
        let mut connection = server_of(version).connect("mail.test");
        connection.established();
        let mut forger = connection.forger();
        let (before, behind) = forger.layout.around();
        let text = vec![b'm'; PLAINTEXT_BYTES_MAX + 1];
        let mut record = vec![0; before + text.len() + behind];
        forger
            .encrypt_record(ContentType::ApplicationData, text.as_slice().into(), &mut record)
            .unwrap();
        connection.arrive(&record);
        assert_eq!(connection.failure(), Some(&Failure::Refused(RECORD_OVERFLOW)));
        assert!(connection.plaintext.is_empty());
    }
}

#[test]
fn a_replayed_record_is_rejected() {
    seed(72);
    for version in BOTH {
        let mut connection = server_of(version).connect("mail.test");
        connection.established();
        connection.client_says(b"DELE 1\r\n");
        let record = connection.client_bytes();
        connection.arrive(&record);
        connection.arrive(&record);
        assert_eq!(connection.plaintext, b"DELE 1\r\n");
        assert_eq!(connection.failure(), Some(&Failure::Refused(BAD_RECORD_MAC)));
    }
}

#[test]
fn a_client_hello_may_span_records_up_to_a_limit() {
    seed(73);
    let mut server = TestServer::new(&[pems_p256("mail.test")], &PLAIN);
    server.client.alpn_protocols = (0..200_u8).map(|number| vec![number; 60]).collect();
    server.client.max_fragment_size = Some(100);
    let mut connection = server.connect("mail.test");
    connection.settle(7).unwrap();
    assert!(
        matches!(connection.events.as_slice(), [TlsEvent::Established(_)]),
        "{:?}",
        connection.events
    );

    let mut connection = TestConnection::without_client(&server.settings);
    // The client sends a message of 60,000 bytes, in records of 100 bytes.
    let mut first = vec![22, 3, 1, 0, 104, 1, 0, 0xea, 0x60];
    first.extend_from_slice(&[3; 100]);
    connection.arrive(&first);
    let mut held = 0;
    while connection.failure().is_none() {
        let mut next = vec![22, 3, 1, 0, 100];
        next.extend_from_slice(&[3; 100]);
        connection.arrive(&next);
        held = held.max(connection.stream.len());
        assert!(
            held <= RECORD_BYTES_MAX + next.len(),
            "the stream has at most the bytes of one record of maximum length"
        );
    }
    assert_eq!(connection.failure(), Some(&Failure::Refused(Alert(22))));
    assert_eq!(connection.to_client, plain_alert(22));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_bytes_yield_no_plaintext(
        head in prop_oneof![Just(vec![]), Just(vec![22, 3, 1, 0, 60, 1, 0, 0, 56, 3, 3]), Just(vec![22, 3, 3])],
        noise in proptest::collection::vec(any::<u8>(), 0..300),
        is_established in any::<bool>(),
        cut in 1_usize..40,
    ) {
        seed(74);
        let mut connection = plain_server().connect("mail.test");
        if is_established {
            connection.established();
        }
        let bytes = [head, noise].concat();
        for part in bytes.chunks(cut) {
            connection.arrive(part);
        }
        prop_assert!(connection.plaintext.is_empty());
        prop_assert!(connection.stream.len() <= bytes.len());
    }
}
