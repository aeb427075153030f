//! SYN cookies (RFC 4987 §3.6): a handshake without stored state, for a SYN that finds no room. The
//! state is in our initial sequence number, which is a keyed hash of both ends, of the peer's
//! sequence number and of the time. Its low bits encode the segment size. The segment that
//! completes the handshake returns this number. With timestamps, the segment also returns the other
//! options, in the low bits of our timestamp.
//! - A sender that cannot see our SYN-ACK must guess 29 bits of hash. Two values are valid at a
//!   time, so a guess succeeds with a probability of 2^-28.
//! - A cookie is valid for one to two minutes. If we sent no cookie in that time, no segment is
//!   checked for a cookie.
//! - Without timestamps, the connection has no window scaling and no selective acknowledgments.
//!   This is the price of the flood.

use core::hash::{Hash, Hasher};

use machine::{Instant, Micros};
use siphasher::sip::SipHasher24;

use super::handshake::{MSS_MIN, TcpHandshake, mss_agreed};
use super::options::{Options, SackBlocks, Timestamps};
use super::segment::{SegmentRepr, SegmentToSend, TcpFlags};
use super::sequence::SequenceNumber;
use super::timestamps::{TIMESTAMP_BYTES, TimestampClock};
use super::window::{WINDOW_ON_SYN, WINDOW_SHIFT};

/// For this time, the same SYN gets the same cookie.
const PERIOD: Micros = Micros::from_secs(64);

/// The segment sizes that a cookie can encode. Other sizes are rounded down to one of these.
const SIZES: [u16; 8] = [MSS_MIN, 536, 1220, 1360, 1400, 1440, 1460, 8960];
const SIZE_MASK: u32 = SIZES.len() as u32 - 1;

/// The bits of a timestamp that encode the options: four for the peer's window shift, one for
/// selective acknowledgments, and one for ECN.
const AGREED_MASK: u32 = 63;
/// The value of the shift bits for a peer without window scaling.
const NO_SHIFT: u32 = 15;
const SACK_BIT: u32 = 16;
const ECN_BIT: u32 = 32;

/// Issues and checks cookies.
pub struct Cookies {
    hasher: SipHasher24,
    local_mss: u16,
    /// When the last cookie was issued.
    given_at: Option<Instant>,
}

impl Cookies {
    /// `secret`: random, and new at each start of the machine. `local_mss`: the largest payload
    /// that we receive in one segment, in bytes.
    pub fn new(secret: &[u8; 16], local_mss: u16) -> Cookies {
        Cookies { hasher: SipHasher24::new_with_key(secret), local_mss, given_at: None }
    }

    /// The SYN-ACK for a SYN that is not stored. `key`: addresses and ports of both ends;
    /// `timestamp_offset`: from [`super::InitialSequences::next`].
    pub fn answer(
        &mut self,
        now: Instant,
        key: &impl Hash,
        syn: &SegmentRepr<'_>,
        timestamp_offset: u32,
    ) -> SegmentToSend {
        self.given_at = Some(now);
        let mss = mss_agreed(u16::MAX, syn.options.mss);
        let size = SIZES.iter().rposition(|size| *size <= mss).unwrap_or(0) as u32;
        let stamps = syn.options.timestamps;
        let timestamps = stamps.map(|stamps| {
            let clock = TimestampClock { offset: timestamp_offset, recent: stamps.value };
            Timestamps { value: with_agreed(clock.stamps(now).value, syn), echo: stamps.value }
        });
        SegmentToSend {
            sequence: self.cookie(key, syn.sequence, period(now), size),
            acknowledgment: syn.sequence + 1,
            flags: TcpFlags::SYN.with(TcpFlags::ACK).with(
                if timestamps.is_some() && proposes_ecn(syn) {
                    TcpFlags::ECE
                } else {
                    TcpFlags::NONE
                },
            ),
            window: WINDOW_ON_SYN,
            options: Options {
                mss: Some(self.local_mss),
                window_scale: syn
                    .options
                    .window_scale
                    .filter(|_| stamps.is_some())
                    .map(|_| WINDOW_SHIFT),
                timestamps,
                sack_permitted: syn.options.sack_permitted && stamps.is_some(),
                sack: SackBlocks::default(),
            },
            ..SegmentToSend::default()
        }
    }

    /// The handshake that a segment completes by acknowledging a cookie. `None` if it acknowledges
    /// no valid cookie.
    pub fn completed(
        &self,
        now: Instant,
        key: &impl Hash,
        segment: &SegmentRepr<'_>,
        timestamp_offset: u32,
    ) -> Option<TcpHandshake> {
        let is_good_for = Micros(2 * PERIOD.0);
        self.given_at.filter(|given| now.since(*given) < is_good_for)?;
        if !segment.flags.has(TcpFlags::ACK)
            || segment.flags.has_any(TcpFlags::SYN.with(TcpFlags::RST))
        {
            return None;
        }
        let (iss, irs) = (segment.acknowledgment - 1, segment.sequence - 1);
        let size = iss.0 & SIZE_MASK;
        let periods = [period(now), period(now).wrapping_sub(1)];
        periods.iter().find(|period| self.cookie(key, irs, **period, size) == iss)?;
        let mss = SIZES.get(size as usize).copied()?.min(self.local_mss);
        let mut handshake = TcpHandshake {
            iss,
            irs,
            mss,
            peer_window_shift: None,
            round_trip: None,
            timestamps: None,
            sack_permitted: false,
            ecn: false,
        };
        if let Some(stamps) = segment.options.timestamps {
            let clock = TimestampClock { offset: timestamp_offset, recent: stamps.value };
            let shift = stamps.echo & NO_SHIFT;
            handshake.round_trip = Some(clock.since(now, stamps.echo)?);
            handshake.peer_window_shift = (shift != NO_SHIFT).then_some(shift as u8);
            handshake.sack_permitted = stamps.echo & SACK_BIT != 0;
            handshake.ecn = stamps.echo & ECN_BIT != 0;
            handshake.timestamps = Some(clock);
            handshake.mss -= TIMESTAMP_BYTES;
        }
        Some(handshake)
    }

    fn cookie(
        &self,
        key: &impl Hash,
        irs: SequenceNumber,
        period: u32,
        size: u32,
    ) -> SequenceNumber {
        let mut hasher = self.hasher;
        key.hash(&mut hasher);
        (irs, period, size).hash(&mut hasher);
        SequenceNumber((hasher.finish() as u32 & !SIZE_MASK) | size)
    }
}

fn period(now: Instant) -> u32 {
    (now.0 / PERIOD.0) as u32
}

/// The latest timestamp that is at most `value` and encodes the options in its low bits.
fn with_agreed(value: u32, syn: &SegmentRepr<'_>) -> u32 {
    let shift = syn.options.window_scale.map_or(NO_SHIFT, u32::from);
    let sack = if syn.options.sack_permitted { SACK_BIT } else { 0 };
    let agreed = shift | sack | if proposes_ecn(syn) { ECN_BIT } else { 0 };
    let stamp = (value & !AGREED_MASK) | agreed;
    if (value.wrapping_sub(stamp) as i32) < 0 { stamp.wrapping_sub(AGREED_MASK + 1) } else { stamp }
}

fn proposes_ecn(syn: &SegmentRepr<'_>) -> bool {
    syn.flags.has(TcpFlags::ECE.with(TcpFlags::CWR))
}
