//! A client host on the wire. Its TCP is smoltcp, an independent implementation.
//!
//! The client is a peer, not an oracle: if the client accepts the server's segments, a second
//! implementation of the RFCs accepts them.

use std::collections::VecDeque;

use machine::{Ethernet, Instant, Micros};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{ChecksumCapabilities, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::{Socket, tcp, udp};
use smoltcp::time;
use smoltcp::wire::{
    EthernetAddress, HardwareAddress, IpAddress, IpCidr, IpEndpoint, IpListenEndpoint, Ipv4Address,
    Ipv6Address,
};

/// The default buffer size of a connection in each direction.
const BUFFER_BYTES: usize = 65_535;
/// The first local port of outgoing connections (RFC 6335 section 6).
const FIRST_PORT: u16 = 49_152;

/// The first bytes of the hardware addresses of IPv6 multicast groups (RFC 2464 §7).
const GROUP: [u8; 2] = [0x33, 0x33];

/// One connection of the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connection(SocketHandle);

/// A UDP port of the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port(SocketHandle);

/// Whether a host's cable is plugged in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cable {
    /// Frames pass.
    In,
    /// No frame passes in either direction, and neither side learns of the loss.
    Out,
}

/// A client host: an interface and its connections.
pub struct Client {
    /// The bytes that new connections buffer in each direction.
    pub buffer_bytes: usize,
    /// The time by which new connections delay an acknowledgment that no data carries. `None`: the
    /// default of smoltcp.
    pub acknowledgment_delay: Option<Micros>,
    /// Whether the host's cable is plugged in.
    pub cable: Cable,
    hardware: Ethernet,
    interface: Interface,
    sockets: SocketSet<'static>,
    device: WireEnd,
    next_port: u16,
    /// The source address of outgoing connections; `None`: the address that the host was created
    /// with.
    source: Option<IpAddress>,
    /// The time at which the sockets are due for the next poll. Any use of a socket makes them due
    /// at once.
    next_look: Option<Instant>,
}

