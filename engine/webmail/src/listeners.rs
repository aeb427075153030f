//! Listeners: open pages that are notified of changes in their account.
//!
//! A page listens through an open reply (`http::Reply::open`) on the core of its connection. The
//! core that owns the account keeps the numbers of these replies. It sends events to the core of
//! the connection, in the same way as replies to requests.
//!
//! Invariants:
//! - A core has at most [`LISTENERS_MAX`] listeners, and an account at most
//!   [`LISTENERS_OF_ACCOUNT_MAX`]. One more listener replaces the oldest.
//! - A listener gets no more events after its session has ended.
//! - A listener costs no work while its account does not change. Only listeners of accounts that
//!   may have changed are examined, and only a few in each turn.

use alloc::collections::{BTreeMap, BTreeSet};

use channel::Ticket;
use http::{Reply, ReplyEnd};
use machine::CoreId;
use store::{AccountId, AccountInfo, Store};

use crate::handler_reply::HandlerReply;
use crate::news::MailboxEvent;
use crate::sessions::Digest;

/// The maximum number of listeners of a core.
const LISTENERS_MAX: usize = 1024;

/// The maximum number of listeners of an account. Each open window is a listener.
const LISTENERS_OF_ACCOUNT_MAX: usize = 32;

/// The number of listeners that are examined in one turn.
const LOOKED_AT_PER_TURN: usize = 16;

/// The number of low bits of a reply's number that name the core that assigned the number.
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
    /// Adds a listener with a number higher than all earlier ones. Returns its open reply, and the
    /// end of the listener that it replaces.
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

    /// Removes the listener with this number, since its page was closed.
    pub(crate) fn left(&mut self, number: u64) {
        self.all.remove(&number);
    }

    /// The number of listeners.
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// Whether a listener must be examined.
    pub(crate) fn has_concerned(&self) -> bool {
        !self.concerned.is_empty()
    }

    /// Whether listeners exist and the store has changes.
    pub(crate) fn has_changes(&self, store: &Store) -> bool {
        !self.all.is_empty() && store.has_changes()
    }

    /// Sends an event to each listener of a changed account. If the session of a listener has
    /// ended, its stream ends.
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

/// The number of an open reply. `count`: the count of numbers that this core has assigned.
pub(crate) fn number_of(count: u64, core: CoreId) -> u64 {
    count << CORE_BITS | u64::from(core.0)
}

/// The core that assigned a number.
pub fn issuer_of(number: u64) -> CoreId {
    CoreId(number as u8)
}
