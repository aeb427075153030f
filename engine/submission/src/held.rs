//! Held messages (delayed send): each has a frame and a deadline on the core that owns its author's
//! account. When the deadline has passed, the message gets a submission job.
//!
//! The store records which messages are held, by flags of drafts (see `job`). So after a restart,
//! the core scans all drafts when it begins to serve, and finds the held messages.
//!
//! Invariants:
//! - A message has at most one frame. Taking the message back removes its frame, and is refused
//!   while the message has a job. So a message that was taken back is never sent.
//! - At most [`JOBS_MAX`] messages have a job. The others wait in the order of their deadlines.
//! - The deadline of a message is at most [`HOLD_SECONDS_MAX`] and one second after it was held, or
//!   after a restart, even if the wall clock jumps.
//! - A core that is stopping begins no jobs. The jobs of waiting messages begin after the restart.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use machine::{Instant, Micros, UnixTime};
use shards::DeliveryHandle;
use store::{AccountId, DRAFTS, Flags, MailboxId, Outcome, Store, Uid};
use tasks::{Continuation, DelayQueue, FrameId, FrameTable, Subsystem};

use super::context::{JobHost, SubmissionContext};
use super::job::{SubmissionEnd, SubmissionJob, SubmissionProgress};

tasks::points! {
    /// The wait points of a submission job at the store.
    pub(crate) enum SubmissionWaitPoint of Subsystem::Submission;
    /// The store has answered a request.
    Asked,
}

/// The longest time that a message is held, in seconds.
pub const HOLD_SECONDS_MAX: u64 = 30;

/// The most messages that a core holds: about a hundred bytes each.
const HELD_MAX: usize = 1024;

/// The most messages that have a job.
const JOBS_MAX: usize = 8;

/// The time until the next job after a job has failed.
const RETRY_AFTER: Micros = Micros::from_secs(60);

/// The held messages of a core.
pub struct Submission {
    messages: FrameTable<HeldMessage>,
    places: BTreeMap<Place, FrameId>,
    deadlines: DelayQueue,
    /// Messages with a deadline that has passed.
    due: VecDeque<FrameId>,
    jobs: usize,
    /// Jobs that found the store busy.
    yielded: Vec<FrameId>,
    /// Whether the store may have held messages without a frame.
    needs_scan: bool,
    is_serving: bool,
}

/// The place of a message: the account, and the draft.
type Place = (AccountId, Uid);

struct HeldMessage {
    place: Place,
    /// The message of the account that the held message replies to, if known.
    answers: Option<(MailboxId, Uid)>,
    /// The number of jobs that ended as [`SubmissionEnd::Hindered`].
    hindered: u8,
    stage: Stage,
}

enum Stage {
    /// The deadline has not passed, or the message waits for a job.
    Waiting,
    /// The message has a job. The second value is the delivery that the job has begun.
    Leaving(Box<SubmissionJob>, Option<DeliveryHandle>),
}

impl Submission {
    /// A table without messages. No job begins before [`Submission::begin`].
    pub fn new(now: Instant) -> Submission {
        Submission {
            messages: FrameTable::with_capacity(HELD_MAX),
            places: BTreeMap::new(),
            deadlines: DelayQueue::with_capacity(HELD_MAX, now),
            due: VecDeque::new(),
            jobs: 0,
            yielded: Vec::new(),
            needs_scan: false,
            is_serving: false,
        }
    }

    /// Begins to serve: jobs may begin.
    pub fn begin(&mut self) {
        (self.needs_scan, self.is_serving) = (true, true);
    }

    /// Begins no more jobs.
    pub fn stop(&mut self) {
        self.is_serving = false;
    }

    /// Whether one more message can be held.
    pub fn has_room(&self) -> bool {
        self.messages.len() < HELD_MAX
    }

