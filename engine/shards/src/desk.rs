//! The shard request server: requests of other cores to the store of this core.
//!
//! Each request becomes the call that a session of this core would make, with a continuation that
//! identifies the requesting core. A message has a place here, in the slot that it has on its own
//! core, until it is committed or aborted.
//!
//! Invariants:
//! - Pages of a message are appended in the order of arrival, and are then returned.
//! - A message that waits to begin has its place, so no more of them wait than there are places.
//! - The refusal of a message is reported once to its core. Its later pages are returned unread.
//! - A request that finds the store busy waits here in order of arrival: its core does not ask
//!   again. Messages of other cores also wait while the maximum number is in progress. So each
//!   message that this core may begin always has a place.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use machine::CoreId;
use sometimes::sometimes;
use store::{Closing, DeliveryId, INBOX, Refusal, Store, Wake};
use tasks::Continuation;

use crate::messages::{End, Letter, Limits, News, Page, Request, Status, refused};
use crate::point::Point;
use crate::purpose::{Purpose, core_of, on_core};

/// The server for all other cores.
pub(crate) struct Desk {
    /// One for each core except this one.
    guests: Vec<Option<Guest>>,
    /// Requests that found the store busy.
    waiting: VecDeque<(CoreId, Request)>,
    /// Messages that wait to begin.
    beginning: VecDeque<(CoreId, Letter)>,
    /// If this many messages of all cores are in progress, none of another core is begun.
    letters: usize,
    told: Option<Status>,
}

/// The state of one other core.
struct Guest {
    /// Its messages, each in the slot that it has there.
    arrivals: Vec<Option<Arrival>>,
    /// The state of the store, if the core has not been told.
    status: Option<Status>,
    news: VecDeque<News>,
    has_taken_over: bool,
    is_serving: bool,
    has_left: bool,
}

/// A message that arrives page by page.
struct Arrival {
    letter: Letter,
    /// `None` if it has not begun yet.
    delivery: Option<Result<DeliveryId, Refusal>>,
    /// Pages that the store has not taken yet, and the octets taken from the first one.
    pages: VecDeque<(Box<Page>, Option<End>)>,
    taken: usize,
    /// It is complete, and waits for its space.
    is_preparing: bool,
}

impl Desk {
    /// `core`: the core of this server, among `cores` with these `limits`.
    pub(crate) fn new(core: CoreId, cores: u8, limits: &Limits) -> Desk {
        let letters = limits.letters_for_others;
        let guest = || Guest {
            arrivals: (0..letters).map(|_| None).collect(),
            status: None,
            news: VecDeque::with_capacity(4 * letters),
            has_taken_over: false,
            is_serving: false,
            has_left: false,
        };
        Desk {
            guests: (0..cores).map(|other| (CoreId(other) != core).then(guest)).collect(),
            waiting: VecDeque::new(),
            beginning: VecDeque::new(),
            letters: limits.transactions,
            told: None,
        }
    }

