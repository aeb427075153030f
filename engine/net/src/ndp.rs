//! The state of IPv6 on the link: our addresses, neighbours, routers and networks. Each of them has
//! a time at which it must be queried, confirmed or removed (Neighbor Discovery, RFC 4861; address
//! autoconfiguration, RFC 4862).
//!
//! ```text
//! begin ─ link-local address ── duplicate? ──> ours ── router solicitations
//!                                 │ yes                       │
//!                                 └─> another one,            v
//!                                     at most three   router advertisement ─┬─ default router
//!                                     attempts                              ├─ on-link networks
//!                                                                           └─ addresses:
//!                                                                              duplicate? ──> ours
//! ```
//! This file has the state. [`arrival`] handles received messages, and [`departure`] sends our
//! messages.
//!
//! Invariants:
//! - Every list has its full size at construction. Network input can fill a list but never grow it.
//! - A message is accepted only if it comes from this link. Its hop limit must be 255, which no
//!   forwarded packet has.
//! - An address is used only after duplicate address detection (RFC 4862 §5.4).
//! - `next_due` is never later than the earliest deadline of this state.

pub(crate) mod arrival;
mod cache;
mod departure;
mod identifier;
mod listening;
mod message;
mod own;
mod routers;

use core::net::Ipv6Addr;

use heapless::Vec;
use machine::{Card, Ethernet, Instant, Micros};

use crate::config::{Ipv6Address, Ipv6Addressing};
use crate::ethernet::ETHERNET_BYTES;
use crate::interface::Addressee;
use crate::ip::{Ip, Local};
use crate::ipv6;
use crate::random::Random;
pub(crate) use cache::AdvertisedNeighbour;
use cache::NeighbourCache;
use identifier::InterfaceIdentifiers;
use listening::Listening;
use own::{AddressOrigin, OwnAddresses};
use routers::{NameServers, Networks, Routers};

/// The prefix of all link-local addresses (RFC 4291 §2.5.6).
const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0);

/// The wait for the answer to a solicitation, unless a router advertises another time (RFC 4861
/// §10).
const RETRANSMIT: Micros = Micros::from_secs(1);
/// The first wait for a router's answer. Each further wait is twice as long (RFC 4861 §10, RFC 7559
/// §2.1).
const SOLICITATION_INTERVAL: Micros = Micros::from_secs(4);
/// The longest wait for a router's answer (RFC 7559 §2).
const SOLICITATION_INTERVAL_MAX: Micros = Micros::from_secs(3600);

/// Address changes that no event has reported to the user yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct AddressNews {
    /// The set of addresses has changed.
    pub(crate) changed: bool,
    /// We have lost an address, so its connections must end.
    pub(crate) lost: bool,
    /// An address that we cannot use, because another machine uses it.
    pub(crate) taken: Option<Ipv6Addr>,
}

/// Parameters that routers may set.
#[derive(Clone, Debug)]
struct NeighbourParameters {
    hop_limit: u8,
    mtu: u16,
    retransmit: Micros,
}

/// The state that the first core of a machine sends to the other cores.
#[derive(Debug)]
pub(crate) struct SharedIpv6State {
    own: OwnAddresses,
    routers: Routers,
    networks: Networks,
    parameters: NeighbourParameters,
    reachable: Micros,
}

/// The state of IPv6 on one core.
pub(crate) struct Ndp {
    addressing: Ipv6Addressing,
    hardware: Ethernet,
    link_mtu: u16,
    /// Forms our addresses. `None` before IPv6 starts, and on all cores that form no addresses.
    identifiers: Option<InterfaceIdentifiers>,
    /// Changes whenever [`SharedIpv6State`] may have changed. It is zero while IPv6 is off.
    revision: u32,
    random: Random,
    own: OwnAddresses,
    cache: NeighbourCache,
    routers: Routers,
    networks: Networks,
    name_servers: NameServers,
    listening: Listening,
    parameters: NeighbourParameters,
    /// When the routers are solicited next, and the wait after that solicitation.
    solicit_at: Instant,
    solicit_wait: Micros,
    next_due: Instant,
    news: AddressNews,
}

impl Ndp {
    pub(crate) fn new(card: &Card, addressing: &Ipv6Addressing, random: Random) -> Ndp {
        Ndp {
            addressing: *addressing,
            hardware: card.address,
            link_mtu: card.mtu,
            identifiers: None,
            revision: 0,
            random,
            own: OwnAddresses::default(),
            cache: NeighbourCache::new(ETHERNET_BYTES + usize::from(card.mtu)),
            routers: Routers::default(),
            networks: Networks::default(),
            name_servers: NameServers::default(),
            listening: Listening::new(),
            parameters: NeighbourParameters {
                hop_limit: ipv6::HOP_LIMIT,
                mtu: card.mtu,
                retransmit: RETRANSMIT,
            },
            solicit_at: Instant::NEVER,
            solicit_wait: SOLICITATION_INTERVAL,
            next_due: Instant::NEVER,
            news: AddressNews::default(),
        }
    }

