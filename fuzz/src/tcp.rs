//! TCP: two of our own networks, one that connects and one that listens, over a wire that does what
//! the fuzzer's bytes say.
//!
//! The bytes are choices in the order in which they come up: what a session takes and writes, and
//! what happens to a frame. When they run out there are no more faults, so every conversation ends.
//! It ends well unless a side aborted it or many frames were lost.
//!
//! Oracles: bytes arrive as they were sent. An end that is told of a normal close has heard and was
//! heard in full. In the end no connection is left and nothing is lent. Every frame is well-formed
//! (`network::check`).

mod end;
mod wire;

use std::net::Ipv4Addr;

use machine::{Instant, Micros};
use net::tcp::{CloseReason, PoolSizes, RECEIVE_RESERVE};

use crate::network::assert_whole;
use end::End;
use wire::Wire;

/// Choices, in the order in which they come up; zero once there are no more.
pub(crate) struct Choices<'a> {
    bytes: &'a [u8],
}

impl Choices<'_> {
    pub(crate) fn next(&mut self) -> u8 {
        let Some((&first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        first
    }

    /// Whether everything is left to chance's absence from now on.
    fn are_over(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// Steps after which a conversation stands still.
const STEPS_MAX: u32 = 60_000;
/// No connection outlives this without a word from its peer.
const TIME_MAX: Micros = Micros::from_secs(6 * 3600);
/// So many lost frames do no harm.
const HARMLESS_LOSSES: u32 = 3;

fn pool_sizes(choice: u8) -> PoolSizes {
    let blocks = if choice & 1 == 0 { 80 } else { 2 * RECEIVE_RESERVE + 4 };
    PoolSizes { blocks, send_queues: 2, receive_queues: 2 }
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let mut choices = Choices { bytes: data };
    let sizes = [pool_sizes(choices.next()), pool_sizes(choices.next())];
    let totals = [0, 1].map(|_| u32::from(choices.next()) * 150);
    let addresses = [Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 3)];
    let start = Instant(u64::from(choices.next()) << 32 | 1_000_000);
    let offloads = choices.next();
    let mut ends = [0, 1].map(|side| {
        End::new(
            side as u8,
            addresses[side],
            sizes[side],
            [totals[side], totals[1 - side]],
            offloads,
            start,
        )
    });
    let mut now = start;
    let mut wire = Wire::default();
    ends[0].connect(now, addresses[1]);
    for _ in 0..STEPS_MAX {
        for (side, end) in ends.iter_mut().enumerate() {
            end.works(now, &mut choices);
            end.speaks(now, &mut choices, |frame, choices| {
                wire.send(now, 1 - side, frame, choices)
            });
        }
        let is_over = ends.iter().all(End::is_over) && wire.is_empty();
        if is_over {
            break;
        }
        now = next_time(now, &ends, &wire, &choices);
        assert!(now.since(start) < TIME_MAX, "a conversation without an end");
        for (side, frame) in wire.arrivals(now) {
            ends[side].hears(now, frame, &mut choices);
        }
        ends.iter_mut().for_each(|end| end.time_passes(now, &mut choices));
    }
    judge(&mut ends, wire.lost, sizes, now);
}

fn next_time(now: Instant, ends: &[End; 2], wire: &Wire, choices: &Choices<'_>) -> Instant {
    let deadlines = ends.iter().filter_map(|end| end.net.next_deadline());
    // Sessions with something to do are called again soon, whatever the network does.
    let busy = ends.iter().any(|end| end.is_busy()) || !choices.are_over();
    let soon = busy.then_some(now + Micros::from_millis(20));
    let next = deadlines.chain(wire.next_arrival()).chain(soon).min();
    next.expect("a conversation that has not ended has a next event").max(now + Micros(1))
}

fn judge(ends: &mut [End; 2], lost: u32, sizes: [PoolSizes; 2], now: Instant) {
    for (end, sizes) in ends.iter().zip(sizes) {
        assert_whole(&end.net, sizes);
    }
    let aborted = ends.iter().any(|end| end.has_aborted);
    if !aborted && lost <= HARMLESS_LOSSES {
        let reasons = [ends[0].closed, ends[1].closed];
        assert_eq!(
            reasons,
            [Some(CloseReason::Normal); 2],
            "little was lost, and at {now} there is no good end"
        );
    }
    for side in [0, 1] {
        if ends[side].closed == Some(CloseReason::Normal) && !aborted {
            assert!(
                ends[side].has_heard_all() && ends[1 - side].has_heard_all(),
                "a normal end is that of both"
            );
        }
    }
}
