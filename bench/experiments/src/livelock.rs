//! Useful work against offered load (CEFOS, figure 6; Mogul and Ramakrishnan, 1997): the work that
//! a machine completes under more load than it can handle.
//!
//! Packets arrive at random at a given mean rate, and wait in a card's ring until the machine takes
//! them. A packet that finds the ring full is lost at no cost. Each packet begins a call through
//! [`Chain`], and useful work is a completed call. There are three machines:
//!
//! - [`Kind::Turns`] is the engine's design: phases with a budget. The frames phase takes a bounded
//!   batch, and takes no frame when there is no room for more calls. So excess load is lost in the
//!   ring, at no cost.
//! - [`Kind::Interrupts`] is the usual design. Every arrival interrupts, and is queued for threads
//!   that run when no interrupt is pending. If the queue is full, the arrival is lost after the
//!   machine has paid its cost.
//! - [`Kind::SelfContinuation`] is the paper's first design, which section 4.2 of the paper
//!   replaces. An arrival becomes a sender at once if the hardware's queue of 1,000 threads has
//!   room. Senders contend for the gate by continuing with themselves.

use chance::Dice;
use tasks::Budget;

use crate::chain::{Chain, Contention, DevicePlace, Ran};
use crate::costs::{Clocks, Costs};

/// The way in which a machine handles arrivals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// By turns, with budgets.
    Turns,
    /// By interrupts.
    Interrupts,
    /// By turns, but without a limit on the calls before the gate. Senders that find the gate taken
    /// continue with themselves.
    SelfContinuation,
}

/// The number of descriptors in the card's ring.
const RING: u64 = 256;
/// The most calls in progress. In a machine with interrupts they include calls that wait for a
/// thread.
const CALLS: usize = 256;
/// The number of entries in the hardware's queue of threads (section 3.1).
const THREAD_QUEUE: usize = 1_000;
/// The most frames that a turn takes.
const BATCH: u32 = 64;
/// The cost of taking a frame from the ring by polling.
const TAKE: Clocks = Clocks(150);
/// The cost of taking a frame in an interrupt, with entry and exit, saved registers and cold
/// caches.
const INTERRUPT: Clocks = Clocks(1_000);

/// The result of a load on a machine for some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The number of calls that arrived.
    pub offered: u64,
    /// The number of calls that were completed.
    pub done: u64,
    /// The number of calls that were lost, in the ring or later.
    pub lost: u64,
    /// The number of calls in progress or in the ring at the end.
    pub left: u64,
}

/// Offers `per_second` calls a second to a machine with one unit at 1 GHz, for `period`.
pub fn offer(kind: Kind, per_second: u64, period: Clocks, seed: u64) -> Outcome {
    let (contention, room) = match kind {
        Kind::Turns | Kind::Interrupts => (Contention::SoftwareQueue, CALLS),
        Kind::SelfContinuation => (Contention::SelfContinuation, THREAD_QUEUE),
    };
    let mut machine = Overloaded {
        chain: Chain::new(1, room, contention, DevicePlace::Apart),
        costs: Costs::counted(Clocks(0)),
        now: Clocks(0),
        room,
        ring: 0,
        lost: 0,
        wire: Wire {
            dice: Dice::new(seed),
            between: 1_000_000_000 / per_second.max(1),
            next: Clocks(0),
            offered: 0,
        },
    };
    while machine.now < period {
        match kind {
            Kind::Turns | Kind::SelfContinuation => machine.turn(),
            Kind::Interrupts => machine.interrupt_or_thread(),
        }
    }
    Outcome {
        offered: machine.wire.offered,
        done: machine.chain.counts().done,
        lost: machine.lost,
        left: machine.ring + machine.chain.underway() as u64,
    }
}

/// The arrivals of calls.
struct Wire {
    dice: Dice,
    /// The mean number of clocks between two arrivals.
    between: u64,
    next: Clocks,
    offered: u64,
}

impl Wire {
    /// The number of arrivals until `now`.
    fn arrived(&mut self, now: Clocks) -> u64 {
        let before = self.offered;
        while self.next <= now {
            self.offered += 1;
            self.next += Clocks(self.dice.around(self.between).max(1));
        }
        self.offered - before
    }
}

struct Overloaded {
    chain: Chain,
    costs: Costs,
    now: Clocks,
    room: usize,
    ring: u64,
    lost: u64,
    wire: Wire,
}

impl Overloaded {
    /// One turn: takes frames, and then runs the threads that are ready.
    fn turn(&mut self) {
        self.frames_arrive();
        let mut budget = Budget::new(BATCH);
        while self.ring > 0 && self.chain.underway() < self.room && budget.take() {
            self.ring -= 1;
            self.now += TAKE;
            assert!(self.chain.send(0), "there is room");
        }
        let ready = self.chain.ready();
        for _ in 0..ready {
            self.run_a_thread();
        }
        if ready == 0 {
            self.now = self.now.max(self.wire.next);
        }
    }

    /// Handles an arrived frame in an interrupt. If no frame has arrived, runs a thread.
    fn interrupt_or_thread(&mut self) {
        self.frames_arrive();
        if self.ring > 0 {
            self.ring -= 1;
            self.now += INTERRUPT;
            if !self.chain.send(0) {
                self.lost += 1;
            }
        } else if self.chain.ready() > 0 {
            self.run_a_thread();
        } else {
            self.now = self.now.max(self.wire.next);
        }
    }

    fn frames_arrive(&mut self) {
        let arrived = self.wire.arrived(self.now);
        let room = RING - self.ring;
        self.ring += arrived.min(room);
        self.lost += arrived.saturating_sub(room);
    }

    fn run_a_thread(&mut self) {
        let Some((frame, stage)) = self.chain.next_ready() else { return };
        self.now += self.costs.of(stage);
        if let Ran::Requested(continuation) = self.chain.run(frame) {
            self.chain.completed(continuation);
        }
    }
}
