//! A courier: one entry of an outbox, until everybody for whom it stands is done with.
//!
//! ```text
//!   opened ──▸ sorted ─┬─▸ brought, handed, delivered: to somebody here, or a report to who sent it ─▸ marked ─┐
//!                ▴     ├─▸ hashed, sealed: what is to be sent on (`sealing`) ──────────────────────────────────┤
//!                │     ├─▸ sought, inquired, called, spoken: to a host that takes it (`calling`) ───────────────▸ marked ─┤
//!                │     ├─▸ forgotten: that it was brought here ────────────────────────────────────────────────┤
//!                │     ├─▸ removed, or left to wait                                                             │
//!                └─────┴────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//! Invariants:
//! - Who is here gets it by a delivery that arrives once, as does who has it sent on, and who sent it a report, each under an origin of its own; that is forgotten only when the mark is durable that makes
//!   another delivery impossible. So neither comes twice, whenever the power fails.
//! - A mark is asked for until the store has room for it, and a store that takes none any more lets nobody set out: what cannot be marked would be sent again and again.
//! - Who is elsewhere gets it twice in one case: his host has said that it has it, and the power fails before the mark is durable. SMTP has no way to ask (RFC 5321 section 4.5.3.2.6, RFC 1047).
//! - Of a letter no more is in memory than a part as the store reads it, what waits to be sent, and its header while it is sealed.
//! - A letter of which a part cannot be read is tried as long as one that no host takes, and then
//!   reported with its header alone. One with an envelope that cannot be read stays, and its
//!   account is told (`unreadable`).
//! - A letter without a reverse path is never reported.

use alloc::boxed::Box;

use machine::{Instant, Micros};
use relay::{Envelope, destinations, schedule::Next};
use resolver::{Known, QuestionNumber};
use store::{EntryChange, MessageInfo, OUTBOX, OutboxEntry, Outcome, Refusal};

use super::Place;
use super::attempt::AttemptCx;
use super::entry::Entry;
use super::policies::Inquiry;
use super::progress::{EntryReader, LocalDelivery, Round, Wait};
use super::road::Road;
use super::seal::Seal;
use super::secrecy::Line;
use super::stages::{AGAIN, Come, Deed, Notice, Stage, Way};
use super::state::Ended;
use super::why::Why;

/// The longest delay before an entry with an unreadable beginning is read again. The delay grows
/// by a minute each time.
const DAMAGED_AGAIN_MAX: Micros = Micros::from_secs(60 * 60);

/// Who brings one entry to all for whom it stands.
pub(super) struct Courier {
    pub(super) place: Place,
    pub(super) stage: Stage,
    pub(super) wait: Wait,
    pub(super) reader: EntryReader,
    pub(super) entry: Option<Entry>,
    pub(super) round: Round,
    /// Its head cannot be read, and its account is told.
    pub(super) notice: Option<Notice>,
    pub(super) delivery: LocalDelivery,
    /// What is said of the letter to those to whom it is sent on.
    pub(super) seal: Seal,
    pub(super) road: Road,
    /// What he asks of the domain's web server.
    pub(super) inquiry: Option<Box<Inquiry>>,
    pub(super) line: Option<Line>,
}

