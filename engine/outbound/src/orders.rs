//! What administrators ask of the queue: on each core, with the entries that it owns.
//!
//! An order is one frame in a table, a zero-wait thread like a courier. It reads the recipients of
//! entries that were not read yet, has up to [`BATCH`] entries marked or removed at a time, and
//! replies when all of that is durable. The store then says how it stands with each.
//!
//! Invariants:
//! - An entry that is held, returned or deleted has no courier. The courier is called back first.
//!   Where the host may have the message already, the entry is left alone, and the reply says so.
//! - What has been told to be held, returned or deleted does not leave, also after a power cut.
//! - An order looks at [`LOOKED_AT_MAX`] entries a turn at most; a core has [`ORDERS_MAX`] orders.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use accounts::entries;
use channel::Ticket;
use machine::Instant;
use relay::Envelope;
use relay::envelope::Unreadable;
use store::{Beginning, EntryChange, EntryState, OUTBOX, Outcome, Packing, Refusal, UidRange};
use tasks::{Continuation, FrameId, FrameTable};

use super::context::Context;
use super::courier::Courier;
use super::entry::{self, Fate};
use super::forwarding::reverse_path;
use super::head::EntryExtent;
use super::questions::{
    Handled, Handling, LINES, Posted, QueueAsked, QueueCounts, QueueLine, QueueTold, Which,
};
use super::showing::line;
use super::standing::State;
use super::state::Queue;
use super::{Attempts, Place, Point, head, step};

/// Orders of a core at a time.
const ORDERS_MAX: usize = 16;
/// Entries that are changed together.
const BATCH: usize = 64;
/// Entries that an order looks at in a turn.
const LOOKED_AT_MAX: usize = 1024;

/// The orders of a core.
pub(super) struct Orders {
    /// By the clerks of these frames.
    asked: VecDeque<(Ticket, QueueAsked)>,
    at_work: FrameTable<Box<Order>>,
    /// Those who go on in the next turn.
    again: Vec<FrameId>,
    /// The replies, and where each goes.
    told: VecDeque<(Ticket, QueueTold)>,
}

/// What an order works with.
pub(super) struct OrderCx<'a, 'c> {
    pub(super) frame: FrameId,
    pub(super) attempts: &'a mut Attempts,
    pub(super) queue: &'a mut Queue,
    pub(super) parts: &'a mut Context<'c>,
}

pub(super) struct Order {
    asker: Ticket,
    /// Behind which entry it goes on.
    cursor: Option<Place>,
    /// The entry that is read, and its beginning.
    beginning: Option<(Place, Beginning)>,
    /// Which entry a part is to come of.
    reading: Option<Place>,
    work: Work,
}

enum Work {
    Look(Vec<QueueLine>),
    Handle(Handle),
}

struct Handle {
    handling: Handling,
    which: Which,
    /// The batch; how many of it the store was asked for, and how many have no answer.
    batch: Vec<Place>,
    asked: usize,
    under_way: usize,
    is_gathered: bool,
    handled: Handled,
}

/// What comes next.
enum Then {
    /// Something that it has asked for comes.
    Waits,
    /// It goes on in the next turn.
    Turn,
    Over(QueueTold),
}

impl Orders {
    pub(super) fn new() -> Orders {
        Orders {
            asked: VecDeque::new(),
            at_work: FrameTable::with_capacity(ORDERS_MAX),
            again: Vec::new(),
            told: VecDeque::new(),
        }
    }

    /// A clerk wants something.
    pub(super) fn asked(&mut self, asker: Ticket, asked: QueueAsked) {
        self.asked.push_back((asker, asked));
    }

    /// What this core tells next, and where it goes.
    pub(super) fn next_told(&mut self) -> Option<(Ticket, QueueTold)> {
        self.told.pop_front()
    }

    /// Orders that can go on do, and new ones begin.
    pub(super) fn work(
        &mut self,
        attempts: &mut Attempts,
        queue: &mut Queue,
        parts: &mut Context<'_>,
    ) {
        for frame in core::mem::take(&mut self.again) {
            self.step(OrderCx { frame, attempts, queue, parts }, |_, _| {});
        }
        while let Some((asker, asked)) = self.asked.pop_front() {
            match self.at_work.insert(Box::new(Order::new(asker, asked))) {
                Ok(frame) => self.step(OrderCx { frame, attempts, queue, parts }, |_, _| {}),
                Err(_) => self.tell(asker, QueueTold::Busy),
            }
        }
    }

