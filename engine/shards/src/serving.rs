//! Messages between cores that no session causes: shares of the shards, passwords, the state of
//! stores, and the end.

use alloc::sync::Arc;

use channel::Class;
use machine::CoreId;
use store::{AccountId, Owners};
use tasks::FrameId;

use crate::archive::{Archive, Elsewhere};
use crate::known::Changed;
use crate::messages::{Event, Kind, Message, News, Request};
use crate::question::Reply;

impl Archive {
    /// A message of another core has arrived. Returns the event, if it concerns more than the
    /// stores.
    pub fn message_arrived(&mut self, from: CoreId, message: Message) -> Option<Event> {
        match message.0 {
            Kind::Request(Request::PasswordKnown(frame)) => {
                return Some(Event::PasswordKnown(frame));
            }
            Kind::Request(request) => return self.requested(from, request),
            Kind::News(news) => return self.news_arrived(from, news),
            Kind::Errand(errand) => self.own.store.errand_arrived(from, errand),
            Kind::Answer(answer) => self.own.store.answer_arrived(answer),
        }
        None
    }

    /// The next message of this class for a core.
    pub fn next_message(&mut self, core: CoreId, class: Class) -> Option<Message> {
        let store = &mut self.own.store;
        let kind = match class {
            Class::Control => {
                let errand = if core == CoreId::FIRST { store.next_errand() } else { None };
                errand.map(Kind::Errand).or_else(|| store.next_answer(core).map(Kind::Answer))
            }
            Class::Answer => self.elsewhere.as_mut()?.desk.next_news(core).map(Kind::News),
            Class::Bulk => self.elsewhere.as_mut()?.distant.next_request(core).map(Kind::Request),
            Class::Hearsay => None,
        };
        kind.map(Message)
    }

    /// Whether something waits to be sent to another core.
    pub fn has_messages(&self) -> bool {
        let store = &self.own.store;
        let has_messages =
            |elsewhere: &Elsewhere| elsewhere.distant.has_requests() || elsewhere.desk.has_news();
        store.has_errands()
            || store.has_answers()
            || self.elsewhere.as_ref().is_some_and(has_messages)
    }

    fn requested(&mut self, from: CoreId, request: Request) -> Option<Event> {
        let Some(elsewhere) = &mut self.elsewhere else {
            unreachable!("a request without other cores")
        };
        match request {
            Request::Asked(at, asked) => {
                let reply = asked.answer(&mut self.own);
                elsewhere.desk.tell(from, News::Replied(at, reply));
                return self.own.facts.destinations.has_told().then_some(Event::Called);
            }
            Request::CloseMaildrop(maildrop) => self.own.maildrops.close(&maildrop),
            request => elsewhere.desk.requested(from, request, &mut self.own.store),
        }
        None
    }

    fn news_arrived(&mut self, from: CoreId, news: News) -> Option<Event> {
        let Some(elsewhere) = &mut self.elsewhere else {
            unreachable!("a message without other cores")
        };
        match news {
            News::PageDone(page) => elsewhere.distant.page_done(page),
            News::Woken(purpose, wake) => elsewhere.distant.woken(purpose, wake),
            News::Prepared(letter) => elsewhere.distant.prepared(letter),
            News::Replied(_, Reply::CallNews(())) => {}
            News::Replied(_, Reply::MayCall(told)) => return self.called(told),
            News::Called(told) => return self.called(Some(told)),
            News::Replied(at, reply) => return Some(Event::Replied(at, reply)),
            News::Status(status) => elsewhere.distant.status_changed(from, status),
            News::Password(frame, changed) => {
                let account = elsewhere.password_changed(changed);
                elsewhere.distant.ask(from, Request::PasswordKnown(frame));
                return Some(Event::PasswordChanged(account));
            }
            News::Share(share) => {
                self.own.store.take_over(share);
                elsewhere.distant.ask(from, Request::TookOver);
            }
            News::Serve(accounts, owners) => {
                elsewhere.accounts = accounts;
                elsewhere.distant.ask(from, Request::Serving);
                self.owners = owners;
                return Some(Event::Serve);
            }
            News::Stop => return Some(Event::Stop),
        }
        None
    }