impl Courier {
    pub(super) fn new(place: Place) -> Courier {
        Courier {
            place,
            stage: Stage::Opened,
            wait: Wait::default(),
            reader: EntryReader::default(),
            entry: None,
            round: Round::default(),
            notice: None,
            delivery: LocalDelivery::default(),
            seal: Seal::Unknown,
            road: Road::default(),
            inquiry: None,
            line: None,
        }
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// How it has ended for its entry, which is tried again then.
    pub(super) fn ended(self, next: Option<Instant>) -> Ended {
        // Where no delivery was tried, an earlier reason stays.
        let is_news = |why: &&Why| self.wait.has_set_out || matches!(why, Why::Full);
        let why = self.round.later.last().map(|(_, why)| why).filter(is_news);
        let is_unread = self.round.is_damaged || self.notice.is_some();
        let words = if is_unread { Some(self.why_unreadable().words()) } else { why.map(Why::words) };
        let is_left = self.is_left_unreadable();
        Ended {
            place: self.place,
            next,
            has_set_out: self.wait.has_set_out,
            waits_behind: self.wait.waits_behind,
            is_left,
            words,
        }
    }

    /// Goes on as far as he can without waiting.
    pub(super) fn go_on(&mut self, cx: &mut AttemptCx<'_, '_>) -> Way {
        while !self.wait.is_waiting {
            let asked = match self.stage {
                Stage::Opened => self.read(self.reader.beginning.next(), cx),
                Stage::Sorted => self.sort(cx),
                Stage::Brought(deed) => self.bring(deed, cx),
                Stage::Handed(deed) => self.hand(deed, cx),
                Stage::Delivered(_) | Stage::Sealed => {
                    self.wait.is_waiting = true;
                    Ok(())
                }
                Stage::Hashed => self.hash(cx),
                Stage::Marked => self.mark(cx),
                Stage::Forgotten => self.forget(cx),
                Stage::Sought => self.seek(cx),
                Stage::Inquired => self.inquire(cx),
                Stage::Called => self.call(cx),
                Stage::Spoken => self.speak(cx),
                Stage::Removed => self.remove(cx),
                Stage::Over(next) => {
                    self.drop_letter(cx);
                    return Way::Over(next);
                }
            };
            match asked {
                Ok(()) if core::mem::take(&mut self.wait.has_computed) => return Way::Computes,
                Ok(()) => {}
                Err(refusal) if self.has_to_insist(refusal) => return Way::Turn,
                Err(refusal) => self.refused(refusal, cx),
            }
        }
        Way::Waits
    }

    /// What he has asked the store for has come, or is done. Then he goes on.
    pub(super) fn woken(&mut self, outcome: Outcome, cx: &mut AttemptCx<'_, '_>) -> Way {
        if !self.has_asked_for(&outcome) {
            return self.go_on(cx);
        }
        self.wait.is_waiting = false;
        match outcome {
            Outcome::Changed => match self.stage {
                Stage::Removed => self.stage = Stage::Over(None),
                Stage::Forgotten => {
                    self.delivery.arrivals.pop();
                    self.stage = Stage::Sorted;
                }
                _ => {
                    self.round.to_mark = EntryChange::default();
                    self.stage = Stage::Sorted;
                }
            },
            Outcome::Delivered => {
                if let Stage::Delivered(deed) = self.stage {
                    self.delivery.letter = None;
                    self.came(deed);
                }
            }
            Outcome::Refused(refusal) if self.has_to_insist_on_outcome(refusal) => return Way::Turn,
            Outcome::Refused(refusal) => self.refused(refusal, cx),
            // Nothing else is asked for.
            _ => {}
        }
        self.go_on(cx)
    }

    /// Whether this is an answer to what he waits for. Of a letter that was given up something may still come.
    fn has_asked_for(&self, outcome: &Outcome) -> bool {
        match (outcome, self.stage) {
            (Outcome::Changed, Stage::Marked | Stage::Forgotten | Stage::Removed) => true,
            (Outcome::Delivered, Stage::Delivered(_)) | (Outcome::Room, Stage::Handed(_)) => true,
            (Outcome::Refused(_), Stage::Sought | Stage::Inquired | Stage::Called | Stage::Spoken | Stage::Sealed) => {
                false
            }
            (Outcome::Refused(_), _) => true,
            _ => false,
        }
    }

    pub(super) fn name_known(&mut self, number: QuestionNumber, known: Known, cx: &mut AttemptCx<'_, '_>) -> Way {
        if self.stage == Stage::Sought && self.road.learn(number, known) {
            self.wait.is_waiting = false;
        }
        self.go_on(cx)
    }

    /// The machine stops: a letter of which a peer has every byte is waited for, and what goes to the disk; all else is given up.
    pub(super) fn stopping(&mut self, cx: &mut AttemptCx<'_, '_>) -> Way {
        self.drop_kept(cx);
        if self.is_at(Stage::Opened) { Way::Waits } else { self.called_back(cx) }
    }

    /// His entry is wanted back: he has done nothing with it, unless a host may have the letter, or something is on its way to the disk.
    pub(super) fn called_back(&mut self, cx: &mut AttemptCx<'_, '_>) -> Way {
        match self.stage {
            Stage::Opened | Stage::Hashed | Stage::Sealed => Way::Over(Some(Instant::START)),
            Stage::Spoken if self.line.as_ref().is_some_and(Line::is_said) => Way::Waits,
            Stage::Sought | Stage::Inquired | Stage::Called | Stage::Spoken => {
                self.drop_address(cx);
                self.hang_up(cx);
                self.leave_road(destinations::Ended::Unknown, cx);
                Way::Over(Some(Instant::START))
            }
            _ => Way::Waits,
        }
    }

    /// Whether he asks for the same again: the store has too much to do, or no room for a mark. Who went away without that would bring everything once more.
    fn has_to_insist(&self, refusal: Refusal) -> bool {
        refusal == Refusal::Busy || (self.stage, refusal) == (Stage::Marked, Refusal::DiskFull)
    }

    /// The same of what the store has answered later. A delivery that was refused is over: it is
    /// begun anew.
    fn has_to_insist_on_outcome(&self, refusal: Refusal) -> bool {
        !matches!(self.stage, Stage::Handed(_) | Stage::Delivered(_)) && self.has_to_insist(refusal)
    }

    pub(super) fn refused(&mut self, refusal: Refusal, cx: &mut AttemptCx<'_, '_>) {
        self.round.is_damaged |= matches!(refusal, Refusal::Damaged | Refusal::Unreadable);
        match (self.stage, refusal) {
            (Stage::Brought(deed) | Stage::Handed(deed) | Stage::Delivered(deed), refusal) => {
                self.drop_letter(cx);
                self.want_no_part();
                match (deed, refusal) {
                    (_, Refusal::Arrived) => self.came(deed),
                    (Deed::Letter(bit, _), Refusal::OverQuota) => {
                        cx.queue.standings.tried(self.place);
                        self.settle_here(bit, Come::Later(Why::Full), cx);
                    }
                    (Deed::Letter(bit, _), Refusal::LargerThanQuota) => {
                        self.settle_here(bit, Come::Never(Why::NeverFits), cx);
                    }
                    (Deed::Letter(bit, _) | Deed::SentOn(bit), Refusal::Damaged | Refusal::Unreadable) => {
                        self.settle_here(bit, Come::Later(Why::Damaged), cx);
                    }
                    // The letter was to go back with it, and does not.
                    (Deed::Report(_), Refusal::Damaged | Refusal::Unreadable) => self.stage = Stage::Brought(deed),
                    _ => {
                        self.round.has_no_room |= is_for_want_of_room(refusal);
                        self.put_off(deed);
                    }
                }
            }
            (Stage::Forgotten, Refusal::NoSuchNote | Refusal::NoSuchAccount) => {
                self.delivery.arrivals.pop();
                self.stage = Stage::Sorted;
            }
            (Stage::Spoken, _) => self.body_lost(),
            (_, Refusal::NoSuchMessage) => self.stage = Stage::Over(None),
            // The disk may read it later, and the body could not be sent now.
            (Stage::Hashed, Refusal::Unreadable) if self.next_attempt(cx) != Next::GiveUp => {
                self.stage = Stage::Over(Some(self.after_damage(cx)));
            }
            (Stage::Hashed, Refusal::Damaged | Refusal::Unreadable) => self.leave_unsealed(),
            (stage, Refusal::Damaged | Refusal::Unreadable) => match stage {
                Stage::Opened if self.has_head(cx) => self.look_at_beginning(true, cx),
                Stage::Opened if self.next_attempt(cx) == Next::GiveUp => self.is_unreadable(cx),
                _ => self.stage = Stage::Over(Some(self.after_damage(cx))),
            },
            _ => self.stage = Stage::Over(Some(cx.parts.turn.now + AGAIN)),
        }
    }

    /// This came of it for somebody here.
    fn settle_here(&mut self, bit: u8, come: Come, cx: &AttemptCx<'_, '_>) {
        self.settle(bit, come, cx);
        self.stage = Stage::Sorted;
    }

    /// That is not done in this round.
    fn put_off(&mut self, deed: Deed) {
        match deed {
            Deed::Letter(bit, _) | Deed::SentOn(bit) | Deed::Report(bit) | Deed::Arrival(bit) => {
                self.round.put_off |= 1 << bit;
                self.round.failed.retain(|(failed, _)| *failed != bit);
            }
            Deed::Delay => self.round.is_delay_put_off = true,
            Deed::Notice => self.notice = Some(Notice::PutOff),
        }
        self.stage = Stage::Sorted;
    }

    pub(super) fn drop_letter(&mut self, cx: &mut AttemptCx<'_, '_>) {
        if let Some(letter) = self.delivery.letter.take() {
            cx.parts.store.abort(letter);
        }
    }

    pub(super) fn info(&self, cx: &AttemptCx<'_, '_>) -> Result<MessageInfo, Refusal> {
        let (account, uid) = self.place;
        cx.parts.store.own.store.message(account, OUTBOX, uid).ok_or(Refusal::NoSuchMessage)
    }

    /// What the outbox says of the entry. `None`: a rebuild has found it.
    pub(super) fn record(&self, cx: &AttemptCx<'_, '_>) -> Option<OutboxEntry> {
        let (account, uid) = self.place;
        cx.parts.store.own.store.outbox_entry(account, uid)
    }

    /// When it is looked at again of which nobody knows whom it is for. A disk may get over that, and mostly it does not.
    pub(super) fn after_damage(&self, cx: &mut AttemptCx<'_, '_>) -> Instant {
        cx.queue.standings.tried(self.place);
        let tries = cx.queue.standings.of(self.place).map_or(0, |standing| standing.tries);
        cx.parts.turn.now + Micros(AGAIN.0.saturating_mul(tries.into())).min(DAMAGED_AGAIN_MAX)
    }

    pub(super) fn envelope(&self) -> Option<&Envelope> {
        self.entry.as_ref().map(|entry| &entry.envelope)
    }

    pub(super) fn stage(&mut self, stage: Stage) {
        self.stage = stage;
    }

    pub(super) fn is_at(&self, stage: Stage) -> bool {
        self.stage == stage
    }
}

/// Whether a mailbox or the disk has no room. That lasts until messages are deleted.
fn is_for_want_of_room(refusal: Refusal) -> bool {
    matches!(refusal, Refusal::OverQuota | Refusal::LargerThanQuota | Refusal::DiskFull | Refusal::IndexFull)
}
