//! Sends the packets of the script: translates addresses, ports and numbers, and puts the packets
//! on the wire.

use super::flow::Flow;
use super::player::Player;
use super::script::{
    Ecn, Flags, Icmp, IpInfo, PacketBody, Quoted, ScriptPacket, TcpOption, TcpPacket,
};
use super::sockets::pattern;
use super::verdict::ScriptStop;
use super::wire::{
    self, IpPacket, PROTOCOL_ICMP, PROTOCOL_ICMP6, PROTOCOL_TCP, PROTOCOL_UDP, Segment,
};

impl Player {
    /// Puts a packet of the script on the wire.
    pub(super) fn inject(&mut self, line: usize, packet: &ScriptPacket) -> Result<(), ScriptStop> {
        let (peer, own) = (self.config.peer, self.config.own);
        let (protocol, payload) = match &packet.body {
            PacketBody::Tcp(tcp) => {
                let flow = self.flow_of_inbound(packet, tcp);
                let segment = self.segment(line, flow, tcp)?;
                (PROTOCOL_TCP, segment.bytes(peer, own))
            }
            PacketBody::Icmp(icmp) => {
                let protocol = if own.is_ipv4() { PROTOCOL_ICMP } else { PROTOCOL_ICMP6 };
                (protocol, self.icmp(line, icmp)?)
            }
            PacketBody::Udp(length) => (PROTOCOL_UDP, self.datagram(packet, *length)),
            PacketBody::Foreign(what) => {
                return Err(ScriptStop::not_applicable(line, format!("there is no {what} here")));
            }
        };
        let mut ip = IpPacket::new(peer, own, protocol, payload);
        ip.tos = type_of_service(packet.ip);
        ip.ttl = packet.ip.ttl.filter(|ttl| *ttl > 0).unwrap_or(64);
        ip.flow_label = packet.ip.flow_label.unwrap_or(0);
        self.host.hear(&ip);
        Ok(())
    }

    /// Finds the flow that a packet of the script belongs to. A new client gets a new flow.
    fn flow_of_inbound(&mut self, packet: &ScriptPacket, tcp: &TcpPacket) -> usize {
        let opens = tcp.flags.has(Flags::SYN) && !tcp.flags.has(Flags::ACK);
        let found = match packet.ports {
            Some((source, destination)) => {
                self.flows.iter().rposition(|flow| flow.script_ports == Some((source, destination)))
            }
            None if opens && self.expects_caller => None,
            None => self.under_test,
        };
        let flow = match found {
            Some(flow) => flow,
            None => self.new_caller(packet),
        };
        self.under_test = Some(flow);
        flow
    }

    fn new_caller(&mut self, packet: &ScriptPacket) -> usize {
        self.expects_caller = false;
        let local_port = self.listening_port().unwrap_or(self.config.bind_port);
        let (peer_port, local_port) = packet.ports.unwrap_or((self.next_port, local_port));
        self.next_port = self.next_port.wrapping_add(1).max(1024);
        self.flows.push(Flow::between(peer_port, local_port, packet.ports));
        self.flows.len() - 1
    }

