//! Who is logged in: sessions of the accounts of one core.
//!
//! A session is a note of its account (crate `store`), under the digest of its ticket: so it outlives the machine. Here is what only its next pages need to know, and what
//! the store does not know yet.
//!
//! Invariants:
//! - Of what a browser shows to be known, only a digest is kept, and in memory what its forms carry, which nobody is known by: who reads the memory or the disk cannot pose as anybody.
//! - An account has at most [`SESSIONS_MAX`] sessions; who comes then takes the place of who was not seen for longest. Of a core's so many are remembered as it was made for.
//! - A session that was not seen for [`IDLE_SECONDS`] is over, and so is one that was begun with a password that is not the account's any more.
//! - What one window did is told to that window: a notice has a number, and only a page whose address says it takes it. At most [`SAID_MAX`] of a session wait.
//! - Being seen is noted once a day: requests cost the disk nothing.
//! - A session that has ended does not come back while the machine lives, whatever the disk does.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;

use machine::UnixTime;
use mail::PasswordMark;
use store::{AccountId, AccountInfo, NoteChange};

use crate::kept::Kept;
use crate::said::Said;
use crate::{Key, Ticket};

/// Sessions of one account.
pub(crate) const SESSIONS_MAX: usize = 16;

/// How long a session lasts that nobody uses: 14 days.
pub const IDLE_SECONDS: u64 = 14 * 86_400;

/// How long it is not noted again that a session is seen.
const NOTED_SECONDS: u64 = 86_400;

/// Notices of one session that no page has told yet: those of so many windows.
const SAID_MAX: usize = 8;

/// Before everything.
const NEVER: UnixTime = UnixTime::from_seconds(0);

/// What of a browser's ticket is kept.
pub(crate) type Digest = [u8; 32];

/// What is remembered of the sessions of a core's accounts.
#[derive(Debug)]
pub(crate) struct Sessions {
    known: BTreeMap<Digest, Session>,
    most: usize,
}

#[derive(Debug)]
struct Session {
    account: AccountId,
    seen: UnixTime,
    /// When the store was last asked to note that.
    noted: UnixTime,
    /// What the store may not know yet of a session that was begun in this life of the machine.
    begun: Option<Kept>,
    is_over: bool,
    /// By their numbers, which grow.
    said: VecDeque<(u64, Said)>,
    /// How many it had; after a restart more than before it.
    noticed: u64,
    /// What its forms carry, once one was made.
    token: Option<Arc<str>>,
    /// The message that may load what it wants from elsewhere.
    loaded: Option<Key>,
}

/// What a ticket is worth.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// It is of no session.
    Stranger,
    /// It is of a session. What is to be noted of it.
    Known(Option<NoteChange>),
}

impl Sessions {
    /// So many sessions are remembered.
    pub(crate) fn new(most: usize) -> Sessions {
        Sessions { known: BTreeMap::new(), most }
    }

    /// Somebody has logged in: what is to be noted of that. Sessions that are over go, and the one that was not seen for longest if there are too many.
    pub(crate) fn begin(
        &mut self,
        account: &AccountInfo<'_>,
        digest: Digest,
        kept: Kept,
    ) -> Vec<NoteChange> {
        let now = kept.seen;
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
        changes.push(NoteChange::Put(digest[..].into(), kept.to_bytes()));
        let session = self.remember(account.id(), digest, now);
        (session.noted, session.begun) = (now, Some(kept));
        changes
    }

    /// Whether this is a session of the account. It is seen now.
    pub(crate) fn is_of(
        &mut self,
        account: &AccountInfo<'_>,
        digest: &Digest,
        now: UnixTime,
    ) -> Standing {
        let Some(kept) = self.kept(account, digest, now) else { return Standing::Stranger };
        let is_noted = account.note(digest).is_some();
        let session = self.remember(account.id(), *digest, now);
        session.seen = session.seen.max(now);
        let noted = session.noted.max(if is_noted { kept.seen } else { NEVER });
        if now.seconds().saturating_sub(noted.seconds()) < NOTED_SECONDS {
            return Standing::Known(None);
        }
        session.noted = now;
        let value = Kept { seen: now, ..kept }.to_bytes();
        let key = digest[..].into();
        Standing::Known(Some(if is_noted {
            NoteChange::Replace(key, value)
        } else {
            NoteChange::Put(key, value)
        }))
    }

