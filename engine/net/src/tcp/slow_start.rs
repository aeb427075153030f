//! The end of slow start before anything is lost: HyStart++ (RFC 9406). When the round trip grows a queue does, and the
//! path is full; then the window grows slowly for some rounds, and if the round trip stays what it is slow start is over.
//! If it falls again it was a burst that had made it longer, and slow start goes on.
//!
//! A round lasts until what was sent when it began is acknowledged. All of it lies in the lent send queue: with nothing on
//! the way it is forgotten.

use super::sequence::SequenceNumber;

/// Round trips that are measured before a round is judged.
const SAMPLES: u8 = 8;

/// By how much the least round trip must have grown, in microseconds: an eighth, within these.
const GROWTH_MIN: u32 = 4000;
const GROWTH_MAX: u32 = 16_000;

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
    /// This round is over when this is acknowledged.
    round_end: Option<SequenceNumber>,
    samples: u8,
    least: Option<u32>,
    least_before: Option<u32>,
    /// While growth is slow: the round trip that made it so, and for how many rounds it has been.
    alarm: Option<(u32, u8)>,
}

impl SlowStart {
    /// Everything before `una` is acknowledged, and everything before `max` was sent. `sample`: how long it took.
    pub(super) fn acknowledged(&mut self, una: SequenceNumber, max: SequenceNumber, sample: Option<u32>) -> Pace {
        if self.round_end.is_none_or(|end| !una.is_before(end)) {
            self.begin_round(max);
        }
        if let Some(sample) = sample {
            self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
            self.samples = self.samples.saturating_add(1);
        }
        if let (Some(least), Some(before)) = (self.least, self.least_before)
            && self.samples >= SAMPLES
        {
            self.judge(least, before);
        }
        match self.alarm {
            None => Pace::Fast,
            Some((_, ROUNDS..)) => Pace::Over,
            Some(_) => Pace::Slow,
        }
    }

    fn begin_round(&mut self, max: SequenceNumber) {
        if let Some((_, rounds)) = &mut self.alarm {
            *rounds += 1;
        }
        self.least_before = self.least.take().or(self.least_before);
        self.samples = 0;
        self.round_end = Some(max);
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

    /// A round of ten segments whose round trips begin at `least` microseconds and grow.
    fn round(slow_start: &mut SlowStart, round: u32, least: u32) -> Pace {
        let at = |segment: u32| SequenceNumber((round * 10 + segment) * 1000);
        let paces = (0..10).map(|place| slow_start.acknowledged(at(place), at(place + 10), Some(least + place * 1000)));
        paces.last().unwrap()
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
