//! TCP on one core: its connections, the tables that find them, and their shared state.
//!
//! [`segments`] finds the connection of a segment, [`connect`] opens connections, and [`output`]
//! sends their segments. The state machine of one connection is in [`crate::tcp`].
//!
//! Invariants:
//! - A connection is in the flow table from its handshake until the end of TIME-WAIT. It is there
//!   in exactly one of three forms: as a half-open connection, a TCB, or a TIME-WAIT entry.
//! - A connection that has anything to do is in the touched queue, or its deadline is set.
//! - A closed connection has no deadline: [`Tcp::remove_closed`] cancels it.

mod arrival;
mod connect;
mod output;
mod segments;

use alloc::sync::Arc;

use heapless::Vec;
use machine::{Block, Card, CoreId, Instant, Micros, Offloads, Piece};
use tasks::{Budget, DelayQueue, FrameTable, ResumeQueue};

use crate::change_tracked::ChangeTracked;
use crate::config::{Config, Service};
use crate::cores::MulticoreState;
use crate::counters::Counters;
use crate::event::{ConnectionId, Event, Events, has_room};
use crate::flow::{Flow, FlowTable, FlowTarget, SynSender};
use crate::ipv4::IPV4_BYTES;
use crate::link::Link;
use crate::random::Random;
use crate::rate::RateLimit;
use crate::tcp::{
    CloseReason, Cookies, HalfOpenTable, InitialSequences, Pools, SendLimits, SequenceNumber,
    SynRetryFilter, Tcb, TimeWait, TimeWaitTable,
};
use crate::template::{TCP_BYTES, Template};

/// The most ports that can be listened on.
const LISTENERS_MAX: usize = 32;
/// The rate and the burst of resets for segments of unknown connections. Each reset costs a frame,
/// and tells a port scanner that the port is closed.
const RESETS_PER_SECOND: u64 = 200;
const RESETS_AT_ONCE: u64 = 50;
/// The most payload bytes in one frame that the card segments. With all headers they fit a packet
/// of IPv4 and of IPv6.
const SEGMENTATION_BYTES: u32 = 65_535 - 60 - 60;

/// The most handshakes that expire in one turn, and the most TIME-WAIT entries. To remove one costs
/// at most as much as a received frame. If a turn adds more entries than this, it takes long in any
/// case.
const FORGOTTEN_AT_ONCE: usize = 64;

/// A connection: its TCB, the headers of its segments, and its state outside the TCB.
struct TcpConnection {
    tcb: Tcb,
    template: Template,
    /// The deadline that the delay queue has for the connection; never later than the deadline of
    /// the TCB.
    armed_for: Instant,
    /// One beyond the highest sequence number sent so far, to detect retransmissions.
    sent_to: SequenceNumber,
    /// The user knows that the connection is closed, so no more events are reported for it.
    user_is_done: bool,
}

const _: () =
    assert!(size_of::<TcpConnection>() <= 240, "an idle connection takes at most 240 bytes");

/// All connections of one core.
pub(crate) struct Tcp {
    offloads: Offloads,
    listeners: Vec<(u16, Service), LISTENERS_MAX>,
    flows: FlowTable,
    connections: FrameTable<TcpConnection>,
    half_open: ChangeTracked<HalfOpenTable<SynSender>>,
    syn_retries: SynRetryFilter,
    cookies: Cookies,
    time_wait: ChangeTracked<TimeWaitTable<Flow>>,
    initial_sequences: InitialSequences,
    /// The largest payload that we receive in one segment, in bytes.
    local_mss: u16,
    pools: Pools,
    timers: DelayQueue,
    /// Connections with activity since their last output.
    touched: ResumeQueue,
    resets: RateLimit,
    send_limits: SendLimits,
    send_limits_ipv6: SendLimits,
    /// The next slot to check, while the connections of a lost address are being closed.
    ending_from: Option<usize>,
}

impl Tcp {
    /// Bytes of memory for a connection with nothing to send and no buffered data.
    pub(crate) const IDLE_CONNECTION_BYTES: usize = FrameTable::<TcpConnection>::SLOT_BYTES
        + FlowTable::ENTRY_BYTES
        + DelayQueue::SLOT_BYTES
        + ResumeQueue::SLOT_BYTES;

