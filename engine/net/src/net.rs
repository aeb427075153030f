//! The network stack of one core, and the operations that its user has on connections.

mod messages;
mod receive;
mod turn;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

use machine::{Block, Card, Instant, Micros, Piece};

use crate::change_tracked::ChangeTracked;
use crate::config::{Addressing, Config, Ipv6Address, Service};
use crate::connections::Tcp;
use crate::cores::MulticoreState;
use crate::counters::Counters;
use crate::dhcp::Dhcp;
use crate::event::{ConnectionId, DatagramPlace, EVENTS_AT_ONCE, Event, Events};
use crate::icmp::Icmp;
use crate::icmpv6::Icmpv6;
use crate::interface::Ipv4Interface;
use crate::link::{Link, Unsent};
use crate::random::Random;
use crate::reassembly::Reassembly;
use crate::tcp::Pools;
use crate::udp::{self, Ports};
pub use turn::OutputProgress;

/// The network stack of one core.
pub struct Net {
    /// The state shared with the other cores. `None` on a machine with one core.
    other_cores: Option<MulticoreState>,
    link: Link,
    dhcp: ChangeTracked<Option<Dhcp>>,
    icmp: Icmp,
    icmpv6: Icmpv6,
    reassembly: ChangeTracked<Reassembly>,
    /// The most recently reassembled datagram. Events refer to it, so it is kept until the next
    /// frame.
    reassembled: Option<Box<[u8]>>,
    ports: Ports,
    tcp: Tcp,
    /// The earliest deadline of the parts with timers. It is valid until one of these parts
    /// changes.
    timers_at: Instant,
    /// Set when the IPv4 address has changed and no event has reported it yet.
    address_changed: bool,
}

impl Net {
    /// Bytes of memory for a connection with nothing to send and no buffered data.
    pub const IDLE_CONNECTION_BYTES: usize = Tcp::IDLE_CONNECTION_BYTES;

    /// Creates the network stack for `card`.
    ///
    /// `seed`: random, new at each start of the machine, and the same on all its cores.
    pub fn new(config: &Config, card: &Card, seed: &[u8; 32], now: Instant) -> Net {
        let ([first, second], []) = seed.as_chunks() else { unreachable!("a seed is two keys") };
        let mut keys = Random::new(*first, *second);
        let other_cores = MulticoreState::new(config.cores, card.queues, config.limits.connections);
        let is_first = config.cores.is_first();
        let link = Link::new(card, &config.ipv6, is_first, Random::new(keys.key(), keys.key()));
        let tcp = Tcp::new(config, card, &mut keys, now);
        let mut net = Net {
            other_cores,
            link,
            dhcp: ChangeTracked::new(None),
            icmp: Icmp::new(),
            icmpv6: Icmpv6::new(),
            reassembly: ChangeTracked::new(Reassembly::new()),
            reassembled: None,
            ports: Ports::default(),
            tcp,
            timers_at: Instant::START,
            address_changed: false,
        };
        match config.addressing {
            // The first core tells the other cores the address.
            _ if !is_first => {}
            Addressing::None => {}
            Addressing::Static(address) => net.link.set_address(now, Some(address)),
            Addressing::Dhcp => {
                *net.dhcp = Some(Dhcp::new(card.address, Random::new(keys.key(), keys.key()), now));
            }
        }
        net
    }

    /// Accepts connections to `port` from now on, and reports each with `service`. False: the port
    /// is open already, or too many ports are open.
    pub fn listen(&mut self, port: u16, service: Service) -> bool {
        self.tcp.listen(port, service)
    }

    /// Stops accepting connections to `port`. Existing connections continue.
    pub fn stop_listening(&mut self, port: u16) {
        self.tcp.stop_listening(port);
    }

    /// Starts IPv6 if it is configured and this is the first core. The first core tells the other
    /// cores the state of IPv6.
    ///
    /// `secret`: known only to this machine and unchanged at each start, so that the machine's
    /// addresses stay the same (RFC 7217).
    pub fn begin_ipv6(&mut self, now: Instant, secret: &[u8; 16]) {
        if self.cores().is_first() {
            self.link.ndp.begin(now, secret);
        }
    }

