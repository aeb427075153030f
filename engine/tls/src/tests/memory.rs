//! Tests of the memory of a connection.

use std::boxed::Box;
use std::println;

use allocation_counter::measure;

use super::world::{BOTH, PLAIN, TestServer, pems_p256, provider, seed, ticket_keys};
use crate::{CONNECTION_BYTES_MAX, Connection, HANDSHAKE_BYTES_MAX, Offer};

#[test]
fn an_idle_connection_takes_less_than_2_kib_of_memory() {
    seed(40);
    for version in BOTH {
        for suite in
            provider().cipher_suites.into_iter().filter(|suite| suite.version() == *version)
        {
            let keys = ticket_keys();
            let offer = Offer { tickets: Some(&keys), protocols: &[b"http/1.1"], ..PLAIN };
            let mut provider = provider();
            provider.cipher_suites = [suite].to_vec();
            let mut server =
                TestServer::with(&[pems_p256("mail.test")], &offer, provider, &[version]);
            server.client.alpn_protocols = [b"http/1.1".to_vec()].to_vec();
            let mut connection = server.connect("mail.test");
            if connection.settle(usize::MAX).is_err() {
                continue;
            }
            connection.client_says(b"hello");
            connection.settle(usize::MAX).unwrap();
            assert_eq!(connection.plaintext, b"hello");
            let freed = measure(|| drop(Box::new(connection.server)));
            // The allocation and the release of the box cancel out. The rest is the memory of the
            // connection.
            let held = freed.bytes_current.unsigned_abs() + size_of::<Connection>() as u64;
            println!("{:?}: {held} bytes", suite.suite());
            assert!(
                freed.bytes_current < 0 && held <= CONNECTION_BYTES_MAX as u64,
                "{:?} takes {held} bytes",
                suite.suite()
            );
        }
    }
}

#[test]
fn tls_records_need_no_allocation() {
    seed(41);
    for version in BOTH {
        let server = TestServer::with(&[pems_p256("mail.test")], &PLAIN, provider(), &[version]);
        let mut connection = server.connect("mail.test");
        connection.established();
        connection.client_says(&[b'a'; 1000]);
        let mut stream = connection.client_bytes();
        let mut block = [0; 4096];
        let mut out = [0; 128];
        let cost = measure(|| {
            let progress = connection.server.receive(&mut stream, &mut out);
            assert_eq!(progress.event, crate::TlsEvent::Plaintext(1000));
            connection.server.taken(1000);
            assert_eq!(connection.server.encrypt(&[b'b'; 3000], &mut block).taken, 3000);
        });
        assert_eq!(cost.count_total, 0);
    }
}

/// Measures the memory of a server without an answer to its first flight, and of a server
/// that waits for the rest of the client's first message.
#[test]
fn a_pending_handshake_takes_less_than_16_kib() {
    seed(42);
    for version in BOTH {
        let keys = ticket_keys();
        let offer = Offer { tickets: Some(&keys), protocols: &[b"h2", b"http/1.1"], ..PLAIN };
        let mut server =
            TestServer::with(&[pems_p256("mail.test")], &offer, provider(), &[version]);
        server.client.alpn_protocols = [b"h2".to_vec(), b"http/1.1".to_vec()].to_vec();
        for part in [1, 2] {
            let mut connection = server.connect("mail.test");
            let hello = connection.client_bytes();
            connection.arrive(&hello[..hello.len() / part]);
            assert_eq!(connection.to_client.is_empty(), part == 2);
            let freed = measure(|| drop(connection.server));
            let held = freed.bytes_current.unsigned_abs();
            println!("{version:?}: {held} bytes");
            assert!(
                freed.bytes_current < 0 && held <= HANDSHAKE_BYTES_MAX as u64,
                "{version:?} takes {held} bytes"
            );
        }
    }
}
