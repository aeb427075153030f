//! The network alone: frames in any order, raw ones and ones that a peer would send, and a user
//! that does anything.
//!
//! Oracles: no panic. Every frame that leaves is well-formed (`network::check`). The bytes of a
//! connection are those that the peer's segments have at these numbers, however the segments
//! overlap. When all connections are aborted and time has passed, everything that was lent is back,
//! and a well-behaved peer is served.

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
/// Deadlines that are waited for until all is at rest.
const DEADLINES_MAX: u32 = 5_000;

#[derive(Arbitrary, Debug)]
struct Input {
    /// A set of bits: [`ASKS_FOR_ADDRESS`], [`SPEAKS_IPV6`], [`LISTENS_TO_ROUTERS`].
    modes: u8,
    has_offloads: bool,
    actions: Vec<Action>,
}

const ASKS_FOR_ADDRESS: u8 = 1;
const SPEAKS_IPV6: u8 = 4;
/// Else its addresses of IPv6 are fixed.
const LISTENS_TO_ROUTERS: u8 = 8;

/// Runs one input.
pub fn run(data: &[u8]) {
    let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let mut world = World::new(&input);
    for action in input.actions.iter().take(200) {
        world.act(action);
    }
    world.comes_to_rest();
    if input.modes & ASKS_FOR_ADDRESS == 0 {
        world.serves_a_correct_peer();
    }
}

/// The network, its card, its user, and what peers know of it.
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
        let addressing =
            if has(ASKS_FOR_ADDRESS) { Addressing::Dhcp } else { Addressing::Static(own) };
        let ipv6 = match (has(SPEAKS_IPV6), has(LISTENS_TO_ROUTERS)) {
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
        peers.speak_ipv6 = has(SPEAKS_IPV6);
        let mut world = World { net, card, user: User::default(), peers, now };
        world.speaks(usize::MAX);
        world
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Wait { millis } => self.waits(Micros::from_millis(u64::from(*millis))),
            Action::Speak { room } => drop(self.speaks(usize::from(*room))),
            Action::User(deed) => self.user.does(deed, self.now, &mut self.net, &self.peers),
            Action::Greet { peer, port } => {
                for kind in [Kind::Syn, Kind::Any(0x10)] {
                    let frame = self.peers.handshake(*peer, *port, kind);
                    self.hears(frame, Checksum::Unknown);
                    self.speaks(usize::MAX);
                }
            }
            Action::Peer { frame, checksum_is_known } => {
                if let Some(frame) = self.peers.frame(frame) {
                    let checksum =
                        if *checksum_is_known { Checksum::Verified } else { Checksum::Unknown };
                    self.hears(frame, checksum);
                }
            }
        }
    }

    fn hears(&mut self, frame: Vec<u8>, checksum: Checksum) -> Vec<Event> {
        let mut frame = Frame::new(frame.into(), 0..usize::MAX, checksum);
        let mut events = Events::new();
        assert_eq!(
            self.net.frame_arrived(self.now, &mut frame, &mut events),
            Route::Here,
            "there is one core"
        );
        self.user.hears(&events, &frame, &mut self.net, &self.peers);
        events.into_iter().collect()
    }

    fn waits(&mut self, span: Micros) {
        self.now = self.now + span;
        let mut events = Events::new();
        self.net.deadlines_expired(self.now, &mut events, &mut Budget::new(100));
        let nothing = Frame::new(Box::default(), 0..0, Checksum::Unknown);
        self.user.hears(&events, &nothing, &mut self.net, &self.peers);
    }

    /// The network says what it has to say, into this many places of the card's ring.
    fn speaks(&mut self, room: usize) -> Vec<Segment> {
        self.card.ring = room;
        self.net.output(self.now, &mut self.card, &mut Budget::new(1_000));
        let frames: Vec<Vec<u8>> = self.card.sent.drain(..).collect();
        frames.iter().filter_map(|frame| self.peers.hear(frame)).collect()
    }

    fn comes_to_rest(&mut self) {
        self.user.aborts_all(&mut self.net);
        for _ in 0..DEADLINES_MAX {
            self.speaks(usize::MAX);
            let Some(deadline) = self.net.next_deadline() else { break };
            self.waits(deadline.since(self.now));
            self.user.aborts_all(&mut self.net);
            if self.net.connection_count() == 0
                && deadline.since(Instant::START) > Micros::from_secs(7_200)
            {
                break;
            }
        }
        self.now = self.now + Micros::from_secs(3_600);
        self.waits(Micros(0));
        self.speaks(usize::MAX);
        assert_whole(&self.net, SIZES);
    }

    /// A new peer opens a connection, and its bytes arrive.
    fn serves_a_correct_peer(&mut self) {
        self.net.listen(PORT, Service(1));
        let mut friend = peers::Friend::new();
        self.hears(friend.syn(), Checksum::Unknown);
        let answers = self.speaks(usize::MAX);
        let answer =
            answers.iter().find(|segment| friend.is_answer(segment)).expect("a SYN is answered");
        let events = self.hears(friend.request(answer), Checksum::Unknown);
        assert!(
            events.iter().any(|event| matches!(event, Event::Accepted { .. })),
            "a correct peer is served"
        );
        let is_data = |event: &Event| matches!(event, Event::Data { .. } | Event::Buffered { .. });
        assert!(events.iter().any(is_data), "the data of a correct peer arrives");
    }
}
