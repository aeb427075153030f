//! The context of a client's step, and whether the client continues.

use chance::Dice;

use super::chronicle::Chronicle;
use super::model::Model;
use crate::Client;

/// Whether a client continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ClientProgress {
    Continues,
    Done,
}

/// The parts of the room that a client may use during one step.
pub(super) struct StepContext<'a> {
    pub(super) host: &'a mut Client,
    pub(super) model: &'a mut Model,
    pub(super) dice: &'a mut Dice,
    pub(super) story: &'a mut Chronicle,
    /// After a disk failure the machine may refuse requests for messages that exist.
    pub(super) disk_has_failed: bool,
}
