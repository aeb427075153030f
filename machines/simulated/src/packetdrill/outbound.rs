//! Handles the packets that the script expects: waits for packets of ours, joins or skips them
//! where the RFCs leave that to the engine, and compares them.

use machine::{Instant, Micros};

use super::compare::{self, PacketMismatch};
use super::host::SentPacket;
use super::player::{Player, seconds};
use super::script::{Flags, PacketBody, ScriptPacket, TcpOption, TcpPacket};
use super::sockets::pattern;
use super::verdict::ScriptStop;
use super::wire::Segment;

/// The longest time for which the player waits for a packet after the script's time, to report when
/// the packet was sent.
const LATE: Micros = Micros::from_secs(130);
/// The longest delay of an acknowledgment (RFC 9293 section 3.8.6.3).
const ACKNOWLEDGE_DELAY_MAX: Micros = Micros::from_millis(500);

/// The result of matching a packet of ours with an expectation.
enum PacketMatch {
    /// The packet matches the expectation.
    Expected,
    /// The packet is allowed in addition. The next packet is compared with the same expectation.
    Passed,
    /// The expected packet may be missing. Our packet is compared with the next expectation.
    Skipped,
}

impl Player {
    /// Waits for the packet that the script expects. `window`: the earliest and the latest time, or
    /// `None` for any time.
    pub(super) fn expect_packet(
        &mut self,
        line: usize,
        packet: &ScriptPacket,
        window: Option<(Instant, Instant)>,
    ) -> Result<(), ScriptStop> {
        if let PacketBody::Foreign(what) = &packet.body {
            return Err(ScriptStop::not_applicable(line, format!("there is no {what} here")));
        }
        let latest = window.map_or(self.host.now, |(_, latest)| latest);
        let may_stay_away =
            matches!(&packet.body, PacketBody::Tcp(tcp) if self.is_window_update(tcp));
        let patience = if may_stay_away { latest } else { latest + LATE };
        loop {
            while self.host.sent.is_empty() {
                if !self.step(patience)? {
                    return self.nothing_came(line, packet, window);
                }
            }
            match self.take(line, packet, window)? {
                PacketMatch::Expected | PacketMatch::Skipped => return Ok(()),
                PacketMatch::Passed => {}
            }
        }
    }

    fn nothing_came(
        &mut self,
        line: usize,
        packet: &ScriptPacket,
        window: Option<(Instant, Instant)>,
    ) -> Result<(), ScriptStop> {
        if let PacketBody::Tcp(tcp) = &packet.body
            && self.is_window_update(tcp)
        {
            self.liberty(
                line,
                "no window update: when a window is told of is the receiver's (RFC 9293 section 3.8.6.2.2)",
            );
            return Ok(());
        }
        Err(ScriptStop::failed(line, described(packet, window), "nothing"))
    }

    /// Compares our oldest unmatched packet with the expected packet.
    fn take(
        &mut self,
        line: usize,
        packet: &ScriptPacket,
        window: Option<(Instant, Instant)>,
    ) -> Result<PacketMatch, ScriptStop> {
        let Some(sent) = self.host.sent.front().cloned() else { return Ok(PacketMatch::Passed) };
        let PacketBody::Tcp(expected) = &packet.body else {
            return self.take_other(line, packet, window, &sent);
        };
        let Some(on_wire) = &sent.segment else {
            return Err(ScriptStop::failed(
                line,
                described(packet, window),
                format!("a packet of protocol {}", sent.ip.protocol),
            ));
        };
        let Some(flow) = self.flow_of_outbound(on_wire) else {
            return Err(ScriptStop::failed(
                line,
                described(packet, window),
                format!("{on_wire} to an unused port"),
            ));
        };
        self.name_ports(line, flow, packet)?;
        self.begin_flow(flow, expected, on_wire);
        let (seen, count) = self.joined(flow, expected);
        let Some(seen) = seen else {
            return Err(ScriptStop::failed(line, described(packet, window), "nothing of TCP"));
        };
        let against = match compare::segment(expected, &seen, on_wire.sequence, self.terms) {
            Ok(liberties) => match compare::ip(packet.ip, &sent.ip, self.terms) {
                Ok(()) => {
                    self.check_bytes(line, flow, on_wire, &seen)?;
                    return self.matched(
                        line,
                        packet,
                        window,
                        (flow, &seen, sent.at, count),
                        liberties,
                    );
                }
                Err(against) => against,
            },
            Err(against) => against,
        };
        self.differs(line, packet, window, (flow, &seen, &sent), against)
    }

