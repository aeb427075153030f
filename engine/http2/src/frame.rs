//! The head of a frame: its length, its kind, and its stream.
//!
//! Implements: RFC 9113 sections 3.4 and 4.1.

/// The connection preface of a client.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes of the head of a frame.
pub const FRAME_HEAD_BYTES: usize = 9;

/// The longest payload of a frame that we accept, in bytes. A peer that sends no other limit
/// accepts frames of this length too.
pub const FRAME_BYTES_MAX: usize = 16_384;

/// Flags. Each flag has a meaning only in some kinds of frames.
pub mod flags {
    /// DATA and HEADERS: this is the sender's last frame on the stream.
    pub const END_STREAM: u8 = 0x1;
    /// SETTINGS and PING: the frame is an acknowledgement.
    pub const ACK: u8 = 0x1;
    /// HEADERS and CONTINUATION: the block of fields ends here.
    pub const END_HEADERS: u8 = 0x4;
    /// DATA and HEADERS: the frame has padding.
    pub const PADDED: u8 = 0x8;
    /// HEADERS: the frame has a priority.
    pub const PRIORITY: u8 = 0x20;
}

/// The kinds of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameType {
    /// Bytes of a body.
    Data,
    /// A block of fields, which begins or ends a stream.
    Headers,
    /// The priority of a stream, which is ignored.
    Priority,
    /// The end of a stream, by an error or a cancellation.
    ResetStream,
    /// The settings of one side.
    Settings,
    /// A promise of a push, which only servers send.
    PushPromise,
    /// A check whether the other side still responds.
    Ping,
    /// An announcement that the connection ends.
    GoAway,
    /// The receiver may send more bytes.
    WindowUpdate,
    /// The rest of a block of fields.
    Continuation,
    /// An unknown kind, which is ignored.
    Unknown(u8),
}

impl FrameType {
    const KNOWN: [FrameType; 10] = [
        FrameType::Data,
        FrameType::Headers,
        FrameType::Priority,
        FrameType::ResetStream,
        FrameType::Settings,
        FrameType::PushPromise,
        FrameType::Ping,
        FrameType::GoAway,
        FrameType::WindowUpdate,
        FrameType::Continuation,
    ];

    fn of(byte: u8) -> FrameType {
        FrameType::KNOWN.get(usize::from(byte)).copied().unwrap_or(FrameType::Unknown(byte))
    }

    const fn byte(self) -> u8 {
        match self {
            FrameType::Data => 0,
            FrameType::Headers => 1,
            FrameType::Priority => 2,
            FrameType::ResetStream => 3,
            FrameType::Settings => 4,
            FrameType::PushPromise => 5,
            FrameType::Ping => 6,
            FrameType::GoAway => 7,
            FrameType::WindowUpdate => 8,
            FrameType::Continuation => 9,
            FrameType::Unknown(byte) => byte,
        }
    }
}

/// The head of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameHead {
    /// Bytes of the payload after the head: less than 2^24.
    pub length: u32,
    /// The kind of frame.
    pub kind: FrameType,
    /// See [`flags`].
    pub flags: u8,
    /// The number of the stream: less than 2^31. 0 stands for the connection.
    pub stream: u32,
}

impl FrameHead {
    /// The head at the start of `bytes`. `None` if it is incomplete.
    pub fn parse(bytes: &[u8]) -> Option<FrameHead> {
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = *bytes.first_chunk()?;
        let length = u32::from_be_bytes([0, l0, l1, l2]);
        // The first bit is reserved and ignored.
        let stream = u32::from_be_bytes([s0 & 0x7f, s1, s2, s3]);
        Some(FrameHead { length, kind: FrameType::of(kind), flags, stream })
    }

    /// The bytes on the wire.
    pub const fn bytes(self) -> [u8; FRAME_HEAD_BYTES] {
        let [_, l0, l1, l2] = self.length.to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.to_be_bytes();
        [l0, l1, l2, self.kind.byte(), self.flags, s0, s1, s2, s3]
    }

    /// Whether all of `flags` are set.
    pub const fn has(self, flags: u8) -> bool {
        self.flags & flags == flags
    }
}
