//! The parts of a core that its services and sessions use: the network, the store, the clocks of
//! this turn, and the directory.

use alloc::string::String;

use accounts::{Directory, Logins};
use budget::MemoryBudget;
use channel::Links;
use compute::Compute;
use connections::Connections;
use machine::{ConsoleLines, Turn};
use resolver::Names;
use shards::Archive;
use signing::Signer;
use webmail::Clerks;
use webmail::WrittenRows;

use crate::links::Message;

/// The parts of a core.
pub(crate) struct Common {
    pub(crate) turn: Turn,
    pub(crate) connections: Connections,
    /// To and from all other cores.
    pub(crate) links: Links<Message>,
    pub(crate) store: Archive,
    /// Who works on the webmail of this core's accounts.
    pub(crate) clerks: Clerks,
    /// Rows that their lists had.
    pub(crate) rows: WrittenRows,
    pub(crate) hostname: String,
    pub(crate) directory: Directory,
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
}
