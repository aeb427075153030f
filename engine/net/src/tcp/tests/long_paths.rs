//! Long paths and small pools: buffers grow with the path, each connection has its share, and an
//! announced window is honoured.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use chance::Dice;
use machine::{BLOCK_BYTES, Instant, Micros, Piece};

use super::Conversation;
use super::pipe::{as_received, cut, joined};
use crate::tcp::flight::Flight;
use crate::tcp::run::RunState;
use crate::tcp::{PoolSizes, Pools, SEND_BYTES, SegmentToSend, SendLimits, SequenceNumber, Tcb};

/// The pools of a machine with 256 MiB.
const ROOMY: PoolSizes = PoolSizes { blocks: 4096, send_queues: 64, receive_queues: 64 };

const DELAY: Micros = Micros::from_millis(50);
const STEP: Micros = Micros::from_millis(1);

/// The extra delay of a reordered segment.
const LATE: Micros = Micros::from_millis(15);

/// The period of both streams in bytes.
const PERIOD: usize = 65_537;

/// One direction of a path: segments follow each other at a fixed rate, with the same delay.
#[derive(Default)]
struct SlowPath {
    free_at: Instant,
    on_the_way: VecDeque<(Instant, SegmentToSend, Vec<u8>)>,
    /// Segments that found the queue full, or were lost.
    dropped: u32,
    is_odd: bool,
    /// Decides which segments are overtaken by later ones, one in fifty.
    overtakes: Option<Dice>,
    /// Bytes of data that were not dropped.
    carried: usize,
    /// The right edge of the last window that was announced to the peer.
    edge: Option<SequenceNumber>,
}

/// Two ends and the path between them. Each end sends and consumes data, as `sends` and `takes`
/// say.
struct Talk {
    ends: [Tcb; 2],
    wires: [SlowPath; 2],
    sends: [bool; 2],
    takes: [bool; 2],
    sent: [usize; 2],
    given: [usize; 2],
}

/// Connections over paths of one kind. All ends on one side share their pools.
struct World {
    now: Instant,
    /// The rate in bytes a second, and the longest wait in the queue before the wire.
    rate: u64,
    queue: Micros,
    loses_every_other: bool,
    pools: [Pools; 2],
    talks: Vec<Talk>,
    pattern: Vec<u8>,
}

impl World {
    fn new(rate: u64, sizes: [PoolSizes; 2]) -> World {
        let pattern = (0..2 * PERIOD)
            .map(|place| ((place % PERIOD) as u32).wrapping_mul(2_654_435_761) >> 11);
        World {
            now: Instant(1_000_000_000),
            rate,
            queue: Micros::from_millis(200),
            loses_every_other: false,
            pools: sizes.map(Pools::new),
            talks: Vec::new(),
            pattern: pattern.map(|byte| byte as u8).collect(),
        }
    }

    /// Opens another connection. `sends`: whether each end sends.
    fn begin(&mut self, sends: [bool; 2]) -> usize {
        let ends = joined(self.now, DELAY, [10_000, 0u32.wrapping_sub(500_000)], [1460, 1460]);
        self.now = self.now + Micros(3 * DELAY.0);
        let wires = [SlowPath::default(), SlowPath::default()];
        self.talks.push(Talk { ends, wires, sends, takes: [true; 2], sent: [0; 2], given: [0; 2] });
        self.talks.len() - 1
    }

    fn run(&mut self, span: Micros) -> &mut World {
        let end = self.now + span;
        while self.now < end {
            self.now = self.now + STEP;
            for talk in &mut self.talks {
                for side in 0..2 {
                    let mut hears = true;
                    while hears {
                        hears = talk.hear(side, self.now, &mut self.pools[side], &self.pattern);
                        talk.act(side, self.now, &mut self.pools[side], &self.pattern);
                        let wire = (self.rate, self.queue, self.loses_every_other);
                        talk.speak(side, self.now, wire, &self.pools[side]);
                    }
                }
            }
        }
        self
    }

    /// The rate at which each side of each connection receives during `span`, in bytes a second.
    fn rates(&mut self, span: Micros) -> Vec<[u64; 2]> {
        let before: Vec<[usize; 2]> = self.talks.iter().map(|talk| talk.given).collect();
        self.run(span);
        let given = self
            .talks
            .iter()
            .zip(before)
            .map(|(talk, before)| [0, 1].map(|side| talk.given[side] - before[side]));
        given.map(|given| given.map(|bytes| bytes as u64 * 1_000_000 / span.0)).collect()
    }

