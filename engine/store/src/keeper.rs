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

use crate::backing::{Backing, Purpose};
use crate::layout::{SegmentIndex, ShardId};
use crate::outcome::{State, WhyReadOnly};
use crate::store::Store;
use crate::superblock::Root;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use machine::{CoreId, DiskCompletion, DiskError, DiskOperation, DiskRequest, DiskToken};

/// Free segments that a guest likes to have above its reserve.
const AHEAD: u32 = 2;
/// Those above which it gives some back.
const AHEAD_MAX: u32 = 3 * AHEAD;

/// What a guest wants of the keeper. It is carried there in the order in which it was asked for.
#[derive(Debug)]
pub struct Errand(Wanted);

/// What the keeper tells a guest.
#[derive(Debug)]
pub struct Answer(Told);

#[derive(Debug)]
enum Wanted {
    Disk(DiskRequest),
    Root(ShardId, Root),
    /// So many segments are wanted.
    Segments(u32),
    /// One comes back.
    Segment(SegmentIndex),
    Failed(WhyReadOnly),
}

#[derive(Debug)]
enum Told {
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
enum Asker {
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

impl Keeper {
    /// `cores`: how many there are, this one included.
    pub(crate) fn new(cores: u8) -> Keeper {
        Keeper { answers: (1..cores).map(|_| VecDeque::new()).collect(), ..Keeper::default() }
    }

    /// Flushes are let through again; the other cores hear of it after all that they were told
    /// before.
    pub(crate) fn try_again(&mut self) {
        self.has_failed = false;
        self.answers.iter_mut().for_each(|answers| answers.push_back(Answer(Told::Retry)));
    }

    fn tell(&mut self, core: CoreId, told: Told) {
        if let Some(answers) = core.index().checked_sub(1).and_then(|index| self.answers.get_mut(index)) {
            answers.push_back(Answer(told));
        }
    }
}

/// What the keeper does for all.
impl Store {
    /// A guest's errand has arrived.
    pub fn errand_arrived(&mut self, from: CoreId, Errand(wanted): Errand) {
        match wanted {
            Wanted::Disk(request) if request.operation == DiskOperation::Flush => {
                self.flush_for(Asker::Guest(from, request.token));
            }
            Wanted::Disk(DiskRequest { token, operation, sector, buffer }) => {
                self.backing.push(operation, sector, buffer, Purpose::Errand { core: from, token });
            }
            Wanted::Root(shard, root) => self.root_changed(shard, root),
            Wanted::Segments(count) => self.lend_segments(from, count),
            Wanted::Segment(segment) => self.segments.take_back(segment),
            Wanted::Failed(why) => self.fail(why),
        }
    }

    /// What a guest is to be told next.
    pub fn next_answer(&mut self, core: CoreId) -> Option<Answer> {
        let Role::Keeper(keeper) = &mut self.role else { return None };
        keeper.answers.get_mut(core.index().checked_sub(1)?)?.pop_front()
    }

    /// Whether a guest is to be told something.
    pub fn has_answers(&self) -> bool {
        matches!(&self.role, Role::Keeper(keeper) if keeper.answers.iter().any(|answers| !answers.is_empty()))
    }

    /// A guest's read or write has ended: `completion` as the guest knows it.
    pub(crate) fn errand_done(&mut self, core: CoreId, completion: DiskCompletion) {
        if let Role::Keeper(keeper) = &mut self.role {
            keeper.tell(core, Told::Disk(completion));
        }
    }

    /// The writes of this store's group have completed: asks for the flush that covers them.
    pub(crate) fn ask_for_flush(&mut self) {
        match &self.role {
            Role::Keeper(_) => self.flush_for(Asker::Own),
            Role::Guest(_) => self.backing.flush(),
        }
    }

    fn flush_for(&mut self, asker: Asker) {
        if let Role::Keeper(keeper) = &mut self.role {
            keeper.asking.push(asker);
            self.flush_next();
        }
    }

