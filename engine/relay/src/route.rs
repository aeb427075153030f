//! The route of a message: the hosts that accept a domain's mail, in the order in which they are
//! tried.
//!
//! [`route`] is a pure function of the known answers of name servers. If it needs another answer,
//! it returns the question. The caller then calls it again with that answer and with the same
//! random number.
//!
//! Invariants:
//! - Nothing is sent to this server itself, even if a name or address of another domain leads to
//!   it. If this server is one of the MX hosts, only hosts that the domain prefers to this server
//!   are used. Any other MX host would send the message back (RFC 5321 section 5.1).
//! - If name servers do not answer now, the message is tried later. Only an answer can make a
//!   failure final.
//! - No name of another domain leads to an address that is not public ([`is_public`]), unless the
//!   address is in [`Us::callable`].
//! - There are at most [`HOPS_MAX`] hops, and a route asks at most 11 questions.
//!
//! Implements: RFC 5321 sections 5.1 and 5.2; RFC 7505 (null MX); RFC 3596 (IPv6).

use alloc::vec::Vec;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::net::IpAddr;
use core::ops::RangeInclusive;

use dns::{Answer, Knowledge, Missing, Name, Question, Record, RecordKind, Unanswered};
use message::report::Enhanced;
use siphasher::sip::SipHasher13;

use crate::reach::is_public;

/// The most hosts that are looked up.
const HOSTS_MAX: usize = 5;
/// The most addresses of a host that are used, of each family.
const ADDRESSES_MAX: usize = 2;
/// The most hops of a route.
pub const HOPS_MAX: usize = HOSTS_MAX * ADDRESSES_MAX * 2;

/// The target of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RouteTarget<'a> {
    /// The hosts that accept the mail of a domain. For an address literal, the host at this
    /// address.
    Domain(smtp::Domain<'a>),
    /// This host, which is named as a server in the records of another domain.
    Host(&'a Name),
    /// This host, which relays our mail.
    Smarthost(&'a Name),
    /// The host at this address, which relays our mail.
    SmarthostAt(IpAddr),
}

/// Our own name and addresses, and the addresses that we can reach.
#[derive(Clone, Copy, Debug)]
pub struct Us<'a> {
    /// Our name.
    pub name: &'a Name,
    /// Our addresses.
    pub addresses: &'a [IpAddr],
    /// Addresses that are not public, but at which this server may contact hosts of other domains.
    pub callable: &'a [RangeInclusive<IpAddr>],
    /// The address families in which this server can reach other hosts.
    pub families: Families,
}

/// Families of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Families {
    /// IPv4 only.
    Ipv4,
    /// IPv6 only.
    Ipv6,
    /// Either, IPv6 first.
    Both,
}

/// An address to be tried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hop {
    /// The host. `None`: the target of the message is an address.
    pub host: Option<Name>,
    /// Its address.
    pub address: IpAddr,
    /// Whether name servers have verified the signatures of all records on the way to this address
    /// (DNSSEC).
    pub is_authenticated: bool,
}

/// The route of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MailRoute {
    /// Hosts to try one after the other, until one accepts the message.
    By {
        /// The known hops.
        hops: Vec<Hop>,
        /// The reason why other hops may exist that are unknown now. `None`: all hops are known.
        missing: Option<Unanswered>,
    },
    /// There is no route.
    Nowhere(Unroutable),
}

/// Why there is no route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unroutable {
    /// Name servers did not answer.
    Unknown(Unanswered),
    /// The domain's name is not valid, or has non-ASCII characters.
    NotAName,
    /// There is no such domain.
    NoDomain,
    /// The domain accepts no mail (RFC 7505).
    TakesNoMail,
    /// None of the domain's mail hosts has an address that we can reach.
    NoAddress,
    /// The domain's mail hosts have no public address ([`is_public`]).
    Private,
    /// The domain's mail hosts lead to this server, which does not serve the domain.
    ComesBack,
    /// The domain's policy allows none of its mail hosts (RFC 8461): an attacker may have named
    /// them.
    Forbidden,
    /// The smarthost has no address that we can reach. The message is tried later.
    NoSmarthost,
}

/// The source of a host's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trust {
    /// The configuration names the host.
    Configured,
    /// The DNS records of another domain name the host.
    Strangers,
}

impl RouteTarget<'_> {
    fn trust(&self) -> Trust {
        match self {
            RouteTarget::Smarthost(_) | RouteTarget::SmarthostAt(_) => Trust::Configured,
            RouteTarget::Domain(_) | RouteTarget::Host(_) => Trust::Strangers,
        }
    }
}

