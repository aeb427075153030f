//! A change of queue entries: hold, release, retry, return or delete. An administrator asks for it,
//! or a user that cancels a message in the outbox.
//!
//! The entries of a message are found by reading. They have the same reverse path, the same first
//! field of the header and the same Message-ID, even after an entry was written anew. All entries
//! of a message are claimed before the first of them is changed. The sender is an address of the
//! account: mail that the account forwards is not its own.
//!
//! Invariants:
//!
//! - An entry is in the batch only while its state is [`State::Claimed`], so no attempt has it.
//! - The next batch begins only when all changes of the previous batch are durable or refused.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use machine::Instant;
use message::header::Header;
use relay::envelope::UnreadableEnvelope;
use store::{AccountId, EntryChange, EntryState, OUTBOX, Outcome, Packing, Refusal, UidRange};

use crate::delivery_attempt::DeliveryAttempt;
use crate::entry::{self, RecordedState, has_shown_header};
use crate::head::{self, EntryExtent, EntryHead};
use crate::index::{MessageMark, State};
use crate::opening::identity;
use crate::questions::{Handled, QueueAction, Which};
use crate::state::Queue;
use crate::{Place, step};

use super::{AdminCx, continuation, place_of};

/// The most entries that are changed together.
pub(super) const BATCH: usize = 64;

/// A change of one entry, of the entries of a message, or of all entries of a domain.
pub(super) struct QueueChange {
    action: QueueAction,
    which: Which,
    /// The message of [`Which::Message`], once its entry was read.
    message: Option<SoughtMessage>,
    /// The entries that are changed together.
    batch: Vec<Place>,
    /// The number of entries of the batch for which the store was asked to make the change.
    asked: usize,
    /// The number of changes that the store has not answered.
    under_way: usize,
    is_gathered: bool,
    result: Handled,
}

/// A message, while its entries are looked for.
struct SoughtMessage {
    mark: MessageMark,
    /// The entries that may belong to the message, and are to be read.
    candidates: VecDeque<Place>,
}

impl QueueChange {
    pub(super) fn new(action: QueueAction, which: Which) -> QueueChange {
        QueueChange {
            action,
            which,
            message: None,
            batch: Vec::new(),
            asked: 0,
            under_way: 0,
            is_gathered: false,
            result: Handled::default(),
        }
    }

    /// Whether the action is a retry.
    pub(super) fn is_retry(&self) -> bool {
        self.action == QueueAction::Retry
    }

    /// Whether the batch has a change for which the store is to be asked now.
    pub(super) fn has_unasked(&self) -> bool {
        self.asked < self.batch.len() && !self.is_claiming()
    }

    /// Whether further entries of a message are claimed before the batch is changed.
    pub(super) fn is_claiming(&self) -> bool {
        matches!(self.which, Which::Message(_)) && !self.is_gathered && self.batch.len() < BATCH
    }

    /// Whether the store has not answered all requested changes yet.
    pub(super) fn is_under_way(&self) -> bool {
        self.under_way > 0
    }

    /// The result. `None` while entries are still to be gathered.
    pub(super) fn result(&self) -> Option<Handled> {
        self.is_gathered.then_some(self.result)
    }

    /// Notes that an entry could not be changed.
    pub(super) fn refused(&mut self, refusal: Refusal) {
        self.result.refused = Some(refusal);
    }

    /// Takes the store's answer to a change.
    pub(super) fn answered(&mut self, outcome: Outcome) {
        self.under_way = self.under_way.saturating_sub(1);
        if let Outcome::Refused(refusal) = outcome {
            self.refused(refusal);
        }
    }

