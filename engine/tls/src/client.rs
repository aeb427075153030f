//! What we want of servers that we call: versions, algorithms, and who they have to be.
//!
//! Nobody vouches for most hosts that take mail, and what is sent to them would go in the clear if not over TLS. So any certificate will do where nothing says which it has to be: who listens
//! hears nothing, and who stands in between and can change what is said could have taken the offer of TLS away as well (RFC 7435 section 1.2, RFC 3207 section 6). What such a server signs says as little, and is not looked at:
//! certificates and algorithms that no library reads any more are as good as others.
//!
//! Where something does say it, the server has to show it, and to have its key: what its domain publishes (`dane`), or what authorities say of its name (`authorities`).
//!
//! No tickets are asked for or brought back: who calls twice is not to be known by that.
//!
//! Answers to: RFC 3207, RFC 7435, RFC 6066 section 3 (SNI).

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

use crate::authorities::{Authorities, Vouched};
use crate::clock::Clock;
use crate::dane::{Named, Published};
use crate::hybrid::X25519_MLKEM768;
use crate::settings::SettingsError;

/// How servers are called.
#[derive(Clone)]
pub struct ClientSettings {
    config: Arc<ClientConfig>,
}

impl ClientSettings {
    /// Any server will do. `clock`: the one of the core that the connections are on.
    ///
    /// Errors: the library has refused.
    pub fn for_anybody(clock: &Clock) -> Result<ClientSettings, SettingsError> {
        ClientSettings::new(clock, Arc::new(Anybody))
    }

    /// The server has to be the one of which one of these is published. `domain`: whose mail it takes. `clock`: set to the time of day.
    ///
    /// Errors: the library has refused.
    pub fn for_published(
        published: Vec<Published>,
        domain: &str,
        clock: &Clock,
    ) -> Result<ClientSettings, SettingsError> {
        ClientSettings::new(clock, Arc::new(Proven::by(Named::new(published, domain))))
    }

    /// The server has to be the one of the name by which it is called, which may be an address. `clock`: set to the time of day.
    ///
    /// Errors: the library has refused.
    pub fn for_vouched(
        authorities: Authorities,
        clock: &Clock,
    ) -> Result<ClientSettings, SettingsError> {
        ClientSettings::new(clock, Arc::new(Proven::by(Vouched(authorities))))
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
        // For the records, which are ours once the handshake is done.
        config.enable_secret_extraction = true;
        Ok(ClientSettings { config: Arc::new(config) })
    }

    /// `host`: as whom the server knows itself; `None`, or no name: it is not told.
    pub(crate) fn begin(&self, host: Option<&str>) -> Result<UnbufferedClientConnection, Error> {
        let name = host.and_then(|host| ServerName::try_from(host.to_string()).ok());
        let name = name.unwrap_or(ServerName::IpAddress(IpAddr::V4(Ipv4Addr::from([0; 4]))));
        UnbufferedClientConnection::new(self.config.clone(), name)
    }
}

/// What servers may sign with whom nobody asks for a proof.
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

/// Takes every server for the one that was called.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
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

/// What a server has shown, and of what that is to be proof.
pub(crate) struct Evidence<'a> {
    /// Its own certificate.
    pub(crate) own: &'a CertificateDer<'a>,
    /// The others, in any order.
    pub(crate) others: &'a [CertificateDer<'a>],
    /// As whom it was called.
    pub(crate) called: &'a ServerName<'a>,
    now: UnixTime,
    algorithms: &'a WebPkiSupportedAlgorithms,
}

impl Evidence<'_> {
    /// The server's own certificate, if it is valid today and leads to one of these.
    ///
    /// Errors: it does not.
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

/// Who knows whether a certificate is the one of the server that was called.
pub(crate) trait Judge: core::fmt::Debug + Send + Sync {
    /// Errors: it is not.
    fn judge(&self, evidence: &Evidence<'_>) -> Result<(), Error>;
}

/// Takes a server for the one that was called if its certificate is that one's, and it has the certificate's key.
#[derive(Debug)]
struct Proven<J> {
    judge: J,
    algorithms: WebPkiSupportedAlgorithms,
}

impl<J: Judge> Proven<J> {
    fn by(judge: J) -> Proven<J> {
        Proven { judge, algorithms: ring::default_provider().signature_verification_algorithms }
    }
}

impl<J: Judge> ServerCertVerifier for Proven<J> {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        called: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let evidence = Evidence { own, others, called, now, algorithms: &self.algorithms };
        self.judge.judge(&evidence).map(|()| ServerCertVerified::assertion())
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
