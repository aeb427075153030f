//! Ended sessions with a note that may still be in the store, because the disk failed or the
//! machine was busy when it was to be removed.
//!
//! Invariants:
//! - The store is asked once a minute to remove such a note, until it is gone. So the session does
//!   not come back after a restart, if the disk works once before that.
//! - While a session is here there is a time of the next check, once the handlers have run.

use alloc::collections::BTreeMap;
use alloc::vec;

use machine::{Instant, Micros};
use store::{AccountId, NoteChange, Store};
use tasks::Continuation;

use crate::persisted_session::Digest;

/// The delay before the store is asked again to remove the note of an ended session.
const ASK_AGAIN_AFTER: Micros = Micros::from_secs(60);

/// Ended sessions of a core.
#[derive(Debug)]
pub(crate) struct EndedSessions {
    /// A session stays until its note is gone. A session begins only where a note finds a place, so
    /// the notes of all accounts and the time of a check bound these.
    accounts: BTreeMap<Digest, AccountId>,
    /// When these are checked next; never, if there are none.
    look_at: Instant,
}

impl Default for EndedSessions {
    fn default() -> EndedSessions {
        EndedSessions { accounts: BTreeMap::new(), look_at: Instant::NEVER }
    }
}

impl EndedSessions {
    /// A session of this account has ended.
    pub(crate) fn add(&mut self, digest: Digest, account: AccountId) {
        self.accounts.insert(digest, account);
    }

    /// Whether this session has ended. False once its note is gone.
    pub(crate) fn contains(&self, digest: &Digest) -> bool {
        self.accounts.contains_key(digest)
    }

    /// When the notes are checked next.
    #[inline]
    pub(crate) fn look_at(&self) -> Instant {
        self.look_at
    }

    /// Asks the store to remove notes that are still there, if it is time for that. `unawaited`:
    /// the continuation of a change with an outcome that is not awaited.
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
                // They are checked again later.
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
