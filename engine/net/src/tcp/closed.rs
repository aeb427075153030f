//! The answer to a segment that belongs to no connection (RFC 9293 §3.10.7.1).

use super::segment::{SegmentRepr, SegmentToSend, TcpFlags};
use super::sequence::SequenceNumber;

/// The reset for a segment without a connection. `None` for a reset, which is never answered.
///
/// The caller must limit the rate: each reset costs a frame, and tells a port scanner that the port
/// is closed.
pub fn reset_for(segment: &SegmentRepr<'_>) -> Option<SegmentToSend> {
    if segment.flags.has(TcpFlags::RST) {
        return None;
    }
    if segment.flags.has(TcpFlags::ACK) {
        return Some(SegmentToSend {
            sequence: segment.acknowledgment,
            flags: TcpFlags::RST,
            ..SegmentToSend::default()
        });
    }
    Some(SegmentToSend {
        sequence: SequenceNumber(0),
        acknowledgment: segment.sequence + segment.sequence_len(),
        flags: TcpFlags::RST.with(TcpFlags::ACK),
        ..SegmentToSend::default()
    })
}
