//! Where a letter goes: the hosts that take a domain's mail, in the order in which they are to be tried.
//!
//! [`route`] is a plain function of what is known of names. What it has to know and does not it says, and it is called again when that is known too, with the same random number.
//!
//! Invariants:
//! - Nothing is sent to ourselves, by whatever name or address, nor to whom a domain prefers no more than us: it would come back (RFC 5321 section 5.1).
//! - What nobody can know now is tried later; only what name servers say makes an end.
//! - No name of another domain leads to an address that is not public ([`is_public`]), unless the
//!   address is in [`Us::callable`].
//! - There are at most [`HOPS_MAX`] hops, and a route asks for at most 11 names.
//!
//! Answers to: RFC 5321 sections 5.1 and 5.2; RFC 7505 (null MX); RFC 3596 (IPv6).

use alloc::vec::Vec;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::net::IpAddr;
use core::ops::RangeInclusive;

use dns::{Answer, Knowledge, Missing, Name, Question, Record, RecordKind, Unanswered};
use siphasher::sip::SipHasher13;

use crate::reach::is_public;
use crate::reply::Enhanced;

/// So many hosts are looked at.
const HOSTS_MAX: usize = 5;
/// So many addresses of a host are, of each family.
const ADDRESSES_MAX: usize = 2;
/// So many hops a route has at most.
pub const HOPS_MAX: usize = HOSTS_MAX * ADDRESSES_MAX * 2;

/// Where a letter is to go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target<'a> {
    /// To who takes the mail of a domain, or of the address in brackets.
    Domain(smtp::Domain<'a>),
    /// To this host, which another domain names as a server of its own.
    Host(&'a Name),
    /// To this host, which takes our mail for others.
    Smarthost(&'a Name),
    /// The same of the host at an address.
    SmarthostAt(IpAddr),
}

/// Who we are, and what we can reach.
#[derive(Clone, Copy, Debug)]
pub struct Us<'a> {
    /// What we call ourselves.
    pub name: &'a Name,
    /// Where we are.
    pub addresses: &'a [IpAddr],
    /// Addresses at which hosts of other domains are contacted although they are not public.
    pub callable: &'a [RangeInclusive<IpAddr>],
    /// By what we reach others.
    pub families: Families,
}

/// Families of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Families {
    /// IPv4 alone.
    Ipv4,
    /// IPv6 alone.
    Ipv6,
    /// Either, IPv6 first.
    Both,
}

/// An address to be tried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hop {
    /// The host; none where an address stood in brackets.
    pub host: Option<Name>,
    /// Where it is.
    pub address: IpAddr,
    /// Whether name servers have checked the signatures of all that led here (DNSSEC).
    pub is_authenticated: bool,
}

/// The way of a letter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Route {
    /// One after the other, until one takes it.
    By {
        /// Those that are known.
        hops: Vec<Hop>,
        /// Why there may be others, of which nobody knows now.
        missing: Option<Unanswered>,
    },
    /// There is none.
    Nowhere(Unroutable),
}

/// Why there is no way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unroutable {
    /// Name servers did not answer.
    Unknown(Unanswered),
    /// The domain's name is none, or beyond ASCII.
    NotAName,
    /// There is no such domain.
    NoDomain,
    /// It takes no mail (RFC 7505).
    TakesNoMail,
    /// None of the hosts that take its mail has an address, or one that we reach.
    NoAddress,
    /// The hosts that take its mail have no public address ([`is_public`]).
    Private,
    /// Its mail comes to us, who do not know it.
    ComesBack,
    /// The domain says that its mail goes to none of the hosts to which it leads (RFC 8461): it may be that somebody in between has named them.
    Forbidden,
    /// The host that takes our mail for others has no address, or none that we reach: no fault of the letter.
    NoSmarthost,
}

/// The source of a host's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trust {
    /// The configuration names it.
    Configured,
    /// The DNS records of another domain name it.
    Strangers,
}

impl Target<'_> {
    fn trust(&self) -> Trust {
        match self {
            Target::Smarthost(_) | Target::SmarthostAt(_) => Trust::Configured,
            Target::Domain(_) | Target::Host(_) => Trust::Strangers,
        }
    }
}

