//! The shard request server: it serves the requests of other cores to the store of this core.
//!
//! Each request becomes the call that a session of this core would make. The continuation of the
//! call identifies the requesting core. A message has a place here until it is committed or
//! aborted. The place has the number of the message's slot on the core that sends the message.
//!
//! Invariants:
//! - Pages of a message are appended in the order of arrival, and are then returned.
//! - A message that waits to begin occupies its place. So the number of places limits the number of
//!   waiting messages.
//! - The refusal of a message is reported once, to the core of the message. Later pages of the
//!   message are returned unread.
//! - A request that finds the store busy waits here, in the order of arrival. The requesting core
//!   does not repeat it. A message of another core waits while the maximum number of messages is in
//!   progress. So each message that may begin on this core has a place.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use machine::CoreId;
use sometimes::sometimes;
use store::{Closing, DeliveryId, INBOX, Refusal, Store, Wake};
use tasks::Continuation;

use crate::messages::{
    Limits, MessageCompletion, MessagePage, News, RemoteDeliveryId, Request, StartStage,
    StoreStatus, refused,
};
use crate::point::ShardWaitPoint;
use crate::purpose::{OwnerRequestKind, core_of, on_core};

/// The server for all other cores.
pub(crate) struct ShardServer {
    /// The state of each other core. The entry of this core is `None`.
    clients: Vec<Option<ClientCore>>,
    /// Requests that found the store busy.
    waiting: VecDeque<(CoreId, Request)>,
    /// Messages that wait to begin.
    beginning: VecDeque<(CoreId, RemoteDeliveryId)>,
    /// While this many messages are in progress, no message of another core begins.
    deliveries: usize,
    /// The state of the store that was last queued for all cores.
    last_status: Option<StoreStatus>,
}

/// The state of one other core.
struct ClientCore {
    /// The messages of that core, each in the slot that it has on that core.
    arrivals: Vec<Option<IncomingDelivery>>,
    /// The latest state of the store, until it is sent to the core.
    status: Option<StoreStatus>,
    news: VecDeque<News>,
    stage: StartStage,
    has_left: bool,
}

/// A message that arrives page by page.
struct IncomingDelivery {
    delivery: RemoteDeliveryId,
    /// `None` until the store begins the delivery. An error: the store has refused the message.
    local: Option<Result<DeliveryId, Refusal>>,
    /// Pages that the store has not taken yet. `taken`: the octets taken from the first page.
    pages: VecDeque<(Box<MessagePage>, Option<MessageCompletion>)>,
    taken: usize,
    /// The message is complete, and waits for its space.
    is_preparing: bool,
}

impl ShardServer {
    /// `core`: the core of this server, among `cores` with these `limits`.
    pub(crate) fn new(core: CoreId, cores: u8, limits: &Limits) -> ShardServer {
        let deliveries = limits.remote_deliveries;
        let client = || ClientCore {
            arrivals: (0..deliveries).map(|_| None).collect(),
            status: None,
            news: VecDeque::with_capacity(4 * deliveries),
            stage: StartStage::Waiting,
            has_left: false,
        };
        ShardServer {
            clients: (0..cores).map(|other| (CoreId(other) != core).then(client)).collect(),
            waiting: VecDeque::new(),
            beginning: VecDeque::new(),
            deliveries: limits.transactions,
            last_status: None,
        }
    }

    /// Handles a request from another core.
    pub(crate) fn requested(&mut self, from: CoreId, request: Request, store: &mut Store) {
        match request {
            Request::Octets { page, end } => self.octets_arrived(from, page, end, store),
            Request::Commit(delivery, closing) => self.commit(from, delivery, closing, store),
            Request::Abort(delivery) => self.abort(from, delivery, store),
            Request::BodyDone(body) => store.give_back(body),
            Request::Reached(stage) => self.at(from, |client| client.stage = stage),
            Request::Left => self.at(from, |client| client.has_left = true),
            Request::Question(..) | Request::CloseMaildrop(_) | Request::PasswordKnown(_) => {
                unreachable!("a request that is not for the store")
            }
            request @ (Request::Read { .. }
            | Request::Remove { .. }
            | Request::ForgetArrival { .. }) => {
                if !self.waiting.is_empty() || !self.fulfil(from, &request, store) {
                    sometimes!(ShardRequestWaits);
                    self.waiting.push_back((from, request));
                }
            }
        }
    }

