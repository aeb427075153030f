//! TCP: two of our own networks, one that connects and one that listens. The fuzzer's bytes control
//! the wire between them.
//!
//! Each byte is a choice: how much a session reads or writes next, or what happens to the next
//! frame. After the last byte no fault occurs, so every conversation ends. It ends with a normal
//! close unless one side aborted or many frames were lost.
//!
//! Oracles: bytes arrive as they were sent. If one end reports a normal close, both ends have
//! received everything. In the end no connection is left, and all buffers are back in their pools.
//! Every frame is well-formed (`network::check`).

mod end;
mod wire;

use std::net::Ipv4Addr;

use machine::{Instant, Micros};
use net::tcp::{CloseReason, PoolSizes, RECEIVE_RESERVE};

use crate::network::assert_whole;
use end::End;
use wire::Wire;

/// The fuzzer's choices, in their order. After the last one every choice is zero.
pub(crate) struct Choices<'a> {
    bytes: &'a [u8],
}

impl Choices<'_> {
    pub(crate) fn next(&mut self) -> u8 {
        let Some((&first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        first
    }

    /// Whether no choice is left.
    fn are_over(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// The most steps of a conversation.
const STEPS_MAX: u32 = 60_000;
/// The most time of a conversation.
const TIME_MAX: Micros = Micros::from_secs(6 * 3600);
/// This many lost frames do not prevent a normal close.
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
            end.act(now, &mut choices);
            end.transmit(now, &mut choices, |frame, choices| {
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
            ends[side].receive(now, frame, &mut choices);
        }
        ends.iter_mut().for_each(|end| end.pass_time(now, &mut choices));
    }
    check(&mut ends, wire.lost, sizes, now);
}

fn next_time(now: Instant, ends: &[End; 2], wire: &Wire, choices: &Choices<'_>) -> Instant {
    let deadlines = ends.iter().filter_map(|end| end.net.next_deadline());
    // A busy session gets its next turn soon, even without an event of the network.
    let busy = ends.iter().any(|end| end.is_busy()) || !choices.are_over();
    let soon = busy.then_some(now + Micros::from_millis(20));
    let next = deadlines.chain(wire.next_arrival()).chain(soon).min();
    next.expect("a conversation that has not ended has a next event").max(now + Micros(1))
}

fn check(ends: &mut [End; 2], lost: u32, sizes: [PoolSizes; 2], now: Instant) {
    for (end, sizes) in ends.iter().zip(sizes) {
        assert_whole(&end.net, sizes);
    }
    let aborted = ends.iter().any(|end| end.has_aborted);
    if !aborted && lost <= HARMLESS_LOSSES {
        let reasons = [ends[0].closed, ends[1].closed];
        assert_eq!(
            reasons,
            [Some(CloseReason::Normal); 2],
            "few frames were lost, but at {now} the connection has no normal close"
        );
    }
    for side in [0, 1] {
        if ends[side].closed == Some(CloseReason::Normal) && !aborted {
            assert!(
                ends[side].has_received_all() && ends[1 - side].has_received_all(),
                "after a normal close both ends have received everything"
            );
        }
    }
}
