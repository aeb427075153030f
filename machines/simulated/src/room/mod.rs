//! The machine room: machines, client hosts, a switch, and one scheduler that a seed drives.
//!
//! A room lives through its scenario: clients come, speak, and leave as they like, while the faults of the scenario happen.
//! After every power cut a copy of the disk is opened and held against a ledger of what clients heard. Then the faults end,
//! and all must come to rest: every client done, nothing of theirs held by any machine, and no machine awake.
//!
//! Invariants:
//! - The same scenario is the same life: every frame, sector and random draw ([`Report::digest`]).
//! - A broken promise is a panic that says which.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a broken promise ends the room")]

mod approach;
mod audit;
mod browser;
mod chronicle;
mod client;
mod correspondent;
mod decay;
mod deeds;
mod doubt;
mod fault;
mod forgery;
mod hoarder;
mod leaving;
mod ledger;
mod line;
mod listing;
mod lists;
mod make;
mod narrow;
mod page;
mod peer;
mod posted;
mod reader;
mod reported;
mod rest;
mod scenario;
mod sender;
mod shield;
mod site;
mod station;
mod two;
mod wire;

use std::sync::{Mutex, PoisonError};

use machine::{Ethernet, Instant, Micros};
use server::InUse;
use smoltcp::wire::Ipv4Address;
use sometimes::sometimes;

use approach::Approach;
pub use audit::{Contents, Mailbox, contents_on, letters_on, summaries_on, with_message};
use browser::Browser;
pub(crate) use chronicle::Chronicle;
pub use chronicle::{Counts, Trace};
use client::{Progress, Talk, Visitor};
use correspondent::Correspondent;
pub use fault::{FAULTS, Fault, Faults};
use hoarder::Hoarder;
use ledger::{ACCOUNTS, BY_POP3, Ledger};
use listing::Listing;
use narrow::Narrow;
use peer::Peer;
use reader::{Appetite, Reader};
pub use scenario::Scenario;
use scenario::{Deed, Planned, Rates};
use sender::Sender;
use shield::Keyring;
use station::{Power, Station};
use wire::{End, Wire};

use crate::{Cable, Client, Connection, Dice};

/// Steps after which a room is stuck.
const STEPS_MAX: u64 = 20_000_000;

/// How a room ended that ended well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// Of everything that happened.
    pub digest: u64,
    /// How much of it.
    pub counts: Counts,
}

/// Mishaps happen to one room in a process at a time.
static LIFE: Mutex<()> = Mutex::new(());

/// Lives through `scenario`. Panics when a promise is broken.
pub fn live(scenario: &Scenario, trace: Trace) -> Report {
    let _alone = LIFE.lock().unwrap_or_else(PoisonError::into_inner);
    match scenario.faults.contain(Fault::Mishaps) {
        true => sometimes::begin(scenario.dice("mishaps").roll()),
        false => sometimes::end(),
    }
    let mut room = Room::new(scenario, trace);
    while room.story.now < scenario.until {
        room.step(scenario.until);
    }
    room.come_to_rest();
    room.story.counts.micros = room.story.now.0;
    room.story.counts.several_cores = u64::from(scenario.cores > 1);
    room.stations.iter().for_each(|station| station.machine.fold(&mut room.story));
    Report { digest: room.story.digest(), counts: room.story.counts }
}

/// A host, and the connections of it that nobody uses any more and that are not over yet.
struct Host {
    client: Client,
    hardware: Ethernet,
    /// When its cable is put in again.
    cable_at: Option<Instant>,
    left: Vec<Connection>,
    keyring: Keyring,
    /// Nobody will ever hear of it again.
    is_gone: bool,
}

/// A cut that waits for the disk.
struct Threat {
    station: usize,
    requests: u64,
    at_latest: Instant,
}

struct Room {
    stations: Vec<Station>,
    /// The last one is the peer's.
    hosts: Vec<Host>,
    peer: Peer,
    visitors: Vec<Visitor>,
    ledgers: Vec<Ledger>,
    listings: Vec<Listing>,
    wire: Wire,
    ends: Vec<(End, Ethernet)>,
    /// Deeds to come, the next one last.
    deeds: Vec<Planned>,
    threats: Vec<Threat>,
    cuts_in_a_row: bool,
    rates: Rates,
    /// There is enough of everything, and nothing keeps a segment for long.
    nobody_is_reset: bool,
    dice: Dice,
    story: Chronicle,
    steps: u64,
}

