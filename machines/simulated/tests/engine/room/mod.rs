//! A room with one machine and some client hosts on one wire. Time passes only when no engine and
//! no host has work.
//!
//! An engine sleeps as it does on real hardware. After [`Next::At`] it gets no turn before that
//! time, unless a frame, a disk completion or a stop request wakes it. So a lost wake-up shows as a
//! stalled connection, and turns without an effect are counted.

#![allow(dead_code, reason = "each test file uses a part of the room")]
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail")]

pub(crate) mod pages;
pub(crate) mod scram_client;
mod talk;
pub(crate) mod tls_stream;

use std::collections::VecDeque;

use chance::Dice;
use dkim::SigningKey;
use http::Site;
use machine::{Instant, Micros};
use server::configuration::Configuration;
use server::{Ending, InUse, MachineKeys, Next, Sizes};
use simulated::{Client, Engines, MemoryDisk, SimulatedMachine};
use smoltcp::wire::Ipv4Address;
use tls::Certificate;

use crate::CORES;

#[allow(unused_imports, reason = "each test file uses a part of the room")]
pub(crate) use talk::{Talk, stuffed, without_trace};

pub(crate) const SERVER: Ipv4Address = Ipv4Address::new(10, 0, 0, 2);
pub(crate) const DISK_BYTES: u64 = 32 << 20;
/// A test panics as stuck if it waits for longer than this many steps.
const STEPS_MAX: usize = 200_000;
/// After this many turns in a row without an effect, the engine counts as spinning.
const IDLE_TURNS_MAX: u32 = 1_000;

pub(crate) const CONFIGURATION: &str = r#"
hostname = "mail.barepost.test"
domains = ["barepost.test"]

[relay]
private_networks = ["10.0.0.0/24"]

[network]
address = "10.0.0.2/24"

[[user]]
address = "ada@barepost.test"
# The hash of "lovelace", of little cost: the tests log in often.
password_hash = "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$Oi7AsNkSF11/Jvy4J3BMjBTrWUr2l8Z3T8a7yI9rNnQ"
aliases = ["postmaster@barepost.test", "countess@barepost.test"]

[[user]]
address = "grace@barepost.test"
password_hash = "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$Oi7AsNkSF11/Jvy4J3BMjBTrWUr2l8Z3T8a7yI9rNnQ"

[access]
plaintext_auth_from = ["10.0.0.0/24"]
"#;

/// Configuration lines that allow an account to fill the disk.
pub(crate) const NO_QUOTA: &str = "[limits]\nquota = \"unlimited\"\n";

/// The sizes of the smallest machine.
pub(crate) fn usual_sizes() -> Sizes {
    Sizes::for_memory(Sizes::memory_bytes_min(CORES), CORES).expect("the memory is enough")
}

/// A machine with its engines, and client hosts, on one wire.
pub(crate) struct Room {
    pub(crate) machine: SimulatedMachine,
    pub(crate) engines: Engines,
    pub(crate) hosts: Vec<Client>,
    pub(crate) ended: Option<Ending>,
    /// The number of turns that the engines have had.
    pub(crate) turns: u64,
    sizes: Sizes,
    next: Next,
    idle_turns: u32,
    /// The longest frame that passes from the machine to the hosts, in bytes. Longer frames are
    /// dropped silently (RFC 2923).
    pub(crate) carries: usize,
    /// The time that a frame takes in each direction.
    pub(crate) trip: Micros,
    /// The frames on their way to the hosts and to the machine, with the times of their arrival.
    to_hosts: VecDeque<(Instant, Vec<u8>)>,
    to_machine: VecDeque<(Instant, Vec<u8>)>,
    /// The frames that have arrived at the hosts.
    pub(crate) seen: Option<Vec<Vec<u8>>>,
    /// No step advances time beyond this moment, so that the test can check the state then.
    pub(crate) look_at: Instant,
}

impl Room {
    /// A room with an engine that has started on a blank disk and serves.
    pub(crate) fn new(seed: u64) -> Room {
        Room::with_disk(seed, MemoryDisk::blank(DISK_BYTES))
    }

    /// A room with an engine that has started on `disk` and serves.
    pub(crate) fn with_disk(seed: u64, disk: MemoryDisk) -> Room {
        Room::with_sizes(seed, disk, usual_sizes())
    }

    /// Like [`Room::with_disk`], for an engine of these sizes.
    pub(crate) fn with_sizes(seed: u64, disk: MemoryDisk, sizes: Sizes) -> Room {
        let mut room = Room::opening(seed, disk, sizes);
        room.until("the engine serves", |room| room.console_says("serving"));
        room
    }

    /// A room with an engine that has not had its first turn.
    pub(crate) fn opening(seed: u64, disk: MemoryDisk, sizes: Sizes) -> Room {
        Room::configured(seed, disk, sizes, CONFIGURATION)
    }

