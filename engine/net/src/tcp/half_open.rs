//! Half-open connections. A SYN has arrived, but its sender may not exist, because the address may
//! be forged. Each half-open connection costs one small entry here and no TCB. The TCB is created
//! when the handshake completes (RFC 4987 §3.3).
//!
//! This implements LISTEN and the passive SYN-RECEIVED of RFC 9293 (§3.10.7.2 and §3.10.7.4), with
//! RFC 5961's rules for resets and SYNs.
//!
//! The table may be full because of many real handshakes. Then a SYN without room is not answered,
//! and its sender repeats it. So connections arrive no faster than we can accept them. In a flood,
//! the senders of the entries never answer. Then a SYN evicts the oldest entry, if that entry is
//! old enough: seven seconds for a new SYN, one second for a repeated SYN
//! ([`super::SynRetryFilter`]). If no entry is that old, a repeated SYN gets a cookie
//! ([`super::Cookies`]). With a capacity of zero, all handshakes use cookies.
//!
//! So a real client nearly always has an entry. Lost segments of its handshake are retransmitted. A
//! cookie has no entry, so nothing is retransmitted. If the client's ACK is lost, the client waits
//! for our greeting, and we do not know of the client. An evicted client might wait too, so we send
//! it a reset.
//!
//! An entry for which `n` SYN-ACKs were sent is in queue `n`. Queue 0 holds all entries that need a
//! SYN-ACK now, however many were sent for them.

use machine::{Instant, Micros};

use super::ageing::Ageing;
use super::handshake::{InitialNumbers, TcpHandshake, mss_agreed};
use super::options::{Options, SackBlocks};
use super::segment::{CardFull, SegmentRepr, SegmentToSend, TcpFlags};
use super::sequence::SequenceNumber;
use super::syn_retry_filter::SynHistory;
use super::timestamps::{TIMESTAMP_BYTES, TimestampClock};
use super::window::{WINDOW_ON_SYN, WINDOW_SHIFT};

/// The most SYN-ACKs for one entry. The wait after the last SYN-ACK is as long as all earlier waits
/// together.
pub const SYN_ACKS_MAX: u8 = 6;

/// The wait for an answer to the first SYN-ACK. Each further wait is twice as long (RFC 6298 §2.1,
/// §5.5).
pub const SYN_ACK_WAIT: Micros = Micros::from_secs(1);

/// The age at which any SYN may evict an entry. By then, four SYN-ACKs have been sent for it.
const EVICTION_AGE: Micros = Micros::from_secs(7);
/// The age at which a repeated SYN may evict an entry.
const EVICTION_AGE_FOR_REPEATED: Micros = Micros::from_secs(1);

/// How long after an eviction we assume a flood.
const FLOOD_SPAN: Micros = Micros::from_secs(1);

/// The most challenge acknowledgments for one entry.
const CHALLENGES_MAX: u8 = 8;

const QUEUES: usize = SYN_ACKS_MAX as usize + 1;
const TO_BE_SENT: usize = 0;

/// Identifies an entry until it is removed. The entry's key is compared on each use, so a stale id
/// finds nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HalfOpenId(pub u32);

struct HalfOpen<K> {
    key: K,
    sent_at: Instant,
    since: Instant,
    iss: SequenceNumber,
    irs: SequenceNumber,
    mss: u16,
    peer_window_shift: Option<u8>,
    timestamps: Option<TimestampClock>,
    sack_permitted: bool,
    ecn: bool,
    sent: u8,
    challenges: u8,
}

/// The effect of a segment on a half-open connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HalfOpenVerdict {
    /// Nothing to do now. A later [`HalfOpenTable::output`] may send something.
    Nothing,
    /// Send this segment.
    Respond(SegmentToSend),
    /// The handshake is complete. The caller creates a TCB with [`super::Tcb::accepted`], passes it
    /// the same segment, and removes the entry. If no TCB is available, the entry stays, and the
    /// peer's next segment tries again.
    Completed(TcpHandshake),
    /// The peer has reset the connection, and the entry is gone.
    Removed,
}

