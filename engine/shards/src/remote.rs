//! The client for the stores of all other cores. It stores the state that each store has reported
//! last, and sends requests to the owners of accounts.
//!
//! Octets of messages are gathered in pages that belong to this core. A message gets a page when it
//! begins. A page is sent when it is full, or when the message is complete. If more octets follow,
//! the message takes a spare page. Without a spare page, it waits until one of its own pages is
//! returned.
//!
//! Invariants:
//! - Requests about an account go to the core that owns it, the *owner*.
//! - A message that waits for a page has sent a page. It is woken when that page is returned.
//! - A message stays in the table until the owner has reported its result, or until the request to
//!   abort it is queued for the owner.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use machine::CoreId;
use sometimes::sometimes;
use store::{
    AccountId, Body, BodySpace, Closing, Outcome, Recipient, Refusal, SentId, State, Uid, UidRange,
    Wake,
};
use tasks::{Continuation, FrameId, FrameTable};

use crate::messages::{
    MessageCompletion, MessagePage, PAGE_OCTETS, RemoteDeliveryId, Request, StoreStatus, end_of,
};
use crate::purpose::OwnerRequestKind;

/// The client for all other cores.
pub(crate) struct RemoteShards {
    /// For each core: the state of its store, and the requests for it.
    owners: Vec<RemoteOwner>,
    deliveries: FrameTable<RemoteDelivery>,
    pages: Vec<Box<MessagePage>>,
    /// Parts of bodies that were requested and not given back.
    reads: usize,
    /// Removals and forgotten arrivals in progress.
    removals: usize,
    wakes: VecDeque<Wake>,
}

struct RemoteOwner {
    status: StoreStatus,
    requests: VecDeque<Request>,
}

/// A message that is being sent to its owner.
struct RemoteDelivery {
    owner: CoreId,
    page: Option<Box<MessagePage>>,
    expect: Expect,
    /// The continuation that waits for space, or for the end.
    continuation: Option<Continuation>,
    refused: Option<Refusal>,
}

/// The event that a message waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expect {
    /// Octets of the message, or the commit.
    Octets,
    /// The owner's report that the message is prepared, or the session's commit.
    Prepared,
    /// The owner's report of the result.
    Stored,
}

impl RemoteShards {
    /// `cores`: the number of cores. `deliveries`: the most messages in progress at a time, and
    /// also the most reads.
    pub(crate) fn new(cores: u8, deliveries: usize) -> RemoteShards {
        let nowhere = RemoteDeliveryId(FrameId::new(0, 0));
        let page = || MessagePage {
            delivery: nowhere,
            recipients: Vec::with_capacity(8),
            length: 0,
            octets: [0; PAGE_OCTETS],
        };
        let owner = || RemoteOwner {
            status: StoreStatus {
                state: State::Opening,
                room: BodySpace::NONE,
                is_short_of_buffers: false,
            },
            requests: VecDeque::with_capacity(4 * deliveries),
        };
        RemoteShards {
            owners: (0..cores).map(|_| owner()).collect(),
            deliveries: FrameTable::with_capacity(deliveries),
            pages: (0..2 * deliveries).map(|_| Box::new(page())).collect(),
            reads: 0,
            removals: 0,
            wakes: VecDeque::with_capacity(4 * deliveries),
        }
    }

    /// Begins a message for accounts of `owner`.
    pub(crate) fn begin(
        &mut self,
        owner: CoreId,
        recipients: &[Recipient],
    ) -> Result<RemoteDeliveryId, Refusal> {
        // An owner that has not reported its state yet may accept the message.
        if let State::ReadOnly(_) = self.status(owner)?.state {
            return Err(Refusal::ReadOnly);
        }
        if self.is_crowded(owner) {
            return Err(Refusal::Busy);
        }
        let mut page = self.pages.pop().ok_or(Refusal::Busy)?;
        page.recipients.extend_from_slice(recipients);
        let gathering = RemoteDelivery {
            owner,
            page: Some(page),
            expect: Expect::Octets,
            continuation: None,
            refused: None,
        };
        self.deliveries.insert(gathering).map(RemoteDeliveryId).map_err(|gathering| {
            gathering.page.into_iter().for_each(|page| self.put_back(page));
            Refusal::Busy
        })
    }