    /// Starts IPv6 if it is configured. `secret`: known only to this machine and unchanged at each
    /// start, so that the machine's addresses stay the same (RFC 7217 §5).
    pub(crate) fn begin(&mut self, now: Instant, secret: &[u8; 16]) {
        if self.addressing == Ipv6Addressing::None
            || self.link_mtu < ipv6::MTU_MIN
            || self.identifiers.is_some()
        {
            return;
        }
        self.identifiers = Some(InterfaceIdentifiers::new(secret, self.hardware));
        self.revise();
        self.form_address(
            now,
            LINK_LOCAL,
            AddressOrigin::LinkLocal,
            0,
            (Instant::NEVER, Instant::NEVER),
        );
        if let Ipv6Addressing::Static { addresses, gateway } = self.addressing {
            for Ipv6Address { address, prefix_bits } in addresses.into_iter().flatten() {
                let nonce = self.random.next();
                self.own.add(
                    now,
                    address,
                    prefix_bits,
                    AddressOrigin::Fixed,
                    0,
                    nonce,
                    (Instant::NEVER, Instant::NEVER),
                );
                self.networks.advertised(address, prefix_bits, Instant::NEVER);
            }
            if let Some(gateway) = gateway {
                self.routers.advertised(gateway, Instant::NEVER);
            }
        }
        self.update_next_due();
    }

    /// Whether IPv6 is on.
    #[inline]
    pub(crate) fn is_enabled(&self) -> bool {
        self.revision != 0
    }

    /// A number that changes whenever [`Ndp::shared_state`] may have changed.
    pub(crate) fn revision(&self) -> u32 {
        self.revision
    }

    fn revise(&mut self) {
        self.revision = self.revision.wrapping_add(1).max(1);
    }

    /// The state that the other cores get.
    pub(crate) fn shared_state(&self) -> SharedIpv6State {
        SharedIpv6State {
            own: self.own.only_assigned(),
            routers: self.routers.clone(),
            networks: self.networks.clone(),
            parameters: self.parameters.clone(),
            reachable: self.cache.reachable,
        }
    }

    /// Adopts the state of the first core.
    pub(crate) fn learn(&mut self, shared_state: SharedIpv6State) {
        let SharedIpv6State { own, routers, networks, parameters, reachable } = shared_state;
        let lost = |before: &own::OwnAddress| {
            own.find(before.address).is_none_or(|now| now.local != before.local)
        };
        self.news.lost |= self.own.assigned().any(lost);
        (self.own, self.routers, self.networks, self.parameters) =
            (own, routers, networks, parameters);
        self.cache.reachable = reachable;
        self.revise();
        self.update_next_due();
    }

    /// The largest packet that we send, in bytes.
    pub(crate) fn mtu(&self) -> u16 {
        self.parameters.mtu
    }

    pub(crate) fn hop_limit(&self) -> u8 {
        self.parameters.hop_limit
    }

