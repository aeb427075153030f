//! What all sessions of a core share: the network, the store, the clocks of this turn, and who is who.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use budget::MemoryBudget;
use compute::Compute;
use configuration::Relay;
use connections::Connections;
use dns::Name;
use http::{Remembered, Site};
use machine::{Micros, Turn};
use mail::{Greylist, Strangers};
use message::DateTimeNow;
use resolver::Names;
use resolver::Ourselves;
use smtp::{ForwardPath, RecipientRefusal};
use store::{AccountId, Outcome};
use webmail::WrittenRows;

use crate::archive::Archive;
use crate::certificates::Upload;
use crate::clerks::Clerks;
use crate::console::ConsoleLines;
use crate::directory::Directory;
use crate::filter::Filter;
use crate::holds::Holds;
use crate::identifier::Identifiers;
use crate::logins::{self, Logins};
use crate::pop3_service::Orphan;
use crate::queue::Queue;
use crate::signing::Signer;
use crate::smtp_service::lists::Lists;
use crate::smtp_service::{TRACE_BYTES_MAX, Transaction};

/// What all sessions share.
pub(crate) struct Common {
    pub(crate) turn: Turn,
    pub(crate) date_now: DateTimeNow,
    pub(crate) connections: Connections,
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
    pub(crate) hostname: String,
    pub(crate) directory: Directory,
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
    pub(crate) console: ConsoleLines,
    pub(crate) logins: Logins,
    /// Password hashes and signatures under way.
    pub(crate) compute: Compute,
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
}

impl Common {
    /// What we are, and what we can reach.
    pub(crate) fn ourselves(&self) -> Ourselves {
        Ourselves::of(&self.hostname, self.connections.net(), &self.relay.private_networks)
    }

    pub(crate) fn recipient(&self, path: &ForwardPath<'_>) -> Result<AccountId, RecipientRefusal> {
        self.directory.recipient(&self.store, |address| self.connections.net().has_address(address), path)
    }

    /// What logs clients in, and the parts that it uses.
    pub(crate) fn logins(&mut self) -> (&mut Logins, logins::Context<'_>) {
        let Common { turn, connections, store, directory, compute, logins, .. } = self;
        (logins, logins::Context { turn: *turn, connections, store, directory, compute })
    }

    /// Gives back what came for somebody who is gone.
    pub(crate) fn forget(&mut self, outcome: Outcome) {
        if let Outcome::Body(body) = outcome {
            self.store.give_back(body);
        }
    }
}
