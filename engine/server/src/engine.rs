//! The engine: everything one core does, one turn at a time.
//!
//! A turn has six phases: frames, completions, deadlines, resume, out, compute. Each has a budget, so that no load on one of
//! them starves the others and overload is shed at the door. Nothing waits: a handler runs to its end and what must come
//! next is named by a continuation.
//!
//! Invariants:
//! - A session stands in the slot of its connection, from the connection's first event to its last.
//! - A reply that promises something is queued by the completion of the flush that keeps it, and by nothing else.
//! - The session of a connection is asked again for bytes that it left whenever anything happened to it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use certificates::Certificates;
use channel::Class;
use compute::DoneJob;
use connections::{Owner, Stir, TurnGate};
use machine::{CoreId, Entropy, Instant, Machine, Micros, Sector, Turn};
use net::{ConnectionId, Events, Output, Sending};
use outbound::Outbound;
use resolver::Told;
use sometimes::buggify;
use store::{CRASH_SECTOR, State, Store, Wake};
use submission::{self, Submission};
use tasks::{Budget, Continuation, FrameId, Subsystem};

use crate::clock::time_of_day;
use crate::common::Common;
use crate::crowding::Relief;
use crate::life::{DiskTrouble, Ending, Life};
use crate::links::Message;
use crate::making::Making;
use crate::session::{Context, Services, Session};
use crate::sizes::Sizes;

/// Frames taken from the card in one turn.
const FRAMES_PER_TURN: u32 = 64;
/// Connections whose timers may expire in one turn.
const TIMERS_PER_TURN: u32 = 64;
/// Sessions whose deadlines may expire in one turn.
const DEADLINES_PER_TURN: u32 = 64;
/// Sessions that may go on in one turn because they asked for it.
const RESUMED_PER_TURN: u32 = 256;
/// Connections that may speak in one turn.
const SPEAKERS_PER_TURN: u32 = 256;
/// How late a wake-up may be where simulations make it late.
const LATE: Micros = Micros::from_millis(300);
/// Bytes that are read in one piece from what waits in a connection. More than the longest line of any protocol.
pub(crate) const SCRATCH_BYTES: usize = 8192;

/// When the engine wants its next turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// At once: there is more to do.
    Now,
    /// When something arrives, at this time at the latest.
    At(Instant),
    /// Never.
    Stopped(Ending),
}

/// What is computed in a piece that cannot be cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Computed {
    /// A step in a handshake of TLS.
    Handshake,
    /// A signature that this server makes.
    Signature,
    /// The check of another server's signature.
    Verification,
    /// A password hash.
    Hash,
}

impl Computed {
    const KINDS: usize = 4;

    fn next(self) -> Computed {
        match self {
            Computed::Handshake => Computed::Signature,
            Computed::Signature => Computed::Verification,
            Computed::Verification => Computed::Hash,
            Computed::Hash => Computed::Handshake,
        }
    }
}

/// What happens in a turn, and what is left to do when it ends.
#[derive(Default)]
pub(crate) struct Pace {
    /// A phase of this turn left something undone.
    pub(crate) unfinished: bool,
    /// Nothing has happened in this turn so far: no frame, no message, no session that goes on.
    pub(crate) is_quiet: bool,
    /// Something waits to be told to another core, whose ring was full in this turn.
    pub(crate) is_untold: bool,
}

/// Buffers that hold nothing from one turn to the next.
pub(crate) struct TurnBuffers {
    pub(crate) scratch: Box<[u8; SCRATCH_BYTES]>,
    pub(crate) events: Events,
}

/// One core's engine. What several of them have to do with each other stands in `cores`.
pub struct Engine {
    pub(crate) core: CoreId,
    pub(crate) sending: Sending,
    pub(crate) common: Common,
    pub(crate) services: Services,
    /// The session of each connection, in the connection's slot.
    pub(crate) sessions: Vec<Option<Session>>,
    pub(crate) life: Life,
    pub(crate) disk_trouble: DiskTrouble,
    pub(crate) sizes: Sizes,
    /// The accounts that the configuration asks for, until they are made.
    pub(crate) making: Making,
    pub(crate) buffers: TurnBuffers,
    /// What is remembered while anything runs short.
    pub(crate) relief: Relief,
    pub(crate) pace: Pace,
    /// What is computed next, if it waits.
    next_computed: Computed,
}

