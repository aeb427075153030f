//! The memory of a connection.

use std::boxed::Box;
use std::println;

use allocation_counter::measure;

use super::world::{BOTH, House, PLAIN, pems_p256, provider, seed, ticket_keys};
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
            let mut house = House::with(&[pems_p256("mail.test")], &offer, provider, &[version]);
            house.client.alpn_protocols = [b"http/1.1".to_vec()].to_vec();
            let mut wire = house.connect("mail.test");
            if wire.settle(usize::MAX).is_err() {
                continue;
            }
            wire.client_says(b"hello");
            wire.settle(usize::MAX).unwrap();
            assert_eq!(wire.heard, b"hello");
            let freed = measure(|| drop(Box::new(wire.server)));
            // The temporary box cancels out. The rest is the memory that the connection held.
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
fn records_need_no_allocation() {
    seed(41);
    for version in BOTH {
        let house = House::with(&[pems_p256("mail.test")], &PLAIN, provider(), &[version]);
        let mut wire = house.connect("mail.test");
        wire.established();
        wire.client_says(&[b'a'; 1000]);
        let mut stream = wire.client_bytes();
        let mut block = [0; 4096];
        let mut out = [0; 128];
        let cost = measure(|| {
            let progress = wire.server.receive(&mut stream, &mut out);
            assert_eq!(progress.event, crate::Event::Plaintext(1000));
            wire.server.taken(1000);
            assert_eq!(wire.server.seal(&[b'b'; 3000], &mut block).taken, 3000);
        });
        assert_eq!(cost.count_total, 0);
    }
}

/// The memory of the server after its first flight while the client does not answer, and while the
/// client's first message is incomplete.
#[test]
fn a_pending_handshake_takes_less_than_16_kib() {
    seed(42);
    for version in BOTH {
        let keys = ticket_keys();
        let offer = Offer { tickets: Some(&keys), protocols: &[b"h2", b"http/1.1"], ..PLAIN };
        let mut house = House::with(&[pems_p256("mail.test")], &offer, provider(), &[version]);
        house.client.alpn_protocols = [b"h2".to_vec(), b"http/1.1".to_vec()].to_vec();
        for part in [1, 2] {
            let mut wire = house.connect("mail.test");
            let hello = wire.client_bytes();
            wire.arrive(&hello[..hello.len() / part]);
            assert_eq!(wire.to_client.is_empty(), part == 2);
            let freed = measure(|| drop(wire.server));
            let held = freed.bytes_current.unsigned_abs();
            println!("{version:?}: {held} bytes");
            assert!(
                freed.bytes_current < 0 && held <= HANDSHAKE_BYTES_MAX as u64,
                "{version:?} takes {held} bytes"
            );
        }
    }
}
