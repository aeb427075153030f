//! Which clients are strangers, and which rules for strangers apply to them. What those rules are
//! stands in `inbound` and in `mail::{Strangers, Greylist}`.

use core::net::IpAddr;

use configuration::Access;
use connections::Caller;
use machine::Protocol;
use net::Net;

/// Whether a host is no stranger: its network is ours, or not of the Internet.
pub(crate) fn is_near(address: IpAddr, net: &Net) -> bool {
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

/// Whether nothing is known of the client, which brings mail for us.
pub(crate) fn is_strange(caller: Caller, net: &Net) -> bool {
    caller.service_entry().protocol == Protocol::Smtp && !is_near(caller.address, net)
}

/// Whether the rules for strangers apply to the client: its network is not exempt.
pub fn is_judged(caller: Caller, net: &Net, access: &Access) -> bool {
    is_strange(caller, net) && !access.is_unthrottled(caller.address)
}
