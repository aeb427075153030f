//! A certificate with its chain and its key. They are read from two PEM files, and checked before
//! any client sees them.
//!
//! An RSA key of more than [`RSA_BITS_MAX`] bits is refused, because one signature would take
//! longer than a turn may take.
//!
//! Implements: RFC 5280 sections 4.1.2.5 (validity) and 4.2.1.6 (names), RFC 7468 (PEM), RFC 5958
//! and RFC 5915 (keys).

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use machine::UnixTime;
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use rustls::crypto::ring::sign::any_supported_type;
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::der::{DateTime, Decode};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use crate::names;

/// The longest certificate with its chain, in bytes. With this limit the first flight of a server
/// fits into its output buffer.
pub const CHAIN_BYTES_MAX: usize = 12 * 1024;

/// The longest RSA key, in bits. One signature with a key of 4096 bits takes 22 ms on a real core,
/// and the core serves no client in that time.
pub const RSA_BITS_MAX: usize = 3072;

/// The identifier of RSA in the key of a certificate (RFC 3279 section 2.3.1).
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");

/// The maximum size of an encoded RSA key without its modulus: the exponent, and the lengths of
/// both numbers.
const RSA_AROUND_BYTES_MAX: usize = 32;

/// A certificate, its chain and its key.
#[derive(Clone, Debug)]
pub struct Certificate {
    key: Arc<CertifiedKey>,
    names: Vec<String>,
    valid_from: UnixTime,
    valid_until: UnixTime,
}

/// An error in a certificate or its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CertificateError {
    /// The file has no certificate.
    NoCertificate,
    /// The certificate file is not PEM.
    BadCertificatePem,
    /// A certificate cannot be read.
    BadCertificate,
    /// The certificates together are longer than [`CHAIN_BYTES_MAX`].
    ChainTooLong,
    /// The file has no private key.
    NoKey,
    /// The key file is not PEM.
    BadKeyPem,
    /// The key is of an unsupported kind.
    BadKey,
    /// The key is an RSA key of more than [`RSA_BITS_MAX`] bits.
    SlowKey,
    /// The key belongs to another certificate.
    KeyOfAnother,
    /// The certificate has expired at this time.
    Expired(UnixTime),
    /// The certificate becomes valid at this time.
    NotYetValid(UnixTime),
}

impl CertificateError {
    /// Whether the error is in the key file, or in the choice of the key.
    pub fn is_of_key(&self) -> bool {
        use CertificateError::{BadKey, BadKeyPem, KeyOfAnother, NoKey, SlowKey};
        matches!(self, NoKey | BadKeyPem | BadKey | SlowKey | KeyOfAnother)
    }
}

impl fmt::Display for CertificateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CertificateError::NoCertificate => out.write_str("the file contains no certificate"),
            CertificateError::BadCertificatePem => out.write_str("the certificate file is not in PEM format"),
            CertificateError::BadCertificate => out.write_str("the certificate cannot be read"),
            CertificateError::ChainTooLong => {
                write!(out, "the certificate with its chain is longer than {CHAIN_BYTES_MAX} bytes")
            }
            CertificateError::NoKey => out.write_str("the file contains no private key"),
            CertificateError::BadKeyPem => out.write_str("the key file is not in PEM format"),
            CertificateError::BadKey => out.write_str(
                "the key is of an unsupported kind; use ECDSA P-256 or P-384, Ed25519, or RSA with at least 2048 bits",
            ),
            CertificateError::SlowKey => write!(
                out,
                "the RSA key has more than {RSA_BITS_MAX} bits, which makes each TLS handshake too slow; use ECDSA P-256, or RSA with at most {RSA_BITS_MAX} bits"
            ),
            CertificateError::KeyOfAnother => out.write_str("the private key does not belong to the certificate"),
            CertificateError::Expired(at) => {
                write!(out, "the certificate has expired: it was valid until {}", Day(*at))
            }
            CertificateError::NotYetValid(at) => {
                write!(out, "the certificate is not valid before {}", Day(*at))
            }
        }
    }
}