/// Finds the route of a message. `random`: any number, the same for each call about one attempt. It
/// decides the order of hosts with equal preference.
///
/// Errors: [`Missing`] says what must be looked up first.
pub fn route(
    target: &RouteTarget<'_>,
    us: &Us<'_>,
    random: u64,
    knowledge: &Knowledge,
) -> Result<MailRoute, Missing> {
    let hosts = match target {
        RouteTarget::Domain(smtp::Domain::Literal(address)) => {
            return Ok(to_literal(*address, Trust::Strangers, us));
        }
        RouteTarget::SmarthostAt(address) => {
            return Ok(match to_literal(*address, Trust::Configured, us) {
                MailRoute::Nowhere(_) => MailRoute::Nowhere(Unroutable::NoSmarthost),
                by => by,
            });
        }
        RouteTarget::Smarthost(host) | RouteTarget::Host(host) => {
            Hosts { names: Vec::from([(0, (*host).clone())]), is_authenticated: true }
        }
        RouteTarget::Domain(smtp::Domain::Name(domain)) => {
            match exchangers(domain, us, random, knowledge)? {
                Ok(hosts) => hosts,
                Err(why) => return Ok(MailRoute::Nowhere(why)),
            }
        }
    };
    let trust = target.trust();
    let mut hops = Vec::new();
    let (mut why, mut missing) = (Unroutable::NoAddress, None);
    for (preference, host) in &hosts.names {
        match addresses(host, (us, trust), random, knowledge)? {
            Ok(HostAddresses { is_ours: true, .. }) => {
                why = Unroutable::ComesBack;
                hops.retain(|(before, _)| before < preference);
                break;
            }
            Ok(HostAddresses { addresses, has_private, .. }) => {
                if has_private {
                    why = Unroutable::Private;
                }
                hops.extend(addresses.into_iter().map(|(address, is_authenticated)| {
                    let is_authenticated = is_authenticated && hosts.is_authenticated;
                    (*preference, Hop { host: Some(host.clone()), address, is_authenticated })
                }));
            }
            Err(unanswered) => missing = Some(unanswered),
        }
    }
    let hops: Vec<Hop> = hops.into_iter().map(|(_, hop)| hop).collect();
    Ok(match missing {
        Some(unanswered) if hops.is_empty() => MailRoute::Nowhere(Unroutable::Unknown(unanswered)),
        None if hops.is_empty() => MailRoute::Nowhere(match target {
            RouteTarget::Domain(_) | RouteTarget::Host(_) => why,
            RouteTarget::Smarthost(_) | RouteTarget::SmarthostAt(_) => Unroutable::NoSmarthost,
        }),
        missing => MailRoute::By { hops, missing },
    })
}

/// The route to an address, without a lookup.
fn to_literal(address: IpAddr, trust: Trust, us: &Us<'_>) -> MailRoute {
    if us.is_at(address) {
        MailRoute::Nowhere(Unroutable::ComesBack)
    } else if us.reaches(address) && !us.calls(address, trust) {
        MailRoute::Nowhere(Unroutable::Private)
    } else if us.reaches(address) {
        let hop = Hop { host: None, address, is_authenticated: false };
        MailRoute::By { hops: Vec::from([hop]), missing: None }
    } else {
        MailRoute::Nowhere(Unroutable::NoAddress)
    }
}

/// The hosts that accept a domain's mail, in the order of the tries, each with its preference. A
/// host with a lower number comes first.
struct Hosts {
    names: Vec<(u16, Name)>,
    is_authenticated: bool,
}

fn exchangers(
    domain: &str,
    us: &Us<'_>,
    random: u64,
    knowledge: &Knowledge,
) -> Result<Result<Hosts, Unroutable>, Missing> {
    // A non-ASCII name would first have to be converted (RFC 5891).
    let Some(domain) = Name::of_bytes(domain.as_bytes()).ok().filter(|_| domain.is_ascii()) else {
        return Ok(Err(Unroutable::NotAName));
    };
    let answer =
        match knowledge.of(Question { name: domain.clone(), kind: RecordKind::Exchanger })? {
            Ok(answer) => answer,
            Err(unanswered) => return Ok(Err(Unroutable::Unknown(unanswered))),
        };
    Ok(ordered(&domain, answer, us, random)
        .map(|names| Hosts { names, is_authenticated: answer.is_authenticated }))
}

/// Orders the mail hosts of a domain (RFC 5321 section 5.1).
fn ordered(
    domain: &Name,
    answer: &Answer,
    us: &Us<'_>,
    random: u64,
) -> Result<Vec<(u16, Name)>, Unroutable> {
    let read = |record: &Record| match record {
        Record::Exchanger { preference, host } => {
            Some((*preference, place(random, host), host.clone()))
        }
        _ => None,
    };
    let mut hosts: Vec<_> = answer.records.iter().filter_map(read).collect();
    if hosts.is_empty() && !answer.exists {
        return Err(Unroutable::NoDomain);
    }
    if hosts.is_empty() {
        // A domain without MX records is its own mail host.
        hosts.push((0, 0, domain.clone()));
    }
    hosts.retain(|(_, _, host)| !host.is_root());
    if hosts.is_empty() {
        return Err(Unroutable::TakesNoMail);
    }
    hosts.sort_unstable();
    let ours =
        hosts.iter().find(|(_, _, host)| host == us.name).map(|(preference, _, _)| *preference);
    hosts.retain(|(preference, _, _)| ours.is_none_or(|ours| *preference < ours));
    if hosts.is_empty() {
        return Err(Unroutable::ComesBack);
    }
    Ok(hosts.into_iter().map(|(preference, _, host)| (preference, host)).take(HOSTS_MAX).collect())
}

