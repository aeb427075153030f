//! A machine with several cores in memory: small rings, cards that count their buffers, and a test
//! clock.

use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

use machine::*;
use smoltcp::wire::{ArpOperation, TcpControl};
use tasks::Budget;

use super::super::machine_in_memory::{CARD, TestMachine};
use super::super::messages::{GATEWAY, GATEWAY_CARD, PEER, PEER_CARD, Tcp, US, arp};
use super::super::world::{SECRET, SMTP, limits, our_address};
use crate::{
    Addressing, Config, ConnectionId, Cores, Counters, Event, Events, Ipv6Addressing, Limits, Net,
    NetMessage, OutputProgress,
};

/// The capacity of a ring, in messages.
const RING: usize = 4;
/// The most frames that a core takes from its card or from a ring in one turn.
const BATCH: usize = 8;

/// The events that a core's user got.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum CoreEvent {
    Accepted(ConnectionId),
    Connected(ConnectionId),
    Data(ConnectionId, Vec<u8>),
    Closed(ConnectionId),
    Datagram(Vec<u8>),
    Address(bool),
    Ipv6Addresses,
    Other,
}

pub(super) struct MultiCoreWorld {
    pub(super) nets: Vec<Net>,
    pub(super) cards: Vec<TestMachine>,
    /// Frames that wait in the card's queues.
    arrived: Vec<VecDeque<Vec<u8>>>,
    /// The rings between the cores.
    rings: Vec<Vec<VecDeque<NetMessage>>>,
    /// Buffers of each core's card that the engine holds.
    pub(super) lent: Vec<usize>,
    pub(super) now: Instant,
    pub(super) events: Vec<(usize, CoreEvent)>,
}

impl MultiCoreWorld {
    /// A machine with cores that all know their address.
    pub(super) fn new(cores: u8, queues: u8) -> MultiCoreWorld {
        let mut world = MultiCoreWorld::with(
            cores,
            queues,
            Addressing::Static(our_address()),
            Ipv6Addressing::None,
            limits(),
        );
        world.settles();
        world.says();
        let gateway = arp(ArpOperation::Reply, (GATEWAY, GATEWAY_CARD), (US, CARD));
        assert_eq!(world.hears(0, &gateway), Vec::<Vec<u8>>::new());
        world.events.clear();
        world
    }

