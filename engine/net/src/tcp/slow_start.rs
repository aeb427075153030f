//! The end of slow start before anything is lost: HyStart++ (RFC 9406). When the round trip grows a queue does, and the
//! path is full; then the window grows slowly for some rounds, and if the round trip stays what it is slow start is over.
//! If it falls again it was a burst that had made it longer, and slow start goes on.
//!
//! The least round trip of a round is that of its first segments, and says nothing about a queue that begins and overflows in
//! one round: where much fits on the path and little into the queue. There another sign comes first and ends slow start at
//! once (Ha and Rhee: Taming the elephants, 2011): acknowledgments come one upon the other for half a round trip, so what was
//! sent in the last round fills half of the path, and what was sent in this one the rest.
//!
//! What others have overtaken on the way makes no train long: behind the last of a round it would add to it how late it is.
//!
//! A round lasts until something is acknowledged, selectively or not, that was sent after it began. All of it lies in the lent send queue:
//! with nothing on the way it is forgotten.

use super::sequence::SequenceNumber;

/// Round trips that are measured before a round is judged.
const SAMPLES: u8 = 8;

/// By how much the least round trip must have grown, in microseconds: an eighth, within these.
const GROWTH_MIN: u32 = 4000;
const GROWTH_MAX: u32 = 16_000;

/// Acknowledgments that follow each other within a sixteenth of the least round trip come one upon the other; or within this,
/// in microseconds, however short it is.
const TRAIN_GAP_MIN: u32 = 2000;

/// Rounds of slow growth.
const ROUNDS: u8 = 5;

/// How the window is to grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pace {
    /// As in slow start.
    Fast,
    /// By a quarter of that.
    Slow,
    /// Slow start is over.
    Over,
}

/// What is known of the rounds of one slow start. Round trips in microseconds.
#[derive(Clone, Copy, Default)]
pub(super) struct SlowStart {
    /// This round is over when more than this is acknowledged: with the first acknowledgment of what was sent in it.
    round_end: Option<SequenceNumber>,
    samples: u8,
    least: Option<u32>,
    least_before: Option<u32>,
    is_over: bool,
    /// When the round's first acknowledgment came, and the last that came upon the one before it.
    train: (u32, u32),
    /// While growth is slow: the round trip that made it so, and for how many rounds it has been.
    alarm: Option<(u32, u8)>,
}

impl SlowStart {
    /// Something has arrived beyond all that had: everything up to `highest`, and everything before `max` was sent. `clock`: now, on
    /// a circle. `sample`: how long it took.
    pub(super) fn arrived(
        &mut self,
        clock: u32,
        highest: SequenceNumber,
        max: SequenceNumber,
        sample: Option<u32>,
    ) -> Pace {
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

    fn pace(&self) -> Pace {
        match self.alarm {
            _ if self.is_over => Pace::Over,
            None => Pace::Fast,
            Some((_, ROUNDS..)) => Pace::Over,
            Some(_) => Pace::Slow,
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

    /// Something has arrived that others had overtaken. The train goes on, but how long it is is told by what comes in order.
    pub(super) fn arrived_late(&mut self, clock: u32) -> Pace {
        self.is_long_train(clock);
        self.pace()
    }

    /// Whether acknowledgments have come one upon the other since the round began, for half of the least round trip.
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
    use super::{Pace, SlowStart};
    use crate::tcp::SequenceNumber;

    /// A round of ten segments whose round trips begin at `least` microseconds and grow; a millisecond between any two, and then
    /// a pause.
    fn round(slow_start: &mut SlowStart, round: u32, least: u32) -> Pace {
        train(slow_start, round, least, 10, 1000)
    }

    /// A round of `count` segments, `gap` microseconds between any two.
    fn train(slow_start: &mut SlowStart, round: u32, least: u32, count: u32, gap: u32) -> Pace {
        let at = |segment: u32| SequenceNumber((round * 1000 + 1 + segment) * 1000);
        let paces = (0..count).map(|place| {
            let clock = 0u32.wrapping_sub(1_000_000).wrapping_add(round * 1_000_000 + place * gap);
            slow_start.arrived(clock, at(place), at(999 + place), Some(least + place * 1000))
        });
        paces.last().unwrap()
    }

    #[test]
    fn slow_start_ends_when_acknowledgments_come_without_a_pause_for_half_a_round_trip() {
        for (least, count, gap, expected) in [
            (100_000, 44, 1200, Pace::Over),
            (100_000, 41, 1200, Pace::Fast),
            // With pauses it is no train.
            (100_000, 44, 7000, Pace::Fast),
            (20_000, 11, 1500, Pace::Over),
            (20_000, 11, 2500, Pace::Fast),
            // On a short path a train is longer than half a round trip, or any path would be full at once.
            (1000, 30, 100, Pace::Fast),
            (1000, 42, 100, Pace::Over),
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
                Pace::Fast,
                "a new round, a new train"
            );
        }
    }

    #[test]
    fn slow_start_ends_when_the_round_trip_has_grown_and_stays_so() {
        let mut slow_start = SlowStart::default();
        assert_eq!(round(&mut slow_start, 0, 20_000), Pace::Fast);
        assert_eq!(round(&mut slow_start, 1, 23_900), Pace::Fast);
        assert_eq!(round(&mut slow_start, 2, 27_900), Pace::Slow);
        for later in 3..7 {
            assert_eq!(round(&mut slow_start, later, 28_000), Pace::Slow);
        }
        assert_eq!(round(&mut slow_start, 7, 28_000), Pace::Over);
    }

    #[test]
    fn a_burst_that_makes_the_round_trip_longer_for_a_while_does_not_end_slow_start() {
        let mut slow_start = SlowStart::default();
        for (place, least) in [100_000, 100_000, 113_000, 112_000].into_iter().enumerate() {
            assert_eq!(round(&mut slow_start, place as u32, least) == Pace::Slow, place == 2);
        }
        for later in 4..20 {
            assert_eq!(round(&mut slow_start, later, 112_000), Pace::Fast);
        }
    }
}
