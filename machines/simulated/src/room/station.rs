//! A station: one machine with the engine in it, its power, its clocks and its pace.
//!
//! The engine sleeps here as it does on a machine: after [`Next::At`] it gets no turn before that time unless a frame, a
//! disk completion or the wish to stop wakes it. So a wake-up that it loses is a conversation that stands still, and a turn
//! that it asks for to no purpose is counted.

use machine::{Ethernet, Instant, Micros, UnixTime};
use server::configuration::Configuration;
use server::{Ending, Next, Sizes};
use smoltcp::wire::{Ipv4Address, Ipv6Address};

use super::chronicle::Chronicle;
use super::fault::Fault;
use super::scenario::{Rates, Scenario};
use super::site;
use crate::{Dice, Engines, MemoryDisk, Mood, SimulatedMachine};

/// Turns in a row that brought nothing, after which the engine is found to spin.
const IDLE_TURNS_MAX: u32 = 1_000;
/// Work that one turn may do at most, in frames taken, frames sent and disk requests. Each phase has a budget.
const WORK_PER_TURN_MAX: usize = 64 + 512 + 4_096;

pub(super) struct Station {
    pub(super) address: Ipv4Address,
    pub(super) address_ipv6: Ipv6Address,
    pub(super) hardware: Ethernet,
    pub(super) machine: SimulatedMachine,
    pub(super) engines: Engines,
    pub(super) next: Next,
    pub(super) power: Power,
    /// How the disk fails, and until when.
    failing: Option<(Mood, Instant)>,
    /// The disk carries out nothing before this time.
    pub(super) deaf_until: Instant,
    /// A request has failed in this life.
    pub(super) disk_has_failed: bool,
    /// A request has failed in some life: what clients heard since may be an answer to that.
    pub(super) disk_ever_failed: bool,
    /// How often it was started.
    pub(super) life: u64,
    /// When the core is done with its last turn.
    free_at: Instant,
    /// When the disk carries out its next request, and the card sends its next frame.
    pub(super) disk_at: Option<Instant>,
    pub(super) card_at: Option<Instant>,
    started: Instant,
    rates: Rates,
    sizes: Sizes,
    idle_turns: u32,
    lines_told: usize,
    pub(super) dice: Dice,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Power {
    On,
    /// It comes back at this time.
    Off {
        until: Instant,
    },
}

/// The IPv6 address that goes with an IPv4 address.
fn ipv6_of(address: Ipv4Address) -> Ipv6Address {
    let [.., last] = address.octets();
    Ipv6Address::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(last))
}

fn configuration(address: Ipv4Address) -> Configuration {
    let user = |name: &str| {
        format!(
            "[[user]]\naddress = \"{name}\"\n# The hash of \"lovelace\", of little cost.\n\
             password_hash = \"$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$Oi7AsNkSF11/Jvy4J3BMjBTrWUr2l8Z3T8a7yI9rNnQ\"\n"
        )
    };
    let users: String = super::ledger::ACCOUNTS.into_iter().map(user).collect();
    let text = format!(
        "hostname = \"mail.barepost.test\"\ndomains = [\"barepost.test\"]\n[network]\n\
         address = [\"{address}/24\", \"{}/64\"]\n{users}\
         [access]\nplaintext_auth_from = [\"10.0.0.0/24\", \"2001:db8::/64\"]\n",
        ipv6_of(address)
    );
    Configuration::parse(&text).expect("the configuration is valid")
}

fn sizes(scenario: &Scenario, dice: &mut Dice) -> Sizes {
    if scenario.faults.contain(Fault::TightPools) {
        let connections = 16 + dice.below(16) as usize;
        let transactions = 2 + dice.below(6) as usize;
        return Sizes { connections, transactions, blocks: 96, buffer_bytes: 1 << 20, index_bytes: 1 << 22 };
    }
    Sizes { connections: 128, transactions: 32, blocks: 1024, buffer_bytes: 2 << 20, index_bytes: 1 << 22 }
}

