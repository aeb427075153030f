//! Two connections joined by a pipe that loses, repeats, delays and reorders segments. Both streams
//! always arrive whole, both ends come to rest, and no buffer stays borrowed.

use alloc::vec::Vec;

use chance::Dice;
use machine::{Instant, Micros, Piece};

use super::conversation::{SIZES, bytes_at};
use crate::tcp::{
    CardFull, CloseOutcome, CloseReason, HalfOpenTable, HalfOpenVerdict, InitialNumbers, PoolSizes,
    Pools, SegmentRepr, SegmentToSend, SendLimits, SequenceNumber, Tcb, TcpFlags,
};

/// The faults of the pipe, in percent of the segments. The delay, and the random part that is
/// added, are in milliseconds.
#[derive(Clone, Copy)]
struct Weather {
    loses: u64,
    repeats: u64,
    delay: u64,
    jitter: u64,
    /// Turns out of a hundred in which the card is full.
    card_full: u64,
    /// The most bytes that a session consumes at once.
    takes: u64,
}

struct InFlight {
    at: Instant,
    to: usize,
    segment: SegmentToSend,
    payload: Vec<u8>,
}

struct Endpoint {
    tcb: Tcb,
    pools: Pools,
    /// The length of our stream, its bytes queued so far, the bytes received from the peer, and
    /// whether the peer has closed.
    total: u32,
    queued: u32,
    given: u32,
    peer_closed: bool,
    closed_by_us: bool,
    reason: Option<CloseReason>,
    limits: SendLimits,
}

impl Endpoint {
    fn new(tcb: Tcb, total: u32, sizes: PoolSizes, segmentation: bool) -> Endpoint {
        let limits =
            SendLimits { segmentation_bytes: segmentation.then_some(20_000), local_mss: 1000 };
        let pools = Pools::new(sizes);
        Endpoint {
            tcb,
            pools,
            total,
            queued: 0,
            given: 0,
            peer_closed: false,
            closed_by_us: false,
            reason: None,
            limits,
        }
    }

    fn hear(&mut self, now: Instant, segment: &SegmentRepr<'_>, takes: usize) {
        let actions = self.tcb.segment_arrived(now, segment, &mut self.pools);
        let data = &segment.payload[actions.data.clone()];
        let now_taken = data.len().min(takes);
        self.check(&data[..now_taken]);
        self.tcb.keep(&data[now_taken..], &mut self.pools);
        self.note(actions.peer_closed, actions.closed);
    }

    fn note(&mut self, peer_closed: bool, reason: Option<CloseReason>) {
        assert!(!(peer_closed && self.peer_closed), "the end of the stream is reported once");
        assert!(self.reason.is_none() || reason.is_none(), "the end is reported once");
        self.peer_closed |= peer_closed;
        self.reason = self.reason.or(reason);
        self.tcb.assert_invariants();
    }

    fn check(&mut self, data: &[u8]) {
        assert!(data == bytes_at(self.given, data.len()), "bytes arrive as they were sent");
        self.given += data.len() as u32;
    }

    /// The session's turn: it consumes some bytes, writes some, and closes when all is written.
    fn session(&mut self, now: Instant, takes: usize, writes: usize) {
        let waiting = self.tcb.waiting();
        let data = waiting[..waiting.len().min(takes)].to_vec();
        self.check(&data);
        self.tcb.consumed(data.len(), &mut self.pools);
        let count = (self.total - self.queued).min(writes as u32);
        let bytes = bytes_at(self.queued, count as usize);
        self.queued += self.tcb.send(now, &bytes, &mut self.pools) as u32;
        if self.queued == self.total && !self.closed_by_us {
            self.closed_by_us = true;
            self.tcb.close(&mut self.pools);
        }
        self.tcb.assert_invariants();
    }

    fn is_done(&self, peer_total: u32) -> bool {
        self.given == peer_total && self.peer_closed && self.tcb.ended().is_some()
    }
}

fn beginning(iss: u32) -> InitialNumbers {
    InitialNumbers { iss: SequenceNumber(iss), timestamp_offset: 0u32.wrapping_sub(iss) }
}

