//! Letters that are held: each has a place and a deadline on the core that owns its writer's account, and a carrier when that has come.
//!
//! What is held is what the store says (flags of drafts, crate `webmail`, `carrying`): when the core begins to serve it looks through the drafts, and finds what an
//! earlier life of the machine has left.
//!
//! Invariants:
//! - A letter has one place at most. Who takes it back takes the place away, and while it has a carrier nobody does: so it never leaves and is a draft again.
//! - At most [`CARRIED_MAX`] letters leave at a time; the others wait, first come first served.
//! - A letter waits no longer than [`HOLD_SECONDS_MAX`] in this life of the machine, whatever the time of day says.
//! - A core that stops begins with none: the next life does.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use machine::{Entropy, Instant, Micros, UnixTime};
use store::{AccountId, DRAFTS, Flags, MailboxId, Outcome, Store, Uid};
use tasks::{Continuation, DelayQueue, FrameId, FrameTable};
use webmail::{Carried, Carrier, HOLD_SECONDS_MAX, Way};

use crate::archive::LetterId;
use crate::clerks::{At, Office};
use crate::engine::Engine;
use crate::subsystem::Subsystem;

tasks::points! {
    /// Where a message waits for the store that leaves its account.
    pub(crate) enum Point of Subsystem::Submission;
    /// Something was asked for.
    Asked,
}

/// Letters that a core holds: some hundred bytes each.
const HOLDS_MAX: usize = 1024;

/// Of these, those that leave at a time.
const CARRIED_MAX: usize = 8;

/// When a letter is tried again whose carrier was refused something.
const AGAIN: Micros = Micros::from_secs(60);

/// The letters that a core holds.
pub(crate) struct Holds {
    letters: FrameTable<Held>,
    places: BTreeMap<Place, FrameId>,
    deadlines: DelayQueue,
    /// Those whose deadline has come.
    due: VecDeque<FrameId>,
    carried: usize,
    /// Those whose carrier found the store busy.
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
    /// Its deadline has not come, or it waits for a carrier.
    Waiting,
    /// It leaves, with the letter that is on its way to one of those whom it is for.
    Leaving(Box<Carrier>, Option<LetterId>),
}

impl Holds {
    pub(crate) fn new(now: Instant) -> Holds {
        Holds {
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
    pub(crate) fn begin(&mut self) {
        (self.is_to_look, self.is_serving) = (true, true);
    }

    /// No more of them begin to leave.
    pub(crate) fn stop(&mut self) {
        self.is_serving = false;
    }

    pub(crate) fn has_room(&self) -> bool {
        self.letters.len() < HOLDS_MAX
    }

    /// A letter leaves so long after `now`.
    pub(crate) fn hold(&mut self, place: Place, answers: Option<(MailboxId, Uid)>, now: Instant, after: Micros) {
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

    /// A letter does not leave. Returns what it answers; `None`: it does leave, or has none to wait for.
    pub(crate) fn take_back(&mut self, place: Place) -> Option<Option<(MailboxId, Uid)>> {
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
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.next_deadline()
    }

    pub(crate) fn has_work(&self, now: Instant) -> bool {
        !self.again.is_empty()
            || self.has_to_look()
            || self.can_begin()
            || self.next_deadline().is_some_and(|at| at <= now)
    }

    /// Letters that leave.
    pub(crate) fn under_way(&self) -> usize {
        self.carried
    }

    /// Whether the drafts are to be looked through, which no event announces.
    pub(crate) fn has_to_look(&self) -> bool {
        self.is_to_look && self.is_serving && self.has_room()
    }

    fn can_begin(&self) -> bool {
        !self.due.is_empty() && self.is_serving && self.carried < CARRIED_MAX
    }

    /// The next letter that is to leave, with a carrier.
    fn next_to_leave(&mut self) -> Option<FrameId> {
        while self.can_begin() {
            let frame = self.due.pop_front()?;
            // Some were taken back meanwhile.
            let Some(held) = self.letters.get_mut(frame) else { continue };
            let (account, uid) = held.place;
            held.stage = Stage::Leaving(Box::new(Carrier::new(account, uid, held.answers)), None);
            self.carried += 1;
            return Some(frame);
        }
        None
    }

    fn take_carrier(&mut self, frame: FrameId) -> Option<(Box<Carrier>, Option<LetterId>)> {
        let stage = &mut self.letters.get_mut(frame)?.stage;
        match core::mem::replace(stage, Stage::Waiting) {
            Stage::Leaving(carrier, letter) => Some((carrier, letter)),
            Stage::Waiting => None,
        }
    }

    /// A carrier has gone a step.
    fn stepped(&mut self, frame: FrameId, way: Way, now: Instant, carrier: (Box<Carrier>, Option<LetterId>)) {
        let Some(held) = self.letters.get_mut(frame) else { return };
        match way {
            Way::Woken | Way::Turn => {
                held.stage = Stage::Leaving(carrier.0, carrier.1);
                self.again.extend((way == Way::Turn).then_some(frame));
            }
            Way::Over(Carried::Wholly) => {
                self.carried -= 1;
                self.forget(frame);
            }
            Way::Over(Carried::NotYet) => {
                self.carried -= 1;
                self.deadlines.set(frame, now + AGAIN);
            }
        }
    }
}

/// A carrier goes a step.
fn step(frame: FrameId, office: &mut Office<'_>, step: impl FnOnce(&mut Carrier, &mut At<'_, '_>) -> Way) {
    let Some((mut carrier, mut letter)) = office.holds.take_carrier(frame) else { return };
    let continuation = Continuation { frame, entry: Point::Asked.entry() };
    let (signing, unheard, told) = (&mut None, &mut 0, &mut Vec::new());
    let way = step(&mut carrier, &mut At { office, continuation, letter: &mut letter, signing, unheard, told });
    office.holds.stepped(frame, way, office.turn.now, (carrier, letter));
}

impl Engine {
    /// Phase 4 too: letters leave whose time has come, and carriers who can go on do.
    #[inline(never)]
    pub(crate) fn let_letters_leave(&mut self, entropy: &mut dyn Entropy) {
        let (_, mut office) = self.common.clerks_at_work(&mut self.outbound, entropy);
        if office.holds.has_to_look() {
            office.holds.look(&office.archive.own.store, office.turn.wall, office.turn.now);
        }
        while let Some(frame) = office.holds.deadlines.next_due(office.turn.now) {
            office.holds.due.push_back(frame);
        }
        for frame in core::mem::take(&mut office.holds.again) {
            step(frame, &mut office, |carrier, desk| carrier.go_on(desk));
        }
        while let Some(frame) = office.holds.next_to_leave() {
            step(frame, &mut office, |carrier, desk| carrier.go_on(desk));
        }
    }

    #[inline(never)]
    pub(crate) fn carrier_woken(&mut self, frame: FrameId, outcome: Outcome, entropy: &mut dyn Entropy) {
        let (_, mut office) = self.common.clerks_at_work(&mut self.outbound, entropy);
        step(frame, &mut office, |carrier, desk| carrier.woken(outcome, desk));
    }
}
