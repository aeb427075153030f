//! Randomness from a seed, only for tests: it is not secret.
//!
//! [`Dice`] is the generator of all tests, models and simulations. [`seed`] is for code that draws
//! randomness by itself: ring, and the code that uses ring. Each thread sets its own seed, so that
//! parallel tests do not affect each other.
#![forbid(unsafe_code)]

mod dice;

use std::cell::Cell;

pub use dice::Dice;

use randomness::Source;

thread_local! {
    static STATE: Cell<Option<u64>> = const { Cell::new(None) };
}

/// A source of randomness: SplitMix64, one byte of each number. A thread without a seed gets an
/// error. It does not use [`Dice`], because the digests of recorded seeds depend on these bytes.
const SOURCE: Source = |bytes| {
    let Some(mut state) = STATE.get() else { return false };
    for byte in bytes {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        *byte = (mixed >> 56) as u8;
    }
    STATE.set(Some(state));
    true
};

/// From now on all randomness of this thread depends on `seed`.
pub fn seed(seed: u64) {
    randomness::provide(&SOURCE);
    STATE.set(Some(seed));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw() -> Result<[u8; 16], randomness::Error> {
        let mut bytes = [0; 16];
        randomness::getrandom(&mut bytes).map(|()| bytes)
    }

    #[test]
    fn a_seed_determines_the_randomness_of_its_thread() {
        seed(1);
        let first = draw().unwrap();
        let second = draw().unwrap();
        assert_ne!(first, second);
        let elsewhere = std::thread::spawn(|| {
            assert_eq!(draw(), Err(randomness::Error), "no seed, no randomness");
            seed(1);
            draw().unwrap()
        });
        assert_eq!(elsewhere.join().unwrap(), first);
        seed(1);
        assert_eq!(draw().unwrap(), first);
        seed(2);
        assert_ne!(draw().unwrap(), first);
    }
}
