//! What the path carries, as far as others say so or silence does.
//!
//! - A router's word that a segment was too long counts only if it quotes a number that is on the way (RFC 5927 §4, §7.2), and
//!   never makes segments smaller than what everybody takes: whoever cannot see the connection can hardly harm it.
//! - Where no such word comes through, and long segments vanish time after time, smaller ones are tried (RFC 4821 §7.7, RFC
//!   2923 §2.1). A connection keeps its smaller size: few live long enough to find that the path has widened.
//! - Word that nobody is there ends only an attempt to connect, and only if it is about that very SYN (RFC 5927 §5.2).
//!   What is established outlives it: retransmission finds out whether it is true.

use super::handshake::MSS_DEFAULT;

/// Timeouts in a row after which a path that swallows long segments is suspected, and the payload that is tried then: less
/// than any common tunnel leaves of an Ethernet frame, then the least that everybody takes.
const SUSPICIONS: [(u8, u16); 2] = [(3, 1200), (4, MSS_DEFAULT)];

/// The payload to try after so many timeouts in a row; none: the one that is in use.
pub(super) fn size_to_try(attempts: u8) -> Option<u16> {
    SUSPICIONS.iter().find(|(after, _)| *after == attempts).map(|(_, mss)| *mss)
}