    /// A room with an engine that also serves `site`.
    pub(crate) fn with_site(seed: u64, site: Site) -> Room {
        let disk = MemoryDisk::blank(DISK_BYTES);
        let mut room = Room::made(seed, disk, usual_sizes(), CONFIGURATION, site);
        room.until("the engine serves", |room| room.console_says("serving"));
        room
    }

    /// Like [`Room::with_site`]. The engine also serves over TLS, with these certificates.
    pub(crate) fn with_certificates(
        seed: u64,
        site: Site,
        certificates: Vec<Certificate>,
        sizes: Sizes,
    ) -> Room {
        let disk = MemoryDisk::blank(DISK_BYTES);
        let mut room = Room::certified(seed, disk, sizes, CONFIGURATION, site, certificates);
        room.until("the engine serves", |room| room.console_says("serving"));
        room
    }

    /// Like [`Room::opening`], with another configuration.
    pub(crate) fn configured(
        seed: u64,
        disk: MemoryDisk,
        sizes: Sizes,
        configuration: &str,
    ) -> Room {
        Room::made(seed, disk, sizes, configuration, Site::default())
    }

    fn made(seed: u64, disk: MemoryDisk, sizes: Sizes, configuration: &str, site: Site) -> Room {
        Room::certified(seed, disk, sizes, configuration, site, Vec::new())
    }

    /// A room with an engine that signs messages of its users, and serves.
    pub(crate) fn signing(seed: u64, keys: Vec<SigningKey>) -> Room {
        Room::signing_in(usual_sizes(), seed, keys)
    }

    pub(crate) fn signing_in(sizes: Sizes, seed: u64, keys: Vec<SigningKey>) -> Room {
        let (disk, site) = (MemoryDisk::blank(DISK_BYTES), Site::default());
        let mut room = Room::keyed(seed, disk, sizes, CONFIGURATION, site, Vec::new(), keys);
        room.until("the engine serves", |room| room.console_says("serving"));
        room
    }

    /// A room with an engine that has not had its first turn. With several cores the card has one
    /// queue pair for each core or one for all, depending on the seed.
    pub(crate) fn certified(
        seed: u64,
        disk: MemoryDisk,
        sizes: Sizes,
        configuration: &str,
        site: Site,
        certificates: Vec<Certificate>,
    ) -> Room {
        Room::keyed(seed, disk, sizes, configuration, site, certificates, Vec::new())
    }

    /// Like [`Room::certified`]. The engine also signs messages of its users with these keys.
    pub(crate) fn keyed(
        seed: u64,
        disk: MemoryDisk,
        sizes: Sizes,
        configuration: &str,
        site: Site,
        certificates: Vec<Certificate>,
        signing_keys: Vec<SigningKey>,
    ) -> Room {
        let papers = MachineKeys {
            certificates,
            signing_keys: signing_keys.into(),
            ..MachineKeys::default()
        };
        Room::with_papers(seed, disk, sizes, configuration, site, papers)
    }

    pub(crate) fn with_papers(
        seed: u64,
        disk: MemoryDisk,
        sizes: Sizes,
        configuration: &str,
        site: Site,
        papers: MachineKeys,
    ) -> Room {
        let mut machine = SimulatedMachine::new(seed, disk);
        (machine.queues, machine.strays) =
            if seed.is_multiple_of(2) { (1, 0) } else { (CORES, 20) };
        let configuration =
            Configuration::parse(configuration).expect("the configuration is valid");
        let engines = Engines::new(configuration, site, papers, sizes, CORES, &mut machine);
        let hosts = vec![Client::new(Ipv4Address::new(10, 0, 0, 1), seed)];
        let (next, look_at) = (Next::Now, Instant(u64::MAX));
        Room {
            machine,
            engines,
            hosts,
            ended: None,
            turns: 0,
            sizes,
            next,
            idle_turns: 0,
            carries: usize::MAX,
            trip: Micros(0),
            to_hosts: VecDeque::new(),
            to_machine: VecDeque::new(),
            seen: None,
            look_at,
        }
    }

    /// Cuts the power, and restarts with the remaining disk.
    pub(crate) fn power_cut(self, seed: u64) -> Room {
        Room::with_sizes(seed, self.machine.disk.power_cut(&mut Dice::new(seed)), self.sizes)
    }

    /// Adds a host to the wire, and returns its number.
    pub(crate) fn add_host(&mut self) -> usize {
        let number = self.hosts.len();
        self.hosts.push(Client::new(Ipv4Address::new(10, 0, 0, 10 + number as u8), number as u64));
        number
    }