    /// Asks the owner for a place for a message that has just begun. `continuation` is woken with
    /// [`Outcome::DeliveryReady`] when the owner has a place, or refuses the message.
    pub(crate) fn ask_for_place(&mut self, delivery: RemoteDeliveryId, continuation: Continuation) {
        let Some(gathering) = self.deliveries.get_mut(delivery.0) else {
            unreachable!("a message that has ended")
        };
        gathering.continuation = Some(continuation);
        self.send_page(delivery, None);
    }

    /// The reason why the owner has refused an incomplete message, if it has.
    pub(crate) fn refusal(&self, delivery: RemoteDeliveryId) -> Option<Refusal> {
        self.deliveries.get(delivery.0)?.refused
    }

    /// Whether the owner of a message is short of buffers, or of places for messages.
    pub(crate) fn is_owner_short(&self, delivery: RemoteDeliveryId) -> bool {
        let owner = self
            .deliveries
            .get(delivery.0)
            .and_then(|gathering| self.owners.get(gathering.owner.index()));
        owner.is_some_and(|owner| owner.status.is_short_of_buffers)
    }

    pub(crate) fn append(
        &mut self,
        delivery: RemoteDeliveryId,
        octets: &[u8],
        continuation: Continuation,
    ) -> Result<usize, Refusal> {
        let mut taken = 0;
        loop {
            let gathering = self.deliveries.get_mut(delivery.0).ok_or(Refusal::NoSuchDelivery)?;
            if let Some(refusal) = gathering.refused {
                return Err(refusal);
            }
            if let Some(page) = &mut gathering.page {
                let Some(rest) = octets.get(taken..) else {
                    unreachable!("more octets taken than given")
                };
                taken += page.take(rest);
                if taken == octets.len() {
                    return Ok(taken);
                }
                self.send_page(delivery, None);
            }
            let page = self.page_to_spare();
            let gathering = self.deliveries.get_mut(delivery.0).ok_or(Refusal::NoSuchDelivery)?;
            if page.is_none() {
                sometimes!(NoPage);
                gathering.continuation = Some(continuation);
                return Ok(taken);
            }
            gathering.page = page;
        }
    }

    pub(crate) fn commit(
        &mut self,
        delivery: RemoteDeliveryId,
        closing: Closing,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        self.complete(delivery, MessageCompletion::Commit(closing), Expect::Stored, continuation)
    }

    /// Asks the owner to prepare a complete message. `continuation` is woken with
    /// [`Outcome::DeliveryReady`] when the message is prepared.
    pub(crate) fn prepare(
        &mut self,
        delivery: RemoteDeliveryId,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        self.complete(delivery, MessageCompletion::Prepare, Expect::Prepared, continuation)
    }

    /// Commits a prepared message.
    pub(crate) fn commit_prepared(
        &mut self,
        delivery: RemoteDeliveryId,
        closing: Closing,
        continuation: Continuation,
    ) {
        let Some(gathering) = self.deliveries.get_mut(delivery.0) else { return };
        (gathering.expect, gathering.continuation) = (Expect::Stored, Some(continuation));
        let owner = gathering.owner;
        self.ask(owner, Request::Commit(delivery, closing));
    }

    /// Handles the news that the owner has all octets of a message, and disk space for them.
    pub(crate) fn prepared(&mut self, delivery: RemoteDeliveryId) {
        let continuation =
            self.deliveries.get_mut(delivery.0).and_then(|gathering| gathering.continuation.take());
        self.wakes.extend(
            continuation.map(|continuation| Wake { continuation, outcome: Outcome::DeliveryReady }),
        );
    }

    /// Adds a result that is known on this core.
    pub(crate) fn wake(&mut self, wake: Wake) {
        self.wakes.push_back(wake);
    }

