//! The opening of connections, by us and by peers.
//!
//! An outgoing connection needs an unpredictable port (RFC 6056) and a SYN. Its next hop may have
//! to be resolved first. An incoming SYN gets an entry or a cookie. When the handshake is complete,
//! the entry or the cookie becomes a connection.
//!
//! Invariants:
//! - A connection is in the flow table as soon as `connect` is called. So the answer to its SYN
//!   finds it.
//! - A port is reused for the same service only after all other ports were used, however fast
//!   connections are opened and closed. Otherwise the server might still remember the last
//!   connection from that port.
//! - While the neighbour is unresolved, the SYN waits with the other packets to this neighbour. It
//!   is never sent as a broadcast.

use core::net::SocketAddr;

use machine::{Ethernet, Instant, Machine, Offloads, Piece};
use sometimes::buggify;

use super::arrival::Arrival;
use super::segments::{ArrivalContext, answer};
use super::{Tcp, TcpConnection};
use crate::config::Cores;
use crate::cores::MulticoreState;
use crate::counters::Counter;
use crate::ethernet::BROADCAST;
use crate::event::{ConnectionId, Event};
use crate::flow::{Endpoints, Flow, FlowTarget, SynSender};
use crate::ip::{Ip, Local};
use crate::link::{Link, Unsent};
use crate::tcp::{
    CardFull, FullTable, HalfOpenId, SegmentToSend, SendLimits, SequenceNumber, Tcb, TcpHandshake,
};
use crate::template::{SegmentHeaders, Template};

/// The first local port of outgoing connections, and the number of such ports (RFC 6335 §6).
const FIRST_PORT: u16 = 49_152;
const PORTS: u32 = 16_384;
/// The number of ports to try before the call fails. A port is free unless we have another
/// connection to the same service from it.
const TRIES_MAX: u32 = 64;

/// The destination of a template while the neighbour is unresolved. No frame is sent to it.
const UNKNOWN: Ethernet = BROADCAST;

impl Tcp {
    /// Opens a connection to `peer`.
    ///
    /// Errors: [`Unsent::NoRoute`], [`Unsent::Full`].
    pub(crate) fn connect(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        link: &mut Link,
        other_cores: &mut Option<MulticoreState>,
    ) -> Result<ConnectionId, Unsent> {
        let address = Ip::from(peer.ip());
        if !link.is_other_host(address) || !link.has_route_to(address) {
            return Err(Unsent::NoRoute);
        }
        let (local, own) = link.source_for(now, address).ok_or(Unsent::NoRoute)?;
        let cores = other_cores.as_ref().map_or(Cores::ALONE, MulticoreState::cores);
        let flow = self
            .free_flow(local, peer, cores, link.counters.of(Counter::Connects))
            .ok_or(Unsent::Full)?;
        let beginning = self.initial_sequences.next(now, &Endpoints { flow, own });
        let hardware = link.hardware_for(now, address).unwrap_or(UNKNOWN);
        let mss = if local.is_ipv4() { self.local_mss } else { link.mss_ipv6() };
        let new = TcpConnection {
            tcb: Tcb::connect(now, beginning, mss),
            template: link.template(hardware, own, &flow),
            armed_for: Instant::NEVER,
            sent_to: beginning.iss,
            user_is_done: false,
        };
        let id = self.connections.insert(new).map_err(|_| Unsent::Full)?;
        self.flows.set(flow, FlowTarget::Connection(id.index() as u32));
        self.flow_opened(&flow, other_cores);
        link.counters.count(Counter::Connects);
        self.touch(ConnectionId(id));
        Ok(ConnectionId(id))
    }

