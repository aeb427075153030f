//! What is kept of a session in the store, for as long as it lasts.
//!
//! Invariant: nothing of it helps to become anybody. The ticket is not in it, nor the password; of the hash of the password, which lies on the same disk, there is the end.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::net::{IpAddr, Ipv6Addr};

use machine::UnixTime;
use mail::PasswordMark;

/// Bytes of a program's name.
const PROGRAM_BYTES_MAX: usize = 64;

/// A session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// When it was begun.
    pub since: UnixTime,
    /// When it was seen last; what is noted of that may be a day old.
    pub seen: UnixTime,
    /// The password with which it was begun.
    pub password: PasswordMark,
    /// The address from which it was begun.
    pub from: IpAddr,
    /// The program with which it was begun, in a few words.
    pub program: String,
}

impl Kept {
    /// As a note has it: two times in seconds, u64 each, 16 bytes of a password, 16 of an address, and the program.
    pub(crate) fn to_bytes(&self) -> Box<[u8]> {
        let address = match self.from {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        let program = self.program.floor_char_boundary(PROGRAM_BYTES_MAX);
        let program = self.program.get(..program).unwrap_or_default();
        let [since, seen] = [self.since, self.seen].map(|time| time.seconds().to_le_bytes());
        [&since, &seen, self.password.as_bytes(), &address.octets(), program.as_bytes()]
            .concat()
            .into()
    }

    /// From a note. `None`: it is none of a session.
    pub(crate) fn of(note: &[u8]) -> Option<Kept> {
        let (since, rest) = note.split_first_chunk::<8>()?;
        let (seen, rest) = rest.split_first_chunk::<8>()?;
        let (password, rest) = rest.split_first_chunk::<16>()?;
        let (address, program) = rest.split_first_chunk::<16>()?;
        let time = |bytes: &[u8; 8]| {
            UnixTime::from_seconds(u64::from_le_bytes(*bytes).min(u64::from(u32::MAX)))
        };
        Some(Kept {
            since: time(since),
            seen: time(seen),
            password: PasswordMark::from_bytes(*password),
            from: Ipv6Addr::from(*address).to_canonical(),
            program: core::str::from_utf8(program).ok()?.to_string(),
        })
    }
}