    /// `keys`: yields the same keys on all cores.
    pub(crate) fn new(config: &Config, card: &Card, keys: &mut Random, now: Instant) -> Tcp {
        let limits = &config.limits;
        let local_mss = card.mtu.saturating_sub((IPV4_BYTES + TCP_BYTES) as u16);
        let limits_if = |segments: bool| SendLimits {
            segmentation_bytes: (segments && card.offloads.checksum).then_some(SEGMENTATION_BYTES),
            local_mss,
        };
        Tcp {
            offloads: card.offloads,
            listeners: Vec::new(),
            flows: FlowTable::new(
                limits.connections + limits.half_open + limits.time_wait,
                &keys.key(),
            ),
            connections: FrameTable::with_capacity(limits.connections),
            half_open: ChangeTracked::new(HalfOpenTable::new(limits.half_open, local_mss)),
            time_wait: ChangeTracked::new(TimeWaitTable::with_capacity(limits.time_wait)),
            initial_sequences: InitialSequences::new(&keys.key()),
            cookies: Cookies::new(&own_key(keys.key(), config.cores.own), local_mss),
            syn_retries: SynRetryFilter::new(&keys.key()),
            local_mss,
            pools: Pools::new(limits.pools),
            timers: DelayQueue::with_capacity(limits.connections, now),
            touched: ResumeQueue::with_capacity(limits.connections),
            resets: RateLimit::new(RESETS_PER_SECOND, RESETS_AT_ONCE),
            send_limits: limits_if(card.offloads.segmentation_ipv4),
            send_limits_ipv6: limits_if(card.offloads.segmentation_ipv6),
            ending_from: None,
        }
    }

    /// Listens on `port`. Returns false if the port is open already, or too many ports are open.
    pub(crate) fn listen(&mut self, port: u16, service: Service) -> bool {
        self.service_of(port).is_none() && self.listeners.push((port, service)).is_ok()
    }

    pub(crate) fn stop_listening(&mut self, port: u16) {
        self.listeners.retain(|(listened, _)| *listened != port);
    }

    fn service_of(&self, port: u16) -> Option<Service> {
        self.listeners.iter().find(|(listened, _)| *listened == port).map(|(_, service)| *service)
    }

    /// The number of connections.
    pub(crate) fn len(&self) -> usize {
        self.connections.len()
    }

    /// Whether all connections are closed on our side, and their peers have acknowledged that.
    /// Looks at each connection.
    pub(crate) fn have_delivered_all(&self) -> bool {
        self.connections.iter().all(|(_, connection)| connection.tcb.has_delivered_all())
    }

    /// The number of incoming handshakes in progress.
    pub(crate) fn handshake_count(&self) -> usize {
        self.half_open.len()
    }

    /// The number of connections in TIME-WAIT.
    pub(crate) fn time_wait_count(&self) -> usize {
        self.time_wait.len()
    }

    /// The number of flows in the flow table.
    #[cfg(test)]
    pub(crate) fn flow_count(&self) -> usize {
        self.flows.len()
    }

    /// The bucket of a flow (`cores::steering`). It is the same on all cores.
    pub(crate) fn bucket(&self, flow: &Flow) -> u16 {
        self.flows.bucket(flow)
    }

    pub(crate) fn pools(&self) -> &Pools {
        &self.pools
    }

    /// Lends a block to be filled and sent. `None`: no block is free, so sending must wait.
    pub(crate) fn lend_block(&mut self) -> Option<Arc<Block>> {
        self.pools.lend_block()
    }

    pub(crate) fn give_back_block(&mut self, block: Arc<Block>) {
        self.pools.give_back_block(block);
    }

    // Operations of the user on a connection: `Net` documents these methods.

    pub(crate) fn send(&mut self, now: Instant, connection: ConnectionId, bytes: &[u8]) -> usize {
        let Some(found) = self.connections.get_mut(connection.0) else { return 0 };
        let sent = found.tcb.send(now, bytes, &mut self.pools);
        self.touch(connection);
        sent
    }

    pub(crate) fn send_with(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        least: usize,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) -> usize {
        let Some(found) = self.connections.get_mut(connection.0) else { return 0 };
        let written = found.tcb.send_with(now, least, &mut self.pools, write);
        self.touch(connection);
        written
    }

    pub(crate) fn send_piece(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        piece: Piece,
    ) -> Result<(), Piece> {
        let Some(found) = self.connections.get_mut(connection.0) else { return Err(piece) };
        let result = found.tcb.send_piece(now, piece, &mut self.pools);
        self.touch(connection);
        result
    }

