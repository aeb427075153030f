//! The engine: all work of one core, one turn at a time.
//!
//! A turn has six phases: frames, completions, deadlines, resume, out, compute. Each has a budget,
//! so that load on one phase does not starve the others, and overload is shed early. No code waits:
//! a handler runs to its end, and a continuation names the next step.
//!
//! Invariant: only the completion of a disk flush queues a reply that promises durability.

mod cores;

use connections::Handshakes;
use machine::{CoreId, Instant, Machine, Micros, Sector, Turn};
use net::{Events, OutputProgress, Sending};
use sometimes::buggify;
use store::{AccountId, CRASH_SECTOR, State, Store, Uid};
use tasks::{Budget, Subsystem};

use crate::in_use::InUse;
use crate::life::{Ending, Lifecycle};
use crate::parts::Parts;
use crate::pressure::LoadShedder;
use crate::seeds::Seed;
use crate::server::Server;
use crate::session::Session;
use crate::sizes::Sizes;
use crate::start::start;

/// The maximum number of frames taken from the card in one turn.
const FRAMES_PER_TURN: u32 = 64;
/// Connections with timers that may expire in one turn.
const TIMERS_PER_TURN: u32 = 64;
/// Sessions with deadlines that may expire in one turn.
const DEADLINES_PER_TURN: u32 = 64;
/// Sessions that may continue in one turn because they requested it.
const RESUMED_PER_TURN: u32 = 256;
/// Connections that may send in one turn.
const SPEAKERS_PER_TURN: u32 = 256;
/// The delay of a wake-up that a simulation makes late.
const LATE: Micros = Micros::from_millis(300);

/// The time at which the engine wants its next turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// At once: more work is due.
    Now,
    /// When an event arrives, or at this time at the latest.
    At(Instant),
    /// Never: the engine has stopped.
    Stopped(Ending),
}

/// A computation that cannot be split.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Computed {
    /// A step of a TLS handshake.
    Handshake,
    /// A signature that this server makes.
    Signature,
    /// The verification of another server's signature.
    Verification,
    /// A password hash.
    Hash,
}

/// The state of a turn.
#[derive(Default)]
struct TurnState {
    /// A phase of this turn has left work undone.
    unfinished: bool,
    /// No frame and no message has arrived in this turn, and no session has continued.
    is_quiet: bool,
    /// A message to another core waits, because the ring to that core was full.
    is_untold: bool,
}

/// The engine of one core: the turn and its state. Its [`Server`] does the work.
pub struct Engine {
    core: CoreId,
    server: Server,
    /// Frames to send, through this core's queue of the card or through another core.
    sending: Sending,
    lifecycle: Lifecycle,
    /// The state of load shedding.
    relief: LoadShedder,
    sizes: Sizes,
    /// The events of a frame or of expired timers. Empty between two calls.
    events: Events,
    pace: TurnState,
    /// The kinds of computations, each once, in the order in which the next one is searched.
    computed_next: [Computed; 4],
}

impl Engine {
    /// Makes the engine of one core, on that core. In its first turns the first core opens the
    /// disk, and the other cores wait for it.
    pub fn new(seed: Seed, machine: &mut impl Machine) -> Engine {
        let (core, sizes) = (seed.core, seed.sizes);
        Engine {
            core,
            sending: Sending::new(core, machine.card().queues),
            lifecycle: Lifecycle::new(core, &seed.configuration),
            server: start(seed, machine),
            relief: LoadShedder::default(),
            sizes,
            events: Events::new(),
            pace: TurnState::default(),
            computed_next: [
                Computed::Handshake,
                Computed::Signature,
                Computed::Verification,
                Computed::Hash,
            ],
        }
    }

    /// The sector for the text of a panic. `None` until the disk is known to be our own.
    pub fn crash_sector(&self) -> Option<Sector> {
        matches!(self.server.parts.store.state(), State::Serving | State::ReadOnly(_))
            .then_some(CRASH_SECTOR)
    }

    /// The messages and mailboxes of this core's accounts, read-only.
    pub fn store(&self) -> &Store {
        &self.server.parts.store.own.store
    }

    /// How TLS handshakes have ended since the start.
    pub fn handshakes(&self) -> Handshakes {
        *self.server.parts.connections.tls().outcomes()
    }