impl Engine {
    pub(crate) fn with(
        core: CoreId,
        sending: Sending,
        (common, services): (Common, Services),
        sizes: Sizes,
        making: Making,
    ) -> Engine {
        Engine {
            core,
            sending,
            common,
            services,
            sessions: (0..sizes.connections).map(|_| None).collect(),
            life: Life::Opening,
            disk_trouble: DiskTrouble::default(),
            sizes,
            making,
            buffers: TurnBuffers { scratch: Box::new([0; SCRATCH_BYTES]), events: Events::new() },
            relief: Relief::default(),
            pace: Pace::default(),
            next_computed: Computed::Handshake,
        }
    }

    /// Where the text of a panic may be written; `None` until the disk is known to be ours.
    pub fn crash_sector(&self) -> Option<Sector> {
        matches!(self.common.store.state(), State::Serving | State::ReadOnly(_)).then_some(CRASH_SECTOR)
    }

    /// The messages and mailboxes of this core's accounts, to be read.
    pub fn store(&self) -> &Store {
        &self.common.store.own.store
    }

    /// Does what there is to do now, and says when to come again.
    pub fn turn(&mut self, machine: &mut impl Machine) -> Next {
        let now = machine.now();
        self.common.turn = Turn { now, wall: time_of_day(machine.wall_clock(), machine.program_date(), now) };
        self.common.connections.begin_turn(machine.is_low_on_memory());
        self.pace.unfinished = false;
        self.pace.is_quiet = !self.common.connections.has_ready() && !self.common.store.has_wakes();
        self.frames(machine);
        self.completions(machine);
        self.deadlines();
        self.resume();
        if self.services.web.has_requests() {
            self.bring_requests();
        }
        self.tell_of_queue(machine);
        if self.common.clerks.has_work(&self.common.store.own.store) {
            self.let_clerks_work(machine);
        }
        if self.services.submission.has_work(self.common.turn.now) {
            self.let_submission(Submission::run);
        }
        if self.services.outbound.has_work(&self.common.store.own.store, self.common.turn.now) {
            self.let_outbound(Outbound::work);
        }
        if self.common.names.is_stirred() || self.common.names.next_deadline() <= self.common.turn.now {
            self.look_names_up();
        }
        self.live(machine);
        if self.services.certificates.is_to_look_at_ends(self.common.turn.now) {
            self.let_certificates(Certificates::look_at_ends);
        }
        self.own_messages(machine);
        if self.services.certificates.has_uploads() {
            self.let_certificates(Certificates::take_up);
        }
        // What was said meanwhile to HTTP sessions may have made them want more.
        if self.services.web.has_requests() {
            self.bring_requests();
        }
        self.out(machine);
        self.common.console.flush(machine);
        self.compute(machine);
        self.next()
    }

    /// Phase 1: each frame goes up to its session at once.
    fn frames(&mut self, machine: &mut impl Machine) {
        let mut budget = budget_of(FRAMES_PER_TURN);
        while budget.take() {
            let Some(mut frame) = machine.receive() else { return };
            self.pace.is_quiet = false;
            let route =
                self.common.connections.frame_arrived(self.common.turn.now, &mut frame, &mut self.buffers.events);
            // A bare acknowledgment means nothing to anybody else.
            if !self.buffers.events.is_empty() {
                self.handle_events(frame.bytes_mut());
            }
            if let Some(frame) = self.common.connections.frame_handled(frame, route) {
                machine.give_back(frame);
            }
        }
        self.pace.unfinished = true;
    }

    /// Phase 2: what the disk and other cores have done wakes who waits for it.
    fn completions(&mut self, machine: &mut impl Machine) {
        if self.core == CoreId::FIRST {
            while let Some(completion) = machine.completed() {
                self.common.store.own.store.disk_completed(completion);
            }
        }
        self.messages(machine);
        while let Some(Wake { continuation, outcome }) = self.common.store.next_wake() {
            let Continuation { frame, entry } = continuation;
            match Subsystem::of(entry) {
                Some(Subsystem::Inbound | Subsystem::Pop3) => self.session_woken(frame, entry, outcome),
                Some(Subsystem::Accounts) => self.account_made(outcome),
                Some(Subsystem::Certificates) => {
                    self.let_certificates(|certificates, cx| certificates.woken(entry, outcome, cx));
                }
                Some(Subsystem::Webmail) => self.clerk_woken(frame, outcome, machine),
                Some(Subsystem::Submission) => {
                    self.let_submission(|submission, cx| submission.woken(frame, outcome, cx));
                }
                Some(Subsystem::Outbound) => {
                    self.let_outbound(|outbound, cx| outbound.woken(frame, entry, outcome, cx))
                }
                // What is noted for an account has nothing that waits for it.
                Some(Subsystem::Shards) => self.common.store.forget(outcome),
                Some(Subsystem::Auth) | None => {
                    unreachable!("{entry:?} belongs to no subsystem that waits here")
                }
            }
        }
    }

