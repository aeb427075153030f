//! Messages for accounts of several cores: each of these cores gets one of its own, and they end
//! together.
//!
//! The parts may take different numbers of octets at a time. As many as all have taken are taken;
//! what some have ahead of the others is left out for them when it comes again. A complete message
//! is first prepared on all cores: each has all of it, and space for it. Only then it is committed
//! on all, and what can still fail is the disk.
//!
//! Invariants:
//! - The letter's end is told when all parts have ended: delivered if all are, else refused.
//! - Where a part is refused before all are prepared, so is the letter, and no part is ever seen.

use alloc::boxed::Box;
use alloc::vec::Vec;

use machine::CoreId;
use sometimes::sometimes;
use store::{Closing, Outcome, Recipient, Refusal, Wake};
use tasks::{Continuation, FrameId, FrameTable};

use crate::archive::Archive;
use crate::messages::{LetterId, refused};
use crate::point::Point;

/// The letters for several cores that have begun on this one.
pub(crate) struct Spread {
    letters: FrameTable<Box<Parts>>,
    /// Records that nobody uses.
    #[expect(clippy::vec_box, reason = "they are handed on as pointers")]
    idle: Vec<Box<Parts>>,
}

/// One letter.
#[derive(Default)]
struct Parts {
    parts: Vec<Part>,
    /// Octets that all parts have taken, modulo 2^32.
    taken: u32,
    stage: Stage,
    /// What was said of it when it was complete.
    closing: Option<Closing>,
    /// Parts that are not prepared yet, or were committed and have not ended.
    outstanding: usize,
    refused: Option<Refusal>,
    /// Who waits for room, or for the end.
    continuation: Option<Continuation>,
}

/// How far a letter has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    /// Its octets come.
    #[default]
    Octets,
    /// It is complete; not all parts are known to have space.
    Preparing,
    /// Its parts are committed.
    Committed,
}

/// What one core gets of it.
struct Part {
    letter: LetterId,
    taken: u32,
}

impl Spread {
    pub(crate) fn new(letters: usize) -> Spread {
        Spread {
            letters: FrameTable::with_capacity(letters),
            idle: (0..letters).map(|_| Box::new(Parts { parts: Vec::with_capacity(4), ..Parts::default() })).collect(),
        }
    }

    fn begin(&mut self) -> Result<FrameId, Refusal> {
        let parts = self.idle.pop().ok_or(Refusal::Busy)?;
        self.letters.insert(parts).map_err(|parts| {
            self.idle.push(parts);
            Refusal::Busy
        })
    }

    fn get(&mut self, letter: FrameId) -> Option<&mut Parts> {
        self.letters.get_mut(letter).map(|parts| &mut **parts)
    }

    /// Forgets a letter.
    fn remove(&mut self, letter: FrameId) {
        let Some(mut parts) = self.letters.remove(letter) else { unreachable!("a message that has ended") };
        parts.parts.clear();
        *parts = Parts { parts: core::mem::take(&mut parts.parts), ..Parts::default() };
        self.idle.push(parts);
    }

    fn stage(&self, letter: FrameId) -> Option<Stage> {
        self.letters.get(letter).map(|parts| parts.stage)
    }

    pub(crate) fn len(&self) -> usize {
        self.letters.len()
    }

    /// Something has happened to a part: what that is to the session.
    fn woken(&mut self, wake: Wake) -> Option<Wake> {
        let letter = wake.continuation.frame;
        let parts = self.letters.get_mut(letter)?;
        if Point::of(wake.continuation.entry) == Some(Point::PartRoom) {
            // All octets may have been taken meanwhile: then the session waits for the end.
            let continuation = parts.continuation.take_if(|_| parts.stage == Stage::Octets)?;
            return Some(Wake { continuation, outcome: Outcome::Room });
        }
        if let Outcome::Refused(refusal) = wake.outcome {
            parts.refused = Some(refusal);
        }
        parts.outstanding -= 1;
        if parts.outstanding > 0 {
            return None;
        }
        let outcome = parts.refused.map_or(Outcome::Delivered, Outcome::Refused);
        let continuation = parts.continuation.take();
        self.remove(letter);
        Some(Wake { continuation: continuation?, outcome })
    }
}

