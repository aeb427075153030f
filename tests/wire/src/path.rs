//! One direction of the wire: it decides the fate of each frame, and the time at which the frame
//! departs.
//!
//! A frame may be lost. If not, it may be corrupted and repeated. Then it waits in a queue for the
//! rate limit: a token bucket of one frame, stored as the time at which the line is free again. A
//! frame that finds the queue full is dropped. A frame departs after the delay, and later if other
//! frames are to overtake it.
//!
//! Invariants:
//! - Each decision about the n-th frame depends only on the seed, the direction, n and its own
//!   probability.
//! - Frames that are not to be overtaken depart in the order of their arrival.
//! - At most [`FRAMES_MAX`] frames are in flight.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::time::Duration;

use crate::spec::Spec;

/// The most frames in flight. This is more than 100 ms of full frames at 1 Gbit/s.
const FRAMES_MAX: usize = 16_384;
/// The bytes of an Ethernet header, which is never corrupted.
const ETHERNET_BYTES: usize = 14;
/// The Ethernet type of ARP. ARP frames are not corrupted: without a checksum the receiver would
/// use a wrong neighbour address (RFC 826).
const TYPE_ARP: [u8; 2] = [0x08, 0x06];
/// The additional bytes that a frame takes on the line: preamble, check sequence and gap.
const LINE_BYTES: usize = 24;

/// The question that a random draw decides.
#[derive(Clone, Copy)]
enum Draw {
    Lost = 1,
    Corrupted,
    CorruptedWhere,
    Repeated,
    Overtaken,
}

/// The numbers of frames by their fate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct FrameCounts {
    pub(crate) arrived: u64,
    pub(crate) lost: u64,
    pub(crate) corrupted: u64,
    pub(crate) repeated: u64,
    pub(crate) overtaken: u64,
    /// Frames that found the queue full.
    pub(crate) dropped: u64,
    pub(crate) departed: u64,
}

impl fmt::Display for FrameCounts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FrameCounts { arrived, lost, corrupted, repeated, overtaken, dropped, departed } = self;
        write!(
            out,
            "{arrived} arrived, {lost} lost, {corrupted} corrupted, {repeated} repeated, {overtaken} overtaken, \
             {dropped} dropped, {departed} departed"
        )
    }
}

/// One direction.
pub(crate) struct Path {
    spec: Spec,
    seed: u64,
    counters: FrameCounts,
    /// The time at which the line has sent all queued frames.
    free_at: Duration,
    /// Due time, order of arrival, frame.
    on_the_way: BinaryHeap<Reverse<(Duration, u64, Vec<u8>)>>,
    queued: u64,
    buffers: Vec<Vec<u8>>,
}

impl Path {
    pub(crate) fn new(spec: Spec, seed: u64, direction: u64) -> Path {
        Path {
            spec,
            seed: mixed(seed ^ mixed(direction)),
            counters: FrameCounts::default(),
            free_at: Duration::ZERO,
            on_the_way: BinaryHeap::with_capacity(FRAMES_MAX),
            queued: 0,
            buffers: Vec::with_capacity(FRAMES_MAX),
        }
    }

    pub(crate) fn counters(&self) -> FrameCounts {
        self.counters
    }

    /// Handles a frame that arrives at `now`.
    pub(crate) fn arrived(&mut self, now: Duration, frame: &[u8]) {
        let number = self.counters.arrived;
        self.counters.arrived += 1;
        if self.is(Draw::Lost, number, self.spec.loss) {
            self.counters.lost += 1;
            return;
        }
        let corrupted = self.is(Draw::Corrupted, number, self.spec.corrupt)
            && frame.len() > ETHERNET_BYTES
            && frame.get(12..14) != Some(&TYPE_ARP);
        let overtaken = self.is(Draw::Overtaken, number, self.spec.reorder);
        let repeated = self.is(Draw::Repeated, number, self.spec.repeat);
        self.counters.overtaken += u64::from(overtaken);
        self.counters.repeated += u64::from(repeated);
        self.counters.corrupted += u64::from(corrupted);
        let late = if overtaken { self.spec.late } else { Duration::ZERO };
        let flipped = corrupted.then(|| self.draw(Draw::CorruptedWhere, number));
        for _ in 0..=usize::from(repeated) {
            self.queue(now, frame, flipped, late);
        }
    }

    /// The time at which the next frame departs, on the clock of `now`.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.on_the_way.peek().map(|Reverse((due, ..))| *due)
    }

    /// Takes the next frame that departs by `now`.
    pub(crate) fn next_departure(&mut self, now: Duration) -> Option<Vec<u8>> {
        if self.next_due()? > now {
            return None;
        }
        let Reverse((_, _, frame)) = self.on_the_way.pop()?;
        self.counters.departed += 1;
        Some(frame)
    }

    /// Takes back the buffer of a frame, for later frames.
    pub(crate) fn give_back(&mut self, frame: Vec<u8>) {
        self.buffers.push(frame);
    }

    /// Queues a frame for the rate limit. `flipped`: selects the bit to flip, if any.
    fn queue(&mut self, now: Duration, frame: &[u8], flipped: Option<u64>, late: Duration) {
        let start = self.free_at.max(now);
        let Some(rate) = self.spec.rate else { return self.send(now, frame, flipped, late) };
        let waiting_bytes = (start - now).as_secs_f64() * rate / 8.0;
        if waiting_bytes + frame.len() as f64 > self.spec.queue_bytes as f64 {
            self.counters.dropped += 1;
            return;
        }
        self.free_at =
            start + Duration::from_secs_f64((frame.len() + LINE_BYTES) as f64 * 8.0 / rate);
        self.send(self.free_at, frame, flipped, late);
    }

    fn send(&mut self, at: Duration, frame: &[u8], flipped: Option<u64>, late: Duration) {
        if self.on_the_way.len() >= FRAMES_MAX {
            self.counters.dropped += 1;
            return;
        }
        let mut buffer = self.buffers.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(frame);
        if let Some(choice) = flipped {
            let bits = (frame.len() - ETHERNET_BYTES) as u64 * 8;
            let bit = choice % bits;
            if let Some(byte) = buffer.get_mut(ETHERNET_BYTES + (bit / 8) as usize) {
                *byte ^= 1 << (bit % 8);
            }
        }
        self.on_the_way.push(Reverse((at + self.spec.delay + late, self.queued, buffer)));
        self.queued += 1;
    }

    fn is(&self, question: Draw, number: u64, probability: f64) -> bool {
        // 53 bits make a number in [0, 1) that f64 represents exactly.
        let drawn = (self.draw(question, number) >> 11) as f64 / (1_u64 << 53) as f64;
        drawn < probability
    }

    /// A random number that depends only on the seed, the question and the frame's number.
    fn draw(&self, question: Draw, number: u64) -> u64 {
        mixed(self.seed ^ mixed(number.wrapping_mul(8).wrapping_add(question as u64)))
    }
}

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014): every bit
/// of the result depends on every bit of `state`.
fn mixed(state: u64) -> u64 {
    let state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests;
