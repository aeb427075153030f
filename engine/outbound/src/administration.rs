//! Administration of the queue, on each core for the entries that it owns.
//!
//! A request is one frame in a table, a zero-wait thread like a delivery attempt.
//! A request that lists a page reads each entry of the page. A request that changes entries reads
//! an entry only if it needs the domain of the entry's recipients. A change marks or removes up to
//! [`change::BATCH`] entries at a time. When the store has made a batch durable, the index gets the
//! state that the store has recorded for each entry. The reply follows the last batch.
//!
//! Invariants:
//! - Before an entry is held, returned or deleted, its delivery attempt is recalled. If the host
//!   may have the message already, the entry is left alone, and the reply says so.
//! - After the reply, an entry that was held, returned or deleted is not sent, not even after a
//!   power cut.
//! - A request examines at most [`EXAMINED_MAX`] entries in a turn.
//! - A core has at most [`REQUESTS_MAX`] requests.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use accounts::entries;
use channel::Ticket;
use relay::Envelope;
use relay::envelope::UnreadableEnvelope;
use store::{OUTBOX, Outcome, Packing, PartialMessage, Refusal};
use tasks::{Continuation, FrameId, FrameTable};

use super::context::OutboundContext;
use super::entry;
use super::forwarding::reverse_path;
use super::head::EntryExtent;
use super::index::State;
use super::listing::line;
use super::questions::{LINES, QueueCounts, QueueEntryId, QueueLine, QueueQuery, QueueReply};
use super::state::Queue;
use super::{Attempts, OutboundWaitPoint, Place, head};

use change::QueueChange;

mod change;

/// The most requests of a core at a time.
const REQUESTS_MAX: usize = 16;
/// The most entries that a request examines in a turn.
const EXAMINED_MAX: usize = 1024;

/// The administrative requests of a core.
pub(super) struct Administration {
    /// The requests that have not begun, each with the ticket for its reply.
    waiting: VecDeque<(Ticket, QueueQuery)>,
    at_work: FrameTable<Box<AdminRequest>>,
    /// The requests that continue in the next turn.
    again: Vec<FrameId>,
    /// The replies that the caller has not taken yet, each with its ticket.
    replies: VecDeque<(Ticket, QueueReply)>,
}

/// The parts of the core that a step of a request uses.
pub(super) struct AdminCx<'a, 'c> {
    pub(super) frame: FrameId,
    pub(super) attempts: &'a mut Attempts,
    pub(super) queue: &'a mut Queue,
    pub(super) parts: &'a mut OutboundContext<'c>,
}

pub(super) struct AdminRequest {
    asker: Ticket,
    /// The last entry that the request is done with. The request continues with the next one.
    cursor: Option<Place>,
    /// An entry that was read in part, and its beginning so far.
    beginning: Option<(Place, PartialMessage)>,
    /// The entry of which the store is reading a part.
    reading: Option<Place>,
    work: QueueRequestKind,
}

enum QueueRequestKind {
    Look(Vec<QueueLine>),
    Change(QueueChange),
}

/// The result of a step of a request.
enum RequestStep {
    /// The request waits for the store.
    Waits,
    /// The request continues in the next turn.
    Turn,
    Over(QueueReply),
}

impl Administration {
    pub(super) fn new() -> Administration {
        Administration {
            waiting: VecDeque::new(),
            at_work: FrameTable::with_capacity(REQUESTS_MAX),
            again: Vec::new(),
            replies: VecDeque::new(),
        }
    }

    /// Queues an administrator's request. `asker`: the ticket for the reply.
    pub(super) fn enqueue(&mut self, asker: Ticket, query: QueueQuery) {
        self.waiting.push_back((asker, query));
    }

    /// Takes the next reply of this core, with its ticket.
    pub(super) fn next_reply(&mut self) -> Option<(Ticket, QueueReply)> {
        self.replies.pop_front()
    }

    /// Continues the requests that can continue, and begins new ones.
    pub(super) fn work(
        &mut self,
        attempts: &mut Attempts,
        queue: &mut Queue,
        parts: &mut OutboundContext<'_>,
    ) {
        for frame in core::mem::take(&mut self.again) {
            self.step(AdminCx { frame, attempts, queue, parts }, |_, _| {});
        }
        while let Some((asker, query)) = self.waiting.pop_front() {
            match self.at_work.insert(Box::new(AdminRequest::new(asker, query))) {
                Ok(frame) => self.step(AdminCx { frame, attempts, queue, parts }, |_, _| {}),
                Err(_) => self.reply(asker, QueueReply::Busy),
            }
        }
    }

    /// Calls `act` with the request of the frame, and then continues the request.
    pub(super) fn step(
        &mut self,
        mut cx: AdminCx<'_, '_>,
        act: impl FnOnce(&mut AdminRequest, &mut AdminCx<'_, '_>),
    ) {
        let frame = cx.frame;
        // A request that found the store busy is in `again`. If the store answers its earlier
        // changes and refuses the rest at once, the request may be over before the next turn.
        let Some(request) = self.at_work.get_mut(frame) else { return };
        act(request, &mut cx);
        let asker = request.asker;
        match request.go_on(&mut cx) {
            RequestStep::Over(reply) => {
                self.at_work.remove(frame);
                self.reply(asker, reply);
            }
            RequestStep::Turn => self.again.push(frame),
            RequestStep::Waits => {}
        }
    }