    /// Ends a turn: gathered records become a group, and other cores are told the state of the
    /// store.
    pub fn turn_ended(&mut self) {
        self.own.store.turn_ended();
        if let Some(elsewhere) = &mut self.elsewhere {
            elsewhere.desk.turn_ended(&mut self.own.store);
        }
    }

    /// Hands each of the next cores its share of the shards, if everything can be shared out now.
    /// Returns the owners.
    pub fn share_out(&mut self, cores: u8) -> Option<Owners> {
        let (owners, shares) = self.own.store.share_out(cores)?;
        for (share, core) in shares.into_iter().zip(1..) {
            let Some(elsewhere) = &mut self.elsewhere else {
                unreachable!("a share for a core that is not there")
            };
            elsewhere.desk.tell(CoreId(core), News::Share(share));
        }
        Some(owners)
    }

    /// Whether each core that was given a share has taken it over.
    pub fn is_taken_over(&self, owners: Owners) -> bool {
        let has = |elsewhere: &Elsewhere| {
            elsewhere.desk.have_taken_over() + 1 == usize::from(owners.count())
        };
        self.elsewhere.as_ref().is_none_or(has)
    }

    /// Begins to serve mail for accounts with these owners, and tells all other cores.
    pub fn begin_serving(&mut self, owners: Owners) {
        self.owners = owners;
        if let Some(Elsewhere { desk, accounts, .. }) = &mut self.elsewhere {
            desk.tell_all(|| News::Serve(Arc::clone(accounts), owners));
        }
    }

    /// Whether all other cores have begun to serve mail.
    pub fn all_others_serve(&self) -> bool {
        self.elsewhere.as_ref().is_none_or(|elsewhere| elsewhere.desk.all_serve())
    }

    /// The password hashes of all accounts, if there are several cores.
    pub fn password_hashes(&self) -> impl Iterator<Item = &str> {
        self.elsewhere.iter().flat_map(|elsewhere| elsewhere.accounts.password_hashes())
    }

    /// The next account of this core with sessions here that must be ended.
    pub fn next_outdated(&mut self) -> Option<AccountId> {
        self.outdated.pop()
    }

    /// Tells all other cores the new password of an account of this core, for the request handler
    /// in this frame. Returns the number of these cores. The sessions of the account on this core
    /// must be ended before any further input is handled ([`Archive::next_outdated`]).
    pub fn tell_password(&mut self, account: AccountId, frame: FrameId) -> u8 {
        self.outdated.push(account);
        let Some(known) = self.own.store.account(account) else { return 0 };
        let Some(elsewhere) = &mut self.elsewhere else { return 0 };
        let changed = Arc::new(Changed::of(&known));
        elsewhere.password_changed(Arc::clone(&changed));
        elsewhere.desk.tell_all(|| News::Password(frame, Arc::clone(&changed)));
        elsewhere.desk.cores() - 1
    }

    /// Tells all other cores that the machine is asked to stop.
    pub fn tell_to_stop(&mut self) {
        if let Some(elsewhere) = &mut self.elsewhere {
            elsewhere.desk.tell_all(|| News::Stop);
        }
    }

    /// Tells all other cores except the first that this one sends no further requests.
    pub fn leave_others(&mut self) {
        let own = self.core;
        let Some(elsewhere) = &mut self.elsewhere else { return };
        let others = (1..elsewhere.desk.cores()).map(CoreId).filter(|core| *core != own);
        others.for_each(|core| elsewhere.distant.ask(core, Request::Left));
    }

    /// Tells the same to the first core, and that the store has no forwarded request any more.
    pub fn leave_first(&mut self) {
        if let Some(elsewhere) = &mut self.elsewhere {
            elsewhere.distant.ask(CoreId::FIRST, Request::Left);
        }
    }

    /// Whether no other core is left that may send requests.
    pub fn is_last(&self) -> bool {
        self.elsewhere.as_ref().is_none_or(|elsewhere| elsewhere.desk.all_have_left())
    }
}
