//! The disk owner and its clients: the stores of several cores, each with some of the shards, share
//! one disk. Section 12 of `docs/format.md`.
//!
//! A disk has one queue for this machine, so one core owns the disk. The store of that core is the
//! *disk owner*, and it opens the disk. The stores of other cores are *clients*. Each client takes
//! over its share of the shards. Then it gathers, writes and applies the changes of these shards
//! itself. A client sends requests ([`ClientRequest`]) to the disk owner: disk requests with their
//! buffers, roots for the superblock, and requests for segments. Each store requests its own
//! flushes. A flush answers all requests that arrived before it was queued.
//!
//! Invariants:
//! - At most one flush is in flight. When it was queued, the writes of all stores that it answers
//!   had completed.
//! - A superblock is written only when the version before it is durable. A request that needs the
//!   new version is answered only when that version is durable.
//! - After a flush or a superblock has failed, no flush succeeds until a retry (module `retry`).
//! - A segment that belongs to a client, free or not, belongs to no other store.

use crate::backing::{Backing, DiskPurpose, DiskQueue};
use crate::disk_requests::{ClientRequest, DiskRequestKind, NoticeKind, OwnerNotice};
use crate::hash::DiskRandom;
use crate::layout::{SegmentIndex, ShardId};
use crate::outcome::WhyReadOnly;
use crate::segments::Segments;
use crate::superblock::{Root, Superblock};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use machine::{CoreId, DiskCompletion, DiskError, DiskOperation, DiskToken};

/// The number of free segments, above its reserve, that a client keeps ready.
const AHEAD: u32 = 2;
/// A client with more free segments than this, above its reserve, gives some back.
const AHEAD_MAX: u32 = 3 * AHEAD;

/// The role of a store: disk owner or client.
pub(crate) enum StoreRole {
    DiskOwner(DiskOwner),
    Client(DiskClient),
}

/// The requester of a flush.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Requester {
    Own,
    Client(CoreId, DiskToken),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum SuperblockWrite {
    #[default]
    Idle,
    /// The number of superblock slots that are being written.
    Slots(u8),
    Flushing,
}

/// The disk owner's state: requests of its clients, and the flushes of all stores.
#[derive(Default)]
pub(crate) struct DiskOwner {
    superblock_write: SuperblockWrite,
    requesters: Vec<Requester>,
    covered: Vec<Requester>,
    superblock_due: bool,
    /// A version of the superblock was written, and its flush has not completed.
    is_version_unsure: bool,
    has_failed: bool,
    /// The notices for each other core, in the order of the cores.
    notices: Vec<VecDeque<OwnerNotice>>,
    /// Clients that wait for segments, because none were free.
    waiting: VecDeque<(CoreId, u32)>,
    /// Whether half of the disk is in use, according to the last notice to the clients.
    is_half_full: bool,
}

/// The state of a client.
#[derive(Default)]
pub(crate) struct DiskClient {
    requests: VecDeque<ClientRequest>,
    requested: SegmentRequest,
    /// Whether half of the disk is in use, according to the disk owner's last notice.
    is_half_full: bool,
}

/// Whether segments have been requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum SegmentRequest {
    #[default]
    No,
    Yes,
    /// The disk owner has no free segment, and will send segments later.
    NoneLeft,
}

/// A flush that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flushed {
    /// Whether the flush was also for this store's own group.
    pub(crate) is_for_own: bool,
    pub(crate) result: Result<(), WhyReadOnly>,
}

/// The values that are needed to write a superblock.
pub(crate) struct Slots<'a> {
    pub(crate) backing: &'a mut DiskQueue,
    pub(crate) superblock: &'a mut Superblock,
    pub(crate) random: &'a mut DiskRandom,
}

impl DiskOwner {
    /// `cores`: the number of cores, including this one.
    pub(crate) fn new(cores: u8) -> DiskOwner {
        DiskOwner { notices: (1..cores).map(|_| VecDeque::new()).collect(), ..DiskOwner::default() }
    }

    fn notify(&mut self, core: CoreId, kind: NoticeKind) {
        let notices = core.index().checked_sub(1).and_then(|index| self.notices.get_mut(index));
        let Some(notices) = notices else {
            unreachable!("a client that the disk owner does not have")
        };
        notices.push_back(OwnerNotice(kind));
    }