/// The result for a SYN that finds the table full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FullTable<K> {
    /// An entry was evicted.
    Evicted {
        /// The key of the entry.
        gone: K,
        /// A reset for its peer, if a SYN-ACK was sent.
        reset: Option<SegmentToSend>,
    },
    /// There is no room: answer with a cookie.
    AnswerWithCookie,
    /// Do not answer: the sender repeats the SYN.
    StaySilent,
}

/// All half-open connections of one core. `K` identifies a connection: addresses and ports of both
/// ends.
pub struct HalfOpenTable<K> {
    entries: Ageing<HalfOpen<K>, QUEUES>,
    local_mss: u16,
    flooded_until: Instant,
}

impl<K: Copy + PartialEq> HalfOpenTable<K> {
    /// A table for `capacity` entries. `local_mss`: the largest payload that we receive in one
    /// segment, in bytes.
    pub fn new(capacity: usize, local_mss: u16) -> Self {
        HalfOpenTable {
            entries: Ageing::with_capacity(capacity),
            local_mss,
            flooded_until: Instant::START,
        }
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a SYN needs [`HalfOpenTable::make_room`] first.
    pub fn is_full(&self) -> bool {
        self.entries.is_full()
    }

    /// Handles a SYN that has found the table full: evicts an entry if one is old enough.
    pub fn make_room(&mut self, now: Instant, history: SynHistory) -> FullTable<K> {
        let age = match history {
            SynHistory::New => EVICTION_AGE,
            SynHistory::Repeated => EVICTION_AGE_FOR_REPEATED,
        };
        // In each queue the first entry is the oldest, or hardly younger than the oldest.
        let firsts =
            (0..QUEUES).filter_map(|queue| self.entries.oldest(queue)).map(|(index, _)| index);
        let longest = firsts
            .filter_map(|index| Some((index, self.entries.get(index)?.since)))
            .min_by_key(|(_, since)| *since);
        if let Some((index, since)) = longest
            && now.since(since) >= age
            && let Some(gone) = self.entries.remove(index)
        {
            self.flooded_until = now + FLOOD_SPAN;
            return FullTable::Evicted {
                gone: gone.key,
                reset: (gone.sent > 0).then(|| gone.reset()),
            };
        }
        let is_flooded = history == SynHistory::Repeated && now < self.flooded_until;
        if is_flooded || self.is_empty() {
            FullTable::AnswerWithCookie
        } else {
            FullTable::StaySilent
        }
    }

    /// Adds an entry for a SYN (without ACK and RST) to an open port. The next `output` sends its
    /// SYN-ACK. `None` when the table is full.
    ///
    /// Data on the SYN is dropped: RFC 9293 §3.10.7.2 has it queued for later, and a flood of SYNs
    /// would fill any queue. The SYN-ACK does not acknowledge it, so the peer sends it again.
    pub fn syn_arrived(
        &mut self,
        now: Instant,
        key: K,
        segment: &SegmentRepr<'_>,
        beginning: InitialNumbers,
    ) -> Option<HalfOpenId> {
        if self.entries.is_full() {
            return None;
        }
        let entry = HalfOpen {
            key,
            sent_at: now,
            since: now,
            iss: beginning.iss,
            irs: segment.sequence,
            mss: mss_agreed(self.local_mss, segment.options.mss),
            peer_window_shift: segment.options.window_scale,
            timestamps: segment.options.timestamps.map(|stamps| TimestampClock {
                offset: beginning.timestamp_offset,
                recent: stamps.value,
            }),
            sack_permitted: segment.options.sack_permitted,
            ecn: segment.flags.has(TcpFlags::ECE.with(TcpFlags::CWR)),
            sent: 0,
            challenges: 0,
        };
        self.entries.insert(entry, TO_BE_SENT, now).map(HalfOpenId)
    }

    /// Handles a segment for the entry.
    pub fn segment_arrived(
        &mut self,
        now: Instant,
        id: HalfOpenId,
        key: &K,
        segment: &SegmentRepr<'_>,
    ) -> HalfOpenVerdict {
        let Some(entry) = self.entries.get_mut(id.0).filter(|entry| entry.key == *key) else {
            return HalfOpenVerdict::Nothing;
        };
        let rcv_nxt = entry.irs + 1;
        let in_window = segment.sequence.since(rcv_nxt) < u32::from(WINDOW_ON_SYN);
        if segment.flags.has(TcpFlags::RST) {
            if segment.sequence == rcv_nxt {
                self.entries.remove(id.0);
                return HalfOpenVerdict::Removed;
            }
            return if in_window { entry.challenge(now) } else { HalfOpenVerdict::Nothing };
        }
        if segment.flags.has(TcpFlags::SYN)
            && segment.sequence == entry.irs
            && !segment.flags.has(TcpFlags::ACK)
        {
            if let (Some(clock), Some(stamps)) = (&mut entry.timestamps, segment.options.timestamps)
            {
                clock.recent = stamps.value;
            }
            if entry.sent < SYN_ACKS_MAX {
                self.entries.move_to(id.0, TO_BE_SENT, now);
            }
            return HalfOpenVerdict::Nothing;
        }
        if !in_window || segment.flags.has(TcpFlags::SYN) || entry.is_older(segment) {
            return entry.challenge(now);
        }
        if !segment.flags.has(TcpFlags::ACK) || entry.lacks_timestamps(segment) {
            return HalfOpenVerdict::Nothing;
        }
        if segment.acknowledgment != entry.iss + 1 {
            let reset = SegmentToSend {
                sequence: segment.acknowledgment,
                flags: TcpFlags::RST,
                ..SegmentToSend::default()
            };
            return HalfOpenVerdict::Respond(reset);
        }
        HalfOpenVerdict::Completed(entry.handshake(now))
    }

    /// Whether [`HalfOpenTable::segment_arrived`] would return [`HalfOpenVerdict::Completed`] for
    /// the segment.
    pub fn is_completed_by(&self, id: HalfOpenId, key: &K, segment: &SegmentRepr<'_>) -> bool {
        let Some(entry) = self.entries.get(id.0).filter(|entry| entry.key == *key) else {
            return false;
        };
        segment.flags.has(TcpFlags::ACK)
            && !segment.flags.has_any(TcpFlags::SYN.with(TcpFlags::RST))
            && segment.sequence.since(entry.irs + 1) < u32::from(WINDOW_ON_SYN)
            && segment.acknowledgment == entry.iss + 1
            && !entry.is_older(segment)
            && !entry.lacks_timestamps(segment)
    }

    /// Whether the segment is a reset that ends the handshake: [`HalfOpenTable::segment_arrived`]
    /// would return [`HalfOpenVerdict::Removed`] for it.
    pub fn is_reset_by(&self, id: HalfOpenId, key: &K, segment: &SegmentRepr<'_>) -> bool {
        let entry = self.entries.get(id.0).filter(|entry| entry.key == *key);
        segment.flags.has(TcpFlags::RST)
            && entry.is_some_and(|entry| segment.sequence == entry.irs + 1)
    }

    /// Removes an entry after its connection has got a TCB.
    pub fn remove(&mut self, id: HalfOpenId, key: &K) {
        if self.entries.get(id.0).is_some_and(|entry| entry.key == *key) {
            self.entries.remove(id.0);
        }
    }

    /// Sends every SYN-ACK that is due: the first one of an entry, and retransmissions.
    ///
    /// Errors: `CardFull` from `emit`. The remaining SYN-ACKs wait for the next call.
    pub fn output(
        &mut self,
        now: Instant,
        mut emit: impl FnMut(&K, &SegmentToSend) -> Result<(), CardFull>,
    ) -> Result<(), CardFull> {
        if self.entries.is_empty() {
            return Ok(());
        }
        for queue in 0..usize::from(SYN_ACKS_MAX) {
            while let Some((index, deadline)) = self.entries.oldest(queue) {
                if deadline > now {
                    break;
                }
                let Some(entry) = self.entries.get_mut(index) else {
                    unreachable!("a queue holds only existing entries")
                };
                emit(&entry.key, &entry.syn_ack(now, self.local_mss))?;
                entry.sent = entry.sent.saturating_add(1).min(SYN_ACKS_MAX);
                entry.sent_at = now;
                let sent = entry.sent;
                self.entries.move_to(index, usize::from(sent), now + wait_after(sent));
            }
        }
        Ok(())
    }

    /// Removes an entry if its peer has not answered the last SYN-ACK in time. Returns the entry's
    /// key.
    pub fn give_up(&mut self, now: Instant) -> Option<K> {
        let (index, deadline) = self.entries.oldest(usize::from(SYN_ACKS_MAX))?;
        if deadline > now { None } else { self.entries.remove(index).map(|entry| entry.key) }
    }

    /// When `output` or `give_up` next has something to do.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.entries.next_deadline()
    }
}