    /// Compares our oldest unmatched packet with an expected packet that is not TCP.
    fn take_other(
        &mut self,
        line: usize,
        packet: &ScriptPacket,
        window: Option<(Instant, Instant)>,
        sent: &SentPacket,
    ) -> Result<PacketMatch, ScriptStop> {
        let seen = match &sent.segment {
            Some(segment) => segment.to_string(),
            None => format!("a packet of protocol {}", sent.ip.protocol),
        };
        let is_it = match &packet.body {
            PacketBody::Icmp(icmp) => {
                let wanted = super::inbound::kind_and_code(icmp, sent.ip.source.is_ipv4());
                let message = (sent.ip.payload.first(), sent.ip.payload.get(1));
                sent.segment.is_none()
                    && wanted.is_some_and(|(kind, code)| message == (Some(&kind), Some(&code)))
            }
            PacketBody::Udp(length) => {
                sent.segment.is_none()
                    && sent.ip.protocol == super::wire::PROTOCOL_UDP
                    && sent.ip.payload.len() == usize::from(*length) + 8
            }
            _ => false,
        };
        if !is_it {
            return Err(ScriptStop::failed(line, described(packet, window), seen));
        }
        self.check_moment(line, packet, window, sent.at)?;
        self.host.sent.pop_front();
        Ok(PacketMatch::Expected)
    }

    fn flow_of_outbound(&self, segment: &Segment) -> Option<usize> {
        let current = self
            .under_test
            .filter(|flow| self.flows.get(*flow).is_some_and(|flow| flow.owns(segment)));
        current.or_else(|| self.flows.iter().rposition(|flow| flow.owns(segment)))
    }

    /// Compares the ports in the script with those of the flow. If the flow has no ports of the
    /// script yet, it takes those of `packet`.
    fn name_ports(
        &mut self,
        line: usize,
        flow: usize,
        packet: &ScriptPacket,
    ) -> Result<(), ScriptStop> {
        self.under_test = Some(flow);
        let (Some((source, destination)), Some(flow)) = (packet.ports, self.flows.get_mut(flow))
        else {
            return Ok(());
        };
        let named = *flow.script_ports.get_or_insert((destination, source));
        if named == (destination, source) {
            return Ok(());
        }
        let seen = format!("{} > {}", named.1, named.0);
        Err(ScriptStop::failed(line, format!("ports {source} > {destination}"), seen))
    }

    /// Learns the script's numbers from an expected packet: the initial number from a SYN, and the
    /// timestamp value from an option.
    fn begin_flow(&mut self, flow: usize, expected: &TcpPacket, on_wire: &Segment) {
        let Some(flow) = self.flows.get_mut(flow) else { return };
        if let (true, true, Some(number)) =
            (on_wire.flags.has(Flags::SYN), expected.flags.has(Flags::SYN), expected.sequence)
        {
            flow.script_begins(number);
        }
        let value = |options: &[TcpOption]| {
            options.iter().find_map(|option| match option {
                TcpOption::Timestamp { value, .. } => *value,
                _ => None,
            })
        };
        let script = expected.options.as_deref().and_then(value);
        if let (Some(script), Some(wire)) = (script, value(&on_wire.options)) {
            flow.learn_value(script, wire);
        }
    }

