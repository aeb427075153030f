//! Simulated execution units: they share one queue of ready threads, and each runs one thread at a
//! time to its end.
//!
//! As in the paper's processor, a free unit takes the oldest ready thread, whatever it is. A
//! thread's effects come at its end.
//!
//! Invariants:
//! - Time never goes back. Events at the same clock happen in the order in which they began.
//! - No unit is idle while a thread is ready.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tasks::{Continuation, FrameId};

use crate::chain::{Chain, Contention, Counts, DevicePlace, Ran};
use crate::costs::{Clocks, Costs};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    /// A unit has run this thread to its end, and is free.
    ThreadEnded(FrameId),
    /// A device has done its work.
    DeviceDone(Continuation),
}

/// Ordered by time, then by the order in which it was begun.
#[derive(PartialEq, Eq, Debug)]
struct Due {
    at: Clocks,
    number: u64,
    event: Event,
}

impl Ord for Due {
    fn cmp(&self, other: &Due) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Units at work on a [`Chain`].
pub struct Units {
    chain: Chain,
    costs: Costs,
    idle: usize,
    now: Clocks,
    /// Clocks that units spent on threads, those of virtual devices included.
    busy: Clocks,
    due: BinaryHeap<Reverse<Due>>,
    begun: u64,
}

impl Units {
    /// `units` units with nothing to do yet.
    pub fn new(units: usize, chain: Chain, costs: Costs) -> Units {
        Units {
            chain,
            costs,
            idle: units,
            now: Clocks(0),
            busy: Clocks(0),
            due: BinaryHeap::new(),
            begun: 0,
        }
    }

    /// `calls` senders at once, by turns on each of `devices`, run to their end.
    pub fn run_batch(
        units: usize,
        devices: u32,
        calls: usize,
        contention: Contention,
        place: DevicePlace,
        costs: Costs,
    ) -> Units {
        let mut chain = Chain::new(devices, calls, contention, place);
        for device in (0..devices).cycle().take(calls) {
            assert!(chain.send(device), "there is room for every call");
        }
        let mut units = Units::new(units, chain, costs);
        units.run();
        units
    }

    /// Runs until nothing is left to do.
    pub fn run(&mut self) {
        self.occupy();
        while let Some(Reverse(due)) = self.due.pop() {
            self.now = due.at;
            match due.event {
                Event::ThreadEnded(frame) => {
                    self.idle += 1;
                    if let Ran::Requested(continuation) = self.chain.run(frame) {
                        self.begin(self.costs.round_trip, Event::DeviceDone(continuation));
                    }
                }
                Event::DeviceDone(continuation) => self.chain.completed(continuation),
            }
            self.occupy();
        }
    }

    /// The clock when the last thing happened.
    pub fn now(&self) -> Clocks {
        self.now
    }

    /// Clocks that units spent on threads.
    pub fn busy(&self) -> Clocks {
        self.busy
    }

    /// What the chain counted.
    pub fn counts(&self) -> Counts {
        self.chain.counts()
    }

    /// Calls that are not done.
    pub fn underway(&self) -> usize {
        self.chain.underway()
    }

    /// Gives ready threads to idle units.
    fn occupy(&mut self) {
        while self.idle > 0 {
            let Some((frame, stage)) = self.chain.next_ready() else { return };
            let cost = self.costs.of(stage);
            self.idle -= 1;
            self.busy += cost;
            self.begin(cost, Event::ThreadEnded(frame));
        }
    }

    fn begin(&mut self, takes: Clocks, event: Event) {
        self.begun += 1;
        self.due.push(Reverse(Due { at: self.now + takes, number: self.begun, event }));
    }
}
