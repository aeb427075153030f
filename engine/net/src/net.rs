//! The network of one core, and what its user may do with a connection.

mod messages;
mod receive;
mod turn;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

use machine::{Block, Card, Instant, Micros, Piece};

use crate::config::{Addressing, Config, Ipv6Address, Service};
use crate::connections::Tcp;
use crate::cores::Fellows;
use crate::counters::Counters;
use crate::dhcp::Dhcp;
use crate::event::{ConnectionId, EVENTS_AT_ONCE, Event, Events, Place};
use crate::icmp::Icmp;
use crate::icmpv6::Icmpv6;
use crate::interface::Address;
use crate::kept::Kept;
use crate::link::{Link, Unsent};
use crate::random::Random;
use crate::reassembly::Reassembly;
use crate::tcp::Pools;
use crate::udp::{self, Ports};
pub use turn::Output;

/// The network.
pub struct Net {
    /// `None` for who is alone on his machine.
    fellows: Option<Fellows>,
    link: Link,
    dhcp: Kept<Option<Dhcp>>,
    icmp: Icmp,
    icmpv6: Icmpv6,
    reassembly: Kept<Reassembly>,
    /// The datagram put together last, until the next frame arrives.
    reassembled: Option<Box<[u8]>>,
    ports: Ports,
    tcp: Tcp,
    /// When one of the parts that wait for time has something to do, as long as none of them is stirred.
    chores_at: Instant,
    /// Set when the address has changed and nobody was told yet.
    address_news: bool,
}

impl Net {
    /// Bytes of memory for a connection that has nothing to send and keeps nothing.
    pub const IDLE_CONNECTION_BYTES: usize = Tcp::IDLE_CONNECTION_BYTES;

