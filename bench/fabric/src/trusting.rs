//! TLS settings of clients that accept every certificate, and a self-signed certificate.
//!
//! The check of a certificate is work of the client, so it must not be part of the measurement.

use std::sync::Arc;

use machine::UnixTime;
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientConfig, Resumption};
use rustls::crypto::ring::{cipher_suite, default_provider};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime as Time};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use tls::Certificate;

/// The server's name.
pub const NAME: &str = "mail.fabric.test";

/// The number of tickets that a client keeps for a server, as rustls does.
pub(crate) const TICKETS: usize = 8;

/// Whether a client reuses the tickets of the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tickets {
    /// The client keeps up to eight tickets, and resumes sessions.
    Kept,
    /// Each handshake is a full one.
    Forgotten,
}

/// A client of TLS 1.3 with AES-128-GCM that offers `protocols` to the server.
///
/// Errors: the library's error, as text for people.
pub fn settings(protocols: &[&str], tickets: Tickets) -> Result<Arc<ClientConfig>, String> {
    provide_randomness();
    let mut provider = default_provider();
    provider.cipher_suites = vec![cipher_suite::TLS13_AES_128_GCM_SHA256];
    let builder = ClientConfig::builder_with_provider(Arc::new(provider));
    let builder = builder
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| error.to_string())?;
    let verifier = builder.dangerous().with_custom_certificate_verifier(Arc::new(Credulous));
    let mut settings = verifier.with_no_client_auth();
    settings.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    settings.resumption = match tickets {
        Tickets::Kept => Resumption::in_memory_sessions(TICKETS),
        Tickets::Forgotten => Resumption::disabled(),
    };
    Ok(Arc::new(settings))
}

/// A certificate of ECDSA P-256 for [`NAME`] and its key, both as PEM.
///
/// Errors: the library's error, as text for people.
pub(crate) fn identity() -> Result<(String, String), String> {
    provide_randomness();
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(|error| error.to_string())?;
    let parameters =
        CertificateParams::new([NAME.to_string()]).map_err(|error| error.to_string())?;
    let certificate = parameters.self_signed(&key).map_err(|error| error.to_string())?;
    Ok((certificate.pem(), key.serialize_pem()))
}

/// The certificate and key of a new [`identity`], parsed and checked for a server.
///
/// Errors: the library's error, as text for people.
pub(crate) fn certificate() -> Result<Certificate, String> {
    let (certificate, key) = identity()?;
    let certificate = Certificate::parse(certificate.as_bytes(), key.as_bytes())
        .map_err(|error| error.to_string())?;
    certificate
        .check(UnixTime::from_seconds(Time::now().as_secs()))
        .map_err(|error| error.to_string())?;
    Ok(certificate)
}

fn provide_randomness() {
    const SOURCE: randomness::Source = |bytes| {
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match getrandom(rest, GetRandomFlags::empty()) {
                Ok(more) => filled += more,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
        true
    };
    randomness::provide(&SOURCE);
}

/// A verifier that accepts every certificate.
#[derive(Debug)]
struct Credulous;

impl ServerCertVerifier for Credulous {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: Time,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        default_provider().signature_verification_algorithms.supported_schemes()
    }
}
