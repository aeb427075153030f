//! A session in the form in which the store persists it.
//!
//! Invariant: the stored data does not help an attacker to log in. It contains neither the ticket
//! nor the password. It contains the end of the password's hash. This reveals nothing new, since
//! the whole hash is on the same disk.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::net::{IpAddr, Ipv6Addr};

use machine::UnixTime;
use mail::PasswordMark;

/// The longest description of a client program, in bytes.
const PROGRAM_BYTES_MAX: usize = 64;

/// The digest of a ticket: the key of the session's note.
pub(crate) type Digest = [u8; 32];

/// A persisted session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PersistedSession {
    /// The time of the login.
    pub since: UnixTime,
    /// The time of the last request. The persisted time may be up to a day older.
    pub seen: UnixTime,
    /// A mark of the password at the login.
    pub password: PasswordMark,
    /// The client's address at the login.
    pub from: IpAddr,
    /// A short description of the client's program at the login.
    pub program: String,
}

impl PersistedSession {
    /// The note of the session: two times in seconds as u64, 16 bytes of the password mark, 16
    /// bytes of the address, and the program.
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

    /// Parses a note. `None`: the note is not a session.
    pub(crate) fn of(note: &[u8]) -> Option<PersistedSession> {
        let (since, rest) = note.split_first_chunk::<8>()?;
        let (seen, rest) = rest.split_first_chunk::<8>()?;
        let (password, rest) = rest.split_first_chunk::<16>()?;
        let (address, program) = rest.split_first_chunk::<16>()?;
        let time = |bytes: &[u8; 8]| {
            UnixTime::from_seconds(u64::from_le_bytes(*bytes).min(u64::from(u32::MAX)))
        };
        Some(PersistedSession {
            since: time(since),
            seen: time(seen),
            password: PasswordMark::from_bytes(*password),
            from: Ipv6Addr::from(*address).to_canonical(),
            program: core::str::from_utf8(program).ok()?.to_string(),
        })
    }
}
