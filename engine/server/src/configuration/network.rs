//! `[network]`, the machine's fixed address, and `[access]`, who may do more than a stranger.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};

use super::document::Section;
use super::error::ConfigurationError;
use super::values::{InterfaceAddress, Prefix};
use super::{DNS_SERVERS_MAX, PREFIXES_MAX, parsed_once};

/// A fixed address, in place of DHCP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Network {
    /// The machine's own address.
    pub address: Ipv4Addr,
    /// How many leading bits the addresses of its network share, 1 to 32.
    pub prefix_length: u8,
    /// The way to all other networks; another host of the same network.
    pub gateway: Option<Ipv4Addr>,
    /// The name servers, in the order in which they are asked.
    pub dns: Vec<Ipv4Addr>,
}

pub(super) fn network(section: &Section<'_, '_>) -> Result<Network, ConfigurationError> {
    section.refuse_unknown(&["address", "gateway", "dns"])?;
    let own_item = section.required("address", "the machine's address with its prefix, such as \"10.0.0.2/24\"")?;
    let own: InterfaceAddress = own_item.parsed()?;
    let gateway = section.optional("gateway").map(|item| -> Result<Ipv4Addr, ConfigurationError> {
        let gateway = item.parsed()?;
        if gateway == own.address {
            return Err(item.error("the gateway is the machine itself", "the address of the router"));
        }
        if !own.reaches(gateway) {
            let expected = format_args!("an address within {}/{}", own.address, own.length);
            return Err(item.error("the gateway is not on the machine's network", expected));
        }
        Ok(gateway)
    });
    let dns = match section.optional("dns") {
        Some(item) => parsed_once(&item.list(DNS_SERVERS_MAX, "a list of addresses")?, "a name server")?,
        None => Vec::new(),
    };
    Ok(Network { address: own.address, prefix_length: own.length, gateway: gateway.transpose()?, dns })
}

/// Who may do more than a stranger. Empty lists, the default, name nobody.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Access {
    /// Where logging in without TLS is allowed.
    pub plaintext_auth_from: Vec<Prefix>,
    /// Whom no limit on rates, delay or ban concerns.
    pub unthrottled_from: Vec<Prefix>,
}

impl Access {
    /// Whether a client at `address` may log in without TLS.
    pub fn allows_plaintext_auth(&self, address: IpAddr) -> bool {
        self.plaintext_auth_from.iter().any(|prefix| prefix.contains(address))
    }

    /// Whether a client at `address` is free of limits, delays and bans.
    pub fn is_unthrottled(&self, address: IpAddr) -> bool {
        self.unthrottled_from.iter().any(|prefix| prefix.contains(address))
    }
}

pub(super) fn access(section: &Section<'_, '_>) -> Result<Access, ConfigurationError> {
    section.refuse_unknown(&["plaintext_auth_from", "unthrottled_from"])?;
    let prefixes = |key| match section.optional(key) {
        Some(item) => parsed_once(&item.list(PREFIXES_MAX, "a list of prefixes")?, "a prefix"),
        None => Ok(Vec::new()),
    };
    Ok(Access {
        plaintext_auth_from: prefixes("plaintext_auth_from")?,
        unthrottled_from: prefixes("unthrottled_from")?,
    })
}
