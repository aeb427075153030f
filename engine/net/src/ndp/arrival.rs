//! What others on the link say, and what of it is believed (RFC 4861 §6.1, §7.1; RFC 4862 §5.4, §5.5).
//!
//! Redirects are not followed: one that is wrong takes our packets away, and one that is right saves a hop on this link.

use core::net::Ipv6Addr;

use machine::{Ethernet, Instant, Micros};

use crate::config::Ipv6Addressing;
use crate::counters::Counter;
use crate::ipv6;
use crate::link::{Link, release_held};
use crate::received::Received;

use super::Ndp;
use super::cache::{Claim, REACHABLE};
use super::message::{self, Message, Outgoing, Prefix};
use super::own::{self, Origin, Phase};

/// The longest times that a router may set: an hour (RFC 4861 §6.2.1), and for questions a minute.
const REACHABLE_MAX: Micros = Micros::from_secs(3600);
const RETRANSMIT_MAX: Micros = Micros::from_secs(60);
/// No question is repeated sooner.
const RETRANSMIT_MIN: Micros = Micros::from_millis(100);

/// Who says something, and to whom.
struct From {
    source: Ipv6Addr,
    destination: Ipv6Addr,
    hardware: Ethernet,
}

impl Link {
    /// A message of Neighbor Discovery came, its checksum right. Returns what a neighbour has claimed by it of himself.
    pub(crate) fn ndp_arrived(
        &mut self,
        now: Instant,
        received: &Received<'_>,
    ) -> Option<(Ipv6Addr, Claim)> {
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
        let message =
            Message::parse(received.payload).filter(|_| received.hop_limit == message::HOP_LIMIT);
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
            // What routers ask each other for is none of ours.
            None => kind < message::ROUTER_ADVERTISEMENT,
        };
        if !is_sound {
            self.counters.count(Counter::DroppedMalformed);
        }
        self.ndp.look_ahead();
        claimed
    }

    /// A neighbour has advertised himself to another core.
    pub(crate) fn ipv6_neighbour_heard(&mut self, now: Instant, address: Ipv6Addr, claim: Claim) {
        self.ndp.cache.advertised(now, address, claim);
        self.release_found(address);
    }

    /// Somebody asks for an address; false when he must not ask like this.
    fn solicited(&mut self, now: Instant, from: &From, message: &Message<'_>) -> bool {
        let target = message.target();
        let is_nobody = from.source.is_unspecified();
        let is_for_group = from.destination == ipv6::solicited_node(target);
        if target.is_multicast()
            || is_nobody && (!is_for_group || message.source_hardware().is_some())
        {
            return false;
        }
        let Some(own) = self.ndp.own.find(target).copied() else { return true };
        if let Phase::Tentative { .. } = own.phase {
            // Who asks as nobody is about to take it, too; unless it is our own question that a loop brings back.
            if is_nobody && message.nonce() != Some(own.nonce & NONCE_MASK) {
                self.counters.count(Counter::Duplicates);
                self.ndp.double_found(now, target);
            }
            return true;
        }
        let own = self.interface.hardware;
        if is_nobody {
            let answer = Outgoing::Advertise { target, own, solicited: false };
            self.send_ndp(now, target, ipv6::ALL_NODES, None, &answer);
            return true;
        }
        let hardware = message.source_hardware();
        if let Some(hardware) = hardware {
            let Ndp { cache, routers, .. } = &mut *self.ndp;
            cache.asked_by(now, from.source, hardware, |address| routers.has(address));
            self.release_found(from.source);
        }
        let answer = Outgoing::Advertise { target, own, solicited: true };
        self.send_ndp(now, target, from.source, Some(hardware.unwrap_or(from.hardware)), &answer);
        true
    }

    /// Somebody says where an address is; false when he must not say it like this.
    fn neighbour_advertised(&mut self, now: Instant, from: &From, message: &Message<'_>) -> bool {
        let is_router = message.is_from_router();
        let (target, claim) = message.claim();
        if target.is_multicast()
            || from.source.is_unspecified()
            || from.destination.is_multicast() && claim.solicited
        {
            return false;
        }
        match self.ndp.own.find(target).map(|own| own.phase) {
            Some(Phase::Tentative { .. }) => {
                self.counters.count(Counter::Duplicates);
                self.ndp.double_found(now, target);
            }
            // It was ours first, and both of us would have to give it up at once.
            Some(Phase::Ours) => self.counters.count(Counter::Duplicates),
            None => {
                let was_known = self.ndp.cache.known(target).is_some();
                self.ipv6_neighbour_heard(now, target, claim);
                if was_known && !is_router && self.ndp.routers.has(target) {
                    // Whoever says that he is no router any more is none (§7.2.5).
                    self.ndp.routers.advertised_no_more(target);
                    self.ndp.revise();
                }
            }
        }
        true
    }

    /// A router says that it is there, and what it knows; false when it must not say it like this.
    fn router_advertised(&mut self, now: Instant, from: &From, message: &Message<'_>) -> bool {
        if !ipv6::is_link_local(from.source) {
            return false;
        }
        if self.ndp.addressing == Ipv6Addressing::Automatic {
            self.ndp.learn_from_router(now, from.source, message);
            if let Some(hardware) = message.source_hardware() {
                let Ndp { cache, routers, .. } = &mut *self.ndp;
                cache.asked_by(now, from.source, hardware, |address| routers.has(address));
                self.release_found(from.source);
            }
        }
        true
    }

    /// Sends what has waited for a neighbour, if he is found.
    fn release_found(&mut self, address: Ipv6Addr) {
        if let Some(hardware) = self.ndp.cache.known(address) {
            let held = &mut self.ndp.cache.held;
            release_held(held, address, hardware, &mut self.outbox, &mut self.counters);
        }
    }

    /// Somebody asks what we listen to.
    pub(crate) fn listeners_asked(&mut self, now: Instant, received: &Received<'_>) {
        let is_near = ipv6::is_link_local(received.source.to_v6());
        if is_near && received.hop_limit == super::listening::HOP_LIMIT {
            let Ndp { listening, random, .. } = &mut *self.ndp;
            listening.asked(now, received.payload, |span| random.below(span));
            self.ndp.look_ahead();
        }
    }
}