    /// The order of the frame does something, and goes on.
    pub(super) fn step(
        &mut self,
        mut cx: OrderCx<'_, '_>,
        act: impl FnOnce(&mut Order, &mut OrderCx<'_, '_>),
    ) {
        let frame = cx.frame;
        // One that the store had no time for stands in `again`, and may be over before its turn:
        // what it had asked for has come, and the rest was refused at once.
        let Some(order) = self.at_work.get_mut(frame) else { return };
        act(order, &mut cx);
        let asker = order.asker;
        match order.go_on(&mut cx) {
            Then::Over(told) => {
                self.at_work.remove(frame);
                self.tell(asker, told);
            }
            Then::Turn => self.again.push(frame),
            Then::Waits => {}
        }
    }

    fn tell(&mut self, asker: Ticket, told: QueueTold) {
        self.told.push_back((asker, told));
    }

    pub(super) fn are_to_go_on(&self) -> bool {
        !self.asked.is_empty() || !self.again.is_empty() || !self.told.is_empty()
    }

    /// Orders that are not answered.
    pub(super) fn under_way(&self) -> usize {
        self.asked.len() + self.at_work.len() + self.told.len()
    }
}

impl Order {
    fn new(asker: Ticket, asked: QueueAsked) -> Order {
        let (cursor, work) = match asked {
            QueueAsked::Look(after) => (after.map(place_of), Work::Look(Vec::new())),
            QueueAsked::Handle(handling, which) => {
                let (batch, asked, under_way, handled) = (Vec::new(), 0, 0, Handled::default());
                (
                    None,
                    Work::Handle(Handle {
                        handling,
                        which,
                        batch,
                        asked,
                        under_way,
                        is_gathered: false,
                        handled,
                    }),
                )
            }
        };
        Order { asker, cursor, beginning: None, reading: None, work }
    }

    fn go_on(&mut self, cx: &mut OrderCx<'_, '_>) -> Then {
        if self.reading.is_some() {
            return Then::Waits;
        }
        match &self.work {
            Work::Look(_) => self.look(cx),
            Work::Handle(_) => self.handle(cx),
        }
    }

    /// Reads the next entry of a page, or is done with it.
    fn look(&mut self, cx: &mut OrderCx<'_, '_>) -> Then {
        loop {
            let Work::Look(lines) = &mut self.work else {
                unreachable!("an order that looks at nothing")
            };
            let next = cx.queue.standings.behind(self.cursor).next();
            // One more says that there is more.
            let Some((place, _)) = next.filter(|_| lines.len() <= LINES) else {
                let lines = core::mem::take(lines);
                return Then::Over(QueueTold::Lines(
                    lines,
                    counts(cx),
                    cx.queue.tls_counts(cx.parts.turn.wall),
                ));
            };
            match self.read(place, cx) {
                Ok(()) => return Then::Waits,
                Err(Refusal::Busy) => return Then::Turn,
                Err(refusal) => {
                    // Its owner has deleted it.
                    if refusal == Refusal::NoSuchMessage
                        && cx.queue.standings.is(place, State::LeftAlone)
                    {
                        cx.queue.standings.gone(place);
                    }
                    self.cursor = Some(place);
                }
            }
        }
    }

    fn read(&mut self, place: Place, cx: &mut OrderCx<'_, '_>) -> Result<(), Refusal> {
        let ((account, uid), continuation) = (place, continuation(cx.frame));
        let beginning = self.beginning.as_ref().filter(|(own, _)| *own == place);
        let offset = beginning.map_or(0, |(_, beginning)| beginning.next());
        cx.parts.store.own.store.read(account, OUTBOX, uid, offset, continuation)?;
        self.reading = Some(place);
        Ok(())
    }

