//! QUIT: the marked messages are deleted, in as few removals as hold them.

use pop3::DeletionError;
use store::{INBOX, Outcome};
use tasks::Countdown;

use crate::common::Point;

use super::Hands;

/// Ranges of UIDs that one removal takes.
const RANGES_PER_REMOVAL: usize = 400;

/// A deletion under way: it is over when none of its removals is outstanding.
pub(super) struct Deletion {
    outstanding: Countdown,
    result: Result<(), DeletionError>,
}

/// Asks the store for the removals.
pub(super) fn begin(hands: &mut Hands<'_>) {
    let continuation = hands.continuation(Point::Deleted);
    let Some(maildrop) = &hands.state.maildrop else { return };
    let mut deletion = Deletion { outstanding: Countdown::default(), result: Ok(()) };
    for ranges in maildrop.marked().chunks(RANGES_PER_REMOVAL) {
        match hands.common.store.remove(maildrop.account, INBOX, ranges, continuation) {
            Ok(()) => deletion.outstanding.expect_one_more(),
            Err(_) => deletion.result = Err(DeletionError),
        }
    }
    if deletion.outstanding.is_done() {
        hands.common.ready.resume(hands.caller.connection.0);
    }
    hands.state.deletion = Some(deletion);
}

/// A removal is durable, or was refused.
pub(super) fn part_ended(outcome: &Outcome, session: &mut pop3::Session, hands: &mut Hands<'_>) {
    if let Some(deletion) = &mut hands.state.deletion {
        if !matches!(outcome, Outcome::Changed) {
            deletion.result = Err(DeletionError);
        }
        deletion.outstanding.arrived();
    }
    end_if_over(session, hands);
}

/// Tells the session of its deletion, if that is over.
pub(super) fn end_if_over(session: &mut pop3::Session, hands: &mut Hands<'_>) {
    if let Some(deletion) = hands.state.deletion.take_if(|deletion| deletion.outstanding.is_done()) {
        session.deleted(deletion.result, hands);
    }
}