/// Where a letter goes. `random`: any number, the same for each call about one attempt; by it those take turns that are preferred alike.
///
/// Errors: [`Missing`] says what has to be known first.
pub fn route(
    target: &Target<'_>,
    us: &Us<'_>,
    random: u64,
    knowledge: &Knowledge,
) -> Result<Route, Missing> {
    let hosts = match target {
        Target::Domain(smtp::Domain::Literal(address)) => {
            return Ok(to_literal(*address, Trust::Strangers, us));
        }
        Target::SmarthostAt(address) => {
            return Ok(match to_literal(*address, Trust::Configured, us) {
                Route::Nowhere(_) => Route::Nowhere(Unroutable::NoSmarthost),
                by => by,
            });
        }
        Target::Smarthost(host) | Target::Host(host) => {
            Hosts { names: Vec::from([(0, (*host).clone())]), is_authenticated: true }
        }
        Target::Domain(smtp::Domain::Name(domain)) => {
            match exchangers(domain, us, random, knowledge)? {
                Ok(hosts) => hosts,
                Err(why) => return Ok(Route::Nowhere(why)),
            }
        }
    };
    let trust = target.trust();
    let mut hops = Vec::new();
    let (mut why, mut missing) = (Unroutable::NoAddress, None);
    for (preference, host) in &hosts.names {
        match addresses(host, (us, trust), random, knowledge)? {
            Ok(Found { is_ours: true, .. }) => {
                why = Unroutable::ComesBack;
                hops.retain(|(before, _)| before < preference);
                break;
            }
            Ok(Found { addresses, has_private, .. }) => {
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
        Some(unanswered) if hops.is_empty() => Route::Nowhere(Unroutable::Unknown(unanswered)),
        None if hops.is_empty() => Route::Nowhere(match target {
            Target::Domain(_) | Target::Host(_) => why,
            Target::Smarthost(_) | Target::SmarthostAt(_) => Unroutable::NoSmarthost,
        }),
        missing => Route::By { hops, missing },
    })
}

fn to_literal(address: IpAddr, trust: Trust, us: &Us<'_>) -> Route {
    if us.is_at(address) {
        Route::Nowhere(Unroutable::ComesBack)
    } else if us.reaches(address) && !us.calls(address, trust) {
        Route::Nowhere(Unroutable::Private)
    } else if us.reaches(address) {
        let hop = Hop { host: None, address, is_authenticated: false };
        Route::By { hops: Vec::from([hop]), missing: None }
    } else {
        Route::Nowhere(Unroutable::NoAddress)
    }
}

/// Hosts that take a domain's mail, the first to be tried first, each with how it is preferred: the lower, the sooner.
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
    // What is beyond ASCII would have to be written in ASCII first (RFC 5891).
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

/// The rule of RFC 5321 section 5.1.
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
        // It is its own exchanger.
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

/// Where a host is.
struct Found {
    /// Addresses to be tried, and whether they are authenticated.
    addresses: Vec<(IpAddr, bool)>,
    /// Whether one of its addresses is ours.
    is_ours: bool,
    /// Whether an address was left out because it is not public.
    has_private: bool,
}

/// Addresses of a host. Where name servers do not know those of one family, those of the other do.
fn addresses(
    host: &Name,
    (us, trust): (&Us<'_>, Trust),
    random: u64,
    knowledge: &Knowledge,
) -> Result<Result<Found, Unanswered>, Missing> {
    let mut found = Found { addresses: Vec::new(), is_ours: false, has_private: false };
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

    /// Whether somebody else can be there.
    fn reaches(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let is_of_family = match self.families {
            Families::Ipv4 => address.is_ipv4(),
            Families::Ipv6 => address.is_ipv6(),
            Families::Both => true,
        };
        let is_nobody = address.is_unspecified() || address.is_loopback() || address.is_multicast();
        let is_everybody = matches!(address, IpAddr::V4(address) if address.is_broadcast());
        is_of_family && !is_nobody && !is_everybody && !self.is_at(address)
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

/// The place of a host or an address among those that are preferred alike: the same each time for the
/// same random number.
fn place(random: u64, of: &impl Hash) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(random, 0);
    of.hash(&mut hasher);
    hasher.finish()
}

impl Unroutable {
    /// Whether there may be a way later.
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
    /// In words, for people, without a full stop.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unroutable::Unknown(why) => write!(out, "where its mail goes could not be found out: {why}"),
            Unroutable::NotAName => out.write_str("what stands behind the @ is no name that mail can be sent to"),
            Unroutable::NoDomain => out.write_str("there is no such domain"),
            Unroutable::TakesNoMail => out.write_str("the domain takes no mail"),
            Unroutable::NoAddress => out.write_str("the servers of the domain have no address that can be reached"),
            Unroutable::Private => out.write_str(
                "the domain's mail servers have only private or reserved addresses, which this server does not connect to",
            ),
            Unroutable::Forbidden => {
                out.write_str("the policy of the domain (MTA-STS) allows none of the servers to which its mail leads")
            }
            Unroutable::NoSmarthost => {
                out.write_str("the server that sends mail on for this one has no address that can be reached")
            }
            Unroutable::ComesBack => out.write_str("mail for the domain comes to this server, which does not know it"),
        }
    }
}