    /// Fills a batch from the cursor on. Returns an entry if its recipients must be read first.
    pub(super) fn gather(
        &mut self,
        cursor: &mut Option<Place>,
        budget: &mut usize,
        cx: &mut AdminCx<'_, '_>,
    ) -> Option<Place> {
        let domain = match &self.which {
            Which::One(posted) => {
                let place = place_of(*posted);
                if *cursor == Some(place) || cx.queue.index.of(place).is_none() {
                    self.is_gathered = true;
                    return None;
                }
                if self.is_retry() {
                    return Some(place);
                }
                *cursor = Some(place);
                self.take_up(place, cx);
                return None;
            }
            Which::Message(posted) => {
                let next = match &mut self.message {
                    None => Some(place_of(*posted)).filter(|place| *cursor != Some(*place)),
                    Some(message) => {
                        if message.candidates.front() == cursor.as_ref() {
                            message.candidates.pop_front();
                        }
                        message.candidates.front().copied()
                    }
                };
                self.is_gathered = next.is_none();
                return next;
            }
            Which::Domain(domain) => {
                if self.is_retry() {
                    cx.queue.try_again(domain, cx.parts.store);
                }
                Queue::mark_of(domain, &cx.parts.store.own.store)
            }
        };
        while *budget > 0 && self.batch.len() < BATCH {
            *budget -= 1;
            let Some((place, status)) = cx.queue.index.behind(*cursor).next() else {
                self.is_gathered = true;
                return None;
            };
            match status.domain {
                // The domain of this entry cannot be known: its head cannot be read.
                None if status.state == State::LeftAlone => {}
                None => return Some(place),
                Some(own) if own == domain => self.take_up(place, cx),
                Some(_) => {}
            }
            *cursor = Some(place);
        }
        None
    }

    /// Whether the action applies to an entry. `beginning`: its first octets, and their extent.
    ///
    /// Errors: `Partial` if more of the entry must be read to know.
    pub(super) fn applies_to(
        &mut self,
        place: Place,
        beginning: (&[u8], EntryExtent),
        cx: &AdminCx<'_, '_>,
    ) -> Result<bool, UnreadableEnvelope> {
        if !matches!(self.which, Which::Message(_)) {
            return Ok(true);
        }
        let (reverse_path, key) = key(beginning)?;
        let mark = Queue::mark_of_message(&key, &cx.parts.store.own.store);
        if let Some(message) = &self.message {
            return Ok(message.mark == mark);
        }
        let is_own = is_of_account(place.0, &reverse_path, cx);
        let candidates = if is_own { candidates(place, cx) } else { VecDeque::new() };
        self.message = Some(SoughtMessage { mark, candidates });
        Ok(is_own)
    }

    /// Notes that an entry cannot be read. The action applies to it if the request names it.
    pub(super) fn cannot_read(&mut self, place: Place, cx: &mut AdminCx<'_, '_>) {
        match &self.which {
            Which::Message(posted) if place_of(*posted) == place => self.take_up(place, cx),
            _ => self.refused(Refusal::Damaged),
        }
    }

    /// Applies the action to an entry, if the entry is for the domain. If the store has to make the
    /// change, the entry is added to the batch.
    pub(super) fn take_up(&mut self, place: Place, cx: &mut AdminCx<'_, '_>) {
        let Some(status) = cx.queue.index.of(place) else { return };
        if let Which::Domain(domain) = &self.which
            && status.domain != Some(Queue::mark_of(domain, &cx.parts.store.own.store))
        {
            return;
        }
        let is_forwarding_entry =
            entry::is_forwarding_entry(cx.parts.store.own.store.outbox_entry(place.0, place.1));
        // An entry may also wait because an attempt failed: its content or the disk was at fault.
        // Such an entry may be deleted or retried, even if it is to be forwarded.
        let is_left = matches!(
            (self.action, status.state),
            (QueueAction::Delete | QueueAction::Retry, State::Waits(_))
        );
        match (self.action, status.state) {
            (_, State::Claimed | State::Reported) => self.result.under_way += 1,
            // A message that is to be forwarded has no envelope yet, so it cannot be changed.
            _ if is_forwarding_entry && !is_left => self.result.under_way += 1,
            (QueueAction::Retry, State::Waits(_)) => {
                cx.queue.index.set(place, State::Waits(Instant::START));
                self.result.done += 1;
            }
            (QueueAction::Retry, State::Behind) => self.result.done += 1,
            (QueueAction::Release, State::Held) => self.take_over(place, cx),
            (QueueAction::Retry | QueueAction::Release, _) | (QueueAction::Hold, State::Held) => {}
            (QueueAction::Hold | QueueAction::Return, State::LeftAlone) => {}
            (QueueAction::Hold | QueueAction::Return | QueueAction::Delete, State::UnderWay) => {
                recall_attempt(place, cx);
                if cx.queue.index.has_state(place, State::UnderWay) {
                    self.result.under_way += 1;
                } else {
                    self.take_over(place, cx);
                }
            }
            (QueueAction::Hold | QueueAction::Return | QueueAction::Delete, _) => {
                self.take_over(place, cx)
            }
        }
    }