    fn segment(
        &mut self,
        line: usize,
        flow: usize,
        tcp: &TcpPacket,
    ) -> Result<Segment, ScriptStop> {
        let Some(flow) = self.flows.get_mut(flow) else {
            return Err(ScriptStop::failed(line, "a connection for this packet", "none"));
        };
        let (number, is_syn) = (tcp.sequence.unwrap_or(0), tcp.flags.has(Flags::SYN));
        if is_syn {
            flow.peer_begins(number, tcp.options.as_deref().unwrap_or_default());
        }
        // The window edges of two kernels differ by their buffer sizes, which are far smaller than
        // this limit.
        let near = |edge: u32| number.wrapping_sub(edge) < 1 << 20;
        if !is_syn_of_new(flow, tcp) && self.terms.foreign && flow.edge().is_some_and(near) {
            let excuse =
                "it sends to the edge of another kernel's window, which is not where ours ends";
            self.excuse.get_or_insert((line, excuse));
        }
        let has_timestamps = tcp
            .options
            .iter()
            .flatten()
            .any(|option| matches!(option, TcpOption::Timestamp { .. }));
        if flow.agreed_on_timestamps() && !has_timestamps && !tcp.flags.has(Flags::RST) && !is_syn {
            let excuse = "it leaves out the timestamps that were agreed on, and such a segment is dropped (RFC 7323 section 3.2)";
            self.excuse.get_or_insert((line, excuse));
        }
        // The first byte of the stream has the number 1, even if it is in the SYN.
        let place = if is_syn { 0 } else { number.wrapping_sub(1) };
        Ok(Segment {
            source_port: flow.peer_port,
            destination_port: flow.local_port,
            sequence: if tcp.absolute { number } else { flow.theirs_to_wire(number, is_syn) },
            acknowledgment: tcp
                .acknowledgment
                .map_or(0, |number| flow.ours_to_wire(number, is_syn)),
            flags: tcp.flags,
            window: tcp.window.unwrap_or(if tcp.flags.has(Flags::RST) { 0 } else { u16::MAX }),
            urgent: tcp.urgent.unwrap_or(0),
            options: tcp
                .options
                .iter()
                .flatten()
                .map(|option| option_to_wire(flow, tcp, option))
                .collect(),
            payload: (0..tcp.payload).map(|step| pattern(place.wrapping_add(step))).collect(),
        })
    }

    fn datagram(&self, packet: &ScriptPacket, length: u16) -> Vec<u8> {
        let (source, destination) =
            packet.ports.unwrap_or((self.config.connect_port, self.config.bind_port));
        let mut bytes = Vec::with_capacity(8 + usize::from(length));
        bytes.extend_from_slice(&source.to_be_bytes());
        bytes.extend_from_slice(&destination.to_be_bytes());
        bytes.extend_from_slice(&length.saturating_add(8).to_be_bytes());
        bytes.extend_from_slice(&[0, 0]);
        bytes.resize(8 + usize::from(length), 0);
        wire::put_checksum(
            &mut bytes,
            6,
            wire::pseudo_header(self.config.peer, self.config.own, PROTOCOL_UDP),
        );
        bytes
    }

    /// An ICMP message. An error quotes the headers of a segment of ours.
    fn icmp(&self, line: usize, icmp: &Icmp) -> Result<Vec<u8>, ScriptStop> {
        let own = self.config.own;
        let Some((kind, code)) = kind_and_code(icmp, own.is_ipv4()) else {
            let code = icmp.code.as_deref().unwrap_or_default();
            if super::names::is_undefined(code) {
                let reason = format!(
                    "{code} is not defined in the script, but on packetdrill's command line"
                );
                return Err(ScriptStop::not_applicable(line, reason));
            }
            let what = format!("icmp {} {code}", icmp.kind);
            return Err(ScriptStop::failed(line, "a message of ICMP", what));
        };
        let mtu = icmp.mtu.unwrap_or(0).to_be_bytes();
        let identifier = icmp.identifier.unwrap_or(0).to_be_bytes();
        let rest =
            if icmp.identifier.is_some() { [identifier[0], identifier[1], 0, 1] } else { mtu };
        let mut message = vec![kind, code, 0, 0];
        message.extend_from_slice(&rest);
        if icmp.kind.starts_with("echo") {
            message.extend_from_slice(&[0; 56]);
        } else {
            message.extend_from_slice(&self.quoted(line, icmp.quoted)?);
        }
        let start = if own.is_ipv4() {
            0
        } else {
            wire::pseudo_header(self.config.peer, own, PROTOCOL_ICMP6)
        };
        wire::put_checksum(&mut message, 2, start);
        Ok(message)
    }

    fn quoted(&self, line: usize, quoted: Option<Quoted>) -> Result<Vec<u8>, ScriptStop> {
        let (start, length) = match quoted {
            Some(Quoted::Tcp(start, length)) => (start, length),
            None => (0, 0),
            Some(Quoted::Other(what)) => {
                return Err(ScriptStop::not_applicable(
                    line,
                    format!("we never sent the {what} that is quoted"),
                ));
            }
        };
        let Some(flow) = self.under_test.and_then(|flow| self.flows.get(flow)) else {
            return Err(ScriptStop::failed(line, "a connection for the quoted segment", "none"));
        };
        let segment = Segment {
            source_port: flow.local_port,
            destination_port: flow.peer_port,
            sequence: flow.ours_to_wire(start, false),
            acknowledgment: 0,
            flags: Flags { bits: Flags::ACK },
            window: 0,
            urgent: 0,
            options: Vec::new(),
            payload: vec![0; usize::try_from(length).unwrap_or(0)],
        };
        let (own, peer) = (self.config.own, self.config.peer);
        let whole = IpPacket::new(own, peer, PROTOCOL_TCP, segment.bytes(own, peer)).bytes();
        let headers = if own.is_ipv4() { 20 } else { 40 } + 20;
        Ok(whole.get(..headers).unwrap_or(&whole).to_vec())
    }
}

