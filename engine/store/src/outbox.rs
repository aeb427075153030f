//! Entries: what an outbox says of each message in it beside the message itself.
//!
//! An entry stands for neighbouring recipients of its message's envelope, and says of each how far
//! the message has come. The addresses are in the message; the store does not look into that.
//!
//! How an entry lies on the disk is told in `format3` and `format4` alone.
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
    pub(crate) first: u16,
    pub(crate) results: Results,
    pub(crate) is_delay_reported: bool,
    pub(crate) is_damage_reported: bool,
    /// The disk has it in the marks of its message, as format 3 keeps it.
    pub(crate) is_in_marks: bool,
}

/// What is known of each recipient of an entry, a bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Results {
    /// As format 3 has it: how to read it follows from the envelope, by [`Packing`].
    Packed(u8),
    Explicit {
        /// How many recipients it stands for. 0: the entry does not say.
        count: u8,
        done: u8,
        reported: u8,
    },
}

/// The most recipients of an entry: each has a bit.
pub(crate) const COUNT_MAX: u8 = u8::BITS as u8;

/// The bits of so many recipients; 0: how many there are is not known.
pub(crate) fn recipients(count: u8) -> u8 {
    match count {
        0 => u8::MAX,
        count => u8::MAX.checked_shr(u32::from(COUNT_MAX.saturating_sub(count))).unwrap_or(0),
    }
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
        results: Results::Explicit { count: 0, done: 0, reported: 0 },
        is_delay_reported: false,
        is_damage_reported: false,
        is_in_marks: false,
    };

    /// A new entry for the recipient with this number, and those behind it: `count` in all.
    pub const fn submitted(first: u8, count: u8) -> OutboxEntry {
        let results = Results::Explicit { count, done: 0, reported: 0 };
        OutboxEntry { first: first as u16, results, ..OutboxEntry::NEW }
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

    /// How many recipients it stands for. `None`: as many as follow from its envelope.
    pub fn count(&self) -> Option<usize> {
        match self.results {
            Results::Packed(_) | Results::Explicit { count: 0, .. } => None,
            Results::Explicit { count, .. } => Some(count.into()),
        }
    }

    /// A bit for each recipient that is done; the first recipient has bit 0.
    pub fn done(&self, packing: Packing) -> u16 {
        match self.results {
            Results::Packed(results) => u16::from(results) & packing.all(),
            Results::Explicit { done, .. } => done.into(),
        }
    }

    /// A bit for each recipient of which nothing is to be reported any more. All of them are done.
    pub fn reported(&self, packing: Packing) -> u16 {
        match (self.results, packing) {
            (Results::Explicit { reported, .. }, _) => reported.into(),
            (Results::Packed(_), Packing::Done) => self.done(packing),
            (Results::Packed(results), Packing::DoneAndReported) => {
                u16::from(results >> REPORTED_SHIFT)
            }
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

    /// What it adds to an entry's results, in their layout.
    pub(crate) fn results_for(&self, results: Results, packing: Packing) -> Results {
        match results {
            Results::Packed(_) => Results::Packed(self.results(packing)),
            Results::Explicit { count, .. } => {
                let all = u16::from(recipients(count));
                assert!(
                    (self.done | self.reported) & !all == 0,
                    "a recipient that an entry does not stand for"
                );
                let reported = match packing {
                    // No success is to be reported of these recipients: one that is done is
                    // reported.
                    Packing::Done => self.done,
                    Packing::DoneAndReported => self.reported,
                };
                Results::Explicit { count, done: self.done as u8, reported: reported as u8 }
            }
        }
    }

    /// The bits that it sets among an entry's packed results.
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
pub const RESIDENT_BYTES_QUEUED: usize = 72;

// A node of a map has eleven places, five of which are used at least, with keys of four bytes.
const _: () =
    assert!((size_of::<OutboxEntry>() + size_of::<u32>()) * 11 / 5 + 32 <= RESIDENT_BYTES_QUEUED);
