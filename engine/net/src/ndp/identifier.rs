//! Stable, opaque interface identifiers. They change only with the machine or its network, and
//! reveal neither (RFC 7217, which RFC 8064 recommends).

use core::hash::Hasher;
use core::net::Ipv6Addr;

use machine::Ethernet;
use siphasher::sip::SipHasher24;

use crate::ipv6::NETWORK_BITS;

/// The most addresses to try in one network, until one is not a duplicate (IDGEN_RETRIES, RFC 7217
/// §7).
pub(super) const ATTEMPTS_MAX: u8 = 3;
/// The most reserved identifiers to skip in a row. Even two in a row almost never occur.
const RESERVED_MAX: u8 = 8;

/// The function F of RFC 7217 §5, with its secret.
pub(super) struct InterfaceIdentifiers {
    hasher: SipHasher24,
}

impl InterfaceIdentifiers {
    pub(super) fn new(secret: &[u8; 16], hardware: Ethernet) -> InterfaceIdentifiers {
        let mut hasher = SipHasher24::new_with_key(secret);
        hasher.write(&hardware.0);
        InterfaceIdentifiers { hasher }
    }

    /// Forms the address in the network of `prefix` for `attempt`. Skips attempts that give a
    /// reserved identifier. Returns the address, and the attempt that gave it.
    pub(super) fn address(&self, prefix: Ipv6Addr, attempt: u8) -> (Ipv6Addr, u8) {
        let network = prefix.to_bits() >> NETWORK_BITS;
        let identifier = |attempt: u8| {
            let mut hasher = self.hasher;
            hasher.write_u64(network as u64);
            hasher.write_u8(attempt);
            hasher.finish()
        };
        let last = attempt + RESERVED_MAX;
        let attempt =
            (attempt..last).find(|attempt| !is_reserved(identifier(*attempt))).unwrap_or(last);
        (Ipv6Addr::from_bits(network << NETWORK_BITS | u128::from(identifier(attempt))), attempt)
    }
}

/// Whether RFC 5453 reserves the identifier: the subnet-router anycast address, IANA's Ethernet
/// block, and the reserved anycast block.
fn is_reserved(identifier: u64) -> bool {
    identifier == 0
        || identifier >> 24 == 0x0200_5eff_fe00_0000 >> 24
        || (0xfdff_ffff_ffff_ff80..=0xfdff_ffff_ffff_ffff).contains(&identifier)
}

#[cfg(test)]
mod tests {
    use super::{InterfaceIdentifiers, is_reserved};
    use core::net::Ipv6Addr;
    use machine::Ethernet;

    #[test]
    fn address_depends_on_secret_card_network_and_attempt() {
        let (network, other): (Ipv6Addr, Ipv6Addr) =
            ("2001:db8::".parse().unwrap(), "2001:db8:1::".parse().unwrap());
        let card = Ethernet([2, 0, 0, 0, 0, 1]);
        let ours = InterfaceIdentifiers::new(&[1; 16], card);
        let (address, attempt) = ours.address(network, 0);
        assert_eq!(
            (address.segments()[..4].to_vec(), attempt),
            (network.segments()[..4].to_vec(), 0)
        );
        let identifier = |address: Ipv6Addr| address.to_bits() as u64;
        assert_eq!(InterfaceIdentifiers::new(&[1; 16], card).address(network, 0).0, address);
        assert_ne!(identifier(ours.address(other, 0).0), identifier(address));
        assert_ne!(identifier(ours.address(network, 1).0), identifier(address));
        assert_ne!(
            identifier(InterfaceIdentifiers::new(&[2; 16], card).address(network, 0).0),
            identifier(address)
        );
        let other_card = Ethernet([2, 0, 0, 0, 0, 2]);
        assert_ne!(
            identifier(InterfaceIdentifiers::new(&[1; 16], other_card).address(network, 0).0),
            identifier(address)
        );
    }

    #[test]
    fn reserved_identifiers_are_known() {
        for reserved in [0, 0x0200_5eff_fe00_5213, 0xfdff_ffff_ffff_ff80, 0xfdff_ffff_ffff_ffff] {
            assert!(is_reserved(reserved), "{reserved:x}");
        }
        for free in [1, 0xfdff_ffff_ffff_ff7f, 0x0200_5eff_fd00_0000, u64::MAX] {
            assert!(!is_reserved(free), "{free:x}");
        }
    }
}
