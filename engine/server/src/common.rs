//! What all sessions of a core share: the network, the store, the clocks of this turn, and who is who.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use http::Site;
use machine::{Instant, Micros, UnixTime};
use message::DateTimeNow;
use net::{ConnectionId, Net};
use smtp::{ForwardPath, RecipientRefusal};
use store::{AccountId, Outcome};
use tasks::{DelayQueue, Entry, ResumeQueue};

use crate::archive::Archive;
use crate::configuration::Access;
use crate::directory::Directory;
use crate::identifier::Identifiers;
use crate::logins::Logins;
use crate::pop3_service::Orphan;
use crate::smtp_service::{TRACE_BYTES_MAX, Transaction};

/// How long a connection may take to end once its session is over. Whoever reads slowly needs some of it.
const LINGER: Micros = Micros::from_secs(180);

/// The points at which a frame may wait for the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Point {
    /// An SMTP session: the store has room for more of its message.
    MessageRoom,
    /// An SMTP session: its message is on the disk.
    MessageStored,
    /// A POP3 session: bytes of a message have been read.
    MessageRead,
    /// A POP3 session: its deletions are on the disk.
    Deleted,
    /// The engine itself: an account has been made.
    AccountMade,
}

impl Point {
    const ALL: [Point; 5] =
        [Point::MessageRoom, Point::MessageStored, Point::MessageRead, Point::Deleted, Point::AccountMade];

    pub(crate) fn entry(self) -> Entry {
        Entry(self as u32)
    }

    pub(crate) fn of(entry: Entry) -> Option<Point> {
        Point::ALL.get(entry.0 as usize).copied()
    }
}

/// What all sessions share.
pub(crate) struct Common {
    /// The time of this turn.
    pub(crate) now: Instant,
    /// The time of day of this turn.
    pub(crate) wall: UnixTime,
    pub(crate) date_now: DateTimeNow,
    pub(crate) net: Net,
    pub(crate) store: Archive,
    /// Deadlines of sessions, one each.
    pub(crate) deadlines: DelayQueue,
    /// Sessions that go on in the resume phase.
    pub(crate) ready: ResumeQueue,
    pub(crate) hostname: String,
    pub(crate) directory: Directory,
    pub(crate) access: Access,
    pub(crate) identifiers: Identifiers,
    pub(crate) smtp_settings: smtp::Settings,
    /// Records for SMTP transactions that nobody uses.
    #[expect(clippy::vec_box, reason = "a session takes a pointer, not the record")]
    pub(crate) transactions: Vec<Box<Transaction>>,
    /// Where the trace fields of a message are put together.
    pub(crate) trace: Box<[u8; TRACE_BYTES_MAX]>,
    pub(crate) site: Site,
    pub(crate) logs_requests: bool,
    /// Requests of this turn that are to be told of on the console.
    pub(crate) request_log: Vec<String>,
    pub(crate) logins: Logins,
    /// Deletions whose clients have left.
    pub(crate) orphans: Vec<Orphan>,
    /// Connections above which callers are sent away.
    pub(crate) crowd: usize,
    /// The connection of the session that acts, once it was reset by us.
    pub(crate) broken: Option<ConnectionId>,
}

impl Common {
    /// Queues bytes of a reply. Half a reply would be taken for a whole one of another meaning: what does not fit, which
    /// only happens to replies that nobody could wait for room with, ends the connection.
    pub(crate) fn say(&mut self, connection: ConnectionId, bytes: &[u8]) {
        if self.net.send(self.now, connection, bytes) < bytes.len() {
            self.break_off(connection);
        }
    }

    pub(crate) fn set_deadline(&mut self, connection: ConnectionId, after: Option<Micros>) {
        match after {
            Some(after) => self.deadlines.set(connection.0, self.now + after),
            None => self.deadlines.cancel(connection.0),
        }
    }

    /// Ends the connection once everything queued is sent, or when that takes too long.
    pub(crate) fn close(&mut self, connection: ConnectionId) {
        self.net.close(connection);
        self.set_deadline(connection, Some(LINGER));
    }

    /// Resets the connection of the session that acts: it is over, and the session with it.
    pub(crate) fn break_off(&mut self, connection: ConnectionId) {
        self.net.abort(connection);
        self.broken = Some(connection);
    }

    /// Whether there are so many connections that a new caller is sent away.
    pub(crate) fn is_crowded(&self) -> bool {
        self.net.connection_count() > self.crowd
    }

    pub(crate) fn recipient(&self, path: &ForwardPath<'_>) -> Result<AccountId, RecipientRefusal> {
        self.directory.recipient(&self.store, |address| self.net.has_address(address), path)
    }

    /// Gives back what came for somebody who is gone.
    pub(crate) fn forget(&mut self, outcome: Outcome) {
        if let Outcome::Body(body) = outcome {
            self.store.give_back(body);
        }
    }
}
