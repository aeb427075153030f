//! The certificates in force, and uploads that replace some of them. Cores send each other values
//! of these types.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;

use channel::Ticket;
use configuration::CERTIFICATES_MAX;
use machine::UnixTime;
use store::Uid;
use tls::{Certificate, Day};

/// The kind of reason why a certificate is refused. A text explains the reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// The certificate is invalid.
    Unfit,
    /// There is no space to store the certificate.
    NoSpace,
    /// The upload may be retried later.
    Later,
}

/// The result of an upload: a description of the certificates in force, or why nothing has changed.
pub type Replaced = Result<String, (Obstacle, String)>;

/// A certificate that will replace others.
pub struct CertificateUpload {
    /// The ticket of the session that sent the certificate.
    pub ticket: Ticket,
    /// The certificate with its chain and its key, in PEM.
    pub pem: Vec<u8>,
}

/// The version of a list of certificates. Each new list has the next version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct ListVersion(pub(super) u32);

impl ListVersion {
    fn next(self) -> ListVersion {
        ListVersion(self.0 + 1)
    }
}

/// The certificates in force. The first one is the default for unknown names.
#[derive(Debug, Default)]
pub struct Shown {
    pub(super) version: ListVersion,
    pub(super) all: Vec<ShownCertificate>,
}

#[derive(Clone, Debug)]
pub(super) struct ShownCertificate {
    pub(super) certificate: Certificate,
    /// The time from which the certificate is in force: its upload, or the start of its validity if
    /// it is configured.
    pub(super) since: UnixTime,
    pub(super) origin: CertificateOrigin,
}

/// The origin of a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CertificateOrigin {
    Configuration,
    /// An upload that is not stored yet.
    Arriving,
    Stored(Uid),
}

impl Shown {
    /// The list with `new` in it. Errors: why `new` is refused.
    pub(super) fn with(&self, new: ShownCertificate) -> Result<Shown, String> {
        let is_newer = |own: &ShownCertificate| {
            own.origin == CertificateOrigin::Configuration && own.since > new.since
        };
        if self.all.iter().any(|own| is_newer(own) && own.certificate.covers(&new.certificate)) {
            return Err("the configuration has a newer certificate for the same names".into());
        }
        let shares = |own: &ShownCertificate| {
            !is_newer(own) && own.certificate.shares_a_name_with(&new.certificate)
        };
        let stays =
            |own: &&ShownCertificate| is_newer(own) || !new.certificate.covers(&own.certificate);
        let place = self.all.iter().position(shares).unwrap_or(self.all.len());
        let (before, behind) = self.all.split_at_checked(place).unwrap_or_default();
        let behind = behind.iter().filter(stays);
        let all: Vec<ShownCertificate> =
            before.iter().chain([&new]).chain(behind).cloned().collect();
        let uploaded =
            all.iter().filter(|own| own.origin != CertificateOrigin::Configuration).count();
        if uploaded > CERTIFICATES_MAX {
            return Err(format!(
                "there are already {CERTIFICATES_MAX} certificates for other names, the most allowed"
            ));
        }
        Ok(Shown { version: self.version.next(), all })
    }

    pub(super) fn certificates(&self) -> Vec<Certificate> {
        self.all.iter().map(|entry| entry.certificate.clone()).collect()
    }

    /// Whether a certificate in force is stored in the message with this UID.
    pub(super) fn has_message(&self, uid: Uid) -> bool {
        self.all.iter().any(|entry| entry.origin == CertificateOrigin::Stored(uid))
    }
}

/// A description of the certificates in text, one paragraph each.
pub fn described(certificates: &[Certificate]) -> String {
    let mut text = String::new();
    for certificate in certificates {
        let names: Vec<&str> = certificate.names().collect();
        let (until, fingerprint) = (Day(certificate.valid_until()), certificate.fingerprint());
        let separator = if text.is_empty() { "" } else { "\n" };
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "{separator}names: {}\nvalid until: {until}\nSHA-256: {fingerprint}\n",
            names.join(", ")
        );
    }
    text
}

/// Reads an uploaded or stored certificate.
///
/// Errors: why it is unusable.
pub(super) fn read(pem: &[u8]) -> Result<Certificate, String> {
    let certificate = Certificate::parse(pem, pem).map_err(|error| error.to_string())?;
    if certificate.names().next().is_none() {
        return Err("the certificate has no DNS name among its subject alternative names".into());
    }
    Ok(certificate)
}
