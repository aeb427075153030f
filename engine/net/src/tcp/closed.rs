//! The answer to a segment that belongs to no connection (RFC 9293 §3.10.7.1).

use super::segment::{Flags, SegmentRepr, SegmentToSend};
use super::sequence::SequenceNumber;

/// The reset for a segment without a connection. `None` for a reset, which is never answered.
///
/// The caller limits the rate: each reset tells a scanner something, and costs a frame.
pub fn reset_for(segment: &SegmentRepr<'_>) -> Option<SegmentToSend> {
    if segment.flags.has(Flags::RST) {
        return None;
    }
    if segment.flags.has(Flags::ACK) {
        return Some(SegmentToSend {
            sequence: segment.acknowledgment,
            flags: Flags::RST,
            ..SegmentToSend::default()
        });
    }
    Some(SegmentToSend {
        sequence: SequenceNumber(0),
        acknowledgment: segment.sequence + segment.sequence_len(),
        flags: Flags::RST.with(Flags::ACK),
        ..SegmentToSend::default()
    })
}
