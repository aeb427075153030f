//! The addresses of a host that the configuration names, by its name or its address: a smarthost,
//! or a filter.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use core::ops::RangeInclusive;

use configuration::{Prefix, RelayHost};
use dns::{Knowledge, Missing, Name};
use net::Net;
use relay::route::{Families, MailRoute, RouteTarget, Unroutable, Us, route};

/// This machine's name, its addresses, and the networks that it can reach.
pub struct Ourselves {
    name: Name,
    addresses: Vec<IpAddr>,
    callable: Vec<RangeInclusive<IpAddr>>,
}

impl Ourselves {
    /// `hostname`: our name. `private_networks`: the private networks in which we may call hosts.
    pub fn of(hostname: &str, net: &Net, private_networks: &[Prefix]) -> Ourselves {
        let name = Name::parse(hostname)
            .unwrap_or_else(|_| Name::reverse(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        let own =
            net.ipv6_addresses().map(|own| own.address).filter(|own| !own.is_unicast_link_local());
        let own = own.map(IpAddr::V6).chain(net.address().map(|own| IpAddr::V4(own.address)));
        let callable = private_networks.iter().map(Prefix::addresses).collect();
        Ourselves { name, addresses: own.collect(), callable }
    }

    /// The values, in the form that [`route`] takes.
    pub fn us(&self) -> Us<'_> {
        let has = |is_of_family: fn(&IpAddr) -> bool| self.addresses.iter().any(is_of_family);
        let families = match (has(IpAddr::is_ipv4), has(IpAddr::is_ipv6)) {
            (true, true) => Families::Both,
            (false, true) => Families::Ipv6,
            _ => Families::Ipv4,
        };
        Us { name: &self.name, addresses: &self.addresses, callable: &self.callable, families }
    }
}

/// The route to a host that the configuration names.
///
/// Errors: [`Missing`] says what must be looked up first.
pub fn route_to(
    host: &RelayHost,
    us: &Us<'_>,
    random: u64,
    knowledge: &Knowledge,
) -> Result<MailRoute, Missing> {
    match host {
        RelayHost::Address(address) => {
            route(&RouteTarget::SmarthostAt(*address), us, random, knowledge)
        }
        RelayHost::Name(name) => match Name::parse(name.as_str()) {
            Ok(name) => route(&RouteTarget::Smarthost(&name), us, random, knowledge),
            Err(_) => Ok(MailRoute::Nowhere(Unroutable::NoSmarthost)),
        },
    }
}