    /// Begins a flush for all stores that have requested one, unless a flush is in flight. If the
    /// disk has failed, the flush ends at once.
    fn flush_next(&mut self, slots: &mut Slots<'_>) -> Option<Flushed> {
        if self.superblock_write != SuperblockWrite::Idle || self.requesters.is_empty() {
            return None;
        }
        core::mem::swap(&mut self.requesters, &mut self.covered);
        if self.has_failed {
            return Some(self.flushed(Err(WhyReadOnly::FlushFailed)));
        }
        if core::mem::take(&mut self.superblock_due) {
            self.superblock_write = SuperblockWrite::Slots(2);
            self.write_superblock(slots);
        } else {
            self.superblock_write = SuperblockWrite::Flushing;
            slots.backing.flush();
        }
        None
    }

    fn write_superblock(&mut self, Slots { backing, superblock, random }: &mut Slots<'_>) {
        // A version that may have failed is replaced in its own slots, not in the slots of the
        // durable version before it.
        superblock.sequence += if self.is_version_unsure { 2 } else { 1 };
        self.is_version_unsure = true;
        let slots = superblock.geometry.slots();
        let stamp = random.number();
        for number in superblock.slot_numbers() {
            let Some(page) = slots.get(number) else { unreachable!("a slot above the last one") };
            backing.write(*page, superblock.emit(*page, stamp), DiskPurpose::Slot);
        }
    }

    fn slot_written(&mut self, ok: bool, slots: &mut Slots<'_>) -> Option<Flushed> {
        let SuperblockWrite::Slots(left) = self.superblock_write else {
            unreachable!("a slot of no superblock")
        };
        self.has_failed |= !ok;
        self.superblock_write = SuperblockWrite::Slots(left - 1);
        if left > 1 {
            return None;
        }
        if self.has_failed {
            return Some(self.flushed(Err(WhyReadOnly::WriteFailed)));
        }
        self.superblock_write = SuperblockWrite::Flushing;
        slots.backing.flush();
        None
    }

    /// Ends the flush in flight, and notifies the clients that requested it.
    fn flushed(&mut self, result: Result<(), WhyReadOnly>) -> Flushed {
        self.superblock_write = SuperblockWrite::Idle;
        let mut is_for_own = false;
        let mut covered = core::mem::take(&mut self.covered);
        for requester in covered.drain(..) {
            match requester {
                Requester::Own => is_for_own = true,
                Requester::Client(core, token) => {
                    let result = result.map_err(|_| DiskError::Failed);
                    let (operation, buffer) = (DiskOperation::Flush, Default::default());
                    self.notify(
                        core,
                        NoticeKind::Disk(DiskCompletion { token, operation, result, buffer }),
                    );
                }
            }
        }
        self.covered = covered;
        Flushed { is_for_own, result }
    }

    /// Lends a client up to `count` segments. If none is free, the client waits for the next free
    /// segments.
    fn lend_segments(
        &mut self,
        core: CoreId,
        count: u32,
        segments: &mut Segments,
        is_serving: bool,
    ) {
        // After a failure, the disk may have a group that no fence excludes yet. The group may name
        // a segment that is free in memory. So nothing is lent until the store serves again.
        let spare = if is_serving { segments.spare() } else { 0 };
        let granted: Vec<SegmentIndex> =
            (0..count.min(spare)).map_while(|_| segments.give_away()).collect();
        let left = spare - granted.len() as u32;
        if granted.is_empty() {
            self.waiting.push_back((core, count));
        }
        self.notify(core, NoticeKind::Segments(granted, left));
    }

    /// Gives free segments to the clients that wait for segments.
    fn lend_to_waiting(&mut self, segments: &mut Segments) {
        while !self.waiting.is_empty()
            && segments.spare() > 0
            && let Some((core, count)) = self.waiting.pop_front()
        {
            self.lend_segments(core, count, segments, true);
        }
    }

    /// Tells all clients when half of the disk becomes used, and when less than half is used again.
    fn tell_of_use(&mut self, segments: &Segments) {
        let is_half_full = segments.is_half_full();
        if is_half_full != self.is_half_full {
            self.is_half_full = is_half_full;
            let notice = || OwnerNotice(NoticeKind::HalfFull(is_half_full));
            self.notices.iter_mut().for_each(|notices| notices.push_back(notice()));
        }
    }
}

impl DiskClient {
    fn ask(&mut self, kind: DiskRequestKind) {
        self.requests.push_back(ClientRequest(kind));
    }

