//! RETR and TOP: reads a message part by part. Each part is read when the connection has buffer
//! space for all of it.
//!
//! Invariants:
//! - If the store is busy, the part is requested again later, and the client gets no error.
//! - A part is held only while it is copied. A slow client never holds a buffer of the store.
//! - A session has at most one read in progress. A cancelled read must end before the next read
//!   begins, so that the bytes of the two cannot be confused.

use machine::Micros;
use pop3::{MessageNumber, ReadError};
use store::{Body, Outcome, Refusal, Uid};

use super::host::{Pop3Host, Pop3WaitPoint};
use super::state::{MessageRead, ReadState, State};

/// The time after which a read is requested again, if the store was busy.
const RETRY: Micros = Micros::from_millis(10);

/// Begins to read `message` for the session.
pub(super) fn begin(message: MessageNumber, host: &mut Pop3Host<'_, '_>) {
    let Some(maildrop) = &host.state.maildrop else { return };
    let octets = maildrop.octets(message.index());
    let uid = maildrop.uid(message.index()).unwrap_or(Uid(0));
    host.state.reading = Some(MessageRead { uid, octets, taken: 0, refused: None });
    // The result is reported later, since an operation never answers from within the call that
    // starts it. The session also sets its deadline after this call, and so replaces the deadline
    // of a retry. So the next turn continues, both after a refusal and if the store is busy.
    if let Err(refusal) = request_part(host) {
        if let Some(reading) = &mut host.state.reading {
            reading.refused = Some(refusal);
        }
        host.cx.connections.resume(host.caller.connection.0);
    } else if host.state.read == ReadState::WantsPlace {
        host.cx.connections.resume(host.caller.connection.0);
    }
}

/// Stops the read: the session needs no more bytes of the message.
pub(super) fn stop(host: &mut Pop3Host<'_, '_>) {
    host.state.reading = None;
    host.state.read = match host.state.read {
        ReadState::Idle | ReadState::WantsRoom | ReadState::WantsPlace => ReadState::Idle,
        ReadState::UnderWay | ReadState::Unwanted => ReadState::Unwanted,
    };
}

/// Continues a read that waits for buffer space.
pub(super) fn go_on(session: &mut pop3::Session, host: &mut Pop3Host<'_, '_>) {
    if host.state.wants_room() {
        host.state.read = ReadState::Idle;
        request_or_fail(session, host);
    }
}

/// Repeats a read request for which the store was busy. Returns false if there is no such request.
pub(super) fn ask_again(session: &mut pop3::Session, host: &mut Pop3Host<'_, '_>) -> bool {
    if host.state.read != ReadState::WantsPlace {
        return false;
    }
    host.state.read = ReadState::Idle;
    session.renew_deadline(host);
    request_or_fail(session, host);
    true
}

/// Tells the session about a read that the store has refused.
pub(super) fn end_if_refused(session: &mut pop3::Session, host: &mut Pop3Host<'_, '_>) {
    if let Some(refusal) = host.state.reading.as_ref().and_then(|reading| reading.refused) {
        end(Err(read_error(&Outcome::Refused(refusal))), session, host);
    }
}

/// The store has read a part of a message, or has refused.
pub(super) fn read_ended(
    outcome: Outcome,
    session: &mut pop3::Session,
    host: &mut Pop3Host<'_, '_>,
) {
    let wanted = core::mem::take(&mut host.state.read) == ReadState::UnderWay;
    match outcome {
        Outcome::Body(body) if wanted => pass_on(body, session, host),
        outcome if wanted => end(Err(read_error(&outcome)), session, host),
        outcome => {
            host.cx.store.forget(outcome);
            request_or_fail(session, host);
        }
    }
}

/// Gives the session the part that was read, and asks for the next part or ends the message.
fn pass_on(body: Body, session: &mut pop3::Session, host: &mut Pop3Host<'_, '_>) {
    let is_empty = body.bytes().is_empty();
    let count = session.message_bytes_arrived(body.bytes(), host);
    host.cx.store.give_back(body);
    let Some(reading) = host.state.reading.as_mut() else { return };
    reading.taken += count as u32;
    if reading.taken >= reading.octets {
        end(Ok(()), session, host);
    } else if is_empty {
        // The message is shorter than its index entry says. Another read would give the same
        // result.
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

/// Asks the store for the next part of the session's message, or waits for buffer space.
fn request_part(host: &mut Pop3Host<'_, '_>) -> Result<(), Refusal> {
    let room = host.cx.connections.send_room(host.caller);
    let continuation = host.continuation(Pop3WaitPoint::Read);
    let State {
        reading: Some(reading),
        maildrop: Some(maildrop),
        read: read @ ReadState::Idle,
        ..
    } = &mut *host.state
    else {
        return Ok(());
    };
    if room < reading.room_needed() {
        *read = ReadState::WantsRoom;
        return Ok(());
    }
    match host.cx.store.read(maildrop.account(), reading.uid, reading.taken, continuation) {
        Ok(()) => *read = ReadState::UnderWay,
        Err(Refusal::Busy) => {
            *read = ReadState::WantsPlace;
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
