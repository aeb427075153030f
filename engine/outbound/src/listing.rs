//! The state of an entry, as the page for administrators shows it.

use alloc::string::String;
use alloc::vec::Vec;

use machine::{Instant, UnixTime};
use store::OUTBOX;

use super::Place;
use super::context::OutboundContext;
use super::index::State;
use super::questions::{QueueEntryId, QueueLine, QueueState};
use super::state::Queue;

/// The text for an entry that a rebuild has found.
const LOST: &str = "the message was restored after damage to this server's disk, and may have been delivered before";

/// The line of an entry with these recipients and this sender, if the entry still exists.
pub(super) fn line(
    place: Place,
    recipients: Option<Vec<String>>,
    sender: String,
    queue: &Queue,
    parts: &OutboundContext<'_>,
) -> Option<QueueLine> {
    let (account, uid) = place;
    let info = parts.store.own.store.message(account, OUTBOX, uid)?;
    let status = queue.index.of(place)?;
    let lost = parts.store.own.store.outbox_entry(account, uid).is_none().then_some(LOST);
    Some(QueueLine {
        posted: QueueEntryId { account, uid },
        recipients,
        sender,
        since: info.internal_date,
        octets: info.octets,
        tries: status.tries,
        last_result: queue.index.words(place).or(lost).map(String::from),
        state: shown(status.state, parts.turn.now, parts.turn.wall),
    })
}

fn shown(state: State, now: Instant, wall: UnixTime) -> QueueState {
    match state {
        State::Waits(at) if at <= now => QueueState::Next,
        State::Waits(at) => QueueState::Waits(UnixTime(wall.0.saturating_add(at.since(now).0))),
        State::Reported => QueueState::Next,
        State::Behind => QueueState::Behind,
        State::UnderWay | State::Claimed => QueueState::UnderWay,
        State::Held => QueueState::Held,
        State::LeftAlone => QueueState::LeftAlone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_held_entry_is_shown_as_held() {
        let shown = |state| shown(state, Instant::START, UnixTime(0));
        assert_eq!(shown(State::Held), QueueState::Held);
        for state in [State::UnderWay, State::Claimed] {
            assert_eq!(shown(state), QueueState::UnderWay);
        }
    }
}
