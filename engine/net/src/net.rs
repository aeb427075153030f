//! The network of one core, and what its user may do with a connection.

mod messages;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

use heapless::Vec;
use machine::{Block, Card, CoreId, Instant, Micros, Offloads, Piece};
use tasks::{DelayQueue, FrameTable, ResumeQueue};

use crate::config::{Addressing, Config, Ipv6Address, Service};
use crate::cores::Fellows;
use crate::counters::Counters;
use crate::dhcp::Dhcp;
use crate::event::{ConnectionId, EVENTS_AT_ONCE, Event, Events, Place};
use crate::flow::{Caller, Entry, Flow, FlowTable};
use crate::icmp::Icmp;
use crate::icmpv6::Icmpv6;
use crate::interface::Address;
use crate::ipv4::IPV4_BYTES;
use crate::kept::Kept;
use crate::link::{Link, Unsent};
use crate::random::Random;
use crate::rate::RateLimit;
use crate::reassembly::Reassembly;
use crate::tcp::{
    Cookies, HalfOpenTable, InitialSequences, Knocks, Pools, SendLimits, SequenceNumber, Tcb, TimeWaitTable,
};
use crate::template::{TCP_BYTES, Template};
use crate::udp::{self, Ports};

/// Ports that can be listened on.
const LISTENERS_MAX: usize = 32;
/// Resets to strangers: so many a second, so many at once. Each tells a scanner something and costs a frame.
const RESETS_PER_SECOND: u64 = 200;
const RESETS_AT_ONCE: u64 = 50;
/// The most payload that is handed to the card as one frame to be cut: what fits a packet of either family with all headers.
const SEGMENTATION_BYTES: u32 = 65_535 - 60 - 60;

/// A connection: its core, the headers of its segments, and what the tables need to find it again.
pub(crate) struct Connection {
    pub(crate) tcb: Tcb,
    pub(crate) template: Template,
    /// The deadline that is set for it; never later than the core's own.
    pub(crate) armed_for: Instant,
    /// One beyond the highest number sent so far, to know what is sent again.
    pub(crate) sent_to: SequenceNumber,
    /// Set when the user knows that it is over: nothing is told of it any more.
    pub(crate) user_is_done: bool,
}

const _: () = assert!(size_of::<Connection>() <= 240, "an idle connection costs little here");

/// The network.
pub struct Net {
    /// `None` for who is alone on his machine.
    pub(crate) fellows: Option<Fellows>,
    pub(crate) link: Link,
    pub(crate) offloads: Offloads,
    pub(crate) dhcp: Kept<Option<Dhcp>>,
    pub(crate) icmp: Icmp,
    pub(crate) icmpv6: Icmpv6,
    pub(crate) reassembly: Kept<Reassembly>,
    /// The datagram put together last, until the next frame arrives.
    pub(crate) reassembled: Option<Box<[u8]>>,
    pub(crate) ports: Ports,
    pub(crate) listeners: Vec<(u16, Service), LISTENERS_MAX>,
    pub(crate) flows: FlowTable,
    pub(crate) connections: FrameTable<Connection>,
    pub(crate) half_open: Kept<HalfOpenTable<Caller>>,
    pub(crate) knocks: Knocks,
    pub(crate) cookies: Cookies,
    pub(crate) time_wait: Kept<TimeWaitTable<Flow>>,
    pub(crate) initial_sequences: InitialSequences,
    /// The largest payload that we take in one segment, in bytes.
    pub(crate) local_mss: u16,
    pub(crate) pools: Pools,
    pub(crate) timers: DelayQueue,
    /// Connections to which something has happened since they last spoke.
    pub(crate) touched: ResumeQueue,
    pub(crate) resets: RateLimit,
    pub(crate) send_limits: SendLimits,
    pub(crate) send_limits_ipv6: SendLimits,
    /// While connections of a lost address are being ended: the next slot to look at.
    pub(crate) ending_from: Option<usize>,
    /// When one of the parts that wait for time has something to do, as long as none of them is stirred.
    pub(crate) chores_at: Instant,
    /// Set when the address has changed and nobody was told yet.
    pub(crate) address_news: bool,
}