    /// A network behind `card`. `seed` is random, chosen anew each time the machine starts, and the same on all of its cores.
    pub fn new(config: &Config, card: &Card, seed: &[u8; 32], now: Instant) -> Net {
        let ([first, second], []) = seed.as_chunks() else { unreachable!("a seed is two keys") };
        let mut keys = Random::new(*first, *second);
        let fellows = Fellows::new(config.cores, card.queues, config.limits.connections);
        let is_first = config.cores.is_first();
        let link = Link::new(card, &config.ipv6, is_first, Random::new(keys.key(), keys.key()));
        let tcp = Tcp::new(config, card, &mut keys, now);
        let mut net = Net {
            fellows,
            link,
            dhcp: Kept::new(None),
            icmp: Icmp::new(),
            icmpv6: Icmpv6::new(),
            reassembly: Kept::new(Reassembly::new()),
            reassembled: None,
            ports: Ports::default(),
            tcp,
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
        self.tcp.listen(port, service)
    }

    /// Takes no more connections to `port`. Those that exist go on.
    pub fn stop_listening(&mut self, port: u16) {
        self.tcp.stop_listening(port);
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
        let leased = self
            .dhcp
            .as_ref()
            .and_then(Dhcp::lease)
            .map_or(&[] as &[_], |lease| lease.name_servers.as_slice());
        leased.iter().copied().map(IpAddr::V4).chain(self.link.ndp.name_servers().map(IpAddr::V6))
    }

    /// What happened so far.
    pub fn counters(&self) -> &Counters {
        &self.link.counters
    }

    /// How many connections there are.
    pub fn connection_count(&self) -> usize {
        self.tcp.len()
    }

    /// How many handshakes that others began are under way.
    pub fn handshake_count(&self) -> usize {
        self.tcp.handshake_count()
    }

    /// How many connections are over and still remembered.
    pub fn time_wait_count(&self) -> usize {
        self.tcp.time_wait_count()
    }

    /// What connections are lent, and how much of it is left.
    pub fn pools(&self) -> &Pools {
        self.tcp.pools()
    }

    /// Opens a connection to `peer`. [`crate::Event::Connected`] follows, or [`crate::Event::Closed`] with the reason; until
    /// then nothing can be sent.
    ///
    /// Errors: [`Unsent::NoRoute`] without an address or a way to the peer; [`Unsent::Full`] when there is no room for
    /// another connection, or no port to be had.
    pub fn connect(&mut self, now: Instant, peer: SocketAddr) -> Result<ConnectionId, Unsent> {
        self.tcp.connect(now, peer, &mut self.link, &mut self.fellows)
    }

    /// Queues a copy of `bytes` to be sent, and returns how many fitted. When not all did, [`Event::SendRoom`] follows.
    pub fn send(&mut self, now: Instant, connection: ConnectionId, bytes: &[u8]) -> usize {
        self.tcp.send(now, connection, bytes)
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
        self.tcp.send_with(now, connection, least, write)
    }

    /// Queues bytes without copying them.
    ///
    /// Errors: the piece itself when there is no room for it; [`Event::SendRoom`] follows if the connection lives.
    pub fn send_piece(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        piece: Piece,
    ) -> Result<(), Piece> {
        self.tcp.send_piece(now, connection, piece)
    }

    /// How many bytes [`Net::send`] would take now.
    pub fn send_room(&self, connection: ConnectionId) -> usize {
        self.tcp.send_room(connection)
    }

    /// The same, but so that no more than `limit` bytes wait for the peer to take them.
    pub fn send_room_within(&self, connection: ConnectionId, limit: usize) -> usize {
        self.send_room(connection).min(limit.saturating_sub(self.unacknowledged(connection)))
    }

    /// Bytes queued that the peer has not acknowledged.
    pub fn unacknowledged(&self, connection: ConnectionId) -> usize {
        self.tcp.unacknowledged(connection)
    }

    /// Bytes that the peer has taken from us and the user from the peer, modulo 2^32: where it stays the same, nothing
    /// moves.
    pub fn bytes_moved(&self, connection: ConnectionId) -> u32 {
        self.tcp.bytes_moved(connection)
    }

    /// Whether the connection is lent something of which no more than one part in `parts` is left.
    pub fn borrows_scarce(&self, parts: usize, connection: ConnectionId) -> bool {
        self.tcp.borrows_scarce(parts, connection)
    }

    /// Tells by [`Event::SendRoom`] when there is room again, for a user who looked at [`Net::send_room`] and found too
    /// little. A send that was cut short asks by itself.
    pub fn want_room(&mut self, now: Instant, connection: ConnectionId) {
        self.tcp.want_room(now, connection);
    }

    /// A block to be filled and handed to [`Net::send_piece`]. `None` when sending must wait.
    pub fn lend_block(&mut self) -> Option<Arc<Block>> {
        self.tcp.lend_block()
    }

    /// Takes back a block of [`Net::lend_block`] that was not sent after all.
    pub fn give_back_block(&mut self, block: Arc<Block>) {
        self.tcp.give_back_block(block);
    }

    /// Keeps what was not taken of the [`Event::Data`] just delivered: exactly its last bytes. They come back through
    /// [`Net::waiting`]; no event says so.
    pub fn keep(&mut self, connection: ConnectionId, bytes: &[u8]) {
        self.tcp.keep(connection, bytes);
    }

    /// The first bytes that wait to be read; empty when none do. More may lie behind them.
    pub fn waiting(&self, connection: ConnectionId) -> &[u8] {
        self.tcp.waiting(connection)
    }

    /// Copies the first bytes that wait to be read into `into`, and returns how many. They go on waiting.
    pub fn copy_waiting(&self, connection: ConnectionId, into: &mut [u8]) -> usize {
        self.tcp.copy_waiting(connection, into)
    }

    /// How many bytes wait to be read.
    pub fn waiting_bytes(&self, connection: ConnectionId) -> usize {
        self.tcp.waiting_bytes(connection)
    }

    /// Writes `bytes` over the first of those that wait to be read, which are as many at least: what was changed while it was worked on.
    pub fn put_back(&mut self, connection: ConnectionId, bytes: &[u8]) {
        self.tcp.put_back(connection, bytes);
    }

    /// Drops the first `count` of the waiting bytes: they have been taken.
    pub fn consumed(&mut self, connection: ConnectionId, count: usize) {
        self.tcp.consumed(connection, count);
    }

    /// Ends our direction after all that is queued. Receiving goes on; [`Event::Closed`] follows when both are done. A
    /// connection that was not told of as connected yet is aborted: no event follows.
    pub fn close(&mut self, connection: ConnectionId) {
        self.tcp.close(connection);
    }

    /// Gives the peer up when what it was sent stays unacknowledged for `span`, in whole seconds, at the most
    /// [`crate::tcp::USER_TIMEOUT_MAX`]; unless this was called, for [`crate::tcp::USER_TIMEOUT`].
    pub fn set_user_timeout(&mut self, connection: ConnectionId, span: Micros) {
        self.tcp.set_user_timeout(connection, span);
    }

    /// Resets the connection at once. No event follows.
    pub fn abort(&mut self, connection: ConnectionId) {
        self.tcp.abort(connection);
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

    /// The bytes of a datagram of which an [`Event::Datagram`] told, when a frame with the bytes `frame` arrived.
    pub fn datagram<'a>(&'a self, frame: &'a [u8], place: &Place) -> &'a [u8] {
        let (bytes, range) = match place {
            Place::Frame(range) => (frame, range),
            Place::Reassembled(range) => match self.reassembled.as_deref() {
                Some(bytes) => (bytes, range),
                None => unreachable!("a datagram that is asked for too late"),
            },
        };
        let Some(bytes) = bytes.get(range.clone()) else {
            unreachable!("a datagram of another frame")
        };
        bytes
    }

    fn is_dhcp_port(&self, port: u16) -> bool {
        self.dhcp.is_some() && port == crate::dhcp::CLIENT_PORT
    }

    /// Takes another address, or none, and ends what was bound to the former one.
    fn change_address(&mut self, now: Instant, address: Option<Address>) {
        let before = self.link.interface.address;
        self.link.set_address(now, address);
        if before == address {
            return;
        }
        // The first core tells, for all.
        self.address_news = self.cores().is_first();
        if before
            .is_some_and(|before| address.is_none_or(|address| address.address != before.address))
        {
            self.tcp.address_lost();
        }
    }

    /// Tells of changed addresses, if there is room to tell it.
    fn tell_address(&mut self, events: &mut Events) {
        if self.link.ndp.has_news() && events.capacity() - events.len() >= EVENTS_AT_ONCE {
            let news = self.link.ndp.take_news();
            if news.lost {
                self.tcp.address_lost();
            }
            let changed = news.changed.then_some(Event::Ipv6AddressesChanged);
            let taken = news.taken.map(|address| Event::AddressTaken { address });
            let is_first = self.cores().is_first();
            for event in changed.into_iter().chain(taken).filter(|_| is_first) {
                let told = events.push(event);
                assert!(told.is_ok(), "there was room for them");
            }
        }
        if self.address_news
            && events.push(Event::AddressChanged { address: self.address() }).is_ok()
        {
            self.address_news = false;
        }
    }

    /// Flows that lead to something.
    #[cfg(test)]
    pub(crate) fn flow_count(&self) -> usize {
        self.tcp.flow_count()
    }

    /// Whether no connection is to speak.
    #[cfg(test)]
    pub(crate) fn is_quiet(&self) -> bool {
        !self.tcp.wants_output()
    }

    #[cfg(test)]
    pub(crate) fn hardware(&self) -> machine::Ethernet {
        self.link.interface.hardware
    }

    /// The deadline that is kept of the parts that wait for time, and the one that they have.
    #[cfg(test)]
    pub(crate) fn chores(&self) -> (Instant, Instant) {
        (self.chores_at, self.next_chore())
    }

    /// Whether no connection is open here, nor at the cores that we steer for.
    #[cfg(test)]
    pub(crate) fn holds_nothing(&self) -> bool {
        self.fellows.as_ref().is_none_or(Fellows::holds_nothing)
    }
}