impl Parts {
    fn add(&mut self, letter: LetterId) {
        self.parts.push(Part { letter, taken: 0 });
    }

    /// Gives every part what it has not got of `octets`; how many all have taken then.
    fn append(
        &mut self,
        octets: &[u8],
        continuation: Continuation,
        mut append: impl FnMut(LetterId, &[u8]) -> Result<usize, Refusal>,
    ) -> Result<usize, Refusal> {
        let mut taken_by_all = octets.len();
        for part in &mut self.parts {
            let ahead = part.taken.wrapping_sub(self.taken) as usize;
            let rest = octets.get(ahead..).unwrap_or_default();
            let taken = if rest.is_empty() { 0 } else { append(part.letter, rest)? };
            part.taken = part.taken.wrapping_add(taken as u32);
            taken_by_all = taken_by_all.min(ahead + taken);
        }
        self.taken = self.taken.wrapping_add(taken_by_all as u32);
        self.continuation = (taken_by_all < octets.len()).then_some(continuation);
        Ok(taken_by_all)
    }
}

impl Archive {
    /// Begins a letter for each core that owns some of the recipients.
    pub(crate) fn begin_spread(&mut self, recipients: &[Recipient]) -> Result<LetterId, Refusal> {
        sometimes!(LetterSpread);
        let letter = self.elsewhere.as_mut().ok_or(Refusal::NoSuchAccount)?.spread.begin()?;
        for owner in (0..self.owners.count()).map(CoreId) {
            let Some(elsewhere) = &mut self.elsewhere else { break };
            let mut theirs = core::mem::take(&mut elsewhere.recipients);
            theirs.extend(recipients.iter().filter(|recipient| self.owners.of(recipient.account) == owner));
            let begun = if theirs.is_empty() { None } else { Some(self.begin_at(owner, &theirs)) };
            theirs.clear();
            let Some(elsewhere) = &mut self.elsewhere else { break };
            elsewhere.recipients = theirs;
            match (begun, elsewhere.spread.get(letter)) {
                (Some(Ok(part)), Some(parts)) => parts.add(part),
                (Some(Err(refusal)), _) => {
                    self.abort(LetterId::Spread(letter));
                    return Err(refusal);
                }
                _ => {}
            }
        }
        Ok(LetterId::Spread(letter))
    }

    pub(crate) fn append_spread(
        &mut self,
        letter: FrameId,
        octets: &[u8],
        continuation: Continuation,
    ) -> Result<usize, Refusal> {
        let Some(elsewhere) = &mut self.elsewhere else { return Err(Refusal::NoSuchDelivery) };
        let (own, distant) = (&mut self.own.store, &mut elsewhere.distant);
        let room = part_at(letter, Point::PartRoom);
        let parts = elsewhere.spread.get(letter).ok_or(Refusal::NoSuchDelivery)?;
        parts.append(octets, continuation, |part, octets| match part {
            LetterId::Own(delivery) => own.append(delivery, octets, room),
            LetterId::Distant(letter) => distant.append(letter, octets, room),
            LetterId::Spread(_) => Err(Refusal::NoSuchDelivery),
        })
    }

    /// Has all parts of a message prepared. Then all are committed, or none if one cannot be.
    pub(crate) fn prepare_spread(
        &mut self,
        letter: FrameId,
        closing: Closing,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        let parts = self.spread(letter).ok_or(Refusal::NoSuchDelivery)?;
        (parts.stage, parts.closing) = (Stage::Preparing, Some(closing));
        (parts.outstanding, parts.continuation) = (parts.parts.len(), Some(continuation));
        for number in 0..parts.parts.len() {
            let Some(part) = self.spread(letter).and_then(|parts| parts.parts.get(number)) else { break };
            let prepared = match (part.letter, &mut self.elsewhere) {
                (LetterId::Own(_), _) => {
                    self.part_has_space(letter);
                    Ok(())
                }
                (LetterId::Distant(part), Some(elsewhere)) => {
                    elsewhere.distant.prepare(part, part_at(letter, Point::PartPrepared))
                }
                _ => Err(Refusal::NoSuchDelivery),
            };
            if let Err(refusal) = prepared {
                self.refuse_preparing(letter, refusal);
                break;
            }
        }
        Ok(())
    }

