//! The stores of all other cores: what is known of them here, and what is asked of them.
//!
//! Messages gather in pages of our own. A message has one as soon as it begins, sends it when it is
//! full or complete, and takes another if there is one to spare; otherwise it waits until one of
//! its own comes home, and goes on with that.
//!
//! Invariants:
//! - What concerns an account is asked of the core that owns it, the *owner*.
//! - Who waits for a page has one under way, and is told when it comes home.
//! - A message is known here until the owner has told its result, or we have told the owner that
//!   it is given up.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use machine::CoreId;
use sometimes::sometimes;
use store::{
    AccountId, Body, Closing, Origin, Outcome, Recipient, Refusal, Room, State, Uid, UidRange, Wake,
};
use tasks::{Continuation, FrameId, FrameTable};

use crate::messages::{End, Letter, PAGE_OCTETS, Page, Request, Status, end_of};
use crate::purpose::Purpose;

/// The other side of the rings.
pub(crate) struct Distant {
    /// How the store of each core is, and what it is to be asked.
    owners: Vec<Owner>,
    letters: FrameTable<Gathering>,
    pages: Vec<Box<Page>>,
    /// Parts of bodies asked for, and not given back.
    reads: usize,
    /// Removals asked for, and what is to be forgotten.
    removals: usize,
    wakes: VecDeque<Wake>,
}

struct Owner {
    status: Status,
    requests: VecDeque<Request>,
}

/// A letter that gathers.
struct Gathering {
    owner: CoreId,
    page: Option<Box<Page>>,
    expect: Expect,
    /// Who waits for room, or for the end.
    continuation: Option<Continuation>,
    refused: Option<Refusal>,
}

/// What a letter waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expect {
    /// Octets, or its commit.
    Octets,
    /// Whether the owner has all of it and space for it, or its commit.
    Prepared,
    /// What the owner says came of it.
    Stored,
}

impl Distant {
    /// `cores`: how many there are; `letters`: how many messages may be under way at a time, and
    /// how many reads.
    pub(crate) fn new(cores: u8, letters: usize) -> Distant {
        let nowhere = Letter(FrameId::new(0, 0));
        let page = || Page {
            letter: nowhere,
            recipients: Vec::with_capacity(8),
            length: 0,
            octets: [0; PAGE_OCTETS],
        };
        let owner = || Owner {
            status: Status { state: State::Opening, room: Room::NONE, is_short_of_buffers: false },
            requests: VecDeque::with_capacity(4 * letters),
        };
        Distant {
            owners: (0..cores).map(|_| owner()).collect(),
            letters: FrameTable::with_capacity(letters),
            pages: (0..2 * letters).map(|_| Box::new(page())).collect(),
            reads: 0,
            removals: 0,
            wakes: VecDeque::with_capacity(4 * letters),
        }
    }

    /// Begins a letter for accounts of `owner`.
    pub(crate) fn begin(
        &mut self,
        owner: CoreId,
        recipients: &[Recipient],
    ) -> Result<Letter, Refusal> {
        // Who has not told yet how it is, is asked.
        if let State::ReadOnly(_) = self.status(owner)?.state {
            return Err(Refusal::ReadOnly);
        }
        if self.is_crowded(owner) {
            return Err(Refusal::Busy);
        }
        let mut page = self.pages.pop().ok_or(Refusal::Busy)?;
        page.recipients.extend_from_slice(recipients);
        let gathering = Gathering {
            owner,
            page: Some(page),
            expect: Expect::Octets,
            continuation: None,
            refused: None,
        };
        self.letters.insert(gathering).map(Letter).map_err(|gathering| {
            gathering.page.into_iter().for_each(|page| self.put_back(page));
            Refusal::Busy
        })
    }

    /// Asks the owner for a place for a message that has just begun. `continuation` is woken with
    /// [`Outcome::Room`] when the owner has one, or refuses.
    pub(crate) fn ask_for_place(&mut self, letter: Letter, continuation: Continuation) {
        let Some(gathering) = self.letters.get_mut(letter.0) else {
            unreachable!("a message that has ended")
        };
        gathering.continuation = Some(continuation);
        self.send_page(letter, None);
    }

