//! The network alone. It receives raw frames and frames of peers in any order, and its user does
//! arbitrary actions.
//!
//! Oracles: no panic. Every sent frame is well-formed (`network::check`). A connection yields the
//! bytes that belong to its sequence numbers, even if segments overlap. At the end all connections
//! are aborted and time passes. Then all blocks and queues are back in their pools, and a correct
//! peer is served.

mod action;
mod peers;
mod user;

use std::net::{Ipv4Addr, Ipv6Addr};

use arbitrary::{Arbitrary, Unstructured};
use machine::{Checksum, Frame, Instant, Machine, Micros, Offloads};
use net::tcp::PoolSizes;
use net::{
    Addressing, Config, Cores, Event, Events, Ipv4Interface, Ipv6Address, Ipv6Addressing, Net,
    Route, Service,
};
use tasks::Budget;

use crate::network::card::CheckedCard;
use crate::network::check::Segment;
use crate::network::{assert_whole, hardware, limits};
use action::{Action, Kind};
use peers::Peers;
use user::User;

const US: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const US_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
const PORT: u16 = 25;
const SIZES: PoolSizes = PoolSizes { blocks: 40, send_queues: 3, receive_queues: 3 };
/// The most deadlines that pass until the network must be at rest.
const DEADLINES_MAX: u32 = 5_000;

#[derive(Arbitrary, Debug)]
struct Input {
    /// A set of bits: [`USES_DHCP`], [`USES_IPV6`], [`LISTENS_TO_ROUTERS`].
    modes: u8,
    has_offloads: bool,
    actions: Vec<Action>,
}

const USES_DHCP: u8 = 1;
const USES_IPV6: u8 = 4;
/// The network takes its IPv6 addresses from routers. Without this bit they are fixed.
const LISTENS_TO_ROUTERS: u8 = 8;

/// Runs one input.
pub fn run(data: &[u8]) {
    let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let mut world = World::new(&input);
    for action in input.actions.iter().take(200) {
        world.act(action);
    }
    world.come_to_rest();
    if input.modes & USES_DHCP == 0 {
        world.check_correct_peer();
    }
}

/// The network, its card, its user, and the state of its peers.
struct World {
    net: Net,
    card: CheckedCard,
    user: User,
    peers: Peers,
    now: Instant,
}

impl World {
    fn new(input: &Input) -> World {
        let has_offloads = input.has_offloads;
        let has = |mode| input.modes & mode != 0;
        let offloads = Offloads {
            checksum: has_offloads,
            segmentation_ipv4: has_offloads,
            ..Offloads::default()
        };
        let card = CheckedCard::new(hardware(2), offloads);
        let own = Ipv4Interface {
            address: US,
            prefix_bits: 24,
            gateway: Some(Ipv4Addr::new(10, 0, 0, 1)),
        };
        let addressing = if has(USES_DHCP) { Addressing::Dhcp } else { Addressing::Static(own) };
        let ipv6 = match (has(USES_IPV6), has(LISTENS_TO_ROUTERS)) {
            (false, _) => Ipv6Addressing::None,
            (true, true) => Ipv6Addressing::Automatic,
            (true, false) => {
                let address = Ipv6Address { address: US_IPV6, prefix_bits: 64 };
                Ipv6Addressing::Static {
                    addresses: [Some(address), None, None, None],
                    gateway: None,
                }
            }
        };
        let now = Instant::START + Micros::from_secs(1);
        let mut net = Net::new(
            &Config { addressing, ipv6, limits: limits(SIZES), cores: Cores::ALONE },
            &card.card(),
            &[7; 32],
            now,
        );
        assert!(net.listen(PORT, Service(1)) && net.bind(53));
        net.begin_ipv6(now, &[9; 16]);
        let mut peers = Peers::default();
        peers.uses_ipv6 = has(USES_IPV6);
        let mut world = World { net, card, user: User::default(), peers, now };
        world.transmit(usize::MAX);
        world
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Wait { millis } => self.wait(Micros::from_millis(u64::from(*millis))),
            Action::Transmit { room } => drop(self.transmit(usize::from(*room))),
            Action::User(action) => self.user.perform(action, self.now, &mut self.net, &self.peers),
            Action::Greet { peer, port } => {
                for kind in [Kind::Syn, Kind::Any(0x10)] {
                    let frame = self.peers.handshake(*peer, *port, kind);
                    self.receive(frame, Checksum::Unknown);
                    self.transmit(usize::MAX);
                }
            }
            Action::Peer { frame, checksum_is_known } => {
                if let Some(frame) = self.peers.frame(frame) {
                    let checksum =
                        if *checksum_is_known { Checksum::Verified } else { Checksum::Unknown };
                    self.receive(frame, checksum);
                }
            }
        }
    }

    fn receive(&mut self, frame: Vec<u8>, checksum: Checksum) -> Vec<Event> {
        let mut frame = Frame::new(frame.into(), 0..usize::MAX, checksum);
        let mut events = Events::new();
        assert_eq!(
            self.net.frame_arrived(self.now, &mut frame, &mut events),
            Route::Here,
            "there is one core"
        );
        self.user.receive(&events, &frame, &mut self.net, &self.peers);
        events.into_iter().collect()
    }

    fn wait(&mut self, span: Micros) {
        self.now = self.now + span;
        let mut events = Events::new();
        self.net.deadlines_expired(self.now, &mut events, &mut Budget::new(100));
        let nothing = Frame::new(Box::default(), 0..0, Checksum::Unknown);
        self.user.receive(&events, &nothing, &mut self.net, &self.peers);
    }

    /// Lets the network send, while the card's ring has `room` free entries. Returns the sent TCP
    /// segments.
    fn transmit(&mut self, room: usize) -> Vec<Segment> {
        self.card.ring = room;
        self.net.output(self.now, &mut self.card, &mut Budget::new(1_000));
        let frames: Vec<Vec<u8>> = self.card.sent.drain(..).collect();
        frames.iter().filter_map(|frame| self.peers.record(frame)).collect()
    }

    fn come_to_rest(&mut self) {
        self.user.abort_all(&mut self.net);
        for _ in 0..DEADLINES_MAX {
            self.transmit(usize::MAX);
            let Some(deadline) = self.net.next_deadline() else { break };
            self.wait(deadline.since(self.now));
            self.user.abort_all(&mut self.net);
            if self.net.connection_count() == 0
                && deadline.since(Instant::START) > Micros::from_secs(7_200)
            {
                break;
            }
        }
        self.now = self.now + Micros::from_secs(3_600);
        self.wait(Micros(0));
        self.transmit(usize::MAX);
        assert_whole(&self.net, SIZES);
    }

    /// A new peer opens a connection, and its bytes arrive.
    fn check_correct_peer(&mut self) {
        self.net.listen(PORT, Service(1));
        let mut peer = peers::CorrectPeer::new();
        self.receive(peer.syn(), Checksum::Unknown);
        let answers = self.transmit(usize::MAX);
        let answer =
            answers.iter().find(|segment| peer.is_answer(segment)).expect("a SYN is answered");
        let events = self.receive(peer.request(answer), Checksum::Unknown);
        assert!(
            events.iter().any(|event| matches!(event, Event::Accepted { .. })),
            "a correct peer is served"
        );
        let is_data = |event: &Event| matches!(event, Event::Data { .. } | Event::Buffered { .. });
        assert!(events.iter().any(is_data), "the data of a correct peer arrives");
    }
}
