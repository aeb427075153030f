//! The store: its parts, and what passes between it and the disk.
//!
//! Invariants:
//! - A change is gathered only while the state is [`State::Serving`].
//! - Every buffer that comes back goes to the pool it came from, and who waits for one is told.

use crate::backing::{DiskQueue, Parity, Purpose};
use crate::checkpoint::Checkpoint;
use crate::chunk::Summarize;
use crate::cleaning::Cleaner;
use crate::delivery::{Delivery, WantsRoom};
use crate::group::{Awaiting, Group, Pending};
use crate::hash::{Key, Random};
use crate::index::Index;
use crate::keeper::{Keeper, Role};
use crate::layout::{Geometry, PAGE_BYTES, PAGES_MIN, PIECE_PAGES, Page, SHARDS, SegmentIndex, ShardId};
use crate::opening::{Finding, Opening};
use crate::orders::Order;
use crate::outcome::{Outcome, Reason, Refusal, State, Wake, WhyReadOnly};
use crate::pool::Pool;
use crate::reading::Read;
use crate::replay::Dropped;
use crate::retry::{Mark, Retry};
use crate::segments::{Owner, Reason as Want, Segments, reserve_of};
use crate::superblock::Superblock;
use crate::types::{AccountId, Limits, Uid};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use machine::{Disk, DiskCompletion, DiskRequest};
use tasks::{Continuation, FrameId, FrameTable};

/// What is remembered of a shard's journal to write on in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Journal {
    /// Its segments since the root, oldest first.
    pub(crate) chain: Vec<SegmentIndex>,
    /// The place of the next block in the last of them.
    pub(crate) place: u32,
    pub(crate) sequence: u64,
    pub(crate) previous: u64,
    /// Blocks since the root.
    pub(crate) blocks: u32,
    /// The next block goes into a new segment whatever room there is.
    pub(crate) fresh_segment: bool,
    /// Nothing that an earlier life left on the disk can continue it.
    pub(crate) fenced: bool,
}

/// The segment that a shard's bodies go to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    segment: SegmentIndex,
    used: u32,
}

#[derive(Default)]
pub(crate) struct Shard {
    pub(crate) index: Index,
    pub(crate) journal: Option<Journal>,
    pub(crate) head: Option<Head>,
    /// Records for the next group, and who waits for them.
    pub(crate) gathered: Vec<u8>,
    pub(crate) pending: Vec<Pending>,
    /// Changes that are to become records when the next group is made.
    pub(crate) orders: VecDeque<Order>,
    /// Where the journal was durable, while more of it is in flight.
    pub(crate) mark: Option<Mark>,
    /// Messages that opening found torn, until it is durable that they are gone.
    pub(crate) dropped: Vec<Dropped>,
}

/// The disk's space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// Bytes of the whole store.
    pub bytes: u64,
    /// Bytes of segments that nothing lives in.
    pub free_bytes: u64,
    /// Bytes of pages that hold bodies of messages.
    pub body_bytes: u64,
    /// Bytes of segments that hold journals.
    pub journal_bytes: u64,
    /// Free bytes that are kept for deletions, checkpoints and compaction.
    pub reserve_bytes: u64,
}

/// How large a body is likely to find space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    pages: u32,
}

impl Room {
    /// Not even an empty body finds space.
    pub const NONE: Room = Room { pages: 0 };

    /// Whether a body of `octets` is likely to find space.
    pub fn holds(self, octets: u64) -> bool {
        octets.div_ceil(PAGE_BYTES as u64) + octets / (PAGE_BYTES as u64 * 64) < u64::from(self.pages)
    }
}

