//! Checks received Neighbor Discovery messages, and adopts the accepted parts of their contents
//! (RFC 4861 §6.1, §7.1; RFC 4862 §5.4, §5.5).
//!
//! Redirects are ignored. A forged redirect would divert our packets, and a correct one only saves
//! a hop on this link.

use core::net::Ipv6Addr;

use machine::{Ethernet, Instant, Micros};

use crate::config::Ipv6Addressing;
use crate::counters::Counter;
use crate::ipv6;
use crate::link::{Link, release_held};
use crate::received::InPacket;

use super::Ndp;
use super::cache::{AdvertisedNeighbour, REACHABLE};
use super::message::{self, AdvertisedPrefix, NdpMessage, OutgoingNdp};
use super::own::{self, AddressOrigin, AddressPhase};

/// The longest times that a router may set: an hour for reachability (RFC 4861 §6.2.1), and a
/// minute for retransmissions.
const REACHABLE_MAX: Micros = Micros::from_secs(3600);
const RETRANSMIT_MAX: Micros = Micros::from_secs(60);
/// The shortest retransmission time.
const RETRANSMIT_MIN: Micros = Micros::from_millis(100);

/// The sender and the destination of a message.
struct From {
    source: Ipv6Addr,
    destination: Ipv6Addr,
    hardware: Ethernet,
}

impl Link {
    /// Handles a Neighbor Discovery message with a correct checksum. Returns the claim of a
    /// neighbour about itself, if the message contains one.
    pub(crate) fn ndp_arrived(
        &mut self,
        now: Instant,
        received: &InPacket<'_>,
    ) -> Option<(Ipv6Addr, AdvertisedNeighbour)> {
        let from = From {
            source: received.source.to_v6(),
            destination: received.destination.to_v6(),
            hardware: received.ethernet.source,
        };
        let kind = received.payload.first().copied().unwrap_or_default();
        if kind == message::REDIRECT {
            self.counters.count(Counter::RedirectsIgnored);
            return None;
        }
        let message = NdpMessage::parse(received.payload)
            .filter(|_| received.hop_limit == message::HOP_LIMIT);
        let mut claimed = None;
        let is_sound = match message {
            Some(message) => match message.kind {
                message::ROUTER_ADVERTISEMENT => self.router_advertised(now, &from, &message),
                message::NEIGHBOUR_SOLICITATION => self.solicited(now, &from, &message),
                _ => {
                    let is_sound = self.neighbour_advertised(now, &from, &message);
                    claimed = is_sound.then(|| message.claim());
                    is_sound
                }
            },
            // Router solicitations concern routers only.
            None => kind < message::ROUTER_ADVERTISEMENT,
        };
        if !is_sound {
            self.counters.count(Counter::DroppedMalformed);
        }
        self.ndp.update_next_due();
        claimed
    }

    /// Adopts the claim of a neighbour about itself, which this core or another core has received.
    pub(crate) fn ipv6_neighbour_heard(
        &mut self,
        now: Instant,
        address: Ipv6Addr,
        claim: AdvertisedNeighbour,
    ) {
        self.ndp.cache.advertised(now, address, claim);
        self.release_found(address);
    }

    /// Handles a neighbour solicitation. Returns false if it is invalid.
    fn solicited(&mut self, now: Instant, from: &From, message: &NdpMessage<'_>) -> bool {
        let target = message.target();
        let is_unspecified = from.source.is_unspecified();
        let is_for_group = from.destination == ipv6::solicited_node(target);
        if target.is_multicast()
            || is_unspecified && (!is_for_group || message.source_hardware().is_some())
        {
            return false;
        }
        let Some(own) = self.ndp.own.find(target).copied() else { return true };
        if let AddressPhase::Tentative { .. } = own.phase {
            // With an unspecified source, another host is about to assign the same address. But the
            // network may loop our own solicitation back to us. Our nonce shows this.
            if is_unspecified && message.nonce() != Some(own.nonce & NONCE_MASK) {
                self.counters.count(Counter::Duplicates);
                self.ndp.duplicate_found(now, target);
            }
            return true;
        }
        let own = self.interface.hardware;
        if is_unspecified {
            let answer = OutgoingNdp::Advertise { target, own, solicited: false };
            self.send_ndp(now, target, ipv6::ALL_NODES, None, &answer);
            return true;
        }
        let hardware = message.source_hardware();
        if let Some(hardware) = hardware {
            let Ndp { cache, routers, .. } = &mut *self.ndp;
            cache.solicited_by(now, from.source, hardware, |address| routers.has(address));
            self.release_found(from.source);
        }
        let answer = OutgoingNdp::Advertise { target, own, solicited: true };
        self.send_ndp(now, target, from.source, Some(hardware.unwrap_or(from.hardware)), &answer);
        true
    }

