//! What a core knows of certificates, and what it works with.
//!
//! Invariant: `events` is empty between two calls of the engine.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use channel::Ticket;
use connections::Connections;
use machine::{ConsoleLines, CoreId, Instant, Turn, UnixTime};
use shards::Archive;
use store::{AccountId, DeliveryId, Uid};
use tasks::{FrameId, Subsystem};
use tls::Certificate;

use super::expiry::Expiry;
use super::rollout::Rollout;
use super::shown::{Entry, ListVersion, Origin, Replaced, Shown, Upload};

tasks::points! {
    /// Where the certificates wait for the store.
    pub(crate) enum Point of Subsystem::Certificates;
    /// One that was kept is read.
    Read,
    /// One is kept.
    Kept,
    /// One that no longer counts is removed.
    Removed,
}

/// The frame of what waits here: no connection has it.
pub(super) const FRAME: FrameId = FrameId::new(u32::MAX, 0);

/// The account whose messages are certificates. No address is like it, so nothing can be sent to
/// it, and no client can log in.
pub const ACCOUNT: &str = "certificates";

/// The parts of a core that certificates use.
pub struct Context<'c> {
    /// The clocks of this turn.
    pub turn: Turn,
    /// All connections of this core.
    pub connections: &'c mut Connections,
    /// The stores of all cores, as one.
    pub store: &'c mut Archive,
    /// Lines for the operator.
    pub console: &'c mut ConsoleLines,
}

/// What others are to be told.
pub enum Event {
    /// A certificate goes to the core that keeps them.
    Upload(CoreId, Box<Upload>),
    /// All other cores are to show these. [`Certificates::others_are_told`] gets their number.
    Show(Arc<Shown>),
    /// To the core that keeps certificates: this one shows the list of this version.
    Shows(CoreId, ListVersion),
    /// To the session that has sent a certificate.
    Replaced(Ticket, Replaced),
    /// Responses that are kept say something about TLS that is not so any more.
    PagesAreOutdated,
}

/// What a core knows of certificates.
pub struct Certificates {
    pub(super) core: CoreId,
    pub(super) shown: Arc<Shown>,
    /// Those that are to take the place of others, the first one first.
    pub(super) uploads: VecDeque<Upload>,
    pub(super) expect: Expect,
    /// Stored certificates that the disk could not read. They may be in force, and are not removed.
    pub(super) unread: Vec<Uid>,
    /// When those that are shown end. The first core looks at that.
    pub(super) expiry: Expiry,
    pub(super) events: VecDeque<Event>,
}

/// What the replacing waits for.
pub(super) enum Expect {
    /// A certificate.
    Upload,
    /// Messages of former lives.
    Letters(Box<Reading>),
    /// The store, which keeps one.
    Kept(Box<Keeping>),
    /// Other cores, to show one.
    Shown(Rollout),
}

/// A certificate that the store takes.
pub(super) struct Keeping {
    pub(super) upload: Upload,
    pub(super) account: AccountId,
    pub(super) letter: DeliveryId,
    /// Octets of it that the store has taken.
    pub(super) taken: usize,
    /// What is shown once it is kept.
    pub(super) next: Shown,
}

/// What is read of former lives.
pub(super) struct Reading {
    pub(super) account: AccountId,
    /// The oldest first.
    pub(super) letters: VecDeque<Letter>,
    /// What of the first of them is there.
    pub(super) pem: Vec<u8>,
    pub(super) is_under_way: bool,
    /// How often the disk could not read the next part, and when it is read again.
    pub(super) failed: u8,
    pub(super) again: Option<Instant>,
}

/// A certificate as it is kept.
pub(super) struct Letter {
    pub(super) uid: Uid,
    pub(super) octets: usize,
    pub(super) date: UnixTime,
}

impl Certificates {
    /// `configured`: the one for all other names first.
    pub fn new(core: CoreId, configured: Vec<Certificate>) -> Certificates {
        let expiry =
            if core == CoreId::FIRST { Expiry::of(&configured) } else { Expiry::default() };
        let entry = |certificate: Certificate| Entry {
            since: certificate.valid_from(),
            certificate,
            origin: Origin::Configuration,
        };
        let shown = Shown {
            version: ListVersion::default(),
            all: configured.into_iter().map(entry).collect(),
        };
        Certificates {
            core,
            shown: Arc::new(shown),
            uploads: VecDeque::new(),
            expect: Expect::Upload,
            unread: Vec::new(),
            expiry,
            events: VecDeque::new(),
        }
    }

    /// The certificates that are in force.
    pub fn shown(&self) -> &Arc<Shown> {
        &self.shown
    }

    /// The next thing that others are to be told.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether the account in which certificates are kept is to be made.
    pub fn wants_account(connections: &Connections, store: &Archive) -> bool {
        connections.tls().is_there() && store.own.store.find(ACCOUNT).is_none()
    }

    /// Whether certificates are to take the place of others.
    #[inline]
    pub fn has_uploads(&self) -> bool {
        !self.uploads.is_empty()
    }

    /// Whether a certificate is there, and nothing keeps it from being looked at.
    pub fn can_take_up(&self) -> bool {
        self.has_uploads() && matches!(self.expect, Expect::Upload)
    }

    /// When to go on without being told: a part is read again, or the ends are looked at.
    pub fn next_deadline(&self) -> Instant {
        Instant::or_never(self.read_again_at()).min(Instant::or_never(self.expiry.next_deadline()))
    }

    /// Whether it is time to say which certificates end soon.
    #[inline]
    pub fn is_to_look_at_ends(&self, now: Instant) -> bool {
        self.expiry.is_due(now)
    }

    /// Does what there is to do: says which certificates end soon, and takes up those that were
    /// sent.
    #[cold]
    pub fn run(&mut self, cx: &mut Context<'_>) {
        if self.is_to_look_at_ends(cx.turn.now) {
            self.expiry.look(cx.turn, cx.console);
        }
        if self.has_uploads() {
            self.take_up(cx);
        }
    }

    /// When a part is read again that the disk could not read.
    fn read_again_at(&self) -> Option<Instant> {
        match &self.expect {
            Expect::Letters(reading) => reading.again,
            _ => None,
        }
    }
}
