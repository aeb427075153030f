//! Which clients are external, and which rules apply to them. The rules themselves are in `inbound`
//! and in `mail::{ClientRateLimits, Greylist}`.

use core::net::IpAddr;

use configuration::Access;
use connections::Caller;
use machine::Protocol;
use net::Net;

/// Whether a host is in a local network: one of ours, or one that is not part of the Internet.
pub(crate) fn is_local(address: IpAddr, net: &Net) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let is_nobodys =
                address.is_private() || address.is_loopback() || address.is_link_local();
            is_nobodys || net.address().is_some_and(|own| own.is_on_link(address))
        }
        IpAddr::V6(address) => {
            let is_nobodys = address.is_unique_local()
                || address.is_loopback()
                || address.is_unicast_link_local();
            is_nobodys || net.ipv6_addresses().any(|own| own.is_on_link(address))
        }
    }
}

/// Whether the client is external, and brings mail for us without a login.
pub(crate) fn is_external(caller: Caller, net: &Net) -> bool {
    caller.service_entry().protocol == Protocol::Smtp && !is_local(caller.address, net)
}

/// Whether the rules for external mail apply to the client: it is external, and its network is not
/// exempt.
pub fn inbound_policy_applies(caller: Caller, net: &Net, access: &Access) -> bool {
    is_external(caller, net) && !access.is_unthrottled(caller.address)
}
