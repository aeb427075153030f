//! Randomness that a seed replays (xorshift64*; Vigna, 2016): for tests, never for keys.

/// A generator of numbers that look random and are the same for the same seed.
#[derive(Clone, Debug)]
pub struct Dice {
    state: u64,
}

impl Dice {
    /// The dice of `seed`.
    pub fn new(seed: u64) -> Dice {
        // Seeds that differ little must not begin alike.
        Dice { state: seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    /// The next 64 bits.
    pub fn roll(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`, which is not zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound
    }

    /// Whether an event with one chance in `chances` happened.
    pub fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let roll = self.roll().to_le_bytes();
            chunk.iter_mut().zip(roll).for_each(|(byte, value)| *byte = value);
        }
    }
}
