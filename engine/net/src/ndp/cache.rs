//! The neighbour cache: the hardware address and the reachability of each neighbour (RFC 4861 §7).
//!
//! ```text
//!   (none) ─resolve─> Incomplete ─answer─> Reachable ─30 s─> Stale ─used─> Delay ─5 s─> Probe
//!     ^                   │                    ^  answer                                 │ │
//!     ├─── 3 requests ────┘                    └─────────────────────────────────────────┘ │
//!     └──────────────────────────────── 3 requests ────────────────────────────────────────┘
//! ```
//!
//! Invariants:
//! - At most [`NEIGHBOURS_MAX`] entries, all allocated at construction. A host that solicits us
//!   gets an entry. Such an entry evicts only an idle host: no router, no neighbour that was used
//!   recently, and none for which packets wait (RFC 6583).
//! - Each neighbour is asked at most [`SOLICITATIONS_MAX`] times in a row, with a wait after each
//!   request.

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use machine::{Ethernet, Instant, Micros};

use crate::held::Held;

/// The most entries in the cache.
pub(super) const NEIGHBOURS_MAX: usize = 128;
/// How long an answer is trusted without asking again (REACHABLE_TIME), unless a router advertises
/// another time.
pub(super) const REACHABLE: Micros = Micros::from_secs(30);
/// How long a stale entry that is used again stays unprobed (DELAY_FIRST_PROBE_TIME). The RFC lets
/// upper layers confirm in this time that the neighbour is reachable. Ours do not.
pub(super) const DELAY: Micros = Micros::from_secs(5);
/// The number of unanswered requests after which a neighbour is removed (MAX_MULTICAST_SOLICIT,
/// MAX_UNICAST_SOLICIT).
pub(super) const SOLICITATIONS_MAX: u8 = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// We ask for its hardware address by multicast.
    Incomplete { requests: u8, due: Instant },
    /// The neighbour has answered us recently.
    Reachable { until: Instant },
    /// The hardware address is known, but not confirmed. The last answer is too old, or the
    /// neighbour has sent a solicitation or an advertisement unasked.
    Stale,
    /// The stale entry was used again. The neighbour is probed at `until`.
    Delay { until: Instant },
    /// We ask the neighbour by unicast.
    Probe { requests: u8, due: Instant },
}

struct NdpEntry {
    address: Ipv6Addr,
    hardware: Ethernet,
    state: State,
    used_at: Instant,
}

/// The next action for a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NeighbourAction {
    /// Ask for `address`: by unicast to `hardware`, or by multicast.
    Solicit { address: Ipv6Addr, hardware: Option<Ethernet> },
    /// The neighbour has not answered, and is removed.
    Unreachable { address: Ipv6Addr },
}

/// The claim of a neighbour advertisement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AdvertisedNeighbour {
    pub(super) hardware: Option<Ethernet>,
    /// The advertisement answers a solicitation of ours.
    pub(super) solicited: bool,
    /// The advertisement overrides the cached hardware address.
    pub(super) overrides: bool,
}

pub(super) struct NeighbourCache {
    entries: Vec<NdpEntry>,
    /// The packets that wait for a neighbour's answer.
    pub(super) held: Held<Ipv6Addr>,
    /// How long an answer is trusted.
    pub(super) reachable: Micros,
    /// Never later than the earliest time at which a neighbour must be asked.
    next_due: Instant,
}

impl NeighbourCache {
    /// `frame_bytes`: the longest frame that may have to wait.
    pub(super) fn new(frame_bytes: usize) -> NeighbourCache {
        NeighbourCache {
            entries: Vec::with_capacity(NEIGHBOURS_MAX),
            held: Held::new(frame_bytes),
            reachable: REACHABLE,
            next_due: Instant::NEVER,
        }
    }

    /// The hardware address of `address`, if known. The entry counts as used. If the entry is
    /// stale, its neighbour is probed after [`DELAY`].
    pub(super) fn lookup(&mut self, now: Instant, address: Ipv6Addr) -> Option<Ethernet> {
        let neighbour = self.entries.iter_mut().find(|neighbour| neighbour.address == address)?;
        neighbour.used_at = now;
        match neighbour.state {
            State::Incomplete { .. } => return None,
            State::Stale => {}
            State::Reachable { until } if until <= now => {}
            _ => return Some(neighbour.hardware),
        }
        let until = now + DELAY;
        neighbour.state = State::Delay { until };
        self.next_due = self.next_due.min(until);
        Some(neighbour.hardware)
    }

    /// Adds an entry for `address` and asks for its hardware address, unless the cache has an entry
    /// already. `is_router`: whether an address is a router's. Routers are never evicted.
    pub(super) fn resolve(
        &mut self,
        now: Instant,
        address: Ipv6Addr,
        is_router: impl Fn(Ipv6Addr) -> bool,
    ) {
        let is_known = self.entries.iter().any(|neighbour| neighbour.address == address);
        if is_known || !self.make_room(|neighbour, _| !is_router(neighbour.address)) {
            return;
        }
        let state = State::Incomplete { requests: 0, due: now };
        self.entries.push(NdpEntry { address, hardware: Ethernet([0; 6]), state, used_at: now });
        self.next_due = self.next_due.min(now);
    }

    /// Probes `address`, because packets to it seem to get lost.
    pub(super) fn reconfirm(&mut self, now: Instant, address: Ipv6Addr) {
        let Some(neighbour) =
            self.entries.iter_mut().find(|neighbour| neighbour.address == address)
        else {
            return;
        };
        if matches!(neighbour.state, State::Reachable { .. } | State::Stale | State::Delay { .. }) {
            neighbour.state = State::Probe { requests: 0, due: now };
            self.next_due = self.next_due.min(now);
        }
    }

