//! What the network is told at construction: its address, or that it must ask for one, and how much of everything.

use crate::interface::Address;
use crate::tcp::PoolSizes;

/// Where our address comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Addressing {
    /// A DHCP server.
    Dhcp,
    /// The configuration.
    Static(Address),
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

/// All that [`crate::Net::new`] needs to know from its user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Where our address comes from.
    pub addressing: Addressing,
    /// How much of everything.
    pub limits: Limits,
}

/// Names a service of the user's: every connection to its port is announced with it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Service(pub u8);
