//! The flow table: one open-addressed table from four-tuples (both addresses and both ports) to
//! connections, half-open connections and TIME-WAIT entries.
//!
//! A slot holds the ports and a hash of the whole four-tuple. So a search reads only slots, and a
//! slot is small for IPv4 and for IPv6. The hash is multilinear with secret keys of 128 bits
//! (Lemire and Kaser, "Strongly universal string hashing is fast", 2014). Two flows have the same
//! hash with a probability of 2^-64. This holds even if an attacker chooses the flows, because no
//! outsider sees a hash.
//!
//! The hash is a sum of products, which maps neighbouring flows to slots at equal distances. This
//! would crowd some slots. So a bijection mixes the bits of the sum (the finalizer of SplitMix64;
//! Steele, Lea and Flood 2014). The caller must compare its flow with the flow of the entry that a
//! search finds.
//!
//! Invariants:
//! - There are at least twice as many slots as entries, so a search ends soon.
//! - Every slot from the home slot of a hash to the entry with that hash is taken (linear probing).
//!   When an entry is removed, later entries move back into the hole. So the table needs no
//!   tombstones.

use alloc::boxed::Box;
use alloc::vec;
use core::hash::{Hash, Hasher};

use machine::Ethernet;
use siphasher::sip::SipHasher13;

use crate::ip::{Ip, Local};

/// A four-tuple of IPv4 or IPv6. `local` is the number of our own address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flow {
    pub(crate) peer: Ip,
    pub(crate) local: Local,
    pub(crate) peer_port: u16,
    pub(crate) local_port: u16,
}

/// A remote host that opens a connection: its flow, and the neighbour that has passed us its SYN.
/// The SYN-ACK is sent to that neighbour while the route is unresolved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SynSender {
    pub(crate) flow: Flow,
    pub(crate) came_from: Ethernet,
}

impl PartialEq for SynSender {
    /// The neighbour is not part of the identity: the next packet of the same host may come through
    /// another neighbour.
    fn eq(&self, other: &SynSender) -> bool {
        self.flow == other.flow
    }
}

/// Both ends of a connection with their addresses: an input of initial sequence numbers and
/// cookies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoints {
    pub(crate) flow: Flow,
    /// Our address that the flow refers to.
    pub(crate) own: Ip,
}

impl Hash for Endpoints {
    /// Hashes both addresses and both ports in one write, but not the number of our address. The
    /// length of the write depends on the family.
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let Flow { peer, peer_port, local_port, .. } = self.flow;
        let ports = (u32::from(peer_port) << 16 | u32::from(local_port)).to_ne_bytes();
        match (peer.to_v4(), self.own.to_v4()) {
            (Some(peer), Some(own)) => {
                let mut bytes = [0; 12];
                bytes[..4].copy_from_slice(&peer.octets());
                bytes[4..8].copy_from_slice(&own.octets());
                bytes[8..].copy_from_slice(&ports);
                hasher.write(&bytes);
            }
            _ => {
                let mut bytes = [0; 36];
                bytes[..16].copy_from_slice(&peer.to_v6().octets());
                bytes[16..32].copy_from_slice(&self.own.to_v6().octets());
                bytes[32..].copy_from_slice(&ports);
                hasher.write(&bytes);
            }
        }
    }
}

/// The target of a flow: an index into one of three tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FlowTarget {
    Connection(u32),
    HalfOpen(u32),
    TimeWait(u32),
}

/// The fields that a search compares with a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FlowKey {
    /// The hash of the four-tuple. Its low bits select the home slot.
    hash: u64,
    peer_port: u16,
    local_port: u16,
}

#[derive(Clone, Copy)]
struct FlowSlot {
    hash: u64,
    peer_port: u16,
    local_port: u16,
    entry: PackedEntry,
}

impl FlowSlot {
    #[inline]
    fn has_key(&self, key: &FlowKey) -> bool {
        (self.hash, self.peer_port, self.local_port) == (key.hash, key.peer_port, key.local_port)
    }
}

const _: () = assert!(size_of::<FlowSlot>() == 16);

/// An entry in 32 bits: two bits for the table, and the rest for the index.
#[derive(Clone, Copy, PartialEq, Eq)]
struct PackedEntry(u32);

impl PackedEntry {
    const NONE: PackedEntry = PackedEntry(u32::MAX);