    /// Whether `address` is probably reachable (RFC 4861 §6.3.6).
    pub(super) fn is_probably_reachable(&self, address: Ipv6Addr) -> bool {
        let found = self.entries.iter().find(|neighbour| neighbour.address == address);
        found.is_some_and(|neighbour| !matches!(neighbour.state, State::Incomplete { .. }))
    }

    /// Handles a solicitation or router advertisement in which `address` states its hardware
    /// address (RFC 4861 §7.2.3, §6.3.4). `is_router` as for [`NeighbourCache::resolve`].
    pub(super) fn solicited_by(
        &mut self,
        now: Instant,
        address: Ipv6Addr,
        hardware: Ethernet,
        is_router: impl Fn(Ipv6Addr) -> bool,
    ) {
        if let Some(neighbour) =
            self.entries.iter_mut().find(|neighbour| neighbour.address == address)
        {
            if neighbour.hardware != hardware || matches!(neighbour.state, State::Incomplete { .. })
            {
                neighbour.hardware = hardware;
                neighbour.state = State::Stale;
            }
            return;
        }
        let may_go = |neighbour: &NdpEntry, held: &Held<Ipv6Addr>| {
            let is_idle = match neighbour.state {
                State::Stale => true,
                State::Reachable { until } => until <= now,
                _ => false,
            };
            is_idle && !held.is_awaited(neighbour.address) && !is_router(neighbour.address)
        };
        if self.make_room(may_go) {
            self.entries.push(NdpEntry { address, hardware, state: State::Stale, used_at: now });
        }
    }

    /// Handles an advertisement of `address` about itself (RFC 4861 §7.2.5). An advertisement never
    /// adds an entry.
    pub(super) fn advertised(
        &mut self,
        now: Instant,
        address: Ipv6Addr,
        claim: AdvertisedNeighbour,
    ) {
        let until = now + self.reachable;
        let Some(neighbour) =
            self.entries.iter_mut().find(|neighbour| neighbour.address == address)
        else {
            return;
        };
        let confirmed = if claim.solicited { State::Reachable { until } } else { State::Stale };
        let is_incomplete = matches!(neighbour.state, State::Incomplete { .. });
        match claim.hardware.filter(|hardware| is_incomplete || *hardware != neighbour.hardware) {
            Some(hardware) if is_incomplete || claim.overrides => {
                neighbour.hardware = hardware;
                neighbour.state = confirmed;
            }
            Some(_) => {
                if matches!(neighbour.state, State::Reachable { .. }) {
                    neighbour.state = State::Stale;
                }
            }
            None if claim.solicited && !is_incomplete => neighbour.state = confirmed,
            None => {}
        }
    }

    /// The hardware address of `address`, if known. The entry does not count as used.
    pub(super) fn known(&self, address: Ipv6Addr) -> Option<Ethernet> {
        let found = self.entries.iter().find(|neighbour| neighbour.address == address);
        found
            .filter(|neighbour| !matches!(neighbour.state, State::Incomplete { .. }))
            .map(|found| found.hardware)
    }

    /// The next action that is due, if any. `wait`: the time for an answer.
    pub(super) fn next_step(&mut self, now: Instant, wait: Micros) -> Option<NeighbourAction> {
        if self.next_due > now {
            return None;
        }
        self.next_due = Instant::NEVER;
        for at in 0..self.entries.len() {
            let Some(neighbour) = self.entries.get_mut(at) else {
                unreachable!("the index is below the length")
            };
            let Some(due) = neighbour.due() else { continue };
            if due > now {
                self.next_due = self.next_due.min(due);
                continue;
            }
            // More entries may be due.
            self.next_due = now;
            let address = neighbour.address;
            if neighbour.count_request(now + wait) {
                let is_new = matches!(neighbour.state, State::Incomplete { .. });
                return Some(NeighbourAction::Solicit {
                    address,
                    hardware: (!is_new).then_some(neighbour.hardware),
                });
            }
            self.entries.swap_remove(at);
            self.held.drop_all(address);
            return Some(NeighbourAction::Unreachable { address });
        }
        None
    }

    pub(super) fn next_due(&self) -> Instant {
        self.next_due
    }

    /// Makes room for one entry. Evicts the least recently used entry that `may_go` permits. False:
    /// there is none.
    fn make_room(&mut self, may_go: impl Fn(&NdpEntry, &Held<Ipv6Addr>) -> bool) -> bool {
        if self.entries.len() < NEIGHBOURS_MAX {
            return true;
        }
        let held = &self.held;
        let candidates =
            self.entries.iter().enumerate().filter(|(_, neighbour)| may_go(neighbour, held));
        let Some((at, _)) = candidates.min_by_key(|(_, neighbour)| neighbour.used_at) else {
            return false;
        };
        let gone = self.entries.swap_remove(at);
        self.held.drop_all(gone.address);
        true
    }
}

impl NdpEntry {
    fn due(&self) -> Option<Instant> {
        match self.state {
            State::Incomplete { due, .. }
            | State::Probe { due, .. }
            | State::Delay { until: due } => Some(due),
            State::Reachable { .. } | State::Stale => None,
        }
    }

    /// Counts another request, which may be answered until `next`. False: the limit is reached.
    fn count_request(&mut self, next: Instant) -> bool {
        match &mut self.state {
            State::Incomplete { requests, due } | State::Probe { requests, due }
                if *requests < SOLICITATIONS_MAX =>
            {
                *requests += 1;
                *due = next;
                true
            }
            State::Delay { .. } => {
                self.state = State::Probe { requests: 1, due: next };
                true
            }
            _ => false,
        }
    }
}
