//! Tests of handshakes that succeed.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::string::ToString;

use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::{SignatureAlgorithm, SignatureScheme};

use super::hybrid::HYBRID;
use super::world::{
    BOTH, PLAIN, Pems, TestServer, pems, pems_p256, plain_server, provider, seed, server_of,
};
use crate::{Certificate, Clock, NegotiatedParameters, Offer, TlsEvent, TlsSettings, TlsVersion};

/// Sends a text of more than one record in both directions.
fn talk(connection: &mut super::world::TestConnection) {
    let question: Vec<u8> = (0..40_000_u32).map(|number| number as u8).collect();
    connection.client_says(&question[..1]);
    connection.client_says(&question[1..]);
    connection.settle(usize::MAX).unwrap();
    assert_eq!(connection.plaintext, question);
    // A client of rustls buffers at most this number of bytes before the test reads them.
    let answer: Vec<u8> = question.iter().rev().copied().take(15_000).collect();
    connection.server_says(&answer, 4096);
    connection.settle(usize::MAX).unwrap();
    assert_eq!(connection.client_received(), (answer, false));
}

pub(super) fn pems_of_all_kinds() -> Vec<Pems> {
    vec![
        pems_p256("mail.test"),
        pems(&["mail.test"], &rcgen::PKCS_ECDSA_P384_SHA384),
        pems(&["mail.test"], &rcgen::PKCS_ED25519),
        Pems {
            certificate: include_str!("keys/rsa.pem").to_string(),
            key: include_str!("keys/rsa.key.pem").to_string(),
        },
    ]
}

#[test]
fn our_server_works_with_every_suite_group_and_certificate() {
    seed(1);
    let mut seen = Vec::new();
    for (kind, pems) in pems_of_all_kinds().into_iter().enumerate() {
        let pems = [pems];
        let name = if kind == 3 { "rsa.test" } else { "mail.test" };
        for suite in provider().cipher_suites {
            for group in [HYBRID].into_iter().chain(provider().kx_groups) {
                if !group.usable_for_version(suite.version().version) {
                    continue;
                }
                let mut provider = provider();
                provider.cipher_suites = vec![suite];
                provider.kx_groups = vec![group];
                let server = TestServer::with(&pems, &PLAIN, provider, &[suite.version()]);
                let mut connection = server.connect(name);
                // A suite of TLS 1.2 works with only one kind of key.
                if connection.settle(usize::MAX).is_err() {
                    continue;
                }
                connection.established();
                talk(&mut connection);
                assert_eq!(
                    connection.client.negotiated_key_exchange_group().map(|group| group.name()),
                    Some(group.name())
                );
                seen.push((kind, suite.suite(), group.name()));
            }
        }
    }
    // Each kind of key works with three suites of TLS 1.3 and three of TLS 1.2, and each suite with
    // three groups. The suites of TLS 1.3 also work with the hybrid group.
    assert_eq!(seen.len(), 4 * (6 * 3 + 3), "{seen:?}");
}

#[test]
fn segmentation_of_client_bytes_changes_nothing() {
    for version in BOTH {
        let mut first = None;
        for cut in [usize::MAX, 1, 2, 5, 6, 100, 1448] {
            seed(2);
            let mut connection = server_of(version).connect("mail.test");
            connection.settle(cut).unwrap();
            connection.client_says(&[b'a'; 17_000]);
            connection.settle(cut).unwrap();
            connection.server_says(b"220 mail.test\r\n", 512);
            connection.settle(cut).unwrap();
            let story = (
                connection.plaintext.clone(),
                connection.events.clone(),
                connection.client_received(),
            );
            assert_eq!(story.0.len(), 17_000);
            assert_eq!(&story, first.get_or_insert(story.clone()), "cut to {cut}");
        }
    }
}

#[test]
fn data_in_the_last_segment_of_a_handshake_is_received() {
    seed(3);
    for version in BOTH {
        let mut connection = server_of(version).connect("mail.test");
        // A client may send data as soon as its side of the handshake is complete. rustls keeps
        // text that the client writes earlier, and sends it at that time.
        connection.client_says(b"early bird");
        connection.settle(usize::MAX).unwrap();
        assert_eq!(connection.plaintext, b"early bird");
    }
}

#[test]
fn a_handshake_is_deterministic_for_a_seed() {
    let transcript = || {
        seed(4);
        let mut connection = plain_server().connect("mail.test");
        let hello = connection.client_bytes();
        connection.arrive(&hello);
        connection.to_client
    };
    let first = transcript();
    assert!(first.len() > 500);
    assert_eq!(first, transcript());
}

#[test]
fn sni_selects_the_certificate() {
    seed(5);
    let pems = [
        pems_p256("mail.test"),
        pems(&["Web.test", "*.web.test"], &rcgen::PKCS_ECDSA_P256_SHA256),
        pems_p256("deep.a.web.test"),
    ];
    let server = TestServer::new(&pems, &PLAIN);
    let shown = |name: &str| {
        let mut connection = server.connect(name);
        let _ = connection.settle(usize::MAX);
        match connection.client.peer_certificates() {
            Some([certificate]) => pems.iter().position(|pems| {
                use rustls::pki_types::pem::PemObject;
                *certificate
                    == rustls::pki_types::CertificateDer::from_pem_slice(
                        pems.certificate.as_bytes(),
                    )
                    .unwrap()
            }),
            _ => None,
        }
    };
    assert_eq!(shown("mail.test"), Some(0));
    assert_eq!(shown("web.test"), Some(1));
    assert_eq!(shown("a.WEB.test"), Some(1));
    assert_eq!(shown("deep.a.web.test"), Some(2));
    let names: Vec<_> = Certificate::parse(pems[1].certificate.as_bytes(), pems[1].key.as_bytes())
        .unwrap()
        .names()
        .map(ToString::to_string)
        .collect();
    assert_eq!(names, ["Web.test", "*.web.test"]);
}