    /// Why the owner has refused a message of which it does not have all, if it has.
    pub(crate) fn refusal(&self, letter: Letter) -> Option<Refusal> {
        self.letters.get(letter.0)?.refused
    }

    /// Whether the core that a message is for has fewer buffers or places than are asked for.
    pub(crate) fn is_owner_short(&self, letter: Letter) -> bool {
        let owner = self
            .letters
            .get(letter.0)
            .and_then(|gathering| self.owners.get(gathering.owner.index()));
        owner.is_some_and(|owner| owner.status.is_short_of_buffers)
    }

    pub(crate) fn append(
        &mut self,
        letter: Letter,
        octets: &[u8],
        continuation: Continuation,
    ) -> Result<usize, Refusal> {
        let mut taken = 0;
        loop {
            let gathering = self.letters.get_mut(letter.0).ok_or(Refusal::NoSuchDelivery)?;
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
                self.send_page(letter, None);
            }
            let page = self.page_to_spare();
            let gathering = self.letters.get_mut(letter.0).ok_or(Refusal::NoSuchDelivery)?;
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
        letter: Letter,
        closing: Closing,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        self.complete(letter, End::Commit(closing), Expect::Stored, continuation)
    }

    /// Has a complete letter prepared; `continuation` is woken with [`Outcome::Room`] when it is.
    pub(crate) fn prepare(
        &mut self,
        letter: Letter,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        self.complete(letter, End::Prepare, Expect::Prepared, continuation)
    }

    /// Commits a letter that is prepared.
    pub(crate) fn commit_prepared(
        &mut self,
        letter: Letter,
        closing: Closing,
        continuation: Continuation,
    ) {
        let Some(gathering) = self.letters.get_mut(letter.0) else { return };
        (gathering.expect, gathering.continuation) = (Expect::Stored, Some(continuation));
        let owner = gathering.owner;
        self.ask(owner, Request::Commit(letter, closing));
    }

    /// All of a letter is there, and space for it.
    pub(crate) fn prepared(&mut self, letter: Letter) {
        let continuation =
            self.letters.get_mut(letter.0).and_then(|gathering| gathering.continuation.take());
        self.wakes
            .extend(continuation.map(|continuation| Wake { continuation, outcome: Outcome::Room }));
    }

    /// Tells of an end that is known here.
    pub(crate) fn wake(&mut self, wake: Wake) {
        self.wakes.push_back(wake);
    }

    fn complete(
        &mut self,
        letter: Letter,
        end: End,
        expect: Expect,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        let gathering = self.letters.get_mut(letter.0).ok_or(Refusal::NoSuchDelivery)?;
        let refusal = gathering.refused.or(gathering.page.is_none().then_some(Refusal::Busy));
        if let Some(refusal) = refusal {
            self.abort(letter);
            return Err(refusal);
        }
        (gathering.expect, gathering.continuation) = (expect, Some(continuation));
        self.send_page(letter, Some(end));
        Ok(())
    }

    pub(crate) fn abort(&mut self, letter: Letter) {
        let Some(gathering) = self.letters.get_mut(letter.0) else { return };
        if gathering.expect == Expect::Stored {
            gathering.continuation = None;
            return;
        }
        let (owner, page) = (gathering.owner, gathering.page.take());
        self.letters.remove(letter.0);
        page.into_iter().for_each(|page| self.put_back(page));
        self.ask(owner, Request::Abort(letter));
    }

