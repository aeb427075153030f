//! The test world: a network with its machine and its clock, and the operations of a test on them.

use core::net::{Ipv6Addr, SocketAddr};
use std::vec::Vec;

use machine::*;
use tasks::Budget;

use super::machine_in_memory::TestMachine;
use super::messages::{GATEWAY, Tcp, US};
use super::messages_ipv6;
use crate::tcp::{CloseReason, PoolSizes};
use crate::{
    Addressing, Config, ConnectionId, Cores, Event, Events, Ipv4Interface, Ipv6Addressing, Limits,
    Net, OutputProgress, Route, Service,
};

/// An event with the bytes that it refers to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum WorldEvent {
    Accepted(ConnectionId, Service, SocketAddr),
    Connected(ConnectionId),
    Data(ConnectionId, Vec<u8>),
    Buffered(ConnectionId),
    SendRoom(ConnectionId),
    PeerClosed(ConnectionId),
    Closed(ConnectionId, CloseReason),
    Datagram(u16, SocketAddr, Vec<u8>),
    Address(Option<Ipv4Interface>),
    Ipv6Addresses(Vec<Ipv6Addr>),
    AddressTaken(Ipv6Addr),
}

pub(super) struct World {
    pub(super) net: Net,
    pub(super) machine: TestMachine,
    pub(super) now: Instant,
}

pub(super) const SMTP: Service = Service(1);
/// The secret of our IPv6 addresses.
pub(super) const SECRET: [u8; 16] = [9; 16];

pub(super) fn our_address() -> Ipv4Interface {
    Ipv4Interface { address: US, prefix_bits: 24, gateway: Some(GATEWAY) }
}

pub(super) fn limits() -> Limits {
    let pools = PoolSizes { blocks: 256, send_queues: 16, receive_queues: 16 };
    Limits { connections: 16, half_open: 16, time_wait: 16, pools }
}

impl World {
    /// A world with a static address and a service on port 25. The initial announcements have been
    /// sent.
    pub(super) fn new() -> World {
        let mut world =
            World::with(Addressing::Static(our_address()), limits(), Offloads::default());
        world.says();
        world
    }

    pub(super) fn with(addressing: Addressing, limits: Limits, offloads: Offloads) -> World {
        World::with_both(addressing, Ipv6Addressing::None, limits, offloads)
    }

    pub(super) fn with_both(
        addressing: Addressing,
        ipv6: Ipv6Addressing,
        limits: Limits,
        offloads: Offloads,
    ) -> World {
        let machine = TestMachine::new(offloads);
        let now = Instant::START + Micros::from_secs(1);
        let mut net = Net::new(
            &Config { addressing, ipv6, limits, cores: Cores::ALONE },
            &machine.card,
            &[7; 32],
            now,
        );
        net.begin_ipv6(now, &SECRET);
        assert!(net.listen(25, SMTP));
        World { net, machine, now }
    }

    /// A world with IPv6 alone, before its first output.
    pub(super) fn of_ipv6(ipv6: Ipv6Addressing) -> World {
        World::with_both(Addressing::None, ipv6, limits(), Offloads::default())
    }

    /// A world with IPv6 alone, a link-local address, an address in [`messages_ipv6::NETWORK`], and
    /// a router. Returns both addresses.
    pub(super) fn of_ipv6_at_work(offloads: Offloads) -> (World, Ipv6Addr, Ipv6Addr) {
        let mut world =
            World::with_both(Addressing::None, Ipv6Addressing::Automatic, limits(), offloads);
        world.waits(Micros::from_secs(1));
        world.hears(&messages_ipv6::Advertisement::new().frame());
        world.waits(Micros::from_secs(2));
        let own: Vec<Ipv6Addr> = world.net.ipv6_addresses().map(|own| own.address).collect();
        (world, own[0], own[1])
    }

    /// Passes a frame to the network and returns its events. Data that is not consumed is lost.
    pub(super) fn hears(&mut self, frame: &[u8]) -> Vec<WorldEvent> {
        self.hears_as(frame, Checksum::Unknown)
    }