    /// Our IPv6 addresses.
    pub fn ipv6_addresses(&self) -> impl Iterator<Item = Ipv6Address> {
        self.link.ndp.addresses()
    }

    /// The router for IPv6 destinations that are not on the link.
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
    pub fn address(&self) -> Option<Ipv4Interface> {
        self.link.interface.address
    }

    /// The name servers from DHCP and from router advertisements, best first.
    pub fn name_servers(&self) -> impl Iterator<Item = IpAddr> {
        let leased = self
            .dhcp
            .as_ref()
            .and_then(Dhcp::lease)
            .map_or(&[] as &[_], |lease| lease.name_servers.as_slice());
        leased.iter().copied().map(IpAddr::V4).chain(self.link.ndp.name_servers().map(IpAddr::V6))
    }

    /// The event counters.
    pub fn counters(&self) -> &Counters {
        &self.link.counters
    }

    /// The number of connections.
    pub fn connection_count(&self) -> usize {
        self.tcp.len()
    }

    /// Whether all connections are closed on our side, and their peers have acknowledged that. This
    /// looks at each connection, so call it only while the machine stops.
    pub fn has_delivered_all(&self) -> bool {
        self.tcp.have_delivered_all()
    }

    /// The number of incoming handshakes in progress.
    pub fn handshake_count(&self) -> usize {
        self.tcp.handshake_count()
    }

    /// The number of connections in TIME-WAIT.
    pub fn time_wait_count(&self) -> usize {
        self.tcp.time_wait_count()
    }

    /// The pools that connections borrow buffers from, with their numbers of free buffers.
    pub fn pools(&self) -> &Pools {
        self.tcp.pools()
    }

    /// Opens a connection to `peer`. [`crate::Event::Connected`] follows, or
    /// [`crate::Event::Closed`] with the reason. Nothing can be sent before that.
    ///
    /// Errors: [`Unsent::NoRoute`] without an address of ours or a route to the peer;
    /// [`Unsent::Full`] when there is no room for another connection, or no free port.
    pub fn connect(&mut self, now: Instant, peer: SocketAddr) -> Result<ConnectionId, Unsent> {
        self.tcp.connect(now, peer, &mut self.link, &mut self.other_cores)
    }

    /// Queues a copy of `bytes` for sending, and returns the number of bytes queued. If some bytes
    /// did not fit, [`Event::SendRoom`] follows.
    pub fn send(&mut self, now: Instant, connection: ConnectionId, bytes: &[u8]) -> usize {
        self.tcp.send(now, connection, bytes)
    }

    /// Lets `write` place bytes directly in the send queue. `write` gets a buffer of at least
    /// `least` bytes and at most a block, and returns the number of bytes written.
    ///
    /// Returns that number, or 0 if there is no room; then [`Event::SendRoom`] follows. `least`: at
    /// most [`machine::BLOCK_BYTES`].
    pub fn send_with(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        least: usize,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) -> usize {
        self.tcp.send_with(now, connection, least, write)
    }

    /// Queues bytes without copying them.
    ///
    /// Errors: the piece itself, if there is no room for it. [`Event::SendRoom`] follows if the
    /// connection still exists.
    pub fn send_piece(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        piece: Piece,
    ) -> Result<(), Piece> {
        self.tcp.send_piece(now, connection, piece)
    }

    /// The number of bytes that [`Net::send`] would accept now.
    pub fn send_room(&self, connection: ConnectionId) -> usize {
        self.tcp.send_room(connection)
    }

    /// As [`Net::send_room`], limited so that at most `limit` bytes are unacknowledged.
    pub fn send_room_within(&self, connection: ConnectionId, limit: usize) -> usize {
        self.send_room(connection).min(limit.saturating_sub(self.unacknowledged(connection)))
    }

