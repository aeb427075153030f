//! Selects the certificate for a client by the server name that it asks for (RFC 6066 section 3,
//! RFC 6125 section 6.4).

use alloc::sync::Arc;
use alloc::vec::Vec;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::certificate::Certificate;

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
        self.find(hello.server_name()).map(Certificate::key)
    }
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
