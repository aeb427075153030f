//! Ends slow start before a loss: HyStart++ (RFC 9406). If the round trip gets longer, a queue
//! grows, so the path is full. Then the window grows slowly for some rounds. If the round trip
//! stays long, slow start ends. If the round trip falls again, only a burst had made it longer, and
//! slow start continues.
//!
//! The minimum round trip of a round comes from the first segments of the round. So it does not
//! show a queue that begins and overflows within one round, as on a long path with a short queue.
//! There, another sign ends slow start at once (Ha and Rhee: Taming the elephants, 2011):
//! acknowledgments arrive back to back, as a train, for half of a round trip. Then the data of the
//! last round fills half of the path, and the data of this round fills the other half.
//!
//! A reordered segment does not lengthen such a train. Otherwise its delay at the end of a round
//! would count as a part of the train's length.
//!
//! A round lasts until data that was sent in it is acknowledged, selectively or not. All of this is
//! part of the borrowed send queue, and is dropped when nothing is in flight.

use super::sequence::SequenceNumber;

/// The number of round trip samples before a round is judged.
const SAMPLES: u8 = 8;

/// From this growth of the minimum round trip on, the window grows slowly: an eighth of the round
/// trip, within these bounds in microseconds.
const GROWTH_MIN: u32 = 4000;
const GROWTH_MAX: u32 = 16_000;

/// Acknowledgments are back to back if they follow each other within a sixteenth of the minimum
/// round trip, or within this many microseconds.
const TRAIN_GAP_MIN: u32 = 2000;

/// The number of rounds of slow growth.
const ROUNDS: u8 = 5;

/// How the window grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WindowGrowth {
    /// By the acknowledged bytes, as in slow start.
    Fast,
    /// By a quarter of the acknowledged bytes.
    Slow,
    /// Slow start is over.
    Over,
}

/// The rounds of one slow start. Round trips are in microseconds.
#[derive(Clone, Copy, Default)]
pub(super) struct SlowStart {
    /// The round ends with the first acknowledgment beyond this number, that is, with the first
    /// acknowledgment of data sent in the round.
    round_end: Option<SequenceNumber>,
    samples: u8,
    least: Option<u32>,
    least_before: Option<u32>,
    is_over: bool,
    /// The times of the round's first acknowledgment, and of the last acknowledgment that came back
    /// to back.
    train: (u32, u32),
    /// While growth is slow: the round trip that caused it, and the number of rounds since.
    alarm: Option<(u32, u8)>,
}

impl SlowStart {
    /// Handles new data that has arrived beyond all earlier data, up to `highest`. All data before
    /// `max` was sent. `clock`: now, in microseconds modulo 2^32. `sample`: the round trip of the
    /// new data.
    pub(super) fn arrived(
        &mut self,
        clock: u32,
        highest: SequenceNumber,
        max: SequenceNumber,
        sample: Option<u32>,
    ) -> WindowGrowth {
        if self.round_end.is_none_or(|end| highest.is_after(end)) {
            self.begin_round(clock, max);
        }
        self.is_over |= self.is_long_train(clock) && self.alarm.is_none();
        if let Some(sample) = sample {
            self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
            self.samples = self.samples.saturating_add(1);
        }
        if let (Some(least), Some(before)) = (self.least, self.least_before)
            && self.samples >= SAMPLES
        {
            self.judge(least, before);
        }
        self.pace()
    }

    fn pace(&self) -> WindowGrowth {
        match self.alarm {
            _ if self.is_over => WindowGrowth::Over,
            None => WindowGrowth::Fast,
            Some((_, ROUNDS..)) => WindowGrowth::Over,
            Some(_) => WindowGrowth::Slow,
        }
    }

    fn begin_round(&mut self, clock: u32, max: SequenceNumber) {
        if let Some((_, rounds)) = &mut self.alarm {
            *rounds += 1;
        }
        self.least_before = self.least.take().or(self.least_before);
        self.samples = 0;
        self.train = (clock, clock);
        self.round_end = Some(max);
    }

    /// Handles a reordered segment. The train continues, but only in-order data judges its length.
    pub(super) fn arrived_late(&mut self, clock: u32) -> WindowGrowth {
        self.is_long_train(clock);
        self.pace()
    }