    /// Requests segments before they are needed, or gives back a segment that other cores may need.
    fn balance(&mut self, segments: &mut Segments) {
        let (free, reserve) = (segments.free(), segments.reserve());
        if free < reserve + AHEAD && self.requested == SegmentRequest::No {
            self.ask(DiskRequestKind::Segments(reserve + 2 * AHEAD - free));
            self.requested = SegmentRequest::Yes;
        }
        if free > reserve + AHEAD_MAX
            && let Some(segment) = segments.give_away()
        {
            self.ask(DiskRequestKind::Segment(segment));
        }
    }
}

impl StoreRole {
    /// Requests the flush of this store's group, after the writes of the group have completed.
    pub(crate) fn ask_for_flush(&mut self, slots: &mut Slots<'_>) -> Option<Flushed> {
        match self {
            StoreRole::DiskOwner(owner) => {
                owner.requesters.push(Requester::Own);
                owner.flush_next(slots)
            }
            StoreRole::Client(_) => {
                slots.backing.flush();
                None
            }
        }
    }

    /// Processes a client's request for a flush.
    pub(crate) fn flush_for(
        &mut self,
        core: CoreId,
        token: DiskToken,
        slots: &mut Slots<'_>,
    ) -> Option<Flushed> {
        let StoreRole::DiskOwner(owner) = self else {
            unreachable!("a flush requested from a client")
        };
        owner.requesters.push(Requester::Client(core, token));
        owner.flush_next(slots)
    }

    /// Begins the next requested flush, if no flush is in flight.
    pub(crate) fn flush_next(&mut self, slots: &mut Slots<'_>) -> Option<Flushed> {
        match self {
            StoreRole::DiskOwner(owner) => owner.flush_next(slots),
            StoreRole::Client(_) => None,
        }
    }

    pub(crate) fn slot_written(&mut self, ok: bool, slots: &mut Slots<'_>) -> Option<Flushed> {
        let StoreRole::DiskOwner(owner) = self else {
            unreachable!("a client that writes superblocks")
        };
        owner.slot_written(ok, slots)
    }

    pub(crate) fn disk_flushed(&mut self, ok: bool) -> Flushed {
        let result = if ok { Ok(()) } else { Err(WhyReadOnly::FlushFailed) };
        match self {
            StoreRole::DiskOwner(owner) => {
                owner.has_failed |= !ok;
                owner.is_version_unsure &= !ok;
                owner.flushed(result)
            }
            StoreRole::Client(_) => Flushed { is_for_own: true, result },
        }
    }

    /// Sends a notice to a client.
    pub(crate) fn notify(&mut self, core: CoreId, kind: NoticeKind) {
        let StoreRole::DiskOwner(owner) = self else { unreachable!("a notice from a client") };
        owner.notify(core, kind);
    }

    /// Sends a request to the disk owner.
    pub(crate) fn ask(&mut self, kind: DiskRequestKind) {
        let StoreRole::Client(client) = self else { unreachable!("the disk owner asks itself") };
        client.ask(kind);
    }

    /// Notes that a message was refused for lack of space. A client tells the disk owner, unless
    /// its last request that waits to be sent says so already.
    pub(crate) fn message_refused(&mut self, segments: &mut Segments) {
        match self {
            StoreRole::DiskOwner(_) => segments.message_refused(),
            StoreRole::Client(client) => {
                let last = client.requests.back();
                if !matches!(last, Some(ClientRequest(DiskRequestKind::MessageRefused))) {
                    client.ask(DiskRequestKind::MessageRefused);
                }
            }
        }
    }

    /// Makes the stores of all other cores read-only, because this store has become read-only.
    pub(crate) fn notify_of_failure(&mut self, why: WhyReadOnly) {
        match self {
            StoreRole::DiskOwner(owner) => {
                owner
                    .notices
                    .iter_mut()
                    .for_each(|notices| notices.push_back(OwnerNotice(NoticeKind::Failed(why))));
            }
            StoreRole::Client(client) => client.ask(DiskRequestKind::Failed(why)),
        }
    }

    /// Lets the disk owner flush again after a failure. Notifies the other cores.
    pub(crate) fn try_again(&mut self) {
        if let StoreRole::DiskOwner(owner) = self {
            owner.has_failed = false;
            owner
                .notices
                .iter_mut()
                .for_each(|notices| notices.push_back(OwnerNotice(NoticeKind::Retry)));
        }
    }

    /// Changes the root of a shard's journal. The next requested flush covers a superblock with the
    /// new root.
    pub(crate) fn root_changed(&mut self, superblock: &mut Superblock, shard: ShardId, root: Root) {
        superblock.set_root(shard, root);
        match self {
            StoreRole::DiskOwner(owner) => owner.superblock_due = true,
            StoreRole::Client(client) => client.ask(DiskRequestKind::Root(shard, root)),
        }
    }