/// Who does something next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
enum Actor {
    Deed,
    Threat(usize),
    Wire,
    /// One core of a machine.
    Turn(usize, u8),
    Disk(usize),
    Card(usize),
    PowerOn(usize),
    Host(usize),
    Cable(usize),
    Visitor(usize),
}

impl Room {
    fn new(scenario: &Scenario, trace: Trace) -> Room {
        let plan = scenario.plan();
        let stations: Vec<Station> =
            (0..plan.stations).map(|number| Station::new(number, scenario, plan.rates)).collect();
        let numbers = (0..plan.hosts).chain([peer::HOST]);
        let mut hosts: Vec<Host> = numbers.map(|number| Host::new(number, scenario)).collect();
        let peer = Peer::new(&mut hosts[plan.hosts].client);
        let mut ends: Vec<(End, Ethernet)> = Vec::new();
        ends.extend(stations.iter().enumerate().map(|(number, one)| (End::Station(number), one.hardware)));
        ends.extend(hosts.iter().enumerate().map(|(number, one)| (End::Host(number), one.hardware)));
        let is_wanted = |(number, planned): &(usize, Planned)| {
            planned.fault.is_none_or(|fault| scenario.faults.contain(fault)) && !scenario.left_out.contains(number)
        };
        let mut deeds: Vec<Planned> =
            plan.deeds.into_iter().enumerate().filter(is_wanted).map(|(_, planned)| planned).collect();
        deeds.sort_by_key(|planned| std::cmp::Reverse(planned.at));
        Room {
            ledgers: (0..stations.len()).map(Ledger::of).collect(),
            listings: stations.iter().map(|_| Listing::default()).collect(),
            stations,
            hosts,
            peer,
            visitors: Vec::new(),
            wire: Wire::new(plan.rates, scenario.dice("wire")),
            ends,
            deeds,
            threats: Vec::new(),
            cuts_in_a_row: scenario.faults.contain(Fault::CutsInARow),
            rates: plan.rates,
            nobody_is_reset: ![Fault::TightPools, Fault::Mishaps, Fault::Partition, Fault::Hoarders]
                .into_iter()
                .any(|fault| scenario.faults.contain(fault)),
            dice: scenario.dice("schedule"),
            story: Chronicle::new(trace),
            steps: 0,
        }
    }

    /// Lets whoever is due first do something. Time passes up to then, and no further than `end`.
    fn step(&mut self, end: Instant) {
        self.steps += 1;
        assert!(self.steps < STEPS_MAX, "the room never ends; it is {:?}", self.story.now);
        let mut due: Vec<Actor> = Vec::new();
        let mut first = end;
        self.for_each_actor(|actor, at| {
            if at < first {
                due.clear();
                first = at;
            }
            if at == first || at <= Instant::START {
                due.push(actor);
            }
        });
        self.story.now = self.story.now.max(first);
        if due.is_empty() {
            return;
        }
        let chosen = due[self.dice.below(due.len() as u64) as usize];
        self.act(chosen);
        self.check_listings(chosen);
    }

    /// Checks that accepted messages are listed.
    fn check_listings(&mut self, actor: Actor) {
        for (number, listing) in self.listings.iter_mut().enumerate() {
            let core = if let Actor::Turn(station, core) = actor { (station == number).then_some(core) } else { None };
            listing.check(&self.stations[number], &mut self.ledgers[number], core);
        }
    }

    fn for_each_actor(&self, mut each: impl FnMut(Actor, Instant)) {
        let now = self.story.now;
        let mut offer = |actor, at: Option<Instant>| {
            if let Some(at) = at {
                each(actor, at.max(now));
            }
        };
        offer(Actor::Deed, self.deeds.last().map(|planned| planned.at));
        offer(Actor::Wire, self.wire.next());
        for (number, threat) in self.threats.iter().enumerate() {
            let is_due = self.stations[threat.station].machine.disk.carried_out() >= threat.requests;
            offer(Actor::Threat(number), Some(if is_due { now } else { threat.at_latest }));
        }
        for (number, station) in self.stations.iter().enumerate() {
            match station.power {
                Power::Off { until } => offer(Actor::PowerOn(number), Some(until)),
                Power::On => {
                    station.cores().for_each(|core| offer(Actor::Turn(number, core), station.next_turn(core)));
                    offer(Actor::Disk(number), station.disk_at);
                    offer(Actor::Card(number), station.card_at);
                }
            }
        }
        for (number, host) in self.hosts.iter().enumerate() {
            offer(Actor::Host(number), host.client.next_deadline());
            offer(Actor::Cable(number), host.cable_at);
        }
        for (number, visitor) in self.visitors.iter().enumerate() {
            offer(Actor::Visitor(number), Some(visitor.next));
        }
    }

