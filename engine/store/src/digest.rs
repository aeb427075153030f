//! The digest of a record: a number below 2^127 for any bytes, under secrets of the disk. The disk
//! stores a keyed hash of it (`hash`).
//!
//! A record has thousands of bytes, and an unpredictable keyed hash takes several instructions for
//! each byte. So the bytes first go through a faster function, which only makes equal results for
//! different bytes unlikely. It takes one multiplication for 16 bytes (NH: Black, Halevi, Krawczyk,
//! Krovetz and Rogaway, UMAC, 1999). Each 128 bytes take one step of a polynomial modulo 2^127 - 1
//! (as in VHASH: Krovetz and Dai, 2007). Section 1 of `docs/format.md` defines the digest.
//!
//! Invariants:
//! - Two different strings have the same digest for at most one choice of the secrets in 2^61. This
//!   holds for strings that an attacker chooses, if the attacker has seen nothing that depends on
//!   the secrets. No attacker has seen such data: digests are only input of the hash, and hashes do
//!   not leave the disk.
//! - The value after each step is at most 2^127 - 1, so that no sum of the next step overflows.

/// Bytes that one step of the polynomial takes.
const BLOCK_BYTES: usize = 128;
const PAIR_BYTES: usize = 16;
const PAIRS: usize = BLOCK_BYTES / PAIR_BYTES;

/// 2^127 - 1, a prime.
const PRIME: u128 = u128::MAX >> 1;
/// The point at which the polynomial is evaluated is below 2^124.
const PLACE_MASK: u128 = u128::MAX >> 4;
/// The sum of a block is taken modulo 2^126.
const SUM_MASK: u128 = u128::MAX >> 2;

/// The secrets of digests.
#[derive(Clone)]
pub(crate) struct Digester {
    place: u128,
    /// Two words for each pair of words of a block.
    words: [[u64; 2]; PAIRS],
}

impl Digester {
    /// `secret` returns the next 16 secret bytes.
    pub(crate) fn new(mut secret: impl FnMut() -> [u8; 16]) -> Digester {
        let place = u128::from_le_bytes(secret()) & PLACE_MASK;
        Digester { place, words: [(); PAIRS].map(|()| words(&secret())) }
    }

    /// The digest of `bytes`.
    pub(crate) fn digest(&self, bytes: &[u8]) -> u128 {
        let (blocks, rest) = bytes.as_chunks::<BLOCK_BYTES>();
        // The length comes first, so that trailing zeros change the digest.
        let value = blocks.iter().fold(bytes.len() as u128, |value, block| {
            let (pairs, _) = block.as_chunks();
            self.next(value, self.sum(pairs))
        });
        let value = if rest.is_empty() { value } else { self.next(value, self.sum_of_rest(rest)) };
        if value == PRIME { 0 } else { value }
    }

    /// The sum of an incomplete block, as if zeros followed.
    fn sum_of_rest(&self, rest: &[u8]) -> u128 {
        let (pairs, rest) = rest.as_chunks::<PAIR_BYTES>();
        let sum = self.sum(pairs);
        let (false, Some(secrets)) = (rest.is_empty(), self.words.get(pairs.len())) else {
            return sum;
        };
        let mut last = [0; PAIR_BYTES];
        last.iter_mut().zip(rest).for_each(|(place, byte)| *place = *byte);
        sum.wrapping_add(product(&last, secrets))
    }

    /// NH: the sum of the pairs of at most one block.
    #[inline]
    fn sum(&self, pairs: &[[u8; PAIR_BYTES]]) -> u128 {
        pairs
            .iter()
            .zip(&self.words)
            .fold(0, |sum, (pair, secrets)| sum.wrapping_add(product(pair, secrets)))
    }

