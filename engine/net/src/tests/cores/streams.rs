//! Streams in both directions on a machine with several cores. Each segment may arrive in any
//! queue, be lost or be reordered.

use core::net::{Ipv6Addr, SocketAddr};
use std::collections::{BTreeMap, VecDeque};
use std::vec;
use std::vec::Vec;

use chance::Dice;
use machine::*;
use tasks::Budget;

use super::super::machine_in_memory::TestMachine;
use super::super::messages::{PEER, PEER_CARD, US};
use super::super::world::{SECRET, limits, our_address};
use super::world::{CoreEvent, MultiCoreWorld};
use crate::Counter;
use crate::tcp::PoolSizes;
use crate::{
    Addressing, Config, ConnectionId, Cores, Event, Events, Ipv4Interface, Ipv6Address,
    Ipv6Addressing, Limits, Net, Route,
};

const US_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 2);
const PEER_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 7);
/// The number of connections, alternating between the families.
const STREAMS: usize = 8;
/// Bytes in each direction of each connection.
const BYTES: usize = 60_000;

fn fixed(address: Ipv6Addr) -> Ipv6Addressing {
    Ipv6Addressing::Static {
        addresses: [Some(Ipv6Address { address, prefix_bits: 64 }), None, None, None],
        gateway: None,
    }
}

fn roomy() -> Limits {
    Limits { pools: PoolSizes { blocks: 2_000, send_queues: 32, receive_queues: 32 }, ..limits() }
}

/// The state of one end of a stream: the number of bytes sent, and the bytes received.
#[derive(Default, Clone)]
struct End {
    sent_bytes: usize,
    received: Vec<u8>,
    is_over: bool,
}

fn byte(at: usize) -> u8 {
    (at * 7 + at / 251) as u8
}

fn speak(net: &mut Net, now: Instant, connection: ConnectionId, end: &mut End) {
    let rest: Vec<u8> = (end.sent_bytes..BYTES.min(end.sent_bytes + 4_000)).map(byte).collect();
    end.sent_bytes += net.send(now, connection, &rest);
}

struct Talk {
    world: MultiCoreWorld,
    client: Net,
    card: TestMachine,
    dice: Dice,
    to_machine: VecDeque<Vec<u8>>,
    ours: BTreeMap<(usize, ConnectionId), End>,
    theirs: BTreeMap<ConnectionId, End>,
    lost_in_thousand: usize,
}

impl Talk {
    fn new(cores: u8, queues: u8, seed: u64) -> Talk {
        let world = MultiCoreWorld::with(
            cores,
            queues,
            Addressing::Static(our_address()),
            fixed(US_IPV6),
            roomy(),
        );
        let mut card = TestMachine::new(Offloads::default());
        card.card.address = PEER_CARD;
        let own = Ipv4Interface { address: PEER, ..our_address() };
        let config = Config {
            addressing: Addressing::Static(own),
            ipv6: fixed(PEER_IPV6),
            limits: roomy(),
            cores: Cores::ALONE,
        };
        let mut client = Net::new(&config, &card.card, &[8; 32], world.now);
        client.begin_ipv6(world.now, &SECRET.map(|byte| byte ^ 1));
        let (to_machine, ours, theirs) = (VecDeque::new(), BTreeMap::new(), BTreeMap::new());
        Talk {
            world,
            client,
            card,
            dice: Dice::new(seed),
            to_machine,
            ours,
            theirs,
            lost_in_thousand: 0,
        }
    }

    fn connect(&mut self) {
        for number in 0..STREAMS {
            let to: SocketAddr =
                if number % 2 == 0 { (US, 25).into() } else { (US_IPV6, 25).into() };
            let connection = self.client.connect(self.world.now, to).unwrap();
            self.theirs.insert(connection, End::default());
        }
    }

