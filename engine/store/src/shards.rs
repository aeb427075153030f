//! Values for each shard, and sets of shards.
//!
//! Invariant: there is a value for every [`ShardId`].

use crate::layout::{SHARDS, ShardId};
use alloc::vec::Vec;

/// A value for each shard.
#[derive(Debug)]
pub(crate) struct PerShard<T>(Vec<T>);

impl<T> PerShard<T> {
    pub(crate) fn new(make: impl FnMut(ShardId) -> T) -> PerShard<T> {
        PerShard(ShardId::all().map(make).collect())
    }

    #[inline]
    pub(crate) fn of(&self, shard: ShardId) -> &T {
        match self.0.get(shard.index()) {
            Some(value) => value,
            None => unreachable!("a shard above the last one"),
        }
    }

    #[inline]
    pub(crate) fn of_mut(&mut self, shard: ShardId) -> &mut T {
        match self.0.get_mut(shard.index()) {
            Some(value) => value,
            None => unreachable!("a shard above the last one"),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ShardId, &T)> {
        ShardId::all().zip(&self.0)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (ShardId, &mut T)> {
        ShardId::all().zip(&mut self.0)
    }
}

/// A set of shards.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct ShardSet(u64);

const _: () = assert!(SHARDS == u64::BITS as usize, "a bit for each shard");

impl ShardSet {
    pub(crate) const EMPTY: ShardSet = ShardSet(0);

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(crate) fn has(self, shard: ShardId) -> bool {
        self.0 >> shard.0 & 1 == 1
    }

    #[inline]
    pub(crate) fn insert(&mut self, shard: ShardId) {
        self.0 |= 1 << shard.0;
    }

    #[inline]
    pub(crate) fn remove(&mut self, shard: ShardId) {
        self.0 &= !(1 << shard.0);
    }

    /// The shards of either set.
    #[inline]
    pub(crate) fn or(self, other: ShardSet) -> ShardSet {
        ShardSet(self.0 | other.0)
    }

    /// Removes the shards that are also in the other set, and returns them.
    pub(crate) fn split_off(&mut self, other: ShardSet) -> ShardSet {
        let taken = self.0 & other.0;
        self.0 &= !taken;
        ShardSet(taken)
    }

    /// The shards of the set, ascending.
    #[inline]
    pub(crate) fn iter(self) -> impl Iterator<Item = ShardId> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let lowest = ShardId(left.trailing_zeros() as u8);
            (left != 0).then(|| {
                left &= left - 1;
                lowest
            })
        })
    }
}

impl FromIterator<ShardId> for ShardSet {
    fn from_iter<T: IntoIterator<Item = ShardId>>(shards: T) -> ShardSet {
        let mut set = ShardSet::EMPTY;
        shards.into_iter().for_each(|shard| set.insert(shard));
        set
    }
}