    /// Whether a session is not over, without its being seen.
    pub(crate) fn is_known(
        &self,
        account: &AccountInfo<'_>,
        digest: &Digest,
        now: UnixTime,
    ) -> bool {
        self.kept(account, digest, now).is_some()
    }

    /// The store did not note what it was asked to: it will be asked again.
    pub(crate) fn not_noted(&mut self, digest: &Digest) {
        if let Some(session) = self.known.get_mut(digest) {
            session.noted = NEVER;
        }
    }

    /// The sessions of an account that are not over, the one that was seen last first.
    pub(crate) fn all_of(&self, account: &AccountInfo<'_>, now: UnixTime) -> Vec<(Digest, Kept)> {
        let begun = self
            .known
            .iter()
            .filter(|(_, session)| session.account == account.id() && session.begun.is_some());
        let mut digests: Vec<Digest> = sessions_of(account).map(|(digest, _)| digest).collect();
        digests.extend(begun.map(|(digest, _)| *digest));
        digests.sort_unstable();
        digests.dedup();
        let mut all: Vec<(Digest, Kept)> = digests
            .into_iter()
            .filter_map(|digest| Some((digest, self.kept(account, &digest, now)?)))
            .collect();
        all.sort_by_key(|(_, kept)| core::cmp::Reverse(kept.seen));
        all
    }

    /// A session is over: what is to be noted of that.
    pub(crate) fn end(
        &mut self,
        account: &AccountInfo<'_>,
        digest: &Digest,
        now: UnixTime,
    ) -> NoteChange {
        self.remember(account.id(), *digest, now).is_over = true;
        NoteChange::Remove(digest[..].into())
    }

    /// What is kept of a session that is not over.
    fn kept(&self, account: &AccountInfo<'_>, digest: &Digest, now: UnixTime) -> Option<Kept> {
        let here = self.known.get(digest).filter(|session| session.account == account.id());
        let begun = here.and_then(|session| session.begun.as_ref());
        let mut kept = account.note(digest).and_then(Kept::of).or_else(|| begun.cloned())?;
        kept.seen = kept.seen.max(here.map_or(kept.seen, |session| session.seen));
        let is_over = here.is_some_and(|session| session.is_over)
            || kept.password != PasswordMark::of(account.password_hash())
            || now.seconds().saturating_sub(kept.seen.seconds()) > IDLE_SECONDS;
        (!is_over).then_some(kept)
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
            said: VecDeque::new(),
            noticed: now.seconds(),
            token: None,
            loaded: None,
        })
    }

    /// A page of a session is to tell this. The number by which its address says so; `None`: nobody remembers the session.
    pub(crate) fn say(&mut self, digest: &Digest, said: Said) -> Option<u64> {
        let session = self.known.get_mut(digest)?;
        if session.said.len() >= SAID_MAX {
            session.said.pop_front();
        }
        session.noticed += 1;
        session.said.push_back((session.noticed, said));
        Some(session.noticed)
    }

    /// What the page is to tell whose address says this number: once.
    pub(crate) fn take_said(&mut self, digest: &Digest, number: u64) -> Option<Said> {
        let said = &mut self.known.get_mut(digest)?.said;
        let at = said.iter().position(|(of, _)| *of == number)?;
        said.remove(at).map(|(_, said)| said)
    }

    /// What the forms of a session carry, whose ticket this is: worked out once.
    pub(crate) fn form_token(&mut self, digest: &Digest, ticket: &Ticket) -> Arc<str> {
        let make = || ticket.form_token().to_string().into();
        match self.known.get_mut(digest) {
            Some(session) => session.token.get_or_insert_with(make).clone(),
            None => make(),
        }
    }

    /// The reader wants this message to load what it wants from elsewhere.
    pub(crate) fn load(&mut self, digest: &Digest, key: Key) {
        if let Some(session) = self.known.get_mut(digest) {
            session.loaded = Some(key);
        }
    }

    /// The message of which he wanted that last.
    pub(crate) fn loaded(&self, digest: &Digest) -> Option<Key> {
        self.known.get(digest)?.loaded
    }
}

/// What is noted of an account's sessions.
fn sessions_of<'a>(account: &AccountInfo<'a>) -> impl Iterator<Item = (Digest, &'a [u8])> {
    account.notes().filter_map(|(key, value)| Some((Digest::try_from(key).ok()?, value)))
}