    /// The next result for a session of this core. Results for other cores are sent to them.
    pub(crate) fn next_wake(&mut self, store: &mut Store) -> Option<Wake> {
        loop {
            let wake = store.next_wake()?;
            match core_of(wake.continuation) {
                (None, _) => return Some(wake),
                (Some(origin), continuation) => {
                    self.woken(origin, Wake { continuation, ..wake }, store)
                }
            }
        }
    }

    /// Ends a turn: waiting requests are tried again, and all cores are told the state of the
    /// store.
    pub(crate) fn turn_ended(&mut self, store: &mut Store) {
        while let Some((core, request)) = self.waiting.pop_front() {
            if !self.fulfil(core, &request, store) {
                self.waiting.push_front((core, request));
                break;
            }
        }
        self.begin_waiting(store);
        let is_short_of_buffers = store.is_short_of_buffers() || self.is_short_of_places();
        self.tell_status(StoreStatus {
            state: store.state(),
            room: store.room(),
            is_short_of_buffers,
        });
    }

    /// Handles a wake of an operation that another core has requested.
    pub(crate) fn woken(
        &mut self,
        (core, purpose): (CoreId, OwnerRequestKind),
        wake: Wake,
        store: &mut Store,
    ) {
        match ShardWaitPoint::of(wake.continuation.entry) {
            Some(ShardWaitPoint::RemoteRoom) => {
                self.go_on(core, RemoteDeliveryId(wake.continuation.frame), store)
            }
            _ => self.tell(core, News::Woken(purpose, wake)),
        }
    }

    pub(crate) fn cores(&self) -> u8 {
        self.clients.len() as u8
    }

    pub(crate) fn tell_all(&mut self, news: impl Fn() -> News) {
        self.clients.iter_mut().flatten().for_each(|client| client.news.push_back(news()));
    }

    pub(crate) fn next_news(&mut self, core: CoreId) -> Option<News> {
        let client = self.client(core)?;
        client.status.take().map(News::Status).or_else(|| client.news.pop_front())
    }

    pub(crate) fn has_news(&self) -> bool {
        self.clients
            .iter()
            .flatten()
            .any(|client| client.status.is_some() || !client.news.is_empty())
    }

    pub(crate) fn all_have_left(&self) -> bool {
        self.clients.iter().flatten().all(|client| client.has_left)
    }

    /// The number of other cores that have reached this stage of their start.
    pub(crate) fn have_reached(&self, stage: StartStage) -> usize {
        self.clients.iter().flatten().filter(|client| client.stage >= stage).count()
    }

    /// Whether messages wait to begin.
    pub(crate) fn is_short_of_places(&self) -> bool {
        !self.beginning.is_empty()
    }

    pub(crate) fn is_at_rest(&self) -> bool {
        self.waiting.is_empty() && self.beginning.is_empty()
    }

    /// Tells all cores the state of the store if it has changed. Each core gets only the latest
    /// state.
    fn tell_status(&mut self, status: StoreStatus) {
        if self.last_status.replace(status) != Some(status) {
            let staying = self.clients.iter_mut().flatten().filter(|client| !client.has_left);
            staying.for_each(|client| client.status = Some(status));
        }
    }

    pub(crate) fn tell(&mut self, core: CoreId, news: News) {
        let Some(client) = self.client(core) else { unreachable!("news for this core itself") };
        client.news.push_back(news);
    }

    fn client(&mut self, core: CoreId) -> Option<&mut ClientCore> {
        self.clients.get_mut(core.index())?.as_mut()
    }

    fn at(&mut self, core: CoreId, change: impl FnOnce(&mut ClientCore)) {
        if let Some(client) = self.client(core) {
            change(client);
        }
    }

    fn arrival(
        &mut self,
        core: CoreId,
        delivery: RemoteDeliveryId,
    ) -> Option<&mut IncomingDelivery> {
        let place = self.client(core)?.arrivals.get_mut(delivery.0.index())?;
        place.as_mut().filter(|arrival| arrival.delivery == delivery)
    }