    fn pack(entry: FlowTarget) -> PackedEntry {
        let (table, index) = match entry {
            FlowTarget::Connection(index) => (0, index),
            FlowTarget::HalfOpen(index) => (1, index),
            FlowTarget::TimeWait(index) => (2, index),
        };
        PackedEntry(table << 30 | (index & INDEX_MASK))
    }

    fn unpack(self) -> Option<FlowTarget> {
        let index = self.0 & INDEX_MASK;
        match self.0 >> 30 {
            0 => Some(FlowTarget::Connection(index)),
            1 => Some(FlowTarget::HalfOpen(index)),
            2 => Some(FlowTarget::TimeWait(index)),
            _ => None,
        }
    }
}

const INDEX_MASK: u32 = (1 << 30) - 1;
const VACANT: FlowSlot =
    FlowSlot { hash: 0, peer_port: 0, local_port: 0, entry: PackedEntry::NONE };

/// Secret keys: one as the start value, and one for each word that may be hashed.
struct Keys {
    ipv4: [u128; 2],
    ipv6: [u128; 4],
}

impl Keys {
    fn new(secret: &[u8; 16]) -> Keys {
        let mut number = 0u64;
        let mut half = || {
            let mut hasher = SipHasher13::new_with_key(secret);
            hasher.write_u64(number);
            number += 1;
            u128::from(hasher.finish())
        };
        let mut key = |_| half() << 64 | half();
        Keys { ipv4: [(); 2].map(&mut key), ipv6: [(); 4].map(&mut key) }
    }

    #[inline]
    fn hash_ipv4(&self, word: u64) -> u64 {
        let [start, key] = self.ipv4;
        scattered((start.wrapping_add(key.wrapping_mul(word.into())) >> 64) as u64)
    }

    #[inline]
    fn hash_ipv6(&self, words: [u64; 3]) -> u64 {
        let [start, keys @ ..] = self.ipv6;
        let sum = keys
            .iter()
            .zip(words)
            .fold(start, |sum, (key, word)| sum.wrapping_add(key.wrapping_mul(word.into())));
        scattered((sum >> 64) as u64)
    }
}

