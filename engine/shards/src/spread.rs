//! Messages for accounts of several cores: each of these cores gets a part of its own, and the
//! parts end together.
//!
//! A core lets a limited number of messages begin at a time. So the parts take their places one
//! after another, in the order of their cores, and octets are accepted when all parts have one. A
//! message with a place waits only for higher cores, so no two messages wait for each other.
//!
//! The parts may take different numbers of octets at a time. The message takes as many as all parts
//! have taken. A part that is ahead skips the octets that it has when they come again. A complete
//! message is first prepared on all cores: each has all of it, and space for it. Only then is it
//! committed on all, and only the disk can still fail.
//!
//! Invariants:
//! - The end of the message is reported when all parts have ended: delivered if all are, else
//!   refused.
//! - If a part is refused before all are prepared, so is the message, and no part ever becomes
//!   visible.

use alloc::boxed::Box;
use alloc::vec::Vec;

use machine::CoreId;
use sometimes::sometimes;
use store::{Closing, Outcome, Recipient, Refusal, Wake};
use tasks::{Continuation, FrameId, FrameTable};

use crate::archive::{Archive, Elsewhere};
use crate::messages::{Letter, LetterId, refused};
use crate::point::Point;

#[cfg(test)]
mod tests;

/// The recipients that a record keeps capacity for.
const OWN_KEPT: usize = 8;

/// The multi-shard messages that have begun on this core.
pub(crate) struct Spread {
    letters: FrameTable<Box<Parts>>,
    /// Unused records.
    #[expect(clippy::vec_box, reason = "they are handed on as pointers")]
    idle: Vec<Box<Parts>>,
}

/// One message.
#[derive(Default)]
struct Parts {
    /// The parts that have a place, or wait for one.
    parts: Vec<Part>,
    /// The parts that do not wait for a place yet, with the next one last.
    coming: Vec<Unplaced>,
    /// The recipients of this core's part, until it has a place.
    own: Vec<Recipient>,
    /// Octets that all parts have taken, modulo 2^32.
    taken: u32,
    stage: Stage,
    /// The facts that came with its completion.
    closing: Option<Closing>,
    /// Parts that are not prepared yet, or that were committed and have not ended.
    outstanding: usize,
    refused: Option<Refusal>,
    /// The continuation that waits for space, or for the end.
    continuation: Option<Continuation>,
}

/// The progress of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    /// Not all parts have a place.
    #[default]
    Beginning,
    /// Its octets arrive.
    Octets,
    /// It is complete. Not all parts are known to have space.
    Preparing,
    /// Its parts are committed.
    Committed,
}

/// A part that has no place yet.
#[derive(Clone, Copy)]
enum Unplaced {
    Own,
    Distant(Letter),
}

/// The part of one core.
struct Part {
    letter: LetterId,
    taken: u32,
}