    /// Our addresses that have passed duplicate address detection.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = Ipv6Address> {
        self.own
            .assigned()
            .map(|own| Ipv6Address { address: own.address, prefix_bits: own.prefix_bits })
    }

    /// The default router, if there is one.
    pub(crate) fn router(&self) -> Option<Ipv6Addr> {
        self.routers.choose(|address| self.cache.is_probably_reachable(address))
    }

    /// The name servers from router advertisements, best first.
    pub(crate) fn name_servers(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.name_servers.iter()
    }

    pub(crate) fn own_address(&self, local: Local) -> Option<Ip> {
        self.own.assigned().find(|own| own.local == local).map(|own| own.address.into())
    }

    /// The hosts that `destination` names, and the number of the address if it is ours.
    #[inline]
    pub(crate) fn addressee(&self, destination: Ipv6Addr) -> (Addressee, Local) {
        if let Some(own) = self.own.assigned().find(|own| own.address == destination) {
            return (Addressee::Us, own.local);
        }
        let is_ours =
            destination == ipv6::ALL_NODES || self.own.groups().any(|group| group == destination);
        (if is_ours { Addressee::Group } else { Addressee::Others }, Local::IPV4)
    }

    /// Our source address for packets to `destination`, by rules 2, 3 and 8 of RFC 6724 §5.
    pub(crate) fn source_for(
        &self,
        now: Instant,
        destination: Ipv6Addr,
    ) -> Option<(Local, Ipv6Addr)> {
        self.own.source_for(now, destination).map(|own| (own.local, own.address))
    }

    /// The next hop of a packet to `destination`: the destination itself, or a router (RFC 4861
    /// §5.2).
    fn next_hop(&self, destination: Ipv6Addr) -> Option<Ipv6Addr> {
        if ipv6::is_link_local(destination) || self.networks.hold(destination) {
            return Some(destination);
        }
        self.router()
    }

    pub(crate) fn has_route_to(&self, destination: Ipv6Addr) -> bool {
        self.next_hop(destination).is_some()
    }

    /// The hardware address of the next hop to `destination`, if known.
    pub(crate) fn lookup(&mut self, now: Instant, destination: Ipv6Addr) -> Option<Ethernet> {
        self.cache.lookup(now, self.next_hop(destination)?)
    }

    /// Resolves the next hop to `destination`, unless it is known or already being resolved.
    pub(crate) fn resolve(&mut self, now: Instant, destination: Ipv6Addr) {
        if let Some(next_hop) = self.next_hop(destination) {
            self.cache.resolve(now, next_hop, |address| self.routers.has(address));
        }
    }

    /// Probes the next hop to `destination`, because packets to `destination` seem to get lost.
    pub(crate) fn reconfirm(&mut self, now: Instant, destination: Ipv6Addr) {
        if let Some(next_hop) = self.next_hop(destination) {
            self.cache.reconfirm(now, next_hop);
        }
    }

    /// Keeps a frame until the next hop to `destination` is resolved.
    pub(crate) fn hold(&mut self, destination: Ipv6Addr, frame: &[u8]) {
        if let Some(next_hop) = self.next_hop(destination) {
            self.cache.held.hold(next_hop, frame);
        }
    }

    /// The next deadline of IPv6.
    #[inline]
    pub(crate) fn next_deadline(&self) -> Instant {
        self.next_due.min(self.cache.next_due())
    }

    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.news != AddressNews::default()
    }

    pub(crate) fn take_news(&mut self) -> AddressNews {
        core::mem::take(&mut self.news)
    }

    /// Forms an address in the network of `prefix`, and begins its duplicate address detection.
    /// `attempt`: the number of earlier attempts to form an address in this network.
    fn form_address(
        &mut self,
        now: Instant,
        prefix: Ipv6Addr,
        origin: AddressOrigin,
        attempt: u8,
        (preferred_until, valid_until): (Instant, Instant),
    ) {
        let Some(identifiers) = &self.identifiers else { return };
        let (address, attempt) = identifiers.address(prefix, attempt);
        let nonce = self.random.next();
        self.own.add(
            now,
            address,
            ipv6::NETWORK_BITS,
            origin,
            attempt,
            nonce,
            (preferred_until, valid_until),
        );
    }

    /// Removes the tentative `address`, because another machine uses it. Tries another address,
    /// unless the configuration states the address or no attempt is left.
    fn duplicate_found(&mut self, now: Instant, address: Ipv6Addr) {
        let Some(own) = self.own.remove(address) else { return };
        let is_last = own.attempt + 1 >= identifier::ATTEMPTS_MAX;
        if own.origin == AddressOrigin::Fixed || is_last {
            self.news.taken = Some(address);
        } else {
            let lifetimes = (own.preferred_until, own.valid_until);
            self.form_address(now, address, own.origin, own.attempt + 1, lifetimes);
        }
    }

    /// Handles the end of duplicate address detection: the address is assigned now.
    fn assigned(&mut self, now: Instant, origin: AddressOrigin) {
        self.news.changed = true;
        self.revise();
        if origin == AddressOrigin::LinkLocal && self.addressing == Ipv6Addressing::Automatic {
            self.solicit_at = now;
        }
    }

    /// Removes expired addresses, routers, networks and name servers.
    fn expire(&mut self, now: Instant) {
        if self.own.expire(now) {
            self.news.changed = true;
            self.news.lost = true;
            self.revise();
        }
        self.routers.expire(now);
        self.networks.expire(now);
        self.name_servers.expire(now);
    }

    /// Updates the next deadline.
    fn update_next_due(&mut self) {
        self.next_due = self
            .own
            .next_deadline()
            .min(self.routers.next_deadline())
            .min(self.networks.next_deadline())
            .min(self.name_servers.next_deadline())
            .min(self.listening.next_deadline())
            .min(self.solicit_at);
    }

    /// The multicast groups that we listen to.
    fn groups(&self) -> Vec<Ipv6Addr, { own::OWN_MAX }> {
        let mut groups = Vec::new();
        for group in self.own.groups() {
            if !groups.contains(&group) {
                assert!(groups.push(group).is_ok(), "there is a place for each address");
            }
        }
        groups
    }
}
