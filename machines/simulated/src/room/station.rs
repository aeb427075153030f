//! A station: one machine with an engine for each of its cores, its power, its clocks and its
//! timing.
//!
//! An engine sleeps in a station as it does on real hardware. After [`Next::At`] its core gets no
//! turn before that time, unless a frame, another core, a disk completion or a stop request wakes
//! the core. So a lost wake-up shows as a stalled connection, and turns without an effect are
//! counted. Each core has its own timing: while one core is stalled, the others have their turns,
//! and their notifications to the stalled core accumulate.

use std::ops::Range;

use chance::Dice;
use machine::{Ethernet, Instant, Micros};
use server::{Ending, Next};
use smoltcp::wire::{Ipv4Address, Ipv6Address};

use super::chronicle::Chronicle;
use super::make::{self, Cores, MachineParts};
use super::scenario::{Rates, Scenario};
use crate::{Engines, MemoryDisk, Mood, SimulatedMachine};

/// After this many turns in a row without an effect, the engine counts as spinning.
const IDLE_TURNS_MAX: u32 = 1_000;
/// The accounting of client memory is checked once in this many turns.
const TURNS_PER_CHECK: u64 = 8;
/// The time that a core waits before it retries a notification to a core that is still in its turn.
const PATIENCE: Micros = Micros(50);
/// The most work of one turn: the sum of frames taken, frames sent and disk requests. Each of the
/// three has a budget.
const WORK_PER_TURN_MAX: usize = 64 + 512 + 4_096;

pub(super) struct Station {
    pub(super) address: Ipv4Address,
    pub(super) address_ipv6: Ipv6Address,
    pub(super) hardware: Ethernet,
    pub(super) machine: SimulatedMachine,
    pub(super) engines: Engines,
    pub(super) power: Power,
    /// The present failure of the disk, and the time at which it ends.
    failing: Option<(Mood, Instant)>,
    /// The disk carries out nothing before this time.
    pub(super) deaf_until: Instant,
    /// A disk request other than a read has failed since the machine last started.
    pub(super) disk_has_failed: bool,
    /// A disk request has failed at any time. Later replies to clients may result from that
    /// failure.
    pub(super) disk_ever_failed: bool,
    /// The number of power cuts so far. It names the present life of the machine.
    pub(super) life: u64,
    paces: Vec<CoreTiming>,
    /// `disk_at`: when the disk carries out its next request. `card_at`: when the card sends its
    /// next frame.
    pub(super) disk_at: Option<Instant>,
    pub(super) card_at: Option<Instant>,
    started: Instant,
    rates: Rates,
    make: MachineParts,
    /// The number of console lines that were added to the trace.
    lines_traced: usize,
    pub(super) dice: Dice,
}

/// The timing of a core.
#[derive(Clone, Copy, Default)]
struct CoreTiming {
    /// The time at which the core's last turn ends.
    free_at: Instant,
    /// Turns in a row without an effect.
    idle_turns: u32,
}

/// The work that a core found in a turn that its engine had not requested. There should be none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct UnrequestedWork {
    frames: usize,
    writes: usize,
    /// The cores that were notified in the turn, one bit each.
    notified: u16,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Power {
    On,
    /// The power is off until this time.
    Off {
        until: Instant,
    },
}

impl Station {
    pub(super) fn new(number: usize, scenario: &Scenario, rates: Rates) -> Station {
        let mut dice = scenario.dice(&format!("station {number}"));
        let address = Ipv4Address::new(10, 0, 0, 2 + number as u8);
        let hardware = Ethernet([0x02, 0, 0, 0, 0, 1 + number as u8]);
        let sizes = make::sizes(scenario, &mut dice);
        let disk = MemoryDisk::blank(rates.disk_bytes);
        let make =
            MachineParts { address, hardware, sizes, cores: Cores::new(number, scenario, &rates) };
        let (machine, engines) = make.start(disk, &rates, &mut dice);
        Station {
            address,
            address_ipv6: make::ipv6_of(address),
            hardware,
            machine,
            engines,
            power: Power::On,
            failing: None,
            deaf_until: Instant::START,
            disk_has_failed: false,
            disk_ever_failed: false,
            life: 0,
            paces: vec![CoreTiming::default(); usize::from(scenario.cores)],
            disk_at: None,
            card_at: None,
            started: Instant::START,
            rates,
            make,
            lines_traced: 0,
            dice,
        }
    }

    /// Cuts the power. The engines lose their state, and the disk keeps only the writes that
    /// survive a power cut.
    pub(super) fn power_off(&mut self, now: Instant, until: Instant, story: &mut Chronicle) {
        story.counts.cuts += 1;
        self.life += 1;
        story.fold(self.machine.history());
        let disk = std::mem::take(&mut self.machine.disk).power_cut(&mut self.dice);
        (self.machine, self.engines) = self.make.start(disk, &self.rates, &mut self.dice);
        (self.disk_at, self.card_at, self.lines_traced) = (None, None, 0);
        self.disk_has_failed = false;
        self.power = Power::Off { until: until.max(now) };
    }