    pub(crate) fn send_room(&self, connection: ConnectionId) -> usize {
        self.connections.get(connection.0).map_or(0, |found| found.tcb.send_room(&self.pools))
    }

    pub(crate) fn unacknowledged(&self, connection: ConnectionId) -> usize {
        self.connections.get(connection.0).map_or(0, |found| found.tcb.unacknowledged())
    }

    pub(crate) fn bytes_moved(&self, connection: ConnectionId) -> u32 {
        self.connections.get(connection.0).map_or(0, |found| found.tcb.bytes_moved())
    }

    pub(crate) fn borrows_scarce(&self, parts: usize, connection: ConnectionId) -> bool {
        self.connections
            .get(connection.0)
            .is_some_and(|found| found.tcb.borrows_scarce(parts, &self.pools))
    }

    pub(crate) fn want_room(&mut self, now: Instant, connection: ConnectionId) {
        if let Some(found) = self.connections.get_mut(connection.0) {
            found.tcb.want_room(now);
            self.touch(connection);
        }
    }

    pub(crate) fn keep(&mut self, connection: ConnectionId, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if let Some(found) = self.connections.get_mut(connection.0) {
            found.tcb.keep(bytes, &mut self.pools);
        }
    }

    pub(crate) fn waiting(&self, connection: ConnectionId) -> &[u8] {
        self.connections.get(connection.0).map_or(&[], |found| found.tcb.waiting())
    }

    pub(crate) fn copy_waiting(&self, connection: ConnectionId, into: &mut [u8]) -> usize {
        self.connections.get(connection.0).map_or(0, |found| found.tcb.copy_waiting(into))
    }

    pub(crate) fn waiting_bytes(&self, connection: ConnectionId) -> usize {
        self.connections.get(connection.0).map_or(0, |found| found.tcb.waiting_bytes())
    }

    pub(crate) fn put_back(&mut self, connection: ConnectionId, bytes: &[u8]) {
        if let Some(found) = self.connections.get_mut(connection.0) {
            found.tcb.put_back(bytes, &mut self.pools);
        }
    }

    pub(crate) fn consumed(&mut self, connection: ConnectionId, count: usize) {
        if let Some(found) = self.connections.get_mut(connection.0) {
            found.tcb.consumed(count, &mut self.pools);
            self.touch(connection);
        }
    }

    pub(crate) fn close(&mut self, connection: ConnectionId) {
        if let Some(found) = self.connections.get_mut(connection.0) {
            found.tcb.close(&mut self.pools);
            self.touch(connection);
        }
    }

    pub(crate) fn set_user_timeout(&mut self, connection: ConnectionId, span: Micros) {
        if let Some(found) = self.connections.get_mut(connection.0) {
            found.tcb.set_user_timeout(span);
        }
    }

    pub(crate) fn abort(&mut self, connection: ConnectionId) {
        if let Some(found) = self.connections.get_mut(connection.0) {
            found.tcb.abort(&mut self.pools);
            found.user_is_done = true;
            self.touch(connection);
        }
    }

    /// Puts a connection with activity into the touched queue. Once a turn, the out phase produces
    /// the output of these connections and sets their timers.
    #[inline]
    fn touch(&mut self, connection: ConnectionId) {
        self.touched.resume(connection.0);
    }

    /// Whether a connection has had activity since its last output.
    pub(crate) fn wants_output(&self) -> bool {
        !self.touched.is_empty()
    }

    /// The next deadline of all connections.
    pub(crate) fn next_deadline(&self) -> Instant {
        let stranded_at = if self.ending_from.is_some() { Instant::START } else { Instant::NEVER };
        Instant::or_never(self.timers.next_deadline()).min(stranded_at)
    }

    /// Handles expired deadlines, within `budget` and the room in `events`.
    pub(crate) fn deadlines_expired(
        &mut self,
        now: Instant,
        counters: &mut Counters,
        events: &mut Events,
        budget: &mut Budget,
    ) {
        while has_room(events) && !budget.is_spent() {
            let Some(frame) = self.timers.next_due(now) else { break };
            budget.take();
            self.connection_due(now, ConnectionId(frame), counters, events);
        }
    }

