//! A small generator of random numbers, so that a run is replayed by its seed.

/// Xorshift; its state is never 0.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Evenly spread below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    /// Around `mean`, from half of it to one and a half.
    pub(crate) fn around(&mut self, mean: u64) -> u64 {
        (mean / 2).saturating_add(self.below(mean.saturating_add(1)))
    }
}
