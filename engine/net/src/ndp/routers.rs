//! The contents of router advertisements: default routers, on-link networks, and name servers.

use core::net::Ipv6Addr;

use heapless::Vec;
use machine::Instant;

use crate::ipv6;

/// The most routers that are stored.
pub(super) const ROUTERS_MAX: usize = 4;
/// The most networks that are stored.
pub(super) const NETWORKS_MAX: usize = 8;
/// The most name servers that are stored.
pub(super) const NAME_SERVERS_MAX: usize = 3;

/// The default routers (RFC 4861 §6.3.4).
#[derive(Clone, Debug, Default)]
pub(super) struct Routers(Vec<(Ipv6Addr, Instant), ROUTERS_MAX>);

impl Routers {
    /// Adds a router, or extends its validity, until `until`.
    pub(super) fn advertised(&mut self, address: Ipv6Addr, until: Instant) {
        remember(&mut self.0, address, until);
    }

    /// Removes a router that has withdrawn itself.
    pub(super) fn advertised_no_more(&mut self, address: Ipv6Addr) {
        self.0.retain(|(router, _)| *router != address);
    }

    pub(super) fn has(&self, address: Ipv6Addr) -> bool {
        self.0.iter().any(|(router, _)| *router == address)
    }

    /// The router to use: the first that is probably reachable, or else the first (RFC 4861
    /// §6.3.6).
    pub(super) fn choose(
        &self,
        is_probably_reachable: impl Fn(Ipv6Addr) -> bool,
    ) -> Option<Ipv6Addr> {
        let mut all = self.0.iter().map(|(router, _)| *router);
        let first = all.clone().next()?;
        Some(all.find(|router| is_probably_reachable(*router)).unwrap_or(first))
    }

    /// Moves the router at `address`, which does not answer, to the end of the list. So the next
    /// router is tried.
    pub(super) fn unreachable_router(&mut self, address: Ipv6Addr) {
        if let Some(at) = self.0.iter().position(|(router, _)| *router == address) {
            let unreachable_router = self.0.remove(at);
            assert!(
                self.0.push(unreachable_router).is_ok(),
                "removing the router has freed a place"
            );
        }
    }

    pub(super) fn expire(&mut self, now: Instant) {
        self.0.retain(|(_, until)| *until > now);
    }

    pub(super) fn next_deadline(&self) -> Instant {
        self.0.iter().map(|(_, until)| *until).min().unwrap_or(Instant::NEVER)
    }
}

/// The on-link prefixes (RFC 4861 §6.3.4, RFC 5942).
#[derive(Clone, Debug, Default)]
pub(super) struct Networks(Vec<((Ipv6Addr, u8), Instant), NETWORKS_MAX>);

impl Networks {
    /// Adds a network: addresses that share the first `bits` bits with `prefix` are on the link
    /// until `until`.
    pub(super) fn advertised(&mut self, prefix: Ipv6Addr, bits: u8, until: Instant) {
        let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
        remember(&mut self.0, (Ipv6Addr::from_bits(prefix.to_bits() & mask), bits), until);
    }

    /// Whether `address` is on the link.
    pub(super) fn hold(&self, address: Ipv6Addr) -> bool {
        self.0.iter().any(|((prefix, bits), _)| ipv6::shares_prefix(*prefix, address, *bits))
    }

    pub(super) fn expire(&mut self, now: Instant) {
        self.0.retain(|(_, until)| *until > now);
    }

    pub(super) fn next_deadline(&self) -> Instant {
        self.0.iter().map(|(_, until)| *until).min().unwrap_or(Instant::NEVER)
    }
}

/// The name servers from router advertisements (RFC 8106 §5.1).
#[derive(Default)]
pub(super) struct NameServers(Vec<(Ipv6Addr, Instant), NAME_SERVERS_MAX>);

impl NameServers {
    pub(super) fn advertised(&mut self, address: Ipv6Addr, until: Instant) {
        remember(&mut self.0, address, until);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.0.iter().map(|(address, _)| *address)
    }

    pub(super) fn expire(&mut self, now: Instant) {
        self.0.retain(|(_, until)| *until > now);
    }

    pub(super) fn next_deadline(&self) -> Instant {
        self.0.iter().map(|(_, until)| *until).min().unwrap_or(Instant::NEVER)
    }
}

/// Adds `what`, or sets its new expiry. A full list accepts no new entry. So a flood of invented
/// entries does not evict an older entry.
fn remember<T: PartialEq, const N: usize>(
    list: &mut Vec<(T, Instant), N>,
    what: T,
    until: Instant,
) {
    match list.iter_mut().find(|(known, _)| *known == what) {
        Some((_, known_until)) => *known_until = until,
        None => {
            let _ = list.push((what, until));
        }
    }
}
