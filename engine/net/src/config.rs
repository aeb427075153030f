//! What the network is told at construction: its address, or that it must ask for one, and how much of everything.

use core::net::Ipv6Addr;

use machine::CoreId;

use crate::interface::Address;
use crate::tcp::PoolSizes;

/// Where our IPv4 address comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Addressing {
    /// Nowhere: IPv4 is not spoken.
    None,
    /// A DHCP server.
    Dhcp,
    /// The configuration.
    Static(Address),
}

/// The most fixed IPv6 addresses.
pub const IPV6_FIXED_MAX: usize = 4;

/// An IPv6 address of ours, with the network it lies in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6Address {
    /// The address.
    pub address: Ipv6Addr,
    /// Bits of it that name the network, 0 to 128.
    pub prefix_bits: u8,
}

impl Ipv6Address {
    /// Whether `other` lies in its network.
    pub fn is_on_link(&self, other: Ipv6Addr) -> bool {
        let rest = u128::BITS.saturating_sub(u32::from(self.prefix_bits));
        (self.address.to_bits() ^ other.to_bits()).checked_shr(rest).unwrap_or(0) == 0
    }
}

/// Where our IPv6 addresses come from. Unless there are none, there is one for the link too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ipv6Addressing {
    /// Nowhere: IPv6 is not spoken.
    None,
    /// The networks that routers advertise (RFC 4862).
    Automatic,
    /// The configuration. What routers advertise is not listened to.
    Static {
        /// The addresses, with `None` in the places that are not used.
        addresses: [Option<Ipv6Address>; IPV6_FIXED_MAX],
        /// The router for everything outside of their networks.
        gateway: Option<Ipv6Addr>,
    },
}

/// How much there is of everything on one core; none of it grows later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections.
    pub connections: usize,
    /// Handshakes under way that are remembered. Further ones, with zero all, are answered by SYN cookies.
    pub half_open: usize,
    /// Connections remembered after their end.
    pub time_wait: usize,
    /// What connections are lent while they have something to send or to keep.
    pub pools: PoolSizes,
}

/// The most cores of one machine.
pub const CORES_MAX: usize = 16;

/// Which core a network runs on, of how many.
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

    /// Whether this core speaks for the machine.
    pub(crate) fn is_first(self) -> bool {
        self.own == FIRST
    }

    /// The core that a stray goes to from here.
    pub(crate) fn next(self) -> CoreId {
        if self.own.0 + 1 < self.count { CoreId(self.own.0 + 1) } else { FIRST }
    }
}

/// The core that speaks for the machine.
pub(crate) const FIRST: CoreId = CoreId(0);

/// All that [`crate::Net::new`] needs to know from its user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Where our IPv4 address comes from.
    pub addressing: Addressing,
    /// Where our IPv6 addresses come from.
    pub ipv6: Ipv6Addressing,
    /// How much of everything.
    pub limits: Limits,
    /// Which core this is.
    pub cores: Cores,
}

/// Names a service of the user's: every connection to its port is announced with it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Service(pub u8);
