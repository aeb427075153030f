//! Several cores with shards of their own, and one of them that keeps the disk. Section 12 of `docs/format.md`.
//!
//! A disk has one queue for us, so one core has it: its store is the *keeper*, which opens the disk. The stores of other cores are
//! *guests*: each takes over its share of the shards, and from then on gathers, writes and applies what concerns them as the keeper
//! does for its own. What a guest needs of the disk are [`Errand`]s to the keeper: requests, which carry their buffers, roots for the
//! superblock, and segments. A flush is asked for by each, and one is for everybody who has asked before it was queued.
//!
//! Invariants:
//! - At most one flush is in flight, and it was queued after all writes of those whom it answers had completed.
//! - A superblock is written when the version before is durable, and nobody is answered before it is durable too.
//! - Once a flush or a superblock has failed, nobody's flush succeeds before a retry: see `retry`.
//! - A segment that a guest has, free or not, is nobody else's.

use crate::backing::{Backing, DiskQueue, Purpose};
use crate::hash::Random;
use crate::layout::{SegmentIndex, ShardId};
use crate::outcome::WhyReadOnly;
use crate::segments::Segments;
use crate::superblock::{Root, Superblock};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use machine::{CoreId, DiskCompletion, DiskError, DiskOperation, DiskRequest, DiskToken};

/// Free segments that a guest likes to have above its reserve.
const AHEAD: u32 = 2;
/// Those above which it gives some back.
const AHEAD_MAX: u32 = 3 * AHEAD;

/// What a guest wants of the keeper. It is carried there in the order in which it was asked for.
#[derive(Debug)]
pub struct Errand(pub(crate) Wanted);

/// What the keeper tells a guest.
#[derive(Debug)]
pub struct Answer(pub(crate) Told);

#[derive(Debug)]
pub(crate) enum Wanted {
    Disk(DiskRequest),
    Root(ShardId, Root),
    /// So many segments are wanted.
    Segments(u32),
    /// One comes back.
    Segment(SegmentIndex),
    Failed(WhyReadOnly),
}

#[derive(Debug)]
pub(crate) enum Told {
    Disk(DiskCompletion),
    /// These are the guest's from now on; the keeper has so many more.
    Segments(Vec<SegmentIndex>, u32),
    Failed(WhyReadOnly),
    /// The disk is tried again.
    Retry,
}

/// What a store is to the disk.
pub(crate) enum Role {
    Keeper(Keeper),
    Guest(Guest),
}

/// Who waits for a flush.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asker {
    Own,
    Guest(CoreId, DiskToken),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Flight {
    #[default]
    Idle,
    /// So many slots of the superblock are being written.
    Slots(u8),
    Flushing,
}

/// The keeper's business with its guests, and with the flushes of all.
#[derive(Default)]
pub(crate) struct Keeper {
    flight: Flight,
    asking: Vec<Asker>,
    covered: Vec<Asker>,
    superblock_due: bool,
    /// A version of the superblock was written, and its flush has not completed.
    is_version_unsure: bool,
    has_failed: bool,
    /// One for each other core, in their order.
    answers: Vec<VecDeque<Answer>>,
    /// Who wants segments of which there are none.
    hungry: VecDeque<(CoreId, u32)>,
}

/// A guest's business with the keeper.
#[derive(Default)]
pub(crate) struct Guest {
    errands: VecDeque<Errand>,
    asked: Asked,
}

/// Whether segments were asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Asked {
    #[default]
    No,
    Yes,
    /// There are none; the keeper remembers.
    NoneLeft,
}

/// A flush that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flushed {
    /// It was for this store's own group, too.
    pub(crate) is_for_own: bool,
    pub(crate) result: Result<(), WhyReadOnly>,
}

/// What superblocks are written with.
pub(crate) struct Slots<'a> {
    pub(crate) backing: &'a mut DiskQueue,
    pub(crate) superblock: &'a mut Superblock,
    pub(crate) random: &'a mut Random,
}

impl Keeper {
    /// `cores`: how many there are, this one included.
    pub(crate) fn new(cores: u8) -> Keeper {
        Keeper { answers: (1..cores).map(|_| VecDeque::new()).collect(), ..Keeper::default() }
    }

    fn tell(&mut self, core: CoreId, told: Told) {
        let answers = core.index().checked_sub(1).and_then(|index| self.answers.get_mut(index));
        let Some(answers) = answers else { unreachable!("a guest that the keeper does not have") };
        answers.push_back(Answer(told));
    }

    /// Begins a flush for all who have asked, unless one is in flight. After a failure it has ended at once.
    fn flush_next(&mut self, slots: &mut Slots<'_>) -> Option<Flushed> {
        if self.flight != Flight::Idle || self.asking.is_empty() {
            return None;
        }
        core::mem::swap(&mut self.asking, &mut self.covered);
        if self.has_failed {
            return Some(self.flushed(Err(WhyReadOnly::FlushFailed)));
        }
        if core::mem::take(&mut self.superblock_due) {
            self.flight = Flight::Slots(2);
            self.write_superblock(slots);
        } else {
            self.flight = Flight::Flushing;
            slots.backing.flush();
        }
        None
    }