impl Station {
    pub(super) fn new(number: usize, scenario: &Scenario, rates: Rates) -> Station {
        let mut dice = scenario.dice(&format!("station {number}"));
        let address = Ipv4Address::new(10, 0, 0, 2 + number as u8);
        let hardware = Ethernet([0x02, 0, 0, 0, 0, 1 + number as u8]);
        let sizes = sizes(scenario, &mut dice);
        let disk = MemoryDisk::blank(rates.disk_bytes);
        let (machine, engines) = start(address, hardware, sizes, disk, &rates, &mut dice);
        Station {
            address,
            address_ipv6: ipv6_of(address),
            hardware,
            machine,
            engines,
            next: Next::Now,
            power: Power::On,
            failing: None,
            deaf_until: Instant::START,
            disk_has_failed: false,
            disk_ever_failed: false,
            life: 0,
            free_at: Instant::START,
            disk_at: None,
            card_at: None,
            started: Instant::START,
            rates,
            sizes,
            idle_turns: 0,
            lines_told: 0,
            dice,
        }
    }

    /// The power is gone, and the engine with it. What is left of the disk is there at once.
    pub(super) fn power_off(&mut self, now: Instant, until: Instant, story: &mut Chronicle) {
        story.counts.cuts += 1;
        self.life += 1;
        self.machine.fold(story);
        let disk = std::mem::take(&mut self.machine.disk).power_cut(&mut self.dice);
        let (machine, engines) = start(self.address, self.hardware, self.sizes, disk, &self.rates, &mut self.dice);
        (self.machine, self.engines, self.next) = (machine, engines, Next::Now);
        (self.disk_at, self.card_at, self.lines_told, self.idle_turns) = (None, None, 0, 0);
        self.disk_has_failed = false;
        self.power = Power::Off { until: until.max(now) };
    }

    pub(super) fn power_on(&mut self, now: Instant) {
        (self.power, self.started, self.free_at) = (Power::On, now, now);
    }

    /// From now on the machine and its disk are as good as any.
    pub(super) fn heal(&mut self) {
        (self.rates.stalls, self.rates.ring) = (0, 256);
        (self.rates.disk, self.rates.read_errors) = (Micros(100), 0);
        (self.failing, self.deaf_until) = (None, Instant::START);
        self.machine.disk.heal();
        self.machine.transmit_ring = self.rates.ring;
    }

    pub(super) fn ended(&self) -> Option<Ending> {
        if let Next::Stopped(ending) = self.next { Some(ending) } else { None }
    }

    /// From now on the disk fails like this, until `until`.
    pub(super) fn disk_fails(&mut self, mood: Mood, until: Instant) {
        self.failing = Some((mood, until));
    }

    /// Whether the engine has found its store, and says so.
    pub(super) fn is_serving(&self) -> bool {
        self.is_on() && self.machine.console.iter().any(|line| line.starts_with("serving"))
    }

    pub(super) fn is_on(&self) -> bool {
        self.power == Power::On
    }

    fn is_woken(&self) -> bool {
        self.engines.is_woken(&self.machine)
    }

    /// When the engine's next turn is due.
    pub(super) fn next_turn(&self) -> Option<Instant> {
        match self.next {
            _ if !self.is_on() => None,
            Next::Stopped(_) => None,
            Next::Now => Some(self.free_at),
            Next::At(_) if self.is_woken() => Some(self.free_at),
            Next::At(Instant::NEVER) => None,
            Next::At(at) => Some(self.global(at).max(self.free_at)),
        }
    }

    /// The room's time as the machine's clock shows it.
    fn local(&self, now: Instant) -> Instant {
        let span = now.since(self.started).0 as i128;
        Instant((span + span * self.rates.drift as i128 / 1_000_000) as u64)
    }

    /// When the machine's clock will show `local`.
    fn global(&self, local: Instant) -> Instant {
        let rate = 1_000_000 + self.rates.drift as i128;
        let span = (i128::from(local.0) * 1_000_000 + rate - 1) / rate + 1;
        self.started + Micros(u64::try_from(span).unwrap_or(u64::MAX))
    }