impl Net {
    /// Bytes of memory for a connection that has nothing to send and keeps nothing.
    pub const IDLE_CONNECTION_BYTES: usize = FrameTable::<Connection>::SLOT_BYTES
        + FlowTable::ENTRY_BYTES
        + DelayQueue::SLOT_BYTES
        + ResumeQueue::SLOT_BYTES;

    /// A network behind `card`. `seed` is random, chosen anew each time the machine starts, and the same on all of its cores.
    pub fn new(config: &Config, card: &Card, seed: &[u8; 32], now: Instant) -> Net {
        let limits = &config.limits;
        let mut keys = Random::new(*seed.first_chunk().unwrap_or(&[0; 16]), *seed.last_chunk().unwrap_or(&[0; 16]));
        let local_mss = card.mtu.saturating_sub((IPV4_BYTES + TCP_BYTES) as u16);
        let limits_if = |segments: bool| SendLimits {
            segmentation_bytes: (segments && card.offloads.checksum).then_some(SEGMENTATION_BYTES),
            local_mss,
        };
        let fellows = Fellows::new(config.cores, card.queues, limits.connections);
        let is_first = config.cores.is_first();
        let mut net = Net {
            fellows,
            link: Link::new(card, &config.ipv6, is_first, Random::new(keys.key(), keys.key())),
            offloads: card.offloads,
            dhcp: Kept::new(None),
            icmp: Icmp::new(),
            icmpv6: Icmpv6::new(),
            reassembly: Kept::new(Reassembly::new()),
            reassembled: None,
            ports: Ports::default(),
            listeners: Vec::new(),
            flows: FlowTable::new(limits.connections + limits.half_open + limits.time_wait, &keys.key()),
            connections: FrameTable::with_capacity(limits.connections),
            half_open: Kept::new(HalfOpenTable::new(limits.half_open, local_mss)),
            time_wait: Kept::new(TimeWaitTable::with_capacity(limits.time_wait)),
            initial_sequences: InitialSequences::new(&keys.key()),
            cookies: Cookies::new(&own_key(keys.key(), config.cores.own), local_mss),
            knocks: Knocks::new(&keys.key()),
            local_mss,
            pools: Pools::new(limits.pools),
            timers: DelayQueue::with_capacity(limits.connections, now),
            touched: ResumeQueue::with_capacity(limits.connections),
            resets: RateLimit::new(RESETS_PER_SECOND, RESETS_AT_ONCE),
            send_limits: limits_if(card.offloads.segmentation_ipv4),
            send_limits_ipv6: limits_if(card.offloads.segmentation_ipv6),
            ending_from: None,
            chores_at: Instant::START,
            address_news: false,
        };
        match config.addressing {
            // The others are told.
            _ if !is_first => {}
            Addressing::None => {}
            Addressing::Static(address) => net.link.set_address(now, Some(address)),
            Addressing::Dhcp => {
                *net.dhcp = Some(Dhcp::new(card.address, Random::new(keys.key(), keys.key()), now));
            }
        }
        net
    }

    /// Takes connections to `port` from now on, and announces each as one of `service`. False when too many ports are
    /// listened on, or this one already is.
    pub fn listen(&mut self, port: u16, service: Service) -> bool {
        self.service_of(port).is_none() && self.listeners.push((port, service)).is_ok()
    }

    /// Takes no more connections to `port`. Those that exist go on.
    pub fn stop_listening(&mut self, port: u16) {
        self.listeners.retain(|(listened, _)| *listened != port);
    }

    /// Begins to speak IPv6, if it is to be spoken, and this is the first core; the others begin with it. `secret`: known to this machine alone and the same whenever it starts, so
    /// that it has the same addresses then (RFC 7217).
    pub fn begin_ipv6(&mut self, now: Instant, secret: &[u8; 16]) {
        if self.cores().is_first() {
            self.link.ndp.begin(now, secret);
        }
    }