    /// The oldest segment, in the script's numbers. If the script expects more bytes, the payloads
    /// of the following segments are appended: segmentation is up to the card. Also returns the
    /// number of segments joined.
    fn joined(&self, flow: usize, expected: &TcpPacket) -> (Option<Segment>, usize) {
        let mut sent = self.host.sent.iter();
        let Some(flow) = self.flows.get(flow) else { return (None, 0) };
        let Some(first) = sent.next().and_then(|first| first.segment.as_ref()) else {
            return (None, 0);
        };
        let mut whole = flow.in_script(first);
        let mut count = 1;
        let most = if self.config.strict_segments { 0 } else { expected.payload as usize };
        for next in sent {
            let Some(next) = next.segment.as_ref().filter(|next| flow.owns(next)) else { break };
            let next = flow.in_script(next);
            let end = whole.sequence.wrapping_add(u32::try_from(whole.payload.len()).unwrap_or(0));
            let joins = next.sequence == end
                && !whole.payload.is_empty()
                && !next.payload.is_empty()
                && whole.payload.len() + next.payload.len() <= most
                && next.acknowledgment == whole.acknowledgment;
            if !joins {
                break;
            }
            whole.flags.bits |= next.flags.bits;
            whole.payload.extend_from_slice(&next.payload);
            whole.window = next.window;
            count += 1;
        }
        (Some(whole), count)
    }

    /// Handles a packet that matches the expectation. Checks its time.
    fn matched(
        &mut self,
        line: usize,
        packet: &ScriptPacket,
        window: Option<(Instant, Instant)>,
        (flow, seen, at, count): (usize, &Segment, Instant, usize),
        liberties: Vec<String>,
    ) -> Result<PacketMatch, ScriptStop> {
        let may_wait = is_pure_acknowledgment(seen) && self.acknowledges_more(flow, seen);
        match window.and_then(|window| self.deviation(window, at)) {
            Some(off) if may_wait && off <= ACKNOWLEDGE_DELAY_MAX => {
                self.liberty(line, "an acknowledgment at another moment: how long it may wait is the receiver's (RFC 9293 section 3.8.6.3)");
            }
            Some(_) if self.terms.foreign && self.is_new_data(flow, seen) => {
                let seen = format!("`{seen}` at {}", seconds(at));
                let reason = format!(
                    "{seen}: when new data may leave is the congestion control's (RFC 5681 section 3.1)"
                );
                return Err(ScriptStop::not_applicable(line, reason));
            }
            _ => self.check_moment(line, packet, window, at)?,
        }
        for liberty in liberties {
            self.liberty(line, &liberty);
        }
        self.note(flow, seen);
        self.host.sent.drain(..count);
        Ok(PacketMatch::Expected)
    }

    /// Handles a packet that does not match the expectation. It may be allowed in addition, or the
    /// expected packet may be missing.
    fn differs(
        &mut self,
        line: usize,
        packet: &ScriptPacket,
        window: Option<(Instant, Instant)>,
        (flow, seen, sent): (usize, &Segment, &SentPacket),
        against: PacketMismatch,
    ) -> Result<PacketMatch, ScriptStop> {
        let PacketBody::Tcp(expected) = &packet.body else { return Ok(PacketMatch::Passed) };
        let field = match against {
            PacketMismatch::Beyond(reason) => return Err(ScriptStop::not_applicable(line, reason)),
            PacketMismatch::Differs(field) => field,
        };
        if self.repeats_in_vain(flow, expected, seen) {
            self.liberty(
                line,
                "an acknowledgment alone, where the script has one on a segment sent again before its time",
            );
            self.note(flow, seen);
            self.host.sent.pop_front();
            return Ok(PacketMatch::Expected);
        }
        if is_pure_acknowledgment(seen) && self.may_be_passed(flow, expected, seen) {
            self.liberty(line, "an acknowledgment more: which segments are answered at once is the receiver's (RFC 9293 section 3.8.6.3)");
            self.note(flow, seen);
            self.host.sent.pop_front();
            return Ok(PacketMatch::Passed);
        }
        if self.is_covered(flow, expected, seen) {
            self.liberty(
                line,
                "an acknowledgment less: a later one says the same (RFC 9293 section 3.8.6.3)",
            );
            return Ok(PacketMatch::Skipped);
        }
        if self.config.packets_may_differ {
            self.liberty(line, &format!("another {field}: the script goes on (--non_fatal)"));
            self.host.sent.pop_front();
            return Ok(PacketMatch::Expected);
        }
        let seen = format!("`{seen}` at {}: another {field}", seconds(sent.at));
        Err(ScriptStop::failed(line, described(packet, window), seen))
    }

