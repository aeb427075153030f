//! What all sessions of a core share: the network, the store, the clocks of this turn, and who is who.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use budget::MemoryBudget;
use dns::Name;
use http::{Remembered, Site};
use machine::{Micros, Turn};
use mail::{Greylist, Strangers};
use message::DateTimeNow;
use net::{ConnectionId, Net};
use smtp::{ForwardPath, RecipientRefusal};
use store::{AccountId, Outcome};
use tasks::{DelayQueue, Entry, FrameId, GateId, Gates, Passage, ResumeQueue};
use tls::Text;
use webmail::WrittenRows;

use crate::archive::Archive;
use crate::certificates::Upload;
use crate::clerks::Clerks;
use crate::configuration::{Access, Relay};
use crate::console::Console;
use crate::directory::Directory;
use crate::filter::Filter;
use crate::holds::Holds;
use crate::identifier::Identifiers;
use crate::jobs::Jobs;
use crate::logins::Logins;
use crate::names::Names;
use crate::pop3_service::Orphan;
use crate::queue::Queue;
use crate::secure::{Channel, Secure, room_for_plaintext};
use crate::session::Caller;
use crate::signing::Signer;
use crate::smtp_service::lists::Lists;
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
    /// The same: a certificate that was kept is read.
    CertificateRead,
    /// The same: a certificate is kept.
    CertificateKept,
    /// The same: one that no longer counts is removed.
    CertificateRemoved,
    /// A letter for accounts of several cores: one of them has room for more of it.
    PartRoom,
    /// The same: this core may know now whether it has space for its part.
    PartSpace,
    /// The same: one of them has all of it, and space for it.
    PartPrepared,
    /// The same: one of them has it on the disk.
    PartStored,
    /// A clerk of the webmail: something that he asked the store for.
    Clerk,
    /// The same of somebody who brings a letter to all whom it is for.
    Carrier,
    /// A courier, who brings a letter to others: something that he asked the store for.
    Courier,
    /// The same: a part of the letter.
    CourierRead,
    /// What an administrator wants of the queue: something that it asked the store for.
    Order,
}

impl Point {
    const ALL: [Point; 17] = [
        Point::MessageRoom,
        Point::MessageStored,
        Point::MessageRead,
        Point::Deleted,
        Point::AccountMade,
        Point::CertificateRead,
        Point::CertificateKept,
        Point::CertificateRemoved,
        Point::PartRoom,
        Point::PartSpace,
        Point::PartPrepared,
        Point::PartStored,
        Point::Clerk,
        Point::Carrier,
        Point::Courier,
        Point::CourierRead,
        Point::Order,
    ];

    pub(crate) const fn entry(self) -> Entry {
        Entry(self as u32)
    }

    pub(crate) fn of(entry: Entry) -> Option<Point> {
        Point::ALL.get(entry.0 as usize).copied()
    }
}

/// Who may go a step in a handshake of TLS: one frame a turn.
pub(crate) const HANDSHAKES: GateId = GateId(0);
/// Who may compute a signature under a message, or what one is worth: one frame a turn.
pub(crate) const SIGNATURES: GateId = GateId(1);
/// How many gates there are.
pub(crate) const GATES: usize = 2;

/// What all sessions share.
pub(crate) struct Common {
    pub(crate) turn: Turn,
    pub(crate) date_now: DateTimeNow,
    pub(crate) net: Net,
    pub(crate) secure: Secure,
    pub(crate) store: Archive,
    /// Who works on the webmail of this core's accounts.
    pub(crate) clerks: Clerks,
    /// Their letters that have not left yet.
    pub(crate) holds: Holds,
    /// What is to leave from their outboxes.
    pub(crate) queue: Queue,
    /// By which hosts it does.
    pub(crate) relay: Relay,
    /// Rows that their lists had.
    pub(crate) rows: WrittenRows,
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
    pub(crate) pages: Remembered,
    /// Whether pages are given over TLS alone.
    pub(crate) https_only: bool,
    pub(crate) logs_requests: bool,
    pub(crate) console: Console,
    pub(crate) gates: Gates,
    pub(crate) logins: Logins,
    /// Password hashes and signatures under way.
    pub(crate) jobs: Jobs,
    /// What is asked of name servers.
    pub(crate) names: Names,
    /// How long strangers are listened to before they are greeted.
    pub(crate) greeting_delay: Option<Micros>,
    /// What strangers have done lately.
    pub(crate) strangers: Strangers,
    /// Of whom letters are put off until they come again, if they are.
    pub(crate) greylist: Option<Greylist>,
    /// Lists of addresses that strangers are looked up in.
    pub(crate) lists: Lists,
    /// Who is asked about their letters, if somebody is.
    pub(crate) filter: Option<Filter>,
    /// Domains whose word counts of whose a letter was that they have handed on.
    pub(crate) trusted_sealers: Vec<Name>,
    /// Senders about whom something is being found out.
    pub(crate) checks: usize,
    /// What is kept of messages while it is found out whose they are.
    pub(crate) kept_for_proofs: MemoryBudget,
    /// With what letters of our own users are signed.
    pub(crate) signer: Signer,
    /// Certificates that are to take the place of others, the first one first.
    pub(crate) uploads: VecDeque<Upload>,
    /// Whether so little memory is left in the machine that connections have to end.
    pub(crate) is_low_on_memory: bool,
    /// What clients make this core keep.
    pub(crate) memory: MemoryBudget,
    /// Bytes of bodies that this core's sessions of HTTP may hold.
    pub(crate) bodies: usize,
    /// Bytes of replies that they hold until clients have taken them.
    pub(crate) replies: usize,
    /// How many either may be.
    pub(crate) bodies_max: usize,
    /// Deletions whose clients have left.
    pub(crate) orphans: Vec<Orphan>,
    /// Connections above which callers are sent away.
    pub(crate) crowd: usize,
    /// Connections above which addresses that have very many lose some.
    pub(crate) tight: usize,
    /// The connection of the session that acts, once it was reset by us.
    pub(crate) broken: Option<ConnectionId>,
}

