//! A test world of one client and one server: their random numbers, time, certificates, and the
//! bytes between them.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::mem::replace;
use std::string::{String, ToString};

use machine::UnixTime;
use rcgen::{CertificateParams, KeyPair, SignatureAlgorithm};
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion};

use crate::protection::RecordCipher;
use crate::{
    Certificate, Clock, Connection, FLIGHT_BYTES_MAX, Failure, Offer, TicketKeys, TlsEvent,
    TlsSettings,
};

/// A day in 2027.
pub(super) const TODAY: u64 = 1_800_000_000;

/// Seeds the random numbers of this test.
pub(super) fn seed(seed: u64) {
    chance::seed(seed);
}

/// A certificate and its key in PEM form.
pub(super) struct Pems {
    pub(super) certificate: String,
    pub(super) key: String,
}

pub(super) fn pems(names: &[&str], algorithm: &'static SignatureAlgorithm) -> Pems {
    let key = KeyPair::generate_for(algorithm).unwrap();
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
    Pems { certificate: certificate.pem(), key: key.serialize_pem() }
}

pub(super) fn pems_p256(name: &str) -> Pems {
    pems(&[name], &rcgen::PKCS_ECDSA_P256_SHA256)
}

/// The settings of a server, and a client that trusts its certificates.
pub(super) struct TestServer {
    pub(super) clock: Clock,
    pub(super) settings: TlsSettings,
    pub(super) client: ClientConfig,
}

pub(super) const PLAIN: Offer<'static> = Offer { name: "https", protocols: &[], tickets: None };

/// The default provider for a client.
pub(super) fn provider() -> CryptoProvider {
    rustls::crypto::ring::default_provider()
}

pub(super) const BOTH: &[&SupportedProtocolVersion] =
    &[&rustls::version::TLS13, &rustls::version::TLS12];

impl TestServer {
    pub(super) fn new(pems: &[Pems], offer: &Offer<'_>) -> TestServer {
        TestServer::with(pems, offer, provider(), BOTH)
    }

    pub(super) fn with(
        pems: &[Pems],
        offer: &Offer<'_>,
        provider: CryptoProvider,
        versions: &[&'static SupportedProtocolVersion],
    ) -> TestServer {
        let clock = Clock::default();
        clock.set(UnixTime::from_seconds(TODAY));
        let mut roots = RootCertStore::empty();
        let mut certificates = Vec::new();
        for pems in pems {
            certificates.push(
                Certificate::parse(pems.certificate.as_bytes(), pems.key.as_bytes()).unwrap(),
            );
            roots
                .add(CertificateDer::from_pem_slice(pems.certificate.as_bytes()).unwrap())
                .unwrap();
        }
        let settings = TlsSettings::new(certificates, &clock, offer).unwrap();
        let builder =
            ClientConfig::builder_with_details(Arc::new(provider), Arc::new(clock.clone()));
        let builder = builder.with_protocol_versions(versions).unwrap();
        let mut client = builder.with_root_certificates(roots).with_no_client_auth();
        client.resumption = Resumption::in_memory_sessions(8);
        client.enable_secret_extraction = true;
        TestServer { clock, settings, client }
    }

    pub(super) fn connect(&self, name: &str) -> TestConnection {
        let name = ServerName::try_from(name.to_string()).unwrap();
        let client = ClientConnection::new(Arc::new(self.client.clone()), name).unwrap();
        TestConnection { client, ..TestConnection::without_client(&self.settings) }
    }
}

/// A server with one certificate and default settings.
pub(super) fn plain_server() -> TestServer {
    TestServer::new(&[pems_p256("mail.test")], &PLAIN)
}

/// A server with one certificate and default settings, and a client that supports only `version`.
pub(super) fn server_of(version: &'static SupportedProtocolVersion) -> TestServer {
    TestServer::with(&[pems_p256("mail.test")], &PLAIN, provider(), &[version])
}

fn quiet_client() -> ClientConfig {
    let builder = ClientConfig::builder_with_provider(Arc::new(provider()))
        .with_protocol_versions(BOTH)
        .unwrap();
    builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
}

/// One connection: the client, the server, and the bytes between them.
pub(super) struct TestConnection {
    pub(super) client: ClientConnection,
    pub(super) server: Connection,
    /// Bytes that have arrived at the server and have not been processed.
    pub(super) stream: Vec<u8>,
    /// Bytes that the server has sent and the client has not received yet.
    pub(super) to_client: Vec<u8>,
    /// Plaintext that the server's session has taken.
    pub(super) plaintext: Vec<u8>,
    /// Events of the server, without plaintext and `Nothing`.
    pub(super) events: Vec<TlsEvent>,
    /// The number of handshake steps.
    pub(super) steps: usize,
    /// The maximum number of bytes that the session takes at once.
    pub(super) bite: usize,
    /// Whether the session takes only whole lines.
    pub(super) takes_lines: bool,
}

impl TestConnection {
    /// A server with a peer that is not a TLS client.
    pub(super) fn without_client(settings: &TlsSettings) -> TestConnection {
        // This client is a placeholder, which is replaced or not used.
        let unused = ServerName::try_from("unused.test").unwrap();
        TestConnection {
            client: ClientConnection::new(Arc::new(quiet_client()), unused).unwrap(),
            server: Connection::accept(settings).unwrap(),
            stream: Vec::new(),
            to_client: Vec::new(),
            plaintext: Vec::new(),
            events: Vec::new(),
            steps: 0,
            bite: usize::MAX,
            takes_lines: false,
        }
    }