    /// Our IPv6 addresses.
    pub fn ipv6_addresses(&self) -> impl Iterator<Item = Ipv6Address> {
        self.link.ndp.addresses()
    }

    /// The router through which everything is reached that IPv6 does not find on the link.
    pub fn ipv6_router(&self) -> Option<Ipv6Addr> {
        self.link.ndp.router()
    }

    /// Whether `address` is one of ours.
    pub fn has_address(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => self.address().is_some_and(|own| own.address == address),
            IpAddr::V6(address) => self.ipv6_addresses().any(|own| own.address == address),
        }
    }

    /// Our IPv4 address, if we have one.
    pub fn address(&self) -> Option<Address> {
        self.link.interface.address
    }

    /// The name servers that DHCP and routers have named, best first.
    pub fn name_servers(&self) -> impl Iterator<Item = IpAddr> {
        let leased =
            self.dhcp.as_ref().and_then(Dhcp::lease).map_or(&[] as &[_], |lease| lease.name_servers.as_slice());
        leased.iter().copied().map(IpAddr::V4).chain(self.link.ndp.name_servers().map(IpAddr::V6))
    }

    /// What happened so far.
    pub fn counters(&self) -> &Counters {
        &self.link.counters
    }

    /// How many connections there are.
    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

    /// How many handshakes that others began are under way.
    pub fn handshake_count(&self) -> usize {
        self.half_open.len()
    }

    /// How many connections are over and still remembered.
    pub fn time_wait_count(&self) -> usize {
        self.time_wait.len()
    }

    /// What connections are lent, and how much of it is left.
    pub fn pools(&self) -> &Pools {
        &self.pools
    }

    /// Queues a copy of `bytes` to be sent, and returns how many fitted. When not all did, [`Event::SendRoom`] follows.
    pub fn send(&mut self, now: Instant, connection: ConnectionId, bytes: &[u8]) -> usize {
        let Some(found) = self.connections.get_mut(connection.0) else { return 0 };
        let sent = found.tcb.send(now, bytes, &mut self.pools);
        self.touch(connection);
        sent
    }

    /// Lets `write` put bytes where they are sent from: it is lent at least `least` bytes, at most a block, and answers how many it has written. Returns that; 0 when
    /// there is no room, and [`Event::SendRoom`] follows. `least`: at most [`machine::BLOCK_BYTES`].
    pub fn send_with(
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

    /// Queues bytes without copying them.
    ///
    /// Errors: the piece itself when there is no room for it; [`Event::SendRoom`] follows if the connection lives.
    pub fn send_piece(&mut self, now: Instant, connection: ConnectionId, piece: Piece) -> Result<(), Piece> {
        let Some(found) = self.connections.get_mut(connection.0) else { return Err(piece) };
        let result = found.tcb.send_piece(now, piece, &mut self.pools);
        self.touch(connection);
        result
    }

    /// How many bytes [`Net::send`] would take now.
    pub fn send_room(&self, connection: ConnectionId) -> usize {
        self.connections.get(connection.0).map_or(0, |found| found.tcb.send_room(&self.pools))
    }

    /// The same, but so that no more than `limit` bytes wait for the peer to take them.
    pub fn send_room_within(&self, connection: ConnectionId, limit: usize) -> usize {
        self.send_room(connection).min(limit.saturating_sub(self.unacknowledged(connection)))
    }

    /// Bytes queued that the peer has not acknowledged.
    pub fn unacknowledged(&self, connection: ConnectionId) -> usize {
        self.connections.get(connection.0).map_or(0, |found| found.tcb.unacknowledged())
    }

    /// Bytes that the peer has taken from us and the user from the peer, modulo 2^32: where it stays the same, nothing
    /// moves.
    pub fn bytes_moved(&self, connection: ConnectionId) -> u32 {
        self.connections.get(connection.0).map_or(0, |found| found.tcb.bytes_moved())
    }

    /// Whether the connection is lent anything from the pools.
    pub fn borrows(&self, connection: ConnectionId) -> bool {
        self.connections.get(connection.0).is_some_and(|found| found.tcb.borrows())
    }

    /// Tells by [`Event::SendRoom`] when there is room again, for a user who looked at [`Net::send_room`] and found too
    /// little. A send that was cut short asks by itself.
    pub fn want_room(&mut self, now: Instant, connection: ConnectionId) {
        if let Some(found) = self.connections.get_mut(connection.0) {
            found.tcb.want_room(now);
            self.touch(connection);
        }
    }

    /// A block to be filled and handed to [`Net::send_piece`]. `None` when sending must wait.
    pub fn lend_block(&mut self) -> Option<Arc<Block>> {
        self.pools.lend_block()
    }

    /// Takes back a block of [`Net::lend_block`] that was not sent after all.
    pub fn give_back_block(&mut self, block: Arc<Block>) {
        self.pools.give_back_block(block);
    }

    /// Keeps what was not taken of the [`Event::Data`] just delivered: exactly its last bytes. They come back through
    /// [`Net::waiting`]; no event says so.
    pub fn keep(&mut self, connection: ConnectionId, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if let Some(found) = self.connections.get_mut(connection.0) {
            found.tcb.keep(bytes, &mut self.pools);
        }
    }

    /// The first bytes that wait to be read; empty when none do. More may lie behind them.
    pub fn waiting(&self, connection: ConnectionId) -> &[u8] {
        self.connections.get(connection.0).map_or(&[], |found| found.tcb.waiting())
    }

    /// Copies the first bytes that wait to be read into `into`, and returns how many. They go on waiting.
    pub fn copy_waiting(&self, connection: ConnectionId, into: &mut [u8]) -> usize {
        self.connections.get(connection.0).map_or(0, |found| found.tcb.copy_waiting(into))
    }

    /// How many bytes wait to be read.
    pub fn waiting_bytes(&self, connection: ConnectionId) -> usize {
        self.connections.get(connection.0).map_or(0, |found| found.tcb.waiting_bytes())
    }

    /// Writes `bytes` over the first of those that wait to be read, which are as many at least: what was changed while it was worked on.
    pub fn put_back(&mut self, connection: ConnectionId, bytes: &[u8]) {
        if let Some(found) = self.connections.get_mut(connection.0) {
            found.tcb.put_back(bytes, &mut self.pools);
        }
    }

    /// Drops the first `count` of the waiting bytes: they have been taken.
    pub fn consumed(&mut self, connection: ConnectionId, count: usize) {
        if let Some(found) = self.connections.get_mut(connection.0) {
            found.tcb.consumed(count, &mut self.pools);
            self.touch(connection);
        }
    }

    /// Ends our direction after all that is queued. Receiving goes on; [`Event::Closed`] follows when both are done. A
    /// connection that was not told of as connected yet is aborted: no event follows.
    pub fn close(&mut self, connection: ConnectionId) {
        if let Some(found) = self.connections.get_mut(connection.0) {
            found.tcb.close(&mut self.pools);
            self.touch(connection);
        }
    }

    /// Gives the peer up when what it was sent stays unacknowledged for `span`, in whole seconds, at the most
    /// [`crate::tcp::USER_TIMEOUT_MAX`]; unless this was called, for [`crate::tcp::USER_TIMEOUT`].
    pub fn set_user_timeout(&mut self, connection: ConnectionId, span: Micros) {
        if let Some(found) = self.connections.get_mut(connection.0) {
            found.tcb.set_user_timeout(span);
        }
    }

    /// Resets the connection at once. No event follows.
    pub fn abort(&mut self, connection: ConnectionId) {
        if let Some(found) = self.connections.get_mut(connection.0) {
            found.tcb.abort(&mut self.pools);
            found.user_is_done = true;
            self.touch(connection);
        }
    }

    /// Takes datagrams for `port` from now on. False when too many ports are bound, or DHCP uses this one.
    pub fn bind(&mut self, port: u16) -> bool {
        !self.is_dhcp_port(port) && self.ports.bind(port)
    }

    /// Takes no more datagrams for `port`.
    pub fn release(&mut self, port: u16) {
        self.ports.release(port);
    }

    /// Sends a datagram from `port`.
    ///
    /// Errors: [`Unsent`] says why not. Without an error it may still be lost, like any datagram.
    pub fn send_datagram(&mut self, now: Instant, port: u16, to: SocketAddr, bytes: &[u8]) -> Result<(), Unsent> {
        let (_, own) = self.link.source_for(now, to.ip().into()).ok_or(Unsent::NoRoute)?;
        let from = SocketAddr::new(own.into(), port);
        udp::send(&mut self.link, now, from, to, bytes.len(), |room| room.copy_from_slice(bytes))
    }

    /// The bytes of a datagram of which an [`Event::Datagram`] told, when a frame with the bytes `frame` arrived.
    pub fn datagram<'a>(&'a self, frame: &'a [u8], place: &Place) -> &'a [u8] {
        let (bytes, range) = match place {
            Place::Frame(range) => (frame, range),
            Place::Reassembled(range) => (self.reassembled.as_deref().unwrap_or_default(), range),
        };
        bytes.get(range.clone()).unwrap_or_default()
    }

    pub(crate) fn service_of(&self, port: u16) -> Option<Service> {
        self.listeners.iter().find(|(listened, _)| *listened == port).map(|(_, service)| *service)
    }

    pub(crate) fn is_dhcp_port(&self, port: u16) -> bool {
        self.dhcp.is_some() && port == crate::dhcp::CLIENT_PORT
    }

    /// Something has happened to a connection: the out phase lets it speak and sets its timer, once, whatever else
    /// happens to it in this turn.
    #[inline]
    pub(crate) fn touch(&mut self, connection: ConnectionId) {
        self.touched.resume(connection.0);
    }

    /// Forgets a connection that is over, except for what TIME-WAIT remembers of it.
    pub(crate) fn bury(&mut self, now: Instant, connection: ConnectionId, remember: Option<crate::tcp::TimeWait>) {
        let Some(mut gone) = self.connections.remove(connection.0) else { return };
        let flow = gone.template.flow();
        gone.tcb.release(&mut self.pools);
        self.timers.cancel(connection.0);
        match remember {
            Some(time_wait) => {
                let (id, forgotten) = self.time_wait.insert(now, flow, time_wait);
                if let Some(forgotten) = forgotten {
                    self.flows.remove(&forgotten);
                }
                self.flows.set(flow, Entry::TimeWait(id.0));
            }
            None => self.flows.remove(&flow),
        }
        self.flow_closed(&flow);
    }

    /// Takes another address, or none, and ends what was bound to the former one.
    pub(crate) fn change_address(&mut self, now: Instant, address: Option<Address>) {
        let before = self.link.interface.address;
        self.link.set_address(now, address);
        if before == address {
            return;
        }
        // The first core tells, for all.
        self.address_news = self.cores().is_first();
        if before.is_some_and(|before| address.is_none_or(|address| address.address != before.address)) {
            self.ending_from = Some(0);
        }
    }

    /// Tells of changed addresses, if there is room to tell it.
    pub(crate) fn tell_address(&mut self, events: &mut Events) {
        if self.link.ndp.has_news() && events.capacity() - events.len() >= EVENTS_AT_ONCE {
            let news = self.link.ndp.take_news();
            if news.lost {
                self.ending_from = Some(0);
            }
            let changed = news.changed.then_some(Event::Ipv6AddressesChanged);
            let taken = news.taken.map(|address| Event::AddressTaken { address });
            let is_first = self.cores().is_first();
            for event in changed.into_iter().chain(taken).filter(|_| is_first) {
                let _ = events.push(event);
            }
        }
        if self.address_news && events.push(Event::AddressChanged { address: self.address() }).is_ok() {
            self.address_news = false;
        }
    }
}

/// A key of this core's alone: a cookie is good where it was given.
fn own_key(mut key: [u8; 16], own: CoreId) -> [u8; 16] {
    if let Some(byte) = key.first_mut() {
        *byte ^= own.0;
    }
    key
}
