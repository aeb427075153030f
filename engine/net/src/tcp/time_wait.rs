//! TIME-WAIT: the state of closed connections, for two maximum segment lifetimes. If our last
//! acknowledgment is lost, it can be repeated in this time, and old segments disappear from the
//! network (RFC 9293 §3.6.1). Each connection costs one small entry, not a TCB.
//!
//! Resets are ignored in this state (RFC 1337). Pure acknowledgments are never answered, because
//! both ends might then answer each other for ever. A SYN opens a new connection at once, if its
//! timestamp, or else its number, is newer than everything of the old connection (RFC 9293
//! §3.10.7.4, RFC 6191). A full table drops its oldest entry.

use machine::{Instant, Micros};

use super::ageing::Ageing;
use super::options::Options;
use super::segment::{SegmentRepr, SegmentToSend, TcpFlags};
use super::sequence::SequenceNumber;
use super::timestamps::TimestampClock;

/// Two maximum segment lifetimes of 30 seconds each. RFC 9293 suggests 2 minutes each, but leaves
/// the choice open. No network of today holds a segment for more than 30 seconds.
pub const TIME_WAIT: Micros = Micros::from_secs(60);

/// The stored state of a closed connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeWait {
    /// The number after our FIN.
    pub snd_nxt: SequenceNumber,
    /// The number after the peer's FIN.
    pub rcv_nxt: SequenceNumber,
    /// The window of our last segment, as on the wire.
    pub window: u16,
    /// The clocks of both ends, if timestamps were in use.
    pub timestamps: Option<TimestampClock>,
}

impl TimeWait {
    /// Whether a SYN is newer than everything of the closed connection (RFC 6191 §2).
    fn is_followed_by(&self, syn: &SegmentRepr<'_>) -> bool {
        let is_beyond = !syn.sequence.is_before(self.rcv_nxt);
        match (&self.timestamps, syn.options.timestamps) {
            (Some(clock), Some(stamps)) => {
                clock.is_before(stamps.value) || (stamps.value == clock.recent && is_beyond)
            }
            _ => is_beyond,
        }
    }
}

/// Identifies an entry until it is removed. The entry's key is compared on each use, so a stale id
/// finds nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TimeWaitId(pub u32);

/// The effect of a segment on a connection in TIME-WAIT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeWaitVerdict {
    /// Do nothing.
    Nothing,
    /// Send this segment.
    Respond(SegmentToSend),
    /// The segment is a SYN that opens a new connection, so the entry is removed. The caller
    /// handles the SYN as a SYN for a listener. Our numbers must begin beyond all numbers of the
    /// old connection: [`super::InitialSequences::beyond`].
    NewConnection {
        /// The number after the last number that we used in the old connection.
        snd_nxt: SequenceNumber,
    },
}

/// All connections of one core in TIME-WAIT. `K` identifies a connection: addresses and ports of
/// both ends.
pub struct TimeWaitTable<K> {
    entries: Ageing<(K, TimeWait), 1>,
}

impl<K: Copy + PartialEq> TimeWaitTable<K> {
    /// A table for `capacity` entries.
    pub fn with_capacity(capacity: usize) -> Self {
        assert!(capacity > 0, "the table has room for an entry");
        TimeWaitTable { entries: Ageing::with_capacity(capacity) }
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a connection. Returns its entry, and the key of the entry that was evicted for it, if
    /// any.
    pub fn insert(&mut self, now: Instant, key: K, time_wait: TimeWait) -> (TimeWaitId, Option<K>) {
        let forgotten = if self.entries.is_full() { self.remove_oldest() } else { None };
        let Some(index) = self.entries.insert((key, time_wait), 0, now + TIME_WAIT) else {
            unreachable!("the oldest has just made room")
        };
        (TimeWaitId(index), forgotten)
    }

    fn remove_oldest(&mut self) -> Option<K> {
        let (index, _) = self.entries.oldest(0)?;
        self.entries.remove(index).map(|(key, _)| key)
    }

    /// Handles a segment for the entry.
    pub fn segment_arrived(
        &mut self,
        now: Instant,
        id: TimeWaitId,
        key: &K,
        segment: &SegmentRepr<'_>,
    ) -> TimeWaitVerdict {
        let Some((_, known)) = self.entries.get(id.0).filter(|(held, _)| held == key) else {
            return TimeWaitVerdict::Nothing;
        };
        let says_nothing = segment.sequence_len() == 0
            || !segment.flags.has_any(TcpFlags::ACK.with(TcpFlags::SYN));
        if segment.flags.has(TcpFlags::RST) || says_nothing {
            return TimeWaitVerdict::Nothing;
        }
        if segment.flags.has(TcpFlags::SYN)
            && !segment.flags.has(TcpFlags::ACK)
            && known.is_followed_by(segment)
        {
            let snd_nxt = known.snd_nxt;
            self.entries.remove(id.0);
            return TimeWaitVerdict::NewConnection { snd_nxt };
        }
        let answer = SegmentToSend {
            sequence: known.snd_nxt,
            acknowledgment: known.rcv_nxt,
            flags: TcpFlags::ACK,
            window: known.window,
            options: Options {
                timestamps: known.timestamps.map(|clock| clock.stamps(now)),
                ..Options::default()
            },
            ..SegmentToSend::default()
        };
        if segment.flags.has(TcpFlags::FIN)
            && segment.sequence + segment.sequence_len() == known.rcv_nxt
        {
            self.entries.move_to(id.0, 0, now + TIME_WAIT);
        }
        TimeWaitVerdict::Respond(answer)
    }

    /// Whether the segment repeats the peer's FIN, that is, ends at the same number.
    pub fn is_ended_by(&self, id: TimeWaitId, key: &K, segment: &SegmentRepr<'_>) -> bool {
        let known = self.entries.get(id.0).filter(|(held, _)| held == key);
        segment.flags.has(TcpFlags::FIN)
            && known.is_some_and(|(_, known)| {
                segment.sequence + segment.sequence_len() == known.rcv_nxt
            })
    }

    /// Removes the next expired entry, and returns its key.
    pub fn expired(&mut self, now: Instant) -> Option<K> {
        let (_, deadline) = self.entries.oldest(0)?;
        if deadline > now { None } else { self.remove_oldest() }
    }

    /// When `expired` next has something to do.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.entries.next_deadline()
    }
}
