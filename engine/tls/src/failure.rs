//! Errors that end a connection.

use core::fmt;

use rustls::{CertificateError, Error};

use crate::alert::Alert;

/// The reason why a connection failed, for the log. We have sent an alert, unless the peer has sent
/// one itself or has closed the connection.
#[derive(Clone, PartialEq, Debug)]
pub enum Failure {
    /// The handshake failed.
    Handshake(Error),
    /// Bytes of the peer were rejected with this alert. Once a handshake has keys, rustls writes
    /// the alert and selects its number.
    Refused(Alert),
    /// The peer has sent a fatal alert.
    PeerGaveUp(Alert),
    /// The peer closed the connection before the handshake was complete.
    PeerLeft,
}

/// The category of a failure, for counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailureCategory {
    /// The two sides have no common version, algorithm or protocol.
    NoCommonGround,
    /// The bytes are not TLS, or were changed on the way.
    Broken,
    /// The peer has rejected us, or has closed the connection.
    PeerGaveUp,
}

/// The fault of a certificate that a server has shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CertificateFault {
    /// The certificate has expired, or is not valid yet.
    NotToday,
    /// The certificate is for other names.
    OtherName,
    /// The certificate is not the published one, no trusted authority has issued it, or the server
    /// does not have its key.
    NotProven,
}

impl Failure {
    /// The fault for which we rejected the server's certificate or signature. `None` for any other
    /// failure.
    pub fn fault(&self) -> Option<CertificateFault> {
        let Failure::Handshake(Error::InvalidCertificate(error)) = self else { return None };
        Some(match error {
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => CertificateFault::NotToday,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                CertificateFault::OtherName
            }
            _ => CertificateFault::NotProven,
        })
    }

    /// The category of the failure.
    pub fn reason(&self) -> FailureCategory {
        match self {
            Failure::Handshake(Error::PeerIncompatible(_) | Error::NoApplicationProtocol)
            | Failure::Refused(Alert::PROTOCOL_VERSION | Alert::INAPPROPRIATE_FALLBACK) => {
                FailureCategory::NoCommonGround
            }
            Failure::Handshake(_) | Failure::Refused(_) => FailureCategory::Broken,
            Failure::PeerGaveUp(_) | Failure::PeerLeft => FailureCategory::PeerGaveUp,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Handshake(error) => write!(out, "the handshake failed: {error}"),
            Failure::Refused(alert) => write!(out, "a record was rejected: {alert}"),
            Failure::PeerGaveUp(alert) => write!(out, "the peer closed the connection: {alert}"),
            Failure::PeerLeft => out.write_str("the peer disconnected during the handshake"),
        }
    }
}