    /// Phase 3: what is due.
    fn deadlines(&mut self) {
        let mut budget = budget_of(TIMERS_PER_TURN);
        self.common.connections.end_closing(self.common.turn.now);
        self.common.connections.deadlines_expired(self.common.turn.now, &mut self.buffers.events, &mut budget);
        if !self.buffers.events.is_empty() {
            self.handle_events(&mut []);
        }
        self.relieve();
        let mut budget_of_sessions = budget_of(DEADLINES_PER_TURN);
        while budget_of_sessions.take() {
            let Some(connection) = self.common.connections.next_due(self.common.turn.now) else {
                self.pace.unfinished |= budget.is_spent();
                return;
            };
            self.session_deadline_expired(connection.0);
        }
        self.pace.unfinished = true;
    }

    /// Phase 4: sessions that were made ready before this turn.
    fn resume(&mut self) {
        let mut budget = budget_of(RESUMED_PER_TURN);
        self.common.connections.begin_resuming();
        while budget.take()
            && let Some(frame) = self.common.connections.next_ready()
        {
            self.session_resumed(frame);
        }
    }

    /// Phase 5: the turn's writes go out as one group, the turn's replies as segments, and each doorbell is rung once.
    fn out(&mut self, machine: &mut impl Machine) {
        self.common.store.turn_ended();
        if self.core == CoreId::FIRST {
            self.ask_disk(machine);
        }
        let mut budget = budget_of(SPEAKERS_PER_TURN);
        let now = self.common.turn.now;
        let output = match self.sending.through(machine) {
            None => {
                // The first of both may fill the card, so they take turns.
                let others_first = self.sending.others_go_first();
                if others_first && self.sending.has_for_others() {
                    self.transmit_for_others(machine);
                }
                let output = self.common.connections.output(now, machine, &mut budget);
                if !others_first && self.sending.has_for_others() {
                    self.transmit_for_others(machine);
                }
                output
            }
            Some(mut through) => self.common.connections.output(now, &mut through, &mut budget),
        };
        // Who finds the card full may sleep: room ends that.
        self.pace.unfinished |= output == Output::More;
        self.post(machine);
        machine.ring_doorbells();
    }

    /// Phase 6: one thing is computed that takes long and cannot be cut, after all that this turn
    /// had to say is on its way. The kinds take turns.
    fn compute(&mut self, machine: &mut impl Machine) {
        let Common { connections, compute, .. } = &self.common;
        // Most turns have nothing to compute.
        if connections.owner_of(TurnGate::Handshake).is_some()
            || connections.owner_of(TurnGate::Verification).is_some()
            || !compute.is_idle()
        {
            self.compute_one(machine);
        }
    }

    #[inline(never)]
    fn compute_one(&mut self, machine: &mut impl Machine) {
        for _ in 0..Computed::KINDS {
            let kind = self.next_computed;
            self.next_computed = kind.next();
            let has_computed = match kind {
                Computed::Handshake => self.step_handshake(),
                Computed::Signature => self.common.compute.compute_signature(),
                Computed::Verification => self.verify_signature(),
                Computed::Hash => self.compute_hash(machine),
            };
            if has_computed {
                self.jobs_done(machine);
                self.pace.unfinished = true;
                return;
            }
        }
    }

    fn step_handshake(&mut self) -> bool {
        let owner = self.common.connections.owner_of(TurnGate::Handshake);
        if let Some(frame) = owner {
            match self.common.connections.owner(ConnectionId(frame)) {
                Owner::Outbound(attempt) => self.let_outbound(|outbound, cx| outbound.stirred(attempt, Stir::Turn, cx)),
                _ => self.session_resumed(frame),
            }
        }
        owner.is_some()
    }

    fn verify_signature(&mut self) -> bool {
        let owner = self.common.connections.owner_of(TurnGate::Verification);
        if let Some(frame) = owner {
            self.session_resumed(frame);
        }
        owner.is_some()
    }

