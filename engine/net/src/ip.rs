//! An IPv4 or IPv6 address in 128 bits, in wire order. Flows, tables and headers use this type.
//!
//! An IPv4 address is stored as an IPv4-mapped address, `::ffff:a.b.c.d` (RFC 4291 §2.5.5.2). No
//! IPv6 packet may have such an address (`ipv6::is_possible`), so IPv4 and IPv6 cannot be confused.
//! The prefix of mapped addresses adds nothing to a one's-complement sum. So one pseudo header
//! serves both ([`crate::checksum::Sum::pseudo_header`]).

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IPv4 or IPv6 address: two words in the machine's byte order. The bytes in memory are in wire
/// order.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Ip {
    high: u64,
    low: u64,
}

impl Ip {
    pub(crate) const UNSPECIFIED: Ip = Ip { high: 0, low: 0 };

    #[inline]
    pub(crate) const fn v4(address: Ipv4Addr) -> Ip {
        let [a, b, c, d] = address.octets();
        Ip { high: 0, low: u64::from_ne_bytes([0, 0, 0xff, 0xff, a, b, c, d]) }
    }

    #[inline]
    pub(crate) const fn v6(address: Ipv6Addr) -> Ip {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = address.octets();
        Ip {
            high: u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            low: u64::from_ne_bytes([i, j, k, l, m, n, o, p]),
        }
    }

    /// The two words, for sums and hashes.
    #[inline]
    pub(crate) const fn words(self) -> [u64; 2] {
        [self.high, self.low]
    }

    #[inline]
    pub(crate) const fn is_ipv4(self) -> bool {
        let [a, b, c, d, ..] = self.low.to_ne_bytes();
        self.high == 0 && u32::from_be_bytes([a, b, c, d]) == 0xffff
    }

    /// The IPv4 address, or `None` for an IPv6 address.
    pub(crate) fn to_v4(self) -> Option<Ipv4Addr> {
        let [_, _, _, _, a, b, c, d] = self.low.to_ne_bytes();
        self.is_ipv4().then_some(Ipv4Addr::new(a, b, c, d))
    }

    /// The address as an IPv6 address. An IPv4 address becomes an IPv4-mapped one.
    pub(crate) fn to_v6(self) -> Ipv6Addr {
        let [a, b, c, d, e, f, g, h] = self.high.to_ne_bytes();
        let [i, j, k, l, m, n, o, p] = self.low.to_ne_bytes();
        Ipv6Addr::from_octets([a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p])
    }
}

impl From<Ipv4Addr> for Ip {
    #[inline]
    fn from(address: Ipv4Addr) -> Ip {
        Ip::v4(address)
    }
}

impl From<Ipv6Addr> for Ip {
    #[inline]
    fn from(address: Ipv6Addr) -> Ip {
        Ip::v6(address)
    }
}

impl From<IpAddr> for Ip {
    fn from(address: IpAddr) -> Ip {
        match address {
            IpAddr::V4(address) => Ip::v4(address),
            IpAddr::V6(address) => Ip::v6(address),
        }
    }
}

impl From<Ip> for IpAddr {
    fn from(ip: Ip) -> IpAddr {
        ip.to_v4().map_or_else(|| IpAddr::V6(ip.to_v6()), IpAddr::V4)
    }
}

impl fmt::Debug for Ip {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", IpAddr::from(*self))
    }
}

/// The number of an address of ours. Each IPv6 address that we assign gets a new number. So a flow
/// of a former IPv6 address is never taken for a flow of a later one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Local(pub(crate) u32);

impl Local {
    /// Our single IPv4 address, whatever it is at present.
    pub(crate) const IPV4: Local = Local(0);

    #[inline]
    pub(crate) fn is_ipv4(self) -> bool {
        self == Local::IPV4
    }
}

#[cfg(test)]
mod tests {
    use super::Ip;
    use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    #[test]
    fn addresses_of_both_families_survive_conversion() {
        for text in [
            "0.0.0.0",
            "10.0.0.2",
            "255.255.255.255",
            "::",
            "::1",
            "2001:db8::1",
            "::fffe:10.0.0.2",
            "ff02::1",
        ] {
            let address: IpAddr = text.parse().unwrap();
            let ip = Ip::from(address);
            assert_eq!(IpAddr::from(ip), address);
            assert_eq!(ip.is_ipv4(), address.is_ipv4());
            assert_eq!(ip.to_v4().is_some(), address.is_ipv4());
        }
        assert_eq!(
            Ip::v4(Ipv4Addr::new(10, 0, 0, 2)).to_v6(),
            Ipv4Addr::new(10, 0, 0, 2).to_ipv6_mapped()
        );
        assert_ne!(Ip::v4(Ipv4Addr::UNSPECIFIED), Ip::v6(Ipv6Addr::UNSPECIFIED));
    }
}
