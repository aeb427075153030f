//! Tests of our client with the server of rustls.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use std::io::{Read, Write};

use proptest::prelude::{ProptestConfig, any, prop, proptest};
use rustls::crypto::ring::kx_group::{SECP256R1, SECP384R1, X25519};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{HandshakeKind, NamedGroup, ServerConfig, ServerConnection, SupportedProtocolVersion};

use super::handshakes::pems_of_all_kinds;
use super::world::{BOTH, Pems, pems_p256, provider, seed};
use crate::hybrid::X25519_MLKEM768 as HYBRID_SERVER;
use crate::protection::RecordCipher;
use crate::record::ContentType;
use crate::{
    Alert, ClientSettings, Clock, Connection, FLIGHT_BYTES_MAX, Failure, NegotiatedParameters,
    TlsEvent, TlsVersion,
};

/// The settings of a server of rustls.
fn server(
    pems: &Pems,
    provider: rustls::crypto::CryptoProvider,
    versions: &[&'static SupportedProtocolVersion],
) -> ServerConfig {
    let builder = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(versions)
        .unwrap();
    let chain = vec![CertificateDer::from_pem_slice(pems.certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(pems.key.as_bytes()).unwrap();
    builder.with_no_client_auth().with_single_cert(chain, key).unwrap()
}

fn plain_server(version: &'static SupportedProtocolVersion) -> ServerConfig {
    server(&pems_p256("mx.test"), provider(), &[version])
}

/// A connection between our client and a server of rustls.
pub(super) struct Call {
    client: Connection,
    server: ServerConnection,
    /// Bytes that have arrived at the client and have not been processed.
    stream: Vec<u8>,
    to_server: Vec<u8>,
    /// Plaintext that the client has taken.
    plaintext: Vec<u8>,
    /// Events of the client, without plaintext and `Nothing`.
    pub(super) events: Vec<TlsEvent>,
    steps: usize,
}

impl Call {
    fn to(config: ServerConfig, host: Option<&str>) -> Call {
        Call::with(&ClientSettings::for_any_certificate(&Clock::default()).unwrap(), config, host)
    }

    pub(super) fn with(
        settings: &ClientSettings,
        config: ServerConfig,
        host: Option<&str>,
    ) -> Call {
        Call {
            client: Connection::connect(settings, host).unwrap(),
            server: ServerConnection::new(Arc::new(config)).unwrap(),
            stream: Vec::new(),
            to_server: Vec::new(),
            plaintext: Vec::new(),
            events: Vec::new(),
            steps: 0,
        }
    }

    /// Lets bytes arrive at the client, and processes them.
    fn arrive(&mut self, bytes: &[u8]) {
        self.stream.extend_from_slice(bytes);
        let mut out = vec![0; FLIGHT_BYTES_MAX];
        for _ in 0..10_000 + bytes.len() {
            let mut progress = self.client.receive(&mut self.stream, &mut out);
            if progress.event == TlsEvent::Work {
                self.steps += 1;
                progress = self.client.work(&mut self.stream, &mut out);
            }
            self.stream.drain(..progress.done);
            self.to_server.extend_from_slice(&out[..progress.written]);
            match progress.event {
                TlsEvent::Bytes => return,
                TlsEvent::Nothing => {}
                TlsEvent::Plaintext(count) => {
                    self.plaintext.extend_from_slice(&self.stream[..count]);
                    let done = self.client.taken(count);
                    self.stream.drain(..done);
                }
                event => self.events.push(event),
            }
        }
        panic!("the connection makes no progress");
    }

    /// Passes bytes in both directions until neither side sends more. `cut`: the maximum number of
    /// bytes that arrive at once.
    ///
    /// Errors: the server rejects our client.
    pub(super) fn settle(&mut self, cut: usize) -> Result<(), rustls::Error> {
        self.arrive(&[]);
        loop {
            let mut received = std::mem::take(&mut self.to_server);
            let is_silent = received.is_empty();
            while !received.is_empty() {
                let count = self.server.read_tls(&mut received.as_slice()).unwrap();
                received.drain(..count);
                self.server.process_new_packets()?;
            }
            let mut sent = Vec::new();
            while self.server.wants_write() {
                self.server.write_tls(&mut sent).unwrap();
            }
            if is_silent && sent.is_empty() {
                return Ok(());
            }
            sent.chunks(cut).for_each(|bytes| self.arrive(bytes));
        }
    }

    fn agreed(&self) -> NegotiatedParameters {
        match self.events.as_slice() {
            [TlsEvent::Established(agreed)] => *agreed,
            events => panic!("{events:?}"),
        }
    }

    /// Lets the client send `text`. Returns the text that the server receives.
    fn say(&mut self, mut text: &[u8], cut: usize) -> Vec<u8> {
        let mut received = Vec::new();
        let mut block = [0; 4096];
        while !text.is_empty() {
            let encrypted = self.client.encrypt(text, &mut block);
            assert!(encrypted.taken > 0 && encrypted.written > 0, "the output has space");
            text = &text[encrypted.taken..];
            self.to_server.extend_from_slice(&block[..encrypted.written]);
            self.settle(cut).unwrap();
            let mut part = [0; 8192];
            while let Ok(count @ 1..) = self.server.reader().read(&mut part) {
                received.extend_from_slice(&part[..count]);
            }
        }
        received
    }

    /// Sends a text of more than one record in both directions.
    fn talk(&mut self, cut: usize) {
        let text: Vec<u8> = (0..40_000_u32).map(|number| number as u8).collect();
        assert_eq!(self.say(&text, cut), text);
        for part in text.chunks(15_000) {
            self.server.writer().write_all(part).unwrap();
            self.settle(cut).unwrap();
        }
        assert_eq!(std::mem::take(&mut self.plaintext), text);
    }
}

#[test]
fn our_client_works_with_every_suite_group_and_certificate() {
    seed(200);
    let mut seen = 0;
    for pems in pems_of_all_kinds() {
        for suite in provider().cipher_suites {
            for group in [HYBRID_SERVER].into_iter().chain(provider().kx_groups) {
                if !group.usable_for_version(suite.version().version) {
                    continue;
                }
                let mut provider = provider();
                provider.cipher_suites = vec![suite];
                provider.kx_groups = vec![group];
                // The certificate is not for this name and has no known authority. The client
                // accepts it all the same.
                let mut call =
                    Call::to(server(&pems, provider, &[suite.version()]), Some("other.test"));
                // A suite of TLS 1.2 works with only one kind of key.
                if call.settle(usize::MAX).is_err() {
                    continue;
                }
                call.talk(usize::MAX);
                let version =
                    if suite.tls13().is_some() { TlsVersion::Tls13 } else { TlsVersion::Tls12 };
                assert_eq!(
                    call.agreed(),
                    NegotiatedParameters { protocol: None, is_resumed: false, version }
                );
                assert_eq!(
                    call.server.negotiated_key_exchange_group().map(|group| group.name()),
                    Some(group.name())
                );
                assert_eq!(call.server.server_name(), Some("other.test"));
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 4 * (6 * 3 + 3));
}

#[test]
fn segmentation_of_server_bytes_changes_nothing() {
    for version in BOTH {
        let mut first = None;
        for cut in [usize::MAX, 1, 2, 5, 6, 100, 1448] {
            seed(201);
            let mut call = Call::to(plain_server(version), Some("mx.test"));
            call.settle(cut).unwrap();
            let steps = call.steps;
            call.talk(cut);
            let story = (call.agreed(), steps);
            assert_eq!(story, *first.get_or_insert(story), "cut to {cut}");
            assert!(steps <= 8, "one record a step: {steps}");
        }
    }
}

#[test]
fn the_client_sends_hybrid_and_x25519_shares() {
    seed(202);
    for (groups, agreed, how) in [
        (vec![HYBRID_SERVER, X25519], NamedGroup::X25519MLKEM768, HandshakeKind::Full),
        (vec![X25519, SECP256R1], NamedGroup::X25519, HandshakeKind::Full),
        (vec![SECP384R1], NamedGroup::secp384r1, HandshakeKind::FullWithHelloRetryRequest),
    ] {
        let mut provider = provider();
        provider.kx_groups = groups;
        let mut call = Call::to(server(&pems_p256("mx.test"), provider, BOTH), Some("mx.test"));
        call.settle(usize::MAX).unwrap();
        call.talk(usize::MAX);
        assert_eq!(
            call.server.negotiated_key_exchange_group().map(|group| group.name()),
            Some(agreed)
        );
        assert_eq!(call.server.handshake_kind(), Some(how));
    }
}

#[test]
fn no_server_name_is_sent_for_an_address() {
    seed(203);
    for host in [None, Some("192.0.2.1"), Some("no name"), Some("")] {
        let mut call = Call::to(plain_server(&rustls::version::TLS13), host);
        call.settle(usize::MAX).unwrap();
        call.talk(usize::MAX);
        assert_eq!(call.server.server_name(), None);
    }
}

/// The server sends many tickets, each in a separate record.
#[test]
fn the_client_ignores_tickets() {
    seed(204);
    let mut config = plain_server(&rustls::version::TLS13);
    config.send_tls13_tickets = 20;
    config.session_storage = rustls::server::ServerSessionMemoryCache::new(100);
    let mut call = Call::to(config, Some("mx.test"));
    call.settle(usize::MAX).unwrap();
    call.talk(100);
    call.agreed();
}

/// Takes the keys of the server. The test encrypts the next records itself with the returned
/// cipher.
fn forged(call: &mut Call) -> RecordCipher {
    let another = ServerConnection::new(Arc::new(plain_server(&rustls::version::TLS13))).unwrap();
    let server = std::mem::replace(&mut call.server, another);
    let (number, secrets) = server.dangerous_extract_secrets().unwrap().tx;
    RecordCipher::new(number, secrets, true).unwrap()
}

#[test]
fn tickets_may_be_split_over_records_without_interruption() {
    let ticket = |length: usize| {
        let [_, high, middle, low] = (length as u32).to_be_bytes();
        [vec![4, high, middle, low], vec![7; length]].concat()
    };
    let new_keys = [24, 0, 0, 1, 0];
    let two = [ticket(200), ticket(0), ticket(100)].concat();
    for (records, is_fine) in [
        (vec![(ContentType::Handshake, two.clone())], true),
        (
            vec![
                (ContentType::Handshake, two[..50].to_vec()),
                (ContentType::Handshake, two[50..].to_vec()),
            ],
            true,
        ),
        (vec![(ContentType::Handshake, [two.clone(), new_keys.to_vec()].concat())], true),
        (
            vec![
                (ContentType::Handshake, ticket(20_000)[..9_000].to_vec()),
                (ContentType::Handshake, ticket(20_000)[9_000..].to_vec()),
            ],
            true,
        ),
        (
            vec![
                (ContentType::Handshake, two[..50].to_vec()),
                (ContentType::ApplicationData, b"250 OK\r\n".to_vec()),
            ],
            false,
        ),
        (
            vec![(ContentType::Handshake, two[..50].to_vec()), (ContentType::Alert, vec![1, 0])],
            false,
        ),
        (vec![(ContentType::Handshake, two[..2].to_vec())], false),
        (vec![(ContentType::Handshake, Vec::new())], false),
        (vec![(ContentType::Handshake, [new_keys.to_vec(), two.clone()].concat())], false),
        (vec![(ContentType::Handshake, vec![0, 0, 0, 0])], false),
        (vec![(ContentType::Handshake, ticket(1)); 40], false),
    ] {
        seed(205);
        let mut config = plain_server(&rustls::version::TLS13);
        config.enable_secret_extraction = true;
        config.send_tls13_tickets = 0;
        let mut call = Call::to(config, Some("mx.test"));
        call.settle(usize::MAX).unwrap();
        let mut forger = forged(&mut call);
        for (content, text) in &records {
            let mut record = vec![0; 20_000];
            let (_, written) = forger.encrypt(*content, text.as_slice(), &mut record);
            call.arrive(&record[..written]);
        }
        let failed = call.events.iter().any(|event| matches!(event, TlsEvent::Failed(_)));
        assert_eq!(failed, !is_fine, "{:?}", call.events);
        assert_eq!(call.plaintext, b"");
    }
}

#[test]
fn a_non_tls_server_gets_an_alert() {
    for (sent, alert) in [
        (b"220 mail.test\r\n".to_vec(), Alert::UNEXPECTED_MESSAGE),
        (vec![0x16, 3, 1, 0xff, 0xff], Alert::RECORD_OVERFLOW),
    ] {
        seed(206);
        let mut call = Call::to(plain_server(&rustls::version::TLS13), Some("mx.test"));
        call.arrive(&[]);
        call.arrive(&sent);
        assert_eq!(call.events, [TlsEvent::Failed(Failure::Refused(alert))]);
        assert_eq!(
            call.client.encrypt(b"MAIL FROM:<>\r\n", &mut [0; 512]).taken,
            0,
            "no record follows the alert"
        );
    }
}

#[test]
fn an_alert_of_the_server_ends_the_connection() {
    seed(207);
    let mut provider = provider();
    provider.kx_groups = vec![HYBRID_SERVER];
    // The server supports only a group that TLS 1.2 does not allow, so the sides have no common
    // group.
    let mut call = Call::to(
        server(&pems_p256("mx.test"), provider, &[&rustls::version::TLS12]),
        Some("mx.test"),
    );
    assert!(call.settle(usize::MAX).is_err());
    let mut sent = Vec::new();
    while call.server.wants_write() {
        call.server.write_tls(&mut sent).unwrap();
    }
    call.arrive(&sent);
    assert!(
        matches!(call.events.as_slice(), [TlsEvent::Failed(Failure::PeerGaveUp(_))]),
        "{:?}",
        call.events
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// If any byte that the server sends is changed, the client gets no plaintext.
    #[test]
    fn a_changed_server_flight_yields_no_plaintext(
        which in 0..2_usize,
        at in any::<prop::sample::Index>(),
        bits in 1..=u8::MAX,
        garbage in prop::collection::vec(any::<u8>(), 0..100),
        cut in 1..3000_usize,
    ) {
        seed(208);
        let mut call = Call::to(plain_server(BOTH[which]), Some("mx.test"));
        call.arrive(&[]);
        let mut hello = std::mem::take(&mut call.to_server);
        while !hello.is_empty() {
            let count = call.server.read_tls(&mut hello.as_slice()).unwrap();
            hello.drain(..count);
            call.server.process_new_packets().unwrap();
        }
        let mut sent = Vec::new();
        while call.server.wants_write() {
            call.server.write_tls(&mut sent).unwrap();
        }
        let place = at.index(sent.len());
        sent[place] ^= bits;
        sent.extend_from_slice(&garbage);
        sent.chunks(cut).for_each(|bytes| call.arrive(bytes));
        // The client does not verify signatures here, so it may accept a changed byte. Then the
        // keys of the two sides differ.
        let _ = call.settle(usize::MAX);
        proptest::prop_assert_eq!(call.plaintext.len(), 0);
    }
}
