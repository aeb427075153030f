//! Settings, which each side sends to the other.
//!
//! Implements: RFC 9113 sections 6.5 and 6.5.2.

use crate::error::ErrorCode;
use crate::frame::FRAME_BYTES_MAX;

/// A setting that our server uses. The server never pushes, and encodes fields without a dynamic
/// table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Setting {
    /// The largest dynamic table that the receiver may use for its own fields, in bytes.
    TableBytes(u32),
    /// The number of streams that the receiver of the setting may have open.
    ConcurrentStreamsMax(u32),
    /// The number of bytes that the receiver of the setting may send on a new stream: less than
    /// 2^31.
    InitialWindow(u32),
    /// The longest payload of a frame, in bytes: from 2^14 to less than 2^24.
    FrameBytesMax(u32),
    /// The longest list of fields, in bytes. Each field counts 32 bytes more than its name and
    /// value.
    ListBytesMax(u32),
    /// Any other setting. It is ignored.
    Other,
}

impl Setting {
    /// The bytes on the wire. `None` for [`Setting::Other`].
    pub fn bytes(self) -> Option<[u8; 6]> {
        let (name, value): (u8, u32) = match self {
            Setting::TableBytes(value) => (1, value),
            Setting::ConcurrentStreamsMax(value) => (3, value),
            Setting::InitialWindow(value) => (4, value),
            Setting::FrameBytesMax(value) => (5, value),
            Setting::ListBytesMax(value) => (6, value),
            Setting::Other => return None,
        };
        let [v0, v1, v2, v3] = value.to_be_bytes();
        Some([0, name, v0, v1, v2, v3])
    }

    /// Errors: the value is not allowed for the setting.
    fn parse(bytes: [u8; 6]) -> Result<Setting, ErrorCode> {
        let [n0, n1, v0, v1, v2, v3] = bytes;
        let value = u32::from_be_bytes([v0, v1, v2, v3]);
        match u16::from_be_bytes([n0, n1]) {
            2 if value > 1 => Err(ErrorCode::ProtocolError),
            3 => Ok(Setting::ConcurrentStreamsMax(value)),
            4 if value > i32::MAX as u32 => Err(ErrorCode::FlowControlError),
            4 => Ok(Setting::InitialWindow(value)),
            5 if !(FRAME_BYTES_MAX as u32..1 << 24).contains(&value) => {
                Err(ErrorCode::ProtocolError)
            }
            5 => Ok(Setting::FrameBytesMax(value)),
            6 => Ok(Setting::ListBytesMax(value)),
            _ => Ok(Setting::Other),
        }
    }
}

/// The settings in the payload of a frame, in order.
///
/// Errors: the connection must end.
pub fn settings(
    payload: &[u8],
) -> Result<impl Iterator<Item = Result<Setting, ErrorCode>> + '_, ErrorCode> {
    match payload.as_chunks() {
        (settings, []) => Ok(settings.iter().map(|bytes| Setting::parse(*bytes))),
        _ => Err(ErrorCode::FrameSizeError),
    }
}
