//! How it stands with an entry, as the page for administrators shows it.

use alloc::string::String;
use alloc::vec::Vec;

use machine::{Instant, UnixTime};
use store::OUTBOX;
use webmail::{Posted, QueueLine, QueueState};

use crate::common::Common;

use super::Place;
use super::entry::{self, Fate};
use super::standing::State;

/// What is said of an entry that a rebuild has found.
const LOST: &str = "it was found again after damage to this server's disk, and may have been delivered before";

/// How it stands with an entry that is for these and comes from there, if it still is one.
pub(super) fn line(
    place: Place,
    recipients: Option<Vec<String>>,
    sender: String,
    common: &Common,
) -> Option<QueueLine> {
    let (account, uid) = place;
    let info = common.store.own.store.message(account, OUTBOX, uid)?;
    let standing = common.queue.standings.of(place)?;
    let lost = (entry::fate(info.flags) == Fate::Lost).then_some(LOST);
    Some(QueueLine {
        posted: Posted { account, uid },
        recipients,
        sender,
        since: info.internal_date,
        octets: info.octets,
        tries: standing.tries,
        said: common.queue.standings.words(place).or(lost).map(String::from),
        state: shown(standing.state, common.turn.now, common.turn.wall),
    })
}

fn shown(state: State, now: Instant, wall: UnixTime) -> QueueState {
    match state {
        State::Waits(at) if at <= now => QueueState::Next,
        State::Waits(at) => QueueState::Waits(UnixTime(wall.0.saturating_add(at.since(now).0))),
        State::Behind => QueueState::Behind,
        State::UnderWay => QueueState::UnderWay,
        State::Held | State::Ordered => QueueState::Held,
        State::LeftAlone => QueueState::LeftAlone,
    }
}
