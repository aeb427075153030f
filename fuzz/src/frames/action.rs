//! The actions of an input, carried out in order.

use arbitrary::Arbitrary;

/// One action.
#[derive(Arbitrary, Debug)]
pub(super) enum Action {
    /// A frame arrives.
    Peer {
        frame: PeerFrame,
        checksum_is_known: bool,
    },
    User(Deed),
    /// A peer connects, as it should.
    Greet {
        peer: u8,
        port: u8,
    },
    Wait {
        millis: u16,
    },
    Speak {
        room: u8,
    },
}

/// What the network's user does, with the connection of a number.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) enum Deed {
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
    /// From now on this share of the bytes that arrive is taken at once, in 256ths.
    Take {
        share: u8,
    },
    Listen {
        on: bool,
    },
}

/// A frame as a peer would send it, or not.
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
    /// A part of a packet of this protocol.
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

/// A segment with numbers relative to what its receiver said last.
#[derive(Arbitrary, Clone, Debug)]
pub(super) struct TcpFields {
    pub(super) peer: u8,
    pub(super) port: u8,
    /// To another port than the one that is listened on.
    pub(super) elsewhere: bool,
    pub(super) kind: Kind,
    /// How far its numbers are from those that are expected.
    pub(super) sequence: Off,
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
    /// As they stand on the wire.
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

/// How far a number is off.
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

/// Ports of datagrams.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) enum Port {
    Bound,
    DhcpClient,
    Any(u16),
}

/// What an ICMP message speaks of.
#[derive(Arbitrary, Debug)]
pub(super) enum Quoted {
    /// A segment of ours, of this peer's connection, with its sequence number off by this much.
    Segment {
        port: u8,
        off: i16,
    },
    Bytes(Vec<u8>),
}