    fn write_superblock(&mut self, Slots { backing, superblock, random }: &mut Slots<'_>) {
        // A version that may have failed is replaced in its own slots, not in those of the durable
        // one before it.
        superblock.sequence += if self.is_version_unsure { 2 } else { 1 };
        self.is_version_unsure = true;
        let slots = superblock.geometry.slots();
        let stamp = random.number();
        for number in superblock.slot_numbers() {
            let Some(page) = slots.get(number) else { unreachable!("a slot above the last one") };
            backing.write(*page, superblock.emit(*page, stamp), Purpose::Slot);
        }
    }

    fn slot_written(&mut self, ok: bool, slots: &mut Slots<'_>) -> Option<Flushed> {
        let Flight::Slots(left) = self.flight else { unreachable!("a slot of no superblock") };
        self.has_failed |= !ok;
        self.flight = Flight::Slots(left - 1);
        if left > 1 {
            return None;
        }
        if self.has_failed {
            return Some(self.flushed(Err(WhyReadOnly::WriteFailed)));
        }
        self.flight = Flight::Flushing;
        slots.backing.flush();
        None
    }

    /// The flush in flight has ended: the guests that it was for are told.
    fn flushed(&mut self, result: Result<(), WhyReadOnly>) -> Flushed {
        self.flight = Flight::Idle;
        let mut is_for_own = false;
        let mut covered = core::mem::take(&mut self.covered);
        for asker in covered.drain(..) {
            match asker {
                Asker::Own => is_for_own = true,
                Asker::Guest(core, token) => {
                    let result = result.map_err(|_| DiskError::Failed);
                    let (operation, buffer) = (DiskOperation::Flush, Default::default());
                    self.tell(
                        core,
                        Told::Disk(DiskCompletion { token, operation, result, buffer }),
                    );
                }
            }
        }
        self.covered = covered;
        Flushed { is_for_own, result }
    }

    /// Gives a guest as many segments as can be spared, and remembers whom it could give none.
    fn lend_segments(
        &mut self,
        core: CoreId,
        count: u32,
        segments: &mut Segments,
        is_serving: bool,
    ) {
        // While the disk has failed, what is free here may be used by a group that the disk has and
        // that has no fence yet.
        let spare = if is_serving { segments.spare() } else { 0 };
        let granted: Vec<SegmentIndex> =
            (0..count.min(spare)).map_while(|_| segments.give_away()).collect();
        let left = spare - granted.len() as u32;
        if granted.is_empty() {
            self.hungry.push_back((core, count));
        }
        self.tell(core, Told::Segments(granted, left));
    }

    /// Segments may have become free: those who were given none are given some.
    fn feed_the_hungry(&mut self, segments: &mut Segments) {
        while !self.hungry.is_empty()
            && segments.spare() > 0
            && let Some((core, count)) = self.hungry.pop_front()
        {
            self.lend_segments(core, count, segments, true);
        }
    }
}

impl Guest {
    fn ask(&mut self, wanted: Wanted) {
        self.errands.push_back(Errand(wanted));
    }

    /// Asks for segments ahead, or gives one to those who have none.
    fn balance(&mut self, segments: &mut Segments) {
        let (free, reserve) = (segments.free(), segments.reserve());
        if free < reserve + AHEAD && self.asked == Asked::No {
            self.ask(Wanted::Segments(reserve + 2 * AHEAD - free));
            self.asked = Asked::Yes;
        }
        if free > reserve + AHEAD_MAX
            && let Some(segment) = segments.give_away()
        {
            self.ask(Wanted::Segment(segment));
        }
    }
}

impl Role {
    /// The writes of this store's group have completed: asks for the flush that covers them.
    pub(crate) fn ask_for_flush(&mut self, slots: &mut Slots<'_>) -> Option<Flushed> {
        match self {
            Role::Keeper(keeper) => {
                keeper.asking.push(Asker::Own);
                keeper.flush_next(slots)
            }
            Role::Guest(_) => {
                slots.backing.flush();
                None
            }
        }
    }

    /// A guest asks for a flush.
    pub(crate) fn flush_for(
        &mut self,
        core: CoreId,
        token: DiskToken,
        slots: &mut Slots<'_>,
    ) -> Option<Flushed> {
        let Role::Keeper(keeper) = self else { unreachable!("a flush asked of a guest") };
        keeper.asking.push(Asker::Guest(core, token));
        keeper.flush_next(slots)
    }

    /// Begins the next flush that was asked for, if none is in flight.
    pub(crate) fn flush_next(&mut self, slots: &mut Slots<'_>) -> Option<Flushed> {
        match self {
            Role::Keeper(keeper) => keeper.flush_next(slots),
            Role::Guest(_) => None,
        }
    }

    pub(crate) fn slot_written(&mut self, ok: bool, slots: &mut Slots<'_>) -> Option<Flushed> {
        let Role::Keeper(keeper) = self else { unreachable!("a guest that writes superblocks") };
        keeper.slot_written(ok, slots)
    }