    /// This core's part of a letter may find space now.
    fn part_has_space(&mut self, letter: FrameId) {
        let own = |parts: &mut Parts| {
            parts.parts.iter().find_map(|part| if let LetterId::Own(own) = part.letter { Some(own) } else { None })
        };
        let Some(own) = self.spread(letter).filter(|parts| parts.stage == Stage::Preparing).and_then(own) else {
            return;
        };
        match self.own.store.prepare(own, part_at(letter, Point::PartSpace)) {
            Ok(true) => self.part_prepared(letter),
            Ok(false) => {}
            Err(refusal) => {
                self.refuse_preparing(letter, refusal);
            }
        }
    }

    /// One more part of a letter is prepared; with the last one all are committed.
    fn part_prepared(&mut self, letter: FrameId) {
        let Some(parts) = self.spread(letter).filter(|parts| parts.stage == Stage::Preparing) else { return };
        parts.outstanding -= 1;
        if parts.outstanding > 0 {
            return;
        }
        (parts.stage, parts.outstanding) = (Stage::Committed, parts.parts.len());
        let Some(closing) = parts.closing else { unreachable!("a message that is prepared and not complete") };
        for number in 0..parts.parts.len() {
            let Some(part) = self.spread(letter).and_then(|parts| parts.parts.get(number)) else {
                unreachable!("a message that is being stored")
            };
            let stored = part_at(letter, Point::PartStored);
            match (part.letter, &mut self.elsewhere) {
                (LetterId::Own(delivery), Some(elsewhere)) => {
                    if let Err(refusal) = self.own.store.commit(delivery, closing, stored) {
                        elsewhere.distant.wake(refused(stored, refusal));
                    }
                }
                (LetterId::Distant(letter), Some(elsewhere)) => {
                    elsewhere.distant.commit_prepared(letter, closing, stored)
                }
                _ => unreachable!("a part is of one core"),
            }
        }
    }

    /// Refuses a letter that was not committed on any core; false: there is none such.
    pub fn refuse_preparing(&mut self, letter: FrameId, refusal: Refusal) -> bool {
        let Some(parts) = self.spread(letter).filter(|parts| parts.stage == Stage::Preparing) else { return false };
        let continuation = parts.continuation.take();
        self.abort(LetterId::Spread(letter));
        if let (Some(continuation), Some(elsewhere)) = (continuation, &mut self.elsewhere) {
            elsewhere.distant.wake(refused(continuation, refusal));
        }
        true
    }

    /// Whether a message for accounts of several cores is complete, but not yet prepared on all.
    pub fn is_preparing(&self, letter: FrameId) -> bool {
        self.elsewhere.as_ref().is_some_and(|elsewhere| elsewhere.spread.stage(letter) == Some(Stage::Preparing))
    }

    fn spread(&mut self, letter: FrameId) -> Option<&mut Parts> {
        self.elsewhere.as_mut()?.spread.get(letter)
    }

    /// Gives a letter up. Once it is committed this only means that nobody is woken.
    pub(crate) fn abort_spread(&mut self, letter: FrameId) {
        let Some(parts) = self.spread(letter) else { return };
        parts.continuation = None;
        if parts.stage == Stage::Committed {
            return;
        }
        let parts = core::mem::take(&mut parts.parts);
        if let Some(elsewhere) = &mut self.elsewhere {
            elsewhere.spread.remove(letter);
        }
        parts.into_iter().for_each(|part| self.abort(part.letter));
    }

