//! Messages that are held: each has a place and a deadline on the core that owns its writer's
//! account, and a job once the deadline has come.
//!
//! The store says what is held (flags of drafts, see `job`). When the core begins to serve it looks
//! through the drafts, and finds what an earlier life of the machine has left.
//!
//! Invariants:
//! - A message has one place at most. Taking it back takes the place away, which is not possible
//!   while it has a job: so it never leaves and is a draft again.
//! - At most [`CARRIED_MAX`] messages leave at a time; the others wait, first come first served.
//! - A message waits no longer than [`HOLD_SECONDS_MAX`] in this life of the machine, whatever the
//!   time of day says.
//! - A core that stops begins with none: the next life does.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use machine::{Instant, Micros, UnixTime};
use shards::LetterId;
use store::{AccountId, DRAFTS, Flags, MailboxId, Outcome, Store, Uid};
use tasks::{Continuation, DelayQueue, FrameId, FrameTable, Subsystem};

use super::context::{Context, JobHost};
use super::job::{SubmissionEnd, SubmissionJob, SubmissionProgress};

tasks::points! {
    /// Where a message waits for the store that leaves its account.
    pub(crate) enum Point of Subsystem::Submission;
    /// Something was asked for.
    Asked,
}

/// The longest that a message is held.
pub const HOLD_SECONDS_MAX: u64 = 30;

/// Letters that a core holds: some hundred bytes each.
const HOLDS_MAX: usize = 1024;

/// Of these, those that leave at a time.
const CARRIED_MAX: usize = 8;

/// When a message is tried again after its job was refused something.
const AGAIN: Micros = Micros::from_secs(60);

/// The messages that a core holds.
pub struct Submission {
    letters: FrameTable<Held>,
    places: BTreeMap<Place, FrameId>,
    deadlines: DelayQueue,
    /// Those whose deadline has come.
    due: VecDeque<FrameId>,
    carried: usize,
    /// Jobs that found the store busy.
    again: Vec<FrameId>,
    /// Whether there may be some that have no place.
    is_to_look: bool,
    is_serving: bool,
}

/// Whose, and which of his drafts.
type Place = (AccountId, Uid);

struct Held {
    place: Place,
    /// The message of the account that it answers, if that is known.
    answers: Option<(MailboxId, Uid)>,
    stage: Stage,
}

enum Stage {
    /// Its deadline has not come, or it waits for its turn to leave.
    Waiting,
    /// It leaves, with the copy that is on its way to one of its recipients.
    Leaving(Box<SubmissionJob>, Option<LetterId>),
}

impl Submission {
    /// Nothing is held, and nothing leaves before [`Submission::begin`].
    pub fn new(now: Instant) -> Submission {
        Submission {
            letters: FrameTable::with_capacity(HOLDS_MAX),
            places: BTreeMap::new(),
            deadlines: DelayQueue::with_capacity(HOLDS_MAX, now),
            due: VecDeque::new(),
            carried: 0,
            again: Vec::new(),
            is_to_look: false,
            is_serving: false,
        }
    }

    /// The core serves: letters may leave.
    pub fn begin(&mut self) {
        (self.is_to_look, self.is_serving) = (true, true);
    }

    /// No more of them begin to leave.
    pub fn stop(&mut self) {
        self.is_serving = false;
    }

    /// Whether one more message can be held.
    pub fn has_room(&self) -> bool {
        self.letters.len() < HOLDS_MAX
    }

    /// A letter leaves so long after `now`.
    pub fn hold(
        &mut self,
        place: Place,
        answers: Option<(MailboxId, Uid)>,
        now: Instant,
        after: Micros,
    ) {
        if self.places.contains_key(&place) {
            return;
        }
        match self.letters.insert(Held { place, answers, stage: Stage::Waiting }) {
            Ok(frame) => {
                self.places.insert(place, frame);
                self.deadlines.set(frame, now + after.min(Micros::from_secs(HOLD_SECONDS_MAX + 1)));
            }
            // It is found when there is a place.
            Err(_) => self.is_to_look = true,
        }
    }

    /// A message does not leave. Returns what it answers; `None`: it is leaving, or is not held.
    pub fn take_back(&mut self, place: Place) -> Option<Option<(MailboxId, Uid)>> {
        let frame = self.places.get(&place).copied()?;
        let held = self.letters.get(frame).filter(|held| matches!(held.stage, Stage::Waiting))?;
        let answers = held.answers;
        self.forget(frame);
        Some(answers)
    }

    fn forget(&mut self, frame: FrameId) {
        self.deadlines.cancel(frame);
        if let Some(held) = self.letters.remove(frame) {
            self.places.remove(&held.place);
        }
    }

