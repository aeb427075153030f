//! Questions and their results.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;

use domain::base::Rtype;
use domain::base::iana::Rcode;

use crate::name::Name;

/// A question: the records of one kind that a name has.
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
    /// `MX`: the hosts that accept mail for the name (RFC 1035 §3.3.9).
    Exchanger,
    /// `TXT`: texts by the owner of the name (RFC 1035 §3.3.14).
    Text,
    /// `PTR`: the name of an address (RFC 1035 §3.3.12).
    Pointer,
    /// `TLSA`: the certificates of the host (RFC 6698).
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
    /// A host that accepts mail (RFC 5321 §5.1).
    Exchanger {
        /// The host with the lowest preference is tried first.
        preference: u16,
        /// The host. If it is the root, the domain accepts no mail (RFC 7505).
        host: Name,
    },
    /// The strings of a text, joined without a separator (RFC 7208 §3.3).
    Text(Box<[u8]>),
    /// The name of an address.
    Pointer(Name),
    /// A certificate (RFC 6698 §2.1).
    Tlsa {
        /// The certificate usage: which certificate of the chain must match.
        usage: u8,
        /// The selector: which part of the certificate must match.
        selector: u8,
        /// The matching type: whether `data` is the whole part or a hash of it.
        matching: u8,
        /// The part of the certificate, or its hash.
        data: Box<[u8]>,
    },
    /// A host of a service.
    Service {
        /// The host with the lowest priority is tried first.
        priority: u16,
        /// The relative weight among equal priorities.
        weight: u16,
        /// The port on the host.
        port: u16,
        /// The host. If it is the root, the domain does not offer the service.
        host: Name,
    },
}

impl Record {
    /// The memory of the record outside the struct itself, in bytes.
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

/// The answer to a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The requested records, in the server's order. Aliases (`CNAME`) were followed.
    pub records: Vec<Record>,
    /// Whether the name exists. This matters only if there are no records.
    pub exists: bool,
    /// Whether the server says that it has verified all signatures (RFC 4035 §3.2.3). The statement
    /// is only as trustworthy as the route to the server.
    pub is_authenticated: bool,
}

/// Why there is no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unanswered {
    /// There is no server to ask.
    NoServer,
    /// No server answered in time.
    Silence,
    /// The last server that replied has refused the question or failed.
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
