//! What the path carries, as far as others say so or silence does.
//!
//! - A router's word that a segment was too long counts only if it quotes a number that is on the way (RFC 5927 §4, §7.2), and
//!   never makes segments smaller than what everybody takes: whoever cannot see the connection can hardly harm it.
//! - Where no such word comes through, and long segments vanish time after time, smaller ones are tried (RFC 4821 §7.7, RFC
//!   2923 §2.1). A connection keeps its smaller size: few live long enough to find that the path has widened.
//! - Word that nobody is there ends only an attempt to connect, and only if it is about that very SYN (RFC 5927 §5.2).
//!   What is established outlives it: retransmission finds out whether it is true.

use super::actions::{Actions, CloseReason};
use super::handshake::MSS_DEFAULT;
use super::pools::Pools;
use super::run::Fate;
use super::sequence::SequenceNumber;
use super::state::{Agreed, State};
use super::tcb::Tcb;
use super::timestamps::TIMESTAMP_BYTES;

/// Timeouts in a row after which a path that swallows long segments is suspected, and the payload that is tried then: less
/// than any common tunnel leaves of an Ethernet frame, then the least that everybody takes.
const SUSPICIONS: [(u8, u16); 2] = [(3, 1200), (4, MSS_DEFAULT)];

impl Tcb {
    /// The network says that a segment which began at `sequence` was too long for some link, and that `mss` bytes of payload would
    /// have fitted (RFC 1191). Believed only of what is on the way, and never below [`MSS_DEFAULT`]. What is on the way is
    /// sent again in smaller segments; no congestion is inferred.
    pub fn path_narrowed(&mut self, sequence: SequenceNumber, mss: u16) {
        let is_on_the_way = sequence.since(self.snd_una) < self.snd_max.since(self.snd_una);
        if is_on_the_way
            && self.is_synchronized()
            && self.shorten(mss)
            && let Some(queue) = self.send_queue.as_deref_mut()
        {
            queue.flight.judge(|_| Fate::Lost);
        }
    }

    /// What was sent was not answered, `attempts` times in a row: perhaps it is too long for the path. A segment that is not
    /// full may be as well.
    pub(super) fn suspect_path(&mut self) {
        let suspicion = SUSPICIONS.iter().find(|(attempts, _)| *attempts == self.attempts);
        if let Some((_, mss)) = suspicion
            && self.queued() > u32::from(*mss)
        {
            self.shorten(*mss);
        }
    }

    /// Sends no longer segments than these any more. Returns whether they were longer.
    fn shorten(&mut self, mss: u16) -> bool {
        let timestamps = if self.has_agreed(Agreed::TIMESTAMPS) { TIMESTAMP_BYTES } else { 0 };
        let mss = mss.max(MSS_DEFAULT) - timestamps;
        let is_shorter = mss < self.mss;
        self.mss = self.mss.min(mss);
        is_shorter
    }

    /// The network says that nobody takes the segment that began at `sequence`, and will not.
    pub fn refused_on_the_way(&mut self, sequence: SequenceNumber, pools: &mut Pools) -> Actions {
        let mut actions = Actions::default();
        if self.state == State::SynSent && sequence == self.snd_una && self.snd_max != self.snd_una {
            self.finish(CloseReason::Refused, pools, &mut actions);
        }
        actions
    }
}
