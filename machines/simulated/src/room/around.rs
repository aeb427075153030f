//! What a client of a room is given when it does something, and whether it goes on.

use chance::Dice;

use super::chronicle::Chronicle;
use super::ledger::Ledger;
use crate::Client;

/// Whether a client goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    GoesOn,
    IsDone,
}

/// What a client has around it when it does something.
pub(super) struct Around<'a> {
    pub(super) host: &'a mut Client,
    pub(super) ledger: &'a mut Ledger,
    pub(super) dice: &'a mut Dice,
    pub(super) story: &'a mut Chronicle,
    /// A machine whose disk has failed may refuse what is there.
    pub(super) disk_has_failed: bool,
}
