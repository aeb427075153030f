//! One direction of the wire: what happens to each frame, and when it comes out.
//!
//! A frame is lost, or not; one that is not may be corrupted and repeated. Then it waits in a queue until the rate lets it
//! go: a token bucket of one frame, kept as the time at which the line is free again. What finds the queue full is
//! dropped. It comes out after the delay, and later still when it is to be overtaken.
//!
//! Invariants:
//! - What happens to the n-th frame follows from seed, direction and n alone, and not from other probabilities.
//! - Frames that are not to be overtaken come out in the order in which they came in.
//! - At most [`FRAMES_MAX`] frames are on the way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::time::Duration;

use crate::spec::Spec;

/// Frames on the way at a time: 100 ms at 1 Gbit/s, and more.
const FRAMES_MAX: usize = 16_384;
/// Bytes of an Ethernet header; they stay as they are.
const ETHERNET_BYTES: usize = 14;
/// What follows says that nothing guards it: a corrupted neighbour's address would be believed (RFC 826).
const TYPE_ARP: [u8; 2] = [0x08, 0x06];
/// What a frame takes of the line beside its bytes: preamble, check sequence and gap.
const LINE_BYTES: usize = 24;

/// What a draw decides.
#[derive(Clone, Copy)]
enum Question {
    Lost = 1,
    Corrupted,
    CorruptedWhere,
    Repeated,
    Overtaken,
}

/// What became of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) arrived: u64,
    pub(crate) lost: u64,
    pub(crate) corrupted: u64,
    pub(crate) repeated: u64,
    pub(crate) overtaken: u64,
    /// For want of room in the queue.
    pub(crate) dropped: u64,
    pub(crate) departed: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { arrived, lost, corrupted, repeated, overtaken, dropped, departed } = self;
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
    tally: Tally,
    /// When the line has sent what was given to it.
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
            tally: Tally::default(),
            free_at: Duration::ZERO,
            on_the_way: BinaryHeap::with_capacity(FRAMES_MAX),
            queued: 0,
            buffers: Vec::with_capacity(FRAMES_MAX),
        }
    }

    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    /// A frame has come in at `now`.
    pub(crate) fn arrived(&mut self, now: Duration, frame: &[u8]) {
        let number = self.tally.arrived;
        self.tally.arrived += 1;
        if self.is(Question::Lost, number, self.spec.loss) {
            self.tally.lost += 1;
            return;
        }
        let corrupted = self.is(Question::Corrupted, number, self.spec.corrupt)
            && frame.len() > ETHERNET_BYTES
            && frame.get(12..14) != Some(&TYPE_ARP);
        let overtaken = self.is(Question::Overtaken, number, self.spec.reorder);
        let repeated = self.is(Question::Repeated, number, self.spec.repeat);
        self.tally.overtaken += u64::from(overtaken);
        self.tally.repeated += u64::from(repeated);
        self.tally.corrupted += u64::from(corrupted);
        let late = if overtaken { self.spec.late } else { Duration::ZERO };
        let flipped = corrupted.then(|| self.draw(Question::CorruptedWhere, number));
        for _ in 0..=usize::from(repeated) {
            self.queue(now, frame, flipped, late);
        }
    }

    /// When the next frame comes out, counted as `now` is.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.on_the_way.peek().map(|Reverse((due, ..))| *due)
    }

    /// The next frame that comes out by `now`.
    pub(crate) fn next_departure(&mut self, now: Duration) -> Option<Vec<u8>> {
        if self.next_due()? > now {
            return None;
        }
        let Reverse((_, _, frame)) = self.on_the_way.pop()?;
        self.tally.departed += 1;
        Some(frame)
    }

    /// Takes the buffer of a frame that came out for later ones.
    pub(crate) fn give_back(&mut self, frame: Vec<u8>) {
        self.buffers.push(frame);
    }

    /// `flipped`: chooses the bit that is another one at the end.
    fn queue(&mut self, now: Duration, frame: &[u8], flipped: Option<u64>, late: Duration) {
        let start = self.free_at.max(now);
        let Some(rate) = self.spec.rate else { return self.send(now, frame, flipped, late) };
        let waiting_bytes = (start - now).as_secs_f64() * rate / 8.0;
        if waiting_bytes + frame.len() as f64 > self.spec.queue_bytes as f64 {
            self.tally.dropped += 1;
            return;
        }
        self.free_at =
            start + Duration::from_secs_f64((frame.len() + LINE_BYTES) as f64 * 8.0 / rate);
        self.send(self.free_at, frame, flipped, late);
    }

    fn send(&mut self, at: Duration, frame: &[u8], flipped: Option<u64>, late: Duration) {
        if self.on_the_way.len() >= FRAMES_MAX {
            self.tally.dropped += 1;
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

    fn is(&self, question: Question, number: u64, probability: f64) -> bool {
        // 53 bits make a number of [0, 1) that f64 holds exactly.
        let drawn = (self.draw(question, number) >> 11) as f64 / (1_u64 << 53) as f64;
        drawn < probability
    }

    /// The same for the same question about the same frame, whatever else was asked.
    fn draw(&self, question: Question, number: u64) -> u64 {
        mixed(self.seed ^ mixed(number.wrapping_mul(8).wrapping_add(question as u64)))
    }
}

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014): every bit of the result depends on
/// every bit of `state`.
fn mixed(state: u64) -> u64 {
    let state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests;