    fn act(&mut self, actor: Actor) {
        let now = self.story.now;
        self.story.fold(actor);
        match actor {
            Actor::Deed => {
                if let Some(planned) = self.deeds.pop() {
                    self.carry_out(&planned);
                }
            }
            Actor::Threat(number) => {
                let threat = self.threats.swap_remove(number);
                self.cut(threat.station);
            }
            Actor::Wire => self.frame_arrived(),
            Actor::Turn(number, core) => self.stations[number].turn(core, now, &mut self.story),
            Actor::Disk(number) => self.stations[number].disk_goes_on(now, &mut self.story),
            Actor::Card(number) => self.card_sends(number),
            Actor::PowerOn(number) => {
                self.story.tell(|| format!("machine {number} has power"));
                self.stations[number].power_on(now);
            }
            Actor::Host(number) => self.host_works(number),
            Actor::Cable(number) => {
                self.hosts[number].put_cable_in();
                self.story.tell(|| format!("host {number} has its cable again"));
            }
            Actor::Visitor(number) => self.visitor_acts(number),
        }
    }

    fn frame_arrived(&mut self) {
        let Some((end, frame)) = self.wire.arrival() else { return };
        match end {
            End::Station(number) => self.stations[number].frame_arrived(frame, &self.story),
            End::Host(number) => self.hosts[number].client.hear(&frame),
        }
    }

    fn card_sends(&mut self, number: usize) {
        let station = &mut self.stations[number];
        station.card_at = None;
        if let Some(frame) = station.machine.from_engine.pop_front() {
            self.wire.send(End::Station(number), &frame, &self.ends, &mut self.story);
        }
        station.plan_devices(self.story.now);
    }

    fn host_works(&mut self, number: usize) {
        let is_peer = number + 1 == self.hosts.len();
        let host = &mut self.hosts[number];
        let has_heard = host.client.has_heard();
        let mut sent = std::collections::VecDeque::new();
        host.client.work(self.story.now, &mut sent);
        if is_peer && has_heard {
            self.peer.serve(&mut host.client, self.story.now, &mut self.ledgers);
        }
        host.sweep();
        for frame in sent {
            self.wire.send(End::Host(number), &frame, &self.ends, &mut self.story);
        }
    }

    fn visitor_acts(&mut self, number: usize) {
        let visitor = &mut self.visitors[number];
        let (host, station) = (&mut self.hosts[visitor.host], &self.stations[visitor.station]);
        let ledger = &mut self.ledgers[visitor.station];
        let progress = visitor.go_on(
            &mut host.client,
            ledger,
            &mut self.story,
            self.rates.leaving,
            station,
            station.disk_ever_failed,
        );
        if progress == Progress::IsDone {
            host.left.push(visitor.line.connection);
            self.visitors.swap_remove(number);
        }
    }

