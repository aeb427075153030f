//! The sessions of the accounts of one core.
//!
//! A session is a note of its account (crate `store`), with the digest of its ticket as the key. So
//! a session survives a restart. This module keeps state that only the next pages need, and changes
//! that the store does not have yet.
//!
//! Invariants:
//! - The disk has only the digest of a ticket. The memory also has the form token, which does not
//!   authenticate a client. So an attacker that can read the memory or the disk cannot take over a
//!   session.
//! - An account has at most [`SESSIONS_MAX`] sessions. A new session replaces the session that was
//!   idle longest. The table of a core has a fixed capacity.
//! - A session ends after [`IDLE_SECONDS`] without a request, and when the account's password
//!   changes.
//! - The result of an action in one window is shown in that window. A flash message has a number,
//!   and only a page with that number in its address takes it. A session has at most [`FLASH_MAX`]
//!   pending flash messages.
//! - The time of the last request is persisted once a day, so requests cause no disk writes.
//! - An ended session stays ended until the next restart, even if the disk fails. If its note was
//!   removed before the restart, it also stays ended after the restart ([`EndedSessions`]).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;

use machine::UnixTime;
use mail::PasswordMark;
use store::{AccountId, AccountInfo, NoteChange};

use crate::ended_sessions::EndedSessions;
use crate::flash::FlashMessage;
pub(crate) use crate::persisted_session::Digest;
use crate::persisted_session::PersistedSession;
use crate::{MessageKey, SessionTicket};

/// The maximum number of sessions of one account.
pub(crate) const SESSIONS_MAX: usize = 16;

/// The time without a request after which a session ends: 14 days.
pub const IDLE_SECONDS: u64 = 14 * 86_400;

/// The minimum time between two writes of the last request's time.
const NOTED_SECONDS: u64 = 86_400;

/// The maximum number of pending flash messages of a session. Each window of the user may have one.
const FLASH_MAX: usize = 8;

/// A time that is earlier than any other.
const NEVER: UnixTime = UnixTime::from_seconds(0);

/// The known sessions of a core.
#[derive(Debug)]
pub(crate) struct WebSessions {
    known: BTreeMap<Digest, Session>,
    most: usize,
    ended: EndedSessions,
}

#[derive(Debug)]
struct Session {
    account: AccountId,
    seen: UnixTime,
    /// The time when the store was last asked to persist `seen`.
    noted: UnixTime,
    /// The session, if it was begun since the last restart. The store may not have it yet.
    begun: Option<PersistedSession>,
    is_over: bool,
    /// Pending flash messages with their numbers, in ascending order.
    flash: VecDeque<(u64, FlashMessage)>,
    /// The number of the last flash message. The first number is the time, so numbers also ascend
    /// across restarts.
    flash_number: u64,
    /// The form token, if it was computed already.
    token: Option<Arc<str>>,
    /// The message that may load remote content.
    loaded: Option<MessageKey>,
}

/// The result of a look-up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SessionLookup {
    /// No valid session has this digest.
    Unknown,
    /// The session is valid. If there is a change, the store must persist it.
    Known(Option<NoteChange>),
}

impl WebSessions {
    /// An empty table with room for `most` sessions.
    pub(crate) fn new(most: usize) -> WebSessions {
        WebSessions { known: BTreeMap::new(), most, ended: EndedSessions::default() }
    }

    /// Begins the session of a client that has logged in. Returns the changes to persist. They also
    /// remove ended sessions, and the sessions that were idle longest if the account has too many.
    pub(crate) fn begin(
        &mut self,
        account: &AccountInfo<'_>,
        digest: Digest,
        persisted: PersistedSession,
    ) -> Vec<NoteChange> {
        let now = persisted.seen;
        let mut all = self.all_of(account, now);
        let mut changes: Vec<NoteChange> = sessions_of(account)
            .filter(|(digest, _)| all.iter().all(|(known, _)| known != digest))
            .map(|(digest, _)| NoteChange::Remove(digest[..].into()))
            .collect();
        while all.len() >= SESSIONS_MAX {
            if let Some((digest, _)) = all.pop() {
                changes.push(self.end(account, &digest, now));
            }
        }
        changes.push(NoteChange::Put(digest[..].into(), persisted.to_bytes()));
        let session = self.remember(account.id(), digest, now);
        (session.noted, session.begun) = (now, Some(persisted));
        changes
    }

    /// Looks up a session of the account, and records its use at `now`.
    pub(crate) fn look_up(
        &mut self,
        account: &AccountInfo<'_>,
        digest: &Digest,
        now: UnixTime,
    ) -> SessionLookup {
        let Some(persisted) = self.valid(account, digest, now) else {
            return SessionLookup::Unknown;
        };
        let is_noted = account.note(digest).is_some();
        let session = self.remember(account.id(), *digest, now);
        session.seen = session.seen.max(now);
        let noted = session.noted.max(if is_noted { persisted.seen } else { NEVER });
        if now.seconds().saturating_sub(noted.seconds()) < NOTED_SECONDS {
            return SessionLookup::Known(None);
        }
        session.noted = now;
        let value = PersistedSession { seen: now, ..persisted }.to_bytes();
        let key = digest[..].into();
        SessionLookup::Known(Some(if is_noted {
            NoteChange::Replace(key, value)
        } else {
            NoteChange::Put(key, value)
        }))
    }