    /// Takes the output of the client.
    pub(super) fn client_bytes(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.client.wants_write() {
            self.client.write_tls(&mut bytes).unwrap();
        }
        bytes
    }

    /// Lets bytes arrive at the server, and processes them.
    pub(super) fn arrive(&mut self, bytes: &[u8]) {
        self.stream.extend_from_slice(bytes);
        let mut out = vec![0; FLIGHT_BYTES_MAX];
        // A record may yield few bytes, so the number of steps may be large.
        let mut needs_more = false;
        for _ in 0..10_000 + bytes.len() {
            let mut progress = match replace(&mut needs_more, false) {
                true => self.server.more(&mut self.stream, &mut out),
                false => self.server.receive(&mut self.stream, &mut out),
            };
            if progress.event == TlsEvent::Work {
                self.steps += 1;
                progress = self.server.work(&mut self.stream, &mut out);
            }
            self.stream.drain(..progress.done);
            self.to_client.extend_from_slice(&out[..progress.written]);
            match progress.event {
                TlsEvent::Bytes => {
                    assert!(self.server.held() <= self.stream.len());
                    return;
                }
                TlsEvent::Nothing => {}
                TlsEvent::Plaintext(count) => {
                    let bite = match self.takes_lines {
                        true => self.stream[..count]
                            .iter()
                            .rposition(|byte| *byte == b'\n')
                            .map_or(0, |at| at + 1),
                        false => count.min(self.bite),
                    };
                    needs_more = bite == 0;
                    self.plaintext.extend_from_slice(&self.stream[..bite]);
                    let done = self.server.taken(bite);
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
    /// Errors: the client rejects our server.
    pub(super) fn settle(&mut self, cut: usize) -> Result<(), rustls::Error> {
        loop {
            let sent = self.client_bytes();
            for bytes in sent.chunks(cut) {
                self.arrive(bytes);
            }
            let mut received = std::mem::take(&mut self.to_client);
            if sent.is_empty() && received.is_empty() {
                return Ok(());
            }
            while !received.is_empty() {
                let count = self.client.read_tls(&mut received.as_slice()).unwrap();
                received.drain(..count);
                self.client.process_new_packets()?;
            }
        }
    }

    pub(super) fn established(&mut self) {
        self.settle(usize::MAX).unwrap();
        assert!(matches!(self.events.as_slice(), [TlsEvent::Established(_)]), "{:?}", self.events);
        assert!(!self.client.is_handshaking());
    }

    /// Lets the session of the server send `text`. Returns the number of records.
    pub(super) fn server_says(&mut self, mut text: &[u8], room: usize) -> usize {
        let mut records = 0;
        let mut block = vec![0; room];
        while !text.is_empty() {
            let encrypted = self.server.encrypt(text, &mut block);
            assert!(encrypted.taken > 0 && encrypted.written > 0, "the output has space");
            self.to_client.extend_from_slice(&block[..encrypted.written]);
            text = &text[encrypted.taken..];
            records += 1;
        }
        records
    }

    pub(super) fn client_says(&mut self, text: &[u8]) {
        use std::io::Write;
        self.client.writer().write_all(text).unwrap();
    }

    /// The text that the client has received since the last call, and whether the server has
    /// closed.
    pub(super) fn client_received(&mut self) -> (Vec<u8>, bool) {
        use std::io::Read;
        let mut text = Vec::new();
        match self.client.reader().read_to_end(&mut text) {
            Ok(_) => (text, true),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => (text, false),
            Err(error) => panic!("{error}"),
        }
    }

    /// Takes the keys of the client. The test encrypts the next records itself with the returned
    /// cipher.
    pub(super) fn forger(&mut self) -> RecordCipher {
        let unused = ServerName::try_from("unused.test").unwrap();
        let another = ClientConnection::new(Arc::new(quiet_client()), unused).unwrap();
        let client = replace(&mut self.client, another);
        let is_tls13 = client.protocol_version() == Some(rustls::ProtocolVersion::TLSv1_3);
        let (number, secrets) = client.dangerous_extract_secrets().unwrap().tx;
        RecordCipher::new(number, secrets, is_tls13).unwrap()
    }

    pub(super) fn failure(&self) -> Option<&Failure> {
        self.events.iter().find_map(|event| match event {
            TlsEvent::Failed(failure) => Some(failure),
            _ => None,
        })
    }
}

/// The ticket secret that the cores of a machine share.
pub(super) fn ticket_keys() -> TicketKeys {
    TicketKeys::new(&[7; 32])
}
