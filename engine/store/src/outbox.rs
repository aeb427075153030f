//! Outbox entries. An entry is the delivery state of an outbox message, or of some of its
//! recipients.
//!
//! An entry covers consecutive recipients in the envelope of its message. For each of these
//! recipients, the entry has the progress of the delivery. The addresses are in the message, which
//! the store does not parse.
//!
//! Only `format3` and `format4` define how an entry is stored on the disk.
//!
//! Invariants:
//! - A recipient with a reported result is done. An [`EntryChange`] cannot express a report
//!   without a result.
//! - A recipient that is done stays done. A result or a notice that was reported stays reported.
//! - If a message in an outbox has no entry, a rebuild has restored the message. It is never sent.

/// An outbox entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutboxEntry {
    pub(crate) source: EntrySource,
    pub(crate) state: EntryState,
    /// The number that the entry's first recipient has in the envelope.
    pub(crate) first: u16,
    pub(crate) results: Results,
    pub(crate) is_delay_reported: bool,
    pub(crate) is_damage_reported: bool,
    /// On the disk, the entry is in the flags and keywords of its message, as in format 3.
    pub(crate) is_in_marks: bool,
}

/// The results of the recipients of an entry, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Results {
    /// The form of format 3. To read it, [`Packing`] is needed, which depends on the envelope.
    Packed(u8),
    Explicit {
        /// The number of recipients. 0: unknown.
        count: u8,
        done: u8,
        reported: u8,
    },
}

/// The most recipients of an entry: each has one bit.
pub(crate) const COUNT_MAX: u8 = u8::BITS as u8;

/// A bit for each of `count` recipients. For 0, an unknown number, all bits are set.
pub(crate) fn recipients(count: u8) -> u8 {
    match count {
        0 => u8::MAX,
        count => u8::MAX.checked_shr(u32::from(COUNT_MAX.saturating_sub(count))).unwrap_or(0),
    }
}

/// The way in which the message of an entry came into the outbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntrySource {
    /// A client submitted the message with an envelope.
    Submitted,
    /// The message arrived for an account that forwards its mail. It has no envelope. Its
    /// recipients are the account and the addresses that the account forwards to.
    Forwarded,
}

/// The state of an entry. It determines the next action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryState {
    /// The entry will be sent.
    Queued,
    /// The entry will be sent when an administrator releases it.
    Held,
    /// The entry will not be sent. Its message is returned to the sender.
    Returned,
}

/// How the results of an entry are packed into a byte: the most recipients, and the bits for each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Packing {
    /// Eight recipients: whether each is done.
    #[default]
    Done,
    /// Four recipients: whether each is done, and whether its result was reported.
    DoneAndReported,
}

/// The position of the bits for reported results, with four recipients.
const REPORTED_SHIFT: u32 = 4;

impl Packing {
    /// The most recipients of an entry.
    pub const fn recipients_max(self) -> usize {
        match self {
            Packing::Done => 8,
            Packing::DoneAndReported => 4,
        }
    }

    /// A bit for each possible recipient.
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

    /// A new entry for `count` recipients, beginning with the recipient `first` of the envelope.
    pub const fn submitted(first: u8, count: u8) -> OutboxEntry {
        let results = Results::Explicit { count, done: 0, reported: 0 };
        OutboxEntry { first: first as u16, results, ..OutboxEntry::NEW }
    }

    /// The new entry, with the mark that the sender was told of the delay.
    pub const fn with_delay_reported(self) -> OutboxEntry {
        OutboxEntry { is_delay_reported: true, ..self }
    }

    /// A new entry for a message that is to be forwarded.
    pub const fn forwarded() -> OutboxEntry {
        OutboxEntry { source: EntrySource::Forwarded, ..OutboxEntry::NEW }
    }

    /// The way in which the message came into the outbox.
    pub const fn source(&self) -> EntrySource {
        self.source
    }

    /// The state of the entry.
    pub const fn state(&self) -> EntryState {
        self.state
    }

    /// The number that the entry's first recipient has in the envelope.
    pub fn first(&self) -> usize {
        usize::from(self.first)
    }

    /// The number of recipients. `None`: the envelope, or the addresses that the account forwards
    /// to, determine the number.
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

    /// A bit for each recipient that needs no further report. All of these recipients are done.
    pub fn reported(&self, packing: Packing) -> u16 {
        match (self.results, packing) {
            (Results::Explicit { reported, .. }, _) => reported.into(),
            (Results::Packed(_), Packing::Done) => self.done(packing),
            (Results::Packed(results), Packing::DoneAndReported) => {
                u16::from(results >> REPORTED_SHIFT)
            }
        }
    }

    /// Whether the sender was told of the delay.
    pub const fn is_delay_reported(&self) -> bool {
        self.is_delay_reported
    }

    /// Whether the account was told that the recipients are lost.
    pub const fn is_damage_reported(&self) -> bool {
        self.is_damage_reported
    }
}

/// A change of an entry. It changes only the fields that it names. So another change at the same
/// time keeps its effect.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct EntryChange {
    pub(crate) state: Option<EntryState>,
    done: u16,
    reported: u16,
    pub(crate) is_delay_reported: bool,
    pub(crate) is_damage_reported: bool,
}

impl EntryChange {
    /// Sets the state of the entry.
    pub fn to(state: EntryState) -> EntryChange {
        EntryChange { state: Some(state), ..EntryChange::default() }
    }

    /// Whether the change is empty.
    pub fn is_empty(&self) -> bool {
        *self == EntryChange::default()
    }

    /// The results that the change adds to an entry, in the layout of the entry.
    pub(crate) fn results_for(&self, results: Results, packing: Packing) -> Results {
        match results {
            Results::Packed(_) => Results::Packed(self.results(packing)),
            Results::Explicit { count, .. } => {
                let all = u16::from(recipients(count));
                assert!(
                    (self.done | self.reported) & !all == 0,
                    "a recipient beyond the entry's count"
                );
                let reported = match packing {
                    // The success of these recipients is not reported. So once a recipient is done,
                    // no report is left.
                    Packing::Done => self.done,
                    Packing::DoneAndReported => self.reported,
                };
                Results::Explicit { count, done: self.done as u8, reported: reported as u8 }
            }
        }
    }

    /// The bits that the change sets in an entry's packed results.
    pub(crate) fn results(&self, packing: Packing) -> u8 {
        assert!(self.done & !packing.all() == 0, "a recipient beyond the entry's count");
        let results = match packing {
            Packing::Done => self.done,
            Packing::DoneAndReported => self.done | self.reported << REPORTED_SHIFT,
        };
        results as u8
    }

    /// Marks the recipient with this bit as done.
    pub fn done(&mut self, bit: u8) {
        self.done |= 1 << bit;
    }

    /// Marks the recipient with this bit as done, with no further report.
    pub fn done_and_reported(&mut self, bit: u8) {
        self.done |= 1 << bit;
        self.reported |= 1 << bit;
    }

    /// Notes that the sender was told of the delay.
    pub fn delay_reported(&mut self) {
        self.is_delay_reported = true;
    }

    /// Notes that the account was told that the recipients are lost.
    pub fn damage_reported(&mut self) {
        self.is_damage_reported = true;
    }
}

/// The additional memory of an outbox message that has an entry.
pub const RESIDENT_BYTES_QUEUED: usize = 72;

// A node of a map has eleven places, of which at least five are used, with keys of four bytes.
const _: () =
    assert!((size_of::<OutboxEntry>() + size_of::<u32>()) * 11 / 5 + 32 <= RESIDENT_BYTES_QUEUED);
