//! QUIT: the marked messages are deleted, in as few removals as hold them.
//!
//! Invariant: the maildrop stays locked until the last removal has ended, even if the client does not.

use alloc::boxed::Box;
use alloc::vec::Vec;

use machine::Micros;
use pop3::DeletionError;
use sometimes::sometimes;
use store::{Outcome, Refusal, UidRange};
use tasks::{Countdown, FrameId};

use crate::common::Common;
use crate::maildrop::Maildrop;

use super::Point;
use super::{Conversation, Hands};

/// Ranges of UIDs that one removal takes.
const RANGES_PER_REMOVAL: usize = 400;
/// How soon a removal is asked for again that the store had no room for.
const RETRY: Micros = Micros::from_millis(10);

/// A deletion under way: it is over when all removals were asked for, and none is outstanding.
pub(super) struct Deletion {
    /// What is still to be asked for.
    ranges: Vec<UidRange>,
    outstanding: Countdown,
    result: Result<(), DeletionError>,
}

/// A deletion whose client has left: what of it was asked for goes on.
pub(crate) struct Orphan {
    frame: FrameId,
    outstanding: Countdown,
    maildrop: Box<Maildrop>,
}

/// Asks the store for the removals.
pub(super) fn begin(hands: &mut Hands<'_>) {
    let Some(maildrop) = &hands.state.maildrop else { return };
    let deletion = Deletion { ranges: maildrop.marked(), outstanding: Countdown::default(), result: Ok(()) };
    hands.state.deletion = Some(Box::new(deletion));
    ask(hands);
    if hands.state.deletion.as_ref().is_some_and(|deletion| deletion.outstanding.is_done()) {
        hands.common.connections.resume(hands.caller.connection.0);
    }
}

/// Goes on with a deletion for which the store had no room, and tells the session when it is over. False when there is
/// no deletion.
pub(super) fn go_on(session: &mut pop3::Session, hands: &mut Hands<'_>) -> bool {
    ask(hands);
    let Some(deletion) = &hands.state.deletion else { return false };
    if !deletion.outstanding.is_done() {
        return true;
    }
    if !deletion.ranges.is_empty() {
        hands.common.connections.set_deadline(hands.common.turn.now, hands.caller.connection, Some(RETRY));
        return true;
    }
    let result = deletion.result;
    hands.state.deletion = None;
    session.deleted(result, hands);
    true
}

/// A removal is durable, or was refused.
pub(super) fn part_ended(outcome: &Outcome, session: &mut pop3::Session, hands: &mut Hands<'_>) {
    if let Some(deletion) = &mut hands.state.deletion {
        deletion.part_ended(outcome);
    }
    go_on(session, hands);
}

/// Asks for as much as the store has room for.
fn ask(hands: &mut Hands<'_>) {
    let continuation = hands.continuation(Point::Deleted);
    let (Some(maildrop), Some(deletion)) = (&hands.state.maildrop, &mut hands.state.deletion) else { return };
    while !deletion.ranges.is_empty() {
        let count = deletion.ranges.len().min(RANGES_PER_REMOVAL);
        let ranges = deletion.ranges.get(..count).unwrap_or_default();
        match hands.common.store.remove(maildrop.account, ranges, continuation) {
            Ok(()) => {
                deletion.ranges.drain(..count);
                deletion.outstanding.expect_one_more();
            }
            Err(Refusal::Busy) => return,
            Err(_) => {
                deletion.ranges.clear();
                deletion.result = Err(DeletionError);
            }
        }
    }
}

impl Deletion {
    fn part_ended(&mut self, outcome: &Outcome) {
        if !matches!(outcome, Outcome::Changed) {
            self.result = Err(DeletionError);
        }
        self.outstanding.arrived();
    }
}

impl Conversation {
    /// The client has left: a deletion that is under way keeps the maildrop.
    pub(super) fn leave_deletion(&mut self, frame: FrameId, common: &mut Common) {
        let Some(outstanding) = self.state.deletion.take().map(|deletion| deletion.outstanding) else { return };
        if !outstanding.is_done()
            && let Some(maildrop) = self.state.maildrop.take()
        {
            sometimes!(DeletionOrphaned);
            common.orphans.push(Orphan { frame, outstanding, maildrop });
        }
    }
}

impl Common {
    /// A removal has ended whose client has left: after the last one the maildrop is unlocked.
    pub(crate) fn orphan_ended(&mut self, frame: FrameId) {
        let Some(place) = self.orphans.iter().position(|orphan| orphan.frame == frame) else { return };
        if self.orphans.get_mut(place).is_some_and(|orphan| orphan.outstanding.arrived()) {
            let orphan = self.orphans.swap_remove(place);
            self.store.close_maildrop(orphan.maildrop);
        }
    }
}