    pub(crate) fn disk_flushed(&mut self, ok: bool) -> Flushed {
        let result = if ok { Ok(()) } else { Err(WhyReadOnly::FlushFailed) };
        match self {
            Role::Keeper(keeper) => {
                keeper.has_failed |= !ok;
                keeper.is_version_unsure &= !ok;
                keeper.flushed(result)
            }
            Role::Guest(_) => Flushed { is_for_own: true, result },
        }
    }

    /// This store is read-only from now on: so are all others.
    pub(crate) fn tell_of_failure(&mut self, why: WhyReadOnly) {
        match self {
            Role::Keeper(keeper) => {
                keeper
                    .answers
                    .iter_mut()
                    .for_each(|answers| answers.push_back(Answer(Told::Failed(why))));
            }
            Role::Guest(guest) => guest.ask(Wanted::Failed(why)),
        }
    }

    /// The keeper lets flushes through again; the other cores hear of it after all that they were told before.
    pub(crate) fn try_again(&mut self) {
        if let Role::Keeper(keeper) = self {
            keeper.has_failed = false;
            keeper.answers.iter_mut().for_each(|answers| answers.push_back(Answer(Told::Retry)));
        }
    }

    /// A shard's journal begins elsewhere: the next flush that is asked for covers a superblock that says so.
    pub(crate) fn root_changed(&mut self, superblock: &mut Superblock, shard: ShardId, root: Root) {
        superblock.set_root(shard, root);
        match self {
            Role::Keeper(keeper) => keeper.superblock_due = true,
            Role::Guest(guest) => guest.ask(Wanted::Root(shard, root)),
        }
    }

    /// The next flush covers a superblock, whatever it says.
    pub(crate) fn superblock_is_due(&mut self) {
        if let Role::Keeper(keeper) = self {
            keeper.superblock_due = true;
        }
    }

    /// Whether the keeper may have a segment for us that we do not know of yet.
    pub(crate) fn awaits_segments(&self) -> bool {
        matches!(self, Role::Guest(guest) if guest.asked != Asked::NoneLeft)
    }

    /// The end of a turn: segments are asked for ahead, or given to those who have none.
    pub(crate) fn balance_segments(&mut self, segments: &mut Segments) {
        match self {
            Role::Keeper(keeper) => keeper.feed_the_hungry(segments),
            Role::Guest(guest) => guest.balance(segments),
        }
    }

    /// A guest wants segments.
    pub(crate) fn lend_segments(
        &mut self,
        core: CoreId,
        count: u32,
        segments: &mut Segments,
        is_serving: bool,
    ) {
        let Role::Keeper(keeper) = self else { unreachable!("segments asked of a guest") };
        keeper.lend_segments(core, count, segments, is_serving);
    }

    /// The keeper has said which segments it gives, and how many more it would have.
    pub(crate) fn segments_arrived(
        &mut self,
        granted: Vec<SegmentIndex>,
        left: u32,
        segments: &mut Segments,
    ) {
        let Role::Guest(guest) = self else { unreachable!("segments given to a keeper") };
        guest.asked = if granted.is_empty() { Asked::NoneLeft } else { Asked::No };
        granted.into_iter().for_each(|segment| segments.take_back(segment));
        segments.set_elsewhere(left);
    }

    /// A guest's read or write has ended: `completion` as the guest knows it.
    pub(crate) fn errand_done(&mut self, core: CoreId, completion: DiskCompletion) {
        let Role::Keeper(keeper) = self else { unreachable!("an errand done by a guest") };
        keeper.tell(core, Told::Disk(completion));
    }

    /// What a guest is to be told next.
    pub(crate) fn next_answer(&mut self, core: CoreId) -> Option<Answer> {
        let Role::Keeper(keeper) = self else { return None };
        keeper.answers.get_mut(core.index().checked_sub(1)?)?.pop_front()
    }

    pub(crate) fn has_answers(&self) -> bool {
        matches!(self, Role::Keeper(keeper) if keeper.answers.iter().any(|answers| !answers.is_empty()))
    }

    /// What the keeper has to do next.
    pub(crate) fn next_errand(&mut self, backing: &mut DiskQueue) -> Option<Errand> {
        let Role::Guest(guest) = self else { return None };
        // A root precedes the flush that covers it.
        guest
            .errands
            .pop_front()
            .or_else(|| backing.next().map(|request| Errand(Wanted::Disk(request))))
    }

    pub(crate) fn has_errands(&self, backing: &DiskQueue) -> bool {
        matches!(self, Role::Guest(guest) if !guest.errands.is_empty() || backing.has_requests())
    }
}

/// How many free segments a guest with this reserve begins with.
pub(crate) fn free_to_begin_with(reserve: u32) -> u32 {
    reserve + AHEAD
}

/// How many it keeps from others at most.
pub(crate) fn kept_from_others(reserve: u32) -> u32 {
    reserve + AHEAD_MAX
}

const _: () =
    assert!(size_of::<Errand>() <= 64 && size_of::<Answer>() <= 64, "they travel in messages");
