//! RETR and TOP: a message is read part by part, each when the connection has room for all of it.
//!
//! Invariants:
//! - Who finds the store busy with the reads of others asks again, and is not refused.
//! - A part is held for as long as it takes to copy it. However slowly a client reads, it holds no buffer of the store's.
//! - A session has at most one read under way. One that nobody wants any more is waited for before the next begins, so
//!   that its bytes cannot be taken for another's.

use machine::Micros;
use pop3::{MessageNumber, ReadError};
use store::{Body, Outcome, Refusal, Uid};

use super::host::{Point, Pop3Host};
use super::state::{Read, Reading, State};

/// How soon a read is asked for again that the store had no place for.
const RETRY: Micros = Micros::from_millis(10);

/// The session wants `message`.
pub(super) fn begin(message: MessageNumber, host: &mut Pop3Host<'_, '_>) {
    let Some(maildrop) = &host.state.maildrop else { return };
    let octets = maildrop.octets(message.index());
    let uid = maildrop.uid(message.index()).unwrap_or(Uid(0));
    host.state.reading = Some(Reading { uid, octets, taken: 0, refused: None });
    // What is started is never answered from within the call, and the session's deadline is set when the call has ended.
    if let Err(refusal) = request_part(host) {
        if let Some(reading) = &mut host.state.reading {
            reading.refused = Some(refusal);
        }
        host.cx.connections.resume(host.caller.connection.0);
    } else if host.state.read == Read::WantsPlace {
        host.cx.connections.resume(host.caller.connection.0);
    }
}

/// The session wants no more of its message.
pub(super) fn stop(host: &mut Pop3Host<'_, '_>) {
    host.state.reading = None;
    host.state.read = match host.state.read {
        Read::Idle | Read::WantsRoom | Read::WantsPlace => Read::Idle,
        Read::UnderWay | Read::Unwanted => Read::Unwanted,
    };
}

/// There may be room for the next part.
pub(super) fn go_on(session: &mut pop3::Session, host: &mut Pop3Host<'_, '_>) {
    if host.state.wants_room() {
        host.state.read = Read::Idle;
        request_or_fail(session, host);
    }
}

/// There may be a place for the next part's read. False when the session wants none.
pub(super) fn ask_again(session: &mut pop3::Session, host: &mut Pop3Host<'_, '_>) -> bool {
    if host.state.read != Read::WantsPlace {
        return false;
    }
    host.state.read = Read::Idle;
    session.renew_deadline(host);
    request_or_fail(session, host);
    true
}

/// Tells the session of a message that the store would not read.
pub(super) fn end_if_refused(session: &mut pop3::Session, host: &mut Pop3Host<'_, '_>) {
    if let Some(refusal) = host.state.reading.as_ref().and_then(|reading| reading.refused) {
        end(Err(read_error(&Outcome::Refused(refusal))), session, host);
    }
}

/// A part of a message has been read, or could not be.
pub(super) fn read_ended(
    outcome: Outcome,
    session: &mut pop3::Session,
    host: &mut Pop3Host<'_, '_>,
) {
    let wanted = core::mem::take(&mut host.state.read) == Read::UnderWay;
    match outcome {
        Outcome::Body(body) if wanted => pass_on(body, session, host),
        outcome if wanted => end(Err(read_error(&outcome)), session, host),
        outcome => {
            host.cx.store.forget(outcome);
            request_or_fail(session, host);
        }
    }
}

/// Gives the session what has been read of its message, and asks for the rest, or ends it.
fn pass_on(body: Body, session: &mut pop3::Session, host: &mut Pop3Host<'_, '_>) {
    let is_empty = body.bytes().is_empty();
    let count = session.message_bytes_arrived(body.bytes(), host);
    host.cx.store.give_back(body);
    let Some(reading) = host.state.reading.as_mut() else { return };
    reading.taken += count as u32;
    if reading.taken >= reading.octets {
        end(Ok(()), session, host);
    } else if is_empty {
        // The message is shorter than its entry says: going on would find the same again.
        end(Err(ReadError::Damaged), session, host);
    } else {
        request_or_fail(session, host);
    }
}

fn request_or_fail(session: &mut pop3::Session, host: &mut Pop3Host<'_, '_>) {
    if let Err(refusal) = request_part(host) {
        end(Err(read_error(&Outcome::Refused(refusal))), session, host);
    }
}

/// Asks the store for the next part of the message that the session wants, or the connection for room.
fn request_part(host: &mut Pop3Host<'_, '_>) -> Result<(), Refusal> {
    let room = host.cx.connections.send_room(host.caller);
    let continuation = host.continuation(Point::Read);
    let State { reading: Some(reading), maildrop: Some(maildrop), read: read @ Read::Idle, .. } =
        &mut *host.state
    else {
        return Ok(());
    };
    if room < reading.room_needed() {
        *read = Read::WantsRoom;
        return Ok(());
    }
    match host.cx.store.read(maildrop.account(), reading.uid, reading.taken, continuation) {
        Ok(()) => *read = Read::UnderWay,
        Err(Refusal::Busy) => {
            *read = Read::WantsPlace;
            host.cx.connections.set_deadline(host.cx.turn.now, host.caller.connection, Some(RETRY));
        }
        Err(refusal) => return Err(refusal),
    }
    Ok(())
}

fn end(result: Result<(), ReadError>, session: &mut pop3::Session, host: &mut Pop3Host<'_, '_>) {
    host.state.reading = None;
    session.message_ended(result, host);
}

fn read_error(outcome: &Outcome) -> ReadError {
    match outcome {
        Outcome::Refused(Refusal::Damaged) => ReadError::Damaged,
        _ => ReadError::TryLater,
    }
}