    /// Asserts that everything sent arrives and that no buffer stays borrowed.
    fn end(&mut self, sizes: [PoolSizes; 2]) {
        self.talks.iter_mut().for_each(|talk| (talk.sends, talk.takes) = ([false; 2], [true; 2]));
        self.run(Micros::from_secs(20));
        for talk in &mut self.talks {
            assert_eq!(talk.given, [talk.sent[1], talk.sent[0]]);
        }
        for (pools, sizes) in self.pools.iter().zip(sizes) {
            assert_eq!(pools.free_blocks(), sizes.blocks);
            assert_eq!(pools.blocks.free_nodes(), Pools::new(sizes).blocks.free_nodes());
            assert_eq!(
                (pools.free_send_queues(), pools.free_receive_queues()),
                (sizes.send_queues, sizes.receive_queues)
            );
        }
    }
}

impl Talk {
    /// Handles some of the segments that have arrived. Returns false if no such segment is left.
    fn hear(&mut self, side: usize, now: Instant, pools: &mut Pools, pattern: &[u8]) -> bool {
        for _ in 0..4 {
            let next =
                self.wires[1 - side].on_the_way.pop_front_if(|(arrives_at, ..)| *arrives_at <= now);
            let Some((_, segment, payload)) = next else { return false };
            let actions =
                self.ends[side].segment_arrived(now, &as_received(&segment, &payload), pools);
            let data = &payload[actions.data];
            match self.takes[side] {
                true => self.check(side, data, pattern),
                false => self.ends[side].keep(data, pools),
            }
        }
        true
    }

    fn act(&mut self, side: usize, now: Instant, pools: &mut Pools, pattern: &[u8]) {
        if self.ends[side].deadline(now).is_some_and(|deadline| deadline <= now) {
            let _ = self.ends[side].deadline_expired(now, pools);
        }
        while self.takes[side] && !self.ends[side].waiting().is_empty() {
            let data = self.ends[side].waiting().to_vec();
            self.check(side, &data, pattern);
            self.ends[side].consumed(data.len(), pools);
        }
        while self.sends[side] {
            let from = self.sent[side] % PERIOD;
            let room = self.ends[side].send_room(pools);
            let taken = self.ends[side].send(now, &pattern[from..from + 30_000], pools);
            assert!(taken >= room.min(30_000), "all bytes are taken for which there is room");
            self.sent[side] += taken;
            if taken < 30_000 {
                break;
            }
        }
        self.ends[side].assert_invariants();
    }

    fn check(&mut self, side: usize, data: &[u8], pattern: &[u8]) {
        let from = self.given[side] % PERIOD;
        assert!(data == &pattern[from..from + data.len()], "bytes arrive as they were sent");
        self.given[side] += data.len();
    }

    fn speak(&mut self, side: usize, now: Instant, wire: (u64, Micros, bool), pools: &Pools) {
        let Talk { ends, wires, .. } = self;
        let limits = SendLimits { segmentation_bytes: Some(60_000), local_mss: 1460 };
        let result = ends[side].output(
            now,
            limits,
            pools,
            &mut |segment: &SegmentToSend, pieces: &[Piece]| {
                let payload: Vec<u8> =
                    pieces.iter().flat_map(|piece| piece.bytes().to_vec()).collect();
                for (segment, payload) in cut(segment, &payload) {
                    wires[side].carry(now, wire, segment, payload);
                }
                Ok(())
            },
        );
        assert!(result.is_ok());
    }
}

impl SlowPath {
    fn carry(
        &mut self,
        now: Instant,
        (rate, queue, loses_every_other): (u64, Micros, bool),
        segment: SegmentToSend,
        payload: Vec<u8>,
    ) {
        let edge = segment.acknowledgment + (u32::from(segment.window) << crate::tcp::WINDOW_SHIFT);
        if let Some(before) = self.edge {
            // A scaled window is rounded down on the wire.
            assert!(
                !(edge + (1 << crate::tcp::WINDOW_SHIFT)).is_before(before),
                "the window never shrinks"
            );
        }
        self.edge = Some(self.edge.map_or(edge, |before| before.later(edge)));
        self.is_odd = !self.is_odd;
        if self.free_at > now + queue || loses_every_other && self.is_odd && !payload.is_empty() {
            self.dropped += 1;
            return;
        }
        self.carried += payload.len();
        let span = Micros((payload.len() as u64 + 66) * 1_000_000 / rate);
        self.free_at = self.free_at.max(now) + span;
        let is_overtaken = self.overtakes.as_mut().is_some_and(|dice| dice.below(50) == 0);
        let arrives_at = self.free_at + DELAY + if is_overtaken { LATE } else { Micros(0) };
        let place = self.on_the_way.partition_point(|(other, ..)| *other <= arrives_at);
        self.on_the_way.insert(place, (arrives_at, segment, payload));
    }
}

