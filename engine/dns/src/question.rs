//! What is asked, and what comes of it.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;

use domain::base::Rtype;
use domain::base::iana::Rcode;

use crate::name::Name;

/// What is asked for: a kind of records of a name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Question {
    /// Of whom.
    pub name: Name,
    /// What.
    pub kind: RecordKind,
}

/// Kinds of records.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RecordKind {
    /// `A`: addresses of IPv4 (RFC 1035 §3.4.1).
    Ipv4,
    /// `AAAA`: addresses of IPv6 (RFC 3596).
    Ipv6,
    /// `MX`: who takes its mail (RFC 1035 §3.3.9).
    Exchanger,
    /// `TXT`: what its owner says about it (RFC 1035 §3.3.14).
    Text,
    /// `PTR`: the name of an address (RFC 1035 §3.3.12).
    Pointer,
    /// `TLSA`: which certificates it shows (RFC 6698).
    Tlsa,
    /// `SRV`: where a service of its is (RFC 2782).
    Service,
}

impl RecordKind {
    pub(crate) fn rtype(self) -> Rtype {
        match self {
            RecordKind::Ipv4 => Rtype::A,
            RecordKind::Ipv6 => Rtype::AAAA,
            RecordKind::Exchanger => Rtype::MX,
            RecordKind::Text => Rtype::TXT,
            RecordKind::Pointer => Rtype::PTR,
            RecordKind::Tlsa => Rtype::TLSA,
            RecordKind::Service => Rtype::SRV,
        }
    }
}

/// A record that answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record {
    /// An address, of either family.
    Address(IpAddr),
    /// Who takes the mail: those with the lowest preference first (RFC 5321 §5.1).
    Exchanger {
        /// The lower, the sooner.
        preference: u16,
        /// The root where there is none (RFC 7505).
        host: Name,
    },
    /// The strings of a text, joined without anything between them (RFC 7208 §3.3).
    Text(Box<[u8]>),
    /// The name of an address.
    Pointer(Name),
    /// Which certificates are shown (RFC 6698 §2.1).
    Tlsa {
        /// Whose certificate is meant.
        usage: u8,
        /// Which part of it.
        selector: u8,
        /// How it is written: whole, or as a hash.
        matching: u8,
        /// The part, or its hash.
        data: Box<[u8]>,
    },
    /// Where a service is.
    Service {
        /// The lower, the sooner.
        priority: u16,
        /// Among equals, how often beside the others.
        weight: u16,
        /// At which port of the host.
        port: u16,
        /// The root where there is none.
        host: Name,
    },
}

impl Record {
    /// Bytes that it takes beside its own size.
    pub(crate) fn footprint(&self) -> usize {
        match self {
            Record::Address(_) => 0,
            Record::Exchanger { host: name, .. }
            | Record::Service { host: name, .. }
            | Record::Pointer(name) => name.as_str().len(),
            Record::Text(bytes) | Record::Tlsa { data: bytes, .. } => bytes.len(),
        }
    }
}

/// What is known of a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The records asked for, in the order in which the server gave them; aliases (`CNAME`) were followed.
    pub records: Vec<Record>,
    /// Whether there is such a name at all, if there are no such records.
    pub exists: bool,
    /// Whether the server says that it has checked signatures all the way (RFC 4035 §3.2.3). As good as the way to the server.
    pub is_authenticated: bool,
}

/// Why nobody knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unanswered {
    /// There is no server to be asked.
    NoServer,
    /// No server answered in time.
    Silence,
    /// The last server that answered would not or could not say.
    Refused(Rcode),
    /// What the last server said makes no sense.
    Nonsense,
    /// Too many questions wait already.
    Busy,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unanswered::NoServer => out.write_str("no name server is known"),
            Unanswered::Silence => out.write_str("no name server answered"),
            Unanswered::Refused(code) => write!(out, "the name server answered {code}"),
            Unanswered::Nonsense => out.write_str("the name server's answer makes no sense"),
            Unanswered::Busy => out.write_str("too many names are being looked up"),
        }
    }
}
