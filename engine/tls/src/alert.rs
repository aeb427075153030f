//! Alerts: the reasons with which one side ends a connection (RFC 8446 section 6, RFC 5246 section
//! 7.2).

use core::fmt;

use rustls::{Error, InvalidMessage, PeerIncompatible, PeerMisbehaved};

/// The number of an alert description.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alert(pub u8);

impl Alert {
    pub(crate) const CLOSE_NOTIFY: Alert = Alert(0);
    pub(crate) const UNEXPECTED_MESSAGE: Alert = Alert(10);
    pub(crate) const BAD_RECORD_MAC: Alert = Alert(20);
    pub(crate) const RECORD_OVERFLOW: Alert = Alert(22);
    pub(crate) const ILLEGAL_PARAMETER: Alert = Alert(47);
    pub(crate) const DECODE_ERROR: Alert = Alert(50);
    pub(crate) const PROTOCOL_VERSION: Alert = Alert(70);
    pub(crate) const INTERNAL_ERROR: Alert = Alert(80);
    pub(crate) const INAPPROPRIATE_FALLBACK: Alert = Alert(86);
    pub(crate) const USER_CANCELED: Alert = Alert(90);
    pub(crate) const NO_RENEGOTIATION: Alert = Alert(100);
    pub(crate) const MISSING_EXTENSION: Alert = Alert(109);

    /// The alert that RFC 8446 names for an error of the client's first flight, if rustls sends
    /// another alert or none. See the table in `docs/tls.md`.
    pub(crate) fn instead_of_rustls(error: &Error) -> Option<Alert> {
        match error {
            Error::InvalidMessage(InvalidMessage::InvalidEmptyPayload)
            | Error::PeerMisbehaved(
                PeerMisbehaved::MessageInterleavedWithHandshakeMessage
                | PeerMisbehaved::TooManyEmptyFragments
                | PeerMisbehaved::TooManyWarningAlertsReceived,
            ) => Some(Alert::UNEXPECTED_MESSAGE),
            Error::PeerIncompatible(
                PeerIncompatible::KeyShareExtensionRequired
                | PeerIncompatible::SignatureAlgorithmsExtensionRequired,
            ) => Some(Alert::MISSING_EXTENSION),
            _ => None,
        }
    }

    /// The two bytes of the alert. Every alert that we send is fatal, except `close_notify`.
    pub(crate) fn bytes(self) -> [u8; 2] {
        const WARNING: u8 = 1;
        const FATAL: u8 = 2;
        [if self == Alert::CLOSE_NOTIFY { WARNING } else { FATAL }, self.0]
    }
}

impl fmt::Display for Alert {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.0 {
            0 => "close_notify",
            10 => "unexpected_message",
            20 => "bad_record_mac",
            22 => "record_overflow",
            40 => "handshake_failure",
            42 => "bad_certificate",
            45 => "certificate_expired",
            46 => "certificate_unknown",
            47 => "illegal_parameter",
            48 => "unknown_ca",
            50 => "decode_error",
            51 => "decrypt_error",
            70 => "protocol_version",
            80 => "internal_error",
            86 => "inappropriate_fallback",
            90 => "user_canceled",
            100 => "no_renegotiation",
            109 => "missing_extension",
            112 => "unrecognized_name",
            120 => "no_application_protocol",
            number => return write!(out, "alert {number}"),
        };
        out.write_str(name)
    }
}
