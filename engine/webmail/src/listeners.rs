//! Listeners: open pages that are notified when something in their account has changed.
//!
//! A page listens by a reply that stays open (`http::Reply::open`), on the core of its connection.
//! The core that owns the account keeps the numbers of these replies. Events go to the core of the
//! connection, as replies to requests do.
//!
//! Invariants:
//! - A core has at most [`LISTENERS_MAX`] listeners, and an account [`LISTENERS_OF_ACCOUNT_MAX`]. A
//!   further one replaces the oldest.
//! - A listener gets no more events when its session has ended.
//! - A listener without news costs nothing. Only listeners of accounts with possible changes are
//!   examined, and only a few in a turn.

use alloc::collections::{BTreeMap, BTreeSet};

use channel::Ticket;
use http::{Reply, ReplyEnd};
use machine::CoreId;
use store::{AccountId, AccountInfo, Store};

use crate::handler_reply::HandlerReply;
use crate::news::MailboxEvent;
use crate::sessions::Digest;

/// The most listeners of a core.
const LISTENERS_MAX: usize = 1024;

/// The most listeners of an account: this many windows may be open.
const LISTENERS_OF_ACCOUNT_MAX: usize = 32;

/// How many listeners are examined in one turn.
const LOOKED_AT_PER_TURN: usize = 16;

/// The bits of a number that name the core that assigned it.
const CORE_BITS: u32 = 8;

/// The listeners of a core, by their numbers. The oldest has the lowest number.
#[derive(Default)]
pub(crate) struct Listeners {
    all: BTreeMap<u64, PageListener>,
    /// The numbers of listeners that must be examined.
    concerned: BTreeSet<u64>,
}

struct PageListener {
    client: Ticket,
    account: AccountId,
    session: Digest,
    /// The digest of the last event.
    last_digest: u64,
}

impl Listeners {
    /// A page begins to listen, to a reply with a number higher than all before. Returns the reply,
    /// and the end of the listener that it replaces.
    pub(crate) fn begin(
        &mut self,
        client: Ticket,
        (account, session): (AccountId, Digest),
        number: u64,
        store: &Store,
    ) -> (Reply, Option<(Ticket, HandlerReply)>) {
        let mut of_account = self.all.iter().filter(|(_, listener)| listener.account == account);
        let (first, count) = (of_account.next().map(|(number, _)| *number), 1 + of_account.count());
        let gone = match first {
            Some(first) if count >= LISTENERS_OF_ACCOUNT_MAX => self.end(first),
            _ if self.all.len() >= LISTENERS_MAX => {
                self.all.keys().next().copied().and_then(|first| self.end(first))
            }
            _ => None,
        };
        let news = MailboxEvent::of(store, account);
        self.all
            .insert(number, PageListener { client, account, session, last_digest: news.digest() });
        (news.reply(number), gone)
    }

    fn end(&mut self, number: u64) -> Option<(Ticket, HandlerReply)> {
        self.all
            .remove(&number)
            .map(|listener| (listener.client, HandlerReply::NoMore(number, ReplyEnd::Whole)))
    }

    /// The page with this number has stopped listening.
    pub(crate) fn left(&mut self, number: u64) {
        self.all.remove(&number);
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// Whether a listener must be examined.
    pub(crate) fn has_concerned(&self) -> bool {
        !self.concerned.is_empty()
    }

    /// Whether the store has changes and there are listeners.
    pub(crate) fn has_changes(&self, store: &Store) -> bool {
        !self.all.is_empty() && store.has_changes()
    }

    /// Sends events to listeners with news. The stream of a listener ends if its session has ended.
    pub(crate) fn look(
        &mut self,
        store: &mut Store,
        is_known: impl Fn(&AccountInfo<'_>, &Digest) -> bool,
        mut tell: impl FnMut(Ticket, HandlerReply),
    ) {
        if store.has_changes() {
            let may_have_changed = store.take_changes();
            let concerned =
                self.all.iter().filter(|(_, listener)| may_have_changed(listener.account));
            self.concerned.extend(concerned.map(|(number, _)| *number));
        }
        for _ in 0..LOOKED_AT_PER_TURN {
            let Some(number) = self.concerned.pop_first() else { return };
            let Some(listener) = self.all.get_mut(&number) else { continue };
            let account = store.account(listener.account);
            if !account.is_some_and(|account| is_known(&account, &listener.session)) {
                tell(listener.client, HandlerReply::NoMore(number, ReplyEnd::Whole));
                self.all.remove(&number);
                continue;
            }
            let news = MailboxEvent::of(store, listener.account);
            if news.digest() != listener.last_digest {
                listener.last_digest = news.digest();
                tell(listener.client, HandlerReply::More(number, news.as_bytes().into()));
            }
        }
    }
}

/// The number of an open reply. `count`: how many numbers this core has assigned.
pub(crate) fn number_of(count: u64, core: CoreId) -> u64 {
    count << CORE_BITS | u64::from(core.0)
}

/// The core that assigned a number.
pub fn giver_of(number: u64) -> CoreId {
    CoreId(number as u8)
}
