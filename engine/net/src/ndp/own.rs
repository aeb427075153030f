//! Our own addresses: the origin of each, its state of duplicate address detection, and its
//! lifetimes (RFC 4862 §5.4 and §5.5).

use core::net::Ipv6Addr;

use heapless::Vec;
use machine::{Instant, Micros};

use crate::ip::Local;
use crate::ipv6;

/// The most addresses: one link-local address, and a few in networks.
pub(super) const OWN_MAX: usize = 8;
/// The number of solicitations of duplicate address detection (DupAddrDetectTransmits).
const SOLICITATIONS: u8 = 1;
/// An unauthenticated advertisement cannot shorten the remaining lifetime to less than this (RFC
/// 4862 §5.5.3 e).
pub(super) const TWO_HOURS: Micros = Micros::from_secs(2 * 3600);

/// The origin of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AddressOrigin {
    /// The link-local address.
    LinkLocal,
    /// We formed the address in a network that a router has advertised.
    Network,
    /// The configuration states the address.
    Fixed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AddressPhase {
    /// Duplicate address detection is in progress. At `due`, the next solicitation is due or
    /// detection ends.
    Tentative {
        sent: u8,
        due: Instant,
    },
    Assigned,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OwnAddress {
    pub(super) address: Ipv6Addr,
    pub(super) prefix_bits: u8,
    pub(super) local: Local,
    pub(super) origin: AddressOrigin,
    pub(super) attempt: u8,
    pub(super) phase: AddressPhase,
    /// Identifies our solicitations when a loop returns them (RFC 7527).
    pub(super) nonce: u64,
    pub(super) preferred_until: Instant,
    pub(super) valid_until: Instant,
}

/// The action that is due for an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// Send a solicitation of duplicate address detection.
    Solicit(OwnAddress),
    /// No duplicate was found, so the address is assigned.
    Assigned(OwnAddress),
}

#[derive(Debug, Default)]
pub(super) struct OwnAddresses {
    list: Vec<OwnAddress, OWN_MAX>,
    /// How many numbers were given to addresses of ours so far.
    numbers: u32,
}

impl OwnAddresses {
    /// The assigned addresses.
    #[inline]
    pub(super) fn assigned(&self) -> impl Iterator<Item = &OwnAddress> {
        self.list.iter().filter(|own| own.phase == AddressPhase::Assigned)
    }

    /// A copy without the tentative addresses.
    pub(super) fn only_assigned(&self) -> OwnAddresses {
        OwnAddresses { list: self.assigned().copied().collect(), numbers: self.numbers }
    }

    /// The groups of all addresses, tentative ones included. A group may occur twice.
    #[inline]
    pub(super) fn groups(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.list.iter().map(|own| ipv6::solicited_node(own.address))
    }

    pub(super) fn find(&self, address: Ipv6Addr) -> Option<&OwnAddress> {
        self.list.iter().find(|own| own.address == address)
    }

    /// The address that was formed in the network of `prefix`.
    pub(super) fn in_network(&mut self, prefix: Ipv6Addr) -> Option<&mut OwnAddress> {
        let bits = ipv6::NETWORK_BITS;
        self.list.iter_mut().find(|own| {
            own.origin == AddressOrigin::Network && ipv6::shares_prefix(own.address, prefix, bits)
        })
    }

    pub(super) fn is_full(&self) -> bool {
        self.list.is_full()
    }

    /// Adds a tentative address. Does nothing if there is no room.
    #[expect(clippy::too_many_arguments, reason = "the fields of an address")]
    pub(super) fn add(
        &mut self,
        now: Instant,
        address: Ipv6Addr,
        prefix_bits: u8,
        origin: AddressOrigin,
        attempt: u8,
        nonce: u64,
        (preferred_until, valid_until): (Instant, Instant),
    ) {
        if self.find(address).is_some() {
            return;
        }
        self.numbers = self.numbers.wrapping_add(1).max(1);
        let phase = AddressPhase::Tentative { sent: 0, due: now };
        let local = Local(self.numbers);
        let new = OwnAddress {
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

    pub(super) fn remove(&mut self, address: Ipv6Addr) -> Option<OwnAddress> {
        let at = self.list.iter().position(|own| own.address == address)?;
        Some(self.list.swap_remove(at))
    }

    /// The next action for a tentative address. `wait`: the time for an answer.
    pub(super) fn next_due(&mut self, now: Instant, wait: Micros) -> Option<Due> {
        self.list.iter_mut().find_map(|own| match own.phase {
            AddressPhase::Tentative { due, .. } if due > now => None,
            AddressPhase::Tentative { sent: SOLICITATIONS.., .. } => {
                own.phase = AddressPhase::Assigned;
                Some(Due::Assigned(*own))
            }
            AddressPhase::Tentative { sent, .. } => {
                own.phase = AddressPhase::Tentative { sent: sent + 1, due: now + wait };
                Some(Due::Solicit(*own))
            }
            AddressPhase::Assigned => None,
        })
    }

    /// Removes expired addresses. Returns whether one of them was assigned.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        let before = self.assigned().count();
        self.list.retain(|own| own.valid_until > now);
        self.assigned().count() < before
    }

    pub(super) fn next_deadline(&self) -> Instant {
        let due = |own: &OwnAddress| match own.phase {
            AddressPhase::Tentative { due, .. } => due.min(own.valid_until),
            AddressPhase::Assigned => own.valid_until,
        };
        self.list.iter().map(due).min().unwrap_or(Instant::NEVER)
    }

    /// The source address for `destination`. It has the same scope. Preferred addresses win, and
    /// then the longest common prefix decides (RFC 6724 §5, rules 2, 3 and 8).
    pub(super) fn source_for(&self, now: Instant, destination: Ipv6Addr) -> Option<&OwnAddress> {
        let wanted = has_link_scope(destination);
        self.assigned().filter(|own| has_link_scope(own.address) == wanted).max_by_key(|own| {
            (
                own.address == destination,
                own.preferred_until > now,
                ipv6::common_bits(own.address, destination),
            )
        })
    }
}

impl OwnAddress {
    /// Adopts the lifetimes that a router advertises for the address (RFC 4862 §5.5.3 e). The
    /// advertisement may be forged, so it cannot shorten the remaining lifetime to less than two
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

/// The end of a lifetime that begins now. The highest value means that the lifetime never ends.
pub(super) fn until(now: Instant, lifetime: Micros) -> Instant {
    if lifetime >= Micros::from_secs(u64::from(u32::MAX)) { Instant::NEVER } else { now + lifetime }
}

/// Whether an address or group has link-local scope.
fn has_link_scope(address: Ipv6Addr) -> bool {
    let [first, ..] = address.segments();
    ipv6::is_link_local(address) || first & 0xff0f == 0xff02
}
