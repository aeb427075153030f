//! Listeners: pages of the webmail that are open, and are told when something of their mail has
//! changed.
//!
//! A page listens by a reply that stays open (`http::Reply::open`), on whatever core its connection
//! is. Here, where its mail is, stands under which number. What it is told goes to the core of its
//! connection, as replies to requests do.
//!
//! Invariants:
//! - A core has at most [`LISTENERS_MAX`] of them, an account [`LISTENERS_OF_ACCOUNT_MAX`]. One
//!   more takes the place of the first one.
//! - A listener is told nothing of mail once the session has ended that has asked for it.
//! - A listener to which nothing is new costs nothing. Those are looked at that have an account of
//!   which the store may have changed something, mail or sessions, and so many in a turn.

use alloc::collections::{BTreeMap, BTreeSet};

use channel::Ticket;
use http::{End, Reply};
use machine::CoreId;
use store::{AccountId, AccountInfo, Store};

use crate::news::News;
use crate::sessions::Digest;
use crate::told::Told;

/// Listeners to the mail of a core's accounts.
const LISTENERS_MAX: usize = 1024;

/// Listeners to that of one account: so many windows may be open.
const LISTENERS_OF_ACCOUNT_MAX: usize = 32;

/// Listeners that are looked at in one turn.
const LOOKED_AT_PER_TURN: usize = 16;

/// The bits of a number that say which core gave it.
const CORE_BITS: u32 = 8;

/// The listeners to the mail of a core's accounts, by their numbers. The first one has the lowest.
#[derive(Default)]
pub(crate) struct Listeners {
    all: BTreeMap<u64, Listener>,
    /// The numbers of those that are to be looked at.
    concerned: BTreeSet<u64>,
}

struct Listener {
    visitor: Ticket,
    account: AccountId,
    session: Digest,
    /// What it was told last.
    told: u64,
}

impl Listeners {
    /// A page begins to listen, to a reply with a number higher than all before. Returns the reply,
    /// and the listener that has to go for it.
    pub(crate) fn begin(
        &mut self,
        visitor: Ticket,
        (account, session): (AccountId, Digest),
        number: u64,
        store: &Store,
    ) -> (Reply, Option<(Ticket, Told)>) {
        let mut of_account = self.all.iter().filter(|(_, listener)| listener.account == account);
        let (first, count) = (of_account.next().map(|(number, _)| *number), 1 + of_account.count());
        let gone = match first {
            Some(first) if count >= LISTENERS_OF_ACCOUNT_MAX => self.end(first),
            _ if self.all.len() >= LISTENERS_MAX => {
                self.all.keys().next().copied().and_then(|first| self.end(first))
            }
            _ => None,
        };
        let news = News::of(store, account);
        self.all.insert(number, Listener { visitor, account, session, told: news.digest() });
        (news.reply(number), gone)
    }

    fn end(&mut self, number: u64) -> Option<(Ticket, Told)> {
        self.all
            .remove(&number)
            .map(|listener| (listener.visitor, Told::NoMore(number, End::Whole)))
    }

    /// No page listens under this number any more.
    pub(crate) fn left(&mut self, number: u64) {
        self.all.remove(&number);
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// Whether a listener is to be looked at.
    pub(crate) fn has_concerned(&self) -> bool {
        !self.concerned.is_empty()
    }

    /// Whether there are listeners to what the store has changed.
    pub(crate) fn has_changes(&self, store: &Store) -> bool {
        !self.all.is_empty() && store.has_changes()
    }

    /// Listeners are told what has changed in their mail; after the end of their session, that this
    /// was all.
    pub(crate) fn look(
        &mut self,
        store: &mut Store,
        is_known: impl Fn(&AccountInfo<'_>, &Digest) -> bool,
        mut tell: impl FnMut(Ticket, Told),
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
                tell(listener.visitor, Told::NoMore(number, End::Whole));
                self.all.remove(&number);
                continue;
            }
            let news = News::of(store, listener.account);
            if news.digest() != listener.told {
                listener.told = news.digest();
                tell(listener.visitor, Told::More(number, news.as_bytes().into()));
            }
        }
    }
}

/// The number of a reply that stays open, of which this core has so many.
pub(crate) fn number_of(count: u64, core: CoreId) -> u64 {
    count << CORE_BITS | u64::from(core.0)
}

/// The core that gave a reply its number.
pub fn giver_of(number: u64) -> CoreId {
    CoreId(number as u8)
}