    /// A flow to `peer` from a free local port. A keyed hash of the peer, plus the number of
    /// connections opened so far, selects the first port to try (RFC 6056 §3.3.3). If that port is
    /// in use, the next one is tried. No port belongs to two cores.
    fn free_flow(&self, local: Local, peer: SocketAddr, cores: Cores, opened: u64) -> Option<Flow> {
        let offset = self.initial_sequences.next(Instant::START, &peer).iss.0;
        let start = offset.wrapping_add(opened as u32);
        let Cores { own, count } = cores;
        (0..TRIES_MAX).find_map(|step| {
            let place = start.wrapping_add(step) % (PORTS / u32::from(count));
            let port = FIRST_PORT + place as u16 * u16::from(count) + u16::from(own.0);
            let flow =
                Flow { peer: peer.ip().into(), local, peer_port: peer.port(), local_port: port };
            (self.flows.find(&flow).is_none() && self.service_of(port).is_none()).then_some(flow)
        })
    }
}

/// Whether the neighbour of these headers is unresolved.
#[inline]
pub(super) fn is_unresolved(template: &Template) -> bool {
    template.peer() == UNKNOWN
}

impl Tcp {
    /// Produces the output of a connection that was opened while its neighbour was unresolved. If
    /// the neighbour is resolved now, the output is sent as usual. Otherwise the only output is a
    /// SYN, which waits for the neighbour.
    pub(super) fn unresolved_output(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        machine: &mut impl Machine,
        link: &mut Link,
        other_cores: &mut Option<MulticoreState>,
    ) -> Result<(), CardFull> {
        let Some(found) = self.connections.get_mut(connection.0) else {
            unreachable!("output was requested for an existing connection")
        };
        let peer = found.template.flow().peer;
        if let Some(hardware) = link.hardware_for(now, peer) {
            found.template.set_peer(hardware);
            return self.connection_output(now, connection, machine, link, other_cores);
        }
        let local_mss = if peer.is_ipv4() { self.local_mss } else { link.mss_ipv6() };
        let limits = SendLimits { local_mss, ..self.send_limits };
        let template = &found.template;
        let mut hold = |segment: &SegmentToSend, _: &[Piece]| {
            let mut head = SegmentHeaders::NONE;
            link.hold(peer, template.head(&mut head, segment, &[], Offloads::default()).bytes());
            Ok(())
        };
        let result = found.tcb.output(now, limits, &self.pools, &mut hold);
        self.settle(now, connection, other_cores);
        result
    }
}

impl Tcp {
    /// Creates the connection of a completed handshake. `id`: the entry of the handshake, or `None`
    /// if a cookie completed it.
    pub(super) fn accept(
        &mut self,
        now: Instant,
        id: Option<HalfOpenId>,
        handshake: &TcpHandshake,
        arrival: &Arrival<'_>,
        context: &mut ArrivalContext<'_>,
    ) {
        let SynSender { flow, .. } = arrival.caller;
        let Some(service) = self.service_of(flow.local_port) else {
            // The user has closed the listener during the handshake.
            if let Some(id) = id {
                self.half_open.remove(id, &arrival.caller);
                self.handshake_removed(&flow, context.other_cores);
            }
            return self.refuse(now, &arrival.caller, &arrival.segment, context.link);
        };
        let Some(template) = context.link.template_for(now, &arrival.caller) else { return };
        let tcb = Tcb::accepted(now, handshake);
        let sent_to = handshake.iss + 1;
        let new = TcpConnection {
            tcb,
            template,
            armed_for: Instant::NEVER,
            sent_to,
            user_is_done: false,
        };
        let Ok(connection) = self.connections.insert(new) else {
            // The entry stays, so the peer's next segment tries to complete the handshake again.
            context.link.counters.count(Counter::RefusedFull);
            return;
        };
        match id {
            Some(id) => self.half_open.remove(id, &arrival.caller),
            None => self.flow_opened(&flow, context.other_cores),
        }
        self.flows.set(flow, FlowTarget::Connection(connection.index() as u32));
        context.link.counters.count(Counter::Accepted);
        let peer = SocketAddr::new(flow.peer.into(), flow.peer_port);
        let pushed = context.events.push(Event::Accepted {
            connection: ConnectionId(connection),
            service,
            peer,
        });
        assert!(pushed.is_ok(), "a frame finds the events empty");
        self.connected_arrived(now, connection.index() as u32, arrival, context);
    }

