//! Entries: what an outbox says of each message in it beside the message itself.
//!
//! An entry stands for neighbouring recipients of its message's envelope, and says of each how far
//! the message has come. The addresses are in the message; the store does not look into that.
//!
//! How an entry lies on the disk is told in `format3` alone.
//!
//! Invariants:
//! - A recipient with a reported result is done: [`EntryChange`] cannot say otherwise.
//! - Nothing takes back that a recipient is done, or that something was reported.
//! - A message in an outbox without an entry is never sent: a rebuild has found it.

/// An entry of an outbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutboxEntry {
    pub(crate) source: EntrySource,
    pub(crate) state: EntryState,
    /// The number of its first recipient in the envelope.
    pub(crate) first: u8,
    /// What is known of each recipient. How to read it follows from the envelope: [`Packing`].
    pub(crate) results: u8,
    pub(crate) is_delay_reported: bool,
    pub(crate) is_damage_reported: bool,
}

/// How an entry's message came into the outbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntrySource {
    /// In an envelope, to be sent.
    Submitted,
    /// For an account that forwards its mail. It has no envelope: its recipients are the account
    /// and the addresses to which that forwards.
    Forwarded,
}

/// What is to become of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryState {
    /// It is sent.
    Queued,
    /// It is sent when an administrator releases it.
    Held,
    /// It is not sent any more, and goes back to its sender.
    Returned,
}

/// How many recipients an entry stands for at most, and what it says of each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Packing {
    /// Of eight: whether they are done.
    #[default]
    Done,
    /// Of four: the same, and whether that was reported.
    DoneAndReported,
}

/// Where the bits of what was reported stand, of four recipients.
const REPORTED_SHIFT: u32 = 4;

impl Packing {
    /// The most recipients of an entry.
    pub const fn recipients_max(self) -> usize {
        match self {
            Packing::Done => 8,
            Packing::DoneAndReported => 4,
        }
    }

    /// A bit for each of them.
    fn all(self) -> u16 {
        (1 << self.recipients_max()) - 1
    }
}

impl OutboxEntry {
    const NEW: OutboxEntry = OutboxEntry {
        source: EntrySource::Submitted,
        state: EntryState::Queued,
        first: 0,
        results: 0,
        is_delay_reported: false,
        is_damage_reported: false,
    };

    /// A new entry for the recipient with this number, and those behind it.
    pub const fn submitted(first: u8) -> OutboxEntry {
        OutboxEntry { first, ..OutboxEntry::NEW }
    }

    /// A new entry for a message that is to be forwarded.
    pub const fn forwarded() -> OutboxEntry {
        OutboxEntry { source: EntrySource::Forwarded, ..OutboxEntry::NEW }
    }

    /// How its message came here.
    pub const fn source(&self) -> EntrySource {
        self.source
    }

    /// What is to become of it.
    pub const fn state(&self) -> EntryState {
        self.state
    }

    /// The number of its first recipient in the envelope.
    pub fn first(&self) -> usize {
        usize::from(self.first)
    }

    /// A bit for each recipient that is done; the first recipient has bit 0.
    pub fn done(&self, packing: Packing) -> u16 {
        u16::from(self.results) & packing.all()
    }

    /// A bit for each recipient of which nothing is to be reported any more. All of them are done.
    pub fn reported(&self, packing: Packing) -> u16 {
        match packing {
            Packing::Done => self.done(packing),
            Packing::DoneAndReported => u16::from(self.results >> REPORTED_SHIFT),
        }
    }

    /// Whether the sender was told that it takes long.
    pub const fn is_delay_reported(&self) -> bool {
        self.is_delay_reported
    }

    /// Whether the account was told that nothing says for which recipients it is.
    pub const fn is_damage_reported(&self) -> bool {
        self.is_damage_reported
    }
}

/// A change of an entry. What it does not name stays as it is, also where another change is made at
/// the same time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct EntryChange {
    pub(crate) state: Option<EntryState>,
    done: u16,
    reported: u16,
    pub(crate) is_delay_reported: bool,
    pub(crate) is_damage_reported: bool,
}

impl EntryChange {
    /// The entry has this state from now on.
    pub fn to(state: EntryState) -> EntryChange {
        EntryChange { state: Some(state), ..EntryChange::default() }
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        *self == EntryChange::default()
    }

    /// The bits that it sets among an entry's results.
    pub(crate) fn results(&self, packing: Packing) -> u8 {
        assert!(self.done & !packing.all() == 0, "a recipient that an entry does not stand for");
        let results = match packing {
            Packing::Done => self.done,
            Packing::DoneAndReported => self.done | self.reported << REPORTED_SHIFT,
        };
        results as u8
    }

    /// The recipient with this bit is done.
    pub fn done(&mut self, bit: u8) {
        self.done |= 1 << bit;
    }

    /// The recipient with this bit is done, and nothing is to be reported of it any more.
    pub fn done_and_reported(&mut self, bit: u8) {
        self.done |= 1 << bit;
        self.reported |= 1 << bit;
    }

    /// The sender was told that it takes long.
    pub fn delay_reported(&mut self) {
        self.is_delay_reported = true;
    }

    /// The account was told that nothing says for which recipients it is.
    pub fn damage_reported(&mut self) {
        self.is_damage_reported = true;
    }
}

/// What a message in an outbox takes in memory beside the rest if it has an entry.
pub const RESIDENT_BYTES_QUEUED: usize = 64;

// A node of a map has eleven places, five of which are used at least, with keys of four bytes.
const _: () = assert!((size_of::<OutboxEntry>() + size_of::<u32>()) * 11 / 5 + 32 <= RESIDENT_BYTES_QUEUED);