    pub(super) fn with(
        cores: u8,
        queues: u8,
        addressing: Addressing,
        ipv6: Ipv6Addressing,
        limits: Limits,
    ) -> MultiCoreWorld {
        let now = Instant::START + Micros::from_secs(1);
        let mut cards: Vec<TestMachine> =
            (0..cores).map(|_| TestMachine::new(Offloads::default())).collect();
        let nets = cards.iter_mut().enumerate().map(|(core, machine)| {
            machine.card.queues = queues;
            let place = Cores { own: CoreId(core as u8), count: cores };
            let config = Config { addressing, ipv6, limits, cores: place };
            let mut net = Net::new(&config, &machine.card, &[7; 32], now);
            net.begin_ipv6(now, &SECRET);
            assert!(net.listen(25, SMTP));
            net
        });
        let nets = nets.collect();
        let count = usize::from(cores);
        MultiCoreWorld {
            nets,
            cards,
            arrived: vec![VecDeque::new(); count],
            rings: (0..count).map(|_| (0..count).map(|_| VecDeque::new()).collect()).collect(),
            lent: vec![0; count],
            now,
            events: Vec::new(),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.nets.len()
    }

    /// A frame arrives in a queue and waits there.
    pub(super) fn comes(&mut self, queue: usize, frame: &[u8]) {
        self.arrived[queue].push_back(frame.to_vec());
    }

    /// A frame arrives in a queue and is fully handled. Returns the frames that the machine sends,
    /// in the order of the cores.
    pub(super) fn hears(&mut self, queue: usize, frame: &[u8]) -> Vec<Vec<u8>> {
        self.comes(queue, frame);
        self.settles();
        self.says()
    }

    /// Gives every core turns until nothing is left to do. All buffers of the cards are then back.
    pub(super) fn settles(&mut self) {
        for _ in 0..100_000 {
            (0..self.count()).for_each(|core| self.turn(core));
            let is_quiet = self.rings.iter().flatten().all(VecDeque::is_empty)
                && self.arrived.iter().all(VecDeque::is_empty)
                && self.nets.iter().all(|net| !net.has_messages());
            if is_quiet {
                assert!(
                    self.lent.iter().all(|lent| *lent == 0),
                    "buffers are missing: {:?}",
                    self.lent
                );
                return;
            }
        }
        panic!("the cores do not settle");
    }

    /// One turn of one core.
    pub(super) fn turn(&mut self, core: usize) {
        for _ in 0..BATCH {
            let Some(bytes) = self.arrived[core].pop_front() else { break };
            self.frame_arrived(core, bytes);
        }
        for from in 0..self.count() {
            for _ in 0..BATCH {
                let Some(message) = self.rings[from][core].pop_front() else { break };
                self.message_arrived(core, message);
            }
        }
        self.speaks(core);
        let has_messages = self.nets[core].has_messages();
        for to in 0..self.count() {
            while self.rings[core][to].len() < RING
                && let Some(message) = self.nets[core].next_message(CoreId(to as u8))
            {
                assert_ne!(core, to, "a core sends no message to itself");
                assert!(has_messages, "a core without messages is not asked");
                self.rings[core][to].push_back(message);
            }
        }
    }

    /// A core takes the next frame from its card.
    fn frame_arrived(&mut self, core: usize, bytes: Vec<u8>) {
        let mut frame = Frame::new(bytes.into(), 0..usize::MAX, Checksum::Unknown);
        let mut events = Events::new();
        self.lent[core] += 1;
        let route = self.nets[core].frame_arrived(self.now, &mut frame, &mut events);
        self.handle(core, &events, frame.bytes());
        self.lent[core] -= usize::from(self.nets[core].frame_handled(frame, route).is_some());
    }

    fn message_arrived(&mut self, core: usize, message: NetMessage) {
        let mut events = Events::new();
        let mut arrived = self.nets[core].message_arrived(self.now, message, &mut events);
        self.handle(core, &events, arrived.bytes_mut());
        self.lent[core] -= usize::from(self.nets[core].message_handled(arrived).is_some());
    }

    fn handle(&mut self, core: usize, events: &Events, frame: &[u8]) {
        for event in events {
            let event = match event.clone() {
                Event::Accepted { connection, .. } => CoreEvent::Accepted(connection),
                Event::Connected { connection } => CoreEvent::Connected(connection),
                Event::Data { connection, bytes } => {
                    CoreEvent::Data(connection, frame[bytes].to_vec())
                }
                Event::Buffered { connection } => {
                    let net = &mut self.nets[core];
                    let mut bytes = Vec::new();
                    while let Some(count) =
                        Some(net.waiting(connection).len()).filter(|count| *count > 0)
                    {
                        bytes.extend(net.waiting(connection));
                        net.consumed(connection, count);
                    }
                    CoreEvent::Data(connection, bytes)
                }
                Event::Closed { connection, .. } => CoreEvent::Closed(connection),
                Event::Datagram { bytes, .. } => {
                    CoreEvent::Datagram(self.nets[core].datagram(frame, &bytes).to_vec())
                }
                Event::AddressChanged { address } => CoreEvent::Address(address.is_some()),
                Event::Ipv6AddressesChanged => CoreEvent::Ipv6Addresses,
                Event::SendRoom { .. } | Event::PeerClosed { .. } | Event::AddressTaken { .. } => {
                    CoreEvent::Other
                }
            };
            self.events.push((core, event));
        }
    }

    fn speaks(&mut self, core: usize) {
        let output =
            self.nets[core].output(self.now, &mut self.cards[core], &mut Budget::new(1_000));
        assert_eq!(output, OutputProgress::All);
    }

    /// The frames that all cores have sent.
    pub(super) fn says(&mut self) -> Vec<Vec<u8>> {
        (0..self.count()).for_each(|core| self.speaks(core));
        self.cards.iter_mut().flat_map(|card| card.sent.drain(..)).collect()
    }

    /// Lets time pass, handles all deadlines in that time, and returns the frames sent.
    pub(super) fn waits(&mut self, span: Micros) -> Vec<Vec<u8>> {
        let end = self.now + span;
        let mut sent = Vec::new();
        while let Some(next) =
            self.nets.iter().filter_map(Net::next_deadline).min().filter(|next| *next <= end)
        {
            self.now = self.now.max(next);
            for core in 0..self.count() {
                let mut events = Events::new();
                self.nets[core].deadlines_expired(self.now, &mut events, &mut Budget::new(1_000));
                self.handle(core, &events, &[]);
            }
            self.settles();
            sent.extend(self.says());
        }
        self.now = end;
        sent
    }

    /// The events since the last call.
    pub(super) fn takes_events(&mut self) -> Vec<(usize, CoreEvent)> {
        std::mem::take(&mut self.events)
    }

    /// The sum of a counter over all cores.
    pub(super) fn sum(&self, count: impl Fn(&Counters) -> u64) -> u64 {
        self.nets.iter().map(|net| count(net.counters())).sum()
    }

    /// The number of connections of each core.
    pub(super) fn connections(&self) -> Vec<usize> {
        self.nets.iter().map(Net::connection_count).collect()
    }

    /// Asserts that no core knows any flow.
    pub(super) fn remembers_nothing(&self) {
        for net in &self.nets {
            assert_eq!(
                (net.flow_count(), net.connection_count(), net.handshake_count()),
                (0, 0, 0)
            );
            assert!(net.holds_nothing());
        }
    }
}

/// The peer's end of a connection.
#[derive(Clone)]
pub(super) struct Peer {
    pub(super) port: u16,
    pub(super) next: u32,
    pub(super) expects: u32,
}

impl Peer {
    pub(super) fn at_port(port: u16) -> Peer {
        Peer { port, next: 1_000, expects: 0 }
    }

