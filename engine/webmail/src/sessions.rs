//! Who is logged in: sessions of the accounts of one core.
//!
//! Invariants:
//! - Of what a browser shows to be known, only a digest is kept: who reads this memory cannot pose as anybody.
//! - An account has at most [`SESSIONS_MAX`] sessions, and a core at most so many as it was made for: who comes then takes the place of who was not seen for longest.
//! - A session that was not seen for [`IDLE_SECONDS`] is over.

use alloc::collections::BTreeMap;
use alloc::string::String;

use core::fmt;
use core::str::FromStr;

use machine::UnixTime;
use store::{AccountId, MailboxId, Uid, UidRange};

use crate::address::number;
use crate::clerk::Messages;
use crate::{Key, NotFound};

/// Sessions of one account.
pub const SESSIONS_MAX: usize = 16;

/// How long a session lasts that nobody uses: 14 days.
pub const IDLE_SECONDS: u64 = 14 * 86_400;

/// What of a browser's ticket is kept.
pub type Digest = [u8; 32];

/// What the next page is to tell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Said {
    /// In words.
    pub text: String,
    /// Whether something went wrong.
    pub is_error: bool,
    /// What takes it back.
    pub undo: Option<Undo>,
}

/// What takes back that messages were filed: they go where they came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Undo {
    /// Where they are now.
    pub messages: Messages,
    /// Where they were.
    pub to: MailboxId,
}

impl Said {
    /// Something was not done.
    pub(crate) fn wrong(text: &str) -> Said {
        Said { text: text.into(), is_error: true, undo: None }
    }
}

/// As forms carry it: `{mailbox}.{first}-{last}.{to}`.
impl fmt::Display for Undo {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Messages { mailbox, uids } = self.messages;
        write!(out, "{}.{}-{}.{}", mailbox.0, uids.first.0, uids.last.0, self.to.0)
    }
}

impl FromStr for Undo {
    type Err = NotFound;

    fn from_str(text: &str) -> Result<Undo, NotFound> {
        let (messages, to) = text.rsplit_once('.').ok_or(NotFound)?;
        let (first, last) = messages.split_once('-').ok_or(NotFound)?;
        let first: Key = first.parse()?;
        let uids = UidRange { first: Uid(first.uid), last: Uid(number(last)?) };
        Ok(Undo { messages: Messages { mailbox: MailboxId(first.mailbox), uids }, to: MailboxId(number(to)?) })
    }
}

/// The sessions of a core's accounts.
#[derive(Debug)]
pub struct Sessions {
    known: BTreeMap<Digest, Session>,
    most: usize,
}

#[derive(Debug)]
struct Session {
    account: AccountId,
    seen: UnixTime,
    said: Option<Said>,
    /// The message that may load what it wants from elsewhere.
    loaded: Option<Key>,
}

impl Sessions {
    /// Room for so many sessions.
    pub fn new(most: usize) -> Sessions {
        Sessions { known: BTreeMap::new(), most }
    }

    /// Somebody has logged in.
    pub fn begin(&mut self, account: AccountId, digest: Digest, now: UnixTime) {
        let of_account = self.known.values().filter(|session| session.account == account).count();
        if of_account >= SESSIONS_MAX {
            self.end_oldest(|session| session.account == account);
        } else if self.known.len() >= self.most {
            self.end_oldest(|_| true);
        }
        self.known.insert(digest, Session { account, seen: now, said: None, loaded: None });
    }

    /// Whether this is a session of the account. It is seen now.
    pub fn is_of(&mut self, account: AccountId, digest: &Digest, now: UnixTime) -> bool {
        let Some(session) = self.known.get_mut(digest) else { return false };
        if now.seconds().saturating_sub(session.seen.seconds()) > IDLE_SECONDS {
            self.known.remove(digest);
            return false;
        }
        session.seen = session.seen.max(now);
        session.account == account
    }

    /// A session is over.
    pub fn end(&mut self, digest: &Digest) {
        self.known.remove(digest);
    }

    /// The next page of a session is to tell this.
    pub fn say(&mut self, digest: &Digest, said: Said) {
        if let Some(session) = self.known.get_mut(digest) {
            session.said = Some(said);
        }
    }

    /// What the page is to tell: once.
    pub fn take_said(&mut self, digest: &Digest) -> Option<Said> {
        self.known.get_mut(digest)?.said.take()
    }

    /// The reader wants this message to load what it wants from elsewhere.
    pub fn load(&mut self, digest: &Digest, key: Key) {
        if let Some(session) = self.known.get_mut(digest) {
            session.loaded = Some(key);
        }
    }

    /// The message of which he wanted that last.
    pub fn loaded(&self, digest: &Digest) -> Option<Key> {
        self.known.get(digest)?.loaded
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    fn end_oldest(&mut self, counts: impl Fn(&Session) -> bool) {
        let counted = self.known.iter().filter(|(_, session)| counts(session));
        if let Some(digest) = counted.min_by_key(|(_, session)| session.seen).map(|(digest, _)| *digest) {
            self.known.remove(&digest);
        }
    }
}