    /// Adds an entry to the batch. No attempt begins with the entry until the change is made.
    fn take_over(&mut self, place: Place, cx: &mut AdminCx<'_, '_>) {
        cx.queue.forget_failures(place);
        cx.queue.index.set(place, State::Claimed);
        self.batch.push(place);
    }

    /// Asks the store for the next change.
    pub(super) fn ask(&mut self, cx: &mut AdminCx<'_, '_>) -> Result<(), Refusal> {
        let Some((account, uid)) = self.batch.get(self.asked).copied() else {
            unreachable!("all changes were asked for")
        };
        let (store, continuation) = (&mut cx.parts.store.own.store, continuation(cx.frame));
        let mut change = |state| {
            store.change_entry(
                account,
                uid,
                (EntryChange::to(state), Packing::default()),
                continuation,
            )
        };
        let requested = match self.action {
            QueueAction::Hold => change(EntryState::Held),
            QueueAction::Release => change(EntryState::Queued),
            QueueAction::Return => change(EntryState::Returned),
            QueueAction::Delete => {
                store.remove(account, OUTBOX, &[UidRange::one(uid)], continuation)
            }
            QueueAction::Retry => unreachable!("a retry changes no entry"),
        };
        if requested != Err(Refusal::Busy) {
            self.asked += 1;
            self.under_way += usize::from(requested.is_ok());
        }
        requested
    }

    /// Gives each entry of the batch the state that the store has recorded. By now, all changes of
    /// the batch are durable or refused.
    pub(super) fn settle(&mut self, cx: &mut AdminCx<'_, '_>) {
        self.asked = 0;
        for place in self.batch.drain(..) {
            let recorded = entry::recorded_state_in(&cx.parts.store.own.store, place);
            let index = &mut cx.queue.index;
            self.result.done += usize::from(match self.action {
                QueueAction::Hold => recorded == Some(RecordedState::Held),
                QueueAction::Return => recorded == Some(RecordedState::Returned),
                QueueAction::Release => recorded == Some(RecordedState::Leaves),
                QueueAction::Delete => recorded.is_none(),
                QueueAction::Retry => false,
            });
            match recorded {
                None => index.gone(place),
                Some(recorded) => index.set(place, recorded.state(Instant::START)),
            }
        }
    }
}

/// The other entries that may belong to the message of this entry.
fn candidates(place: Place, cx: &AdminCx<'_, '_>) -> VecDeque<Place> {
    let store = &cx.parts.store.own.store;
    let near = cx.queue.index.near(place).map(|(place, _)| place);
    let is_submitted =
        |(account, uid): &Place| !entry::is_forwarding_entry(store.outbox_entry(*account, *uid));
    near.filter(is_submitted).collect()
}

/// Whether an account has sent a message with this reverse path. An empty or rewritten path may
/// belong to mail that the account forwards.
fn is_of_account(account: AccountId, reverse_path: &str, cx: &AdminCx<'_, '_>) -> bool {
    let local_part = reverse_path.rsplit_once('@').map_or("", |(local_part, _)| local_part);
    let owner = cx.parts.directory.recipient_at(cx.parts.store, reverse_path);
    !relay::srs::is_rewritten(local_part) && owner == Ok(account)
}

/// The reverse path of an entry, and the octets that all entries of its message share, and no other
/// message of the account has.
fn key((entry, extent): (&[u8], EntryExtent)) -> Result<(String, Vec<u8>), UnreadableEnvelope> {
    let EntryHead { envelope, message_at, .. } = head::read(entry, extent)?;
    let message = entry.get(message_at..).unwrap_or_default();
    if extent == EntryExtent::Beginning && !has_shown_header(message) {
        return Err(UnreadableEnvelope::Partial);
    }
    let id = Header::new(message).field("Message-ID").map_or(&[][..], |field| field.value);
    let key = [envelope.reverse_path.as_bytes(), identity(message), id].concat();
    Ok((envelope.reverse_path, key))
}

/// Recalls the attempt that has this entry, unless a host may have the message already.
fn recall_attempt(place: Place, cx: &mut AdminCx<'_, '_>) {
    let AdminCx { attempts, queue, parts, .. } = cx;
    let frame =
        attempts.iter().find(|(_, attempt)| attempt.place() == place).map(|(frame, _)| frame);
    if let Some(frame) = frame {
        step(frame, attempts, queue, parts, DeliveryAttempt::recall);
    }
}
