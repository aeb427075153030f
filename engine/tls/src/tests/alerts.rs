//! The alerts for hellos that break a rule of RFC 8446 or RFC 7507, and for broken handshakes.

use alloc::vec;
use alloc::vec::Vec;
use std::format;

use super::world::{
    BOTH, PLAIN, TestConnection, TestServer, pems_p256, plain_server, provider, seed, server_of,
};
use crate::{Alert, Failure};

/// The unencrypted alert with this number.
fn plain_alert(number: u8) -> Vec<u8> {
    vec![21, 3, 3, 0, 2, 2, number]
}

/// The hello of a client, with `from` replaced by `to`, which is as long.
fn hello_with(server: &TestServer, from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut hello = server.connect("mail.test").client_bytes();
    let places: Vec<usize> = (0..hello.len()).filter(|at| hello[*at..].starts_with(from)).collect();
    assert_eq!(places.len(), 1, "{from:?} is in {hello:?}");
    hello[places[0]..places[0] + to.len()].copy_from_slice(to);
    hello
}

/// The first bytes with which the server answers `bytes`.
fn answer(server: &TestServer, bytes: &[u8]) -> Vec<u8> {
    let mut connection = TestConnection::without_client(&server.settings);
    connection.arrive(bytes);
    connection.to_client.truncate(7);
    connection.to_client
}

/// Whether the server answers `bytes` with its hello.
fn is_accepted(server: &TestServer, bytes: &[u8]) -> bool {
    answer(server, bytes).starts_with(&[22, 3, 3])
}

/// The client's last suite, which says that renegotiation is secure, and the next field.
const SECURE_RENEGOTIATION: &[u8] = &[0x00, 0xff, 1, 0];
/// The same with TLS_FALLBACK_SCSV as the last suite.
const FALLBACK: &[u8] = &[0x56, 0x00, 1, 0];

/// A hello of one record, cut into two records. The first one has `length` bytes of the hello.
fn cut(hello: &[u8], length: usize, minor: u8) -> Vec<u8> {
    let (first, rest) = hello[5..].split_at(length);
    let mut bytes = Vec::new();
    for part in [first, rest] {
        bytes.extend([22, 3, minor]);
        bytes.extend((part.len() as u16).to_be_bytes());
        bytes.extend(part);
    }
    bytes
}

#[test]
fn a_fallback_to_tls_1_2_is_rejected() {
    seed(200);
    let mut suites = provider();
    suites.cipher_suites.retain(|suite| suite.tls13().is_none());
    let (pems, versions) = ([pems_p256("mail.test")], [&rustls::version::TLS12]);
    let tls12 = TestServer::with(&pems, &PLAIN, suites, &versions);
    let hello = hello_with(&tls12, SECURE_RENEGOTIATION, SECURE_RENEGOTIATION);
    assert!(is_accepted(&tls12, &hello));
    let hello = hello_with(&tls12, SECURE_RENEGOTIATION, FALLBACK);
    let mut connection = TestConnection::without_client(&tls12.settings);
    connection.arrive(&hello);
    assert_eq!(connection.to_client, plain_alert(86));
    assert_eq!(connection.failure(), Some(&Failure::Refused(Alert(86))));
    // A client that offers TLS 1.3 too has not fallen back.
    let both = plain_server();
    assert!(is_accepted(&both, &hello_with(&both, SECURE_RENEGOTIATION, FALLBACK)));
}

#[test]
fn a_fallback_counts_by_the_versions_that_are_offered() {
    seed(207);
    let both = plain_server();
    let replaced = |hello: &[u8], from: &[u8], to: &[u8]| {
        let at = hello.windows(from.len()).position(|bytes| bytes == from).unwrap();
        [&hello[..at], to, &hello[at + from.len()..]].concat()
    };
    // The suites of TLS 1.3 stay. The extension of versions offers only TLS 1.2, or is another one.
    const VERSIONS: &[u8] = &[0, 43, 0, 5, 4, 3, 4, 3, 3];
    for versions in [[0, 43, 0, 5, 4, 3, 3, 3, 3], [0x7a, 0x7a, 0, 5, 4, 3, 4, 3, 3]] {
        let hello = hello_with(&both, VERSIONS, &versions);
        assert!(is_accepted(&both, &hello), "without the suite of fallbacks");
        let hello = replaced(&hello, SECURE_RENEGOTIATION, FALLBACK);
        assert_eq!(answer(&both, &hello), plain_alert(86));
        for length in 1..hello.len() - 5 {
            let hello = cut(&hello, length, 1);
            assert_eq!(answer(&both, &hello), plain_alert(86), "{length} bytes in a record");
        }
    }
}

