//! The randomness of Linux.

use randomness::Source;
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

const SOURCE: Source = fill;

/// From now on, code in this process that asks for randomness by itself gets it from Linux.
pub fn provide() {
    randomness::provide(&SOURCE);
}

/// Fills `bytes` from Linux's generator. False: the generator failed.
pub fn fill(bytes: &mut [u8]) -> bool {
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match getrandom(rest, GetRandomFlags::empty()) {
            Ok(more) => filled += more,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
    true
}