    /// Begins a flush for all who have asked, unless one is in flight.
    fn flush_next(&mut self) {
        let Role::Keeper(keeper) = &mut self.role else { return };
        if keeper.flight != Flight::Idle || keeper.asking.is_empty() {
            return;
        }
        core::mem::swap(&mut keeper.asking, &mut keeper.covered);
        if keeper.has_failed {
            return self.all_flushed(Err(WhyReadOnly::FlushFailed));
        }
        if core::mem::take(&mut keeper.superblock_due) {
            keeper.flight = Flight::Slots(2);
            self.write_superblock();
        } else {
            keeper.flight = Flight::Flushing;
            self.backing.flush();
        }
    }

    fn write_superblock(&mut self) {
        let Role::Keeper(keeper) = &mut self.role else { return };
        // A version that may have failed is replaced in its own slots, not in those of the durable
        // one before it.
        self.superblock.sequence += if keeper.is_version_unsure { 2 } else { 1 };
        keeper.is_version_unsure = true;
        let slots = self.superblock.geometry.slots();
        let stamp = self.random.number();
        for number in self.superblock.slot_numbers() {
            let Some(page) = slots.get(number).copied() else { continue };
            self.backing.write(page, self.superblock.emit(page, stamp), Purpose::Slot);
        }
    }

    pub(crate) fn slot_written(&mut self, ok: bool) {
        let Role::Keeper(keeper) = &mut self.role else { return };
        let Flight::Slots(left) = keeper.flight else { return };
        keeper.has_failed |= !ok;
        keeper.flight = Flight::Slots(left - 1);
        if left > 1 {
            return;
        }
        if keeper.has_failed {
            return self.all_flushed(Err(WhyReadOnly::WriteFailed));
        }
        keeper.flight = Flight::Flushing;
        self.backing.flush();
    }

    pub(crate) fn disk_flushed(&mut self, ok: bool) {
        let Role::Keeper(keeper) = &mut self.role else { return self.flushed(flush_result(ok)) };
        keeper.has_failed |= !ok;
        keeper.is_version_unsure &= !ok;
        self.all_flushed(flush_result(ok));
    }

    /// The flush in flight has ended: whoever it was for is told, and the next one begins.
    fn all_flushed(&mut self, result: Result<(), WhyReadOnly>) {
        let Role::Keeper(keeper) = &mut self.role else { return };
        keeper.flight = Flight::Idle;
        let mut is_for_own = false;
        let mut covered = core::mem::take(&mut keeper.covered);
        for asker in covered.drain(..) {
            match asker {
                Asker::Own => is_for_own = true,
                Asker::Guest(core, token) => {
                    let result = result.map_err(|_| DiskError::Failed);
                    let (operation, buffer) = (DiskOperation::Flush, Default::default());
                    keeper.tell(core, Told::Disk(DiskCompletion { token, operation, result, buffer }));
                }
            }
        }
        keeper.covered = covered;
        if is_for_own {
            self.flushed(result);
        } else if let Err(why) = result {
            self.fail(why);
        }
        self.flush_next();
    }

    /// This store is read-only from now on: so are all others.
    pub(crate) fn tell_of_failure(&mut self, why: WhyReadOnly) {
        match &mut self.role {
            Role::Keeper(keeper) => {
                keeper.answers.iter_mut().for_each(|answers| answers.push_back(Answer(Told::Failed(why))));
            }
            Role::Guest(guest) => guest.errands.push_back(Errand(Wanted::Failed(why))),
        }
    }

    /// A shard's journal begins elsewhere: the next flush that is asked for covers a superblock that says so.
    pub(crate) fn root_changed(&mut self, shard: ShardId, root: Root) {
        if let Some(place) = self.superblock.roots.get_mut(shard.index()) {
            *place = Some(root);
        }
        match &mut self.role {
            Role::Keeper(keeper) => keeper.superblock_due = true,
            Role::Guest(guest) => guest.errands.push_back(Errand(Wanted::Root(shard, root))),
        }
    }