    /// Whether a session is valid. The call does not count as a use of the session.
    pub(crate) fn is_known(
        &self,
        account: &AccountInfo<'_>,
        digest: &Digest,
        now: UnixTime,
    ) -> bool {
        self.valid(account, digest, now).is_some()
    }

    /// Records that the store has refused a change, so that the next look-up asks the store again.
    pub(crate) fn persist_failed(&mut self, digest: &Digest) {
        if let Some(session) = self.known.get_mut(digest) {
            session.noted = NEVER;
        }
    }

    /// The valid sessions of an account, the most recently used first.
    pub(crate) fn all_of(
        &self,
        account: &AccountInfo<'_>,
        now: UnixTime,
    ) -> Vec<(Digest, PersistedSession)> {
        let begun = self
            .known
            .iter()
            .filter(|(_, session)| session.account == account.id() && session.begun.is_some());
        let mut digests: Vec<Digest> = sessions_of(account).map(|(digest, _)| digest).collect();
        digests.extend(begun.map(|(digest, _)| *digest));
        digests.sort_unstable();
        digests.dedup();
        let mut all: Vec<(Digest, PersistedSession)> = digests
            .into_iter()
            .filter_map(|digest| Some((digest, self.valid(account, &digest, now)?)))
            .collect();
        all.sort_by_key(|(_, persisted)| core::cmp::Reverse(persisted.seen));
        all
    }

    /// Ends a session. Returns the change to persist.
    pub(crate) fn end(
        &mut self,
        account: &AccountInfo<'_>,
        digest: &Digest,
        now: UnixTime,
    ) -> NoteChange {
        self.remember(account.id(), *digest, now).is_over = true;
        self.ended.add(*digest, account.id());
        NoteChange::Remove(digest[..].into())
    }

    /// The ended sessions with notes that may still be in the store.
    #[inline]
    pub(crate) fn ended(&self) -> &EndedSessions {
        &self.ended
    }

    /// The ended sessions, mutable, to ask the store again to remove the notes.
    pub(crate) fn ended_mut(&mut self) -> &mut EndedSessions {
        &mut self.ended
    }

    /// The session with this digest, if it is valid.
    fn valid(
        &self,
        account: &AccountInfo<'_>,
        digest: &Digest,
        now: UnixTime,
    ) -> Option<PersistedSession> {
        let here = self.known.get(digest).filter(|session| session.account == account.id());
        let begun = here.and_then(|session| session.begun.as_ref());
        let mut persisted =
            account.note(digest).and_then(PersistedSession::of).or_else(|| begun.cloned())?;
        persisted.seen = persisted.seen.max(here.map_or(persisted.seen, |session| session.seen));
        let is_over = here.is_some_and(|session| session.is_over)
            || self.ended.contains(digest)
            || persisted.password != PasswordMark::of(account.password_hash())
            || now.seconds().saturating_sub(persisted.seen.seconds()) > IDLE_SECONDS;
        (!is_over).then_some(persisted)
    }

    fn remember(&mut self, account: AccountId, digest: Digest, now: UnixTime) -> &mut Session {
        if self.known.len() >= self.most
            && !self.known.contains_key(&digest)
            && let Some(oldest) =
                self.known.iter().min_by_key(|(_, session)| session.seen).map(|(digest, _)| *digest)
        {
            self.known.remove(&oldest);
        }
        self.known.entry(digest).or_insert_with(|| Session {
            account,
            seen: now,
            noted: NEVER,
            begun: None,
            is_over: false,
            flash: VecDeque::new(),
            flash_number: now.seconds(),
            token: None,
            loaded: None,
        })
    }

    /// Queues a flash message for a page of the session. Returns its number for the address. `None`
    /// if the session is not in the table.
    pub(crate) fn push_flash(&mut self, digest: &Digest, flash: FlashMessage) -> Option<u64> {
        let session = self.known.get_mut(digest)?;
        if session.flash.len() >= FLASH_MAX {
            session.flash.pop_front();
        }
        session.flash_number += 1;
        session.flash.push_back((session.flash_number, flash));
        Some(session.flash_number)
    }

    /// Takes the flash message with this number out of the queue.
    pub(crate) fn take_flash(&mut self, digest: &Digest, number: u64) -> Option<FlashMessage> {
        let flash = &mut self.known.get_mut(digest)?.flash;
        let at = flash.iter().position(|(of, _)| *of == number)?;
        flash.remove(at).map(|(_, flash)| flash)
    }

    /// The form token of a session, which is computed once. `ticket`: the session's ticket.
    pub(crate) fn form_token(&mut self, digest: &Digest, ticket: &SessionTicket) -> Arc<str> {
        let make = || ticket.form_token().to_string().into();
        match self.known.get_mut(digest) {
            Some(session) => session.token.get_or_insert_with(make).clone(),
            None => make(),
        }
    }

    /// Records that the reader wants this message to load its remote content.
    pub(crate) fn load(&mut self, digest: &Digest, key: MessageKey) {
        if let Some(session) = self.known.get_mut(digest) {
            session.loaded = Some(key);
        }
    }

    /// The last message for which the reader wanted to load remote content.
    pub(crate) fn loaded(&self, digest: &Digest) -> Option<MessageKey> {
        self.known.get(digest)?.loaded
    }
}

/// The persisted sessions of an account.
fn sessions_of<'a>(account: &AccountInfo<'a>) -> impl Iterator<Item = (Digest, &'a [u8])> {
    account.notes().filter_map(|(key, value)| Some((Digest::try_from(key).ok()?, value)))
}
