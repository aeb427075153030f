//! Messages between cores that no session causes: the start, passwords, states of stores, and the
//! end of the work.
//!
//! The start, in its order:
//!
//! 1. The first core has opened the disk and made the accounts. It gives each other core its share
//!    of the shards ([`ShardedStore::share_out`]).
//! 2. All have taken over their shares. The first core tells the others the accounts and their
//!    owners ([`ShardedStore::tell_accounts`]). Now each core makes the passwords of its new
//!    accounts.
//! 3. All are ready to listen. The others begin to listen, and then the first core
//!    ([`ShardedStore::report_ready`]).

use alloc::sync::Arc;

use channel::Class;
use machine::CoreId;
use store::{AccountId, AccountInfo, Owners};
use tasks::FrameId;

use crate::known::Changed;
use crate::messages::{CoreEvent, News, Request, ShardMessage, ShardMessageKind, StartStage};
use crate::question::Reply;
use crate::sharded_store::{OtherCores, ShardedStore};

impl ShardedStore {
    /// Handles a message from another core. Returns an event if other parts of the engine must act.
    pub fn message_arrived(&mut self, from: CoreId, message: ShardMessage) -> Option<CoreEvent> {
        match message.0 {
            ShardMessageKind::Request(Request::PasswordKnown(frame)) => {
                return Some(CoreEvent::PasswordKnown(frame));
            }
            ShardMessageKind::Request(request) => return self.requested(from, request),
            ShardMessageKind::News(news) => return self.news_arrived(from, news),
            ShardMessageKind::ClientRequest(request) => {
                self.own.store.client_request_arrived(from, request)
            }
            ShardMessageKind::OwnerNotice(notice) => self.own.store.owner_notice_arrived(notice),
        }
        None
    }

    /// The next message of this class for a core.
    pub fn next_message(&mut self, core: CoreId, class: Class) -> Option<ShardMessage> {
        let store = &mut self.own.store;
        let kind = match class {
            Class::Control => {
                let request =
                    if core == CoreId::FIRST { store.next_client_request() } else { None };
                request
                    .map(ShardMessageKind::ClientRequest)
                    .or_else(|| store.next_owner_notice(core).map(ShardMessageKind::OwnerNotice))
            }
            Class::Answer => {
                self.others.as_mut()?.server.next_news(core).map(ShardMessageKind::News)
            }
            Class::Bulk => {
                self.others.as_mut()?.remote.next_request(core).map(ShardMessageKind::Request)
            }
            Class::Hearsay => None,
        };
        kind.map(ShardMessage)
    }

    /// Whether a message waits to be sent to another core.
    pub fn has_messages(&self) -> bool {
        let store = &self.own.store;
        let has_messages =
            |others: &OtherCores| others.remote.has_requests() || others.server.has_news();
        store.has_client_requests()
            || store.has_owner_notices()
            || self.others.as_ref().is_some_and(has_messages)
    }

    fn requested(&mut self, from: CoreId, request: Request) -> Option<CoreEvent> {
        let Some(others) = &mut self.others else { unreachable!("a request without other cores") };
        match request {
            Request::Question(at, question) => {
                let reply = question.answer(&mut self.own);
                others.server.tell(from, News::Replied(at, reply));
                return self
                    .own
                    .facts
                    .destinations
                    .has_messages()
                    .then_some(CoreEvent::DestinationNotice);
            }
            Request::CloseMaildrop(maildrop) => self.own.maildrops.close(&maildrop),
            request => others.server.requested(from, request, &mut self.own.store),
        }
        None
    }

    fn news_arrived(&mut self, from: CoreId, news: News) -> Option<CoreEvent> {
        let Some(others) = &mut self.others else { unreachable!("a message without other cores") };
        match news {
            News::PageDone(page) => others.remote.page_done(page),
            News::Woken(purpose, wake) => others.remote.woken(purpose, wake),
            News::Prepared(delivery) => others.remote.prepared(delivery),
            News::Replied(_, Reply::DestinationReport(())) => {}
            News::Replied(_, Reply::MayConnect(notice)) => return self.notice_arrived(notice),
            News::Destination(notice) => return self.notice_arrived(Some(notice)),
            News::Replied(at, reply) => return Some(CoreEvent::Replied(at, reply)),
            News::Status(status) => others.remote.status_changed(from, status),
            News::Password(frame, changed) => {
                let account = others.password_changed(changed);
                others.remote.ask(from, Request::PasswordKnown(frame));
                return Some(CoreEvent::PasswordChanged(account));
            }
            News::Share(share) => {
                self.own.store.take_over(share);
                others.remote.ask(from, Request::Reached(StartStage::TookOver));
            }
            News::Accounts(accounts, owners) => {
                others.accounts = accounts;
                self.owners = owners;
                return Some(CoreEvent::AccountsKnown);
            }
            News::Listen => others.stage = StartStage::Listening,
            News::Stop => return Some(CoreEvent::Stop),
        }
        None
    }