    /// The time by which a packet was sent too early or too late; `None` within the tolerance.
    fn deviation(&self, (earliest, latest): (Instant, Instant), at: Instant) -> Option<Micros> {
        let tolerance = self.tolerance(earliest);
        let early = earliest.since(at + tolerance);
        let late = at.since(latest + tolerance);
        Some(early.max(late)).filter(|off| *off > Micros(0))
    }

    fn check_moment(
        &self,
        line: usize,
        packet: &ScriptPacket,
        window: Option<(Instant, Instant)>,
        at: Instant,
    ) -> Result<(), ScriptStop> {
        if window.is_some_and(|window| self.deviation(window, at).is_some()) {
            return Err(ScriptStop::failed(
                line,
                described(packet, window),
                format!("it at {}", seconds(at)),
            ));
        }
        Ok(())
    }

    /// Checks that the bytes that we send are those that the program has written, each at its
    /// position.
    fn check_bytes(
        &self,
        line: usize,
        flow: usize,
        on_wire: &Segment,
        seen: &Segment,
    ) -> Result<(), ScriptStop> {
        let place = self.flows.get(flow).and_then(|flow| flow.place_in_stream(on_wire.sequence));
        let (Some(place), false) = (place, seen.payload.is_empty()) else { return Ok(()) };
        let is_right =
            (0..).zip(&seen.payload).all(|(step, byte)| *byte == pattern(place.wrapping_add(step)));
        if is_right {
            Ok(())
        } else {
            Err(ScriptStop::failed(
                line,
                "the bytes that were written",
                format!("others in `{seen}`"),
            ))
        }
    }

    fn note(&mut self, flow: usize, seen: &Segment) {
        let Some(flow) = self.flows.get_mut(flow) else { return };
        if seen.flags.has(Flags::ACK) {
            flow.last_acknowledged = Some((seen.acknowledgment, seen.window));
        }
        let takes = u32::from(seen.flags.has(Flags::FIN)) + u32::from(seen.flags.has(Flags::SYN));
        let length = u32::try_from(seen.payload.len()).unwrap_or(0);
        let end = seen.sequence.wrapping_add(length).wrapping_add(takes);
        let further = flow.sent_to.is_none_or(|before| end.wrapping_sub(before) < 1 << 31);
        if further {
            flow.sent_to = Some(end);
        }
    }

    /// Whether the segment carries only bytes that were not sent before.
    fn is_new_data(&self, flow: usize, seen: &Segment) -> bool {
        let sent_to = self.flows.get(flow).and_then(|flow| flow.sent_to);
        !seen.payload.is_empty() && sent_to == Some(seen.sequence)
    }

    /// Whether the segment acknowledges another number than our last segment.
    fn acknowledges_more(&self, flow: usize, seen: &Segment) -> bool {
        let last_acknowledged = self.flows.get(flow).and_then(|flow| flow.last_acknowledged);
        last_acknowledged.is_some_and(|(number, _)| number != seen.acknowledgment)
    }