    fn complete(
        &mut self,
        delivery: RemoteDeliveryId,
        end: MessageCompletion,
        expect: Expect,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        let gathering = self.deliveries.get_mut(delivery.0).ok_or(Refusal::NoSuchDelivery)?;
        let refusal = gathering.refused.or(gathering.page.is_none().then_some(Refusal::Busy));
        if let Some(refusal) = refusal {
            self.abort(delivery);
            return Err(refusal);
        }
        (gathering.expect, gathering.continuation) = (expect, Some(continuation));
        self.send_page(delivery, Some(end));
        Ok(())
    }

    pub(crate) fn abort(&mut self, delivery: RemoteDeliveryId) {
        let Some(gathering) = self.deliveries.get_mut(delivery.0) else { return };
        if gathering.expect == Expect::Stored {
            gathering.continuation = None;
            return;
        }
        let (owner, page) = (gathering.owner, gathering.page.take());
        self.deliveries.remove(delivery.0);
        page.into_iter().for_each(|page| self.put_back(page));
        self.ask(owner, Request::Abort(delivery));
    }

    pub(crate) fn read(
        &mut self,
        owner: CoreId,
        account: AccountId,
        uid: Uid,
        offset: u32,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        if self.reads >= self.deliveries.capacity() || self.is_crowded(owner) {
            return Err(Refusal::Busy);
        }
        self.reads += 1;
        self.ask(owner, Request::Read { account, uid, offset, continuation });
        Ok(())
    }

    pub(crate) fn give_back(&mut self, owner: CoreId, body: Body) {
        self.reads -= 1;
        self.ask(owner, Request::BodyDone(body));
    }

    pub(crate) fn remove(
        &mut self,
        owner: CoreId,
        account: AccountId,
        ranges: &[UidRange],
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        self.removals += 1;
        self.ask(owner, Request::Remove { account, ranges: ranges.into(), continuation });
        Ok(())
    }

    pub(crate) fn forget_arrival(
        &mut self,
        owner: CoreId,
        account: AccountId,
        origin: SentId,
        continuation: Continuation,
    ) {
        self.removals += 1;
        self.ask(owner, Request::ForgetArrival { account, origin, continuation });
    }

    /// Queues a request. The caller counts the result that it expects, if any.
    pub(crate) fn ask(&mut self, owner: CoreId, request: Request) {
        self.at(owner).requests.push_back(request);
    }

    fn at(&mut self, core: CoreId) -> &mut RemoteOwner {
        match self.owners.get_mut(core.index()) {
            Some(owner) => owner,
            None => unreachable!("a core above the last one"),
        }
    }

    /// Takes back a page. If the message of the page waits for a page, it gets this one.
    pub(crate) fn page_done(&mut self, mut page: Box<MessagePage>) {
        let delivery = page.delivery;
        page.clear();
        let gathering =
            self.deliveries.get_mut(delivery.0).filter(|gathering| gathering.waits_for_page());
        let Some(gathering) = gathering else { return self.pages.push(page) };
        gathering.page = Some(page);
        self.offer_room(delivery);
    }

    /// Handles a result that an owner reports.
    pub(crate) fn woken(&mut self, purpose: OwnerRequestKind, wake: Wake) {
        match purpose {
            OwnerRequestKind::Delivery => {
                self.delivery_ended(RemoteDeliveryId(wake.continuation.frame), wake.outcome)
            }
            OwnerRequestKind::Read => {
                if !matches!(wake.outcome, Outcome::Body(_)) {
                    self.reads -= 1;
                }
                self.wakes.push_back(wake);
            }
            OwnerRequestKind::Removal => {
                self.removals -= 1;
                self.wakes.push_back(wake);
            }
        }
    }

    /// Handles the state that a core reports of its store.
    pub(crate) fn status_changed(&mut self, core: CoreId, news: StoreStatus) {
        self.at(core).status = news;
    }

    /// The state of a core's store.
    pub(crate) fn status(&self, core: CoreId) -> Result<StoreStatus, Refusal> {
        self.owners.get(core.index()).map(|owner| owner.status).ok_or(Refusal::NotServing)
    }

    /// The states of the stores of all cores. This core's own entry keeps its first state: opening,
    /// and without space.
    pub(crate) fn all_status(&self) -> impl Iterator<Item = StoreStatus> {
        self.owners.iter().map(|owner| owner.status)
    }

