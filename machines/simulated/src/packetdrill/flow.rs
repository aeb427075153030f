//! One connection as a script sees it: its ports, and the mapping between the script's sequence
//! numbers and those on the wire.
//!
//! A script chooses the number of our SYN, usually 0. Whatever that number is, the first byte of a
//! stream has the number 1 in the script. On the wire our initial number is unpredictable, while
//! the peer's initial number is the script's. The values of our timestamps map in the same way.

use std::collections::HashMap;

use super::script::{Flags, TcpOption};
use super::wire::Segment;

/// The initial sequence number of one side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Initial {
    wire: u32,
    script: u32,
}

impl Initial {
    /// Translates a number of the script to the wire. In a SYN `number` is the script's initial
    /// number. All other numbers count from the SYN, which is 0.
    fn to_wire(self, number: u32, is_syn: bool) -> u32 {
        let from = if is_syn { self.script } else { 0 };
        number.wrapping_sub(from).wrapping_add(self.wire)
    }

    fn to_script(self, number: u32, is_syn: bool) -> u32 {
        let from = if is_syn { self.script } else { 0 };
        number.wrapping_sub(self.wire).wrapping_add(from)
    }
}

/// A connection, or an attempt at a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    /// The ports on the wire. Our port is zero until our SYN has shown it.
    pub(super) peer_port: u16,
    pub(super) local_port: u16,
    /// The ports in the script, if it names them.
    pub(super) script_ports: Option<(u16, u16)>,
    ours: Option<Initial>,
    theirs: Option<Initial>,
    /// The scale that our SYN offered. It applies if the peer's SYN has the option too.
    shift: u8,
    peer_scales: bool,
    /// Whether our SYN carried timestamps, and whether the peer's SYN did.
    timestamps: (bool, bool),
    /// The first known value of our timestamps, on the wire and in the script.
    first_value: Option<(u32, u32)>,
    /// The values of our timestamps on the wire, by the script's values.
    values: HashMap<u32, u32>,
    /// The acknowledgment and the window of our last segment, in the script's numbers.
    pub(super) last_acknowledged: Option<(u32, u16)>,
    /// The number after the highest one that we have sent, in the script's numbers.
    pub(super) sent_to: Option<u32>,
}

impl Flow {
    /// A flow between these ports. `local_port` is zero if our port is not known yet.
    pub(super) fn between(
        peer_port: u16,
        local_port: u16,
        script_ports: Option<(u16, u16)>,
    ) -> Flow {
        Flow { peer_port, local_port, script_ports, ..Flow::default() }
    }

    /// Notes a segment that we have sent. A SYN has our initial number, port and options.
    pub(super) fn noticed(&mut self, segment: &Segment) {
        if !segment.flags.has(Flags::SYN) {
            return;
        }
        self.local_port = segment.source_port;
        if self.ours.is_none_or(|ours| ours.wire != segment.sequence) {
            self.ours = Some(Initial { wire: segment.sequence, script: 0 });
            self.sent_to = None;
        }
        if segment.flags.has(Flags::ACK) {
            let wire = segment.acknowledgment.wrapping_sub(1);
            self.theirs = Some(Initial { wire, script: wire });
        }
        let ours = segment.options.iter().find_map(|option| match option {
            TcpOption::WindowScale(shift) => Some(*shift),
            _ => None,
        });
        self.shift = ours.unwrap_or(0);
        self.timestamps.0 = has_timestamps(&segment.options);
    }

    /// Sets the script's number for our SYN.
    pub(super) fn script_begins(&mut self, number: u32) {
        if let Some(ours) = &mut self.ours {
            ours.script = number;
        }
    }

    /// Notes a SYN of the peer. A later SYN in the same connection changes nothing.
    pub(super) fn peer_begins(&mut self, number: u32, options: &[TcpOption]) {
        if self.theirs.is_none() {
            self.theirs = Some(Initial { wire: number, script: number });
            self.timestamps.1 = has_timestamps(options);
            self.peer_scales =
                options.iter().any(|option| matches!(option, TcpOption::WindowScale(_)));
        }
    }