/// The addresses of a host.
struct HostAddresses {
    /// Addresses to try, and whether each is authenticated.
    addresses: Vec<(IpAddr, bool)>,
    /// Whether one of its addresses is ours.
    is_ours: bool,
    /// Whether an address was left out because it is not public.
    has_private: bool,
}

/// The addresses of a host. If the addresses of one family are unknown, the other family is enough.
fn addresses(
    host: &Name,
    (us, trust): (&Us<'_>, Trust),
    random: u64,
    knowledge: &Knowledge,
) -> Result<Result<HostAddresses, Unanswered>, Missing> {
    let mut found = HostAddresses { addresses: Vec::new(), is_ours: false, has_private: false };
    let mut unanswered = None;
    for kind in us.families.kinds() {
        let answer = match knowledge.of(Question { name: host.clone(), kind: *kind })? {
            Ok(answer) => answer,
            Err(why) => {
                unanswered = Some(why);
                continue;
            }
        };
        let usable = |record: &Record| match record {
            Record::Address(address) => {
                found.is_ours |= us.is_at(*address);
                let is_reached = us.reaches(*address);
                let is_called = us.calls(*address, trust);
                found.has_private |= is_reached && !is_called;
                (is_reached && is_called).then(|| (place(random, address), *address))
            }
            _ => None,
        };
        let mut usable: Vec<_> = answer.records.iter().filter_map(usable).collect();
        usable.sort_unstable();
        let first = usable.into_iter().take(ADDRESSES_MAX);
        found.addresses.extend(first.map(|(_, address)| (address, answer.is_authenticated)));
    }
    Ok(match unanswered {
        Some(why) if found.addresses.is_empty() && !found.is_ours => Err(why),
        _ => Ok(found),
    })
}

impl Us<'_> {
    /// Whether an address is ours.
    fn is_at(&self, address: IpAddr) -> bool {
        self.addresses.contains(&address.to_canonical())
    }

    /// Whether another host can be at this address.
    fn reaches(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let is_of_family = match self.families {
            Families::Ipv4 => address.is_ipv4(),
            Families::Ipv6 => address.is_ipv6(),
            Families::Both => true,
        };
        let is_no_host =
            address.is_unspecified() || address.is_loopback() || address.is_multicast();
        let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
        is_of_family && !is_no_host && !is_broadcast && !self.is_at(address)
    }

    /// Whether a host may be contacted at this address. `trust`: the source of its name.
    fn calls(&self, address: IpAddr, trust: Trust) -> bool {
        let address = address.to_canonical();
        let is_named = || self.callable.iter().any(|range| range.contains(&address));
        trust == Trust::Configured || is_public(address) || is_named()
    }
}

impl Families {
    fn kinds(self) -> &'static [RecordKind] {
        match self {
            Families::Ipv4 => &[RecordKind::Ipv4],
            Families::Ipv6 => &[RecordKind::Ipv6],
            Families::Both => &[RecordKind::Ipv6, RecordKind::Ipv4],
        }
    }
}

/// A pseudo-random position of a host or address among those with equal preference. It is the same
/// for the same random number.
fn place(random: u64, of: &impl Hash) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(random, 0);
    of.hash(&mut hasher);
    hasher.finish()
}

impl Unroutable {
    /// Whether there may be a route later.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Unroutable::Unknown(_) | Unroutable::Forbidden | Unroutable::NoSmarthost)
    }

    /// The status to be reported (RFC 3463).
    pub fn status(&self) -> Enhanced {
        let (class, subject, detail) = match self {
            Unroutable::Unknown(_) => (4, 4, 3),
            Unroutable::NotAName | Unroutable::NoDomain => (5, 1, 2),
            Unroutable::TakesNoMail => (5, 1, 10),
            Unroutable::NoAddress | Unroutable::Private => (5, 4, 4),
            Unroutable::ComesBack => (5, 4, 6),
            Unroutable::Forbidden => (4, 7, 0),
            Unroutable::NoSmarthost => (4, 4, 4),
        };
        Enhanced { class, subject, detail }
    }
}

impl fmt::Display for Unroutable {
    /// The reason in words for people, without a full stop.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unroutable::Unknown(why) => write!(out, "the mail servers of the domain could not be looked up: {why}"),
            Unroutable::NotAName => out.write_str("the part after the @ is not a valid domain name"),
            Unroutable::NoDomain => out.write_str("the domain does not exist"),
            Unroutable::TakesNoMail => out.write_str("the domain does not accept mail"),
            Unroutable::NoAddress => out.write_str("the mail servers of the domain have no reachable address"),
            Unroutable::Private => out.write_str(
                "the domain's mail servers have only private or reserved addresses, which this server does not connect to",
            ),
            Unroutable::Forbidden => {
                out.write_str("the domain's MTA-STS policy allows none of its mail servers")
            }
            Unroutable::NoSmarthost => {
                out.write_str("the smarthost has no reachable address")
            }
            Unroutable::ComesBack => out.write_str("the MX records of the domain point to this server, which does not accept mail for it"),
        }
    }
}
