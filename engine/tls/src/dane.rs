//! Servers whose certificates are published in the names' own way (DANE): which certificate or key a server has to show.
//!
//! Either its own is named, and then nothing else of it counts: no name, no day, no issuer. Or that of an authority is, which the server shows with its own: then that has to lead there, to be valid today
//! and to be for the server's name.
//!
//! What the web's authorities vouch for (usages 0 and 1) is of no use where mail is brought (RFC 7672 section 3.1.3). An authority that the server does not show is not known here, even where it is published whole.
//!
//! Answers to: RFC 6698 section 2.1, RFC 7671 sections 5.1 and 5.2, RFC 7672 section 3.

use alloc::boxed::Box;
use alloc::vec::Vec;

use ring::digest::{SHA256, SHA512, digest};
use rustls::client::verify_server_name;
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, Error, RootCertStore};
use rustls_pki_types::{CertificateDer, ServerName};

use crate::client::{Evidence, Judge};

/// What a server's domain publishes of the certificates that the server shows: one record of TLSA.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Published {
    usage: Usage,
    selector: Selector,
    matching: Matching,
    data: Box<[u8]>,
}

/// Whose certificate is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Usage {
    /// DANE-TA(2): an authority's.
    Authority,
    /// DANE-EE(3): the server's own.
    Own,
}

/// Which part of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Selector {
    /// Cert(0): all of it.
    Certificate,
    /// SPKI(1): its key.
    Key,
}

/// How it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Matching {
    /// Full(0)
    Whole,
    Sha256,
    Sha512,
}

impl Published {
    /// A record, by the numbers of RFC 6698 section 2.1. `None`: it is of no use.
    pub fn read(usage: u8, selector: u8, matching: u8, data: &[u8]) -> Option<Published> {
        let usage = match usage {
            2 => Usage::Authority,
            3 => Usage::Own,
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

    /// Whether this is the certificate that is meant.
    fn is_of(&self, certificate: &CertificateDer<'_>) -> bool {
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

/// A server has to be the one of which one of these is published.
#[derive(Debug)]
pub(crate) struct Named {
    published: Vec<Published>,
    /// Whose mail it takes: a certificate for that is good for the server, too, where an authority that is published vouches for it (RFC 7672 section 3.2.2). None: no certificate can have it.
    domain: Option<ServerName<'static>>,
}

impl Named {
    pub(crate) fn new(published: Vec<Published>, domain: &str) -> Named {
        Named { published, domain: ServerName::try_from(domain).ok().map(|name| name.to_owned()) }
    }

    fn of(&self, usage: Usage) -> impl Iterator<Item = &Published> {
        self.published.iter().filter(move |published| published.usage == usage)
    }

    /// Whether an authority that is published, and shown, vouches for it today and by its name or its domain's.
    fn is_vouched_for(&self, evidence: &Evidence<'_>) -> Result<(), Error> {
        let mut authorities = RootCertStore::empty();
        let is_published =
            |shown: &&CertificateDer<'_>| self.of(Usage::Authority).any(|one| one.is_of(shown));
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

impl Judge for Named {
    fn judge(&self, evidence: &Evidence<'_>) -> Result<(), Error> {
        if self.of(Usage::Own).any(|published| published.is_of(evidence.own)) {
            return Ok(());
        }
        self.is_vouched_for(evidence)
            .map_err(|_| CertificateError::ApplicationVerificationFailure.into())
    }
}