#[test]
fn a_long_and_fast_path_is_filled_both_ways() {
    let mut world = World::new(25_000_000, [ROOMY; 2]);
    world.begin([true, true]);
    world.run(Micros::from_millis(1200));
    let rates = world.rates(Micros::from_millis(500));
    assert!(rates[0].iter().all(|rate| *rate >= 16_000_000), "bytes a second: {rates:?}");
    world.end([ROOMY; 2]);
}

#[test]
fn slow_start_fills_a_long_path_without_queue_overflow() {
    for rate in [1_000_000, 2_500_000, 10_000_000] {
        let mut world = World::new(rate, [ROOMY; 2]);
        world.queue = Micros::from_millis(50);
        world.begin([true, false]);
        world.run(Micros::from_millis(1500));
        let dropped = world.talks[0].wires[0].dropped;
        assert!(dropped < 30, "{dropped} segments found the queue full");
        let rates = world.rates(Micros::from_secs(1));
        assert!(rates[0][1] >= rate * 9 / 10, "bytes a second: {rates:?} of {rate}");
        world.end([ROOMY; 2]);
    }
}

#[test]
fn slow_start_fills_a_path_that_reorders() {
    let rate = 5_000_000;
    let run = |seed: Option<u64>| {
        let mut world = World::new(rate, [ROOMY; 2]);
        world.begin([true, false]);
        for (wire, way) in world.talks[0].wires.iter_mut().zip(0..) {
            wire.overtakes = seed.map(|seed| Dice::new(2 * seed + way));
        }
        world.run(Micros::from_millis(1500));
        world.talks[0].given[1]
    };
    let given: Vec<usize> = (0..8).map(|seed| run(Some(seed))).collect();
    let in_order = run(None);
    let mean = given.iter().sum::<usize>() / given.len();
    assert!(mean >= in_order * 9 / 10, "{given:?} bytes, in order {in_order}");
}

#[test]
fn every_other_segment_lost_is_repaired_at_full_rate() {
    let mut world = World::new(20_000_000, [ROOMY; 2]);
    world.begin([true, false]);
    world.run(Micros::from_millis(1500));
    let dropped = world.talks[0].wires[0].dropped;
    world.loses_every_other = true;
    world.run(Micros::from_millis(80));
    world.loses_every_other = false;
    let gaps = world.talks[0].wires[0].dropped - dropped;
    assert!(gaps >= 400, "{gaps} gaps");
    // The effect shows after one round trip, and is complete after another.
    world.run(Micros::from_millis(250));
    let rates = world.rates(Micros::from_millis(300));
    assert!(rates[0][1] >= 12_000_000, "bytes a second: {rates:?}");
    world.end([ROOMY; 2]);
    let twice = world.talks[0].wires[0].carried - world.talks[0].given[1];
    assert!(twice <= 10 * 1460, "{twice} bytes were sent twice");
}

#[test]
fn closing_with_hundreds_of_gaps_returns_the_long_list() {
    let mut world = World::new(20_000_000, [ROOMY; 2]);
    world.begin([true, false]);
    world.run(Micros::from_millis(1500));
    world.loses_every_other = true;
    world.run(Micros::from_millis(140));
    let all = Pools::new(ROOMY).blocks.free_nodes()[3];
    assert_eq!(world.pools[0].blocks.free_nodes()[3], all - 1);
    world.talks[0].ends[0].abort(&mut world.pools[0]);
    assert_eq!(world.pools[0].blocks.free_nodes()[3], all);
}

#[test]
fn a_receive_only_end_gets_a_wider_window_and_no_buffers() {
    let mut world = World::new(20_000_000, [ROOMY; 2]);
    world.begin([true, false]);
    world.run(Micros::from_millis(1500));
    let rates = world.rates(Micros::from_millis(500));
    assert!(rates[0][1] >= 16_000_000, "bytes a second: {rates:?}");
    assert_eq!(world.pools[1].free_blocks(), ROOMY.blocks);
    world.end([ROOMY; 2]);
}

#[test]
fn a_short_path_borrows_only_its_first_stage() {
    let mut world = World::new(1_000_000, [ROOMY; 2]);
    world.queue = Micros::from_millis(20);
    world.begin([true, false]);
    world.run(Micros::from_secs(5));
    let (lent, blocks) =
        (ROOMY.blocks - world.pools[0].free_blocks(), SEND_BYTES as usize / BLOCK_BYTES);
    assert!((blocks..blocks + 3).contains(&lent), "{lent} blocks for a path that holds 100 KB");
    world.end([ROOMY; 2]);
}