    /// Gives a place to each letter that the store holds and that has none.
    fn look(&mut self, store: &Store, wall: UnixTime, now: Instant) {
        self.is_to_look = false;
        for account in store.accounts() {
            let id = account.id();
            for info in store.messages(id, DRAFTS).filter(|info| info.flags.are_on_their_way()) {
                // What leaves already waits for nothing.
                let is_held = info.flags.contains(Flags::HELD);
                let until = if is_held { info.internal_date } else { wall };
                self.hold((id, info.uid), None, now, Micros(until.0.saturating_sub(wall.0)));
                if self.is_to_look {
                    return;
                }
            }
        }
    }

    /// When the next one is due.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.next_deadline()
    }

    /// Whether there is something to do now.
    pub fn has_work(&self, now: Instant) -> bool {
        !self.again.is_empty()
            || self.has_to_look()
            || self.can_begin()
            || self.next_deadline().is_some_and(|at| at <= now)
    }

    /// Letters that leave.
    pub fn under_way(&self) -> usize {
        self.carried
    }

    /// Whether the drafts are to be looked through, which no event announces.
    pub fn has_to_look(&self) -> bool {
        self.is_to_look && self.is_serving && self.has_room()
    }

    /// Messages leave whose time has come, and jobs that can go on do.
    #[inline(never)]
    pub fn run(&mut self, cx: &mut Context<'_>) {
        if self.has_to_look() {
            self.look(&cx.store.own.store, cx.turn.wall, cx.turn.now);
        }
        while let Some(frame) = self.deadlines.next_due(cx.turn.now) {
            self.due.push_back(frame);
        }
        for frame in core::mem::take(&mut self.again) {
            step(self, frame, cx, |job, host| job.go_on(host));
        }
        while let Some(frame) = self.next_to_leave() {
            step(self, frame, cx, |job, host| job.go_on(host));
        }
    }

    /// The store has done what the job of this frame has asked for.
    #[inline(never)]
    pub fn woken(&mut self, frame: FrameId, outcome: Outcome, cx: &mut Context<'_>) {
        step(self, frame, cx, |job, host| job.woken(outcome, host));
    }

    fn can_begin(&self) -> bool {
        !self.due.is_empty() && self.is_serving && self.carried < CARRIED_MAX
    }

    /// The next message that is to leave, with a job.
    fn next_to_leave(&mut self) -> Option<FrameId> {
        while self.can_begin() {
            let frame = self.due.pop_front()?;
            // Some were taken back meanwhile.
            let Some(held) = self.letters.get_mut(frame) else { continue };
            let (account, uid) = held.place;
            held.stage =
                Stage::Leaving(Box::new(SubmissionJob::new(account, uid, held.answers)), None);
            self.carried += 1;
            return Some(frame);
        }
        None
    }

    fn take_job(&mut self, frame: FrameId) -> Option<(Box<SubmissionJob>, Option<LetterId>)> {
        let stage = &mut self.letters.get_mut(frame)?.stage;
        match core::mem::replace(stage, Stage::Waiting) {
            Stage::Leaving(job, letter) => Some((job, letter)),
            Stage::Waiting => None,
        }
    }

    /// A job has gone a step.
    fn stepped(
        &mut self,
        frame: FrameId,
        progress: SubmissionProgress,
        now: Instant,
        job: (Box<SubmissionJob>, Option<LetterId>),
    ) {
        let Some(held) = self.letters.get_mut(frame) else {
            unreachable!("a message that leaves has a frame")
        };
        match progress {
            SubmissionProgress::Woken | SubmissionProgress::Turn => {
                held.stage = Stage::Leaving(job.0, job.1);
                self.again.extend((progress == SubmissionProgress::Turn).then_some(frame));
            }
            SubmissionProgress::Over(SubmissionEnd::Wholly) => {
                self.carried -= 1;
                self.forget(frame);
            }
            SubmissionProgress::Over(SubmissionEnd::NotYet) => {
                self.carried -= 1;
                self.deadlines.set(frame, now + AGAIN);
            }
        }
    }
}

/// A job goes a step.
fn step(
    held: &mut Submission,
    frame: FrameId,
    cx: &mut Context<'_>,
    step: impl FnOnce(&mut SubmissionJob, &mut JobHost<'_, '_>) -> SubmissionProgress,
) {
    let Some((mut job, mut letter)) = held.take_job(frame) else {
        unreachable!("a job ends when nothing comes for it")
    };
    let continuation = Continuation { frame, entry: Point::Asked.entry() };
    let now = cx.turn.now;
    let progress = step(&mut job, &mut JobHost { cx, continuation, letter: &mut letter });
    held.stepped(frame, progress, now, (job, letter));
}