#[test]
fn an_unknown_server_name_gets_the_first_certificate() {
    seed(6);
    let server = TestServer::new(&[pems_p256("mail.test"), pems_p256("web.test")], &PLAIN);
    for name in ["elsewhere.test", "b.a.web.test", "192.0.2.1"] {
        let mut connection = server.connect(name);
        let error = connection.settle(usize::MAX).unwrap_err();
        // The error of the client shows that it got a certificate for another name.
        assert!(error.to_string().contains("mail.test"), "{error}");
    }
}

#[test]
fn alpn_selects_the_protocol_that_the_server_prefers() {
    seed(7);
    let offer = Offer { protocols: &[b"h2", b"http/1.1"], ..PLAIN };
    let spoken = |protocols: &[&[u8]]| {
        let mut server = TestServer::new(&[pems_p256("mail.test")], &offer);
        server.client.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let mut connection = server.connect("mail.test");
        connection.settle(usize::MAX).map(|()| match connection.events.as_slice() {
            [TlsEvent::Established(NegotiatedParameters { protocol, .. })] => *protocol,
            events => panic!("{events:?}"),
        })
    };
    assert_eq!(spoken(&[b"http/1.1", b"h2"]), Ok(Some(b"h2".as_slice())));
    assert_eq!(spoken(&[b"spdy", b"http/1.1"]), Ok(Some(b"http/1.1".as_slice())));
    assert_eq!(spoken(&[]), Ok(None));
    let refusal = spoken(&[b"spdy"]).unwrap_err().to_string();
    assert!(refusal.contains("NoApplicationProtocol"), "{refusal}");
}

#[test]
fn tls_1_3_is_preferred_over_tls_1_2() {
    seed(8);
    let version = |server: TestServer| {
        let mut connection = server.connect("mail.test");
        connection.established();
        match connection.events.as_slice() {
            [TlsEvent::Established(agreed)] => agreed.version,
            events => panic!("{events:?}"),
        }
    };
    assert_eq!(version(plain_server()), TlsVersion::Tls13);
    assert_eq!(version(server_of(&rustls::version::TLS12)), TlsVersion::Tls12);
}

/// A key that counts its signatures.
#[derive(Debug)]
struct Counting {
    key: Arc<dyn SigningKey>,
    signed: Arc<AtomicUsize>,
}

impl SigningKey for Counting {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<std::boxed::Box<dyn Signer>> {
        self.signed.fetch_add(1, Ordering::Relaxed);
        self.key.choose_scheme(offered)
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.key.algorithm()
    }
}

#[test]
fn a_handshake_step_signs_at_most_once() {
    seed(9);
    for version in BOTH {
        let pems = [pems_p256("mail.test")];
        let mut server = TestServer::with(&pems, &PLAIN, provider(), &[version]);
        let signed = Arc::new(AtomicUsize::new(0));
        let certificate =
            Certificate::parse(pems[0].certificate.as_bytes(), pems[0].key.as_bytes()).unwrap();
        let inner = certificate.key();
        let key = Arc::new(Counting { key: inner.key.clone(), signed: signed.clone() });
        let certificate = certificate.with_key(CertifiedKey::new(inner.cert.clone(), key));
        server.settings = TlsSettings::new(vec![certificate], &Clock::default(), &PLAIN).unwrap();
        let mut connection = server.connect("mail.test");
        let hello = connection.client_bytes();
        let mut bytes = hello.clone();
        for _ in 0..3 {
            assert_eq!(connection.server.receive(&mut bytes, &mut []).event, TlsEvent::Work);
        }
        assert_eq!(signed.load(Ordering::Relaxed), 0, "receiving needs no signature");
        connection.arrive(&hello);
        assert_eq!((signed.load(Ordering::Relaxed), connection.steps), (1, 1));
        connection.established();
        assert_eq!(signed.load(Ordering::Relaxed), 1);
        assert!(connection.steps <= 4, "one record a step: {}", connection.steps);
    }
}

#[test]
fn nothing_is_encrypted_before_the_handshake_is_complete() {
    seed(10);
    let mut connection = plain_server().connect("mail.test");
    let mut block = [0; 512];
    let encrypted = connection.server.encrypt(b"220 hello", &mut block);
    assert_eq!((encrypted.taken, encrypted.written), (0, 0));
    assert_eq!(connection.server.close(&mut block), 0);
    let hello = connection.client_bytes();
    connection.arrive(&hello);
    assert_eq!(
        connection.server.encrypt(b"220 hello", &mut block).taken,
        0,
        "the handshake is incomplete"
    );
    connection.established();
    assert_eq!(connection.server.encrypt(b"220 hello", &mut block).taken, 9);
}