    /// The next step of the polynomial: `value` times the point, plus the sum of a block, modulo
    /// the prime.
    #[inline]
    fn next(&self, value: u128, sum: u128) -> u128 {
        let ([value_low, value_high], [place_low, place_high]) =
            (halves(value), halves(self.place));
        let across = value_high * place_low + value_low * place_high;
        // Modulo the prime, 2^127 is 1 and 2^128 is 2.
        let high = ((value_high * place_high) << 1) + (across >> 63) + (across << 65 >> 1);
        reduced(reduced(reduced(value_low * place_low) + reduced(high)) + (sum & SUM_MASK))
    }
}

/// The product of the two words of a pair, each with its secret added.
#[inline]
fn product(pair: &[u8; PAIR_BYTES], [first, second]: &[u64; 2]) -> u128 {
    let [low, high] = words(pair);
    u128::from(low.wrapping_add(*first)) * u128::from(high.wrapping_add(*second))
}

#[inline]
fn words(pair: &[u8; PAIR_BYTES]) -> [u64; 2] {
    let number = u128::from_le_bytes(*pair);
    [number as u64, (number >> 64) as u64]
}

#[inline]
fn halves(number: u128) -> [u128; 2] {
    [u128::from(number as u64), number >> 64]
}

/// A number that is congruent to `number` modulo the prime, and at most 2^127.
#[inline]
fn reduced(number: u128) -> u128 {
    (number & PRIME) + (number >> 127)
}

#[cfg(test)]
mod tests {
    use super::{Digester, PRIME};
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn digester(seed: u8) -> Digester {
        let mut number = u128::from(seed) + 1;
        Digester::new(|| {
            number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).rotate_left(37)
                ^ 0x55;
            number.to_le_bytes()
        })
    }

    /// The product modulo the prime, one bit of `b` after another.
    fn times(a: u128, b: u128) -> u128 {
        (0..128).rev().fold(0, |sum, bit| (sum * 2 % PRIME + (b >> bit & 1) * a) % PRIME)
    }

    /// The definition of section 1 of `docs/format.md`, word for word.
    fn by_definition(digester: &Digester, bytes: &[u8]) -> u128 {
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().next_multiple_of(16), 0);
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
        padded.chunks(128).fold(bytes.len() as u128, |value, block| {
            let mut sum = 0_u128;
            for (pair, [first, second]) in block.chunks(16).zip(&digester.words) {
                let a = word(&pair[..8]).wrapping_add(*first);
                let b = word(&pair[8..]).wrapping_add(*second);
                sum = sum.wrapping_add(u128::from(a) * u128::from(b));
            }
            (times(value, digester.place) + sum % (1 << 126)) % PRIME
        })
    }

    proptest! {
        #[test]
        fn digest_equals_its_definition(bytes in proptest::collection::vec(any::<u8>(), 0..1000), seed: u8) {
            let digester = digester(seed);
            prop_assert_eq!(digester.digest(&bytes), by_definition(&digester, &bytes));
        }

        #[test]
        fn digest_changes_with_a_bit_or_the_length(
            mut bytes in proptest::collection::vec(any::<u8>(), 1..600), seed: u8, at: prop::sample::Index, bit in 0u8..8,
        ) {
            let digester = digester(seed);
            let before = digester.digest(&bytes);
            let mut longer = bytes.clone();
            longer.push(0);
            prop_assert_ne!(digester.digest(&longer), before);
            let at = at.index(bytes.len());
            bytes[at] ^= 1_u8 << bit;
            prop_assert_ne!(digester.digest(&bytes), before);
        }
    }

    #[test]
    fn digest_of_the_largest_numbers_does_not_overflow() {
        for (place, word) in [(u128::MAX, u64::MAX), (u128::MAX, 0), (0, u64::MAX), (1, 1)] {
            let digester = Digester { place: place & super::PLACE_MASK, words: [[word; 2]; 8] };
            for byte in [0, 1, 0xff] {
                let bytes: Vec<u8> = (0..4096).map(|_| byte).collect();
                assert_eq!(digester.digest(&bytes), by_definition(&digester, &bytes));
            }
        }
    }
}
