//! The actions of an input, in their order.

use arbitrary::Arbitrary;

/// One action.
#[derive(Arbitrary, Debug)]
pub(super) enum Action {
    /// A frame arrives.
    Peer {
        frame: PeerFrame,
        checksum_is_known: bool,
    },
    User(UserAction),
    /// A peer opens a connection with a correct handshake.
    Greet {
        peer: u8,
        port: u8,
    },
    Wait {
        millis: u16,
    },
    Transmit {
        room: u8,
    },
}

/// An action of the network's user. `which` selects one of its connections.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) enum UserAction {
    Read {
        which: u8,
        count: u16,
    },
    Send {
        which: u8,
        count: u16,
    },
    SendPiece {
        which: u8,
        count: u16,
    },
    WantRoom {
        which: u8,
    },
    Close {
        which: u8,
    },
    Abort {
        which: u8,
    },
    Connect {
        peer: u8,
        port: u8,
    },
    Datagram {
        peer: u8,
        count: u8,
    },
    /// From now on the user takes `share` + 1 of each 256 arriving bytes at once.
    Take {
        share: u8,
    },
    Listen {
        on: bool,
    },
}

/// A frame of a peer, correct or not.
#[derive(Arbitrary, Debug)]
pub(super) enum PeerFrame {
    Tcp(TcpFields),
    Udp {
        peer: u8,
        from_port: u16,
        to_port: Port,
        bytes: Vec<u8>,
    },
    Icmp {
        peer: u8,
        kind: u8,
        code: u8,
        rest: [u8; 4],
        quoted: Quoted,
    },
    Arp {
        peer: u8,
        operation: u8,
        target: u8,
        hardware: u8,
    },
    Dhcp {
        kind: u8,
        flags: u8,
        lease: u32,
        options: Vec<u8>,
    },
    /// A fragment of an IPv4 packet.
    Fragment {
        peer: u8,
        protocol: u8,
        field: u16,
        bytes: Vec<u8>,
    },
    Ipv4 {
        peer: u8,
        protocol: u8,
        to: u8,
        bytes: Vec<u8>,
    },
    Ethernet {
        to: u8,
        kind: u16,
        bytes: Vec<u8>,
    },
    Raw(Vec<u8>),
}

/// A segment. Its numbers are relative to the last segment of the network on the connection.
#[derive(Arbitrary, Clone, Debug)]
pub(super) struct TcpFields {
    pub(super) peer: u8,
    pub(super) port: u8,
    /// The segment goes to a port without a listener.
    pub(super) to_closed_port: bool,
    pub(super) kind: Kind,
    /// The distance of the sequence number from the expected one.
    pub(super) sequence: Off,
    /// The distance of the acknowledgment number from the expected one.
    pub(super) acknowledgment: Off,
    pub(super) window: u16,
    pub(super) payload_bytes: u16,
    pub(super) options: Vec<u8>,
}

/// The flags of a segment.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) enum Kind {
    Data,
    Fin,
    Syn,
    SynAck,
    Reset,
    Any(u8),
}

impl Kind {
    /// The octet of the flags (RFC 9293 §3.1).
    pub(super) fn flags(self) -> u8 {
        match self {
            Kind::Data => 0x18,
            Kind::Fin => 0x11,
            Kind::Syn => 0x02,
            Kind::SynAck => 0x12,
            Kind::Reset => 0x04,
            Kind::Any(flags) => flags,
        }
    }
}

/// The distance of a number from the expected number.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) enum Off {
    Not,
    Little(i8),
    More(i16),
    Far(i32),
}

impl Off {
    pub(super) fn by(self) -> i32 {
        match self {
            Off::Not => 0,
            Off::Little(by) => by.into(),
            Off::More(by) => by.into(),
            Off::Far(by) => by,
        }
    }
}

/// The destination port of a datagram.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) enum Port {
    Bound,
    DhcpClient,
    Any(u16),
}

/// The packet that an ICMP message quotes.
#[derive(Arbitrary, Debug)]
pub(super) enum Quoted {
    /// A segment of the network on this peer's connection. `off` is added to its sequence number.
    Segment {
        port: u8,
        off: i16,
    },
    Bytes(Vec<u8>),
}
