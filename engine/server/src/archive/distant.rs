//! The store on a core that does not own it: what is known of it here, and what is asked of its owner.
//!
//! Letters gather in pages of our own. A letter has one as soon as it begins, sends it when it is full or complete, and takes
//! another if there is one to spare; otherwise it waits until one of its own comes home.
//!
//! Invariants:
//! - Who waits for a page has one under way, and is told when it comes home.
//! - A letter is known here until the owner has said what came of it, or we have told the owner that nobody wants it.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use machine::UnixTime;
use sometimes::sometimes;
use store::{AccountId, Body, Outcome, Refusal, Room, State, Uid, UidRange, Wake};
use tasks::{Continuation, FrameId, FrameTable};

use super::desk::end_of;
use super::{Accounts, PAGE_OCTETS, Page, Request, Status};
use crate::common::Point;
use crate::maildrop::Maildrop;

/// Names a letter on its own core, and on the owner's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Letter(pub(super) FrameId);

/// The other side of the ring.
pub(crate) struct Distant {
    pub(super) status: Status,
    pub(super) accounts: Arc<Accounts>,
    letters: FrameTable<Gathering>,
    pages: Vec<Box<Page>>,
    /// Parts of bodies asked for, and not given back.
    reads: usize,
    /// Removals asked for.
    removals: usize,
    requests: VecDeque<Request>,
    wakes: VecDeque<Wake>,
}

/// A letter that gathers.
struct Gathering {
    page: Option<Box<Page>>,
    pages_under_way: u32,
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
    /// What the owner says came of it.
    Stored,
}

impl Distant {
    /// `letters`: how many may be under way at a time, and reads as well.
    pub(crate) fn new(letters: usize) -> Distant {
        let nowhere = Letter(FrameId::new(0, 0));
        let page = || Page { letter: nowhere, recipients: Vec::with_capacity(8), length: 0, octets: [0; PAGE_OCTETS] };
        Distant {
            status: Status { state: State::Opening, room: Room::NONE, is_short_of_buffers: false },
            accounts: Arc::default(),
            letters: FrameTable::with_capacity(letters),
            pages: (0..2 * letters).map(|_| Box::new(page())).collect(),
            reads: 0,
            removals: 0,
            requests: VecDeque::with_capacity(4 * letters),
            wakes: VecDeque::with_capacity(4 * letters),
        }
    }

    pub(super) fn begin(&mut self, recipients: &[AccountId]) -> Result<Letter, Refusal> {
        match self.status.state {
            State::Serving => {}
            State::ReadOnly(_) => return Err(Refusal::ReadOnly),
            State::Opening | State::Refused(_) => return Err(Refusal::NotServing),
        }
        if self.is_crowded() {
            return Err(Refusal::Busy);
        }
        let mut page = self.pages.pop().ok_or(Refusal::Busy)?;
        page.recipients.extend_from_slice(recipients);
        let gathering = Gathering {
            page: Some(page),
            pages_under_way: 0,
            expect: Expect::Octets,
            continuation: None,
            refused: None,
        };
        self.letters.insert(gathering).map(Letter).map_err(|gathering| {
            gathering.page.into_iter().for_each(|page| self.put_back(page));
            Refusal::Busy
        })
    }

