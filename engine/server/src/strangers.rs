//! Who is a stranger, and against whom it may be held that he is one. What is then held against him stands in `smtp_service` and in `mail::{Strangers, Greylist}`.

use core::net::IpAddr;

use connections::{Caller, Protocol};
use machine::Micros;

use crate::common::Common;

impl Common {
    /// Whether a host with this address is no stranger: it is in a network of ours, or in one that is nobody's on the Internet.
    pub(crate) fn is_near(&self, address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let is_nobodys = address.is_private() || address.is_loopback() || address.is_link_local();
                is_nobodys || self.connections.net().address().is_some_and(|own| own.is_on_link(address))
            }
            IpAddr::V6(address) => {
                let is_nobodys = address.is_unique_local() || address.is_loopback() || address.is_unicast_link_local();
                is_nobodys || self.connections.net().ipv6_addresses().any(|own| own.is_on_link(address))
            }
        }
    }

    /// Whether this is somebody of whom nothing is known, who brings mail for us.
    pub(crate) fn is_strange(&self, caller: Caller) -> bool {
        caller.service_entry().protocol == Protocol::Smtp && !self.is_near(caller.address)
    }

    /// Whether what is held against strangers may be held against him: the configuration exempts none of his network.
    pub(crate) fn is_judged(&self, caller: Caller) -> bool {
        self.is_strange(caller) && !self.logins.access().is_unthrottled(caller.address)
    }

    /// How long a client is listened to before he is greeted, if he is.
    pub(crate) fn greeting_delay(&self, caller: Caller) -> Option<Micros> {
        self.greeting_delay.filter(|_| self.is_judged(caller))
    }
}
