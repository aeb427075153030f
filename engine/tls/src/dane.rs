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
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, Error, RootCertStore};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::client::Judge;

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
pub(crate) struct Named(pub(crate) Vec<Published>);

impl Named {
    fn of(&self, usage: Usage) -> impl Iterator<Item = &Published> {
        self.0.iter().filter(move |published| published.usage == usage)
    }

    /// Whether an authority that is published, and shown, vouches for it today and by this name.
    fn is_vouched_for(
        &self,
        own: &CertificateDer<'_>,
        shown: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
        algorithms: &WebPkiSupportedAlgorithms,
    ) -> Result<(), Error> {
        let mut authorities = RootCertStore::empty();
        for certificate in
            shown.iter().filter(|shown| self.of(Usage::Authority).any(|published| published.is_of(shown)))
        {
            authorities.add(certificate.clone())?;
        }
        let own = ParsedCertificate::try_from(own)?;
        verify_server_cert_signed_by_trust_anchor(&own, &authorities, shown, now, algorithms.all)?;
        verify_server_name(&own, name)
    }
}

impl Judge for Named {
    fn judge(
        &self,
        own: &CertificateDer<'_>,
        shown: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
        algorithms: &WebPkiSupportedAlgorithms,
    ) -> Result<(), Error> {
        if self.of(Usage::Own).any(|published| published.is_of(own)) {
            return Ok(());
        }
        let vouched = self.is_vouched_for(own, shown, name, now, algorithms);
        vouched.map_err(|_| CertificateError::ApplicationVerificationFailure.into())
    }
}
