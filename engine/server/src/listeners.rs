//! Who listens: pages of the webmail that are open, and are told when something of their mail has changed.
//!
//! A page listens by a reply that stays open (`http::Reply::open`), on whatever core its connection is. Here, where its mail is, stands under which number. What it is told goes to the
//! core of its connection, as answers to visits do.
//!
//! Invariants:
//! - Of a core at most [`LISTENERS_MAX`] listen, of an account [`LISTENERS_OF_ACCOUNT_MAX`]: who comes then takes the place of who came first.
//! - Nobody is told anything of mail once the session has ended by which he came.
//! - Who listens to nothing new costs nothing: only what the store has changed is looked at.

use alloc::collections::BTreeMap;

use http::{End, Reply};
use machine::CoreId;
use store::{AccountId, Store};
use webmail::{Digest, News};

use crate::archive::Request;
use crate::clerks::{Told, Visitor};
use crate::common::Common;

/// Who may listen to the mail of a core's accounts.
const LISTENERS_MAX: usize = 1024;

/// Who may listen to that of one account: so many windows may be open.
const LISTENERS_OF_ACCOUNT_MAX: usize = 32;

/// The bits of a number that say which core gave it.
const CORE_BITS: u32 = 8;

/// Those who listen to the mail of a core's accounts, by their numbers; who came first has the lowest.
#[derive(Default)]
pub(crate) struct Listeners {
    all: BTreeMap<u64, Listener>,
}

struct Listener {
    visitor: Visitor,
    account: AccountId,
    session: Digest,
    /// What he was told last.
    told: u64,
}

impl Listeners {
    /// Somebody begins to listen, to a reply with a number higher than all before. What he is answered, and who has to go for him.
    pub(crate) fn begin(
        &mut self,
        visitor: Visitor,
        (account, session): (AccountId, Digest),
        number: u64,
        store: &Store,
    ) -> (Reply, Option<(Visitor, Told)>) {
        let mut of_account = self.all.iter().filter(|(_, listener)| listener.account == account);
        let (first, count) = (of_account.next().map(|(number, _)| *number), 1 + of_account.count());
        let gone = match first {
            Some(first) if count >= LISTENERS_OF_ACCOUNT_MAX => self.end(first),
            _ if self.all.len() >= LISTENERS_MAX => self.all.keys().next().copied().and_then(|first| self.end(first)),
            _ => None,
        };
        let news = News::of(store, account);
        self.all.insert(number, Listener { visitor, account, session, told: news.digest() });
        (news.reply(number), gone)
    }

    fn end(&mut self, number: u64) -> Option<(Visitor, Told)> {
        self.all.remove(&number).map(|listener| (listener.visitor, Told::NoMore(number, End::Whole)))
    }

    /// Nobody listens under this number any more.
    pub(crate) fn left(&mut self, number: u64) {
        self.all.remove(&number);
    }

    /// How many listen.
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// Those whose session has ended listen no more.
    pub(crate) fn end_strangers(
        &mut self,
        mut is_known: impl FnMut(AccountId, &Digest) -> bool,
        mut tell: impl FnMut(Visitor, Told),
    ) {
        self.all.retain(|number, listener| {
            let is_known = is_known(listener.account, &listener.session);
            if !is_known {
                tell(listener.visitor, Told::NoMore(*number, End::Whole));
            }
            is_known
        });
    }

    /// Those whose mail has changed are told so.
    pub(crate) fn tell_changes(&mut self, store: &mut Store, mut tell: impl FnMut(Visitor, Told)) {
        let may_have_changed = store.take_changes();
        for (number, listener) in self.all.iter_mut().filter(|(_, listener)| may_have_changed(listener.account)) {
            let news = News::of(store, listener.account);
            if news.digest() != listener.told {
                listener.told = news.digest();
                tell(listener.visitor, Told::More(*number, news.as_bytes().into()));
            }
        }
    }
}

/// The number of a reply that stays open, of which this core has so many.
pub(crate) fn number_of(count: u64, core: CoreId) -> u64 {
    count << CORE_BITS | u64::from(core.0)
}

/// The core that gave a reply its number.
pub(crate) fn giver_of(number: u64) -> CoreId {
    CoreId(number as u8)
}

impl Common {
    /// Nobody listens any more to the reply with this number.
    #[cold]
    #[inline(never)]
    pub(crate) fn reply_left(&mut self, number: u64) {
        if self.store.told_giver(number, Request::ReplyLeft(number)) {
            self.clerks.left(number);
        }
    }

    /// The client wants more of the reply with this number.
    #[cold]
    #[inline(never)]
    pub(crate) fn reply_wanted(&mut self, number: u64) {
        if self.store.told_giver(number, Request::ReplyWanted(number)) {
            self.clerks.streams.wanted(number);
        }
    }
}
