//! An independent TCP as the peer: megabytes in both directions at once, over a wire in memory that
//! loses, repeats and reorders frames. Both streams arrive byte for byte.

use core::net::Ipv6Addr;
use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

use chance::Dice;
use machine::{Checksum, Frame, Micros, Offloads};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp;
use smoltcp::time;
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpAddress, IpCidr};
use tasks::Budget;

use super::messages::{PEER, PEER_CARD, US};
use super::messages_ipv6;
use super::world::{World, limits, our_address};
use crate::Counter;
use crate::tcp::CloseReason;
use crate::{Addressing, ConnectionId, Event, Events, Ipv6Address, Ipv6Addressing, Route};

/// The peer's card: two queues.
#[derive(Default)]
struct PeerCard {
    received: VecDeque<Vec<u8>>,
    sent: VecDeque<Vec<u8>>,
}

struct Receive(Vec<u8>);
struct Transmit<'a>(&'a mut VecDeque<Vec<u8>>);

impl RxToken for Receive {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

impl TxToken for Transmit<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let mut frame = vec![0; length];
        let result = write(&mut frame);
        self.0.push_back(frame);
        result
    }
}

impl Device for PeerCard {
    type RxToken<'a> = Receive;
    type TxToken<'a> = Transmit<'a>;

    fn receive(&mut self, _now: time::Instant) -> Option<(Receive, Transmit<'_>)> {
        Some((Receive(self.received.pop_front()?), Transmit(&mut self.sent)))
    }

    fn transmit(&mut self, _now: time::Instant) -> Option<Transmit<'_>> {
        Some(Transmit(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = 1514;
        capabilities
    }
}

/// The address family of the connection.
#[derive(Clone, Copy)]
enum Family {
    Four,
    Six,
}

const OUR_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 2);

fn our_ipv6() -> Ipv6Addressing {
    let own = Ipv6Address { address: OUR_IPV6, prefix_bits: 64 };
    Ipv6Addressing::Static { addresses: [Some(own), None, None, None], gateway: None }
}

/// The faults of the wire: the number of frames in a thousand that are lost, repeated and
/// reordered.
#[derive(Clone, Copy)]
struct Weather {
    lost: u64,
    repeated: u64,
    overtaken: u64,
}

/// One direction of the wire.
struct LossyPath {
    weather: Weather,
    dice: Dice,
    under_way: VecDeque<Vec<u8>>,
    late: Option<Vec<u8>>,
}

impl LossyPath {
    fn new(weather: Weather, seed: u64) -> LossyPath {
        LossyPath { weather, dice: Dice::new(seed), under_way: VecDeque::new(), late: None }
    }

    fn happens(&mut self, in_a_thousand: u64) -> bool {
        self.dice.happens(10 * in_a_thousand)
    }

    fn put(&mut self, frame: Vec<u8>) {
        if self.happens(self.weather.lost) {
            return;
        }
        if self.happens(self.weather.repeated) {
            self.under_way.push_back(frame.clone());
        }
        if self.late.is_none() && self.happens(self.weather.overtaken) {
            self.late = Some(frame);
            return;
        }
        self.under_way.push_back(frame);
        if let Some(late) = self.late.take() {
            self.under_way.push_back(late);
        }
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        // A late frame that no other frame follows is delivered last.
        self.under_way.pop_front().or_else(|| self.late.take())
    }
}

/// The byte at this position of a stream.
fn pattern(at: usize, salt: u8) -> u8 {
    (at as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0] ^ salt
}

const UP: u8 = 0x11;
const DOWN: u8 = 0x22;

struct Talk {
    world: World,
    to_us: LossyPath,
    from_us: LossyPath,
    interface: Interface,
    card: PeerCard,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    bytes: usize,
    peer_sent: usize,
    peer_got: usize,
    we_sent: usize,
    we_got: usize,
    connection: Option<ConnectionId>,
    closed: Option<CloseReason>,
}

