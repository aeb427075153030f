//! Simulated execution units. They share one queue of ready threads, and each unit runs one thread
//! at a time to its end.
//!
//! As in the paper's processor, a free unit takes the oldest ready thread, of any stage. The
//! effects of a thread occur at its end.
//!
//! Invariants:
//! - Time never goes back. Events at the same clock happen in the order in which they were
//!   scheduled.
//! - No unit is idle while a thread is ready.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tasks::{Continuation, FrameId};

use crate::chain::{Chain, Contention, Counts, DevicePlace, Ran};
use crate::costs::{Clocks, Costs};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    /// A unit has run a thread of this call to its end, and is free.
    ThreadEnded(FrameId),
    /// A device has done its work.
    DeviceDone(Continuation),
}

/// A scheduled event. Events are ordered by time. Events of the same time are ordered by
/// `number`, which counts scheduled events.
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

/// Units that run the threads of a [`Chain`].
pub struct Units {
    chain: Chain,
    costs: Costs,
    idle: usize,
    now: Clocks,
    /// The time that units spent on threads, including the threads of virtual devices.
    busy: Clocks,
    due: BinaryHeap<Reverse<Due>>,
    begun: u64,
}

impl Units {
    /// `units` idle units.
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

    /// Runs `calls` calls to their end. All calls start at once. Each call uses the device that
    /// follows the device of the previous call.
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

    /// Runs until no event is left.
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

    /// The time of the last event.
    pub fn now(&self) -> Clocks {
        self.now
    }

    /// The time that units spent on threads.
    pub fn busy(&self) -> Clocks {
        self.busy
    }

    /// The counters of the chain.
    pub fn counts(&self) -> Counts {
        self.chain.counts()
    }

    /// The number of calls that are not done.
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