    /// What of a wake is for a session: all of it, but where a part of a letter is meant.
    pub(crate) fn of_session(&mut self, wake: Wake) -> Option<Wake> {
        let letter = wake.continuation.frame;
        match (Point::of(wake.continuation.entry), &wake.outcome) {
            (Some(Point::PartSpace), _) => self.part_has_space(letter),
            (Some(Point::PartPrepared), Outcome::Refused(refusal)) => {
                self.refuse_preparing(letter, *refusal);
            }
            (Some(Point::PartPrepared), _) => self.part_prepared(letter),
            (Some(Point::PartRoom | Point::PartStored), _) => {
                return self.elsewhere.as_mut().and_then(|elsewhere| elsewhere.spread.woken(wake));
            }
            _ => return Some(wake),
        }
        None
    }
}

/// What a part of `letter` waits at.
fn part_at(letter: FrameId, point: Point) -> Continuation {
    Continuation { frame: letter, entry: point.entry() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Letter;

    fn part(number: u32) -> LetterId {
        LetterId::Distant(Letter(FrameId::new(number, 0)))
    }

    fn number(letter: LetterId) -> usize {
        let LetterId::Distant(Letter(frame)) = letter else { panic!("a part of another kind") };
        frame.index()
    }

    /// Three parts that take as much at a time as a small clock says, which is offered in pieces
    /// of changing lengths.
    #[test]
    fn every_part_of_a_letter_for_several_cores_gets_every_octet_once_however_much_each_takes_at_a_time() {
        let octets: Vec<u8> = (0..5000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let mut spread = Spread::new(1);
        let letter = spread.begin().expect("there is room for one");
        assert_eq!(spread.begin(), Err(Refusal::Busy));
        let parts = spread.get(letter).expect("it has begun");
        (0..3).for_each(|number| parts.add(part(number)));
        let mut got = [const { Vec::new() }; 3];
        let (mut at, mut clock) = (0, 7_usize);
        while at < octets.len() {
            clock = clock * 5 % 1009;
            let offered = &octets[at..octets.len().min(at + 1 + clock)];
            let taken = parts.append(offered, part_at(letter, Point::LetterRoom), |part, octets| {
                clock = clock * 5 % 1009;
                let count = octets.len().min(clock % 300);
                got[number(part)].extend_from_slice(&octets[..count]);
                Ok(count)
            });
            at += taken.expect("nobody refuses");
        }
        assert!(got.iter().all(|got| *got == octets));
    }

    #[test]
    fn a_letter_for_several_cores_ends_when_all_its_parts_have() {
        for refused in [None, Some(Refusal::DiskFull)] {
            let mut spread = Spread::new(1);
            let letter = spread.begin().expect("there is room for one");
            let parts = spread.get(letter).expect("it has begun");
            let session = Continuation { frame: FrameId::new(5, 6), entry: Point::LetterStored.entry() };
            (parts.outstanding, parts.continuation) = (2, Some(session));
            let mut end = |outcome| spread.woken(Wake { continuation: part_at(letter, Point::PartStored), outcome });
            assert!(end(refused.map_or(Outcome::Delivered, Outcome::Refused)).is_none());
            let wake = end(Outcome::Delivered).expect("the session is told");
            assert_eq!(wake.continuation, session);
            match refused {
                None => assert!(matches!(wake.outcome, Outcome::Delivered)),
                Some(refused) => assert!(matches!(wake.outcome, Outcome::Refused(told) if told == refused)),
            }
            assert_eq!(spread.len(), 0);
        }
    }

    #[test]
    fn room_that_comes_late_is_not_taken_for_the_end_of_a_letter_for_several_cores() {
        let mut spread = Spread::new(1);
        let letter = spread.begin().expect("there is room for one");
        let session = Continuation { frame: FrameId::new(5, 6), entry: Point::LetterStored.entry() };
        let room = || Wake { continuation: part_at(letter, Point::PartRoom), outcome: Outcome::Room };
        for stage in [Stage::Preparing, Stage::Committed] {
            let parts = spread.get(letter).expect("it has begun");
            (parts.stage, parts.outstanding, parts.continuation) = (stage, 1, Some(session));
            assert!(spread.woken(room()).is_none());
        }
        let stored = Wake { continuation: part_at(letter, Point::PartStored), outcome: Outcome::Delivered };
        let wake = spread.woken(stored).expect("the session is told");
        assert_eq!(wake.continuation, session);
    }
}