    /// Holds a message for the time `after`, from `now` on.
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
        match self.messages.insert(HeldMessage {
            place,
            answers,
            hindered: 0,
            stage: Stage::Waiting,
        }) {
            Ok(frame) => {
                self.places.insert(place, frame);
                self.deadlines.set(frame, now + after.min(Micros::from_secs(HOLD_SECONDS_MAX + 1)));
            }
            // A later scan of the drafts finds the message, once there is a free frame.
            Err(_) => self.needs_scan = true,
        }
    }

    /// Takes a message back. Returns the message that it replies to, if known. The outer `None`:
    /// the message has a job, or is not held.
    pub fn take_back(&mut self, place: Place) -> Option<Option<(MailboxId, Uid)>> {
        let frame = self.places.get(&place).copied()?;
        let held = self.messages.get(frame).filter(|held| matches!(held.stage, Stage::Waiting))?;
        let answers = held.answers;
        self.forget(frame);
        Some(answers)
    }

    fn forget(&mut self, frame: FrameId) {
        self.deadlines.cancel(frame);
        if let Some(held) = self.messages.remove(frame) {
            self.places.remove(&held.place);
        }
    }

    /// Gives a frame to each held message in the store that has none.
    fn scan(&mut self, store: &Store, wall: UnixTime, now: Instant) {
        self.needs_scan = false;
        for account in store.accounts() {
            let id = account.id();
            for info in store.messages(id, DRAFTS).filter(|info| info.flags.are_on_their_way()) {
                // A message does not wait if its delivery had begun before the restart.
                let is_held = info.flags.contains(Flags::HELD);
                let until = if is_held { info.internal_date } else { wall };
                self.hold((id, info.uid), None, now, Micros(until.0.saturating_sub(wall.0)));
                if self.needs_scan {
                    return;
                }
            }
        }
    }

    /// The next deadline.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.next_deadline()
    }

    /// Whether there is something to do now.
    pub fn has_work(&self, now: Instant) -> bool {
        !self.yielded.is_empty()
            || self.can_scan()
            || self.can_begin()
            || self.next_deadline().is_some_and(|at| at <= now)
    }

    /// The number of messages that have a job.
    pub fn under_way(&self) -> usize {
        self.jobs
    }

    /// Whether the drafts must be scanned, and a frame is free for a message. No event announces
    /// this.
    pub fn can_scan(&self) -> bool {
        self.needs_scan && self.is_serving && self.has_room()
    }

    /// Begins jobs for messages with a passed deadline, and continues jobs that found the store
    /// busy.
    #[inline(never)]
    pub fn run(&mut self, cx: &mut SubmissionContext<'_>) {
        if self.can_scan() {
            self.scan(&cx.store.own.store, cx.turn.wall, cx.turn.now);
        }
        while let Some(frame) = self.deadlines.next_due(cx.turn.now) {
            self.due.push_back(frame);
        }
        for frame in core::mem::take(&mut self.yielded) {
            step(self, frame, cx, |job, host| job.go_on(host));
        }
        while let Some(frame) = self.next_to_leave() {
            step(self, frame, cx, |job, host| job.go_on(host));
        }
    }

    /// Gives a job the store's answer to its request.
    #[inline(never)]
    pub fn woken(&mut self, frame: FrameId, outcome: Outcome, cx: &mut SubmissionContext<'_>) {
        step(self, frame, cx, |job, host| job.woken(outcome, host));
    }

    /// Whether a message waits for a job and may have one now.
    fn can_begin(&self) -> bool {
        !self.due.is_empty() && self.is_serving && self.jobs < JOBS_MAX
    }

    /// Takes the next message that gets a job.
    fn next_to_leave(&mut self) -> Option<FrameId> {
        while self.can_begin() {
            let frame = self.due.pop_front()?;
            // The message may have been taken back in the meantime.
            let Some(held) = self.messages.get_mut(frame) else { continue };
            let (account, uid) = held.place;
            let job = SubmissionJob::new(account, uid, held.answers, held.hindered);
            held.stage = Stage::Leaving(Box::new(job), None);
            self.jobs += 1;
            return Some(frame);
        }
        None
    }

    fn take_job(&mut self, frame: FrameId) -> Option<(Box<SubmissionJob>, Option<DeliveryHandle>)> {
        let stage = &mut self.messages.get_mut(frame)?.stage;
        match core::mem::replace(stage, Stage::Waiting) {
            Stage::Leaving(job, delivery) => Some((job, delivery)),
            Stage::Waiting => None,
        }
    }

    /// Stores a job after a step, or ends the job.
    fn stepped(
        &mut self,
        frame: FrameId,
        progress: SubmissionProgress,
        now: Instant,
        job: (Box<SubmissionJob>, Option<DeliveryHandle>),
    ) {
        let Some(held) = self.messages.get_mut(frame) else {
            unreachable!("a message with a job has a frame")
        };
        match progress {
            SubmissionProgress::Waiting | SubmissionProgress::Yield => {
                held.stage = Stage::Leaving(job.0, job.1);
                self.yielded.extend((progress == SubmissionProgress::Yield).then_some(frame));
            }
            SubmissionProgress::Over(SubmissionEnd::Done) => {
                self.jobs -= 1;
                self.forget(frame);
            }
            SubmissionProgress::Over(end @ (SubmissionEnd::Retry | SubmissionEnd::Hindered)) => {
                held.hindered =
                    held.hindered.saturating_add(u8::from(end == SubmissionEnd::Hindered));
                self.jobs -= 1;
                self.deadlines.set(frame, now + RETRY_AFTER);
            }
        }
    }
}

/// Lets a job make a step.
fn step(
    held: &mut Submission,
    frame: FrameId,
    cx: &mut SubmissionContext<'_>,
    step: impl FnOnce(&mut SubmissionJob, &mut JobHost<'_, '_>) -> SubmissionProgress,
) {
    let Some((mut job, mut delivery)) = held.take_job(frame) else {
        unreachable!("a step belongs to a message with a job")
    };
    let continuation = Continuation { frame, entry: SubmissionWaitPoint::Asked.entry() };
    let now = cx.turn.now;
    let progress = step(&mut job, &mut JobHost { cx, continuation, delivery: &mut delivery });
    held.stepped(frame, progress, now, (job, delivery));
}
