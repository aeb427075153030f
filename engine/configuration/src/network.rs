//! `[network]`: the fixed addresses of the machine. `[access]`: clients with more rights than other
//! external clients.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::document::{Item, Section};
use super::error::ConfigurationError;
use super::values::{InterfaceAddress, Prefix};
use super::{ADDRESSES_MAX, DNS_SERVERS_MAX, IPV6_ADDRESSES_MAX, PREFIXES_MAX, parsed_once};

/// Fixed addresses, which replace DHCP and router advertisements. A family without an address here
/// is not used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Network {
    /// The addresses of this machine: at least one, at most one of IPv4 and
    /// [`super::IPV6_ADDRESSES_MAX`] of IPv6.
    pub addresses: Vec<InterfaceAddress>,
    /// The router to all other IPv4 networks. It is another host of the same network.
    pub gateway: Option<Ipv4Addr>,
    /// The router to all other IPv6 networks. It is another host of one of the networks, or of the
    /// link.
    pub ipv6_gateway: Option<Ipv6Addr>,
    /// The name servers, in the order in which they are asked.
    pub dns: Vec<IpAddr>,
    /// Whether the name servers check DNSSEC signatures, and the path to them is trusted.
    pub dnssec: bool,
}

pub(super) fn network(section: &Section<'_, '_>) -> Result<Network, ConfigurationError> {
    section.refuse_unknown(&["address", "gateway", "dns", "dnssec"])?;
    let addresses = addresses(section)?;
    let (gateway, ipv6_gateway) = match section.optional("gateway") {
        Some(item) => gateways(&item, &addresses)?,
        None => (None, None),
    };
    let dns = match section.optional("dns") {
        Some(item) => {
            parsed_once(&item.list(DNS_SERVERS_MAX, "a list of addresses")?, "a name server")?
        }
        None => Vec::new(),
    };
    let dnssec =
        section.optional("dnssec").map(|item| item.boolean()).transpose()?.unwrap_or_default();
    Ok(Network { addresses, gateway, ipv6_gateway, dns, dnssec })
}

fn addresses(section: &Section<'_, '_>) -> Result<Vec<InterfaceAddress>, ConfigurationError> {
    const EXPECTED: &str =
        "the machine's address with its prefix, such as \"10.0.0.2/24\", or a list of such";
    let item = section.required("address", EXPECTED)?;
    let items = item.one_or_several(ADDRESSES_MAX, EXPECTED)?;
    if items.is_empty() {
        return Err(item.error("the list of addresses is empty", EXPECTED));
    }
    let addresses: Vec<InterfaceAddress> = parsed_once(&items, "an address")?;
    let family =
        |is_ipv4| move |(_, own): &(_, &InterfaceAddress)| own.address.is_ipv4() == is_ipv4;
    let pairs = || items.iter().zip(&addresses);
    if let Some((item, _)) = pairs().filter(family(true)).nth(1) {
        return Err(item.error("this is the second IPv4 address", "at most one of IPv4"));
    }
    if let Some((item, _)) = pairs().filter(family(false)).nth(IPV6_ADDRESSES_MAX) {
        let expected = format_args!("at most {IPV6_ADDRESSES_MAX} of IPv6");
        return Err(item.error("this is one IPv6 address too many", expected));
    }
    Ok(addresses)
}

/// At most one gateway of each family, on a network of the machine.
fn gateways(
    item: &Item<'_, '_>,
    own: &[InterfaceAddress],
) -> Result<(Option<Ipv4Addr>, Option<Ipv6Addr>), ConfigurationError> {
    let (mut ipv4, mut ipv6) = (None, None);
    for item in item.one_or_several(2, "the address of the router, or one for each family")? {
        let gateway: IpAddr = item.parsed()?;
        if own.iter().any(|own| own.address == gateway) {
            return Err(
                item.error("the gateway is the machine itself", "the address of the router")
            );
        }
        let family = own.iter().find(|own| own.address.is_ipv4() == gateway.is_ipv4());
        let is_near = matches!(gateway, IpAddr::V6(gateway) if gateway.is_unicast_link_local());
        match family {
            None => {
                return Err(
                    item.error("the machine has no address of this family", "a gateway of another")
                );
            }
            Some(first) if !is_near && !own.iter().any(|own| own.reaches(gateway)) => {
                let expected = format_args!("an address within {first}");
                return Err(item.error("the gateway is not on the machine's network", expected));
            }
            Some(_) => {}
        }
        let is_second = match gateway {
            IpAddr::V4(gateway) => ipv4.replace(gateway).is_some(),
            IpAddr::V6(gateway) => ipv6.replace(gateway).is_some(),
        };
        if is_second {
            return Err(
                item.error("this is the second gateway of its family", "one for each family")
            );
        }
    }
    Ok((ipv4, ipv6))
}

/// Clients with more rights. Empty lists, the default, name none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Access {
    /// The clients that may log in without TLS.
    pub plaintext_auth_from: Vec<AccessRange>,
    /// The clients that are exempt from rate limits, delays and bans.
    pub unthrottled_from: Vec<AccessRange>,
}

/// A range of client addresses in `[access]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccessRange {
    /// Its addresses.
    pub prefix: Prefix,
    /// The line of the configuration that names it.
    pub line: usize,
}

impl Access {
    /// Whether a client at `address` may log in without TLS.
    pub fn allows_plaintext_auth(&self, address: IpAddr) -> bool {
        self.plaintext_auth_from.iter().any(|range| range.prefix.contains(address))
    }

    /// Whether a client at `address` is exempt from limits, delays and bans.
    pub fn is_unthrottled(&self, address: IpAddr) -> bool {
        self.unthrottled_from.iter().any(|range| range.prefix.contains(address))
    }
}

pub(super) fn access(section: &Section<'_, '_>) -> Result<Access, ConfigurationError> {
    section.refuse_unknown(&["plaintext_auth_from", "unthrottled_from"])?;
    Ok(Access {
        plaintext_auth_from: ranges(section, "plaintext_auth_from")?,
        unthrottled_from: ranges(section, "unthrottled_from")?,
    })
}

fn ranges(section: &Section<'_, '_>, key: &str) -> Result<Vec<AccessRange>, ConfigurationError> {
    let Some(item) = section.optional(key) else { return Ok(Vec::new()) };
    let items = item.list(PREFIXES_MAX, "a list of prefixes")?;
    let prefixes: Vec<Prefix> = parsed_once(&items, "a prefix")?;
    Ok(prefixes
        .into_iter()
        .zip(&items)
        .map(|(prefix, item)| AccessRange { prefix, line: item.line() })
        .collect())
}
