//! The store of a core: of the shards that it owns, and what only their owner does.

use alloc::sync::Arc;

use machine::CoreId;
use store::{Owners, Store, Wake};

use crate::allowances::Allowances;
use crate::maildrop::Maildrops;
use crate::sizes::Sizes;

use super::desk::Desk;
use super::{Accounts, News, Request, core_of};

/// The store, who has locked which of its maildrops, and where other cores ask.
pub(crate) struct Own {
    pub(crate) store: Store,
    pub(crate) maildrops: Maildrops,
    /// What its accounts have sent.
    pub(crate) allowances: Allowances,
    /// Not there where there is no other core.
    pub(super) desk: Option<Desk>,
}

impl Own {
    /// `core`: whose it is, of `cores` that have these `sizes`.
    pub(crate) fn new(store: Store, core: CoreId, cores: u8, sizes: &Sizes) -> Own {
        let desk = (cores > 1).then(|| Desk::new(core, cores, sizes));
        Own { store, maildrops: Maildrops::new(cores), allowances: Allowances::default(), desk }
    }

    /// The next end of something that a session of this core has asked for; what other cores asked for goes to them.
    pub(super) fn next_wake(&mut self) -> Option<Wake> {
        loop {
            let wake = self.store.next_wake()?;
            match core_of(wake.continuation) {
                (None, _) => return Some(wake),
                (Some(asked), continuation) => {
                    if let Some(desk) = &mut self.desk {
                        desk.woken(asked, Wake { continuation, ..wake }, &mut self.store);
                    }
                }
            }
        }
    }

    /// Another core asks for something.
    pub(crate) fn requested(&mut self, from: CoreId, request: Request) {
        if let Request::Asked(at, asked) = request {
            let reply = asked.answer(self);
            self.tell(from, News::Replied(at, reply));
        } else if let Some(desk) = &mut self.desk {
            desk.requested(from, request, &mut self.store, &mut self.maildrops);
        }
    }

    /// The end of a turn: what was gathered becomes a group, and other cores hear how the store is.
    pub(crate) fn turn_ended(&mut self) {
        self.store.turn_ended();
        if let Some(desk) = &mut self.desk {
            desk.turn_ended(&mut self.store);
        }
    }

    /// Tells each of the next cores to take over its share, if everything there is can be shared out now; how the shards are owned
    /// then.
    pub(crate) fn share_out(&mut self, cores: u8) -> Option<Owners> {
        let (owners, shares) = self.store.share_out(cores)?;
        for (share, core) in shares.into_iter().zip(1..) {
            self.tell(CoreId(core), News::Share(share));
        }
        Some(owners)
    }

    /// Whether everybody who was told to take over a share has done so.
    pub(crate) fn is_taken_over(&self, owners: Owners) -> bool {
        self.desk.as_ref().is_none_or(|desk| desk.have_taken_over() + 1 == usize::from(owners.count()))
    }

    /// Tells all other cores that mail is served from now on, for these accounts.
    pub(crate) fn tell_to_serve(&mut self, accounts: &Arc<Accounts>, owners: Owners) {
        self.tell_all(|| News::Serve(Arc::clone(accounts), owners));
    }

    /// Whether all other cores have begun to.
    pub(crate) fn all_others_serve(&self) -> bool {
        self.desk.as_ref().is_none_or(Desk::all_serve)
    }

    /// Tells all other cores.
    pub(super) fn tell_all(&mut self, news: impl Fn() -> News) {
        if let Some(desk) = &mut self.desk {
            desk.tell_all(news);
        }
    }

    pub(crate) fn tell(&mut self, core: CoreId, news: News) {
        if let Some(desk) = &mut self.desk {
            desk.tell(core, news);
        }
    }

    /// How many cores there are.
    pub(super) fn cores(&self) -> u8 {
        self.desk.as_ref().map_or(1, Desk::cores)
    }

    /// Tells all other cores that the machine is asked to stop.
    pub(crate) fn tell_to_stop(&mut self) {
        self.tell_all(|| News::Stop);
    }

    /// Whether no other core is left that may ask for something.
    pub(crate) fn is_last(&self) -> bool {
        self.desk.as_ref().is_none_or(Desk::all_have_left)
    }

    /// The next news for `core`.
    pub(crate) fn next_news(&mut self, core: CoreId) -> Option<News> {
        self.desk.as_mut()?.next_news(core)
    }

    pub(super) fn has_messages(&self) -> bool {
        self.store.has_errands() || self.store.has_answers() || self.desk.as_ref().is_some_and(Desk::has_news)
    }

    pub(super) fn is_at_rest(&self) -> bool {
        self.store.is_at_rest() && self.desk.as_ref().is_none_or(Desk::is_at_rest)
    }
}
