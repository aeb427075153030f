//! The machine under test: the engine's network on a simulated card, in virtual time. Transmission
//! takes no time, and every address that the machine resolves answers at once.
//!
//! Invariants:
//! - Received bytes stay with the connection until the script reads them, so the window shrinks by
//!   the unread bytes. When the connection ends, the unread bytes are saved first, because `net`
//!   discards them.
//! - After every event the machine sends all pending packets: no packet waits for a later turn.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use machine::{Checksum, Frame, Instant, Machine};
use net::tcp::{CloseReason, PoolSizes};
use net::{
    Addressing, Config, ConnectionId, Cores, Event, Events, Ipv4Interface, Ipv6Address,
    Ipv6Addressing, Limits, Net, OutputProgress, Route, Service, Unsent,
};
use tasks::Budget;

use super::wire::{self, IpPacket, ReadFrame, Segment};
use crate::{ADDRESS, MemoryDisk, SimulatedMachine};

/// The machine's time at which scripts begin. It is not the start of the machine, so that no clock
/// of the machine is zero.
pub(super) const BASE: Instant = Instant(100_000_000);

/// The most handshakes that the machine remembers. A script that requests cookies for all
/// handshakes has zero instead.
pub(super) const HALF_OPEN: usize = 64;

/// An upper bound for the unread bytes of a connection.
const LEFT_MAX: usize = 1 << 20;

/// An event that the network reported for a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Happened {
    /// A peer connected to the listener with this number.
    Accepted {
        connection: ConnectionId,
        service: u8,
        peer: SocketAddr,
    },
    Connected(ConnectionId),
    Received(ConnectionId),
    SendRoom(ConnectionId),
    PeerClosed(ConnectionId),
    /// These bytes were unread when the connection ended.
    Left(ConnectionId, Vec<u8>),
    Closed(ConnectionId, CloseReason),
}

/// A packet of the machine, and the time at which it was sent.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct SentPacket {
    pub(super) at: Instant,
    pub(super) ip: IpPacket,
    /// `None` if it is not TCP.
    pub(super) segment: Option<Segment>,
}

/// The machine under test.
pub(super) struct HostUnderTest {
    pub(super) net: Net,
    pub(super) now: Instant,
    /// The sent packets that no line of the script has matched yet, oldest first.
    pub(super) sent: VecDeque<SentPacket>,
    /// The events that were not handled yet.
    pub(super) happened: VecDeque<Happened>,
    /// The fault of a malformed frame that the machine has sent, if any. No script allows such a
    /// frame.
    pub(super) malformed: Option<&'static str>,
    machine: SimulatedMachine,
}

impl HostUnderTest {
    /// A machine with this address on a link with this MTU. Every peer is a neighbour or reachable
    /// through the gateway. The machine remembers up to `half_open` handshakes, and uses cookies
    /// for further ones.
    pub(super) fn new(own: IpAddr, mtu: u16, half_open: usize) -> HostUnderTest {
        let mut machine = SimulatedMachine::new(1, MemoryDisk::blank(0));
        machine.mtu = mtu;
        let pools = PoolSizes { blocks: 1024, send_queues: 64, receive_queues: 64 };
        let limits = Limits { connections: 64, half_open, time_wait: 64, pools };
        let (addressing, ipv6) = addressing(own);
        let config = Config { addressing, ipv6, limits, cores: Cores::ALONE };
        let mut net = Net::new(&config, &machine.card(), &[0x5a; 32], Instant::START);
        net.begin_ipv6(Instant::START, &[0xa5; 16]);
        let mut host = HostUnderTest {
            net,
            now: Instant::START,
            sent: VecDeque::new(),
            happened: VecDeque::new(),
            malformed: None,
            machine,
        };
        host.speak();
        // The machine announces an address, or checks for duplicates, before it uses the address.
        while let Some(deadline) = host.next_deadline().filter(|deadline| *deadline <= BASE) {
            host.now = deadline;
            host.expire();
        }
        host.now = BASE;
        host.sent.clear();
        host.happened.clear();
        host
    }

    /// Gives the machine a packet that arrives.
    pub(super) fn hear(&mut self, packet: &IpPacket) {
        self.take_frame(packet.frame(ADDRESS));
        self.speak();
    }