    pub(super) fn segment(&self, control: TcpControl, payload: &[u8]) -> Tcp {
        Tcp {
            from: (PEER, self.port),
            to: (US, 25),
            control,
            sequence: self.next,
            acknowledgment: Some(self.expects),
            window: 60_000,
            mss: None,
            payload: payload.to_vec(),
        }
    }

    pub(super) fn syn(&self) -> Vec<u8> {
        Tcp { acknowledgment: None, mss: Some(1460), ..self.segment(TcpControl::Syn, b"") }
            .frame(PEER_CARD)
    }

    /// A segment to send; advances the sequence number.
    pub(super) fn says(&mut self, control: TcpControl, payload: &[u8]) -> Vec<u8> {
        let frame = self.segment(control, payload).frame(PEER_CARD);
        self.next =
            self.next.wrapping_add(payload.len() as u32 + u32::from(control == TcpControl::Fin));
        frame
    }

    /// Accepts a SYN-ACK as the answer to the peer's SYN.
    pub(super) fn takes(&mut self, syn_ack: &[u8]) {
        let (card, syn_ack) = Tcp::read(syn_ack);
        assert_eq!(
            (card, syn_ack.control, syn_ack.to),
            (PEER_CARD, TcpControl::Syn, (PEER, self.port))
        );
        assert_eq!(syn_ack.acknowledgment, Some(self.next.wrapping_add(1)));
        self.next = self.next.wrapping_add(1);
        self.expects = syn_ack.sequence.wrapping_add(1);
    }

    pub(super) fn hears(&mut self, frame: &[u8]) -> Tcp {
        let (_, segment) = Tcp::read(frame);
        assert_eq!(segment.sequence, self.expects, "{segment:?}");
        self.expects =
            self.expects.wrapping_add(segment.payload.len() as u32 + segment.control.len() as u32);
        segment
    }

    /// Connects, with all frames in one queue. Returns the core that has the connection.
    pub(super) fn connects(
        &mut self,
        world: &mut MultiCoreWorld,
        queue: usize,
    ) -> (usize, ConnectionId) {
        let sent = world.hears(queue, &self.syn());
        self.takes(&sent[0]);
        let ack = self.says(TcpControl::None, b"");
        assert_eq!(world.hears(queue, &ack), Vec::<Vec<u8>>::new());
        match world.takes_events()[..] {
            [(core, CoreEvent::Accepted(connection))] => (core, connection),
            ref events => panic!("{events:?}"),
        }
    }
}