    /// The resources in use now. Scans all sessions: for display and tests, not for every turn.
    pub fn in_use(&self) -> InUse {
        InUse::of(&self.server, &self.sending, &self.sizes)
    }

    /// The number of outbox entries of this core that wait to be sent. Administrators see them.
    pub fn queue_entries(&self) -> usize {
        self.server.services.outbound.entries()
    }

    /// Whether the queue shows this entry of an outbox.
    pub fn is_in_queue(&self, account: AccountId, uid: Uid) -> bool {
        self.server.services.outbound.has(account, uid)
    }

    /// Does the work of one turn. Returns when the engine wants its next turn.
    pub fn turn(&mut self, machine: &mut impl Machine) -> Next {
        let now = machine.now();
        let parts = &mut self.server.parts;
        parts.turn = Turn {
            now,
            wall: certificates::clock::time_of_day(
                machine.wall_clock(),
                machine.program_date(),
                now,
            ),
        };
        parts.connections.begin_turn(machine.is_low_on_memory());
        self.pace.unfinished = false;
        self.pace.is_quiet = !parts.connections.has_ready() && !parts.store.has_wakes();
        self.frames(machine);
        self.completions(machine);
        self.deadlines();
        self.relief.wake_others(&self.server.parts, machine);
        self.resume(machine);
        self.out(machine);
        self.compute(machine);
        self.next()
    }

    /// Phase 1: each received frame is processed at once, up to its session.
    fn frames(&mut self, machine: &mut impl Machine) {
        let Engine { server, events, pace, .. } = self;
        let mut budget = budget_of(FRAMES_PER_TURN);
        while budget.take() {
            let Some(mut frame) = machine.receive() else { return };
            pace.is_quiet = false;
            let now = server.parts.turn.now;
            let route = server.parts.connections.frame_arrived(now, &mut frame, events);
            // A bare acknowledgment concerns only TCP.
            if !events.is_empty() {
                server.handle_events(events, frame.bytes_mut());
            }
            if let Some(frame) = server.parts.connections.frame_handled(frame, route) {
                machine.give_back(frame);
            }
        }
        pace.unfinished = true;
    }

    /// Phase 2: completions of the disk and messages of other cores wake the frames that wait.
    fn completions(&mut self, machine: &mut impl Machine) {
        if self.core == CoreId::FIRST {
            while let Some(completion) = machine.completed() {
                self.server.parts.store.own.store.disk_completed(completion);
            }
        }
        self.messages(machine);
        let Engine { server, lifecycle, .. } = self;
        while let Some(wake) = server.parts.store.next_wake() {
            match Subsystem::of(wake.continuation.entry) {
                Some(Subsystem::Accounts) => lifecycle.account_changed(wake, server),
                _ => server.woken(wake.continuation, wake.outcome, machine),
            }
        }
    }

    /// Phase 3: deadlines that have expired.
    fn deadlines(&mut self) {
        let Engine { server, events, relief, pace, .. } = self;
        let mut budget = budget_of(TIMERS_PER_TURN);
        let (now, connections) = (server.parts.turn.now, &mut server.parts.connections);
        connections.end_closing(now);
        connections.deadlines_expired(now, events, &mut budget);
        if !events.is_empty() {
            server.handle_events(events, &mut []);
        }
        let Server { parts, services, sessions } = server;
        let cx = &mut services.with(parts);
        relief.relieve(sessions, cx);
        let mut budget_of_sessions = budget_of(DEADLINES_PER_TURN);
        while budget_of_sessions.take() {
            let Some(connection) = cx.parts.connections.next_due(now) else {
                pace.unfinished |= budget.is_spent();
                return;
            };
            sessions.tell(connection.0, cx, Session::deadline_expired);
        }
        pace.unfinished = true;
    }

    /// Phase 4: sessions that are ready when this phase begins, then services with work, and the
    /// life cycle.
    fn resume(&mut self, machine: &mut impl Machine) {
        let Engine { server, lifecycle, sending, .. } = self;
        let mut budget = budget_of(RESUMED_PER_TURN);
        let Server { parts, services, sessions } = server;
        let cx = &mut services.with(parts);
        cx.parts.connections.begin_resuming();
        while budget.take()
            && let Some(frame) = cx.parts.connections.next_ready()
        {
            sessions.tell(frame, cx, Session::resumed);
        }
        server.run_services(machine);
        lifecycle.advance(server, sending, machine);
        self.own_messages(machine);
    }

