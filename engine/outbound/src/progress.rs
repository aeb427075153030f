//! What an attempt knows of its entry, and how far it has come.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use machine::Instant;
use shards::LetterId;
use store::{AccountId, Beginning, EntryChange, Origin};

use super::stages::{Taken, Wanted};
use super::why::Why;

/// What is read of the entry.
pub(super) struct EntryReader {
    /// A part of the entry was asked for and has not come; whether it is still wanted.
    pub(super) reading: Option<Wanted>,
    /// The beginning of the entry, until it is opened.
    pub(super) beginning: Beginning,
    /// The signatures of the message, above the rest of the entry.
    pub(super) signatures: Vec<u8>,
    /// How much of the entry was read.
    pub(super) offset: u32,
    /// Octets that were read and are not used yet.
    pub(super) rest: Vec<u8>,
}

/// A delivery to an account of this machine.
#[derive(Default)]
pub(super) struct LocalDelivery {
    /// The delivery under way.
    pub(super) letter: Option<LetterId>,
    /// What stands behind the message in what is delivered here. `None`: it holds no message.
    pub(super) behind: Option<Vec<u8>>,
    /// Deliveries that no longer can be repeated.
    pub(super) arrivals: Vec<(AccountId, Origin)>,
    /// The recipients that `arrivals` were looked up for, as bits.
    pub(super) looked_for: u32,
}

/// The results for the recipients, most of them of this round.
#[derive(Default)]
pub(super) struct Round {
    /// Recipients that are not tried again in this round.
    pub(super) put_off: u16,
    /// What of the entry has changed, and is not durable yet.
    pub(super) to_mark: EntryChange,
    /// Why recipients that are not tried again in this round did not get it.
    pub(super) later: Vec<(u8, Why)>,
    /// Recipients that do not get it, which is to be reported.
    pub(super) failed: VecDeque<(u8, Why)>,
    /// Remote recipients that have the message, as their hosts have said since the core began to
    /// serve. To be reported.
    pub(super) taken: Vec<(u8, Taken)>,
    /// The sender cannot be told in this round that it takes long.
    pub(super) is_delay_put_off: bool,
    /// There is no room for a report, in the mailbox or on the disk.
    pub(super) has_no_room: bool,
    /// A part of it could not be read in this round.
    pub(super) is_damaged: bool,
}

/// What the attempt waits for, and has done so far.
#[derive(Default)]
pub(super) struct Wait {
    /// What it has asked for has not come.
    pub(super) is_waiting: bool,
    /// It has computed as much as one attempt may in a turn.
    pub(super) has_computed: bool,
    /// The destination is not tried before this time.
    pub(super) waits_until: Option<Instant>,
    /// At this destination there are as many attempts as may be, and this one is next.
    pub(super) waits_behind: Option<String>,
    /// The attempt has used a route. When it ends, the next one for that destination may start.
    pub(super) has_set_out: bool,
}

impl Default for EntryReader {
    fn default() -> EntryReader {
        EntryReader {
            reading: None,
            beginning: Beginning::from(0),
            signatures: Vec::new(),
            offset: 0,
            rest: Vec::new(),
        }
    }
}
