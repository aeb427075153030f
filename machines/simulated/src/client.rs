//! A client host on the other end of the wire, with a TCP that is not ours: smoltcp's.
//!
//! It is a peer to talk to, not a judge: what it accepts, a second implementation of the RFCs accepts.

use std::collections::VecDeque;

use machine::{Ethernet, Instant};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{ChecksumCapabilities, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp;
use smoltcp::time;
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpAddress, IpCidr, Ipv4Address};

/// The client's hardware address.
pub const CLIENT_ADDRESS: Ethernet = Ethernet([0x02, 0, 0, 0, 0, 2]);

const BUFFER_BYTES: usize = 65_535;

/// One connection of the client's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connection(SocketHandle);

/// The host: an interface and its connections.
pub struct Client {
    interface: Interface,
    sockets: SocketSet<'static>,
    device: WireEnd,
    next_port: u16,
}

impl Client {
    /// A host with `address`, in a /24.
    pub fn new(address: Ipv4Address, seed: u64) -> Client {
        let mut device = WireEnd::default();
        let mut config = Config::new(HardwareAddress::Ethernet(EthernetAddress(CLIENT_ADDRESS.0)));
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut device, time::Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            let _ = addresses.push(IpCidr::new(IpAddress::Ipv4(address), 24));
        });
        Client { interface, sockets: SocketSet::new(Vec::new()), device, next_port: 49_152 }
    }

    /// Opens a connection to `port` at `server`.
    pub fn connect(&mut self, server: Ipv4Address, port: u16) -> Connection {
        let buffer = || tcp::SocketBuffer::new(vec![0; BUFFER_BYTES]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        socket.set_nagle_enabled(false);
        self.next_port = self.next_port.checked_add(1).unwrap_or(49_152);
        let opened = socket.connect(self.interface.context(), (IpAddress::Ipv4(server), port), self.next_port);
        assert!(opened.is_ok(), "the client's own arguments are valid");
        Connection(self.sockets.add(socket))
    }

    /// Queues what fits of `bytes` and says how many that were.
    pub fn send(&mut self, connection: Connection, bytes: &[u8]) -> usize {
        self.socket(connection).send_slice(bytes).unwrap_or(0)
    }

    /// What has arrived since the last call.
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
    pub fn is_open(&mut self, connection: Connection) -> bool {
        self.socket(connection).may_recv()
    }

    /// Ends our half of the connection.
    pub fn close(&mut self, connection: Connection) {
        self.socket(connection).close();
    }

    /// Ends the connection with a reset.
    pub fn abort(&mut self, connection: Connection) {
        self.socket(connection).abort();
    }

    /// Takes what the server sent, lets the sockets work, and hands over what they send.
    pub fn exchange(&mut self, now: Instant, from_server: &mut VecDeque<Vec<u8>>, to_server: &mut VecDeque<Vec<u8>>) {
        self.device.arrived.append(from_server);
        let now = time::Instant::from_micros(i64::try_from(now.0).unwrap_or(i64::MAX));
        let _ = self.interface.poll(now, &mut self.device, &mut self.sockets);
        to_server.append(&mut self.device.sent);
    }

    /// When the sockets want to be looked at again.
    pub fn next_deadline(&mut self, now: Instant) -> Option<Instant> {
        let now = time::Instant::from_micros(i64::try_from(now.0).unwrap_or(i64::MAX));
        let at = self.interface.poll_at(now, &self.sockets)?;
        Some(Instant(u64::try_from(at.total_micros()).unwrap_or(0)))
    }

    fn socket(&mut self, connection: Connection) -> &mut tcp::Socket<'static> {
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