fn wait_after(sent: u8) -> Micros {
    Micros(SYN_ACK_WAIT.0 << sent.saturating_sub(1))
}

impl<K> HalfOpen<K> {
    /// Whether the segment was sent before the SYN (RFC 7323 §5).
    fn is_older(&self, segment: &SegmentRepr<'_>) -> bool {
        match (&self.timestamps, segment.options.timestamps) {
            (Some(clock), Some(stamps)) => clock.has_seen_later_than(stamps.value),
            _ => false,
        }
    }

    /// Whether the segment lacks the timestamps that were agreed on (RFC 7323 §3.2).
    fn lacks_timestamps(&self, segment: &SegmentRepr<'_>) -> bool {
        self.timestamps.is_some() && segment.options.timestamps.is_none()
    }

    fn syn_ack(&self, now: Instant, local_mss: u16) -> SegmentToSend {
        SegmentToSend {
            sequence: self.iss,
            acknowledgment: self.irs + 1,
            flags: TcpFlags::SYN.with(TcpFlags::ACK).with(if self.ecn {
                TcpFlags::ECE
            } else {
                TcpFlags::NONE
            }),
            window: WINDOW_ON_SYN,
            options: Options {
                mss: Some(local_mss),
                window_scale: self.peer_window_shift.map(|_| WINDOW_SHIFT),
                timestamps: self.timestamps.map(|clock| clock.stamps(now)),
                sack_permitted: self.sack_permitted,
                sack: SackBlocks::default(),
            },
            ..SegmentToSend::default()
        }
    }

