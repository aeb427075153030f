//! What all sessions of a core share: the network, the store, the clocks of this turn, and who is who.

use alloc::string::String;

use budget::MemoryBudget;
use channel::Links;
use compute::Compute;
use connections::Connections;
use http::{Remembered, Site};
use machine::Turn;
use message::DateTimeNow;
use resolver::Names;
use signing::Signer;
use webmail::WrittenRows;

use crate::archive::Archive;
use crate::clerks::Clerks;
use crate::console::ConsoleLines;
use crate::directory::Directory;
use crate::holds::Holds;
use crate::links::Message;
use crate::logins::{self, Logins};

/// What all sessions share.
pub(crate) struct Common {
    pub(crate) turn: Turn,
    pub(crate) date_now: DateTimeNow,
    pub(crate) connections: Connections,
    /// To and from all other cores.
    pub(crate) links: Links<Message>,
    pub(crate) store: Archive,
    /// Who works on the webmail of this core's accounts.
    pub(crate) clerks: Clerks,
    /// Their letters that have not left yet.
    pub(crate) holds: Holds,
    /// Rows that their lists had.
    pub(crate) rows: WrittenRows,
    pub(crate) hostname: String,
    pub(crate) directory: Directory,
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
    /// With what letters of our own users are signed.
    pub(crate) signer: Signer,
    /// What clients make this core keep.
    pub(crate) memory: MemoryBudget,
    /// Bytes of bodies that this core's sessions of HTTP may hold.
    pub(crate) bodies: usize,
    /// Bytes of replies that they hold until clients have taken them.
    pub(crate) replies: usize,
    /// How many either may be.
    pub(crate) bodies_max: usize,
}

impl Common {
    /// What logs clients in, and the parts that it uses.
    pub(crate) fn logins(&mut self) -> (&mut Logins, logins::Context<'_>) {
        let Common { turn, connections, store, directory, compute, logins, .. } = self;
        (logins, logins::Context { turn: *turn, connections, store, directory, compute })
    }
}