    fn compute_hash(&mut self, machine: &mut impl Machine) -> bool {
        let Common { compute, logins, turn, .. } = &mut self.common;
        compute.compute_hash(logins.throttle(), turn.now, self.pace.is_quiet, || machine.now())
    }

    /// What waits for jobs that are done goes on with their results.
    pub(crate) fn jobs_done(&mut self, entropy: &mut dyn Entropy) {
        while let Some(DoneJob { continuation: Continuation { frame, entry }, number }) =
            self.common.compute.next_done()
        {
            match Subsystem::of(entry) {
                // A session abandons its job before it ends.
                Some(Subsystem::Auth | Subsystem::Inbound) => {
                    self.session_resumed(frame);
                    continue;
                }
                Some(Subsystem::Webmail) => self.clerk_signs(frame, entropy),
                Some(Subsystem::Outbound) => self.let_outbound(|outbound, cx| outbound.signature_made(frame, cx)),
                _ => unreachable!("{entry:?} waits for no job"),
            }
            // Only a frame that is gone has not taken it.
            self.common.compute.take_result(number);
        }
    }

    /// What was asked about names is asked on, and what is known is told.
    fn look_names_up(&mut self) {
        let Common { names, connections, turn, .. } = &mut self.common;
        names.work(turn.now, connections);
        while let Some((core, message)) = self.common.names.next_message() {
            self.common.links.tell(core, Class::Answer, Message::Name(message));
        }
        self.tell_names();
    }

    /// What has asked about names is told what is known of them.
    pub(crate) fn tell_names(&mut self) {
        while let Some(Told { at: Continuation { frame, entry }, number, known }) = self.common.names.next_told() {
            match Subsystem::of(entry) {
                Some(Subsystem::Inbound) => self.session_name_known(frame, number, known),
                Some(Subsystem::Outbound) => {
                    self.let_outbound(|outbound, cx| outbound.name_known(frame, number, known, cx))
                }
                _ => unreachable!("{entry:?} asks about no name"),
            }
        }
    }

    /// Lets submission act.
    fn let_submission(&mut self, act: impl FnOnce(&mut Submission, &mut submission::Context<'_>)) {
        let Common { turn, store, directory, .. } = &mut self.common;
        act(&mut self.services.submission, &mut submission::Context { turn: *turn, store, directory });
    }

    /// What the stores of all cores want of the disk.
    fn ask_disk(&mut self, machine: &mut impl Machine) {
        let store = &mut self.common.store.own.store;
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
        if let Life::Stopped(ending) = self.life
            && !self.pace.is_untold
        {
            return Next::Stopped(ending);
        }
        self.relief.runs_short = self.is_short();
        let has_more = self.pace.unfinished
            || self.pace.is_untold
            || self.common.store.has_wakes()
            || self.common.clerks.can_go_on();
        let has_more = has_more
            || self.services.web.has_requests()
            || self.services.submission.has_to_look()
            || self.common.names.is_stirred();
        let has_more = has_more || self.services.outbound.has_to_look() || self.common.links.has_own();
        if has_more
            || self.common.connections.has_ready()
            || self.is_hurried()
            || self.services.certificates.can_take_up()
        {
            return Next::Now;
        }
        let next = self
            .common
            .connections
            .next_deadline()
            .min(Instant::or_never(self.services.submission.next_deadline()))
            .min(Instant::or_never(self.services.outbound.next_deadline()))
            .min(self.common.names.next_deadline())
            .min(Instant::or_never(self.life.next_deadline()))
            .min(Instant::or_never(self.next_try_to_make()))
            .min(Instant::or_never(self.disk_trouble.again_at))
            .min(self.services.certificates.next_deadline())
            .min(Instant::or_never(self.next_look()))
            .min(Instant::or_never(self.common.compute.next_deadline()));
        Next::At(if buggify!(WakeUpLate) { next + LATE } else { next })
    }

    pub(crate) fn session_of(&mut self, frame: FrameId) -> Option<(&mut Session, Context<'_>)> {
        let session = self.sessions.get_mut(frame.index())?.as_mut()?;
        (session.caller.connection.0 == frame).then(|| (session, self.services.with(&mut self.common)))
    }
}

/// What a phase may do.
pub(crate) fn budget_of(units: u32) -> Budget {
    Budget::new(if buggify!(BudgetSpent) { 1 } else { units })
}