    pub(crate) fn next_wake(&mut self) -> Option<Wake> {
        self.wakes.pop_front()
    }

    pub(crate) fn has_wakes(&self) -> bool {
        !self.wakes.is_empty()
    }

    /// The next request for a core.
    pub(crate) fn next_request(&mut self, core: CoreId) -> Option<Request> {
        self.owners.get_mut(core.index())?.requests.pop_front()
    }

    pub(crate) fn has_requests(&self) -> bool {
        self.owners.iter().any(|owner| !owner.requests.is_empty())
    }

    /// The number of messages in progress, including those with a page that was not returned yet.
    pub(crate) fn deliveries_in_progress(&self) -> usize {
        self.deliveries.len().max(2 * self.deliveries.capacity() - self.pages.len())
    }

    pub(crate) fn reads_under_way(&self) -> usize {
        self.reads
    }

    pub(crate) fn is_at_rest(&self) -> bool {
        self.deliveries_in_progress() == 0 && self.reads == 0 && self.removals == 0
    }

    /// Whether an owner has so many waiting requests that nothing new should begin.
    fn is_crowded(&self, owner: CoreId) -> bool {
        self.owners
            .get(owner.index())
            .is_none_or(|owner| owner.requests.len() >= self.deliveries.capacity())
    }

    /// A further page for a message. `None` if messages that begin later need the remaining pages.
    fn page_to_spare(&mut self) -> Option<Box<MessagePage>> {
        if self.pages.len() > self.deliveries.capacity() { self.pages.pop() } else { None }
    }

    fn put_back(&mut self, mut page: Box<MessagePage>) {
        page.clear();
        self.pages.push(page);
    }

    /// Sends the page of `delivery`. If the page has an end, the message is complete.
    fn send_page(&mut self, delivery: RemoteDeliveryId, end: Option<MessageCompletion>) {
        let Some(gathering) = self.deliveries.get_mut(delivery.0) else {
            unreachable!("a message that has ended")
        };
        let Some(mut page) = gathering.page.take() else {
            unreachable!("a page that was sent already")
        };
        page.delivery = delivery;
        let owner = gathering.owner;
        self.ask(owner, Request::Octets { page, end });
    }

    /// Handles the result of a message, which may be reported before the message is complete.
    fn delivery_ended(&mut self, delivery: RemoteDeliveryId, outcome: Outcome) {
        let Some(gathering) = self.deliveries.get_mut(delivery.0) else { return };
        if gathering.expect == Expect::Octets {
            gathering.refused = end_of(&outcome);
            return self.offer_room(delivery);
        }
        let continuation = gathering.continuation.take();
        self.deliveries.remove(delivery.0);
        self.wakes.extend(continuation.map(|continuation| Wake { continuation, outcome }));
    }

    /// Wakes a message that waits for space.
    fn offer_room(&mut self, delivery: RemoteDeliveryId) {
        let Some(gathering) = self.deliveries.get_mut(delivery.0) else {
            unreachable!("a message that has ended")
        };
        if gathering.expect == Expect::Octets
            && let Some(continuation) = gathering.continuation.take()
        {
            self.wakes.push_back(Wake { continuation, outcome: Outcome::DeliveryReady });
        }
    }
}

impl RemoteDelivery {
    fn waits_for_page(&self) -> bool {
        self.expect == Expect::Octets && self.page.is_none() && self.continuation.is_some()
    }
}

impl MessagePage {
    fn clear(&mut self) {
        self.recipients.clear();
        self.length = 0;
    }

    /// Copies as many octets as fit into the page. Returns their number.
    fn take(&mut self, octets: &[u8]) -> usize {
        let Some(room) = self.octets.get_mut(self.length..) else {
            unreachable!("a page of more octets than fit")
        };
        let count = room.len().min(octets.len());
        let (Some(place), Some(octets)) = (room.get_mut(..count), octets.get(..count)) else {
            unreachable!("the smaller of two lengths fits both")
        };
        place.copy_from_slice(octets);
        self.length += count;
        count
    }
}
