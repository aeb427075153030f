//! The configuration of the network at construction: the address, or that DHCP assigns one, and all
//! limits.

use core::net::Ipv6Addr;

use machine::CoreId;

use crate::interface::Ipv4Interface;
use crate::tcp::PoolSizes;

/// Where our IPv4 address comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Addressing {
    /// None: IPv4 is off.
    None,
    /// A DHCP server.
    Dhcp,
    /// The configuration.
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

/// Where our IPv6 addresses come from. Unless there are none, there is a link-local address too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ipv6Addressing {
    /// None: IPv6 is off.
    None,
    /// The prefixes that routers advertise (RFC 4862).
    Automatic,
    /// The configuration. Router advertisements are ignored.
    Static {
        /// The addresses; unused places are `None`.
        addresses: [Option<Ipv6Address>; IPV6_FIXED_MAX],
        /// The router for everything outside their networks.
        gateway: Option<Ipv6Addr>,
    },
}

/// The limits of one core. No table grows later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections.
    pub connections: usize,
    /// Handshakes in progress that are stored. Further ones are answered with SYN cookies; with
    /// zero, all are.
    pub half_open: usize,
    /// Connections in TIME-WAIT.
    pub time_wait: usize,
    /// The buffers that connections borrow while they have data to send or to keep.
    pub pools: PoolSizes,
}

/// The most cores of one machine.
pub const CORES_MAX: usize = 16;

/// Which core a network runs on, and how many there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cores {
    /// This core.
    pub own: CoreId,
    /// How many there are, at most [`CORES_MAX`].
    pub count: u8,
}

impl Cores {
    /// The only core.
    pub const ALONE: Cores = Cores { own: CoreId(0), count: 1 };

    /// Whether this core acts for the machine.
    pub(crate) fn is_first(self) -> bool {
        self.own == FIRST
    }

    /// The next core for a segment that goes round the cores.
    pub(crate) fn next(self) -> CoreId {
        if self.own.0 + 1 < self.count { CoreId(self.own.0 + 1) } else { FIRST }
    }
}

/// The core that acts for the machine.
pub(crate) const FIRST: CoreId = CoreId(0);

/// The configuration for [`crate::Net::new`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Where our IPv4 address comes from.
    pub addressing: Addressing,
    /// Where our IPv6 addresses come from.
    pub ipv6: Ipv6Addressing,
    /// The limits.
    pub limits: Limits,
    /// Which core this is.
    pub cores: Cores,
}

/// Identifies a service of the user: each connection to its port is reported with it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Service(pub u8);