    pub(super) fn power_on(&mut self, now: Instant) {
        (self.power, self.started) = (Power::On, now);
        self.paces.fill(CoreTiming { free_at: now, idle_turns: 0 });
    }

    /// Ends all faults of the machine and its disk.
    pub(super) fn heal(&mut self) {
        (self.rates.stalls, self.rates.ring, self.rates.strays) = (0, 256, 0);
        self.machine.strays = 0;
        (self.rates.disk, self.rates.read_errors) = (Micros(100), 0);
        (self.failing, self.deaf_until) = (None, Instant::START);
        self.machine.disk.heal();
        self.machine.transmit_ring = self.rates.ring;
    }

    pub(super) fn ended(&self) -> Option<Ending> {
        if let Next::Stopped(ending) = self.engines.next() { Some(ending) } else { None }
    }

    /// Makes the disk fail as `mood` says, until `until`.
    pub(super) fn disk_fails(&mut self, mood: Mood, until: Instant) {
        self.failing = Some((mood, until));
    }

    /// Whether the machine has opened its store and says on the console that it serves.
    pub(super) fn is_serving(&self) -> bool {
        self.is_on() && self.machine.console.iter().any(|line| line.starts_with("serving"))
    }

    /// Whether the store is read-only after a disk failure, and the engine retries the disk.
    pub(super) fn awaits_disk(&self) -> bool {
        let lines =
            |end: &str| self.machine.console.iter().filter(|line| line.ends_with(end)).count();
        self.is_on()
            && lines("no mail is accepted until it works again") > lines("mail is accepted")
    }

    pub(super) fn is_on(&self) -> bool {
        self.power == Power::On
    }

    /// The numbers of the machine's cores.
    pub(super) fn cores(&self) -> Range<u8> {
        0..self.make.cores.count
    }

    /// The time at which the next turn of `core` is due.
    pub(super) fn next_turn(&self, core: u8) -> Option<Instant> {
        let free_at = self.timing(core).free_at;
        match self.engines.next_of(core) {
            _ if !self.is_on() || self.ended().is_some() => None,
            Next::Stopped(_) => None,
            Next::Now => Some(free_at),
            Next::At(_) if self.engines.is_core_woken(core, &self.machine) => Some(free_at),
            Next::At(Instant::NEVER) => None,
            Next::At(at) => Some(self.global(at).max(free_at)),
        }
    }

    fn timing(&self, core: u8) -> CoreTiming {
        self.paces[usize::from(core)]
    }

    /// The machine's clock at this time of the room.
    fn local(&self, now: Instant) -> Instant {
        let span = now.since(self.started).0 as i128;
        Instant((span + span * self.rates.drift as i128 / 1_000_000) as u64)
    }

    /// The time of the room at which the machine's clock will show `local`.
    fn global(&self, local: Instant) -> Instant {
        let rate = 1_000_000 + self.rates.drift as i128;
        let span = (i128::from(local.0) * 1_000_000 + rate - 1) / rate + 1;
        self.started + Micros(u64::try_from(span).unwrap_or(u64::MAX))
    }

    pub(super) fn turn(&mut self, core: u8, now: Instant, story: &mut Chronicle) {
        let is_woken = self.engines.is_core_woken(core, &self.machine);
        let (frames_before, waiting_before) =
            (self.machine.frames_waiting(), self.machine.disk.waiting());
        let (sent_before, woken_before) = (self.machine.from_engine.len(), self.machine.woken());
        self.machine.now = self.local(now);
        self.engines.turn_of(core, &mut self.machine);
        story.counts.turns += 1;
        if let Some(ending) = self.ended() {
            let is_excused = self.machine.stop || self.disk_has_failed;
            assert!(is_excused, "the machine ended: {ending:?}, {:?}", self.machine.console);
        }
        story.fold(self.machine.now);
        if story.counts.turns.is_multiple_of(TURNS_PER_CHECK) {
            self.check_client_memory(core);
        }
        let sent = self.machine.from_engine.len() - sent_before;
        let taken = frames_before - self.machine.frames_waiting();
        let requested = self.machine.disk.waiting().saturating_sub(waiting_before);
        let work = taken + sent + requested;
        assert!(work <= WORK_PER_TURN_MAX, "a turn did {taken} + {sent} + {requested}");
        let has_woken_others = self.machine.woken() & !woken_before != 0;
        let brought_something = is_woken
            || has_woken_others
            || !self.machine.from_engine.is_empty()
            || self.machine.disk.has_completions()
            || requested > 0;
        self.end_turn(core, now, work, brought_something);
        for line in self.machine.console.iter().skip(self.lines_traced) {
            story.trace(|| format!("console of {}: {line}", self.address));
        }
        self.lines_traced = self.machine.console.len();
        self.plan_devices(now);
    }

