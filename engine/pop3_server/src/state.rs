//! The server's state of a POP3 connection outside its session.

use alloc::boxed::Box;
use alloc::vec::Vec;

use accounts::logins::LoginAttempt;
use pop3::DeletionError;
use shards::MaildropSnapshot;
use store::{Outcome, Refusal, Uid, UidRange};
use tasks::{Countdown, FrameId};

/// The most octets of one read: see [`store::Body::bytes`].
const PART_OCTETS_MAX: u32 = 32_672;

/// Bytes around a message: `+OK`, its size, the end of its last line, and the line of one dot.
const AROUND_BYTES_MAX: usize = 64;

/// The state of a connection outside its session.
#[derive(Default)]
pub(super) struct State {
    pub(super) attempt: Option<Box<LoginAttempt>>,
    pub(super) maildrop: Option<Box<MaildropSnapshot>>,
    pub(super) reading: Option<MessageRead>,
    pub(super) read: ReadState,
    pub(super) deletion: Option<Box<Deletion>>,
}

impl State {
    /// Whether the read waits for buffer space.
    pub(super) fn wants_room(&self) -> bool {
        self.read == ReadState::WantsRoom
    }
}

/// A message that the session has asked for.
pub(super) struct MessageRead {
    pub(super) uid: Uid,
    pub(super) octets: u32,
    /// Octets that the session has taken.
    pub(super) taken: u32,
    /// The store's refusal of the read. The next turn reports it to the session.
    pub(super) refused: Option<Refusal>,
}

/// The state of the session's read.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ReadState {
    #[default]
    Idle,
    /// The read waits for buffer space.
    WantsRoom,
    /// The read waits because the store is busy.
    WantsPlace,
    UnderWay,
    /// The read is in progress, but the session no longer needs its result.
    Unwanted,
}

impl MessageRead {
    /// The buffer space for the next part in the worst case, in which each line is a dot that is
    /// doubled.
    pub(super) fn room_needed(&self) -> usize {
        let part = (self.octets - self.taken).min(PART_OCTETS_MAX) as usize;
        part + part / 3 + AROUND_BYTES_MAX
    }
}

/// A deletion in progress. It ends when all removals were requested and none is outstanding.
pub(super) struct Deletion {
    /// Ranges that remain to be removed.
    pub(super) ranges: Vec<UidRange>,
    pub(super) outstanding: Countdown,
    pub(super) result: Result<(), DeletionError>,
}

/// A deletion after its client has disconnected: its outstanding removals continue.
pub(super) struct Orphan {
    pub(super) frame: FrameId,
    pub(super) outstanding: Countdown,
    pub(super) maildrop: Box<MaildropSnapshot>,
}

impl Deletion {
    pub(super) fn part_ended(&mut self, outcome: &Outcome) {
        if !matches!(outcome, Outcome::Changed) {
            self.result = Err(DeletionError);
        }
        self.outstanding.arrived();
    }
}
