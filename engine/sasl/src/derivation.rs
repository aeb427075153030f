//! PBKDF2 (RFC 8018 section 5.2), step by step: what makes a verifier or a proof of a password costs milliseconds, and no handler may.
//!
//! The library of that name hashes all at once, and is the oracle of the tests.

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::hash::{HASH_BYTES, SALT_BYTES, keyed};
use crate::verifier::{ITERATIONS, Verifier};

/// Iterations of one step: under 200 us, however the processor hashes.
const STEP_ITERATIONS: u32 = 256;

/// A password that is being hashed again and again.
pub(crate) struct Stretch {
    /// How many iterations are to come.
    left: u32,
    /// HMAC under the password.
    hmac: Hmac<Sha256>,
    /// What the last iteration made, and all of them together.
    last: [u8; HASH_BYTES],
    salted_password: [u8; HASH_BYTES],
}

impl Stretch {
    pub(crate) fn of(password: &[u8], salt: &[u8], iterations: u32) -> Stretch {
        let hmac = keyed(password);
        let first_block = 1_u32.to_be_bytes();
        let last = hmac
            .clone()
            .chain_update(salt)
            .chain_update(first_block)
            .finalize()
            .into_bytes()
            .into();
        Stretch { left: iterations.saturating_sub(1), hmac, last, salted_password: last }
    }

    /// Goes a step on. `SaltedPassword` once it is made; then there is no further step.
    pub(crate) fn step(&mut self) -> Option<[u8; HASH_BYTES]> {
        let iterations = self.left.min(STEP_ITERATIONS);
        for _ in 0..iterations {
            self.last = self.hmac.clone().chain_update(self.last).finalize().into_bytes().into();
            self.salted_password
                .iter_mut()
                .zip(self.last)
                .for_each(|(byte, hashed)| *byte ^= hashed);
        }
        self.left -= iterations;
        (self.left == 0).then_some(self.salted_password)
    }
}

/// A verifier in the making.
pub struct Derivation {
    salt: [u8; SALT_BYTES],
    iterations: u32,
    stretch: Stretch,
}

impl Derivation {
    /// Begins to make the verifier of `password`, of [`ITERATIONS`], with random salt.
    pub fn begin(password: &[u8], salt: [u8; SALT_BYTES]) -> Derivation {
        Derivation::of(password, salt, ITERATIONS)
    }

    pub(crate) fn of(password: &[u8], salt: [u8; SALT_BYTES], iterations: u32) -> Derivation {
        Derivation { salt, iterations, stretch: Stretch::of(password, &salt, iterations) }
    }

    /// Goes a step on. The verifier once it is made; then there is no further step.
    pub fn step(&mut self) -> Option<Verifier> {
        let salted_password = self.stretch.step()?;
        Some(Verifier::new(self.salt, self.iterations, &salted_password))
    }
}