    /// Whether acknowledgments have come back to back since the round began, for half of the
    /// minimum round trip.
    fn is_long_train(&mut self, clock: u32) -> bool {
        let (began, last) = self.train;
        let Some(least) = self.least.into_iter().chain(self.least_before).min() else {
            return false;
        };
        if clock.wrapping_sub(last) > (least / 16).max(TRAIN_GAP_MIN) {
            return false;
        }
        self.train = (began, clock);
        clock.wrapping_sub(began) > (least / 2).max(GROWTH_MIN)
    }

    fn judge(&mut self, least: u32, before: u32) {
        match self.alarm {
            None if least >= before.saturating_add((before / 8).clamp(GROWTH_MIN, GROWTH_MAX)) => {
                self.alarm = Some((least, 0));
            }
            Some((round_trip, _)) if least < round_trip => self.alarm = None,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SlowStart, WindowGrowth};
    use crate::tcp::SequenceNumber;

    /// A round of ten segments. Their round trips begin at `least` microseconds and grow. They
    /// arrive one millisecond apart, and a pause follows.
    fn round(slow_start: &mut SlowStart, round: u32, least: u32) -> WindowGrowth {
        train(slow_start, round, least, 10, 1000)
    }

    /// A round of `count` segments, `gap` microseconds apart.
    fn train(
        slow_start: &mut SlowStart,
        round: u32,
        least: u32,
        count: u32,
        gap: u32,
    ) -> WindowGrowth {
        let at = |segment: u32| SequenceNumber((round * 1000 + 1 + segment) * 1000);
        let paces = (0..count).map(|place| {
            let clock = 0u32.wrapping_sub(1_000_000).wrapping_add(round * 1_000_000 + place * gap);
            slow_start.arrived(clock, at(place), at(999 + place), Some(least + place * 1000))
        });
        paces.last().unwrap()
    }

    #[test]
    fn slow_start_ends_after_an_ack_train_of_half_a_round_trip() {
        for (least, count, gap, expected) in [
            (100_000, 44, 1200, WindowGrowth::Over),
            (100_000, 41, 1200, WindowGrowth::Fast),
            // Acknowledgments with pauses are no train.
            (100_000, 44, 7000, WindowGrowth::Fast),
            (20_000, 11, 1500, WindowGrowth::Over),
            (20_000, 11, 2500, WindowGrowth::Fast),
            // On a short path a train must be longer than half a round trip, or any path would seem
            // full at once.
            (1000, 30, 100, WindowGrowth::Fast),
            (1000, 42, 100, WindowGrowth::Over),
        ] {
            let mut slow_start = SlowStart::default();
            assert_eq!(
                train(&mut slow_start, 0, least, count, gap),
                expected,
                "{count} at {gap} of {least}"
            );
        }
        let mut slow_start = SlowStart::default();
        for late in 0..9 {
            assert_eq!(
                train(&mut slow_start, late, 100_000, 30, 1000),
                WindowGrowth::Fast,
                "a new round begins a new train"
            );
        }
    }

    #[test]
    fn slow_start_ends_when_the_round_trip_stays_longer() {
        let mut slow_start = SlowStart::default();
        assert_eq!(round(&mut slow_start, 0, 20_000), WindowGrowth::Fast);
        assert_eq!(round(&mut slow_start, 1, 23_900), WindowGrowth::Fast);
        assert_eq!(round(&mut slow_start, 2, 27_900), WindowGrowth::Slow);
        for later in 3..7 {
            assert_eq!(round(&mut slow_start, later, 28_000), WindowGrowth::Slow);
        }
        assert_eq!(round(&mut slow_start, 7, 28_000), WindowGrowth::Over);
    }

    #[test]
    fn a_short_rise_of_the_round_trip_does_not_end_slow_start() {
        let mut slow_start = SlowStart::default();
        for (place, least) in [100_000, 100_000, 113_000, 112_000].into_iter().enumerate() {
            assert_eq!(
                round(&mut slow_start, place as u32, least) == WindowGrowth::Slow,
                place == 2
            );
        }
        for later in 4..20 {
            assert_eq!(round(&mut slow_start, later, 112_000), WindowGrowth::Fast);
        }
    }
}
