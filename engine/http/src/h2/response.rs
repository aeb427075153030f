//! Turns the head of an HTTP/1.1 response into a HEADERS frame.
//!
//! `answer.rs` writes heads in the form of HTTP/1.1 for both versions. This file compresses the
//! lines of a head into fields, and leaves out the connection-specific fields of HTTP/1.1.
//!
//! Implements: RFC 9113 sections 6.2, 8.2.2 and 8.3.2.

use heapless::Vec;
use http2::{
    BufferFull, FRAME_HEAD_BYTES, FrameHead, FrameType, encode_field, encode_secret, encode_status,
    flags,
};

use crate::actions::Actions;
use crate::answer::PendingResponse;
use crate::outgoing::OutgoingBody;
use crate::response::{RESPONSE_HEAD_BYTES_MAX, ResponseHead};

/// The longest frame with a head, in bytes. A compressed field is at most one byte longer than its
/// line.
pub(super) const HEAD_FRAME_BYTES_MAX: usize = RESPONSE_HEAD_BYTES_MAX + 128;

/// The start of a response: the HEADERS frame, and the frame head of the first DATA frame.
pub(super) type ResponseStart = Vec<u8, { HEAD_FRAME_BYTES_MAX + FRAME_HEAD_BYTES }>;

/// Writes the head of an answer into `frame`, which is empty, and returns the body.
pub(super) fn begin(
    stream: u32,
    answer: &mut PendingResponse,
    frame: &mut ResponseStart,
    actions: &mut impl Actions,
) -> OutgoingBody {
    let mut head = ResponseHead::default();
    let outgoing = answer.begin(&mut head, actions);
    let fits = encode(answer.status().code(), head.as_bytes(), frame);
    debug_assert!(fits.is_ok(), "the head of a response fits into its frame");
    let end_stream = if outgoing.is_nothing() { flags::END_STREAM } else { 0 };
    let length = frame.len().saturating_sub(FRAME_HEAD_BYTES) as u32;
    let flags = flags::END_HEADERS | end_stream;
    if let Some(place) = frame.first_chunk_mut() {
        *place = FrameHead { length, kind: FrameType::Headers, flags, stream }.bytes();
    }
    outgoing
}

/// Writes zeros in place of the frame head, then the status and the fields of `head`.
fn encode(status: u16, head: &[u8], frame: &mut ResponseStart) -> Result<(), BufferFull> {
    frame.extend_from_slice(&[0; FRAME_HEAD_BYTES]).map_err(|_| BufferFull)?;
    encode_status(frame, status)?;
    // The first line is the status line.
    let mut rest = head
        .get(memchr::memchr(b'\n', head).map_or(head.len(), |end| end + 1)..)
        .unwrap_or_default();
    while let Some(end) = memchr::memchr(b'\r', rest) {
        let (line, behind) = rest.split_at_checked(end).unwrap_or_default();
        rest = behind.strip_prefix(b"\r\n").unwrap_or_default();
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        let (name, value) = line.split_at_checked(colon).unwrap_or_default();
        let value = value.strip_prefix(b": ").unwrap_or_default();
        match name {
            b"Connection" | b"Transfer-Encoding" => {}
            b"Set-Cookie" => encode_secret(frame, name, value)?,
            _ => encode_field(frame, name, value)?,
        }
    }
    Ok(())
}