    /// The number of queued bytes that the peer has not acknowledged.
    pub fn unacknowledged(&self, connection: ConnectionId) -> usize {
        self.tcp.unacknowledged(connection)
    }

    /// Bytes that the peer has acknowledged plus bytes that the user has consumed, modulo 2^32. If
    /// the number stays the same, the connection makes no progress.
    pub fn bytes_moved(&self, connection: ConnectionId) -> u32 {
        self.tcp.bytes_moved(connection)
    }

    /// Whether the connection borrows from a pool in which at most 1/`parts` of the buffers is
    /// free.
    pub fn borrows_scarce(&self, parts: usize, connection: ConnectionId) -> bool {
        self.tcp.borrows_scarce(parts, connection)
    }

    /// Requests an [`Event::SendRoom`] for the time when there is room again, for a user that found
    /// too little in [`Net::send_room`]. A send that queued only a part of its bytes requests the
    /// event implicitly.
    pub fn want_room(&mut self, now: Instant, connection: ConnectionId) {
        self.tcp.want_room(now, connection);
    }

    /// Lends a block to fill and pass to [`Net::send_piece`]. `None`: no block is free, so sending
    /// must wait.
    pub fn lend_block(&mut self) -> Option<Arc<Block>> {
        self.tcp.lend_block()
    }

    /// Takes back a block of [`Net::lend_block`] that was not sent after all.
    pub fn give_back_block(&mut self, block: Arc<Block>) {
        self.tcp.give_back_block(block);
    }

    /// Buffers the end of the last [`Event::Data`], from the first byte that the user did not
    /// consume. [`Net::waiting`] returns these bytes later; no event reports them again.
    pub fn keep(&mut self, connection: ConnectionId, bytes: &[u8]) {
        self.tcp.keep(connection, bytes);
    }

    /// The first contiguous bytes that wait to be read. They are empty if none wait. More may wait
    /// after them.
    pub fn waiting(&self, connection: ConnectionId) -> &[u8] {
        self.tcp.waiting(connection)
    }

    /// Copies the first waiting bytes into `into`, and returns the number of bytes copied. They
    /// stay in the buffer.
    pub fn copy_waiting(&self, connection: ConnectionId, into: &mut [u8]) -> usize {
        self.tcp.copy_waiting(connection, into)
    }

    /// The number of bytes that wait to be read.
    pub fn waiting_bytes(&self, connection: ConnectionId) -> usize {
        self.tcp.waiting_bytes(connection)
    }

    /// Overwrites the first waiting bytes with `bytes`, for a user that decodes data in place. At
    /// least as many bytes must be waiting.
    pub fn put_back(&mut self, connection: ConnectionId, bytes: &[u8]) {
        self.tcp.put_back(connection, bytes);
    }

    /// Drops the first `count` waiting bytes: the user has consumed them.
    pub fn consumed(&mut self, connection: ConnectionId, count: usize) {
        self.tcp.consumed(connection, count);
    }

    /// Closes our direction after all queued data. Receiving continues. [`Event::Closed`] follows
    /// when both directions are closed. A connection that has not been reported as connected is
    /// aborted, and no event follows.
    pub fn close(&mut self, connection: ConnectionId) {
        self.tcp.close(connection);
    }

    /// Closes the connection when sent data stays unacknowledged for `span`. `span` is in whole
    /// seconds and at most [`crate::tcp::USER_TIMEOUT_MAX`]. The default is
    /// [`crate::tcp::USER_TIMEOUT`].
    pub fn set_user_timeout(&mut self, connection: ConnectionId, span: Micros) {
        self.tcp.set_user_timeout(connection, span);
    }

    /// Resets the connection at once. No event follows.
    pub fn abort(&mut self, connection: ConnectionId) {
        self.tcp.abort(connection);
    }

    /// Receives datagrams for `port` from now on. False: too many ports are bound, or DHCP uses
    /// this port.
    pub fn bind(&mut self, port: u16) -> bool {
        !self.is_dhcp_port(port) && self.ports.bind(port)
    }