    /// The next time at which the machine is due without a packet.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.net.next_deadline().map(|deadline| deadline.max(self.now))
    }

    /// Handles the deadlines that are due now.
    pub(super) fn expire(&mut self) {
        let mut events = Events::new();
        self.net.deadlines_expired(self.now, &mut events, &mut Budget::new(1_000));
        self.tell(&events, &[]);
        self.speak();
    }

    pub(super) fn connect(&mut self, peer: SocketAddr) -> Result<ConnectionId, Unsent> {
        let connection = self.net.connect(self.now, peer)?;
        self.speak();
        Ok(connection)
    }

    /// Lets the machine send all pending packets. Must be called after every operation on a
    /// connection.
    pub(super) fn speak(&mut self) {
        loop {
            let outcome = self.net.output(self.now, &mut self.machine, &mut Budget::new(10_000));
            if self.machine.from_engine.is_empty() && outcome == OutputProgress::All {
                return;
            }
            while let Some(frame) = self.machine.from_engine.pop_front() {
                self.read(&frame);
            }
        }
    }

    fn read(&mut self, frame: &[u8]) {
        match wire::read(frame) {
            Ok(ReadFrame::Tcp(ip, segment)) => {
                self.sent.push_back(SentPacket { at: self.now, ip, segment: Some(segment) })
            }
            Ok(ReadFrame::Ip(ip)) => {
                self.sent.push_back(SentPacket { at: self.now, ip, segment: None })
            }
            Ok(ReadFrame::Asked(answer)) => self.take_frame(answer),
            Ok(ReadFrame::Other) => {}
            Err(what) => self.malformed = Some(what),
        }
    }

    fn take_frame(&mut self, frame: Vec<u8>) {
        let whole = 0..frame.len();
        let mut frame = Frame::new(frame.into_boxed_slice(), whole, Checksum::Unknown);
        let mut events = Events::new();
        let route = self.net.frame_arrived(self.now, &mut frame, &mut events);
        assert_eq!(route, Route::Here, "the machine has one core");
        self.tell(&events, frame.bytes());
    }

    fn tell(&mut self, events: &Events, frame: &[u8]) {
        for event in events {
            let happened = match event.clone() {
                Event::Accepted { connection, service: Service(service), peer } => {
                    Happened::Accepted { connection, service, peer }
                }
                Event::Connected { connection } => Happened::Connected(connection),
                Event::Data { connection, bytes } => {
                    self.net.keep(connection, frame.get(bytes).unwrap_or_default());
                    Happened::Received(connection)
                }
                Event::Buffered { connection } => Happened::Received(connection),
                Event::SendRoom { connection } => Happened::SendRoom(connection),
                Event::PeerClosed { connection } => Happened::PeerClosed(connection),
                Event::Closed { connection, reason } => {
                    let left = self.waiting(connection, LEFT_MAX);
                    if !left.is_empty() {
                        self.happened.push_back(Happened::Left(connection, left));
                    }
                    Happened::Closed(connection, reason)
                }
                Event::Datagram { .. }
                | Event::AddressChanged { .. }
                | Event::Ipv6AddressesChanged
                | Event::AddressTaken { .. } => continue,
            };
            self.happened.push_back(happened);
        }
    }

    /// The first unread bytes of a connection, at most `most`.
    pub(super) fn waiting(&self, connection: ConnectionId, most: usize) -> Vec<u8> {
        let mut bytes = vec![0; most];
        let count = self.net.copy_waiting(connection, &mut bytes);
        bytes.truncate(count);
        bytes
    }
}

/// The IPv4 and IPv6 configuration of the machine: its address, and the gateway to all other
/// networks.
fn addressing(own: IpAddr) -> (Addressing, Ipv6Addressing) {
    match own {
        IpAddr::V4(own) => {
            let [a, b, ..] = own.octets();
            let gateway = Some(Ipv4Addr::new(a, b, 255, 254));
            let address = Ipv4Interface { address: own, prefix_bits: 16, gateway };
            (Addressing::Static(address), Ipv6Addressing::None)
        }
        IpAddr::V6(own) => {
            let address = Ipv6Address { address: own, prefix_bits: 64 };
            let addresses = [Some(address), None, None, None];
            let gateway = Some([0xfe80, 0, 0, 0, 0, 0, 0, 1].into());
            (Addressing::None, Ipv6Addressing::Static { addresses, gateway })
        }
    }
}
