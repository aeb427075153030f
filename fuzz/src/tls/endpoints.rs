//! The server's settings, and clients that trust its certificate. They are made once for all runs.

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

pub(super) struct Endpoints {
    pub(super) settings: TlsSettings,
    clients: [Arc<ClientConfig>; 2],
}

impl Endpoints {
    pub(super) fn get() -> &'static Endpoints {
        static ENDPOINTS: OnceLock<Endpoints> = OnceLock::new();
        ENDPOINTS.get_or_init(Endpoints::new)
    }

    fn new() -> Endpoints {
        chance::seed(1);
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).expect("a key");
        let parameters = CertificateParams::new(vec!["mail.test".to_string()]).expect("a name");
        let signed = parameters.self_signed(&key).expect("a certificate");
        let clock = Clock::default();
        clock.set(TODAY);
        let certificate =
            Certificate::parse(signed.pem().as_bytes(), key.serialize_pem().as_bytes());
        let tickets = TicketKeys::new(&[7; 32]);
        let offer = Offer { name: "https", protocols: PROTOCOLS, tickets: Some(&tickets) };
        let certificate = vec![certificate.expect("the key fits the certificate")];
        let settings = TlsSettings::new(certificate, &clock, &offer).expect("valid settings");
        let root = CertificateDer::from_pem_slice(signed.pem().as_bytes()).expect("a certificate");
        let versions = [&rustls::version::TLS13, &rustls::version::TLS12];
        let clients = versions.map(|version| Arc::new(client(&clock, &root, version)));
        Endpoints { settings, clients }
    }

    /// A client without session tickets, for TLS 1.3 only. `is_tls12`: for TLS 1.2 only.
    pub(super) fn client(&self, is_tls12: bool) -> ClientConnection {
        let mut client = ClientConfig::clone(&self.clients[usize::from(is_tls12)]);
        client.resumption = Resumption::disabled();
        let name = ServerName::try_from("mail.test").expect("a name");
        ClientConnection::new(Arc::new(client), name).expect("the client's settings are valid")
    }
}

fn client(
    clock: &Clock,
    root: &CertificateDer<'static>,
    version: &'static SupportedProtocolVersion,
) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).expect("the root is a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_details(provider, Arc::new(clock.clone()));
    let builder = builder.with_protocol_versions(&[version]).expect("the version is known");
    let mut client = builder.with_root_certificates(roots).with_no_client_auth();
    client.alpn_protocols = PROTOCOLS.iter().map(|protocol| protocol.to_vec()).collect();
    client
}
