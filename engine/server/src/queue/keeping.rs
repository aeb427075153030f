//! Connections that outlive a letter: while more waits for the same destination, what is told of one letter is noted, and the next one goes by the same connection.
//!
//! Invariants:
//! - A connection is kept only while somebody waits for one to this destination, for [`LETTERS_PER_LINE`] letters, and for [`KEPT_LONGEST`] in all; no letter begins on it later.
//! - While one letter's marks are on their way to the disk, nothing is said on the connection of the one before. If the peer has something to say then, it is ended.
//! - A letter that finds out that the connection was over goes by another at once, if nobody has heard of its message.

use machine::{Instant, Micros, Turn};
use relay::destinations::Ended;
use relay::{Cause, Lost, Outcome, Stage as Talk};

use crate::common::Common;

use super::courier::{Courier, Hands, Stage, Way};
use super::road::{Road, come_of};
use super::secrecy::Line;
use super::standing::State;
use super::{Place, Queue, has_share};

/// Letters that go by a connection.
const LETTERS_PER_LINE: u32 = 100;

/// No letter begins on a connection that is older.
const KEPT_LONGEST: Micros = Micros::from_secs(300);

/// How long a connection may wait for its next letter.
pub(super) const PAUSE: Micros = Micros::from_secs(30);

/// The closing of RFC 5321 section 3.8.
const CLOSING: u16 = 421;

impl Courier {
    /// Whether he has a connection that waits for another letter.
    fn keeps_line(&self) -> bool {
        self.line.as_ref().is_some_and(|line| line.is_kept)
    }

    /// All is told of his letter: the connection waits for another, or is ended in good order.
    pub(super) fn letter_over(&mut self, hands: &mut Hands<'_>) {
        if self.may_keep_line(hands) {
            self.keep_line(hands);
        } else {
            self.say_goodbye(hands);
            self.line_is_over(hands);
        }
    }

    fn may_keep_line(&self, hands: &Hands<'_>) -> bool {
        let Common { queue, turn: Turn { now, .. }, .. } = &*hands.common;
        let is_fresh = |line: &Line| line.letters < LETTERS_PER_LINE && now.since(line.since) < KEPT_LONGEST;
        self.line.as_ref().is_some_and(is_fresh)
            && queue.is_serving
            && queue.behind.contains_key(&self.road.destination)
    }

    /// What came of his letter counts, and the connection waits.
    fn keep_line(&mut self, hands: &mut Hands<'_>) {
        self.count_tls(hands);
        let Some(line) = &mut self.line else { return };
        line.is_kept = true;
        let (came, host, reporter) = (core::mem::take(&mut line.came), line.host(), line.reporter());
        came.into_iter().for_each(|(bit, outcome)| self.settle(bit, come_of(outcome, host.as_ref(), reporter), hands));
        self.stage(Stage::Sorted);
        let Common { queue, turn: Turn { now, .. }, .. } = &mut *hands.common;
        queue.deadlines.set(hands.frame, *now + PAUSE);
        queue.road_is_good(&self.road.destination);
    }

    /// His letter goes by the connection that was kept, if there is one.
    pub(super) fn resume(&mut self, together: u16, hands: &Hands<'_>) -> bool {
        if !self.keeps_line() {
            return false;
        }
        self.road.together = together;
        let letter = self.letter_for_peer(hands);
        let Some((line, letter)) = self.line.as_mut().zip(letter) else { return false };
        (line.is_kept, line.wants_body, line.is_body_over) = (false, false, false);
        line.letters += 1;
        line.client.deliver(letter);
        self.rewind();
        self.stage(Stage::Spoken);
        true
    }