    /// Translates one of our numbers from the script to the wire.
    pub(super) fn ours_to_wire(&self, number: u32, is_syn: bool) -> u32 {
        self.ours.unwrap_or_default().to_wire(number, is_syn)
    }

    /// Translates one of the peer's numbers from the script to the wire.
    pub(super) fn theirs_to_wire(&self, number: u32, is_syn: bool) -> u32 {
        self.theirs.unwrap_or_default().to_wire(number, is_syn)
    }

    /// The number of our bytes before this sequence number on the wire. `None` if the number is
    /// before the first byte.
    pub(super) fn place_in_stream(&self, wire: u32) -> Option<u32> {
        Some(wire.wrapping_sub(self.ours?.wire).wrapping_sub(1)).filter(|place| *place < 1 << 31)
    }

    /// The first of the peer's sequence numbers beyond the window in our last segment, in the
    /// script's numbers.
    pub(super) fn edge(&self) -> Option<u32> {
        let (acknowledgment, window) = self.last_acknowledged?;
        let shift = if self.peer_scales { self.shift } else { 0 };
        Some(acknowledgment.wrapping_add(u32::from(window) << shift))
    }

    /// Whether both SYNs carried timestamps, so that every segment must carry them.
    pub(super) fn agreed_on_timestamps(&self) -> bool {
        self.timestamps == (true, true)
    }

    /// Notes that we sent the timestamp `wire` where the script expects `script`.
    pub(super) fn learn_value(&mut self, script: u32, wire: u32) {
        self.values.insert(script, wire);
        self.first_value.get_or_insert((wire, script));
    }

    /// Translates a timestamp that the script echoes to the wire.
    pub(super) fn echo_to_wire(&self, echo: u32) -> u32 {
        let by_first = |(wire, script): (u32, u32)| echo.wrapping_sub(script).wrapping_add(wire);
        match self.values.get(&echo) {
            Some(wire) => *wire,
            None => self.first_value.map_or(echo, by_first),
        }
    }

    /// Translates a segment of ours from the wire to the script's numbers.
    pub(super) fn in_script(&self, segment: &Segment) -> Segment {
        let mut segment = segment.clone();
        let is_syn = segment.flags.has(Flags::SYN);
        let (ours, theirs) = (self.ours.unwrap_or_default(), self.theirs.unwrap_or_default());
        // A reset that answers a segment without an acknowledgment always has the number zero.
        let is_zero = segment.flags.has(Flags::RST | Flags::ACK) && segment.sequence == 0;
        if !is_zero {
            segment.sequence = ours.to_script(segment.sequence, is_syn);
        }
        if segment.flags.has(Flags::ACK) {
            segment.acknowledgment = theirs.to_script(segment.acknowledgment, is_syn);
        }
        for option in &mut segment.options {
            match (option, self.first_value) {
                (TcpOption::Timestamp { value: Some(value), .. }, Some((wire, script))) => {
                    *value = value.wrapping_sub(wire).wrapping_add(script);
                }
                (TcpOption::Sack(blocks), _) => {
                    for (left, right) in blocks {
                        (*left, *right) =
                            (theirs.to_script(*left, false), theirs.to_script(*right, false));
                    }
                }
                _ => {}
            }
        }
        segment
    }

    /// Whether a segment of ours belongs to this flow, by its ports.
    pub(super) fn owns(&self, segment: &Segment) -> bool {
        let same_port = self.local_port == segment.source_port || self.local_port == 0;
        self.peer_port == segment.destination_port && same_port
    }
}

fn has_timestamps(options: &[TcpOption]) -> bool {
    options.iter().any(|option| matches!(option, TcpOption::Timestamp { .. }))
}