impl Common {
    /// Queues bytes of a reply. Half a reply would be taken for a whole one of another meaning: what does not fit, which
    /// only happens to replies that nobody could wait for room with, ends the connection.
    pub(crate) fn say(&mut self, caller: Caller, bytes: &[u8]) {
        if self.send(caller, bytes) < bytes.len() {
            self.break_off(caller.connection);
        }
    }

    /// Queues as much of `bytes` as there is room for, and says how much that was.
    #[inline]
    pub(crate) fn send(&mut self, caller: Caller, bytes: &[u8]) -> usize {
        match caller.channel {
            Channel::Plain => self.net.send(self.turn.now, caller.connection, bytes),
            Channel::Tls => self.secure.send(self.turn.now, caller.connection, bytes.into(), &mut self.net),
        }
    }

    /// Queues the first part of `text`, which is said as [`Common::say`] does, and as much of the second as there is room for, sealed together. Says how much of
    /// the second that was.
    pub(crate) fn seal(&mut self, caller: Caller, text: Text<'_>) -> usize {
        let taken = self.secure.send(self.turn.now, caller.connection, text, &mut self.net);
        if taken < text.first.len() {
            self.break_off(caller.connection);
        }
        taken.saturating_sub(text.first.len())
    }

    /// How many bytes [`Common::send`] would take now.
    pub(crate) fn send_room(&self, caller: Caller) -> usize {
        let room = self.net.send_room(caller.connection);
        if caller.channel == Channel::Tls { room_for_plaintext(room) } else { room }
    }

    /// The same, but so that no more than `limit` bytes wait for the client to take them.
    pub(crate) fn send_room_within(&self, caller: Caller, limit: usize) -> usize {
        let room = self.net.send_room_within(caller.connection, limit);
        if caller.channel == Channel::Tls { room_for_plaintext(room) } else { room }
    }

    pub(crate) fn set_deadline(&mut self, connection: ConnectionId, after: Option<Micros>) {
        match after {
            Some(after) => self.deadlines.set(connection.0, self.turn.now + after),
            None => self.deadlines.cancel(connection.0),
        }
    }

    /// Ends the connection once everything queued is sent, or when that takes too long.
    pub(crate) fn close(&mut self, caller: Caller) {
        if caller.channel == Channel::Tls {
            self.secure.close(self.turn.now, caller.connection, &mut self.net);
        }
        self.net.close(caller.connection);
        self.set_deadline(caller.connection, Some(LINGER));
    }

    /// Resets the connection of the session that acts: it is over, and the session with it.
    pub(crate) fn break_off(&mut self, connection: ConnectionId) {
        self.net.abort(connection);
        self.broken = Some(connection);
    }

    /// `frame`, which waits at no gate, asks to pass this one: the phase that computes resumes it when its turn has come.
    pub(crate) fn enter(&mut self, gate: GateId, frame: FrameId) {
        let (Passage::Entered | Passage::Queued) = self.gates.enter(gate, frame);
    }

    /// Whose turn it is.
    pub(crate) fn owner_of(&self, gate: GateId) -> Option<FrameId> {
        self.gates.owner(gate)
    }

    /// Whether it is the turn of `frame`.
    pub(crate) fn has_entered(&self, gate: GateId, frame: FrameId) -> bool {
        self.owner_of(gate) == Some(frame)
    }

    /// `frame` has had its turn, or does not want it any more.
    pub(crate) fn leave(&mut self, gate: GateId, frame: FrameId) {
        if self.has_entered(gate, frame) {
            self.gates.leave(gate, frame);
        } else {
            self.gates.abandon(frame);
        }
    }

    /// Whether there are so many connections, or is so little memory, that a new caller is sent
    /// away.
    pub(crate) fn is_crowded(&self) -> bool {
        self.net.connection_count() > self.crowd || self.is_low_on_memory
    }

    /// Whether addresses that have very many connections have to lose some, so that a new caller
    /// need not be sent away.
    pub(crate) fn is_tight(&self) -> bool {
        self.net.connection_count() > self.tight
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
