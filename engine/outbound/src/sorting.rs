//! What comes next for whom, and what of it is durable.
//!
//! Invariants:
//! - What is done with is marked before anything else is begun.
//! - Who is here goes first, then reports, then who is elsewhere.
//! - Of a letter that is held nothing is begun before its time. Then it is as if it came just now: in which time it is tried, and given up, counts from there.
//! - That somebody has it is durable before it is told; an entry goes only when all that is to be told was.

use accounts::entries;
use machine::{Micros, Turn, UnixTime};
use relay::destinations::{Admission, Ended};
use relay::schedule::{self, Next};
use store::{MessageInfo, OUTBOX, OutboxEntry, Packing, Refusal, State, UidRange};

use super::attempt::AttemptCx;
use super::courier::Courier;
use super::entry::{self, Fate};
use super::road::{Road, nobody};
use super::stages::{AGAIN, Come, Deed, ROOM_AGAIN, Reporter, Stage, bits};
use super::why::Why;
use super::{Point, smarthosts};

/// So often at least a letter that is held is looked at: the time of day may jump.
const HOLD_LOOK: Micros = Micros::from_secs(24 * 60 * 60);

impl Courier {
    /// Looks what comes next.
    pub(super) fn sort(&mut self, cx: &mut AttemptCx<'_, '_>) -> Result<(), Refusal> {
        let info = self.info(cx)?;
        let Some(record) = self.record(cx) else {
            self.stage = Stage::Over(None);
            return Ok(());
        };
        if let Some(notice) = self.notice {
            self.sort_unreadable(notice, record, cx);
            return Ok(());
        }
        let fate = entry::fate(Some(record));
        let held_until = self.envelope().and_then(|envelope| envelope.held_until);
        let to_wait = held_until.map_or(0, |until| until.0.saturating_sub(cx.parts.turn.wall.0));
        if to_wait > 0 && fate != Fate::GivenBack {
            let until = cx.parts.turn.now + Micros(to_wait).min(HOLD_LOOK);
            cx.queue.standings.hold(self.place, until);
            self.stage = Stage::Over(Some(until));
            return Ok(());
        }
        if !self.round.to_mark.is_empty() {
            self.stage = Stage::Marked;
            return Ok(());
        }
        let (all, packing) = (self.all(), self.packing());
        let (done, told) = (record.done(packing), record.reported(packing));
        let failed = self.round.failed.iter().fold(0, |bits, (bit, _)| bits | 1 << bit);
        let waiting = all & !done;
        let open = waiting & !self.round.put_off & !failed;
        if fate == Fate::GivenBack && open != 0 {
            self.round.failed.extend(bits(open).map(|bit| (bit, Why::GivenBack)));
        } else if let Some(next) = self.next_here(open, cx) {
            self.stage = next;
        } else if let Some((bit, _)) = self.round.failed.front() {
            self.stage = Stage::Brought(Deed::Report(*bit));
        } else if let Some(bit) = bits(done & !told & !self.round.put_off).next() {
            self.stage = Stage::Brought(Deed::Arrival(bit));
        } else if self.look_for_arrivals(waiting, record, cx) {
            self.stage = Stage::Forgotten;
        } else if told & all == all {
            self.stage = Stage::Removed;
        } else if open != 0 && cx.queue.is_serving && can_be_marked(cx) {
            self.set_out(open, random(info, cx), cx);
        } else if self.is_delay_to_be_told(waiting, (info, record), cx) {
            self.stage = Stage::Brought(Deed::Delay);
        } else {
            let after = match self.next_attempt(cx) {
                Next::After(after) => after,
                // Who is put off for good was failed; whom the store has refused is not.
                Next::GiveUp if self.round.has_no_room => ROOM_AGAIN,
                Next::GiveUp => AGAIN,
            };
            let at = cx.parts.turn.now + after;
            self.stage = Stage::Over(Some(self.wait.waits_until.map_or(at, |until| until.min(at))));
        }
        Ok(())
    }

    /// What is to be done for somebody whose address is one of ours, if there is one. Of whom there is no such, it is reported.
    fn next_here(&mut self, open: u16, cx: &mut AttemptCx<'_, '_>) -> Option<Stage> {
        if !self.is_posted() {
            return self.next_of_arrival(open);
        }
        let directory = &cx.parts.directory;
        let own = bits(open).find(|bit| directory.has_domain_of(self.address(*bit)))?;
        match directory.recipient_at(cx.parts.store, self.address(own)) {
            Some(account) => Some(Stage::Brought(Deed::Letter(own, account))),
            None => {
                self.round.failed.push_back((own, Why::Nobody));
                Some(Stage::Sorted)
            }
        }
    }

    /// The bits of all for whom it stands.
    pub(super) fn all(&self) -> u16 {
        let Some(entry) = &self.entry else { unreachable!("an entry that was not opened is sorted") };
        entry.wanted
    }

    /// What the entry's record says of each of them.
    pub(super) fn packing(&self) -> Packing {
        self.entry.as_ref().map_or(Packing::Done, |entry| entry.packing)
    }

    /// The recipient who has this bit.
    pub(super) fn recipient(&self, bit: u8) -> Option<&relay::Recipient> {
        let entry = self.entry.as_ref()?;
        entry.envelope.recipients.get(entry.first + usize::from(bit))
    }

    /// His address.
    pub(super) fn address(&self, bit: u8) -> &str {
        self.recipient(bit).map_or("", |recipient| &recipient.address)
    }

