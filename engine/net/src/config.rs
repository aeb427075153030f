//! The configuration of the network at construction: the source of its addresses, and all limits.

use core::net::Ipv6Addr;

use machine::CoreId;

use crate::interface::Ipv4Interface;
use crate::tcp::PoolSizes;

/// The source of our IPv4 address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Addressing {
    /// No address: IPv4 is off.
    None,
    /// A DHCP server assigns the address.
    Dhcp,
    /// The configuration states the address.
    Static(Ipv4Interface),
}

/// The most fixed IPv6 addresses.
pub const IPV6_FIXED_MAX: usize = 4;

/// An IPv6 address of ours, with its network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6Address {
    /// The address.
    pub address: Ipv6Addr,
    /// The length of the network prefix in bits, 0 to 128.
    pub prefix_bits: u8,
}

impl Ipv6Address {
    /// Whether `other` is in the same network.
    pub fn is_on_link(&self, other: Ipv6Addr) -> bool {
        let rest = u128::BITS.saturating_sub(u32::from(self.prefix_bits));
        (self.address.to_bits() ^ other.to_bits()).checked_shr(rest).unwrap_or(0) == 0
    }
}

/// The source of our IPv6 addresses. If IPv6 is on, we have a link-local address too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ipv6Addressing {
    /// No address: IPv6 is off.
    None,
    /// Routers advertise the prefixes of the addresses (RFC 4862).
    Automatic,
    /// The configuration states the addresses. Router advertisements are ignored.
    Static {
        /// The addresses; unused places are `None`.
        addresses: [Option<Ipv6Address>; IPV6_FIXED_MAX],
        /// The router for all addresses outside these networks.
        gateway: Option<Ipv6Addr>,
    },
}

/// The limits of one core. No table grows after construction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The most connections.
    pub connections: usize,
    /// The most handshakes in progress that are stored. A SYN beyond them evicts an old one, gets a
    /// SYN cookie, or gets no answer.
    pub half_open: usize,
    /// The most connections in TIME-WAIT.
    pub time_wait: usize,
    /// The buffers that connections borrow while they have data to send or to keep.
    pub pools: PoolSizes,
}

/// The most cores of one machine that can share the network.
pub const CORES_MAX: usize = 16;

/// The core that a network runs on, and the number of cores of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cores {
    /// The core of this network.
    pub own: CoreId,
    /// The number of cores, at most [`CORES_MAX`].
    pub count: u8,
}

impl Cores {
    /// The cores of a machine with one core.
    pub const ALONE: Cores = Cores { own: CoreId(0), count: 1 };

    /// Whether this core acts for the machine.
    pub(crate) fn is_first(self) -> bool {
        self.own == FIRST
    }

    /// The next core in the order in which a segment goes round the cores.
    pub(crate) fn next(self) -> CoreId {
        if self.own.0 + 1 < self.count { CoreId(self.own.0 + 1) } else { FIRST }
    }
}

/// The core that acts for the machine.
pub(crate) const FIRST: CoreId = CoreId(0);

/// The configuration for [`crate::Net::new`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The source of our IPv4 address.
    pub addressing: Addressing,
    /// The source of our IPv6 addresses.
    pub ipv6: Ipv6Addressing,
    /// The limits.
    pub limits: Limits,
    /// The core of this network, and the number of cores.
    pub cores: Cores,
}

/// Identifies a service of the user. Each accepted connection is reported with the service that
/// listens on its port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Service(pub u8);