/// A client's end, and a server's end from the half-open table. Their handshake has no losses, and
/// takes `delay` in each direction.
pub(super) fn joined(now: Instant, delay: Micros, iss: [u32; 2], mss: [u16; 2]) -> [Tcb; 2] {
    let [there, back, again] = [1, 2, 3].map(|ways| now + Micros(ways * delay.0));
    let mut client = Tcb::connect(now, beginning(iss[0]), mss[0]);
    let mut table = HalfOpenTable::new(1, mss[1]);
    let pools = Pools::new(SIZES);
    let mut wire = Vec::new();
    let limits = SendLimits { segmentation_bytes: None, local_mss: 1000 };
    let syn = speak(&mut client, now, limits, &pools);
    let id =
        table.syn_arrived(there, 1u8, &as_received(&syn[0].0, &[]), beginning(iss[1])).unwrap();
    let answered = table.output(there, |_, segment| {
        wire.push(*segment);
        Ok(())
    });
    assert!(answered.is_ok());
    let mut pools = pools;
    assert!(client.segment_arrived(back, &as_received(&wire[0], &[]), &mut pools).connected);
    let completing = speak(&mut client, back, limits, &pools);
    let segment = as_received(&completing[0].0, &[]);
    let HalfOpenVerdict::Completed(handshake) = table.segment_arrived(again, id, &1, &segment)
    else {
        panic!()
    };
    let mut server = Tcb::accepted(again, &handshake);
    let actions = server.segment_arrived(again, &segment, &mut pools);
    assert_eq!(actions, Default::default());
    [client, server]
}

pub(super) fn speak(
    tcb: &mut Tcb,
    now: Instant,
    limits: SendLimits,
    pools: &Pools,
) -> Vec<(SegmentToSend, Vec<u8>)> {
    let mut all = Vec::new();
    let result =
        tcb.output(now, limits, pools, &mut |segment: &SegmentToSend, pieces: &[Piece]| {
            all.push((*segment, pieces.iter().flat_map(|piece| piece.bytes().to_vec()).collect()));
            Ok(())
        });
    assert!(result.is_ok());
    all
}

pub(super) fn as_received<'a>(segment: &SegmentToSend, payload: &'a [u8]) -> SegmentRepr<'a> {
    SegmentRepr {
        sequence: segment.sequence,
        acknowledgment: segment.acknowledgment,
        flags: segment.flags,
        window: segment.window,
        congestion_experienced: false,
        options: segment.options,
        payload,
    }
}

/// Segments an output as a card with segmentation offload does.
pub(super) fn cut(segment: &SegmentToSend, payload: &[u8]) -> Vec<(SegmentToSend, Vec<u8>)> {
    let Some(size) = segment.segment_bytes.map(|size| usize::from(size.get())) else {
        return alloc::vec![(*segment, payload.to_vec())];
    };
    let count = payload.len().div_ceil(size);
    let parts = payload.chunks(size).enumerate().map(|(place, part)| {
        let mut header =
            SegmentToSend { sequence: segment.sequence + (place * size) as u32, ..*segment };
        if place + 1 < count {
            header.flags = header.flags.without(TcpFlags::FIN.with(TcpFlags::PSH));
        }
        (header, part.to_vec())
    });
    parts.collect()
}