impl Talk {
    fn new(bytes: usize, weather: Weather, offloads: Offloads, family: Family) -> Talk {
        let mut world =
            World::with_both(Addressing::Static(our_address()), our_ipv6(), limits(), offloads);
        world.waits(Micros::from_secs(2));
        let mut card = PeerCard::default();
        let hardware = HardwareAddress::Ethernet(EthernetAddress(PEER_CARD.0));
        let mut interface =
            Interface::new(Config::new(hardware), &mut card, time::Instant::from_millis(0));
        let (own, bits, us) = match family {
            Family::Four => (IpAddress::Ipv4(PEER), 24, IpAddress::Ipv4(US)),
            Family::Six => (IpAddress::Ipv6(messages_ipv6::NEAR), 64, IpAddress::Ipv6(OUR_IPV6)),
        };
        interface.update_ip_addrs(|addresses| addresses.push(IpCidr::new(own, bits)).unwrap());
        let buffer = || tcp::SocketBuffer::new(vec![0; 65_536]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        socket.connect(interface.context(), (us, 25), 40_000).unwrap();
        let mut sockets = SocketSet::new(Vec::new());
        Talk {
            world,
            to_us: LossyPath::new(weather, 1),
            from_us: LossyPath::new(weather, 2),
            interface,
            card,
            socket: sockets.add(socket),
            sockets,
            bytes,
            peer_sent: 0,
            peer_got: 0,
            we_sent: 0,
            we_got: 0,
            connection: None,
            closed: None,
        }
    }

    /// Runs until both sides have sent and received everything and our connection is closed.
    fn run(&mut self) {
        for _ in 0..2_000_000 {
            let moved = self.peer_turn() | self.our_turn();
            if self.closed.is_some() && self.peer_got == self.bytes && self.we_got == self.bytes {
                return;
            }
            let step = if moved { Micros(100) } else { Micros::from_millis(5) };
            self.world.now = self.world.now + step;
        }
        panic!(
            "no end: the peer got {} and we got {} of {} bytes",
            self.peer_got, self.we_got, self.bytes
        );
    }

    fn peer_turn(&mut self) -> bool {
        while let Some(frame) = self.from_us.take() {
            self.card.received.push_back(frame);
        }
        let now = time::Instant::from_micros(self.world.now.0 as i64);
        self.interface.poll(now, &mut self.card, &mut self.sockets);
        let socket = self.sockets.get_mut::<tcp::Socket>(self.socket);
        let (sent, bytes) = (&mut self.peer_sent, self.bytes);
        while *sent < bytes && socket.can_send() {
            *sent += socket
                .send(|room| {
                    let count = room.len().min(bytes - *sent);
                    room[..count]
                        .iter_mut()
                        .enumerate()
                        .for_each(|(at, byte)| *byte = pattern(*sent + at, UP));
                    (count, count)
                })
                .unwrap();
        }
        let got = &mut self.peer_got;
        while socket.can_recv() {
            *got += socket
                .recv(|bytes| {
                    assert!(
                        bytes
                            .iter()
                            .enumerate()
                            .all(|(at, byte)| *byte == pattern(*got + at, DOWN))
                    );
                    (bytes.len(), bytes.len())
                })
                .unwrap();
        }
        if *sent == bytes && *got == bytes && socket.may_send() {
            socket.close();
        }
        self.interface.poll(now, &mut self.card, &mut self.sockets);
        let moved = !self.card.sent.is_empty();
        for frame in self.card.sent.drain(..) {
            self.to_us.put(frame);
        }
        moved
    }

    fn our_turn(&mut self) -> bool {
        let mut events = Events::new();
        let mut moved = false;
        while let Some(frame) = self.to_us.take() {
            let mut frame = Frame::new(frame.into_boxed_slice(), 0..usize::MAX, Checksum::Unknown);
            assert_eq!(
                self.world.net.frame_arrived(self.world.now, &mut frame, &mut events),
                Route::Here
            );
            self.handle(&mut events, &frame);
            moved = true;
        }
        self.world.net.deadlines_expired(self.world.now, &mut events, &mut Budget::new(100));
        let nothing = Frame::new(Vec::new().into_boxed_slice(), 0..0, Checksum::Unknown);
        self.handle(&mut events, &nothing);
        self.read_and_write();
        self.world.net.output(self.world.now, &mut self.world.machine, &mut Budget::new(100));
        for frame in self.world.machine.sent.drain(..) {
            self.from_us.put(frame);
            moved = true;
        }
        moved
    }

    fn handle(&mut self, events: &mut Events, frame: &Frame) {
        for event in core::mem::take(events) {
            match event {
                Event::Accepted { connection, .. } => self.connection = Some(connection),
                Event::Data { connection, bytes } => {
                    // The session consumes everything, a part, or nothing.
                    let data = &frame.bytes()[bytes];
                    let taken = if self.we_got.is_multiple_of(3) {
                        data.len()
                    } else {
                        self.we_got * 7 % (data.len() + 1)
                    };
                    self.takes(&data[..taken]);
                    self.world.net.keep(connection, &data[taken..]);
                }
                Event::Closed { reason, .. } => self.closed = Some(reason),
                _ => {}
            }
        }
    }

    fn takes(&mut self, bytes: &[u8]) {
        assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == pattern(self.we_got + at, UP)));
        self.we_got += bytes.len();
    }

    fn read_and_write(&mut self) {
        let Some(connection) = self.connection else { return };
        loop {
            let waiting = self.world.net.waiting(connection).to_vec();
            if waiting.is_empty() {
                break;
            }
            self.takes(&waiting);
            self.world.net.consumed(connection, waiting.len());
        }
        while self.we_sent < self.bytes {
            let end = self.bytes.min(self.we_sent + 1_999);
            let bytes: Vec<u8> = (self.we_sent..end).map(|at| pattern(at, DOWN)).collect();
            let sent = self.world.net.send(self.world.now, connection, &bytes);
            self.we_sent += sent;
            if sent < bytes.len() {
                return;
            }
        }
        self.world.net.close(connection);
    }
}