    /// A part of an entry is there, or cannot be read.
    fn part_arrived(&mut self, bytes: Option<&[u8]>, cx: &mut OrderCx<'_, '_>) {
        let Some(place) = self.reading.take() else { return };
        let Some(bytes) = bytes else { return self.cannot_read(place, cx) };
        let known = self.beginning.take().filter(|(own, _)| *own == place);
        let (_, mut beginning) = known.unwrap_or((place, Beginning::from(0)));
        beginning.arrived(bytes);
        let store = &cx.parts.store.own.store;
        let Some((info, own)) = store.message(place.0, OUTBOX, place.1).zip(store.account(place.0))
        else {
            self.cursor = Some(place);
            return;
        };
        let record = store.outbox_entry(place.0, place.1);
        let is_arriving = entry::is_arriving(record);
        let extent = EntryExtent::of(&beginning, info.octets);
        let envelope =
            match envelope_of(beginning.octets(), is_arriving.then(|| own.address()), extent) {
                Ok(envelope) => envelope,
                Err(Unreadable::Partial) => {
                    self.beginning = Some((place, beginning));
                    return;
                }
                Err(Unreadable::Malformed) => return self.cannot_read(place, cx),
            };
        self.cursor = Some(place);
        let all = entry::recipients(&envelope, record);
        let domain =
            all.first().map_or_else(String::new, |first| entries::domain_of(&first.address));
        if record.is_some() {
            cx.queue.is_for(place, &domain, &cx.parts.store.own.store);
        }
        match &mut self.work {
            Work::Look(lines) => {
                let packing = all.first().map_or(Packing::Done, entries::packing_of);
                let done = record.filter(|_| !is_arriving).map_or(0, |record| record.done(packing));
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
            Work::Handle(handle) => {
                if handle.handling == Handling::Retry {
                    cx.queue.call_again(&domain, cx.parts.store);
                }
                handle.take_up(place, cx);
            }
        }
    }

    /// Whom an entry is for nobody knows any more.
    fn cannot_read(&mut self, place: Place, cx: &OrderCx<'_, '_>) {
        (self.beginning, self.cursor) = (None, Some(place));
        match &mut self.work {
            Work::Look(lines) => {
                let own = cx.parts.store.own.store.account(place.0).map_or("", |own| own.address());
                lines.extend(line(place, None, own.into(), cx.queue, cx.parts));
            }
            Work::Handle(handle) => handle.handled.refused = Some(Refusal::Damaged),
        }
    }

    /// Gathers entries, has them changed, and goes on so until there are none.
    fn handle(&mut self, cx: &mut OrderCx<'_, '_>) -> Then {
        let mut budget = LOOKED_AT_MAX;
        loop {
            let Work::Handle(handle) = &mut self.work else {
                unreachable!("an order that changes nothing")
            };
            if handle.asked < handle.batch.len() {
                match handle.ask(cx) {
                    Ok(()) => continue,
                    Err(Refusal::Busy) => return Then::Turn,
                    Err(refusal) => handle.handled.refused = Some(refusal),
                }
                continue;
            }
            if handle.under_way > 0 {
                return Then::Waits;
            }
            handle.settle(cx);
            if handle.is_gathered {
                return Then::Over(QueueTold::Handled(handle.handled));
            }
            if budget == 0 {
                return Then::Turn;
            }
            if let Some(place) = handle.gather(&mut self.cursor, &mut budget, cx)
                && let Err(refusal) = self.read(place, cx)
            {
                if refusal == Refusal::Busy {
                    return Then::Turn;
                }
                self.cursor = Some(place);
            }
            if self.reading.is_some() {
                return Then::Waits;
            }
        }
    }

    pub(super) fn woken(&mut self, outcome: Outcome, cx: &mut OrderCx<'_, '_>) {
        match outcome {
            Outcome::Body(body) => {
                self.part_arrived(Some(body.bytes()), cx);
                cx.parts.store.own.store.give_back(body);
            }
            Outcome::Refused(_) if self.reading.is_some() => self.part_arrived(None, cx),
            outcome => {
                if let Work::Handle(handle) = &mut self.work {
                    handle.under_way = handle.under_way.saturating_sub(1);
                    if let Outcome::Refused(refusal) = outcome {
                        handle.handled.refused = Some(refusal);
                    }
                }
            }
        }
    }
}

impl Handle {
    /// Fills a batch from the cursor on. Returns an entry if its recipients must be read first.
    fn gather(
        &mut self,
        cursor: &mut Option<Place>,
        budget: &mut usize,
        cx: &mut OrderCx<'_, '_>,
    ) -> Option<Place> {
        let domain = match &self.which {
            Which::One(posted) => {
                let place = place_of(*posted);
                if *cursor == Some(place) || cx.queue.standings.of(place).is_none() {
                    self.is_gathered = true;
                    return None;
                }
                if self.handling == Handling::Retry {
                    return Some(place);
                }
                *cursor = Some(place);
                self.take_up(place, cx);
                return None;
            }
            Which::Domain(domain) => {
                if self.handling == Handling::Retry {
                    cx.queue.call_again(domain, cx.parts.store);
                }
                Queue::mark_of(domain, &cx.parts.store.own.store)
            }
        };
        while *budget > 0 && self.batch.len() < BATCH {
            *budget -= 1;
            let Some((place, standing)) = cx.queue.standings.behind(*cursor).next() else {
                self.is_gathered = true;
                return None;
            };
            match standing.domain {
                // Its domain cannot be known.
                None if standing.state == State::LeftAlone => {}
                None => return Some(place),
                Some(own) if own == domain => self.take_up(place, cx),
                Some(_) => {}
            }
            *cursor = Some(place);
        }
        None
    }