    /// Tries to fulfil a request. Returns false if the store is busy.
    fn fulfil(&mut self, core: CoreId, request: &Request, store: &mut Store) -> bool {
        let (purpose, continuation, result) = match request {
            Request::Read { account, uid, offset, continuation } => {
                let at = on_core((core, OwnerRequestKind::Read), *continuation);
                (
                    OwnerRequestKind::Read,
                    continuation,
                    store.read(*account, INBOX, *uid, *offset, at),
                )
            }
            Request::Remove { account, ranges, continuation } => {
                let at = on_core((core, OwnerRequestKind::Removal), *continuation);
                (OwnerRequestKind::Removal, continuation, store.remove(*account, INBOX, ranges, at))
            }
            Request::ForgetArrival { account, origin, continuation } => {
                let at = on_core((core, OwnerRequestKind::Removal), *continuation);
                (
                    OwnerRequestKind::Removal,
                    continuation,
                    store.forget_arrival(*account, *origin, at),
                )
            }
            _ => unreachable!("a request that does not wait"),
        };
        match result {
            Ok(()) => true,
            Err(Refusal::Busy) => false,
            Err(refusal) => {
                self.tell(core, News::Woken(purpose, refused(*continuation, refusal)));
                true
            }
        }
    }

    fn octets_arrived(
        &mut self,
        core: CoreId,
        page: Box<MessagePage>,
        end: Option<MessageCompletion>,
        store: &mut Store,
    ) {
        let delivery = page.delivery;
        if !page.recipients.is_empty() {
            let arrival = IncomingDelivery {
                delivery,
                local: None,
                pages: VecDeque::new(),
                taken: 0,
                is_preparing: false,
            };
            let place = self.place(core, delivery);
            assert!(place.is_none(), "a delivery's slot is used again only after its end was sent");
            *place = Some(arrival);
            self.beginning.push_back((core, delivery));
        }
        let Some(arrival) = self.arrival(core, delivery) else {
            unreachable!("a page behind its message's end")
        };
        arrival.pages.push_back((page, end));
        self.begin_waiting(store);
        self.go_on(core, delivery, store);
    }

    /// Begins waiting messages, unless too many are in progress.
    fn begin_waiting(&mut self, store: &mut Store) {
        while store.deliveries_under_way() < self.deliveries
            && let Some((core, delivery)) = self.beginning.pop_front()
        {
            let Some(arrival) = self.arrival(core, delivery) else {
                unreachable!("a message that was not begun has no end")
            };
            let Some((page, _)) = arrival.pages.front() else {
                unreachable!("a message begins with its first page")
            };
            let local = store.begin(&page.recipients);
            arrival.local = Some(local);
            if let Err(refusal) = local {
                self.tell(
                    core,
                    News::Woken(OwnerRequestKind::Delivery, refused(stored(delivery), refusal)),
                );
            }
            self.go_on(core, delivery, store);
        }
        if !self.beginning.is_empty() {
            sometimes!(RemoteBeginWaits);
        }
    }

    /// Gives the store as much of a message as it takes.
    fn go_on(&mut self, core: CoreId, delivery: RemoteDeliveryId, store: &mut Store) {
        while let Some(arrival) = self.arrival(core, delivery) {
            if arrival.is_preparing {
                return self.prepare(core, delivery, store);
            }
            let refused = match arrival.append(core, store) {
                Ok(Appended::Page) => None,
                Ok(Appended::LessThanThat) => return,
                Err(refusal) => Some(refusal),
            };
            let Some((page, end)) = arrival.pages.pop_front() else { return };
            arrival.taken = 0;
            let is_lost = !matches!(arrival.local, Some(Ok(_)));
            arrival.is_preparing = end == Some(MessageCompletion::Prepare) && !is_lost;
            if let Some(refusal) = refused {
                self.refuse(core, delivery, refusal);
            }
            self.tell(core, News::PageDone(page));
            match end {
                Some(MessageCompletion::Commit(closing)) => {
                    self.commit(core, delivery, closing, store)
                }
                Some(MessageCompletion::Prepare) if is_lost => self.forget(core, delivery),
                _ => {}
            }
        }
    }

    /// Commits a message that is complete.
    fn commit(
        &mut self,
        core: CoreId,
        delivery: RemoteDeliveryId,
        closing: Closing,
        store: &mut Store,
    ) {
        let Some(arrival) = self.arrival(core, delivery) else { return };
        if let Some(Ok(local)) = arrival.local
            && let Err(refusal) = store.commit(
                local,
                closing,
                on_core((core, OwnerRequestKind::Delivery), stored(delivery)),
            )
        {
            self.refuse(core, delivery, refusal);
        }
        self.forget(core, delivery);
    }

