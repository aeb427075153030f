//! Loss detection: from acknowledgments to what was lost. Fast retransmit (RFC 5681 §3.2) with NewReno's partial
//! acknowledgments (RFC 6582) and limited transmit (RFC 3042). SACK's scoreboard and RACK's clock will live here.
//!
//! `recover` is the number after the last byte that had been sent when the last loss was found: acknowledgments up to
//! there tell of that same loss, and cut the window no second time.

use super::sequence::SequenceNumber;

/// How many duplicates tell of a loss.
const DUPLICATES: u8 = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Nothing is known to be lost.
    Open,
    /// A loss was found by duplicates; it is being repaired.
    Recovering,
}

/// What a duplicate acknowledgment says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Duplicate {
    /// Nothing certain yet: a new segment may be sent in the place of the one that has left the network.
    MayBeLoss,
    /// The first unacknowledged segment is lost: send it again.
    Loss,
    /// Another segment has left the network.
    Left,
    /// Nothing: the duplicate is an echo of what was retransmitted.
    Echo,
}

/// What an acknowledgment of new bytes says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    /// All is well.
    Good,
    /// Another segment of the same window is lost: send the first unacknowledged one again.
    Partial,
    /// Everything that was on the way when the loss was found has arrived.
    Recovered,
}

/// Loss detection of one connection.
#[derive(Clone, Copy)]
#[repr(Rust, packed)]
pub(super) struct Recovery {
    recover: SequenceNumber,
    duplicates: u8,
    phase: Phase,
}

impl Recovery {
    pub(super) fn new(iss: SequenceNumber) -> Recovery {
        Recovery { recover: iss, duplicates: 0, phase: Phase::Open }
    }

    /// Segments beyond the congestion window that limited transmit allows (RFC 3042).
    pub(super) fn extra_segments(&self) -> u32 {
        if self.phase == Phase::Open { u32::from(self.duplicates.min(DUPLICATES - 1)) } else { 0 }
    }

    /// A duplicate acknowledgment of `una` has arrived while everything up to `max` has been sent.
    pub(super) fn duplicate_arrived(&mut self, una: SequenceNumber, max: SequenceNumber) -> Duplicate {
        self.duplicates = self.duplicates.saturating_add(1);
        if self.phase == Phase::Recovering {
            return Duplicate::Left;
        }
        if !una.is_after(self.recover) {
            self.duplicates = 0;
            return Duplicate::Echo;
        }
        if self.duplicates < DUPLICATES {
            return Duplicate::MayBeLoss;
        }
        self.phase = Phase::Recovering;
        self.recover = max;
        Duplicate::Loss
    }

    /// Bytes up to `acknowledgment` were acknowledged for the first time.
    pub(super) fn acknowledged(&mut self, acknowledgment: SequenceNumber) -> Progress {
        self.duplicates = 0;
        if self.phase == Phase::Recovering {
            if acknowledgment.is_before(self.recover) {
                return Progress::Partial;
            }
            self.phase = Phase::Open;
            return Progress::Recovered;
        }
        // Keeps `recover` from falling so far behind that the circle turns it into the future.
        if acknowledgment.is_after(self.recover) {
            self.recover = acknowledgment - 1;
        }
        Progress::Good
    }

    /// The retransmission timer expired while everything up to `max` had been sent.
    pub(super) fn timed_out(&mut self, max: SequenceNumber) {
        self.phase = Phase::Open;
        self.duplicates = 0;
        self.recover = max;
    }
}
