//! SYN cookies (RFC 4987 §3.6): when there is no room to remember a SYN, its sender is made to remember for us. Our initial
//! number is a keyed hash of who he is, of his number and of the time, with the segment size in its low bits; what
//! completes the handshake brings it back. With timestamps their low bits bring back the rest.
//!
//! - Who cannot see our SYN-ACK guesses a cookie with 29 bits of hash, of which two are good at a time: 2^-28 a try.
//! - A cookie is good for one to two minutes, and none is looked at when none was given for so long.
//! - Without timestamps the peer's windows are not scaled, nor does he acknowledge selectively: the price of the flood.

use core::hash::{Hash, Hasher};

use machine::{Instant, Micros};
use siphasher::sip::SipHasher24;

use super::handshake::{Handshake, MSS_MIN, mss_agreed};
use super::options::{Options, SackBlocks, Timestamps};
use super::segment::{Flags, SegmentRepr, SegmentToSend};
use super::sequence::SequenceNumber;
use super::timestamps::{TIMESTAMP_BYTES, TimestampClock};
use super::window::{WINDOW_ON_SYN, WINDOW_SHIFT};

/// How long one cookie is given for the same SYN.
const PERIOD: Micros = Micros::from_secs(64);

/// Segment sizes that a cookie can say: of a peer between two of them the smaller is remembered.
const SIZES: [u16; 8] = [MSS_MIN, 536, 1220, 1360, 1400, 1440, 1460, 8960];
const SIZE_MASK: u32 = SIZES.len() as u32 - 1;

/// Bits of a timestamp that say what was agreed on: four of the peer's shift, one each of selective acknowledgments and of
/// marks of congestion.
const AGREED_MASK: u32 = 63;
/// The shift of who does not scale.
const NO_SHIFT: u32 = 15;
const SACK_BIT: u32 = 16;
const ECN_BIT: u32 = 32;

/// Gives cookies and takes them back.
pub struct Cookies {
    hasher: SipHasher24,
    local_mss: u16,
    /// When the last one was given.
    given_at: Option<Instant>,
}

impl Cookies {
    /// `secret` is random, and chosen anew each time the machine starts. `local_mss`: the largest payload that we take in
    /// one segment, in bytes.
    pub fn new(secret: &[u8; 16], local_mss: u16) -> Cookies {
        Cookies { hasher: SipHasher24::new_with_key(secret), local_mss, given_at: None }
    }

    /// The SYN-ACK for a SYN that is not remembered. `key`: addresses and ports of both ends; `timestamp_offset`: from
    /// [`super::InitialSequences::next`].
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
            flags: Flags::SYN.with(Flags::ACK).with(if timestamps.is_some() && knows_marks(syn) {
                Flags::ECE
            } else {
                Flags::NONE
            }),
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

    /// What was agreed on with the sender of a segment that acknowledges a cookie; `None` when it does not.
    pub fn completed(
        &self,
        now: Instant,
        key: &impl Hash,
        segment: &SegmentRepr<'_>,
        timestamp_offset: u32,
    ) -> Option<Handshake> {
        let is_good_for = Micros(2 * PERIOD.0);
        self.given_at.filter(|given| now.since(*given) < is_good_for)?;
        if !segment.flags.has(Flags::ACK) || segment.flags.has_any(Flags::SYN.with(Flags::RST)) {
            return None;
        }
        let (iss, irs) = (segment.acknowledgment - 1, segment.sequence - 1);
        let size = iss.0 & SIZE_MASK;
        let periods = [period(now), period(now).wrapping_sub(1)];
        periods.iter().find(|period| self.cookie(key, irs, **period, size) == iss)?;
        let mss = SIZES.get(size as usize).copied()?.min(self.local_mss);
        let mut handshake = Handshake {
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

/// A timestamp not later than `value` whose low bits say what was agreed on.
fn with_agreed(value: u32, syn: &SegmentRepr<'_>) -> u32 {
    let shift = syn.options.window_scale.map_or(NO_SHIFT, u32::from);
    let sack = if syn.options.sack_permitted { SACK_BIT } else { 0 };
    let agreed = shift | sack | if knows_marks(syn) { ECN_BIT } else { 0 };
    let stamp = (value & !AGREED_MASK) | agreed;
    if (value.wrapping_sub(stamp) as i32) < 0 { stamp.wrapping_sub(AGREED_MASK + 1) } else { stamp }
}

fn knows_marks(syn: &SegmentRepr<'_>) -> bool {
    syn.flags.has(Flags::ECE.with(Flags::CWR))
}