    /// Handles a neighbour advertisement. Returns false if it is invalid.
    fn neighbour_advertised(
        &mut self,
        now: Instant,
        from: &From,
        message: &NdpMessage<'_>,
    ) -> bool {
        let is_router = message.is_from_router();
        let (target, claim) = message.claim();
        if target.is_multicast()
            || from.source.is_unspecified()
            || from.destination.is_multicast() && claim.solicited
        {
            return false;
        }
        match self.ndp.own.find(target).map(|own| own.phase) {
            Some(AddressPhase::Tentative { .. }) => {
                self.counters.count(Counter::Duplicates);
                self.ndp.duplicate_found(now, target);
            }
            // We had the address first, so we keep it. If both hosts gave it up, neither could use
            // it.
            Some(AddressPhase::Assigned) => self.counters.count(Counter::Duplicates),
            None => {
                let was_known = self.ndp.cache.known(target).is_some();
                self.ipv6_neighbour_heard(now, target, claim);
                if was_known && !is_router && self.ndp.routers.has(target) {
                    // A router that no longer sets the router flag is removed (§7.2.5).
                    self.ndp.routers.advertised_no_more(target);
                    self.ndp.revise();
                }
            }
        }
        true
    }

    /// Handles a router advertisement. Returns false if it is invalid.
    fn router_advertised(&mut self, now: Instant, from: &From, message: &NdpMessage<'_>) -> bool {
        if !ipv6::is_link_local(from.source) {
            return false;
        }
        if self.ndp.addressing == Ipv6Addressing::Automatic {
            self.ndp.learn_from_router(now, from.source, message);
            if let Some(hardware) = message.source_hardware() {
                let Ndp { cache, routers, .. } = &mut *self.ndp;
                cache.solicited_by(now, from.source, hardware, |address| routers.has(address));
                self.release_found(from.source);
            }
        }
        true
    }

    /// Sends the frames that waited for a neighbour, if it is resolved.
    fn release_found(&mut self, address: Ipv6Addr) {
        if let Some(hardware) = self.ndp.cache.known(address) {
            let held = &mut self.ndp.cache.held;
            release_held(held, address, hardware, &mut self.outbox, &mut self.counters);
        }
    }

    /// Handles a multicast listener query.
    pub(crate) fn listener_query_arrived(&mut self, now: Instant, received: &InPacket<'_>) {
        let is_near = ipv6::is_link_local(received.source.to_v6());
        if is_near && received.hop_limit == super::listening::HOP_LIMIT {
            let Ndp { listening, random, .. } = &mut *self.ndp;
            listening.query_arrived(now, received.payload, |span| random.below(span));
            self.ndp.update_next_due();
        }
    }
}

/// The bits of a random number that are used as a nonce.
pub(super) const NONCE_MASK: u64 = (1 << 48) - 1;

impl Ndp {
    fn learn_from_router(&mut self, now: Instant, router: Ipv6Addr, message: &NdpMessage<'_>) {
        let advertised = message.router_parameters();
        self.solicit_at = Instant::NEVER;
        if let Some(limit) = advertised.hop_limit {
            self.parameters.hop_limit = limit;
        }
        if let Some(wait) = advertised.retransmit {
            self.parameters.retransmit = wait.clamp(RETRANSMIT_MIN, RETRANSMIT_MAX);
        }
        let base = advertised.reachable.unwrap_or(REACHABLE).min(REACHABLE_MAX);
        // A random factor between 0.5 and 1.5, so that not all hosts ask at once (§6.3.2).
        self.cache.reachable = Micros(base.0 / 2 + self.random.below(base.0));
        let mtu = message.mtu().and_then(|mtu| u16::try_from(mtu).ok());
        if let Some(mtu) = mtu.filter(|mtu| (ipv6::MTU_MIN..=self.link_mtu).contains(mtu)) {
            self.parameters.mtu = mtu;
        }
        if advertised.lifetime.0 == 0 {
            self.routers.advertised_no_more(router);
        } else {
            self.routers.advertised(router, now + advertised.lifetime);
        }
        for prefix in message.prefixes() {
            self.learn_prefix(now, &prefix);
        }
        for (server, lifetime) in
            message.name_servers().filter(|(server, _)| ipv6::is_unicast(*server))
        {
            self.name_servers.advertised(server, own::until(now, lifetime));
        }
        self.expire(now);
        self.revise();
    }

    /// Adopts an advertised prefix: for the list of on-link networks, for an address of ours, or
    /// for both.
    fn learn_prefix(&mut self, now: Instant, about: &AdvertisedPrefix) {
        if ipv6::is_link_local(about.prefix) || about.prefix.is_multicast() {
            return;
        }
        if about.is_on_link {
            self.networks.advertised(about.prefix, about.bits, own::until(now, about.valid));
        }
        if !about.is_for_addresses
            || about.bits != ipv6::NETWORK_BITS
            || about.preferred > about.valid
        {
            return;
        }
        if let Some(own) = self.own.in_network(about.prefix) {
            own.advertised(now, about.preferred, about.valid);
        } else if about.valid.0 > 0 && !self.own.is_full() {
            let lifetimes = (own::until(now, about.preferred), own::until(now, about.valid));
            self.form_address(now, about.prefix, AddressOrigin::Network, 0, lifetimes);
        }
    }
}