    /// Handles a SYN without a connection: it is for a listener, or is refused. `used`: the next
    /// sequence number of the flow's previous connection, if that is known.
    pub(super) fn unmatched_syn_arrived(
        &mut self,
        now: Instant,
        arrival: &Arrival<'_>,
        used: Option<SequenceNumber>,
        context: &mut ArrivalContext<'_>,
    ) {
        let (caller, segment) = (&arrival.caller, &arrival.segment);
        if !segment.flags.opens() || self.service_of(caller.flow.local_port).is_none() {
            self.refuse(now, caller, segment, context.link);
        } else if self.connections.len() >= self.connections.capacity() {
            // Sends no answer. The peer repeats its SYN after a second, and there may be room by
            // then.
            context.link.counters.count(Counter::RefusedFull);
        } else {
            self.listener_syn_arrived(now, arrival, used, context);
        }
    }

    /// Handles a SYN for a listener: stores its handshake, answers it with a cookie, or ignores it.
    /// An ignored SYN is repeated by its sender.
    fn listener_syn_arrived(
        &mut self,
        now: Instant,
        arrival: &Arrival<'_>,
        used: Option<SequenceNumber>,
        context: &mut ArrivalContext<'_>,
    ) {
        let caller = &arrival.caller;
        let key = endpoints(caller.flow, context.link);
        if self.half_open.is_full() {
            // A repeated SYN shows a real client.
            let history = self.syn_retries.record_syn(now, &(key, arrival.segment.sequence));
            match self.half_open.make_room(now, history) {
                FullTable::Evicted { gone, reset } => {
                    if let Some(reset) = reset {
                        answer(context.link, now, &gone, &reset);
                    }
                    self.handshake_removed(&gone.flow, context.other_cores);
                }
                FullTable::AnswerWithCookie => {}
                FullTable::StaySilent => {
                    context.link.counters.count(Counter::RefusedFull);
                    return;
                }
            }
        }
        let beginning = match used {
            Some(snd_nxt) => self.initial_sequences.beyond(snd_nxt, now, &key),
            None => self.initial_sequences.next(now, &key),
        };
        let mut segment = arrival.segment;
        context.link.adapt_options(caller.flow.local, &mut segment.options);
        let by_cookie = buggify!(CookieAlways);
        let entry = if by_cookie {
            None
        } else {
            self.half_open.syn_arrived(now, *caller, &segment, beginning)
        };
        match entry {
            Some(id) => {
                self.flows.set(caller.flow, FlowTarget::HalfOpen(id.0));
                self.flow_opened(&caller.flow, context.other_cores);
            }
            None => {
                context.link.counters.count(Counter::CookiesOut);
                let mut reply =
                    self.cookies.answer(now, &key, &segment, beginning.timestamp_offset);
                context.link.adapt_options(caller.flow.local, &mut reply.options);
                answer(context.link, now, caller, &reply);
            }
        }
    }

    /// The handshake that a segment completes with a valid cookie of ours.
    pub(super) fn cookie_completed(
        &self,
        now: Instant,
        arrival: &Arrival<'_>,
        link: &Link,
    ) -> Option<TcpHandshake> {
        let key = endpoints(arrival.caller.flow, link);
        let offset = self.initial_sequences.timestamp_offset(&key);
        self.cookies.completed(now, &key, &arrival.segment, offset)
    }
}

/// `flow`, with our own address that it refers to. If we have lost that address, the unspecified
/// address is used.
fn endpoints(flow: Flow, link: &Link) -> Endpoints {
    Endpoints { flow, own: link.own_address(flow.local).unwrap_or(Ip::UNSPECIFIED) }
}