    /// The next flush covers a superblock, whatever it says.
    pub(crate) fn superblock_is_due(&mut self) {
        if let Role::Keeper(keeper) = &mut self.role {
            keeper.superblock_due = true;
        }
    }

    /// Gives a guest as many segments as can be spared, and remembers whom it could give none.
    pub(crate) fn lend_segments(&mut self, core: CoreId, count: u32) {
        // While the disk has failed, what is free here may be used by a group that the disk has and
        // that has no fence yet.
        let spare = if self.state == State::Serving { self.segments.spare() } else { 0 };
        let granted: Vec<SegmentIndex> = (0..count.min(spare)).map_while(|_| self.segments.give_away()).collect();
        let left = spare - granted.len() as u32;
        if let Role::Keeper(keeper) = &mut self.role {
            if granted.is_empty() {
                keeper.hungry.push_back((core, count));
            }
            keeper.tell(core, Told::Segments(granted, left));
        }
    }

    /// Segments have become free: those who were given none are given some.
    fn feed_the_hungry(&mut self) {
        while let Role::Keeper(keeper) = &mut self.role
            && !keeper.hungry.is_empty()
            && self.segments.spare() > 0
            && let Some((core, count)) = keeper.hungry.pop_front()
        {
            self.lend_segments(core, count);
        }
    }
}

/// What a guest does.
impl Store {
    /// What the keeper has to do next.
    pub fn next_errand(&mut self) -> Option<Errand> {
        let Role::Guest(guest) = &mut self.role else { return None };
        // A root precedes the flush that covers it.
        guest.errands.pop_front().or_else(|| self.backing.next().map(|request| Errand(Wanted::Disk(request))))
    }

    /// Whether there is a [`Store::next_errand`].
    pub fn has_errands(&self) -> bool {
        matches!(&self.role, Role::Guest(guest) if !guest.errands.is_empty() || self.backing.has_requests())
    }

    /// The keeper says something.
    pub fn answer_arrived(&mut self, Answer(told): Answer) {
        match told {
            Told::Disk(completion) => self.disk_completed(completion),
            Told::Failed(why) => self.fail(why),
            Told::Retry => self.want_retry(),
            Told::Segments(granted, left) => {
                if let Role::Guest(guest) = &mut self.role {
                    guest.asked = if granted.is_empty() { Asked::NoneLeft } else { Asked::No };
                }
                granted.into_iter().for_each(|segment| self.segments.take_back(segment));
                self.segments.elsewhere = left;
                self.offer_space();
            }
        }
    }

    /// Whether the keeper may have a segment for us that we do not know of yet.
    pub(crate) fn awaits_segments(&self) -> bool {
        matches!(&self.role, Role::Guest(guest) if guest.asked != Asked::NoneLeft)
    }

    /// The end of a turn: segments are asked for ahead, or given to those who have none.
    pub(crate) fn balance_segments(&mut self) {
        let Role::Guest(guest) = &mut self.role else { return self.feed_the_hungry() };
        let (free, reserve) = (self.segments.free(), self.segments.reserve);
        if free < reserve + AHEAD && guest.asked == Asked::No {
            guest.errands.push_back(Errand(Wanted::Segments(reserve + 2 * AHEAD - free)));
            guest.asked = Asked::Yes;
        }
        if free > reserve + AHEAD_MAX
            && let Some(segment) = self.segments.give_away()
        {
            guest.errands.push_back(Errand(Wanted::Segment(segment)));
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
}

fn flush_result(ok: bool) -> Result<(), WhyReadOnly> {
    if ok { Ok(()) } else { Err(WhyReadOnly::FlushFailed) }
}

const _: () = assert!(size_of::<Errand>() <= 64 && size_of::<Answer>() <= 64, "they travel in messages");