    /// Phase 5: the turn's writes are sent to the disk as one group, and its replies to the card as
    /// segments. Each doorbell is rung once.
    fn out(&mut self, machine: &mut impl Machine) {
        self.server.parts.store.turn_ended();
        if self.core == CoreId::FIRST {
            self.ask_disk(machine);
        }
        let mut budget = budget_of(SPEAKERS_PER_TURN);
        let now = self.server.parts.turn.now;
        let output = match self.sending.through(machine) {
            None => {
                // Own frames and those of other cores take turns, since either may fill the card.
                let others_first = self.sending.others_go_first();
                if others_first && self.sending.has_for_others() {
                    self.transmit_for_others(machine);
                }
                let output = self.server.parts.connections.output(now, machine, &mut budget);
                if !others_first && self.sending.has_for_others() {
                    self.transmit_for_others(machine);
                }
                output
            }
            Some(mut through) => {
                self.server.parts.connections.output(now, &mut through, &mut budget)
            }
        };
        // A core with a full card may sleep. The core wakes when the card has space.
        self.pace.unfinished |= output == OutputProgress::More;
        self.post(machine);
        machine.ring_doorbells();
        self.server.parts.console.flush(machine);
    }

    /// Phase 6: one long computation that cannot be split, after the turn's output is sent. The
    /// kinds take turns.
    fn compute(&mut self, machine: &mut impl Machine) {
        // Most turns have nothing to compute.
        if self.server.has_to_compute() {
            self.compute_one(machine);
        }
    }

    #[inline(never)]
    fn compute_one(&mut self, machine: &mut impl Machine) {
        for kind in self.computed_next {
            self.computed_next.rotate_left(1);
            let has_computed = match kind {
                Computed::Handshake => self.server.step_handshake(),
                Computed::Signature => self.server.parts.compute.compute_signature(),
                Computed::Verification => self.server.verify_signature(),
                Computed::Hash => self.compute_hash(machine),
            };
            if has_computed {
                self.server.jobs_done(machine);
                self.pace.unfinished = true;
                return;
            }
        }
    }

    fn compute_hash(&mut self, machine: &mut impl Machine) -> bool {
        let Parts { compute, logins, turn, .. } = &mut self.server.parts;
        compute.compute_hash(logins.throttle(), turn.now, self.pace.is_quiet, || machine.now())
    }

    /// Passes the disk requests of all cores' stores to the machine.
    fn ask_disk(&mut self, machine: &mut impl Machine) {
        let store = &mut self.server.parts.store.own.store;
        while let Some(request) = store.next_request() {
            if buggify!(DiskQueueFull) {
                store.request_refused(request);
                self.pace.unfinished = true;
                return;
            }
            if let Err(request) = machine.request(request) {
                return store.request_refused(request);
            }
        }
    }

    fn next(&mut self) -> Next {
        let Engine { server, lifecycle, relief, pace, .. } = self;
        if let Some(ending) = lifecycle.ending()
            && !pace.is_untold
        {
            return Next::Stopped(ending);
        }
        let Server { parts, services, .. } = &*server;
        relief.look_for_shortages(parts, &services.inbound);
        let has_more = pace.unfinished
            || pace.is_untold
            || parts.store.has_wakes()
            || parts.links.has_own()
            || parts.connections.has_ready()
            || services.can_go_on();
        if has_more || lifecycle.can_go_on(server) {
            return Next::Now;
        }
        let next = parts
            .connections
            .next_deadline()
            .min(services.next_deadline())
            .min(lifecycle.next_deadline(parts.turn.now))
            .min(relief.next_deadline(parts))
            .min(Instant::or_never(parts.compute.next_deadline()));
        Next::At(if buggify!(WakeUpLate) { next + LATE } else { next })
    }
}

fn budget_of(units: u32) -> Budget {
    Budget::new(if buggify!(BudgetSpent) { 1 } else { units })
}