    fn carry_out(&mut self, planned: &Planned) {
        self.story.tell(|| format!("deed: {:?}", planned.deed));
        let mut dice = Dice::new(planned.seed);
        match planned.deed {
            Deed::Sender { host, station } => {
                let approach = Approach::one_of(&Approach::SENDERS, &mut dice);
                let talk = Talk::Sender(Sender::new(approach, &mut self.ledgers[station], &mut dice));
                self.welcome(host, station, approach, talk, dice);
            }
            Deed::Reader { host, station } => {
                let approach = Approach::one_of(&Approach::READERS, &mut dice);
                let talk = Talk::Reader(Reader::new(dice.below(BY_POP3 as u64) as usize, Appetite::Some, approach.way));
                self.welcome(host, station, approach, talk, dice);
            }
            Deed::Browser { host, station } => {
                let approach = Approach::one_of(&Approach::BROWSERS, &mut dice);
                let talk = Talk::Browser(Browser::new(approach, Appetite::Some, &mut dice));
                self.welcome(host, station, approach, talk, dice);
            }
            Deed::Correspondent { host, station } => {
                let approach = Approach::one_of(&Approach::CORRESPONDENTS, &mut dice);
                // Half of those who come are at home at the webmail.
                let account = ACCOUNTS.len() - 1 - dice.skewed(ACCOUNTS.len() as u64) as usize;
                let correspondent = Correspondent::new(account, approach, Appetite::Some, &mut dice);
                self.welcome(host, station, approach, Talk::Correspondent(Box::new(correspondent)), dice);
            }
            Deed::Hoarders { host, station, count } => {
                for _ in 0..count {
                    let (approach, hoarder) = Hoarder::any(&mut dice);
                    let own = Dice::new(dice.roll());
                    self.welcome(host, station, approach, Talk::Hoarder(hoarder), own);
                }
            }
            Deed::Cut { station, requests } => self.threaten(station, requests),
            Deed::Partition { host, span } => {
                self.hosts[host].client.cable = Cable::Out;
                self.hosts[host].cable_at = Some(self.story.now + span);
            }
            Deed::Narrows { host, station, mtu, word, span } => {
                let (from, to) = (End::Station(station), End::Host(host));
                self.wire.narrows(Narrow { from, to, mtu, word, until: self.story.now + span });
            }
            Deed::Vanishes { host } => self.vanish(host),
            Deed::DiskFails { station, mood, span } => {
                let end = self.story.now + span;
                self.stations[station].disk_fails(mood, end);
                let at_latest = end + Micros(dice.below(3_000_000));
                self.threats.push(Threat { station, requests: u64::MAX, at_latest });
            }
            Deed::DiskIsDeaf { station, span } => self.stations[station].deaf_until = self.story.now + span,
            Deed::Decay { station, how, count } => {
                let (ledger, machine) = (&mut self.ledgers[station], &mut self.stations[station].machine);
                let sectors = decay::decay(&mut machine.disk, ledger, how, count, &mut dice);
                self.story.tell(|| format!("  which harms {sectors:?}"));
            }
            Deed::ClockJump { station, seconds } => {
                let machine = &mut self.stations[station].machine;
                machine.started.0 = (seconds * 1_000_000).saturating_sub(machine.now.0);
            }
            Deed::Spreading { station } => self.stations[station].machine.spread_anew(),
        }
    }

    fn threaten(&mut self, station: usize, requests: u64) {
        let requests = self.stations[station].machine.disk.carried_out() + requests;
        self.threats.push(Threat { station, requests, at_latest: self.story.now + Micros::from_secs(1) });
    }

    /// Cuts the power of a machine, and looks at what is left.
    fn cut(&mut self, number: usize) {
        let now = self.story.now;
        let station = &mut self.stations[number];
        let was_on = station.is_on();
        if was_on && station.engines.in_use().handshakes > 0 {
            sometimes!(CutInHandshake);
        }
        let off = Micros(station.dice.skewed(3_000_000));
        station.power_off(now, now + off, &mut self.story);
        self.story.tell(|| format!("machine {number} has no power (was on: {was_on})"));
        audit::audit(&station.machine.disk, &mut self.ledgers[number], self.story.counts.cuts);
        if self.cuts_in_a_row && !self.stations[number].dice.one_in(3) {
            let requests = self.stations[number].dice.below(100);
            let requests = self.stations[number].machine.disk.carried_out() + requests;
            self.threats.push(Threat { station: number, requests, at_latest: now + off + Micros::from_millis(200) });
        }
    }

    fn in_use(&self) -> Vec<InUse> {
        self.stations.iter().map(|station| station.engines.in_use()).collect()
    }
}

impl Host {
    fn new(number: usize, scenario: &Scenario) -> Host {
        let last = 10 + number as u8;
        let client = Client::new(Ipv4Address::new(10, 0, 0, last), scenario.dice(&format!("host {number}")).roll());
        Host {
            client,
            hardware: Ethernet([0x02, 0, 0, 0, 1, last]),
            cable_at: None,
            left: Vec::new(),
            keyring: Keyring::default(),
            is_gone: false,
        }
    }

    fn put_cable_in(&mut self) {
        self.cable_at = None;
        self.client.cable = if self.is_gone { Cable::Out } else { Cable::In };
    }

    fn vanish(&mut self) {
        let [.., last] = self.hardware.0;
        self.client = Client::new(Ipv4Address::new(10, 0, 0, last), 0);
        self.client.cable = Cable::Out;
        self.left.clear();
        self.is_gone = true;
    }

    /// Forgets connections that are over.
    fn sweep(&mut self) {
        let client = &mut self.client;
        self.left.retain(|connection| {
            let is_closed = client.is_closed(*connection);
            if is_closed {
                client.forget(*connection);
            }
            !is_closed
        });
    }
}
