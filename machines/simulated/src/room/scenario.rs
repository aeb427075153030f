//! The scenario of a room. It is drawn from a seed, and the shrinker reduces it.
//!
//! A seed decides everything: the number of machines and hosts, the enabled faults, their rates,
//! and the plan of events. Each fault is enabled or not at random (swarm testing: a fault that is
//! always present hides problems that occur only without that fault). Each concern has its own
//! dice, so that leaving out one event changes no other draw.

use chance::Dice;
use machine::{Instant, Micros};

use super::fault::{FAULTS, FAULTS_OF_CORES, Fault, Faults};
use crate::Mood;

/// A time that is longer than any room runs.
const FOR_GOOD: Micros = Micros::from_secs(1_000_000);

/// An event at a time that was drawn before the room began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RoomEvent {
    /// A client that sends mail connects.
    Sender { host: usize, station: usize },
    /// A client that reads and deletes mail connects.
    Reader { host: usize, station: usize },
    /// A client that fetches pages of the site connects.
    Browser { host: usize, station: usize },
    /// A client that uses the webmail connects.
    WebmailClient { host: usize, station: usize },
    /// `count` clients connect. They make the machine keep as much memory as they can.
    Hoarders { host: usize, station: usize, count: u64 },
    /// The power is cut when the disk has carried out `requests` more requests, or after a second.
    Cut { station: usize, requests: u64 },
    /// A host's cable is unplugged for a while.
    Partition { host: usize, span: Micros },
    /// The path from a machine to a host has the MTU `mtu` for a while.
    Narrows { host: usize, station: usize, mtu: u16, report: RouterReport, span: Micros },
    /// A host disappears for ever.
    Vanishes { host: usize },
    /// The disk fails as `mood` says for a while. Some time later the machine restarts.
    DiskFails { station: usize, mood: Mood, span: Micros },
    /// The disk does not answer for a while.
    DiskIsDeaf { station: usize, span: Micros },
    /// Some sectors go bad.
    Decay { station: usize, how: Decay, count: u64 },
    /// The clock jumps to another time, in seconds since 1970.
    ClockJump { station: usize, seconds: u64 },
    /// The card changes how it spreads flows over its queues.
    Spreading { station: usize },
}

/// Whether a router reports a packet that is too long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RouterReport {
    Sent,
    /// The router drops the packet silently: a black hole.
    Missing,
}

/// How sectors go bad.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Decay {
    Unreadable,
    Rot,
    LostWrite,
    Misdirection,
}

/// An event and its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Planned {
    pub(super) at: Instant,
    /// The seed of the event's own dice.
    pub(super) seed: u64,
    /// The fault that the event belongs to. The event is left out if that fault is disabled.
    pub(super) fault: Option<Fault>,
    pub(super) event: RoomEvent,
}

/// The rates of a room's faults.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    /// Chances in 10,000 for each frame.
    pub(super) loss: u64,
    pub(super) duplication: u64,
    pub(super) reordering: u64,
    pub(super) corruption: u64,
    pub(super) forgery: u64,
    /// The time from the sending of a frame to its arrival.
    pub(super) delay: Micros,
    /// The longest additional time of a frame that is overtaken.
    pub(super) detour: Micros,
    /// Chances in 10,000, for each action of a client, that the client resets its connection.
    pub(super) leaving: u64,
    /// Chances in 10,000, for each turn, that the turn takes long.
    pub(super) stalls: u64,
    /// The rate by which the machine's clock is too fast, in parts per million.
    pub(super) drift: i64,
    /// The number of frames that fit in a ring of the card.
    pub(super) ring: usize,
    /// Chances in 10,000 that a read fails.
    pub(super) read_errors: u64,
    /// The longest time that the disk takes for a request.
    pub(super) disk: Micros,
    /// The size of a disk, in bytes.
    pub(super) disk_bytes: u64,
    /// Chances in 10,000 that a frame arrives in a random queue of the card.
    pub(super) strays: u64,
    /// The largest difference between a core's clock and the machine's.
    pub(super) disagreement: Micros,
    /// The largest additional rate by which a core's clock is too fast or too slow, in parts per
    /// million.
    pub(super) core_drift: u64,
    /// Chances in 10,000 that a client damages one of its records.
    pub(super) damage: u64,
    /// Chances in 10,000 that a client stops in its handshake.
    pub(super) stopping: u64,
}

