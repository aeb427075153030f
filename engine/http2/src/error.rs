//! Error codes: why a stream or a connection ends (RFC 9113 section 7).

/// An error code that we send. The codes of a peer are not read, since they change nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorCode {
    /// No error.
    NoError = 0x0,
    /// The peer violates the protocol.
    ProtocolError = 0x1,
    /// An error on our side.
    InternalError = 0x2,
    /// The peer has sent more bytes than its window allows.
    FlowControlError = 0x3,
    /// The peer has sent a frame for a closed stream.
    StreamClosed = 0x5,
    /// The size of a frame is not allowed for its kind.
    FrameSizeError = 0x6,
    /// The stream was refused before any processing. The request may be retried.
    RefusedStream = 0x7,
    /// The stream is no longer needed.
    Cancel = 0x8,
    /// A block of fields cannot be decoded.
    CompressionError = 0x9,
    /// The peer causes too much load.
    EnhanceYourCalm = 0xb,
}

impl ErrorCode {
    /// The bytes on the wire.
    pub const fn bytes(self) -> [u8; 4] {
        (self as u32).to_be_bytes()
    }
}