    /// A core sends a request.
    pub(crate) fn requested(&mut self, from: CoreId, request: Request, store: &mut Store) {
        match request {
            Request::Octets { page, end } => self.octets_arrived(from, page, end, store),
            Request::Commit(letter, closing) => self.commit(from, letter, closing, store),
            Request::Abort(letter) => self.abort(from, letter, store),
            Request::BodyDone(body) => store.give_back(body),
            Request::TookOver => self.at(from, |guest| guest.has_taken_over = true),
            Request::Serving => self.at(from, |guest| guest.is_serving = true),
            Request::Left => self.at(from, |guest| guest.has_left = true),
            Request::Asked(..) | Request::CloseMaildrop(_) | Request::PasswordKnown(_) => {
                unreachable!("a request that is not for the store")
            }
            request @ (Request::Read { .. }
            | Request::Remove { .. }
            | Request::ForgetArrival { .. }) => {
                if !self.waiting.is_empty() || !self.fulfil(from, &request, store) {
                    sometimes!(DeskWaits);
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
                (Some(asked), continuation) => {
                    self.woken(asked, Wake { continuation, ..wake }, store)
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
        self.tell_status(Status { state: store.state(), room: store.room(), is_short_of_buffers });
    }

    /// An operation of another core has ended, or may continue.
    pub(crate) fn woken(
        &mut self,
        (core, purpose): (CoreId, Purpose),
        wake: Wake,
        store: &mut Store,
    ) {
        match Point::of(wake.continuation.entry) {
            Some(Point::LetterRoom) => self.go_on(core, Letter(wake.continuation.frame), store),
            _ => self.tell(core, News::Woken(purpose, wake)),
        }
    }

    pub(crate) fn cores(&self) -> u8 {
        self.guests.len() as u8
    }

    pub(crate) fn tell_all(&mut self, news: impl Fn() -> News) {
        self.guests.iter_mut().flatten().for_each(|guest| guest.news.push_back(news()));
    }

    pub(crate) fn next_news(&mut self, core: CoreId) -> Option<News> {
        let guest = self.guest(core)?;
        guest.status.take().map(News::Status).or_else(|| guest.news.pop_front())
    }

    pub(crate) fn has_news(&self) -> bool {
        self.guests.iter().flatten().any(|guest| guest.status.is_some() || !guest.news.is_empty())
    }

    pub(crate) fn all_have_left(&self) -> bool {
        self.guests.iter().flatten().all(|guest| guest.has_left)
    }

    /// The number of cores that have taken over their share of the shards.
    pub(crate) fn have_taken_over(&self) -> usize {
        self.guests.iter().flatten().filter(|guest| guest.has_taken_over).count()
    }

    pub(crate) fn all_serve(&self) -> bool {
        self.guests.iter().flatten().all(|guest| guest.is_serving)
    }

    /// Whether messages wait to begin.
    pub(crate) fn is_short_of_places(&self) -> bool {
        !self.beginning.is_empty()
    }

    pub(crate) fn is_at_rest(&self) -> bool {
        self.waiting.is_empty() && self.beginning.is_empty()
    }

    /// Tells all cores the state of the store if it has changed. Each gets only the latest state.
    fn tell_status(&mut self, status: Status) {
        if self.told.replace(status) != Some(status) {
            let staying = self.guests.iter_mut().flatten().filter(|guest| !guest.has_left);
            staying.for_each(|guest| guest.status = Some(status));
        }
    }

    pub(crate) fn tell(&mut self, core: CoreId, news: News) {
        let Some(guest) = self.guest(core) else { unreachable!("news for this core itself") };
        guest.news.push_back(news);
    }

    fn guest(&mut self, core: CoreId) -> Option<&mut Guest> {
        self.guests.get_mut(core.index())?.as_mut()
    }

    fn at(&mut self, core: CoreId, change: impl FnOnce(&mut Guest)) {
        if let Some(guest) = self.guest(core) {
            change(guest);
        }
    }

    fn arrival(&mut self, core: CoreId, letter: Letter) -> Option<&mut Arrival> {
        let place = self.guest(core)?.arrivals.get_mut(letter.0.index())?;
        place.as_mut().filter(|arrival| arrival.letter == letter)
    }

    /// Tries a request. Returns false if the store is busy.
    fn fulfil(&mut self, core: CoreId, request: &Request, store: &mut Store) -> bool {
        let (purpose, continuation, asked) = match request {
            Request::Read { account, uid, offset, continuation } => {
                let at = on_core((core, Purpose::Read), *continuation);
                (Purpose::Read, continuation, store.read(*account, INBOX, *uid, *offset, at))
            }
            Request::Remove { account, ranges, continuation } => {
                let at = on_core((core, Purpose::Removal), *continuation);
                (Purpose::Removal, continuation, store.remove(*account, INBOX, ranges, at))
            }
            Request::ForgetArrival { account, origin, continuation } => {
                let at = on_core((core, Purpose::Removal), *continuation);
                (Purpose::Removal, continuation, store.forget_arrival(*account, *origin, at))
            }
            _ => unreachable!("a request that does not wait"),
        };
        match asked {
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
        page: Box<Page>,
        end: Option<End>,
        store: &mut Store,
    ) {
        let letter = page.letter;
        if !page.recipients.is_empty() {
            let arrival = Arrival {
                letter,
                delivery: None,
                pages: VecDeque::new(),
                taken: 0,
                is_preparing: false,
            };
            let place = self.place(core, letter);
            assert!(place.is_none(), "a letter's slot is used again only after its end was sent");
            *place = Some(arrival);
            self.beginning.push_back((core, letter));
        }
        let Some(arrival) = self.arrival(core, letter) else {
            unreachable!("a page behind its message's end")
        };
        arrival.pages.push_back((page, end));
        self.begin_waiting(store);
        self.go_on(core, letter, store);
    }

    /// Begins the messages that wait for it, unless too many are in progress.
    fn begin_waiting(&mut self, store: &mut Store) {
        while store.deliveries_under_way() < self.letters
            && let Some((core, letter)) = self.beginning.pop_front()
        {
            let Some(arrival) = self.arrival(core, letter) else {
                unreachable!("a message that was not begun has no end")
            };
            let Some((page, _)) = arrival.pages.front() else {
                unreachable!("a message begins with its first page")
            };
            let delivery = store.begin(&page.recipients);
            arrival.delivery = Some(delivery);
            if let Err(refusal) = delivery {
                self.tell(core, News::Woken(Purpose::Letter, refused(stored(letter), refusal)));
            }
            self.go_on(core, letter, store);
        }
        if !self.beginning.is_empty() {
            sometimes!(DeskPutsOff);
        }
    }

    /// Gives the store as much of a message as it takes.
    fn go_on(&mut self, core: CoreId, letter: Letter, store: &mut Store) {
        while let Some(arrival) = self.arrival(core, letter) {
            if arrival.is_preparing {
                return self.prepare(core, letter, store);
            }
            let refused = match arrival.append(core, store) {
                Ok(Appended::Page) => None,
                Ok(Appended::LessThanThat) => return,
                Err(refusal) => Some(refusal),
            };
            let Some((page, end)) = arrival.pages.pop_front() else { return };
            arrival.taken = 0;
            let is_lost = !matches!(arrival.delivery, Some(Ok(_)));
            arrival.is_preparing = end == Some(End::Prepare) && !is_lost;
            if let Some(refusal) = refused {
                self.refuse(core, letter, refusal);
            }
            self.tell(core, News::PageDone(page));
            match end {
                Some(End::Commit(closing)) => self.commit(core, letter, closing, store),
                Some(End::Prepare) if is_lost => self.forget(core, letter),
                _ => {}
            }
        }
    }

    /// Commits a message that is complete.
    fn commit(&mut self, core: CoreId, letter: Letter, closing: Closing, store: &mut Store) {
        let Some(arrival) = self.arrival(core, letter) else { return };
        if let Some(Ok(delivery)) = arrival.delivery
            && let Err(refusal) =
                store.commit(delivery, closing, on_core((core, Purpose::Letter), stored(letter)))
        {
            self.refuse(core, letter, refusal);
        }
        self.forget(core, letter);
    }

    /// Allocates the space for a complete message, or learns later whether there is some.
    fn prepare(&mut self, core: CoreId, letter: Letter, store: &mut Store) {
        let Some(Some(Ok(delivery))) = self.arrival(core, letter).map(|arrival| arrival.delivery)
        else {
            return;
        };
        let room = Continuation { frame: letter.0, entry: Point::LetterRoom.entry() };
        match store.prepare(delivery, on_core((core, Purpose::Letter), room)) {
            Ok(true) => {
                let Some(arrival) = self.arrival(core, letter) else {
                    unreachable!("it was just prepared")
                };
                arrival.is_preparing = false;
                self.tell(core, News::Prepared(letter));
            }
            Ok(false) => {}
            Err(refusal) => {
                self.refuse(core, letter, refusal);
                self.forget(core, letter);
            }
        }
    }

    fn refuse(&mut self, core: CoreId, letter: Letter, refusal: Refusal) {
        sometimes!(DeskRefuses);
        self.tell(core, News::Woken(Purpose::Letter, refused(stored(letter), refusal)));
    }

    /// Aborts a message.
    fn abort(&mut self, core: CoreId, letter: Letter, store: &mut Store) {
        let Some(arrival) = self.arrival(core, letter) else { return };
        sometimes!(DeskForgets);
        match arrival.delivery {
            Some(Ok(delivery)) => store.abort(delivery),
            Some(Err(_)) => {}
            None => self.beginning.retain(|waiting| *waiting != (core, letter)),
        }
        let Some(arrival) = self.arrival(core, letter) else {
            unreachable!("its delivery was just given up")
        };
        let pages = core::mem::take(&mut arrival.pages);
        pages.into_iter().for_each(|(page, _)| self.tell(core, News::PageDone(page)));
        self.forget(core, letter);
    }

    fn forget(&mut self, core: CoreId, letter: Letter) {
        *self.place(core, letter) = None;
    }

    /// The place for a message that another core sends.
    fn place(&mut self, core: CoreId, letter: Letter) -> &mut Option<Arrival> {
        match self.guest(core).and_then(|guest| guest.arrivals.get_mut(letter.0.index())) {
            Some(place) => place,
            None => unreachable!("a message above the last one of its core"),
        }
    }
}

/// How much of a page the store has taken.
enum Appended {
    /// All.
    Page,
    /// A part. It wakes us when it takes the rest.
    LessThanThat,
}

impl Arrival {
    /// Appends the rest of the first page. Errors: the message is refused from now on.
    fn append(&mut self, core: CoreId, store: &mut Store) -> Result<Appended, Refusal> {
        let delivery = match self.delivery {
            None => return Ok(Appended::LessThanThat),
            Some(Err(_)) => return Ok(Appended::Page),
            Some(Ok(delivery)) => delivery,
        };
        let Some((page, _)) = self.pages.front() else { return Ok(Appended::Page) };
        let octets = page.octets.get(self.taken..page.length);
        let Some(octets) = octets else { unreachable!("more octets taken than a page has") };
        let room = Continuation { frame: self.letter.0, entry: Point::LetterRoom.entry() };
        match store.append(delivery, octets, on_core((core, Purpose::Letter), room)) {
            Ok(taken) if taken < octets.len() => {
                self.taken += taken;
                Ok(Appended::LessThanThat)
            }
            Ok(_) => Ok(Appended::Page),
            Err(refusal) => {
                store.abort(delivery);
                self.delivery = Some(Err(refusal));
                Err(refusal)
            }
        }
    }
}

fn stored(letter: Letter) -> Continuation {
    Continuation { frame: letter.0, entry: Point::LetterStored.entry() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::{Room, State};

    /// Limits for this many messages at a time.
    fn limits(letters: usize) -> Limits {
        let store = store::Limits {
            deliveries: 4,
            recipients: 8,
            reads: 4,
            buffer_bytes: 64 * 1024,
            resident_bytes: 1 << 20,
        };
        Limits { store, transactions: letters, letters_for_others: 4 }
    }

    #[test]
    fn slow_core_gets_only_the_latest_store_state() {
        let mut desk = Desk::new(CoreId::FIRST, 2, &limits(4));
        for turn in 0..1000 {
            desk.tell_status(Status {
                state: State::Serving,
                room: Room::NONE,
                is_short_of_buffers: turn % 2 == 0,
            });
        }
        let told = desk.next_news(CoreId(1));
        assert!(matches!(told, Some(News::Status(Status { is_short_of_buffers: false, .. }))));
        assert!(desk.next_news(CoreId(1)).is_none() && !desk.has_news());
    }

    #[test]
    fn aborted_message_leaves_the_begin_queue() {
        let mut desk = Desk::new(CoreId::FIRST, 2, &limits(0));
        let mut store = Store::guest(limits(0).store, [0; 32]);
        for round in 0..1000 {
            let letter = Letter(tasks::FrameId::new(round % 4, round));
            let recipients = alloc::vec![store::Recipient::inbox(store::AccountId::from_bits(1))];
            let page = Box::new(Page {
                letter,
                recipients,
                length: 0,
                octets: [0; crate::messages::PAGE_OCTETS],
            });
            desk.requested(CoreId(1), Request::Octets { page, end: None }, &mut store);
            assert!(!desk.is_at_rest());
            desk.requested(CoreId(1), Request::Abort(letter), &mut store);
            assert!(
                matches!(desk.next_news(CoreId(1)), Some(News::PageDone(_))),
                "its page is returned"
            );
        }
        assert!(desk.is_at_rest() && desk.beginning.is_empty());
    }
}
