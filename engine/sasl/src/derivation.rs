//! PBKDF2 (RFC 8018 section 5.2) in steps. The derivation of a verifier or a proof from a password
//! takes milliseconds, which is too long for one handler.
//!
//! The crate `pbkdf2` computes everything in one call. The tests use it as the oracle.

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::hash::{HASH_BYTES, SALT_BYTES, keyed};
use crate::verifier::{ITERATIONS, Verifier};

/// The number of iterations of one step. They take under 200 us with the SHA-256 of any processor.
const STEP_ITERATIONS: u32 = 256;

/// A PBKDF2 computation in progress.
pub(crate) struct Pbkdf2Run {
    /// The number of iterations that are left.
    left: u32,
    /// HMAC with the password as its key.
    hmac: Hmac<Sha256>,
    /// The result of the last iteration.
    last: [u8; HASH_BYTES],
    /// The XOR of the results of all iterations.
    salted_password: [u8; HASH_BYTES],
}

impl Pbkdf2Run {
    pub(crate) fn of(password: &[u8], salt: &[u8], iterations: u32) -> Pbkdf2Run {
        let hmac = keyed(password);
        let first_block = 1_u32.to_be_bytes();
        let last = hmac
            .clone()
            .chain_update(salt)
            .chain_update(first_block)
            .finalize()
            .into_bytes()
            .into();
        Pbkdf2Run { left: iterations.saturating_sub(1), hmac, last, salted_password: last }
    }

    /// Does one step. The last step returns `SaltedPassword`. After that, this function must not be
    /// called again.
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

/// A verifier while it is computed.
pub struct Derivation {
    salt: [u8; SALT_BYTES],
    iterations: u32,
    stretch: Pbkdf2Run,
}

impl Derivation {
    /// Begins to derive the verifier of `password`, with [`ITERATIONS`] and random salt.
    pub fn begin(password: &[u8], salt: [u8; SALT_BYTES]) -> Derivation {
        Derivation::of(password, salt, ITERATIONS)
    }

    pub(crate) fn of(password: &[u8], salt: [u8; SALT_BYTES], iterations: u32) -> Derivation {
        Derivation { salt, iterations, stretch: Pbkdf2Run::of(password, &salt, iterations) }
    }

    /// Does one step. The last step returns the verifier. After that, this function must not be
    /// called again.
    pub fn step(&mut self) -> Option<Verifier> {
        let salted_password = self.stretch.step()?;
        Some(Verifier::new(self.salt, self.iterations, &salted_password))
    }
}
