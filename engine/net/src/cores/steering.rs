//! Steering decides which core owns a connection, when one receive queue of the card serves several
//! cores.
//!
//! Flows are divided into [`BUCKETS`] buckets by a keyed hash, so no outsider can choose which
//! flows share a bucket. A bucket stays with its core while this core has a connection of the
//! bucket, or may be about to open one. After that, the next SYN may move the bucket to the least
//! loaded core. The bucket moves if its core has at least two connections more than that core. So a
//! core that is slow to close connections gets fewer new ones.
//!
//! The steering core also receives and sends for the other cores, so it gets fewer connections.
//! While it has few connections, it gets half as many as each other core. Later it has fewer than
//! each other core, by an eighth of the number that it could still have. When the other cores are
//! full, the steering core is full too.
//!
//! Owners report the number of their connections, in a bucket and in total. Each report replaces
//! the report before it. Owners also report how many of the SYNs that were steered to them have
//! arrived. A bucket does not move until its owner has received the last SYN of the bucket. SYNs in
//! transit count as connections.
//!
//! TIME-WAIT entries do not count as connections. If a bucket moves to another core, its TIME-WAIT
//! entries stay. A segment for such an entry is then a stray.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;

use heapless::Vec;
use machine::CoreId;

use crate::config::CORES_MAX;

/// A divisor: the extra load of the steering core is at most the number of connections that it
/// could still have, divided by this.
const SPARED_PART: u32 = 8;

/// The number of buckets.
pub(crate) const BUCKETS: usize = 4096;

/// The load of a core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Load {
    core: CoreId,
    bucket: u16,
    /// The connections and handshakes of the bucket.
    of_bucket: u32,
    /// The connections and handshakes of all buckets together.
    total: u32,
    /// The number of steered SYNs that the core has seen, modulo 2^32.
    syns_seen: u32,
}

/// The connections of one core, by bucket.
pub(super) struct Holdings {
    steered_by: CoreId,
    of_bucket: Box<[u32]>,
    total: u32,
    syns_seen: u32,
    /// Buckets with unreported changes; each is in the queue at most once.
    changes: VecDeque<u16>,
    is_changed: Box<[bool]>,
}

impl Holdings {
    pub(super) fn new(steered_by: CoreId) -> Holdings {
        Holdings {
            steered_by,
            of_bucket: vec![0; BUCKETS].into_boxed_slice(),
            total: 0,
            syns_seen: 0,
            changes: VecDeque::with_capacity(BUCKETS),
            is_changed: vec![false; BUCKETS].into_boxed_slice(),
        }
    }

    /// The core that steers for this core, and gets the reports of this core.
    pub(super) fn steered_by(&self) -> CoreId {
        self.steered_by
    }

    pub(super) fn opened(&mut self, bucket: u16) {
        *self.count_mut(bucket) += 1;
        self.total += 1;
        self.change(bucket);
    }

    pub(super) fn closed(&mut self, bucket: u16) {
        let count = self.count_mut(bucket);
        assert!(*count > 0, "a flow is closed only after it was opened");
        *count -= 1;
        self.total -= 1;
        self.change(bucket);
    }

    /// Records that a steered SYN has arrived.
    pub(super) fn syn_seen(&mut self, bucket: u16) {
        self.syns_seen = self.syns_seen.wrapping_add(1);
        self.change(bucket);
    }

    /// The next load to report.
    pub(super) fn next_change(&mut self, own: CoreId) -> Option<Load> {
        let bucket = self.changes.pop_front()?;
        *self.is_changed_mut(bucket) = false;
        let of_bucket = *self.count_mut(bucket);
        Some(Load { core: own, bucket, of_bucket, total: self.total, syns_seen: self.syns_seen })
    }

    pub(super) fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.total == 0 && self.of_bucket.iter().all(|count| *count == 0)
    }

    fn change(&mut self, bucket: u16) {
        if !core::mem::replace(self.is_changed_mut(bucket), true) {
            self.changes.push_back(bucket);
        }
    }

    fn count_mut(&mut self, bucket: u16) -> &mut u32 {
        match self.of_bucket.get_mut(usize::from(bucket)) {
            Some(count) => count,
            None => unreachable!("a bucket above the last one"),
        }
    }

    fn is_changed_mut(&mut self, bucket: u16) -> &mut bool {
        match self.is_changed.get_mut(usize::from(bucket)) {
            Some(is_changed) => is_changed,
            None => unreachable!("a bucket above the last one"),
        }
    }
}

#[derive(Clone, Copy)]
struct SteeringBucket {
    /// The index of the member that owns the bucket.
    owner: u8,
    /// The connections of the bucket, as reported by the owner.
    connections: u32,
    /// The number of the last SYN of this bucket that was steered to the owner.
    last_syn: u32,
}

impl SteeringBucket {
    /// Whether the bucket has no connection, and no SYN in transit may open one.
    fn is_free(&self, members: &[Member]) -> bool {
        self.connections == 0 && member(members, self.owner).has_seen(self.last_syn)
    }
}

