//! Selects the certificate for a client by the server name that it asks for (RFC 6066 section 3,
//! RFC 6125 section 6.4).

use alloc::sync::Arc;
use alloc::vec::Vec;

use rustls::CipherSuite;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::certificate::Certificate;

/// The cipher suite with which a client says that an attempt with a later version has failed (RFC
/// 7507): `TLS_FALLBACK_SCSV`.
const FALLBACK: u16 = 0x5600;

/// The first byte of the cipher suites of TLS 1.3 (RFC 8446 section B.4).
const TLS13_SUITES: u8 = 0x13;

/// The certificates of a service. The first one is the default.
#[derive(Debug)]
pub(crate) struct ServiceCertificates {
    certificates: Vec<Certificate>,
}

impl ServiceCertificates {
    /// `certificates`: the first certificate is for a client that sends no name, or an unknown
    /// name.
    pub(crate) fn new(certificates: Vec<Certificate>) -> ServiceCertificates {
        ServiceCertificates { certificates }
    }

    fn find(&self, name: Option<&str>) -> Option<&Certificate> {
        let certificate = name
            .and_then(|name| self.certificates.iter().find(|certificate| certificate.is_for(name)));
        certificate.or_else(|| self.certificates.first())
    }
}

impl ResolvesServerCert for ServiceCertificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        if is_fallback(hello.cipher_suites()) {
            return None;
        }
        self.find(hello.server_name()).map(Certificate::key)
    }
}

/// Whether a client has fallen back to TLS 1.2, although this server supports TLS 1.3. A client
/// that offers TLS 1.3 has suites of TLS 1.3.
fn is_fallback(suites: &[CipherSuite]) -> bool {
    let mut codes = suites.iter().map(|suite| u16::from(*suite));
    codes.clone().any(|code| code == FALLBACK)
        && !codes.any(|code| code.to_be_bytes()[0] == TLS13_SUITES)
}

/// Whether `name` matches `pattern`, a name in a certificate. `*` as the first label stands for one
/// whole label.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    match pattern.strip_prefix("*.") {
        None => pattern.eq_ignore_ascii_case(name),
        Some(parent) => {
            name.split_once('.').is_some_and(|(_, rest)| parent.eq_ignore_ascii_case(rest))
        }
    }
}
