//! Sharing the shards among several cores: the disk owner opens the disk, and hands each other core
//! its share.
//!
//! Core s mod n owns shard s, where n is the number of cores that own shards. This number is
//! decided each time the disk is opened, and is not recorded on the disk. If all cores owned
//! shards, they might keep more than half of the free space from each other. In this case fewer
//! cores own shards.
//!
//! Invariants:
//! - Shards are handed over with all their state, and only while no operation is in progress.
//! - Every segment belongs to the disk owner or to one client. A segment in use belongs to the
//!   owner of its shard.

use crate::backing::DiskPurpose;
use crate::capacity::CoreUse;
use crate::checkpoint::Checkpointer;
use crate::disk_owner::{self, DiskClient, StoreRole};
use crate::disk_requests::{ClientRequest, DiskRequestKind, NoticeKind, OwnerNotice};
use crate::index::Index;
use crate::index_shares::{IndexBorrower, IndexLender, IndexShare, IndexWish};
use crate::journals::Journals;
use crate::layout::ShardId;
use crate::outcome::State;
use crate::parts::StoreParts;
use crate::segments::Segments;
use crate::shards::{PerShard, ShardSet};
use crate::store::{Store, slots};
use crate::superblock::Superblock;
use crate::types::{AccountId, Limits};
use crate::writing::refresh_reserve;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use machine::{CoreId, DiskOperation, DiskRequest};

/// The shards of one core, and the state of the disk that the core needs for them.
pub struct Share {
    state: State,
    superblock: Superblock,
    segments: Segments,
    indexes: PerShard<Index>,
    /// The initial limit of the bytes of these indexes.
    index_bytes_max: u64,
    journals: Journals,
    started: ShardSet,
    checkpointer: Checkpointer,
}

impl fmt::Debug for Share {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Share of a store that is {:?}", self.state)
    }
}

/// The number of cores that own shards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owners(u8);

impl Owners {
    /// The first core owns all shards.
    pub const ONE: Owners = Owners(1);

    /// The core that owns an account.
    #[inline]
    pub fn of(self, account: AccountId) -> CoreId {
        self.of_shard(account.shard())
    }

    /// The number of owners. The owners are the first cores of the machine.
    pub fn count(self) -> u8 {
        self.0
    }

    fn of_shard(self, shard: ShardId) -> CoreId {
        CoreId(shard.0 % self.0)
    }

    /// The shards of `core`.
    pub(crate) fn shards_of(self, core: CoreId) -> ShardSet {
        ShardId::all().filter(|shard| self.of_shard(*shard) == core).collect()
    }
}

impl Store {
    /// A store that waits for its share of the shards: see [`Store::take_over`].
    pub fn client(limits: Limits, seed: [u8; 32]) -> Store {
        Store::unopened(limits, None, seed, StoreRole::Client(DiskClient::default()), 1)
    }

    /// Gives the other cores their shares. Returns the owners, and the shares of all owners but the
    /// first, in the order of the cores. `None`: the store is not open yet, or an operation is in
    /// progress. Must be called until it succeeds once, before any operation except on accounts.
    pub fn share_out(&mut self, cores: u8) -> Option<(Owners, Vec<Box<Share>>)> {
        if !self.can_be_shared() {
            return None;
        }
        let owners = owners(cores, &self.parts);
        let state = self.state();
        let mut shares = Vec::new();
        for core in (1..owners.0).map(CoreId) {
            let theirs = owners.shards_of(core);
            let (parts, checkpointer) = (&mut self.parts, &mut self.checkpointer);
            shares.push(Box::new(share((core, theirs), state, parts, checkpointer)));
        }
        refresh_reserve(&mut self.parts);
        let left = self.parts.segments.spare();
        shares.iter_mut().for_each(|share| share.segments.set_elsewhere(left));
        self.cleaner.turn_on();
        Some((owners, shares))
    }

