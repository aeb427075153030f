//! Ended sessions with notes that may still be in the store. A note makes a session survive a
//! restart. It should have been removed, but the disk failed or the machine was busy.
//!
//! Invariants:
//! - The store is asked once a minute to remove such a note, until the note is gone. So the session
//!   does not become valid again after a restart, unless the disk fails all the time until then.
//! - After each run of the handlers, the time of the next check is set if this list has a session.

use alloc::collections::BTreeMap;
use alloc::vec;

use machine::{Instant, Micros};
use store::{AccountId, NoteChange, Store};
use tasks::Continuation;

use crate::persisted_session::Digest;

/// The time after which the store is asked again to remove the notes of ended sessions.
const ASK_AGAIN_AFTER: Micros = Micros::from_secs(60);

/// Ended sessions of a core.
#[derive(Debug)]
pub(crate) struct EndedSessions {
    /// A session stays in the map until its note is gone. A session begins only if the store has
    /// space for its note. So the number of notes and the time between checks limit the size of the
    /// map.
    accounts: BTreeMap<Digest, AccountId>,
    /// The time of the next check. [`Instant::NEVER`] if there is no session.
    look_at: Instant,
}

impl Default for EndedSessions {
    fn default() -> EndedSessions {
        EndedSessions { accounts: BTreeMap::new(), look_at: Instant::NEVER }
    }
}

impl EndedSessions {
    /// Adds a session of `account` that has ended.
    pub(crate) fn add(&mut self, digest: Digest, account: AccountId) {
        self.accounts.insert(digest, account);
    }

    /// Whether this session has ended and its note may still be in the store.
    pub(crate) fn contains(&self, digest: &Digest) -> bool {
        self.accounts.contains_key(digest)
    }

    /// The time of the next check.
    #[inline]
    pub(crate) fn look_at(&self) -> Instant {
        self.look_at
    }

    /// Asks the store to remove the remaining notes, if the time of the check has come.
    /// `unawaited`: the continuation of a change that no handler waits for.
    pub(crate) fn look(&mut self, store: &mut Store, now: Instant, unawaited: Continuation) {
        if self.look_at <= now {
            self.look_at = Instant::NEVER;
            self.remove_notes(store, unawaited);
        }
        self.plan_look(now);
    }

    fn remove_notes(&mut self, store: &mut Store, unawaited: Continuation) {
        self.accounts.retain(|digest, account| {
            store.account(*account).is_some_and(|account| account.note(digest).is_some())
        });
        for (digest, account) in &self.accounts {
            let change = vec![NoteChange::Remove(digest[..].into())];
            if store.change_notes(*account, change, unawaited).is_err() {
                // The remaining notes are checked again later.
                return;
            }
        }
    }

    fn plan_look(&mut self, now: Instant) {
        if self.look_at == Instant::NEVER && !self.accounts.is_empty() {
            self.look_at = now + ASK_AGAIN_AFTER;
        }
    }
}