    /// Runs one millisecond.
    fn step(&mut self) {
        let queues = usize::from(self.world.cards[0].card.queues);
        self.client.output(self.world.now, &mut self.card, &mut Budget::new(1_000));
        self.to_machine.extend(self.card.sent.drain(..));
        while let Some(frame) = self.to_machine.pop_front() {
            if self.dice.index(1_000) >= self.lost_in_thousand {
                self.world.comes(self.dice.index(queues), &frame);
            }
        }
        for core in 0..self.world.count() {
            self.world.turn(core);
            let mut events = Events::new();
            let now = self.world.now;
            self.world.nets[core].deadlines_expired(now, &mut events, &mut Budget::new(100));
            assert!(
                events.iter().all(|event| !matches!(event, Event::Closed { .. })),
                "{events:?}"
            );
        }
        self.world_goes_on();
        for frame in self.world.says() {
            if self.dice.index(1_000) >= self.lost_in_thousand {
                self.client_hears(&frame);
            }
        }
        let mut events = Events::new();
        self.client.deadlines_expired(self.world.now, &mut events, &mut Budget::new(100));
        self.client_handles(&events, &[]);
        for (connection, end) in &mut self.theirs {
            speak(&mut self.client, self.world.now, *connection, end);
        }
        self.world.now = self.world.now + Micros::from_millis(1);
    }

    fn world_goes_on(&mut self) {
        for (core, event) in self.world.takes_events() {
            match event {
                CoreEvent::Accepted(connection) => {
                    drop(self.ours.insert((core, connection), End::default()))
                }
                CoreEvent::Data(connection, bytes) => {
                    self.ours.get_mut(&(core, connection)).unwrap().received.extend(bytes)
                }
                CoreEvent::Closed(connection) => {
                    self.ours.get_mut(&(core, connection)).unwrap().is_over = true
                }
                _ => {}
            }
        }
        for ((core, connection), end) in self.ours.iter_mut().filter(|(_, end)| !end.is_over) {
            speak(&mut self.world.nets[*core], self.world.now, *connection, end);
            if end.sent_bytes == BYTES && end.received.len() == BYTES {
                self.world.nets[*core].close(*connection);
            }
        }
    }

    fn client_hears(&mut self, frame: &[u8]) {
        let mut frame = Frame::new(frame.into(), 0..frame.len(), Checksum::Unknown);
        let mut events = Events::new();
        assert_eq!(self.client.frame_arrived(self.world.now, &mut frame, &mut events), Route::Here);
        self.client_handles(&events, frame.bytes());
    }

    fn client_handles(&mut self, events: &Events, frame: &[u8]) {
        for event in events {
            match event.clone() {
                Event::Data { connection, bytes } => {
                    self.theirs.get_mut(&connection).unwrap().received.extend(&frame[bytes]);
                }
                Event::Buffered { connection } => {
                    let end = self.theirs.get_mut(&connection).unwrap();
                    loop {
                        let waiting = self.client.waiting(connection).to_vec();
                        if waiting.is_empty() {
                            break;
                        }
                        end.received.extend(&waiting);
                        self.client.consumed(connection, waiting.len());
                    }
                }
                Event::PeerClosed { connection } => self.client.close(connection),
                Event::Closed { connection, .. } => {
                    self.theirs.get_mut(&connection).unwrap().is_over = true
                }
                _ => {}
            }
        }
    }
}

#[test]
fn streams_arrive_whichever_queues_their_segments_use() {
    for (cores, queues, lost_in_thousand) in
        [(2, 2, 0), (2, 2, 20), (4, 4, 20), (4, 1, 20), (4, 3, 20), (8, 8, 20), (8, 1, 0)]
    {
        let mut talk = Talk::new(cores, queues, u64::from(cores) * 16 + u64::from(queues));
        (0..2_500).for_each(|_| talk.step());
        talk.connect();
        talk.lost_in_thousand = lost_in_thousand;
        let mut steps = 0;
        while !talk.theirs.values().all(|end| end.is_over) {
            talk.step();
            steps += 1;
            assert!(steps < 100_000, "{cores} cores, {queues} queues: the streams take too long");
        }
        talk.lost_in_thousand = 0;
        (0..1_000).for_each(|_| talk.step());
        let whole: Vec<u8> = (0..BYTES).map(byte).collect();
        assert_eq!(
            (talk.ours.len(), talk.theirs.len()),
            (STREAMS, STREAMS),
            "no connection exists twice"
        );
        for end in talk.ours.values().chain(talk.theirs.values()) {
            assert!(end.received == whole, "{} bytes", end.received.len());
        }
        assert_eq!(talk.world.sum(|counters| counters.of(Counter::ResetsOut)), 0);
        assert_eq!(talk.world.lent, vec![0; cores.into()]);
    }
}
