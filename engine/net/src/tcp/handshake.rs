//! What a handshake settles, and the initial sequence numbers that it starts from.

use core::hash::{Hash, Hasher};

use machine::{Instant, Micros};
use siphasher::sip::SipHasher24;

use super::sequence::SequenceNumber;
use super::timestamps::TimestampClock;

/// The payload that a peer takes which names no MSS (RFC 9293 §3.7.1).
pub const MSS_DEFAULT: u16 = 536;

/// We send no smaller segments than this however little the peer asks for: a tiny MSS makes the machine send a
/// header for every byte.
pub const MSS_MIN: u16 = 64;

/// What both ends have agreed on when a connection is established.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handshake {
    /// Our initial sequence number.
    pub iss: SequenceNumber,
    /// The peer's initial sequence number.
    pub irs: SequenceNumber,
    /// The largest payload that we may send in one segment, in bytes.
    pub mss: u16,
    /// How far the peer's windows are to be shifted; `None` when the peer does not scale, and then neither do we.
    pub peer_window_shift: Option<u8>,
    /// The round trip that the handshake took; `None` when a retransmission made it ambiguous (Karn).
    pub round_trip: Option<Micros>,
    /// The clocks of both ends, when both send timestamps.
    pub timestamps: Option<TimestampClock>,
    /// Whether the peer understands selective acknowledgments; we do.
    pub sack_permitted: bool,
    /// Whether both ends know of marks of congestion.
    pub ecn: bool,
}

/// Where a connection's numbers begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Beginning {
    /// Our initial sequence number.
    pub iss: SequenceNumber,
    /// What our timestamp clock of this connection is ahead of the machine's.
    pub timestamp_offset: u32,
}

/// The payload that we may send in one segment to a peer that said `theirs`, over a link that carries `ours`.
pub(super) fn mss_agreed(ours: u16, theirs: Option<u16>) -> u16 {
    theirs.unwrap_or(MSS_DEFAULT).max(MSS_MIN).min(ours)
}

/// Chooses initial sequence numbers nobody outside can guess: a clock of 4 µs ticks plus a keyed hash of the
/// connection's addresses and ports (RFC 6528). The clock keeps a new connection of the same four ahead of the old one.
/// Another part of the hash is where its timestamps begin, the same for each connection of the same four (RFC 7323 §5.4).
#[derive(Clone, Copy)]
pub struct InitialSequences {
    hasher: SipHasher24,
}

impl InitialSequences {
    /// `secret` is random, and chosen anew each time the machine starts.
    pub fn new(secret: &[u8; 16]) -> InitialSequences {
        InitialSequences { hasher: SipHasher24::new_with_key(secret) }
    }

    /// The numbers for a connection that `key` (addresses and ports of both ends) names, opened now.
    pub fn next(&self, now: Instant, key: &impl Hash) -> Beginning {
        let hash = self.hash(key);
        let iss = SequenceNumber((hash as u32).wrapping_add((now.0 / 4) as u32));
        Beginning { iss, timestamp_offset: (hash >> 32) as u32 }
    }

    /// Where the timestamps of the connections that `key` names begin.
    pub fn timestamp_offset(&self, key: &impl Hash) -> u32 {
        (self.hash(key) >> 32) as u32
    }

    fn hash(&self, key: &impl Hash) -> u64 {
        let mut hasher = self.hasher;
        key.hash(&mut hasher);
        hasher.finish()
    }

    /// The same, for a connection that follows another of the same key which has used all numbers before `snd_nxt`. Who has
    /// sent faster than the clock ticks is ahead of it (RFC 1122 §4.2.2.13).
    pub fn beyond(&self, snd_nxt: SequenceNumber, now: Instant, key: &impl Hash) -> Beginning {
        let next = self.next(now, key);
        let ahead = snd_nxt + 1 + (next.iss.0 >> 16);
        if next.iss.is_after(snd_nxt) { next } else { Beginning { iss: ahead, ..next } }
    }
}
