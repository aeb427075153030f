//! A server's settings and a client that trusts its certificate: made once, always the same.

use std::sync::{Arc, OnceLock};

use machine::UnixTime;
use rcgen::{CertificateParams, KeyPair};
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion};
use tls::{Certificate, Clock, Offer, TicketKeys, TlsSettings};

/// Some day in 2027.
const TODAY: UnixTime = UnixTime::from_seconds(1_800_000_000);

const PROTOCOLS: &[&[u8]] = &[b"h2", b"http/1.1"];

pub(super) struct House {
    pub(super) settings: TlsSettings,
    clients: [Arc<ClientConfig>; 2],
}

impl House {
    pub(super) fn get() -> &'static House {
        static HOUSE: OnceLock<House> = OnceLock::new();
        HOUSE.get_or_init(House::new)
    }

    fn new() -> House {
        chance::seed(1);
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).expect("a key is made");
        let parameters = CertificateParams::new(vec!["mail.test".to_string()]).expect("a name");
        let made = parameters.self_signed(&key).expect("it is signed");
        let clock = Clock::default();
        clock.set(TODAY);
        let certificate = Certificate::parse(made.pem().as_bytes(), key.serialize_pem().as_bytes());
        let tickets = TicketKeys::new(&[7; 32]);
        let offer = Offer { name: "https", protocols: PROTOCOLS, tickets: Some(&tickets) };
        let settings = TlsSettings::new(vec![certificate.expect("both fit")], &clock, &offer)
            .expect("they are right");
        let root =
            CertificateDer::from_pem_slice(made.pem().as_bytes()).expect("it is a certificate");
        let versions = [&rustls::version::TLS13, &rustls::version::TLS12];
        let clients = versions.map(|version| Arc::new(client(&clock, &root, version)));
        House { settings, clients }
    }

    /// A client of TLS 1.3, or of 1.2 alone, that knows no ticket.
    pub(super) fn client(&self, is_old: bool) -> ClientConnection {
        let mut client = ClientConfig::clone(&self.clients[usize::from(is_old)]);
        client.resumption = Resumption::disabled();
        let name = ServerName::try_from("mail.test").expect("a name");
        ClientConnection::new(Arc::new(client), name).expect("the client's own settings are right")
    }
}

fn client(
    clock: &Clock,
    root: &CertificateDer<'static>,
    version: &'static SupportedProtocolVersion,
) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).expect("it is a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_details(provider, Arc::new(clock.clone()));
    let builder = builder.with_protocol_versions(&[version]).expect("it is known");
    let mut client = builder.with_root_certificates(roots).with_no_client_auth();
    client.alpn_protocols = PROTOCOLS.iter().map(|protocol| protocol.to_vec()).collect();
    client
}
