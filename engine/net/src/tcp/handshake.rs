//! The result of a handshake, and the initial sequence numbers of connections.

use core::hash::{Hash, Hasher};

use machine::{Instant, Micros};
use siphasher::sip::SipHasher24;

use super::sequence::SequenceNumber;
use super::timestamps::TimestampClock;

/// The MSS of a peer that announces none (RFC 9293 §3.7.1).
pub const MSS_DEFAULT: u16 = 536;

/// The smallest MSS that we use, even if the peer's MSS is smaller. With a tiny MSS we would send a
/// header for every few bytes.
pub const MSS_MIN: u16 = 64;

/// The parameters that both ends have agreed on when a connection is established.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpHandshake {
    /// Our initial sequence number.
    pub iss: SequenceNumber,
    /// The peer's initial sequence number.
    pub irs: SequenceNumber,
    /// The largest payload that we may send in one segment, in bytes.
    pub mss: u16,
    /// The shift of the peer's windows. `None` if the peer does not scale its windows; then ours
    /// are not scaled either.
    pub peer_window_shift: Option<u8>,
    /// The round trip of the handshake. `None` when a retransmission made it ambiguous (Karn).
    pub round_trip: Option<Micros>,
    /// The clocks of both ends, when both send timestamps.
    pub timestamps: Option<TimestampClock>,
    /// Whether the peer understands selective acknowledgments, as we do.
    pub sack_permitted: bool,
    /// Whether both ends support ECN.
    pub ecn: bool,
}

/// The initial numbers of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InitialNumbers {
    /// Our initial sequence number.
    pub iss: SequenceNumber,
    /// How far this connection's timestamp clock is ahead of the machine's clock.
    pub timestamp_offset: u32,
}

/// The MSS for a peer that announced `theirs`, over a link that carries `ours`.
pub(super) fn mss_agreed(ours: u16, theirs: Option<u16>) -> u16 {
    theirs.unwrap_or(MSS_DEFAULT).max(MSS_MIN).min(ours)
}

/// Chooses unpredictable initial sequence numbers: a clock with ticks of 4 µs plus a keyed hash of
/// the connection's addresses and ports (RFC 6528). Because of the clock, the numbers of a new
/// connection are beyond those of an old connection with the same four-tuple. Another part of the
/// hash is the timestamp offset. It is the same for all connections of the four-tuple (RFC 7323
/// §5.4).
#[derive(Clone, Copy)]
pub struct InitialSequences {
    hasher: SipHasher24,
}

impl InitialSequences {
    /// `secret`: random, and new at each start of the machine.
    pub fn new(secret: &[u8; 16]) -> InitialSequences {
        InitialSequences { hasher: SipHasher24::new_with_key(secret) }
    }

    /// The initial numbers of a connection that is opened now. `key`: the addresses and ports of
    /// both ends.
    pub fn next(&self, now: Instant, key: &impl Hash) -> InitialNumbers {
        let hash = self.hash(key);
        let iss = SequenceNumber((hash as u32).wrapping_add((now.0 / 4) as u32));
        InitialNumbers { iss, timestamp_offset: (hash >> 32) as u32 }
    }

    /// The timestamp offset of all connections with the key `key`.
    pub fn timestamp_offset(&self, key: &impl Hash) -> u32 {
        (self.hash(key) >> 32) as u32
    }

    fn hash(&self, key: &impl Hash) -> u64 {
        let mut hasher = self.hasher;
        key.hash(&mut hasher);
        hasher.finish()
    }

    /// As [`InitialSequences::next`], for a connection that follows another connection with the
    /// same key. The previous connection has used all numbers before `snd_nxt`. These may be ahead
    /// of the clock, if the connection sent faster than the clock ticks (RFC 1122 §4.2.2.13).
    pub fn beyond(&self, snd_nxt: SequenceNumber, now: Instant, key: &impl Hash) -> InitialNumbers {
        let next = self.next(now, key);
        let ahead = snd_nxt + 1 + (next.iss.0 >> 16);
        if next.iss.is_after(snd_nxt) { next } else { InitialNumbers { iss: ahead, ..next } }
    }
}
