//! The IP addresses to which this server may connect because a record of another domain names them.
//!
//! The owner of a domain can put any address into its records, even an address inside the network
//! of this machine. A connection to such an address would reach services that are closed to the
//! Internet. So this server connects to an address from another domain's records only if a host of
//! the public Internet may have that address.
//!
//! Sources: the IANA special-purpose address registries (RFC 6890), RFC 6598, RFC 5737, RFC 3849,
//! RFC 9637; RFC 6052 and RFC 3056 for IPv6 addresses that lead to an IPv4 address.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether a host of the public Internet may have this address.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_ipv4(address),
        IpAddr::V6(address) => is_public_ipv6(address),
    }
}

fn is_public_ipv4(address: Ipv4Addr) -> bool {
    !matches!(
        address.octets(),
        // This network, private, loopback.
        [0 | 10 | 127, ..]
            // Shared by the customers of a provider (CGNAT).
            | [100, 64..=127, ..]
            // Link-local, private.
            | [169, 254, ..] | [172, 16..=31, ..] | [192, 168, ..]
            // Protocol assignments, the relays of 6to4, benchmarks.
            | [192, 0, 0, _] | [192, 88, 99, _] | [198, 18..=19, ..]
            // Documentation.
            | [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _]
            // Multicast, reserved, broadcast.
            | [224..=255, ..]
    )
}

fn is_public_ipv6(address: Ipv6Addr) -> bool {
    let embedded =
        |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        // NAT64: a translator leads to the IPv4 address after the prefix.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_ipv4(embedded(high, low)),
        // 6to4: a tunnel leads to the IPv4 address after the prefix.
        [0x2002, high, low, ..] => is_public_ipv4(embedded(high, low)),
        // Protocol assignments, documentation.
        [0x2001, ..=0x1ff | 0xdb8, ..] | [0x3fff, ..=0xfff, ..] => false,
        // Global unicast. Link-local, unique local and multicast addresses are outside.
        [0x2000..=0x3fff, ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_addresses_are_not_public() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.2.2",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::10.0.2.2",
            "::ffff:10.0.2.2",
            "::ffff:127.0.0.1",
            "64:ff9b::10.0.2.2",
            "64:ff9b:1::8.8.8.8",
            "100::1",
            "2001::1",
            "2001:1ff::1",
            "2001:db8::1",
            "2002:a00:202::1",
            "3fff:fff::1",
            "fc00::1",
            "fd00::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn addresses_beside_special_blocks_are_public() {
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "169.253.0.1",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.1",
            "192.167.0.1",
            "198.17.0.1",
            "198.20.0.1",
            "203.0.112.1",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2001:200::1",
            "2001:db7::1",
            "2001:4860:4860::8888",
            "2002:808:808::1",
            "2a00::1",
            "3fff:1000::1",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