    /// The reset for a peer that considers the connection established. The segment with which it
    /// completed the handshake was lost.
    fn reset(&self) -> SegmentToSend {
        SegmentToSend { sequence: self.iss + 1, flags: TcpFlags::RST, ..SegmentToSend::default() }
    }

    fn challenge(&mut self, now: Instant) -> HalfOpenVerdict {
        if self.challenges >= CHALLENGES_MAX {
            return HalfOpenVerdict::Nothing;
        }
        self.challenges += 1;
        HalfOpenVerdict::Respond(SegmentToSend {
            sequence: self.iss + 1,
            acknowledgment: self.irs + 1,
            flags: TcpFlags::ACK,
            window: WINDOW_ON_SYN
                >> if self.peer_window_shift.is_some() { WINDOW_SHIFT } else { 0 },
            options: Options {
                timestamps: self.timestamps.map(|clock| clock.stamps(now)),
                ..Options::default()
            },
            ..SegmentToSend::default()
        })
    }

    fn handshake(&self, now: Instant) -> TcpHandshake {
        TcpHandshake {
            iss: self.iss,
            irs: self.irs,
            mss: self.mss - self.timestamps.map_or(0, |_| TIMESTAMP_BYTES),
            timestamps: self.timestamps,
            sack_permitted: self.sack_permitted,
            ecn: self.ecn,
            peer_window_shift: self.peer_window_shift,
            round_trip: if self.sent == 1 { Some(now.since(self.sent_at)) } else { None },
        }
    }
}
