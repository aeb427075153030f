//! The ARP cache (RFC 826, RFC 1122 §2.3.2), and the few packets that wait for a neighbour's
//! answer.
//!
//! Invariants:
//! - At most [`NEIGHBOURS_MAX`] entries, all allocated at construction.
//! - A packet that we did not ask for adds an entry only if it asks for our address: the reply
//!   needs the entry anyway. Such an entry evicts no entry that is fresh, and none for which
//!   packets wait.
//! - A fresh entry changes only after we have asked, or when it is older than [`LOCK_TIME`]. So an
//!   entry does not change again and again if two machines use the same address, or if one machine
//!   forges packets.
//! - Each neighbour is asked at most once in [`ASK_AGAIN`] (RFC 1122 §2.3.2.1), and at most
//!   [`ASKS_MAX`] times in a row.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use machine::{Ethernet, Instant, Micros};

use crate::held::Held;

/// The most entries in the cache.
pub(crate) const NEIGHBOURS_MAX: usize = 128;
/// How long an answer is trusted without another request.
pub(crate) const FRESH: Micros = Micros::from_secs(60);
/// The time after an answer in which a packet that we did not ask for cannot change the entry.
pub(crate) const LOCK_TIME: Micros = Micros::from_secs(1);
/// The time between two requests for one neighbour.
pub(crate) const ASK_AGAIN: Micros = Micros::from_secs(1);
/// The number of unanswered requests after which the entry is removed.
pub(crate) const ASKS_MAX: u8 = 3;

const NEVER: Instant = Instant(u64::MAX);

struct ArpEntry {
    address: Ipv4Addr,
    hardware: Option<Ethernet>,
    confirmed_at: Instant,
    /// Requests sent since the last answer.
    requests: u8,
    /// When the next request is due, or the entry is removed.
    ask_at: Instant,
}

/// An ARP request to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ArpRequest {
    pub(crate) address: Ipv4Addr,
    /// The destination of the request: the hardware address that last answered, or `None` for
    /// broadcast.
    pub(crate) hardware: Option<Ethernet>,
}

/// The kind of ARP packet that named a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ArpOrigin {
    /// The neighbour asked for our address.
    RequestForUs,
    /// The neighbour answered, or announced itself.
    Other,
}

pub(crate) struct Neighbours {
    entries: Vec<ArpEntry>,
    /// The packets that wait for a neighbour's answer.
    pub(crate) held: Held<Ipv4Addr>,
    /// Never later than the earliest `ask_at`.
    next_ask: Instant,
}

impl Neighbours {
    /// `frame_bytes`: the longest frame that may have to wait.
    pub(crate) fn new(frame_bytes: usize) -> Neighbours {
        Neighbours {
            entries: Vec::with_capacity(NEIGHBOURS_MAX),
            held: Held::new(frame_bytes),
            next_ask: NEVER,
        }
    }

    /// The hardware address of `address`, if known. If the entry is not fresh, the address is
    /// returned all the same, and a new request becomes due.
    pub(crate) fn lookup(&mut self, now: Instant, address: Ipv4Addr) -> Option<Ethernet> {
        let neighbour = self.entries.iter_mut().find(|neighbour| neighbour.address == address)?;
        if neighbour.ask_at == NEVER && now.since(neighbour.confirmed_at) >= FRESH {
            neighbour.ask_at = now;
            self.next_ask = self.next_ask.min(now);
        }
        neighbour.hardware
    }

    /// Asks for `address`, unless it is known or a request is in progress. `pinned`: the gateway,
    /// with an entry that is never evicted.
    pub(crate) fn resolve(&mut self, now: Instant, address: Ipv4Addr, pinned: Option<Ipv4Addr>) {
        if self.entries.iter().any(|neighbour| neighbour.address == address)
            || !self.make_room(now, pinned, ArpOrigin::Other)
        {
            return;
        }
        self.entries.push(ArpEntry {
            address,
            hardware: None,
            confirmed_at: now,
            requests: 0,
            ask_at: now,
        });
        self.next_ask = self.next_ask.min(now);
    }