fn run(seed: u64, weather: Weather, totals: [u32; 2], sizes: PoolSizes) -> Instant {
    let mut dice = Dice::new(seed);
    let mut now = Instant(dice.roll() % 10_000_000_000);
    let iss = [0, 1].map(|_| {
        if dice.one_in(2) {
            0u32.wrapping_sub(dice.below(100_000) as u32)
        } else {
            dice.roll() as u32
        }
    });
    let mss = [0, 1].map(|_| 200 + dice.below(1300) as u16);
    let start = now;
    let mut place = 0;
    let mut ends = joined(now, Micros(0), iss, mss).map(|tcb| {
        place += 1;
        Endpoint::new(tcb, totals[place - 1], sizes, place == 1 && seed.is_multiple_of(2))
    });
    let mut pipe: Vec<InFlight> = Vec::new();
    let mut idle_turns = 0;
    while !(ends[0].is_done(totals[1]) && ends[1].is_done(totals[0])) {
        assert!(now.since(start) < Micros::from_secs(100_000), "the streams come to an end");
        for (place, end) in ends.iter_mut().enumerate() {
            end.session(now, 1 + dice.below(weather.takes) as usize, dice.below(20_000) as usize);
            if !end.tcb.wants_output() {
                continue;
            }
            let mut sent = Vec::new();
            let full = dice.happens(100 * weather.card_full);
            let mut room = if full { dice.below(3) } else { u64::MAX };
            let result = end.tcb.output(
                now,
                end.limits,
                &end.pools,
                &mut |segment: &SegmentToSend, pieces: &[Piece]| {
                    room = room.checked_sub(1).ok_or(CardFull)?;
                    let payload: Vec<u8> =
                        pieces.iter().flat_map(|piece| piece.bytes().to_vec()).collect();
                    sent.extend(cut(segment, &payload));
                    Ok(())
                },
            );
            assert!(full || result.is_ok());
            assert!(result.is_err() || !end.tcb.wants_output());
            end.tcb.assert_invariants();
            for (segment, payload) in sent {
                let copies = usize::from(!dice.happens(100 * weather.loses))
                    + usize::from(dice.happens(100 * weather.repeats));
                for _ in 0..copies {
                    let delay = Micros::from_millis(weather.delay + dice.below(weather.jitter + 1));
                    pipe.push(InFlight {
                        at: now + delay,
                        to: 1 - place,
                        segment,
                        payload: payload.clone(),
                    });
                }
            }
        }
        let due = pipe.iter().map(|flight| flight.at);
        let deadlines = ends.iter().filter_map(|end| end.tcb.deadline(now));
        // A session with work to do is called again soon, whatever the network does.
        let busy = ends.iter().any(|end| !end.tcb.waiting().is_empty() || end.queued < end.total);
        let soon = busy.then_some(now + Micros::from_millis(20));
        let full_again = (weather.card_full > 0).then_some(now + Micros::from_millis(5));
        let next = due.chain(deadlines).chain(soon).chain(full_again).min();
        let Some(next) = next else {
            assert!(
                ends[0].is_done(totals[1]) && ends[1].is_done(totals[0]),
                "both ends rest only when they are done"
            );
            break;
        };
        idle_turns = if next > now { 0 } else { idle_turns + 1 };
        assert!(idle_turns < 1000, "time passes");
        now = now.max(next);
        let takes = 1 + dice.below(weather.takes) as usize;
        let mut arrived = Vec::new();
        pipe = pipe
            .into_iter()
            .filter_map(|flight| {
                if flight.at <= now {
                    arrived.push(flight);
                    None
                } else {
                    Some(flight)
                }
            })
            .collect();
        arrived.sort_by_key(|flight| flight.at);
        for flight in arrived {
            ends[flight.to].hear(now, &as_received(&flight.segment, &flight.payload), takes);
        }
        for end in &mut ends {
            let actions = end.tcb.deadline_expired(now, &mut end.pools);
            end.note(actions.peer_closed, actions.closed);
        }
    }
    for end in &mut ends {
        assert!(matches!(end.tcb.ended(), Some(CloseOutcome::Gone | CloseOutcome::TimeWait(_))));
        end.tcb.release(&mut end.pools);
        end.pools.blocks.collect_retired();
        assert_eq!(end.pools.free_blocks(), sizes.blocks);
        assert_eq!(
            (end.pools.free_send_queues(), end.pools.free_receive_queues()),
            (sizes.send_queues, sizes.receive_queues)
        );
    }
    now
}

const FAIR: Weather =
    Weather { loses: 0, repeats: 0, delay: 10, jitter: 0, card_full: 0, takes: 1_000_000 };

#[test]
fn streams_arrive_without_loss_or_repetition() {
    for seed in 0..20 {
        let mut dice = Dice::new(seed);
        let _ = dice.roll();
        run(seed, FAIR, [100_000, 50_000], SIZES);
    }
}

#[test]
fn streams_arrive_with_some_loss_and_repetition() {
    for seed in 0..60 {
        let weather = Weather { loses: 3, repeats: 3, jitter: 15, ..FAIR };
        run(seed, weather, [120_000, 60_000], SIZES);
    }
}

#[test]
fn streams_arrive_with_heavy_loss_and_repetition() {
    for seed in 0..60 {
        let weather =
            Weather { loses: 20, repeats: 20, jitter: 200, card_full: 20, takes: 3000, ..FAIR };
        run(seed, weather, [20_000, 10_000], SIZES);
    }
}

#[test]
fn slow_sessions_close_windows_and_streams_arrive() {
    for seed in 0..30 {
        let weather = Weather { loses: 2, takes: 700, ..FAIR };
        run(seed, weather, [300_000, 300_000], SIZES);
    }
}

#[test]
fn with_hardly_any_blocks_streams_arrive() {
    for seed in 0..30 {
        let scarce = PoolSizes {
            blocks: crate::tcp::RECEIVE_RESERVE + 2,
            send_queues: 1,
            receive_queues: 1,
        };
        run(seed, Weather { takes: 10_000, ..FAIR }, [50_000, 50_000], scarce);
        let few = PoolSizes { blocks: 2 * crate::tcp::RECEIVE_RESERVE + 4, ..scarce };
        run(seed, Weather { loses: 2, jitter: 15, takes: 10_000, ..FAIR }, [50_000, 50_000], few);
    }
}

#[test]
fn streams_of_every_small_size_arrive() {
    for size in 0..40 {
        run(
            size,
            Weather { loses: 10, jitter: 30, ..FAIR },
            [size as u32, 39 - size as u32],
            SIZES,
        );
    }
}