    fn reply(&mut self, asker: Ticket, reply: QueueReply) {
        self.replies.push_back((asker, reply));
    }

    /// Whether a request waits or can continue, or the caller has not taken a reply yet.
    pub(super) fn has_requests_to_continue(&self) -> bool {
        !self.waiting.is_empty() || !self.again.is_empty() || !self.replies.is_empty()
    }

    /// The number of requests that are queued, under way, or answered but not fetched.
    pub(super) fn under_way(&self) -> usize {
        self.waiting.len() + self.at_work.len() + self.replies.len()
    }
}

impl AdminRequest {
    fn new(asker: Ticket, query: QueueQuery) -> AdminRequest {
        let (cursor, work) = match query {
            QueueQuery::Look(after) => (after.map(place_of), QueueRequestKind::Look(Vec::new())),
            QueueQuery::Handle(action, which) => {
                (None, QueueRequestKind::Change(QueueChange::new(action, which)))
            }
        };
        AdminRequest { asker, cursor, beginning: None, reading: None, work }
    }

    fn go_on(&mut self, cx: &mut AdminCx<'_, '_>) -> RequestStep {
        if self.reading.is_some() {
            return RequestStep::Waits;
        }
        match &self.work {
            QueueRequestKind::Look(_) => self.list_next(cx),
            QueueRequestKind::Change(_) => self.change(cx),
        }
    }

    /// Reads the next entry of a page, or finishes the page.
    fn list_next(&mut self, cx: &mut AdminCx<'_, '_>) -> RequestStep {
        loop {
            let QueueRequestKind::Look(lines) = &mut self.work else {
                unreachable!("only a page lists entries")
            };
            let next = cx.queue.index.behind(self.cursor).next();
            // One line more than a page holds shows that another page follows.
            let Some((place, _)) = next.filter(|_| lines.len() <= LINES) else {
                let lines = core::mem::take(lines);
                return RequestStep::Over(QueueReply::Lines(
                    lines,
                    counts(cx),
                    cx.queue.tls_counts(cx.parts.turn.wall),
                ));
            };
            match self.read(place, cx) {
                Ok(()) => return RequestStep::Waits,
                Err(Refusal::Busy) => return RequestStep::Turn,
                Err(refusal) => {
                    // The user of the account has deleted the entry from the Outbox.
                    if refusal == Refusal::NoSuchMessage
                        && cx.queue.index.has_state(place, State::LeftAlone)
                    {
                        cx.queue.gone(place);
                    }
                    self.cursor = Some(place);
                }
            }
        }
    }

    fn read(&mut self, place: Place, cx: &mut AdminCx<'_, '_>) -> Result<(), Refusal> {
        let ((account, uid), continuation) = (place, continuation(cx.frame));
        let beginning = self.beginning.as_ref().filter(|(own, _)| *own == place);
        let offset = beginning.map_or(0, |(_, beginning)| beginning.next());
        cx.parts.store.own.store.read(account, OUTBOX, uid, offset, continuation)?;
        self.reading = Some(place);
        Ok(())
    }

    /// Processes a part of an entry. `None`: the part cannot be read.
    fn part_arrived(&mut self, bytes: Option<&[u8]>, cx: &mut AdminCx<'_, '_>) {
        let Some(place) = self.reading.take() else { return };
        let Some(bytes) = bytes else { return self.cannot_read(place, cx) };
        let known = self.beginning.take().filter(|(own, _)| *own == place);
        let (_, mut beginning) = known.unwrap_or((place, PartialMessage::from(0)));
        beginning.arrived(bytes);
        let store = &cx.parts.store.own.store;
        let Some((info, own)) = store.message(place.0, OUTBOX, place.1).zip(store.account(place.0))
        else {
            self.cursor = Some(place);
            return;
        };
        let record = store.outbox_entry(place.0, place.1);
        let is_forwarding_entry = entry::is_forwarding_entry(record);
        let extent = EntryExtent::of(&beginning, info.octets);
        let envelope = match envelope_of(
            beginning.octets(),
            is_forwarding_entry.then(|| own.address()),
            extent,
        ) {
            Ok(envelope) => envelope,
            Err(UnreadableEnvelope::Partial) => {
                self.beginning = Some((place, beginning));
                return;
            }
            Err(UnreadableEnvelope::Malformed) => return self.cannot_read(place, cx),
        };
        let Some(all) = entry::recipients(&envelope, record) else {
            return self.cannot_read(place, cx);
        };
        let applies = match &mut self.work {
            QueueRequestKind::Look(_) => Ok(true),
            QueueRequestKind::Change(change) => {
                change.applies_to(place, (beginning.octets(), extent), cx)
            }
        };
        let applies = match applies {
            Ok(applies) => applies,
            Err(UnreadableEnvelope::Partial) => {
                self.beginning = Some((place, beginning));
                return;
            }
            Err(UnreadableEnvelope::Malformed) => return self.cannot_read(place, cx),
        };
        self.cursor = Some(place);
        let domain =
            all.first().map_or_else(String::new, |first| entries::domain_of(&first.address));
        if record.is_some() {
            cx.queue.set_domain(place, &domain, &cx.parts.store.own.store);
        }
        match &mut self.work {
            QueueRequestKind::Look(lines) => {
                let packing = all.first().map_or(Packing::Done, entries::packing_of);
                let done = record
                    .filter(|_| !is_forwarding_entry)
                    .map_or(0, |record| record.done(packing));
                let waits = |number: usize| number >= entry::RECIPIENTS || done >> number & 1 == 0;
                let waiting = all.iter().enumerate().filter(|(number, _)| waits(*number));
                let recipients = waiting.map(|(_, recipient)| recipient.address.clone()).collect();
                lines.extend(line(
                    place,
                    Some(recipients),
                    envelope.reverse_path,
                    cx.queue,
                    cx.parts,
                ));
            }
            QueueRequestKind::Change(change) => {
                if change.is_retry() {
                    cx.queue.try_again(&domain, cx.parts.store);
                }
                if applies {
                    change.take_up(place, cx);
                }
            }
        }
    }