    /// Removes expired handshakes and TIME-WAIT entries.
    pub(crate) fn forget(&mut self, now: Instant, other_cores: &mut Option<MulticoreState>) {
        for _ in 0..FORGOTTEN_AT_ONCE {
            let Some(caller) = self.half_open.give_up(now) else { break };
            self.handshake_removed(&caller.flow, other_cores);
        }
        for _ in 0..FORGOTTEN_AT_ONCE {
            let Some(flow) = self.time_wait.expired(now) else { break };
            self.flows.remove(&flow);
        }
    }

    /// When the next handshake or TIME-WAIT entry expires.
    pub(crate) fn next_forgotten(&self) -> Instant {
        Instant::or_never(self.half_open.next_deadline())
            .min(Instant::or_never(self.time_wait.next_deadline()))
    }

    /// Whether [`Tcp::next_forgotten`] may have changed since [`Tcp::clear_change`].
    #[inline]
    pub(crate) fn has_changed(&self) -> bool {
        self.half_open.has_changed() | self.time_wait.has_changed()
    }

    #[inline]
    pub(crate) fn clear_change(&mut self) {
        self.half_open.clear_change();
        self.time_wait.clear_change();
    }

    /// Starts to close the connections of an address that we have lost.
    pub(crate) fn address_lost(&mut self) {
        self.ending_from = Some(0);
    }

    /// Closes the connections of a lost address. Nothing can be sent to their peers.
    pub(crate) fn end_stranded(
        &mut self,
        now: Instant,
        link: &Link,
        other_cores: &mut Option<MulticoreState>,
        events: &mut Events,
    ) {
        while has_room(events) {
            let Some(index) = self.ending_from else { return };
            if index >= self.connections.capacity() {
                self.ending_from = None;
                return;
            }
            self.ending_from = Some(index + 1);
            let Some(frame) = self.connections.id_at(index) else { continue };
            let connection = ConnectionId(frame);
            let Some(found) = self.connections.get(frame) else {
                unreachable!("the slot is occupied")
            };
            let (user_is_done, is_stranded) = (
                found.user_is_done,
                link.own_address(found.template.local()) != Some(found.template.source()),
            );
            if is_stranded {
                self.remove_closed(now, connection, None, other_cores);
            }
            if is_stranded && !user_is_done {
                let pushed =
                    events.push(Event::Closed { connection, reason: CloseReason::Aborted });
                assert!(pushed.is_ok(), "there was room for one more event");
            }
        }
    }

    /// Removes a closed connection. `remember`: the TIME-WAIT entry that replaces it.
    fn remove_closed(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        remember: Option<TimeWait>,
        other_cores: &mut Option<MulticoreState>,
    ) {
        let Some(mut gone) = self.connections.remove(connection.0) else {
            unreachable!("the connection was removed before")
        };
        let flow = gone.template.flow();
        gone.tcb.release(&mut self.pools);
        self.timers.cancel(connection.0);
        match remember {
            Some(time_wait) => {
                let (id, forgotten) = self.time_wait.insert(now, flow, time_wait);
                if let Some(forgotten) = forgotten {
                    self.flows.remove(&forgotten);
                }
                self.flows.set(flow, FlowTarget::TimeWait(id.0));
            }
            None => self.flows.remove(&flow),
        }
        self.flow_closed(&flow, other_cores);
    }

    /// Removes a handshake that failed.
    fn handshake_removed(&mut self, flow: &Flow, other_cores: &mut Option<MulticoreState>) {
        self.flows.remove(flow);
        self.flow_closed(flow, other_cores);
    }

    /// Records for the other cores that a flow has a connection or handshake on this core.
    #[inline]
    fn flow_opened(&self, flow: &Flow, other_cores: &mut Option<MulticoreState>) {
        if let Some(other_cores) = other_cores {
            other_cores.opened(&self.flows, flow);
        }
    }

    /// Records for the other cores that a flow no longer has a connection or handshake on this
    /// core.
    #[inline]
    fn flow_closed(&self, flow: &Flow, other_cores: &mut Option<MulticoreState>) {
        if let Some(other_cores) = other_cores {
            other_cores.closed(&self.flows, flow);
        }
    }
}

/// A key for this core only: a cookie is valid only on the core that issued it.
fn own_key(mut key: [u8; 16], own: CoreId) -> [u8; 16] {
    let [first, ..] = &mut key;
    *first ^= own.0;
    key
}
