//! `[network]`: the fixed addresses of the machine. `[access]`: clients with more rights than other
//! external clients.

use alloc::format;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::document::{Item, Section, UncheckedSection};
use super::error::ConfigurationError;
use super::keys::keys;
use super::values::{InterfaceAddress, Prefix};
use super::{ADDRESSES_MAX, DNS_SERVERS_MAX, IPV6_ADDRESSES_MAX, PREFIXES_MAX, parsed_once};

keys! {
    KEYS, described, "[network]", [],
    "Fixed addresses of this machine. Without this section the machine uses DHCP for IPv4 (QEMU \
    answers it if there is no `--tap`) and router advertisements for IPv6. With it neither is \
    used, and a family without an address here is not used at all.";
    "address" {
        form: "string or list of strings",
        default: "none, the key is required",
        range: format!(
            "at least one address: at most one of IPv4 and up to {IPV6_ADDRESSES_MAX} of IPv6, none \
            twice, each with its prefix"
        ),
        example: r#"["10.0.0.2/24", "2001:db8::2/64"]"#,
        meaning: "The addresses of this machine, and with them its networks.",
    }
    "gateway" {
        form: "string or list of strings",
        default: "no router: only hosts of the machine's own networks can be reached",
        range: "at most one address of each family, within a network of the machine; for IPv6 also \
            a link-local one",
        example: r#"["10.0.0.1", "2001:db8::1"]"#,
        meaning: "The routers to all other networks.",
    }
    "dns" {
        form: "list of strings",
        default: "no name servers",
        range: format!("up to {DNS_SERVERS_MAX} addresses of either family, none twice"),
        example: r#"["10.0.0.1"]"#,
        meaning: "The name servers, in the order in which they are asked. They are needed to send \
            mail to other servers, and to authenticate incoming mail. Without `[network]` the \
            machine uses the ones that DHCP and routers name.",
    }
    "dnssec" {
        form: "boolean",
        default: "`false`",
        range: "`true` or `false`",
        example: "true",
        meaning: "Whether answers that are marked as authenticated are trusted. Set it only if the \
            name servers check DNSSEC signatures, and no attacker can change packets between them \
            and this machine. DANE needs it.",
    }
}

keys! {
    ACCESS_KEYS, access_described, "[access]", [],
    "Clients with more rights than others. At each start the console warns of a range that is \
    wider than a /16, or a /48 for IPv6.\n\n\
    The demo names `10.0.2.0/24`, from which all connections through forwarded ports come. With \
    `--tap` or `[network]` that range is refused; name the range of your own clients instead.";
    "plaintext_auth_from" {
        form: "list of strings",
        default: "no clients",
        range: format!("up to {PREFIXES_MAX} prefixes, none twice"),
        example: r#"["10.0.0.0/24"]"#,
        meaning: "The clients that may log in without TLS. All others must use TLS: ports 465 and \
            995, or STARTTLS and STLS.",
    }
    "unthrottled_from" {
        form: "list of strings",
        default: "no clients",
        range: format!("up to {PREFIXES_MAX} prefixes, none twice"),
        example: r#"["10.0.0.0/24"]"#,
        meaning: "The clients that are never delayed after a failed login, and to which nothing \
            of `[abuse]` applies. A filter is not asked about them either.",
    }
}

/// The fixed addresses of the machine, which replace DHCP and router advertisements. A family
/// without an address in this list is not used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Network {
    /// The addresses of this machine: at least one, at most one of IPv4 and
    /// [`super::IPV6_ADDRESSES_MAX`] of IPv6.
    pub addresses: Vec<InterfaceAddress>,
    /// The router to all other IPv4 networks. It is a host of the machine's network.
    pub gateway: Option<Ipv4Addr>,
    /// The router to all other IPv6 networks. It is a host of one of the machine's networks, or has
    /// a link-local address.
    pub ipv6_gateway: Option<Ipv6Addr>,
    /// The name servers, in the order in which they are asked.
    pub dns: Vec<IpAddr>,
    /// Whether the name servers check DNSSEC signatures, and the path to them is trusted.
    pub dnssec: bool,
}

pub(super) fn network(table: UncheckedSection<'_, '_>) -> Result<Network, ConfigurationError> {
    let section = &table.section(KEYS)?;
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
        return Err(item.error("there is more than one IPv4 address", "at most one IPv4 address"));
    }
    if let Some((item, _)) = pairs().filter(family(false)).nth(IPV6_ADDRESSES_MAX) {
        let expected = format_args!("at most {IPV6_ADDRESSES_MAX} IPv6 addresses");
        return Err(item.error("there are too many IPv6 addresses", expected));
    }
    Ok(addresses)
}

/// Reads the gateways: at most one of each family, on a network of the machine.
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
                return Err(item.error(
                    "the machine has no address of this family",
                    "a gateway of another family, or an address of this one",
                ));
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
            return Err(item.error(
                "there is more than one gateway of this family",
                "at most one gateway for each family",
            ));
        }
    }
    Ok((ipv4, ipv6))
}

/// The clients with more rights than others. By default both lists are empty.
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
    /// The addresses of the range.
    pub prefix: Prefix,
    /// The line of the configuration that names the range.
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

pub(super) fn access(table: UncheckedSection<'_, '_>) -> Result<Access, ConfigurationError> {
    let section = &table.section(ACCESS_KEYS)?;
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
