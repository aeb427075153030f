//! Certificate authorities for the names of servers: Mozilla's list for the web, and the
//! authorities that the administrator has named.
//!
//! A server that must prove its name shows a certificate for that name. The certificate must be
//! valid today and must chain to one of these authorities. The administrator may also name the
//! certificate of a server itself, such as a self-signed certificate. A certificate that is named
//! itself needs no authority. But it must have the right name, and the server must have its key.
//!
//! The name of a server may be an IP address. In this case the certificate must contain the
//! address, in the form for addresses.
//!
//! Implements: RFC 5280 section 6, RFC 9525.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use machine::UnixTime;
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::ring;
use rustls::server::ParsedCertificate;
use rustls::{Error, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use webpki_roots::TLS_SERVER_ROOTS;

use crate::certificate::Certificate;
use crate::client::{CertificatePolicy, Evidence};

/// The maximum number of certificates that the administrator may name.
pub const AUTHORITIES_MAX: usize = 64;

/// All trusted authorities. Cheap to clone.
#[derive(Clone)]
pub struct Authorities {
    /// The authorities of the web, and the certificates that the administrator has named.
    roots: Arc<RootCertStore>,
    /// The certificates that the administrator has named.
    named: Arc<[CertificateDer<'static>]>,
}

/// An error in a file of authorities.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotAuthorities {
    /// The file is not PEM.
    BadPem,
    /// The file has no certificate.
    None,
    /// One of the certificates in the file cannot be read.
    BadCertificate,
    /// All files together have more than [`AUTHORITIES_MAX`] certificates.
    TooMany,
}

impl fmt::Display for NotAuthorities {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotAuthorities::BadPem => out.write_str("the file is not in PEM format"),
            NotAuthorities::None => out.write_str("the file contains no certificate"),
            NotAuthorities::BadCertificate => {
                out.write_str("a certificate in the file cannot be read")
            }
            NotAuthorities::TooMany => {
                write!(out, "the file contains more than {AUTHORITIES_MAX} certificates")
            }
        }
    }
}

impl Authorities {
    /// The authorities of the web, and the certificates in these texts, in PEM.
    ///
    /// Errors: one of the texts is invalid.
    pub fn with<'t>(
        texts: impl IntoIterator<Item = &'t [u8]>,
    ) -> Result<Authorities, NotAuthorities> {
        let mut roots = RootCertStore { roots: TLS_SERVER_ROOTS.to_vec() };
        let mut named = Vec::new();
        for text in texts {
            let before = named.len();
            for certificate in CertificateDer::pem_slice_iter(text) {
                let certificate = certificate.map_err(|_| NotAuthorities::BadPem)?;
                roots.add(certificate.clone()).map_err(|_| NotAuthorities::BadCertificate)?;
                named.push(certificate);
            }
            if named.len() == before {
                return Err(NotAuthorities::None);
            }
        }
        if named.len() > AUTHORITIES_MAX {
            return Err(NotAuthorities::TooMany);
        }
        Ok(Authorities { roots: Arc::new(roots), named: named.into() })
    }

    /// Whether the certificate is valid at the time `now`, and its chain ends at one of these
    /// authorities (RFC 5280 section 6).
    pub fn trusts(&self, certificate: &Certificate, now: UnixTime) -> bool {
        let key = certificate.key();
        let Some((own, others)) = key.cert.split_first() else { return false };
        let Ok(own) = ParsedCertificate::try_from(own) else { return false };
        let now = rustls_pki_types::UnixTime::since_unix_epoch(Duration::from_micros(now.0));
        let algorithms = ring::default_provider().signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&own, &self.roots, others, now, algorithms)
            .is_ok()
    }
}

impl Default for Authorities {
    /// Only the authorities of the web.
    fn default() -> Authorities {
        let roots = RootCertStore { roots: TLS_SERVER_ROOTS.to_vec() };
        Authorities { roots: Arc::new(roots), named: Arc::new([]) }
    }
}

impl fmt::Debug for Authorities {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "Authorities({} of the web, {} named)",
            TLS_SERVER_ROOTS.len(),
            self.named.len()
        )
    }
}

/// The policy that a server must prove its name by these authorities.
#[derive(Debug)]
pub(crate) struct AuthorityPolicy(pub(crate) Authorities);

impl CertificatePolicy for AuthorityPolicy {
    fn check(&self, evidence: &Evidence<'_>) -> Result<(), Error> {
        let AuthorityPolicy(Authorities { roots, named }) = self;
        let is_named = named.contains(evidence.own);
        let own = if is_named {
            ParsedCertificate::try_from(evidence.own)?
        } else {
            evidence.vouched_for_by(roots)?
        };
        verify_server_name(&own, evidence.called)
    }
}