    /// Stops receiving datagrams for `port`.
    pub fn release(&mut self, port: u16) {
        self.ports.release(port);
    }

    /// Sends a datagram from `port`.
    ///
    /// Errors: [`Unsent`] gives the reason. A datagram that was sent without an error may still be
    /// lost.
    pub fn send_datagram(
        &mut self,
        now: Instant,
        port: u16,
        to: SocketAddr,
        bytes: &[u8],
    ) -> Result<(), Unsent> {
        let (_, own) = self.link.source_for(now, to.ip().into()).ok_or(Unsent::NoRoute)?;
        let from = SocketAddr::new(own.into(), port);
        udp::send(&mut self.link, now, from, to, bytes.len(), |room| room.copy_from_slice(bytes))
    }

    /// The bytes of the datagram of an [`Event::Datagram`]. `frame`: the bytes of the frame that
    /// caused the event.
    pub fn datagram<'a>(&'a self, frame: &'a [u8], place: &DatagramPlace) -> &'a [u8] {
        let (bytes, range) = match place {
            DatagramPlace::Frame(range) => (frame, range),
            DatagramPlace::Reassembled(range) => match self.reassembled.as_deref() {
                Some(bytes) => (bytes, range),
                None => unreachable!("a reassembled datagram is read before the next frame"),
            },
        };
        let Some(bytes) = bytes.get(range.clone()) else {
            unreachable!("the datagram lies in this frame")
        };
        bytes
    }

    fn is_dhcp_port(&self, port: u16) -> bool {
        self.dhcp.is_some() && port == crate::dhcp::CLIENT_PORT
    }

    /// Sets or removes our address, and closes the connections of the former address.
    fn change_address(&mut self, now: Instant, address: Option<Ipv4Interface>) {
        let before = self.link.interface.address;
        self.link.set_address(now, address);
        if before == address {
            return;
        }
        // Only the first core reports the change, for all cores.
        self.address_changed = self.cores().is_first();
        if before
            .is_some_and(|before| address.is_none_or(|address| address.address != before.address))
        {
            self.tcp.address_lost();
        }
    }

    /// Reports changed addresses, if there is room for the events.
    fn report_addresses(&mut self, events: &mut Events) {
        if self.link.ndp.has_news() && events.capacity() - events.len() >= EVENTS_AT_ONCE {
            let news = self.link.ndp.take_news();
            if news.lost {
                self.tcp.address_lost();
            }
            let changed = news.changed.then_some(Event::Ipv6AddressesChanged);
            let taken = news.taken.map(|address| Event::AddressTaken { address });
            let is_first = self.cores().is_first();
            for event in changed.into_iter().chain(taken).filter(|_| is_first) {
                let pushed = events.push(event);
                assert!(pushed.is_ok(), "the events have room for the news");
            }
        }
        if self.address_changed
            && events.push(Event::AddressChanged { address: self.address() }).is_ok()
        {
            self.address_changed = false;
        }
    }

    /// The number of flows in the flow table.
    #[cfg(test)]
    pub(crate) fn flow_count(&self) -> usize {
        self.tcp.flow_count()
    }

    /// Whether no connection has output pending.
    #[cfg(test)]
    pub(crate) fn is_quiet(&self) -> bool {
        !self.tcp.wants_output()
    }

    #[cfg(test)]
    pub(crate) fn hardware(&self) -> machine::Ethernet {
        self.link.interface.hardware
    }

    /// The cached deadline of the parts with timers, and their actual deadline.
    #[cfg(test)]
    pub(crate) fn timer_deadlines(&self) -> (Instant, Instant) {
        (self.timers_at, self.next_timer())
    }

    /// Whether the counts for steering (`cores.rs`) show no open connection, on this core and on
    /// the cores that it steers for. Without steering, always true.
    #[cfg(test)]
    pub(crate) fn holds_nothing(&self) -> bool {
        self.other_cores.as_ref().is_none_or(MulticoreState::holds_nothing)
    }
}