    pub(super) fn turn(&mut self, now: Instant, story: &mut Chronicle) {
        let is_woken = self.is_woken();
        let (frames_before, waiting_before) = (self.machine.to_engine.len(), self.machine.disk.waiting());
        let sent_before = self.machine.from_engine.len();
        self.machine.now = self.local(now);
        self.engines.turn(&mut self.machine);
        self.next = self.engines.next();
        story.counts.turns += 1;
        if let Some(ending) = self.ended() {
            let is_excused = self.machine.stop || self.disk_has_failed;
            assert!(is_excused, "the machine ended: {ending:?}, {:?}", self.machine.console);
        }
        story.fold(self.machine.now);
        let sent = self.machine.from_engine.len() - sent_before;
        let taken = frames_before - self.machine.to_engine.len();
        let requested = self.machine.disk.waiting().saturating_sub(waiting_before);
        let work = taken + sent + requested;
        assert!(work <= WORK_PER_TURN_MAX, "a turn did {taken} + {sent} + {requested}");
        let brought_something =
            is_woken || !self.machine.from_engine.is_empty() || self.machine.disk.has_completions() || requested > 0;
        self.idle_turns = if brought_something { 0 } else { self.idle_turns + 1 };
        assert!(self.idle_turns < IDLE_TURNS_MAX, "the engine spins: {:?} at {:?}", self.next, self.machine.now);
        let stall = if self.dice.happens(self.rates.stalls) { self.dice.skewed(2_000_000) } else { 0 };
        self.free_at = now + Micros(1 + work as u64 + self.dice.below(4) + stall);
        for line in self.machine.console.iter().skip(self.lines_told) {
            story.tell(|| format!("console of {}: {line}", self.address));
        }
        self.lines_told = self.machine.console.len();
        self.plan_devices(now);
    }

    /// A turn that the engine has not asked for; returns the frames and the writes that come of it. Reads may: compaction
    /// goes on whenever there is a turn, and waits for none.
    pub(super) fn turn_unasked(&mut self, now: Instant, story: &mut Chronicle) -> (usize, usize) {
        let is_due = self.next_turn().is_some_and(|at| at <= now);
        let busy = self.machine.from_engine.len() + self.machine.disk.waiting();
        if is_due || busy > 0 || !self.is_on() {
            return (0, 0);
        }
        self.turn(now, story);
        (self.machine.from_engine.len(), self.machine.disk.changes_waiting())
    }

    /// Says when the disk and the card go on, if they have something to do.
    pub(super) fn plan_devices(&mut self, now: Instant) {
        if self.machine.disk.waiting() == 0 {
            self.disk_at = None;
        } else if self.disk_at.is_none() {
            self.disk_at = Some(now.max(self.deaf_until) + Micros(5 + self.dice.skewed(self.rates.disk.0)));
        }
        if self.machine.from_engine.is_empty() {
            self.card_at = None;
        } else if self.card_at.is_none() {
            let pace = if self.rates.ring < 256 { 120 } else { 8 };
            self.card_at = Some(now + Micros(1 + self.dice.below(pace)));
        }
    }

    /// The disk carries out one request, any of those that wait.
    pub(super) fn disk_goes_on(&mut self, now: Instant, story: &mut Chronicle) {
        self.disk_at = None;
        self.failing = self.failing.filter(|(_, until)| now < *until);
        let is_serving = self.is_serving();
        let fails_reads = is_serving && self.dice.happens(self.rates.read_errors);
        let mood = self.failing.map_or(if fails_reads { Mood::FailsReads } else { Mood::Waits }, |(mood, _)| mood);
        let failed_before = self.machine.disk.failed();
        self.machine.disk.mood = mood;
        self.machine.disk.carry_out_any(&mut self.dice);
        self.machine.disk.mood = Mood::Waits;
        if self.machine.disk.failed() > failed_before {
            self.disk_has_failed |= mood != Mood::FailsReads;
            self.disk_ever_failed = true;
        }
        story.tell(|| format!("disk of {}: {}", self.address, self.machine.disk.last()));
        self.plan_devices(now);
    }

    /// A frame reaches the card.
    pub(super) fn frame_arrived(&mut self, frame: Vec<u8>, story: &Chronicle) {
        if !self.is_on() || self.machine.to_engine.len() >= self.rates.ring {
            return story.tell(|| format!("nobody takes it at {}", self.address));
        }
        self.machine.to_engine.push_back(frame);
    }
}

fn start(
    address: Ipv4Address,
    hardware: Ethernet,
    sizes: Sizes,
    mut disk: MemoryDisk,
    rates: &Rates,
    dice: &mut Dice,
) -> (SimulatedMachine, Engines) {
    disk.mood = Mood::Waits;
    let mut machine = SimulatedMachine::new(dice.roll(), disk);
    machine.hardware = hardware;
    machine.transmit_ring = rates.ring;
    machine.started = UnixTime::from_seconds(1_767_225_600 + dice.below(1_000_000));
    let engines = Engines::new(configuration(address), site::packed(), sizes, 1, &mut machine);
    (machine, engines)
}
