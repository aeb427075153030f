//! Our own addresses: how each came to be, whether it is surely ours, and for how long (RFC 4862 §5.4 and §5.5).

use core::net::Ipv6Addr;

use heapless::Vec;
use machine::{Instant, Micros};

use crate::ip::Local;
use crate::ipv6;

/// Addresses at once: one for the link, and a few networks.
pub(super) const OWN_MAX: usize = 8;
/// Questions whether somebody else has an address, until it is ours (DupAddrDetectTransmits).
const QUESTIONS: u8 = 1;
/// A lifetime that is nearly over is not shortened by who could be anybody (RFC 4862 §5.5.3 e).
pub(super) const TWO_HOURS: Micros = Micros::from_secs(2 * 3600);

/// How we came to an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// Formed for this link.
    LinkLocal,
    /// Formed in a network that a router has advertised.
    Network,
    /// From the configuration.
    Fixed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Perhaps somebody else has it. The next question is due, or its time is over.
    Tentative {
        asked: u8,
        due: Instant,
    },
    Ours,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Own {
    pub(super) address: Ipv6Addr,
    pub(super) prefix_bits: u8,
    pub(super) local: Local,
    pub(super) origin: Origin,
    pub(super) attempt: u8,
    pub(super) phase: Phase,
    /// Stands in our questions, so that we know them when a loop brings them back (RFC 7527).
    pub(super) nonce: u64,
    pub(super) preferred_until: Instant,
    pub(super) valid_until: Instant,
}

/// What is due for an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// Ask whether somebody else has it.
    Ask(Own),
    /// Nobody has answered: it is ours.
    Assigned(Own),
}

#[derive(Debug, Default)]
pub(super) struct OwnAddresses {
    list: Vec<Own, OWN_MAX>,
    /// Numbers given out so far.
    numbers: u32,
}

impl OwnAddresses {
    /// Those that are surely ours.
    #[inline]
    pub(super) fn assigned(&self) -> impl Iterator<Item = &Own> {
        self.list.iter().filter(|own| own.phase == Phase::Ours)
    }

    /// The same, without those that are not ours yet.
    pub(super) fn only_assigned(&self) -> OwnAddresses {
        OwnAddresses { list: self.assigned().copied().collect(), numbers: self.numbers }
    }

    /// The groups that we listen to, for addresses that are ours or are to be; one may come twice.
    #[inline]
    pub(super) fn groups(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.list.iter().map(|own| ipv6::solicited_node(own.address))
    }

    pub(super) fn find(&self, address: Ipv6Addr) -> Option<&Own> {
        self.list.iter().find(|own| own.address == address)
    }

    /// The one that was formed in the network of `prefix`.
    pub(super) fn in_network(&mut self, prefix: Ipv6Addr) -> Option<&mut Own> {
        let bits = ipv6::NETWORK_BITS;
        self.list.iter_mut().find(|own| {
            own.origin == Origin::Network && ipv6::shares_prefix(own.address, prefix, bits)
        })
    }

    pub(super) fn is_full(&self) -> bool {
        self.list.is_full()
    }

    /// Adds an address that is perhaps somebody else's. Without room for it nothing happens.
    #[expect(clippy::too_many_arguments, reason = "all that there is to say of an address")]
    pub(super) fn add(
        &mut self,
        now: Instant,
        address: Ipv6Addr,
        prefix_bits: u8,
        origin: Origin,
        attempt: u8,
        nonce: u64,
        (preferred_until, valid_until): (Instant, Instant),
    ) {
        if self.find(address).is_some() {
            return;
        }
        self.numbers = self.numbers.wrapping_add(1).max(1);
        let phase = Phase::Tentative { asked: 0, due: now };
        let local = Local(self.numbers);
        let new = Own {
            address,
            prefix_bits,
            local,
            origin,
            attempt,
            phase,
            nonce,
            preferred_until,
            valid_until,
        };
        let _ = self.list.push(new);
    }

    pub(super) fn remove(&mut self, address: Ipv6Addr) -> Option<Own> {
        let at = self.list.iter().position(|own| own.address == address)?;
        Some(self.list.swap_remove(at))
    }

    /// What is due next for an address that is not ours yet; `wait`: for an answer.
    pub(super) fn next_due(&mut self, now: Instant, wait: Micros) -> Option<Due> {
        self.list.iter_mut().find_map(|own| match own.phase {
            Phase::Tentative { due, .. } if due > now => None,
            Phase::Tentative { asked: QUESTIONS.., .. } => {
                own.phase = Phase::Ours;
                Some(Due::Assigned(*own))
            }
            Phase::Tentative { asked, .. } => {
                own.phase = Phase::Tentative { asked: asked + 1, due: now + wait };
                Some(Due::Ask(*own))
            }
            Phase::Ours => None,
        })
    }

    /// Forgets those whose time is over; whether one was ours.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        let before = self.assigned().count();
        self.list.retain(|own| own.valid_until > now);
        self.assigned().count() < before
    }

    pub(super) fn next_deadline(&self) -> Instant {
        let due = |own: &Own| match own.phase {
            Phase::Tentative { due, .. } => due.min(own.valid_until),
            Phase::Ours => own.valid_until,
        };
        self.list.iter().map(due).min().unwrap_or(Instant::NEVER)
    }

    /// The one that speaks to `destination`: of the same scope, preferred, and as near as possible (RFC 6724 §5, rules 2, 3
    /// and 8).
    pub(super) fn source_for(&self, now: Instant, destination: Ipv6Addr) -> Option<&Own> {
        let wanted = is_near(destination);
        self.assigned().filter(|own| is_near(own.address) == wanted).max_by_key(|own| {
            (
                own.address == destination,
                own.preferred_until > now,
                ipv6::common_bits(own.address, destination),
            )
        })
    }
}

impl Own {
    /// A router says how long the address is good for (RFC 4862 §5.5.3 e). Who shortens a life could be anybody: it keeps two
    /// hours.
    pub(super) fn advertised(&mut self, now: Instant, preferred: Micros, valid: Micros) {
        self.preferred_until = until(now, preferred);
        let left = self.valid_until.since(now);
        if valid > TWO_HOURS || valid > left {
            self.valid_until = until(now, valid);
        } else if left > TWO_HOURS {
            self.valid_until = now + TWO_HOURS;
        }
    }
}

/// The end of a lifetime that begins now; the longest never ends.
pub(super) fn until(now: Instant, lifetime: Micros) -> Instant {
    if lifetime >= Micros::from_secs(u64::from(u32::MAX)) { Instant::NEVER } else { now + lifetime }
}

/// Whether an address, or a group, is known on its link only.
fn is_near(address: Ipv6Addr) -> bool {
    let [first, ..] = address.segments();
    ipv6::is_link_local(address) || first & 0xff0f == 0xff02
}