struct Member {
    core: CoreId,
    /// The number of connections that the core last reported.
    connections: u32,
    syns_seen: u32,
    /// The number of SYNs steered to the core, modulo 2^32.
    syns_given: u32,
}

impl Member {
    /// Connections, and SYNs that may become connections.
    fn load(&self) -> u32 {
        self.connections.saturating_add(self.syns_given.wrapping_sub(self.syns_seen))
    }

    fn has_seen(&self, syn: u32) -> bool {
        (syn.wrapping_sub(self.syns_seen) as i32) <= 0
    }
}

/// The core that owns each bucket.
pub(super) struct Steering {
    buckets: Box<[SteeringBucket]>,
    /// The cores to steer for. The first is this core.
    members: Vec<Member, CORES_MAX>,
    /// The most connections of each member.
    connections_max: u32,
}

impl Steering {
    /// `members`: the cores to steer for, at most [`CORES_MAX`], this core first.
    /// `connections_max`: the most connections of each.
    pub(super) fn new(members: impl Iterator<Item = CoreId>, connections_max: usize) -> Steering {
        let member = |core| Member { core, connections: 0, syns_seen: 0, syns_given: 0 };
        let members: Vec<Member, CORES_MAX> = members.map(member).collect();
        let bucket = |number: usize| SteeringBucket {
            owner: (number % members.len()) as u8,
            connections: 0,
            last_syn: 0,
        };
        let connections_max = connections_max as u32;
        Steering { buckets: (0..BUCKETS).map(bucket).collect(), members, connections_max }
    }

    /// The core that owns `bucket`. If the segment `opens` a connection, the bucket may move first.
    pub(super) fn owner(&mut self, bucket: u16, opens: bool) -> CoreId {
        let Some(found) = self.buckets.get_mut(usize::from(bucket)) else {
            unreachable!("a bucket above the last one")
        };
        if opens && found.is_free(&self.members) {
            let (least_loaded, least) = least_loaded(&self.members, self.connections_max);
            let owner = usize::from(found.owner);
            let load =
                counted_load(owner, member(&self.members, found.owner), self.connections_max);
            // A repeated SYN should reach the same core. So small differences in load do not move
            // the bucket.
            if load > least + 1 {
                found.owner = least_loaded;
                found.last_syn = member(&self.members, least_loaded).syns_seen;
            }
        }
        member(&self.members, found.owner).core
    }

    /// Records that a SYN of `bucket` is in transit to the owner of the bucket.
    pub(super) fn given(&mut self, bucket: u16) {
        let Some(bucket) = self.buckets.get_mut(usize::from(bucket)) else {
            unreachable!("a bucket above the last one")
        };
        let Some(owner) = self.members.get_mut(usize::from(bucket.owner)) else {
            unreachable!("a bucket of no core")
        };
        owner.syns_given = owner.syns_given.wrapping_add(1);
        bucket.last_syn = owner.syns_given;
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.members.iter().all(|member| member.load() == 0)
            && self.buckets.iter().all(|bucket| bucket.connections == 0)
    }

    /// Records the load that a core has reported.
    pub(super) fn load_reported(&mut self, load: &Load) {
        let mut members = self.members.iter_mut().enumerate();
        let Some((at, member)) = members.find(|(_, member)| member.core == load.core) else {
            unreachable!("only members report their load here")
        };
        member.connections = load.total;
        member.syns_seen = load.syns_seen;
        let bucket = self.buckets.get_mut(usize::from(load.bucket));
        let Some(bucket) = bucket else { unreachable!("a bucket above the last one") };
        if usize::from(bucket.owner) == at {
            bucket.connections = load.of_bucket;
        } else if load.of_bucket > 0 && bucket.is_free(&self.members) {
            // The reporting core has opened a connection of this free bucket on its own. So it gets
            // the bucket.
            *bucket = SteeringBucket {
                owner: at as u8,
                connections: load.of_bucket,
                last_syn: load.syns_seen,
            };
        }
    }
}

/// The member at index `at`.
fn member(members: &[Member], at: u8) -> &Member {
    match members.get(usize::from(at)) {
        Some(member) => member,
        None => unreachable!("a bucket of no core"),
    }
}

/// The load by which the member at index `at` is compared. An extra load makes the steering core
/// (index 0) seem busier. The extra load shrinks as the steering core fills.
fn counted_load(at: usize, member: &Member, connections_max: u32) -> u32 {
    let load = member.load();
    let more = load.min(connections_max.saturating_sub(load) / SPARED_PART);
    load.saturating_add(if at == 0 { more } else { 0 })
}

/// The member with the smallest counted load, and that load. If loads are equal, another core
/// precedes this core.
fn least_loaded(members: &[Member], connections_max: u32) -> (u8, u32) {
    let all = members
        .iter()
        .enumerate()
        .map(|(at, member)| (at, counted_load(at, member, connections_max)));
    all.min_by_key(|(at, load)| (*load, *at == 0)).map_or((0, 0), |(at, load)| (at as u8, load))
}

#[cfg(test)]
mod tests;