    /// Whether an unexpected acknowledgment is allowed: it acknowledges bytes that the expected
    /// packet acknowledges too, or it only widens the window.
    fn may_be_passed(&self, flow: usize, expected: &TcpPacket, seen: &Segment) -> bool {
        let Some((number, window)) = self.flows.get(flow).and_then(|flow| flow.last_acknowledged)
        else {
            return false;
        };
        let is_acknowledged_by_expected = expected
            .acknowledgment
            .is_some_and(|later| later.wrapping_sub(seen.acknowledgment) < 1 << 31);
        let is_early_part = self.acknowledges_more(flow, seen) && is_acknowledged_by_expected;
        let widens = seen.acknowledgment == number && seen.window > window && self.terms.foreign;
        let is_other = expected.payload > 0
            || expected.flags.bits != Flags::ACK
            || expected.acknowledgment != Some(seen.acknowledgment);
        is_other && (is_early_part || widens) && without_blocks(&seen.options)
    }

    /// Whether an expected acknowledgment may be missing, because the packet that was sent instead
    /// acknowledges the same bytes.
    fn is_covered(&self, flow: usize, expected: &TcpPacket, seen: &Segment) -> bool {
        let Some((number, _)) = self.flows.get(flow).and_then(|flow| flow.last_acknowledged) else {
            return false;
        };
        let is_bare = expected.flags.bits == Flags::ACK && expected.payload == 0;
        let (Some(wanted), true) = (expected.acknowledgment, is_bare && seen.flags.has(Flags::ACK))
        else {
            return false;
        };
        let is_new = wanted != number && wanted.wrapping_sub(number) < 1 << 31;
        let ahead = seen.acknowledgment.wrapping_sub(wanted);
        let covers_expected =
            (ahead > 0 && ahead < 1 << 31) || (ahead == 0 && !is_pure_acknowledgment(seen));
        (is_new && covers_expected)
            || (self.is_window_update(expected) && !is_pure_acknowledgment(seen))
    }

    /// Whether the script expects a retransmission that has a new acknowledgment, and we sent the
    /// acknowledgment without the retransmission.
    fn repeats_in_vain(&self, flow: usize, expected: &TcpPacket, seen: &Segment) -> bool {
        let Some(sent_to) = self.flows.get(flow).and_then(|flow| flow.sent_to) else {
            return false;
        };
        let takes = expected.payload + u32::from(expected.flags.has(Flags::FIN));
        let end = expected.sequence.map(|start| start.wrapping_add(takes));
        self.terms.foreign
            && takes > 0
            && end.is_some_and(|end| sent_to.wrapping_sub(end) < 1 << 31)
            && is_pure_acknowledgment(seen)
            && self.acknowledges_more(flow, seen)
            && expected.acknowledgment == Some(seen.acknowledgment)
    }

    /// Whether the script expects only a window update.
    fn is_window_update(&self, expected: &TcpPacket) -> bool {
        let last_acknowledged = self
            .under_test
            .and_then(|flow| self.flows.get(flow))
            .and_then(|flow| flow.last_acknowledged);
        let (Some((number, window)), Some(wider)) = (last_acknowledged, expected.window) else {
            return false;
        };
        self.terms.foreign
            && expected.flags.bits == Flags::ACK
            && expected.payload == 0
            && expected.acknowledgment == Some(number)
            && wider > window
            && expected.options.as_deref().is_none_or(without_blocks)
    }

    pub(super) fn liberty(&mut self, line: usize, what: &str) {
        self.liberties.push((line, what.to_string()));
    }
}

fn is_pure_acknowledgment(segment: &Segment) -> bool {
    segment.flags.bits == Flags::ACK && segment.payload.is_empty()
}

fn without_blocks(options: &[TcpOption]) -> bool {
    !options.iter().any(|option| matches!(option, TcpOption::Sack(_)))
}

fn described(packet: &ScriptPacket, window: Option<(Instant, Instant)>) -> String {
    match window {
        Some((earliest, latest)) if earliest == latest => {
            format!("`{packet}` at {}", seconds(earliest))
        }
        Some((earliest, latest)) => {
            format!("`{packet}` between {} and {}", seconds(earliest), seconds(latest))
        }
        None => format!("`{packet}` at any time"),
    }
}