    pub(super) fn append(
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
                taken += page.take(octets.get(taken..).unwrap_or_default());
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

    pub(super) fn commit(&mut self, letter: Letter, date: UnixTime, continuation: Continuation) -> Result<(), Refusal> {
        let gathering = self.letters.get_mut(letter.0).ok_or(Refusal::NoSuchDelivery)?;
        let refusal = gathering.refused.or(gathering.page.is_none().then_some(Refusal::Busy));
        if let Some(refusal) = refusal {
            self.abort(letter);
            return Err(refusal);
        }
        (gathering.expect, gathering.continuation) = (Expect::Stored, Some(continuation));
        self.send_page(letter, Some(date));
        Ok(())
    }

    pub(super) fn abort(&mut self, letter: Letter) {
        let Some(gathering) = self.letters.get_mut(letter.0) else { return };
        if gathering.expect == Expect::Stored {
            gathering.continuation = None;
            return;
        }
        let page = gathering.page.take();
        self.letters.remove(letter.0);
        page.into_iter().for_each(|page| self.put_back(page));
        self.requests.push_back(Request::Abort(letter));
    }

    pub(super) fn read(
        &mut self,
        account: AccountId,
        uid: Uid,
        offset: u32,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        if self.reads >= self.letters.capacity() || self.is_crowded() {
            return Err(Refusal::Busy);
        }
        self.reads += 1;
        self.requests.push_back(Request::Read { account, uid, offset, continuation });
        Ok(())
    }

    pub(super) fn give_back(&mut self, body: Body) {
        self.reads -= 1;
        self.requests.push_back(Request::BodyDone(body));
    }

    pub(super) fn remove(
        &mut self,
        account: AccountId,
        ranges: &[UidRange],
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        self.removals += 1;
        self.requests.push_back(Request::Remove { account, ranges: ranges.into(), continuation });
        Ok(())
    }

    pub(super) fn open_maildrop(&mut self, account: AccountId, frame: FrameId) {
        self.requests.push_back(Request::OpenMaildrop { account, frame });
    }

    pub(super) fn close_maildrop(&mut self, maildrop: Box<Maildrop>) {
        self.requests.push_back(Request::CloseMaildrop(maildrop));
    }

    /// Tells the owner that this core asks for nothing any more.
    pub(crate) fn leave(&mut self) {
        self.requests.push_back(Request::Left);
    }

    /// A page has come home: its letter may go on.
    pub(crate) fn page_done(&mut self, page: Box<Page>) {
        let letter = page.letter;
        self.put_back(page);
        let Some(gathering) = self.letters.get_mut(letter.0) else { return };
        gathering.pages_under_way = gathering.pages_under_way.saturating_sub(1);
        self.offer_room(letter);
    }

    /// The owner says what came of something.
    pub(crate) fn woken(&mut self, wake: Wake) {
        match Point::of(wake.continuation.entry) {
            Some(Point::MessageStored) => self.letter_ended(Letter(wake.continuation.frame), wake.outcome),
            Some(Point::MessageRead) => {
                if !matches!(wake.outcome, Outcome::Body(_)) {
                    self.reads -= 1;
                }
                self.wakes.push_back(wake);
            }
            _ => {
                self.removals -= 1;
                self.wakes.push_back(wake);
            }
        }
    }

    /// The owner says how the store is.
    pub(crate) fn status_changed(&mut self, news: Status) {
        self.status = news;
    }

    /// The owner says who is who.
    pub(crate) fn accounts_changed(&mut self, accounts: Arc<Accounts>) -> &Accounts {
        self.accounts = accounts;
        &self.accounts
    }

    pub(super) fn next_wake(&mut self) -> Option<Wake> {
        self.wakes.pop_front()
    }

    pub(super) fn has_wakes(&self) -> bool {
        !self.wakes.is_empty()
    }

    /// The next request for the owner.
    pub(crate) fn next_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    pub(super) fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Those included of which a page has not come home.
    pub(super) fn letters_under_way(&self) -> usize {
        self.letters.len().max(2 * self.letters.capacity() - self.pages.len())
    }

    pub(super) fn reads_under_way(&self) -> usize {
        self.reads
    }

    pub(super) fn is_at_rest(&self) -> bool {
        self.letters_under_way() == 0 && self.reads == 0 && self.removals == 0
    }

    /// Whether the owner is so far behind that nothing more is begun.
    fn is_crowded(&self) -> bool {
        self.requests.len() >= self.letters.capacity()
    }

    /// A further page for a letter, if no letter that begins will miss it.
    fn page_to_spare(&mut self) -> Option<Box<Page>> {
        if self.pages.len() > self.letters.capacity() { self.pages.pop() } else { None }
    }

    fn put_back(&mut self, mut page: Box<Page>) {
        page.recipients.clear();
        page.length = 0;
        self.pages.push(page);
    }

    /// Sends the page of `letter`, which is complete with it if there is a date.
    fn send_page(&mut self, letter: Letter, end: Option<UnixTime>) {
        let Some(gathering) = self.letters.get_mut(letter.0) else { return };
        let Some(mut page) = gathering.page.take() else { return };
        page.letter = letter;
        gathering.pages_under_way += 1;
        self.requests.push_back(Request::Octets { page, end });
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
        let Some(gathering) = self.letters.get_mut(letter.0) else { return };
        if gathering.expect == Expect::Octets
            && let Some(continuation) = gathering.continuation.take()
        {
            self.wakes.push_back(Wake { continuation, outcome: Outcome::Room });
        }
    }
}

impl Page {
    /// Takes as many octets as there is room for.
    fn take(&mut self, octets: &[u8]) -> usize {
        let Some(room) = self.octets.get_mut(self.length..) else { return 0 };
        let count = room.len().min(octets.len());
        if let (Some(place), Some(octets)) = (room.get_mut(..count), octets.get(..count)) {
            place.copy_from_slice(octets);
        }
        self.length += count;
        count
    }
}
