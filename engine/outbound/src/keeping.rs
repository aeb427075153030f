//! Connections that outlive a letter: while more waits for the same destination, what is told of one letter is noted, and the next one goes by the same connection.
//!
//! Invariants:
//! - A connection is kept only while somebody waits for one to this destination, for [`LETTERS_PER_LINE`] letters, and for [`KEPT_LONGEST`] in all; no letter begins on it later.
//! - While one letter's marks are on their way to the disk, nothing is said on the connection of the one before. If the peer has something to say then, it is ended.
//! - A letter that finds out that the connection was over goes by another at once, if nobody has heard of its message.

use machine::{Instant, Micros};
use relay::destinations::Ended;
use relay::{Cause, Lost, Outcome, Stage as Talk};

use super::Place;
use super::attempt::AttemptCx;
use super::courier::Courier;
use super::road::{Road, come_of};
use super::secrecy::Line;
use super::stages::{Stage, Way};
use super::standing::State;
use super::state::Queue;

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
    pub(super) fn letter_over(&mut self, cx: &mut AttemptCx<'_, '_>) {
        if self.may_keep_line(cx) {
            self.keep_line(cx);
        } else {
            self.say_goodbye(cx);
            self.line_is_over(cx);
        }
    }

    fn may_keep_line(&self, cx: &AttemptCx<'_, '_>) -> bool {
        let now = cx.parts.turn.now;
        let is_fresh = |line: &Line| line.letters < LETTERS_PER_LINE && now.since(line.since) < KEPT_LONGEST;
        self.line.as_ref().is_some_and(is_fresh)
            && cx.queue.is_serving
            && cx.queue.behind.contains_key(&self.road.destination)
    }

    /// What came of his letter counts, and the connection waits.
    fn keep_line(&mut self, cx: &mut AttemptCx<'_, '_>) {
        self.count_tls(cx);
        let Some(line) = &mut self.line else { return };
        line.is_kept = true;
        let (came, host, reporter) = (core::mem::take(&mut line.came), line.host(), line.reporter());
        came.into_iter().for_each(|(bit, outcome)| self.settle(bit, come_of(outcome, host.as_ref(), reporter), cx));
        self.stage(Stage::Sorted);
        cx.queue.deadlines.set(cx.frame, cx.parts.turn.now + PAUSE);
        cx.queue.road_is_good(&self.road.destination);
    }

    /// His letter goes by the connection that was kept, if there is one.
    pub(super) fn resume(&mut self, together: u16, cx: &AttemptCx<'_, '_>) -> bool {
        if !self.keeps_line() {
            return false;
        }
        self.road.together = together;
        let letter = self.letter_for_peer(cx);
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
        cx: &mut AttemptCx<'_, '_>,
        act: impl FnOnce(&mut Courier, &mut AttemptCx<'_, '_>) -> Way,
    ) -> Way {
        if !self.keeps_line() {
            return act(self, cx);
        }
        self.drop_kept(cx);
        Way::Waits
    }

    /// The same of what changes nothing for a connection that waits.
    pub(super) fn unless_kept(
        &mut self,
        cx: &mut AttemptCx<'_, '_>,
        act: impl FnOnce(&mut Courier, &mut AttemptCx<'_, '_>) -> Way,
    ) -> Way {
        if self.keeps_line() { Way::Waits } else { act(self, cx) }
    }

    /// A connection that was kept is ended at once.
    pub(super) fn drop_kept(&mut self, cx: &mut AttemptCx<'_, '_>) {
        if let Some(line) = self.line.as_mut().filter(|line| line.is_kept) {
            line.end(cx.parts.connections);
            self.kept_is_over(cx);
        }
    }

    fn kept_is_over(&mut self, cx: &mut AttemptCx<'_, '_>) {
        self.line = None;
        cx.queue.deadlines.cancel(cx.frame);
        self.leave_road(Ended::Reached, cx);
    }

    /// Says QUIT.
    fn say_goodbye(&mut self, cx: &mut AttemptCx<'_, '_>) {
        let Some(line) = &mut self.line else { return };
        line.client.quit();
        line.say(cx.parts);
        line.close(cx.parts);
    }

    /// Who goes on with the connection of somebody who is done, if it was kept: the next one who waits for the same destination.
    pub(super) fn follower(&mut self, cx: &mut AttemptCx<'_, '_>) -> Option<Courier> {
        if !self.keeps_line() {
            return None;
        }
        let queue = &mut *cx.queue;
        let next = if queue.is_serving { queue.next_behind(&self.road.destination) } else { None };
        if next.is_none() {
            self.say_goodbye(cx);
            self.kept_is_over(cx);
        }
        let (line, road) = (self.line.take(), core::mem::take(&mut self.road));
        if let Some(place) = next {
            cx.queue.standings.set(place, State::UnderWay);
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
        let Queue { behind, standings, shares, .. } = self;
        let Some(turns) = behind.get_mut(destination) else { return };
        let mut turn = || turns.next(|account| shares.has_one_for(account));
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