    pub(super) fn hears_as(&mut self, frame: &[u8], checksum: Checksum) -> Vec<WorldEvent> {
        let mut frame = Frame::new(frame.into(), 0..frame.len(), checksum);
        let mut events = Events::new();
        let route = self.net.frame_arrived(self.now, &mut frame, &mut events);
        assert_eq!(route, Route::Here, "there is one core");
        self.checks_cached_timers();
        events.iter().map(|event| self.with_bytes(event, &frame)).collect()
    }

    fn with_bytes(&self, event: &Event, frame: &Frame) -> WorldEvent {
        match event.clone() {
            Event::Accepted { connection, service, peer } => {
                WorldEvent::Accepted(connection, service, peer)
            }
            Event::Connected { connection } => WorldEvent::Connected(connection),
            Event::Data { connection, bytes } => {
                WorldEvent::Data(connection, frame.bytes()[bytes].to_vec())
            }
            Event::Buffered { connection } => WorldEvent::Buffered(connection),
            Event::SendRoom { connection } => WorldEvent::SendRoom(connection),
            Event::PeerClosed { connection } => WorldEvent::PeerClosed(connection),
            Event::Closed { connection, reason } => WorldEvent::Closed(connection, reason),
            Event::Datagram { port, peer, bytes } => {
                WorldEvent::Datagram(port, peer, self.net.datagram(frame.bytes(), &bytes).to_vec())
            }
            Event::AddressChanged { address } => WorldEvent::Address(address),
            Event::Ipv6AddressesChanged => WorldEvent::Ipv6Addresses(
                self.net.ipv6_addresses().map(|own| own.address).collect(),
            ),
            Event::AddressTaken { address } => WorldEvent::AddressTaken(address),
        }
    }

    /// The frames that the network sends now.
    pub(super) fn says(&mut self) -> Vec<Vec<u8>> {
        let outcome = self.net.output(self.now, &mut self.machine, &mut Budget::new(1_000));
        assert_eq!(outcome, OutputProgress::All);
        assert!(!self.net.has_changed());
        self.checks_cached_timers();
        self.machine.sent.drain(..).collect()
    }

    /// The one frame that the network sends now.
    pub(super) fn says_one(&mut self) -> Vec<u8> {
        let mut sent = self.says();
        assert_eq!(sent.len(), 1, "one frame was expected: {sent:02x?}");
        sent.remove(0)
    }

    /// The one TCP segment that the network sends now.
    pub(super) fn says_tcp(&mut self) -> Tcp {
        Tcp::read(&self.says_one()).1
    }

    pub(super) fn says_nothing(&mut self) {
        let sent = self.says();
        assert!(sent.is_empty(), "nothing was expected: {sent:02x?}");
    }

    /// Lets time pass up to the next deadline, and handles it.
    pub(super) fn next_deadline(&mut self) -> Vec<WorldEvent> {
        let deadline = self.net.next_deadline().expect("the network has a deadline");
        self.now = self.now.max(deadline);
        self.deadlines()
    }

    /// Lets time pass, handles every deadline in that time, and drops the frames that are sent.
    pub(super) fn waits(&mut self, span: Micros) -> Vec<WorldEvent> {
        let end = self.now + span;
        let mut events = Vec::new();
        while let Some(deadline) = self.net.next_deadline().filter(|deadline| *deadline <= end) {
            self.now = self.now.max(deadline);
            events.extend(self.deadlines());
            self.says();
        }
        self.now = end;
        events
    }

    /// Asserts that the cached deadline of the parts is correct.
    fn checks_cached_timers(&self) {
        let (kept, next) = self.net.timer_deadlines();
        assert!(self.net.has_changed() || kept == next, "cached {kept:?}, actual {next:?}");
    }

    fn deadlines(&mut self) -> Vec<WorldEvent> {
        let mut events = Events::new();
        self.net.deadlines_expired(self.now, &mut events, &mut Budget::new(1_000));
        self.checks_cached_timers();
        let nothing = Frame::new(Vec::new().into(), 0..0, Checksum::Unknown);
        events.iter().map(|event| self.with_bytes(event, &nothing)).collect()
    }
}