/// The store. See the crate's documentation.
pub struct Store {
    pub(crate) state: State,
    pub(crate) retry: Retry,
    pub(crate) limits: Limits,
    pub(crate) summarize: Summarize,
    pub(crate) random: Random,
    pub(crate) role: Role,
    pub(crate) backing: DiskQueue,
    pub(crate) pool: Pool,
    pub(crate) superblock: Superblock,
    /// The next group's flush is to cover a superblock.
    pub(crate) superblock_due: bool,
    pub(crate) segments: Segments,
    pub(crate) shards: Vec<Shard>,
    pub(crate) directory: BTreeMap<Box<str>, AccountId>,
    pub(crate) deliveries: FrameTable<Box<Delivery>>,
    #[expect(clippy::vec_box, reason = "a delivery is handed on as a pointer, not copied")]
    pub(crate) idle_deliveries: Vec<Box<Delivery>>,
    /// Deliveries whose last chunks and records are to be gathered.
    pub(crate) ready: VecDeque<FrameId>,
    /// Deliveries that wait for a buffer.
    pub(crate) wants_room: WantsRoom,
    pub(crate) reads: FrameTable<Read>,
    pub(crate) waiting_reads: VecDeque<FrameId>,
    /// Bodies that were handed out and not given back.
    pub(crate) bodies_lent: usize,
    pub(crate) gathering: Parity,
    /// Writes in flight that the even and the odd group's flush must cover.
    pub(crate) writes: [u32; 2],
    pub(crate) group: Group,
    /// The shards that have something gathered, a bit each.
    pub(crate) dirty: u64,
    /// The shards of which something has changed since somebody asked, a bit each.
    pub(crate) changed: u64,
    /// What has come into outboxes since somebody asked.
    pub(crate) posted: Vec<(AccountId, Uid)>,
    /// The shards whose journal holds a damaged copy or segments that are wanted elsewhere, a bit each: a checkpoint leaves them behind.
    pub(crate) heal: u64,
    pub(crate) resident_bytes: u64,
    /// What the next group's flush is waited for by.
    pub(crate) awaiting: Vec<Awaiting>,
    /// Segments to be free once the next superblock is durable.
    pub(crate) released_by_superblock: Vec<SegmentIndex>,
    pub(crate) checkpoint: Option<Checkpoint>,
    pub(crate) cleaner: Cleaner,
    /// Not before it is known who owns which shard.
    pub(crate) cleans: bool,
    pub(crate) wakes: VecDeque<Wake>,
    pub(crate) opening: Option<Box<Opening>>,
    pub(crate) findings: Vec<Finding>,
    /// The disk was blank, and was formatted.
    pub(crate) is_new: bool,
}

impl Store {
    /// A store on `disk`, which starts to open it: see [`Store::state`]. `seed`: 32 bytes from a cryptographic generator,
    /// never the same twice.
    pub fn new(limits: Limits, disk: Disk, seed: [u8; 32]) -> Store {
        Store::keeper(limits, disk, seed, 1)
    }

    /// The same for one of several `cores`, which is to share out what it opens: see [`Store::share_out`].
    pub fn keeper(limits: Limits, disk: Disk, seed: [u8; 32], cores: u8) -> Store {
        let mut store = Store::unopened(limits, Some(disk), seed, Role::Keeper(Keeper::new(cores)), cores);
        match (disk.durable, store.segments.geometry.checked()) {
            (false, _) => store.state = State::Refused(Reason::NotDurable),
            (_, None) => store.state = State::Refused(Reason::TooSmall),
            _ => store.begin_opening(disk.sectors, false),
        }
        store
    }

    /// The same for a disk that is only looked at.
    pub(crate) fn inspect(limits: Limits, sectors: u64) -> Store {
        let role = Role::Keeper(Keeper::new(1));
        let mut store = Store::unopened(limits, Some(Disk { sectors, durable: true }), [0; 32], role, 1);
        match store.segments.geometry.checked() {
            None => store.state = State::Refused(Reason::TooSmall),
            _ => store.begin_opening(sectors, true),
        }
        store
    }