    pub(crate) fn read(
        &mut self,
        owner: CoreId,
        account: AccountId,
        uid: Uid,
        offset: u32,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        if self.reads >= self.letters.capacity() || self.is_crowded(owner) {
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
        origin: Origin,
        continuation: Continuation,
    ) {
        self.removals += 1;
        self.ask(owner, Request::ForgetArrival { account, origin, continuation });
    }

    /// Tells `owner` something that ends nothing, or whose end it tells by itself.
    pub(crate) fn ask(&mut self, owner: CoreId, request: Request) {
        self.at(owner).requests.push_back(request);
    }

    fn at(&mut self, core: CoreId) -> &mut Owner {
        match self.owners.get_mut(core.index()) {
            Some(owner) => owner,
            None => unreachable!("a core above the last one"),
        }
    }

    /// A page has come home: its letter goes on with it, if it waits for one.
    pub(crate) fn page_done(&mut self, mut page: Box<Page>) {
        let letter = page.letter;
        page.clear();
        let gathering =
            self.letters.get_mut(letter.0).filter(|gathering| gathering.waits_for_page());
        let Some(gathering) = gathering else { return self.pages.push(page) };
        gathering.page = Some(page);
        self.offer_room(letter);
    }

    /// The owner says what came of something.
    pub(crate) fn woken(&mut self, purpose: Purpose, wake: Wake) {
        match purpose {
            Purpose::Letter => self.letter_ended(Letter(wake.continuation.frame), wake.outcome),
            Purpose::Read => {
                if !matches!(wake.outcome, Outcome::Body(_)) {
                    self.reads -= 1;
                }
                self.wakes.push_back(wake);
            }
            Purpose::Removal => {
                self.removals -= 1;
                self.wakes.push_back(wake);
            }
        }
    }

    /// A core says how its store is.
    pub(crate) fn status_changed(&mut self, core: CoreId, news: Status) {
        self.at(core).status = news;
    }

    /// How the store of a core is.
    pub(crate) fn status(&self, core: CoreId) -> Result<Status, Refusal> {
        self.owners.get(core.index()).map(|owner| owner.status).ok_or(Refusal::NotServing)
    }

    /// How the stores of all cores are; of this core's own nothing.
    pub(crate) fn all_status(&self) -> impl Iterator<Item = Status> {
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

    /// Those included of which a page has not come home.
    pub(crate) fn letters_under_way(&self) -> usize {
        self.letters.len().max(2 * self.letters.capacity() - self.pages.len())
    }

    pub(crate) fn reads_under_way(&self) -> usize {
        self.reads
    }

    pub(crate) fn is_at_rest(&self) -> bool {
        self.letters_under_way() == 0 && self.reads == 0 && self.removals == 0
    }

    /// Whether an owner is so far behind that nothing more is begun.
    fn is_crowded(&self, owner: CoreId) -> bool {
        self.owners
            .get(owner.index())
            .is_none_or(|owner| owner.requests.len() >= self.letters.capacity())
    }

    /// A further page for a letter, if no letter that begins will miss it.
    fn page_to_spare(&mut self) -> Option<Box<Page>> {
        if self.pages.len() > self.letters.capacity() { self.pages.pop() } else { None }
    }

    fn put_back(&mut self, mut page: Box<Page>) {
        page.clear();
        self.pages.push(page);
    }

    /// Sends the page of `letter`, which is complete with it if it has an end.
    fn send_page(&mut self, letter: Letter, end: Option<End>) {
        let Some(gathering) = self.letters.get_mut(letter.0) else {
            unreachable!("a message that has ended")
        };
        let Some(mut page) = gathering.page.take() else {
            unreachable!("a page that was sent already")
        };
        page.letter = letter;
        let owner = gathering.owner;
        self.ask(owner, Request::Octets { page, end });
    }

    /// The owner says what came of a letter, be it complete or not.
    fn letter_ended(&mut self, letter: Letter, outcome: Outcome) {
        let Some(gathering) = self.letters.get_mut(letter.0) else { return };
        if gathering.expect == Expect::Octets {
            gathering.refused = end_of(&outcome);
            return self.offer_room(letter);
        }
        let continuation = gathering.continuation.take();
        self.letters.remove(letter.0);
        self.wakes.extend(continuation.map(|continuation| Wake { continuation, outcome }));
    }

    /// Lets a letter go on that waits for room.
    fn offer_room(&mut self, letter: Letter) {
        let Some(gathering) = self.letters.get_mut(letter.0) else {
            unreachable!("a message that has ended")
        };
        if gathering.expect == Expect::Octets
            && let Some(continuation) = gathering.continuation.take()
        {
            self.wakes.push_back(Wake { continuation, outcome: Outcome::Room });
        }
    }
}

impl Gathering {
    fn waits_for_page(&self) -> bool {
        self.expect == Expect::Octets && self.page.is_none() && self.continuation.is_some()
    }
}

impl Page {
    fn clear(&mut self) {
        self.recipients.clear();
        self.length = 0;
    }

    /// Takes as many octets as there is room for.
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