    /// Makes the next flush cover a superblock, even without a new root.
    pub(crate) fn superblock_is_due(&mut self) {
        if let StoreRole::DiskOwner(owner) = self {
            owner.superblock_due = true;
        }
    }

    /// Whether this store may still get a segment. It must be a client, and the disk owner must not
    /// have answered that no segment is free.
    pub(crate) fn awaits_segments(&self) -> bool {
        matches!(self, StoreRole::Client(client) if client.requested != SegmentRequest::NoneLeft)
    }

    /// Ends a turn. A client requests or gives back segments. The disk owner lends free segments to
    /// the clients that wait.
    pub(crate) fn balance_segments(&mut self, segments: &mut Segments) {
        match self {
            StoreRole::DiskOwner(owner) => {
                owner.lend_to_waiting(segments);
                owner.tell_of_use(segments);
            }
            StoreRole::Client(client) => client.balance(segments),
        }
    }

    /// Processes a client's request for segments.
    pub(crate) fn lend_segments(
        &mut self,
        core: CoreId,
        count: u32,
        segments: &mut Segments,
        is_serving: bool,
    ) {
        let StoreRole::DiskOwner(owner) = self else {
            unreachable!("segments requested from a client")
        };
        owner.lend_segments(core, count, segments, is_serving);
    }

    /// Takes over the segments `granted` by the disk owner. `left`: the number of segments that the
    /// disk owner could still lend.
    pub(crate) fn segments_arrived(
        &mut self,
        granted: Vec<SegmentIndex>,
        left: u32,
        segments: &mut Segments,
    ) {
        let StoreRole::Client(client) = self else {
            unreachable!("segments given to the disk owner")
        };
        client.requested =
            if granted.is_empty() { SegmentRequest::NoneLeft } else { SegmentRequest::No };
        granted.into_iter().for_each(|segment| segments.take_back(segment));
        segments.set_elsewhere(left);
    }

    /// Handles the disk owner's notice whether half of the disk is in use.
    pub(crate) fn half_full_changed(&mut self, is_half_full: bool) {
        let StoreRole::Client(client) = self else {
            unreachable!("a disk owner that is told about its disk")
        };
        client.is_half_full = is_half_full;
    }

    /// Whether half of the disk's segments are in use by all cores together. Free segments of
    /// clients count as used.
    pub(crate) fn is_half_full(&self, segments: &Segments) -> bool {
        match self {
            StoreRole::DiskOwner(_) => segments.is_half_full(),
            StoreRole::Client(client) => client.is_half_full,
        }
    }

    /// Returns a completed read or write to the client, with the client's token.
    pub(crate) fn client_request_done(&mut self, core: CoreId, completion: DiskCompletion) {
        let StoreRole::DiskOwner(owner) = self else {
            unreachable!("a request completed by a client")
        };
        owner.notify(core, NoticeKind::Disk(completion));
    }

    /// The next notice for a client.
    pub(crate) fn next_owner_notice(&mut self, core: CoreId) -> Option<OwnerNotice> {
        let StoreRole::DiskOwner(owner) = self else { return None };
        owner.notices.get_mut(core.index().checked_sub(1)?)?.pop_front()
    }

    pub(crate) fn has_owner_notices(&self) -> bool {
        let StoreRole::DiskOwner(owner) = self else { return false };
        owner.notices.iter().any(|notices| !notices.is_empty())
    }

    /// The next request of this client to the disk owner.
    pub(crate) fn next_client_request(&mut self, backing: &mut DiskQueue) -> Option<ClientRequest> {
        let StoreRole::Client(client) = self else { return None };
        // Roots are sent first, because a flush must cover the roots that precede its request.
        client
            .requests
            .pop_front()
            .or_else(|| backing.next().map(|request| ClientRequest(DiskRequestKind::Disk(request))))
    }

    pub(crate) fn has_client_requests(&self, backing: &DiskQueue) -> bool {
        let StoreRole::Client(client) = self else { return false };
        !client.requests.is_empty() || backing.has_requests()
    }
}

/// The number of free segments that a new client with this reserve gets.
pub(crate) fn free_to_begin_with(reserve: u32) -> u32 {
    reserve + AHEAD
}

/// The most free segments that a client with this reserve keeps from other cores.
pub(crate) fn kept_from_others(reserve: u32) -> u32 {
    reserve + AHEAD_MAX
}
