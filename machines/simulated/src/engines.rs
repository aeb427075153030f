//! The engines of one machine, one for each core.
//!
//! A core sleeps as it does on real hardware. After [`Next::At`] the core gets no turn before that
//! time, unless an event wakes it: a frame in its queue, space in a card that was full in its last
//! turn, or another core. A disk completion and a stop request wake the first core. So a lost
//! wake-up shows as a stalled connection. The machine's dice decide the order of the cores that are
//! due, and each core sees what earlier ones have sent. Over time this covers every order of turns.

use http::Site;
use machine::{CoreId, Entropy, Instant};
use server::configuration::Configuration;
use server::{Engine, Handshakes, InUse, MachineKeys, Next, Sizes, seeds};

use crate::SimulatedMachine;

/// All engines of a machine.
pub struct Engines {
    first: SimulatedCore,
    others: Vec<SimulatedCore>,
    /// Whether the first core has had a turn since the stop request.
    knows_of_stop: bool,
    /// The core that gets no turns.
    held: Option<u8>,
}

struct SimulatedCore {
    engine: Engine,
    next: Next,
}

impl Engines {
    /// Engines for `cores` cores of `machine`, 1 to 16. None has had a turn yet.
    pub fn new(
        configuration: Configuration,
        site: Site,
        papers: MachineKeys,
        sizes: Sizes,
        cores: u8,
        machine: &mut SimulatedMachine,
    ) -> Engines {
        let mut secret = [0; 32];
        machine.random(&mut secret);
        let (first, others) = seeds(configuration, site, papers, sizes, cores, secret);
        let mut make = |number, seed| {
            machine.begin_turn(CoreId(number));
            SimulatedCore { engine: Engine::new(seed, machine), next: Next::Now }
        };
        let first = make(0, first);
        let others = (1..).zip(others).map(|(number, seed)| make(number, seed)).collect();
        Engines { first, others, knows_of_stop: false, held: None }
    }

    /// Withholds all turns from this core. `None`: each core gets its turns.
    pub fn hold(&mut self, core: Option<u8>) {
        self.held = core;
    }

    /// The number of outbox entries that the administrators' queue page would show.
    pub fn queue_entries(&self) -> usize {
        std::iter::once(&self.first)
            .chain(&self.others)
            .map(|core| core.engine.queue_entries())
            .sum()
    }

    /// The engine of this core.
    pub(crate) fn of(&self, core: u8) -> &Engine {
        &self.core(core).engine
    }

    /// The engine of the first core, which owns the disk.
    pub fn first(&self) -> &Engine {
        &self.first.engine
    }

    /// The time at which the next core is due. An event may wake a core earlier. `Stopped` once the
    /// first core has stopped.
    pub fn next(&self) -> Next {
        if let ended @ Next::Stopped(_) = self.first.next {
            return ended;
        }
        let mut soonest = Instant::NEVER;
        for (_, core) in self.not_held() {
            match core.next {
                Next::Now => return Next::Now,
                Next::At(at) => soonest = soonest.min(at),
                Next::Stopped(_) => {}
            }
        }
        Next::At(soonest)
    }

    /// Whether an event has ended a core's sleep.
    pub fn is_woken(&self, machine: &SimulatedMachine) -> bool {
        self.not_held().any(|(number, core)| !is_over(core) && self.wakes(number, machine))
    }

    /// The time at which core `core` is due. An event may wake it earlier.
    pub(crate) fn next_of(&self, core: u8) -> Next {
        self.core(core).next
    }

    /// Whether an event has ended the sleep of core `core`.
    pub(crate) fn is_core_woken(&self, core: u8, machine: &SimulatedMachine) -> bool {
        !is_over(self.core(core)) && self.wakes(core, machine)
    }

    /// Gives a turn to each core that is due or woken, or to each core if none is.
    pub fn turn(&mut self, machine: &mut SimulatedMachine) {
        machine.sort_frames();
        let now = machine.now;
        let mut due: Vec<u8> = self
            .not_held()
            .filter(|(number, core)| match core.next {
                Next::Now => true,
                Next::At(at) => at <= now || self.wakes(*number, machine),
                Next::Stopped(_) => false,
            })
            .map(|(number, _)| number)
            .collect();
        if due.is_empty() {
            due = self
                .not_held()
                .filter(|(_, core)| !is_over(core))
                .map(|(number, _)| number)
                .collect();
        }
        while !due.is_empty() {
            let place =
                if due.len() > 1 { machine.dice.below(due.len() as u64) as usize } else { 0 };
            self.turn_of(due.swap_remove(place), machine);
        }
    }

    /// Gives a turn to core `core`.
    pub(crate) fn turn_of(&mut self, core: u8, machine: &mut SimulatedMachine) {
        if core == 0 {
            self.knows_of_stop = machine.stop;
        }
        machine.begin_turn(CoreId(core));
        let other = usize::from(core).checked_sub(1).and_then(|place| self.others.get_mut(place));
        let one = other.unwrap_or(&mut self.first);
        let printed = machine.console.len();
        one.next = match one.engine.turn(machine) {
            Next::At(at) => Next::At(machine.when(CoreId(core), at)),
            next => next,
        };
        // A core that stops has notified the first core, which may end the machine at any time from
        // then on. So the stopping core must not print.
        let is_first_notified = core > 0 && is_over(one);
        assert!(
            !is_first_notified || machine.console.len() == printed,
            "core {core} prints in the turn in which it stops"
        );
    }

    /// The resources in use on each core.
    pub fn in_use_on_each(&self) -> Vec<InUse> {
        self.numbered().map(|(_, core)| core.engine.in_use()).collect()
    }

    /// Whether all cores have stopped.
    pub fn have_all_stopped(&self) -> bool {
        self.numbered().all(|(_, core)| is_over(core))
    }

    /// The resources in use on all cores together.
    pub fn in_use(&self) -> InUse {
        self.numbered().map(|(_, core)| core.engine.in_use()).sum()
    }

    /// The results of TLS handshakes on all cores together.
    pub fn handshakes(&self) -> Handshakes {
        self.numbered().map(|(_, core)| core.engine.handshakes()).sum()
    }

    fn core(&self, number: u8) -> &SimulatedCore {
        usize::from(number)
            .checked_sub(1)
            .and_then(|place| self.others.get(place))
            .unwrap_or(&self.first)
    }

    fn numbered(&self) -> impl Iterator<Item = (u8, &SimulatedCore)> {
        (0..).zip(std::iter::once(&self.first).chain(&self.others))
    }

    fn not_held(&self) -> impl Iterator<Item = (u8, &SimulatedCore)> {
        self.numbered().filter(|(number, _)| self.held != Some(*number))
    }

    /// Whether an event ends the sleep of this core.
    fn wakes(&self, core: u8, machine: &SimulatedMachine) -> bool {
        let is_first = core == 0;
        machine.has_frames_for(CoreId(core))
            || machine.has_room_for(CoreId(core))
            || machine.is_woken(CoreId(core))
            || is_first && (machine.disk.has_completions() || machine.stop && !self.knows_of_stop)
    }
}

fn is_over(core: &SimulatedCore) -> bool {
    matches!(core.next, Next::Stopped(_))
}