    /// Allocates the space for a complete message. If the store cannot tell yet whether space is
    /// free, it wakes this message later.
    fn prepare(&mut self, core: CoreId, delivery: RemoteDeliveryId, store: &mut Store) {
        let Some(Some(Ok(local))) = self.arrival(core, delivery).map(|arrival| arrival.local)
        else {
            return;
        };
        let room = Continuation { frame: delivery.0, entry: ShardWaitPoint::RemoteRoom.entry() };
        match store.prepare(local, on_core((core, OwnerRequestKind::Delivery), room)) {
            Ok(true) => {
                let Some(arrival) = self.arrival(core, delivery) else {
                    unreachable!("it was just prepared")
                };
                arrival.is_preparing = false;
                self.tell(core, News::Prepared(delivery));
            }
            Ok(false) => {}
            Err(refusal) => {
                self.refuse(core, delivery, refusal);
                self.forget(core, delivery);
            }
        }
    }

    fn refuse(&mut self, core: CoreId, delivery: RemoteDeliveryId, refusal: Refusal) {
        sometimes!(RemoteDeliveryRefused);
        self.tell(
            core,
            News::Woken(OwnerRequestKind::Delivery, refused(stored(delivery), refusal)),
        );
    }

    /// Aborts a message.
    fn abort(&mut self, core: CoreId, delivery: RemoteDeliveryId, store: &mut Store) {
        let Some(arrival) = self.arrival(core, delivery) else { return };
        sometimes!(RemoteDeliveryAborted);
        match arrival.local {
            Some(Ok(local)) => store.abort(local),
            Some(Err(_)) => {}
            None => self.beginning.retain(|waiting| *waiting != (core, delivery)),
        }
        let Some(arrival) = self.arrival(core, delivery) else {
            unreachable!("the delivery was just aborted")
        };
        let pages = core::mem::take(&mut arrival.pages);
        pages.into_iter().for_each(|(page, _)| self.tell(core, News::PageDone(page)));
        self.forget(core, delivery);
    }

    fn forget(&mut self, core: CoreId, delivery: RemoteDeliveryId) {
        *self.place(core, delivery) = None;
    }

    /// The place for a message that another core sends.
    fn place(&mut self, core: CoreId, delivery: RemoteDeliveryId) -> &mut Option<IncomingDelivery> {
        match self.client(core).and_then(|client| client.arrivals.get_mut(delivery.0.index())) {
            Some(place) => place,
            None => unreachable!("a message above the last one of its core"),
        }
    }
}

/// The amount of a page that the store has taken.
enum Appended {
    /// The whole page.
    Page,
    /// A part of the page. The store wakes the message when it can take the rest.
    LessThanThat,
}

impl IncomingDelivery {
    /// Appends the rest of the first page. Errors: the message is refused from now on.
    fn append(&mut self, core: CoreId, store: &mut Store) -> Result<Appended, Refusal> {
        let local = match self.local {
            None => return Ok(Appended::LessThanThat),
            Some(Err(_)) => return Ok(Appended::Page),
            Some(Ok(local)) => local,
        };
        let Some((page, _)) = self.pages.front() else { return Ok(Appended::Page) };
        let octets = page.octets.get(self.taken..page.length);
        let Some(octets) = octets else { unreachable!("more octets taken than a page has") };
        let room =
            Continuation { frame: self.delivery.0, entry: ShardWaitPoint::RemoteRoom.entry() };
        match store.append(local, octets, on_core((core, OwnerRequestKind::Delivery), room)) {
            Ok(taken) if taken < octets.len() => {
                self.taken += taken;
                Ok(Appended::LessThanThat)
            }
            Ok(_) => Ok(Appended::Page),
            Err(refusal) => {
                store.abort(local);
                self.local = Some(Err(refusal));
                Err(refusal)
            }
        }
    }
}

fn stored(delivery: RemoteDeliveryId) -> Continuation {
    Continuation { frame: delivery.0, entry: ShardWaitPoint::RemoteStored.entry() }
}

#[cfg(test)]
mod tests;