    /// Ends a turn: the gathered records become a group, and the other cores get the state of the
    /// store.
    pub fn turn_ended(&mut self) {
        self.own.store.turn_ended();
        if let Some(others) = &mut self.others {
            others.server.turn_ended(&mut self.own.store);
        }
    }

    /// Gives every other owner its share of the shards, if the store can share now. Returns the
    /// owners.
    pub fn share_out(&mut self, cores: u8) -> Option<Owners> {
        let (owners, shares) = self.own.store.share_out(cores)?;
        for (share, core) in shares.into_iter().zip(1..) {
            let Some(others) = &mut self.others else {
                unreachable!("a share for a core that is not there")
            };
            others.server.tell(CoreId(core), News::Share(share));
        }
        Some(owners)
    }

    /// Whether each core that was given a share has taken it over.
    pub fn is_taken_over(&self, owners: Owners) -> bool {
        let has = |others: &OtherCores| {
            others.server.have_reached(StartStage::TookOver) + 1 == usize::from(owners.count())
        };
        self.others.as_ref().is_none_or(has)
    }

    /// Tells all other cores the accounts, which have these owners.
    pub fn tell_accounts(&mut self, owners: Owners) {
        self.owners = owners;
        if let Some(OtherCores { server, accounts, .. }) = &mut self.others {
            server.tell_all(|| News::Accounts(Arc::clone(accounts), owners));
        }
    }

    /// Reports that this core is ready to listen. Returns whether it begins to listen in this turn,
    /// because all cores are ready. Called in each turn of a ready core until it listens.
    ///
    /// The first core begins last. It may pass a client to another core, which must not refuse the
    /// client.
    pub fn report_ready(&mut self) -> bool {
        let Some(OtherCores { server, remote, stage, .. }) = &mut self.others else { return true };
        if self.core == CoreId::FIRST {
            let others = usize::from(server.cores()) - 1;
            if *stage < StartStage::Ready && server.have_reached(StartStage::Ready) == others {
                *stage = StartStage::Ready;
                server.tell_all(|| News::Listen);
            }
            return server.have_reached(StartStage::Listening) == others;
        }
        if *stage != StartStage::Ready {
            // This core has just become ready, or was just told to listen.
            *stage = (*stage).max(StartStage::Ready);
            remote.ask(CoreId::FIRST, Request::Reached(*stage));
        }
        *stage == StartStage::Listening
    }

    /// The hashes of all accounts that passwords are checked against: the present ones, and the
    /// replaced ones.
    pub fn password_hashes(&self) -> impl Iterator<Item = &str> {
        fn of_account(account: AccountInfo<'_>) -> [&str; 2] {
            [account.password_hash(), account.replaced()]
        }
        let alone = self.others.is_none();
        let own = self.own.store.accounts().filter(move |_| alone).flat_map(of_account);
        own.chain(self.others.iter().flat_map(|others| others.accounts.password_hashes()))
    }

    /// An account of this core with sessions on this core that must be ended.
    pub fn next_outdated(&mut self) -> Option<AccountId> {
        self.outdated.pop()
    }

    /// Tells all other cores the new password of an account of this core, for the request handler
    /// in this frame. Returns the number of these cores. The sessions of the account on this core
    /// must be ended before any further input is handled ([`ShardedStore::next_outdated`]).
    pub fn tell_password(&mut self, account: AccountId, frame: FrameId) -> u8 {
        self.outdated.push(account);
        let Some(known) = self.own.store.account(account) else { return 0 };
        let Some(others) = &mut self.others else { return 0 };
        let changed = Arc::new(Changed::of(&known));
        others.password_changed(Arc::clone(&changed));
        others.server.tell_all(|| News::Password(frame, Arc::clone(&changed)));
        others.server.cores() - 1
    }

    /// Tells all other cores that the machine is asked to stop.
    pub fn tell_to_stop(&mut self) {
        if let Some(others) = &mut self.others {
            others.server.tell_all(|| News::Stop);
        }
    }

    /// Tells all other cores except the first that this core sends no further requests.
    pub fn leave_others(&mut self) {
        let own = self.core;
        let Some(others) = &mut self.others else { return };
        let cores = (1..others.server.cores()).map(CoreId).filter(|core| *core != own);
        cores.for_each(|core| others.remote.ask(core, Request::Left));
    }

    /// Tells the first core that this core sends no further requests, and that its store has no
    /// request at the disk owner.
    pub fn leave_first(&mut self) {
        if let Some(others) = &mut self.others {
            others.remote.ask(CoreId::FIRST, Request::Left);
        }
    }

    /// Whether all other cores have announced that they send no further requests.
    pub fn is_last(&self) -> bool {
        self.others.as_ref().is_none_or(|others| others.server.all_have_left())
    }
}
