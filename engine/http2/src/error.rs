//! Why a stream or a connection ends: RFC 9113 section 7.

/// An error code. What a peer says is not read: it changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorCode {
    /// Nothing is wrong.
    NoError = 0x0,
    /// The peer does what the protocol does not allow.
    ProtocolError = 0x1,
    /// Something is wrong on our side.
    InternalError = 0x2,
    /// The peer sends more than it was allowed.
    FlowControlError = 0x3,
    /// A frame for a stream that is closed.
    StreamClosed = 0x5,
    /// A frame of a size that it cannot have.
    FrameSizeError = 0x6,
    /// The stream was refused before anything was done: it may be asked again.
    RefusedStream = 0x7,
    /// The stream is not wanted any more.
    Cancel = 0x8,
    /// A block of fields cannot be decoded.
    CompressionError = 0x9,
    /// The peer does more than is good for us.
    EnhanceYourCalm = 0xb,
}

impl ErrorCode {
    /// As it travels.
    pub const fn bytes(self) -> [u8; 4] {
        (self as u32).to_be_bytes()
    }
}