/// The machines of a room, and its faults and events. All of it follows from the seed, except what
/// the shrinker removes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scenario {
    /// The source of all randomness.
    pub seed: u64,
    /// The number of cores of each machine.
    pub cores: u8,
    /// The enabled faults.
    pub faults: Faults,
    /// The numbers of the planned events that are left out.
    pub left_out: Vec<usize>,
    /// The time at which the faults end. After that the room must become idle.
    pub until: Instant,
}

/// The drawn machines, hosts and events.
pub(super) struct Plan {
    pub(super) stations: usize,
    pub(super) hosts: usize,
    pub(super) rates: Rates,
    pub(super) events: Vec<Planned>,
}

impl Scenario {
    /// The scenario of `seed`, with nothing left out.
    pub fn of_seed(seed: u64) -> Scenario {
        let mut dice = Dice::stream(seed, "scenario");
        let mut faults = Faults::default();
        // One room in ten has all faults, and one in ten has none. In the others each fault is
        // enabled at random.
        let mood = dice.below(10);
        for fault in FAULTS.into_iter().filter(|fault| !FAULTS_OF_CORES.contains(fault)) {
            let has = dice.one_in(2);
            if mood == 0 || mood > 1 && has {
                faults = faults.with(fault);
            }
        }
        let until = Instant::START + Micros::from_secs(4 + dice.below(26));
        // The faults of several cores have their own dice. So a room with one core per machine runs
        // as it did before these faults existed.
        let mut dice = Dice::stream(seed, "cores");
        for fault in FAULTS_OF_CORES {
            let has = dice.one_in(2);
            faults = if mood == 0 || mood > 1 && has { faults.with(fault) } else { faults };
        }
        Scenario { seed, cores: cores(&mut dice), faults, left_out: Vec::new(), until }
    }

    /// The number of events in the plan, including those that are left out.
    pub fn events(&self) -> usize {
        self.plan().events.len()
    }

    pub(super) fn dice(&self, concern: &str) -> Dice {
        Dice::stream(self.seed, concern)
    }

