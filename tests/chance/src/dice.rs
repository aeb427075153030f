//! Replayable randomness from a seed (xorshift64*; Vigna, 2016): for tests, never for keys.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A pseudorandom number generator.
#[derive(Clone, Debug, Hash)]
pub struct Dice {
    state: u64,
}

impl Dice {
    /// The dice of `seed`.
    pub fn new(seed: u64) -> Dice {
        // Similar seeds must not have similar first numbers.
        Dice { state: seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    /// The dice of `seed` for one concern. Their rolls do not depend on the rolls for other
    /// concerns.
    pub fn stream(seed: u64, concern: &str) -> Dice {
        let mut hasher = DefaultHasher::new();
        (seed, concern).hash(&mut hasher);
        Dice::new(hasher.finish())
    }

    /// The next 64 bits.
    pub fn roll(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`, which must not be zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound
    }

    /// An index of a list with `count` elements. `count` must not be zero.
    pub fn index(&mut self, count: usize) -> usize {
        self.below(count as u64) as usize
    }

    /// A number below `bound`, which must not be zero. Each order of magnitude is equally likely.
    pub fn skewed(&mut self, bound: u64) -> u64 {
        let orders = u64::from(bound.ilog2()) + 1;
        let bits = self.below(orders) + 1;
        (self.roll() & ((1 << bits) - 1)) % bound
    }

    /// A number around `mean`, from 0.5 to 1.5 times `mean`.
    pub fn around(&mut self, mean: u64) -> u64 {
        (mean / 2).saturating_add(self.below(mean.saturating_add(1)))
    }

    /// Whether an event with one chance in `chances` happens.
    pub fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    /// Whether an event with `chances` in 10,000 happens.
    pub fn happens(&mut self, chances: u64) -> bool {
        self.below(10_000) < chances
    }

    /// Fills `bytes` with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let roll = self.roll().to_le_bytes();
            chunk.iter_mut().zip(roll).for_each(|(byte, value)| *byte = value);
        }
    }
}
