//! Questions and their results.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;

use domain::base::Rtype;
use domain::base::iana::Rcode;

use crate::name::Name;

/// A question: a kind of records of a name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Question {
    /// The name.
    pub name: Name,
    /// The kind of records.
    pub kind: RecordKind,
}

/// Kinds of records.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RecordKind {
    /// `A`: IPv4 addresses (RFC 1035 §3.4.1).
    Ipv4,
    /// `AAAA`: IPv6 addresses (RFC 3596).
    Ipv6,
    /// `MX`: the hosts that accept its mail (RFC 1035 §3.3.9).
    Exchanger,
    /// `TXT`: texts of its owner (RFC 1035 §3.3.14).
    Text,
    /// `PTR`: the name of an address (RFC 1035 §3.3.12).
    Pointer,
    /// `TLSA`: its certificates (RFC 6698).
    Tlsa,
    /// `SRV`: the hosts of a service (RFC 2782).
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

/// A record of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record {
    /// An address, of either family.
    Address(IpAddr),
    /// A host that accepts mail: the lowest preference first (RFC 5321 §5.1).
    Exchanger {
        /// The lower, the sooner.
        preference: u16,
        /// The root if there is none (RFC 7505).
        host: Name,
    },
    /// The strings of a text, joined without anything between them (RFC 7208 §3.3).
    Text(Box<[u8]>),
    /// The name of an address.
    Pointer(Name),
    /// A certificate (RFC 6698 §2.1).
    Tlsa {
        /// The certificate in the chain that is meant.
        usage: u8,
        /// The part of it.
        selector: u8,
        /// Its form: whole, or as a hash.
        matching: u8,
        /// The part, or its hash.
        data: Box<[u8]>,
    },
    /// A host of a service.
    Service {
        /// The lower, the sooner.
        priority: u16,
        /// The relative weight among equal priorities.
        weight: u16,
        /// The port on the host.
        port: u16,
        /// The root if there is none.
        host: Name,
    },
}

impl Record {
    /// Its size in bytes beside the struct itself.
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

/// The answer about a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The requested records, in the server's order. Aliases (`CNAME`) were followed.
    pub records: Vec<Record>,
    /// Whether the name exists, if there are no such records.
    pub exists: bool,
    /// Whether the server says that it has verified all signatures (RFC 4035 §3.2.3). That is only
    /// as good as the route to the server.
    pub is_authenticated: bool,
}

/// Why there is no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unanswered {
    /// There is no server to ask.
    NoServer,
    /// No server answered in time.
    Silence,
    /// The last server that answered has refused or failed.
    Refused(Rcode),
    /// The last server's reply is not valid.
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
            Unanswered::Nonsense => out.write_str("the name server's answer is not valid"),
            Unanswered::Busy => out.write_str("too many DNS lookups are in progress"),
        }
    }
}
