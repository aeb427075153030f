//! Our IPv4 address on the link, the addressee of a packet, and its next hop.
//!
//! There is one card, one address and one gateway: a mail server is a host, not a router (RFC 1122
//! §3.3.1).

use core::net::Ipv4Addr;

use machine::Ethernet;

/// An address of ours with its network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv4Interface {
    /// Our own address.
    pub address: Ipv4Addr,
    /// The length of the network prefix in bits, 0 to 32.
    pub prefix_bits: u8,
    /// The router for everything outside the network.
    pub gateway: Option<Ipv4Addr>,
}

impl Ipv4Interface {
    /// Whether `other` is in our network.
    pub fn is_on_link(&self, other: Ipv4Addr) -> bool {
        (self.address.to_bits() ^ other.to_bits()) & self.mask() == 0
    }

    /// The broadcast address of our network. `None` if the prefix is too long for one (RFC 3021).
    pub fn broadcast(&self) -> Option<Ipv4Addr> {
        (self.prefix_bits < 31).then(|| Ipv4Addr::from_bits(self.address.to_bits() | !self.mask()))
    }

    fn mask(&self) -> u32 {
        u32::MAX.checked_shl(32u32.saturating_sub(u32::from(self.prefix_bits))).unwrap_or(0)
    }
}

/// The hosts that a destination address names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Addressee {
    Us,
    Group,
    Others,
}

pub(crate) struct Interface {
    pub(crate) hardware: Ethernet,
    /// The largest IP packet that we send, in bytes.
    pub(crate) mtu: u16,
    /// `None` until the configuration or DHCP provides one.
    pub(crate) address: Option<Ipv4Interface>,
}

impl Interface {
    /// Our address; unspecified while we have none.
    pub(crate) fn own(&self) -> Ipv4Addr {
        self.address.map_or(Ipv4Addr::UNSPECIFIED, |own| own.address)
    }

    /// The hosts that `destination` names. Nearly always it names us.
    #[inline(always)]
    pub(crate) fn addressee(&self, destination: Ipv4Addr) -> Addressee {
        match self.address {
            Some(own) if own.address == destination => Addressee::Us,
            _ => self.addressee_of_others(destination),
        }
    }

    #[inline]
    fn addressee_of_others(&self, destination: Ipv4Addr) -> Addressee {
        match self.address {
            _ if destination.is_broadcast() => Addressee::Group,
            Some(own) if own.broadcast() == Some(destination) => Addressee::Group,
            // "All hosts" is the only group that every host belongs to (RFC 1112 §4).
            _ if destination == Ipv4Addr::new(224, 0, 0, 1) => Addressee::Group,
            _ => Addressee::Others,
        }
    }

    /// The next hop of a packet to `destination`: the destination itself or the gateway. `None`
    /// when there is no route.
    pub(crate) fn next_hop(&self, destination: Ipv4Addr) -> Option<Ipv4Addr> {
        let own = self.address?;
        if own.is_on_link(destination) { Some(destination) } else { own.gateway }
    }
}

#[cfg(test)]
mod tests {
    use super::{Addressee, Interface, Ipv4Interface};
    use core::net::Ipv4Addr;
    use machine::Ethernet;

    fn interface(prefix_bits: u8) -> Interface {
        let gateway = Some(Ipv4Addr::new(10, 0, 0, 1));
        let address =
            Some(Ipv4Interface { address: Ipv4Addr::new(10, 0, 0, 2), prefix_bits, gateway });
        Interface { hardware: Ethernet([2, 0, 0, 0, 0, 1]), mtu: 1500, address }
    }

    #[test]
    fn next_hop_is_the_gateway_unless_destination_is_on_link() {
        let interface = interface(24);
        assert_eq!(
            interface.next_hop(Ipv4Addr::new(10, 0, 0, 77)),
            Some(Ipv4Addr::new(10, 0, 0, 77))
        );
        assert_eq!(
            interface.next_hop(Ipv4Addr::new(10, 0, 1, 77)),
            Some(Ipv4Addr::new(10, 0, 0, 1))
        );
    }

    #[test]
    fn edge_prefixes_have_the_right_link_and_broadcast() {
        let far = Ipv4Addr::new(200, 1, 1, 1);
        assert!(interface(0).address.unwrap().is_on_link(far));
        assert!(!interface(1).address.unwrap().is_on_link(far));
        assert_eq!(interface(32).address.unwrap().broadcast(), None);
        assert_eq!(interface(31).address.unwrap().broadcast(), None);
        assert_eq!(interface(30).address.unwrap().broadcast(), Some(Ipv4Addr::new(10, 0, 0, 3)));
        assert_eq!(interface(0).address.unwrap().broadcast(), Some(Ipv4Addr::BROADCAST));
    }

    #[test]
    fn broadcast_addresses_are_distinguished_from_other_hosts() {
        let interface = interface(24);
        assert_eq!(interface.addressee(Ipv4Addr::new(10, 0, 0, 2)), Addressee::Us);
        assert_eq!(interface.addressee(Ipv4Addr::new(10, 0, 0, 255)), Addressee::Group);
        assert_eq!(interface.addressee(Ipv4Addr::BROADCAST), Addressee::Group);
        assert_eq!(interface.addressee(Ipv4Addr::new(10, 0, 0, 3)), Addressee::Others);
        assert_eq!(interface.addressee(Ipv4Addr::new(224, 0, 0, 251)), Addressee::Others);
    }
}
