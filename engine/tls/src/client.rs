//! TLS settings for outgoing connections: versions, algorithms, and the identity that a server must
//! prove.
//!
//! Most MX hosts have no certificate of a trusted authority. If we required one, mail to these
//! hosts would have to be sent without TLS. So we accept any certificate, unless a policy requires
//! a certain one. Even with an unchecked certificate, a passive listener cannot read the mail. A
//! check would not stop an active attacker, which could remove the offer of TLS (RFC 7435 section
//! 1.2, RFC 3207 section 6). The signature of an unchecked server proves nothing, so it is not
//! verified. So we accept even certificates and algorithms that our library does not support.
//!
//! If a policy exists, the server must show a certificate that matches the policy, and must have
//! the key of the certificate. The policy is either the TLSA records that its domain publishes
//! (`dane`), or a list of authorities for its name (`authorities`).
//!
//! We do not use session tickets, because a ticket would identify us on the next connection.
//!
//! Implements: RFC 3207, RFC 7435, RFC 6066 section 3 (SNI).

use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    Resumption, UnbufferedClientConnection, verify_server_cert_signed_by_trust_anchor,
};
use rustls::crypto::{
    WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::server::ParsedCertificate;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, IpAddr, Ipv4Addr, ServerName, UnixTime};

use crate::authorities::{Authorities, AuthorityPolicy};
use crate::clock::Clock;
use crate::dane::{DanePolicy, Published};
use crate::hybrid::X25519_MLKEM768;
use crate::settings::SettingsError;

/// Settings for outgoing connections.
#[derive(Clone)]
pub struct ClientSettings {
    config: Arc<ClientConfig>,
}

impl ClientSettings {
    /// Settings that accept any server. `clock`: the clock of the core that handles the
    /// connections.
    ///
    /// Errors: rustls refuses the settings.
    pub fn for_any_certificate(clock: &Clock) -> Result<ClientSettings, SettingsError> {
        ClientSettings::new(clock, Arc::new(AcceptAll))
    }

    /// Settings for a server that must match one of the TLSA records `published`. `domain`: the
    /// recipient domain. `clock`: a clock that is set to the time of day.
    ///
    /// Errors: rustls refuses the settings.
    pub fn for_published(
        published: Vec<Published>,
        domain: &str,
        clock: &Clock,
    ) -> Result<ClientSettings, SettingsError> {
        ClientSettings::new(clock, Arc::new(PolicyVerifier::by(DanePolicy::new(published, domain))))
    }

    /// Settings for a server that must prove its name, which may be an IP address, by
    /// `authorities`. `clock`: a clock that is set to the time of day.
    ///
    /// Errors: rustls refuses the settings.
    pub fn for_vouched(
        authorities: Authorities,
        clock: &Clock,
    ) -> Result<ClientSettings, SettingsError> {
        ClientSettings::new(clock, Arc::new(PolicyVerifier::by(AuthorityPolicy(authorities))))
    }

    fn new(
        clock: &Clock,
        verifier: Arc<dyn ServerCertVerifier>,
    ) -> Result<ClientSettings, SettingsError> {
        let mut provider = ring::default_provider();
        provider.kx_groups.insert(0, X25519_MLKEM768);
        let builder =
            ClientConfig::builder_with_details(Arc::new(provider), Arc::new(clock.clone()));
        let builder =
            builder.with_protocol_versions(&[&TLS13, &TLS12]).map_err(SettingsError::Library)?;
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        let mut config = builder.with_no_client_auth();
        config.resumption = Resumption::disabled();
        // This crate handles the records after the handshake, so it needs the keys.
        config.enable_secret_extraction = true;
        Ok(ClientSettings { config: Arc::new(config) })
    }

    /// Begins a connection. `host`: the server name to send. With `None`, or a malformed name, the
    /// client sends no name.
    pub(crate) fn begin(&self, host: Option<&str>) -> Result<UnbufferedClientConnection, Error> {
        let name = host.and_then(|host| ServerName::try_from(host.to_string()).ok());
        let name = name.unwrap_or(ServerName::IpAddress(IpAddr::V4(Ipv4Addr::from([0; 4]))));
        UnbufferedClientConnection::new(self.config.clone(), name)
    }
}

/// The signature schemes that we offer to servers that need no proof.
const SCHEMES: [SignatureScheme; 11] = [
    SignatureScheme::ECDSA_NISTP256_SHA256,
    SignatureScheme::ECDSA_NISTP384_SHA384,
    SignatureScheme::ECDSA_NISTP521_SHA512,
    SignatureScheme::ED25519,
    SignatureScheme::ED448,
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::RSA_PSS_SHA384,
    SignatureScheme::RSA_PSS_SHA512,
    SignatureScheme::RSA_PKCS1_SHA256,
    SignatureScheme::RSA_PKCS1_SHA384,
    SignatureScheme::RSA_PKCS1_SHA512,
];

/// A verifier that accepts every server.
#[derive(Debug)]
struct AcceptAll;

impl ServerCertVerifier for AcceptAll {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        SCHEMES.to_vec()
    }
}

/// The certificates that a server has shown, and the name that the certificates must prove.
pub(crate) struct Evidence<'a> {
    /// The server's own certificate.
    pub(crate) own: &'a CertificateDer<'a>,
    /// The other certificates that the server has sent, in any order.
    pub(crate) others: &'a [CertificateDer<'a>],
    /// The name of the server that we connected to.
    pub(crate) called: &'a ServerName<'a>,
    now: UnixTime,
    algorithms: &'a WebPkiSupportedAlgorithms,
}

impl Evidence<'_> {
    /// The server's own certificate, if it is valid today and chains to one of `roots`.
    ///
    /// Errors: the certificate is not valid, or does not chain to one of them.
    pub(crate) fn vouched_for_by(
        &self,
        roots: &RootCertStore,
    ) -> Result<ParsedCertificate<'_>, Error> {
        let own = ParsedCertificate::try_from(self.own)?;
        verify_server_cert_signed_by_trust_anchor(
            &own,
            roots,
            self.others,
            self.now,
            self.algorithms.all,
        )?;
        Ok(own)
    }
}

/// Decides whether a certificate belongs to the server that we connected to.
pub(crate) trait CertificatePolicy: core::fmt::Debug + Send + Sync {
    /// Checks the certificate. Errors: the certificate does not belong to the server.
    fn check(&self, evidence: &Evidence<'_>) -> Result<(), Error>;
}

/// Accepts a server if its certificate matches the policy, and if the server has the key of that
/// certificate.
#[derive(Debug)]
struct PolicyVerifier<J> {
    policy: J,
    algorithms: WebPkiSupportedAlgorithms,
}

impl<J: CertificatePolicy> PolicyVerifier<J> {
    fn by(policy: J) -> PolicyVerifier<J> {
        PolicyVerifier {
            policy,
            algorithms: ring::default_provider().signature_verification_algorithms,
        }
    }
}

impl<J: CertificatePolicy> ServerCertVerifier for PolicyVerifier<J> {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        called: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let evidence = Evidence { own, others, called, now, algorithms: &self.algorithms };
        self.policy.check(&evidence).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
