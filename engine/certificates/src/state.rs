//! The state of the certificates on one core, and the context of its functions.
//!
//! Invariant: `events` is empty between two calls of the engine.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use channel::Ticket;
use connections::Connections;
use machine::{ConsoleLines, CoreId, Instant, Turn, UnixTime};
use shards::ShardedStore;
use store::{AccountId, DeliveryId, Uid};
use tasks::{FrameId, Subsystem};
use tls::Certificate;

use super::expiry::Expiry;
use super::rollout::Rollout;
use super::shown::{
    CertificateOrigin, CertificateUpload, ListVersion, Replaced, Shown, ShownCertificate,
};

tasks::points! {
    /// The wait points at the store.
    pub(crate) enum CertificateWaitPoint of Subsystem::Certificates;
    /// A stored certificate is read.
    Read,
    /// A certificate is stored.
    Kept,
    /// A superseded certificate is removed.
    Removed,
}

/// The frame of these wait points, which no connection has.
pub(super) const FRAME: FrameId = FrameId::new(u32::MAX, 0);

/// The account with the certificates. Its name is not a valid address, so the account receives no
/// mail, and no client can log in to it.
pub const ACCOUNT: &str = "certificates";

/// The parts of a core that this crate uses.
pub struct CertificateContext<'c> {
    /// The clocks of this turn.
    pub turn: Turn,
    /// All connections of this core.
    pub connections: &'c mut Connections,
    /// The stores of all cores, used as one store.
    pub store: &'c mut ShardedStore,
    /// The console lines for the operator.
    pub console: &'c mut ConsoleLines,
}

/// A request to the rest of the engine.
pub enum CertificateEvent {
    /// Sends an upload to the core that owns the account.
    Upload(CoreId, Box<CertificateUpload>),
    /// Tells all other cores to show this list. The number of these cores must be passed to
    /// [`Certificates::others_are_told`].
    Show(Arc<Shown>),
    /// Tells the owner of the account that this core shows the list of this version.
    Shows(CoreId, ListVersion),
    /// Replies to the session that has uploaded a certificate.
    Replaced(Ticket, Replaced),
    /// Drops cached responses, since what they say about TLS has changed.
    PagesAreOutdated,
}

/// The certificates of one core.
pub struct Certificates {
    pub(super) core: CoreId,
    pub(super) shown: Arc<Shown>,
    /// Uploads that wait, the oldest first.
    pub(super) uploads: VecDeque<CertificateUpload>,
    pub(super) expect: Expect,
    /// Stored certificates that the disk could not read. They are not removed, since a later start
    /// may read them.
    pub(super) unread: Vec<Uid>,
    /// The expiry dates of the certificates in force. Only the first core checks them.
    pub(super) expiry: Expiry,
    pub(super) events: VecDeque<CertificateEvent>,
}

/// The event that the replacement of certificates waits for.
pub(super) enum Expect {
    /// An upload.
    Upload,
    /// The stored messages from before the restart.
    Stored(Box<CertificateLoading>),
    /// The store, while it stores an upload.
    Kept(Box<Keeping>),
    /// The other cores, until they show the new list.
    Shown(Rollout),
}

/// An upload that is being stored.
pub(super) struct Keeping {
    pub(super) upload: CertificateUpload,
    pub(super) account: AccountId,
    pub(super) delivery: DeliveryId,
    /// Bytes that the store has accepted.
    pub(super) taken: usize,
    /// The list that is in force once the upload is stored.
    pub(super) next: Shown,
}

/// The progress through the messages from before the restart.
pub(super) struct CertificateLoading {
    pub(super) account: AccountId,
    /// The messages that are left, the oldest first.
    pub(super) messages: VecDeque<StoredCertificate>,
    /// The part of the first message that was read.
    pub(super) pem: Vec<u8>,
    pub(super) is_under_way: bool,
    /// The number of times that the disk could not read the next part, and the time at which it is
    /// read again.
    pub(super) failed: u8,
    pub(super) again: Option<Instant>,
}

/// A stored certificate.
pub(super) struct StoredCertificate {
    pub(super) uid: Uid,
    pub(super) octets: usize,
    pub(super) date: UnixTime,
}

impl Certificates {
    /// `configured`: the first one is the default for unknown names.
    pub fn new(core: CoreId, configured: Vec<Certificate>) -> Certificates {
        let expiry =
            if core == CoreId::FIRST { Expiry::of(&configured) } else { Expiry::default() };
        let entry = |certificate: Certificate| ShownCertificate {
            since: certificate.valid_from(),
            certificate,
            origin: CertificateOrigin::Configuration,
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

    /// The certificates in force.
    pub fn shown(&self) -> &Arc<Shown> {
        &self.shown
    }

    /// The next request to the rest of the engine.
    pub fn next_event(&mut self) -> Option<CertificateEvent> {
        self.events.pop_front()
    }

    /// Whether the account for certificates must be created.
    pub fn wants_account(connections: &Connections, store: &ShardedStore) -> bool {
        connections.tls().has_certificates() && store.own.store.find(ACCOUNT).is_none()
    }

    /// Whether uploads wait.
    #[inline]
    pub fn has_uploads(&self) -> bool {
        !self.uploads.is_empty()
    }

    /// Whether an upload waits that can be processed now.
    pub fn can_take_up(&self) -> bool {
        self.has_uploads() && matches!(self.expect, Expect::Upload)
    }

    /// The next time at which this core has to read a part again, or to check for expiry, without
    /// an event.
    pub fn next_deadline(&self) -> Instant {
        Instant::or_never(self.read_again_at()).min(Instant::or_never(self.expiry.next_deadline()))
    }

    /// Whether the check for expiry is due.
    #[inline]
    pub fn is_expiry_check_due(&self, now: Instant) -> bool {
        self.expiry.is_due(now)
    }

    /// Does the work that is due: warns about certificates that expire soon, and processes uploads.
    #[cold]
    pub fn run(&mut self, cx: &mut CertificateContext<'_>) {
        if self.is_expiry_check_due(cx.turn.now) {
            self.expiry.check(cx.turn, cx.console);
        }
        if self.has_uploads() {
            self.take_up(cx);
        }
    }

    /// The time at which a part that the disk could not read is read again.
    fn read_again_at(&self) -> Option<Instant> {
        match &self.expect {
            Expect::Stored(reading) => reading.again,
            _ => None,
        }
    }
}