#[test]
fn a_hello_cut_into_single_bytes_is_read_as_a_whole() {
    seed(208);
    let both = plain_server();
    let single = |hello: &[u8]| {
        let records = hello[5..].iter().flat_map(|byte| [22, 3, 1, 0, 1, *byte]);
        records.collect::<Vec<u8>>()
    };
    let hello = both.connect("mail.test").client_bytes();
    assert!(is_accepted(&both, &single(&hello)));
    let tls12 = server_of(&rustls::version::TLS12);
    let fallback = hello_with(&tls12, SECURE_RENEGOTIATION, FALLBACK);
    assert_eq!(answer(&tls12, &single(&fallback)), plain_alert(86));
    let mut of_ssl = hello.clone();
    of_ssl[9..11].copy_from_slice(&[3, 0]);
    assert_eq!(answer(&both, &single(&of_ssl)), plain_alert(70));
}

#[test]
fn a_hello_of_ssl_3_is_rejected_even_if_it_offers_tls_1_3() {
    seed(201);
    for version in BOTH {
        let server = server_of(version);
        let hello = server.connect("mail.test").client_bytes();
        for (major, minor, is_rejected) in
            [(3, 0, true), (2, 0, true), (0, 2, true), (3, 3, false), (3, 4, false)]
        {
            let mut hello = hello.clone();
            hello[9..11].copy_from_slice(&[major, minor]);
            let is_alert = answer(&server, &hello) == plain_alert(70);
            assert_eq!(is_alert, is_rejected, "{major}.{minor}");
        }
    }
}

#[test]
fn the_version_of_a_record_is_ignored() {
    seed(202);
    for version in BOTH {
        let server = server_of(version);
        for minor in [0, 1, 2, 3, 4, 0xff] {
            let mut hello = server.connect("mail.test").client_bytes();
            hello[2] = minor;
            assert!(is_accepted(&server, &hello), "3.{minor}");
        }
    }
}

#[test]
fn a_hello_may_be_cut_into_records_of_any_length() {
    seed(206);
    let server = plain_server();
    for (length, minor) in (1..=6).flat_map(|length| [(length, 1), (length, 3)]) {
        let hello = server.connect("mail.test").client_bytes();
        let bytes = cut(&hello, length, minor);
        assert!(is_accepted(&server, &bytes), "{length} bytes in a record of 3.{minor}");
    }
}

#[test]
fn a_missing_extension_has_its_own_alert() {
    seed(203);
    let server = server_of(&rustls::version::TLS13);
    const UNKNOWN: &[u8] = &[0x7a, 0x7a];
    // The key share has one key of X25519. Nine algorithms of signatures are offered.
    for extension in [[0, 51, 0, 38], [0, 13, 0, 20]] {
        let hello = hello_with(&server, &extension, &[UNKNOWN, &extension[2..]].concat());
        assert_eq!(answer(&server, &hello), plain_alert(109), "{extension:?}");
    }
}

#[test]
fn a_record_between_parts_of_a_hello_is_unexpected() {
    seed(204);
    let server = plain_server();
    let hello = server.connect("mail.test").client_bytes();
    let mut first = vec![22, 3, 1, 0, 100];
    first.extend_from_slice(&hello[5..105]);
    for record in [[21, 3, 3, 0, 2, 1, 90].as_slice(), &[23, 3, 3, 0, 1, 0], &[22, 3, 3, 0, 0]] {
        assert_eq!(answer(&server, &[&first, record].concat()), plain_alert(10), "{record:?}");
    }
}

#[test]
fn a_broken_handshake_with_keys_gets_an_encrypted_alert() {
    seed(205);
    let too_many = [20, 3, 3, 0, 1, 1].repeat(4);
    let broken: [&[u8]; 4] =
        [b"GET / HTTP/1.1\r\n", &[23, 3, 3, 0xff, 0xff], &[22, 2, 3, 0, 1, 0], &too_many];
    for version in BOTH {
        for bytes in broken {
            let mut connection = server_of(version).connect("mail.test");
            let hello = connection.client_bytes();
            connection.arrive(&hello);
            let answered = connection.to_client.len();
            connection.arrive(bytes);
            assert!(connection.failure().is_some(), "{bytes:?}");
            let alert = connection.to_client.split_off(answered);
            // With TLS 1.2 there are no keys yet.
            let is_encrypted = *version == &rustls::version::TLS13;
            assert_eq!(alert.first(), Some(&if is_encrypted { 23 } else { 21 }), "{bytes:?}");
            connection.to_client.extend(alert);
            let result = format!("{:?}", connection.settle(usize::MAX));
            assert!(result.contains("AlertReceived"), "{bytes:?}: {result}");
        }
    }
}
