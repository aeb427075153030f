//! Why a connection came to nothing.

use core::fmt;

use rustls::{CertificateError, Error};

use crate::alert::Alert;

/// Why a connection came to nothing: for the log. The peer has been told by an alert, unless it told us.
#[derive(Clone, PartialEq, Debug)]
pub enum Failure {
    /// The handshake failed.
    Handshake(Error),
    /// A record after the handshake was refused with this alert.
    Refused(Alert),
    /// The peer has given up.
    PeerGaveUp(Alert),
    /// The peer has closed its side before the handshake was done.
    PeerLeft,
}

/// What kind of reason a failure is: for counting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// No version, algorithm or protocol is known to both sides.
    NoCommonGround,
    /// What came is no TLS, or not as it was sent.
    Broken,
    /// The peer has refused us, or has left.
    PeerGaveUp,
}

/// What is wrong with a certificate that a server has shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It has expired, or is not valid yet.
    NotToday,
    /// It is for other names.
    OtherName,
    /// It is not the one that is published, or nobody who is believed vouches for it, or its key is another's.
    NotProven,
}

impl Failure {
    /// Why we have refused the server because of what it showed, or because it signed with another key; if that is so.
    pub fn fault(&self) -> Option<Fault> {
        let Failure::Handshake(Error::InvalidCertificate(error)) = self else { return None };
        Some(match error {
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => Fault::NotToday,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Fault::OtherName
            }
            _ => Fault::NotProven,
        })
    }

    /// What kind of reason it is.
    pub fn reason(&self) -> Reason {
        match self {
            Failure::Handshake(Error::PeerIncompatible(_) | Error::NoApplicationProtocol) => {
                Reason::NoCommonGround
            }
            Failure::Handshake(_) | Failure::Refused(_) => Reason::Broken,
            Failure::PeerGaveUp(_) | Failure::PeerLeft => Reason::PeerGaveUp,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Handshake(error) => write!(out, "the handshake failed: {error}"),
            Failure::Refused(alert) => write!(out, "a record was refused: {alert}"),
            Failure::PeerGaveUp(alert) => write!(out, "the peer gave up: {alert}"),
            Failure::PeerLeft => out.write_str("the peer left during the handshake"),
        }
    }
}
