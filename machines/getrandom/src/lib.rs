//! Where ring gets its randomness: from the machine.
//!
//! ring draws its random bytes (of key exchanges and signatures) from the crate `getrandom`, and lets nobody else give it any. That crate asks an
//! operating system, which there is none of. This one takes its place (`[patch]` in the workspace's manifest): it asks whoever the machine named
//! with [`provide`], so that the same code runs in the image, in a Linux process, and in a simulation whose every byte comes from its seed.
//!
//! Invariants:
//! - Nobody gets a byte before a source was named: until then, and when the source fails, the answer is an error, and ring refuses.
//! - The first source stays. A source tells by itself which core, or which simulated machine, is asking.
#![no_std]
#![forbid(unsafe_code)]

use core::fmt;

use once_cell::race::OnceRef;

/// Fills the bytes from a cryptographic random number generator, that of the machine and core that runs the call; false when there is none.
pub type Source = fn(&mut [u8]) -> bool;

static SOURCE: OnceRef<'static, Source> = OnceRef::new();

/// Names the source of all random bytes from now on, unless one was named before.
pub fn provide(source: &'static Source) {
    // A second machine in one process asks the same source: that of the process.
    let _ = SOURCE.set(source);
}

/// Why there are no random bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Error;

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the machine has no randomness")
    }
}

impl core::error::Error for Error {}

/// Fills `bytes` with random ones.
///
/// Errors: no source was named, or the one that was has failed. Then nothing in `bytes` may be used.
pub fn getrandom(bytes: &mut [u8]) -> Result<(), Error> {
    let source = SOURCE.get().ok_or(Error)?;
    if source(bytes) { Ok(()) } else { Err(Error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, since there is one source in a process.
    #[test]
    fn without_a_source_there_is_no_byte_and_the_first_source_stays() {
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
        assert_eq!(getrandom(&mut [0; 4]), Err(Error), "a source that fails is heard");
    }
}