    /// `cores`: for how many it passes on requests, itself included.
    pub(crate) fn unopened(limits: Limits, disk: Option<Disk>, seed: [u8; 32], role: Role, cores: u8) -> Store {
        let mut random = Random::new(seed);
        let none = Geometry { pages: PAGES_MIN - 1, segment_pages: 16 };
        let geometry = disk.and_then(|disk| Geometry::for_disk(disk.sectors)).unwrap_or(none);
        let pages = limits.deliveries + limits.reads + 16;
        let pool = Pool::new(pages, limits.buffer_bytes);
        let runs = limits.buffer_bytes.max(PIECE_PAGES as usize * 8 * PAGE_BYTES) / (2 * PAGE_BYTES);
        let requests = pages + runs + SHARDS * (crate::block::GROUP_BLOCKS_MAX as usize + 2) + 128;
        Store {
            state: State::Opening,
            retry: Retry::No,
            limits,
            summarize: |_, _| (0, 0),
            superblock: Superblock {
                sequence: 0,
                id: random.bytes(),
                key: Key::new(random.bytes()),
                geometry,
                roots: [None; SHARDS],
            },
            random,
            role,
            backing: DiskQueue::new(requests * usize::from(cores)),
            pool,
            superblock_due: false,
            segments: Segments::new(geometry),
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            directory: BTreeMap::new(),
            deliveries: FrameTable::with_capacity(limits.deliveries),
            idle_deliveries: Vec::with_capacity(limits.deliveries),
            ready: VecDeque::with_capacity(limits.deliveries),
            wants_room: WantsRoom::with_capacity(limits.deliveries),
            reads: FrameTable::with_capacity(limits.reads),
            waiting_reads: VecDeque::with_capacity(limits.reads),
            bodies_lent: 0,
            gathering: Parity::Even,
            writes: [0; 2],
            group: Group::default(),
            dirty: 0,
            changed: 0,
            posted: Vec::new(),
            heal: 0,
            resident_bytes: 0,
            awaiting: Vec::new(),
            released_by_superblock: Vec::new(),
            checkpoint: None,
            cleaner: Cleaner::new(),
            cleans: cores == 1,
            wakes: VecDeque::new(),
            opening: None,
            findings: Vec::new(),
            is_new: false,
        }
    }

    /// Messages that are delivered from now on are summarized like this; before they have empty summaries, and are conversations by themselves.
    pub fn summarize_with(&mut self, summarize: Summarize) {
        self.summarize = summarize;
    }

    /// What the store is doing.
    pub fn state(&self) -> State {
        self.state
    }

    /// A secret that this disk alone knows, for `purpose`; the same each time the disk is opened. Without meaning before it is.
    pub fn secret(&self, purpose: &[u8]) -> [u8; 16] {
        self.superblock.key.hash_name(purpose).0
    }

    /// What opening found damaged.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Whether the disk was blank when it was opened, and was formatted.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The disk's space, counted over all segments.
    pub fn space(&self) -> Space {
        let segment_bytes = u64::from(self.segments.geometry.segment_pages) * PAGE_BYTES as u64;
        let count = |wanted: fn(Owner) -> bool| u64::from(self.segments.count(wanted));
        Space {
            bytes: self.disk_bytes(),
            free_bytes: count(|owner| owner == Owner::Free) * segment_bytes,
            body_bytes: self.segments.live_pages() * PAGE_BYTES as u64,
            journal_bytes: count(|owner| matches!(owner, Owner::Journal(_))) * segment_bytes,
            reserve_bytes: u64::from(self.segments.reserve) * segment_bytes,
        }
    }

    /// Bytes of the whole store, used or not.
    pub fn disk_bytes(&self) -> u64 {
        u64::from(self.segments.geometry.pages) * PAGE_BYTES as u64
    }

    /// Whether half of the disk is in use.
    pub fn is_half_full(&self) -> bool {
        self.segments.is_half_full()
    }

    /// The room for one more body: for a polite refusal before it is sent.
    pub fn room(&self) -> Room {
        let segments = (self.segments.free() + self.segments.elsewhere).saturating_sub(self.segments.reserve);
        let pages = segments * (self.segments.geometry.segment_pages - PIECE_PAGES);
        if self.index_is_full() { Room::NONE } else { Room { pages } }
    }

    /// The end of a turn: what was gathered becomes a group, if none is in flight.
    pub fn turn_ended(&mut self) {
        self.retry_if_settled();
        if self.state != State::Serving {
            return;
        }
        self.gather_ready();
        self.clean();
        self.seal();
        self.balance_segments();
    }

    /// Whether everything asked for has ended, and is on the disk or refused.
    pub fn is_at_rest(&self) -> bool {
        self.dirty == 0 && self.deliveries.is_empty() && self.reads.is_empty() && self.backing.is_idle()
    }

    /// Whether a delivery or a read waits for a buffer.
    pub fn is_short_of_buffers(&self) -> bool {
        !self.waiting_reads.is_empty() || !self.wants_room.is_empty()
    }

    /// Messages on their way to the disk, those included that were given up while a part of them is being written.
    pub fn deliveries_under_way(&self) -> usize {
        self.deliveries.len()
    }

    /// Reads of bodies that were asked for and have not ended, and bodies that were not given back.
    pub fn reads_under_way(&self) -> usize {
        self.reads.len() + self.bodies_lent
    }