    pub(super) fn mark(&mut self, cx: &mut AttemptCx<'_, '_>) -> Result<(), Refusal> {
        let ((account, uid), continuation) = (self.place, cx.continuation(Point::Attempt));
        let change = (self.round.to_mark, self.packing());
        cx.parts.store.own.store.change_entry(account, uid, change, continuation)?;
        self.wait.is_waiting = true;
        Ok(())
    }

    pub(super) fn forget(&mut self, cx: &mut AttemptCx<'_, '_>) -> Result<(), Refusal> {
        let Some((account, origin)) = self.delivery.arrivals.last().copied() else {
            self.stage = Stage::Sorted;
            return Ok(());
        };
        let continuation = cx.continuation(Point::Attempt);
        cx.parts.store.forget_arrival(account, origin, continuation)?;
        self.wait.is_waiting = true;
        Ok(())
    }

    pub(super) fn remove(&mut self, cx: &mut AttemptCx<'_, '_>) -> Result<(), Refusal> {
        let ((account, uid), continuation) = (self.place, cx.continuation(Point::Attempt));
        cx.parts.store.own.store.remove(account, OUTBOX, &[UidRange::one(uid)], continuation)?;
        self.wait.is_waiting = true;
        Ok(())
    }

    /// They are to get it, if the place where their mail goes is to be tried now.
    fn set_out(&mut self, together: u16, random: u64, cx: &mut AttemptCx<'_, '_>) {
        if self.resume(together, cx) {
            self.wait.has_set_out = true;
            cx.queue.standings.tried(self.place);
            return;
        }
        let domain = entries::domain_of(self.address(0));
        let leaving = cx.queue.config.way_to(&domain).clone();
        let destination = smarthosts::destination(&domain, &leaving);
        match cx.queue.destinations.admit(&destination, cx.parts.turn.now) {
            Admission::Go => {
                self.road = Road::to(destination, leaving, together, random);
                (self.stage, self.wait.has_set_out) = (Stage::Sought, true);
                cx.queue.standings.tried(self.place);
            }
            Admission::WaitUntil(until) => {
                cx.queue.leave_alone(&destination);
                bits(together).for_each(|bit| self.settle(bit, nobody(), cx));
                self.wait.waits_until = Some(until);
            }
            Admission::Busy => {
                self.round.put_off |= together;
                self.wait.waits_behind = Some(destination);
            }
        }
    }

    /// When it was first to be brought: when it came, or until when it was held.
    pub(super) fn released(&self, info: MessageInfo) -> UnixTime {
        self.envelope()
            .and_then(|envelope| envelope.held_until)
            .map_or(info.internal_date, |until| until.max(info.internal_date))
    }

    /// The time since then, by the dates. The time for which the machine has run with the entry
    /// bounds it.
    fn age(&self, info: MessageInfo, cx: &AttemptCx<'_, '_>) -> Micros {
        let Turn { now, wall } = cx.parts.turn;
        let dated = Micros(wall.0.saturating_sub(self.released(info).0));
        cx.queue.standings.age(self.place, dated, now)
    }

    /// When the entry would be tried again.
    pub(super) fn next_attempt(&self, cx: &AttemptCx<'_, '_>) -> Next {
        let Ok(info) = self.info(cx) else { return Next::After(AGAIN) };
        schedule::next_attempt(self.age(info, cx), random(info, cx))
    }

    /// Whether who sent it is to hear that it takes long, of those who still wait.
    fn is_delay_to_be_told(
        &self,
        open: u16,
        (info, record): (MessageInfo, OutboxEntry),
        cx: &AttemptCx<'_, '_>,
    ) -> bool {
        !record.is_delay_reported()
            && !self.round.is_delay_put_off
            && schedule::is_delay_to_be_told(self.age(info, cx))
            && bits(open).any(|bit| self.is_told(bit, self.delayed(info), cx))
    }

    /// This came of it for somebody elsewhere.
    pub(super) fn settle(&mut self, bit: u8, come: Come, cx: &AttemptCx<'_, '_>) {
        match come {
            Come::Delivered(taken) if taken.reporter == Reporter::Us => {
                self.round.to_mark.done(bit);
                self.round.taken.push((bit, taken));
            }
            Come::Delivered(_) => self.round.to_mark.done_and_reported(bit),
            Come::Later(why) if self.next_attempt(cx) == Next::GiveUp => self.round.failed.push_back((bit, why)),
            Come::Later(why) => {
                self.round.put_off |= 1 << bit;
                self.round.later.push((bit, why));
            }
            Come::Never(why) => self.round.failed.push_back((bit, why)),
        }
    }

    /// All on the road are settled, and it has ended so.
    pub(super) fn arrive(&mut self, how: Ended, cx: &mut AttemptCx<'_, '_>) {
        self.leave_road(how, cx);
        self.stage = Stage::Sorted;
    }
}

/// A number of this letter's and this moment's that has nothing to do with that of another letter.
fn random(info: MessageInfo, cx: &AttemptCx<'_, '_>) -> u64 {
    let number = info.guid.0 ^ u128::from(cx.parts.turn.now.0) << u64::BITS;
    u128::from_le_bytes(cx.parts.store.own.store.secret(&number.to_le_bytes())) as u64
}

/// Whether what comes of a letter can be noted.
fn can_be_marked(cx: &AttemptCx<'_, '_>) -> bool {
    cx.parts.store.own.store.state() == State::Serving
}
