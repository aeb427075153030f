//! The limit on how much memory clients may make one core keep.
//!
//! Everything that a client can make the server keep is charged here. Examples are request heads,
//! compression tables, streams, login attempts, and header fields that wait for a check. Each
//! holder has a [`Charge`]. Up to its least share a holder is never refused, so the memory for all
//! least shares is set aside. Memory above that is lent from a pool that all holders of the core
//! share.
//!
//! A network may hold at most as many bytes of the pool as are free, and an address at most half of
//! the free bytes. These are the dynamic thresholds of shared-memory switches (Choudhury and Hahne,
//! 1998). One network alone gets half of the pool. Lent memory does not drain by itself. So when
//! the pool is short, the caller must end holders of addresses and networks above their thresholds
//! ([`MemoryBudget::is_above_share`]). When n networks want all of the pool, each gets 1/(n + 1) of
//! it. The same amount stays free for the next network. For IPv6, a /64 counts as one address,
//! because a host has a /64 to itself (RFC 6177). A network is a /24 of IPv4 or a /48 of IPv6.
//!
//! Holdings are counted in two rows of counters. A keyed hash selects one counter in each row, and
//! the smaller of the two counts. So the table has a fixed size, and nothing is evicted from it. A
//! client cannot choose the other clients that share its counters.
//!
//! Invariants:
//! - The lent bytes never exceed the pool.
//! - A network or address is never counted to hold less than it does.
//! - A refused charge changes nothing. A charge that shrinks is never refused.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec;
use alloc::vec::Vec;
use core::hash::Hasher;
use core::net::IpAddr;

use siphasher::sip::SipHasher13;

/// The number of counters in a row.
const COUNTERS: usize = 4096;

/// The pool is short when less than one in this many of its bytes is free.
const SHORT_ONE_IN: usize = 8;

/// The memory that one holder keeps.
///
/// `bytes` is private: the budget's sums are right only if every change goes through it.
#[derive(Debug)]
pub struct Charge {
    bytes: u32,
    least: u32,
}

impl Charge {
    /// Creates the charge of a holder that keeps nothing yet. The holder is never refused the first
    /// `least` bytes, so the machine must have memory for them in addition to the pool.
    pub const fn new(least: u32) -> Charge {
        Charge { bytes: 0, least }
    }

    /// Bytes that the holder keeps.
    pub const fn bytes(&self) -> usize {
        self.bytes as usize
    }

    /// Bytes of the pool that the holder keeps.
    pub const fn lent(&self) -> usize {
        self.bytes.saturating_sub(self.least) as usize
    }
}

/// The error of a refused charge: the holder would exceed its share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overdrawn;

/// The memory that the holders of one core keep, and the pool that they share.
#[derive(Debug)]
pub struct MemoryBudget {
    pool: usize,
    lent: usize,
    held: usize,
    /// Bytes of the pool that addresses and networks hold, in two rows.
    rows: [Vec<u32>; 2],
    key: [u8; 16],
}

/// The index of a counter in each row.
type Places = [usize; 2];

impl MemoryBudget {
    /// Creates a budget that has lent nothing yet. `pool`: bytes to lend. `key`: a random key for
    /// the hash of addresses and networks.
    pub fn new(pool: usize, key: [u8; 16]) -> MemoryBudget {
        let pool = pool.min(u32::MAX as usize);
        MemoryBudget { pool, lent: 0, held: 0, rows: [vec![0; COUNTERS], vec![0; COUNTERS]], key }
    }

    /// Bytes that all holders keep, including their least shares.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Bytes of the pool that are free.
    pub fn free(&self) -> usize {
        self.pool - self.lent
    }

    /// Whether little of the pool is free.
    pub fn is_short(&self) -> bool {
        self.free() < self.pool / SHORT_ONE_IN
    }

    /// Changes the charge of the holder at `address` to `bytes`.
    ///
    /// Errors: [`Overdrawn`] if `bytes` exceeds the holder's share. In this case nothing has
    /// changed.
    pub fn charge(
        &mut self,
        charge: &mut Charge,
        address: IpAddr,
        bytes: usize,
    ) -> Result<(), Overdrawn> {
        let bytes = u32::try_from(bytes).map_err(|_| Overdrawn)?;
        let before = charge.lent();
        let after = bytes.saturating_sub(charge.least) as usize;
        if before != after {
            let [of_address, of_network] = self.places(address);
            if after > before && !self.may_lend(after - before, of_address, of_network) {
                return Err(Overdrawn);
            }
            self.lent = self.lent + after - before;
            self.count(of_address, before, after);
            self.count(of_network, before, after);
        }
        self.held = self.held + bytes as usize - charge.bytes();
        charge.bytes = bytes;
        Ok(())
    }

    /// Whether [`MemoryBudget::charge`] would grant `bytes`.
    pub fn would_grant(&self, charge: &Charge, address: IpAddr, bytes: usize) -> bool {
        let after = bytes.saturating_sub(charge.least as usize);
        let growth = after.saturating_sub(charge.lent());
        let [of_address, of_network] = self.places(address);
        growth == 0 || self.may_lend(growth, of_address, of_network)
    }

    /// Whether the holder keeps bytes of the pool, and its address or network holds more of the
    /// pool than the budget would grant it now.
    pub fn is_above_share(&self, charge: &Charge, address: IpAddr) -> bool {
        let [of_address, of_network] = self.places(address);
        let free = self.free();
        charge.lent() > 0
            && (self.holding(of_network) > free || self.holding(of_address) > free / 2)
    }

    /// Sets the charge of the holder at `address` to zero.
    pub fn release(&mut self, charge: &mut Charge, address: IpAddr) {
        let released = self.charge(charge, address, 0);
        debug_assert!(released.is_ok(), "a charge that shrinks is never refused");
    }

    fn may_lend(&self, growth: usize, of_address: Places, of_network: Places) -> bool {
        let Some(free) = self.free().checked_sub(growth) else { return false };
        self.holding(of_network) + growth <= free && self.holding(of_address) + growth <= free / 2
    }

    /// An upper bound of the pool's bytes that the address or network with these counters holds.
    fn holding(&self, places: Places) -> usize {
        let counters =
            self.rows.iter().zip(places).map(|(row, place)| row.get(place).copied().unwrap_or(0));
        counters.min().unwrap_or(0) as usize
    }

    fn count(&mut self, places: Places, before: usize, after: usize) {
        for (row, place) in self.rows.iter_mut().zip(places) {
            if let Some(counter) = row.get_mut(place) {
                // No counter exceeds the pool, which is below 4 GiB.
                *counter = (*counter as usize + after - before) as u32;
            }
        }
    }

    /// The counters of the address and of its network. IPv4 addresses are counted as mapped into
    /// IPv6.
    fn places(&self, address: IpAddr) -> [Places; 2] {
        let (octets, prefix_bytes) = match address.to_canonical() {
            IpAddr::V4(address) => (address.to_ipv6_mapped().octets(), [16, 15]),
            IpAddr::V6(address) => (address.octets(), [8, 6]),
        };
        prefix_bytes.map(|length: usize| {
            let mut hasher = SipHasher13::new_with_key(&self.key);
            hasher.write(octets.get(..length).unwrap_or_default());
            let hash = hasher.finish();
            [hash as usize % COUNTERS, (hash >> 32) as usize % COUNTERS]
        })
    }
}

#[cfg(test)]
mod tests;
