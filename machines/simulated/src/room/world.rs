//! The world of a room: its machines, hosts and clients, and the scheduler that lets each of them
//! act at its time.

use chance::Dice;
use machine::{Ethernet, Instant, Micros};
use server::InUse;
use smoltcp::wire::IpAddress;
use sometimes::sometimes;

use super::approach::{Approach, TlsUse};
use super::audit;
use super::browser::Browser;
use super::chronicle::{Chronicle, Trace};
use super::client::{ClientKind, ConnectedClient};
use super::context::ClientProgress;
use super::decay;
use super::fault::Fault;
use super::fixture::{ACCOUNTS, BY_POP3};
use super::hoarder::Hoarder;
use super::host::Host;
use super::line::{ClientLine, FirstSender};
use super::listing::IndexCheck;
use super::model::Model;
use super::narrow::{Endpoint, Narrow};
use super::peer::RemoteServer;
use super::reader::{ReadScope, Reader};
use super::remote;
use super::scenario::{Planned, Rates, RoomEvent, Scenario};
use super::sender::Sender;
use super::station::{Power, Station};
use super::tls_client::{TlsClient, TlsFault};
use super::webmail_client::WebmailClient;
use super::wire::Wire;

/// The room panics as stuck after this many steps.
const STEPS_MAX: u64 = 20_000_000;

/// A power cut that happens when the disk has carried out `requests` in total, or at `at_latest`.
struct PendingCut {
    station: usize,
    requests: u64,
    at_latest: Instant,
}

/// A room: its machines, hosts and clients, and the events that are still to happen.
pub(super) struct Room {
    pub(super) stations: Vec<Station>,
    /// The last host is the other mail server.
    pub(super) hosts: Vec<Host>,
    peer: RemoteServer,
    pub(super) visitors: Vec<ConnectedClient>,
    pub(super) models: Vec<Model>,
    pub(super) listings: Vec<IndexCheck>,
    pub(super) wire: Wire,
    ends: Vec<(Endpoint, Ethernet)>,
    /// The events that are still to happen, the next one last.
    events: Vec<Planned>,
    pending_cuts: Vec<PendingCut>,
    cuts_in_a_row: bool,
    rates: Rates,
    /// Machines have enough resources of each kind, and no fault delays a segment for long. So no
    /// machine has a reason to reset a connection.
    never_resets: bool,
    pub(super) dice: Dice,
    pub(super) story: Chronicle,
    steps: u64,
}

/// The part of the room that acts next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
enum Actor {
    RoomEvent,
    PendingCut(usize),
    Wire,
    /// One core of a machine.
    Turn(usize, u8),
    Disk(usize),
    Card(usize),
    PowerOn(usize),
    Host(usize),
    Cable(usize),
    Client(usize),
}

impl Room {
    pub(super) fn new(scenario: &Scenario, trace: Trace) -> Room {
        let plan = scenario.plan();
        let stations: Vec<Station> =
            (0..plan.stations).map(|number| Station::new(number, scenario, plan.rates)).collect();
        let numbers = (0..plan.hosts).chain([remote::HOST]);
        let mut hosts: Vec<Host> = numbers.map(|number| Host::new(number, scenario)).collect();
        let peer = RemoteServer::new(&mut hosts[plan.hosts].client);
        let mut ends: Vec<(Endpoint, Ethernet)> = Vec::new();
        ends.extend(
            stations
                .iter()
                .enumerate()
                .map(|(number, one)| (Endpoint::Station(number), one.hardware)),
        );
        ends.extend(
            hosts.iter().enumerate().map(|(number, one)| (Endpoint::Host(number), one.hardware)),
        );
        let is_wanted = |(number, planned): &(usize, Planned)| {
            planned.fault.is_none_or(|fault| scenario.faults.contain(fault))
                && !scenario.left_out.contains(number)
        };
        let mut events: Vec<Planned> = plan
            .events
            .into_iter()
            .enumerate()
            .filter(is_wanted)
            .map(|(_, planned)| planned)
            .collect();
        events.sort_by_key(|planned| std::cmp::Reverse(planned.at));
        Room {
            models: (0..stations.len()).map(Model::of).collect(),
            listings: stations.iter().map(|_| IndexCheck::default()).collect(),
            stations,
            hosts,
            peer,
            visitors: Vec::new(),
            wire: Wire::new(plan.rates, scenario.dice("wire")),
            ends,
            events,
            pending_cuts: Vec::new(),
            cuts_in_a_row: scenario.faults.contain(Fault::CutsInARow),
            rates: plan.rates,
            never_resets: ![Fault::TightPools, Fault::Mishaps, Fault::Partition, Fault::Hoarders]
                .into_iter()
                .any(|fault| scenario.faults.contain(fault)),
            dice: scenario.dice("schedule"),
            story: Chronicle::new(trace),
            steps: 0,
        }
    }