impl Certificate {
    /// Reads a certificate with its chain, and its private key. The server's own certificate is the
    /// first of the chain.
    ///
    /// Errors: the certificate or the key is invalid, or they do not belong together. The validity
    /// period is not checked: [`Certificate::check`] does that.
    pub fn parse(certificates: &[u8], key: &[u8]) -> Result<Certificate, CertificateError> {
        let chain = CertificateDer::pem_slice_iter(certificates)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| CertificateError::BadCertificatePem)?;
        let first = chain.first().ok_or(CertificateError::NoCertificate)?;
        if chain.iter().map(|one| one.len()).sum::<usize>() > CHAIN_BYTES_MAX {
            return Err(CertificateError::ChainTooLong);
        }
        let parsed = x509_cert::Certificate::from_der(first)
            .map_err(|_| CertificateError::BadCertificate)?;
        let validity = parsed.tbs_certificate().validity();
        let (valid_from, valid_until) =
            (time_of(&validity.not_before), time_of(&validity.not_after));
        let names = names_of(&parsed);
        if is_slow(&parsed) {
            return Err(CertificateError::SlowKey);
        }

        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
            pem::Error::NoItemsFound => CertificateError::NoKey,
            _ => CertificateError::BadKeyPem,
        })?;
        let key = any_supported_type(&key).map_err(|_| CertificateError::BadKey)?;
        let key = CertifiedKey::new(chain, key);
        key.keys_match().map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => CertificateError::KeyOfAnother,
            _ => CertificateError::BadCertificate,
        })?;
        Ok(Certificate { key: Arc::new(key), names, valid_from, valid_until })
    }

    /// Checks the validity period. Errors: the certificate is not valid at the time `now`.
    pub fn check(&self, now: UnixTime) -> Result<(), CertificateError> {
        if now > self.valid_until {
            return Err(CertificateError::Expired(self.valid_until));
        }
        if now < self.valid_from {
            Err(CertificateError::NotYetValid(self.valid_from))
        } else {
            Ok(())
        }
    }

    /// The start of the validity period.
    pub fn valid_from(&self) -> UnixTime {
        self.valid_from
    }

    /// The end of the validity period.
    pub fn valid_until(&self) -> UnixTime {
        self.valid_until
    }

    /// The host names in the certificate.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Whether the certificate is valid for the host `name`, which may end in a dot.
    pub fn is_for(&self, name: &str) -> bool {
        self.names.iter().any(|own| names::matches(own, name))
    }

    /// Whether both certificates are valid for some host.
    pub fn shares_a_name_with(&self, other: &Certificate) -> bool {
        other.names().any(|name| self.is_for(name)) || self.names().any(|name| other.is_for(name))
    }

    /// Whether this certificate is valid for every host of `other`.
    pub fn covers(&self, other: &Certificate) -> bool {
        !other.names.is_empty() && other.names().all(|name| self.is_for(name))
    }

    /// The SHA-256 hash of the server's own certificate, without the chain. It identifies the
    /// certificate.
    pub fn fingerprint(&self) -> Fingerprint {
        let own = self.key.cert.first().map(|own| own.as_ref()).unwrap_or_default();
        let mut bytes = [0; SHA256_OUTPUT_LEN];
        bytes
            .iter_mut()
            .zip(digest(&SHA256, own).as_ref())
            .for_each(|(place, byte)| *place = *byte);
        Fingerprint(bytes)
    }

    pub(crate) fn key(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.key)
    }

    #[cfg(test)]
    pub(crate) fn with_key(mut self, key: CertifiedKey) -> Certificate {
        self.key = Arc::new(key);
        self
    }
}

/// The SHA-256 hash of a certificate, displayed in the notation of OpenSSL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fingerprint([u8; SHA256_OUTPUT_LEN]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            let colon = if index > 0 { ":" } else { "" };
            write!(out, "{colon}{byte:02X}")?;
        }
        Ok(())
    }
}

/// A time that is displayed in readable form.
pub struct Day(pub UnixTime);

impl fmt::Display for Day {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match DateTime::from_unix_duration(Duration::from_secs(self.0.seconds())) {
            Ok(time) => write!(out, "{time}"),
            Err(_) => out.write_str("the year 9999"),
        }
    }
}

/// Whether the certificate has an RSA key of more than [`RSA_BITS_MAX`] bits.
fn is_slow(certificate: &x509_cert::Certificate) -> bool {
    let key = certificate.tbs_certificate().subject_public_key_info();
    key.algorithm.oid == RSA
        && key.subject_public_key.raw_bytes().len() > RSA_BITS_MAX / 8 + RSA_AROUND_BYTES_MAX
}

fn time_of(time: &x509_cert::time::Time) -> UnixTime {
    UnixTime::from_seconds(time.to_unix_duration().as_secs())
}

/// The DNS names among the subject's alternative names. The common name is ignored (RFC 6125
/// section 6.4.4).
fn names_of(certificate: &x509_cert::Certificate) -> Vec<String> {
    let names = certificate.tbs_certificate().get_extension::<SubjectAltName>().ok().flatten();
    let names = names.into_iter().flat_map(|(_, names)| names.0);
    names
        .filter_map(|name| match name {
            GeneralName::DnsName(name) => Some(String::from(name.as_str())),
            _ => None,
        })
        .collect()
}