    /// Skips an entry with unknown recipients. A page lists the entry without recipients. A change
    /// is refused, unless the request names the entry.
    fn cannot_read(&mut self, place: Place, cx: &mut AdminCx<'_, '_>) {
        (self.beginning, self.cursor) = (None, Some(place));
        match &mut self.work {
            QueueRequestKind::Look(lines) => {
                let own = cx.parts.store.own.store.account(place.0).map_or("", |own| own.address());
                lines.extend(line(place, None, own.into(), cx.queue, cx.parts));
            }
            QueueRequestKind::Change(change) => change.cannot_read(place, cx),
        }
    }

    /// Gathers entries and asks the store to change them, until none are left.
    fn change(&mut self, cx: &mut AdminCx<'_, '_>) -> RequestStep {
        let mut budget = EXAMINED_MAX;
        loop {
            let QueueRequestKind::Change(change) = &mut self.work else {
                unreachable!("only a change gathers entries")
            };
            if change.has_unasked() {
                match change.ask(cx) {
                    Ok(()) => continue,
                    Err(Refusal::Busy) => return RequestStep::Turn,
                    Err(refusal) => change.refused(refusal),
                }
                continue;
            }
            if change.is_under_way() {
                return RequestStep::Waits;
            }
            if !change.is_claiming() {
                change.settle(cx);
            }
            if let Some(result) = change.result() {
                return RequestStep::Over(QueueReply::Handled(result));
            }
            if budget == 0 {
                return RequestStep::Turn;
            }
            if let Some(place) = change.gather(&mut self.cursor, &mut budget, cx)
                && let Err(refusal) = self.read(place, cx)
            {
                if refusal == Refusal::Busy {
                    return RequestStep::Turn;
                }
                if refusal != Refusal::NoSuchMessage
                    && let QueueRequestKind::Change(change) = &mut self.work
                {
                    change.refused(refusal);
                }
                self.cursor = Some(place);
            }
            if self.reading.is_some() {
                return RequestStep::Waits;
            }
        }
    }

    pub(super) fn woken(&mut self, outcome: Outcome, cx: &mut AdminCx<'_, '_>) {
        match outcome {
            Outcome::Body(body) => {
                self.part_arrived(Some(body.bytes()), cx);
                cx.parts.store.own.store.give_back(body);
            }
            Outcome::Refused(_) if self.reading.is_some() => self.part_arrived(None, cx),
            outcome => {
                if let QueueRequestKind::Change(change) = &mut self.work {
                    change.answered(outcome);
                }
            }
        }
    }
}

/// The envelope of an entry that begins with `entry`. `own`: the address of the forwarding account
/// if the entry is a message that arrived for one. In this case the envelope has the reverse path
/// of the message, and `own` as its recipient.
fn envelope_of(
    entry: &[u8],
    own: Option<&str>,
    extent: EntryExtent,
) -> Result<Envelope, UnreadableEnvelope> {
    let Some(own) = own else { return head::read(entry, extent).map(|head| head.envelope) };
    let is_line = entry.len() >= message::RETURN_PATH_BYTES_MAX
        || memchr::memmem::find(entry, b"\r\n").is_some();
    if !is_line && extent == EntryExtent::Beginning {
        return Err(UnreadableEnvelope::Partial);
    }
    Ok(entries::envelope_of(reverse_path(entry).0, &[String::from(own)]))
}

fn place_of(posted: QueueEntryId) -> Place {
    (posted.account, posted.uid)
}

fn continuation(frame: FrameId) -> Continuation {
    Continuation { frame, entry: OutboundWaitPoint::AdminRequest.entry() }
}

fn counts(cx: &AdminCx<'_, '_>) -> QueueCounts {
    let index = &cx.queue.index;
    QueueCounts { entries: index.count(), held: index.held(), under_way: cx.attempts.len() }
}