    /// Takes over the shards of `share`.
    pub fn take_over(&mut self, share: Box<Share>) {
        let Share { state, superblock, segments, indexes, journals, .. } = *share;
        let Share { index_bytes_max, started, checkpointer, .. } = *share;
        let parts = &mut self.parts;
        (parts.superblock, parts.segments, parts.journals) = (superblock, segments, journals);
        parts.indexes.take_over(indexes);
        parts.indexes.set_resident_bytes_max(index_bytes_max);
        parts.commit.take_over_started(started);
        refresh_reserve(parts);
        self.checkpointer = checkpointer;
        self.cleaner.turn_on();
        self.condition.has_opened(state);
    }

    fn can_be_shared(&self) -> bool {
        match self.state() {
            State::Opening | State::Refused(_) => false,
            State::ReadOnly(_) => self.parts.backing.is_idle(),
            State::Serving => {
                let is_without_group =
                    self.parts.commit.is_idle() && !self.parts.commit.has_to_seal();
                is_without_group && self.parts.backing.is_idle() && !self.checkpointer.is_at_end()
            }
        }
    }

    /// Processes a request that a client core has sent to this disk owner.
    pub fn client_request_arrived(&mut self, from: CoreId, ClientRequest(kind): ClientRequest) {
        let is_serving = self.state() == State::Serving;
        let parts = &mut self.parts;
        match kind {
            DiskRequestKind::Disk(request) if request.operation == DiskOperation::Flush => {
                let (role, mut slots) = slots(parts);
                let ended = role.flush_for(from, request.token, &mut slots);
                self.flush_ended(ended);
            }
            DiskRequestKind::Disk(DiskRequest { token, operation, sector, buffer }) => {
                parts.backing.push(
                    operation,
                    sector,
                    buffer,
                    DiskPurpose::ForClient { core: from, token },
                );
            }
            DiskRequestKind::Root(shard, root) => {
                parts.role.root_changed(&mut parts.superblock, shard, root)
            }
            DiskRequestKind::Segments(count) => {
                parts.role.lend_segments(from, count, &mut parts.segments, is_serving)
            }
            DiskRequestKind::Segment(segment) => parts.segments.take_back(segment),
            DiskRequestKind::IndexBytes(wanted) => {
                let bytes = lender(&mut parts.index_share).requested(
                    from,
                    wanted,
                    parts.indexes.resident_bytes(),
                );
                parts.role.notify(from, NoticeKind::IndexBytes(bytes));
            }
            DiskRequestKind::IndexBytesBack(bytes) => {
                lender(&mut parts.index_share).returned(from, bytes)
            }
            DiskRequestKind::MessageRefused => parts.segments.message_refused(),
            DiskRequestKind::Use(core_use) => {
                lender(&mut parts.index_share).uses().reported(from, core_use)
            }
            DiskRequestKind::Failed(why) => self.fail(why),
        }
        self.serve_waiting();
    }

    /// The next notice for a client core.
    pub fn next_owner_notice(&mut self, core: CoreId) -> Option<OwnerNotice> {
        self.parts.role.next_owner_notice(core)
    }

    /// Whether [`Store::next_owner_notice`] has a notice to return for any core.
    pub fn has_owner_notices(&self) -> bool {
        self.parts.role.has_owner_notices()
    }

    /// The next request of this client core to the disk owner.
    pub fn next_client_request(&mut self) -> Option<ClientRequest> {
        let parts = &mut self.parts;
        parts.role.next_client_request(&mut parts.backing)
    }

    /// Whether [`Store::next_client_request`] has a request to return.
    pub fn has_client_requests(&self) -> bool {
        self.parts.role.has_client_requests(&self.parts.backing)
    }