impl Spread {
    pub(crate) fn new(letters: usize) -> Spread {
        Spread {
            letters: FrameTable::with_capacity(letters),
            idle: (0..letters).map(|_| Box::new(Parts::with_room())).collect(),
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

    /// Removes a message.
    fn remove(&mut self, letter: FrameId) {
        let Some(mut parts) = self.letters.remove(letter) else {
            unreachable!("a message that has ended")
        };
        parts.clear();
        self.idle.push(parts);
    }

    fn stage(&self, letter: FrameId) -> Option<Stage> {
        self.letters.get(letter).map(|parts| parts.stage)
    }

    /// The parts of a message that have a place, or wait for one.
    pub(crate) fn parts_of(&self, letter: FrameId) -> impl Iterator<Item = LetterId> {
        self.letters
            .get(letter)
            .into_iter()
            .flat_map(|parts| parts.parts.iter().map(|part| part.letter))
    }

    pub(crate) fn len(&self) -> usize {
        self.letters.len()
    }

    /// An event of a part. Returns the result for the session, if there is one.
    pub(crate) fn woken(&mut self, wake: Wake) -> Option<Wake> {
        let letter = wake.continuation.frame;
        let parts = self.letters.get_mut(letter)?;
        if Point::of(wake.continuation.entry) == Some(Point::PartRoom) {
            // All octets may have been taken in the meantime. Then the session waits for the end.
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
    fn with_room() -> Parts {
        let (parts, coming) = (Vec::with_capacity(4), Vec::with_capacity(4));
        Parts { parts, coming, own: Vec::with_capacity(OWN_KEPT), ..Parts::default() }
    }

    fn clear(&mut self) {
        let Parts { parts, coming, own, .. } = core::mem::take(self);
        *self = Parts { parts, coming, own, ..Parts::default() };
        self.parts.clear();
        self.coming.clear();
        self.forget_own();
    }

    /// Clears the recipients of this core's part.
    fn forget_own(&mut self) {
        self.own.clear();
        self.own.shrink_to(OWN_KEPT);
    }

    fn add(&mut self, letter: LetterId) {
        self.parts.push(Part { letter, taken: 0 });
    }

    /// Gives every part the `octets` that it does not have yet. Returns how many all parts have
    /// taken, or 0 while not all have a place.
    fn append(
        &mut self,
        octets: &[u8],
        continuation: Continuation,
        mut append: impl FnMut(LetterId, &[u8]) -> Result<usize, Refusal>,
    ) -> Result<usize, Refusal> {
        if let Some(refusal) = self.refused {
            return Err(refusal);
        }
        if self.stage == Stage::Beginning {
            self.continuation = Some(continuation);
            return Ok(0);
        }
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

    /// Completes the message. It is prepared when all parts have a place.
    ///
    /// Errors: a core has refused its part, so nothing would end the message.
    fn complete(&mut self, closing: Closing, continuation: Continuation) -> Result<(), Refusal> {
        if let Some(refusal) = self.refused {
            return Err(refusal);
        }
        (self.closing, self.continuation) = (Some(closing), Some(continuation));
        if self.stage == Stage::Octets {
            self.stage = Stage::Preparing;
        }
        Ok(())
    }
}

impl Archive {
    /// Begins a part for each core that owns some of the recipients.
    pub(crate) fn begin_spread(&mut self, recipients: &[Recipient]) -> Result<LetterId, Refusal> {
        sometimes!(LetterSpread);
        let letter = self.elsewhere.as_mut().ok_or(Refusal::NoSuchAccount)?.spread.begin()?;
        let mut owners = (0..self.owners.count()).rev().map(CoreId);
        let noted = owners.try_for_each(|owner| self.note_part(letter, owner, recipients));
        match noted.and_then(|()| self.take_places(letter)) {
            Ok(()) => Ok(LetterId::Spread(letter)),
            Err(refusal) => {
                self.abort(LetterId::Spread(letter));
                Err(refusal)
            }
        }
    }

    /// Notes the part of a message for the recipients that `owner` has, if any.
    fn note_part(
        &mut self,
        letter: FrameId,
        owner: CoreId,
        recipients: &[Recipient],
    ) -> Result<(), Refusal> {
        let (owners, is_own) = (self.owners, owner == self.core);
        let Some(Elsewhere { distant, spread, recipients: theirs, .. }) = &mut self.elsewhere
        else {
            unreachable!("a multi-shard message without other cores")
        };
        let Some(parts) = spread.get(letter) else { unreachable!("a message that has just begun") };
        let owned = recipients.iter().filter(|recipient| owners.of(recipient.account) == owner);
        let coming = if is_own {
            parts.own.extend(owned);
            (!parts.own.is_empty()).then_some(Unplaced::Own)
        } else {
            theirs.extend(owned);
            let begun = (!theirs.is_empty()).then(|| distant.begin(owner, theirs));
            theirs.clear();
            begun.transpose()?.map(Unplaced::Distant)
        };
        parts.coming.extend(coming);
        Ok(())
    }

    /// Takes the places of a message's parts, up to one that it must wait for.
    ///
    /// Errors: this core's store refuses its part.
    fn take_places(&mut self, letter: FrameId) -> Result<(), Refusal> {
        let Some(Elsewhere { distant, spread, .. }) = &mut self.elsewhere else {
            unreachable!("a multi-shard message without other cores")
        };
        let Some(parts) = spread.get(letter) else {
            unreachable!("a message that has ended takes no place")
        };
        while let Some(coming) = parts.coming.pop() {
            match coming {
                Unplaced::Own => {
                    let begun = self.own.store.begin(&parts.own);
                    parts.forget_own();
                    parts.add(LetterId::Own(begun?));
                }
                Unplaced::Distant(part) => {
                    parts.add(LetterId::Distant(part));
                    distant.ask_for_place(part, part_at(letter, Point::PartBegun));
                    return Ok(());
                }
            }
        }
        parts.stage = Stage::Octets;
        Ok(())
    }

    /// A core has a place for the last part that asked for one, or refuses it. The next part
    /// follows.
    pub(crate) fn place_taken(&mut self, letter: FrameId) -> Option<Wake> {
        let Elsewhere { distant, spread, .. } = self.elsewhere.as_mut()?;
        let refusal = match spread.get(letter)?.parts.last()?.letter {
            LetterId::Distant(part) => distant.refusal(part),
            _ => unreachable!("this core's part waits for no place"),
        };
        let taken = refusal.map_or_else(|| self.take_places(letter), Err);
        let parts = self.spread(letter)?;
        parts.refused = taken.err();
        if parts.stage == Stage::Beginning && parts.refused.is_none() {
            return None;
        }
        if parts.closing.is_none() {
            let continuation = parts.continuation.take()?;
            return Some(Wake { continuation, outcome: Outcome::Room });
        }
        // It is complete already, because it has no octets.
        parts.stage = Stage::Preparing;
        match taken {
            Ok(()) => self.prepare_parts(letter),
            Err(refusal) => {
                self.refuse_preparing(letter, refusal);
            }
        }
        None
    }

    /// Whether not all parts of a message have a place.
    pub fn is_beginning(&self, letter: FrameId) -> bool {
        self.elsewhere
            .as_ref()
            .is_some_and(|elsewhere| elsewhere.spread.stage(letter) == Some(Stage::Beginning))
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
    ///
    /// Errors: the message is aborted.
    pub(crate) fn prepare_spread(
        &mut self,
        letter: FrameId,
        closing: Closing,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        let parts = self.spread(letter).ok_or(Refusal::NoSuchDelivery)?;
        match parts.complete(closing, continuation) {
            Ok(()) if parts.stage == Stage::Preparing => self.prepare_parts(letter),
            Ok(()) => {}
            Err(refusal) => {
                self.abort(LetterId::Spread(letter));
                return Err(refusal);
            }
        }
        Ok(())
    }

    fn prepare_parts(&mut self, letter: FrameId) {
        let Some(parts) = self.spread(letter) else { unreachable!("a message that is complete") };
        parts.outstanding = parts.parts.len();
        for number in 0..parts.parts.len() {
            let Some(part) = self.spread(letter).and_then(|parts| parts.parts.get(number)) else {
                break;
            };
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
    }

    /// This core's part of a message may find space now.
    pub(crate) fn part_has_space(&mut self, letter: FrameId) {
        let own = |parts: &mut Parts| {
            parts.parts.iter().find_map(|part| {
                if let LetterId::Own(own) = part.letter { Some(own) } else { None }
            })
        };
        let Some(own) =
            self.spread(letter).filter(|parts| parts.stage == Stage::Preparing).and_then(own)
        else {
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

    /// One more part of a message is prepared. With the last one all are committed.
    pub(crate) fn part_prepared(&mut self, letter: FrameId) {
        let Some(parts) = self.spread(letter).filter(|parts| parts.stage == Stage::Preparing)
        else {
            return;
        };
        parts.outstanding -= 1;
        if parts.outstanding > 0 {
            return;
        }
        (parts.stage, parts.outstanding) = (Stage::Committed, parts.parts.len());
        let Some(closing) = parts.closing else {
            unreachable!("a message that is prepared and not complete")
        };
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

    /// Refuses a message that was not committed on any core. Returns false if there is none.
    pub fn refuse_preparing(&mut self, letter: FrameId, refusal: Refusal) -> bool {
        let Some(parts) = self.spread(letter).filter(|parts| parts.stage == Stage::Preparing)
        else {
            return false;
        };
        let continuation = parts.continuation.take();
        self.abort(LetterId::Spread(letter));
        if let (Some(continuation), Some(elsewhere)) = (continuation, &mut self.elsewhere) {
            elsewhere.distant.wake(refused(continuation, refusal));
        }
        true
    }

    /// Whether a multi-shard message is complete, but not prepared on all cores yet.
    pub fn is_preparing(&self, letter: FrameId) -> bool {
        self.elsewhere
            .as_ref()
            .is_some_and(|elsewhere| elsewhere.spread.stage(letter) == Some(Stage::Preparing))
    }

    fn spread(&mut self, letter: FrameId) -> Option<&mut Parts> {
        self.elsewhere.as_mut()?.spread.get(letter)
    }

    /// Aborts a message. If it is committed, this only removes its continuation.
    pub(crate) fn abort_spread(&mut self, letter: FrameId) {
        let Some(parts) = self.spread(letter) else { return };
        parts.continuation = None;
        if parts.stage == Stage::Committed {
            return;
        }
        let (parts, coming) =
            (core::mem::take(&mut parts.parts), core::mem::take(&mut parts.coming));
        let Some(elsewhere) = &mut self.elsewhere else { return };
        elsewhere.spread.remove(letter);
        for coming in coming {
            if let Unplaced::Distant(part) = coming {
                elsewhere.distant.abort(part);
            }
        }
        parts.into_iter().for_each(|part| self.abort(part.letter));
    }
}

/// The continuation of a part of `letter`.
fn part_at(letter: FrameId, point: Point) -> Continuation {
    Continuation { frame: letter, entry: point.entry() }
}
