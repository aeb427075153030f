//! Useful work against offered load (CEFOS, figure 6; Mogul and Ramakrishnan, 1997): what a machine
//! completes when more arrives than it can do.
//!
//! Packets arrive at random at a given mean rate and lie in a card's ring until they are taken. A
//! packet that finds the ring full is lost at no cost. Each packet begins a call through [`Chain`],
//! and useful work is a completed call. There are three machines:
//!
//! - [`Kind::Turns`] is the engine's: phases with a budget. The frames phase takes a bounded batch.
//!   It takes nothing when there is no room for more calls, so excess load is lost where it costs
//!   nothing.
//! - [`Kind::Interrupts`] is the usual one. Every arrival interrupts, and is queued for threads
//!   that run when nothing interrupts. It is lost when their queue is full, after its cost was
//!   paid.
//! - [`Kind::SelfContinuation`] is the paper's before its section 4.2. Arrivals become senders at
//!   once while the hardware's queue of 1,000 threads has room. They contend for the gate by
//!   continuing with themselves.

use chance::Dice;
use tasks::Budget;

use crate::chain::{Chain, Contention, DevicePlace, Ran};
use crate::costs::{Clocks, Costs};

/// How a machine handles arrivals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// By turns, with budgets.
    Turns,
    /// By interrupts.
    Interrupts,
    /// By turns, but without any limit before the gate, at which senders continue with themselves.
    SelfContinuation,
}

/// Descriptors of the card's ring.
const RING: u64 = 256;
/// Calls that the machine has room for. In a machine with interrupts this includes those that wait
/// for a thread.
const CALLS: usize = 256;
/// Entries of the hardware's queue of threads (section 3.1).
const THREAD_QUEUE: usize = 1_000;
/// Frames that a turn takes at most.
const BATCH: u32 = 64;
/// Taking a frame from the ring, by polling.
const TAKE: Clocks = Clocks(150);
/// Taking a frame in an interrupt: entry and exit, saved registers, cold caches, and the taking.
const INTERRUPT: Clocks = Clocks(1_000);

/// The result of offering calls to a machine for some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Calls that arrived.
    pub offered: u64,
    /// Calls that were completed.
    pub done: u64,
    /// Calls that were lost, wherever that was.
    pub lost: u64,
    /// Calls underway, or in the ring, at the end.
    pub left: u64,
}

/// Offers `per_second` calls to a machine of one unit at 1 GHz for `period`.
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

/// Calls as they arrive.
struct Wire {
    dice: Dice,
    /// Clocks between two of them, on the average.
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
    /// Frames, then what was ready when they had been taken.
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

    /// An arrived frame interrupts. A thread runs only when there is none.
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