/// Mixes the bits of a number. This is a bijection, and every output bit depends on every input
/// bit.
#[inline]
fn scattered(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

pub(crate) struct FlowTable {
    slots: Box<[FlowSlot]>,
    taken: usize,
    mask: u32,
    keys: Keys,
}

impl FlowTable {
    /// Bytes of memory for each entry. The table has two slots for each entry.
    pub(crate) const ENTRY_BYTES: usize = 2 * size_of::<FlowSlot>();

    /// A table for at most `entries_max` entries, fewer than 2^30.
    pub(crate) fn new(entries_max: usize, key: &[u8; 16]) -> FlowTable {
        assert!(entries_max < 1 << 30, "the index of an entry has at most 30 bits");
        let slots = (entries_max * 2).next_power_of_two().max(8);
        FlowTable {
            slots: vec![VACANT; slots].into_boxed_slice(),
            taken: 0,
            mask: (slots - 1) as u32,
            keys: Keys::new(key),
        }
    }

    /// The entry of `flow`.
    #[inline(always)]
    pub(crate) fn find(&self, flow: &Flow) -> Option<FlowTarget> {
        let at = self.position(flow)?;
        self.slot(at).entry.unpack()
    }

    /// Sets the entry of `flow`, and replaces an existing one.
    pub(crate) fn set(&mut self, flow: Flow, entry: FlowTarget) {
        let entry = PackedEntry::pack(entry);
        let key = self.key_of(&flow);
        let (mut at, capacity) = (self.home(key.hash), self.slots.len());
        loop {
            let Some(slot) = self.slots.get_mut(at as usize) else {
                unreachable!("a slot above the last one")
            };
            if slot.entry == PackedEntry::NONE {
                self.taken += 1;
                assert!(
                    self.taken * 2 <= capacity,
                    "there are at most as many flows as the tables have entries"
                );
                let FlowKey { hash, peer_port, local_port } = key;
                *slot = FlowSlot { hash, peer_port, local_port, entry };
                return;
            }
            if slot.has_key(&key) {
                slot.entry = entry;
                return;
            }
            at = (at + 1) & self.mask;
        }
    }

    /// Removes the entry of `flow`.
    pub(crate) fn remove(&mut self, flow: &Flow) {
        let Some(mut hole) = self.position(flow) else { return };
        let mut at = hole;
        for _ in 0..self.slots.len() {
            at = (at + 1) & self.mask;
            let slot = *self.slot(at);
            if slot.entry == PackedEntry::NONE {
                break;
            }
            // The entry may move into the hole if the hole is between the home slot and the current
            // slot of the entry.
            let from_home = at.wrapping_sub(slot.hash as u32) & self.mask;
            let from_hole = at.wrapping_sub(hole) & self.mask;
            if from_home >= from_hole {
                self.put(hole, slot);
                hole = at;
            }
        }
        self.put(hole, VACANT);
        self.taken -= 1;
    }

    /// The bucket of the flow, by which a core steers it (`cores::steering`): one of 4,096, the
    /// same on all cores. The bucket depends on other bits of the hash than the home slot does.
    pub(crate) fn bucket(&self, flow: &Flow) -> u16 {
        (self.key_of(flow).hash >> 52) as u16
    }

    /// The number of flows that have an entry.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.taken
    }

    #[inline]
    fn home(&self, hash: u64) -> u32 {
        hash as u32 & self.mask
    }

    #[inline(always)]
    fn key_of(&self, flow: &Flow) -> FlowKey {
        let ports = u64::from(flow.peer_port) << 16 | u64::from(flow.local_port);
        let [high, low] = flow.peer.words();
        let hash = if flow.local.is_ipv4() {
            // The peer's IPv4 address and the ports fit one word.
            let [_, _, _, _, a, b, c, d] = low.to_ne_bytes();
            self.keys.hash_ipv4(u64::from(u32::from_ne_bytes([a, b, c, d])) << 32 | ports)
        } else {
            self.keys.hash_ipv6([high, low, u64::from(flow.local.0) << 32 | ports])
        };
        FlowKey { hash, peer_port: flow.peer_port, local_port: flow.local_port }
    }

    #[inline(always)]
    fn position(&self, flow: &Flow) -> Option<u32> {
        let key = self.key_of(flow);
        let mut at = self.home(key.hash);
        for _ in 0..self.slots.len() {
            let slot = self.slot(at);
            if slot.entry == PackedEntry::NONE {
                return None;
            }
            if slot.has_key(&key) {
                return Some(at);
            }
            at = (at + 1) & self.mask;
        }
        None
    }

    fn put(&mut self, at: u32, to: FlowSlot) {
        let Some(slot) = self.slots.get_mut(at as usize) else {
            unreachable!("a slot above the last one")
        };
        *slot = to;
    }

    #[inline(always)]
    fn slot(&self, at: u32) -> &FlowSlot {
        match self.slots.get(at as usize) {
            Some(slot) => slot,
            None => unreachable!("a slot above the last one"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Endpoints, Flow, FlowTable, FlowTarget};
    use crate::ip::{Ip, Local};
    use core::hash::{Hash, Hasher};
    use core::net::{Ipv4Addr, Ipv6Addr};
    use proptest::prelude::*;
    use std::collections::{HashMap, HashSet};
    use std::vec::Vec;

    fn flow(number: u32) -> Flow {
        let peer_port = 1000 + (number % 3) as u16;
        let bits = number / 6;
        if number.is_multiple_of(2) {
            Flow {
                peer: Ipv4Addr::from_bits(bits).into(),
                local: Local::IPV4,
                peer_port,
                local_port: 25,
            }
        } else {
            Flow {
                peer: Ipv6Addr::from_bits(bits.into()).into(),
                local: Local(1 + number % 2),
                peer_port,
                local_port: 25,
            }
        }
    }

    #[test]
    fn hashes_of_flows_differ_and_spread_over_the_table() {
        let other = FlowTable::new(4096, &[0; 16]);
        let flows: Vec<Flow> = (0..4096).map(flow).collect();
        for key in 1..50 {
            let table = FlowTable::new(4096, &[key; 16]);
            let hashes: HashSet<u64> = flows.iter().map(|flow| table.key_of(flow).hash).collect();
            let homes: HashSet<u32> = hashes.iter().map(|hash| table.home(*hash)).collect();
            assert_eq!(hashes.len(), flows.len());
            // 4,096 random flows take some 3,200 of the 8,192 slots.
            assert!(homes.len() > 3_100, "{} slots", homes.len());
            assert!(
                flows.iter().all(|flow| other.key_of(flow).hash != table.key_of(flow).hash),
                "another key gives other hashes"
            );
        }
    }

    proptest! {
        #[test]
        fn flow_table_behaves_like_a_map(steps in proptest::collection::vec((0u8..3, 0u32..32, any::<u8>()), 0..500), key: [u8; 16]) {
            // Up to half of the slots are taken, so that many searches collide.
            let mut table = FlowTable::new(32, &key);
            let mut model: HashMap<u32, FlowTarget> = HashMap::new();
            for (step, number, index) in steps {
                let entry = match index % 3 {
                    0 => FlowTarget::Connection(u32::from(index)),
                    1 => FlowTarget::HalfOpen(u32::from(index)),
                    _ => FlowTarget::TimeWait(u32::from(index)),
                };
                if step > 0 {
                    table.set(flow(number), entry);
                    model.insert(number, entry);
                } else {
                    table.remove(&flow(number));
                    model.remove(&number);
                }
                for number in 0..32 {
                    prop_assert_eq!(table.find(&flow(number)), model.get(&number).copied());
                }
            }
        }
    }

    #[test]
    fn every_flow_field_and_the_key_change_the_hash() {
        let four = Flow {
            peer: Ipv4Addr::new(10, 0, 0, 1).into(),
            local: Local::IPV4,
            peer_port: 1,
            local_port: 25,
        };
        let address = |text: &str| Ip::from(text.parse::<Ipv6Addr>().unwrap());
        let six = Flow { peer: address("2001:db8::1"), local: Local(1), ..four };
        let table = FlowTable::new(4, &[1; 16]);
        assert_ne!(
            table.key_of(&four).hash,
            table.key_of(&Flow { peer: Ipv4Addr::new(10, 0, 0, 2).into(), ..four }).hash
        );
        assert_ne!(
            table.key_of(&six).hash,
            table.key_of(&Flow { peer: address("2001:db8::2"), ..six }).hash
        );
        assert_ne!(
            table.key_of(&six).hash,
            table.key_of(&Flow { peer: address("2001:db9::1"), ..six }).hash
        );
        assert_ne!(table.key_of(&six).hash, table.key_of(&Flow { local: Local(2), ..six }).hash);
        for flow in [four, six] {
            let hash = table.key_of(&flow).hash;
            assert_ne!(hash, table.key_of(&Flow { peer_port: 2, ..flow }).hash);
            assert_ne!(hash, table.key_of(&Flow { local_port: 110, ..flow }).hash);
            assert_ne!(hash, FlowTable::new(4, &[2; 16]).key_of(&flow).hash);
            assert_eq!(hash, table.key_of(&flow).hash);
        }
    }

    #[test]
    fn every_field_of_both_endpoints_changes_the_hash() {
        let address = |text: &str| Ip::from(text.parse::<core::net::IpAddr>().unwrap());
        let endpoints = |peer: &str, peer_port, own: &str, local_port, local| {
            let flow = Flow { peer: address(peer), local: Local(local), peer_port, local_port };
            let mut hasher = siphasher::sip::SipHasher24::new_with_key(&[7; 16]);
            Endpoints { flow, own: address(own) }.hash(&mut hasher);
            hasher.finish()
        };
        let all = [
            endpoints("10.0.0.1", 1, "10.0.0.2", 25, 0),
            endpoints("10.0.0.3", 1, "10.0.0.2", 25, 0),
            endpoints("10.0.0.1", 2, "10.0.0.2", 25, 0),
            endpoints("10.0.0.1", 1, "10.0.0.4", 25, 0),
            endpoints("10.0.0.1", 1, "10.0.0.2", 26, 0),
            endpoints("2001:db8::1", 1, "2001:db8::2", 25, 1),
            endpoints("2001:db9::1", 1, "2001:db8::2", 25, 1),
            endpoints("2001:db8::3", 1, "2001:db8::2", 25, 1),
            endpoints("2001:db8::1", 2, "2001:db8::2", 25, 1),
            endpoints("2001:db8::1", 1, "2001:db9::2", 25, 1),
            endpoints("2001:db8::1", 1, "2001:db8::4", 25, 1),
            endpoints("2001:db8::1", 1, "2001:db8::2", 26, 1),
        ];
        assert_eq!(HashSet::from(all).len(), all.len());
        // The number of our address does not count: it may differ after a restart, although the
        // endpoints are the same.
        assert_eq!(
            endpoints("2001:db8::1", 1, "2001:db8::2", 25, 2),
            endpoints("2001:db8::1", 1, "2001:db8::2", 25, 1)
        );
    }
}
