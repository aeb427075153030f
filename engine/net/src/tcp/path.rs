//! The payload that the path carries, as routers report it or as lost segments suggest.
//! - A router's report that a segment was too long counts only if it quotes a sequence number in
//!   flight (RFC 5927 §4, §7.2). It never makes segments smaller than the default MSS. So an
//!   attacker that cannot see the connection can hardly harm it.
//! - If no such report arrives and long segments are lost repeatedly, smaller segments are tried
//!   (RFC 4821 §7.7, RFC 2923 §2.1). A connection keeps its smaller size: few connections live long
//!   enough to see the path widen.
//! - A report that the host refuses our protocol or port ends only an attempt to connect, and only
//!   if it quotes that very SYN (RFC 5927 §5.2). A report that the host is unreachable has no
//!   effect: retransmission finds out whether the report is true.

use super::handshake::MSS_DEFAULT;

/// Consecutive timeouts after which a path is suspected to drop long segments, and the payload to
/// try then. The first payload fits any common tunnel over Ethernet; the second is the default MSS.
const SUSPICIONS: [(u8, u16); 2] = [(3, 1200), (4, MSS_DEFAULT)];

/// The payload to try after this many consecutive timeouts. `None`: the current payload.
pub(super) fn size_to_try(attempts: u8) -> Option<u16> {
    SUSPICIONS.iter().find(|(after, _)| *after == attempts).map(|(_, mss)| *mss)
}