#[test]
fn a_crowd_shares_a_small_pool_with_latecomers() {
    let small = PoolSizes { blocks: 600, send_queues: 32, receive_queues: 32 };
    let mut world = World::new(20_000_000, [small, ROOMY]);
    world.begin([true, false]);
    world.run(Micros::from_secs(2));
    let hungry = small.blocks - world.pools[0].free_blocks();
    assert!(
        (small.blocks / 6..=small.blocks / 4).contains(&hungry),
        "a single connection holds {hungry} blocks"
    );
    for _ in 0..3 {
        let late = world.begin([true, false]);
        assert!(world.talks[late].ends[0].send_room(&world.pools[0]) >= SEND_BYTES as usize);
    }
    world.run(Micros::from_secs(1));
    let rates = world.rates(Micros::from_secs(1));
    let (least, most) =
        (rates.iter().map(|rate| rate[1]).min(), rates.iter().map(|rate| rate[1]).max());
    assert!(least.unwrap() * 2 >= most.unwrap(), "connections get similar rates: {rates:?}");
    assert!(
        world.pools[0].free_blocks() > small.blocks / 8,
        "blocks are left for later connections"
    );
    world.end([small, ROOMY]);
}

#[test]
fn a_session_that_does_not_read_keeps_only_its_share() {
    let small = PoolSizes { blocks: 600, send_queues: 32, receive_queues: 32 };
    let mut world = World::new(20_000_000, [ROOMY, small]);
    world.begin([true, false]);
    world.run(Micros::from_secs(2));
    world.talks[0].takes[1] = false;
    world.run(Micros::from_secs(2));
    let kept = small.blocks - world.pools[1].free_blocks();
    assert!(
        kept <= small.blocks / 4 + 1,
        "{kept} blocks are kept for a session that does not read"
    );
    let late = world.begin([true, false]);
    let before = world.talks[late].given[1];
    world.run(Micros::from_secs(2));
    assert!(world.talks[late].given[1] - before >= 2_000_000, "a later connection is served");
    world.end([ROOMY, small]);
}

#[test]
fn unread_data_does_not_widen_the_window() {
    let mut world = World::new(20_000_000, [ROOMY; 2]);
    let talk = world.begin([true, false]);
    world.run(Micros::from_millis(300));
    world.talks[talk].takes[1] = false;
    world.run(Micros::from_secs(3));
    let kept = ROOMY.blocks - world.pools[1].free_blocks();
    assert!(kept * BLOCK_BYTES <= SEND_BYTES as usize + BLOCK_BYTES, "{kept} blocks");
    world.end([ROOMY; 2]);
}

#[test]
fn a_refilled_pool_is_used_and_no_window_shrinks() {
    let mut world = World::new(20_000_000, [ROOMY; 2]);
    world.begin([true, false]);
    world.run(Micros::from_millis(1500));
    let mut hoards = [Vec::new(), Vec::new()];
    // At first some blocks are left, so the window that could be offered now is much smaller than
    // the announced one.
    while world.pools[1].free_blocks() > 60 {
        hoards[1].extend(world.pools[1].blocks.take());
    }
    world.run(Micros::from_millis(20));
    for _ in 0..20 {
        world.run(Micros::from_millis(100));
        for (pools, hoard) in world.pools.iter_mut().zip(&mut hoards) {
            hoard.extend(core::iter::from_fn(|| pools.blocks.take()));
        }
    }
    let rates = world.rates(Micros::from_secs(1));
    assert!(rates[0][1] < 1_000_000, "with empty pools little is sent: {rates:?}");
    for (pools, hoard) in world.pools.iter_mut().zip(hoards) {
        hoard.into_iter().for_each(|block| pools.blocks.give_back(block));
    }
    world.run(Micros::from_secs(3));
    let rates = world.rates(Micros::from_secs(1));
    assert!(rates[0][1] >= 8_000_000, "bytes a second: {rates:?}");
    world.end([ROOMY; 2]);
}

#[test]
fn segments_between_many_losses_are_kept() {
    let mut talk = Conversation::selective();
    let peer = |talk: &mut Conversation, at: u32| {
        talk.peer(&alloc::format!(". {}:{} ack 1", at * 500 + 1, at * 500 + 501)).we_whatever();
    };
    for at in (1..360).step_by(2) {
        peer(&mut talk, at);
    }
    assert_eq!(talk.given, 0);
    for at in (0..360).step_by(2) {
        peer(&mut talk, at);
        assert_eq!(talk.given, (at + 2) * 500, "only the gaps are sent again");
    }
    talk.lent_nothing();
}

#[test]
fn send_times_stay_known_however_much_is_in_flight() {
    let mut flight = Flight::default();
    let at = |segment: u32| SequenceNumber(segment * 1448);
    for segment in 0..3000 {
        flight.sent(segment * 100, at(segment), at(segment + 1), RunState::OnTheWay);
    }
    for segment in 0..3000 {
        let mut sent_at = None;
        flight.acknowledge(at(segment + 1), &mut |run| sent_at = Some(run.sent_at));
        let off = (segment * 100).abs_diff(sent_at.unwrap());
        assert!(off <= 300_000 / 16, "off by {off} of 300,000 microseconds");
    }
}