    /// Processes a notice of the disk owner.
    pub fn owner_notice_arrived(&mut self, OwnerNotice(kind): OwnerNotice) {
        match kind {
            NoticeKind::Disk(completion) => self.disk_completed(completion),
            NoticeKind::Failed(why) => self.fail(why),
            NoticeKind::Retry => self.condition.request_retry(),
            NoticeKind::IndexBytes(bytes) => {
                let StoreParts { index_share, indexes, .. } = &mut self.parts;
                borrower(index_share).answered(bytes);
                indexes.set_resident_bytes_max(indexes.resident_bytes_max() + bytes);
            }
            NoticeKind::HalfFull(is_half_full) => self.parts.role.half_full_changed(is_half_full),
            NoticeKind::Segments(granted, left) => {
                let StoreParts { role, segments, wakes, .. } = &mut self.parts;
                role.segments_arrived(granted, left, segments);
                self.deliveries.retry_for_segments(wakes);
            }
        }
        self.serve_waiting();
    }
}

/// The largest number of cores that keep at most half of the free space from each other.
fn owners(cores: u8, parts: &StoreParts) -> Owners {
    let is_enough = |count: &u8| {
        let keeps = |core| {
            disk_owner::kept_from_others(reserve_for(Owners(*count).shards_of(CoreId(core)), parts))
        };
        2 * (0..*count).map(keeps).sum::<u32>() <= parts.segments.free()
    };
    Owners((2..=cores).rev().find(is_enough).unwrap_or(1))
}

fn reserve_for(shards: ShardSet, parts: &StoreParts) -> u32 {
    parts.journals.reserve_of(shards, &parts.indexes, parts.segments.geometry())
}

/// Ends a turn: moves free segments and parts of the index limit between the cores.
pub(super) fn balance(parts: &mut StoreParts) {
    let StoreParts { role, segments, indexes, index_share, .. } = parts;
    role.balance_segments(segments);
    segments.turn_ended();
    let (resident, limit) = (indexes.resident_bytes(), indexes.resident_bytes_max());
    match index_share {
        IndexShare::Lender(lender) => {
            while let Some((core, bytes)) = lender.next_served(resident) {
                role.notify(core, NoticeKind::IndexBytes(bytes));
            }
            indexes.set_resident_bytes_max(lender.own_limit());
        }
        IndexShare::Borrower(borrower) => {
            match borrower.wish(resident, limit) {
                Some(IndexWish::Borrow(bytes)) => role.ask(DiskRequestKind::IndexBytes(bytes)),
                Some(IndexWish::GiveBack(bytes)) => {
                    indexes.set_resident_bytes_max(limit - bytes);
                    role.ask(DiskRequestKind::IndexBytesBack(bytes));
                }
                None => {}
            }
            let own = CoreUse::new(segments, resident, indexes.are_full());
            if let Some(news) = borrower.news(own, segments.pages()) {
                role.ask(DiskRequestKind::Use(news));
            }
        }
    }
}

fn lender(share: &mut IndexShare) -> &mut IndexLender {
    match share {
        IndexShare::Lender(lender) => lender,
        IndexShare::Borrower(_) => unreachable!("a request to a client"),
    }
}

fn borrower(share: &mut IndexShare) -> &mut IndexBorrower {
    match share {
        IndexShare::Borrower(borrower) => borrower,
        IndexShare::Lender(_) => unreachable!("a notice to the disk owner"),
    }
}

fn share(
    (core, theirs): (CoreId, ShardSet),
    state: State,
    parts: &mut StoreParts,
    checkpointer: &mut Checkpointer,
) -> Share {
    let free = disk_owner::free_to_begin_with(reserve_for(theirs, parts));
    let segments = parts.segments.split_off(free, theirs);
    let indexes = parts.indexes.split_off(theirs);
    let resident = theirs.iter().map(|shard| indexes.of(shard).resident_bytes()).sum();
    let left = parts.indexes.resident_bytes();
    let lender = lender(&mut parts.index_share);
    lender.uses().reported(core, CoreUse::new(&segments, resident, false));
    Share {
        state,
        superblock: parts.superblock.clone(),
        segments,
        indexes,
        index_bytes_max: lender.lend_first(core, resident, left),
        journals: parts.journals.split_off(theirs),
        started: parts.commit.split_started(theirs),
        checkpointer: checkpointer.split_off(theirs),
    }
}