impl Client {
    /// A host with `address` in a /24, and an IPv6 address in 2001:db8::/64 with the same last
    /// byte.
    pub fn new(address: Ipv4Address, seed: u64) -> Client {
        let mut device = WireEnd::default();
        let [.., last] = address.octets();
        let hardware = Ethernet([0x02, 0, 0, 0, 1, last]);
        let mut config = Config::new(HardwareAddress::Ethernet(EthernetAddress(hardware.0)));
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut device, time::Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            let _ = addresses.push(IpCidr::new(IpAddress::Ipv4(address), 24));
            let ipv6 = Ipv6Address::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(last));
            let _ = addresses.push(IpCidr::new(IpAddress::Ipv6(ipv6), 64));
        });
        Client {
            buffer_bytes: BUFFER_BYTES,
            acknowledgment_delay: None,
            cable: Cable::In,
            hardware,
            interface,
            sockets: SocketSet::new(Vec::new()),
            device,
            next_port: FIRST_PORT,
            source: None,
            next_look: None,
        }
    }

    /// Opens a connection to `port` at `server`.
    pub fn connect(&mut self, server: impl Into<IpAddress>, port: u16) -> Connection {
        let buffer = || tcp::SocketBuffer::new(vec![0; self.buffer_bytes]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        socket.set_nagle_enabled(false);
        if let Some(delay) = self.acknowledgment_delay {
            socket.set_ack_delay(Some(time::Duration::from_micros(delay.0)));
        }
        self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_PORT);
        let own = IpListenEndpoint { addr: self.source, port: self.next_port };
        let opened = socket.connect(self.interface.context(), (server.into(), port), own);
        assert!(opened.is_ok(), "the client's own arguments are valid");
        self.next_look = Some(Instant::START);
        Connection(self.sockets.add(socket))
    }

    /// Replaces the IPv6 address with an IPv4 address in another network. Later connections come
    /// from `address`, and the host is the router of that network.
    pub fn move_to(&mut self, address: Ipv4Address) {
        self.source = Some(address.into());
        self.interface.update_ip_addrs(|addresses| {
            addresses.truncate(1);
            assert!(
                addresses.push(IpCidr::new(address.into(), 32)).is_ok(),
                "the interface has space for two addresses"
            );
        });
    }

    /// Listens for one connection to `port`.
    pub fn listen(&mut self, port: u16) -> Connection {
        let buffer = || tcp::SocketBuffer::new(vec![0; self.buffer_bytes]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        assert!(socket.listen(port).is_ok(), "the client's own arguments are valid");
        Connection(self.sockets.add(socket))
    }

    /// Receives datagrams for `port`.
    pub fn bind(&mut self, port: u16) -> Port {
        let buffer = || {
            udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; 64], vec![0; self.buffer_bytes])
        };
        let mut socket = udp::Socket::new(buffer(), buffer());
        assert!(socket.bind(port).is_ok(), "the client's own arguments are valid");
        Port(self.sockets.add(socket))
    }

    /// The next datagram that has arrived, and its sender.
    pub fn datagram(&mut self, port: Port) -> Option<(IpEndpoint, Vec<u8>)> {
        let socket: &mut udp::Socket<'_> = self.sockets.get_mut(port.0);
        socket.recv().ok().map(|(bytes, from)| (from.endpoint, bytes.to_vec()))
    }

    /// Sends a datagram.
    pub fn send_datagram(&mut self, port: Port, to: IpEndpoint, bytes: &[u8]) {
        self.next_look = Some(Instant::START);
        let socket: &mut udp::Socket<'_> = self.sockets.get_mut(port.0);
        assert!(socket.send_slice(bytes, to).is_ok(), "the buffer has space for a few datagrams");
    }

    /// Queues as much of `bytes` as fits. Returns the number of bytes queued.
    pub fn send(&mut self, connection: Connection, bytes: &[u8]) -> usize {
        self.socket(connection).send_slice(bytes).unwrap_or(0)
    }

    /// The bytes that have arrived since the last call.
    pub fn received(&mut self, connection: Connection) -> Vec<u8> {
        let mut all = Vec::new();
        let socket = self.socket(connection);
        while socket.can_recv() {
            let taken = socket.recv(|bytes| {
                all.extend_from_slice(bytes);
                (bytes.len(), ())
            });
            if taken.is_err() {
                break;
            }
        }
        all
    }

    /// Whether the server may still send.
    pub fn is_open(&self, connection: Connection) -> bool {
        self.sockets.get::<tcp::Socket<'_>>(connection.0).may_recv()
    }

    /// Whether the server has ever accepted the connection.
    pub fn has_answered(&self, connection: Connection) -> bool {
        let socket: &tcp::Socket<'_> = self.sockets.get(connection.0);
        socket.state() != tcp::State::SynSent
    }

    /// Closes the client's direction of the connection.
    pub fn close(&mut self, connection: Connection) {
        self.socket(connection).close();
    }

    /// Resets the connection.
    pub fn abort(&mut self, connection: Connection) {
        self.socket(connection).abort();
    }

    /// Forgets a connection. If the server still sends on it, the host answers with a reset.
    pub fn forget(&mut self, connection: Connection) {
        drop(self.sockets.remove(connection.0));
    }

    /// Whether both directions of the connection are closed.
    pub fn is_over(&self, connection: Connection) -> bool {
        let socket: &tcp::Socket<'_> = self.sockets.get(connection.0);
        matches!(socket.state(), tcp::State::Closed | tcp::State::TimeWait)
    }

    /// Whether the connection is closed and no longer in TIME-WAIT.
    pub(crate) fn is_closed(&self, connection: Connection) -> bool {
        let socket: &tcp::Socket<'_> = self.sockets.get(connection.0);
        socket.state() == tcp::State::Closed
    }

    /// Takes a frame from the wire, if it is for this host and the cable is plugged in.
    pub fn hear(&mut self, frame: &[u8]) {
        let is_for_us = frame
            .get(..6)
            .is_some_and(|to| to == self.hardware.0 || to == [0xff; 6] || to.starts_with(&GROUP));
        if is_for_us && self.cable == Cable::In {
            self.device.arrived.push_back(frame.to_vec());
        }
    }

    /// Polls the sockets if they are due, and appends the frames that they send to `to_server`.
    pub fn work(&mut self, now: Instant, to_server: &mut VecDeque<Vec<u8>>) {
        if self.device.arrived.is_empty() && self.next_look.is_none_or(|at| at > now) {
            return;
        }
        let has_heard = !self.device.arrived.is_empty();
        let at = time::Instant::from_micros(i64::try_from(now.0).unwrap_or(i64::MAX));
        let _ = self.interface.poll(at, &mut self.device, &mut self.sockets);
        let next = self.interface.poll_at(at, &self.sockets);
        self.next_look = next.map(|next| Instant(u64::try_from(next.total_micros()).unwrap_or(0)));
        if has_heard && self.has_datagram() {
            // The caller must read the datagram before time passes.
            self.next_look = Some(Instant::START);
        }
        match self.cable {
            Cable::In => to_server.append(&mut self.device.sent),
            Cable::Out => self.device.sent.clear(),
        }
    }

    fn has_datagram(&self) -> bool {
        self.sockets
            .iter()
            .any(|(_, socket)| matches!(socket, Socket::Udp(socket) if socket.can_recv()))
    }

    /// Whether frames have arrived that the sockets have not processed.
    pub(crate) fn has_heard(&self) -> bool {
        !self.device.arrived.is_empty()
    }

    /// The time at which the sockets are due for the next poll.
    pub fn next_deadline(&self) -> Option<Instant> {
        if self.device.arrived.is_empty() { self.next_look } else { Some(Instant::START) }
    }

    fn socket(&mut self, connection: Connection) -> &mut tcp::Socket<'static> {
        self.next_look = Some(Instant::START);
        self.sockets.get_mut(connection.0)
    }
}

#[derive(Default)]
struct WireEnd {
    arrived: VecDeque<Vec<u8>>,
    sent: VecDeque<Vec<u8>>,
}

impl Device for WireEnd {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Sent<'a>;

    fn receive(&mut self, _now: time::Instant) -> Option<(Arrived, Sent<'_>)> {
        let frame = self.arrived.pop_front()?;
        Some((Arrived(frame), Sent(&mut self.sent)))
    }

    fn transmit(&mut self, _now: time::Instant) -> Option<Sent<'_>> {
        Some(Sent(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = 1514;
        capabilities.checksum = ChecksumCapabilities::default();
        capabilities
    }
}

struct Arrived(Vec<u8>);

impl RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, consumer: F) -> R {
        consumer(&self.0)
    }
}

struct Sent<'a>(&'a mut VecDeque<Vec<u8>>);

impl TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, producer: F) -> R {
        let mut frame = vec![0; length];
        let result = producer(&mut frame);
        self.0.push_back(frame);
        result
    }
}
