//! A frame's head: how long it is, of which kind, for which stream.
//!
//! Answers to: RFC 9113 sections 3.4 and 4.1.

/// What a client begins with.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes of a frame's head.
pub const FRAME_HEAD_BYTES: usize = 9;

/// The longest payload of a frame that we take, in bytes, and that a peer takes which has not said otherwise.
pub const FRAME_BYTES_MAX: usize = 16_384;

/// What flags mean; each has its meaning at some kinds of frames only.
pub mod flags {
    /// DATA and HEADERS: the sender's last frame of the stream.
    pub const END_STREAM: u8 = 0x1;
    /// SETTINGS and PING: an answer.
    pub const ACK: u8 = 0x1;
    /// HEADERS and CONTINUATION: the block of fields ends here.
    pub const END_HEADERS: u8 = 0x4;
    /// DATA and HEADERS: padding follows.
    pub const PADDED: u8 = 0x8;
    /// HEADERS: a priority is said.
    pub const PRIORITY: u8 = 0x20;
}

/// The kinds of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Bytes of a body.
    Data,
    /// A block of fields, which begins a stream or ends it.
    Headers,
    /// How dear a stream is to the peer; nobody has to look at it.
    Priority,
    /// The end of a stream.
    ResetStream,
    /// What a side says of itself.
    Settings,
    /// What only servers send.
    PushPromise,
    /// Whether somebody is there.
    Ping,
    /// No more streams.
    GoAway,
    /// More may be sent.
    WindowUpdate,
    /// The rest of a block of fields.
    Continuation,
    /// Something that is not known, to be passed over.
    Unknown(u8),
}

impl Kind {
    const KNOWN: [Kind; 10] = [
        Kind::Data,
        Kind::Headers,
        Kind::Priority,
        Kind::ResetStream,
        Kind::Settings,
        Kind::PushPromise,
        Kind::Ping,
        Kind::GoAway,
        Kind::WindowUpdate,
        Kind::Continuation,
    ];

    fn of(byte: u8) -> Kind {
        Kind::KNOWN.get(usize::from(byte)).copied().unwrap_or(Kind::Unknown(byte))
    }

    const fn byte(self) -> u8 {
        match self {
            Kind::Data => 0,
            Kind::Headers => 1,
            Kind::Priority => 2,
            Kind::ResetStream => 3,
            Kind::Settings => 4,
            Kind::PushPromise => 5,
            Kind::Ping => 6,
            Kind::GoAway => 7,
            Kind::WindowUpdate => 8,
            Kind::Continuation => 9,
            Kind::Unknown(byte) => byte,
        }
    }
}

/// The head of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameHead {
    /// Bytes of the payload behind it: less than 2^24.
    pub length: u32,
    /// Which kind it is of.
    pub kind: Kind,
    /// See [`flags`].
    pub flags: u8,
    /// The stream, less than 2^31; 0 is the connection.
    pub stream: u32,
}

impl FrameHead {
    /// The head that `bytes` begin with; `None` when it is not whole.
    pub fn parse(bytes: &[u8]) -> Option<FrameHead> {
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = *bytes.first_chunk()?;
        let length = u32::from_be_bytes([0, l0, l1, l2]);
        // The first bit is reserved, and to be ignored.
        let stream = u32::from_be_bytes([s0 & 0x7f, s1, s2, s3]);
        Some(FrameHead { length, kind: Kind::of(kind), flags, stream })
    }

    /// As it travels.
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