/// What of a random number goes into a nonce.
pub(super) const NONCE_MASK: u64 = (1 << 48) - 1;

impl Ndp {
    fn learn_from_router(&mut self, now: Instant, router: Ipv6Addr, message: &Message<'_>) {
        let says = message.router_says();
        self.solicit_at = Instant::NEVER;
        if let Some(limit) = says.hop_limit {
            self.parameters.hop_limit = limit;
        }
        if let Some(wait) = says.retransmit {
            self.parameters.retransmit = wait.clamp(RETRANSMIT_MIN, RETRANSMIT_MAX);
        }
        let base = says.reachable.unwrap_or(REACHABLE).min(REACHABLE_MAX);
        // Between half of it and half more, so that not all of the link asks at once (§6.3.2).
        self.cache.reachable = Micros(base.0 / 2 + self.random.below(base.0));
        let mtu = message.mtu().and_then(|mtu| u16::try_from(mtu).ok());
        if let Some(mtu) = mtu.filter(|mtu| (ipv6::MTU_MIN..=self.link_mtu).contains(mtu)) {
            self.parameters.mtu = mtu;
        }
        if says.lifetime.0 == 0 {
            self.routers.advertised_no_more(router);
        } else {
            self.routers.advertised(router, now + says.lifetime);
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

    /// A prefix: whose addresses are all on this link, or in which we may form one, or both.
    fn learn_prefix(&mut self, now: Instant, about: &Prefix) {
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
            self.form_address(now, about.prefix, Origin::Network, 0, lifetimes);
        }
    }
}
