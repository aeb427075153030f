//! Reads the fields of a client's hello that rustls does not show (RFC 8446 section 4.1.2).
//!
//! A hello may be split over records of any length. So its octets are read one by one, each once.
//! rustls checks the hello, so this file ignores what is malformed.

/// The type of the message `ClientHello`.
const CLIENT_HELLO: u8 = 1;

/// The octets of the type and of the length of a message.
const HEADER_OCTETS: u8 = 4;

const RANDOM_OCTETS: u8 = 32;

/// The version of SSL 3.0.
const SSL_3: u16 = 0x0300;

/// The cipher suite with which a client says that an attempt with a later version has failed (RFC
/// 7507): `TLS_FALLBACK_SCSV`.
const FALLBACK: [u8; 2] = [0x56, 0x00];

/// The fields of a hello, as far as it was read.
pub(crate) struct HelloFields {
    next: NextOctet,
    version: Option<u16>,
    names_fallback: bool,
}

/// The meaning of the next octet. A variant with a count names two fields. The octet belongs to the
/// second field if the first is complete.
#[derive(Clone, Copy)]
enum NextOctet {
    /// The header, of which this many octets were read, or the first octet of the version.
    Header(u8),
    /// The second octet of the version. The first one is known.
    Version(u8),
    /// The random, of which this many octets are left, or the length of the session id.
    Random(u8),
    /// The session id, of which this many octets are left, or the first octet of the length of the
    /// cipher suites.
    SessionId(u8),
    /// The second octet of the length of the cipher suites. The first one is known.
    SuitesLength(u8),
    /// The first octet of one of the suites that are left. If none is left, the rest of the hello.
    Suite(u16),
    /// The second octet of a suite. The first one is known, and this many suites follow.
    SuiteEnd(u8, u16),
    /// Another message.
    Nothing,
}

impl HelloFields {
    pub(crate) fn new() -> HelloFields {
        HelloFields { next: NextOctet::Header(0), version: None, names_fallback: false }
    }

    /// Whether the hello has the version of SSL 3.0 or of an earlier one.
    pub(crate) fn is_of_ssl(&self) -> bool {
        self.version.is_some_and(|version| version <= SSL_3)
    }

    /// Whether the suites name `TLS_FALLBACK_SCSV`.
    pub(crate) fn names_fallback(&self) -> bool {
        self.names_fallback
    }

    /// Reads the next octets of the stream of handshake messages.
    pub(crate) fn read(&mut self, octets: &[u8]) {
        octets.iter().for_each(|octet| self.read_one(*octet));
    }

    fn read_one(&mut self, octet: u8) {
        self.next = match self.next {
            NextOctet::Header(0) if octet != CLIENT_HELLO => NextOctet::Nothing,
            NextOctet::Header(read @ ..HEADER_OCTETS) => NextOctet::Header(read + 1),
            NextOctet::Header(_) => NextOctet::Version(octet),
            NextOctet::Version(major) => {
                self.version = Some(u16::from_be_bytes([major, octet]));
                NextOctet::Random(RANDOM_OCTETS)
            }
            NextOctet::Random(left @ 1..) => NextOctet::Random(left - 1),
            NextOctet::Random(0) => NextOctet::SessionId(octet),
            NextOctet::SessionId(left @ 1..) => NextOctet::SessionId(left - 1),
            NextOctet::SessionId(0) => NextOctet::SuitesLength(octet),
            NextOctet::SuitesLength(high) => {
                NextOctet::Suite(u16::from_be_bytes([high, octet]) / 2)
            }
            NextOctet::Suite(left @ 1..) => NextOctet::SuiteEnd(octet, left - 1),
            NextOctet::SuiteEnd(high, left) => {
                self.names_fallback |= [high, octet] == FALLBACK;
                NextOctet::Suite(left)
            }
            NextOctet::Suite(0) | NextOctet::Nothing => return,
        };
    }
}
