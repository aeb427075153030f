//! The store on the core that owns it, and what only its owner does.

use alloc::sync::Arc;

use machine::CoreId;
use store::{Store, Wake};

use super::desk::Desk;
use super::{Accounts, News, Request, core_of};
use crate::maildrop::Maildrops;

/// The store, who has locked which maildrop, and where other cores ask.
pub(crate) struct Own {
    pub(crate) store: Store,
    pub(crate) maildrops: Maildrops,
    /// Not there where there is no other core.
    pub(super) desk: Option<Desk>,
}

impl Own {
    /// `cores`: how many there are; `letters`: how many each of them may have under way.
    pub(crate) fn new(store: Store, cores: u8, letters: usize) -> Own {
        Own { store, maildrops: Maildrops::default(), desk: (cores > 1).then(|| Desk::new(cores, letters)) }
    }

    /// The next end of something that a session of this core has asked for; what other cores asked for goes to them.
    pub(super) fn next_wake(&mut self) -> Option<Wake> {
        loop {
            let wake = self.store.next_wake()?;
            match core_of(wake.continuation) {
                (CoreId::FIRST, _) => return Some(wake),
                (core, continuation) => {
                    if let Some(desk) = &mut self.desk {
                        desk.woken(core, Wake { continuation, ..wake }, &mut self.store);
                    }
                }
            }
        }
    }

    /// Another core asks for something.
    pub(crate) fn requested(&mut self, from: CoreId, request: Request) {
        if let Some(desk) = &mut self.desk {
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

    /// Tells all other cores that mail is served from now on.
    pub(crate) fn tell_to_serve(&mut self) {
        if let Some(desk) = &mut self.desk {
            let accounts = Arc::new(Accounts::of(&self.store));
            desk.tell_all(|| News::Serve(Arc::clone(&accounts)));
        }
    }

    /// Tells all other cores that the machine is asked to stop.
    pub(crate) fn tell_to_stop(&mut self) {
        if let Some(desk) = &mut self.desk {
            desk.tell_all(|| News::Stop);
        }
    }

    /// Whether no other core is left that may ask for something.
    pub(crate) fn is_last(&self) -> bool {
        self.desk.as_ref().is_none_or(Desk::all_have_left)
    }

    /// The next news for `core`.
    pub(crate) fn next_news(&mut self, core: CoreId) -> Option<News> {
        self.desk.as_mut()?.next_news(core)
    }

    pub(super) fn is_at_rest(&self) -> bool {
        self.store.is_at_rest() && self.desk.as_ref().is_none_or(Desk::is_at_rest)
    }
}