fn talk(bytes: usize, weather: Weather, offloads: Offloads) -> Talk {
    talk_over(Family::Four, bytes, weather, offloads)
}

fn talk_over(family: Family, bytes: usize, weather: Weather, offloads: Offloads) -> Talk {
    let mut talk = Talk::new(bytes, weather, offloads, family);
    talk.run();
    assert_eq!(talk.closed, Some(CloseReason::Normal));
    talk
}

const FAIR: Weather = Weather { lost: 0, repeated: 0, overtaken: 0 };
const ALL_OFFLOADS: Offloads =
    Offloads { checksum: true, segmentation_ipv4: true, segmentation_ipv6: true };

#[test]
fn megabytes_both_ways_over_a_good_wire_without_retransmission() {
    for offloads in [Offloads::default(), ALL_OFFLOADS] {
        let talk = talk(4_000_000, FAIR, offloads);
        assert_eq!(talk.world.net.counters().of(Counter::Retransmits), 0);
        assert_eq!(talk.world.net.connection_count(), 0);
    }
}

#[test]
fn megabytes_both_ways_over_ipv6() {
    for offloads in [Offloads::default(), ALL_OFFLOADS] {
        let talk = talk_over(Family::Six, 2_000_000, FAIR, offloads);
        assert_eq!(talk.world.net.counters().of(Counter::Retransmits), 0);
    }
}

#[test]
fn megabytes_both_ways_over_ipv6_in_a_storm() {
    talk_over(
        Family::Six,
        500_000,
        Weather { lost: 50, repeated: 30, overtaken: 100 },
        ALL_OFFLOADS,
    );
}

#[test]
fn megabytes_both_ways_over_a_wire_that_loses() {
    let talk =
        talk(2_000_000, Weather { lost: 20, repeated: 0, overtaken: 0 }, Offloads::default());
    assert!(talk.world.net.counters().of(Counter::Retransmits) > 0);
}

#[test]
fn megabytes_both_ways_over_a_wire_that_repeats_and_reorders() {
    talk(2_000_000, Weather { lost: 0, repeated: 20, overtaken: 50 }, Offloads::default());
}

#[test]
fn megabytes_both_ways_in_a_storm() {
    talk(1_000_000, Weather { lost: 50, repeated: 30, overtaken: 100 }, ALL_OFFLOADS);
}

#[test]
fn all_buffers_are_returned_after_a_conversation() {
    let mut talk =
        talk(500_000, Weather { lost: 20, repeated: 10, overtaken: 10 }, Offloads::default());
    talk.world.now = talk.world.now + Micros::from_secs(3_600);
    talk.our_turn();
    let sizes = limits().pools;
    let net = &talk.world.net;
    assert_eq!(net.connection_count(), 0);
    assert_eq!(net.pools().free_send_queues(), sizes.send_queues);
    assert_eq!(net.pools().free_receive_queues(), sizes.receive_queues);
    assert_eq!(net.pools().free_blocks(), sizes.blocks);
    assert_eq!(net.flow_count(), 0, "not even TIME-WAIT is left");
}