    pub(super) fn plan(&self) -> Plan {
        let mut dice = self.dice("plan");
        let stations = if dice.one_in(4) { 2 } else { 1 };
        let hosts = 1 + dice.below(4) as usize;
        let rates = self.rates();
        let span = Scenario::of_seed(self.seed).until;
        let mut events = Vec::new();
        let (host, station) = (
            |dice: &mut Dice| dice.below(hosts as u64) as usize,
            |dice: &mut Dice| dice.below(stations as u64) as usize,
        );
        let mut add = |count: u64, fault, draw: &mut dyn FnMut(&mut Dice) -> RoomEvent| {
            let mut dice = self.dice(&format!("deeds of {fault:?} {count}"));
            for _ in 0..count {
                let at = Instant(dice.below(span.0));
                events.push(Planned { at, seed: dice.roll(), fault, event: draw(&mut dice) });
            }
        };
        let clients = 15 + dice.below(120);
        add(clients, None, &mut |dice| {
            let (host, station) = (host(dice), station(dice));
            match dice.below(8) {
                0..=1 => RoomEvent::Browser { host, station },
                2..=4 => RoomEvent::Reader { host, station },
                _ => RoomEvent::Sender { host, station },
            }
        });
        let cuts = 1 + dice.below(60);
        add(cuts, Some(Fault::Cuts), &mut |dice| RoomEvent::Cut {
            station: station(dice),
            requests: dice.below(12),
        });
        add(1 + dice.below(6), Some(Fault::Partition), &mut |dice| RoomEvent::Partition {
            host: host(dice),
            span: Micros(dice.below(8_000_000)),
        });
        add(1 + dice.below(6), Some(Fault::ClockJumps), &mut |dice| RoomEvent::ClockJump {
            station: station(dice),
            seconds: dice.below(5_000_000_000),
        });
        for (fault, report) in
            [(Fault::NarrowPaths, RouterReport::Sent), (Fault::BlackHoles, RouterReport::Missing)]
        {
            add(1 + dice.below(4), Some(fault), &mut |dice| RoomEvent::Narrows {
                host: host(dice),
                station: station(dice),
                mtu: 576 + dice.below(924) as u16,
                report,
                span: if dice.one_in(2) { FOR_GOOD } else { Micros(dice.below(20_000_000)) },
            });
        }
        add(1 + dice.below(2), Some(Fault::Vanishing), &mut |dice| RoomEvent::Vanishes {
            host: host(dice),
        });
        let failures = [
            (Fault::FailedWrites, Mood::FailsWrites),
            (Fault::FailedFlushes, Mood::FailsFlushes),
            (Fault::GoneDisk, Mood::IsGone),
        ];
        for (fault, mood) in failures {
            let count = 1 + dice.below(2);
            add(count, Some(fault), &mut |dice| RoomEvent::DiskFails {
                station: station(dice),
                mood,
                span: Micros(dice.skewed(500_000)),
            });
        }
        add(1 + dice.below(4), Some(Fault::DeafDisk), &mut |dice| RoomEvent::DiskIsDeaf {
            station: station(dice),
            span: Micros(dice.skewed(4_000_000)),
        });
        let decays = [
            (Fault::Unreadable, Decay::Unreadable),
            (Fault::Rot, Decay::Rot),
            (Fault::LostWrites, Decay::LostWrite),
            (Fault::Misdirection, Decay::Misdirection),
        ];
        for (fault, how) in decays {
            let count = 1 + dice.below(8);
            add(count, Some(fault), &mut |dice| RoomEvent::Decay {
                station: station(dice),
                how,
                count: 1 + dice.skewed(16),
            });
        }
        add(1 + dice.below(6), Some(Fault::Spreading), &mut |dice| RoomEvent::Spreading {
            station: station(dice),
        });
        add(1 + dice.below(12), None, &mut |dice| RoomEvent::WebmailClient {
            host: host(dice),
            station: station(dice),
        });
        add(1 + dice.below(4), Some(Fault::Hoarders), &mut |dice| RoomEvent::Hoarders {
            host: host(dice),
            station: station(dice),
            count: 4 + dice.below(28),
        });
        Plan { stations, hosts, rates, events }
    }

    fn rates(&self) -> Rates {
        let mut dice = self.dice("rates");
        let mut rate = |fault, most: u64| {
            let drawn = 1 + dice.skewed(most);
            if self.faults.contain(fault) { drawn } else { 0 }
        };
        Rates {
            loss: rate(Fault::Loss, 1_500),
            duplication: rate(Fault::Duplication, 1_500),
            reordering: rate(Fault::Reordering, 3_000),
            corruption: rate(Fault::Corruption, 1_000),
            forgery: rate(Fault::Forgery, 1_500),
            delay: Micros(20 + rate(Fault::Delay, 150_000)),
            detour: Micros(50 + rate(Fault::Reordering, 100_000)),
            leaving: rate(Fault::Leavers, 200),
            stalls: rate(Fault::Stalls, 300),
            drift: rate(Fault::Drift, 100_000) as i64
                * if self.seed.is_multiple_of(2) { 1 } else { -1 },
            ring: match rate(Fault::ShortRings, 250) as usize {
                0 => 256,
                places => 3 + places,
            },
            read_errors: rate(Fault::ReadErrors, 3_000),
            disk: Micros(30 + rate(Fault::SlowDisk, 60_000)),
            disk_bytes: if self.faults.contain(Fault::SmallDisk) { 1 << 20 } else { 6 << 20 }
                + (rate(Fault::SmallDisk, 1_000) << 10),
            strays: rate(Fault::Strays, 3_000),
            disagreement: Micros(rate(Fault::CoreClocks, 300_000)),
            core_drift: rate(Fault::CoreClocks, 500),
            damage: rate(Fault::DamagedRecords, 4_000),
            stopping: rate(Fault::HalfHandshakes, 4_000),
        }
    }
}

/// Draws the number of cores of a room's machines. Most machines have few: each core makes a room
/// slower, and two cores show most problems.
fn cores(dice: &mut Dice) -> u8 {
    match dice.below(16) {
        0..=6 => 1,
        7..=11 => 2,
        12..=13 => 3 + dice.below(2) as u8,
        _ => 5 + dice.below(4) as u8,
    }
}
