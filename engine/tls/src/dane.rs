//! DANE: a server must show a certificate or key that its domain publishes in TLSA records.
//!
//! A record may describe the server's own certificate. In this case the name, the validity period
//! and the issuer in the certificate are ignored. Or a record describes the certificate of an
//! authority, which the server must also send. In that case the server's certificate must chain to
//! that authority, be valid today and be for the server's name.
//!
//! Usages 0 and 1 rely on the public authorities and are unusable for mail (RFC 7672 section
//! 3.1.3). The certificate of a published authority counts only if the server sends it, even if the
//! record has the full certificate.
//!
//! Implements: RFC 6698 section 2.1, RFC 7671 sections 5.1 and 5.2, RFC 7672 section 3.

use alloc::boxed::Box;
use alloc::vec::Vec;

use ring::digest::{SHA256, SHA512, digest};
use rustls::client::verify_server_name;
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, Error, RootCertStore};
use rustls_pki_types::{CertificateDer, ServerName};

use crate::client::{CertificatePolicy, Evidence};

/// One TLSA record, by which a domain describes the certificate of its server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Published {
    usage: CertificateUsage,
    selector: Selector,
    matching: Matching,
    data: Box<[u8]>,
}

/// The kind of certificate that a record describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CertificateUsage {
    /// DANE-TA(2): the certificate of an authority.
    Authority,
    /// DANE-EE(3): the server's own certificate.
    Own,
}

/// The part of the certificate that a record describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Selector {
    /// Cert(0): the whole certificate.
    Certificate,
    /// SPKI(1): the key of the certificate.
    Key,
}

/// The form in which a record has the selected part of the certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Matching {
    /// Full(0): the part itself.
    Whole,
    /// SHA2-256(1)
    Sha256,
    /// SHA2-512(2)
    Sha512,
}

impl Published {
    /// Makes a record from the numbers of RFC 6698 section 2.1. `None` if the record is unusable.
    pub fn read(usage: u8, selector: u8, matching: u8, data: &[u8]) -> Option<Published> {
        let usage = match usage {
            2 => CertificateUsage::Authority,
            3 => CertificateUsage::Own,
            _ => return None,
        };
        let selector = match selector {
            0 => Selector::Certificate,
            1 => Selector::Key,
            _ => return None,
        };
        let (matching, length) = match matching {
            0 => (Matching::Whole, data.len().max(1)),
            1 => (Matching::Sha256, SHA256.output_len()),
            2 => (Matching::Sha512, SHA512.output_len()),
            _ => return None,
        };
        (data.len() == length).then(|| Published { usage, selector, matching, data: data.into() })
    }

    /// Whether the record describes this certificate.
    fn describes(&self, certificate: &CertificateDer<'_>) -> bool {
        let key = match self.selector {
            Selector::Certificate => None,
            Selector::Key => match ParsedCertificate::try_from(certificate) {
                Ok(parsed) => Some(parsed.subject_public_key_info()),
                Err(_) => return false,
            },
        };
        let part = key.as_ref().map_or(certificate.as_ref(), AsRef::as_ref);
        match self.matching {
            Matching::Whole => *self.data == *part,
            Matching::Sha256 => *self.data == *digest(&SHA256, part).as_ref(),
            Matching::Sha512 => *self.data == *digest(&SHA512, part).as_ref(),
        }
    }
}

/// The policy that a server must match one of these TLSA records.
#[derive(Debug)]
pub(crate) struct DanePolicy {
    published: Vec<Published>,
    /// The recipient domain. If the certificate chains to a published authority, it may be for this
    /// domain instead of the server's name (RFC 7672 section 3.2.2). `None` if the domain is not a
    /// valid name for a certificate.
    domain: Option<ServerName<'static>>,
}

impl DanePolicy {
    pub(crate) fn new(published: Vec<Published>, domain: &str) -> DanePolicy {
        DanePolicy {
            published,
            domain: ServerName::try_from(domain).ok().map(|name| name.to_owned()),
        }
    }

    fn of(&self, usage: CertificateUsage) -> impl Iterator<Item = &Published> {
        self.published.iter().filter(move |published| published.usage == usage)
    }

    /// Checks that the server has sent the certificate of a published authority. The server's own
    /// certificate must chain to that authority, be valid today, and be for the server's name or
    /// the recipient domain.
    fn check_authority(&self, evidence: &Evidence<'_>) -> Result<(), Error> {
        let mut authorities = RootCertStore::empty();
        let is_published = |shown: &&CertificateDer<'_>| {
            self.of(CertificateUsage::Authority).any(|one| one.describes(shown))
        };
        for certificate in evidence.others.iter().filter(is_published) {
            authorities.add(certificate.clone())?;
        }
        let own = evidence.vouched_for_by(&authorities)?;
        verify_server_name(&own, evidence.called).or_else(|wrong| {
            let domain = self.domain.as_ref().ok_or(wrong)?;
            verify_server_name(&own, domain)
        })
    }
}

impl CertificatePolicy for DanePolicy {
    fn check(&self, evidence: &Evidence<'_>) -> Result<(), Error> {
        if self.of(CertificateUsage::Own).any(|published| published.describes(evidence.own)) {
            return Ok(());
        }
        self.check_authority(evidence)
            .map_err(|_| CertificateError::ApplicationVerificationFailure.into())
    }
}