/// Whether the segment begins a connection, so that no window was sent yet.
fn is_syn_of_new(flow: &Flow, tcp: &TcpPacket) -> bool {
    tcp.flags.has(Flags::SYN) && flow.edge().is_none()
}

/// Translates our numbers in an option to the numbers on the wire.
fn option_to_wire(flow: &Flow, tcp: &TcpPacket, option: &TcpOption) -> TcpOption {
    match option {
        TcpOption::Sack(blocks) => {
            let to_wire = |number| flow.ours_to_wire(number, false);
            TcpOption::Sack(
                blocks.iter().map(|(left, right)| (to_wire(*left), to_wire(*right))).collect(),
            )
        }
        TcpOption::Timestamp { value, echo, absolute: false } if tcp.flags.has(Flags::ACK) => {
            TcpOption::Timestamp { value: *value, echo: flow.echo_to_wire(*echo), absolute: false }
        }
        other => other.clone(),
    }
}

fn type_of_service(info: IpInfo) -> u8 {
    match (info.tos, info.ecn) {
        (Some(tos), _) => tos,
        (None, Some(Ecn::Is(ecn))) => ecn,
        _ => 0,
    }
}

/// The ICMP type and code of a message in a script, which gives names or numbers.
pub(super) fn kind_and_code(icmp: &Icmp, is_ipv4: bool) -> Option<(u8, u8)> {
    let code = icmp.code.as_deref().unwrap_or_default();
    let in_v4: &[&str] = &[
        "net_unreachable",
        "host_unreachable",
        "protocol_unreachable",
        "port_unreachable",
        "frag_needed",
        "source_route_failed",
        "net_unknown",
        "host_unknown",
        "source_host_isolated",
        "net_prohibited",
        "host_prohibited",
        "net_unreachable_for_tos",
        "host_unreachable_for_tos",
        "packet_filtered",
        "precedence_violation",
        "precedence_cutoff",
    ];
    let in_v6: &[&str] = &[
        "no_route",
        "prohibited",
        "not_neighbour",
        "addr_unreachable",
        "port_unreachable",
        "ingress_egress_policy",
        "reject_route",
    ];
    let number = |names: &[&str]| {
        let by_name =
            names.iter().position(|name| *name == code).and_then(|at| u8::try_from(at).ok());
        by_name.or_else(|| code.parse().ok()).or_else(|| code.is_empty().then_some(0))
    };
    let first_word = |word: &'static str| {
        if code.is_empty() || code == word { Some(0) } else { code.parse().ok() }
    };
    let kinds: (u8, Option<u8>) = match (icmp.kind.as_str(), is_ipv4) {
        ("echo_reply", true) => (0, Some(0)),
        ("echo_request", true) => (8, Some(0)),
        ("unreachable", true) => (3, number(in_v4)),
        ("source_quench", true) => (4, Some(0)),
        ("redirect", true) => (5, code.parse().ok().or(Some(0))),
        ("time_exceeded", true) => (11, number(&["ttl_exceeded", "frag_time_exceeded"])),
        ("parameter_problem", true) => (12, code.parse().ok().or(Some(0))),
        ("unreachable", false) => (1, number(in_v6)),
        ("packet_too_big", false) => (2, first_word("too_big")),
        ("time_exceeded", false) => (3, number(&["exceeded_transit", "exceeded_reassembly"])),
        ("parameter_problem", false) => (4, code.parse().ok().or(Some(0))),
        ("echo_request", false) => (128, Some(0)),
        ("echo_reply", false) => (129, Some(0)),
        (number, _) => (number.parse().ok()?, code.parse().ok().or(Some(0))),
    };
    Some((kinds.0, kinds.1?))
}