    /// Gives a turn to the engines and to each host with work. If none has work, and no host has
    /// just received a frame, time passes.
    pub(crate) fn step(&mut self) {
        let now = self.machine.now;
        let is_woken = self.engines.is_woken(&self.machine);
        let is_due = match self.next {
            Next::Now => true,
            Next::At(at) => at <= now || is_woken,
            Next::Stopped(_) => false,
        };
        if is_due {
            self.turn(is_woken);
        }
        let is_heard = self.carry_to_hosts(now);
        self.carry_to_machine(now);
        if !is_heard {
            self.pass_time(now);
        }
    }

    /// Delivers the machine's frames to the hosts. Returns whether the machine has sent a frame or
    /// a host has received one.
    fn carry_to_hosts(&mut self, now: Instant) -> bool {
        let mut is_heard = !self.machine.from_engine.is_empty();
        let sent = self.machine.from_engine.drain(..).map(|frame| (now + self.trip, frame));
        self.to_hosts.extend(sent);
        while let Some((_, frame)) = self.to_hosts.pop_front_if(|(at, _)| *at <= now) {
            is_heard = true;
            if frame.len() <= self.carries {
                self.hosts.iter_mut().for_each(|host| host.hear(&frame));
            }
            self.seen.iter_mut().for_each(|seen| seen.push(frame.clone()));
        }
        is_heard
    }

    /// Delivers the hosts' frames to the machine.
    fn carry_to_machine(&mut self, now: Instant) {
        let mut sent = VecDeque::new();
        self.hosts.iter_mut().for_each(|host| host.work(now, &mut sent));
        self.to_machine.extend(sent.into_iter().map(|frame| (now + self.trip, frame)));
        while let Some((_, frame)) = self.to_machine.pop_front_if(|(at, _)| *at <= now) {
            self.machine.to_engine.push_back(frame);
        }
    }

    fn turn(&mut self, is_woken: bool) {
        let waiting_before = self.machine.disk.waiting();
        self.turns += 1;
        self.engines.turn(&mut self.machine);
        self.next = self.engines.next();
        if let Next::Stopped(ending) = self.next {
            self.ended = Some(ending);
        }
        let brought_something = is_woken
            || !self.machine.from_engine.is_empty()
            || self.machine.disk.has_completions()
            || self.machine.disk.waiting() != waiting_before;
        self.idle_turns = if brought_something { 0 } else { self.idle_turns + 1 };
        assert!(
            self.idle_turns < IDLE_TURNS_MAX,
            "the engine spins: {:?} at {:?}",
            self.next,
            self.machine.now
        );
    }

    fn pass_time(&mut self, now: Instant) {
        let is_over = self.ended.is_some();
        if is_over || self.next == Next::Now || self.engines.is_woken(&self.machine) {
            return;
        }
        let engine_at = match self.next {
            Next::At(at) if at < Instant(u64::MAX) => Some(at),
            _ => None,
        };
        let host_at = self.hosts.iter().filter_map(Client::next_deadline).min();
        let [heard_at, arrives_at] =
            [&self.to_hosts, &self.to_machine].map(|path| path.front().map(|(at, _)| *at));
        let all = [engine_at, host_at, heard_at, arrives_at];
        let next = all.into_iter().flatten().min().unwrap_or(now + Micros::from_secs(1));
        self.machine.now =
            next.min(self.look_at).clamp(now + Micros(50), now + Micros::from_secs(3_600));
    }

    /// Steps until `reached`.
    pub(crate) fn until(&mut self, what: &str, mut reached: impl FnMut(&mut Room) -> bool) {
        for _ in 0..STEPS_MAX {
            if reached(self) {
                return;
            }
            self.step();
        }
        panic!("stuck while waiting until {what}; console:\n{}", self.machine.console.join("\n"));
    }

    /// Steps for a span of the machine's time, or until the engine has stopped.
    pub(crate) fn pass(&mut self, span: Micros) {
        self.pass_beside(span, |_| {});
    }

    /// Like [`Room::pass`], and calls `others` before each step.
    pub(crate) fn pass_beside(&mut self, span: Micros, mut others: impl FnMut(&mut Room)) {
        self.look_at = self.machine.now + span;
        self.until("time has passed", |room| {
            others(room);
            room.machine.now >= room.look_at || room.ended.is_some()
        });
        self.look_at = Instant(u64::MAX);
    }

    /// Steps until no client holds any resource of the engine.
    pub(crate) fn until_nothing_is_in_use(&mut self) {
        for _ in 0..STEPS_MAX {
            if self.engines.in_use() == InUse::default() {
                return;
            }
            self.step();
        }
        panic!("still in use: {:?}", self.engines.in_use());
    }

    pub(crate) fn console_says(&self, words: &str) -> bool {
        self.machine.console.iter().any(|line| line.contains(words))
    }
}
