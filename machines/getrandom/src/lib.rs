//! Gives ring the random bytes of the machine.
//!
//! ring takes its random bytes (for key exchanges and signatures) from the crate `getrandom`, and
//! accepts no other source. The original crate asks an operating system, and the image has none. So
//! this crate replaces it (`[patch]` in the workspace's manifest). It calls the source that the
//! machine has set with [`provide`]. The same code runs in the image, in a Linux process, and in a
//! simulation that derives every byte from its seed.
//!
//! Invariants:
//! - No byte is returned before a source is set. Until then, and when the source fails, the result
//!   is an error, and the operation of ring fails.
//! - The first source stays. A source itself determines which core, or which simulated machine, is
//!   calling.
#![no_std]
#![forbid(unsafe_code)]

use core::fmt;

use once_cell::race::OnceRef;

/// Fills the bytes from the cryptographic random number generator of the calling core. Returns
/// false if the core has no generator.
pub type Source = fn(&mut [u8]) -> bool;

static SOURCE: OnceRef<'static, Source> = OnceRef::new();

/// Sets the source of all random bytes, unless one is set already.
pub fn provide(source: &'static Source) {
    // A second machine in one process uses the source of the first, so the result is ignored.
    let _ = SOURCE.set(source);
}

/// The error when there are no random bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Error;

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the machine has no randomness")
    }
}

impl core::error::Error for Error {}

/// Fills `bytes` with random bytes.
///
/// Errors: no source is set, or the source has failed. After an error the caller must not use
/// `bytes`.
pub fn getrandom(bytes: &mut [u8]) -> Result<(), Error> {
    let source = SOURCE.get().ok_or(Error)?;
    if source(bytes) { Ok(()) } else { Err(Error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This is a single test, because a process has a single source.
    #[test]
    fn without_a_source_getrandom_fails_and_the_first_source_stays() {
        let mut bytes = [0; 3];
        assert_eq!(getrandom(&mut bytes), Err(Error));
        const SEVENS: Source = |bytes| {
            bytes.fill(7);
            bytes.len() < 4
        };
        const EIGHTS: Source = |bytes| {
            bytes.fill(8);
            true
        };
        provide(&SEVENS);
        provide(&EIGHTS);
        assert_eq!(getrandom(&mut bytes), Ok(()));
        assert_eq!(bytes, [7; 3]);
        assert_eq!(getrandom(&mut [0; 4]), Err(Error), "a failure of the source is reported");
    }
}
