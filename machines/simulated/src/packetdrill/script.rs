//! A parsed script: its settings and its events, in order.

use std::collections::HashMap;
use std::fmt;

use machine::Micros;

/// A line of a script that does not match the language.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct SyntaxError {
    pub(super) line: usize,
    pub(super) expected: String,
    pub(super) seen: String,
}

impl SyntaxError {
    pub(super) fn new(
        line: usize,
        expected: impl fmt::Display,
        seen: impl fmt::Display,
    ) -> SyntaxError {
        SyntaxError { line, expected: expected.to_string(), seen: seen.to_string() }
    }
}

/// A whole script.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Script {
    /// The header lines: names without `--`, values, and line numbers.
    pub(super) options: Vec<HeaderLine>,
    /// The definitions of the header lines and of `#define`.
    pub(super) defines: HashMap<String, String>,
    /// The command before the first event, the events, and the command after the last.
    pub(super) events: Vec<Event>,
}

/// One `--name=value`.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct HeaderLine {
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) value: Option<String>,
}

/// The time of an event. `At` and `Between` count from the start of the script, `After` and
/// `AfterBetween` from the previous event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum When {
    At(Micros),
    After(Micros),
    Between(Micros, Micros),
    AfterBetween(Micros, Micros),
    Anytime,
}

/// One event of a script, and the line on which it begins.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Event {
    pub(super) line: usize,
    pub(super) when: When,
    pub(super) action: ScriptAction,
}

/// The action of an event.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum ScriptAction {
    Inbound(ScriptPacket),
    Outbound(ScriptPacket),
    SocketCall(SocketCall),
    /// A shell command. No command is ever executed.
    Command(String),
    /// Python code.
    Code(String),
}

/// A packet on the wire.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ScriptPacket {
    pub(super) ip: IpInfo,
    /// The tunnel around the packet, if any. The engine implements none.
    pub(super) wrapping: Option<&'static str>,
    /// Source and destination port, if the script names them.
    pub(super) ports: Option<(u16, u16)>,
    pub(super) body: PacketBody,
}

/// The fields of the IP header that a script names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct IpInfo {
    pub(super) ecn: Option<Ecn>,
    /// The whole TOS byte.
    pub(super) tos: Option<u8>,
    pub(super) ttl: Option<u8>,
    pub(super) flow_label: Option<u32>,
}

/// The ECN field of an IP header, or its allowed values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ecn {
    Is(u8),
    /// ECT(0) or ECT(1).
    Capable,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum PacketBody {
    Tcp(TcpPacket),
    /// A datagram with this many bytes of payload.
    Udp(u16),
    Icmp(Icmp),
    /// A protocol that the engine does not implement.
    Foreign(&'static str),
}

/// A TCP segment, in the script's numbers.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct TcpPacket {
    pub(super) flags: Flags,
    /// The sequence number; `None`: any number.
    pub(super) sequence: Option<u32>,
    /// Whether the sequence number is the one on the wire instead of the script's.
    pub(super) absolute: bool,
    pub(super) payload: u32,
    pub(super) acknowledgment: Option<u32>,
    pub(super) window: Option<u16>,
    pub(super) urgent: Option<u16>,
    /// The options; `None`: any options.
    pub(super) options: Option<Vec<TcpOption>>,
}

/// The control bits of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Flags {
    /// FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128, AE 256.
    pub(super) bits: u16,
}

impl Flags {
    pub(super) const FIN: u16 = 1;
    pub(super) const SYN: u16 = 2;
    pub(super) const RST: u16 = 4;
    pub(super) const PSH: u16 = 8;
    pub(super) const ACK: u16 = 16;
    pub(super) const URG: u16 = 32;
    pub(super) const ECE: u16 = 64;
    pub(super) const CWR: u16 = 128;
    pub(super) const AE: u16 = 256;

    pub(super) fn has(self, bits: u16) -> bool {
        self.bits & bits == bits
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = [
            (Flags::SYN, 'S'),
            (Flags::FIN, 'F'),
            (Flags::RST, 'R'),
            (Flags::PSH, 'P'),
            (Flags::URG, 'U'),
            (Flags::AE, 'A'),
            (Flags::ECE, 'E'),
            (Flags::CWR, 'W'),
            (Flags::ACK, '.'),
        ];
        if self.bits == 0 {
            return out.write_str("-");
        }
        flags
            .iter()
            .filter(|(bit, _)| self.has(*bit))
            .try_for_each(|(_, flag)| write!(out, "{flag}"))
    }
}

/// One option of a TCP header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum TcpOption {
    Nop,
    End,
    Mss(u16),
    WindowScale(u8),
    SackPermitted,
    Sack(Vec<(u32, u32)>),
    /// The value and the echo. A value of `None` allows any value. `absolute`: the echo is the
    /// number on the wire.
    Timestamp {
        value: Option<u32>,
        echo: u32,
        absolute: bool,
    },
    /// Another kind of option: the data after kind and length, and the script's name for the
    /// option.
    Other {
        kind: u8,
        data: Vec<u8>,
        name: String,
    },
}

/// An ICMP message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Icmp {
    pub(super) kind: String,
    pub(super) code: Option<String>,
    pub(super) mtu: Option<u32>,
    pub(super) identifier: Option<u16>,
    pub(super) quoted: Option<Quoted>,
}

/// The packet that an ICMP error quotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Quoted {
    /// A segment of ours: its sequence number and its length.
    Tcp(u32, u32),
    Other(&'static str),
}

/// A call to the socket interface.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct SocketCall {
    pub(super) name: String,
    pub(super) arguments: Vec<Expression>,
    pub(super) result: Expression,
    /// The name of the expected error.
    pub(super) error: Option<String>,
    /// The time at which a blocking call returns, counted like the time of the event.
    pub(super) returns: Option<Micros>,
}

/// An argument or the result of a call.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Expression {
    /// `...`
    Any,
    Integer(i64),
    Word(String),
    Text(String),
    Either(Vec<Expression>),
    /// `name=value`
    Named(String, Box<Expression>),
    /// `name(…)`
    Applied(String, Vec<Expression>),
    /// `[…]`
    List(Vec<Expression>),
    /// `{…}`
    Record(Vec<Expression>),
}