    /// Lets the actor that is due first act. If several are due at that time, one of them acts,
    /// chosen at random. Time advances to the moment at which the actor is due, but not beyond
    /// `end`.
    pub(super) fn step(&mut self, end: Instant) {
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

    /// Checks the indexes of all machines, after `actor` has acted.
    fn check_listings(&mut self, actor: Actor) {
        for (number, listing) in self.listings.iter_mut().enumerate() {
            let core = if let Actor::Turn(station, core) = actor {
                (station == number).then_some(core)
            } else {
                None
            };
            listing.check(&self.stations[number], &mut self.models[number], core);
        }
    }

    fn for_each_actor(&self, mut each: impl FnMut(Actor, Instant)) {
        let now = self.story.now;
        let mut offer = |actor, at: Option<Instant>| {
            if let Some(at) = at {
                each(actor, at.max(now));
            }
        };
        offer(Actor::RoomEvent, self.events.last().map(|planned| planned.at));
        offer(Actor::Wire, self.wire.next());
        for (number, pending_cut) in self.pending_cuts.iter().enumerate() {
            let is_due = self.stations[pending_cut.station].machine.disk.carried_out()
                >= pending_cut.requests;
            offer(
                Actor::PendingCut(number),
                Some(if is_due { now } else { pending_cut.at_latest }),
            );
        }
        for (number, station) in self.stations.iter().enumerate() {
            match station.power {
                Power::Off { until } => offer(Actor::PowerOn(number), Some(until)),
                Power::On => {
                    station
                        .cores()
                        .for_each(|core| offer(Actor::Turn(number, core), station.next_turn(core)));
                    offer(Actor::Disk(number), station.disk_at);
                    offer(Actor::Card(number), station.card_at);
                }
            }
        }
        for (number, host) in self.hosts.iter().enumerate() {
            offer(Actor::Host(number), host.client.next_deadline());
            offer(Actor::Cable(number), host.cable_at());
        }
        for (number, visitor) in self.visitors.iter().enumerate() {
            offer(Actor::Client(number), Some(visitor.next));
        }
    }

    fn act(&mut self, actor: Actor) {
        let now = self.story.now;
        self.story.fold(actor);
        match actor {
            Actor::RoomEvent => {
                if let Some(planned) = self.events.pop() {
                    self.carry_out(&planned);
                }
            }
            Actor::PendingCut(number) => {
                let pending_cut = self.pending_cuts.swap_remove(number);
                self.cut(pending_cut.station);
            }
            Actor::Wire => self.frame_arrived(),
            Actor::Turn(number, core) => self.stations[number].turn(core, now, &mut self.story),
            Actor::Disk(number) => self.stations[number].disk_acts(now, &mut self.story),
            Actor::Card(number) => self.card_sends(number),
            Actor::PowerOn(number) => {
                self.story.trace(|| format!("machine {number} has power"));
                self.stations[number].power_on(now);
            }
            Actor::Host(number) => self.host_acts(number),
            Actor::Cable(number) => {
                self.hosts[number].put_cable_in();
                self.story.trace(|| format!("host {number} has its cable again"));
            }
            Actor::Client(number) => self.client_acts(number),
        }
    }

    fn frame_arrived(&mut self) {
        let Some((end, frame)) = self.wire.arrival() else { return };
        match end {
            Endpoint::Station(number) => self.stations[number].frame_arrived(frame, &self.story),
            Endpoint::Host(number) => self.hosts[number].client.hear(&frame),
        }
    }

    fn card_sends(&mut self, number: usize) {
        let station = &mut self.stations[number];
        station.card_at = None;
        if let Some(frame) = station.machine.from_engine.pop_front() {
            self.wire.send(Endpoint::Station(number), &frame, &self.ends, &mut self.story);
        }
        station.plan_devices(self.story.now);
    }

    fn host_acts(&mut self, number: usize) {
        let is_peer = number + 1 == self.hosts.len();
        let host = &mut self.hosts[number];
        let has_heard = host.client.has_heard();
        let mut sent = std::collections::VecDeque::new();
        host.client.work(self.story.now, &mut sent);
        if is_peer && has_heard {
            self.peer.serve(&mut host.client, self.story.now, &mut self.models);
        }
        host.forget_closed();
        for frame in sent {
            self.wire.send(Endpoint::Host(number), &frame, &self.ends, &mut self.story);
        }
    }

    fn client_acts(&mut self, number: usize) {
        let visitor = &mut self.visitors[number];
        let (host, station) = (&mut self.hosts[visitor.host], &self.stations[visitor.station]);
        let model = &mut self.models[visitor.station];
        let path_drops =
            self.wire.drops(Endpoint::Station(visitor.station), Endpoint::Host(visitor.host));
        let progress = visitor.step(
            &mut host.client,
            model,
            &mut self.story,
            self.rates.leaving,
            station,
            path_drops,
        );
        if progress == ClientProgress::Done {
            host.left.push(visitor.line.connection);
            self.visitors.swap_remove(number);
        }
    }

    fn carry_out(&mut self, planned: &Planned) {
        self.story.trace(|| format!("event: {:?}", planned.event));
        let mut dice = Dice::new(planned.seed);
        match planned.event {
            RoomEvent::Sender { host, station } => {
                let approach = Approach::draw(&Approach::SENDERS, &mut dice);
                let talk =
                    ClientKind::Sender(Sender::new(approach, &mut self.models[station], &mut dice));
                self.connect_client(host, station, approach, talk, dice);
            }
            RoomEvent::Reader { host, station } => {
                let approach = Approach::draw(&Approach::READERS, &mut dice);
                let talk = ClientKind::Reader(Reader::new(
                    dice.below(BY_POP3 as u64) as usize,
                    ReadScope::Some,
                    approach.security,
                ));
                self.connect_client(host, station, approach, talk, dice);
            }
            RoomEvent::Browser { host, station } => {
                let approach = Approach::draw(&Approach::BROWSERS, &mut dice);
                let talk = ClientKind::Browser(Browser::new(approach, ReadScope::Some, &mut dice));
                self.connect_client(host, station, approach, talk, dice);
            }
            RoomEvent::WebmailClient { host, station } => {
                let approach = Approach::draw(&Approach::WEBMAIL_CLIENTS, &mut dice);
                // Half of these clients use the account that belongs to the webmail.
                let account = ACCOUNTS.len() - 1 - dice.skewed(ACCOUNTS.len() as u64) as usize;
                let webmail_client =
                    WebmailClient::new(account, approach, ReadScope::Some, &mut dice);
                self.connect_client(
                    host,
                    station,
                    approach,
                    ClientKind::WebmailClient(Box::new(webmail_client)),
                    dice,
                );
            }
            RoomEvent::Hoarders { host, station, count } => {
                for _ in 0..count {
                    let (approach, hoarder) = Hoarder::any(&mut dice);
                    let own = Dice::new(dice.roll());
                    self.connect_client(host, station, approach, ClientKind::Hoarder(hoarder), own);
                }
            }
            RoomEvent::Cut { station, requests } => self.plan_cut(station, requests),
            RoomEvent::Partition { host, span } => {
                self.hosts[host].pull_cable(self.story.now + span);
            }
            RoomEvent::Narrows { host, station, mtu, report, span } => {
                let (from, to) = (Endpoint::Station(station), Endpoint::Host(host));
                self.wire.add_narrow(Narrow {
                    from,
                    to,
                    mtu,
                    report,
                    until: self.story.now + span,
                });
            }
            RoomEvent::Vanishes { host } => self.vanish(host),
            RoomEvent::DiskFails { station, mood, span } => {
                let end = self.story.now + span;
                self.stations[station].disk_fails(mood, end);
                let at_latest = end + Micros(dice.below(3_000_000));
                self.pending_cuts.push(PendingCut { station, requests: u64::MAX, at_latest });
            }
            RoomEvent::DiskIsDeaf { station, span } => {
                self.stations[station].deaf_until = self.story.now + span
            }
            RoomEvent::Decay { station, how, count } => {
                let (model, machine) =
                    (&mut self.models[station], &mut self.stations[station].machine);
                let sectors = decay::decay(&mut machine.disk, model, how, count, &mut dice);
                self.story.trace(|| format!("  which harms {sectors:?}"));
            }
            RoomEvent::ClockJump { station, seconds } => {
                let machine = &mut self.stations[station].machine;
                machine.started.0 = (seconds * 1_000_000).saturating_sub(machine.now.0);
            }
            RoomEvent::Spreading { station } => self.stations[station].machine.spread_anew(),
        }
    }

    /// Connects a client from a host to a machine.
    pub(super) fn connect_client(
        &mut self,
        host: usize,
        station: usize,
        approach: Approach,
        talk: ClientKind,
        mut dice: Dice,
    ) {
        let now = self.story.now;
        let place = &mut self.hosts[host];
        if place.is_gone() {
            return;
        }
        let client = &mut place.client;
        client.buffer_bytes = 1 << (11 + dice.below(6));
        let one = &self.stations[station];
        let address: IpAddress =
            if dice.one_in(2) { one.address.into() } else { one.address_ipv6.into() };
        let first = if matches!(approach.port, 80 | 443) {
            FirstSender::Client
        } else {
            FirstSender::Machine
        };
        let mut line = ClientLine::new(client.connect(address, approach.port), first, now);
        let mut means_well = true;
        if approach.security != TlsUse::Plain {
            let fault = TlsFault::draw(self.rates.damage, self.rates.stopping, &mut dice);
            line.may_start_tls(TlsClient::new(&mut place.sessions, approach, fault, &mut dice));
            means_well = fault == TlsFault::None;
        }
        if approach.security == TlsUse::Tls {
            line.start_tls(now);
        }
        let pace = Micros(500 + dice.skewed(400_000));
        let life_without_resets =
            (self.never_resets && means_well && one.is_serving()).then_some(one.life);
        self.visitors.push(ConnectedClient {
            host,
            station,
            line,
            talk,
            dice,
            next: now,
            pace,
            life_without_resets,
        });
    }

    /// Removes a host and all its clients for ever. The first host always stays, because its
    /// clients do the final checks.
    fn vanish(&mut self, number: usize) {
        if number > 0 {
            self.hosts[number].vanish();
            self.visitors.retain(|visitor| visitor.host != number);
        }
    }

    /// Ends all faults of hosts, clients and frames, and cancels the planned events. Every host
    /// gets its cable back.
    pub(super) fn end_faults_and_events(&mut self) {
        self.events.clear();
        self.pending_cuts.clear();
        (self.rates.leaving, self.rates.damage, self.rates.stopping) = (0, 0, 0);
        self.cuts_in_a_row = false;
        self.wire.heal();
        self.hosts.iter_mut().for_each(Host::put_cable_in);
    }

    fn plan_cut(&mut self, station: usize, requests: u64) {
        let requests = self.stations[station].machine.disk.carried_out() + requests;
        self.pending_cuts.push(PendingCut {
            station,
            requests,
            at_latest: self.story.now + Micros::from_secs(1),
        });
    }

    /// Cuts the power of a machine, and checks the contents of its disk.
    pub(super) fn cut(&mut self, number: usize) {
        let now = self.story.now;
        let station = &mut self.stations[number];
        let was_on = station.is_on();
        if was_on && station.engines.in_use().handshakes > 0 {
            sometimes!(CutInHandshake);
        }
        let off = Micros(station.dice.skewed(3_000_000));
        station.power_off(now, now + off, &mut self.story);
        self.story.trace(|| format!("machine {number} has no power (was on: {was_on})"));
        audit::audit(&station.machine.disk, &mut self.models[number], self.story.counts.cuts);
        if self.cuts_in_a_row && !self.stations[number].dice.one_in(3) {
            let requests = self.stations[number].dice.below(100);
            let requests = self.stations[number].machine.disk.carried_out() + requests;
            self.pending_cuts.push(PendingCut {
                station: number,
                requests,
                at_latest: now + off + Micros::from_millis(200),
            });
        }
    }

    pub(super) fn in_use(&self) -> Vec<InUse> {
        self.stations.iter().map(|station| station.engines.in_use()).collect()
    }
}