    /// The next request for the machine's disk.
    pub fn next_request(&mut self) -> Option<DiskRequest> {
        self.backing.next()
    }

    /// Takes back a request that the machine had no room for; it comes again first.
    pub fn request_refused(&mut self, request: DiskRequest) {
        self.backing.refused(request);
    }

    /// Whether there is a [`Store::next_wake`].
    pub fn has_wakes(&self) -> bool {
        !self.wakes.is_empty()
    }

    /// The next end of something that was asked for.
    pub fn next_wake(&mut self) -> Option<Wake> {
        self.wakes.pop_front()
    }

    /// A request has completed.
    pub fn disk_completed(&mut self, completion: DiskCompletion) {
        let Some(purpose) = self.backing.completed(completion.token) else { return };
        let (ok, buffer) = (completion.result.is_ok(), completion.buffer);
        match purpose {
            Purpose::Chunk { delivery, group } => {
                self.give(buffer);
                self.chunk_written(delivery, ok);
                self.written(group);
            }
            Purpose::Block { number } => self.block_written(number, ok, buffer),
            Purpose::Fixed { group } => {
                if !ok {
                    self.fail(WhyReadOnly::WriteFailed);
                }
                self.written(group);
            }
            Purpose::Flush if self.opening.is_some() => self.opening_flushed(ok),
            Purpose::Flush => self.disk_flushed(ok),
            Purpose::Slot => self.slot_written(ok),
            Purpose::Body(read) => self.body_read(read, ok, buffer),
            Purpose::Victim => self.victim_read(ok, buffer),
            Purpose::Moved { number } => {
                self.give(buffer);
                self.move_written(number, ok);
            }
            Purpose::Piece { lane, page } => self.piece_read(lane, page, ok, buffer),
            Purpose::Proof => self.proof_read(ok),
            Purpose::Format => self.format_written(ok),
            Purpose::Errand { core, token } => {
                self.errand_done(core, DiskCompletion { token, buffer, ..completion });
            }
        }
    }

    pub(crate) fn wake(&mut self, continuation: Continuation, outcome: Outcome) {
        self.wakes.push_back(Wake { continuation, outcome });
    }

    /// Gives a buffer back to the pool, and lets go on who waits for one.
    pub(crate) fn give(&mut self, buffer: Box<[u8]>) {
        self.pool.give(buffer);
        while let Some(read) = self.waiting_reads.front().copied() {
            if !self.start_read(read) {
                break;
            }
            self.waiting_reads.pop_front();
        }
        self.offer_room();
    }

    pub(crate) fn shard(&self, shard: ShardId) -> Option<&Shard> {
        self.shards.get(shard.index())
    }

    pub(crate) fn shard_mut(&mut self, shard: ShardId) -> Option<&mut Shard> {
        self.shards.get_mut(shard.index())
    }

    pub(crate) fn check_serving(&self) -> Result<(), Refusal> {
        match self.state {
            State::Serving => Ok(()),
            State::ReadOnly(_) => Err(Refusal::ReadOnly),
            State::Opening | State::Refused(_) => Err(Refusal::NotServing),
        }
    }

    pub(crate) fn index_is_full(&self) -> bool {
        self.resident_bytes >= self.limits.resident_bytes
    }

    /// Pages for a chunk at the shard's head, pinned until [`Segments::unpin`].
    pub(crate) fn allocate(&mut self, shard: ShardId, pages: u32, want: Want) -> Option<Page> {
        let segments = &mut self.segments;
        let geometry = segments.geometry;
        let known = self.shards.get_mut(shard.index())?;
        if known.head.is_none_or(|head| head.used + pages > geometry.segment_pages) {
            let Some(segment) = segments.take(Owner::Body(shard), want) else {
                self.shorten_journals();
                return None;
            };
            if let Some(full) = known.head.replace(Head { segment, used: 0 }) {
                segments.close(full.segment);
            }
        }
        let head = known.head.as_mut()?;
        let page = geometry.first_page(head.segment).plus(head.used);
        head.used += pages;
        segments.pin(page, pages);
        Some(page)
    }

    /// Counts anew how many free segments deliveries must leave alone: section 8 of `docs/format.md`.
    pub(crate) fn refresh_reserve(&mut self) {
        self.segments.reserve = reserve_of(self.shards.iter(), self.segments.geometry);
    }
}