    /// An entry is one of those that are meant, if it is for the domain.
    fn take_up(&mut self, place: Place, cx: &mut OrderCx<'_, '_>) {
        let Some(standing) = cx.queue.standings.of(place) else { return };
        if let Which::Domain(domain) = &self.which
            && standing.domain != Some(Queue::mark_of(domain, &cx.parts.store.own.store))
        {
            return;
        }
        let is_arriving =
            entry::is_arriving(cx.parts.store.own.store.outbox_entry(place.0, place.1));
        // It has been tried in vain, for what it says or for the disk.
        let is_left = matches!(
            (self.handling, standing.state),
            (Handling::Delete | Handling::Retry, State::Waits(_))
        );
        match (self.handling, standing.state) {
            (_, State::Ordered) => self.handled.under_way += 1,
            // It is not in an envelope yet.
            _ if is_arriving && !is_left => self.handled.under_way += 1,
            (Handling::Retry, State::Waits(_)) => {
                cx.queue.standings.set(place, State::Waits(Instant::START));
                self.handled.done += 1;
            }
            (Handling::Retry, State::Behind) => self.handled.done += 1,
            (Handling::Release, State::Held) => self.take_over(place, cx),
            (Handling::Retry | Handling::Release, _) | (Handling::Hold, State::Held) => {}
            (Handling::Hold | Handling::Return, State::LeftAlone) => {}
            (Handling::Hold | Handling::Return | Handling::Delete, State::UnderWay) => {
                call_back(place, cx);
                if cx.queue.standings.is(place, State::UnderWay) {
                    self.handled.under_way += 1;
                } else {
                    self.take_over(place, cx);
                }
            }
            (Handling::Hold | Handling::Return | Handling::Delete, _) => self.take_over(place, cx),
        }
    }

    fn take_over(&mut self, place: Place, cx: &mut OrderCx<'_, '_>) {
        cx.queue.standings.set(place, State::Ordered);
        self.batch.push(place);
    }

    /// Asks the store for the next change.
    fn ask(&mut self, cx: &mut OrderCx<'_, '_>) -> Result<(), Refusal> {
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
        let asked = match self.handling {
            Handling::Hold => change(EntryState::Held),
            Handling::Release => change(EntryState::Queued),
            Handling::Return => change(EntryState::Returned),
            Handling::Delete => store.remove(account, OUTBOX, &[UidRange::one(uid)], continuation),
            Handling::Retry => unreachable!("a retry changes no entry"),
        };
        if asked != Err(Refusal::Busy) {
            self.asked += 1;
            self.under_way += usize::from(asked.is_ok());
        }
        asked
    }

    /// All of a batch is durable, or refused: it stands with each entry as the store says.
    fn settle(&mut self, cx: &mut OrderCx<'_, '_>) {
        self.asked = 0;
        for place in self.batch.drain(..) {
            let fate = entry::fate_in(&cx.parts.store.own.store, place);
            let standings = &mut cx.queue.standings;
            self.handled.done += usize::from(match self.handling {
                Handling::Hold => fate == Some(Fate::Held),
                Handling::Return => fate == Some(Fate::GivenBack),
                Handling::Release => fate == Some(Fate::Leaves),
                Handling::Delete => fate.is_none(),
                Handling::Retry => false,
            });
            match fate {
                None => standings.gone(place),
                Some(fate) => standings.set(place, fate.state(Instant::START)),
            }
        }
    }
}

/// The envelope of an entry that begins so; of a message that came for `own` its path, and that
/// address.
fn envelope_of(
    entry: &[u8],
    own: Option<&str>,
    extent: EntryExtent,
) -> Result<Envelope, Unreadable> {
    let Some(own) = own else { return head::read(entry, extent).map(|head| head.envelope) };
    let is_line = entry.len() >= message::RETURN_PATH_BYTES_MAX
        || memchr::memmem::find(entry, b"\r\n").is_some();
    if !is_line && extent == EntryExtent::Beginning {
        return Err(Unreadable::Partial);
    }
    Ok(entries::envelope_of(reverse_path(entry).0, &[String::from(own)]))
}

/// A courier comes back with this entry, unless a host may have it already.
fn call_back(place: Place, cx: &mut OrderCx<'_, '_>) {
    let OrderCx { attempts, queue, parts, .. } = cx;
    let frame =
        attempts.iter().find(|(_, courier)| courier.place() == place).map(|(frame, _)| frame);
    if let Some(frame) = frame {
        step(frame, attempts, queue, parts, Courier::called_back);
    }
}

fn place_of(posted: Posted) -> Place {
    (posted.account, posted.uid)
}

fn continuation(frame: FrameId) -> Continuation {
    Continuation { frame, entry: Point::Order.entry() }
}

fn counts(cx: &OrderCx<'_, '_>) -> QueueCounts {
    let standings = &cx.queue.standings;
    QueueCounts { entries: standings.count(), held: standings.held(), under_way: cx.attempts.len() }
}
