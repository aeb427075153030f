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

use super::Point;
use super::{Hands, State};

/// Octets that the store reads at a time: [`Body::bytes`].
const PART_OCTETS_MAX: u32 = 32_672;

/// How soon a read is asked for again that the store had no place for.
const RETRY: Micros = Micros::from_millis(10);

/// Bytes around a message: `+OK`, its size, the end of its last line, and the line of one dot.
const AROUND_BYTES_MAX: usize = 64;

/// A message that the session wants.
pub(super) struct Reading {
    uid: Uid,
    octets: u32,
    /// Octets that the session has taken.
    taken: u32,
    /// The store would not read: the session is told in the next turn.
    refused: Option<Refusal>,
}

/// Whether the store reads for this session.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Read {
    #[default]
    Idle,
    /// It will, once there is room for what it brings.
    WantsRoom,
    /// It will, once it reads for fewer others.
    WantsPlace,
    UnderWay,
    /// It does, but nobody wants it.
    Unwanted,
}

impl State {
    pub(super) fn wants_room(&self) -> bool {
        self.read == Read::WantsRoom
    }
}

impl Reading {
    /// Room for the next part, each of its lines a dot that is doubled.
    fn room_needed(&self) -> usize {
        let part = (self.octets - self.taken).min(PART_OCTETS_MAX) as usize;
        part + part / 3 + AROUND_BYTES_MAX
    }
}

/// The session wants `message`.
pub(super) fn begin(message: MessageNumber, hands: &mut Hands<'_>) {
    let Some(maildrop) = &hands.state.maildrop else { return };
    let octets = maildrop.octets(message);
    let uid = maildrop.uid(message).unwrap_or(Uid(0));
    hands.state.reading = Some(Reading { uid, octets, taken: 0, refused: None });
    // What is started is never answered from within the call, and the session's deadline is set when the call has ended.
    if let Err(refusal) = request_part(hands) {
        if let Some(reading) = &mut hands.state.reading {
            reading.refused = Some(refusal);
        }
        hands.common.connections.resume(hands.caller.connection.0);
    } else if hands.state.read == Read::WantsPlace {
        hands.common.connections.resume(hands.caller.connection.0);
    }
}

/// The session wants no more of its message.
pub(super) fn stop(hands: &mut Hands<'_>) {
    hands.state.reading = None;
    hands.state.read = match hands.state.read {
        Read::Idle | Read::WantsRoom | Read::WantsPlace => Read::Idle,
        Read::UnderWay | Read::Unwanted => Read::Unwanted,
    };
}

/// There may be room for the next part.
pub(super) fn go_on(session: &mut pop3::Session, hands: &mut Hands<'_>) {
    if hands.state.wants_room() {
        hands.state.read = Read::Idle;
        request_or_fail(session, hands);
    }
}

/// There may be a place for the next part's read. False when the session wants none.
pub(super) fn ask_again(session: &mut pop3::Session, hands: &mut Hands<'_>) -> bool {
    if hands.state.read != Read::WantsPlace {
        return false;
    }
    hands.state.read = Read::Idle;
    session.renew_deadline(hands);
    request_or_fail(session, hands);
    true
}

/// Tells the session of a message that the store would not read.
pub(super) fn end_if_refused(session: &mut pop3::Session, hands: &mut Hands<'_>) {
    if let Some(refusal) = hands.state.reading.as_ref().and_then(|reading| reading.refused) {
        end(Err(read_error(&Outcome::Refused(refusal))), session, hands);
    }
}

/// A part of a message has been read, or could not be.
pub(super) fn read_ended(outcome: Outcome, session: &mut pop3::Session, hands: &mut Hands<'_>) {
    let wanted = core::mem::take(&mut hands.state.read) == Read::UnderWay;
    match outcome {
        Outcome::Body(body) if wanted => pass_on(body, session, hands),
        outcome if wanted => end(Err(read_error(&outcome)), session, hands),
        outcome => {
            hands.common.forget(outcome);
            request_or_fail(session, hands);
        }
    }
}

/// Gives the session what has been read of its message, and asks for the rest, or ends it.
fn pass_on(body: Body, session: &mut pop3::Session, hands: &mut Hands<'_>) {
    let is_empty = body.bytes().is_empty();
    let count = session.message_bytes_arrived(body.bytes(), hands);
    hands.common.store.give_back(body);
    let Some(reading) = hands.state.reading.as_mut() else { return };
    reading.taken += count as u32;
    if reading.taken >= reading.octets {
        end(Ok(()), session, hands);
    } else if is_empty {
        // The message is shorter than its entry says: going on would find the same again.
        end(Err(ReadError::Damaged), session, hands);
    } else {
        request_or_fail(session, hands);
    }
}

fn request_or_fail(session: &mut pop3::Session, hands: &mut Hands<'_>) {
    if let Err(refusal) = request_part(hands) {
        end(Err(read_error(&Outcome::Refused(refusal))), session, hands);
    }
}

/// Asks the store for the next part of the message that the session wants, or the connection for room.
fn request_part(hands: &mut Hands<'_>) -> Result<(), Refusal> {
    let room = hands.common.connections.send_room(hands.caller);
    let continuation = hands.continuation(Point::Read);
    let State { reading: Some(reading), maildrop: Some(maildrop), read: read @ Read::Idle, .. } = &mut *hands.state
    else {
        return Ok(());
    };
    if room < reading.room_needed() {
        *read = Read::WantsRoom;
        return Ok(());
    }
    match hands.common.store.read(maildrop.account, reading.uid, reading.taken, continuation) {
        Ok(()) => *read = Read::UnderWay,
        Err(Refusal::Busy) => {
            *read = Read::WantsPlace;
            hands.common.connections.set_deadline(hands.common.turn.now, hands.caller.connection, Some(RETRY));
        }
        Err(refusal) => return Err(refusal),
    }
    Ok(())
}

fn end(result: Result<(), ReadError>, session: &mut pop3::Session, hands: &mut Hands<'_>) {
    hands.state.reading = None;
    session.message_ended(result, hands);
}

fn read_error(outcome: &Outcome) -> ReadError {
    match outcome {
        Outcome::Refused(Refusal::Damaged) => ReadError::Damaged,
        _ => ReadError::TryLater,
    }
}