    /// Checks that all memory that clients make a core keep is charged to the clients, and is
    /// within the core's limit.
    fn check_client_memory(&self, core: u8) {
        let in_use = self.engines.of(core).in_use();
        assert_eq!(
            in_use.uncharged, 0,
            "clients make core {core} keep memory that is not charged to them"
        );
        let most = self.make.sizes.kept_bytes_max();
        assert!(
            in_use.memory <= most,
            "core {core} keeps {} bytes, and its limit is {most}",
            in_use.memory
        );
    }

    /// Sets when the turn of `core` ends. Checks that the core does not spin.
    fn end_turn(&mut self, core: u8, now: Instant, work: usize, brought_something: bool) {
        let stall =
            if self.dice.happens(self.rates.stalls) { self.dice.skewed(2_000_000) } else { 0 };
        let span = Micros(1 + work as u64 + self.dice.below(4) + stall);
        let are_others_free = self.paces.iter().all(|pace| pace.free_at <= now);
        let pace = &mut self.paces[usize::from(core)];
        pace.free_at = now + span;
        if brought_something {
            pace.idle_turns = 0;
        } else if are_others_free {
            pace.idle_turns += 1;
        } else {
            // The core may be retrying a notification to a core that is still in its turn.
            pace.free_at = pace.free_at + PATIENCE;
        }
        assert!(
            pace.idle_turns < IDLE_TURNS_MAX,
            "core {core} spins: {:?} at {now:?}",
            self.engines.next_of(core)
        );
    }

    /// Gives `core` a turn that its engine has not requested. Returns the work that the turn found.
    /// Disk reads do not count: compaction continues in any turn, and requests no turn for that.
    pub(super) fn unrequested_turn(
        &mut self,
        core: u8,
        now: Instant,
        story: &mut Chronicle,
    ) -> UnrequestedWork {
        // Because of rounding, a turn may be due a microsecond later by the room's clock than by
        // the machine's clock.
        let shown = self.global(self.local(now));
        let is_due = self.cores().any(|core| {
            self.next_turn(core).is_some_and(|at| at <= shown.max(self.timing(core).free_at))
        });
        let busy = self.machine.from_engine.len() + self.machine.disk.waiting();
        if is_due || busy > 0 || !self.is_on() {
            return UnrequestedWork::default();
        }
        let woken_before = self.machine.woken();
        self.turn(core, now, story);
        let notified = self.machine.woken() & !woken_before;
        UnrequestedWork {
            frames: self.machine.from_engine.len(),
            writes: self.machine.disk.changes_waiting(),
            notified,
        }
    }

    /// Schedules the next request of the disk and the next frame of the card, if any waits.
    pub(super) fn plan_devices(&mut self, now: Instant) {
        if self.machine.disk.waiting() == 0 {
            self.disk_at = None;
        } else if self.disk_at.is_none() {
            self.disk_at =
                Some(now.max(self.deaf_until) + Micros(5 + self.dice.skewed(self.rates.disk.0)));
        }
        if self.machine.from_engine.is_empty() {
            self.card_at = None;
        } else if self.card_at.is_none() {
            let pace = if self.rates.ring < 256 { 120 } else { 8 };
            self.card_at = Some(now + Micros(1 + self.dice.below(pace)));
        }
    }

    /// Lets the disk carry out one random waiting request.
    pub(super) fn disk_acts(&mut self, now: Instant, story: &mut Chronicle) {
        self.disk_at = None;
        self.failing = self.failing.filter(|(_, until)| now < *until);
        let fails_reads = self.dice.happens(self.rates.read_errors);
        let mood = self
            .failing
            .map_or(if fails_reads { Mood::FailsReads } else { Mood::Waits }, |(mood, _)| mood);
        let failed_before = self.machine.disk.failed();
        self.machine.disk.mood = mood;
        self.machine.disk.carry_out_any(&mut self.dice);
        self.machine.disk.mood = Mood::Waits;
        if self.machine.disk.failed() > failed_before {
            self.disk_has_failed |= mood != Mood::FailsReads;
            self.disk_ever_failed = true;
        }
        story.trace(|| format!("disk of {}: {}", self.address, self.machine.disk.last()));
        self.plan_devices(now);
    }

    /// Gives the card a frame that has arrived.
    pub(super) fn frame_arrived(&mut self, frame: Vec<u8>, story: &Chronicle) {
        if !self.is_on() || self.machine.frame_arrived(frame, self.rates.ring).is_err() {
            story.trace(|| format!("dropped at {}", self.address));
        }
    }
}