    /// Asks for `address` again as soon as allowed, because packets to it seem to get lost.
    pub(crate) fn reconfirm(&mut self, now: Instant, address: Ipv4Addr) {
        let neighbour = self.entries.iter_mut().find(|neighbour| neighbour.address == address);
        let Some(neighbour) = neighbour.filter(|neighbour| neighbour.ask_at == NEVER) else {
            return;
        };
        neighbour.ask_at = now.max(neighbour.confirmed_at + ASK_AGAIN);
        self.next_ask = self.next_ask.min(neighbour.ask_at);
    }

    /// Learns that `address` is at `hardware`. Returns whether the cache has adopted `hardware`.
    pub(crate) fn learn(
        &mut self,
        now: Instant,
        address: Ipv4Addr,
        hardware: Ethernet,
        how: ArpOrigin,
        pinned: Option<Ipv4Addr>,
    ) -> bool {
        if let Some(neighbour) =
            self.entries.iter_mut().find(|neighbour| neighbour.address == address)
        {
            let same = neighbour.hardware == Some(hardware);
            let locked = neighbour.requests == 0 && now.since(neighbour.confirmed_at) < LOCK_TIME;
            if !same && locked && neighbour.hardware.is_some() {
                return false;
            }
            neighbour.hardware = Some(hardware);
            neighbour.confirmed_at = now;
            neighbour.requests = 0;
            neighbour.ask_at = NEVER;
            return true;
        }
        if how != ArpOrigin::RequestForUs || !self.make_room(now, pinned, how) {
            return false;
        }
        let hardware = Some(hardware);
        self.entries.push(ArpEntry {
            address,
            hardware,
            confirmed_at: now,
            requests: 0,
            ask_at: NEVER,
        });
        true
    }

    /// The next request that is due, if any. Also removes neighbours that never answered.
    pub(crate) fn next_request(&mut self, now: Instant) -> Option<ArpRequest> {
        while self.next_ask <= now {
            let Some(at) = self.entries.iter().position(|neighbour| neighbour.ask_at <= now) else {
                self.next_ask =
                    self.entries.iter().map(|neighbour| neighbour.ask_at).min().unwrap_or(NEVER);
                break;
            };
            let Some(neighbour) = self.entries.get_mut(at) else {
                unreachable!("the neighbour was just found, but is gone")
            };
            if neighbour.requests < ASKS_MAX {
                // The first requests are sent to the hardware address that answered before. The
                // last request is a broadcast.
                let hardware = neighbour.hardware.filter(|_| neighbour.requests + 1 < ASKS_MAX);
                neighbour.requests += 1;
                neighbour.ask_at = now + ASK_AGAIN;
                return Some(ArpRequest { address: neighbour.address, hardware });
            }
            let address = neighbour.address;
            self.entries.swap_remove(at);
            self.held.drop_all(address);
        }
        None
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        (self.next_ask != NEVER).then_some(self.next_ask)
    }

    /// Removes all entries, because the link or our address changed.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.next_ask = NEVER;
        self.held.clear();
    }

    /// Makes room for one entry. Of the entries that may be evicted, evicts the one that was
    /// confirmed longest ago. Returns false if no entry may be evicted.
    fn make_room(&mut self, now: Instant, pinned: Option<Ipv4Addr>, newcomer: ArpOrigin) -> bool {
        if self.entries.len() < NEIGHBOURS_MAX {
            return true;
        }
        let held = &self.held;
        let may_go = |neighbour: &ArpEntry| {
            let precious =
                now.since(neighbour.confirmed_at) < FRESH || held.is_awaited(neighbour.address);
            Some(neighbour.address) != pinned && (newcomer == ArpOrigin::Other || !precious)
        };
        let candidates = self.entries.iter().enumerate().filter(|(_, neighbour)| may_go(neighbour));
        let Some((at, _)) = candidates.min_by_key(|(_, neighbour)| neighbour.confirmed_at) else {
            return false;
        };
        let gone = self.entries.swap_remove(at);
        self.held.drop_all(gone.address);
        true
    }
}

#[cfg(test)]
mod tests;