    /// Something happens to his connection, or nothing did for too long. What is kept then is kept no longer.
    pub(super) fn stirred(
        &mut self,
        hands: &mut Hands<'_>,
        act: impl FnOnce(&mut Courier, &mut Hands<'_>) -> Way,
    ) -> Way {
        if !self.keeps_line() {
            return act(self, hands);
        }
        self.drop_kept(hands);
        Way::Waits
    }

    /// The same of what changes nothing for a connection that waits.
    pub(super) fn unless_kept(
        &mut self,
        hands: &mut Hands<'_>,
        act: impl FnOnce(&mut Courier, &mut Hands<'_>) -> Way,
    ) -> Way {
        if self.keeps_line() { Way::Waits } else { act(self, hands) }
    }

    /// A connection that was kept is ended at once.
    pub(super) fn drop_kept(&mut self, hands: &mut Hands<'_>) {
        if let Some(line) = self.line.as_mut().filter(|line| line.is_kept) {
            line.end(&mut hands.common.connections);
            self.kept_is_over(hands);
        }
    }

    fn kept_is_over(&mut self, hands: &mut Hands<'_>) {
        self.line = None;
        hands.common.queue.deadlines.cancel(hands.frame);
        self.leave_road(Ended::Reached, hands);
    }

    /// Says QUIT.
    fn say_goodbye(&mut self, hands: &mut Hands<'_>) {
        let Some(line) = &mut self.line else { return };
        let common = &mut *hands.common;
        line.client.quit();
        line.say(common);
        line.close(common);
    }

    /// Who goes on with the connection of somebody who is done, if it was kept: the next one who waits for the same destination.
    pub(super) fn follower(&mut self, hands: &mut Hands<'_>) -> Option<Courier> {
        if !self.keeps_line() {
            return None;
        }
        let queue = &mut hands.common.queue;
        let next = if queue.is_serving { queue.next_behind(&self.road.destination) } else { None };
        if next.is_none() {
            self.say_goodbye(hands);
            self.kept_is_over(hands);
        }
        let (line, road) = (self.line.take(), core::mem::take(&mut self.road));
        if let Some(place) = next {
            hands.common.queue.standings.set(place, State::UnderWay);
        }
        next.map(|place| Courier { line, road, ..Courier::new(place) })
    }

    /// The same letter is to go by another connection: this one was over before it was begun.
    pub(super) fn start_anew(&mut self) {
        let Road { destination, leaving, together, random, .. } = core::mem::take(&mut self.road);
        self.road = Road::to(destination, leaving, together, random);
        self.stage(Stage::Sought);
    }
}

impl Line {
    /// Whether it was over when its last letter began, which nobody has heard of then.
    pub(super) fn was_over(&self) -> bool {
        let is_of_connection = |cause: &Cause| match cause {
            Cause::Lost(lost) => *lost != Lost::GivenUp,
            Cause::Refused(reply) => reply.code == CLOSING,
            _ => false,
        };
        let is_early = |stage: Talk| stage < Talk::Message || stage == Talk::Rest;
        self.letters > 1
            && self.came.iter().all(|(_, outcome)| match outcome {
                Outcome::Later(reason) => is_early(reason.stage) && is_of_connection(&reason.cause),
                _ => false,
            })
    }
}

impl Queue {
    /// Who goes on with a road to this destination.
    fn next_behind(&mut self, destination: &str) -> Option<Place> {
        let Queue { behind, standings, .. } = self;
        let turns = behind.get_mut(destination)?;
        // Some are held meanwhile.
        let next = core::iter::from_fn(|| turns.next(|_| true)).find(|place| standings.is(*place, State::Behind));
        if turns.is_empty() {
            behind.remove(destination);
        }
        next
    }

    /// Letters get through there. Another one of those who wait may try by a road of his own.
    fn road_is_good(&mut self, destination: &str) {
        if self.destinations.reached(destination) {
            self.let_next_try(destination);
        }
    }

    /// The next one who waits for a road to this destination may try, if there can be a courier for him. Where there can be none for anybody now, of each account one may: whoever has a
    /// courier first goes first.
    pub(super) fn let_next_try(&mut self, destination: &str) {
        let Queue { behind, standings, couriers, .. } = self;
        let Some(turns) = behind.get_mut(destination) else { return };
        let mut turn = || turns.next(|account| has_share(account, couriers));
        let next = core::iter::from_fn(&mut turn).find(|place| standings.is(*place, State::Behind));
        match next {
            Some(next) => standings.set(next, State::Waits(Instant::START)),
            None => turns.one_of_each().into_iter().for_each(|next| {
                if standings.is(next, State::Behind) {
                    standings.set(next, State::Waits(Instant::START));
                }
            }),
        }
        if turns.is_empty() {
            behind.remove(destination);
        }
    }
}
