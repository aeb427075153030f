//! QUIT: deletes the marked messages with as few store requests as possible.
//!
//! Invariant: the maildrop stays locked until the last removal has ended, even if the client
//! disconnects.

use alloc::boxed::Box;

use machine::Micros;
use pop3::DeletionError;
use sometimes::sometimes;
use store::{Outcome, Refusal};
use tasks::Countdown;

use super::host::{Pop3Call, Pop3Host, Pop3WaitPoint};
use super::state::{Deletion, Orphan, State};

/// The most ranges of UIDs in one removal.
const RANGES_PER_REMOVAL: usize = 400;
/// The time after which a removal is requested again, if the store was busy.
const RETRY: Micros = Micros::from_millis(10);

/// Begins to delete the marked messages.
pub(super) fn begin(host: &mut Pop3Host<'_, '_>) {
    let Some(maildrop) = &host.state.maildrop else { return };
    let deletion =
        Deletion { ranges: maildrop.marked(), outstanding: Countdown::default(), result: Ok(()) };
    host.state.deletion = Some(Box::new(deletion));
    ask(host);
    if host.state.deletion.as_ref().is_some_and(|deletion| deletion.outstanding.is_done()) {
        host.cx.connections.resume(host.caller.connection.0);
    }
}

/// Requests the removals that the store has not accepted yet. Reports the result to the session
/// after the last removal. Returns false if there is no deletion.
pub(super) fn go_on(session: &mut pop3::Session, host: &mut Pop3Host<'_, '_>) -> bool {
    ask(host);
    let Some(deletion) = &host.state.deletion else { return false };
    if !deletion.outstanding.is_done() {
        return true;
    }
    if !deletion.ranges.is_empty() {
        host.cx.connections.set_deadline(host.cx.turn.now, host.caller.connection, Some(RETRY));
        return true;
    }
    let result = deletion.result;
    host.state.deletion = None;
    session.deleted(result, host);
    true
}

/// A removal has ended: it is durable, or the store has refused it.
pub(super) fn part_ended(
    outcome: &Outcome,
    session: &mut pop3::Session,
    host: &mut Pop3Host<'_, '_>,
) {
    if let Some(deletion) = &mut host.state.deletion {
        deletion.part_ended(outcome);
    }
    go_on(session, host);
}

/// Requests as many removals as the store accepts.
fn ask(host: &mut Pop3Host<'_, '_>) {
    let continuation = host.continuation(Pop3WaitPoint::Deleted);
    let (Some(maildrop), Some(deletion)) = (&host.state.maildrop, &mut host.state.deletion) else {
        return;
    };
    while !deletion.ranges.is_empty() {
        let count = deletion.ranges.len().min(RANGES_PER_REMOVAL);
        let ranges = deletion.ranges.get(..count).unwrap_or_default();
        match host.cx.store.remove(maildrop.account(), ranges, continuation) {
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

/// The client has disconnected. The removals that the store has accepted continue as an orphan,
/// which keeps the maildrop locked. The others are dropped.
pub(super) fn leave(state: &mut State, call: &mut Pop3Call<'_>) {
    let Some(outstanding) = state.deletion.take().map(|deletion| deletion.outstanding) else {
        return;
    };
    if !outstanding.is_done()
        && let Some(maildrop) = state.maildrop.take()
    {
        sometimes!(DeletionOrphaned);
        call.pop3.orphans.push(Orphan { frame: call.caller.connection.0, outstanding, maildrop });
    }
}
