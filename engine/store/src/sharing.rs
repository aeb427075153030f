//! How the shards come to be owned by several cores: the keeper opens the disk, and hands over to each other core its share.
//!
//! Shard s is owned by core s mod n. How many cores own some is decided anew each time the disk is opened: all, unless there is so
//! little space that more than half of it would be kept by one from another. The disk knows nothing of it.
//!
//! Invariants:
//! - Shards are handed over when nothing of any is under way, and with everything that is known of them.
//! - Every segment is the keeper's or one guest's: with the shard that lives in it, or free.

use crate::checkpoint::Checkpoint;
use crate::keeper::{Guest, Role};
use crate::layout::{SHARDS, ShardId};
use crate::outcome::State;
use crate::segments::{Owner, Segments, reserve_of};
use crate::store::{Shard, Store};
use crate::superblock::Superblock;
use crate::types::{AccountId, Limits};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use machine::CoreId;

/// The shards of one core, and what it has to know of the disk that they lie on.
pub struct Share {
    state: State,
    superblock: Superblock,
    segments: Segments,
    shards: Vec<Shard>,
    dirty: u64,
    heal: u64,
    started: u64,
    checkpoint: Option<Checkpoint>,
}

impl fmt::Debug for Share {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Share of a store that is {:?}", self.state)
    }
}

/// How many cores own shards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owners(u8);

impl Owners {
    /// The first core owns all.
    pub const ONE: Owners = Owners(1);

    /// The core that owns an account.
    #[inline]
    pub fn of(self, account: AccountId) -> CoreId {
        self.of_shard(account.shard())
    }

    /// How many they are: the first cores of the machine.
    pub fn count(self) -> u8 {
        self.0
    }

    fn of_shard(self, shard: ShardId) -> CoreId {
        CoreId(shard.0 % self.0)
    }

    /// The shards of `core`, a bit each.
    fn shards_of(self, core: CoreId) -> u64 {
        ShardId::all().filter(|shard| self.of_shard(*shard) == core).fold(0, |bits, shard| bits | 1 << shard.0)
    }
}

impl Store {
    /// A store that waits for its share of the shards: see [`Store::take_over`].
    pub fn guest(limits: Limits, seed: [u8; 32]) -> Store {
        Store::unopened(limits, None, seed, Role::Guest(Guest::default()), 1)
    }

    /// Gives away what other cores are to own, as soon as the store is open and nothing is under way: how many cores own something,
    /// and the shares of those but the first, in their order. To be called once, and before anything but accounts was asked for.
    pub fn share_out(&mut self, cores: u8) -> Option<(Owners, Vec<Box<Share>>)> {
        if !self.can_be_shared() {
            return None;
        }
        let owners = self.owners(cores);
        let mut shares: Vec<_> = (1..owners.0).map(|core| Box::new(self.share(owners, CoreId(core)))).collect();
        self.refresh();
        let left = self.segments.spare();
        shares.iter_mut().for_each(|share| share.segments.elsewhere = left);
        self.cleans = true;
        Some((owners, shares))
    }

    /// Owns these shards from now on.
    pub fn take_over(&mut self, share: Box<Share>) {
        let Share { state, superblock, segments, shards, dirty, heal, started, checkpoint } = *share;
        (self.superblock, self.segments, self.shards) = (superblock, segments, shards);
        (self.dirty, self.heal, self.checkpoint) = (dirty, heal, checkpoint);
        self.add_started(started);
        self.cleans = true;
        self.refresh();
        self.state = state;
    }

    fn can_be_shared(&self) -> bool {
        match self.state {
            State::Opening | State::Refused(_) => false,
            State::ReadOnly(_) => self.backing.is_idle(),
            State::Serving => {
                let is_checkpoint_over = self.checkpoint.as_ref().is_some_and(Checkpoint::is_at_end);
                self.is_without_group() && self.backing.is_idle() && !is_checkpoint_over
            }
        }
    }

    /// As many as keep from each other no more than half of the free space.
    fn owners(&self, cores: u8) -> Owners {
        let is_enough = |count: &u8| {
            let keeps = |core| Store::kept_from_others(self.reserve_for(Owners(*count).shards_of(CoreId(core))));
            2 * (0..*count).map(keeps).sum::<u32>() <= self.segments.free()
        };
        Owners((2..=cores).rev().find(is_enough).unwrap_or(1))
    }

    fn reserve_for(&self, shards: u64) -> u32 {
        let all = self.shards.iter().zip(0..SHARDS).filter(|(_, number)| shards >> number & 1 == 1);
        reserve_of(all.map(|(shard, _)| shard), self.segments.geometry)
    }

    fn share(&mut self, owners: Owners, core: CoreId) -> Share {
        let theirs = owners.shards_of(core);
        let is_theirs = |shard: ShardId| theirs >> shard.0 & 1 == 1;
        let free = Store::free_to_begin_with(self.reserve_for(theirs));
        let segments = self.segments.split_off(free, |owner| match owner {
            Owner::Journal(shard) | Owner::Body(shard) => is_theirs(shard),
            Owner::Free | Owner::Elsewhere => false,
        });
        let mut shards: Vec<Shard> = (0..SHARDS).map(|_| Shard::default()).collect();
        for (number, (theirs, ours)) in ShardId::all().zip(shards.iter_mut().zip(&mut self.shards)) {
            if is_theirs(number) {
                core::mem::swap(theirs, ours);
            }
        }
        let share = Share {
            state: self.state,
            superblock: self.superblock.clone(),
            segments,
            shards,
            dirty: self.dirty & theirs,
            heal: self.heal & theirs,
            started: self.take_started(theirs),
            checkpoint: self.checkpoint.take_if(|checkpoint| is_theirs(checkpoint.shard())),
        };
        (self.dirty, self.heal) = (self.dirty & !theirs, self.heal & !theirs);
        share
    }

    /// Counts anew what is known of the shards that are owned here.
    fn refresh(&mut self) {
        self.resident_bytes = self.shards.iter().map(|shard| shard.index.resident_bytes()).sum();
        self.refresh_reserve();
    }
}
